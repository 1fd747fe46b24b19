"""Shapes: dimensions as values, views that move elements' indices, arrays joined end to end, and evenly spaced numbers.

All other functions of shapes are made of these, in `front/`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np

from ..ir.loops import (
    COMPARE,
    IN_ORDER,
    PLUS,
    PRODUCT,
    TIMES,
    Apply,
    Expr,
    Index,
    Literal,
    Template,
    add,
    choice,
    compare,
    greatest,
    least,
    mod,
    sub,
)
from ..ir.node import Node, constant
from ..types import Shape, TensorType, dtype_name, show_shape
from .algebra import add as plus
from .algebra import broadcast_to, call, cast, dims_of, expand, incremented, indexed, known_as, neg, on_axis, sum_to, transpose, zeros_like
from .card import Card, at_line, register
from .lowering import Generate, Indices, Operands, Pass, Passes, View
from .runtime_attributes import HOLE, SizedCard, filled, fits, must_equal, not_negative, run_numbers, sized, stretched

Samples = list[tuple[tuple[Any, ...], dict[str, Any]]]
_X = np.arange(24.0).reshape(2, 3, 4) * 1.5 - 7


# transpose, squeeze, broadcast_to -----------------------------------------------------------------------------------


def _transposed_index(view: Operands, index: Indices) -> Indices:
    axes = view.attrs["axes"]
    return tuple(index[axes.index(axis)] for axis in range(len(axes)))


def _transposed_back(node: Node, cotangent: Node) -> tuple[Node]:
    axes: Any = node.attr("axes")
    return (transpose(cotangent, tuple(axes.index(axis) for axis in range(len(axes)))),)


def _transposed_from(node: Node, axis: int) -> list[tuple[Node, int]]:
    axes: Any = node.attr("axes")
    return [(node.inputs[0], axes[axis])]


TRANSPOSE = register(
    Card(
        "transpose",
        lambda x, axes: np.transpose(x, axes),
        lambda x, axes: x.with_shape(x.shape[axis] for axis in axes).strong(),
        View(lambda view: tuple(view.dims(0)[axis] for axis in view.attrs["axes"]), _transposed_index, keeps_dims=True),
        samples=lambda: [((_X,), {"axes": axes}) for axes in ((2, 0, 1), (0, 2, 1), (1, 2, 0))],
        linear=(0,),
        vjp=_transposed_back,
        dim_from=_transposed_from,
    )
)


def _squeeze_type(x: TensorType, axis: tuple[int, ...]) -> TensorType:
    for k in axis:
        if x.shape[k] not in (1, None):
            raise ValueError(f"np.squeeze: axis {k} has length {x.shape[k]}, only axes of length 1 can be dropped{at_line()}")
    return x.with_shape(dim for k, dim in enumerate(x.shape) if k not in axis).strong()


def _squeezed_dims(view: Operands) -> Indices:
    axes, dims = view.attrs["axis"], view.dims(0)
    for axis in axes:
        must_equal(view, dims[axis], 1, f"np.squeeze: axis {axis} has length {{0}}, only axes of length {{1}} can be dropped")
    return tuple(dim for axis, dim in enumerate(dims) if axis not in axes)


def _squeezed_index(view: Operands, index: Indices) -> Indices:
    axes, rest = view.attrs["axis"], iter(index)
    return tuple(0 if axis in axes else next(rest) for axis in range(view.types[0].rank))


SQUEEZE = register(
    Card(
        "squeeze",
        lambda x, axis: np.squeeze(x, axis),
        _squeeze_type,
        View(_squeezed_dims, _squeezed_index),
        samples=lambda: [((_X[:, :1, :1],), {"axis": (1, 2)}), ((_X[:, :1],), {"axis": (1,)})],
        linear=(0,),
        vjp=lambda node, cotangent: (expand(cotangent, node.attr("axis")),),
    )
)


def known_shape(shape: tuple[Any, ...]) -> Shape:
    """Entries of a shape attribute as dimensions of a type."""
    return tuple(entry if isinstance(entry, int) else None for entry in shape)


def _broadcast_type(x: TensorType, *sizes: TensorType, shape: tuple[Any, ...]) -> TensorType:
    result = known_shape(shape)
    tail = result[len(result) - x.rank :]
    if x.rank > len(result) or any(a not in (None, 1) and b is not None and a != b for a, b in zip(x.shape, tail, strict=True)):
        raise ValueError(f"np.broadcast_to: shape {show_shape(x.shape)} does not broadcast to {show_shape(result)}{at_line()}")
    if any(dim is not None and dim < 0 for dim in result):
        raise ValueError(f"negative dimensions are not allowed, the shape is {show_shape(result)}{at_line()}")
    return TensorType(x.dtype, result)


def _broadcast_dims(view: Operands) -> Indices:
    dims: Indices = run_numbers(view, view.attrs["shape"], 1)
    for entry, dim in zip(view.attrs["shape"], dims, strict=True):
        if entry == HOLE:
            not_negative(view, dim, "np.broadcast_to")
    fits(view, 0, dims, "np.broadcast_to: axis {axis} of the operand has length {1}, the shape asks for {0}")
    return dims


def _broadcast_index(view: Operands, index: Indices) -> Indices:
    shape = view.attrs["shape"]
    return stretched(view, 0, index, run_numbers(view, shape, 1) if None in view.types[0].shape else shape)


class _BroadcastCard(SizedCard):
    """Rebuilt on a value that already has the shape, it is the value itself."""

    def rebuilt(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        return broadcast_to(inputs[0], filled(node.attr("shape"), iter(inputs[1:])))


BROADCAST_TO = register(
    _BroadcastCard(
        "broadcast_to",
        lambda x, *sizes, shape: np.broadcast_to(x, tuple(map(int, filled(shape, iter(sizes))))),
        _broadcast_type,
        View(_broadcast_dims, _broadcast_index, keeps_dims=True, repeats=True),
        samples=lambda: [
            ((_X[0],), {"shape": (5, 3, 4)}),
            ((_X[0, :, :1], 5, 4), {"shape": (HOLE, 3, HOLE)}),
            ((np.float64(2.5), 3), {"shape": (HOLE, 2)}),
        ],
        linear=(0,),
        vjp=lambda node, cotangent: (sum_to(cotangent, node.inputs[0]), *(None,) * (len(node.inputs) - 1)),
        resizes=True,
    )
)


# roll ---------------------------------------------------------------------------------------------------------------


def _rolled_index(view: Operands, index: Indices) -> Indices:
    axis = view.attrs["axis"]
    (shift,), n, i = run_numbers(view, view.attrs["shift"], 1), view.dims(0)[axis], index[axis]
    if isinstance(shift, int) and (isinstance(n, int) and n):
        shift = shift % n if shift >= 0 else -(-shift % n)
    if isinstance(shift, int) and (isinstance(n, int) or shift in (-1, 0, 1)):  # at most one turn: no division
        place = sub(i, shift)
        is_forwards, is_backwards = shift > 0, shift < 0
    else:
        place = sub(i, mod(shift, n))
        is_forwards, is_backwards = True, False
    if is_forwards:
        place = choice(compare("<", place, 0), add(place, n), place)
    elif is_backwards:
        place = choice(compare(">=", place, n), sub(place, n), place)
    return (*index[:axis], place, *index[axis + 1 :])


def _rolled_back(node: Node, cotangent: Node) -> tuple[Node | None, ...]:
    (shift,) = filled(node.attr("shift"), iter(node.inputs[1:]))
    back = neg(cast(shift, "int64")) if isinstance(shift, Node) else -shift
    return sized(ROLL, (cotangent,), (back,), axis=node.attr("axis")), *(None,) * (len(node.inputs) - 1)


ROLL = register(
    SizedCard(
        "roll",
        lambda x, *shifts, shift, axis: np.roll(x, int(filled(shift, iter(shifts))[0]), axis),
        lambda x, *shifts, shift, axis: x.strong(),
        View(lambda view: view.dims(0), _rolled_index, depth=8),
        samples=lambda: [
            *(((_X,), {"shift": (shift,), "axis": 1}) for shift in (1, -1, 0, 2, -5, 7)),
            ((_X, 3), {"shift": (HOLE,), "axis": 2}),
            ((_X, -6), {"shift": (HOLE,), "axis": 2}),
        ],
        holder="shift",
        linear=(0,),
        vjp=_rolled_back,
    )
)


# pad ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Numbers:
    """Arithmetic of positions, which are arrays, nodes, or indices in loops."""

    add: Callable[[Any, Any], Any]
    sub: Callable[[Any, Any], Any]
    mod: Callable[[Any, Any], Any]
    least: Callable[[Any, Any], Any]
    greatest: Callable[[Any, Any], Any]


_OF_ARRAYS = _Numbers(np.add, np.subtract, np.remainder, np.minimum, np.maximum)
_OF_NODES = _Numbers(*(partial(call, name) for name in ("add", "subtract", "remainder", "minimum", "maximum")))
_OF_INDICES = _Numbers(add, sub, mod, least, greatest)


def _reflected(i: Any, n: Any, of: _Numbers) -> Any:
    period = of.greatest(of.add(n, of.sub(n, 2)), 1)
    place = of.mod(i, period)
    return of.least(place, of.sub(period, place))


def _mirrored(i: Any, n: Any, of: _Numbers) -> Any:
    place = of.mod(i, of.add(n, n))
    return of.least(place, of.sub(of.sub(of.add(n, n), 1), place))


PADDED: dict[str, Callable[[Any, Any, _Numbers], Any]] = {
    "edge": lambda i, n, of: of.least(of.greatest(i, 0), of.sub(n, 1)),
    "reflect": _reflected,
    "symmetric": _mirrored,
    "wrap": lambda i, n, of: of.mod(i, n),
}
_NO_ELEMENTS = "np.pad: an axis of no elements has none to repeat; only mode='constant' pads it"


def _padded(x: np.ndarray, mode: str, axis: int, before: int, after: int) -> np.ndarray:
    n = x.shape[axis]
    if n == 0:
        raise ValueError(_NO_ELEMENTS)
    places: np.ndarray = PADDED[mode](np.arange(-before, n + after), n, _OF_ARRAYS)
    return x.take(places, axis)


def _padded_dims(view: Operands) -> Indices:
    view.check(compare(">", view.dims(0)[view.attrs["axis"]], 0), "ValueError", _NO_ELEMENTS)
    return _grown_dims(view)


def _grown_dims(view: Operands) -> Indices:
    axis, dims = view.attrs["axis"], view.dims(0)
    return (*dims[:axis], add(dims[axis], view.attrs["before"] + view.attrs["after"]), *dims[axis + 1 :])


def _padded_index(view: Operands, index: Indices) -> Indices:
    axis = view.attrs["axis"]
    n, i = view.dims(0)[axis], sub(index[axis], view.attrs["before"])
    outside = PADDED[view.attrs["mode"]](i, n, _OF_INDICES)
    place = choice(compare(">=", i, n), outside, i) if view.attrs["after"] else i
    place = choice(compare("<", i, 0), outside, place) if view.attrs["before"] else place
    return (*index[:axis], place, *index[axis + 1 :])


def _unpadded(node: Node, cotangent: Node) -> tuple[Node]:
    """The cotangent of the operand's own part, with those of the padding added to the elements that it repeats."""
    mode, axis, before, after = str(node.attr("mode")), *map(node.number, ("axis", "before", "after"))
    n, lead = dims_of(node.inputs[0])[axis], ((None, None, None),) * axis
    result = indexed(cotangent, (*lead, (before, -after or None, None)))
    left, right = constant(np.arange(-before, 0)), call("add", constant(np.arange(after)), n)
    edges = (before, left, (None, before, None)), (after, right, (-after, None, None))
    for count, places, region in edges:
        if count:
            sources = PADDED[mode](places, n, _OF_NODES)
            result = incremented(result, indexed(cotangent, (*lead, region)), (*lead, sources))
    return (result,)


def _grown_type(x: TensorType, *value: TensorType, axis: int, before: int, after: int, mode: str = "") -> TensorType:
    grown = (dim if k != axis or dim is None else dim + before + after for k, dim in enumerate(x.shape))
    return x.with_shape(grown).strong()


PAD = register(
    Card(
        "pad",
        _padded,
        _grown_type,
        View(_padded_dims, _padded_index, repeats=True, depth=8),
        samples=lambda: (
            [((_X,), {"mode": mode, "axis": 1, "before": 2, "after": 4}) for mode in PADDED]
            + [
                ((_X,), {"mode": "wrap", "axis": 2, "before": 0, "after": 9}),
                ((_X,), {"mode": "reflect", "axis": 0, "before": 5, "after": 0}),
            ]
        ),
        linear=(0,),
        vjp=_unpadded,
    )
)


def _framed_element(view: Operands, index: Indices) -> Expr:
    axis, n, value = view.attrs["axis"], view.dims(0)[view.attrs["axis"]], view.short(view.at(1))
    i = sub(index[axis], view.attrs["before"])
    is_before = compare("<", i, 0) if view.attrs["before"] else Literal("bool", False)
    is_behind = compare(">=", i, n) if view.attrs["after"] else Literal("bool", False)

    def inside() -> Expr:
        return view.at(0, (*index[:axis], i, *index[axis + 1 :]))

    return view.chosen(is_before, lambda: value, lambda: view.chosen(is_behind, lambda: value, inside))


def _unframed(node: Node, cotangent: Node) -> tuple[Node, Node]:
    axis, before, after = map(node.number, ("axis", "before", "after"))
    inside, *around = (indexed(cotangent, (*((None, None, None),) * axis, region)) for region in _regions(before, after))
    return inside, reduce(plus, (call("sum", part, axis=tuple(range(part.type.rank)), keepdims=False) for part in around))


def _regions(before: int, after: int) -> list[tuple[int | None, int | None, None]]:
    """The slices of the operand's own part, and of the padding around it."""
    around = [(None, before, None)] * bool(before) + [(-after, None, None)] * bool(after)
    return [(before, -after or None, None), *around]


FRAME = register(
    Card(
        "frame",
        lambda x, value, axis, before, after: np.pad(
            x, [(before, after) if k == axis else (0, 0) for k in range(x.ndim)], constant_values=value
        ),
        _grown_type,
        Generate(_grown_dims, _framed_element, from_operand=True),
        samples=lambda: [
            ((_X, np.float64(2.5)), {"axis": 1, "before": 2, "after": 4}),
            ((_X, np.float64(0)), {"axis": 2, "before": 0, "after": 1}),
        ],
        linear=(0, 1),
        vjp=_unframed,
    )
)


# concatenate --------------------------------------------------------------------------------------------------------


def _joined_type(*types: TensorType, axis: int) -> TensorType:
    first = types[0]
    shape: list[int | None] = []
    for k in range(first.rank):
        dims = [type_.shape[k] for type_ in types]
        if k == axis:
            shape.append(None if None in dims else sum(dim or 0 for dim in dims))
            continue
        known = {dim for dim in dims if dim is not None}
        if len(known) > 1:
            shown = ", ".join(show_shape(type_.shape) for type_ in types)
            raise ValueError(f"np.concatenate along axis {axis}: the shapes {shown} differ along axis {k}{at_line()}")
        shape.append(known.pop() if known else None)
    return TensorType(dtype_name(np.result_type(*(np.dtype(type_.dtype) for type_ in types))), tuple(shape))


def _joined_dims(view: Operands) -> Indices:
    along, result = view.attrs["axis"], list(view.dims(0))
    for k in range(1, len(view.types)):
        for axis, dim in enumerate(view.dims(k)):
            if axis == along:
                result[axis] = add(result[axis], dim)
            elif view.out.shape[axis] is None:
                message = f"np.concatenate: array {k} has length {{1}} along axis {axis}, the first has {{0}}"
                must_equal(view, view.dims(0)[axis], dim, message)
    return tuple(result)


def _joined_passes(view: Operands) -> Sequence[Pass]:
    axis, dtype = view.attrs["axis"], view.out.dtype
    passes: list[Pass] = []
    offset: Index = 0
    for k in range(len(view.types)):
        counts = view.dims(k)

        def place(index: Indices, offset: Index = offset) -> Indices:
            return (*index[:axis], add(index[axis], offset), *index[axis + 1 :])

        def element(index: Indices, k: int = k) -> Expr:
            return view.at(k, index, dtype)

        passes.append(Pass(counts, place, element))
        offset = add(offset, counts[axis])
    return [one for one in passes if 0 not in one.counts]


def _parts(node: Node, cotangent: Node) -> list[Node]:
    """The parts of the cotangent that belong to the operands."""
    axis: Any = node.attr("axis")
    parts: list[Node] = []
    start: Node | int = 0
    for array in node.inputs:
        stop = plus(start, dims_of(array)[axis])
        part = indexed(cotangent, on_axis((start, stop, None), axis))
        parts.append(known_as(part, array))
        start = stop
    return parts


def _joined_tangents(node: Node, *tangents: Node | None) -> Node:
    """The tangents joined; an operand without one has zeros of its own dtype."""
    rows = (zeros_like(array) if tangent is None else tangent for array, tangent in zip(node.inputs, tangents, strict=True))
    return call("concatenate", *rows, axis=node.attr("axis"))


CONCATENATE = register(
    Card(
        "concatenate",
        lambda *arrays, axis: np.concatenate(arrays, axis),
        _joined_type,
        Passes(_joined_dims, _joined_passes),
        samples=lambda: [
            ((_X, _X[:, :2] + 1, _X[:, :0], _X[:, :1].astype("int32")), {"axis": 1}),
            ((_X[0, 0, :3].astype("float32"), np.array([7, 8], "int8")), {"axis": 0}),
            ((_X, -_X), {"axis": 2}),
        ],
        vjp=_parts,
        jvp=_joined_tangents,
        dim_from=lambda node, axis: [(node.inputs[0], axis)] if axis != node.attr("axis") else [],
    )
)


# arange -------------------------------------------------------------------------------------------------------------

_MINUS = Template("{0} - {1}", PLUS, (PLUS, TIMES))


def _evenly_dims(view: Operands) -> Indices:
    dims: Indices = run_numbers(view, view.attrs["shape"], 2)
    step = view.at(1)
    if not (isinstance(step, Literal) and step.value):
        nonzero = Apply("bool", Template("{0} != 0", COMPARE, (COMPARE + 1,)), (step,))
        view.check(nonzero, "ZeroDivisionError", "np.arange: the step is zero")
    for dim in dims:
        not_negative(view, dim, "np.arange")
    return dims


def _evenly_element(view: Operands, index: Indices) -> Expr:
    dtype, (i,) = view.out.dtype, index
    start, step = view.at(0, (), dtype), view.at(1, (), dtype)
    if view.out.kind == "f":
        step = _rounded_step(start, step, dtype)
    place: Expr = Literal("int64", i) if isinstance(i, int) else i
    counted = place if dtype == "int64" else Apply(dtype, Template(f"np.{dtype}({{0}})"), (place,))
    if not (isinstance(step, Literal) and step.value == 1):
        counted = Apply(dtype, PRODUCT, (counted, step))
    if isinstance(start, Literal) and start.value == 0:
        return counted
    return Apply(dtype, IN_ORDER, (start, counted))


def _rounded_step(start: Expr, step: Expr, dtype: str) -> Expr:
    """The step as in NumPy: the rounded difference of the first two numbers."""
    if isinstance(start, Literal) and isinstance(step, Literal):
        number = np.dtype(dtype).type
        return Literal(dtype, ((number(start.value) + number(step.value)) - number(start.value)).item())
    return Apply(dtype, _MINUS, (Apply(dtype, IN_ORDER, (start, step)), start))


def _evenly(start: Any, step: Any, *sizes: Any, shape: tuple[Any, ...], dtype: str) -> Any:
    (count,) = filled(shape, iter(sizes))
    if step == 0:
        raise ZeroDivisionError("np.arange: the step is zero")
    start, step = np.asarray(start).astype(dtype), np.asarray(step).astype(dtype)
    if start.dtype.kind == "f":
        step = (start + step) - start
    return (start + np.arange(int(count)).astype(dtype) * step).astype(dtype)


def _evenly_type(start: TensorType, step: TensorType, *sizes: TensorType, shape: tuple[Any, ...], dtype: str) -> TensorType:
    return TensorType(dtype, known_shape(shape))


ARANGE = register(
    SizedCard(
        "arange",
        _evenly,
        _evenly_type,
        Generate(_evenly_dims, _evenly_element),
        samples=lambda: [
            ((2, 3), {"shape": (5,), "dtype": "int64"}),
            ((0, 1, 4), {"shape": (HOLE,), "dtype": "int64"}),
            ((0, 1, 3), {"shape": (HOLE,), "dtype": "int32"}),
            ((np.float64(0.3), np.float64(-0.1), 7), {"shape": (HOLE,), "dtype": "float64"}),
            ((np.float64(-1.7), np.float64(0.3)), {"shape": (6,), "dtype": "float32"}),
        ],
        arrays=2,
        no_gradient="positions are counted, not computed",
    )
)
