"""What a loop carries from step to step, states and shared variables alike."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..ir.node import Node, constant
from ..ir.ports import LoopSpec, State
from ..ops.algebra import call, is_float, zeros_like
from .cotangent_rows import split_last


@dataclass
class Recurrence:
    """A state, or a shared variable that every step replaces, seen alike. `rows`, `last`: cotangents of all rows, of the last one."""

    initial: Node
    taps: tuple[int, ...]
    reads: tuple[Node, ...]
    write: Node
    has_axis: bool
    is_carry: bool
    rows: Node | None
    last: Node | None = None

    @property
    def depth(self) -> int:
        return -min(self.taps)

    def as_state(self) -> State:
        return State(self.initial, self.taps, self.reads, self.write, self.has_axis)


def with_untouched(
    spec: LoopSpec, cotangents: Sequence[Node | None], results: Sequence[Node | None], needed: Collection[int]
) -> list[Node | None]:
    """`results` with cotangents of states and shared variables that have none: a loop of no steps hands on that of their last value."""
    result = list(results)
    if spec.has_step:
        return result
    _, states, carries, _ = spec.outer_places()
    of_states = [None if rows is None else split_last(rows)[1] for rows in cotangents[: len(spec.states)]]
    lasts = [*of_states, *cotangents[len(cotangents) - len(spec.carries) :]]
    for place, last in zip([*states, *carries], lasts, strict=True):
        initial = spec.outer_inputs()[place]
        is_alike = last is not None and last.type.rank == initial.type.rank
        if result[place] is None and is_alike and last is not None and place in needed and is_float(initial.type):
            result[place] = call("where", call("equal", spec.n_steps, constant(0, "int64")), last, zeros_like(initial))
    return result
