"""A cost model of scalar work, in cycles of one core of a target: good enough to choose between two ways of doing the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set

from ..ir.graph import folded
from ..ir.loops import ACCUMULATE, CALL, DIVISION, FUNCTION, PLAIN, Apply, For, Index, Let, Load, Name, Stmt, expressions, sub
from .target import Target


def scalar_cost(exprs: Iterable[Index], target: Target) -> float:
    """The cycles that a core is busy with one element of each expression. Divisions overlap with plain work; functions and calls do not."""
    used = Counter[str]()
    stack = list(exprs)
    while stack:
        expr = stack.pop()
        if isinstance(expr, Apply):
            used[expr.template.cost] += 1
            stack += expr.args
        elif isinstance(expr, Load):
            used[PLAIN] += 1
    busy = {cost: count * target.costs[cost].scalar for cost, count in used.items()}
    return max(busy.get(PLAIN, 0.0), busy.get(DIVISION, 0.0)) + busy.get(FUNCTION, 0.0) + busy.get(CALL, 0.0)


def vector_cost(expr: Index, target: Target) -> float:
    """The cycles per element in a SIMD pass."""
    if isinstance(expr, Apply):
        return target.costs[expr.template.cost].vector + sum(vector_cost(part, target) for part in expr.args)
    return target.costs[PLAIN].vector if isinstance(expr, Load) else 0.0


def is_few(loop: For, target: Target) -> bool:
    """True if a loop is known to have too few passes for a tile of lanes."""
    passes = sub(loop.stop, loop.start)
    return isinstance(passes, int) and passes < target.min_lanes


def vector_gain(expr: Index) -> bool:
    """True if an expression holds anything that SIMD makes much cheaper: a division or a function."""
    if not isinstance(expr, Apply):
        return False
    return expr.template.cost in (DIVISION, FUNCTION) or any(map(vector_gain, expr.args))


def latency(body: Sequence[Stmt], lets: Mapping[str, int], states: Set[str], k: int, target: Target) -> float:
    """The critical path, in cycles, from the states' values to the value of statement k; 0 if it depends on no state."""

    def behind(expr: Index) -> tuple[Index, ...]:
        if isinstance(expr, Name) and expr.name in lets and expr.name not in states:
            return expressions(body[lets[expr.name]])
        return expr.args if isinstance(expr, Apply) else ()

    def depth(expr: Index, depths: list[float]) -> float:
        if isinstance(expr, Name) and expr.name in states:
            return 0.0
        own = target.costs[expr.template.cost].latency if isinstance(expr, Apply) else 0.0
        return own + max(depths, default=float("-inf"))

    stmt = body[k]
    assert isinstance(stmt, Let)
    return max(folded(stmt.value, behind, depth), 0.0)


def is_sum(stmt: Let) -> bool:
    """True if a statement adds to a sum that may be reassociated."""
    value = stmt.value
    return isinstance(value, Apply) and value.template is ACCUMULATE and value.args[0] == Name(value.dtype, stmt.name)
