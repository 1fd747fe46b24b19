"""Elementwise ops that compare, choose, and work on truth values and bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.loops import AND, BIT_AND, BIT_OR, BIT_XOR, CHOICE, COMPARE, NOT, OR, UNARY, Template
from ..types import TensorType, dtype_name
from .card import Card
from .elementwise import by_kind, call, elementwise, infix, integers, loop_card, points, prefix


def _comparison(name: str, ufunc: np.ufunc, sign: str) -> Card:
    """Complex numbers are ordered by their real parts, then by their imaginary parts."""
    plain = Template(f"{{0}} {sign} {{1}}", COMPARE, (BIT_OR, BIT_OR))
    ordered = plain if sign in ("==", "!=") else call(f"np.{name}({{0}}, {{1}})")
    return elementwise(name, ufunc, by_kind(biuf=plain, c=ordered))


LESS = _comparison("less", np.less, "<")
LESS_EQUAL = _comparison("less_equal", np.less_equal, "<=")
GREATER = _comparison("greater", np.greater, ">")
GREATER_EQUAL = _comparison("greater_equal", np.greater_equal, ">=")
EQUAL = _comparison("equal", np.equal, "==")
NOT_EQUAL = _comparison("not_equal", np.not_equal, "!=")
COMPARISONS = (LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, EQUAL, NOT_EQUAL)


def _extreme(name: str, ufunc: np.ufunc, for_bool: Template, for_int: str) -> Card:
    return elementwise(name, ufunc, by_kind(b=for_bool, iu=call(f"{for_int}({{0}}, {{1}})"), fc=call(f"np.{name}({{0}}, {{1}})")))


MAXIMUM = _extreme("maximum", np.maximum, infix("or", OR), "max")
MINIMUM = _extreme("minimum", np.minimum, infix("and", AND), "min")
FMAX = _extreme("fmax", np.fmax, infix("or", OR), "max")
FMIN = _extreme("fmin", np.fmin, infix("and", AND), "min")

_TRUTH = (BIT_OR, BIT_OR)
LOGICAL_AND = elementwise("logical_and", np.logical_and, by_kind(b=infix("and", AND), iufc=Template("{0} != 0 and {1} != 0", AND, _TRUTH)))
LOGICAL_OR = elementwise("logical_or", np.logical_or, by_kind(b=infix("or", OR), iufc=Template("{0} != 0 or {1} != 0", OR, _TRUTH)))
LOGICAL_XOR = elementwise(
    "logical_xor",
    np.logical_xor,
    by_kind(b=Template("{0} != {1}", COMPARE, _TRUTH), iufc=Template("({0} != 0) != ({1} != 0)", COMPARE, _TRUTH)),
)
LOGICAL_NOT = elementwise("logical_not", np.logical_not, by_kind(b=prefix("not ", NOT), iufc=Template("{0} == 0", COMPARE, (BIT_OR,))))

BITWISE_AND = elementwise("bitwise_and", np.bitwise_and, infix("&", BIT_AND), domains=((-90.0, 120.0), (3.0, 77.0)))
BITWISE_OR = elementwise("bitwise_or", np.bitwise_or, infix("|", BIT_OR), domains=((-90.0, 120.0), (3.0, 77.0)))
BITWISE_XOR = elementwise("bitwise_xor", np.bitwise_xor, infix("^", BIT_XOR), domains=((-90.0, 120.0), (3.0, 77.0)))
INVERT = elementwise("invert", np.invert, by_kind(b=prefix("not ", NOT), iu=prefix("~", UNARY)), domains=((-90.0, 120.0),))
LEFT_SHIFT = elementwise("left_shift", np.left_shift, call("left_shift({0}, {1})"), samples=integers((-90, 120), (1, 5)))
RIGHT_SHIFT = elementwise("right_shift", np.right_shift, call("right_shift({0}, {1})"), samples=integers((-90, 120), (1, 5)))

ISNAN = elementwise("isnan", np.isnan, by_kind(biu=call("False"), f=call("math.isnan({0})"), c=call("np.isnan({0})")))
ISINF = elementwise("isinf", np.isinf, by_kind(biu=call("False"), f=call("math.isinf({0})"), c=call("np.isinf({0})")))
ISFINITE = elementwise("isfinite", np.isfinite, by_kind(biu=call("True"), f=call("math.isfinite({0})"), c=call("np.isfinite({0})")))
SIGNBIT = elementwise("signbit", np.signbit, Template("math.copysign(1.0, {0}) < 0.0", COMPARE, (CHOICE,)))


_PYTHON = {"i": 0, "u": 0, "f": 0.0, "c": 0j}


def _where_loop(condition: TensorType, a: TensorType, b: TensorType) -> tuple[str, ...]:
    """The branches' common dtype; Python numbers give way to the other branch."""
    found: Any = np.result_type(a.dtype, b.dtype)
    if a.weak != b.weak:
        weak, strong = (a, b) if a.weak else (b, a)
        found = np.result_type(_PYTHON[weak.kind], np.dtype(strong.dtype))
    dtype = dtype_name(found)
    return "bool", dtype, dtype, dtype


def _where_samples() -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    ((a, b, c), attrs), *_ = points((-1.7, 2.1), (-1.2, 0.9), (0.3, 1.4))()
    return [((a > 0, b, c), attrs)]


WHERE = loop_card("where", np.where, _where_loop, Template("{1} if {0} else {2}", CHOICE, (OR, OR, CHOICE)), samples=_where_samples)
"""Only the branch taken is computed."""
