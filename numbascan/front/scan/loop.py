"""Makes a loop in a graph from a traced step: its ports, its number of steps, its results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import count

import numpy as np

from ...errors import MissingInputError
from ...ir.graph import free_inputs, substitute, toposort
from ...ir.loop_node import scan_node
from ...ir.messages import short_initial, short_sequence
from ...ir.node import CONSTANT, Node, constant, constant_value, named, new_input, outputs_of
from ...ir.ports import Carry, LoopSpec, NonSeq, Seq, State, Trace
from ...ir.respecialise import settled
from ...ops.card import user_line
from ...ops.gradient_identities import costs_of, derivative_of
from ...ops.row_checks import AT_LEAST_ROWS, in_shape
from ..draw_scopes import LoopDraws, loop_draws
from ..shared import SharedVariable
from ..tracing import close_over, is_tracing, measured
from ..tree import Structure
from ..variable import METHODS, Variable, as_variable, number_as, op
from .arguments import Options
from .returns import check_carry
from .trace import Group, TracedStep

Nest = tuple[Structure, list[Variable]]


@dataclass(frozen=True, slots=True)
class Results:
    """The results of a scan in a graph: outputs as structures with Variables, last values of updates, the loop (None for one step)."""

    outputs: list[Nest]
    updates: dict[SharedVariable, Variable]
    node: Node | None


class LoopMaker:
    """Makes the loop of a traced step."""

    def __init__(self, step: TracedStep, options: Options) -> None:
        self.step, self.options = step, options
        self.scan = f"scan {options.name!r}"
        self.seqs = tuple(self._seqs())
        recurrent = [group for group in step.states if group is not None]
        self.reads = [read for group in (*step.seqs, *recurrent) for leaf in group.leaves for read in leaf.reads]
        self.carries = [(shared, self._carry(shared, write)) for shared, write in step.returned.updates]
        self.explicit = [node for node in dict.fromkeys(step.non_seqs) if node.op is not CONSTANT or node.type.size != 1]
        self.outside = self._captured()
        self.is_immediate = step.trace.guards is not None
        self.draws: list[LoopDraws] = []

    @property
    def captured(self) -> list[Node]:
        """The nodes that the step uses besides its arguments; in an immediate call with the states of the streams that it draws from.

        While a function is traced nothing is drawn for real: the number of the first draw, which has no value yet, stands for the state.
        """
        if not self.is_immediate:
            return self.outside
        waits = is_tracing()
        draws = [(stream, counter) for stream, counter in self.step.draws.items() if waits or not stream.is_local]
        sources = [counter.first.node if waits else stream.state.node for stream, counter in draws]
        return list(dict.fromkeys([*self.outside, *sources]))

    # ports ----------------------------------------------------------------------------------------------------------

    def _seqs(self) -> Iterator[Seq]:
        for group in self.step.seqs:
            for leaf in group.leaves:
                if self.options.go_backwards:  # row t + tap from the end is row t - tap of the flipped sequence
                    flipped = named(Variable(leaf.outer)[::-1].node, leaf.outer.name)
                    yield Seq(flipped, tuple(-tap for tap in group.taps), leaf.reads)
                else:
                    yield Seq(leaf.outer, group.taps, leaf.reads)

    def _carry(self, shared: SharedVariable, write: Node) -> Node:
        check_carry(shared, write, self.scan)
        return number_as(Variable(write), shared.type.dtype).node if write.type.weak else write

    def _writes(self) -> list[Node]:
        """All that the step computes: outputs, updates, condition."""
        returned = self.step.returned
        writes = [node for _, nodes in returned.outputs for node in nodes] + [write for _, write in self.carries]
        return writes if returned.until is None else [*writes, returned.until]

    def _captured(self) -> list[Node]:
        """The nodes that the step uses besides its arguments. MissingInputError if `strict` forbids them."""
        if self.options.strict:
            carried = [shared.node for shared, _ in self.carries]
            bound = [*self.reads, *self._draw_reads(), *self.explicit, *carried, *self.step.trace.arrays]
            missing = free_inputs(self._writes(), bound)
            if missing:
                names = ", ".join(node.name or str(node.type) for node in missing)
                raise MissingInputError(
                    f"{self.scan}: strict=True, but the step uses {names} without being given it; add it to non_sequences"
                )
        return self._outer_of(self._writes())

    def _outer_of(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes of the graph outside that `nodes` of the step use."""
        carried = [shared.node for shared, _ in self.carries]
        return close_over([*self.reads, *self._draw_reads(), *self.explicit], nodes, self.step.mark, changing=carried)

    def _draw_reads(self) -> list[Node]:
        return [read for counter in self.step.draws.values() for read in counter.reads]

    def ports(self, n_steps: Node) -> LoopSpec:
        """The ports around the step."""
        self.draws = [loop_draws(stream, counter, self.is_immediate) for stream, counter in self.step.draws.items()]
        carried = {shared.node: new_input(shared.type, shared.name) for shared, _ in self.carries}
        outer = [node for node in dict.fromkeys((*measured(self.explicit, self._writes()), *self.outside)) if node not in carried]
        non_seqs = tuple(NonSeq(node, new_input(node.type, node.name)) for node in outer)
        inside = {port.outer: port.read for port in non_seqs} | carried
        writes = iter(substitute(self._writes(), inside))
        states, traces = [], []
        for group, (_, nodes) in zip(self._groups(), self.step.returned.outputs, strict=True):
            if group is None:
                traces += [Trace(next(writes)) for _ in nodes]
            else:
                states += [State(leaf.outer, group.taps, leaf.reads, next(writes), group.has_axis) for leaf in group.leaves]
        carries = tuple(Carry(shared.node, carried[shared.node], next(writes)) for shared, _ in self.carries)
        if self.draws and self.step.returned.until is not None and not (states or traces):
            traces.append(Trace(self.draws[0].counter.first.node))  # its length is the number of steps that ran
        return LoopSpec(
            n_steps=n_steps,
            seqs=(*self.seqs, *(draw.number_port(n_steps) for draw in self.draws)),
            states=tuple(states),
            traces=tuple(traces),
            carries=carries,
            non_seqs=(*non_seqs, *(port for draw in self.draws for port in draw.key_ports())),
            until=next(writes, None),
            name=self.options.name,
            truncate_gradient=self.options.truncate_gradient,
            notes=self.options.notes(),
        )

    def _groups(self) -> tuple[Group | None, ...]:
        return self.step.states or (None,) * len(self.step.returned.outputs)

    # the number of steps --------------------------------------------------------------------------------------------

    def n_steps(self, steps: int | Variable | None) -> Node:
        """n_steps as an int64 scalar: as given, else the most that every sequence has rows for."""
        if steps is None:
            return self._usable_length()
        if isinstance(steps, Variable):
            return METHODS["astype"](steps, "int64").node if steps.type.dtype != "int64" else steps.node
        return constant(steps, "int64")

    def _usable_length(self) -> Node:
        rows = [(Variable(seq.outer).shape[0], seq.span) for seq in self.seqs]
        lengths = [length - span if span else length for length, span in rows]
        fixed = [length for length in lengths if isinstance(length, int)]
        traced = [length for length in lengths if not isinstance(length, int)] + ([max(min(fixed), 0)] if fixed else [])
        shortest = reduce(np.minimum, traced)
        if any(seq.span for seq in self.seqs) and not isinstance(shortest, int):
            shortest = np.maximum(shortest, 0)  # so that the loop's own check says which sequence is too short for its taps
        if isinstance(shortest, int):
            return constant(shortest, "int64")
        return named(as_variable(shortest).node, "n_steps")

    def _check_lengths(self, n_steps: Node) -> None:
        """ValueError if a sequence is known to be too short."""
        known = constant_value(n_steps)
        spec = LoopSpec(n_steps, self.seqs, name=self.options.name)
        for seq in self.seqs if known is not None else ():
            rows, needed = seq.outer.type.shape[0], int(known or 0) + seq.span
            if rows is not None and rows < needed:
                raise ValueError(short_sequence(spec, seq).format(rows, needed, needed - seq.span))

    # results --------------------------------------------------------------------------------------------------------

    def _results(self, outputs: list[Nest], updates: dict[SharedVariable, Variable], node: Node | None) -> Results:
        """The results. Outputs name the costs of derivatives in the step, as far as they stand outside and the step does not use them."""
        inside = {*self.reads, *self.explicit, *self.outside}
        costs = [cost for one in toposort(self._writes(), stop=inside) for cost in costs_of(one)]
        used = [one for one in self._outer_of(costs) if one not in inside] if costs else []
        if used:
            outputs = [(nest, [Variable(derivative_of(used, leaf.node)) for leaf in leaves]) for nest, leaves in outputs]
        return Results(outputs, updates, node)

    def loop(self, n_steps: Node) -> Results:
        """The results as outputs of a loop."""
        self._check_lengths(n_steps)
        spec = self.ports(n_steps)
        node = scan_node(settled(spec))
        node.origin = node.origin or user_line()
        results = iter(outputs_of(node))
        states = [next(results) for _ in spec.states]
        traces = [next(results) for _ in spec.traces]
        written = [state.write for state in spec.states] + [trace.write for trace in spec.traces]
        for result, write in zip((*states, *traces), written, strict=True):
            named(result, write.name)
        updates = {shared: Variable(next(results)) for shared, _ in self.carries}
        ran = Variable(n_steps) if spec.until is None else Variable([*states, *traces][0]).shape[0] if self.draws else 0
        for draw in self.draws:
            updates.update(draw.after(ran))
        rows = {True: iter(states), False: iter(traces)}
        outputs = [
            (structure, [Variable(next(rows[group is not None])) for _ in nodes])
            for group, (structure, nodes) in zip(self._groups(), self.step.returned.outputs, strict=True)
        ]
        return self._results(outputs, updates, node)

    def one_step(self) -> Results:
        """The results of a single step, without a loop."""
        first: dict[Node, Node] = {}
        spec = self.ports(constant(1, "int64"))
        for seq in self.seqs:
            rows = op(AT_LEAST_ROWS, Variable(seq.outer), needed=1 + seq.span, message=short_sequence(spec, seq))
            first.update((read, rows[seq.before + tap].node) for tap, read in zip(seq.taps, seq.reads, strict=True))
        for state in spec.states:
            first.update(_first_rows(spec, state))
        for draw in self.draws:
            first.update(draw.first_step())
        writes = self._in_shape(spec, iter(substitute(self._writes(), first)))
        outputs = [(structure, [_stacked(next(writes)) for _ in nodes]) for structure, nodes in self.step.returned.outputs]
        updates = {shared: next(writes) for shared, _ in self.carries}
        for draw in self.draws:
            updates.update(draw.after(1))
        return self._results(outputs, updates, None)

    def _in_shape(self, spec: LoopSpec, writes: Iterator[Node]) -> Iterator[Variable]:
        """The outputs and updates of a single step. Recurrent ones and updates are checked to have the shape of their initial value."""
        positions = count()  # states, then carries
        for group, (_, nodes) in zip(self._groups(), self.step.returned.outputs, strict=True):
            for _ in nodes:
                write = next(writes)
                yield Variable(write if group is None else in_shape(spec, next(positions), write))
        for _ in self.carries:
            yield Variable(in_shape(spec, next(positions), next(writes)))


def _first_rows(spec: LoopSpec, state: State) -> dict[Node, Node]:
    """The rows of an initial value that the first step reads, by read."""
    if not state.has_axis:
        return {state.reads[0]: state.initial}
    rows = op(AT_LEAST_ROWS, Variable(state.initial), needed=state.depth, message=short_initial(spec, state))
    return {read: rows[state.depth + tap].node for tap, read in zip(state.taps, state.reads, strict=True)}


def _stacked(row: Variable) -> Variable:
    """One row as an array of rows."""
    strong = METHODS["astype"](row, row.type.dtype) if row.type.weak else row
    return strong[np.newaxis]
