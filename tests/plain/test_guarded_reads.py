"""A read behind a condition is not made where the condition does not hold, whatever other branches and passes read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns

X = np.array([1.0, 0.0, -2.0])


def beside_another_guard(x, i):
    r = 0.0
    if i < len(x):
        r = x[i]
    elif i >= len(x) or x[i] == 0:
        r = -1.0
    return r


def in_a_choice_of_the_other_branch(x, i):
    r = 0.0
    if i < 3 or x[0] > 5:
        r = x[i]
    return r


def in_a_loop_of_the_other_branch(x, i):
    r = 0.0
    if i < 3:
        r = x[i]
    else:
        for _ in range(i - 5):
            r += x[i]
    return r


def written_on_both_sides(x, i):
    y = x.copy()
    if i < 3 or i < 2:
        y[i] = 5
    return y


def one_choice_after_the_other(x, i):
    r = x[i] if i < 3 else 0.0
    r += x[i] if i < 2 else 0.0
    return r


def in_a_body_that_is_traced_again(x, i):
    r = np.zeros(2)
    for _ in range(i - 5):
        r[0] = x[i]
        if r[0] > 2:
            r[1] = x[i] * 2
    return r


def cast_on_both_sides(x, i):
    if i < 3:
        return int(1 / x[i])
    if i < 2:
        return int(1 / x[i])
    return 7


@pytest.mark.parametrize(
    "f",
    [
        beside_another_guard,
        in_a_choice_of_the_other_branch,
        in_a_loop_of_the_other_branch,
        written_on_both_sides,
        one_choice_after_the_other,
        in_a_body_that_is_traced_again,
        cast_on_both_sides,
    ],
)
def test_nothing_is_read_where_no_guard_holds(f: Callable[..., Any]) -> None:
    jitted = ns.jit(f)
    for i in (5, 0, 2):
        np.testing.assert_array_equal(jitted(X, i), f(X.copy(), i))


def test_sides_given_as_functions() -> None:
    import numbascan.tensor as nt

    def chosen(x, i):
        return nt.ifelse(i < 3, lambda: x[i], lambda: nt.ifelse(x[0] > 5, lambda: x[i], lambda: -1.0))

    assert ns.jit(chosen)(X, 5) == -1.0
    assert ns.jit(chosen)(X, 2) == -2.0


# positions that are known, of arrays whose length is known: whether they are read is for the run to decide ---------------


def a_known_position(x, n):
    y = 0.0
    if n > 3:
        y = x[5]
    return y


def a_known_position_twice(x, n):
    if n > 3 and x[3] > -5:
        return x[3]
    return x[n - 1] if n < 3 else x[-4]


def a_write(x, n):
    y = x.copy()
    if n > 3:
        y[3] += 1
        y[0] = 7
    elif n > 2:
        y[0:2] = x[4]
    return y


def in_passes(x, n):
    s = 0.0
    for i in range(n - 2):
        s += x[i] if i < 2 else x[3]
    return s


def of_a_list(x, n):
    pair = [x[0], x[1]]
    if n > 3:
        pair[0] = pair[2]
    return pair[0]


@pytest.mark.parametrize("f", [a_known_position, a_known_position_twice, a_write, in_passes, of_a_list])
def test_a_position_that_is_not_there_is_an_error_where_it_is_read(f: Callable[..., Any]) -> None:
    jitted = ns.jit(f)
    seen = []
    for n in (1, 2, 3, 5):
        try:
            expected = f(X.copy(), n)
        except IndexError as error:
            seen.append(n)
            with pytest.raises(IndexError, match=str(error).split()[0]):
                jitted(X, n)
        else:
            np.testing.assert_array_equal(jitted(X, n), expected)
    assert 5 in seen


def test_lanes_and_gradients_of_a_position_that_is_not_there() -> None:
    def f(x, n):
        return x[3] ** 2 if n > 3 else x[0] ** 2

    np.testing.assert_array_equal(ns.grad(f)(X, 1), [2.0, 0.0, 0.0])
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
        ns.grad(f)(X, 4)
    lanes = ns.vmap(f)
    np.testing.assert_array_equal(lanes(np.array([X, 2 * X]), np.array([1, 2])), [1.0, 4.0])
    with pytest.raises(IndexError, match="index 3 is out of bounds"):
        lanes(np.array([X, 2 * X]), np.array([1, 4]))
