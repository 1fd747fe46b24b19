"""Reductions of the elements that are not NaN. For dtypes without NaN they are the plain reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ops.raising import RAISING
from ...tracebacks import entries
from ..variable import METHODS, Variable, as_variable, at_line, implements, op
from .averages import mean, median, var
from .choices import where
from .indexing import take_along_axis
from .math import cast
from .reductions import argmax, argmin, cumprod, cumsum, max, min, prod, sort, sum
from .shape import expand_dims, reshape
from .shape_arguments import NOT_GIVEN, axes_of, dim, refuse, shape_of


def _filled(x: Variable, value: float) -> Variable:
    """x with `value` for each NaN."""
    return where(np.isnan(x), x.dtype.type(value), x) if _has_nan(x) else x


def _has_nan(x: Variable) -> bool:
    return x.type.kind in "fc"


def _all_nan(x: Variable, axis: Any, keepdims: Any) -> Variable:
    return METHODS["all"](np.isnan(x), axis=axis, keepdims=keepdims)


@implements(np.nansum)
def nansum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False) -> Variable:
    """The sum over axes of the elements that are not NaN."""
    x = as_variable(a)
    return sum(where(np.isnan(x), x.dtype.type(0), x) if x.type.kind in "fc" else x, axis, dtype, out, keepdims)


@implements(np.nanmean)
def nanmean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False) -> Variable:
    """The mean over axes of the elements that are not NaN."""
    x = as_variable(a)
    if x.type.kind not in "fc":
        return mean(x, axis, dtype, out, keepdims)
    if dtype is not None and np.dtype(dtype).kind not in "fc":
        raise TypeError(f"np.nanmean: dtype is {np.dtype(dtype)}{at_line()}; give that of a floating-point number")
    total = nansum(x, axis, dtype, out, keepdims)
    return total / cast(sum(~np.isnan(x), axis=axis, keepdims=keepdims), np.zeros(0, total.dtype).real.dtype)


@implements(np.nanprod)
def nanprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False) -> Variable:
    """The product over axes of the elements that are not NaN."""
    return prod(_filled(as_variable(a), 1), axis, dtype, out, keepdims)


@implements(np.nancumsum)
def nancumsum(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Variable:
    """The running sum along an axis, in which a NaN counts as 0."""
    return cumsum(_filled(as_variable(a), 0), axis, dtype, out)


@implements(np.nancumprod)
def nancumprod(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Variable:
    """The running product along an axis, in which a NaN counts as 1."""
    return cumprod(_filled(as_variable(a), 1), axis, dtype, out)


def _extreme(reduction: Callable[..., Variable], least: float, name: str, a: Any, axis: Any, out: Any, keepdims: Any) -> Variable:
    refuse(name, out=out)
    x = as_variable(a)
    if x.type.kind == "c":
        raise TypeError(f"{name} of complex numbers{at_line()}: which is the greater goes by real parts first; write {name}(x.real)")
    result = reduction(_filled(x, least), axis=axis, keepdims=keepdims)
    return where(_all_nan(x, axis, keepdims), x.dtype.type(np.nan), result) if _has_nan(x) else result


@implements(np.nanmax)
def nanmax(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Variable:
    """The greatest element over axes that is not NaN; NaN where all are.

    >>> import numbascan.tensor as nt
    >>> nt.nanmax(nt.dmatrix("x"), axis=0).ndim
    1
    """
    return _extreme(max, -np.inf, "np.nanmax", a, axis, out, keepdims)


@implements(np.nanmin)
def nanmin(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Variable:
    """The least element over axes that is not NaN; NaN where all are."""
    return _extreme(min, np.inf, "np.nanmin", a, axis, out, keepdims)


def _place(of_place: Callable[..., Variable], least: float, a: Any, axis: Any, out: Any, keepdims: Any) -> Variable:
    x = as_variable(a)
    place = of_place(_filled(x, least), axis, out, keepdims=keepdims)
    if not _has_nan(x):
        return place
    return op(RAISING, place, ~METHODS["any"](_all_nan(x, axis, False)), error="ValueError", message="All-NaN slice encountered")


@implements(np.nanargmax)
def nanargmax(a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = False) -> Variable:
    """The place of the first greatest element that is not NaN. Where all are, the run raises a ValueError."""
    return _place(argmax, -np.inf, a, axis, out, keepdims)


@implements(np.nanargmin)
def nanargmin(a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = False) -> Variable:
    """The place of the first least element that is not NaN. Where all are, the run raises a ValueError."""
    return _place(argmin, np.inf, a, axis, out, keepdims)


@implements(np.nanvar)
def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    correction: Any = NOT_GIVEN,
) -> Variable:
    """The mean squared distance from the mean over axes, of the elements that are not NaN, divided by their number less ddof.

    NaN where that is 0 or less. Arguments: as for `var`.
    """
    refuse("np.nanvar", out=out)
    x = as_variable(a)
    if not _has_nan(x):
        return var(x, axis, dtype, out, ddof, keepdims, correction=correction)
    if correction is not NOT_GIVEN and ddof != 0:
        raise ValueError(f"np.nanvar and np.nanstd: ddof and correction are one thing{at_line()}; give one of them")
    if dtype is not None and np.dtype(dtype).kind not in "fc":
        raise TypeError(f"np.nanvar and np.nanstd: dtype is {np.dtype(dtype)}{at_line()}; give that of a floating-point number")
    is_real = x.type.kind != "c"
    x = x if dtype is None else cast(x, dtype)
    is_there = ~np.isnan(x)
    apart = where(is_there, x - nanmean(x, axis, keepdims=True), x.dtype.type(0))
    squares = (apart * np.conj(apart)).real if x.type.kind == "c" else apart * apart
    count = cast(sum(is_there, axis=axis, keepdims=keepdims), squares.dtype) - (ddof if correction is NOT_GIVEN else correction)
    result = where(count > 0, sum(squares, axis=axis, keepdims=keepdims) / count, squares.dtype.type(np.nan))
    return cast(result, x.dtype) if is_real else result  # as NumPy, of real numbers


@implements(np.nanstd)
def nanstd(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, **others: Any) -> Variable:
    """The square root of `nanvar`, which says what the arguments mean."""
    return np.sqrt(nanvar(a, axis, dtype, out, ddof, keepdims, **others))


@implements(np.nanmedian)
def nanmedian(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Variable:
    """The middle element over axes of those that are not NaN, or the mean of the two in the middle; NaN where there is none.

    >>> import numbascan.tensor as nt
    >>> nt.nanmedian(nt.dmatrix("x"), axis=0).ndim
    1
    """
    refuse("np.nanmedian", out=out)
    x = as_variable(a)
    if x.type.kind == "c":
        raise TypeError(f"np.nanmedian of complex numbers{at_line()}: which is the greater goes by real parts first; give it x.real")
    if x.type.kind != "f" or 0 in x.type.shape:
        return median(x, axis, None, overwrite_input, keepdims)
    axes = axes_of(axis, x.ndim, "np.nanmedian")
    others, sizes = [k for k in range(x.ndim) if k not in axes], shape_of(x)
    rows = sort(reshape(np.transpose(x, (*others, *axes)), (*(sizes[k] for k in others), -1)))  # NaN comes last
    n = sum(~np.isnan(rows), axis=-1, keepdims=True)
    places = np.maximum((n - 1) // 2, 0), np.minimum(n // 2, dim(rows, rows.ndim - 1) - 1)
    lower, upper = (take_along_axis(rows, place, -1)[..., 0] for place in places)
    middle = where(n[..., 0] % 2 == 1, lower, (lower + upper) / 2)  # the sum of a number and itself may be infinite
    return expand_dims(middle, tuple(sorted(axes))) if keepdims is not NOT_GIVEN and keepdims and axes else middle


__all__ = [
    *("nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanprod", "nanstd", "nansum"),
    "nanvar",
]

entries(globals(), __all__)
