"""SciPy's machine code of scalar functions in double precision (`scipy.special.cython_special`). Importing this imports Numba.

The linker finds each function by a symbol that importing this module defines, so cached kernels stay valid between processes.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import scipy.special
from llvmlite import binding
from numba import njit, objmode, types
from numba.extending import get_cython_function_address

from .shortcuts import SCIPY


def _symbol(name: str, arity: int) -> Any:
    """SciPy's `name`, None where it is not found. Its functions with several dtypes are numbered, which number is double is looked up."""
    if not SCIPY.is_taken():
        return None
    signature = f'"double ({"double, " * arity}int __pyx_skip_dispatch)"'
    for key, capsule in SCIPY.__pyx_capi__.items():
        if re.fullmatch(rf"(__pyx_fuse_\d+)?{name}", key) and signature in repr(capsule):
            binding.add_symbol(f"numbascan_{name}", get_cython_function_address("scipy.special.cython_special", key))
            return types.ExternalFunction(f"numbascan_{name}", types.float64(*(types.float64,) * arity, types.int32))
    return None


def _of_one_number(name: str) -> Any:
    symbol, in_python = _symbol(name, 1), getattr(scipy.special, name)

    def through_python(x: float) -> float:
        with objmode(result="float64"):
            result = in_python(x)
        return result

    return njit(through_python if symbol is None else lambda x: symbol(x, np.int32(0)))


def _of_two_numbers(name: str) -> Any:
    symbol, in_python = _symbol(name, 2), getattr(scipy.special, name)

    def through_python(x: float, y: float) -> float:
        with objmode(result="float64"):
            result = in_python(x, y)
        return result

    return njit(through_python if symbol is None else lambda x, y: symbol(x, y, np.int32(0)))


psi, erfinv, betaln = _of_one_number("psi"), _of_one_number("erfinv"), _of_two_numbers("betaln")
