"""Loop distribution: a loop whose passes share only a few scalars at their end becomes one over lanes and one that carries these.

    # before: for i in range(n):              # after: for i in range(n):
    #             y = start[i]                #            y = start[i]
    #             for t in range(steps):      #            for t in range(steps):
    #                 y = f(y)                #                y = f(y)
    #             total = total + y           #            y_of[i] = y
    #                                         #        for i in range(n):
    #                                         #            total = total + y_of[i]

Gradients with respect to what all lanes share have this form: each lane adds its part to a sum. The first loop runs side by side (see
tiles.py) and in threads. The second runs in the same order as before, so the bits stay the same.
Not handled:
- second loops that hold loops or conditions, or read arrays that the lanes write
- views and routines
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...ir import loops as ir
from ...ir.mentions import mentioned
from ...ir.names import Names
from ..cost import is_few
from ..target import Target
from .side_by_side import Lanes, Surroundings, has_many_steps


def distribution(function: ir.Function, target: Target) -> ir.Function:
    """The function with such loops distributed."""
    around, names = Surroundings.of(function), function.names.copy()
    outermost = around.outermost

    def in_two(stmt: ir.Stmt) -> list[ir.Stmt] | None:
        is_candidate = isinstance(stmt, ir.For) and stmt.kind == "time" and stmt.step == 1 and id(stmt) in outermost
        return _in_two(stmt, around, names, target) if is_candidate and isinstance(stmt, ir.For) else None

    return replace(function, body=ir.rebuilt(function.body, in_two), names=names)


def _in_two(loop: ir.For, around: Surroundings, names: Names, target: Target) -> list[ir.Stmt] | None:
    if loop.start != 0 or is_few(loop, target) or not has_many_steps(loop.body, target) or ir.may_end(loop.body):
        return None
    last = _last_statements(loop)
    first = [stmt for stmt in loop.body if not any(stmt is one for one in last)]
    left = _left(loop, first, last, around) if last else None
    if left is None or len(left) > target.max_lane_sums:
        return None
    side_by_side = Lanes(replace(loop, body=first, kind="lanes"), around)
    if not side_by_side.are_independent():
        return None
    lanes = replace(loop, body=first, kind="time" if side_by_side.are_in_order() else "lanes")
    place = (ir.Name("int64", loop.name),)
    rows = {name: ir.Load(dtype, names.fresh(f"{name}_of"), place) for name, dtype in left.items()}
    lanes.body.extend(ir.Store(row.array, place, ir.Name(row.dtype, name)) for name, row in rows.items())

    def kept(expr: ir.Index) -> ir.Index:
        return ir.mapped(expr, lambda part: rows.get(part.name) if isinstance(part, ir.Name) else None)

    memory = [ir.Alloc(row.array, (loop.stop,), row.dtype) for row in rows.values()]
    return [*memory, lanes, replace(loop, body=[ir.with_values(stmt, kept) for stmt in last])]


def _last_statements(loop: ir.For) -> list[ir.Stmt]:
    """The statements that read or write a scalar carried from pass to pass, or a local computed from one."""
    every = list(ir.walk(loop.body))
    new = {stmt.name for stmt in every if isinstance(stmt, ir.Let) and stmt.is_new}
    handed_on = {stmt.name for stmt in every if isinstance(stmt, ir.Let) and stmt.name not in new}
    last: list[ir.Stmt] = []
    for stmt in loop.body:
        if not handed_on.isdisjoint(mentioned([stmt])):
            last.append(stmt)
            handed_on |= {stmt.name} if isinstance(stmt, ir.Let) else set()
    return last


def _left(loop: ir.For, first: Sequence[ir.Stmt], last: Sequence[ir.Stmt], around: Surroundings) -> dict[str, str] | None:
    """The dtypes of the scalars that the last statements read from the first ones; None if the last may not run after all of the first."""
    if not all(isinstance(stmt, ir.Let | ir.Store) for stmt in last):
        return None
    ours, theirs = around.memory.effects(first), around.memory.effects(last)
    behind = loop.body[next(k for k, stmt in enumerate(loop.body) if stmt is last[0]) :]
    later = around.memory.effects(stmt for stmt in behind if not any(stmt is one for one in last))
    if ours.assigned & theirs.assigned or theirs.scalars & (later.assigned | ours.counters) or ours.share_memory(theirs):
        return None
    new = [stmt for stmt in ir.walk(first) if isinstance(stmt, ir.Let) and stmt.is_new and stmt.name in theirs.scalars]
    return {stmt.name: stmt.value.dtype if isinstance(stmt.value, ir.Expr) else "int64" for stmt in new}
