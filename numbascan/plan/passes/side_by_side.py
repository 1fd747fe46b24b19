"""Which loops over lanes may run side by side, a tile of lanes at a time, and what is uniform: the same in all lanes.

In a tile all lanes run a statement before any runs the next one. So no lane may read or write what another writes:
- No lane touches what another one writes of an array from outside, or all add to it (`ir/accesses.py`).
- Memory that only the loop uses belongs to each lane.
- Scalars that go from lane to lane are sums that may be reassociated.
- All lanes take the same steps: bounds and conditions are the same in all of them.

Whatever reads the lane's number, or anything that differs between lanes, differs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from ...ir import loops as ir
from ...ir.accesses import Memory, Passes
from ...ir.mentions import loads_in, mentions_in
from ..cost import is_few, is_sum, latency, scalar_cost, vector_cost
from ..target import Target


@dataclass(frozen=True)
class Surroundings:
    """The facts about a function that decide which loops may change.

    mentions: the number of statements that mention each name. memory: where arrays and views lie. changed: scalars that are reassigned.
    outermost: the ids of statements in no loop or condition.
    """

    mentions: Counter[str]
    memory: Memory
    allocs: Mapping[str, ir.Alloc]
    changed: Set[str]
    outermost: Set[int]

    @classmethod
    def of(cls, function: ir.Function) -> Surroundings:
        every = list(ir.walk(function.body))
        allocs = {stmt.name: stmt for stmt in every if isinstance(stmt, ir.Alloc)}
        changed = {stmt.name for stmt in every if isinstance(stmt, ir.Let) and not stmt.is_new}
        return cls(mentions_in(every), Memory(function.body, function.rings), allocs, changed, set(map(id, function.body)))


class Lanes:
    """A loop over lanes that may run side by side.

    own: memory that each lane has for itself, by name. sums: scalars from outside that lanes add to. changing: what a lane assigns or
    writes. differing: scalars and arrays that are not the same in all lanes.
    """

    def __init__(self, loop: ir.For, around: Surroundings) -> None:
        self.loop = loop
        self.inside = list(ir.walk(loop.body))
        within = mentions_in([loop, *self.inside])
        is_alone = loop.kind == "lanes" or (loop.kind == "time" and id(loop) in around.outermost)  # a step has memory of its own
        self.own = {
            name: stmt
            for name, stmt in around.allocs.items()
            if is_alone and within[name] and around.mentions[name] == within[name] + 1 and name not in around.memory.roots
        }
        self.memory, self.effects = around.memory, around.memory.effects(loop.body)
        self.passes = Passes(loop, self.memory, self.effects)
        self.sums = self.effects.changed - self.effects.made
        self.loads = [load for stmt in self.inside for expr in ir.expressions(stmt) for load in loads_in(expr)]
        self.written = {stmt.array for stmt in self.inside if isinstance(stmt, ir.Store)}
        self.changing = self.written | self.effects.made | self.effects.changed | self.effects.counters
        self.differing = self._differing()

    @classmethod
    def of(cls, loop: ir.For, around: Surroundings, target: Target) -> Lanes | None:
        """The lanes of a loop; None if it is no loop over lanes, if these may not run side by side, or if that does not pay."""
        if loop.step != 1 or (loop.kind != "lanes" and is_few(loop, target)):  # few real lanes must give the bits that many would give
            return None
        if not has_many_steps(loop.body, target) or ir.may_end(loop.body):
            return None
        lanes = cls(loop, around)
        return lanes if lanes.are_independent() and lanes._is_in_step() and lanes._pays(target) else None

    # what differs -----------------------------------------------------------------------------------------------------

    def differs(self, expr: ir.Index) -> bool:
        """True if a value is not the same in all lanes."""
        return any(self._is_different(part) for part in ir.parts(expr))

    def _is_different(self, part: ir.Index) -> bool:
        if isinstance(part, ir.Load):
            return part.array in self.differing or (part.array in self.written and part.array not in self.own)
        return isinstance(part, ir.Name) and part.name in self.differing

    def changes(self, expr: ir.Index) -> bool:
        """True if a value differs between lanes, or reads anything that a lane assigns or writes."""
        return self.differs(expr) or not self.changing.isdisjoint(name for name, _ in ir.names_in(expr))

    def is_of_lanes(self, stmt: ir.Let | ir.Store) -> bool:
        """True if a statement runs for each lane, not once for all of them."""
        return (stmt.name if isinstance(stmt, ir.Let) else stmt.array) in self.differing

    def _differing(self) -> set[str]:
        self.differing = {self.loop.name, *self.sums, *(self.written - self.own.keys())}
        count = 0
        while count < len(self.differing):
            count = len(self.differing)
            for stmt in self.inside:
                if isinstance(stmt, ir.Let) and self.differs(stmt.value):
                    self.differing.add(stmt.name)
                elif isinstance(stmt, ir.Store) and any(map(self.differs, ir.expressions(stmt))):
                    self.differing.add(stmt.array)
        return self.differing

    # legality ---------------------------------------------------------------------------------------------------------

    def _is_in_step(self) -> bool:
        """True if all lanes take the same steps, and all statements are handled."""
        deciding = [expr for stmt in self.inside if isinstance(stmt, ir.For | ir.If | ir.Fail) for expr in ir.expressions(stmt)]
        is_handled = all(isinstance(stmt, ir.Let | ir.Store | ir.For | ir.If | ir.Fail | ir.Break) for stmt in self.inside)
        is_handled = is_handled and all(load.index for load in self.loads if load.array in self.own)
        return is_handled and not any(map(self.differs, deciding))

    def are_independent(self) -> bool:
        """True if no lane touches what another writes, sums apart. Views and routines are refused: they may touch anything."""
        if any(isinstance(stmt, ir.Alias | ir.Call) for stmt in self.inside):
            return False
        if not all(self._is_sum(stmt) for stmt in self.inside if isinstance(stmt, ir.Let) and stmt.name in self.sums):
            return False
        names = Counter(map(self.memory.root, {load.array for load in self.loads} | self.written))
        shared = self.written - self.own.keys()
        is_one_name = all(names[self.memory.root(array)] == 1 for array in shared)
        return is_one_name and all(self.is_of_one_lane(array) or self._is_added_to(array) for array in shared)

    def are_in_order(self) -> bool:
        """True if lanes must stay in order, because they add to some elements that they share."""
        return not all(map(self.is_of_one_lane, self.written - self.own.keys()))

    def is_of_one_lane(self, array: str) -> bool:
        """True if no lane touches what another one writes of an array."""
        return self.passes.is_own(self.memory.root(array))

    def _is_added_to(self, array: str) -> bool:
        """True if one statement alone changes an array, adding to each element at most once in a lane: lanes in order add in order."""
        ((store, loops), *others) = [(stmt, around) for stmt, around in _with_loops(self.loop.body) if stmt.array == array]
        reads = [load for load in self.loads if load.array == array]
        own = [load for load in loads_in(store.value) if load.array == array and load.index == store.index]
        is_once = all(Passes(one, self.memory, self.effects).moves(store.index) for one in loops)
        is_sum = bool(own or store.combine) and len(reads) == len(own)
        return not others and is_sum and is_once and not any(map(self.differs, store.index))

    def _is_sum(self, stmt: ir.Let) -> bool:
        """True if a statement adds to a sum that may be reassociated and that nothing else reads."""
        others = [expr for other in self.inside if other is not stmt for expr in ir.expressions(other)]
        return is_sum(stmt) and not any(name == stmt.name for expr in others for name, _ in ir.names_in(expr))

    # gain -------------------------------------------------------------------------------------------------------------

    def _pays(self, target: Target) -> bool:
        """True if the steps take longer lane after lane than side by side, with the moves of their results.

        False for steps without states and steps with loops over many elements: the SIMD unit takes these as they are.
        """
        times = list(ir.outermost_times(self.loop.body))
        loops = [loop for time in times for loop in ir.walk([time]) if isinstance(loop, ir.For)]
        if any(loop.kind == "sequential" and not is_few(loop, target) and _computes(loop) for loop in loops):
            return False
        if not any(self._has_states(loop) for loop in loops if loop.kind == "time"):
            return False
        steps = [[stmt for stmt in loop.body if isinstance(stmt, ir.Let | ir.Store) and self.is_of_lanes(stmt)] for loop in loops]
        values = [stmt.value for step in steps for stmt in step]
        moved = sum(isinstance(stmt, ir.Store) and stmt.array not in self.own for step in steps for stmt in step)
        side_by_side = sum(vector_cost(value, target) for value in values) + target.move_cost * moved
        alone = max(scalar_cost(values, target), sum(wait(step, target) for step in steps))
        return not moved or alone > side_by_side

    def _has_states(self, time: ir.For) -> bool:
        """True if a step of a lane reads what the step before has left."""
        inside = list(ir.walk(time.body))
        new = {stmt.name for stmt in inside if isinstance(stmt, ir.Let) and stmt.is_new}
        if any(isinstance(stmt, ir.Let) and stmt.name in self.differing - new - self.sums for stmt in inside):
            return True
        stored = {stmt.array for stmt in inside if isinstance(stmt, ir.Store)}
        return any(load.array in stored for stmt in inside for expr in ir.expressions(stmt) for load in loads_in(expr))


def _computes(loop: ir.For) -> bool:
    """True if a loop does more than move numbers."""
    return any(isinstance(stmt, ir.Let | ir.Store) and isinstance(stmt.value, ir.Apply) for stmt in ir.walk(loop.body))


def _with_loops(stmts: Sequence[ir.Stmt], loops: tuple[ir.For, ...] = ()) -> Iterator[tuple[ir.Store, tuple[ir.For, ...]]]:
    """The stores among statements, each with the loops around it."""
    for stmt in stmts:
        if isinstance(stmt, ir.Store):
            yield stmt, loops
        elif isinstance(stmt, ir.For):
            yield from _with_loops(stmt.body, (*loops, stmt))
        elif isinstance(stmt, ir.If):
            yield from _with_loops([*stmt.then, *stmt.otherwise], loops)


def has_many_steps(stmts: Sequence[ir.Stmt], target: Target) -> bool:
    """True if a lane makes steps, and not only a few."""
    return any(True for _ in ir.outermost_times(stmts)) and _steps(stmts) >= target.min_steps


def _steps(stmts: Sequence[ir.Stmt]) -> float:
    """The number of steps of all loops over time, inner ones multiplied by the outer; infinity if known only at run time."""
    times = ((time, ir.sub(time.stop, time.start)) for time in ir.outermost_times(stmts))
    return sum(max(_steps(time.body), 1) * (length if isinstance(length, int) else math.inf) for time, length in times)


def wait(step: Sequence[ir.Let | ir.Store], target: Target) -> float:
    """The cycles until all states of a step have their next values."""
    lets = {stmt.name: k for k, stmt in enumerate(step) if isinstance(stmt, ir.Let) and stmt.is_new}
    states = {stmt.name: k for k, stmt in enumerate(step) if isinstance(stmt, ir.Let) and not stmt.is_new}
    return max((latency(step, lets, set(states), k, target) for k in states.values()), default=0.0)
