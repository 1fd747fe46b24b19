"""A step that is linear in its states, evaluated on other kinds of numbers than the loop's own.

What depends on the states is a tree of sums, differences, negatives, and products with factors that do not depend on them. Each kind of
number defines how it is added, negated and multiplied. None is a zero that is known without the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import reduce
from typing import Protocol, TypeVar

import numpy as np

from ...ir.loops import (
    ACCUMULATE,
    DIFFERENCE,
    IN_ORDER,
    PRODUCT,
    ROUNDED_DIFFERENCE,
    ROUNDED_PRODUCT,
    ROUNDED_SUM,
    UNARY,
    Apply,
    Expr,
    Index,
    Let,
    Literal,
    Name,
    Stmt,
    Template,
    names_in,
)
from ...ir.names import Names

NEGATIVE = Template("-{0}", UNARY, (UNARY,))
MAGNITUDE = Template("abs({0})")
_PRODUCT_AND_SUM = Template("math.fma({0}, {1}, {2})")
"""Rounded once. With the negative of the rounded product as the third operand it is the product's rounding error."""

_SUMS = (IN_ORDER, ACCUMULATE)

N = TypeVar("N")


class Arithmetic(Protocol[N]):
    """The operations on a kind of number. None stands for a known zero and never reaches them."""

    def of(self, value: Expr) -> N | None:
        """A value that depends on no state, as this kind of number; None if the kind leaves such offsets out."""
        ...

    def plus(self, a: N, b: N) -> N: ...

    def negative(self, a: N) -> N: ...

    def times(self, factor: Expr, a: N) -> N: ...

    def held(self, hint: str, a: N) -> N:
        """The number, kept in a local named after `hint` where the kind needs one."""
        ...


class LinearStep:
    """The scalars of a step that depend on its states, in order."""

    def __init__(self, body: Sequence[Stmt], states: Sequence[str]) -> None:
        self.states = tuple(states)
        self.depends: set[str] = set(states)
        self.lets: list[Let] = []  # what depends on states, in order
        for stmt in body:
            if isinstance(stmt, Let) and (stmt.name in self.depends or self.reads_states(stmt.value)):
                self.depends.add(stmt.name)
                self.lets.append(stmt)

    def reads_states(self, value: Index) -> bool:
        return any(name in self.depends for name, _ in names_in(value))

    @property
    def dtype(self) -> str:
        """The dtype of the first state."""
        value = next(stmt.value for stmt in self.lets if stmt.name in self.states)
        return value.dtype if isinstance(value, Expr) else "int64"

    def is_linear(self) -> bool:
        """True if all values that depend on the states are linear in them and of one dtype."""
        if np.dtype(self.dtype).kind not in "fiu":
            return False
        return all(isinstance(stmt.value, Expr) and stmt.value.dtype == self.dtype and self._is_linear(stmt.value) for stmt in self.lets)

    def _is_linear(self, value: Index) -> bool:
        if not isinstance(value, Apply) or not self.reads_states(value):
            return isinstance(value, Expr)
        if any(not isinstance(arg, Expr) or arg.dtype != value.dtype for arg in value.args) or not all(map(self._is_linear, value.args)):
            return False
        if value.template in _SUMS or value.template is DIFFERENCE:
            return True
        if value.template is PRODUCT:
            return not all(map(self.reads_states, value.args))
        return value.template == NEGATIVE and value.dtype.startswith("float")

    def coefficients(self) -> list[Expr]:
        """The state-free expressions that state-dependent ones read."""

        def read(value: Index) -> list[Expr]:
            if not self.reads_states(value):
                return [value] if isinstance(value, Expr) else []
            return [one for arg in value.args for one in read(arg)] if isinstance(value, Apply) else []

        return [one for stmt in self.lets for one in read(stmt.value)]

    def after(self, before: Mapping[str, N | None], arithmetic: Arithmetic[N], named: Mapping[Expr, Expr]) -> list[N | None]:
        """The states after a step, computed from those before it. `named`: the locals that hold coefficients."""
        values = dict(before)

        def of(value: Index) -> N | None:
            assert isinstance(value, Expr)
            if not self.reads_states(value):
                return arithmetic.of(named.get(value, value))
            if isinstance(value, Name):
                return values[value.name]
            assert isinstance(value, Apply)
            if value.template == NEGATIVE:
                return negative(of(value.args[0]))
            left, right = value.args
            if value.template is PRODUCT:
                inner, factor = (left, right) if self.reads_states(left) else (right, left)
                number = of(inner)
                assert isinstance(factor, Expr)
                return None if number is None else arithmetic.times(named.get(factor, factor), number)
            other = of(right)
            return plus(of(left), negative(other) if value.template is DIFFERENCE else other)

        def plus(a: N | None, b: N | None) -> N | None:
            return b if a is None else a if b is None else arithmetic.plus(a, b)

        def negative(a: N | None) -> N | None:
            return None if a is None else arithmetic.negative(a)

        for stmt in self.lets:
            number = of(stmt.value)
            values[stmt.name] = None if number is None else arithmetic.held(stmt.name, number)
        return [values[name] for name in self.states]


# Kinds of numbers -----------------------------------------------------------------------------------------------------


class Code:
    """A block of new locals, in order, and operations on numbers of its dtype."""

    def __init__(self, names: Names, dtype: str) -> None:
        self.names, self.dtype = names, dtype
        self.stmts: list[Stmt] = []

    def let(self, hint: str, value: Expr) -> Name:
        local = Name(self.dtype, self.names.fresh(hint))
        self.stmts.append(Let(local.name, value))
        return local

    def op(self, template: Template, *args: Index) -> Apply:
        return Apply(self.dtype, template, args)

    def number(self, value: float) -> Literal:
        return Literal(self.dtype, float(value) if self.dtype.startswith("float") else int(value))


Number = tuple[Expr, ...]
"""A number in one local, or a float in two: a value, and the rest that its rounding leaves out."""


@dataclass(frozen=True)
class Plain:
    """Numbers of the loop's dtype, each in one local. has_offsets: whether terms that depend on no state count."""

    code: Code
    has_offsets: bool = False

    def of(self, value: Expr) -> Number | None:
        return (value,) if self.has_offsets else None

    def plus(self, a: Number, b: Number) -> Number:
        return (self.code.op(IN_ORDER, *a, *b),)

    def negative(self, a: Number) -> Number:
        is_float = self.code.dtype.startswith("float")
        return (self.code.op(NEGATIVE, *a) if is_float else self.code.op(DIFFERENCE, self.code.number(0), *a),)

    def times(self, factor: Expr, a: Number) -> Number:
        return (self.code.op(PRODUCT, factor, *a),)

    def product(self, a: Number, b: Number) -> Number:
        return (self.code.op(PRODUCT, *a, *b),)

    def held(self, hint: str, a: Number) -> Number:
        return (a[0] if isinstance(a[0], Name) else self.code.let(hint, a[0]),)


class Magnitudes(Plain):
    """The sum of the magnitudes of a state's terms, without offsets."""

    def negative(self, a: Number) -> Number:
        return a

    def times(self, factor: Expr, a: Number) -> Number:
        return super().times(self.code.op(MAGNITUDE, factor), a)


@dataclass(frozen=True)
class Twice:
    """Numbers in about twice the precision: compensated sums and products (Ogita, Rump and Oishi, SIAM J. Sci. Comput. 26, 2005).

    Each operation is rounded by itself: a GPU would contract products and sums into FMAs, and the errors would be wrong.
    """

    code: Code
    has_offsets: bool = False

    def of(self, value: Expr) -> Number | None:
        return (value,) if self.has_offsets else None

    def plus(self, a: Number, b: Number) -> Number:
        let = self.code.let
        (x, *x_rest), (y, *y_rest) = a, b
        total = let("total", self._sum(x, y))
        added = let("added", self._difference(total, x))
        lost = self._sum(self._difference(x, self._difference(total, added)), self._difference(y, added))
        return total, let("rest", reduce(self._sum, [*x_rest, *y_rest], lost))

    def negative(self, a: Number) -> Number:
        return tuple(self.code.op(NEGATIVE, part) for part in a)

    def times(self, factor: Expr, a: Number) -> Number:
        return self.product((factor,), a)

    def product(self, a: Number, b: Number) -> Number:
        let = self.code.let
        (x, *x_rest), (y, *y_rest) = a, b
        scaled = let("scaled", self._product(x, y))
        lost = self.code.op(_PRODUCT_AND_SUM, x, y, self.code.op(NEGATIVE, scaled))
        return scaled, let(
            "rest", reduce(self._sum, [*(self._product(x, one) for one in y_rest), *(self._product(y, one) for one in x_rest)], lost)
        )

    def held(self, hint: str, a: Number) -> Number:
        return a

    def _sum(self, a: Expr, b: Expr) -> Apply:
        return self.code.op(ROUNDED_SUM, a, b)

    def _difference(self, a: Expr, b: Expr) -> Apply:
        return self.code.op(ROUNDED_DIFFERENCE, a, b)

    def _product(self, a: Expr, b: Expr) -> Apply:
        return self.code.op(ROUNDED_PRODUCT, a, b)


# What a step makes of states, known without the data --------------------------------------------------------------------


class _Pattern:
    """Symbolic numbers: any that stays the very same in a step (as given), or "other"."""

    def __init__(self, has_offsets: bool = False) -> None:
        self.has_offsets = has_offsets

    def of(self, value: Expr) -> str | None:
        return "other" if self.has_offsets else None

    def plus(self, a: str, b: str) -> str:
        return "other"

    def negative(self, a: str) -> str:
        return "other"

    def times(self, factor: Expr, a: str) -> str:
        return "other"

    def held(self, hint: str, a: str) -> str:
        return a


@dataclass(frozen=True)
class Shape:
    """The sparsity of what steps make of any states: a matrix times the states, plus offsets.

    columns: for each state whose column is not a column of the identity, the rows of its nonzeros (the states it enters).
    offsets: the states to which something is added.
    """

    columns: Mapping[int, tuple[int, ...]]
    offsets: tuple[int, ...]

    @property
    def entries(self) -> list[tuple[int, int]]:
        """(row, column) of each number of the matrix that must be computed."""
        return [(row, column) for column, rows in self.columns.items() for row in rows]


def shape_of(step: LinearStep) -> Shape:
    """The shape that holds for any number of such steps in a row."""
    n = len(step.states)
    nothing: dict[str, str | None] = dict.fromkeys(step.states)
    unchanged: Arithmetic[str] = _Pattern()
    once = [step.after({**nothing, name: "same"}, unchanged, {}) for name in step.states]
    enters: list[Set[int]] = [{j, *(row for row in range(n) if once[j][row] is not None)} for j in range(n)]
    for _ in range(n):  # the transitive closure: n rounds reach whatever any number of steps reaches
        enters = [set[int]().union(*(enters[row] for row in rows)) for rows in enters]
    is_kept = [all(once[j][row] == ("same" if row == j else None) for row in range(n)) for j in range(n)]
    changed: Arithmetic[str] = _Pattern(has_offsets=True)
    of_nothing: list[str | None] = step.after(nothing, changed, {})
    added = [row for row, one in enumerate(of_nothing) if one is not None]
    offsets = set[int]().union(*(enters[row] for row in added))
    return Shape({j: tuple(sorted(enters[j])) for j in range(n) if not is_kept[j]}, tuple(sorted(offsets)))
