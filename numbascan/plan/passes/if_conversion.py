"""Lanes that end at different steps run side by side, masked, until few of a tile are left; these finish one after the other.

    # before: for i in range(n):              # after: for i0 in range(0, n, 64):
    #             y = start[i]                #            i1 = min(i0 + 64, n)
    #             for t in range(steps):      #            for s in range(i1 - i0):
    #                 y = f(y)                #                y_lanes[s] = start[i0 + s]
    #                 if y > 1.0:             #                is_running_lanes[s] = 1
    #                     break               #            passed = 0
    #             out[i] = y                  #            for t in range(steps):
    #                                         #                running = 0
    #                                         #                for s in range(i1 - i0):
    #                                         #                    …          (y as it was in lanes that have ended)
    #                                         #                    running += is_running_lanes[s]
    #                                         #                passed = t + 1
    #                                         #                if running <= 8:
    #                                         #                    break
    #                                         #            for s in range(i1 - i0):
    #                                         #                y = y_lanes[s]
    #                                         #                if is_running_lanes[s] != 0:
    #                                         #                    for t in range(passed, steps):
    #                                         #                        y = f(y)
    #                                         #                        if y > 1.0:
    #                                         #                            break
    #                                         #                out[i0 + s] = y

A lane that has ended goes on computing, and its results are thrown away. So a step must be safe for any states: no state decides where it
reads, and nothing in it can fail. "Few" is the number of lanes that take as long one after the other as a tile does side by side. So
however unequal the lanes are, they take no longer than each by itself. 4,096 paths of Lorenz of 1 to 4,000 steps: 13 -> 4.4 ns a step; of
equal lengths 13 -> 1.3.
Not handled:
- steps that store rows or have memory of their own
- inner loops, conditions, routines
- lanes whose bounds differ
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass, replace

from ...ir import loops as ir
from ...ir.mentions import loads_in
from ...ir.names import Names
from ..cost import scalar_cost, vector_cost
from ..target import Target
from .side_by_side import Lanes, Surroundings, wait

NONE, ONE = ir.Literal("float64", 0.0), ir.Literal("float64", 1.0)
MOVES = 4  # a load, a choice and a store for each state and for the mask, in units of plain vector work
WIDEST = 2  # registers may be twice as wide as those of the cost model


def if_conversion(function: ir.Function, target: Target) -> ir.Function:
    """The function with such loops in tiles, and the rows for tiles in front."""
    around = Surroundings.of(function)
    names = function.names.copy()
    rows: list[ir.Stmt] = []

    def replaced(stmt: ir.Stmt) -> list[ir.Stmt] | None:
        ending = _ending(stmt, around) if isinstance(stmt, ir.For) and stmt.kind == "lanes" and stmt.step == 1 else None
        few = target.tile if ending is None else _few(ending, target)
        if ending is None or 4 * few > target.tile:
            return None
        tile = _MaskedTile(ending, few, names, target.tile)
        rows.extend(tile.rows.values())
        return [tile.loop()]

    body = ir.rebuilt(function.body, replaced)
    return replace(function, body=[*rows, *body], names=names)


# which loops --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Ending:
    """A loop over lanes, each of which makes steps until its own condition holds.

    shared, before: scalars in front of the loop over time; the same in all lanes, or each lane's own. steps: the scalars of a step.
    last: what states get in the step that meets the condition. behind: the statements after the loop over time.
    """

    loop: ir.For
    time: ir.For
    shared: Sequence[ir.Let]
    before: Sequence[ir.Let]
    steps: Sequence[ir.Let]
    condition: ir.Expr
    last: Sequence[ir.Let]
    behind: Sequence[ir.Let | ir.Store]
    states: frozenset[str]


def _ending(loop: ir.For, around: Surroundings) -> _Ending | None:
    """The parts of a loop over lanes; None if it has another form, or if lanes that have ended could not safely go on."""
    form = _form(loop)
    if form is None:
        return None
    lanes = Lanes(loop, around)
    if lanes.own or lanes.sums or not lanes.are_independent():
        return None
    before, time, steps, end, behind = form
    read = lanes.effects.scalars
    used, last = ([stmt for stmt in lets if stmt.name in read] for lets in (before, _lets(end.then)))
    states = frozenset(stmt.name for stmt in (*steps, *last) if not stmt.is_new)
    names = [stmt.name for stmt in used if stmt.is_new]
    inner = {stmt.name for stmt in steps if stmt.is_new}  # these have no row that would carry them out of the loop
    leaves = not inner.isdisjoint(lanes.memory.effects(behind).scalars)
    if len(set(names)) < len(used) or not states <= set(names) or leaves or any(stmt.is_new for stmt in last):
        return None
    own = _own(used, lanes.differing | states)
    shared = [stmt for stmt in used if stmt not in own]
    found = _Ending(loop, time, shared, own, steps, end.condition, last, behind, states)
    return found if _is_safe(found, lanes) else None


def _form(loop: ir.For) -> tuple[list[ir.Let], ir.For, list[ir.Let], ir.If, list[ir.Let | ir.Store]] | None:
    """What is in front of a loop over time, this loop, its steps, the condition that ends it, and what is behind it; None of others."""
    places = [k for k, stmt in enumerate(loop.body) if isinstance(stmt, ir.For)]
    time = loop.body[places[0]] if len(places) == 1 else None
    if not isinstance(time, ir.For) or time.kind != "time" or time.step != 1 or not time.body:
        return None
    *steps, end = time.body
    before, behind = loop.body[: places[0]], loop.body[places[0] + 1 :]
    if not isinstance(end, ir.If) or end.otherwise or not end.then or not isinstance(end.then[-1], ir.Break):
        return None
    stores = [stmt for stmt in behind if isinstance(stmt, ir.Let | ir.Store)]
    is_plain = len(_lets([*before, *steps, *end.then])) == len(before) + len(steps) + len(end.then) - 1
    return (_lets(before), time, _lets(steps), end, stores) if is_plain and len(stores) == len(behind) else None


def _lets(stmts: Sequence[ir.Stmt]) -> list[ir.Let]:
    return [stmt for stmt in stmts if isinstance(stmt, ir.Let)]


def _own(stmts: Sequence[ir.Let], names: Set[str]) -> list[ir.Let]:
    """The scalars in front of a loop that differ between lanes: `names`, and all computed from them."""
    known = set(names)
    for stmt in stmts:
        if not known.isdisjoint(name for name, _ in ir.names_in(stmt.value)):
            known.add(stmt.name)
    return [stmt for stmt in stmts if stmt.name in known]


def _is_safe(ending: _Ending, lanes: Lanes) -> bool:
    """True if a step is safe with the states of a lane that has ended: they decide no bound and no index, and nothing is called."""
    counters = {ending.loop.name, ending.time.name}
    values = [*(stmt.value for stmt in (*ending.steps, *ending.last)), ending.condition]
    places = [index for value in values for load in loads_in(value) for index in load.index]
    deciding = {name for index in places for name, _ in ir.names_in(index)} - counters
    deciding |= {name for expr in ir.expressions(ending.time) for name, _ in ir.names_in(expr)}
    calls = [part for value in values for part in ir.parts(value) if isinstance(part, ir.Apply) and part.template.cost == ir.CALL]
    return not calls and lanes.changing.isdisjoint(deciding) and lanes.written.isdisjoint(load.array for load in lanes.loads)


def _few(ending: _Ending, target: Target) -> int:
    """The number of lanes that take as long one after the other as a tile does side by side, in the widest registers."""
    values = [*(stmt.value for stmt in ending.steps), ending.condition]
    moves = target.costs[ir.PLAIN].vector * MOVES * (len(ending.states) + 1)
    side_by_side = sum(vector_cost(value, target) for value in values) + moves
    alone = max(scalar_cost(values, target), wait(ending.steps, target))
    return math.ceil(target.tile * side_by_side / (WIDEST * max(alone, 1.0)))


# what takes their place ---------------------------------------------------------------------------------------------


class _MaskedTile:
    """The loop over tiles that replaces a loop over lanes. `rows`: memory for scalars that one pass over the lanes hands to the next."""

    def __init__(self, ending: _Ending, few: int, names: Names, tile: int) -> None:
        self.ending, self.few, self.names, self.tile = ending, few, names, tile
        self.first, self.stop = (ir.Name("int64", names.fresh(f"{ending.loop.name}{k}")) for k in (0, 1))
        self.at, self.passed = (ir.Name("int64", names.fresh(name)) for name in ("s", "passed"))
        self.running, self.is_running = (
            ir.Name("float64", names.fresh(name)) for name in ("running", "is_running")
        )  # floats, whose sums are vectorized
        dtypes = {name.name: name.dtype for name in (*map(_scalar, ending.before), self.is_running)}
        self.rows = {name: ir.Alloc(names.fresh(f"{name}_lanes"), (tile,), dtype) for name, dtype in dtypes.items()}

    def loop(self) -> ir.For:
        """The loop over tiles."""
        ending, loop = self.ending, self.ending.loop
        passes: list[ir.Stmt] = [
            ir.Let(self.stop.name, ir.least(ir.add(self.first, self.tile), loop.stop)),
            *ending.shared,
            self._pass([*map(self._of_lane, ending.before), ir.Let(self.is_running.name, ONE)], stored=self.rows),
            ir.Let(self.passed.name, ending.time.start),
            replace(
                ending.time,
                body=[*self._step(), ir.If(ir.compare("<=", self.running, ir.Literal("float64", float(self.few))), [ir.Break()])],
            ),
            self._pass([self._rest(), *map(self._of_lane, ending.behind)], loaded=self.rows),
        ]
        return ir.For(self.first.name, loop.start, loop.stop, passes, self.tile, loop.kind)

    def _pass(self, stmts: Sequence[ir.Stmt], loaded: Collection[str] = (), stored: Collection[str] = ()) -> ir.For:
        """A pass over the lanes of a tile; it loads the scalars `loaded` from their rows first, and stores those in `stored` last."""
        places = {name: ir.Load(row.dtype, row.name, (self.at,)) for name, row in self.rows.items()}
        loads = [ir.Let(name, places[name]) for name in loaded]
        stores = [ir.Store(places[name].array, (self.at,), ir.Name(places[name].dtype, name)) for name in stored]
        return ir.For(self.at.name, 0, ir.sub(self.stop, self.first), [*loads, *stmts, *stores])

    def _step(self) -> list[ir.Stmt]:
        """A step of all lanes of a tile; the states of lanes that have ended stay as they are."""
        ending, is_running = self.ending, self.is_running.name
        body = [stmt for step in ending.steps for stmt in self._masked(step)]
        has_ended = ending.condition
        if not isinstance(has_ended, ir.Name):
            has_ended = ir.Name("bool", self.names.fresh("has_ended"))
            body.append(ir.Let(has_ended.name, self._moved(ending.condition)))
        for stmt in ending.last:
            state = _scalar(stmt)
            body += self._masked(replace(stmt, value=ir.choice(has_ended, stmt.value, state, state.dtype)))
        body.append(ir.Let(is_running, ir.choice(has_ended, NONE, self.is_running, "float64"), is_new=False))
        body.append(ir.Let(self.running.name, ir.Apply("float64", ir.ACCUMULATE, (self.running, self.is_running)), is_new=False))
        changed = [name for name in self.rows if name in ending.states or name == is_running]
        return [
            ir.Let(self.running.name, NONE),
            self._pass(body, loaded=self.rows, stored=changed),
            ir.Let(self.passed.name, ir.add(ir.Name("int64", ending.time.name), 1), is_new=False),
        ]

    def _masked(self, stmt: ir.Let) -> Iterator[ir.Let]:
        """A scalar of a step; a state is assigned only in lanes that still run."""
        state, value = _scalar(stmt), self._moved(stmt.value)
        if stmt.is_new:
            yield ir.Let(stmt.name, value)
            return
        if isinstance(value, ir.Expr) and not isinstance(
            value, ir.Name
        ):  # a local of its own, so that the masked assignment is only a select
            then = ir.Name(state.dtype, self.names.fresh(f"{stmt.name}_then"))
            yield ir.Let(then.name, value)
            value = then
        yield ir.Let(stmt.name, ir.choice(ir.compare("!=", self.is_running, NONE), value, state, state.dtype), is_new=False)

    def _rest(self) -> ir.If:
        """The remaining steps of a lane that has not ended."""
        ending = self.ending
        end = ir.If(self._condition(), [*map(self._of_lane, ending.last), ir.Break()])
        steps = replace(ending.time, start=self.passed, body=[*map(self._of_lane, ending.steps), end], kind="rest")
        return ir.If(ir.compare("!=", self.is_running, NONE), [steps])

    def _condition(self) -> ir.Expr:
        condition = self._moved(self.ending.condition)
        assert isinstance(condition, ir.Expr)
        return condition

    def _of_lane(self, stmt: ir.Let | ir.Store) -> ir.Let | ir.Store:
        """A statement of lane i, rewritten for lane s of the tile."""
        if isinstance(stmt, ir.Let):
            return replace(stmt, value=self._moved(stmt.value))
        return replace(stmt, value=self._moved(stmt.value), index=tuple(map(self._moved, stmt.index)))

    def _moved(self, expr: ir.Index) -> ir.Index:
        lane = ir.Name("int64", self.ending.loop.name)
        return ir.mapped(expr, lambda part: ir.add(self.first, self.at) if part == lane else None)


def _scalar(stmt: ir.Let) -> ir.Name:
    """The local that a statement assigns."""
    return ir.Name(stmt.value.dtype if isinstance(stmt.value, ir.Expr) else "int64", stmt.name)
