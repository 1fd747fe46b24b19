"""PushOutDot1: a sum over the steps of outer products, of which the end alone is read, is one product of matrices behind the loop.

    # before: S[t] = S[t-1] + outer(a[t], b[t])        # after: S = S[-1] + a.T @ b, from the rows of a and b

The factors are traced. Not handled: products that are no larger than their factors, factors of another dtype than the sum, sums within
products of more than one axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from ..ir.graph import toposort, users
from ..ir.node import Node, outputs_of
from ..ir.ports import Carry, LoopSpec, State, Trace, scan_node
from ..ir.respecialise import settled
from ..ops.algebra import broadcast_to, call, cast, dims_of, indexed, total
from ..ops.reshape import reshaped
from .replace import opened, placed, with_results
from .split import reads_of, recurrent, row_writes
from .step import has_op

Change = tuple[dict[Node, Sequence[Node]], dict[Node, Node]]  # what stands for the results of a loop, and for nodes that read them

SMALL = 64  # elements up to which a sum stays in the loop: it lies in the cache, and the factors need not be stored
ASSUMED = 32  # what a dimension that only the run knows is taken for
MEMORY = 4  # the rows of the factors may take so many times the memory of the rows that there are


def push_out_dot(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """`outputs` with such sums behind the loops."""
    plain = tuple(outputs)
    while (found := _first_change(plain)) is not None:
        plain = with_results(plain, *found)
    return plain


def _first_change(outputs: Sequence[Node]) -> Change | None:
    """What replaces the results of a loop, and some of their readers; None where nothing is left to do."""
    readers = users(outputs)
    for loop in toposort(outputs):
        if not has_op(loop, "contract"):
            continue
        spec = opened(loop)
        results = outputs_of(loop)
        own = [*results[: len(spec.states)], *results[len(results) - len(spec.carries) :]]
        for port, result in zip(recurrent(spec), own, strict=True):
            ends = None if result in outputs else [one for one in readers.get(result, []) if one.op.name != "dim"]
            products, others = _terms(spec, port)
            if products and (isinstance(port, Carry) or (_reads_end(ends) and not port.has_axis)) and _has_room(spec, products):
                return _replaced(loop, spec, port, products, others, ends or [])
    return None


def _reads_end(readers: Sequence[Node] | None) -> bool:
    """Is the last row all that is read?"""
    return bool(readers) and all(one.op.name == "index" and len(one.inputs) == 1 and _entries(one)[:1] == (-1,) for one in readers or ())


def _entries(reader: Node) -> tuple[object, ...]:
    spec = reader.attr("spec")
    assert isinstance(spec, tuple)
    return spec


def _terms(spec: LoopSpec, port: State | Carry) -> tuple[list[Node], list[Node]]:
    """(outer products, other terms) that a step adds to a sum that it reads for nothing else; nothing where it is no such sum."""
    (read, *more), readers = reads_of(port), users(spec.inner_outputs())
    if more or (isinstance(port, State) and port.taps != (-1,)) or spec.inner_outputs().count(port.write) > 1 or port.write is read:
        return [], []
    products: list[Node] = []
    others: list[Node] = []
    sums: set[Node] = set()
    stack = [port.write]
    while stack:
        node = stack.pop()
        if node.op.name in ("add", "accumulate") and all(parent.type == node.type for parent in node.inputs):
            sums.add(node)
            stack += node.inputs
        elif node is not read:
            (products if _is_outer(node) else others).append(node)
    node = read
    while node is not port.write:  # each partial sum is read by the next one alone
        if len(readers.get(node, ())) != 1 or readers[node][0] not in sums:
            return [], []
        (node,) = readers[node]
    return ([], []) if readers[port.write] else (products, others)


def _is_outer(node: Node) -> bool:
    """Is it a product that is larger than its factors together, with at most one axis summed, the first of both?"""
    labels = node.attr("labels") if node.op.name == "contract" else None
    if not isinstance(labels, tuple) or any(parent.type.dtype != node.type.dtype for parent in node.inputs) or node.type.kind not in "fc":
        return False
    a, b, out = labels
    summed = [label for label in a if label in b]
    is_matrix = len(out) == 2 and len(a) == len(b) == 1 + len(summed) and list(a[:-1]) == list(b[:-1]) == summed and len(summed) < 2
    return is_matrix and _size(node) > max(SMALL, sum(map(_size, node.inputs)))


def _has_room(spec: LoopSpec, products: Sequence[Node]) -> bool:
    """Is the memory for the rows of the factors in proportion to that of the rows that there are?"""
    there = sum(map(_size, row_writes(spec))) + sum(_size(seq.reads[0]) for seq in spec.seqs)
    new = {factor for product in products for factor in product.inputs} - set(row_writes(spec))
    return sum(map(_size, new)) <= MEMORY * there


def _size(node: Node) -> int:
    """Elements of a value, about."""
    return prod(ASSUMED if dim is None else dim for dim in node.type.shape)


# what replaces it ---------------------------------------------------------------------------------------------------


def _replaced(
    loop: Node, spec: LoopSpec, port: State | Carry, products: Sequence[Node], others: Sequence[Node], ends: Sequence[Node]
) -> Change:
    """The loop with the factors traced, and the sum behind it. Other terms are still added in the loop."""
    rest = replace(port, write=_sum([reads_of(port)[0], *others]))
    left = [rest if one is port else one for one in recurrent(spec) if one is not port or others]
    factors = list(dict.fromkeys(factor for product in products for factor in product.inputs))
    new = replace(
        spec,
        states=tuple(one for one in left if isinstance(one, State)),
        traces=(*spec.traces, *map(Trace, factors)),
        carries=tuple(one for one in left if isinstance(one, Carry)),
    )
    node = scan_node(settled(new))
    node.origin = node.origin or loop.origin
    found = iter(outputs_of(node))

    def results(ports: Sequence[State | Carry]) -> list[Node]:
        return [next(found) if one is not port or others else loop for one in ports]

    states, traces = results(spec.states), [next(found) for _ in spec.traces]
    rows = {factor: next(found) for factor in factors}
    carried = results(spec.carries)
    summed = [_summed(product, rows) for product in products]
    if isinstance(port, Carry):
        place = spec.carries.index(port)
        carried[place] = _sum([carried[place] if others else cast(port.shared, port.write.type.dtype), *summed])
        return {loop: [*states, *traces, *carried]}, {}
    result = states[spec.states.index(port)] if others else broadcast_to(port.initial, (spec.n_steps, *dims_of(port.initial)))
    end = _sum([indexed(cast(result, port.write.type.dtype), (-1,)), *summed])  # an error where there is no step, as before
    return {loop: [*states, *traces, *carried]}, {one: indexed(end, rest_) if (rest_ := _entries(one)[1:]) else end for one in ends}


def _sum(terms: Sequence[Node]) -> Node:
    found = total(terms)
    assert found is not None
    return found


def _summed(product: Node, rows: Mapping[Node, Node]) -> Node:
    """The sum of a product over all steps."""
    with placed(product):
        flat = [_flat(rows[factor], factor.type.rank - 1) for factor in product.inputs]
        labels = product.attr("labels")
        assert isinstance(labels, tuple)
        a, b, out = labels
        step = 1 + max(*a, *b)
        return call("contract", *flat, labels=((step, a[-1]), (step, b[-1]), out))


def _flat(rows: Node, is_matrix: int) -> Node:
    """The rows of matrices as rows of vectors."""
    return reshaped(rows, (-1, ("dim", 2))) if is_matrix else rows
