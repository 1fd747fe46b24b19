"""Products of three operands in the order that takes the fewest multiplications.

    # before: (cotangent @ Pᵀ) @ Hᵀ          # after: cotangent @ (Pᵀ @ Hᵀ)
    #          4 x 4 x 4 + 4 x 4 x 1                  4 x 4 x 1 + 4 x 4 x 1

A derivative multiplies from the left or the right, whatever the factors are; their order is free as that of its sums is. Products of the
forward step are taken apart only where the backward step computes them again.

Arithmetic: all three operands and both products have one dtype, before and after; the order of products and sums is free.

Not handled:
- operands of several dtypes
- open dimensions
- transposes and other work between two products
- a product that is read twice
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from ..ir.graph import toposort
from ..ir.node import Node
from ..ops.algebra import call
from ..ops.card import Card
from ..ops.contract import labels_of, multiplications
from ..ops.lowering import Contract

Labels = tuple[int, ...]
Factor = tuple[Node, Labels]


def in_cheap_order(outputs: Iterable[Node], leaves: Collection[Node]) -> list[Node]:
    """`outputs` with products of three operands in their cheapest order. What is behind `leaves` stays as it is."""
    outputs = list(outputs)
    order = toposort(outputs, stop=leaves)
    fixed = set(leaves)
    reads = Counter([*outputs, *(parent for node in order if node not in fixed for parent in node.inputs)])
    done: dict[Node, Node] = {}
    for node in order:
        inputs = tuple(done.get(parent, parent) for parent in node.inputs)
        if node in fixed:
            done[node] = node
            continue
        built = node if inputs == node.inputs else node.op.rebuild(node, inputs)
        built.name, built.origin = built.name or node.name, built.origin or node.origin
        free = [k for k, parent in enumerate(node.inputs) if reads[parent] == 1 and parent not in fixed]
        done[node] = _cheapest(built, free) if _is_product(built) else built
    return [done[node] for node in outputs]


def _is_product(node: Node) -> bool:
    return isinstance(node.op, Card) and isinstance(node.op.lower, Contract)


def _cheapest(node: Node, free: Sequence[int]) -> Node:
    """The product, or an equal one of fewer multiplications. Operands in `free` may be taken apart."""
    best, most = node, 0.0
    for k in free:
        if not _is_product(node.inputs[k]) or not _has_one_dtype(node.inputs[k], node):
            continue
        for other in _others(node, k):
            now, then = sum(map(multiplications, (node, node.inputs[k]))), sum(map(multiplications, (other, other.inputs[1])))
            saved = now - then  # NaN where a dimension is open
            if saved > most:
                best, most = other, saved
    return best


def _has_one_dtype(*products: Node) -> bool:
    """True if products and their operands have one dtype. Two narrower operands would be multiplied in theirs."""
    return len({one.type.dtype for product in products for one in (product, *product.inputs)}) == 1


def _others(node: Node, k: int) -> list[Node]:
    """(x y) z as x (y z) and as y (x z), where x y is operand k."""
    (x, y), z = _factors(node, k)
    _, _, out = labels_of(node)
    products = []
    for (first, first_labels), (second, second_labels) in ((x, y), (y, x)):
        labels = {*first_labels, *out}
        inner = tuple(label for label in dict.fromkeys((*second_labels, *z[1])) if label in labels)
        product = call("contract", second, z[0], labels=(second_labels, z[1], inner))
        products.append(call("contract", first, product, labels=(first_labels, inner, out)))
    return products


def _factors(node: Node, k: int) -> tuple[tuple[Factor, Factor], Factor]:
    """The factors of operand k and the other operand, with the labels of the whole product."""
    labels, inner = labels_of(node), node.inputs[k]
    a, b, out = labels_of(inner)
    names = dict(zip(out, labels[k], strict=True))
    unused = 1 + max(max(part, default=0) for part in labels)
    for label in (*a, *b):
        names.setdefault(label, unused + label)
    x, y = ((one, tuple(names[label] for label in part)) for one, part in zip(inner.inputs, (a, b), strict=True))
    return (x, y), (node.inputs[1 - k], labels[1 - k])
