"""Independent lanes go side by side: the loop over time goes outside, and a tile of lanes takes each step in the SIMD unit.

    # before: for i in range(n):                 # after: for i0 in range(0, n, 64):
    #             y = start[i]                   #            i1 = min(i0 + 64, n)
    #             for t in range(steps):         #            for s in range(i1 - i0):
    #                 y = f(y)                   #                y_lanes[s] = start[i0 + s]
    #             out[i] = y                     #            for t in range(steps):
    #                                            #                for s in range(i1 - i0):
    #                                            #                    y_lanes[s] = f(y_lanes[s])
    #                                            #            for s in range(i1 - i0):
    #                                            #                out[i0 + s] = y_lanes[s]

The states of a tile live in small rows on the stack (Lorenz, Runge-Kutta, 10,000 lanes: 16 -> 1.8 ns a step of a lane). What the steps
store, in rows of their lanes far from each other, is kept for some steps, and then moved lane by lane.
Of steps that store from one of them on there are two loops (see split.py), and each goes outside.
Not handled: lanes of different lengths, steps with loops or conditions inside, states in memory, lanes that read what others write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from ...ir.loops import (
    Alias,
    Alloc,
    Expr,
    For,
    Function,
    Index,
    Let,
    Load,
    Name,
    Stmt,
    Store,
    add,
    expressions,
    floor_div,
    least,
    mapped,
    mul,
    names_in,
    rebuilt,
    sub,
    walk,
    with_values,
)
from ...ir.names import Names
from ..cost import is_few, is_sum, latency, scalar_cost, vector_cost
from ..target import Target


def tiles(function: Function, target: Target) -> Function:
    """The function with such loops in tiles, and the memory for tiles in front."""
    views = {stmt.name for stmt in walk(function.body) if isinstance(stmt, Alias)}
    memory: list[Stmt] = []
    names = function.names.copy()

    def tiled(stmt: Stmt) -> list[Stmt] | None:
        lanes = _Lanes.of(stmt, views, target) if isinstance(stmt, For) else None
        return lanes.tiled(names, memory) if lanes else None

    body = rebuilt(function.body, tiled)
    return replace(function, body=[*memory, *body], names=names)


def _read(stmts: Sequence[Stmt]) -> set[str]:
    return {name for stmt in stmts for part in expressions(stmt) for name, is_element in names_in(part) if not is_element}


class _Lanes:
    """A loop over lanes: what is done before the loop over time, in each of its steps, and after it."""

    def __init__(self, loop: For, times: Sequence[For], target: Target) -> None:
        self.target = target
        first, last = (next(k for k, stmt in enumerate(loop.body) if stmt is time) for time in (times[0], times[-1]))
        self.loop, self.times, self.time = loop, times, times[-1]
        time = self.time
        self.before, self.after = loop.body[:first], loop.body[last + 1 :]
        self.own = {stmt.name: stmt for stmt in self.before if isinstance(stmt, Let) and stmt.is_new}
        self.moved = [stmt.name for stmt in time.body if isinstance(stmt, Let) and not stmt.is_new]
        read_later = _read(time.body) | _read(self.after)
        self.carried = [name for name in self.own if name in read_later or name in self.moved]

    @classmethod
    def of(cls, loop: For, views: set[str], target: Target) -> _Lanes | None:
        """The parts of a loop over lanes; None if it is none, or not one that may go side by side."""
        times = [stmt for stmt in loop.body if isinstance(stmt, For)]
        if not times or loop.step != 1 or not all(isinstance(stmt, Let | Store | For) for stmt in loop.body):
            return None
        if not all(time.kind == "time" and all(isinstance(stmt, Let | Store) for stmt in time.body) for time in times):
            return None
        if not _go_on(times, loop) or is_few(replace(times[0], stop=times[-1].stop), target):
            return None
        if loop.kind != "lanes" and is_few(loop, target):  # few lanes give the bits that many would give
            return None
        lanes = cls(loop, times, target)
        may = lanes.moved and lanes._is_free_of_others(views) and lanes._is_one_length()
        return lanes if may and lanes._pays() else None

    def _pays(self) -> bool:
        """Does a step take longer by itself than side by side with others, its results moved?"""
        body = self.times[0].body
        moved = sum(isinstance(stmt, Store) for stmt in body)
        lets = {stmt.name: k for k, stmt in enumerate(body) if isinstance(stmt, Let) and stmt.is_new}
        states = [k for k, stmt in enumerate(body) if isinstance(stmt, Let) and not stmt.is_new]
        values = [stmt.value for stmt in body if isinstance(stmt, Let | Store)]
        alone = max(scalar_cost(values, self.target), *(latency(body, lets, set(self.moved), k, self.target) for k in states))
        return not moved or alone > self._vector_cost(values) + self.target.move_cost * moved

    def _is_one_length(self) -> bool:
        """Is the number of steps the same for all lanes?"""
        names = {name for time in self.times for part in (time.start, time.stop) for name, _ in names_in(part)}
        return not names & {self.loop.name, *self.own}

    def _is_free_of_others(self, views: set[str]) -> bool:
        """Does a lane change nothing but its own scalars, its own elements of arrays, and sums?

        In a tile all lanes take step t before any takes step t + 1. So what one lane stores must never be what another loads: each store
        is at the lane's own index, and an array that is stored is not loaded. Results are moved some steps later, so no local of the step
        may tell their place. A view might be another name for an array that is stored.
        """
        outside = [stmt for stmt in (*self.before, *self.after) if isinstance(stmt, Let) and not stmt.is_new]
        every = [*self.before, *self.time.body, *self.after]
        if not all(self._sums(stmt, every) for stmt in outside) or not set(self.moved) <= set(self.own):
            return False
        new = [stmt.name for stmt in self.time.body if isinstance(stmt, Let) and stmt.is_new]
        if _read(self.after) & set(new) - {stmt.name for stmt in self.after if isinstance(stmt, Let)}:
            return False
        stored = {stmt.array for stmt in every if isinstance(stmt, Store)}
        loaded = {name for stmt in every for part in expressions(stmt) for name, is_element in names_in(part) if is_element}
        loaded -= self._taken_and_put_back(every)
        lane = Name("int64", self.loop.name)
        by_lane = all(lane in stmt.index for stmt in every if isinstance(stmt, Store))
        changing = {stmt.name for stmt in every if isinstance(stmt, Let)}  # a place that they tell is not known when results are moved
        by_lane = by_lane and not any(changing & {name for index in stmt.index for name, _ in names_in(index)} for stmt in self._stores())
        return by_lane and not stored & loaded and not (stored and (stored | loaded) & views)

    def _taken_and_put_back(self, every: Sequence[Stmt]) -> set[str]:
        """Arrays of which a lane reads one element, at the beginning, and writes it at the end."""
        arrays: set[str] = set()
        for stmt in self.before:
            if isinstance(stmt, Let) and isinstance(stmt.value, Load):
                array, place = stmt.value.array, stmt.value.index
                puts = [other.index for other in every if isinstance(other, Store) and other.array == array]
                reads = [name for other in every for part in expressions(other) for name, is_element in names_in(part) if is_element]
                late = all(other in self.after for other in every if isinstance(other, Store) and other.array == array)
                arrays |= {array} if set(puts) == {place} and reads.count(array) == 1 and late else set()
        return arrays

    @staticmethod
    def _sums(stmt: Let, every: Sequence[Stmt]) -> bool:
        """Does a statement add to a sum, in any order, that nothing else reads?"""
        return is_sum(stmt) and stmt.name not in _read([other for other in every if other is not stmt])

    def tiled(self, names: Names, memory: list[Stmt]) -> list[Stmt]:
        """The loop over tiles; where steps are short one over whole tiles, whose lanes need no counting, and one over the rest."""
        loop = self.loop
        lanes = sub(loop.stop, loop.start)
        is_one_tile = loop.kind == "sequential" and isinstance(lanes, int) and lanes <= self.target.tile
        first, stop = (loop.start, loop.stop) if is_one_tile else (Name("int64", names.fresh(f"{loop.name}{k}")) for k in (0, 1))
        self.at = Name("int64", names.fresh("s"))
        self.lane = add(first, self.at)
        self.rows: dict[str, Load] = {}
        for name in self.carried:
            row = names.fresh(f"{name}_lanes")
            dtype = _dtype(self.own[name])
            memory.append(Alloc(row, (self._room(),), dtype))
            self.rows[name] = Load(dtype, row, (self.at,))
        if is_one_tile:
            return self._passes(names, lanes, memory)
        assert isinstance(first, Name)
        assert isinstance(stop, Name)
        end = Let(stop.name, least(add(first, self.target.tile), loop.stop))
        if not self._is_short():
            passes = self._passes(names, sub(stop, first), memory)
            return [For(first.name, loop.start, loop.stop, [end, *passes], self.target.tile, loop.kind)]
        middle = add(loop.start, mul(floor_div(sub(loop.stop, loop.start), self.target.tile), self.target.tile))
        whole, rest = (self._passes(names, count, memory) for count in (self.target.tile, sub(stop, first)))
        loops = [
            For(first.name, loop.start, middle, whole, self.target.tile, loop.kind),
            For(first.name, middle, loop.stop, [end, *rest], self.target.tile, loop.kind),
        ]
        return [one for one in loops if one.start != one.stop]

    def _room(self) -> int:
        """The lanes that a tile has at most."""
        count = sub(self.loop.stop, self.loop.start)
        return min(count, self.target.tile) if isinstance(count, int) else self.target.tile

    def _is_short(self) -> bool:
        """Is a step of a tile so short that counting its lanes takes as long? Then its states may stay in registers, too."""
        values = [stmt.value for stmt in self.time.body if isinstance(stmt, Let)]
        return self.loop.kind == "sequential" and not self._stores() and self._vector_cost(values) < self.target.short_step

    def _vector_cost(self, values: Sequence[Index]) -> float:
        return sum(vector_cost(value, self.target) for value in values)

    def _stores(self) -> list[Store]:
        return [stmt for stmt in self.time.body if isinstance(stmt, Store)]

    def _passes(self, names: Names, count: Index, memory: list[Stmt]) -> list[Stmt]:
        """What is done with so many lanes of a tile."""
        kind = "tile" if isinstance(count, int) and self._is_short() else "sequential"
        passes: list[Stmt] = [
            For(self.at.name, 0, count, self._all(self.before, self.carried), kind=kind),
            *(self._steps(time, names, count, memory, kind) for time in self.times),
        ]
        return [*passes, For(self.at.name, 0, count, self._all(self.after, ()), kind=kind)] if self.after else passes

    def _steps(self, time: For, names: Names, count: Index, memory: list[Stmt], kind: str) -> For:
        """A loop over time, for all lanes of a tile; over a few steps at a time where they store something."""
        if not any(isinstance(stmt, Store) for stmt in time.body):
            lanes = For(self.at.name, 0, count, self._all(time.body, self.moved), kind=kind)
            return For(time.name, time.start, time.stop, [lanes], kind="time")
        first, stop = (Name("int64", names.fresh(f"{time.name}_{word}")) for word in ("from", "to"))
        t = Name("int64", time.name)
        step: list[Stmt] = []
        moves: list[Stmt] = []
        for stmt in time.body:
            if not isinstance(stmt, Store):
                step.append(stmt)
                continue
            dtype = stmt.value.dtype if isinstance(stmt.value, Expr) else "int64"
            rows = names.fresh(f"{stmt.array}_kept")
            memory.append(Alloc(rows, (self.target.kept_steps, self._room()), dtype))
            place = (sub(t, first), self.at)
            step.append(Store(rows, place, stmt.value))
            moves.append(self._placed(replace(stmt, value=Load(dtype, rows, place))))
        passes: list[Stmt] = [
            Let(stop.name, least(add(first, self.target.kept_steps), time.stop)),
            For(time.name, first, stop, [For(self.at.name, 0, count, self._all(step, self.moved))], kind="time"),
            For(self.at.name, 0, count, [For(time.name, first, stop, moves)]),
        ]
        return For(first.name, time.start, time.stop, passes, self.target.kept_steps, "time")

    def _all(self, stmts: Sequence[Stmt], stored: Sequence[str]) -> list[Stmt]:
        """The statements for one lane of a tile: scalars read from its rows, and those in `stored` written there in the end."""
        own = {stmt.name for stmt in stmts if isinstance(stmt, Let) and stmt.is_new}
        read = _read(stmts) - own
        loads: list[Stmt] = [Let(name, self.rows[name]) for name in self.carried if name in read]
        stores: list[Stmt] = [Store(row.array, row.index, Name(row.dtype, name)) for name, row in self.rows.items() if name in stored]
        return [*loads, *map(self._placed, stmts), *stores]

    def _placed(self, stmt: Stmt) -> Stmt:
        """A statement of lane i as one of the s-th lane of the tile."""
        lane = Name("int64", self.loop.name)
        return with_values(stmt, lambda expr: mapped(expr, lambda part: self.lane if part == lane else None))


def _go_on(times: Sequence[For], loop: For) -> bool:
    """Does each loop over time go on where the one before ends, with the same scalars?"""
    place = next(k for k, stmt in enumerate(loop.body) if stmt is times[0])
    are_neighbours = all(stmt is time for stmt, time in zip(loop.body[place:], times, strict=False))
    scalars = [[stmt for stmt in time.body if isinstance(stmt, Let)] for time in times]
    pairs = pairwise(times)
    return are_neighbours and all(one.stop == other.start for one, other in pairs) and all(one == scalars[0] for one in scalars)


def _dtype(stmt: Let) -> str:
    return stmt.value.dtype if isinstance(stmt.value, Expr) else "int64"
