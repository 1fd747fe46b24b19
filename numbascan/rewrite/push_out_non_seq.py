"""PushOutNonSeqScan: work that is the same at every step is done once, before the loop.

Products, sums, factors, arrays, and functions that take many instructions leave. What fails for some values, such as the inverse of a
singular matrix, is computed for a unit matrix where the loop has no step.

Arithmetic: each operation on the same operands as in the step.

Not handled: loops and choices in a step; arithmetic on numbers, which `plan/` puts where it belongs; arithmetic that only broadcasts
vectors to a matrix, since reading the matrix would cost more than making it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..ir.graph import substitute, toposort, users
from ..ir.loop_node import loop_spec
from ..ir.node import INPUT, ITEM, Node, constant_value, new_input
from ..ir.ports import LoopSpec, NonSeq
from ..ops.algebra import call, cast, counted, dims_of, expand, where
from ..ops.card import Card, apply
from ..ops.gradient_identities import DISCONNECTED
from ..ops.lowering import Contract, Elementwise, Fold, Library, Passes, View
from .replace_loops import loop_results, placed, with_loops
from .step_dependence import Dependence, dependences

SMALL = 8  # elements up to which an array lives in locals


def push_out_non_seq(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """`outputs` with such work before the loops."""
    return with_loops(outputs, _changed)


def _changed(loop: Node) -> Sequence[Node] | None:
    spec = loop_spec(loop).opened()
    leaving = _leaving(spec)
    if not leaving:
        return None
    outer = _outside(spec, leaving)
    reads = {node: new_input(value.type, node.name) for node, value in zip(leaving, outer, strict=True)}
    ports = tuple(NonSeq(value, reads[node]) for node, value in zip(leaving, outer, strict=True))
    new = replace(spec, non_seqs=(*spec.non_seqs, *ports))
    writes = tuple(map(_with_line, spec.inner_outputs(), substitute(spec.inner_outputs(), reads)))
    return loop_results(loop, new.with_inner(new.inner_inputs(), writes))


def _with_line(write: Node, inner: Node) -> Node:
    """What stands for a result, with the line of the user's code, which messages name; what a step only reads has none."""
    if inner.op is not INPUT or inner is write:
        return inner
    with placed(write):
        result = apply(DISCONNECTED, inner)
    result.name = write.name
    return result


def _leaving(spec: LoopSpec) -> list[Node]:
    """The values that leave the step: what other values read of the work that is the same at every step."""
    dependence = dependences(spec)
    readers = users(spec.inner_outputs())
    written = set(spec.inner_outputs())
    fixed = [node for node in readers if dependence[node] is Dependence.FIXED]
    ends = [node for node in fixed if node in written or any(dependence[one] > Dependence.FIXED for one in readers[node])]
    leaving: dict[Node, None] = {}
    seen: set[Node] = set()
    while ends:
        node = ends.pop()
        if node in seen or not node.inputs:
            continue
        seen.add(node)
        if _pays(node, readers) and _may_leave(node):
            leaving[node] = None
        else:
            ends += node.inputs
    return list(leaving)


def _may_leave(node: Node) -> bool:
    """Is it made of cards alone?"""
    return len(node.types) == 1 and all(isinstance(one.op, Card) or one.op is ITEM or not one.inputs for one in toposort([node]))


def _pays(node: Node, readers: Mapping[Node, Sequence[Node]]) -> bool:
    card = node.inputs[0].op if node.op is ITEM else node.op
    if not isinstance(card, Card):
        return False
    if isinstance(card.lower, Contract | Fold | Library | Passes):
        return True
    if not isinstance(card.lower, Elementwise) or (not node.type.rank and node.type.kind not in "fc"):
        return False
    if not card.is_cheap:
        return True
    if _only_broadcasts(node):
        return any(isinstance(one.op, Card) and isinstance(one.op.lower, Contract | Library) for one in readers[node])
    return _is_costly(node) or node.type.size is None or node.type.size > SMALL


def _only_broadcasts(node: Node) -> bool:
    """Is no operand as large as the result?"""
    return bool(node.type.rank) and all(parent.type.shape != node.type.shape or _is_generated(parent) for parent in node.inputs)


def _is_generated(node: Node) -> bool:
    """Is it an array that is stored nowhere: a number broadcast, or counted?"""
    while isinstance(node.op, Card) and isinstance(node.op.lower, View):
        node = node.inputs[0]
    return not node.type.rank or node.op.name == "arange"


def _is_costly(node: Node) -> bool:
    """Is there a function of many instructions among what is computed element by element?"""
    stack = [node]
    while stack:
        one = stack.pop()
        if isinstance(one.op, Card) and isinstance(one.op.lower, Elementwise | View):
            if isinstance(one.op.lower, Elementwise) and not one.op.is_cheap:
                return True
            stack += one.inputs
    return False


# outside ------------------------------------------------------------------------------------------------------------


def _outside(spec: LoopSpec, nodes: Sequence[Node]) -> list[Node]:
    """The values as computed before the loop."""
    done: dict[Node, Node] = {port.read: port.outer for port in spec.non_seqs}
    for node in toposort(nodes, stop=list(done)):
        if node not in done:
            inputs = [done[parent] for parent in node.inputs]
            if inputs and isinstance(node.op, Card) and isinstance(node.op.lower, Library) and node.op.lower.core[0][0] == 2:
                inputs[0] = _or_unit(inputs[0], spec.n_steps)
            done[node] = node if tuple(inputs) == node.inputs else node.op.rebuild(node, tuple(inputs))
            done[node].name = done[node].name or node.name
    return [done[node] for node in nodes]


def _or_unit(matrix: Node, n_steps: Node) -> Node:
    """The matrix where there is a step to run, else one of the same shape of which every factor and inverse exists."""
    count = constant_value(n_steps)
    if count is not None and int(count) > 0:
        return matrix
    n, m = (counted(dim) for dim in dims_of(matrix)[-2:])
    unit = where(call("equal", expand(n, (1,)), expand(m, (0,))), 1, 0)
    return where(call("greater", n_steps, 0), matrix, cast(unit, matrix.type.dtype))
