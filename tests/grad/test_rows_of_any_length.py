"""Gradients of steps whose values have another length at every step: no trace keeps them, and nobody is told to pad them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from wide import wide

import numbascan as ns
import numbascan.tensor as nt

rng = np.random.default_rng(3)
LENGTHS = rng.integers(1, 9, 12)
START, WEIGHTS = rng.normal(size=9) * 0.4, rng.normal(size=(9, 9)) * 0.3
STEPS: dict[str, Callable[..., Any]] = {
    "a product with a vector": lambda k, x, w: put(x, k, np.tanh(w[:k] @ x)),
    "products of matrices": lambda k, x, w: put(x, k, np.tanh(w[:k, :k] @ (w[:k, :k] @ x[:k]))),
    "a product that sums over the length": lambda k, x, w: x * 0.9 + 0.01 * (w[:k].T @ w[:k])[0],
    "rows of a matrix": lambda k, x, w: put(
        x, k // 3 * 3, np.tanh(x[: k // 3 * 3].reshape((k // 3, 3)) @ w[:3, :3]).reshape((k // 3 * 3,))
    ),
    "positions": lambda k, x, w: x * 0.9 + 0.1 * np.sin(x[nt.arange(k)]).sum() * w[0],
    "an outer product": lambda k, x, w: x * 0.9 + 0.01 * np.outer(x[:k], w[0, :k]).sum() * w[1],
    "solve": lambda k, x, w: put(x, k, np.linalg.solve(3 * nt.eye(9)[:k, :k] + w[:k, :k], x[:k])),
    "sorted": lambda k, x, w: put(x, k, np.sort(x[:k]) * 0.9 + np.cumsum(w[:k, 1]) * 0.1),
}


def in_threes(x: Any, count: Any, w: Any) -> Any:
    return np.tanh(x.reshape((count, 3)) @ w).reshape((3 * count,))


def put(x: Any, k: Any, value: Any) -> Any:
    return nt.set_subtensor(x[:k], value)


def cost_of(name: str, **options: Any) -> Callable[..., Any]:
    def cost(w: Any, x: Any) -> Any:
        return (ns.scan(STEPS[name], [LENGTHS], x, w, return_updates=False, **options)[-1] ** 2).sum()

    return cost


@pytest.mark.parametrize("name", STEPS)
def test_gradients_are_slopes(name: str) -> None:
    ns.verify_grad(cost_of(name), [WEIGHTS, START], seed=1)


@pytest.mark.parametrize("name", wide(["products of matrices", "an outer product", "sorted", "rows of a matrix"], first=2))
def test_with_checkpoints_and_cut_off(name: str) -> None:
    gradient = ns.grad(cost_of(name), argnums=(0, 1))(WEIGHTS, START)
    for one, other in zip(ns.grad(cost_of(name, checkpoint=4), argnums=(0, 1))(WEIGHTS, START), gradient, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-14)
    cut = cost_of(name, truncate_gradient=3)
    for one, other in zip(
        ns.grad(cut, argnums=(0, 1))(WEIGHTS, START), ns.jit(ns.grad(cut, argnums=(0, 1)), mode="python")(WEIGHTS, START), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("name", wide(["an outer product", "rows of a matrix", "products of matrices"], first=1))
def test_second_derivatives_and_lanes(name: str) -> None:
    slope = lambda w: (ns.grad(cost_of(name))(w, START) * WEIGHTS[::-1]).sum()  # noqa: E731 - an argument
    ns.verify_grad(slope, [WEIGHTS], seed=1)
    lanes = np.stack([WEIGHTS, WEIGHTS * 0.5, WEIGHTS.T])
    found = ns.vmap(lambda w: ns.grad(cost_of(name))(w, START))(lanes)
    np.testing.assert_allclose(found, [ns.grad(cost_of(name))(w, START) for w in lanes], rtol=1e-10, atol=1e-14)


def test_of_a_short_slice_its_elements_are_kept() -> None:
    """Ten numbers a step, not the row: also where the slice ends at the end of the row, and where it is counted from there."""
    places = np.array([3, 295, 299, -4, -300, 120, 400])

    def step(j: Any, x: Any) -> Any:
        return nt.set_subtensor(x[j : j + 10], np.sin(x[j : j + 10]) * 0.5)

    def cost(x: Any) -> Any:
        return (ns.scan(step, [places], x, return_updates=False)[-1] ** 2).sum()

    row = rng.normal(size=300)
    gradient = ns.jit(ns.grad(cost))
    ns.verify_grad(cost, [row], seed=1)
    gradient(row)
    assert gradient.memory().total < 8 * (10 * len(places) + 5 * 300)


def test_a_number_that_wraps_bounds_no_slice() -> None:
    """In int8, 120 + 10 is -126: from there to the end are more than ten."""
    places = np.array([120, 3], "int8")

    def step(j: Any, x: Any) -> Any:
        return nt.set_subtensor(x[j : j + 10], np.sin(x[j : j + 10]) * 0.5)

    def cost(x: Any) -> Any:
        return (ns.scan(step, [places], x, return_updates=False)[-1] ** 2).sum()

    row = rng.normal(size=300)
    with np.errstate(over="ignore"):
        ns.verify_grad(cost, [row], seed=1)
