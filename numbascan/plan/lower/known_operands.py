"""What an elementwise op gives where an operand is known as loops are made: integers added to 0, a choice whose condition is settled."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.loops import DIFFERENCE, Apply, Expr, Index, Literal, compare
from ...ops.card import Card
from ...ops.compare import MAXIMUM, WHERE
from ...ops.elementwise import ADD, FLOOR_DIVIDE, MUL, NEG, SUB
from ..builder import Builder

INTEGERS = ("int8", "int16", "int32", "int64")


def simpler(builder: Builder, card: Card, dtype: str, operands: Sequence[Expr]) -> Expr | None:
    """The result in `dtype` from operands in it; None where nothing is known. Sums of floats with 0 change the sign of -0.0."""
    first, *rest = operands
    if card is WHERE and isinstance(first, Literal):
        return rest[0] if first.value else rest[1]
    if dtype not in INTEGERS:
        return None
    if card is NEG and isinstance(first, Apply) and first.template is DIFFERENCE and first.dtype == dtype:
        return _difference(dtype, *first.args[::-1])
    if len(rest) != 1:
        return None
    (second,) = rest
    if (card in (ADD, SUB) and _is(second, 0)) or (card in (MUL, FLOOR_DIVIDE) and _is(second, 1)):
        return first
    if (card is ADD and _is(first, 0)) or (card is MUL and _is(first, 1)):
        return second
    if card is MAXIMUM and dtype == "int64" and builder.decided(compare(">=", first, second)):
        return first
    return None


def _difference(dtype: str, a: Index, b: Index) -> Expr:
    """a - b, which is -(b - a) for integers that wrap around."""
    return a if isinstance(a, Expr) and _is(b, 0) else Apply(dtype, DIFFERENCE, (a, b))


def _is(number: object, value: int) -> bool:
    """True if an operand is that number."""
    return isinstance(number, Literal) and number.value == value
