"""Sorting of short rows by comparing neighbours, as scalar statements: no call, no branch, rows side by side in the SIMD unit.

Places in sorted rows are found by counting.

Odd–even transposition: in each of n rounds, every second pair of neighbours is exchanged if it is in the wrong order. Equal numbers keep
their order; few sorting networks with fewer comparisons have this. (Knuth, The Art of Computer Programming, volume 3, 5.3.4.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from math import inf, nan
from typing import Any

from ..ir import loops as ir
from .lowering import Elements, Matrix, ScalarCode, ScalarRoutine

NUMBERS = 16  # up to this many, a call of a routine takes as long or longer, up to 15 times


@dataclass(frozen=True)
class Row:
    """A row in ascending order, with infinity in place of NaNs, and the number of NaNs: None for dtypes without NaN."""

    ordered: Sequence[ir.Expr]
    n_nan: ir.Expr | None


_ALL = ir.Template("{0} & {1}", ir.BIT_AND, (ir.BIT_AND, ir.BIT_XOR))
_ANY = ir.Template("{0} | {1}", ir.BIT_OR, (ir.BIT_OR, ir.BIT_AND))
_REST = ir.Template("{0} % {1}", ir.TIMES, (ir.TIMES, ir.UNARY))


def _pairs(n: int) -> Iterator[int]:
    """The first place of each pair of neighbours to compare, in order."""
    for k in range(n):
        yield from range(k % 2, n - 1, 2)


def _exchanged(code: ScalarCode, a: ir.Expr, b: ir.Expr) -> list[ir.Expr]:
    """Two neighbours in order; equal ones stay as they are."""
    lesser, greater = (_ALL, _ANY) if a.dtype == "bool" else (ir.LEAST, ir.GREATEST)
    return [code.let("lesser", ir.Apply(a.dtype, lesser, (a, b))), code.let("greater", ir.Apply(a.dtype, greater, (b, a)))]


def _are_nan(code: ScalarCode, numbers: Sequence[ir.Expr]) -> list[ir.Expr]:
    return [code.let("is_nan", ir.compare("!=", x, x)) for x in numbers]


def _keys(code: ScalarCode, numbers: Sequence[ir.Expr], are_nan: Sequence[ir.Expr]) -> list[ir.Expr]:
    """The numbers, with infinity for NaN."""
    return [code.let("key", ir.chosen(is_nan, ir.Literal(x.dtype, inf), x)) for is_nan, x in zip(are_nan, numbers, strict=True)]


def _elements(code: ScalarCode, row: Matrix) -> tuple[list[ir.Expr], bool]:
    """The numbers of a row, each computed once, and whether they may be NaN."""
    return [code.let("number", x) for (x,) in row], row[0][0].dtype.startswith("float")


def _sorted(code: ScalarCode, row: Matrix, attrs: dict[str, Any]) -> Row:
    numbers, may_be_nan = _elements(code, row)
    n_nan: ir.Expr | None = None
    if may_be_nan:
        are_nan = _are_nan(code, numbers)
        n_nan = code.let("n_nan", _count(are_nan))
        numbers = _keys(code, numbers, are_nan)
    for k in _pairs(len(numbers)):
        numbers[k : k + 2] = _exchanged(code, *numbers[k : k + 2])
    return Row(numbers, n_nan)


def _or_nan(x: ir.Expr, n_nan: ir.Expr | None, place: int, n: int) -> ir.Expr:
    """The number at a place of a sorted row, where NaNs are last."""
    return x if n_nan is None else ir.chosen(ir.compare(">", n_nan, n - 1 - place), ir.Literal(x.dtype, nan), x)


def _values(code: ScalarCode, row: Row) -> Sequence[Elements]:
    n = len(row.ordered)
    return [{(k,): _or_nan(x, row.n_nan, k, n) for k, x in enumerate(row.ordered)}]


def _middles(code: ScalarCode, row: Row) -> Sequence[Elements]:
    """The two numbers in the middle; NaN if the row has one."""
    n = len(row.ordered)
    return [{(k,): _or_nan(row.ordered[place], row.n_nan, n - 1, n) for k, place in enumerate(((n - 1) // 2, n // 2))}]


def _order(code: ScalarCode, row: Matrix, attrs: dict[str, Any]) -> Sequence[ir.Expr]:
    """The places of the numbers in ascending order. Until then `NUMBERS` is added to those of NaNs, which come after infinity."""
    numbers, may_be_nan = _elements(code, row)
    places: list[ir.Expr] = [ir.Literal("int64", k) for k in range(len(row))]
    if may_be_nan:
        are_nan = _are_nan(code, numbers)
        numbers = _keys(code, numbers, are_nan)
        far = [ir.index_expr(ir.INDEX_PRODUCT, is_nan, NUMBERS) for is_nan in are_nan]
        places = [code.let("place", ir.index_expr(ir.INDEX_SUM, one, k)) for k, one in enumerate(far)]
    for k in _pairs(len(numbers)):
        (a, b), (i, j) = numbers[k : k + 2], places[k : k + 2]
        is_less = ir.compare("<", b, a)
        if may_be_nan:
            is_nan = ir.Apply("bool", _ALL, (ir.compare("==", b, a), ir.compare("<", j, i)))
            is_less = ir.Apply("bool", _ANY, (is_less, is_nan))
        move = code.let("move", ir.index_expr(ir.INDEX_PRODUCT, ir.index_expr(ir.INDEX_DIFFERENCE, j, i), is_less))
        numbers[k : k + 2] = _exchanged(code, a, b)
        places[k : k + 2] = [
            code.let("place", ir.index_expr(ir.INDEX_SUM, i, move)),
            code.let("place", ir.index_expr(ir.INDEX_DIFFERENCE, j, move)),
        ]
    return [ir.index_expr(_REST, place, NUMBERS) for place in places] if may_be_nan else places


def _places(code: ScalarCode, order: Sequence[ir.Expr]) -> Sequence[Elements]:
    return [{(k,): place for k, place in enumerate(order)}]


def _count(conditions: Sequence[ir.Expr]) -> ir.Expr:
    """The number of conditions that hold."""
    return reduce(lambda total, one: ir.index_expr(ir.INDEX_SUM, total, one), conditions[1:], ir.index_expr(ir.INDEX_SUM, 0, conditions[0]))


def place_of(ordered: Sequence[ir.Expr], x: ir.Expr, is_right: bool) -> ir.Expr:
    """The place of a number in a sorted row: how many numbers come before it."""
    before = _count([ir.compare("<=" if is_right else "<", one, x) for one in ordered])
    if not x.dtype.startswith("float"):
        return before
    of_nan = ir.Literal("int64", len(ordered)) if is_right else _count([ir.compare("==", one, one) for one in ordered])
    return ir.chosen(ir.compare("==", x, x), before, of_nan)


SORT = ScalarRoutine(NUMBERS, NUMBERS, _sorted, results=_values, kinds="fiub")
MIDDLES = ScalarRoutine(NUMBERS, NUMBERS, _sorted, results=_middles, kinds="fiub")
ORDER = ScalarRoutine(NUMBERS, NUMBERS, _order, results=_places, kinds="fiub")
