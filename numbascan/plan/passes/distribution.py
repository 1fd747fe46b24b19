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

from ...ir.loops import (
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
    mapped,
    may_end,
    rebuilt,
    walk,
    with_values,
)
from ...ir.mentions import mentioned
from ...ir.names import Names
from ..cost import is_few
from ..target import Target
from .side_by_side import Lanes, Surroundings, has_many_steps


def distribution(function: Function, target: Target) -> Function:
    """The function with such loops distributed."""
    around, names = Surroundings.of(function), function.names.copy()
    outermost = around.outermost

    def in_two(stmt: Stmt) -> list[Stmt] | None:
        is_candidate = isinstance(stmt, For) and stmt.kind == "time" and stmt.step == 1 and id(stmt) in outermost
        return _in_two(stmt, around, names, target) if is_candidate and isinstance(stmt, For) else None

    return replace(function, body=rebuilt(function.body, in_two), names=names)


def _in_two(loop: For, around: Surroundings, names: Names, target: Target) -> list[Stmt] | None:
    if loop.start != 0 or is_few(loop, target) or not has_many_steps(loop.body, target) or may_end(loop.body):
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
    place = (Name("int64", loop.name),)
    rows = {name: Load(dtype, names.fresh(f"{name}_of"), place) for name, dtype in left.items()}
    lanes.body.extend(Store(row.array, place, Name(row.dtype, name)) for name, row in rows.items())

    def kept(expr: Index) -> Index:
        return mapped(expr, lambda part: rows.get(part.name) if isinstance(part, Name) else None)

    memory = [Alloc(row.array, (loop.stop,), row.dtype) for row in rows.values()]
    return [*memory, lanes, replace(loop, body=[with_values(stmt, kept) for stmt in last])]


def _last_statements(loop: For) -> list[Stmt]:
    """The statements that read or write a scalar carried from pass to pass, or a local computed from one."""
    every = list(walk(loop.body))
    new = {stmt.name for stmt in every if isinstance(stmt, Let) and stmt.is_new}
    handed_on = {stmt.name for stmt in every if isinstance(stmt, Let) and stmt.name not in new}
    last: list[Stmt] = []
    for stmt in loop.body:
        if not handed_on.isdisjoint(mentioned([stmt])):
            last.append(stmt)
            handed_on |= {stmt.name} if isinstance(stmt, Let) else set()
    return last


def _left(loop: For, first: Sequence[Stmt], last: Sequence[Stmt], around: Surroundings) -> dict[str, str] | None:
    """The dtypes of the scalars that the last statements read from the first ones; None if the last may not run after all of the first."""
    if not all(isinstance(stmt, Let | Store) for stmt in last):
        return None
    ours, theirs = around.memory.effects(first), around.memory.effects(last)
    behind = loop.body[next(k for k, stmt in enumerate(loop.body) if stmt is last[0]) :]
    later = around.memory.effects(stmt for stmt in behind if not any(stmt is one for one in last))
    if ours.assigned & theirs.assigned or theirs.scalars & (later.assigned | ours.counters) or ours.share_memory(theirs):
        return None
    new = [stmt for stmt in walk(first) if isinstance(stmt, Let) and stmt.is_new and stmt.name in theirs.scalars]
    return {stmt.name: stmt.value.dtype if isinstance(stmt.value, Expr) else "int64" for stmt in new}
