"""Scalar functions for generated code that call SciPy's machine code (`scipy.special.cython_special`).

The linker finds each function by a symbol that importing this module defines, so cached kernels stay valid between processes.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from llvmlite import binding
from numba import njit, types
from numba.extending import get_cython_function_address
from scipy.special import cython_special

_scalar = njit(error_model="numpy")


def _routine(name: str, arity: int) -> Any:
    """SciPy's double-precision `name`. Its functions with several dtypes are numbered, which number is double is looked up."""
    wanted = f'"double ({"double, " * arity}int __pyx_skip_dispatch)"'
    for key, capsule in cython_special.__pyx_capi__.items():
        if re.fullmatch(rf"(__pyx_fuse_\d+)?{name}", key) and wanted in repr(capsule):
            binding.add_symbol(f"numbascan_{name}", get_cython_function_address("scipy.special.cython_special", key))
            signature = types.float64(*(types.float64,) * arity, types.int32)
            return types.ExternalFunction(f"numbascan_{name}", signature)
    raise ImportError(f"scipy.special.cython_special has no function {name} of {arity} doubles; numbascan needs scipy >= 1.14.1")


_psi, _erfinv, _betaln = _routine("psi", 1), _routine("erfinv", 1), _routine("betaln", 2)


@_scalar
def digamma(x: Any) -> Any:
    """The logarithmic derivative of the gamma function."""
    return type(x)(_psi(np.float64(x), np.int32(0)))


@_scalar
def erfinv(x: Any) -> Any:
    """The inverse of the error function."""
    return type(x)(_erfinv(np.float64(x), np.int32(0)))


@_scalar
def betaln(x: Any, y: Any) -> Any:
    """The logarithm of the absolute value of the beta function."""
    return type(x)(_betaln(np.float64(x), np.float64(y), np.int32(0)))
