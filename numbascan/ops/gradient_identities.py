"""Identities that matter only to derivatives, which end there or are zero. Their value is their first operand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..ir.node import Node
from .algebra import zeros_like
from .card import Card, apply, register
from .lowering import Indices, Operands, View


def _identity(name: str, vjp: Any, jvp: Any, n_operands: int = 1, kind: type[Card] = Card) -> Card:
    return register(
        kind(
            name,
            lambda x, *others, **attrs: x,
            lambda x, *others, **attrs: x.strong(),
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


def _linked_jvp(node: Node, tangent: Node | None, *others: Node | None) -> Node:
    return zeros_like(node) if tangent is None else tangent


class _LinkedCard(Card):
    """Rebuilt, it drops its costs: only readers of the graph as the user made it need them."""

    def rebuilt(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        return apply(self, *inputs) if len(inputs) > 1 else inputs[0]


LINKED = _identity("linked", _linked_vjp, _linked_jvp, 2, _LinkedCard)
"""Its first operand, a derivative that is the same for every value of the others: its own derivative with respect to them is zero.

The attribute `costs` holds the values that were differentiated. Their inputs count as used, even if none is left in the derivative.
"""


class _CopyCard(Card):
    """Rebuilt, it is its operand: it serves only to take derivatives with respect to it, or to hold it constant."""

    def rebuilt(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        return inputs[0]


COPY = _identity("copied", lambda node, cotangent: (cotangent,), lambda node, tangent: tangent, 1, _CopyCard)
"""Its operand, as a variable of its own: derivatives with respect to one are not those with respect to the other."""


def derivative_of(costs: Sequence[Node], value: Node) -> Node:
    """`value`, a derivative of `costs`, as a node that names them."""
    operands = value.inputs if value.op is LINKED else (value,)
    return apply(LINKED, *operands, costs=tuple(dict.fromkeys((*costs_of(value), *costs))))


def costs_of(node: Node) -> tuple[Node, ...]:
    """The costs that a node names itself a derivative of; none for other nodes."""
    costs = node.params.get("costs") if node.op is LINKED else None
    return costs if isinstance(costs, tuple) else ()


def behind(outputs: Iterable[Node], stop: Iterable[Node] = ()) -> set[Node]:
    """All nodes used for `outputs`: what they need, and what the costs of the derivatives among these need. The search ends at `stop`."""
    blocked, reached, stack = set(stop), set[Node](), list(outputs)
    while stack:
        node = stack.pop()
        if node not in reached:
            reached.add(node)
            stack += () if node in blocked else (*node.inputs, *costs_of(node))
    return reached


LINKS = frozenset({DISCONNECTED, ZERO_GRAD, LINKED, COPY})
