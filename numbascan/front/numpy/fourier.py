"""Discrete Fourier transforms under NumPy's names: `np.fft.fft(x)` on a variable, and `nt.fft.fft(x)`.

Complex numbers of single precision stay so, as in NumPy 2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.node import constant_value
from ...ops import fourier as cards
from ...tracebacks import entries
from ..variable import Variable, as_variable, at_line, implements, op
from .creation import arange, zeros
from .indexing import set_subtensor
from .joining import concatenate
from .math import cast
from .rearranging import roll
from .shape import swapaxes
from .shape_arguments import axes_of, axis_of, refuse

_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _points(n: Any, name: str) -> Any:
    """A number of points. ValueError if it is known to be less than 1."""
    known = constant_value(n.node) if isinstance(n, Variable) else n
    if known is not None and int(known) < 1:
        raise ValueError(f"{name}: {cards.NO_POINTS.format(int(known))}{at_line()}")
    return n if known is None else int(known)


def _length_of(x: Variable) -> Any:
    return _points(x.shape[-1], "np.fft")


def _with_length(x: Variable, n: Any) -> Variable:
    """The first n elements along the last axis, padded with zeros."""
    length = _length_of(x)
    if isinstance(length, int) and isinstance(n, int) and n <= length:
        return x if n == length else x[..., :n]
    count = np.minimum(n, length)
    return set_subtensor(zeros((*x.shape[:-1], n), x.dtype)[..., :count], x[..., :count])


def _scaled(x: Variable, n: Any, norm: str | None, is_inverse: bool, name: str) -> Variable:
    """An unscaled transform times the factor that `norm` asks for."""
    if norm not in _SWAPPED:
        raise ValueError(f'{name}: Invalid norm value {norm}; should be "backward", "ortho" or "forward"{at_line()}')
    if norm == "ortho":
        factor = 1.0 / np.sqrt(n)
    elif ((norm or "backward") == "backward") == is_inverse:
        factor = 1.0 / n
    else:
        return x
    return x * cast(as_variable(factor), cards.real_dtype(x.type.dtype))


def _along(
    a: Any, n: Any, axis: Any, norm: Any, out: Any, name: str, is_inverse: bool, of_rows: Callable[[Variable, Any], tuple[Variable, Any]]
) -> Variable:
    """A transform along an axis. `of_rows` returns the unscaled transform of the last axis, and its number of points."""
    name = f"np.fft.{name}"
    refuse(name, out=out)
    x = as_variable(a)
    if not x.ndim:
        raise IndexError(f"{name}: the array has no axis{at_line()}; give one of one dimension or more")
    place = axis_of(axis, x.ndim, name)
    result, count = of_rows(swapaxes(x, place, -1), None if n is None else _points(n, name))
    return swapaxes(_scaled(result, count, norm, is_inverse, name), place, -1)


def _complex(is_inverse: bool) -> Callable[[Variable, Any], tuple[Variable, Any]]:
    def of_rows(x: Variable, n: Any) -> tuple[Variable, Any]:
        x = x if n is None else _with_length(x, n)
        return op(cards.FFT, cast(x, cards.complex_dtype(x.type.dtype)), inverse=is_inverse), _length_of(x)

    return of_rows


def _of_real(x: Variable, n: Any) -> tuple[Variable, Any]:
    if x.type.kind == "c":
        raise TypeError(f"np.fft.rfft: the array is complex{at_line()}; write np.fft.fft(x), or np.fft.rfft(x.real)")
    x = x if n is None else _with_length(x, n)
    return op(cards.RFFT, cast(x, cards.real_dtype(cards.complex_dtype(x.type.dtype)))), _length_of(x)


def _to_real(x: Variable, n: Any) -> tuple[Variable, Any]:
    x = cast(x, cards.complex_dtype(x.type.dtype))
    if n is None:
        return op(cards.IRFFT, x, is_odd=False), _points(2 * (_length_of(x) - 1), "np.fft.irfft")
    if isinstance(n, int):
        return op(cards.IRFFT, _with_length(x, n // 2 + 1), is_odd=bool(n % 2)), n
    half = _with_length(x, n // 2 + 1)  # of n points, even or odd: the other half is the conjugate of the first one, from the end
    other = np.conj(half[..., 1 : (n - 1) // 2 + 1])[..., ::-1]
    return op(cards.FFT, concatenate([half, other], axis=-1), inverse=True).real, n


@implements(np.fft.fft)
def fft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Variable:
    """The discrete Fourier transform along an axis.

    Arguments: n, the number of points, traced or not: the array is cut, or zeros are put behind it; norm, which way divides by it.

    Raises ValueError for a number of points below 1, an unknown norm; TypeError for `out`.

    >>> import numbascan.tensor as nt
    >>> nt.fft.fft(nt.dvector("x"))
    <fft: complex128[?]>
    """
    return _along(a, n, axis, norm, out, "fft", False, _complex(False))


@implements(np.fft.ifft)
def ifft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Variable:
    """The inverse of `fft`."""
    return _along(a, n, axis, norm, out, "ifft", True, _complex(True))


@implements(np.fft.rfft)
def rfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Variable:
    """The first n // 2 + 1 numbers of the transform of real numbers; the others are their conjugates.

    >>> import numbascan.tensor as nt
    >>> nt.fft.rfft(nt.tensor("float32", shape=(8,)))
    <rfft: complex64[5]>
    """
    return _along(a, n, axis, norm, out, "rfft", False, _of_real)


@implements(np.fft.irfft)
def irfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Variable:
    """The inverse of `rfft`, of 2 * (m - 1) real numbers for m complex ones unless n is given."""
    return _along(a, n, axis, norm, out, "irfft", True, _to_real)


@implements(np.fft.hfft)
def hfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Variable:
    """The real transform of numbers of which the first half is given, and the second is its conjugate."""
    return _along(np.conj(as_variable(a)), n, axis, _SWAPPED.get(norm, norm), out, "hfft", True, _to_real)


@implements(np.fft.ihfft)
def ihfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Variable:
    """The inverse of `hfft`."""
    return _along(a, n, axis, _SWAPPED.get(norm, norm), out, "ihfft", False, _of_real).conj()


def _axes_and_points(x: Variable, s: Any, axes: Any, name: str) -> list[tuple[int, Any]]:
    """The axes to transform, each with its number of points, None for its own length."""
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    places = [axis_of(axis, x.ndim, f"np.fft.{name}") for axis in axes]  # an axis may occur twice
    if not places:
        raise ValueError(f"np.fft.{name}: there is no axis{at_line()}; give one or more")
    if s is None:
        return [(place, None) for place in places]
    if len(s) != len(places):
        raise ValueError(f"np.fft.{name}: Shape and axes have different lengths, {len(s)} and {len(places)}{at_line()}")
    return [(place, x.shape[place] if isinstance(n, int) and n == -1 else n) for place, n in zip(places, s, strict=True)]


def _along_all(one: Callable[..., Variable], a: Any, s: Any, axes: Any, norm: Any, out: Any, name: str) -> Variable:
    refuse(f"np.fft.{name}", out=out)
    x = as_variable(a)
    for axis, n in reversed(_axes_and_points(x, s, axes, name)):
        x = one(x, n, axis, norm)
    return x


def _first_half(a: Any, s: Any, axes: Any, norm: Any, out: Any, name: str) -> Variable:
    refuse(f"np.fft.{name}", out=out)
    x = as_variable(a)
    *others, (last, n) = _axes_and_points(x, s, axes, name)
    x = rfft(x, n, last, norm)
    for axis, n in reversed(others):
        x = fft(x, n, axis, norm)
    return x


def _from_first_half(a: Any, s: Any, axes: Any, norm: Any, out: Any, name: str) -> Variable:
    refuse(f"np.fft.{name}", out=out)
    x = as_variable(a)
    *others, (last, n) = _axes_and_points(x, s, axes, name)
    for axis, count in others:
        x = ifft(x, count, axis, norm)
    return irfft(x, n, last, norm)


@implements(np.fft.fftn)
def fftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None, out: Any = None) -> Variable:
    """The transform along several axes; without axes along all, or along the last ones for which `s` gives numbers of points."""
    return _along_all(fft, a, s, axes, norm, out, "fftn")


@implements(np.fft.ifftn)
def ifftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None, out: Any = None) -> Variable:
    """The inverse of `fftn`."""
    return _along_all(ifft, a, s, axes, norm, out, "ifftn")


@implements(np.fft.fft2)
def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None, out: Any = None) -> Variable:
    """The transform along two axes."""
    return _along_all(fft, a, s, axes, norm, out, "fft2")


@implements(np.fft.ifft2)
def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None, out: Any = None) -> Variable:
    """The inverse of `fft2`."""
    return _along_all(ifft, a, s, axes, norm, out, "ifft2")


@implements(np.fft.rfftn)
def rfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None, out: Any = None) -> Variable:
    """The transform of real numbers along several axes; of the last one the first half."""
    return _first_half(a, s, axes, norm, out, "rfftn")


@implements(np.fft.irfftn)
def irfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None, out: Any = None) -> Variable:
    """The inverse of `rfftn`."""
    return _from_first_half(a, s, axes, norm, out, "irfftn")


@implements(np.fft.rfft2)
def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None, out: Any = None) -> Variable:
    """The transform of real numbers along two axes; of the last one the first half."""
    return _first_half(a, s, axes, norm, out, "rfft2")


@implements(np.fft.irfft2)
def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None, out: Any = None) -> Variable:
    """The inverse of `rfft2`."""
    return _from_first_half(a, s, axes, norm, out, "irfft2")


def _shifted(x: Any, axes: Any, sign: int, name: str) -> Variable:
    array = as_variable(x)
    for axis in axes_of(axes, array.ndim, f"np.fft.{name}"):
        half = array.shape[axis] // 2
        array = roll(array, half if sign > 0 else -half, axis)
    return array


@implements(np.fft.fftshift)
def fftshift(x: Any, axes: Any = None) -> Variable:
    """The array with frequency zero in the middle of each axis."""
    return _shifted(x, axes, 1, "fftshift")


@implements(np.fft.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Variable:
    """The inverse of `fftshift`."""
    return _shifted(x, axes, -1, "ifftshift")


def fftfreq(n: Any, d: Any = 1.0) -> Variable:
    """The frequencies of n points at distances d, as `fft` orders them; both may be traced.

    >>> import numbascan.tensor as nt
    >>> nt.fft.fftfreq(nt.lscalar("n"), 0.1)
    <multiply: float64[?]>
    """
    n = _points(n, "np.fft.fftfreq")
    return concatenate([arange(0, (n - 1) // 2 + 1), arange(-(n // 2), 0)]) * (1.0 / (n * d))


def rfftfreq(n: Any, d: Any = 1.0) -> Variable:
    """The frequencies of the numbers that `rfft` gives of n points at distances d; both may be traced."""
    n = _points(n, "np.fft.rfftfreq")
    return arange(0, n // 2 + 1) * (1.0 / (n * d))


__all__ = ["fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft", "irfft2"]
__all__ += ["irfftn", "rfft", "rfft2", "rfftfreq", "rfftn"]

entries(globals(), __all__)
