"""Indexing: `x[…]` with positions, slices, new axes and integer arrays, and arrays that differ from x inside such a region.

`index_entries.py` describes the attribute `spec`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from ..ir.loops import Apply, Expr, Index, Literal, add, both, compare, floor_div, mod, sub
from ..ir.node import ARG, INPUT, Node, constant, constant_value
from ..types import TensorType, show_shape
from .algebra import (
    broadcast_to,
    call,
    cast,
    counted,
    dims_of,
    expand,
    flip_axis,
    incremented,
    mul,
    node_of,
    sum_to,
    taken,
    where,
    written,
    zeros_like,
)
from .card import at_line, register
from .elementwise import ADD
from .index_entries import FULL, Region, Spec, for_all_axes, layout, region_shape
from .lowering import ByRow, Elementwise, Indices, Operands, Pass, Passes, View
from .reshape import reshaped
from .runtime_attributes import ARRAY, HOLE, SizedCard, filled, fits, settled, stretched

Samples = list[tuple[tuple[Any, ...], dict[str, Any]]]
FEW = 64  # up to this many places are compared with each other: 4096 numbers at most
_X = np.arange(60.0).reshape(3, 4, 5) * 1.5 - 7


def numpy_index(spec: Spec, values: Sequence[Any]) -> tuple[Any, ...]:
    """The index that NumPy takes; `values` fill the holes."""
    entries = filled(spec, iter(values))

    def plain(part: Any) -> Any:
        return part if part is None else int(part)

    result: list[Any] = []
    for entry in entries:
        if isinstance(entry, tuple):
            result.append(slice(*map(plain, entry)))
        elif isinstance(entry, str):
            result.append(None)
        else:
            result.append(entry if np.ndim(entry) else int(entry))
    return tuple(result)


# reading ------------------------------------------------------------------------------------------------------------


def _region_type(name: str) -> Callable[..., TensorType]:
    def infer(x: TensorType, *holes: TensorType, spec: Spec) -> TensorType:
        return TensorType(x.dtype, region_shape(name, x, spec, holes))

    return infer


def _reading(name: str) -> View:
    return View(lambda view: Region(view, 1, name).checked_dims(), lambda view, index: Region(view, 1, name).place(index))


def _read(x: Any, *values: Any, spec: Spec) -> Any:
    return np.asarray(x)[numpy_index(spec, values)]


def _index_samples() -> Samples:
    specs: list[Spec] = [
        (1, -1, 2),
        (-1,),
        ((1, None, None), FULL, (None, -1, None)),
        ((1, -1, None), (-3, -1, None), (-2, None, None)),
        ((None, None, -1), (3, 0, -2), (7, None, None)),
        ((2, 1, None), FULL, (None, None, 2)),
        ("newaxis", 1, FULL, "newaxis", (1, 4, 3)),
    ]
    run: Samples = [
        ((_X, 2, -1), {"spec": (HOLE, FULL, HOLE)}),
        ((_X, 1, -1), {"spec": (FULL, (HOLE, HOLE, None), 0)}),
        ((_X, -2, 1), {"spec": (0, (HOLE, 9, None), (None, -1, HOLE))}),
        ((_X, 4, 0, -2), {"spec": (0, (HOLE, HOLE, HOLE), FULL)}),
    ]
    return [((_X,), {"spec": spec}) for spec in specs] + run


_BACKWARDS = (None, None, -1)


def _spec_of(node: Node) -> tuple[Spec, tuple[None, ...]]:
    """The index, with nodes where only the run knows; and a None for each of these nodes, as they have no cotangents."""
    card = node.op
    assert isinstance(card, SizedCard)
    holes = node.inputs[card.arrays :]
    return filled(node.attr("spec"), iter(holes)), (None,) * len(holes)


def _read_back(node: Node, cotangent: Node) -> tuple[Node | None, ...]:
    """Zeros with the cotangent added where x was read; no zeros if each element was read once."""
    spec, rest = _spec_of(node)
    if any(entry not in ("newaxis", FULL, _BACKWARDS) for entry in spec):
        return incremented(zeros_like(node.inputs[0]), cotangent, spec), *rest
    new = tuple(axis for axis, entry in enumerate(spec) if entry == "newaxis")
    value = call("squeeze", cotangent, axis=new) if new else cotangent
    for axis, entry in enumerate(entry for entry in spec if entry != "newaxis"):
        value = flip_axis(value, axis) if entry == _BACKWARDS else value
    return value, *rest


_READING: dict[str, Any] = {"holder": "spec", "linear": (0,), "vjp": _read_back}


def _through_index(node: Node, axis: int) -> list[tuple[Node, int]]:
    """x and its axis, for an axis of the result that reads it whole (`x[:, …]`, `x[::-1, …]`); else none."""
    spec: Any = node.attr("spec")
    result, source = 0, 0
    for entry in for_all_axes(spec, node.inputs[0].type.rank):
        is_shown = isinstance(entry, tuple) or entry == "newaxis"
        if is_shown and result == axis:
            return [(node.inputs[0], source)] if entry in (FULL, (None, None, -1)) else []
        result += is_shown
        source += entry != "newaxis"
    return []


INDEX = register(
    SizedCard("index", _read, _region_type("x[…]"), _reading("x[…]"), samples=_index_samples, dim_from=_through_index, **_READING)
)

_ROWS, _COLUMNS = np.array([2, 0, -1, 1]), np.array([[3], [0]], "int32")


def _gather_samples() -> Samples:
    return [
        ((_X, _ROWS), {"spec": (ARRAY, FULL, (1, -1, None))}),
        ((_X, _ROWS, _COLUMNS), {"spec": (ARRAY, ARRAY, FULL)}),
        ((_X, _ROWS), {"spec": ((None, None, -1), ARRAY, FULL)}),
        ((_X, _ROWS, _COLUMNS), {"spec": (ARRAY, FULL, ARRAY)}),
        ((_X, _COLUMNS), {"spec": (1, FULL, ARRAY)}),
        ((_X, 1, _ROWS), {"spec": (FULL, HOLE, ARRAY)}),
        ((_X, _ROWS), {"spec": (FULL, "newaxis", ARRAY, (None, 3, None))}),
        ((_X[0, 0], np.array([[4, 1], [2, 2]], "uint8")), {"spec": (ARRAY,)}),
    ]


GATHER = register(SizedCard("gather", _read, _region_type("x[…]"), _reading("x[…]"), samples=_gather_samples, **_READING))


# writing ------------------------------------------------------------------------------------------------------------


def _writing_type(name: str) -> Callable[..., TensorType]:
    def infer(x: TensorType, y: TensorType, *holes: TensorType, spec: Spec) -> TensorType:
        region = region_shape(name, x, spec, holes)
        _check_dtype(name, x, y)
        tail = region[len(region) - y.rank :]
        known = [(a, b) for a, b in zip(y.shape, tail, strict=False) if a is not None and b is not None]
        if y.rank > len(region) or any(a not in (1, b) for a, b in known):
            seen = f"values of shape {show_shape(y.shape)}, a region of shape {show_shape(region)}"
            raise ValueError(f"{name}: {seen}; they do not broadcast{at_line()}")
        return x.strong()

    return infer


_WIDTH = {"b": -1, "u": 0, "i": 0, "f": 1, "c": 2}


def _check_dtype(name: str, x: TensorType, y: TensorType) -> None:
    """Raises TypeError if values would lose their kind; digits they may lose. NumPy assigns floats to integers silently."""
    is_fitting = _WIDTH[y.kind] <= _WIDTH[x.kind] if y.weak else np.can_cast(y.dtype, x.dtype, "same_kind")
    if not is_fitting:
        fix = f"x.astype({y.dtype!r}) for the array, or y.astype({x.dtype!r}) for the values"
        raise TypeError(f"{name}: values of dtype {y.dtype} cannot be written into an array of dtype {x.dtype}{at_line()}; write {fix}")


def _writing_dims(name: str) -> Callable[[Operands], Indices]:
    def dims(view: Operands) -> Indices:
        fits(view, 1, Region(view, 2, name).checked_dims(), f"{name}: {{1}} values along an axis do not fit {{0}} places")
        return view.dims(0)

    return dims


class _Writer:
    """The passes that write x with values put or added inside a region."""

    def __init__(self, view: Operands, name: str, adds: bool) -> None:
        self.view, self.adds = view, adds
        self.region = Region(view, 2, name)
        self.dtype = view.out.dtype

    def passes(self) -> list[Pass]:
        if self._is_box() and not self._is_short():
            return [one for one in self._around(0) if 0 not in one.counts]
        copy = Pass(self.view.dims(0), lambda index: index, self._base)
        return [copy, self.inside()]

    def inside(self) -> Pass:
        """The pass over the region alone."""
        return Pass(self._counts(), self.region.place, self._value, "+" if self.adds else "")

    def _is_box(self) -> bool:
        return ARRAY not in self.region.spec and all(not isinstance(entry, tuple) or entry[2] in (None, 1) for entry in self.region.entries)

    def _is_short(self) -> bool:
        """True if copying x whole is faster than copying the parts around the region: x is short, and only the run knows the place."""
        size = self.view.types[0].size
        is_fixed = all(isinstance(bound, int) for one in self.region.ranges() for bound in (one.before, one.after))
        return size is not None and size <= FEW and not is_fixed

    def element(self, index: Indices) -> Expr:
        """An element of the result, for a region without arrays and new axes: the new value inside, that of x outside."""
        inside: list[Expr] = []
        values: list[Index] = []
        for (entry, result_axis, axis, _), one in zip(self.region.axes(), self.region.ranges(), strict=True):
            ahead = 0 if entry == FULL else sub(index[axis], one.first)
            place = index[axis] if entry == FULL else floor_div(ahead, one.step)
            if entry != FULL:
                inside += [compare(">=", place, 0), compare("<", place, one.length), compare("==", mod(ahead, one.step), 0)]
            values += [] if result_axis is None else [place]
        of_value, base = (*values, *index[len(self.region.entries) :]), self._base(index)
        elsewhere = _nothing(self.dtype) if self.adds else base
        value = self.view.chosen(both(*inside), lambda: self._value(of_value), lambda: elsewhere)
        return Apply(self.dtype, _add_code(self.dtype), (base, value)) if self.adds else value

    def _base(self, index: Indices) -> Expr:
        return self.view.at(0, index, self.dtype)

    def _value(self, index: Indices) -> Expr:
        return self.view.at(1, stretched(self.view, 1, index, self.region.dims()), self.dtype)

    def _new(self, index: Indices) -> Expr:
        if not self.adds:
            return self._value(index)
        return Apply(self.dtype, _add_code(self.dtype), (self._base(self.region.place(index)), self._value(index)))

    def _counts(self) -> Indices:
        return self.region.dims()

    def _around(self, axis: int) -> list[Pass]:
        """Copies before and after the region along each axis, and between them one pass over the region."""
        ranges, dims = self.region.ranges(), self.view.dims(0)
        if axis == len(ranges):
            return [Pass(self._counts(), self.region.place, self._new)]
        here, n = ranges[axis], dims[axis]
        return [
            self._copy(axis, here.before, lambda i: i),
            *self._around(axis + 1),
            self._copy(axis, here.after, lambda i: here.place_after(i, n)),
        ]

    def _copy(self, axis: int, count: Index, along: Callable[[Index], Index]) -> Pass:
        """The copy of the part of x inside the region along the axes before `axis`, and outside it along `axis`."""
        ranges, dims = self.region.ranges(), self.view.dims(0)
        counts = (*(one.length for one in ranges[:axis]), count, *dims[axis + 1 :])

        def place(index: Indices) -> Indices:
            inside = [add(one.first, i) for one, i in zip(ranges, index[:axis], strict=False)]
            return (*inside, along(index[axis]), *index[axis + 1 :])

        return Pass(counts, place, lambda index: self._base(place(index)))


def _is_box(attrs: Mapping[str, Any]) -> bool:
    return ARRAY not in attrs["spec"] and "newaxis" not in attrs["spec"]


def _add_code(dtype: str) -> Any:
    assert isinstance(ADD.lower, Elementwise)
    return ADD.lower.code(dtype, dtype, dtype)


def _nothing(dtype: str) -> Literal:
    """The zero that changes no number when added: -0.0 leaves both 0.0 and -0.0 as they are, 0.0 does not."""
    zero = {"f": -0.0, "c": complex(-0.0, -0.0)}.get(np.dtype(dtype).kind, 0)
    return Literal(dtype, zero)


def _writing(name: str, adds: bool, write: Callable[[Any, Any, Any], None]) -> SizedCard:
    def evaluate(x: Any, y: Any, *values: Any, spec: Spec) -> Any:
        result = np.array(x, order="C")
        index = tuple(np.ascontiguousarray(entry) if np.ndim(entry) else entry for entry in numpy_index(spec, values))
        write(result, index, np.asarray(y).astype(result.dtype, order="C"))  # C order: as in NumPy, the last value in this order stays
        return result

    lower = Passes(
        _writing_dims(f"nt.{name}"),
        lambda view: _Writer(view, f"nt.{name}", adds).passes(),
        lambda view: _Writer(view, f"nt.{name}", adds).inside(),
        ByRow(
            lambda attrs: {ARRAY, "newaxis"}.isdisjoint(attrs["spec"]), lambda view, index: _Writer(view, f"nt.{name}", adds).element(index)
        ),
    )
    facets: dict[str, Any] = {"holder": "spec", "arrays": 2, "linear": (0, 1), "vjp": _added_back if adds else _written_back}
    facets["dim_from"] = lambda node, axis: [(node.inputs[0], axis)]
    return SizedCard(name, evaluate, _writing_type(f"nt.{name}"), lower, samples=_writing_samples, **facets)


def _writing_samples() -> Samples:
    specs: list[tuple[Spec, list[Any]]] = [
        (((1, -1, None),), []),
        ((1, (1, 3, None), (None, -2, None)), []),
        ((FULL, (-3, -1, None), 2), []),
        ((FULL, FULL, (None, None, -2)), []),
        ((FULL, FULL, FULL), []),
        ((0, "newaxis", (2, None, None), (2, 2, None)), []),
        ((HOLE, (HOLE, HOLE, None), -1), [-2, 1, -1]),
        ((ARRAY,), [np.array([2, 0, 2])]),
        ((ARRAY, (1, 3, None), ARRAY), [np.array([2, 0, -1]), np.array([[1], [-1]])]),
    ]
    samples: Samples = []
    for spec, values in specs:
        shape = _X[numpy_index(spec, values)].shape
        samples.append(((_X, 100 + np.arange(float(np.prod(shape))).reshape(shape), *values), {"spec": spec}))
    line = _X[0, 0]
    few: Samples = [((line, np.float32(2.5)), {"spec": ((1, -1, None),)}), ((line, np.array([3]), 2), {"spec": ((HOLE, None, None),)})]
    return samples + few


def _added_back(node: Node, cotangent: Node) -> tuple[Node | None, ...]:
    spec, rest = _spec_of(node)
    return cotangent, sum_to(taken(cotangent, spec), node.inputs[1]), *rest


def _written_back(node: Node, cotangent: Node) -> tuple[Node | None, ...]:
    spec, rest = _spec_of(node)
    part = taken(cotangent, spec)
    if ARRAY in settled(spec):
        part = where(_stays(node, spec, part.type.rank), part, 0)
    return written(cotangent, constant(0, cotangent.type.dtype), spec), sum_to(part, node.inputs[1]), *rest


def _stays(node: Node, spec: Spec, rank: int) -> Node:
    """True where a written value stays: of values for one place, the last one. It broadcasts to the region.

    Each value writes its number, in the order of the values; those that then read another number were overwritten. Few places are
    compared with each other instead, which takes no array of numbers. Only axes with positions count.
    """
    entries = [entry for entry in for_all_axes(spec, node.type.rank) if entry != "newaxis"]
    positions = {axis: entry for axis, entry in enumerate(entries) if not isinstance(entry, tuple)}
    dims = dims_of(node.inputs[0])
    blank = broadcast_to(constant(0, "int64"), [dims[axis] for axis in positions])
    places = tuple(positions.values())
    region = taken(blank, places)
    shape, count = dims_of(region), region.type.size
    if count is not None and count <= FEW:
        stays = reshaped(_is_last(places, [dims[axis] for axis in positions], shape, count), shape)
    else:
        numbers = reshaped(counted(reduce(mul, shape)), shape)
        stays = call("equal", taken(written(blank, numbers, places), places), numbers)
    first = layout(for_all_axes(settled(spec), node.type.rank), len(shape)).array_start
    return expand(stays, range(len(shape), rank - first))


def _is_last(places: Sequence[Node | int], dims: Sequence[Node], shape: Sequence[Node], count: int) -> Node:
    """True for each of `count` places that no later one repeats. places: their positions on each axis."""
    again = constant(np.triu(np.ones((count, count), bool), 1))
    for place, n in zip(places, dims, strict=True):
        numbers = cast(node_of(place), "int64")
        numbers = reshaped(broadcast_to(where(call("less", numbers, 0), call("add", numbers, n), numbers), shape), (count,))
        again = call("logical_and", again, call("equal", expand(numbers, (1,)), expand(numbers, (0,))))
    return call("logical_not", call("any", again, axis=(1,), keepdims=False))


def _assign(array: Any, index: Any, values: Any) -> None:
    array[index] = values


SET_SUBTENSOR = register(_writing("set_subtensor", False, _assign))
INC_SUBTENSOR = register(_writing("inc_subtensor", True, np.add.at))


def is_replaced_at_run_time(node: Node) -> bool:
    """True if a value is a given array with parts replaced, one of them at a place that only the run knows."""
    places: list[Node] = []
    while node.op in (SET_SUBTENSOR, INC_SUBTENSOR):
        places += node.inputs[2:]
        node = node.inputs[0]
    return node.op in (ARG, INPUT) and any(not place.type.rank and constant_value(place) is None for place in places)
