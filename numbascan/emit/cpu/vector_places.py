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

from ...ir import loops as ir
from ...ir.mentions import loads_in
from ...ir.names import Names
from .in_lanes import may_be_vectors

HIDDEN = ir.Template("lanes({0})")


def with_places(stmts: Sequence[ir.Stmt], names: Names, steps: Set[str] = frozenset()) -> list[ir.Stmt]:
    """The statements with such indices in locals. `steps`: the counters of the loops over time around them."""
    placed: list[ir.Stmt] = []
    for stmt in stmts:
        if isinstance(stmt, ir.For) and steps and stmt.kind != "time" and may_be_vectors(stmt):
            placed += _before(stmt, names, steps)
        elif isinstance(stmt, ir.For):
            placed.append(replace(stmt, body=with_places(stmt.body, names, steps | {stmt.name} if stmt.kind == "time" else steps)))
        elif isinstance(stmt, ir.If):
            placed.append(ir.If(stmt.condition, with_places(stmt.then, names, steps), with_places(stmt.otherwise, names, steps)))
        else:
            placed.append(stmt)
    return placed


def _before(loop: ir.For, names: Names, steps: Set[str]) -> list[ir.Stmt]:
    """A loop that may be vectorized, after the locals for its indices."""
    inside = {loop.name} | {stmt.name for stmt in ir.walk(loop.body) if isinstance(stmt, ir.Let | ir.For | ir.Alloc | ir.Alias)}
    loads = (load for stmt in ir.walk(loop.body) for expr in ir.expressions(stmt) for load in loads_in(expr))
    read = Counter((load.array, load.index[0]) for load in loads if len(load.index) > 1)
    backwards = {row for (_, row), count in read.items() if count > 1 and _is_fixed(row, inside) and _goes_back(row, steps)}
    lets: list[ir.Stmt] = []
    made: dict[ir.Index, ir.Name] = {}

    def local(value: ir.Index, hint: str, text: ir.Index) -> ir.Name:
        if value not in made:
            made[value] = ir.Name("int64", names.fresh(hint))
            lets.append(ir.Let(made[value].name, text))
        return made[value]

    def place(part: ir.Expr) -> ir.Index | None:
        if part in backwards:
            return local(part, "row", ir.Apply("int64", HIDDEN, (part,)))
        if isinstance(part, ir.Apply) and part.template is ir.CHOICE_BETWEEN and part.dtype == "int64" and _is_fixed(part, inside):
            return local(part, "start", part)
        return None

    def load(part: ir.Expr) -> ir.Index | None:
        if not isinstance(part, ir.Load) or not part.index:
            return None
        return ir.Load(part.dtype, part.array, placed(part.index))

    def placed(indices: tuple[ir.Index, ...]) -> tuple[ir.Index, ...]:
        return tuple(ir.mapped(ir.mapped(index, load), place) for index in indices)

    def changed(stmt: ir.Stmt) -> ir.Stmt:
        if isinstance(stmt, ir.Let):
            return replace(stmt, value=ir.mapped(stmt.value, load))
        if isinstance(stmt, ir.Store):
            return replace(stmt, index=placed(stmt.index), value=ir.mapped(stmt.value, load))
        return stmt

    loop = replace(loop, body=[changed(stmt) for stmt in loop.body])
    return [*lets, loop]


def _is_fixed(expr: ir.Index, inside: Set[str]) -> bool:
    """True if an expression is the same in all passes. One that reads memory may not be."""
    return all(name not in inside and not is_read for name, is_read in ir.names_in(expr))


def _goes_back(row: ir.Index, steps: Set[str]) -> bool:
    found = (ir.slope_and_rest(row, ir.Name("int64", step)) for step in steps)
    return any(slope is not None and slope[0] < 0 for slope in found)
