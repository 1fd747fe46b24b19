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
