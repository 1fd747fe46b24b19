"""The programs of plain_data.py in numbascan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from plain_data import DIFFERENTIATED, PROGRAMS, inputs

import numbascan as ns

__all__ = ["PACKAGES", "call", "inputs"]

PACKAGES = ("numbascan", "numba", "numpy")


def call(name: str, arguments: tuple[Any, ...]) -> Callable[[], Any]:
    """A run of one name."""
    f = PROGRAMS[name.removesuffix("-grad")]
    if not name.endswith("-grad"):
        run = ns.jit(f)
    else:

        def cost(*args: Any) -> Any:
            results = f(*args)
            return sum(np.sum(one) for one in (results if isinstance(results, tuple) else (results,)))

        run = ns.grad(cost, argnums=DIFFERENTIATED[f.__name__])
    return lambda: run(*arguments)
