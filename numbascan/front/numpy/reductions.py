"""Reductions over axes, running results, and sorting."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...ops import reduce
from ...ops.card import Card
from ...ops.elementary import COMPLEX
from ...ops.of_shape import of_shape
from ...ops.sorting import ARGSORT, SEARCHSORTED, SORT
from ...tracebacks import entries
from ..variable import Variable, as_variable, at_line, implements, op
from .choices import clip, where
from .indexing import take_along_axis
from .joining import common_dtype
from .math import cast
from .shape import ravel, reshape, swapaxes
from .shape_arguments import NOT_GIVEN, axes_of, axis_of, dim, refuse, shape_of, sizes_of


def _folded(card: Card, x: Variable, axis: Any, keepdims: Any, name: str) -> Variable:
    axes = tuple(sorted(axes_of(axis, x.ndim, name)))
    return op(card, x, axis=axes, keepdims=keepdims is not NOT_GIVEN and bool(keepdims))


def _accumulated(card: Card, name: str, a: Any, axis: Any, dtype: Any, keepdims: Any, refused: dict[str, Any]) -> Variable:
    refuse(name, **refused)
    x = as_variable(a)
    result = _folded(card, x if dtype is None else cast(x, dtype), axis, keepdims, name)
    return result if dtype is None else cast(result, dtype)


# sums and products --------------------------------------------------------------------------------------------------


@implements(np.sum, method="sum")
def sum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **others: Any) -> Variable:
    """The sum of the elements over axes; without axis of all.

    Arguments: axis, an int, several, or None; dtype, in which to add (integers: at least 64 bits); keepdims, leave the axes as 1.

    >>> import numbascan.tensor as nt
    >>> nt.sum(nt.imatrix("x"), axis=0)
    <sum: int64[?]>
    """
    return _accumulated(reduce.SUM, "np.sum", a, axis, dtype, keepdims, {"out": out, **others})


@implements(np.prod, method="prod")
def prod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **others: Any) -> Variable:
    """The product of the elements over axes. Arguments as for `sum`."""
    return _accumulated(reduce.PROD, "np.prod", a, axis, dtype, keepdims, {"out": out, **others})


def _running(card: Card, name: str, a: Any, axis: Any, dtype: Any, out: Any) -> Variable:
    refuse(name, out=out)
    x = as_variable(a) if dtype is None else cast(as_variable(a), dtype)
    if axis is None:
        x, axis = ravel(x), 0
    result = op(card, x, axis=(axis_of(axis, x.ndim, name),))
    return result if dtype is None else cast(result, dtype)


@implements(np.cumsum, method="cumsum")
def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Variable:
    """The sums of the elements up to each place along an axis; without axis of all in C order.

    >>> import numbascan.tensor as nt
    >>> nt.cumsum(nt.dmatrix("x"), axis=1)
    <cumsum: float64[?, ?]>
    """
    return _running(reduce.CUMSUM, "np.cumsum", a, axis, dtype, out)


@implements(np.cumprod, method="cumprod")
def cumprod(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Variable:
    """The products of the elements up to each place along an axis; without axis of all in C order."""
    return _running(reduce.CUMPROD, "np.cumprod", a, axis, dtype, out)


# extremes and truth -------------------------------------------------------------------------------------------------


def _plain(card: Card, name: str, summary: str, example: str, *keys: Callable[..., Any]) -> Callable[..., Variable]:
    def function(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, **others: Any) -> Variable:
        refuse(f"np.{name}", out=out, **others)
        return _folded(card, as_variable(a), axis, keepdims, f"np.{name}")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{summary}, over axes; without axis of all elements.\n\n"
        "    Arguments: axis, an int, several, or None; keepdims, leave the axes as 1.\n\n"
        "    >>> import numbascan.tensor as nt\n"
        f'    >>> nt.{name}(nt.dmatrix("x"), axis=1)\n'
        f"    <{name}: {example}[?]>\n    "
    )
    return implements(*keys, method=name)(function)


_EMPTY = "NaN where one is NaN; ValueError where there is none"
max = amax = _plain(reduce.MAX, "max", f"The greatest element, {_EMPTY}", "float64", np.max, np.amax)
min = amin = _plain(reduce.MIN, "min", f"The least element, {_EMPTY}", "float64", np.min, np.amin)
all = _plain(reduce.ALL, "all", "Whether all elements are true", "bool", np.all)
any = _plain(reduce.ANY, "any", "Whether an element is true", "bool", np.any)


def _place(card: Card, name: str, a: Any, axis: Any, out: Any, keepdims: Any) -> Variable:
    refuse(name, out=out)
    x = as_variable(a)
    if axis is not None:
        axis = axis_of(axis, x.ndim, name)
    return _folded(card, x, axis, keepdims, name)


@implements(np.argmax, method="argmax")
def argmax(a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = False) -> Variable:
    """The place of the (first) greatest element, or first NaN, along an axis; without axis among all in C order.

    >>> import numbascan.tensor as nt
    >>> nt.argmax(nt.dmatrix("x"), axis=1)
    <argmax: int64[?]>
    """
    return _place(reduce.ARGMAX, "np.argmax", a, axis, out, keepdims)


@implements(np.argmin, method="argmin")
def argmin(a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = False) -> Variable:
    """The place of the (first) least element, or first NaN, along an axis; without axis among all in C order."""
    return _place(reduce.ARGMIN, "np.argmin", a, axis, out, keepdims)


def max_and_argmax(a: Any, axis: Any = None, keepdims: bool = False) -> tuple[Variable, Variable]:
    """The greatest element and its place."""
    return max(a, axis=axis, keepdims=keepdims), argmax(a, axis, keepdims=keepdims)


@implements(np.ptp, method="ptp")
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Variable:
    """The greatest less the least element over axes."""
    refuse("np.ptp", out=out)
    return max(a, axis=axis, keepdims=keepdims) - min(a, axis=axis, keepdims=keepdims)


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Variable:
    """How many elements are not zero, over axes."""
    return sum(as_variable(a) != 0, axis=axis, keepdims=keepdims)


# sorting ------------------------------------------------------------------------------------------------------------


def _sorted(card: Card, a: Any, axis: int | None, refused: dict[str, Any], name: str) -> Variable:
    order = refused.pop("order")
    refuse(name, order=order)
    x = as_variable(a)
    if axis is None:
        x, axis = ravel(x), -1
    place = axis_of(axis, x.ndim, name)
    if place == x.ndim - 1:
        return op(card, x)
    return swapaxes(op(card, swapaxes(x, place, -1)), place, -1)


@implements(np.sort)
def sort(a: Any, axis: int | None = -1, kind: str | None = None, order: Any = None, *, stable: bool | None = None) -> Variable:
    """The elements in ascending order along an axis, NaN last; with axis None all, along one. Always a new array.

    >>> import numbascan.tensor as nt
    >>> nt.sort(nt.dmatrix("x"), axis=0)
    <transpose: float64[?, ?]>
    """
    return _sorted(SORT, a, axis, {"order": order}, "np.sort")


@implements(np.argsort, method="argsort")
def argsort(a: Any, axis: int | None = -1, kind: str | None = None, order: Any = None, *, stable: bool | None = None) -> Variable:
    """The places that sort along an axis; equal elements keep their order.

    >>> import numbascan.tensor as nt
    >>> nt.argsort(nt.dvector("x"))
    <argsort: int64[?]>
    """
    return _sorted(ARGSORT, a, axis, {"order": order}, "np.argsort")


@implements(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Variable:
    """The places that sort along an axis by the last of several keys, where it is equal by the one before, and so on.

    >>> import numbascan.tensor as nt
    >>> nt.lexsort((nt.dvector("y"), nt.dvector("x")))
    <gather: int64[?]>
    """
    if axis is None:
        raise TypeError(f"np.lexsort: axis is None{at_line()}; give an int")
    first, *others = map(as_variable, keys)
    if not first.ndim:
        raise TypeError(f"np.lexsort: a key is one number{at_line()}; give it arrays, the last one to sort by first of all")
    order = argsort(first, axis)
    for k, key in enumerate(others, 2):
        same = Variable(of_shape(key.node, sizes_of(shape_of(first), "np.lexsort"), f"np.lexsort: key {k}"))
        order = take_along_axis(order, argsort(take_along_axis(same, order, axis), axis), axis)
    return order


@implements(np.searchsorted, method="searchsorted")
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Variable:
    """Where the elements of `v` would stand in the sorted vector `a`: before equal ones, or after them with side="right".

    >>> import numbascan.tensor as nt
    >>> nt.searchsorted(nt.dvector("a"), [0.5, 2.0])
    <searchsorted: int64[2]>
    """
    refuse("np.searchsorted", sorter=sorter)
    if side not in ("left", "right"):
        raise ValueError(f"np.searchsorted: side is {side!r}{at_line()}; use 'left' or 'right'")
    ordered, values = as_variable(a), as_variable(v)
    if ordered.ndim != 1:
        raise ValueError(f"np.searchsorted: the sorted array must be a vector, {ordered!r} has {ordered.ndim} axes{at_line()}")
    dtype = common_dtype([ordered, values])
    places = op(SEARCHSORTED, cast(ordered, dtype), ravel(cast(values, dtype)), side=side)
    return places if values.ndim == 1 else reshape(places, shape_of(values))


@implements(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Variable:
    """The values at x of the curve through the points (xp, fp), straight between them.

    Arguments: xp, ascending places; fp, the values there; left, right, what holds outside (default: the first and the last value).

    >>> import numbascan.tensor as nt
    >>> nt.interp(nt.dscalar("t"), [0.0, 1.0, 3.0], [5.0, 7.0, 6.0])
    <where: float64[]>
    """
    refuse("np.interp", period=period)
    if as_variable(fp).type.kind == "c":  # each part by itself, as in NumPy: an infinite part must not spoil the other
        sides = [[None if one is None else part(as_variable(one)) for one in (fp, left, right)] for part in (np.real, np.imag)]
        return op(COMPLEX, *(interp(x, xp, *one) for one in sides))
    places, values = cast(as_variable(xp), "float64"), cast(as_variable(fp), "float64")
    x, last = cast(as_variable(x), "float64"), dim(places, 0) - 1
    start = clip(searchsorted(places, x, side="right") - 1, 0, clip(last - 1, 0, None))
    end = clip(start + 1, 0, last)
    slope = (values[end] - values[start]) / (places[end] - places[start])
    inside = slope * (x - places[start]) + values[start]
    from_end = slope * (x - places[end]) + values[end]  # NumPy's formula for infinite values
    from_end = where(np.isnan(from_end) & (values[end] == values[start]), values[start], from_end)
    inside = where(np.isnan(inside), where(x == places[start], values[start], from_end), inside)
    inside = where(x == places[-1], values[-1], inside)
    inside = where(x > places[-1], values[-1] if right is None else right, inside)
    return where(x < places[0], values[0] if left is None else left, inside)


# ufunc.reduce and ufunc.accumulate -----------------------------------------------------------------------------------


def _reduce_of(function: Callable[..., Variable]) -> Callable[..., Variable]:
    def reduced(array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False, **others: Any) -> Variable:
        refuse(f"np.{function.__name__}", out=out, **others)
        x = as_variable(array)
        result = function(x if dtype is None else cast(x, dtype), axis=axis, keepdims=keepdims)
        return result if dtype is None else cast(result, dtype)

    return reduced


def _accumulate_of(function: Callable[..., Variable]) -> Callable[..., Variable]:
    return lambda array, axis=0, dtype=None, out=None: function(array, axis, dtype, out)


for _ufunc, _function in (
    *((np.add, sum), (np.multiply, prod), (np.maximum, max), (np.minimum, min), (np.logical_and, all), (np.logical_or, any)),
):
    implements((_ufunc, "reduce"))(_reduce_of(_function))
implements((np.add, "accumulate"))(_accumulate_of(cumsum))
implements((np.multiply, "accumulate"))(_accumulate_of(cumprod))
for _ufunc, _card in ((np.maximum, reduce.CUMMAX), (np.minimum, reduce.CUMMIN)):
    implements((_ufunc, "accumulate"))(_accumulate_of(partial(_running, _card, f"np.{_ufunc.__name__}.accumulate")))

__all__ = [
    *("all", "amax", "amin", "any", "argmax", "argmin", "argsort", "count_nonzero", "cumprod", "cumsum", "interp", "lexsort"),
    *("max", "max_and_argmax", "min", "prod", "ptp", "searchsorted", "sort", "sum"),
]

entries(globals(), __all__)
