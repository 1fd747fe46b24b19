"""Discrete Fourier transforms of contiguous rows, unnormalised, for njit: NumPy's own loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, objmode, types
from numba.extending import overload

from ...inside import numpy_fft

_external: Any = types.ExternalFunction


def fft_into(result: Any, values: Any, inverse: bool) -> None:
    """The transform of complex numbers, or the inverse transform times their number."""
    numpy_fft.of_complex(result, values, inverse)


def rfft_into(result: Any, values: Any) -> None:
    """The first half of the transform of real numbers."""
    numpy_fft.of_real(result, values)


def irfft_into(result: Any, values: Any) -> None:
    """The real numbers whose transform begins with `values`, times their number."""
    numpy_fft.to_real(result, values)


def _loop(name: str, dtype: Any) -> Any:
    """NumPy's loop of a transform, None where it is not found."""
    symbol = f"{numpy_fft.BEGINNING}{name}_{getattr(dtype, 'underlying_float', dtype)}"
    pointers = types.uintp, types.uintp, types.uintp, types.uintp
    return _external(symbol, types.void(*pointers)) if symbol in numpy_fft.addresses() else None


def _calling(loop: Any, real: Any) -> Any:
    """A function that calls a loop for one row."""
    factor_of = real.type if isinstance(real, np.dtype) else real

    @njit(error_model="numpy")
    def call(result: Any, values: Any, is_forward: bool) -> None:
        arrays, sizes, steps = np.empty(3, np.uintp), np.empty(3, np.intp), np.zeros(5, np.intp)
        factor, way = np.ones(1, factor_of), np.empty(1, np.bool_)
        way[0] = is_forward
        arrays[0], arrays[1], arrays[2] = values.ctypes.data, factor.ctypes.data, result.ctypes.data
        sizes[0], sizes[1], sizes[2] = 1, len(values), len(result)
        steps[3], steps[4] = values.itemsize, result.itemsize
        loop(arrays.ctypes.data, sizes.ctypes.data, steps.ctypes.data, way.ctypes.data)
        arrays[0], sizes[0], steps[0], factor[0], way[0] = 0, 0, 0, 0, False  # they must live until here

    return call


def _through_python(function: Any) -> Callable[..., Any]:
    @njit
    def of_row(result: Any, values: Any) -> None:
        with objmode():
            function(result, values)

    return of_row


@overload(fft_into, strict=False)
def _typed_fft_into(result: Any, values: Any, inverse: Any) -> Callable[..., Any]:
    loop = _loop("fft", values.dtype)
    if loop is None:
        forth, back = (_through_python(lambda result, values, way=way: fft_into(result, values, way)) for way in (False, True))

        def in_python(result: Any, values: Any, inverse: bool) -> None:
            if inverse:
                back(result, values)
            else:
                forth(result, values)

        return in_python
    call = _calling(loop, np.dtype(str(values.dtype.underlying_float)))
    return lambda result, values, inverse: call(result, values, not inverse)


@overload(rfft_into, strict=False)
def _typed_rfft_into(result: Any, values: Any) -> Callable[..., Any]:
    even, odd = _loop("rfft_n_even", values.dtype), _loop("rfft_n_odd", values.dtype)
    if even is None or odd is None:
        in_python = _through_python(rfft_into)
        return lambda result, values: in_python(result, values)
    real = np.dtype(str(values.dtype))
    of_even, of_odd = _calling(even, real), _calling(odd, real)

    def by_numpy(result: Any, values: Any) -> None:
        if len(values) % 2:
            of_odd(result, values, True)
        else:
            of_even(result, values, True)

    return by_numpy


@overload(irfft_into, strict=False)
def _typed_irfft_into(result: Any, values: Any) -> Callable[..., Any]:
    loop = _loop("irfft", values.dtype)
    if loop is None:
        in_python = _through_python(irfft_into)
        return lambda result, values: in_python(result, values)
    call = _calling(loop, np.dtype(str(result.dtype)))
    return lambda result, values: call(result, values, False)
