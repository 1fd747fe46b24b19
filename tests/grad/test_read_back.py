"""Gradients of loops that read what they have just written: linear in the number of steps, and right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns


def read(a: Any, x: Any) -> Any:
    m, g = np.zeros(len(x)), 0.0
    for t in range(len(x)):
        m[t] = g + x[t]
        g = a * m[t]
    return np.sum(m)


def added(a: Any, x: Any) -> Any:
    m, g = np.ones(len(x)), 0.0
    for t in range(len(x)):
        m[t] += a * x[t]
        m[t] *= 2.0
        g = g * 0.5 + np.sin(m[t])
    return g + np.sum(m)


def of_the_row_before(a: Any, x: Any) -> Any:
    m, g = np.zeros(len(x)), 0.0
    for t in range(len(x)):
        m[t] = m[t - 1] + x[t]
        g += a * m[t] ** 2
    return g + np.sum(m)


def rows(a: Any, x: Any) -> Any:
    m, g = np.zeros((len(x), 2)), 0.0
    for t in range(len(x)):
        m[t] = np.array([a * x[t], g])
        g = np.tanh(g * 0.5 + m[t, 0] * m[t, 1] + m[t] @ m[t] + m[t, :1].sum())
    return g + np.sum(m)


def two_arrays(a: Any, x: Any) -> Any:
    m, k, g = np.zeros(len(x)), np.zeros(len(x)), 0.0
    for t in range(len(x)):
        m[t] = g + x[t]
        k[t] = a * m[t] ** 2
        g = np.tanh(k[t])
    return g + np.sum(m * k)


def written_twice(a: Any, x: Any) -> Any:
    m, g = np.zeros(len(x)), 0.0
    for t in range(len(x)):
        m[t] = a * x[t]
        g += m[t] ** 2
        m[t] = np.sin(g * a)
        g += m[t] ** 2
    return g + np.sum(m)


def cast(a: Any, x: Any) -> Any:
    m, g = np.zeros(len(x), "float32"), 0.0
    for t in range(len(x)):
        m[t] = a * x[t]
        g += m[t] ** 2
    return g + np.sum(m)


COSTS = [read, added, of_the_row_before, rows, two_arrays, written_twice, cast]


@pytest.mark.parametrize("cost", COSTS)
def test_what_is_kept_grows_with_the_steps_alone(cost: Callable[..., Any]) -> None:
    kept = [ns.grad(cost, argnums=(0, 1)).lower(0.5, np.ones(n)).memory().total for n in (1000, 2000)]
    assert kept[1] < 2.1 * kept[0]


@pytest.mark.parametrize("mode", [None, "python"])
@pytest.mark.parametrize("cost", COSTS)
def test_gradients(cost: Callable[..., Any], mode: str | None) -> None:
    x = np.linspace(-0.5, 0.7, 23)
    slopes = ns.jit(ns.grad(cost, argnums=(0, 1)), mode=mode)(0.6, x)
    exact = [(cost(0.6 + 1e-6, x) - cost(0.6 - 1e-6, x)) / 2e-6]
    exact += [(cost(0.6, x + 1e-6 * e) - cost(0.6, x - 1e-6 * e)) / 2e-6 for e in np.eye(23)]
    if cost is cast:
        exact = [np.sum(2 * np.float32(0.6) * x**2 + x), *(2 * 0.36 * x + 0.6)]
    np.testing.assert_allclose([slopes[0], *slopes[1]], exact, rtol=2e-6, atol=1e-7)


def of_other_places(a: Any, x: Any) -> Any:
    m, g = np.zeros(len(x)), 0.0
    for t in range(len(x)):
        m[t] = a * x[t] + g
        g = m[t // 2] * m[len(x) - 1 - t] + 0.1 * m[t]
    return g + np.sum(m)


@pytest.mark.parametrize("checkpoint", [None, 4])
def test_other_places_checkpoints_and_second_derivatives(checkpoint: int | None) -> None:
    x = np.linspace(-0.5, 0.7, 9)
    ns.verify_grad(of_other_places, [0.6, x])
    for cost in (read, added, two_arrays):
        ns.verify_grad(lambda a, x, cost=cost: ns.grad(cost)(a, x), [0.6, x])
        lanes = ns.vmap(ns.grad(cost), in_axes=(0, None))(np.array([0.3, 0.6]), x)
        np.testing.assert_allclose(lanes[1], ns.grad(cost)(0.6, x), rtol=1e-13)

    def by_scan(a: Any, x: Any) -> Any:
        def step(t: Any, g: Any, m: Any, a: Any, x: Any) -> Any:
            m = m[t].set(g + x[t])
            return a * m[t] ** 2, m

        g, m = ns.scan(step, np.arange(9), [0.0, np.zeros(9)], [a, x], return_updates=False, checkpoint=checkpoint)
        return g[-1] + np.sum(m[-1])

    ns.verify_grad(by_scan, [0.6, x])


def test_a_place_out_of_bounds_is_an_error() -> None:
    def cost(a: Any, k: Any) -> Any:
        m, g = np.zeros(20), 0.0
        for t in range(20):
            m[t + k] = a * g
            g = m[t + k] + a
        return g

    with pytest.raises(IndexError, match="out of bounds"):
        ns.grad(cost)(0.5, 1)
