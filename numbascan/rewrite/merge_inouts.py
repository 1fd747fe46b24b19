"""scan_merge_inouts: equal inputs of a loop become one, and so do equal results.

States are equal if they start equal and steps on equal states write equal values. This is a fixed point: states that start equal are taken
to be equal, then those that are written differently are set apart, until nothing changes.

Arithmetic: none is made.

Not handled: states with other taps of the same recurrence.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from ..ir.graph import substitute
from ..ir.loop_node import loop_spec
from ..ir.node import Node
from ..ir.ports import Carry, LoopSpec, NonSeq, Seq, State, Trace
from .loop_distribution import reads_of, recurrent
from .replace_loops import loop_results, with_loops


def merge_inouts(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """`outputs` with equal ports of loops merged."""
    return with_loops(outputs, _changed)


def _changed(loop: Node) -> Sequence[Node] | None:
    spec = loop_spec(loop)
    if spec.mit_mots or not _may_have_equals(spec):
        return None
    less, places = merged_ports(loop_spec(loop).opened())
    if len(less.inner_inputs()) + len(less.inner_outputs()) == len(spec.inner_inputs()) + len(spec.inner_outputs()):
        return None
    results = loop_results(loop, less)
    return [results[place] for place in places]


def _may_have_equals(spec: LoopSpec) -> bool:
    outer: list[Hashable] = [seq.outer for seq in spec.seqs]
    outer += [port.outer for port in spec.non_seqs] + [start_of(port) for port in recurrent(spec)]
    outer += [trace.write for trace in spec.traces]
    return len(set(outer)) < len(outer)


def start_of(port: State | Carry) -> Hashable:
    """The key of a recurrence's start: recurrences can be equal only if it is."""
    return (port.initial, port.taps, port.has_axis) if isinstance(port, State) else (port.shared,)


def merged_ports(spec: LoopSpec) -> tuple[LoopSpec, list[int]]:
    """The loop with equal ports merged, and for each old result its place among the new ones. The step must have inputs of its own."""
    same, seqs, non_seqs = _equal_inputs(spec)
    groups: Mapping[State | Carry, Hashable] = {port: start_of(port) for port in recurrent(spec)}
    while True:
        first: dict[Hashable, State | Carry] = {}
        for port, group in groups.items():
            first.setdefault(group, port)
        reads = {read: one for port, group in groups.items() for read, one in zip(reads_of(port), reads_of(first[group]), strict=True)}
        writes = substitute(spec.inner_outputs(), {**same, **{read: one for read, one in reads.items() if read is not one}})
        step = spec.with_inner(spec.inner_inputs(), writes)
        finer = {port: (group, new.write) for (port, group), new in zip(groups.items(), recurrent(step), strict=True)}
        if len(set(finer.values())) == len(first):
            break
        groups = finer
    ports = set(first.values())
    states = {group: new for (old, group), new in zip(groups.items(), recurrent(step), strict=True) if old in ports}
    traces = list(dict.fromkeys(trace.write for trace in step.traces))
    less = replace(
        step,
        seqs=seqs,
        non_seqs=non_seqs,
        states=tuple(port for port in states.values() if isinstance(port, State)),
        traces=tuple(map(Trace, traces)),
        carries=tuple(port for port in states.values() if isinstance(port, Carry)),
    )
    order = [*(port for port in states.values() if isinstance(port, State)), *less.traces, *less.carries]
    places = {id(port): place for place, port in enumerate(order)}
    of_group = [places[id(states[group])] for group in groups.values()]
    of_traces = [len(less.states) + traces.index(trace.write) for trace in step.traces]
    return less, [*of_group[: len(spec.states)], *of_traces, *of_group[len(spec.states) :]]


def _equal_inputs(spec: LoopSpec) -> tuple[dict[Node, Node], tuple[Seq, ...], tuple[NonSeq, ...]]:
    """(replacements of the reads that go; the sequences that are left, each with the taps of all equal ones; the non-sequences left)."""
    same: dict[Node, Node] = {}
    taps: dict[tuple[Node, int], dict[int, Node]] = {}
    for seq in spec.seqs:
        reads = taps.setdefault((seq.outer, seq.before), {})
        for tap, read in zip(seq.taps, seq.reads, strict=True):
            if reads.setdefault(tap, read) is not read:
                same[read] = reads[tap]
    fixed: dict[Node, NonSeq] = {}
    for port in spec.non_seqs:
        if fixed.setdefault(port.outer, port) is not port:
            same[port.read] = fixed[port.outer].read
    seqs = tuple(Seq(outer, tuple(reads), tuple(reads.values())) for (outer, _), reads in taps.items())
    return same, seqs, tuple(fixed.values())
