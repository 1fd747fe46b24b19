"""The state of a loop after its last step: the last row of its result, or the initial value if there was no step.

So it also serves as the last row of a trace, or another value if there was no step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.loop_node import SCAN, loop_spec
from ..ir.loops import Expr, add, compare
from ..ir.node import Node, constant, constant_value, owner_of
from ..ir.ports import State
from ..types import TensorType
from .algebra import call, dims_of, expand, incremented, rows, where, zeros_like
from .card import Card, apply, register
from .lowering import Generate, Indices, Operands
from .runtime_attributes import must_equal


def _evaluate(initial: Any, result: Any) -> Any:
    return result[-1] if len(result) else np.asarray(initial).astype(result.dtype)


def _infer(initial: TensorType, result: TensorType) -> TensorType:
    shape = tuple(a if b is None else b for a, b in zip(initial.shape, result.shape[1:], strict=True))
    return TensorType(result.dtype, shape)


def _dims(view: Operands) -> Indices:
    there, (_, *made) = view.dims(0), view.dims(1)
    for a, b in zip(there, made, strict=True):
        must_equal(view, a, b, "a state of a loop has length {0} at first and {1} later")
    return there


def _element(view: Operands, index: Indices) -> Expr:
    n, dtype = view.dims(1)[0], view.out.dtype
    return view.chosen(compare(">", n, 0), lambda: view.at(1, (add(n, -1), *index), dtype), lambda: view.at(0, index, dtype))


def _vjp(node: Node, cotangent: Node) -> tuple[Node | None, Node | None]:
    """The cotangent goes to the last row if there is one, else to the initial value."""
    result = node.inputs[1]
    loop = owner_of(result)[0]
    n_steps = loop_spec(loop).n_steps if loop.op is SCAN else dims_of(result)[0]  # `until` leaves at least one step
    known = constant_value(n_steps)
    if known is not None and not known:
        return cotangent, None
    has_steps = call("greater", n_steps, 0)
    first, later = (None, cotangent) if known is not None else (where(has_steps, 0, cotangent), where(has_steps, cotangent, 0))
    last = rows(expand(later, (0,)), None, call("minimum", n_steps, constant(1, "int64")))
    return first, incremented(zeros_like(result), last, ((-1, None, None),))


LAST_STATE = register(
    Card(
        "last_state",
        _evaluate,
        _infer,
        Generate(_dims, _element),
        samples=lambda: [
            ((np.arange(3.0) / 7, np.arange(12.0).reshape(4, 3) - 5.5), {}),
            ((np.arange(3.0) / 7, np.zeros((0, 3))), {}),
            ((np.float64(0.7), np.arange(4.0) - 5.5), {}),
        ],
        vjp=_vjp,
        linear=(0, 1),
        dim_from=lambda node, axis: [(node.inputs[0], axis)],
    )
)


def last_state(initial: Node, result: Node) -> Node:
    """The state with rows `result`, after the last step. initial: its value before the loop, used if the loop does not tell it."""
    state = _state_of(result)
    return apply(LAST_STATE, initial if state is None else state.initial, result)


def is_own_state(node: Node) -> bool:
    """Is a LAST_STATE that of a loop's own state, with the initial value that the loop starts from? Not where there is surely no step."""
    result = node.inputs[1]
    state = _state_of(result)
    if state is None or state.initial is not node.inputs[0]:
        return False
    count = constant_value(loop_spec(owner_of(result)[0]).n_steps)
    return count is None or bool(count)


def _state_of(result: Node) -> State | None:
    """The state of one row that has a node as its rows; None for other nodes."""
    loop, index = owner_of(result)
    if loop.op is not SCAN:
        return None
    spec = loop_spec(loop)
    k = index - len(spec.mit_mots)
    state = spec.states[k] if 0 <= k < len(spec.states) else None
    return None if state is None or state.depth > 1 or state.has_axis else state
