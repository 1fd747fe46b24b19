"""Dead ports of a loop are removed, and constants move into the step, where they fold. Dead are

- results that nobody reads, with the work for them,
- inputs that no step reads, or only measures,
- traces of rows that exist already,
- carries that no step changes.

A sequence that is too short stays an error: an unread one whose length is known at run time only leaves its length behind.

Arithmetic: none is made; what folds is computed by NumPy, in the dtype that it has.

Not handled: traces of sequences in loops that end early; states whose number of initial rows is known at run time only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir.graph import substitute, toposort, users
from ..ir.loop_node import SCAN, loop_spec
from ..ir.node import ARG, CONSTANT, INPUT, Node, new_input, outputs_of
from ..ir.ports import Carry, LoopSpec, NonSeq, Seq, State, Trace, row_of
from ..ops.algebra import cast, counted, dims_of, rows, unchecked
from ..ops.card import FOLD_LIMIT, apply
from ..ops.dims import around
from ..ops.history import HISTORY
from .loop_distribution import behind, reads_of
from .replace_loops import Change, changed_repeatedly, loop_results, reads_few_rows
from .step_dependence import is_long_enough, n_rows, rows_read


def remove_unused(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """`outputs` with loops that need all their ports."""
    return changed_repeatedly(outputs, _first_change)


def _first_change(outputs: Sequence[Node]) -> Change | None:
    """The replacements of the results of the last loop with unneeded ports: earlier loops need not make values that it no longer reads.

    One change at a time: it makes another loop, whose readers must be counted anew, as must those of the loops before it.
    """
    readers = users(outputs)
    for loop in reversed(toposort(outputs)):
        if loop.op is not SCAN or loop_spec(loop).mit_mots:
            continue
        results = outputs_of(loop)
        is_read = [one in readers for one in results]
        # 1. A result stays if few of its rows are read: the loop stores just these, its replacement outside would be computed whole.
        may_move = [one in readers and not any(map(reads_few_rows, readers[one])) for one in results]
        # 2. Changes that make ports dead come before those that remove them: constants fold, and values that fold read no port any more;
        #    carries and dimensions of rows become non-sequences; a trace that repeats the rows of a state needs no more than the state.
        replacements = (
            _without_constants(loop)
            or _without_unchanging(loop)
            or _without_measured(loop)
            or _without_repeats(loop, may_move)
            or _without_unread(loop, is_read)
        )
        if replacements is not None:
            return {loop: replacements}, {}
    return None


def _without_constants(loop: Node) -> Sequence[Node] | None:
    """The results with small constants in the step, not among its non-sequences."""
    if not any(_is_small_constant(port.outer) for port in loop_spec(loop).non_seqs):
        return None
    spec = loop_spec(loop).opened()
    constants = {port.read: port.outer for port in spec.non_seqs if _is_small_constant(port.outer)}
    less = replace(spec, non_seqs=tuple(port for port in spec.non_seqs if port.read not in constants))
    return loop_results(loop, less.with_inner(less.inner_inputs(), substitute(spec.inner_outputs(), constants)))


def _is_small_constant(node: Node) -> bool:
    return node.op is CONSTANT and (node.type.size or 0) <= FOLD_LIMIT


def _without_unchanging(loop: Node) -> Sequence[Node] | None:
    """The results with non-sequences in place of carries that no step changes."""
    if not any(map(_is_unchanging, loop_spec(loop).carries)):
        return None
    spec = loop_spec(loop).opened()
    outer = {port.read: value for port in spec.carries if _is_unchanging(port) and (value := _written_once(spec, port)) is not None}
    if not outer:
        return None
    ports = {read: NonSeq(value, new_input(value.type, read.name)) for read, value in outer.items()}
    left = tuple(port for port in spec.carries if port.read not in outer)
    less = replace(spec, carries=left, non_seqs=(*spec.non_seqs, *ports.values()))
    step = substitute(less.inner_outputs(), {read: port.read for read, port in ports.items()})
    results = iter(loop_results(loop, less.with_inner(less.inner_inputs(), step)) if step else ())
    rows = [next(results) for _ in (*spec.states, *spec.traces)]
    return [*rows, *(outer[port.read] if port.read in outer else next(results) for port in spec.carries)]


def _is_unchanging(port: Carry) -> bool:
    """True if a carry is written as it was read, but for checks of its dimensions."""
    return unchecked(port.write) is port.read


def _written_once(spec: LoopSpec, port: Carry) -> Node | None:
    """What the first step writes into a carry, from outer values; None where its checks depend on something that changes."""
    return around(spec, port.write, {port.read: cast(port.shared, port.read.type.dtype)})


def _without_measured(loop: Node) -> Sequence[Node] | None:
    """The results with dimensions of rows taken from the sequence outside, where the step reads nothing else of it."""
    if not _measured(loop_spec(loop)):
        return None
    spec = loop_spec(loop).opened()
    dims: dict[Node, Node] = {}
    ports = []
    for node, seq in _measured(spec).items():
        outer = dims_of(seq.outer)[1 + node.number("axis")]
        dims[node] = new_input(outer.type, node.name)
        ports.append(NonSeq(outer, dims[node]))
    more = replace(spec, non_seqs=(*spec.non_seqs, *ports))
    return loop_results(loop, more.with_inner(more.inner_inputs(), substitute(spec.inner_outputs(), dims)))


def _measured(spec: LoopSpec) -> dict[Node, Seq]:
    """The dimensions that the step reads of rows, if it reads nothing else of them, with their sequences."""
    readers = users(spec.inner_outputs())
    dims: dict[Node, Seq] = {}
    for seq in spec.seqs:
        for read in seq.reads:
            asked = readers.get(read, [])
            if read not in spec.inner_outputs() and all(node.op.name == "dim" for node in asked):
                dims |= dict.fromkeys(asked, seq)
    return dims


def _without_repeats(loop: Node, may_move: Sequence[bool]) -> Sequence[Node] | None:
    """The results without traces of rows that exist already, in a sequence or a state. Traces stay if few of their rows are read."""
    spec = loop_spec(loop)
    first = len(spec.states)
    repeats = {k: trace for k, trace in enumerate(spec.traces, first) if may_move[k] and _is_repeat(spec, trace)}
    if not repeats:
        return None
    left = replace(spec, traces=tuple(trace for k, trace in enumerate(spec.traces, first) if k not in repeats))
    results = loop_results(loop, left) if left.inner_outputs() else ()
    states, others = results[:first], iter(results[first:])
    traces = [_repeated(spec, repeats[k], states) if k in repeats else next(others) for k in range(first, first + len(spec.traces))]
    return [*states, *traces, *others]


def _is_repeat(spec: LoopSpec, trace: Trace) -> bool:
    if any(trace.write is state.write or trace.write in state.reads for state in spec.states):
        return True
    return spec.until is None and any(trace.write in seq.reads for seq in spec.seqs)


def _repeated(spec: LoopSpec, trace: Trace, states: Sequence[Node]) -> Node:
    """The rows that a trace repeats. What a step reads at tap -2 is two rows before the row that it writes."""
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
    """The results without those that nobody reads and no step needs, and without inputs that no step reads."""
    spec = loop_spec(loop)
    needed = _needed(spec, is_read)
    ports: list[State | Trace | Carry] = [*spec.states, *spec.traces, *spec.carries]
    # A state whose rows nobody reads stays if a later step reads it for something needed, or if its initial rows may be too few. An unread
    # sequence that may be too short stays by its length alone. In both cases the error is the loop's to raise.
    stays = [
        one or (not isinstance(port, Trace) and not needed.isdisjoint(reads_of(port))) or _must_count(port)
        for one, port in zip(is_read, ports, strict=True)
    ]
    seqs = [seq for seq in spec.seqs if not needed.isdisjoint(seq.reads) or not is_long_enough(spec, seq)]
    non_seqs = tuple(port for port in spec.non_seqs if port.read in needed)
    lengths = [seq if not needed.isdisjoint(seq.reads) else _length_alone(seq) for seq in seqs]
    if all(stays) and len(non_seqs) == len(spec.non_seqs) and [seq.outer for seq in lengths] == [seq.outer for seq in spec.seqs]:
        return None
    left = {id(port) for port, one in zip(ports, stays, strict=True) if one}
    less = replace(
        spec,
        seqs=tuple(lengths),
        states=tuple(state for state in spec.states if id(state) in left),
        traces=tuple(trace for trace in spec.traces if id(trace) in left),
        carries=tuple(carry for carry in spec.carries if id(carry) in left),
        non_seqs=non_seqs,
    )
    results = iter(loop_results(loop, less))
    return [next(results) if one else loop for one in stays]


def _needed(spec: LoopSpec, is_read: Sequence[bool]) -> set[Node]:
    """The values of the step that results which are read, states that must be counted, or `until` depend on."""
    ports: list[State | Trace | Carry] = [*spec.states, *spec.traces, *spec.carries]
    writes = [port.write for port, one in zip(ports, is_read, strict=True) if one or _must_count(port)]
    return behind(spec, [*writes, *(() if spec.until is None else (spec.until,))])


def _must_count(port: State | Trace | Carry) -> bool:
    """True for a state whose initial rows may be too few: then the loop must stay, to raise the error."""
    if not isinstance(port, State) or not port.has_axis:
        return False
    count = port.initial.type.shape[0]
    return count is None or count < port.depth


def _length_alone(seq: Seq) -> Seq:
    """A sequence of the same length that takes no memory, in place of one that is computed."""
    if seq.outer.op in (INPUT, ARG) or seq.outer.op.name == "arange":
        return seq
    outer = counted(n_rows(seq.outer))
    return Seq(outer, seq.taps, tuple(new_input(row_of(outer.type)) for _ in seq.reads))
