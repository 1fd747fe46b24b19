"""The part of Python that generated text is written in, as nodes of `ast`. Importing this imports nothing of Numba."""

from __future__ import annotations

import ast
import operator
from collections import Counter
from collections.abc import Callable
from typing import Any

OPERATORS: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}

LOOKS = {"interrupted": 0, "interrupted_at": 0, "stopped": 1, "stopped_at": 1}
"""Functions that look (`emit/cpu/looks.py`), and which operand is the number of steps before one first reads the clock."""
STRIP = 64  # passes between two looks, where passes are brief
_ZERO, _ONE = ast.Constant(0), ast.Constant(1)


class Unknown(Exception):
    """The text holds what is not lowered here: Numba compiles the function."""

    def __init__(self, seen: Any) -> None:
        super().__init__(ast.unparse(seen) if isinstance(seen, ast.AST) else str(seen))


def integer(node: Any) -> int | None:
    """The value of an integer that is written out; None for any other node."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = integer(node.operand)
        return None if number is None else -number
    return None


def bounds(loop: ast.For) -> tuple[ast.expr, ast.expr, ast.expr]:
    """Start, stop and step of a loop over a range."""
    call: Any = loop.iter
    is_range = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range" and not call.keywords
    if not is_range or not isinstance(loop.target, ast.Name) or loop.orelse or not 1 <= len(call.args) <= 3:
        raise Unknown(call)
    start, stop, step = [_ZERO, *call.args, _ONE] if len(call.args) == 1 else [*call.args, _ONE][:3]
    if integer(step) == 0:
        raise Unknown(call)
    return start, stop, step


def assigned(function: ast.FunctionDef) -> dict[str, list[ast.expr | None]]:
    """By local: the expressions that are assigned to it; None among them for what is no assignment."""
    found: dict[str, list[ast.expr | None]] = {argument.arg: [None] for argument in function.args.args}
    for stmt in ast.walk(function):
        if name := named(stmt):
            found.setdefault(name, []).append(stmt.value)  # type: ignore[attr-defined]
        elif isinstance(stmt, ast.AugAssign | ast.For) and isinstance(stmt.target, ast.Name):
            found.setdefault(stmt.target.id, []).append(None)
    return found


def is_endless(loop: ast.For, of: dict[str, list[ast.expr | None]]) -> bool:
    """True if a loop has no pass or 2**63 - 1 of them, which no computer ends: it asks for its bound once."""
    start, stop, step = bounds(loop)
    return integer(start) == 0 and integer(step) == 1 and _is_none_or_endless(stop, of)


def _is_none_or_endless(stop: ast.expr | None, of: dict[str, list[ast.expr | None]]) -> bool:
    if isinstance(stop, ast.IfExp):
        return _is_none_or_endless(stop.body, of) and _is_none_or_endless(stop.orelse, of)
    if isinstance(stop, ast.Name):
        return stop.id in of and all(isinstance(one, ast.IfExp) and _is_none_or_endless(one, of) for one in of[stop.id])
    return stop is not None and integer(stop) in (0, 2**63 - 1)


def has_loop(stmts: list[ast.stmt]) -> bool:
    """True if a loop stands among statements, or within one."""
    return any(isinstance(one, ast.For) for stmt in stmts for one in ast.walk(stmt))


def rare_look(loop: ast.For) -> ast.If | None:
    """The look at the end of each pass of a loop (`emit/cpu/looks.py`) that may stand at the end of every STRIP passes.

    They are brief, since the look itself lets more of them go by before it first reads the clock, and none holds a loop.
    """
    look: Any = loop.body[-1]
    test = look.test if isinstance(look, ast.If) and not look.orelse else None
    if not isinstance(test, ast.Call) or not isinstance(test.func, ast.Name) or test.func.id not in LOOKS:
        return None
    is_brief = (integer(test.args[LOOKS[test.func.id]]) or 0) >= STRIP and not has_loop(loop.body)
    return look if is_brief and integer(bounds(loop)[2]) == 1 else None


def is_shape(node: Any) -> bool:
    """True for `x.shape`."""
    return isinstance(node, ast.Attribute) and node.attr == "shape"


def entries(index: ast.expr) -> list[ast.expr]:
    """What stands between brackets, by axis."""
    return list(index.elts) if isinstance(index, ast.Tuple) else [index]


def error(stmt: ast.Raise) -> tuple[ast.expr, list[ast.expr]]:
    """The class of an error, and its arguments."""
    if stmt.cause is not None or stmt.exc is None:
        raise Unknown(stmt)
    return (stmt.exc.func, stmt.exc.args) if isinstance(stmt.exc, ast.Call) else (stmt.exc, [])


def names(*nodes: ast.AST) -> Counter[str]:
    """The number of times that each name stands in a text."""
    return Counter(one.id for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name))


def named(stmt: Any) -> str:
    """The local that a statement assigns to; "" for any other statement."""
    return stmt.targets[0].id if isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], ast.Name) else ""


Sources = dict[str, set[str | None]]
"""By local: the arrays that it is assigned views of; None among them if it is assigned anything else."""


def sources(function: ast.FunctionDef, is_array: Callable[[str], bool]) -> Sources:
    """What the locals of a function are views of; arguments are views of nothing."""
    found: Sources = {argument.arg: {None} for argument in function.args.args}
    for stmt in ast.walk(function):
        if name := named(stmt):
            found.setdefault(name, set()).add(_viewed(stmt.value) if is_array(name) else None)  # type: ignore[attr-defined]
    return found


def bases(of: Sources, name: str) -> frozenset[str]:
    """The local itself and all that it may be a view of."""
    found, waiting = {name}, [name]
    while waiting:
        new = {one for one in of.get(waiting.pop(), ()) if one is not None} - found
        found |= new
        waiting += new
    return frozenset(found)


def memories(of: Sources, name: str) -> frozenset[str]:
    """The arrays that have memory of their own, or an argument's, among those that a local may be a view of."""
    return frozenset(one for one in bases(of, name) if None in of.get(one, {None}))


def views(of: Sources) -> dict[str, set[str]]:
    """By array: the locals that may be views of it, itself among them."""
    found: dict[str, set[str]] = {}
    for name in of:
        for base in bases(of, name):
            found.setdefault(base, set()).add(name)
    return found


def _viewed(value: Any) -> str | None:
    """The array that an expression is a view of; None for a new array."""
    while not isinstance(value, ast.Name):
        is_part = isinstance(value, ast.Subscript) or (isinstance(value, ast.Attribute) and value.attr == "T")
        if is_part:
            value = value.value
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "reshape":
            value = value.func.value
        else:
            return None
    return value.id


def shape_given(call: ast.Call) -> list[ast.expr]:
    """The dimensions that x.reshape(…) is given."""
    return list(call.args[0].elts) if len(call.args) == 1 and isinstance(call.args[0], ast.Tuple) else call.args


def loops_around(function: ast.FunctionDef) -> dict[ast.AST, ast.AST]:
    """By statement: the innermost loop around it, or the function."""
    around: dict[ast.AST, ast.AST] = {}

    def visit(node: ast.AST, loop: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                around[child] = loop
                visit(child, child if isinstance(child, ast.For) else loop)

    visit(function, function)
    return around


def places(function: ast.FunctionDef) -> dict[ast.AST, int]:
    """By node: its place in the order of the text, with the right side of an assignment before the left."""
    order: dict[ast.AST, int] = {}

    def visit(node: ast.AST) -> None:
        for child in [node.value, *node.targets] if isinstance(node, ast.Assign) else ast.iter_child_nodes(node):
            visit(child)
        order[node] = len(order)

    visit(function)
    return order


def has_end(stmts: list[ast.stmt]) -> bool:
    """True if the end of a block can be reached."""
    last = stmts[-1]
    if isinstance(last, ast.If):
        return not last.orelse or has_end(last.body) or has_end(last.orelse)
    return not isinstance(last, ast.Return | ast.Raise)
