"""Sums keep their order in sequential loops, and may be reassociated in loops that the SIMD unit takes.

    # before: total = add_any_order(total, x)           # after: total += x

Not handled: sums in loops that hold other loops, calls or conditions keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...ir.loops import ACCUMULATE, IN_ORDER, Apply, Expr, For, Function, Let, Stmt, Store, is_reduction, mapped, with_blocks
from ..cost import is_sum
from ..target import Target


def reassociation(function: Function, target: Target) -> Function:
    """The function with such loops marked, and plain additions everywhere else."""
    return replace(function, body=_for_simd(function.body, target))


def _for_simd(stmts: Sequence[Stmt], target: Target, is_pass: bool = False) -> list[Stmt]:
    """`is_pass`: the statements are the body of such a loop."""
    result: list[Stmt] = []
    for stmt in stmts:
        if isinstance(stmt, For):
            inner = _is_pass(stmt)
            kind = "simd" if inner and stmt.kind == "sequential" and _is_written_out(stmt, target) else stmt.kind
            result.append(replace(stmt, body=_for_simd(stmt.body, target, inner), kind=kind))
        elif isinstance(stmt, Let | Store) and not (is_pass and isinstance(stmt, Let) and is_sum(stmt)):
            result.append(replace(stmt, value=mapped(stmt.value, _in_order)))
        else:
            result.append(with_blocks(stmt, lambda block: _for_simd(block, target)))
    return result


def _is_written_out(loop: For, target: Target) -> bool:
    """Would LLVM write out the passes of a loop that are many enough for SIMD?"""
    return isinstance(loop.stop, int) and loop.stop >= target.unroll_limit and loop.start == 0 and loop.step == 1


def _in_order(expr: Expr) -> Expr | None:
    if not isinstance(expr, Apply) or expr.template is not ACCUMULATE:
        return None
    return Apply(expr.dtype, IN_ORDER, tuple(mapped(arg, _in_order) for arg in expr.args))


def _is_pass(loop: For) -> bool:
    """True if reductions are all that goes from one pass of the loop to the next, and there are only scalars and stores."""
    own = {stmt.name for stmt in loop.body if isinstance(stmt, Let) and stmt.is_new}
    return all(isinstance(stmt, Store) or (isinstance(stmt, Let) and (stmt.name in own or is_reduction(stmt))) for stmt in loop.body)
