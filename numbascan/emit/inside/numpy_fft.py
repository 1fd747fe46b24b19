"""NumPy's own Fourier transforms of rows (pocketfft), for compiled code to call.

They are the loops of NumPy's private generalised ufuncs, which need no object of Python and take no lock of it. Importing this imports no
Numba.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from .shortcuts import NUMPY_FFT

BEGINNING = "numbascan_fourier_"  # of their symbols, before name and dtype
DTYPES = ("float64", "float32")  # of the real numbers
NAMES = ("fft", "rfft_n_even", "rfft_n_odd", "irfft")
_COUNTS, _FUNCTIONS, _SIZE_OF_POINTER = 16, 32, ctypes.sizeof(ctypes.c_void_p)  # places in a PyUFuncObject
_loop = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


@cache
def addresses() -> dict[str, int]:
    """The loops of transforms, by symbol: `void loop(char **arrays, intp *dimensions, intp *steps, bool *is_forward)`.

    LLVM knows the symbols from now on.

    - arrays: the row, a factor, the result.
    - dimensions: the number of rows, the length of a row, the length of a result.
    - steps, in bytes: from row to row in each of the three arrays, then from element to element in rows and in results.
    """
    if _SIZE_OF_POINTER != 8 or not NUMPY_FFT.is_taken():
        return {}
    found = {}
    for name in NAMES:
        functions = _functions(getattr(NUMPY_FFT, name))
        for k, dtype in enumerate(DTYPES):
            if functions is None or not _transforms(name, functions[k], np.dtype(dtype)):
                return {}
            found[f"{BEGINNING}{name}_{dtype}"] = functions[k]
    from llvmlite import binding

    for symbol, address in found.items():
        binding.add_symbol(symbol, address)
    return found


def of_complex(result: Any, values: Any, inverse: bool) -> None:
    """The unnormalised transform, in Python."""
    result[:] = np.fft.ifft(values, norm="forward") if inverse else np.fft.fft(values)


def of_real(result: Any, values: Any) -> None:
    """The first half of a transform, in Python."""
    result[:] = np.fft.rfft(values)


def to_real(result: Any, values: Any) -> None:
    """The unnormalised inverse transform of a first half, in Python."""
    result[:] = np.fft.irfft(values, len(result), norm="forward")


def _functions(ufunc: Any) -> list[int] | None:
    """The loops of a generalised ufunc, in double and single precision; None where it is laid out in another way than in NumPy 2."""
    kinds = [kind[0].lower() + kind[1] for kind in ufunc.types[:2]]
    if tuple((ctypes.c_int * 3).from_address(id(ufunc) + _COUNTS)) != (2, 1, 3) or kinds != ["dd", "ff"]:
        return None
    table = ctypes.c_void_p.from_address(id(ufunc) + _FUNCTIONS).value
    return None if table is None else [ctypes.c_void_p.from_address(table + k * _SIZE_OF_POINTER).value or 0 for k in range(2)]


def _transforms(name: str, address: int, dtype: np.dtype[Any]) -> bool:
    """True if the loop at this address computes the transform of this name."""
    n, kind = 5 if name.endswith("odd") else 6, np.result_type(dtype, "complex64")
    row = np.cos(np.arange(1.0, 7.0) ** 2)[:n].astype(dtype)
    of_name: dict[str, list[tuple[Any, Any, bool]]] = {
        "fft": [(row + 1j * row[::-1], np.fft.fft, True), (row + 1j * row[::-1], lambda x: np.fft.ifft(x) * n, False)],
        "irfft": [(np.fft.rfft(row), lambda x: np.fft.irfft(x) * n, False)],
    }
    for given, transform, is_forward in of_name.get(name, [(row, np.fft.rfft, True)]):
        expected = transform(given)
        values = np.ascontiguousarray(given, kind if given.dtype.kind == "c" else dtype)
        result = np.empty(expected.shape, kind if expected.dtype.kind == "c" else dtype)
        factor, way = np.ones((), dtype), np.array(is_forward)
        arrays = np.array([values.ctypes.data, factor.ctypes.data, result.ctypes.data], np.uintp)
        sizes, steps = np.array([1, len(values), len(result)]), np.array([0, 0, 0, values.itemsize, result.itemsize])
        if not address:
            return False
        _loop(address)(arrays.ctypes.data, sizes.ctypes.data, steps.ctypes.data, way.ctypes.data)
        if not np.allclose(result, expected, rtol=1e-4, atol=1e-4):
            return False
    return True
