"""What the values of a step depend on, and the same values outside of it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from math import prod

from ..ir.graph import leaves, substitute, toposort
from ..ir.loop_node import SCAN, loop_spec, scan_node
from ..ir.messages import negative_steps, short_sequence
from ..ir.node import Node, constant, owner_of
from ..ir.ports import LoopSpec, Seq, Trace
from ..ir.respecialise import settled
from ..ops.algebra import add, dims_of, same_dims
from ..ops.history import HISTORY
from ..ops.row_checks import STEP_ROWS
from ..ops.runtime_attributes import filled, sized

ASSUMED = 32  # the assumed length of a dimension that is known at run time only
BACKWARDS = ((None, None, -1),)  # the index that reads rows from the last to the first


class Dependence(IntEnum):
    """What a value of a step depends on, at most."""

    FIXED = 0  # non-sequences: it is the same at every step
    ROWS = 1  # also sequences: no step has to wait for the one before
    MOVING = 2  # also states


def has_op(node: Node, name: str) -> bool:
    """True for a loop with an op of this name in its step, inner graphs not searched."""
    return node.op is SCAN and any(one.op.name == name for one in toposort(loop_spec(node).inner_outputs()))


def dependences(spec: LoopSpec) -> dict[Node, Dependence]:
    """The dependence of each value of the step, its inputs included."""
    result = dict.fromkeys(spec.inner_inputs(), Dependence.MOVING)
    result |= {port.read: Dependence.FIXED for port in spec.non_seqs}
    result |= {read: Dependence.ROWS for port in spec.seqs for read in port.reads}
    for node in toposort(spec.inner_outputs(), stop=list(result)):
        if node not in result:
            result[node] = max((result[parent] for parent in node.inputs), default=Dependence.FIXED)
    return result


def fixed_outside(spec: LoopSpec, node: Node) -> Node:
    """A FIXED value of the step, as a value of the graph around the loop."""
    return substitute([node], {port.read: port.outer for port in spec.non_seqs})[0]


def rows_outside(spec: LoopSpec, node: Node) -> Node:
    """A value that depends on ROWS alone, at all steps, as a value of the graph around the loop. The loop must not end early."""
    for seq in spec.seqs:
        for tap, read in zip(seq.taps, seq.reads, strict=True):
            if read is node:
                return rows_read(spec, seq, tap, tap)
    used = set(toposort([node]))
    seqs = [_of_taps(spec, seq, reads) for seq in spec.seqs if (reads := [read for read in seq.reads if read in used])]
    loop = LoopSpec(
        n_steps=spec.n_steps,
        seqs=tuple(seqs),
        traces=(Trace(node),),
        non_seqs=tuple(port for port in spec.non_seqs if port.read in used),
        name=spec.name,
    )
    return scan_node(settled(loop))


def rows_read(spec: LoopSpec, seq: Seq, first: int, last: int) -> Node:
    """The rows of a sequence from that of tap `first` at the first step to that of tap `last` at the last one.

    Too few rows raise the same error as in the loop.
    """
    start = seq.before + first
    if start == 0 and first == last and has_rows(seq.outer, spec.n_steps):
        return seq.outer
    place = (start, last - first, seq.span, spec.n_steps)
    errors = () if is_long_enough(spec, seq) else (negative_steps(spec), short_sequence(spec, seq))
    checked = sized(STEP_ROWS, (seq.outer,), place, errors=errors)
    checked.origin = None  # its errors are those of the loop, which name no line
    return checked


def has_rows(x: Node, count: Node) -> bool:
    """True if `x` surely has `count` rows."""
    if x.op is STEP_ROWS:
        _, extra, _, n_steps = filled(x.attr("place"), iter(x.inputs[1:]))
        return extra == 0 and n_steps is count
    loop = _loop_counted(dims_of(x)[0])
    return same_dims(x, (count, *dims_of(x)[1:])) or (loop is not None and loop is _loop_counted(count))


def n_rows(x: Node) -> Node:
    """The number of rows of a sequence; for the rows of a state with its initial ones, from the loop's result and the depth."""
    while x.op.name == "index" and x.attr("spec") == BACKWARDS:
        x = x.inputs[0]
    if x.op is not HISTORY:
        return dims_of(x)[0]
    return add(dims_of(x.inputs[1])[0], constant(x.number("depth"), "int64"))


def _loop_counted(count: Node) -> Node | None:
    """The loop that ran `count` steps, where `count` is the number of rows of a state or trace of it; else None."""
    if count.op.name != "dim" or count.attr("axis") != 0:
        return None
    rows = count.inputs[0]
    loop, index = owner_of(rows)
    if loop.op is not SCAN:
        return None
    spec = loop_spec(loop)
    return loop if index < len(spec.states) + len(spec.traces) and not spec.mit_mots else None


def is_long_enough(spec: LoopSpec, seq: Seq) -> bool:
    """True if a sequence surely has the rows that the steps read."""
    if seq.span == 0:
        return has_rows(seq.outer, spec.n_steps) or dims_of(seq.outer)[0] in _least_of(spec.n_steps)
    outer = seq.outer
    while outer.op.name == "index" and outer.attr("spec") == BACKWARDS:
        outer = outer.inputs[0]
    return outer.op is HISTORY and outer.attr("depth") == seq.span and has_rows(outer.inputs[1], spec.n_steps)


def _least_of(node: Node) -> list[Node]:
    """The numbers whose minimum this one is."""
    return leaves(node, lambda one: one.op.name == "minimum")


def _of_taps(spec: LoopSpec, seq: Seq, reads: Sequence[Node]) -> Seq:
    """The sequence with some of its taps."""
    taps = [tap for tap, read in zip(seq.taps, seq.reads, strict=True) if read in reads]
    return Seq(rows_read(spec, seq, min(taps), max(taps)), tuple(tap - min(taps) for tap in taps), tuple(reads))


def about_size(node: Node) -> int:
    """The approximate number of elements of a value."""
    return prod(ASSUMED if dim is None else dim for dim in node.type.shape)
