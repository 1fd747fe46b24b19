"""Choices and loops of traced values: each function beside itself under Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns


def newton(a: Any) -> Any:
    x = a
    while abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x


def choices(x: Any) -> Any:
    if x > 3:
        return x * 2
    elif x < 1:
        return -x
    return x + 1


def until_large(x: Any, n: int) -> Any:
    total = 0
    for i in range(n):
        if i % 2:
            continue
        total += x * i
        if total > 20:
            break
    else:
        total = -total
    return total


def builtins(x: Any) -> Any:
    return max(x, 2.0), min(x, 1, 3), 1 < x < 3, not x, x and 5, x or 7, abs(x), float(x), int(x)


def garch(p: Any, r: Any) -> Any:
    h = np.empty(len(r))
    h[0] = 1.0
    cost = 0.0
    for t in range(1, len(r)):
        h[t] = p[0] + p[1] * r[t - 1] ** 2 + p[2] * h[t - 1]
        cost += 0.5 * (np.log(h[t]) + r[t] ** 2 / h[t])
    return cost


def sorted_by_swaps(a: Any) -> Any:
    a = a.copy()
    for i in range(len(a)):
        for j in range(len(a) - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a


def by_views(x: Any) -> Any:
    du = np.zeros(3)
    v = du[1:]
    du[0] = x[1]
    du[1] = -x[0] if x[0] > 0 else 0.5
    v += 10
    return du, v


R = np.random.default_rng(3).normal(size=40)


@pytest.mark.parametrize(
    "f, args",
    [
        *((choices, (x,)) for x in (5.0, 0.0, 2.0)),
        *((until_large, (x, n)) for x, n in ((1.5, 3), (1.5, 30), (0.1, 10))),
        *((builtins, (x,)) for x in (2.5, 0.5, -1.0, 0.0)),
        (newton, (2.0,)),
        (garch, (np.array([0.1, 0.1, 0.8]), R)),
        (sorted_by_swaps, (R[:25],)),
        (by_views, (np.array([1.0, 2.0]),)),
    ],
)
def test_a_traced_function_computes_what_it_computes_under_python(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    expected, result = f(*args), ns.jit(f, mode="python")(*args)
    for one, other in zip(
        expected if isinstance(expected, tuple) else (expected,), result if isinstance(result, tuple) else (result,), strict=True
    ):
        np.testing.assert_allclose(other, one, rtol=1e-12)


def test_derivatives_go_through_choices_loops_and_writes() -> None:
    assert ns.grad(newton)(2.0) == pytest.approx(0.5 / np.sqrt(2.0))
    p = np.array([0.1, 0.1, 0.8])
    differences = [(garch(p + e, R) - garch(p - e, R)) / 2e-6 for e in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(ns.grad(garch)(p, R), differences, rtol=1e-6)


def test_an_array_that_is_one_of_two_may_not_be_written() -> None:
    def written(x: Any, a: Any, b: Any) -> Any:
        one = a
        if x > 0:
            one = b
        one[0] = 5.0
        return a + b

    with pytest.raises(ValueError, match="one of two arrays"):
        ns.jit(written, mode="python")(1.0, np.ones(3), np.zeros(3))


@pytest.mark.usefixtures("unconverted")
def test_a_function_without_source_is_refused_where_it_asks_for_a_traced_value() -> None:
    with pytest.raises(ns.TracerBoolError):
        ns.jit(choices, mode="python")(2.0)


def test_loops_whose_passes_grow_are_not_written_out_whole() -> None:
    def equal_ends(s):
        n = len(s)
        table = np.zeros((n, n), dtype=bool)
        for i in range(n):
            for j in range(i + 1):
                if s[i] == s[j]:
                    table[j, i] = True
        return table

    numbers = np.array([0, 1, 2, 1, 0, 2, 2, 1, 0, 1, 2, 0, 1, 2])
    jitted = ns.jit(equal_ends)
    np.testing.assert_array_equal(jitted(numbers), equal_ends(numbers))
    assert len(jitted.source().splitlines()) < 150
