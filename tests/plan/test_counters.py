"""What a loop knows of its counter: checks of indices that cannot fail are gone, the others fail where NumPy's do."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import numbascan as ns

rng = np.random.default_rng(1)


def dotted(a: Any, b: Any, k: Any) -> Any:
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i + k]
    return total


def both_ways(a: Any, b: Any, k: Any) -> Any:
    out = np.zeros(len(a))
    for i in range(k, len(a)):
        out[i - k] = a[i] + b[len(b) - 1 - i]
    return out


def triangle(a: Any, b: Any, k: Any) -> Any:
    out = np.zeros(len(a))
    for i in range(len(a)):
        for j in range(i + 1):
            for m in range(j):
                out[i] += a[j] * b[m + k]
    return out


def two_checks(a: Any, b: Any, k: Any) -> Any:
    """Which one fails first depends on the lengths; what stands before has been done."""
    total = 0.0
    for i in range(30):
        total += a[i]
        if total > 1e9:
            break
        total += b[i + 1]
    return total + k


def every_third(a: Any, b: Any, k: Any) -> Any:
    total = 0.0
    for i in range(0, len(a), 3):
        total += a[i] * b[i // 3 + k]
    return total


def down(a: Any, b: Any, k: Any) -> Any:
    out = b.copy()
    for i in range(len(b) - 2, -1, -1):
        out[i] = out[i + 1] + a[i + k]
    return out


def asserted(a: Any, b: Any, k: Any) -> Any:
    total = 0.0
    for i in range(len(a)):
        assert i < 25
        total += b[i + k]
    return total


PROGRAMS = [dotted, both_ways, triangle, two_checks, every_third, down, asserted]


@pytest.mark.parametrize("mode", ["numba", "python"])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_indices_of_counters_fail_as_numpys_do(f: Callable[..., Any], mode: str) -> None:
    compiled = ns.jit(f, mode=mode)
    for n, m, k in product((0, 1, 19, 30), (0, 1, 18, 31), (0, 1, 2, -1, -25, 40)):
        a, b = rng.normal(size=n), rng.normal(size=m)
        try:
            expected = f(a, b, k)
        except (IndexError, AssertionError) as error:
            with pytest.raises(type(error)) as ours:
                compiled(a, b, k)
            if isinstance(error, IndexError):
                where = str(error).partition("index ")[2].partition(" is out")[0]
                assert f"index {where} is out of bounds" in str(ours.value)
        else:
            np.testing.assert_allclose(compiled(a, b, k), expected, rtol=1e-12)


def test_no_index_of_a_counter_is_checked_that_cannot_fail() -> None:
    def smoothed(u: Any, steps: Any) -> Any:
        u = u.copy()
        for _ in range(steps):
            new = u.copy()
            for i in range(1, u.shape[0] - 1):
                for j in range(1, u.shape[1] - 1):
                    new[i, j] = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
            u = new
        return u

    f = ns.jit(smoothed)
    u = rng.normal(size=(19, 20))
    np.testing.assert_array_equal(f(u, 3), smoothed(u, 3))
    assert "IndexError" not in f.source()
    assert " if " not in "\n".join(line for line in f.source().splitlines() if "u_rows[" in line)  # nothing counts from the end


@pytest.mark.parametrize("n", [2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1, -1, 0, 1, 5])
def test_counts_that_wrap_do_not_pass_for_lengths(n: int) -> None:
    """`n + 1` and `n - 1` leave int64 at its ends, and come out at the other one, as everywhere."""

    def f(x: Any, n: Any) -> Any:
        total = 0.0
        for i in range(n + 1):
            total += x[i]
        for i in range(n - 1, n - 3, -1):
            total += x[i] if i >= 0 else 0.0
        return total

    def outcome(mode: str) -> Any:
        try:
            return float(ns.jit(f, mode=mode)(np.arange(4.0), n))
        except (IndexError, MemoryError, ValueError):  # steps that no memory counts are refused in other words
            return "an error"

    assert outcome("numba") == outcome("python")
    if 0 <= n < 4:
        assert outcome("numba") == f(np.arange(4.0), n)
