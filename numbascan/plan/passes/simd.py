"""Sums keep their order in loops that go one step after the other, and lose it where the SIMD unit adds them up.

# total = add_any_order(total, x)           # after: total += x
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...ir.loops import ACCUMULATE, IN_ORDER, Apply, For, Function, If, Index, Let, Stmt, Store
from ..cost import is_sum
from ..target import Target


def simd(function: Function, target: Target) -> Function:
    """The function with such loops marked, and plain additions everywhere else."""
    return replace(function, body=_for_simd(function.body, target))


def _for_simd(stmts: Sequence[Stmt], target: Target, is_pass: bool = False) -> list[Stmt]:
    """`is_pass`: the statements are the body of such a loop."""
    found: list[Stmt] = []
    for stmt in stmts:
        if isinstance(stmt, For):
            inner = _is_pass(stmt)
            kind = "simd" if inner and stmt.kind == "sequential" and _is_written_out(stmt, target) else stmt.kind
            found.append(replace(stmt, body=_for_simd(stmt.body, target, inner), kind=kind))
        elif isinstance(stmt, If):
            found.append(If(stmt.condition, _for_simd(stmt.then, target), _for_simd(stmt.otherwise, target)))
        elif isinstance(stmt, Let | Store) and not (is_pass and isinstance(stmt, Let) and is_sum(stmt)):
            found.append(replace(stmt, value=_plain(stmt.value)))
        else:
            found.append(stmt)
    return found


def _is_written_out(loop: For, target: Target) -> bool:
    """Would LLVM write out the passes of a loop that are many enough for SIMD?"""
    return isinstance(loop.stop, int) and loop.stop >= target.written_out and loop.start == 0 and loop.step == 1


def _plain(expr: Index) -> Index:
    if not isinstance(expr, Apply):
        return expr
    return replace(expr, template=IN_ORDER if expr.template is ACCUMULATE else expr.template, args=tuple(map(_plain, expr.args)))


def _is_pass(loop: For) -> bool:
    """Does a loop move nothing on from one index to the next but sums?"""
    return all(isinstance(stmt, Store) or (isinstance(stmt, Let) and (stmt.is_new or is_sum(stmt))) for stmt in loop.body)
