"""Independent lanes run side by side: loops over time go outside, and a tile of lanes takes each step in the SIMD unit.

    # before: for i in range(n):                 # after: for i0 in range(0, n, 64):
    #             y = start[i]                   #            i1 = min(i0 + 64, n)
    #             for t in range(steps):         #            for s in range(i1 - i0):
    #                 y = f(y)                   #                y_lanes[s] = start[i0 + s]
    #                 path[t] = y                #            for t in range(steps):
    #             out[i] = y                     #                for s in range(i1 - i0):
    #                                            #                    y_lanes[s] = f(y_lanes[s])
    #                                            #                    path[t, s] = y_lanes[s]
    #                                            #            for s in range(i1 - i0):
    #                                            #                out[i0 + s] = y_lanes[s]

Every loop of a lane goes outside, and the statements between two of them become one pass over the lanes of a tile. What is the same in all
lanes is done once (see side_by_side.py). Scalars that more than one pass uses live in small rows on the stack; memory of a lane gets the
lane as its last axis (4,096 lanes of Lorenz, Runge-Kutta: 16 -> 1.8 ns a step of a lane, its gradient 34 -> 5.2). Results that steps store
in rows of their lanes lie far from each other: they are kept for some steps, and then moved lane by lane.
A loop that stores only from some step on has become two loops (see index_set_splitting.py), and each goes outside.
Not handled:
- lanes of different lengths
- conditions that differ between lanes
- views and routines
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from ...ir import loops as ir
from ...ir.mentions import mentioned
from ...ir.names import Names
from ..cost import vector_cost
from ..target import Target
from .side_by_side import Lanes, Surroundings


def tiles(function: ir.Function, target: Target) -> ir.Function:
    """The function with such loops in tiles, and the memory for tiles in front."""
    around = Surroundings.of(function)
    names = function.names.copy()
    rows: list[ir.Stmt] = []
    loops: dict[int, list[ir.Stmt]] = {}
    arrays: dict[str, list[ir.Stmt]] = {}  # replacements for the memory of lanes

    def replaced(stmt: ir.Stmt) -> list[ir.Stmt] | None:
        lanes = Lanes.of(stmt, around, target) if isinstance(stmt, ir.For) else None
        memory = MemoryOfLanes.of(lanes, around, target) if lanes else None
        if lanes is None or memory is None:
            return None
        tile = _Tile(lanes, memory, names, target)
        loops[id(stmt)] = tile.loops()
        arrays.update(memory.in_place())
        rows.extend(tile.taken)
        return []

    ir.rebuilt(function.body, replaced)
    body = ir.rebuilt(function.body, lambda stmt: arrays.get(stmt.name) if isinstance(stmt, ir.Alloc) else loops.get(id(stmt)))
    return replace(function, body=[*rows, *body], names=names)


@dataclass(frozen=True)
class MemoryOfLanes:
    """The arrays of a lane that differ between lanes. `width`: the number of lanes with memory at once."""

    arrays: Sequence[ir.Alloc]
    width: ir.Index

    @classmethod
    def of(cls, lanes: Lanes, around: Surroundings, target: Target) -> MemoryOfLanes | None:
        """Memory for as many lanes as fit in the cache, but for `min_lanes` at least, and for fewer if a lane takes very much.

        None if the width is known only at run time and cannot be computed in front of the loop.
        """
        arrays = [stmt for name, stmt in lanes.own.items() if name in lanes.differing]
        count = ir.sub(lanes.loop.stop, lanes.loop.start)
        most = min(target.tile, max(count, 1)) if isinstance(count, int) else target.tile
        if not arrays:
            return cls(arrays, most)
        size = ir.greatest(reduce(ir.add, map(_bytes, arrays)), 1)
        in_cache = ir.mul(ir.floor_div(target.cache, ir.mul(size, target.min_lanes)), target.min_lanes)
        width = ir.least(ir.least(ir.greatest(in_cache, target.min_lanes), most), ir.greatest(ir.floor_div(target.tile_memory, size), 1))
        read = {name for name, _ in ir.names_in(size)}
        is_outermost = {*map(id, arrays), id(lanes.loop)} <= around.outermost and not read & around.changed
        return cls(arrays, width) if isinstance(width, int) or is_outermost else None

    def in_place(self) -> dict[str, list[ir.Stmt]]:
        """The replacement of each array's allocation; empty if the width is known only at run time."""
        is_known = isinstance(self.width, int)
        return {stmt.name: [self._wide(stmt, self.width)] if is_known else [] for stmt in self.arrays}

    def in_front(self, width: ir.Name) -> list[ir.Stmt]:
        """The statements in front of the loop if the width is known only at run time."""
        return [ir.Let(width.name, self.width), *(self._wide(stmt, width) for stmt in self.arrays)]

    @staticmethod
    def _wide(stmt: ir.Alloc, width: ir.Index) -> ir.Alloc:
        return replace(stmt, shape=(*stmt.shape, width))


def _bytes(stmt: ir.Alloc) -> ir.Index:
    size: ir.Index = np.dtype(stmt.dtype).itemsize
    return reduce(ir.mul, stmt.shape, size)


class _Tile:
    """The loops over tiles that replace a loop over lanes. `taken`: their memory."""

    def __init__(self, lanes: Lanes, memory: MemoryOfLanes, names: Names, target: Target) -> None:
        self.lanes, self.memory, self.names, self.target = lanes, memory, names, target
        self.loop = lanes.loop
        self.taken: list[ir.Stmt] = []
        self.wide = {stmt.name for stmt in memory.arrays}
        self.loaded = {load.array for load in lanes.loads}
        self.rows: dict[str, ir.Load] = {}
        self.differing = {*lanes.differing}  # later also the arrays that keep the results of some steps

    def loops(self) -> list[ir.Stmt]:
        """One loop over tiles; if steps are short, one over whole tiles, whose number of lanes is fixed, and one over the rest."""
        loop, names = self.loop, self.names
        lanes, width = ir.sub(loop.stop, loop.start), self.memory.width
        known = [count for count in (lanes, width, self.target.tile) if isinstance(count, int)]
        self.at, self.room = ir.Name("int64", names.fresh("s")), min(known)
        is_one_tile = loop.kind == "sequential" and lanes == self.room
        first, stop = (loop.start, loop.stop) if is_one_tile else (ir.Name("int64", names.fresh(f"{loop.name}{k}")) for k in (0, 1))
        self._take_rows(first)
        if is_one_tile:
            return self._passes(lanes)
        assert isinstance(first, ir.Name)
        assert isinstance(stop, ir.Name)
        front: list[ir.Stmt] = []
        if not isinstance(width, int):
            width = ir.Name("int64", names.fresh("together"))
            front = self.memory.in_front(width)
        end = ir.Let(stop.name, ir.least(ir.add(first, width), loop.stop))
        if not (self._is_short() and isinstance(width, int)):
            passes = [end, *self._passes(ir.sub(stop, first))]
            return [*front, ir.For(first.name, loop.start, loop.stop, passes, width, loop.kind)]
        middle = ir.add(loop.start, ir.mul(ir.floor_div(lanes, width), width))
        loops = [
            ir.For(first.name, loop.start, middle, self._passes(width), width, loop.kind),
            ir.For(first.name, middle, loop.stop, [end, *self._passes(ir.sub(stop, first))], width, loop.kind),
        ]
        return [one for one in loops if one.start != one.stop]

    def _is_short(self) -> bool:
        """True if a step of a tile is so short that counting its lanes takes as long. Its states may then stay in registers, too."""
        times = [stmt for stmt in self.loop.body if isinstance(stmt, ir.For)]
        steps = [stmt for time in times for stmt in time.body]
        if self.loop.kind != "sequential" or not all(isinstance(stmt, ir.Let) for stmt in steps):
            return False
        return sum(vector_cost(stmt.value, self.target) for stmt in times[-1].body if isinstance(stmt, ir.Let)) < self.target.short_step

    # passes over the lanes of a tile ----------------------------------------------------------------------------------

    def _passes(self, count: ir.Index) -> list[ir.Stmt]:
        """The loop's body for a tile of `count` lanes."""
        self.count = count
        return self._block(self.loop.body)

    def _take_rows(self, first: ir.Index) -> None:
        """Allocates rows for the scalars that more than one pass uses, found by a trial run. The tile's lanes begin at `first`."""
        self.lane = ir.add(first, self.at)
        used, self.names = self.names, self.names.copy()
        passes = [stmt for stmt in ir.walk(self._passes(0)) if isinstance(stmt, ir.For) and stmt.name == self.at.name]
        uses = Counter(name for one in passes for name in mentioned(one.body))
        self.names = used
        self.taken.clear()
        new = [stmt for stmt in self.lanes.inside if isinstance(stmt, ir.Let) and stmt.is_new and stmt.name in self.lanes.differing]
        for name, dtype in {stmt.name: _dtype(stmt.value) for stmt in new if uses[stmt.name] > 1}.items():
            row = used.fresh(f"{name}_lanes")
            self.taken.append(ir.Alloc(row, (self.room,), dtype))
            self.rows[name] = ir.Load(dtype, row, (self.at,))

    def _block(self, stmts: Sequence[ir.Stmt]) -> list[ir.Stmt]:
        """The statements of a block; those of single lanes are gathered in passes over the lanes of a tile."""
        result: list[ir.Stmt] = []
        waiting: list[ir.Let | ir.Store] = []  # the statements of the next pass
        behind: list[ir.For] = []  # the loops over elements after that pass

        def done() -> None:
            if waiting:
                kind = "tile" if isinstance(self.count, int) and self._is_short() else "sequential"
                result.append(ir.For(self.at.name, 0, self.count, self._pass(waiting), kind=kind))
            for loop in behind:
                result.extend(self._steps(loop))
            waiting.clear()
            behind.clear()

        for stmt in stmts:
            if isinstance(stmt, ir.For) and stmt.kind == "sequential":
                behind.append(stmt)
            elif isinstance(stmt, ir.Let | ir.Store) and (stmt.name if isinstance(stmt, ir.Let) else stmt.array) in self.differing:
                if self._meet([stmt], behind):
                    done()
                waiting.append(stmt)
            else:
                if not isinstance(stmt, ir.Let) or self._meet([stmt], [*waiting, *behind]):
                    done()
                if isinstance(stmt, ir.If):
                    result.append(ir.If(stmt.condition, self._block(stmt.then), self._block(stmt.otherwise)))
                else:
                    result += self._steps(stmt) if isinstance(stmt, ir.For) else [stmt]
        done()
        return result

    def _pass(self, stmts: Sequence[ir.Let | ir.Store]) -> list[ir.Stmt]:
        """The body of a pass: it loads scalars of other passes from their rows first, and stores those it assigns there last."""
        read, made = set[str](), set[str]()
        body: list[ir.Stmt] = []
        for stmt in stmts:
            read |= {name for expr in ir.expressions(stmt) for name, _ in ir.names_in(expr)} - made
            body.append(self._placed(stmt, is_new=isinstance(stmt, ir.Let) and stmt.name in self.rows and stmt.name not in read | made))
            made |= {stmt.name} & self.rows.keys() if isinstance(stmt, ir.Let) else set()
        loads: list[ir.Stmt] = [ir.Let(name, row) for name, row in self.rows.items() if name in read]
        stores: list[ir.Stmt] = [
            ir.Store(row.array, row.index, ir.Name(row.dtype, name)) for name, row in self.rows.items() if name in made
        ]
        return [*loads, *body, *stores]

    def _steps(self, loop: ir.For) -> list[ir.Stmt]:
        """A loop for all lanes of a tile; over strips of steps if they store results that may wait."""
        kept = [stmt for stmt in loop.body if isinstance(stmt, ir.Store) and self._may_wait(stmt, loop)]
        if not kept:
            return [replace(loop, body=self._block(loop.body))]
        first, stop = (ir.Name("int64", self.names.fresh(f"{loop.name}_{word}")) for word in ("from", "to"))
        place = (ir.sub(ir.Name("int64", loop.name), first), self.at)
        step: list[ir.Stmt] = []
        moves: list[ir.Stmt] = []
        for stmt in loop.body:
            if not any(stmt is one for one in kept):
                step.append(stmt)
                continue
            assert isinstance(stmt, ir.Store)
            rows = ir.Load(_dtype(stmt.value), self.names.fresh(f"{stmt.array}_kept"), place)
            self.taken.append(ir.Alloc(rows.array, (self.target.kept_steps, self.room), rows.dtype))
            self.differing.add(rows.array)
            step.append(replace(stmt, array=rows.array, index=place, combine=""))
            moves.append(self._placed(replace(stmt, value=rows)))
        passes: list[ir.Stmt] = [
            ir.Let(stop.name, ir.least(ir.add(first, self.target.kept_steps), loop.stop)),
            replace(loop, start=first, stop=stop, body=self._block(step)),
            ir.For(self.at.name, 0, self.count, [ir.For(loop.name, first, stop, moves)]),
        ]
        return [ir.For(first.name, loop.start, loop.stop, passes, self.target.kept_steps, "time")]

    def _may_wait(self, stmt: ir.Store, loop: ir.For) -> bool:
        """True if a result may be stored some steps later: its place is still known then, and the array is not read or kept by lanes."""
        changing = {one.name for one in loop.body if isinstance(one, ir.Let)} | self.lanes.differing - {self.loop.name}
        is_flat = loop.kind == "time" and loop.step == 1 and all(isinstance(one, ir.Let | ir.Store) for one in loop.body)
        places = [one.index for one in loop.body if isinstance(one, ir.Store) and one.array == stmt.array]
        is_known = not any(is_element or name in changing for place in places for index in place for name, is_element in ir.names_in(index))
        return is_flat and is_known and stmt.array not in self.lanes.own and stmt.array not in self.loaded

    def _meet(self, some: Sequence[ir.Stmt], others: Sequence[ir.Stmt]) -> bool:
        """True if one of two groups of statements writes what the other touches."""
        ours, theirs = map(self.lanes.memory.effects, (some, others))
        return not ours.may_change_places(theirs)

    # a lane in its tile -----------------------------------------------------------------------------------------------

    def _placed(self, stmt: ir.Let | ir.Store, is_new: bool = False) -> ir.Let | ir.Store:
        """A statement of lane i, rewritten for lane s of the tile."""
        if isinstance(stmt, ir.Let):
            return replace(stmt, value=self._of_lane(stmt.value), is_new=stmt.is_new or is_new)
        index = tuple(map(self._of_lane, stmt.index))
        return replace(stmt, value=self._of_lane(stmt.value), index=(*index, self.at) if stmt.array in self.wide else index)

    def _of_lane(self, expr: ir.Index) -> ir.Index:
        def changed(part: ir.Expr) -> ir.Index | None:
            if part == ir.Name("int64", self.loop.name):
                return self.lane
            if isinstance(part, ir.Load) and part.array in self.wide:
                return replace(part, index=(*map(self._of_lane, part.index), self.at))
            return None

        return ir.mapped(expr, changed)


def _dtype(value: ir.Index) -> str:
    return value.dtype if isinstance(value, ir.Expr) else "int64"
