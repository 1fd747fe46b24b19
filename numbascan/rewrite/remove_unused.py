"""Ports of a loop that nobody needs go: results that nobody reads, with the work for them; inputs that no step reads, or only measures;
traces of rows that are there already; carries that no step changes. Constants move into the step, where they fold.

A sequence that is too short stays an error: where only the run can tell, one that nobody reads leaves its length behind.

Not handled: traces of sequences in loops that end early; states whose initial rows only the run can count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir.graph import substitute, toposort, users
from ..ir.loop_node import SCAN, loop_spec, scan_node
from ..ir.node import ARG, CONSTANT, INPUT, Node, new_input, outputs_of
from ..ir.ports import Carry, LoopSpec, NonSeq, Seq, State, Trace, row_of
from ..ir.respecialise import settled
from ..ops.algebra import cast, counted, dims_of, rows, unchecked
from ..ops.card import FOLD_LIMIT, apply
from ..ops.history import HISTORY
from .loop_distribution import behind, reads_of
from .replace_loops import opened, reads_few_rows, with_results
from .step_dependence import is_long_enough, n_rows, rows_read


def remove_unused(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """`outputs` with loops of which every port is needed."""
    plain = tuple(outputs)
    while (found := _first_change(plain)) is not None:
        plain = with_results(plain, found, {})
    return plain


def _first_change(outputs: tuple[Node, ...]) -> dict[Node, Sequence[Node]] | None:
    """What stands for the results of a loop that has ports too many. The last loops first: what they do not read, others need not make."""
    readers = users(outputs)
    for loop in reversed(toposort(outputs)):
        if loop.op is not SCAN or loop_spec(loop).mit_mots:
            continue
        results = outputs_of(loop)
        is_read = [one in readers for one in results]
        may_move = [one in readers and not any(map(reads_few_rows, readers[one])) for one in results]
        found = (
            _without_constants(loop)
            or _without_unchanging(loop)
            or _without_measured(loop)
            or _without_repeats(loop, may_move)
            or _without_unread(loop, is_read)
        )
        if found is not None:
            return {loop: found}
    return None


def _results(loop: Node, spec: LoopSpec) -> tuple[Node, ...]:
    """The results of a loop that stands for `loop`."""
    node = scan_node(settled(spec))
    node.origin = node.origin or loop.origin
    return outputs_of(node)


def _without_constants(loop: Node) -> Sequence[Node] | None:
    """Small constants in the step, not among its non-sequences."""
    if not any(_is_small_constant(port.outer) for port in loop_spec(loop).non_seqs):
        return None
    spec = opened(loop)
    constants = {port.read: port.outer for port in spec.non_seqs if _is_small_constant(port.outer)}
    less = replace(spec, non_seqs=tuple(port for port in spec.non_seqs if port.read not in constants))
    return _results(loop, less.with_inner(less.inner_inputs(), substitute(spec.inner_outputs(), constants)))


def _is_small_constant(node: Node) -> bool:
    return node.op is CONSTANT and (node.type.size or 0) <= FOLD_LIMIT


def _without_unchanging(loop: Node) -> Sequence[Node] | None:
    """Non-sequences in the place of carries that every step leaves as they are."""
    if not any(map(_is_unchanging, loop_spec(loop).carries)):
        return None
    spec = opened(loop)
    outer = {port.read: value for port in spec.carries if _is_unchanging(port) and (value := _written_once(spec, port)) is not None}
    if not outer:
        return None
    ports = {read: NonSeq(value, new_input(value.type, read.name)) for read, value in outer.items()}
    left = tuple(port for port in spec.carries if port.read not in outer)
    less = replace(spec, carries=left, non_seqs=(*spec.non_seqs, *ports.values()))
    step = substitute(less.inner_outputs(), {read: port.read for read, port in ports.items()})
    found = iter(_results(loop, less.with_inner(less.inner_inputs(), step)) if step else ())
    rows = [next(found) for _ in (*spec.states, *spec.traces)]
    return [*rows, *(outer[port.read] if port.read in outer else next(found) for port in spec.carries)]


def _is_unchanging(port: Carry) -> bool:
    """Is a carry written as it was read, but for checks of its dimensions?"""
    return unchecked(port.write) is port.read


def _written_once(spec: LoopSpec, port: Carry) -> Node | None:
    """What the first step writes, from values around the loop; None where its dimensions are asked of something that changes."""
    given = {one.read: one.outer for one in spec.non_seqs} | {port.read: cast(port.shared, port.read.type.dtype)}
    sequences = {read: seq.outer for seq in spec.seqs for read in seq.reads}
    for node in toposort([port.write]):
        if node.op.name == "dim" and node.inputs[0] in sequences:
            axis = node.attr("axis")
            assert isinstance(axis, int)
            given[node] = dims_of(sequences[node.inputs[0]])[1 + axis]
    (found,) = substitute([port.write], given)
    return found if set(spec.inner_inputs()).isdisjoint(toposort([found])) else None


def _without_measured(loop: Node) -> Sequence[Node] | None:
    """Dimensions of rows, asked of the sequence where the step asks nothing else of it."""
    if not _measured(loop_spec(loop)):
        return None
    spec = opened(loop)
    dims: dict[Node, Node] = {}
    ports = []
    for node, seq in _measured(spec).items():
        axis = node.attr("axis")
        assert isinstance(axis, int)
        outer = dims_of(seq.outer)[1 + axis]
        dims[node] = new_input(outer.type, node.name)
        ports.append(NonSeq(outer, dims[node]))
    more = replace(spec, non_seqs=(*spec.non_seqs, *ports))
    return _results(loop, more.with_inner(more.inner_inputs(), substitute(spec.inner_outputs(), dims)))


def _measured(spec: LoopSpec) -> dict[Node, Seq]:
    """Dimensions that the step asks of rows, where that is all that it does with them."""
    readers = users(spec.inner_outputs())
    found: dict[Node, Seq] = {}
    for seq in spec.seqs:
        for read in seq.reads:
            asked = readers.get(read, [])
            if read not in spec.inner_outputs() and all(node.op.name == "dim" for node in asked):
                found |= dict.fromkeys(asked, seq)
    return found


def _without_repeats(loop: Node, may_move: Sequence[bool]) -> Sequence[Node] | None:
    """Results that are rows which are there already: of a sequence, of a state. Where few rows are read, the loop keeps just these."""
    spec = loop_spec(loop)
    first = len(spec.states)
    repeats = {k: trace for k, trace in enumerate(spec.traces, first) if may_move[k] and _is_repeat(spec, trace)}
    if not repeats:
        return None
    left = replace(spec, traces=tuple(trace for k, trace in enumerate(spec.traces, first) if k not in repeats))
    found = _results(loop, left) if left.inner_outputs() else ()
    given = iter(found[first:])
    others = [next(given) if k not in repeats else None for k in range(first, first + len(spec.traces))]
    states = found[:first]
    results = [one if one is not None else _repeated(spec, repeats[k], states) for k, one in enumerate(others, first)]
    return [*states, *results, *given]


def _is_repeat(spec: LoopSpec, trace: Trace) -> bool:
    if any(trace.write is state.write or trace.write in state.reads for state in spec.states):
        return True
    return spec.until is None and any(trace.write in seq.reads for seq in spec.seqs)


def _repeated(spec: LoopSpec, trace: Trace, states: Sequence[Node]) -> Node:
    """The rows that a trace repeats. A step reads at tap -2 what is two rows before those that it writes."""
    for state, result in zip(spec.states, states, strict=True):
        if trace.write is state.write:
            return result
        if trace.write in state.reads:
            tap = state.taps[state.reads.index(trace.write)]
            history = apply(HISTORY, state.initial, result, depth=state.depth, has_axis=state.has_axis)
            return rows(history, state.depth + tap or None, tap)
    seq = next(seq for seq in spec.seqs if trace.write in seq.reads)
    tap = seq.taps[seq.reads.index(trace.write)]
    return rows_read(spec, seq, tap, tap)


def _without_unread(loop: Node, is_read: Sequence[bool]) -> Sequence[Node] | None:
    """Results that nobody reads and no step needs; inputs that no step reads."""
    spec = loop_spec(loop)
    needed = _needed(spec, is_read)
    ports: list[State | Trace | Carry] = [*spec.states, *spec.traces, *spec.carries]
    kept = [
        one or (not isinstance(port, Trace) and not needed.isdisjoint(reads_of(port))) for one, port in zip(is_read, ports, strict=True)
    ]
    kept = [one or (isinstance(port, State) and not _is_countable(port)) for one, port in zip(kept, ports, strict=True)]
    seqs = [seq for seq in spec.seqs if not needed.isdisjoint(seq.reads) or not is_long_enough(spec, seq)]
    non_seqs = tuple(port for port in spec.non_seqs if port.read in needed)
    lengths = [seq if not needed.isdisjoint(seq.reads) else _length_alone(seq) for seq in seqs]
    if all(kept) and len(non_seqs) == len(spec.non_seqs) and [seq.outer for seq in lengths] == [seq.outer for seq in spec.seqs]:
        return None
    left = {id(port) for port, one in zip(ports, kept, strict=True) if one}
    less = replace(
        spec,
        seqs=tuple(lengths),
        states=tuple(state for state in spec.states if id(state) in left),
        traces=tuple(trace for trace in spec.traces if id(trace) in left),
        carries=tuple(carry for carry in spec.carries if id(carry) in left),
        non_seqs=non_seqs,
    )
    found = iter(_results(loop, less))
    return [next(found) if one else loop for one in kept]


def _needed(spec: LoopSpec, is_read: Sequence[bool]) -> set[Node]:
    """The values of the step that are needed for results that somebody reads."""
    ports: list[State | Trace | Carry] = [*spec.states, *spec.traces, *spec.carries]
    wanted = [port.write for port, one in zip(ports, is_read, strict=True) if one or (isinstance(port, State) and not _is_countable(port))]
    return behind(spec, [*wanted, *(() if spec.until is None else (spec.until,))])


def _is_countable(state: State) -> bool:
    """Is it known that the initial rows are enough? Else the loop must be there to say that they are not."""
    n_rows = state.initial.type.shape[0] if state.has_axis else state.depth
    return n_rows is not None and n_rows >= state.depth


def _length_alone(seq: Seq) -> Seq:
    """A sequence of the same length that takes no memory, for one that is computed."""
    if seq.outer.op in (INPUT, ARG) or seq.outer.op.name == "arange":
        return seq
    outer = counted(n_rows(seq.outer))
    return Seq(outer, seq.taps, tuple(new_input(row_of(outer.type)) for _ in seq.reads))
