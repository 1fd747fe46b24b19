"""Elements in another order, repeated, or with more around them: flip, roll, tile, repeat, pad, and differences of neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.node import constant_value
from ...ops.algebra import call
from ...ops.raising import RAISING
from ...ops.runtime_attributes import sized
from ...ops.shape import PADDED, ROLL
from ...tracebacks import entries
from ..variable import Variable, as_variable, at_line, implements, number_as, op
from .creation import arange
from .joining import concatenate, part
from .math import cast
from .reductions import cumsum, searchsorted, sum
from .shape import broadcast_to, expand_dims, ravel, reshape, specify_shape, swapaxes
from .shape_arguments import NOT_GIVEN, axes_of, axis_of, dim, fixed_int, shape_of, size_of, value_of


@implements(np.flip)
def flip(m: Any, axis: Any = None) -> Variable:
    """`m` with its elements in reverse order along axes; without axis along all.

    >>> import numbascan.tensor as nt
    >>> nt.flip(nt.dvector("x"))
    <index: float64[?]>
    """
    x = as_variable(m)
    axes = axes_of(axis, x.ndim, "np.flip")
    return x[tuple(slice(None, None, -1) if k in axes else slice(None) for k in range(x.ndim))] if axes else x


@implements(np.fliplr)
def fliplr(m: Any) -> Variable:
    """`m` reversed along the second axis."""
    return flip(m, 1)


@implements(np.flipud)
def flipud(m: Any) -> Variable:
    """`m` reversed along the first axis."""
    return flip(m, 0)


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Variable:
    """`a` with its elements moved on by `shift` places, those beyond the end coming in at the start.

    Arguments: shift, an integer, traced or not, or one for each axis; axis, None for the elements in C order.

    >>> import numbascan.tensor as nt
    >>> nt.roll(nt.dvector("u"), 1)
    <roll: float64[?]>
    """
    x = as_variable(a)
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), shape_of(x)) if x.ndim != 1 else roll(x, shift, 0)
    axes = tuple(
        axis_of(one, x.ndim, "np.roll") for one in (axis if isinstance(axis, list | tuple) else (axis,))
    )  # an axis may occur twice
    shifts = list(shift) if isinstance(shift, list | tuple) else [shift] * len(axes)
    axes = axes * len(shifts) if len(axes) == 1 else axes
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    if len(shifts) != len(axes):
        raise ValueError(f"np.roll: {len(shifts)} shifts do not go with {len(axes)} axes{at_line()}")
    for one, place in zip(shifts, axes, strict=True):
        x = Variable(sized(ROLL, (x.node,), (size_of(one, "np.roll: shift"),), axis=place))
    return x


@implements(np.rot90)
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Variable:
    """`m` turned by 90 degrees k times, in the plane of two axes, from the first to the second."""
    x = as_variable(m)
    first, second = axes_of(tuple(axes), x.ndim, "np.rot90")
    turns = fixed_int(k, "np.rot90: k") % 4
    if turns == 0:
        return x
    if turns == 2:
        return flip(x, (first, second))
    return swapaxes(flip(x, second), first, second) if turns == 1 else flip(swapaxes(x, first, second), second)


@implements(np.tile)
def tile(A: Any, reps: Any) -> Variable:
    """`A` beside itself, `reps` times along each axis.

    Arguments: reps, an int or one for each axis, known while tracing.

    >>> import numbascan.tensor as nt
    >>> nt.tile(nt.tensor("float64", shape=(3,), name="x"), (2, 2))
    <reshape: float64[2, 6]>
    """
    x = as_variable(A)
    counts = [value_of(size_of(rep, "np.tile: reps")) for rep in (reps if isinstance(reps, list | tuple | np.ndarray) else [reps])]
    rank = max(x.ndim, len(counts))
    counts = [1] * (rank - len(counts)) + counts
    x = expand_dims(x, tuple(range(rank - x.ndim))) if x.ndim < rank else x
    if all(isinstance(count, int) and count == 1 for count in counts):
        return x
    sizes = shape_of(x)
    apart = expand_dims(x, tuple(range(0, 2 * rank, 2)))
    wide = broadcast_to(apart, [size for pair in zip(counts, sizes, strict=True) for size in pair])
    return reshape(wide, _grown(sizes, counts))


def _grown(sizes: Sequence[Any], counts: Sequence[Any]) -> list[Any]:
    """Each size times its count. A single unknown size becomes -1, for `reshape`."""
    known = [size for size in (*sizes, *counts) if isinstance(size, int)]
    if len(known) == 2 * len(sizes) - 1 and 0 not in known:
        return [count * size if isinstance(size, int) else -1 for count, size in zip(counts, sizes, strict=True)]
    return [count * size for count, size in zip(counts, sizes, strict=True)]


@implements(np.repeat, method="repeat")
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Variable:
    """`a` with each element (or row along an axis) `repeats` times in a row.

    Arguments: repeats, an integer, or one for each element.

    Raises ValueError for a negative one, when it runs.

    >>> import numbascan.tensor as nt
    >>> nt.repeat(nt.tensor("float64", shape=(2, 3), name="x"), 2, axis=1)
    <reshape: float64[2, 6]>
    """
    x = as_variable(a)
    if axis is None:
        x, axis = ravel(x), 0
    place, counts = axis_of(axis, x.ndim, "np.repeat"), as_variable(repeats)
    if counts.type.kind not in "iu" or counts.ndim > 1:
        raise TypeError(f"np.repeat: repeats must be an integer, or a vector of these, not {repeats!r}{at_line()}")
    known, length = constant_value(counts.node), x.type.shape[place]
    if known is None or (known.size != 1 and length is None):
        return x[(*(slice(None),) * place, _places_of_repeats(counts, dim(x, place)))]
    if length is not None and known.size != 1:
        places: Any = np.repeat(np.arange(length), np.asarray(known, dtype="int64"))
        return x[(*(slice(None),) * place, places)]
    sizes, count = shape_of(x), int(known.reshape(()))
    apart = expand_dims(x, place + 1)
    wide = broadcast_to(apart, (*sizes[: place + 1], count, *sizes[place + 1 :]))
    return reshape(wide, _grown(sizes, [count if k == place else 1 for k in range(x.ndim)]))


def _places_of_repeats(counts: Variable, n: Any) -> Variable:
    """For each element of the result, where it stands among the n elements that are repeated."""
    is_right = (counts >= 0).all()
    counts = op(RAISING, cast(counts, "int64"), is_right, error="ValueError", message="np.repeat: repeats may not contain negative values")
    counts = reshape(counts, ()) if counts.ndim and counts.type.shape[0] == 1 else counts
    if not counts.ndim:
        return arange(counts * n) // np.maximum(counts, 1)
    ends = cumsum(specify_shape(counts, (n,)))
    return searchsorted(ends, arange(sum(counts)), "right")


# pad ----------------------------------------------------------------------------------------------------------------


@implements(np.pad)
def pad(array: Any, pad_width: Any, mode: str = "constant", **kwargs: Any) -> Variable:
    """`array` with more elements before and after along each axis.

    Arguments: pad_width, an int, (before, after), one such pair for each axis, or a dict from axes to these, known while tracing; mode,
    "constant" (with constant_values, one number), "edge", "reflect", "symmetric", "wrap".

    >>> import numbascan.tensor as nt
    >>> nt.pad(nt.dvector("x"), (2, 1), constant_values=9.0)
    <frame: float64[?]>
    """
    x = as_variable(array)
    widths = _widths(pad_width, x.ndim)
    if any(width < 0 for pair in widths for width in pair):
        raise ValueError(f"np.pad: widths cannot be negative, they are {widths}{at_line()}")
    if mode == "constant":
        value = kwargs.pop("constant_values", 0)
        _no_more("np.pad", mode, kwargs)
        return _framed(x, widths, value)
    if mode not in PADDED:
        raise ValueError(
            f"np.pad: mode {mode!r} is not supported on traced values{at_line()}; use 'constant', {', '.join(map(repr, PADDED))}"
        )
    if kwargs.pop("reflect_type", "even") != "even":
        raise ValueError(f"np.pad: reflect_type='odd' is not supported on traced values{at_line()}; leave it out")
    _no_more("np.pad", mode, kwargs)
    for axis, (before, after) in enumerate(widths):
        if before or after:
            x = Variable(call("pad", x.node, mode=mode, axis=axis, before=before, after=after))
    return x


def _no_more(name: str, mode: str, keywords: dict[str, Any]) -> None:
    if keywords:
        raise ValueError(f"{name}: mode {mode!r} takes no {', '.join(keywords)}{at_line()}")


def _widths(pad_width: Any, rank: int) -> list[tuple[int, int]]:
    if isinstance(pad_width, dict):
        by_axis: dict[int, Any] = {}
        for axis, width in pad_width.items():
            by_axis[axis_of(axis, rank, "np.pad")] = width
        return [_pair(by_axis.get(axis, 0)) for axis in range(rank)]
    if isinstance(pad_width, Variable) and constant_value(pad_width.node) is None:
        raise TypeError(f"np.pad: pad_width is traced{at_line()}; it must be known while tracing")
    return [_pair(row) for row in np.broadcast_to(np.asarray(pad_width), (rank, 2))]


def _pair(width: Any) -> tuple[int, int]:
    before, after = np.broadcast_to(np.asarray(width), (2,))
    return fixed_int(before, "np.pad: pad_width"), fixed_int(after, "np.pad: pad_width")


def _framed(x: Variable, widths: list[tuple[int, int]], value: Any) -> Variable:
    """x in the middle of an array of one value."""
    if np.ndim(value):
        raise ValueError(f"np.pad: constant_values must be one number on traced values, not {value!r}{at_line()}")
    around = number_as(as_variable(value), x.dtype)
    for axis, (before, after) in enumerate(widths):
        if before or after:
            x = Variable(call("frame", x.node, around.node, axis=axis, before=before, after=after))
    return x


# neighbours ---------------------------------------------------------------------------------------------------------


@implements(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = NOT_GIVEN, append: Any = NOT_GIVEN) -> Variable:
    """The differences of neighbours along an axis, taken n times; of truth values, whether they differ.

    >>> import numbascan.tensor as nt
    >>> nt.diff(nt.tensor("float64", shape=(5,), name="x"))
    <subtract: float64[4]>
    """
    x = as_variable(a)
    place = axis_of(axis, x.ndim, "np.diff")
    edges = [value if value is NOT_GIVEN else _edge(x, value, place) for value in (prepend, append)]
    parts = [value for value in (edges[0], x, edges[1]) if value is not NOT_GIVEN]
    x = concatenate(parts, place) if len(parts) > 1 else x
    times = fixed_int(n, "np.diff: n")
    if times < 0:
        raise ValueError(f"np.diff: n is {times}{at_line()}; give how often, 0 or more")
    if not times:
        return as_variable(a)
    for _ in range(times):
        later, earlier = part(x, place, 1, None), part(x, place, None, -1)
        x = later != earlier if x.type.kind == "b" else later - earlier
    return x


def _edge(x: Variable, value: Any, axis: int) -> Variable:
    edge = as_variable(value)
    return edge if edge.ndim else broadcast_to(edge, [1 if k == axis else size for k, size in enumerate(shape_of(x))])


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Variable:
    """The differences of neighbours among all elements in C order, between the elements of `to_begin` and `to_end`.

    Raises TypeError where the dtype of these is not that of `ary`, or a lesser one.
    """
    x = ravel(ary)
    ends = [None if values is None else ravel(values) for values in (to_begin, to_end)]
    for name, values in zip(("to_begin", "to_end"), ends, strict=True):
        if values is not None and not np.can_cast(values.dtype, x.dtype, "same_kind"):
            raise TypeError(f"np.ediff1d: {name} is {values!r}, which {x.dtype} does not hold{at_line()}; write ary.astype(…)")
    parts = [values for values in (ends[0], diff(x), ends[1]) if values is not None]
    return concatenate([values.astype(x.dtype) for values in parts]) if len(parts) > 1 else parts[0]


@implements(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Variable:
    """The integral of y along an axis by the trapezoidal rule, at the places x or in steps of dx."""
    values = as_variable(y)
    place = axis_of(axis, values.ndim, "np.trapezoid")
    if x is not None:
        widths = as_variable(x)
        dx = diff(widths) if widths.ndim == 1 else diff(widths, axis=place)
        dx = expand_dims(dx, tuple(range(1, values.ndim - place))) if widths.ndim == 1 and place < values.ndim - 1 else dx
    return (dx * (part(values, place, 1, None) + part(values, place, None, -1)) / 2.0).sum(axis=place)


__all__ = ["diff", "ediff1d", "flip", "fliplr", "flipud", "pad", "repeat", "roll", "rot90", "tile", "trapezoid"]

entries(globals(), __all__)
