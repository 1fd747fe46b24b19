"""A loop as a record of ports. A port knows its outer side (the graph around the loop) and its inner side (the step).

`LoopSpec` is what passes read and change: replace a port, drop one, add one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..types import TensorType
from .graph import substitute
from .node import Node, constant_value, new_input


@dataclass(frozen=True, slots=True)
class Seq:
    """Rows of `outer`: at step t the step reads `outer[t + tap - min(0, *taps)]` for each tap."""

    outer: Node
    taps: tuple[int, ...]
    reads: tuple[Node, ...]

    @property
    def before(self) -> int:
        """Rows of `outer` that lie before the first step's tap 0."""
        return max(0, -min(self.taps))

    @property
    def span(self) -> int:
        """Rows that the taps reach over beyond the number of steps."""
        return self.before + max(0, max(self.taps))


@dataclass(frozen=True, slots=True)
class NonSeq:
    """The same value at every step."""

    outer: Node
    read: Node


@dataclass(frozen=True, slots=True)
class State:
    """A recurrent result. `initial` is one row without a leading axis (`has_axis` False: tap -1 alone), or `depth` rows, oldest first."""

    initial: Node
    taps: tuple[int, ...]
    reads: tuple[Node, ...]
    write: Node
    has_axis: bool = False

    @property
    def depth(self) -> int:
        """How many rows before the first step the taps reach."""
        return -min(self.taps)


@dataclass(frozen=True, slots=True)
class Trace:
    """A result that the step never reads again."""

    write: Node


@dataclass(frozen=True, slots=True)
class Carry:
    """A shared variable that every step replaces; only the last value is a result."""

    shared: Node
    read: Node
    write: Node


@dataclass(frozen=True, slots=True)
class MitMot:
    """A buffer that each step reads and writes at several taps; the whole buffer is the result (gradients)."""

    outer: Node
    in_taps: tuple[int, ...]
    reads: tuple[Node, ...]
    out_taps: tuple[int, ...]
    writes: tuple[Node, ...]


OF_ONE_CASE = "of one case"  # the note of a loop whose steps are parts of one case, such as the rows of a Jacobian

IN_BLOCKS = "in blocks"  # the note of a loop over blocks of lanes, and of its gradient: its steps are large, so they add up products


@dataclass(frozen=True, slots=True)
class LoopSpec:
    """A loop: how many steps, its ports, and when it stops early."""

    n_steps: Node
    seqs: tuple[Seq, ...] = ()
    mit_mots: tuple[MitMot, ...] = ()
    states: tuple[State, ...] = ()
    traces: tuple[Trace, ...] = ()
    carries: tuple[Carry, ...] = ()
    non_seqs: tuple[NonSeq, ...] = ()
    until: Node | None = None
    name: str = "scan"
    truncate_gradient: int = -1
    notes: tuple[tuple[str, object], ...] = ()

    @property
    def waits(self) -> bool:
        """True if a step may depend on earlier ones: by states, carries, mit_mots or `until`."""
        return bool(self.states or self.carries or self.mit_mots) or self.until is not None

    @property
    def has_step(self) -> bool:
        """Is there a step, for sure? What may fail leaves no other loop (`ops/failing.py`)."""
        count = constant_value(self.n_steps)
        return count is not None and int(count) > 0

    @property
    def are_lanes(self) -> bool:
        """True if each step is a case of its own, whose bits must not depend on the number of steps."""
        return not self.waits and (OF_ONE_CASE, True) not in self.notes

    def inner_inputs(self) -> tuple[Node, ...]:
        return tuple(self._inner_inputs())

    def _inner_inputs(self) -> Iterator[Node]:
        for seq in self.seqs:
            yield from seq.reads
        for mit_mot in self.mit_mots:
            yield from mit_mot.reads
        for state in self.states:
            yield from state.reads
        for carry in self.carries:
            yield carry.read
        for non_seq in self.non_seqs:
            yield non_seq.read

    def inner_outputs(self) -> tuple[Node, ...]:
        outputs = [write for mit_mot in self.mit_mots for write in mit_mot.writes]
        outputs += [state.write for state in self.states]
        outputs += [trace.write for trace in self.traces]
        outputs += [carry.write for carry in self.carries]
        return (*outputs, *(() if self.until is None else (self.until,)))

    def outer_inputs(self) -> tuple[Node, ...]:
        outer = [self.n_steps, *(seq.outer for seq in self.seqs), *(mit_mot.outer for mit_mot in self.mit_mots)]
        outer += [state.initial for state in self.states]
        return (*outer, *(carry.shared for carry in self.carries), *(non_seq.outer for non_seq in self.non_seqs))

    def outer_places(self) -> tuple[range, range, range, range]:
        """Places among the outer inputs: of sequences, initial values of states, shared variables, non-sequences."""
        sizes = (1, len(self.seqs), len(self.mit_mots), len(self.states), len(self.carries), len(self.non_seqs))
        _, seqs, _, states, carries, non_seqs = (range(sum(sizes[:k]), sum(sizes[: k + 1])) for k in range(len(sizes)))
        return seqs, states, carries, non_seqs

    def with_inner(self, inputs: tuple[Node, ...], outputs: tuple[Node, ...]) -> LoopSpec:
        """The same ports around another inner graph of the same signature."""
        reads, writes = iter(inputs), iter(outputs)

        def take(source: Iterator[Node], old: tuple[Node, ...]) -> tuple[Node, ...]:
            return tuple(next(source) for _ in old)

        seqs = tuple(replace(port, reads=take(reads, port.reads)) for port in self.seqs)
        mit_mots = tuple(replace(port, reads=take(reads, port.reads)) for port in self.mit_mots)
        states = tuple(replace(port, reads=take(reads, port.reads)) for port in self.states)
        carries = tuple(replace(port, read=next(reads)) for port in self.carries)
        non_seqs = tuple(replace(port, read=next(reads)) for port in self.non_seqs)
        mit_mots = tuple(replace(port, writes=take(writes, port.writes)) for port in mit_mots)
        states = tuple(replace(port, write=next(writes)) for port in states)
        traces = tuple(replace(port, write=next(writes)) for port in self.traces)
        carries = tuple(replace(port, write=next(writes)) for port in carries)
        until = None if self.until is None else next(writes)
        return replace(self, seqs=seqs, mit_mots=mit_mots, states=states, traces=traces, carries=carries, non_seqs=non_seqs, until=until)

    def with_outer(self, inputs: tuple[Node, ...]) -> LoopSpec:
        """The same loop fed by other outer inputs, in the order of `outer_inputs`."""
        outer = iter(inputs)
        n_steps = next(outer)
        seqs = tuple(replace(port, outer=next(outer)) for port in self.seqs)
        mit_mots = tuple(replace(port, outer=next(outer)) for port in self.mit_mots)
        states = tuple(replace(port, initial=next(outer)) for port in self.states)
        carries = tuple(replace(port, shared=next(outer)) for port in self.carries)
        non_seqs = tuple(replace(port, outer=next(outer)) for port in self.non_seqs)
        return replace(self, n_steps=n_steps, seqs=seqs, mit_mots=mit_mots, states=states, carries=carries, non_seqs=non_seqs)

    def opened(self) -> LoopSpec:
        """The same ports around a step on fresh inputs: what depends on them is in no other graph, so both sides can be told apart."""
        fresh = tuple(new_input(node.type, node.name) for node in self.inner_inputs())
        return self.with_inner(fresh, substitute(self.inner_outputs(), dict(zip(self.inner_inputs(), fresh, strict=True))))

    def output_types(self) -> tuple[TensorType, ...]:
        """Types of the loop's results: mit_mots, states, traces, carries. The number of rows of states and traces is never fixed."""
        types = [mit_mot.outer.type for mit_mot in self.mit_mots]
        types += [row_stack(state.write.type) for state in self.states]
        types += [row_stack(trace.write.type) for trace in self.traces]
        return tuple(types + [carry.write.type.strong() for carry in self.carries])


def row_stack(type_: TensorType) -> TensorType:
    """The type of a stack of rows of `type_`."""
    return TensorType(type_.dtype, (None, *type_.shape))


def row_of(type_: TensorType) -> TensorType:
    """The type of one row of a stack."""
    return type_.with_shape(type_.shape[1:])
