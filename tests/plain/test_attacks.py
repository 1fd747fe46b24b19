"""Meetings of features: Python's numbers and truth values, and arrays under names that are bound anew. As under Python, or refused."""

from __future__ import annotations

import copy
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


def names_swapped(x: Any, n: int) -> Any:
    a = b = x
    c = x * 2
    for i in range(20):
        a[i] += 1
        b, c = c, b
    return a, b, c


def elements_swapped(x: Any, n: int) -> Any:
    several = [x, x * 2]
    for i in range(20):
        x[i] += 1
        several[0], several[1] = several[1], several[0]
    return several


def attributes_swapped(x: Any, n: int) -> Any:
    class Pair:
        pass

    p: Any = Pair()
    p.a, p.b, p.c = x, x, x * 2
    for i in range(n):
        p.a[i] += 1
        p.b, p.c = p.c, p.b
    return p.a, p.b, p.c


def element_of_two(x: Any, n: int) -> Any:
    several = [x]
    for i in range(20):
        if x[i] > 3:
            several[0] = x * 2
        else:
            several[0][0] += 1
    return several, x


def view_turned(x: Any, n: int) -> Any:
    several = [x[:10]]
    for _ in range(20):
        several[0] = several[0][::-1]
        x[3] += 1
    return several, x


def written_behind(x: Any, n: int) -> Any:
    a, b = x[:4], x[4:8]
    for _ in range(n):
        a, b = b, a
    a[0] = 1
    return a, b, x


def start_written_behind(x: Any, n: int) -> Any:
    a, b = x, x * 2
    for _ in range(n):
        a, b = b, a
    x[0] = 99
    return a, b


def two_names_behind(x: Any, n: int) -> Any:
    p = x.copy()
    for _ in range(n):
        p = p * 0.5
        y = p
    p[0] = 99
    return p, y


def element_and_name_behind(x: Any, n: int) -> Any:
    d = {"p": x.copy()}
    for _ in range(n):
        d["p"] = d["p"] * 0.5
        y = d["p"]
    d["p"][0] = 99
    return d["p"], y


ALIASES = [
    names_swapped,
    elements_swapped,
    attributes_swapped,
    element_of_two,
    view_turned,
    written_behind,
    start_written_behind,
    two_names_behind,
    element_and_name_behind,
]


@pytest.mark.parametrize("f", ALIASES)
@pytest.mark.parametrize("n", [3, 20])
def test_arrays_with_other_names_are_seen_there_or_refused(f: Callable[..., Any], n: int) -> None:
    x = np.arange(20.0) - 7.5
    ours = copy.copy(x)
    expected = f(x, n)
    try:
        result = ns.jit(f, mode="python")(ours, n)
    except ValueError:
        return
    for one, other in zip(expected, result, strict=True):
        np.testing.assert_array_equal(other, one)
    np.testing.assert_array_equal(ours, x)


def reads_the_first_array(x: Any) -> Any:
    a = np.zeros(2)
    b = a
    while x > 0:
        a[0] = x
        b = b + 1
        x = x - 1
    return a, b


def is_one_of_two(x: Any, m: Any) -> Any:
    y = x.copy()
    if m > 0:
        y = x
    return 5 if y is x else 6


REFUSED: list[tuple[Callable[..., Any], tuple[Any, ...], type[Exception]]] = [
    (reads_the_first_array, (3.0,), ValueError),
    (is_one_of_two, (np.ones(3), 1), TypeError),
    (lambda x: sorted([x, 1.5])[0], (np.nan,), ValueError),
]


@pytest.mark.parametrize("f, args, error", REFUSED)
def test_what_only_python_can_know_is_refused(f: Callable[..., Any], args: tuple[Any, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        ns.jit(f, mode="python")(*args)
