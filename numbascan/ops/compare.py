"""Elementwise ops that compare, choose, and work on truth values and bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir import loops as ir
from ..ir.node import Node, constant
from ..types import TensorType, dtype_name
from .algebra import broadcast_to, dims_of, sub, where
from .algebra import call as op
from .card import Card, Gate
from .elementwise import Code, by_kind, call, compiled, elementwise, infix, integers, loop_card, points, prefix, ufunc_loop


def _truth(name: str, ufunc: np.ufunc, code: Code, **facets: Any) -> Card:
    """The card of a ufunc that gives truth values."""
    return elementwise(name, ufunc, code, no_gradient="a truth value does not change by small steps", is_cheap=True, **facets)


def _bits(name: str, ufunc: np.ufunc, code: Code, **facets: Any) -> Card:
    """The card of a ufunc on the bits of integers."""
    return elementwise(name, ufunc, code, no_gradient="bits do not change by small steps", is_cheap=True, **facets)


def _comparison(name: str, ufunc: np.ufunc, sign: str) -> Card:
    """The card of a comparison. Complex numbers are ordered by their real parts, then by their imaginary parts.

    NumPy's function compares int64 with uint64, which Numba's operators take as floats.
    """
    exact = call(f"np.{name}({{0}}, {{1}})")

    def code(x: str, y: str, *result: str) -> ir.Template:
        is_ordered = x.startswith("complex") and sign not in ("==", "!=")
        return exact if is_ordered or {x, y} == {"int64", "uint64"} else ir.COMPARE_WITH[sign]

    def loop(x: TensorType, y: TensorType) -> tuple[str, ...]:
        """The dtypes. A Python integer that only the run knows is compared by its value, even if the other dtype cannot hold it."""
        return numpys(x.strong(), y.strong()) if x.kind in "iu" and y.kind in "iu" else numpys(x, y)

    numpys = ufunc_loop(ufunc)
    return _truth(name, ufunc, code, loop=loop)


LESS = _comparison("less", np.less, "<")
LESS_EQUAL = _comparison("less_equal", np.less_equal, "<=")
GREATER = _comparison("greater", np.greater, ">")
GREATER_EQUAL = _comparison("greater_equal", np.greater_equal, ">=")
EQUAL = _comparison("equal", np.equal, "==")
NOT_EQUAL = _comparison("not_equal", np.not_equal, "!=")
COMPARISONS = (LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, EQUAL, NOT_EQUAL)


def _extreme(name: str, ufunc: np.ufunc, wins: str, nan_wins: bool, codes: Sequence[ir.Template], **facets: Any) -> Card:
    """The card of an extreme of two. Its derivative goes to the operand that is the result; equal ones get half: the central difference."""

    def partials(out: Node, x: Node, y: Node) -> tuple[Node, Node]:
        half, one, zero = (constant(number, out.type.dtype) for number in (0.5, 1, 0))
        is_first = op("logical_or", op(wins, x, y), op("isnan", x if nan_wins else y))
        first = where(op("equal", x, y), half, where(is_first, one, zero))
        return first, sub(1, first)

    for_bool, for_int, for_float = codes
    code = by_kind(b=for_bool, iu=for_int, f=for_float, c=call(f"np.{name}({{0}}, {{1}})"))
    return elementwise(name, ufunc, code, partials=partials, is_cheap=True, **facets)


_GREATER, _LESSER = (infix("or", ir.OR), ir.GREATEST), (infix("and", ir.AND), ir.LEAST)
_NUMBER_WINS = "the {} of two; a number beside a NaN wins"
MAXIMUM = _extreme("maximum", np.maximum, "greater", True, (*_GREATER, ir.MAX_OR_NAN), summary="the greater of two; NaN where one is NaN")
MINIMUM = _extreme("minimum", np.minimum, "less", True, (*_LESSER, ir.MIN_OR_NAN), summary="the lesser of two; NaN where one is NaN")
FMAX = _extreme("fmax", np.fmax, "greater", False, (*_GREATER, call("np.fmax({0}, {1})")), summary=_NUMBER_WINS.format("greater"))
FMIN = _extreme("fmin", np.fmin, "less", False, (*_LESSER, call("np.fmin({0}, {1})")), summary=_NUMBER_WINS.format("lesser"))

_TRUTH = (ir.BIT_OR, ir.BIT_OR)
LOGICAL_AND = _truth(
    "logical_and",
    np.logical_and,
    by_kind(b=infix("and", ir.AND), iufc=ir.Template("{0} != 0 and {1} != 0", ir.AND, _TRUTH)),
    summary="whether both are true",
)
LOGICAL_OR = _truth(
    "logical_or",
    np.logical_or,
    by_kind(b=infix("or", ir.OR), iufc=ir.Template("{0} != 0 or {1} != 0", ir.OR, _TRUTH)),
    summary="whether one or both are true",
)
LOGICAL_XOR = _truth(
    "logical_xor",
    np.logical_xor,
    by_kind(b=ir.COMPARE_WITH["!="], iufc=ir.Template("({0} != 0) != ({1} != 0)", ir.COMPARE, _TRUTH)),
    summary="whether just one is true",
)
LOGICAL_NOT = _truth(
    "logical_not",
    np.logical_not,
    by_kind(b=prefix("not ", ir.NOT), iufc=ir.Template("{0} == 0", ir.COMPARE, (ir.BIT_OR,))),
    summary="whether x is false",
)

BITWISE_AND = _bits(
    "bitwise_and",
    np.bitwise_and,
    infix("&", ir.BIT_AND),
    domains=((-90.0, 120.0), (3.0, 77.0)),
    summary="x1 & x2, bit by bit",
    aliases="and_",
)
BITWISE_OR = _bits(
    "bitwise_or", np.bitwise_or, infix("|", ir.BIT_OR), domains=((-90.0, 120.0), (3.0, 77.0)), summary="x1 | x2, bit by bit", aliases="or_"
)
BITWISE_XOR = _bits(
    "bitwise_xor",
    np.bitwise_xor,
    infix("^", ir.BIT_XOR),
    domains=((-90.0, 120.0), (3.0, 77.0)),
    summary="x1 ^ x2, bit by bit",
    aliases="xor",
)
INVERT = _bits(
    "invert",
    np.invert,
    by_kind(b=prefix("not ", ir.NOT), iu=prefix("~", ir.UNARY)),
    domains=((-90.0, 120.0),),
    summary="~x, every bit turned over",
    aliases="bitwise_not",
)


def left_shift(x: Any, n: Any) -> Any:
    """x << n; 0 where n is negative or at least 64. Narrower results lose their bits in the cast that follows."""
    return x << n if n >= 0 and n < 64 else x ^ x


def right_shift(x: Any, n: Any) -> Any:
    """x >> n; all bits are the sign where n is negative or at least 64."""
    if n >= 0 and n < 64:
        return x >> n
    return ~(x ^ x) if x < 0 else x ^ x


LEFT_SHIFT = _bits(
    "left_shift",
    np.left_shift,
    compiled(left_shift),
    samples=integers((-90, 120), (1, 5)),
    summary="x1 << x2; 0 where x2 is negative or too large",
)
RIGHT_SHIFT = _bits(
    "right_shift",
    np.right_shift,
    compiled(right_shift),
    samples=integers((-90, 120), (1, 5)),
    summary="x1 >> x2; only sign bits where x2 is negative or too large",
)

ISNAN = _truth(
    "isnan", np.isnan, by_kind(biu=ir.Template("False"), f=call("math.isnan({0})"), c=call("np.isnan({0})")), summary="whether x is NaN"
)
ISINF = _truth(
    "isinf",
    np.isinf,
    by_kind(biu=ir.Template("False"), f=call("math.isinf({0})"), c=call("np.isinf({0})")),
    summary="whether x is infinite",
)
ISFINITE = _truth(
    "isfinite",
    np.isfinite,
    by_kind(biu=ir.Template("True"), f=call("math.isfinite({0})"), c=call("np.isfinite({0})")),
    summary="whether x is neither infinite nor NaN",
)
SIGNBIT = _truth(
    "signbit",
    np.signbit,
    ir.Template("math.copysign(1.0, {0}) < 0.0", ir.COMPARE, (ir.CHOICE,)),
    summary="whether the sign bit is set, as in -0.0",
)


_PYTHON = {"b": False, "i": 0, "u": 0, "f": 0.0, "c": 0j}


def _where_loop(condition: TensorType, a: TensorType, b: TensorType) -> tuple[str, ...]:
    """The branches' common dtype; Python numbers give way to the other branch."""
    common: Any = np.result_type(a.dtype, b.dtype)
    if a.weak != b.weak:
        weak, strong = (a, b) if a.weak else (b, a)
        common = np.result_type(_PYTHON[weak.kind], np.dtype(strong.dtype))
    dtype = dtype_name(common)
    return "bool", dtype, dtype, dtype


def _where_samples() -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    ((a, b, c), attrs), *_ = points((-1.7, 2.1), (-1.2, 0.9), (0.3, 1.4))()
    return [((a > 0, b, c), attrs)]


def _where_jvp(node: Node, condition: None, a: Node | None, b: Node | None) -> Node | None:
    if a is None and b is None:
        return None
    chosen = where(node.inputs[0], 0 if a is None else a, 0 if b is None else b)
    return broadcast_to(chosen, dims_of(node))


WHERE = loop_card(
    "where",
    np.where,
    _where_loop,
    ir.Template("{1} if {0} else {2}", ir.CHOICE, (ir.OR, ir.OR, ir.CHOICE)),
    samples=_where_samples,
    partials=lambda out, condition, a, b: (None, Gate(condition), Gate(condition, False)),
    jvp=_where_jvp,
    is_cheap=True,
)
"""Only the branch taken is computed."""
