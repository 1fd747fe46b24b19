"""Identities that say how derivatives go on: not at all, or as zero. Without derivatives they are their first operand."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.node import Node
from .algebra import zeros_like
from .card import Card, register
from .lowering import Indices, Operands, View


def _identity(name: str, vjp: Any, jvp: Any, n_operands: int = 1) -> Card:
    return register(
        Card(
            name,
            lambda x, *others: x,
            lambda x, *others: x.strong(),
            View(_own_dims, lambda view, index: index, keeps_dims=True),
            samples=lambda: [((np.arange(3.0) - 1.5,) * n_operands, {})],
            vjp=vjp,
            jvp=jvp,
        )
    )


def _own_dims(view: Operands) -> Indices:
    return view.dims(0)


DISCONNECTED = _identity("disconnected_grad", lambda node, cotangent: (None,), lambda node, tangent: None)
"""Its operand, which derivatives take as a constant."""

ZERO_GRAD = _identity("zero_grad", lambda node, cotangent: (zeros_like(node.inputs[0]),), lambda node, tangent: zeros_like(node))
"""Its operand; derivatives with respect to it are zero."""


def _linked_vjp(node: Node, cotangent: Node) -> tuple[Node | None, ...]:
    return (cotangent, *map(zeros_like, node.inputs[1:]))


LINKED = _identity("linked", _linked_vjp, lambda node, tangent, *others: zeros_like(node) if tangent is None else tangent, 2)
"""Its first operand, a derivative that is the same for every value of the others: its own derivative with respect to them is zero."""

LINKS = frozenset({DISCONNECTED, ZERO_GRAD, LINKED})
