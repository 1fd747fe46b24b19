"""What a loop carries from step to step, states and shared variables alike."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.node import Node
from ..ir.ports import State


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
