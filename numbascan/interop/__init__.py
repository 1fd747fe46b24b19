"""Functions of arrays inside other packages: `ns.interop.jax`, `ns.interop.torch`, `ns.interop.pytensor`.

The top of the house: it may import everything below, and nothing imports it. Each module imports its package when it is first named.
"""

from __future__ import annotations

import importlib
from types import ModuleType

PEERS = ("jax", "pytensor", "torch")


def __getattr__(name: str) -> ModuleType:
    if name not in PEERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f'ns.interop.{name} needs {name}; write `pip install "numbascan[{name}]"`') from error
    return importlib.import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted(PEERS)
