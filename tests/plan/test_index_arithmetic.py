"""Index arithmetic folds: whatever it is built of, an index is the shortest sum that gives the same number."""

from __future__ import annotations

import random

import pytest

from numbascan.emit.text import expression
from numbascan.ir.loops import Apply, Index, Length, Load, Name, add, floor_div, greatest, least, mod, mul, sub
from numbascan.ops.elementwise import ADD
from numbascan.ops.lowering import Elementwise

T, I, N = Name("int64", "t"), Name("int64", "i"), Length("int64", "x", 0)


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (add(mul(add(T, 1), -1), 2000), "1999 - t"),
        (sub(add(N, mul(T, -1)), 1), "x.shape[0] - t - 1"),
        (add(mul(add(T, 3), -1), add(N, 2)), "x.shape[0] - t - 1"),
        (sub(N, sub(N, least(5, N))), "min(5, x.shape[0])"),
        (sub(N, add(I, sub(N, 3))), "3 - i"),
        (sub(0, T), "0 - t"),
        (mul(-1, sub(T, N)), "x.shape[0] - t"),
        (mul(mul(T, 3), 4), "t * 12"),
        (mul(add(T, 1), 3), "t * 3 + 3"),
        (mul(add(T, I), 3), "(t + i) * 3"),
        (mul(add(T, 1), N), "(t + 1) * x.shape[0]"),
        (add(T, T), "t * 2"),
        (sub(add(mul(I, 4), T), mul(I, 4)), "t"),
        (mul(add(T, I), 0), "0"),
        (sub(sub(0, T), I), "0 - t - i"),
    ],
)
def test_an_index_is_a_short_sum(index: Index, text: str) -> None:
    assert expression(index) == text


def test_a_users_sum_is_taken_as_it_stands() -> None:
    assert isinstance(ADD.lower, Elementwise)
    narrow = Load("int8", "a", (T,))
    wrapping = Apply("int8", ADD.lower.code("int8", "int8", "int8"), (narrow, narrow))  # 100 + 100 is -56, not 200
    assert expression(add(wrapping, 1)) == "np.int8(a[t] + a[t]) + 1"


_OPERATIONS = {add: int.__add__, sub: int.__sub__, mul: int.__mul__, least: min, greatest: max}
_DIVISIONS = {floor_div: int.__floordiv__, mod: int.__mod__}


def _drawn(draw: random.Random, values: dict[str, int], depth: int) -> tuple[Index, int]:
    """A random index and its value, computed as it was built."""
    if depth == 0 or draw.random() < 0.15:
        name = draw.choice(["t", "i", "n", ""])
        number = draw.randint(-3, 3)
        return (Name("int64", name), values[name]) if name else (number, number)
    a, left = _drawn(draw, values, depth - 1)
    if draw.random() < 0.15:
        build, compute = draw.choice(list(_DIVISIONS.items()))
        number = draw.choice([-3, -1, 1, 2, 5])
        return build(a, number), compute(left, number)
    b, right = _drawn(draw, values, depth - 1)
    build, compute = draw.choice(list(_OPERATIONS.items()))
    return build(a, b), compute(left, right)


def test_random_indices_keep_their_value() -> None:
    draw = random.Random(7)
    for _ in range(3000):
        values = {"t": draw.randint(-9, 9), "i": draw.randint(0, 9), "n": draw.randint(0, 99)}
        index, value = _drawn(draw, values, draw.randint(1, 6))
        assert eval(expression(index), {"min": min, "max": max}, values) == value, expression(index)
