"""Indices in a form in which LLVM's vectorized loops are really run, not only compiled.

    # before: for t in range(n):                                  # after: for t in range(n):
    #             for i in range(m):                              #            row = lanes(n - 1 - t)
    #                 y[i] = x[n - 1 - t, i] * x[n - 1 - t, i + 1] #           for i in range(m):
    #                                                             #                y[i] = x[row, i] * x[row, i + 1]

* LLVM checks once, before the loop over time, whether arrays overlap. For rows that go backwards it checks that their distance is positive;
  it never is, and the scalar loop runs. If LLVM cannot see a row's number, it checks at each step.
* A slice's start that is chosen within the inner loop is not loop-invariant to LLVM. So it is chosen before the loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import replace

from ...ir.loops import (
    CHOICE_BETWEEN,
    Alias,
    Alloc,
    Apply,
    Expr,
    For,
    If,
    Index,
    Let,
    Load,
    Name,
    Stmt,
    Store,
    Template,
    expressions,
    mapped,
    names_in,
    slope_and_rest,
    walk,
)
from ...ir.mentions import loads_in
from ...ir.names import Names
from .in_lanes import may_be_vectors

HIDDEN = Template("lanes({0})")


def with_places(stmts: Sequence[Stmt], names: Names, steps: Set[str] = frozenset()) -> list[Stmt]:
    """The statements with such indices in locals. `steps`: the counters of the loops over time around them."""
    placed: list[Stmt] = []
    for stmt in stmts:
        if isinstance(stmt, For) and steps and stmt.kind != "time" and may_be_vectors(stmt):
            placed += _before(stmt, names, steps)
        elif isinstance(stmt, For):
            placed.append(replace(stmt, body=with_places(stmt.body, names, steps | {stmt.name} if stmt.kind == "time" else steps)))
        elif isinstance(stmt, If):
            placed.append(If(stmt.condition, with_places(stmt.then, names, steps), with_places(stmt.otherwise, names, steps)))
        else:
            placed.append(stmt)
    return placed


def _before(loop: For, names: Names, steps: Set[str]) -> list[Stmt]:
    """A loop that may be vectorized, after the locals for its indices."""
    inside = {loop.name} | {stmt.name for stmt in walk(loop.body) if isinstance(stmt, Let | For | Alloc | Alias)}
    loads = (load for stmt in walk(loop.body) for expr in expressions(stmt) for load in loads_in(expr))
    read = Counter((load.array, load.index[0]) for load in loads if len(load.index) > 1)
    backwards = {row for (_, row), count in read.items() if count > 1 and _is_fixed(row, inside) and _goes_back(row, steps)}
    lets: list[Stmt] = []
    made: dict[Index, Name] = {}

    def local(value: Index, hint: str, text: Index) -> Name:
        if value not in made:
            made[value] = Name("int64", names.fresh(hint))
            lets.append(Let(made[value].name, text))
        return made[value]

    def place(part: Expr) -> Index | None:
        if part in backwards:
            return local(part, "row", Apply("int64", HIDDEN, (part,)))
        if isinstance(part, Apply) and part.template is CHOICE_BETWEEN and part.dtype == "int64" and _is_fixed(part, inside):
            return local(part, "start", part)
        return None

    def load(part: Expr) -> Index | None:
        if not isinstance(part, Load) or not part.index:
            return None
        return Load(part.dtype, part.array, placed(part.index))

    def placed(indices: tuple[Index, ...]) -> tuple[Index, ...]:
        return tuple(mapped(mapped(index, load), place) for index in indices)

    def changed(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Let):
            return replace(stmt, value=mapped(stmt.value, load))
        if isinstance(stmt, Store):
            return replace(stmt, index=placed(stmt.index), value=mapped(stmt.value, load))
        return stmt

    loop = replace(loop, body=[changed(stmt) for stmt in loop.body])
    return [*lets, loop]


def _is_fixed(expr: Index, inside: Set[str]) -> bool:
    """True if an expression is the same in all passes. One that reads memory may not be."""
    return all(name not in inside and not is_read for name, is_read in names_in(expr))


def _goes_back(row: Index, steps: Set[str]) -> bool:
    found = (slope_and_rest(row, Name("int64", step)) for step in steps)
    return any(slope is not None and slope[0] < 0 for slope in found)
