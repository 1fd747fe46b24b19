"""`return x` in a loop that writes x: one array holds x and the result."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns

rng = np.random.default_rng(4)
X, Y = rng.uniform(0.0, 1.0, 80), rng.uniform(0.0, 1.0, 80)


def in_a_for_loop(x: Any, y: Any, limit: float) -> Any:
    for i in range(1, len(x)):
        if x[i] + x[i - 1] > limit:
            return x
        x[i] += x[i - 1] * 0.5
    return x


def with_a_number(x: Any, y: Any, limit: float) -> Any:
    for i in range(1, len(x)):
        if x[i] + x[i - 1] > limit:
            return x, i
        x[i] += x[i - 1] * 0.5
    return x, -1


def in_a_while_loop(x: Any, y: Any, limit: float) -> Any:
    i = 1
    while i < len(x):
        if x[i] + x[i - 1] > limit:
            return x
        x[i] += x[i - 1] * 0.5
        i += 1
    return y


def behind_a_write(x: Any, y: Any, limit: float) -> Any:
    for i in range(1, len(x)):
        x[i] += x[i - 1] * 0.5
        if x[i] > limit:
            x[0] = -1.0
            return x
        x[i] *= 0.75
    x[0] = 9.0
    return x


def one_of_two(x: Any, y: Any, limit: float) -> Any:
    for i in range(1, len(x)):
        if x[i] + y[i] > limit:
            if x[i] > y[i]:
                return x
            return y
        x[i] += x[i - 1] * 0.5
        y[i] += x[i] * 0.25
    return x


def both(x: Any, y: Any, limit: float) -> Any:
    for i in range(1, len(x)):
        if x[i] + y[i] > limit:
            return y, x
        x[i] += x[i - 1] * 0.5
        y[i - 1], y[i] = y[i], x[i]
    return x, y


def in_two_loops(x: Any, y: Any, limit: float) -> Any:
    for i in range(1, len(x)):
        for j in range(i):
            if x[j] * y[i] > limit:
                return x, i
            x[j] += 0.125 * y[i]
    return x, -1


def of_a_copy(x: Any, y: Any, limit: float) -> Any:
    for i in range(1, len(x)):
        if x[i] + x[i - 1] > limit:
            return x.copy()
        x[i] += x[i - 1] * 0.5
    return x.copy()


def of_a_view(x: Any, y: Any, limit: float) -> Any:
    for i in range(1, len(x)):
        if x[i] + x[i - 1] > limit:
            return x[1:]
        x[i] += x[i - 1] * 0.5
    return x[1:]


def of_another_call(x: Any, y: Any, limit: float) -> Any:
    found = in_a_for_loop(x, y, limit).copy()
    found[1] = 7.0
    return found + x


def of_a_new_array(x: Any, y: Any, limit: float) -> Any:
    z = np.zeros(len(x))
    for i in range(1, len(x)):
        if x[i] + z[i - 1] > limit:
            return z
        z[i] = z[i - 1] * 0.5 + x[i]
    return z


def without_a_pass(x: Any, y: Any, limit: float) -> Any:
    for i in range(int(limit * 0)):
        if x[i] > limit:
            return x
        x[i] = 1.0
    return x


IN_PLACE = [in_a_for_loop, with_a_number, in_a_while_loop, behind_a_write, both, in_two_loops, of_a_new_array]
OTHERS = [one_of_two, of_a_copy, of_a_view, of_another_call, without_a_pass]


@pytest.mark.parametrize("mode", [None, "python"])
@pytest.mark.parametrize("f", [*IN_PLACE, *OTHERS], ids=lambda f: f.__name__)
def test_results_are_those_of_the_function(f: Callable[..., Any], mode: str | None) -> None:
    traced = ns.jit(f, mode=mode)
    for limit in (0.1, 1.2, 1.7, 50.0):
        mine, theirs = (X.copy(), Y.copy()), (X.copy(), Y.copy())
        expected, result = f(*theirs, limit), traced(*mine, limit)
        for one, other in zip((*_parts(expected), *theirs), (*_parts(result), *mine), strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-12)


def _parts(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.parametrize("f", IN_PLACE, ids=lambda f: f.__name__)
def test_a_pass_copies_no_array(f: Callable[..., Any]) -> None:
    source = ns.jit(f).lower(X.copy(), Y.copy(), 1.7).source()
    assert "_rows" not in source
    assert "_tail" not in source


@pytest.mark.parametrize("f", [in_a_for_loop, behind_a_write, of_a_new_array], ids=lambda f: f.__name__)
def test_gradients(f: Callable[..., Any]) -> None:
    weights, direction = np.random.default_rng(1).normal(size=(2, len(X)))

    def cost(x: Any, limit: float) -> Any:
        return (f(x.copy(), Y, limit) * weights).sum()

    for limit in (1.7, 50.0):
        slope = (cost(X + 1e-6 * direction, limit) - cost(X - 1e-6 * direction, limit)) / 2e-6
        np.testing.assert_allclose((ns.jit(ns.grad(cost))(X, limit) * direction).sum(), slope, rtol=1e-6)


@pytest.mark.parametrize("f", [in_a_for_loop, behind_a_write, of_a_new_array], ids=lambda f: f.__name__)
def test_lanes(f: Callable[..., Any]) -> None:
    lanes = np.stack([X, X * 0.5, X * 1.5])
    expected = [f(copy.copy(lane), Y, 1.7) for lane in lanes]
    np.testing.assert_allclose(ns.jit(ns.vmap(lambda x: f(x.copy(), Y, 1.7)))(lanes), expected, rtol=1e-12)
