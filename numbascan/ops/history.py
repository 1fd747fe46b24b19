"""The rows of a state from its first initial row on, which a loop reads at its taps, and its gradient reads again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.loops import add
from ..ir.node import Node
from ..types import TensorType
from .algebra import full_like, incremented, indexed, rows
from .card import Card, register
from .lowering import Indices, Operands, Pass, Passes
from .runtime_attributes import must_equal


def _evaluate(initial: Any, result: Any, depth: int, has_axis: bool) -> Any:
    before = initial[:depth] if has_axis else initial[np.newaxis]
    return np.concatenate([before.astype(result.dtype), result])


def _infer(initial: TensorType, result: TensorType, depth: int, has_axis: bool) -> TensorType:
    row = initial.shape[1:] if has_axis else initial.shape
    trailing = tuple(a if b is None else b for a, b in zip(row, result.shape[1:], strict=True))
    n = result.shape[0]
    return TensorType(result.dtype, (None if n is None else n + depth, *trailing))


def _dims(view: Operands) -> Indices:
    depth, skip = view.attrs["depth"], int(view.attrs["has_axis"])
    n, *trailing = view.dims(1)
    for made, there in zip(trailing, view.dims(0)[skip:], strict=True):
        must_equal(view, there, made, "a state of a loop has length {0} at first and {1} later")
    return (add(n, depth), *trailing)


def _passes(view: Operands) -> Sequence[Pass]:
    depth, has_axis, dtype = view.attrs["depth"], view.attrs["has_axis"], view.out.dtype
    n, *trailing = view.dims(1)

    def first(index: Indices) -> Any:
        return view.at(0, index if has_axis else index[1:], dtype)

    return [
        Pass((depth, *trailing), lambda index: index, first),
        Pass((n, *trailing), lambda index: (add(index[0], depth), *index[1:]), lambda index: view.at(1, index, dtype)),
    ]


def _vjp(node: Node, cotangent: Node) -> tuple[Node, Node]:
    initial, _ = node.inputs
    depth: Any = node.attr("depth")
    if not node.attr("has_axis"):
        return indexed(cotangent, (0,)), rows(cotangent, depth)
    first = rows(cotangent, None, depth)
    if initial.type.shape[0] != depth:  # rows that no tap reaches
        first = incremented(full_like(initial, 0, cotangent.type.dtype), first, ((None, depth, None),))
    return first, rows(cotangent, depth)


HISTORY = register(
    Card(
        "history",
        _evaluate,
        _infer,
        Passes(_dims, _passes),
        samples=lambda: [
            ((np.arange(3.0) / 7, np.arange(12.0).reshape(4, 3) - 5.5), {"depth": 1, "has_axis": False}),
            ((np.arange(9.0).reshape(3, 3) / 7, np.arange(12.0).reshape(4, 3) - 5.5), {"depth": 2, "has_axis": True}),
        ],
        vjp=_vjp,
        linear=(0, 1),
        dim_from=lambda node, axis: [(node.inputs[1], axis)] if axis else [],
    )
)
