"""Python's numbers as arguments, True and False among them, mean what they mean in Python: held against the same function, run plainly."""

from __future__ import annotations

import operator
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns

X = np.array([1.0, 2.0, 3.0])
X32 = X.astype("float32")


def agree(seen: Any, expected: Any, label: str = "") -> None:
    for one, other in zip(*(value if isinstance(value, tuple) else (value,) for value in (seen, expected)), strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype, f"{label}: {np.asarray(one).dtype}, not {np.asarray(other).dtype}"
        np.testing.assert_array_equal(one, other, err_msg=label)


@pytest.mark.parametrize(
    "f, arguments",
    [
        (lambda x, a, b: x * (a + b), (X, True, True)),
        (lambda x, a: x * ~a, (X, True)),
        (lambda x, a: x * (a + 1), (X32, True)),
        (lambda x, a: x * (a * 2.5), (X32, True)),
        (lambda x, a, b: x * ((a < b) + 1), (X32, 1, 2)),
        (lambda x, a: x * (-a) + abs(a) - round(a), (X32, True)),
        (lambda a, b: np.add(a, b), (True, True)),
        (lambda x, k: x * np.add(k, 1), (X32, 3)),
        (lambda x, a: np.where(a, x, 0), (X32, False)),
        (lambda a, b: divmod(a, b), (True, True)),
        (lambda x, k: x * divmod(k, 2)[0], (X32, 3)),
        (lambda x, k: x * np.divmod(k, 2)[0], (X32, 3)),
    ],
)
def test_truth_values_are_numbers_in_arithmetic(f: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    agree(ns.jit(f, mode="python")(*arguments), f(*arguments))


def test_machine_code_computes_with_truth_values_as_python_does() -> None:
    def f(x: Any, a: Any, b: Any) -> Any:
        return x * (a + b), ~a, a & b, (a > b) + (a == b), x * (a - 3)

    for a, b in [(True, True), (True, False)]:
        agree(ns.jit(f)(X32, a, b), f(X32, a, b))


def test_a_truth_value_and_a_numpy_one_are_kinds_of_their_own() -> None:
    double = ns.jit(lambda a: a + a, mode="python")
    for value in (True, np.True_, True, np.True_, np.array(True), 1):
        agree(double(value), value + value, repr(value))


def test_steps_take_truth_values_as_python_does() -> None:
    rows = ns.map(lambda x, k: x * (k + k), X32, non_sequences=True, return_updates=False, mode="python")
    agree(rows, X32 * 2)
    doubled = ns.scan(lambda s: s + s, outputs_info=True, n_steps=3, return_updates=False, mode="python")
    agree(doubled, np.array([2, 4, 8]))
    parity = ns.scan(lambda x, s: s ^ (x > 1.5), X, True, return_updates=False, mode="python")
    agree(parity, np.array([True, False, True]))
    slope = ns.grad(lambda x, k: np.sum(x * x * (k + k)))
    agree(slope(X, True), 4 * X)


BINARY = [
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.lshift, operator.rshift),
    *(operator.and_, operator.or_, operator.xor, operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge),
    *(np.add, np.multiply, np.maximum, np.logical_and, np.less, np.bitwise_or, np.subtract),
]
UNARY = [operator.neg, operator.pos, operator.invert, abs, np.logical_not, np.square, np.invert, np.sign]
NUMBERS = [True, False, True, False, 0, 1, 3, -2, 0.5, -1.5, np.True_, np.int8(3), np.float32(0.5)]
ARRAYS = [np.array([1, 2, 3], "int8"), X32, X, np.array([True, False, True]), np.array([3, 0, 7], "uint8"), np.array([1, -4, 3])]


def random_function(chance: random.Random, n: int, depth: int) -> tuple[Callable[..., Any], str]:
    """A function of n arguments, and its text."""
    if not depth or chance.random() < 0.15:
        if chance.random() < 0.2:
            number = chance.choice([True, False, 2, 0.5])
            return lambda *_: number, repr(number)
        k = chance.randrange(n)
        return (lambda *args: args[k]), f"a{k}"
    if chance.random() < 0.25:
        f, text = random_function(chance, n, depth - 1)
        one = chance.choice(UNARY)
        return lambda *args: one(f(*args)), f"{one.__name__}({text})"
    (f, text), (g, other) = (random_function(chance, n, depth - 1) for _ in range(2))
    two = chance.choice(BINARY)
    return lambda *args: two(f(*args), g(*args)), f"{two.__name__}({text}, {other})"


@pytest.mark.parametrize("seed", range(4))
def test_random_expressions_of_numbers_and_arrays_mean_what_they_mean_in_python(seed: int) -> None:
    chance, done = random.Random(seed), 0
    while done < 60:
        arguments = [chance.choice(NUMBERS), chance.choice(NUMBERS), chance.choice(ARRAYS if chance.random() < 0.6 else NUMBERS)]
        f, text = random_function(chance, 3, 3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected = f(*arguments)
            except (TypeError, ZeroDivisionError, OverflowError, ValueError):
                continue
            if np.asarray(expected).dtype in (np.float16, np.dtype(object)) or not np.all(np.isfinite(expected)):
                continue
            agree(ns.jit(f, mode="python")(*arguments), expected, f"{text} of {arguments}")
        done += 1
