"""Evenly spaced states of a loop, as many as there is room for: kept by a loop that does not know its number of steps ahead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.loops import Apply, Expr, Index, Literal, add, both, compare, mul
from ..ir.node import Node, constant
from ..types import TensorType
from .algebra import broadcast_to, call, concatenate, counted, dims_of, expand, indexed, on_axis, taken, total, where
from .card import apply, register
from .checkpoint_schedule import THINNED_STRIDE, thinned_stride
from .elementwise import compiled
from .history import HISTORY
from .lowering import Indices, Operands, Pass, Passes
from .runtime_attributes import HOLE, SizedCard, filled, run_numbers

_NO_ROOM = "thinned: there must be room for a state, and no more than there are places; {0} of {1}"


def _evaluate(initial: Any, result: Any, *numbers: Any, slots: Any, depth: int, has_axis: bool) -> Any:
    n_rows, most = map(int, filled(slots, iter(numbers)))
    if not 1 <= most <= n_rows:
        raise ValueError(_NO_ROOM.format(most, n_rows))
    history = np.concatenate([(initial[:depth] if has_axis else initial[np.newaxis]).astype(result.dtype), result])
    places = range(0, len(result), thinned_stride(len(result), most))
    rows = np.zeros((n_rows, depth, *result.shape[1:]), result.dtype)
    for k, place in enumerate(places):
        rows[k] = history[place : place + depth]
    return rows[:, 0] if depth == 1 else rows


def _infer(initial: TensorType, result: TensorType, *holes: TensorType, slots: Any, depth: int, has_axis: bool) -> TensorType:
    row = initial.shape[1:] if has_axis else initial.shape
    trailing = tuple(a if b is None else b for a, b in zip(row, result.shape[1:], strict=True))
    lead = (None if slots[0] == HOLE else int(slots[0]), *((depth,) if depth > 1 else ()))
    return TensorType(result.dtype, (*lead, *trailing))


def _slots(view: Operands) -> tuple[Index, Index]:
    n_rows, most = run_numbers(view, view.attrs["slots"], 2)
    return n_rows, most


def _dims(view: Operands) -> Indices:
    depth, (n_rows, most) = view.attrs["depth"], _slots(view)
    view.check(both(compare(">=", most, 1), compare("<=", most, n_rows)), "ValueError", _NO_ROOM, most, n_rows)
    return (n_rows, *((depth,) if depth > 1 else ()), *view.dims(1)[1:])


def _passes(view: Operands) -> Sequence[Pass]:
    depth, has_axis, dtype = view.attrs["depth"], view.attrs["has_axis"], view.out.dtype
    steps = view.dims(1)[0]
    stride = Apply("int64", compiled(thinned_stride), (steps, _slots(view)[1]))

    def element(index: Indices) -> Expr:
        k, i, row = index[0], index[1] if depth > 1 else 0, index[2 if depth > 1 else 1 :]
        place = mul(k, stride)

        def row_of_state() -> Expr:
            return view.chosen(
                compare("<", add(place, i), depth),
                lambda: view.at(0, (add(place, i), *row) if has_axis else row, dtype),
                lambda: view.at(1, (add(add(place, i), -depth), *row), dtype),
            )

        return view.chosen(compare("<", place, steps), row_of_state, lambda: Literal(dtype, 0))

    return [Pass(_dims(view), lambda index: index, element)]


def _vjp(node: Node, cotangent: Node) -> tuple[Node | None, ...]:
    """The cotangents of the kept rows, zeros for the rows between them."""
    initial, result = node.inputs[:2]
    depth: Any = node.attr("depth")
    history = apply(HISTORY, initial, result, depth=depth, has_axis=node.attr("has_axis"))
    steps, *row = dims_of(result)
    _, most = filled(node.attr("slots"), iter(node.inputs[2:]))
    stride = apply(THINNED_STRIDE, steps, most if isinstance(most, Node) else constant(most, "int64"))
    place = counted(steps)
    is_kept = expand(call("equal", call("remainder", place, stride), 0), range(1, result.type.rank))
    terms = []
    for i in range(depth):
        part = cotangent if depth == 1 else indexed(cotangent, on_axis(i, 1))
        rows = where(is_kept, taken(part, (call("floor_divide", place, stride),)), 0)
        before, after = (broadcast_to(constant(0, result.type.dtype), (n, *row)) for n in (i, depth - i))
        terms.append(concatenate([before, rows, after] if i else [rows, after]))
    whole = total(terms)
    assert whole is not None
    assert HISTORY.vjp is not None
    return (*HISTORY.vjp(history, whole), *(None for _ in node.inputs[2:]))


_RUN = (np.arange(21.0) / 7).reshape(7, 3)

THINNED = register(
    SizedCard(
        "thinned",
        _evaluate,
        _infer,
        Passes(_dims, _passes),
        samples=lambda: [
            ((np.arange(3.0), _RUN), {"slots": (3, 3), "depth": 1, "has_axis": False}),
            ((np.arange(6.0).reshape(2, 3), _RUN), {"slots": (5, 4), "depth": 2, "has_axis": True}),
            ((np.arange(3.0), _RUN, np.int64(9), np.int64(7)), {"slots": (HOLE, HOLE), "depth": 1, "has_axis": False}),
        ],
        vjp=_vjp,
        linear=(0, 1),
        holder="slots",
        arrays=2,
    )
)
