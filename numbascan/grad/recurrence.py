"""What a loop carries from step to step, states and shared variables alike."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..ir.node import Node, constant
from ..ir.ports import LoopSpec, State
from ..ops.algebra import call, is_float, zeros_like


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
    """`results` with cotangents of shared variables that have none: a loop of no steps hands on the cotangent of their last value."""
    result = list(results)
    _, _, carries, _ = spec.outer_places()
    for place, carry, last in zip(carries, spec.carries, cotangents[len(cotangents) - len(spec.carries) :], strict=True):
        if result[place] is None and last is not None and place in needed and not spec.has_step and is_float(carry.shared.type):
            result[place] = call("where", call("equal", spec.n_steps, constant(0, "int64")), last, zeros_like(carry.shared))
    return result
