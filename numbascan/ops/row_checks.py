"""Ops for rows that must exist: the checks that a loop makes before it starts, for code without the loop; and windows of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ScanTypeError
from ..ir.loops import Expr, Length, add, both, compare
from ..ir.messages import changed_shape, changed_shape_type
from ..ir.node import Node, constant_value
from ..ir.ports import LoopSpec
from ..types import TensorType
from .algebra import add as plus
from .algebra import dims_of, incremented, same_dims, zeros_like
from .card import Card, register
from .lowering import Indices, Operands, View
from .runtime_attributes import HOLE, SizedCard, enough, filled, must_equal, run_numbers, sized
from .shape import known_shape


def _evaluate(x: Any, needed: int, message: str) -> Any:
    if len(x) < needed:
        raise ValueError(message.format(len(x), needed, 1))
    return x


def _infer(x: TensorType, needed: int, message: str) -> TensorType:
    rows = x.shape[0]
    if rows is not None and rows < needed:
        raise ValueError(message.format(rows, needed, 1))
    return x


def _dims(view: Operands) -> Indices:
    dims = view.dims(0)
    needed = view.attrs["needed"]
    view.check(compare(">=", dims[0], needed), "ValueError", view.attrs["message"], dims[0], needed, 1)
    return dims


AT_LEAST_ROWS = register(
    Card(
        "at_least_rows",  # its operand; in the message {0} rows are there and {1} needed
        _evaluate,
        _infer,
        View(_dims, lambda view, index: index),
        samples=lambda: [((np.arange(6.0).reshape(3, 2) / 7,), {"needed": 3, "message": "{0} rows, {1} needed"})],
        linear=(0,),
        vjp=lambda node, cotangent: (cotangent,),
    )
)


class _KeptShapeCard(SizedCard):
    """Rebuilt with shapes known to be equal, it is the value itself."""

    def rebuilt(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        return _kept_shape(inputs[0], filled(node.attr("shape"), iter(inputs[1:])), node.attr("texts"))


def in_shape(spec: LoopSpec, position: int, write: Node) -> Node:
    """`write`, which a single step makes of state or carry `position`, if it has the shape of the initial value; else the loop's error."""
    n_states = len(spec.states)
    if position < n_states:
        state = spec.states[position]
        entry = dims_of(state.initial)[state.has_axis :]
    else:
        entry = dims_of(spec.carries[position - n_states].shared)
    texts = (changed_shape_type(spec, position), *(changed_shape(spec, position, axis) for axis in range(len(entry))))
    return _kept_shape(write, entry, texts)


def _kept_shape(x: Node, entry: Any, texts: Any) -> Node:
    if all(isinstance(dim, Node) for dim in entry) and same_dims(x, entry):
        return x
    found = sized(KEPT_SHAPE, (x,), entry, texts=texts)
    found.origin = None  # the texts name the line of the step's result
    return found


def _kept(x: Any, *sizes: Any, shape: Any, texts: tuple[str, ...]) -> Any:
    for text, before, after in zip(texts[1:], map(int, filled(shape, iter(sizes))), x.shape, strict=True):
        if before != after:
            raise ScanTypeError(text.format(before, after))
    return x


def _kept_type(x: TensorType, *sizes: TensorType, shape: Any, texts: tuple[str, ...]) -> TensorType:
    entry = x.with_shape(known_shape(shape))
    if any(before != after for before, after in zip(entry.shape, x.shape, strict=True) if before is not None and after is not None):
        raise ScanTypeError(texts[0].format(entry, x))
    return x.with_shape(before if after is None else after for before, after in zip(entry.shape, x.shape, strict=True))


def _kept_dims(view: Operands) -> Indices:
    entry = run_numbers(view, view.attrs["shape"], 1)
    for text, before, after in zip(view.attrs["texts"][1:], entry, view.dims(0), strict=True):
        must_equal(view, before, after, text)
    return tuple(dim if known is None else known for known, dim in zip(view.out.shape, entry, strict=True))


KEPT_SHAPE = register(
    _KeptShapeCard(
        "kept_shape",  # its operand; the texts say that a shape changed from {0} to {1}: texts[0] for types, the others for dimensions
        _kept,
        _kept_type,
        View(_kept_dims, lambda view, index: index),
        samples=lambda: [((np.arange(6.0).reshape(2, 3) - 2.5, 3), {"shape": (2, HOLE), "texts": ("{0} {1}",) * 3})],
        linear=(0,),
        vjp=lambda node, cotangent: (cotangent, *(None,) * (len(node.inputs) - 1)),
    )
)


_OUTSIDE = "rows {0} to {0} + {1} of {2} are asked for"


def _window(x: Any, *numbers: Any, place: Any) -> Any:
    start, count = map(int, filled(place, iter(numbers)))
    if start < 0 or count < 0 or start + count > len(x):
        raise IndexError(_OUTSIDE.format(start, count, len(x)))
    return x[start : start + count]


def _window_dims(view: Operands) -> Indices:
    start, count = run_numbers(view, view.attrs["place"], 1)
    n, *others = view.dims(0)
    is_there = both(
        *(compare(">=", number, 0) for number in (start, count) if isinstance(number, Expr)), compare("<=", add(start, count), n)
    )
    view.check(is_there, "IndexError", _OUTSIDE, start, count, n)
    return (count, *others)


def _window_index(view: Operands, index: Indices) -> Indices:
    return (add(index[0], run_numbers(view, view.attrs["place"], 1)[0]), *index[1:])


def _window_back(node: Node, cotangent: Node) -> tuple[Node | None, ...]:
    start, count = filled(node.attr("place"), iter(node.inputs[1:]))
    stop = start + count if isinstance(start, int) and isinstance(count, int) else plus(start, count)
    return incremented(zeros_like(node.inputs[0]), cotangent, ((start, stop, None),)), *(None for _ in node.inputs[1:])


_X = np.arange(18.0).reshape(6, 3) / 7


def _of_rows(node: Node, axis: int) -> list[tuple[Node, int]]:
    """The operand and axis that a dimension of the rows comes from; none for the number of rows, which changes."""
    return [(node.inputs[0], axis)] if axis else []


WINDOW = register(
    SizedCard(
        "window",  # x[start : start + count], which must exist: no bound is clipped
        _window,
        lambda x, *holes, place: x.with_shape((None if place[1] == HOLE else place[1], *x.shape[1:])).strong(),
        View(_window_dims, _window_index),
        samples=lambda: [((_X,), {"place": (2, 3)}), ((_X, np.int64(1), np.int64(0)), {"place": (HOLE, HOLE)})],
        linear=(0,),
        vjp=_window_back,
        holder="place",
        dim_from=_of_rows,
    )
)


def window(x: Node, start: Node, count: Node) -> Node:
    """`x[start : start + count]`, which must exist."""
    return sized(WINDOW, (x,), (start, count))


def _step_rows(x: Any, *numbers: Any, place: Any, errors: tuple[str, str]) -> Any:
    start, extra, span, n_steps = map(int, filled(place, iter(numbers)))
    if errors and n_steps < 0:
        raise ValueError(errors[0].format(n_steps))
    if errors and len(x) < n_steps + span:
        raise ValueError(errors[1].format(len(x), n_steps + span, n_steps))
    return x[start : start + n_steps + extra]


def _step_rows_dims(view: Operands) -> Indices:
    n, *others = view.dims(0)
    _, extra, span, n_steps = run_numbers(view, view.attrs["place"], 1)
    if view.attrs["errors"]:
        negative, short = view.attrs["errors"]
        if isinstance(n_steps, Expr) and not isinstance(n_steps, Length):
            view.check(compare(">=", n_steps, 0), "ValueError", negative, n_steps)
        if n != add(n_steps, span):
            is_enough, needed = enough(n, n_steps, span)
            view.check(is_enough, "ValueError", short, n, needed, n_steps)
    return (add(n_steps, extra), *others)


def _step_rows_type(x: TensorType, *holes: TensorType, place: Any, errors: tuple[str, str]) -> TensorType:
    return x.with_shape((None if place[3] == HOLE else place[1] + place[3], *x.shape[1:])).strong()


def _step_rows_back(node: Node, cotangent: Node) -> tuple[Node | None, ...]:
    start, extra, _, n_steps = filled(node.attr("place"), iter(node.inputs[1:]))
    region = ((start, plus(n_steps, start + extra), None),)
    return incremented(zeros_like(node.inputs[0]), cotangent, region), *(None for _ in node.inputs[1:])


_ERRORS = ("{0} steps", "{0} rows, {1} needed for {2} steps")

STEP_ROWS = register(
    SizedCard(
        "step_rows",  # x[start : start + n_steps + extra]; x must have n_steps + span rows. No errors: it is known to have them
        _step_rows,
        _step_rows_type,
        View(_step_rows_dims, lambda view, index: (add(index[0], view.attrs["place"][0]), *index[1:])),
        samples=lambda: [
            ((_X,), {"place": (1, 0, 2, 4), "errors": _ERRORS}),
            ((_X, np.int64(3)), {"place": (0, 1, 1, HOLE), "errors": ()}),
        ],
        linear=(0,),
        vjp=_step_rows_back,
        holder="place",
        dim_from=_of_rows,
    )
)


def is_window(x: Node, count: Node) -> bool:
    """True if `x` is a window known to have `count` rows."""
    if x.op is not WINDOW:
        return False
    found = filled(x.attr("place"), iter(x.inputs[1:]))[1]
    return found is count or (isinstance(found, int) and constant_value(count) is not None and int(constant_value(count)) == found)  # type: ignore[arg-type]
