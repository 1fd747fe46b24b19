"""Functions in loops that LLVM may vectorize give the same bits in every pass.

    # before: for s in range(n):            # after: for s in range(n):
    #             y[s] = exp(y[s])          #            y[s] = exp_in_lanes(y[s])

LLVM vectorizes such a loop, and runs the remaining passes one by one: by libm, with other bits than the vectors'. The last steps of a lane
that was in a tile before must have the bits of the tile, too. Loops whose passes depend on one another have no vectors, and libm is faster.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from ...ir import loops as ir
from ...ops.elementwise import in_lanes

SHORT = 128  # passes up to which LLVM may unroll a loop fully: the loop around it then has none inside


def with_lanes(stmts: Sequence[ir.Stmt], is_pass: bool = False) -> list[ir.Stmt]:
    """The statements with such functions renamed. `is_pass`: they are the body of such a loop."""
    renamed: list[ir.Stmt] = []
    for stmt in stmts:
        if isinstance(stmt, ir.For):
            is_one = may_be_vectors(stmt) or stmt.kind == "rest" or (is_pass and _is_short(stmt))
            renamed.append(replace(stmt, body=with_lanes(stmt.body, is_one)))
        elif isinstance(stmt, ir.If):
            condition = _named(stmt.condition) if is_pass else stmt.condition
            assert isinstance(condition, ir.Expr)
            renamed.append(ir.If(condition, with_lanes(stmt.then, is_pass), with_lanes(stmt.otherwise, is_pass)))
        elif isinstance(stmt, ir.Let) and is_pass:
            renamed.append(replace(stmt, value=_named(stmt.value)))
        elif isinstance(stmt, ir.Store) and is_pass:
            renamed.append(replace(stmt, index=tuple(map(_named, stmt.index)), value=_named(stmt.value)))
        else:
            renamed.append(stmt)
    return renamed


def may_be_vectors(loop: ir.For, sums: Set[str] = frozenset()) -> bool:
    """True if LLVM may vectorize a loop: no pass depends on the one before, may end the loop, or has a long loop inside.

    `sums`: locals that it may reassociate, besides marked reductions.
    """
    return not (_waits(loop, sums) or ir.may_end(loop.body)) and all(
        _is_short(stmt) for stmt in ir.walk(loop.body) if isinstance(stmt, ir.For)
    )


def _waits(loop: ir.For, sums: Set[str]) -> bool:
    """True if a pass reads what the one before has left, apart from reductions and `sums`."""
    moved = {stmt.name for stmt in ir.walk(loop.body) if isinstance(stmt, ir.Let) and not stmt.is_new and not ir.is_reduction(stmt)} - sums
    moved -= {stmt.name for stmt in ir.walk(loop.body) if isinstance(stmt, ir.Let) and stmt.is_new}
    for stmt in loop.body:
        if any(name in moved for inner in ir.walk([stmt]) for expr in ir.expressions(inner) for name, _ in ir.names_in(expr)):
            return True
        if isinstance(stmt, ir.Let):
            moved.discard(stmt.name)  # from here on it has the value of this pass
    return False


def _is_short(loop: ir.For) -> bool:
    start, stop, step = loop.start, loop.stop, loop.step
    return isinstance(start, int) and isinstance(stop, int) and isinstance(step, int) and stop - start <= SHORT * step


def _named(expr: ir.Index) -> ir.Index:
    """The expression with the functions' names for lanes."""
    if isinstance(expr, ir.Load):
        return replace(expr, index=tuple(map(_named, expr.index)))
    if not isinstance(expr, ir.Apply):
        return expr
    return replace(expr, template=_same(expr.template), args=tuple(map(_named, expr.args)))


def _same(template: ir.Template) -> ir.Template:
    name, bracket, rest = template.text.partition("(")
    return replace(template, text=f"{in_lanes(name)}{bracket}{rest}") if template.cost == ir.FUNCTION else template
