"""Numba's CUDA half: which package it comes from, and what must be done before it is imported.

The package numba-cuda takes the place of `numba.cuda` through a hook that a `.pth` file installs. Where such files are not read (a folder
on PYTHONPATH) the hook is imported here. Under NumPy 2.5 and later it asks for a function that NumPy no longer has; it gets it while it
is imported.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

import numpy as np

INSTALL = "pip install numbascan[cuda]"


@cache
def cuda() -> Any:
    """The module `numba.cuda`, of numba-cuda where that is installed."""
    _optional("_numba_cuda_redirector")
    lacks_row_stack = not hasattr(np, "row_stack")
    if lacks_row_stack:
        np.row_stack = np.vstack  # type: ignore[attr-defined]
    try:
        module = importlib.import_module("numba.cuda")
        if is_nvidia(module) and not is_simulated():
            importlib.import_module("numba.cuda.np.arrayobj")
    finally:
        if lacks_row_stack:
            del np.row_stack  # type: ignore[attr-defined]
    return module


def missing() -> str:
    """Why nothing can run on a GPU; "" if it can."""
    if is_simulated():
        return ""
    try:
        if not cuda().is_available():
            return "there is no CUDA driver or device; use mode=None for the CPU, or NUMBA_ENABLE_CUDASIM=1 to try kernels in Python"
    except Exception as error:  # whatever a broken driver raises
        return f"CUDA cannot be used: {error}"
    return "" if is_nvidia(cuda()) else f"the package numba-cuda is missing: {INSTALL}"


def is_nvidia(module: Any) -> bool:
    """Is it the package numba-cuda, and not what is left of CUDA in Numba itself?"""
    return str(getattr(module, "implementation", "")) == "NVIDIA"


def is_simulated() -> bool:
    """Does Python run kernels, as NUMBA_ENABLE_CUDASIM=1 asks?"""
    from numba import config

    return bool(vars(config)["ENABLE_CUDASIM"])


def _optional(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
