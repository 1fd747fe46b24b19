"""Meetings of features: Python's numbers and truth values, and arrays under names that are bound anew. As under Python, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns


def ranged(x: Any) -> Any:
    s = x.dtype.type(0)
    for i in range(len(x)):
        s = s + x[i] * i
    return s


def enumerated(x: Any) -> Any:
    s = x.dtype.type(0)
    for i, v in enumerate(x):
        s = s + v * i
    return s


def left_behind(x: Any) -> Any:
    for i in range(20):
        if x[i] > 3:
            break
    return x * i


@pytest.mark.parametrize("f", [ranged, enumerated, left_behind])
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_numbers_of_a_range_are_pythons(f: Callable[..., Any], dtype: str) -> None:
    """They take the dtype of the array that they meet, also behind the loop."""
    x = np.arange(20).astype(dtype)
    with np.errstate(over="ignore"):
        expected, result = f(x), ns.jit(f, mode="python")(x)
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


def count(n: int, m: int) -> Any:
    s = False
    for i in range(n):
        s = s + (i > m)
    return s


TRUTHS: list[Callable[..., Any]] = [
    count,
    lambda n, m: (n > m) + (n > 1),
    lambda n, m: (not n) + (not m) + (not n > m),
    lambda n, m: bool(n) + bool(m),
    lambda n, m: any([n > m, m > 1]) + all([n > 1, m > 1]),
    lambda n, m: (n in [20, 3]) + (m in [2, 5]),
    lambda n, m: (10 if (n > m) is True else 20) + (1 if (m > n) is not False else 2),
]


@pytest.mark.parametrize("f", TRUTHS)
@pytest.mark.parametrize("args", [(20, 2), (3, 5)])
def test_truth_values_of_pythons_numbers_are_pythons(f: Callable[..., Any], args: tuple[int, int]) -> None:
    """Their sums are integers."""
    result = ns.jit(f, mode="python")(*args)
    assert (result, result.dtype) == (f(*args), "int64")
