"""NumPy's own sorts of numbers, which use AVX-512 or AVX2 where the processor has it, for compiled code to call.

NumPy's C interface has them in the table of functions of each dtype (`PyArray_ArrFuncs`, whose layout all of NumPy 2 keeps). They touch no
object of Python, so that NumPy itself calls them without Python's lock. Importing this imports no Numba.
"""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np

from .shortcuts import NUMPY_SORTS

BEGINNING = "numbascan_sort_"  # of their symbols, before the dtype
DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
_ABI = 0x02000000
_VERSION, _FUNCTIONS_OF_DTYPE = 0, 365  # places in the table of the C interface
_SORT = 21 + 12  # the first of three sorts behind 21 casts and 12 other functions: the fastest one, not stable

_version = ctypes.CFUNCTYPE(ctypes.c_uint)
_functions_of_dtype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)
_sort = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p)


@cache
def addresses() -> dict[str, int]:
    """The sorts of a contiguous row in place, by symbol: `int sort(void *row, npy_intp length, void *)`. LLVM knows them from now on."""
    if not NUMPY_SORTS.is_taken():
        return {}
    table = _pointer(NUMPY_SORTS._ARRAY_API)
    if _version(_at(table, _VERSION))() != _ABI:
        return {}
    functions_of = _functions_of_dtype(_at(table, _FUNCTIONS_OF_DTYPE))
    sorts = {dtype: _at(functions_of(np.dtype(dtype)), _SORT) for dtype in DTYPES}
    if not all(_sorts(address, np.dtype(dtype)) for dtype, address in sorts.items()):
        return {}
    from llvmlite import binding

    for dtype, address in sorts.items():
        binding.add_symbol(BEGINNING + dtype, address)
    return {BEGINNING + dtype: address for dtype, address in sorts.items()}


def _pointer(capsule: object) -> int:
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    return get(capsule, None)


def _at(table: int, place: int) -> int:
    return ctypes.c_void_p.from_address(table + place * ctypes.sizeof(ctypes.c_void_p)).value or 0


def _sorts(address: int, dtype: np.dtype[np.generic]) -> bool:
    """True if the function at this address sorts."""
    row = np.array([3, 1, 0, 2], dtype)
    return bool(address) and _sort(address)(row.ctypes.data, len(row), None) == 0 and row.tolist() == sorted(row.tolist())
