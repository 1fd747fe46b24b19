"""Sums over the steps of products: one product after the loop instead of one per step.

A weight's gradient is a sum of outer products. The factors are traced, and the steps become one more label that is summed over.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ..ir.node import Node
from ..ops.algebra import call, terms_of, unchecked
from ..ops.card import Card
from ..ops.contract import labels_of
from ..ops.lowering import Contract
from ..ops.reshape import reshaped
from .row_shapes import has_one_shape

SMALL = 64  # elements up to which a sum is kept in the loop: it fits the cache, and the factors need not be stored


@dataclass(frozen=True)
class ProductTerm:
    """A term of a sum over steps: the product of two factors, by labels."""

    a: Node
    b: Node
    labels: tuple[tuple[int, ...], ...]

    def summed(self, a_rows: Node, b_rows: Node) -> Node:
        """The sum over all steps from the factors' rows."""
        a, b, out = self.labels
        label = 1 + max(max(part, default=0) for part in self.labels)
        inner = [one for one in a if one in b and one not in out]
        if a[: len(inner)] == b[: len(inner)] == tuple(inner):  # [step, summed, free] -> [step * summed, free]: one product of matrices
            a_rows, b_rows = (_flat(rows, len(inner)) for rows in (a_rows, b_rows))
            a, b = a[len(inner) :], b[len(inner) :]
        return call("contract", a_rows, b_rows, labels=((label, *a), (label, *b), out))


def _flat(rows: Node, count: int) -> Node:
    """Rows with their first `count` axes joined to that of the steps."""
    return reshaped(rows, (-1, *(("dim", axis) for axis in range(1 + count, rows.type.rank)))) if count else rows


def split_products(contribution: Node, fixed: Collection[Node], in_blocks: bool = False) -> tuple[list[Node], list[ProductTerm]]:
    """(other terms, products) whose sum is what a step contributes. `fixed`: the inputs of the step that do not change. `in_blocks`: a step
    does so much that its products of matrices are large already.
    """
    others: list[Node] = []
    products: list[ProductTerm] = []
    for node in terms_of(contribution):
        if _is_outer(node) and not (in_blocks and _sums(node)) and all(has_one_shape(factor, fixed) for factor in node.inputs):
            labels = node.attr("labels")
            assert isinstance(labels, tuple)
            products.append(ProductTerm(node.inputs[0], node.inputs[1], labels))
        else:
            others.append(node)
    return others, products


def factors_of(contribution: Node, fixed: Collection[Node]) -> list[Node]:
    """The factors of the products in a contribution, without checks around them; equal ones are repeated."""
    return [unchecked(factor) for product in split_products(contribution, fixed)[1] for factor in (product.a, product.b)]


def _sums(node: Node) -> bool:
    """True if an axis of both factors is summed over."""
    a, b, out = labels_of(node)
    return not set(a) & set(b) <= set(out)


def _is_outer(node: Node) -> bool:
    """True for a product of one dtype that is larger than SMALL and than its factors together: one product after the loop pays.

    Of open sizes: true where each factor has an axis of the result that the other lacks.
    """
    if not isinstance(node.op, Card) or not isinstance(node.op.lower, Contract):
        return False
    a, b = node.inputs
    labels = node.attr("labels")
    assert isinstance(labels, tuple)
    if not a.type.dtype == b.type.dtype == node.type.dtype:
        return False
    if node.type.size is not None and a.type.size is not None and b.type.size is not None:
        return node.type.size > max(SMALL, a.type.size + b.type.size)
    return not set(labels[2]) <= set(labels[0]) and not set(labels[2]) <= set(labels[1])
