"""The programs of plain_data.py in Numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit
from plain_data import PROGRAMS, inputs

__all__ = ["PACKAGES", "call", "inputs"]

PACKAGES = ("numba", "numpy")


def call(name: str, arguments: tuple[Any, ...]) -> Callable[[], Any]:
    """A run of one name."""
    run = njit(PROGRAMS[name])
    return lambda: run(*arguments)
