"""Linear algebra on matrices of up to 3 rows as scalar statements, with the same operations as `emit.runtime.routines`.

They take as long as the routines (1 row: a third of the time; inverses of 3 rows: 1.15 times), and compile in a quarter of the time: 0.1,
0.2 and 0.3 s for 1, 2 and 3 rows. The first routine of a process takes 0.6 to 0.9 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import inf
from typing import Any

from ..ir.loops import DIVISION, PLUS, TIMES, UNARY, Apply, Expr, Literal, Name, Template, both, chosen, compare, either
from .elementary import EXP, LOG
from .elementwise import ABS, SQRT
from .lowering import Column, Elements, Elementwise, Matrix, ScalarCode, ScalarRoutine

MOST_ROWS = 8  # this many rows make some thousand statements
ROWS = 3  # for 4 rows the routines are faster: an inverse takes 49 ns, not 64

SUB = Template("{0} - {1}", PLUS, (PLUS, TIMES))
ADD = Template("{0} + {1}", PLUS, (PLUS, TIMES))
MUL = Template("{0} * {1}", TIMES, (TIMES, UNARY))
ROUNDED_MUL = replace(MUL, rounds=True)  # draws of normal vectors use a Cholesky factor, and must have the same bits everywhere
DIV = Template("{0} / {1}", TIMES, (TIMES, UNARY), cost=DIVISION)


def _of(template: Template, x: Expr, y: Expr) -> Expr:
    return Apply(x.dtype, template, (x, y))


def _function(card: Any, x: Expr) -> Expr:
    assert isinstance(card.lower, Elementwise)
    return Apply(x.dtype, card.lower.code(x.dtype, x.dtype), (x,))


def _size(x: Expr) -> Expr:
    return _function(ABS, x)


def _number(value: float, like: Expr) -> Expr:
    return Literal(like.dtype, value)


# elimination --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Factors:
    """The result of Gaussian elimination with partial pivoting.

    exchanges: for each column, whether each lower row was exchanged with the pivot row. multiples: for each column, the multiples of the
    pivot row that are subtracted from the rows below. upper: the upper triangle that is left.
    """

    exchanges: tuple[tuple[Expr, ...], ...]
    multiples: tuple[tuple[Expr, ...], ...]
    upper: Matrix

    @property
    def pivots(self) -> list[Expr]:
        return [row[k] for k, row in enumerate(self.upper)]

    @property
    def all_exchanges(self) -> list[Expr]:
        return [one for column in self.exchanges for one in column]

    @property
    def is_singular(self) -> Expr:
        """The condition that a pivot is 0. Those behind it are then no numbers, and not 0."""
        return either(*(compare("==", pivot, 0) for pivot in self.pivots))


def _factors(code: ScalarCode, a: Matrix, attrs: dict[str, Any]) -> Factors:
    n = len(a)
    if n == 1:
        return Factors(((),), ((),), a)
    rows = [[code.variable(f"lu_{i}_{j}", a[i][j]) for j in range(n)] for i in range(n)]
    exchanges, multiples = [], []
    for k in range(n):
        exchanges.append(tuple(_pivoted(code, rows, k, i) for i in range(k + 1, n)))
        multiples.append(tuple(code.let("multiple", _of(DIV, rows[i][k], rows[k][k])) for i in range(k + 1, n)))
        for i, multiple in enumerate(multiples[k], k + 1):
            for j in range(k + 1, n):
                _take_off(code, rows[i][j], multiple, rows[k][j])
    return Factors(tuple(exchanges), tuple(multiples), rows)


def _pivoted(code: ScalarCode, rows: Sequence[Sequence[Name]], k: int, i: int) -> Expr:
    """Exchanges rows k and i if the latter has the larger pivot; returns that condition."""
    is_larger = code.let("is_larger", compare(">", _size(rows[i][k]), _size(rows[k][k])))
    code.exchange(is_larger, [(rows[k][j], rows[i][j]) for j in range(k, len(rows))])
    return is_larger


def _take_off(code: ScalarCode, x: Name, factor: Expr, y: Expr) -> None:
    """x -= factor * y."""
    code.assign(x, _of(SUB, x, _of(MUL, factor, y)))


# systems ------------------------------------------------------------------------------------------------------------


def _solved(code: ScalarCode, factors: Factors, columns: Sequence[Column]) -> Sequence[Column]:
    """The solutions of a system that is not singular."""
    n = len(factors.upper)
    if n == 1:
        return [(_of(DIV, column[0], factors.upper[0][0]),) for column in columns]
    xs = [[code.variable("x", element) for element in column] for column in columns]
    for k in range(n):
        for i, is_exchanged in enumerate(factors.exchanges[k], k + 1):
            code.exchange(is_exchanged, [(x[k], x[i]) for x in xs])
        for i, multiple in enumerate(factors.multiples[k], k + 1):
            for x in xs:
                _take_off(code, x[i], multiple, x[k])
    for x in xs:
        _substitute(code, x, (factors.upper, False, False))
    return xs


Triangle = tuple[Matrix, bool, bool]
"""The rows of a matrix, whether the lower triangle counts, and whether the diagonal is taken as 1."""


def _substitute(code: ScalarCode, x: Sequence[Name], triangle: Triangle) -> None:
    """Turns a right-hand side into the solution, in place."""
    rows, is_lower, is_unit = triangle
    n = len(rows)
    for i in range(n) if is_lower else reversed(range(n)):
        for k in range(i) if is_lower else range(i + 1, n):
            _take_off(code, x[i], rows[i][k], x[k])
        if not is_unit:
            code.assign(x[i], _of(DIV, x[i], rows[i][i]))


def _inverse(code: ScalarCode, factors: Factors) -> Sequence[Elements]:
    like = factors.upper[0][0]
    n = len(factors.upper)
    columns = _solved(code, factors, [[_number(float(i == j), like) for i in range(n)] for j in range(n)])
    return [{(i, j): columns[j][i] for i in range(n) for j in range(n)}]


def _triangle(code: ScalarCode, a: Matrix, attrs: dict[str, Any]) -> Triangle:
    """The triangle of op(a)."""
    rows = list(zip(*a, strict=True)) if attrs["trans"] else a
    return rows, attrs["lower"] == (not attrs["trans"]), attrs["unit"]


def _has_zero_on_diagonal(triangle: Triangle) -> Expr:
    rows, _, is_unit = triangle
    return either(*(compare("==", row[i], 0) for i, row in enumerate(rows) if not is_unit))


def _substituted(code: ScalarCode, triangle: Triangle, columns: Sequence[Column]) -> Sequence[Column]:
    xs = [[code.variable("x", element) for element in column] for column in columns]
    for x in xs:
        _substitute(code, x, triangle)
    return xs


# determinants -------------------------------------------------------------------------------------------------------


def _sign(is_odd: Sequence[Expr], like: Expr) -> Expr:
    """-1 where an odd number of conditions holds, else 1."""
    if not is_odd:
        return _number(1.0, like)
    odd = reduce(lambda a, b: compare("!=", a, b), is_odd)
    return chosen(odd, _number(-1.0, like), _number(1.0, like))


def _unless_singular(factors: Factors, singular: float, value: Expr) -> Expr:
    return chosen(factors.is_singular, _number(singular, value), value)


def _log_of_size(factors: Factors) -> Expr:
    logs = (_function(LOG, _size(pivot)) for pivot in factors.pivots)
    return reduce(lambda total, log: _of(ADD, total, log), logs)


def _signed_log(factors: Factors) -> tuple[Expr, Expr]:
    """The sign of the determinant and the logarithm of its size, where it is not 0."""
    below_zero = [compare("<", pivot, 0) for pivot in factors.pivots]
    return _sign([*factors.all_exchanges, *below_zero], factors.pivots[0]), _log_of_size(factors)


def _sign_and_log(code: ScalarCode, factors: Factors) -> Sequence[Elements]:
    sign, log = _signed_log(factors)
    if len(factors.pivots) > 1:  # log(0) is right, but pivots behind a pivot of 0 are no numbers
        log = _unless_singular(factors, -inf, log)
    return [{(): _unless_singular(factors, 0.0, sign)}, {(): log}]


def _determinant(code: ScalarCode, factors: Factors) -> Sequence[Elements]:
    """The product of pivots. If a partial product may overflow or lose digits, though the whole does not, by logarithms as in NumPy."""
    first, *others = factors.pivots
    if not others:
        return [{(): first}]
    part = _of(MUL, _of(MUL, _sign(factors.all_exchanges, first), first), others[0])
    for pivot in others[1:]:
        part = code.let("part", part)
        sign, log = _signed_log(factors)
        is_safe = both(compare(">", _size(part), _number(1e-30, part)), compare("<", _size(part), _number(1e30, part)))
        part = chosen(is_safe, _of(MUL, part, pivot), _of(MUL, sign, _function(EXP, log)))
    return [{(): _unless_singular(factors, 0.0, part)}]


# Cholesky factors ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Roots:
    """The lower triangle of a Cholesky factor, and the squares of the roots on its diagonal."""

    squares: tuple[Expr, ...]
    lower: Matrix


def _roots(code: ScalarCode, a: Matrix, attrs: dict[str, Any]) -> Roots:
    squares: list[Expr] = []
    x: list[list[Expr]] = [[] for _ in a]
    for j in range(len(a)):
        for i in range(j, len(a)):
            rest = reduce(lambda total, pair: _of(SUB, total, _of(ROUNDED_MUL, *pair)), zip(x[i][:j], x[j][:j], strict=True), a[i][j])
            if i == j:
                squares.append(code.let("square", rest))
            x[i].append(code.let(f"factor_{i}_{j}", _function(SQRT, squares[j]) if i == j else _of(DIV, rest, x[j][j])))
    return Roots(tuple(squares), x)


def _is_not_definite(roots: Roots) -> Expr:
    return either(*(compare("<=", square, 0) for square in roots.squares))


def _cholesky(code: ScalarCode, roots: Roots) -> Sequence[Elements]:
    n = len(roots.lower)
    zero = _number(0.0, roots.squares[0])
    return [{(i, j): roots.lower[i][j] if j <= i else zero for i in range(n) for j in range(n)}]


def _is_singular(factors: Factors) -> Expr:
    return factors.is_singular


SOLVE = ScalarRoutine(ROWS, MOST_ROWS, _factors, _is_singular, columns=_solved)
INV = ScalarRoutine(ROWS, MOST_ROWS, _factors, _is_singular, results=_inverse)
DET = ScalarRoutine(ROWS, MOST_ROWS, _factors, results=_determinant)
SLOGDET = ScalarRoutine(ROWS, MOST_ROWS, _factors, results=_sign_and_log)
CHOLESKY = ScalarRoutine(ROWS, MOST_ROWS, _roots, _is_not_definite, results=_cholesky)
TRIANGULAR = ScalarRoutine(ROWS, MOST_ROWS, _triangle, _has_zero_on_diagonal, columns=_substituted)
