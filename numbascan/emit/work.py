"""What a call of a kernel computes, counted from its loops before it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.loops import Alias, Alloc, Apply, Call, Expr, For, Function, If, Index, Let, Load, Stmt, Store, walk
from .estimates import known_functions
from .text import expression, filled, statements

ROUTINE, DRAWN = 1000, 30  # operations for which a routine counts, and a number that is drawn


@dataclass(frozen=True)
class Loop:
    """An outermost loop: its line in the source, how often its body runs, and the operations of all passes together."""

    line: str
    passes: int
    operations: int


@dataclass(frozen=True)
class Work:
    """Operations of a call on floating-point and complex numbers, and the outermost loops among which they are.

    A function such as exp counts as one, a product of matrices as two for each of its multiplications, another library routine as none.
    A loop that may end early counts as if it did not, of two branches the longer one.
    """

    operations: int
    loops: tuple[Loop, ...]


def work_of(function: Function, values: Sequence[Any]) -> Work:
    """The work of a call of `function` with `values` (arrays, numbers)."""
    names = {**known_functions(), **{argument.name: value for argument, value in zip(function.arguments, values, strict=False)}}
    counter = _Counter(names)
    loops: list[Loop] = []
    total = 0
    for stmt in function.body:
        with np.errstate(all="ignore"):  # rows that are not there yet are taken for zeros
            operations = counter.statement(stmt)
        total += operations
        if isinstance(stmt, For) and operations:
            (line, *_) = statements([For(stmt.name, stmt.start, stmt.stop, [], stmt.step)], {}, 0)
            loops.append(Loop(line.removesuffix(":"), counter.passes(stmt), operations))
    return Work(total, tuple(loops))


class _Counter:
    """Goes through statements once, with the values of names as far as they are known; loops as in their first pass."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names

    def block(self, stmts: Sequence[Stmt]) -> int:
        return sum(self.statement(stmt) for stmt in stmts)

    def statement(self, stmt: Stmt) -> int:
        """The operations of a statement with all inside it."""
        if isinstance(stmt, Let):
            if stmt.is_new:
                self._define(stmt.name, expression(stmt.value))
            return _operations(stmt.value)
        if isinstance(stmt, Store):
            return _operations(stmt.value) + bool(stmt.combine)
        if isinstance(stmt, For):
            passes = self.passes(stmt)
            self.names[stmt.name] = self._number(stmt.start)
            return passes * self.block(stmt.body)
        if isinstance(stmt, If):
            return _operations(stmt.condition) + max(self.block(stmt.then), self.block(stmt.otherwise))
        if isinstance(stmt, Call):
            return self._product(stmt) if stmt.routine == "np.dot" else 0
        if isinstance(stmt, Alloc):  # an array of the right shape that takes no memory
            self.names[stmt.name] = np.broadcast_to(np.zeros((), stmt.dtype), tuple(max(self._number(dim), 0) for dim in stmt.shape))
        elif isinstance(stmt, Alias):
            self._define(stmt.name, filled(stmt.text, stmt.args))
        return 0

    def passes(self, loop: For) -> int:
        """How often the body of a loop runs."""
        return len(range(self._number(loop.start), self._number(loop.stop), loop.step))

    def _product(self, stmt: Call) -> int:
        """Of np.dot(a, b, out)."""
        a, _, out = (self._value(text) for text in stmt.args)
        return 2 * int(np.size(out)) * int(np.shape(a)[-1]) if np.ndim(a) and out is not None else 0

    def _define(self, name: str, text: str) -> None:
        value = self._value(text)
        if value is None:
            self.names.pop(name, None)
        else:
            self.names[name] = value

    def _number(self, index: Index) -> int:
        value = self._value(expression(index))
        return 0 if value is None else int(value)

    def _value(self, text: str) -> Any:
        """What a text means here; None for what only the run knows."""
        try:
            return eval(text, {"__builtins__": {}}, self.names)
        except Exception:
            return None


def operations_in(stmts: Sequence[Stmt]) -> int:
    """Operations in the text of statements, each counted once; a routine for many, one that draws ahead for those of a number."""
    every = list(walk(stmts))
    called = [DRAWN if one.routine.endswith("_ahead") else ROUTINE for one in every if isinstance(one, Call)]
    return sum(_operations(one.value) for one in every if isinstance(one, Let | Store)) + sum(called)


def _operations(expr: Index) -> int:
    """Operations on floating-point and complex numbers in an expression."""
    if not isinstance(expr, Expr):
        return 0
    if isinstance(expr, Apply):
        return expr.dtype.startswith(("float", "complex")) + sum(map(_operations, expr.args))
    return sum(map(_operations, expr.index)) if isinstance(expr, Load) else 0
