"""Remainders of counters: no division where the number is near the divisor, and no check of an index that is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns
from numbascan.ir.loops import REMAINDER
from numbascan.ops.elementwise import compiled, int_remainder

X = np.cos(np.arange(20.0))


def ring(u: Any, steps: int) -> Any:
    n = len(u)
    for _ in range(steps):
        before = u.copy()
        for i in range(n):
            u[i] = before[i] + 0.1 * (before[(i - 1) % n] - 2 * before[i] + before[(i + 1) % n])
    return u.sum()


def far(u: Any, k: int) -> Any:
    total = 0.0
    for i in range(len(u)):
        total += i * u[(i * 7 + k) % len(u)]
    return total


def itself(u: Any) -> Any:
    total = 0.0
    for i in range(len(u)):
        total += i * u[i % len(u)]
    return total


def of_any(a: Any, b: int) -> Any:
    out = np.zeros((len(a), 3), np.int64)
    for i in range(len(a)):
        out[i] = a[i] % b, (i - 1) % b, (a[i] + i) % b
    return out


def buffered(x: Any, size: int) -> Any:
    ring, total = np.zeros(size), 0.0
    for i in range(len(x)):
        total += ring[i % size]
        ring[(i + 1) % size] = x[i]
    return total, ring


def in_a_while(x: Any) -> Any:
    i, seen = 0, 0.0
    while seen < 3.0:
        seen += abs(x[i])
        i = (i + 3) % len(x)
    return i, seen


def divisions(f: Callable[..., Any], *args: Any) -> int:
    """How many remainders the text of a compiled function computes."""
    traced = ns.jit(f)
    traced(*args)
    return traced.source().count("int_remainder(")


def test_the_template_is_that_of_the_card() -> None:
    assert compiled(int_remainder) == REMAINDER


def test_neighbours_on_a_ring_take_no_division_and_no_check() -> None:
    f = ns.jit(ring)
    f(X.copy(), 2)
    assert "int_remainder(" not in f.source()
    assert "IndexError" not in f.source()
    assert divisions(itself, X) == 0


def test_an_index_that_is_a_remainder_is_not_checked() -> None:
    f = ns.jit(far)
    f(X, 3)
    assert "int_remainder(" in f.source()
    assert "IndexError" not in f.source()


@pytest.mark.parametrize("mode", [None, "python"])
def test_rings_as_python_has_them(mode: str | None) -> None:
    for n in (1, 2, 3, 17, 20):
        own, plain = X[:n].copy(), X[:n].copy()
        assert ns.jit(ring, mode=mode)(own, 3) == pytest.approx(ring(plain, 3), rel=1e-13)
        np.testing.assert_allclose(own, plain, rtol=1e-13)
        for k in (0, 5, -9):
            assert ns.jit(far, mode=mode)(X[:n], k) == pytest.approx(far(X[:n], k), rel=1e-13)
        assert ns.jit(itself, mode=mode)(X[:n]) == pytest.approx(itself(X[:n]), rel=1e-13)
        for size in (1, 4, 30):
            for one, other in zip(ns.jit(buffered, mode=mode)(X[:n], size), buffered(X[:n], size), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-13)
    assert tuple(ns.jit(in_a_while, mode=mode)(X)) == in_a_while(X)


@pytest.mark.parametrize("mode", [None, "python"])
def test_remainders_of_any_numbers(mode: str | None) -> None:
    ends = np.array([0, 1, -1, 5, -5, 2**63 - 1, -(2**63), 2**62])
    numbers = np.concatenate([ends, np.arange(-9, 9)])
    f = ns.jit(of_any, mode=mode)
    for b in (1, -1, 2, 7, -7, 18, -18, 100, 2**62, 2**63 - 1, -(2**63)):
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(f(numbers, b), of_any(numbers, np.int64(b)))
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(f(numbers, 0), np.zeros((len(numbers), 3)))


def test_derivatives_on_a_ring() -> None:
    def last(u: Any) -> Any:
        u = u.copy()
        ring(u, 3)
        return (u * np.arange(len(u))).sum()

    found = ns.grad(last)(X)
    ends = [X + h * np.eye(20) for h in (1e-6, -1e-6)]
    np.testing.assert_allclose(found, [(last(a) - last(b)) / 2e-6 for a, b in zip(*ends, strict=True)], rtol=1e-6, atol=1e-7)
