"""Dimensions of nodes as nodes."""

from __future__ import annotations

from typing import Any

from ..ir.node import Node, constant
from .card import Card, apply
from .lowering import Elementwise, Fold
from .shape import DIM
from .spec import FULL, for_all_axes


def dim_node(node: Node, axis: int) -> Node:
    """A dimension as a node: a Python number where it is fixed, else asked of the value that has it first.

    Asking further back keeps a value that is only measured from being computed.
    """
    while True:
        known = node.type.shape[axis]
        if known is not None:
            return constant(known, "int64", weak=True)
        behind = _same_dim(node, axis)
        if behind is None:
            return apply(DIM, node, axis=axis)
        node, axis = behind


def _same_dim(node: Node, axis: int) -> tuple[Node, int] | None:
    """The operand and axis that an unknown dimension is taken from; None where it is the node's own."""
    card = node.op
    if not isinstance(card, Card):
        return None
    if isinstance(card.lower, Elementwise):
        for parent in node.inputs:
            position = axis - node.type.rank + parent.type.rank
            if position >= 0 and parent.type.shape[position] is None:
                return parent, position
    if isinstance(card.lower, Fold):
        return node.inputs[0], axis if card.lower.cumulative else _kept_axis(node, axis)
    if card.name == "transpose":
        axes: Any = node.attr("axes")
        return node.inputs[0], axes[axis]
    if card.name in ("set_subtensor", "inc_subtensor"):
        return node.inputs[0], axis
    if card.name == "index":
        return _through_index(node, axis)
    return None


def _kept_axis(node: Node, axis: int) -> int:
    reduced: Any = node.attr("axis")
    is_full = bool(node.attr("keepdims")) or node.type.rank == node.inputs[0].type.rank
    return axis if is_full else [k for k in range(node.inputs[0].type.rank) if k not in reduced][axis]


def _through_index(node: Node, axis: int) -> tuple[Node, int] | None:
    """Behind `x[:, …]` the dimension is that of x."""
    spec: Any = node.attr("spec")
    result, source = 0, 0
    for entry in for_all_axes(spec, node.inputs[0].type.rank):
        is_shown = isinstance(entry, tuple) or entry == "newaxis"
        if is_shown and result == axis:
            return (node.inputs[0], source) if entry == FULL else None
        result += is_shown
        source += entry != "newaxis"
    return None
