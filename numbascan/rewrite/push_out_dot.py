"""PushOutDot1: a sum of outer products over the steps, of which only the end is read, becomes one matrix product after the loop.

    # before: S[t] = S[t-1] + outer(a[t], b[t])        # after: S = S[-1] + a.T @ b, from the rows of a and b

The factors are traced.

Arithmetic: factors, products and the sum over the steps have the dtype of S. Each element of a product is one element of `a` times one of
`b`, as the step has it; the sum over the steps is in any order, as are the terms that the step adds to S one after the other.

Not handled:

- products that are no larger than their factors;
- factors of another dtype than S, which would be added up in theirs;
- a product times a number, `k * outer(a, b)`: `k * a` may overflow;
- a product within a sum that is added to S as one term: the other terms may cancel it;
- sums within products of more than one axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..ir.graph import toposort, users
from ..ir.loop_node import SCAN, loop_spec
from ..ir.node import Node, outputs_of
from ..ir.ports import IN_BLOCKS, Carry, LoopSpec, State, Trace
from ..ops.algebra import broadcast_to, call, cast, dims_of, indexed, total
from ..ops.index_entries import FULL
from ..ops.reshape import reshaped
from ..ops.sum_to import rows_to
from ..types import TensorType
from .loop_distribution import reads_of, recurrent, row_writes
from .replace_loops import Change, changed_repeatedly, loop_results, placed
from .step_dependence import about_size

SUMS = ("add", "accumulate")
SMALL = 64  # elements up to which a sum stays in the loop: it lies in the cache, and the factors need not be stored
MEMORY = 4  # times the memory of the rows that exist, which the rows of the factors may take


def push_out_dot(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """`outputs` with such sums behind the loops."""
    return changed_repeatedly(outputs, _first_change)


_MISFIT = "add: operands do not broadcast: dimension {} is {{1}} in one and {{0}} in another"


@dataclass(frozen=True)
class Outer:
    """A product of every element of `left` with every one of `right`; of matrices, summed over the first axis of both."""

    node: Node
    left: Node
    right: Node

    def summed(self, rows: Mapping[Node, Node], dims: Sequence[Node], has_step: bool) -> Node:
        """The sum over all steps, to be added to an array of dimensions `dims`, which the rows get if the loop may have no step."""
        with placed(self.node):
            factors = [rows[self.left], rows[self.right]]
            if not has_step:
                factors = [
                    rows_to(one, (*dims_of(one)[:-1], dim), _MISFIT.format(axis), sums=False)
                    for axis, (one, dim) in enumerate(zip(factors, dims, strict=True))
                ]
            left, right = map(_flat, factors)
            return call("contract", left, right, labels=((0, 1), (0, 2), (1, 2)))


def _flat(rows: Node) -> Node:
    """The rows of matrices as rows of vectors."""
    return reshaped(rows, (-1, ("dim", 2))) if rows.type.rank == 3 else rows


def _first_change(outputs: Sequence[Node]) -> Change | None:
    """What replaces the results of a loop, and some of their readers; None where nothing is left to do."""
    readers = users(outputs)
    for loop in toposort(outputs):
        if loop.op is not SCAN or not any(port.write.op.name in SUMS for port in recurrent(loop_spec(loop))):
            continue
        spec, results = loop_spec(loop).opened(), outputs_of(loop)
        if (IN_BLOCKS, True) in spec.notes:
            continue
        own = [*results[: len(spec.states)], *results[len(results) - len(spec.carries) :]]
        for port, result in zip(recurrent(spec), own, strict=True):
            ends = [] if result in outputs else [one for one in readers.get(result, []) if one.op.name != "dim"]
            if isinstance(port, Carry) or _is_end_read(port, ends):
                products, others = _terms(spec, port)
                if products and _has_room(spec, products):
                    return _replaced(loop, spec, port, products, others, ends)
    return None


def _is_end_read(state: State, readers: Sequence[Node]) -> bool:
    """True if only the last row is read of a state that starts with one row."""
    if state.has_axis or not readers:
        return False
    return all(one.op.name == "index" and len(one.inputs) == 1 and _entries(one)[:1] == (-1,) for one in readers)


def _entries(reader: Node) -> tuple[object, ...]:
    spec = reader.attr("spec")
    assert isinstance(spec, tuple)
    return spec


def _terms(spec: LoopSpec, port: State | Carry) -> tuple[list[Outer], list[Node]]:
    """(outer products, other terms) that a step adds to a sum that it reads for nothing else; nothing where it is no such sum."""
    (node,), readers = reads_of(port), users(spec.inner_outputs())
    if spec.inner_outputs().count(port.write) > 1 or readers[port.write]:
        return [], []
    products: list[Outer] = []
    others: list[Node] = []
    while node is not port.write:  # each partial sum is read by the next one alone
        term = _added(node, readers.get(node, ()), port.write.type)
        if term is None:
            return [], []
        (node,) = readers[node]
        product = _outer(term, port.write.type.dtype)
        if product is None:
            others.append(term)
        else:
            products.append(product)
    return products, others


def _added(partial: Node, readers: Sequence[Node], type_: TensorType) -> Node | None:
    """The term that the one reader of a partial sum adds to it; None where it does something else, or adds in another dtype."""
    if len(readers) != 1 or readers[0].op.name not in SUMS or readers[0].type != type_ or partial.type.dtype != type_.dtype:
        return None
    others = [one for one in readers[0].inputs if one is not partial]
    return others[0] if len(others) == 1 else None


def _outer(node: Node, dtype: str) -> Outer | None:
    """The value as an outer product in a dtype; None where it is none, is made in another one, or is no larger than its factors."""
    product = _contracted(node) if node.op.name == "contract" else _multiplied(node) if node.op.name == "multiply" else None
    if product is None or node.type.kind not in "fc":
        return None
    if any(one.type.dtype != dtype for one in (node, product.left, product.right)):
        return None
    return product if about_size(node) > max(SMALL, about_size(product.left) + about_size(product.right)) else None


def _contracted(node: Node) -> Outer | None:
    labels = node.attr("labels")
    assert isinstance(labels, tuple)
    a, b, out = labels
    summed = [label for label in a if label in b]
    if len(out) != 2 or not len(a) == len(b) == 1 + len(summed) < 3 or not list(a[:-1]) == list(b[:-1]) == summed:
        return None
    return Outer(node, *(node.inputs if out[0] == a[-1] else node.inputs[::-1]))


def _multiplied(node: Node) -> Outer | None:
    """`a[:, None] * b`."""
    for x, y in (node.inputs, node.inputs[::-1]):
        if not y.type.rank:
            return None
        if x.op.name == "index" and x.attr("spec") in _COLUMNS and x.inputs[0].type.rank == 1:
            row = y.inputs[0] if y.op.name == "index" and y.attr("spec") in _ROWS else y
            return Outer(node, x.inputs[0], row) if row.type.rank == 1 else None
    return None


_COLUMNS, _ROWS = ((FULL, "newaxis"),), (("newaxis",), ("newaxis", FULL))


def _has_room(spec: LoopSpec, products: Sequence[Outer]) -> bool:
    """True if the memory for the rows of the factors is in proportion to that of the rows that exist."""
    there = sum(map(about_size, row_writes(spec))) + sum(about_size(seq.reads[0]) for seq in spec.seqs)
    new = {factor for product in products for factor in (product.left, product.right)} - set(row_writes(spec))
    return sum(map(about_size, new)) <= MEMORY * there


# what replaces it ---------------------------------------------------------------------------------------------------


def _replaced(
    loop: Node, spec: LoopSpec, port: State | Carry, products: Sequence[Outer], others: Sequence[Node], ends: Sequence[Node]
) -> Change:
    """The loop with the factors traced, and the sum behind it. Other terms are still added in the loop."""
    rest = replace(port, write=_sum([reads_of(port)[0], *others]))
    left = [rest if one is port else one for one in recurrent(spec) if one is not port or others]
    factors = list(dict.fromkeys(factor for product in products for factor in (product.left, product.right)))
    new = replace(
        spec,
        states=tuple(one for one in left if isinstance(one, State)),
        traces=(*spec.traces, *map(Trace, factors)),
        carries=tuple(one for one in left if isinstance(one, Carry)),
    )
    moved = iter(loop_results(loop, new))

    def results(ports: Sequence[State | Carry]) -> list[Node]:
        return [next(moved) if one is not port or others else loop for one in ports]

    states, traces = results(spec.states), [next(moved) for _ in spec.traces]
    rows = {factor: next(moved) for factor in factors}
    carried = results(spec.carries)
    dims = dims_of(port.shared) if isinstance(port, Carry) else dims_of(port.initial)
    summed = [product.summed(rows, dims, spec.has_step) for product in products]
    if isinstance(port, Carry):
        place = spec.carries.index(port)
        carried[place] = _sum([carried[place] if others else cast(port.shared, port.write.type.dtype), *summed])
        return {loop: [*states, *traces, *carried]}, {}
    place = spec.states.index(port)
    if not others:  # the initial value at every step: the same dimensions, and the same error where there is no step
        steps = spec.n_steps if spec.until is None else dims_of(rows[factors[0]])[0]
        states[place] = broadcast_to(cast(port.initial, port.write.type.dtype), (steps, *dims_of(port.initial)))
    end = _sum([indexed(states[place], (-1,)), *summed])
    return {loop: [*states, *traces, *carried]}, {one: indexed(end, rest_) if (rest_ := _entries(one)[1:]) else end for one in ends}


def _sum(terms: Sequence[Node]) -> Node:
    value = total(terms)
    assert value is not None
    return value
