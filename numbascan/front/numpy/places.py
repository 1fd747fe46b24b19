"""Elements that a mask or their places pick out, and those left. How many a mask takes is a number that the run computes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ops.raising import RAISING
from ...tracebacks import entries
from ..variable import Variable, as_variable, at_line, implements, number_as, op
from .choices import where
from .creation import arange, ones, zeros
from .indexing import integers, no_empty_list, not_negative, set_subtensor, take
from .joining import concatenate, stack
from .math import cast
from .reductions import argsort, cumsum, max, min, searchsorted, sum
from .shape import broadcast_to, moveaxis, ravel, reshape
from .shape_arguments import as_arrays, axis_of, count_of, dim, shape_of, sizes_of, value_of


@implements(np.flatnonzero)
def flatnonzero(a: Any) -> Variable:
    """The places at which `a` is not zero, counted in C order: integers of shape (count,).

    >>> import numbascan.tensor as nt
    >>> nt.flatnonzero(nt.dvector("x") > 0)
    <index: int64[?]>
    """
    x = ravel(a)
    mask = x if x.type.kind == "b" else x != 0
    number, count = cumsum(mask), sum(mask)
    places = zeros((count + 1,), "int64")[where(mask, number - 1, count)]  # what is not taken goes behind the last
    return set_subtensor(places, arange(dim(mask, 0)))[:count]


@implements(np.nonzero, method="nonzero")
def nonzero(a: Any) -> tuple[Variable, ...]:
    """The places at which `a` is not zero: integers of shape (count,) for each axis, in C order.

    Raises ValueError for a number, as NumPy does.

    >>> import numbascan.tensor as nt
    >>> len(nt.nonzero(nt.dmatrix("x")))
    2
    """
    x = as_variable(a)
    if not x.ndim:
        raise ValueError(f"np.nonzero of a number{at_line()}: {x!r} has no axes; write np.atleast_1d(x)")
    places, result = flatnonzero(x), []
    for axis in range(x.ndim - 1, 0, -1):
        result.append(places % dim(x, axis))
        places = places // dim(x, axis)
    return (places, *result[::-1])


@implements(np.argwhere)
def argwhere(a: Any) -> Variable:
    """The places at which `a` is not zero, a row of indices for each: integers of shape (count, a.ndim)."""
    return stack(nonzero(a), axis=1)


@implements(np.compress)
def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Variable:
    """The elements of `a` (rows along an axis) at which the vector `condition` is not zero."""
    mask = as_variable(condition)
    if mask.ndim != 1:
        raise ValueError(f"np.compress: the condition must be a vector, {mask!r} has {mask.ndim} axes{at_line()}")
    return take(a, flatnonzero(mask), axis, out)


@implements(method="compress")
def _compress_method(x: Variable, condition: Any, axis: int | None = None, out: Any = None) -> Variable:
    return compress(condition, x, axis, out)


@implements(np.extract)
def extract(condition: Any, arr: Any) -> Variable:
    """The elements of `arr` in C order at which `condition`, an array of as many elements, is not zero."""
    return take(ravel(arr), flatnonzero(condition))


@implements(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb") -> Variable:
    """The vector `filt` without the zeros at its front ("f" in `trim`) and its back ("b")."""
    x = as_variable(filt)
    if not isinstance(trim, str) or trim not in ("fb", "bf", "f", "b", "FB", "BF", "F", "B"):
        raise ValueError(f"np.trim_zeros: trim is {trim!r}{at_line()}; use 'f', 'b' or 'fb'")
    if x.ndim != 1:
        raise TypeError(f"np.trim_zeros of {x!r}{at_line()}: vectors are trimmed here; write x[first:last]")
    n = dim(x, 0)
    places = concatenate([arange(n), [n]])
    is_other = concatenate([x != 0, [False]])
    first = min(where(is_other, places, n)) if "f" in trim.lower() else 0
    last = max(where(is_other, places + 1, 0)) if "b" in trim.lower() else n
    return x[first:last]


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: int | None = None) -> Variable:
    """`arr` without the elements (rows along an axis) at `obj`: an integer, a slice, integers or a mask. Without axis, those in C order.

    >>> import numbascan.tensor as nt
    >>> nt.delete(nt.tensor("float64", shape=(5,), name="x"), -1)
    <gather: float64[4]>
    """
    x, axis = _along(arr, axis, "np.delete")
    n = dim(x, axis)
    index = obj if isinstance(obj, slice) else as_variable(no_empty_list(obj))
    if isinstance(index, Variable) and not index.ndim:
        before = arange(n - 1)
        return take(x, before + (before >= arange(n)[index]), axis)  # arange(n)[k] counts from the front, and checks
    bounds = (obj.start, obj.stop, obj.step) if isinstance(obj, slice) else (obj,)
    if isinstance(n, int) and not any(isinstance(bound, Variable) for bound in bounds):
        return take(x, np.delete(np.arange(n), obj), axis)
    return take(x, flatnonzero(set_subtensor(ones((n,), "bool")[index], False)), axis)


@implements(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Variable:
    """`arr` with `values` in front of the places `obj`: an integer, a slice or a vector of integers. Without axis, in C order.

    Raises IndexError for a place that is out of bounds, when it runs.

    >>> import numbascan.tensor as nt
    >>> nt.insert(nt.tensor("float64", shape=(3,), name="x"), 1, [5.0, 6.0])
    <set_subtensor: float64[5]>
    """
    x, axis = _along(arr, axis, "np.insert")
    n, sizes = dim(x, axis), list(shape_of(x))
    index = arange(n)[obj] if isinstance(obj, slice) else as_variable(obj)
    if index.type.kind not in "iu" or index.ndim > 1:
        raise TypeError(f"np.insert: obj is {index!r}{at_line()}; give an integer, a slice, or a vector of integers")
    new = number_as(as_variable(values), x.dtype) if as_variable(values).type.weak else as_variable(values)
    new = reshape(new, (*(1,) * (x.ndim - new.ndim), *shape_of(new))) if new.ndim < x.ndim else new
    new = moveaxis(new, 0, axis) if not index.ndim else new
    index = index[0] if index.type.shape == (1,) else index  # one place takes all values
    count = dim(index, 0) if index.ndim else dim(new, axis)
    at = where(index < 0, index + n, index) if index.type.kind == "i" else index
    at = arange(n + 1)[not_negative(at, n + 1)]  # checks
    order = argsort(at) if index.ndim else arange(count)
    first = at[order] if index.ndim else broadcast_to(at, (count,))
    sizes[axis] = count
    rows = take(broadcast_to(cast(new, x.dtype), sizes), order, axis)
    sizes[axis] = n + count
    front = (slice(None),) * axis
    kept = set_subtensor(zeros(sizes, x.dtype)[(*front, arange(n) + searchsorted(first, arange(n), "right"))], x)
    return set_subtensor(kept[(*front, first + arange(count))], rows)


@implements(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Variable, ...]:
    """For places counted in C order, the index along each axis of an array of that shape.

    Raises ValueError for a place that is out of bounds, when it runs.
    """
    _only_c("np.unravel_index", order)
    sizes = [value_of(size) for size in sizes_of(shape, "np.unravel_index: shape")]
    places = cast(integers(indices, "np.unravel_index"), "int64")
    places = _inside(places, ((places >= 0) & (places < count_of(sizes))).all(), "np.unravel_index: an index is out of bounds")
    result = []
    for size in sizes[:0:-1]:
        result.append(places % size)
        places = places // size
    return (places, *result[::-1])


@implements(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: str = "raise", order: str = "C") -> Variable:
    """For an index along each axis, the place counted in C order in an array of the shape `dims`.

    Raises ValueError for an index that is out of bounds, when it runs; with mode "wrap" and "clip" there is none.
    """
    _only_c("np.ravel_multi_index", order)
    sizes = [value_of(size) for size in sizes_of(dims, "np.ravel_multi_index: dims")]
    parts = [cast(integers(part, "np.ravel_multi_index"), "int64") for part in as_arrays(multi_index)]
    if len(parts) != len(sizes) or mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"np.ravel_multi_index: {len(parts)} indices for {len(sizes)} axes, mode {mode!r}{at_line()}; one for each axis")
    total: Any = 0
    for part, size in zip(parts, sizes, strict=True):
        if mode == "raise":
            part = _inside(part, ((part >= 0) & (part < size)).all(), "np.ravel_multi_index: an index is out of bounds")
        total = total * size + (part % size if mode == "wrap" else np.clip(part, 0, size - 1) if mode == "clip" else part)
    return as_variable(total)


def _only_c(name: str, order: str) -> None:
    if order != "C":
        raise ValueError(f"{name}(order={order!r}) is not supported on traced values{at_line()}; use order='C'")


def _inside(x: Variable, holds: Any, message: str) -> Variable:
    return op(RAISING, x, holds, error="ValueError", message=message)


def _along(arr: Any, axis: int | None, name: str) -> tuple[Variable, int]:
    x = as_variable(arr)
    return (ravel(x), 0) if axis is None else (x, axis_of(axis, x.ndim, name))


__all__ = [
    *("argwhere", "compress", "delete", "extract", "flatnonzero", "insert", "nonzero", "ravel_multi_index", "trim_zeros", "unravel_index"),
]

entries(globals(), __all__)
