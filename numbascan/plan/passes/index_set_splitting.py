"""Index-set splitting: a loop that does more from some step on becomes two loops without the condition.

    # before: for t in range(n):             # after: for t in range(min(max(first, 0), n)):
    #             s = f(s)                   #             s = f(s)
    #             if t >= first:             #         for t in range(min(max(first, 0), n), n):
    #                 rows[t - first] = s    #             s = f(s)
    #                                        #             rows[t - first] = s

Lanes that keep only their last rows may then run side by side (see tiles.py). A check that holds up to some step is such a condition: the
first loop has none, and the second one fails in its first pass.
Not handled: conditions with different first steps in one loop; loops that may end early.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir import loops as ir
from ..target import Target


def index_set_splitting(function: ir.Function, target: Target) -> ir.Function:
    """The function with such loops over time split in two."""
    return replace(function, body=ir.rebuilt(function.body, lambda stmt: _in_two(stmt) if isinstance(stmt, ir.For) else None))


def _in_two(loop: ir.For) -> list[ir.Stmt] | None:
    firsts = [first for stmt in loop.body if (first := _first(stmt, loop)) is not None]
    if not firsts or any(first != firsts[0] for first in firsts) or any(isinstance(stmt, ir.Break) for stmt in ir.walk(loop.body)):
        return None
    middle = ir.least(ir.greatest(firsts[0], loop.start), loop.stop)
    before = [stmt for stmt in loop.body if _first(stmt, loop) is None]
    after = [part for stmt in loop.body for part in (stmt.then if isinstance(stmt, ir.If) and _first(stmt, loop) is not None else [stmt])]
    failing = next((k for k, stmt in enumerate(after) if isinstance(stmt, ir.Fail)), None)  # what stands behind it is never reached
    after = after if failing is None else after[: failing + 1]
    loops = replace(loop, stop=middle, body=before), replace(loop, start=middle, body=after)
    return [one for one in loops if one.start != one.stop]


def _first(stmt: ir.Stmt, loop: ir.For) -> ir.Index | None:
    """The first step in which a statement of a loop over time does something; None if it has no such condition or the step changes it."""
    condition = stmt.condition if isinstance(stmt, ir.If) and not stmt.otherwise else None
    if loop.kind != "time" or loop.step != 1 or not isinstance(condition, ir.Apply) or condition.template is not ir.COMPARE_WITH[">="]:
        return None
    counter, first = condition.args
    changing = {loop.name, *(inner.name for inner in ir.walk(loop.body) if isinstance(inner, ir.Let))}
    is_fixed = not any(is_element or name in changing for name, is_element in (ir.names_in(first) if isinstance(first, ir.Expr) else ()))
    return first if counter == ir.Name("int64", loop.name) and is_fixed else None
