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

from ...ir.loops import (
    COMPARE_WITH,
    Apply,
    Break,
    Expr,
    Fail,
    For,
    Function,
    If,
    Index,
    Let,
    Name,
    Stmt,
    greatest,
    least,
    names_in,
    rebuilt,
    walk,
)
from ..target import Target


def index_set_splitting(function: Function, target: Target) -> Function:
    """The function with such loops over time split in two."""
    return replace(function, body=rebuilt(function.body, lambda stmt: _in_two(stmt) if isinstance(stmt, For) else None))


def _in_two(loop: For) -> list[Stmt] | None:
    firsts = [first for stmt in loop.body if (first := _first(stmt, loop)) is not None]
    if not firsts or any(first != firsts[0] for first in firsts) or any(isinstance(stmt, Break) for stmt in walk(loop.body)):
        return None
    middle = least(greatest(firsts[0], loop.start), loop.stop)
    before = [stmt for stmt in loop.body if _first(stmt, loop) is None]
    after = [part for stmt in loop.body for part in (stmt.then if isinstance(stmt, If) and _first(stmt, loop) is not None else [stmt])]
    failing = next((k for k, stmt in enumerate(after) if isinstance(stmt, Fail)), None)  # what stands behind it is never reached
    after = after if failing is None else after[: failing + 1]
    loops = replace(loop, stop=middle, body=before), replace(loop, start=middle, body=after)
    return [one for one in loops if one.start != one.stop]


def _first(stmt: Stmt, loop: For) -> Index | None:
    """The first step in which a statement of a loop over time does something; None if it has no such condition or the step changes it."""
    condition = stmt.condition if isinstance(stmt, If) and not stmt.otherwise else None
    if loop.kind != "time" or loop.step != 1 or not isinstance(condition, Apply) or condition.template is not COMPARE_WITH[">="]:
        return None
    counter, first = condition.args
    changing = {loop.name, *(inner.name for inner in walk(loop.body) if isinstance(inner, Let))}
    is_fixed = not any(is_element or name in changing for name, is_element in (names_in(first) if isinstance(first, Expr) else ()))
    return first if counter == Name("int64", loop.name) and is_fixed else None
