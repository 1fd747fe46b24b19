"""The cells of cells_data.py in numbascan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cells_data import cost, inputs

import numbascan as ns
from numbascan import lax

__all__ = ["PACKAGES", "call", "inputs"]

PACKAGES = ("numbascan", "numba", "numpy")


def call(name: str, arguments: tuple[np.ndarray, ...]) -> Callable[[], Any]:
    """A run of one name."""
    f = cost(name, np, lax.scan, ns.vmap)
    run = ns.jit(f) if name.endswith("value") else ns.grad(f, argnums=tuple(range(1, len(arguments))))
    return lambda: run(*arguments)
