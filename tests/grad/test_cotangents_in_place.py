"""Cotangents of gathers and sets are added and cleared at their place: no table is added per step, no path of a state is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from wide import wide

import numbascan as ns
import numbascan.tensor as nt

N, STEPS, TABLE = 80, 7, 30
Part = Callable[[Any, Any, Any, Any, Any], Any]
rng = np.random.default_rng(5)
PLACES, NUMBERS = rng.integers(-TABLE, TABLE, (STEPS, 4)), rng.normal(size=STEPS)
ROW, WEIGHTS = rng.normal(size=N), rng.normal(size=TABLE)


def put(x: Any, index: Any, value: Any) -> Any:
    return nt.set_subtensor(x[index], value)


def added(x: Any, index: Any, value: Any) -> Any:
    return nt.inc_subtensor(x[index], value)


# each makes the row x another one, from places, a number and weights; y is the row as the step met it
PARTS: dict[str, Part] = {
    "an element": lambda x, i, u, p, y: put(x, i[0], np.tanh(x[i[1]] * p[i[2]] + u)),
    "a sum": lambda x, i, u, p, y: added(x, i[1], np.sin(y[i[1]]) * p[i[0]]),
    "a swap": lambda x, i, u, p, y: put(put(x, i[0], x[i[1]]), i[1], y[i[0]] * p[0]),
    "a slice": lambda x, i, u, p, y: put(x, slice(4, 9), np.tanh(x[2:7]) * p[i[0]] + y[4:9]),
    "a moving slice": lambda x, i, u, p, y: added(x, slice(i[3] % 20, i[3] % 20 + 3), y[i[2] % 20 : i[2] % 20 + 3] * u),
    "a slice at an end": lambda x, i, u, p, y: put(x, slice(i[3] + 52, i[3] + 57), np.sin(x[i[3] + 52 : i[3] + 57]) * u),
    "a slice at the start": lambda x, i, u, p, y: put(x, slice(i[3] - 2, i[3] + 3), np.sin(x[i[3] - 2 : i[3] + 3]) * p[i[0]]),
    "a slice of any length": lambda x, i, u, p, y: put(x, slice(None, i[2] % 70), np.tanh(y[: i[2] % 70]) * u),
    "positions": lambda x, i, u, p, y: put(x, i, np.cos(x[i]) * p[i]),
    "positions added": lambda x, i, u, p, y: added(x, i[::-1], x[i] * y[5] * p[i[::-1]]),
    "a choice": lambda x, i, u, p, y: np.where(u > 0, put(x, i[0], u * y[i[1]]), x),
    "strides": lambda x, i, u, p, y: put(x, slice(None, 20, 5), y[3:7] * p[4:8]),
    "everything": lambda x, i, u, p, y: x * 0.9 + p[i[0]] * y[i[1]],
}


def step_of(names: tuple[str, ...], with_sum: bool) -> Callable[..., Any]:
    def step(i: Any, u: Any, x: Any, p: Any) -> Any:
        y = x
        for name in names:
            x = PARTS[name](x, i, u, p, y)
        return (x, x[i[0]] * y[i[1]] * p[i[2]]) if with_sum else x

    return step


def cost_of(names: tuple[str, ...], seed: int) -> Callable[[Any, Any, Any], Any]:
    """A number that depends on all results; of the rows only the last, or all."""
    with_sum, keep = seed % 2 == 1, 1 if seed % 3 else None

    def cost(x: Any, u: Any, p: Any) -> Any:
        start = [x, None] if with_sum else x
        rows = ns.scan(step_of(names, with_sum), [PLACES, u], start, p, keep_last=keep, return_updates=False)
        rows, others = rows if with_sum else (rows, u)
        return (rows * np.cos(np.arange(N))).sum() + (others * others).sum() + (u * u).sum() + (p * p).sum()

    return cost


def some(seed: int) -> tuple[str, ...]:
    numbers = np.random.default_rng(seed)
    return tuple(str(name) for name in numbers.choice(list(PARTS), numbers.integers(1, 4)))


@pytest.mark.parametrize("seed", wide(range(60), first=8))
def test_gradients_are_slopes(seed: int) -> None:
    """By differences of the cost in Python; and compiled gradients are those of the interpreter."""
    cost, values = cost_of(some(seed), seed), [ROW, NUMBERS, WEIGHTS]
    plain = ns.jit(cost, mode="python")
    found = ns.jit(ns.grad(cost, argnums=(0, 1, 2)), mode="python")(*values)
    for k in range(3):
        direction = np.random.default_rng(k).normal(size=values[k].shape)
        ahead, behind = (plain(*[v + sign * 1e-6 * direction if j == k else v for j, v in enumerate(values)]) for sign in (1, -1))
        np.testing.assert_allclose(np.vdot(found[k], direction), (ahead - behind) / 2e-6, rtol=2e-6, atol=2e-6)
    if seed % 2 == 0 or seed > 20:
        for one, other in zip(ns.jit(ns.grad(cost, argnums=(0, 1, 2)))(*values), found, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def text_of_gradient(step: Callable[..., Any]) -> str:
    """The text of the gradient with respect to the row and the weights; the cost reads the last row."""
    cost = lambda x, p: ns.scan(step, [PLACES, NUMBERS], x, p, keep_last=1, return_updates=False).sum()  # noqa: E731 - an argument
    gradient = ns.jit(ns.grad(cost, argnums=(0, 1)))
    gradient(ROW, WEIGHTS)
    return gradient.source()


@pytest.mark.parametrize(
    "name",
    [
        "an element",
        "a sum",
        "a swap",
        "positions",
        "positions added",
        "a slice",
        "a slice at the start",
    ],
)
def test_of_a_state_that_is_only_set_no_rows_are_stored(name: str) -> None:
    assert "_path" not in text_of_gradient(step_of((name,), with_sum=False))


@pytest.mark.parametrize("mode", [None, "python"])
def test_of_a_place_that_is_named_twice_the_last_value_counts(mode: str | None) -> None:
    """Also where it is counted from either end, on two axes, by few positions or by many."""
    weights = rng.normal(size=(5, 4))
    gradient = ns.jit(ns.grad(lambda v, x, p, q: (put(x, (p, q), v) * weights).sum(), (0, 1)), mode=mode)
    for shape in ((2, 6), (9, 12)):
        p, q = rng.integers(-5, 5, shape), rng.integers(-4, 4, shape[1])
        last = {(p[k] % 5, q[k[1]] % 4): k for k in np.ndindex(shape)}
        d_v, d_x = np.zeros(shape), weights.copy()
        for place, k in last.items():
            d_v[k], d_x[place] = weights[place], 0
        for one, other in zip(gradient(np.ones(shape), np.ones((5, 4)), p, q), (d_v, d_x), strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_table_is_added_to_at_the_places_that_were_read() -> None:
    text = text_of_gradient(lambda i, u, x, p: np.tanh(x * p[i[0]] + u))
    loop = text[text.rindex("for t in") :]
    assert "d_p[i] =" not in loop
    assert "d_p[" in loop
