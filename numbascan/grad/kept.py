"""What a backward step does not compute again: values of the forward step that are kept in a trace."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..ir.graph import toposort
from ..ir.node import ITEM, Node
from ..ops.card import Card
from ..ops.lowering import Contract, Library

KEPT_PRODUCTS = 64  # a contraction of fewer multiplications is computed again: storing and loading its result costs as much


def kept_values(backward: Sequence[Node], forward: Sequence[Node], inputs: Collection[Node], stored: Collection[Node]) -> list[Node]:
    """The contractions and factorisations of the forward step that the backward step reads, but for what is `stored` anyway."""
    heavy = {node for node in toposort(forward, stop=inputs) if _is_heavy(node)} - set(stored)
    return [node for node in toposort(backward, stop={*heavy, *stored}) if node in heavy]


def _is_heavy(node: Node) -> bool:
    if len(node.types) > 1:
        return False
    source = node.inputs[0] if node.op is ITEM else node
    if not isinstance(source.op, Card):
        return False
    if isinstance(source.op.lower, Library):
        return True
    return isinstance(source.op.lower, Contract) and _products(source) > KEPT_PRODUCTS


def _products(node: Node) -> float:
    """How many multiplications a contraction takes; infinitely many where a dimension is open."""
    (a, b), labels = node.inputs, node.attr("labels")
    assert isinstance(labels, tuple)
    extents = dict(zip(labels[0] + labels[1], a.type.shape + b.type.shape, strict=True))
    count = 1.0
    for dim in extents.values():
        count = float("inf") if dim is None else count * dim
    return count
