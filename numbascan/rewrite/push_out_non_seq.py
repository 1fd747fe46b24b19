"""PushOutNonSeqScan: work that is the same at every step is done once, before the loop.

Products, sums, factors, arrays, and functions that take many instructions leave. Work that might fail, such as the inverse of a singular
matrix or a product of lengths known at run time only, is done only if there is a step:

    # before: the step reads inv(a), and n_steps may be 0        # after: it reads what stands before: inv(a) if n_steps > 0 else zeros

Arithmetic: each operation on the same operands as in the step.

Not handled:

- work that might fail and whose shape is not known without it, unless there is a step for sure;
- loops in a step, and choices between more than cards;
- arithmetic on numbers, which `plan/` puts where it belongs;
- arithmetic that only broadcasts vectors to a matrix: reading the matrix would cost more than making it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..ir.graph import close, substitute, toposort, users
from ..ir.loop_node import SCAN, loop_spec
from ..ir.node import ARG, CONSTANT, INPUT, ITEM, Node, constant, named, new_input
from ..ir.ports import LoopSpec, NonSeq
from ..ops.algebra import broadcast_to, call, dims_of
from ..ops.card import Card, apply
from ..ops.control import IF_ELSE, branches, if_else_outputs
from ..ops.dims import DIM
from ..ops.elementwise import ADD, MUL, SUB
from ..ops.failing import may_raise
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
    try:
        outer = _outside(spec, leaving)
    except (IndexError, ValueError):  # lengths that do not fit, in a step that may never run
        return None
    if not outer:
        return None
    reads = {node: new_input(value.type, node.name) for node, value in outer.items()}
    ports = tuple(NonSeq(value, reads[node]) for node, value in outer.items())
    new = replace(spec, non_seqs=(*spec.non_seqs, *ports))
    writes = tuple(map(_with_line, spec.inner_outputs(), substitute(spec.inner_outputs(), reads)))
    return loop_results(loop, new.with_inner(new.inner_inputs(), writes))


def _with_line(write: Node, inner: Node) -> Node:
    """The replacement of a result, with the line of the user's code, which messages name: a value that a step only reads has none."""
    if inner.op is not INPUT or inner is write:
        return inner
    with placed(write):
        return named(apply(DISCONNECTED, inner), write.name)


def _leaving(spec: LoopSpec) -> list[Node]:
    """The values that leave the step: of the work that is the same at every step, those that other values read."""
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
    """True if a value is made of cards alone, and of choices between them, such as those that have left a loop in the step."""
    return len(node.types) == 1 and _is_of_cards([node])


def _is_of_cards(outputs: Sequence[Node]) -> bool:
    def is_one(node: Node) -> bool:
        if node.op is IF_ELSE:
            return all(_is_of_cards(branch.outputs) for branch in branches(node))
        return isinstance(node.op, Card) or node.op is ITEM or not node.inputs

    return all(map(is_one, toposort(outputs)))


def _pays(node: Node, readers: Mapping[Node, Sequence[Node]]) -> bool:
    card = node.inputs[0].op if node.op is ITEM else node.op
    if card is IF_ELSE:
        return True
    if not isinstance(card, Card):
        return False
    if isinstance(card.lower, Contract | Fold | Library | Passes):
        return True
    if not isinstance(card.lower, Elementwise) or (not node.type.rank and node.type.kind not in "fc"):
        return False
    if not card.is_cheap:
        return True
    if _is_evenly_spaced(node) and all(reader.op is SCAN for reader in readers[node]):
        return False  # a loop computes the one that it reads
    if _only_broadcasts(node):
        return any(isinstance(one.op, Card) and isinstance(one.op.lower, Contract | Library) for one in readers[node])
    return _is_costly(node) or node.type.size is None or node.type.size > SMALL


def _only_broadcasts(node: Node) -> bool:
    """True if no operand is as large as the result."""
    return bool(node.type.rank) and all(parent.type.shape != node.type.shape or _is_generated(parent) for parent in node.inputs)


def _is_evenly_spaced(node: Node) -> bool:
    """True for evenly spaced numbers: counted ones, times a number, plus a number."""
    if not node.type.rank or node.op.name == "arange":
        return True
    return node.type.dtype == "int64" and node.op in (ADD, SUB, MUL) and all(map(_is_evenly_spaced, node.inputs))


def _is_generated(node: Node) -> bool:
    """True for an array that is stored nowhere: a number that is broadcast, or counted numbers."""
    while isinstance(node.op, Card) and isinstance(node.op.lower, View):
        node = node.inputs[0]
    return not node.type.rank or node.op.name == "arange"


def _is_costly(node: Node) -> bool:
    """True if the elementwise work that makes a value has a function of many instructions."""
    stack = [node]
    while stack:
        one = stack.pop()
        if isinstance(one.op, Card) and isinstance(one.op.lower, Elementwise | View):
            if isinstance(one.op.lower, Elementwise) and not one.op.is_cheap:
                return True
            stack += one.inputs
    return False


# outside ------------------------------------------------------------------------------------------------------------


def _outside(spec: LoopSpec, nodes: Sequence[Node]) -> dict[Node, Node]:
    """The values as computed before the loop, those that might fail only if there is a step. Values that might fail and whose shape is not
    known without them are left out.

    Raises IndexError or ValueError where lengths do not fit.
    """
    values = dict(zip(nodes, _built(spec, nodes), strict=True))
    unsure = [] if spec.has_step else [node for node, value in values.items() if may_raise(value)]
    shapes = {node: [_surely(dim) for dim in dims_of(values[node])] for node in unsure}
    sized = {values[node]: shape for node, shape in shapes.items() if None not in shape}
    asked = dict(zip(sized, _where_there_is_a_step(spec, sized), strict=True))
    return {node: asked.get(value, value) for node, value in values.items() if node not in shapes or value in asked}


def _built(spec: LoopSpec, nodes: Sequence[Node]) -> list[Node]:
    """The values around the loop."""
    done: dict[Node, Node] = {port.read: port.outer for port in spec.non_seqs}
    for node in toposort(nodes, stop=list(done)):
        if node not in done:
            inputs = tuple(done[parent] for parent in node.inputs)
            done[node] = named(node if inputs == node.inputs else node.op.rebuild(node, inputs), node.name)
    return [done[node] for node in nodes]


def _where_there_is_a_step(spec: LoopSpec, shapes: Mapping[Node, Sequence[Node | None]]) -> Sequence[Node]:
    """The values, of such shapes, if there is a step; zeros otherwise."""
    if not shapes:
        return ()
    zeros = [broadcast_to(constant(0, value.type.dtype), [dim for dim in shape if dim is not None]) for value, shape in shapes.items()]
    around = {port.outer for port in spec.non_seqs if port.outer.op is not CONSTANT}
    read = toposort([*shapes, *zeros], stop=list(around))
    operands = sorted({node for node in read if node in around or node.op in (INPUT, ARG)}, key=lambda node: node.serial)
    chosen = if_else_outputs(call("greater", spec.n_steps, 0), operands, close(operands, list(shapes)), close(operands, zeros))
    for value, one in zip(shapes, chosen, strict=True):
        named(one, value.name).origin = one.origin or value.origin
    return chosen


def _surely(dim: Node) -> Node | None:
    """A length that is known without the value; None for any other."""
    return dim if all(map(_is_arithmetic, toposort([dim]))) else None


def _is_arithmetic(node: Node) -> bool:
    is_number = isinstance(node.op, Card) and isinstance(node.op.lower, Elementwise) and not node.type.rank
    return not node.inputs or node.op is DIM or is_number
