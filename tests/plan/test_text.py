"""Expressions print as a person writes them: parentheses where Python needs them, numbers in their dtype."""

from __future__ import annotations

import math

import numpy as np
import pytest

from numbascan.emit.text import expression
from numbascan.ir.loops import PLUS, TIMES, Apply, Index, Literal, Load, Name, Template, add, choice, compare, floor_div, mod, mul, sub
from numbascan.ops.elementwise import infix

T = Name("int64", "t")
X, Y = Name("float64", "x"), Name("float64", "y")


def plus(a: object, b: object) -> Apply:
    return Apply("float64", infix("+", PLUS), (a, b))  # type: ignore[arg-type]


def times(a: object, b: object) -> Apply:
    return Apply("float64", infix("*", TIMES), (a, b))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (times(plus(X, Y), X), "(x + y) * x"),
        (plus(times(X, Y), X), "x * y + x"),
        (plus(X, plus(Y, X)), "x + (y + x)"),
        (plus(plus(X, Y), X), "x + y + x"),
        (Apply("float64", Template("math.exp({0})"), (plus(X, Y),)), "math.exp(x + y)"),
        (Load("float64", "a", (add(T, 4), 0)), "a[t + 4, 0]"),
        (times(X, Literal("float64", -2.0)), "x * -2.0"),
        (choice(compare("<", T, 3), T, 0), "t if t < 3 else 0"),
    ],
)
def test_parentheses(expr: object, text: str) -> None:
    assert expression(expr) == text  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Literal("float64", 0.1), "0.1"),
        (Literal("float32", 0.5), "np.float32(0.5)"),
        (Literal("int64", 7), "7"),
        (Literal("uint8", 7), "np.uint8(7)"),
        (Literal("float64", math.inf), "np.inf"),
        (Literal("float64", -math.inf), "-np.inf"),
        (Literal("float64", math.nan), "np.nan"),
        (Literal("bool", True), "True"),
        (Literal("complex128", 1 - 2j), "complex(1.0, -2.0)"),
    ],
)
def test_numbers_keep_their_dtype(number: Literal, text: str) -> None:
    assert expression(number) == text


@pytest.mark.parametrize("number", [2**63 - 1, Literal("uint64", 2**64 - 1), Literal("int64", -(2**63))])
def test_numbers_of_64_bits_are_written(number: Index) -> None:
    assert eval(expression(number), {"np": np}) == (number if isinstance(number, int) else number.value)


@pytest.mark.parametrize("number", [2**63, mul(4, 2**63 - 1), add(mul(T, 2**62), 2**63), Literal("int64", 2**63), Literal("uint64", 2**64)])
def test_numbers_of_more_are_refused_here_and_not_by_numba(number: Index) -> None:
    with pytest.raises(OverflowError, match="beyond 64 bits"):
        expression(number)


def test_a_narrow_result_is_cast_back() -> None:
    total = Apply("int32", infix("+", PLUS), (Name("int32", "a"), Name("int32", "b")))
    assert expression(total) == "np.int32(a + b)"


def test_index_arithmetic_folds() -> None:
    assert expression(sub(add(add(T, 4), 1), 2)) == "t + 3"
    assert expression(add(sub(T, 3), 3)) == "t"
    assert expression(mul(add(T, 0), 1)) == "t"
    assert floor_div(7, 2) == 3
    assert mod(T, 1) == 0
