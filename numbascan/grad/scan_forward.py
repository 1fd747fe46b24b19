"""The forward rule of a loop: the loop with a tangent beside every state that moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import compress

from ..ir.graph import substitute, toposort
from ..ir.loop_node import loop_spec, scan_node
from ..ir.node import Node, new_input, outputs_of
from ..ir.ports import Carry, LoopSpec, NonSeq, Seq, State, Trace
from ..ir.respecialise import settled
from ..ops.algebra import zeros_like
from .mit_mots import unbuffered
from .reverse import differentiated, over_all_steps

Moving = tuple[tuple[Node, ...], Node, Node | None]  # what a step reads of a state, what it writes, the first tangent
Forward = Callable[[Sequence[Node], Sequence[Node], Sequence[Node | None]], list[Node | None]]


def scan_tangents(node: Node, along: Sequence[Node | None], are_read: Sequence[bool], forward: Forward) -> list[Node | None]:
    """The tangents of a loop's results from those of its outer inputs; maybe None for results that are not read (`are_read`)."""
    spec = loop_spec(node)
    if not spec.mit_mots:
        return _Forward(spec, along, are_read, forward).tangents()
    outer, results = unbuffered(node)
    moved = dict(zip(node.inputs, along, strict=True))
    tangents = iter(forward(list(compress(results, are_read)), list(outer.values()), [moved[parent] for parent in outer]))
    back = {fresh: parent for parent, fresh in outer.items()}
    values = [next(tangents) if is_wanted else None for is_wanted in are_read]
    return [None if value is None else substitute([value], back)[0] for value in values]


class _Forward:
    """The loop of values and tangents, in the making."""

    def __init__(self, spec: LoopSpec, along: Sequence[Node | None], are_read: Sequence[bool], forward: Forward) -> None:
        self.spec = spec = spec.opened()
        self.forward = forward
        values = iter(along[1:])
        self.seqs = [next(values) for _ in spec.seqs]
        self.states = [next(values) for _ in spec.states]
        self.carries = [next(values) for _ in spec.carries]
        self.non_seqs = [next(values) for _ in spec.non_seqs]
        recurrent: list[Moving] = [(state.reads, state.write, tangent) for state, tangent in zip(spec.states, self.states, strict=True)]
        recurrent += [((carry.read,), carry.write, tangent) for carry, tangent in zip(spec.carries, self.carries, strict=True)]
        self.writes = self._needed(are_read, recurrent)
        self.recurrent = [one for one in recurrent if one[1] in self.writes]

    def _needed(self, are_read: Sequence[bool], recurrent: Sequence[Moving]) -> set[Node]:
        """The writes of results that are read, and of states that these depend on at some step."""
        writes = set(compress(self.spec.inner_outputs(), are_read))
        while True:
            behind = differentiated(list(writes))
            more = {write for reads, write, _ in recurrent if not behind.isdisjoint(reads)} - writes
            if not more:
                return writes
            writes |= more

    def _moving(self) -> dict[Node, Node]:
        """An inner input for the tangent of each inner input that moves."""
        spec = self.spec
        moving: dict[Node, None] = {}
        for seq, tangent in zip(spec.seqs, self.seqs, strict=True):
            moving |= dict.fromkeys(seq.reads if tangent is not None else ())
        for port, tangent in zip(spec.non_seqs, self.non_seqs, strict=True):
            moving |= dict.fromkeys((port.read,) if tangent is not None else ())
        for reads, _, tangent in self.recurrent:
            moving |= dict.fromkeys(reads if tangent is not None else ())
        order = toposort([write for _, write, _ in self.recurrent])
        reads_moving = over_all_steps(order, moving, [(reads, write) for reads, write, _ in self.recurrent])
        return {read: new_input(read.type, f"d_{read.name or 'x'}") for read in reads_moving}

    def tangents(self) -> list[Node | None]:
        spec = self.spec
        moving = self._moving()
        writes = [write for write in spec.inner_outputs() if write in self.writes]
        along = self.forward(writes, list(moving), list(moving.values()))
        of = dict(zip(writes, along, strict=True))
        seqs = [
            Seq(tangent, seq.taps, tuple(moving[read] for read in seq.reads))
            for seq, tangent in zip(spec.seqs, self.seqs, strict=True)
            if tangent is not None and seq.reads[0] in moving
        ]
        states = [
            State(
                tangent or zeros_like(state.initial),
                state.taps,
                tuple(moving[read] for read in state.reads),
                self._write(state, of),
                state.has_axis,
            )
            for state, tangent in zip(spec.states, self.states, strict=True)
            if state.reads[0] in moving
        ]
        traces = [Trace(value) for trace in spec.traces if (value := of.get(trace.write)) is not None]
        carries = [
            Carry(tangent or zeros_like(carry.shared), moving[carry.read], self._write(carry, of))
            for carry, tangent in zip(spec.carries, self.carries, strict=True)
            if carry.read in moving
        ]
        non_seqs = [
            NonSeq(tangent, moving[port.read])
            for port, tangent in zip(spec.non_seqs, self.non_seqs, strict=True)
            if tangent is not None and port.read in moving
        ]
        loop = scan_node(
            settled(
                replace(
                    spec,
                    seqs=(*spec.seqs, *seqs),
                    states=(*spec.states, *states),
                    traces=(*spec.traces, *traces),
                    carries=(*spec.carries, *carries),
                    non_seqs=(*spec.non_seqs, *non_seqs),
                )
            )
        )
        return self._results(loop, moving, of, len(states), len(traces))

    def _write(self, port: State | Carry, of: dict[Node, Node | None]) -> Node:
        return of[port.write] or zeros_like(port.write)

    def _results(
        self, loop: Node, moving: dict[Node, Node], of: dict[Node, Node | None], n_states: int, n_traces: int
    ) -> list[Node | None]:
        spec = self.spec
        # results: states, their tangents, traces, their tangents, carries, their tangents
        results = outputs_of(loop)
        new_states = iter(results[len(spec.states) : len(spec.states) + n_states])
        start = len(spec.states) + n_states + len(spec.traces)
        new_traces = iter(results[start : start + n_traces])
        new_carries = iter(results[start + n_traces + len(spec.carries) :])
        rows: list[Node | None] = [next(new_states) if state.reads[0] in moving else None for state in spec.states]
        rows += [next(new_traces) if of.get(trace.write) is not None else None for trace in spec.traces]
        return rows + [next(new_carries) if carry.read in moving else None for carry in spec.carries]
