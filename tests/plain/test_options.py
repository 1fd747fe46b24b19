"""None before a number, and names that the test of a `while` binds: each function beside itself under Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import numbascan as ns
from numbascan.front.tree import flattened

SHORT, LONG = np.array([3.0, -1.0, 2.0]), np.linspace(-1.0, 1.3, 20)


def assert_as_python(f: Callable[..., Any], *args: Any, mode: str | None = "python") -> None:
    """A function gives what it gives under Python; where it raises there, or returns None, it raises a TypeError."""
    try:
        expected = f(*args)
    except TypeError:
        expected = None
    if expected is None:
        with pytest.raises(TypeError, match="it is None"):
            ns.jit(f, mode=mode)(*args)
        return
    for one, other in zip(flattened(expected)[0], flattened(ns.jit(f, mode=mode)(*args))[0], strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-12)


def largest(x: Any) -> Any:
    best = None
    for v in x:
        if best is None or v > best:
            best = v
    return best


def least_above(x: Any) -> Any:
    best = None
    where = None
    for k, v in enumerate(x):
        if v > 0 and (best is None or v < best):
            best, where = v, k
    if best is None:
        return -1.0, -1
    return best, where


def last_above_five(x: Any) -> Any:
    last = None
    for v in x:
        if v > 5:
            last = v
    return last


def path_length(x: Any) -> Any:
    before = None
    total = 0.0
    for v in x:
        if before is not None:
            total += abs(v - before)
        before = v
    return total, before


def in_a_while(x: Any) -> Any:
    last = None
    y = x[0]
    while y > 1:
        last = y
        y = y / 2
    return 0.0 if last is None else last


def by_break(x: Any) -> Any:
    k = None
    for i in range(len(x)):
        if x[i] > 2.5:
            k = i
            break
    return -1.0 if k is None else x[k]


def back_to_none(x: Any) -> Any:
    y = 1.0
    for v in x:
        y = None if v > 1 else v
    return -5 if y is None else y


class Best:
    def __init__(self) -> None:
        self.value: Any = None

    def see(self, v: Any) -> None:
        if self.value is None or self.value < v:
            self.value = v


def attribute(x: Any) -> Any:
    best = Best()
    for v in x:
        best.see(v)
    value = best.value
    return value, max(value, 1), np.exp(value), float(value), int(value), abs(value), value**2, -value, 2 * value, round(value)


def positive(x: Any) -> Any:
    if x > 0:
        return x
    return None


def by_helper(x: Any) -> Any:
    y = x[0] if x[0] > 0 else None
    z = None
    if x[1] > 0:
        z = x[1]
    return (
        3 if y is None else y,
        z is None,
        z == None,  # noqa: E711 - asked so, too
        z != None,  # noqa: E711
        1 if z else 0,
        not z,
        z or 7,
        y is not None and z is not None,
    )


def computed_with(x: Any) -> Any:
    y = x[0] if x[0] > 0 else None
    return y * 2


def as_a_length(x: Any) -> Any:
    n = None
    if x[0] > 0:
        n = int(abs(x[0] * 3))
    return sum(k for k in range(n))


FUNCTIONS = [
    *(largest, least_above, last_above_five, path_length, in_a_while, by_break, back_to_none, attribute, by_helper),
    *(computed_with, as_a_length),
]


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("x", [SHORT, LONG, -SHORT, LONG * 10, -np.abs(LONG), LONG[::-1] + 2])
def test_none_or_a_number_is_what_it_is_under_python(f: Callable[..., Any], x: Any) -> None:
    assert_as_python(f, x)


@pytest.mark.parametrize("f", [largest, least_above, last_above_five, attribute, computed_with, by_break])
def test_compiled_options(f: Callable[..., Any]) -> None:
    for x in (LONG, -np.abs(LONG), LONG * 10):
        assert_as_python(f, x, mode=None)


def test_derivatives_and_lanes_go_through_options() -> None:
    lanes = np.stack([LONG, LONG[::-1], LONG * 2])
    f = ns.vmap(lambda x: largest(x) ** 2 + least_above(x)[0])
    np.testing.assert_allclose(f(lanes), [largest(x) ** 2 + least_above(x)[0] for x in lanes])
    slope = ns.grad(lambda x: largest(x) ** 2 + path_length(x)[0])(LONG)
    steps = [
        (largest(LONG + d) ** 2 + path_length(LONG + d)[0] - largest(LONG - d) ** 2 - path_length(LONG - d)[0]) / 2e-6
        for d in 1e-6 * np.eye(20)
    ]
    np.testing.assert_allclose(slope, steps, atol=1e-6)


def test_the_error_names_the_line_and_arguments_stay() -> None:
    def f(x: Any, y: Any) -> Any:
        y[0] = 5.0
        z = None
        if x > 0:
            z = x
        return z + 1

    y = np.zeros(2)
    for mode in ("python", None):
        with pytest.raises(TypeError, match=r"it is None.*test_options\.py, line"):
            ns.jit(f, mode=mode)(-1.0, y)
        assert y[0] == 0


def test_arrays_that_may_be_none_are_refused() -> None:
    def f(x: Any) -> Any:
        best = None
        for row in x:
            if best is None or row[0] > best[0]:
                best = row
        return best

    with pytest.raises(TypeError, match=r"best is .*None"):
        ns.jit(f)(np.ones((20, 3)))


@dataclass
class Pair:
    one: Any
    other: Any


def test_records_that_branches_make_are_chosen() -> None:
    def f(x: Any) -> Any:
        pair = Pair(x, 1.0)
        if x > 0:
            pair = Pair(x * 2, 3.0)
        return pair.one + pair.other

    for x in (1.0, -1.0):
        assert_as_python(f, x)


def left_behind(x: Any) -> Any:
    y, z = 0.0, np.ones(3)
    while x > 1:
        y = x / 2
        z = y * np.arange(3)
        x = y
    return x, y, z


def left_by_break(x: Any) -> Any:
    y, z = 0.0, np.ones(3)
    while True:
        y = x / 2
        z = y * np.arange(3)
        if y < 1:
            break
        x = y
    return x, y, z


@pytest.mark.parametrize("f", [left_behind, left_by_break])
def test_what_a_while_leaves_and_reads_not_is_kept_of_the_last_pass_alone(f: Callable[..., Any]) -> None:
    for x in (0.5, 9.0):
        assert_as_python(f, x, mode=None)


def test_records_and_dicts_are_returned_with_numbers() -> None:
    def f(x: Any) -> Any:
        y = None
        if x > 0:
            y = x
        return Pair(y, [1.0, y]), {"y": y}, (y,)

    pair, named, (number,) = ns.jit(f, mode="python")(2.0)
    assert type(pair) is Pair
    assert (pair.one, pair.other[1], named["y"], number) == (2.0, 2.0, 2.0, 2.0)
    with pytest.raises(TypeError, match="it is None"):
        ns.jit(f, mode="python")(-2.0)


def test_numbers_of_python_are_promoted_by_passes() -> None:
    def f(x: Any, n: Any) -> Any:
        y, total = 1.5, 0.0
        for _ in range(n):
            total += y
            y = 3
        return total + x, y

    for n in (1, 20):
        assert_as_python(f, 1.0, n)


def number_left(x: Any, n: Any) -> Any:
    y = x * 0.5
    for k in range(n):
        y = k
    return y


def array_left(x: Any, n: Any) -> Any:
    y = x * np.ones(3)
    for k in range(n):
        y = np.arange(3) + k
    return y


def left_of_a_while(x: Any, n: Any) -> Any:
    y = x * np.float64(0.5)
    z = x * 0.5
    while n > 3:
        n = n - 1
        y = z = 0
    return y, z


def place_left(x: Any, n: Any) -> Any:
    y = 0.5
    for k in range(20):
        y = k + n * 0
    return np.arange(40)[y] * x


@pytest.mark.parametrize("f", [number_left, array_left, left_of_a_while, place_left])
@pytest.mark.parametrize("mode", ["python", None])
def test_what_was_there_before_a_loop_without_a_pass_is_not_cut_to_what_passes_leave(f: Callable[..., Any], mode: str | None) -> None:
    for n in (0, 1, 20):
        assert_as_python(f, 0.7, n, mode=mode)


# names that the test of a `while` binds -------------------------------------------------------------------------------------


def halved(x: Any) -> Any:
    k = 0
    while (y := x / 2) > 1:
        x = y
        k += 1
    return x, k, y


def halved_twice(x: Any) -> Any:
    k = 0
    while (y := x / 2) > 1 and k < 2:
        x = y
        k += 1
        if k == 7:
            continue
    else:
        k += 10
    return x, k, y


def two_names(x: Any) -> Any:
    k = 0
    while (y := x / 2) > 1 and (z := y + k) < 70:
        x = y + z * 0
        k += 1
        if x < 2:
            break
    return x, k, y


def digits(n: Any) -> Any:
    total = 0
    while rest := n % 10:
        total += rest
        n = n // 10
    return total


@pytest.mark.parametrize("f", [halved, halved_twice, two_names])
@pytest.mark.parametrize("x", [0.5, 9.0, 90.5, 300.0])
@pytest.mark.parametrize("mode", ["python", None])
def test_names_that_a_while_binds(f: Callable[..., Any], x: float, mode: str | None) -> None:
    assert_as_python(f, x, mode=mode)


def test_a_name_alone_as_the_test() -> None:
    assert_as_python(digits, 45312)
    np.testing.assert_allclose(ns.grad(lambda x: halved(x)[0])(9.0), 1 / 8)
