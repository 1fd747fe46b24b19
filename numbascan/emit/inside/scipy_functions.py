"""SciPy's machine code of scalar functions in double precision (`scipy.special.cython_special`). Importing this imports Numba.

The linker finds each function by a symbol, which `runtime/special.py` defines when it asks for the function: so cached kernels stay
valid between processes.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import scipy.special
from llvmlite import binding
from numba import config, njit, objmode, types
from numba.extending import get_cython_function_address

from .shortcuts import SCIPY


def _symbol(name: str, arity: int) -> Any:
    """SciPy's `name` for doubles, None if it is not found. Functions of several dtypes are numbered: the one for doubles is looked up."""
    if vars(config)["DISABLE_JIT"] or not SCIPY.is_taken():  # NUMBA_DISABLE_JIT=1: Python calls no symbol
        return None
    signature = f'"double ({"double, " * arity}int __pyx_skip_dispatch)"'
    for key, capsule in SCIPY.__pyx_capi__.items():
        if re.fullmatch(rf"(__pyx_fuse_\d+)?{name}", key) and signature in repr(capsule):
            binding.add_symbol(f"numbascan_{name}", get_cython_function_address("scipy.special.cython_special", key))
            return types.ExternalFunction(f"numbascan_{name}", types.float64(*(types.float64,) * arity, types.int32))
    return None


@cache
def function(name: str, arity: int) -> Any:
    """SciPy's `name` for doubles."""
    symbol, in_python = _symbol(name, arity), getattr(scipy.special, name)
    if arity == 1:
        return njit(_through_python(in_python) if symbol is None else lambda x: symbol(x, np.int32(0)))
    if arity == 2:
        return njit(_of_two_through_python(in_python) if symbol is None else lambda x, y: symbol(x, y, np.int32(0)))
    return njit(_of_three_through_python(in_python) if symbol is None else lambda x, y, z: symbol(x, y, z, np.int32(0)))


def _through_python(in_python: Any) -> Any:
    def of_one(x: float) -> float:
        with objmode(result="float64"):
            result = in_python(x)
        return result

    return of_one


def _of_two_through_python(in_python: Any) -> Any:
    def of_two(x: float, y: float) -> float:
        with objmode(result="float64"):
            result = in_python(x, y)
        return result

    return of_two


def _of_three_through_python(in_python: Any) -> Any:
    def of_three(x: float, y: float, z: float) -> float:
        with objmode(result="float64"):
            result = in_python(x, y, z)
        return result

    return of_three
