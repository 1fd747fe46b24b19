"""What scalar work costs: a model in cycles of one core of a target, good enough to choose between two ways of doing the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set

from ..ir.graph import folded
from ..ir.loops import ACCUMULATE, CALL, DIVISION, FUNCTION, PLAIN, Apply, For, Index, Let, Load, Name, Stmt, expressions, sub
from .target import Target


def scalar_cost(exprs: Iterable[Index], target: Target) -> float:
    """Cycles that a core is busy with expressions, one element at a time. The divider works beside the other units; calls wait for all."""
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
    """Cycles per element in a SIMD pass."""
    if isinstance(expr, Apply):
        return target.costs[expr.template.cost].vector + sum(vector_cost(part, target) for part in expr.args)
    return target.costs[PLAIN].vector if isinstance(expr, Load) else 0.0


def is_few(loop: For, target: Target) -> bool:
    """Does a loop have so few passes that its lanes make no tile?"""
    passes = sub(loop.stop, loop.start)
    return isinstance(passes, int) and passes < target.few_lanes


def vector_gain(expr: Index) -> bool:
    """Is there anything in an expression that SIMD makes much cheaper?"""
    if not isinstance(expr, Apply):
        return False
    return expr.template.cost in (DIVISION, FUNCTION) or any(map(vector_gain, expr.args))


def latency(body: Sequence[Stmt], lets: Mapping[str, int], states: Set[str], k: int, target: Target) -> float:
    """Cycles from the states' values to what statement k makes of them, the longest way; 0 if no state enters."""

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
    """Does a statement add to a sum whose order is free?"""
    value = stmt.value
    return isinstance(value, Apply) and value.template is ACCUMULATE and value.args[0] == Name(value.dtype, stmt.name)
