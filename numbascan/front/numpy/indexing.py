"""Indexing: what stands between brackets, gathering along axes, and arrays with some elements replaced."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...errors import TracerError
from ...ir.loop_node import SCAN
from ...ir.node import Node, constant, constant_value, owner_of
from ...ops.index_entries import FULL, is_position, shortened
from ...ops.indexing import GATHER, INC_SUBTENSOR, INDEX, SET_SUBTENSOR
from ...ops.of_shape import of_shape
from ...ops.raising import RAISING
from ...ops.runtime_attributes import ARRAY, SizedCard, filled, settled, sized
from ...ops.shape import SQUEEZE
from ...tracebacks import entries
from ..variable import HOOKS, METHODS, Variable, as_variable, at_line, check_weak, implements, is_large, number_as, op
from .choices import clip, where
from .joining import stack
from .shape import broadcast_arrays, broadcast_sizes, broadcast_to, expand_dims, ravel
from .shape_arguments import as_arrays, axis_of, dim, refuse, shape_of, sizes_of

WRITING = "x[idx].set(y) or nt.set_subtensor(x[idx], y), which give the new array"

# x[…] ---------------------------------------------------------------------------------------------------------------


def getitem(x: Variable, index: Any) -> Variable:
    """x[index], with NumPy's meaning: positions, slices, new axes, `...`, integer arrays and masks."""
    index = index if isinstance(index, tuple) else (index,)
    spec, gap = _spec(x, index)
    x = _fitting_masks(x, index)
    if not spec:
        return Part(x.node, x.node, spec)
    has_arrays = any(isinstance(entry, Node) and entry.type.rank for entry in spec)
    node = sized(GATHER if has_arrays else INDEX, (x.node,), spec)
    if gap is not None:
        return Part(op(SQUEEZE, Variable(node), axis=(gap,)).node, x.node, spec, gap)
    return Variable(node) if node.op in (INDEX, GATHER) else Part(node, x.node, spec)


def of_whole(part: Variable) -> Variable:
    """A part of a row, `x[i][j]`, as the part of the whole array that it is, `x[i, j]`: what reads it does not ask for the row.

    `nt.set_subtensor` of it replaces a part of the row all the same. The last row of a loop's result stays: a loop that keeps it alone
    needs no memory for the others.
    """
    node = part.node
    while node.op is INDEX and (row := node.inputs[0]).op is INDEX and all(map(is_position, _entries_of(row))) and not _is_last_state(row):
        spec = (*filled(_entries_of(row), iter(row.inputs[1:])), *filled(_entries_of(node), iter(node.inputs[1:])))
        node = sized(INDEX, (row.inputs[0],), spec)
    return part if node is part.node else Part(node, *_origin(part, "x[…]"))


def _is_last_state(row: Node) -> bool:
    """True if `row` is the last row of a loop's result."""
    return _entries_of(row) == (-1,) and owner_of(row.inputs[0])[0].op is SCAN


def is_there(part: Variable, value: Any) -> bool:
    """Whether the elements at `part` of an array are those of `value`: `x[i:j] += y` ends with writing x[i:j] into itself.

    Not where an index may be out of range and nothing else asks.
    """
    if not isinstance(value, Variable) or value.node is not part.node:
        return False
    whole, spec = _origin(part, "x[…]")
    if whole.op in (SET_SUBTENSOR, INC_SUBTENSOR) and whole.inputs[2:] == part.node.inputs[1:] and _entries_of(whole) == settled(spec):
        return True
    return all(entry == "newaxis" or (isinstance(entry, tuple) and not isinstance(entry[2], Node)) for entry in spec)


def put_back(base: Variable, index: Any, part: Variable) -> Variable:
    """`base` with its part at `index` replaced. If that is the old part with a part of its own replaced, the latter alone is written.

    Not handled: parts of a slice, unless all of it is replaced.
    """
    old, new = getitem(base, index), part.node
    # base[:] is base, which may itself be a part of another array
    is_part = old.node is not base.node and old.node.op is INDEX and old.node.inputs[0] is base.node
    if is_part and new.op in (SET_SUBTENSOR, INC_SUBTENSOR) and new.inputs[0] is old.node:
        entries, others = _entries_of(old.node), _entries_of(new)
        # `others` is empty if all of the old part is replaced
        if not others or (all(map(is_position, entries)) and ARRAY not in others):  # beside arrays of positions, a single one may move axes
            spec = (*filled(entries, iter(old.node.inputs[1:])), *filled(others, iter(new.inputs[2:])))
            assert isinstance(new.op, SizedCard)
            return Variable(sized(new.op, (base.node, new.inputs[1]), spec))
    return set_subtensor(old, part)


def _entries_of(node: Node) -> tuple[Any, ...]:
    spec = node.attr("spec")
    assert isinstance(spec, tuple)
    return spec


class Part(Variable):
    """x[…] whose node alone does not tell the whole: all of x, a part of a constant, which is a constant, or a part without its gap.

    gap: an axis of length 1, between two index arrays, that `spec` has and the part lacks.
    """

    __slots__ = ("gap", "spec", "whole")

    def __init__(self, node: Node, whole: Node, spec: tuple[Any, ...], gap: int | None = None) -> None:
        super().__init__(node)
        self.whole, self.spec, self.gap = whole, spec, gap


def _spec(x: Variable, index: tuple[Any, ...]) -> tuple[tuple[Any, ...], int | None]:
    """The entries of an index as `ops.index_entries` writes them, with nodes in place of holes; and the axis to squeeze out, or None.

    NumPy puts the axes of index arrays first if an ellipsis is between two of them, even one of no axes. A new axis in its place does the
    same, and is squeezed out afterwards.
    """
    entries = [entry for part in index for entry in _entries(part)]
    n_axes = sum(entry != "newaxis" for entry in entries if entry is not Ellipsis)
    if n_axes > x.ndim:
        raise IndexError(f"too many indices for array: {x!r} has {x.ndim} dimensions, but {n_axes} were indexed{at_line()}")
    gaps = [k for k, entry in enumerate(entries) if entry is Ellipsis]
    if len(gaps) > 1:
        raise IndexError(f"an index can only have a single ellipsis ('...'){at_line()}")
    gap = _gap(entries, gaps[0]) if gaps and n_axes == x.ndim else None
    if gaps:
        entries[gaps[0] : gaps[0] + 1] = ["newaxis"] if gap is not None else [FULL] * (x.ndim - n_axes)
    if HOOKS["decides"]():
        entries = _missing_at_the_run(x, entries)
    return shortened(tuple(entries)), gap


def _missing_at_the_run(x: Variable, entries: list[Any]) -> list[Any]:
    """The entries in a branch or pass that may never run: a position that x lacks is an IndexError where it does."""
    sizes = iter(enumerate(x.type.shape))
    found = []
    for entry in entries:
        axis, size = (0, None) if entry == "newaxis" else next(sizes)
        if isinstance(entry, int) and size is not None and not -size <= entry < size:
            message = f"x[…]: index {entry} is out of bounds for axis {axis} with size {size}"
            entry = op(RAISING, as_variable(0), as_variable(False), error="IndexError", message=message).node
        found.append(entry)
    return found


def _gap(entries: list[Any], place: int) -> int | None:
    """The axis of x[entries] that a new axis becomes in place of an ellipsis of no axes between index arrays; else None."""
    is_advanced = [isinstance(entry, int | Node) for entry in entries]
    rank = max((entry.type.rank for entry in entries if isinstance(entry, Node)), default=0)
    if not rank or not (any(is_advanced[:place]) and any(is_advanced[place:])):
        return None
    return rank + is_advanced[:place].count(False)


def _entries(part: Any) -> list[Any]:
    """The entries for one part of an index; a mask gives one for each of its axes."""
    if part is None:
        return ["newaxis"]
    if part is Ellipsis:
        return [Ellipsis]
    if isinstance(part, slice):
        return [tuple(None if bound is None else _bound(bound) for bound in (part.start, part.stop, part.step))]
    if isinstance(part, str):
        taken = (
            f"; ns.scan takes a dict with {part!r} apart: for a nest with this key write dict(initial={{{part!r}: …}}), or dict(input=…)"
        )
        raise TypeError(f"x[{part!r}]{at_line()}: x is an array, not a dict{taken * (part in ('initial', 'input', 'taps'))}")
    if isinstance(part, bool | np.bool_):
        raise TypeError(f"x[{part}]{at_line()}: a truth value is no index; write np.where(condition, a, b)")
    if not isinstance(part, Variable):
        try:
            return [operator.index(part)]
        except TypeError:
            pass
    mask = known_mask(part)
    return _array_entries(as_variable(no_empty_list(part))) if mask is None else [constant(places) for places in np.nonzero(mask)]


def _mask(part: Any) -> Any:
    """A part of an index, if it is a mask: an array where it is known while tracing, else a variable. None for what is no mask."""
    if not isinstance(part, Variable | np.ndarray | list | tuple):
        return None
    return part if is_traced_mask(part) else known_mask(part)


def is_traced_mask(part: Any) -> bool:
    """Whether a part of an index is a mask, or a truth value, that only the run knows."""
    return isinstance(part, Variable) and part.type.kind == "b" and known_mask(part) is None


def _fitting_masks(x: Variable, index: tuple[Any, ...]) -> Variable:
    """x, which must have the dimensions of the masks in an index: IndexError now, or ValueError at the run."""
    masks = [_mask(part) for part in index]
    if all(mask is None for mask in masks):
        return x
    ranks = [0 if part is None or part is Ellipsis else 1 if mask is None else mask.ndim for part, mask in zip(index, masks, strict=True)]
    axis, sizes = 0, list(shape_of(x))
    for part, mask, rank in zip(index, masks, ranks, strict=True):
        for k, length in enumerate(() if mask is None else shape_of(mask) if isinstance(mask, Variable) else mask.shape, axis):
            if isinstance(sizes[k], int) and isinstance(length, int) and sizes[k] != length:
                raise IndexError(
                    f"x[mask]: {x!r} has length {sizes[k]} along axis {k}, the mask {length}{at_line()}; both must be the same"
                )
            sizes[k] = length
        axis += x.ndim - sum(ranks) if part is Ellipsis else rank
    return Variable(of_shape(x.node, sizes_of(sizes, "x[mask]"), "the array before a mask in brackets"))


def known_mask(part: Any) -> np.ndarray | None:
    """A part of an index, if it is a mask known while tracing; else None. A mask from outside is compared by content at every call."""
    if type(part) is np.ndarray and part.dtype == bool:
        return part
    value = constant_value(as_variable(no_empty_list(part)).node)
    return value if value is not None and value.dtype == bool else None


def no_empty_list(part: Any) -> Any:
    """An index; an empty list, which NumPy would take for floats, is one of integers."""
    return np.zeros(0, "int64") if isinstance(part, list | tuple) and not part else part


def _array_entries(array: Variable) -> list[Any]:
    if array.type.kind == "b":
        if not array.ndim:
            raise TracerError(
                f"x[condition] with a traced truth value ({array!r}){at_line()}: x with one axis more, or nothing of it; write an `if`, or "
                "np.where(condition, x, other)"
            )
        return [places.node for places in METHODS["nonzero"](array)]
    if array.type.kind not in "iu":
        raise IndexError(
            f"x[{array!r}]{at_line()}: only integers, slices, ..., None and integer arrays are indices; write .astype('int64')"
        )
    return [array.node]


def _bound(bound: Any) -> Any:
    if isinstance(bound, Variable):
        if bound.ndim or bound.type.kind not in "iu":
            raise TypeError(f"the bound {bound!r} of a slice{at_line()} must be an integer scalar; write .astype('int64')")
        return bound.node
    try:
        return operator.index(bound)
    except TypeError:
        raise TypeError(f"the bound {bound!r} of a slice{at_line()} must be an integer or None") from None


def subtensor(x: Any, *index: Any) -> Variable:
    """x[index]: `nt.subtensor(x, 0, slice(1, None))` is `x[0, 1:]`."""
    return as_variable(x)[index]


# arrays with some elements replaced ----------------------------------------------------------------------------------


def _written(card: SizedCard, region: Any, y: Any, name: str) -> Variable:
    whole, spec = _origin(region, name)
    y = float(y) if is_large(y) and region.dtype.kind in "fc" else y
    values = _without_leading_ones(as_variable(y), region.ndim)
    gap = region.gap if isinstance(region, Part) else None
    if gap is not None and values.ndim > region.ndim - gap:
        values = expand_dims(values, values.ndim - (region.ndim - gap))
    check_weak(values, whole.type.dtype, f"{name}: ")
    if values.type.weak and values.type.kind in "iu" and whole.type.kind in "iu":
        values = number_as(values, whole.type.dtype)
    return Variable(sized(card, (whole, values.node), spec))


def _origin(region: Any, name: str) -> tuple[Node, tuple[Any, ...]]:
    """For a region x[…]: x, and the entries between the brackets. TypeError for anything else."""
    if isinstance(region, Part):
        return region.whole, region.spec
    if not isinstance(region, Variable) or region.node.op not in (INDEX, GATHER):
        raise TypeError(
            f"{name}: expected x[…] of a variable, got {region!r}{at_line()}; write x[idx].set(y), or nt.set_subtensor(x[idx], y)"
        )
    x, *holes = region.node.inputs
    return x, filled(region.node.attr("spec"), iter(holes))


def _without_leading_ones(y: Variable, rank: int) -> Variable:
    while y.ndim > rank and y.type.shape[0] == 1:
        y = y[0]
    return y


def set_subtensor(x: Any, y: Any) -> Variable:
    """The array behind `x[idx]` with the elements at idx replaced by y.

    Arguments: x, an index expression `a[idx]`; y, what broadcasts to its shape. Where idx names a place twice the last value stays.

    Returns a variable like `a`, of its dtype.

    Raises TypeError for y of another kind than a (floats into integers), ValueError where y does not broadcast.

    >>> import numbascan.tensor as nt
    >>> a = nt.dvector("a")
    >>> nt.set_subtensor(a[1:-1], 0.0)
    <set_subtensor: float64[?]>
    """
    return _written(SET_SUBTENSOR, x, y, "nt.set_subtensor")


def inc_subtensor(x: Any, y: Any) -> Variable:
    """The array behind `x[idx]` with y added to the elements at idx, as often as idx names them.

    Arguments and errors as for `set_subtensor`.

    >>> import numbascan.tensor as nt
    >>> u = nt.dvector("u")
    >>> nt.inc_subtensor(u[1:-1], 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]))
    <inc_subtensor: float64[?]>
    """
    return _written(INC_SUBTENSOR, x, y, "nt.inc_subtensor")


@implements(method="set")
def _set(region: Variable, y: Any) -> Variable:
    return _written(SET_SUBTENSOR, region, y, "x[idx].set(y)")


@implements(method="inc")
def _inc(region: Variable, y: Any) -> Variable:
    return _written(INC_SUBTENSOR, region, y, "x[idx].inc(y)")


# gathering ----------------------------------------------------------------------------------------------------------


def _in_mode(indices: Variable, n: Any, mode: str, name: str) -> Variable:
    if mode == "raise":
        return indices
    if mode == "wrap":
        return indices.astype("int64") % n
    if mode == "clip":
        return clip(indices, 0, n - 1)
    raise ValueError(f"{name}: mode {mode!r} is not known{at_line()}; use 'raise', 'wrap' or 'clip'")


def integers(indices: Any, name: str) -> Variable:
    """Indices as a variable. TypeError where they are no integers."""
    index = as_variable(no_empty_list(indices))
    if index.type.kind not in "iu":
        raise TypeError(f"{name}: the indices {index!r} must be integers{at_line()}; write .astype('int64')")
    return index


@implements(np.take, method="take")
def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise") -> Variable:
    """The elements (or rows along an axis) of `a` at `indices`.

    Arguments: axis, None for the elements in C order; mode, what becomes of indices out of bounds: "raise", "wrap" or "clip".

    Raises IndexError where an index is out of bounds, when it runs.

    >>> import numbascan.tensor as nt
    >>> nt.take(nt.dmatrix("x"), [0, 2, 0], axis=1)
    <gather: float64[?, 3]>
    """
    refuse("np.take", out=out)
    x, places = as_variable(a), integers(indices, "np.take")
    if axis is None:
        x, axis = ravel(x), 0
    place = axis_of(axis, x.ndim, "np.take")
    return x[(*(slice(None),) * place, _in_mode(places, dim(x, place), mode, "np.take"))]


@implements(np.choose, method="choose")
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Variable:
    """Of the arrays `choices` the element of the one whose number stands in `a`, for each place of `a`; all broadcast.

    Arguments: a, integers; choices, a list of arrays, or one array with them along its first axis (np.choose needs its length to be fixed);
    mode, as for `take`.

    Raises IndexError for a number that is negative or too large, when it runs.

    >>> import numbascan.tensor as nt
    >>> nt.choose(nt.lvector("k"), [nt.dvector("x"), 0.0])
    <index: float64[?]>
    """
    refuse("np.choose", out=out)
    numbers = as_variable(a)
    numbers = integers(numbers.astype("int64") if numbers.type.kind == "b" else numbers, "np.choose")
    every = choices if isinstance(choices, Variable) else stack(broadcast_arrays(*as_arrays(choices)))
    n, first = dim(every, 0), every[0]
    sizes = broadcast_sizes([numbers, first])
    every = broadcast_to(every[(slice(None), *(None,) * (len(sizes) - first.ndim))], (n, *sizes))
    places = broadcast_to(not_negative(_in_mode(numbers, n, mode, "np.choose"), n), sizes)
    return take_along_axis(every, places[None], 0)[0]


def not_negative(indices: Variable, n: Any) -> Variable:
    """The indices, with `n` for negative ones: these are out of bounds here, and do not count from the end."""
    return where(indices < 0, n, indices) if indices.type.kind == "i" else indices


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Variable:
    """For every place of the other axes, the elements along `axis` at the indices there, as `argsort` and `argmax` give them.

    >>> import numbascan.tensor as nt
    >>> x = nt.dmatrix("x")
    >>> nt.take_along_axis(x, nt.argsort(x, axis=1), axis=1)
    <gather: float64[?, ?]>
    """
    x, places = as_variable(arr), integers(indices, "np.take_along_axis")
    if axis is None:
        x, axis = ravel(x), 0
    place = axis_of(axis, x.ndim, "np.take_along_axis")
    if places.ndim != x.ndim:
        raise ValueError(f"np.take_along_axis: indices of {places.ndim} dimensions do not go with an array of {x.ndim}{at_line()}")
    return x[along_axis(x, places, place)]


def along_axis(x: Variable, places: Variable, axis: int) -> tuple[Any, ...]:
    """The index that takes `places` along an axis, and every place along the others."""
    from .creation import arange

    index: list[Any] = []
    for k in range(x.ndim):
        others = arange(dim(x, k))[(*(None,) * k, slice(None), *(None,) * (x.ndim - k - 1))]
        index.append(places if k == axis else others)
    return tuple(index)


__all__ = ["choose", "inc_subtensor", "set_subtensor", "subtensor", "take", "take_along_axis"]

entries(globals(), __all__)
