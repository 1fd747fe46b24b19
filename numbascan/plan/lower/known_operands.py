"""What an elementwise op gives where an operand is known as loops are made: integers added to 0, a choice whose condition is settled."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...ir.loops import DIFFERENCE, PRODUCT, Apply, Expr, Index, Literal, Load, Name, Template, chosen, compare
from ...ops.card import Card
from ...ops.compare import MAXIMUM, WHERE
from ...ops.elementwise import ADD, FLOOR_DIVIDE, MUL, NEG, POW, SQRT, SUB
from ...ops.lowering import Elementwise
from ..builder import Builder

INTEGERS = ("int8", "int16", "int32", "int64")
FLOATS = ("float32", "float64")
MOST_FACTORS = 6  # of a power that is a product, at most 3.4 ulp from the exact one; pow takes ten times as long


def simpler(builder: Builder, card: Card, dtype: str, operands: Sequence[Expr]) -> Expr | None:
    """The result in `dtype` from operands in it; None where nothing is known. Sums of floats with 0 change the sign of -0.0."""
    first, *rest = operands
    if card is WHERE and isinstance(first, Literal):
        return rest[0] if first.value else rest[1]
    if card is POW and dtype in FLOATS and isinstance(rest[0], Literal):
        return _power(builder, first, rest[0].value)
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


def _power(builder: Builder, base: Expr, exponent: complex) -> Expr | None:
    """base**exponent as a product, for 3 to MOST_FACTORS and 1.5; None for others.

    A partial product leaves the range of floats only where the power does, too. The root of -inf is NaN, its power inf.
    """
    if exponent not in (1.5, *range(3, MOST_FACTORS + 1)):
        return None
    x = base if isinstance(base, Name | Literal | Load) else builder.let("base", base)
    if exponent == 1.5:
        power = _product(x, Apply(x.dtype, _root(x.dtype), (x,)))
        return chosen(compare("==", x, Literal(x.dtype, -math.inf)), Literal(x.dtype, math.inf), power)
    square = _product(x, x)
    if exponent == 3:
        return _product(square, x)
    square = builder.let("square", square)
    fourth = _product(square, square)
    return fourth if exponent == 4 else _product(fourth, x if exponent == 5 else square)


def _root(dtype: str) -> Template:
    assert isinstance(SQRT.lower, Elementwise)
    return SQRT.lower.code(dtype, dtype)


def _product(a: Expr, b: Expr) -> Expr:
    return Apply(a.dtype, PRODUCT, (a, b))


def _difference(dtype: str, a: Index, b: Index) -> Expr:
    """a - b, which is -(b - a) for integers that wrap around."""
    return a if isinstance(a, Expr) and _is(b, 0) else Apply(dtype, DIFFERENCE, (a, b))


def _is(number: object, value: int) -> bool:
    """True if an operand is that number."""
    return isinstance(number, Literal) and number.value == value
