"""Cotangents of parts of a value make one array: written into it where the parts cannot overlap, else added to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

RNG = np.random.default_rng(11)
WIDE, NARROW, LONG = RNG.normal(size=(3, 80)), RNG.normal(size=(5, 7)), RNG.normal(size=40)


def weighted(*parts: Any) -> Any:
    """A sum to which every element of every part adds in its own way."""
    return sum((k + 1) * (np.sin(part) * part).sum() for k, part in enumerate(parts))


def gates(z: Any) -> Any:
    i, f, g, o = (z[:, k * 20 : (k + 1) * 20] for k in range(4))
    return (nt.sigmoid(i) * np.tanh(g) + nt.sigmoid(f) * np.tanh(o)).sum()


APART: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "gates": (gates, WIDE),
    "gates in another order": (lambda z: weighted(z[:, 40:], z[:, :15], z[:, 15:40]), WIDE),
    "gaps before, between and after": (lambda z: weighted(z[:, 3:9], z[:, 11:30]), WIDE),
    "slices that end with the axis, whatever its length": (lambda z: weighted(z[:, 2:70], z[:, 70:90], z[:, 95:99], z[:, 99:]), WIDE),
    "the first axis": (lambda z: weighted(z[4:20], z[25:]), LONG),
    "bounds from the end of a known axis": (lambda z: weighted(z[:, :-4], z[:, -3:-1]), NARROW),
    "single places and slices of a known axis": (lambda z: weighted(z[:, 1], z[:, 3:5], z[:, -1]), NARROW),
    "all places of a vector": (lambda z: weighted(*(z[k] for k in range(12))), LONG[:12]),
    "an empty slice between": (lambda z: weighted(z[2:5], z[5:5], z[6:]), LONG),
    "blocks of two axes": (lambda z: weighted(z[:3, :5], z[3:, 5:]), NARROW),
    "places of an axis of any length": (lambda z: weighted(z[0], z[1:]), LONG),
    "the middle axis": (lambda z: weighted(z[:, 1:3], z[:, 4:]), RNG.normal(size=(2, 20, 18))),
}

ADDED: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "slices that overlap": (lambda z: weighted(z[:, :30], z[:, 20:]), WIDE),
    "slices that may overlap": (lambda z: weighted(z[:30], z[-15:]), LONG),
    "slices that overlap in one place of two axes": (lambda z: weighted(z[:4, :5], z[3:, 4:]), NARROW),
    "steps": (lambda z: weighted(z[::2], z[1::2]), LONG),
    "a part and the whole": (lambda z: weighted(z[:10], z[10:], z), LONG),
    "a new axis": (lambda z: weighted(z[None, :10], z[10:]), LONG),
    "a slice inside another": (lambda z: weighted(z[:20], z[5:5], z[20:]), LONG),
}


def text_of_right_gradient(f: Callable[[Any], Any], x: Any) -> str:
    """The text of the gradient, whose numbers are those of the interpreter, and rise as f does along a random direction."""
    gradient, value = ns.grad(f), ns.jit(f, mode="python")
    found, along = gradient(x), RNG.normal(size=x.shape)
    np.testing.assert_allclose(found, ns.jit(lambda x: ns.grad(f)(x), mode="python")(x), rtol=1e-12, atol=1e-12)
    narrow, wide = ((value(x + h * along) - value(x - h * along)) / (2 * h) for h in (1e-3, 2e-3))
    np.testing.assert_allclose((found * along).sum(), (4 * narrow - wide) / 3, rtol=1e-8)
    return gradient.source()


@pytest.mark.parametrize("name", APART)
def test_parts_that_cannot_overlap_are_written(name: str) -> None:
    text = text_of_right_gradient(*APART[name])
    assert "inc_subtensor" not in text
    assert "set_subtensor_2" not in text  # one array, not one for each part


@pytest.mark.parametrize("name", ADDED)
def test_parts_that_may_overlap_are_added(name: str) -> None:
    text = text_of_right_gradient(*ADDED[name])
    assert "set_subtensor" not in text
    assert "inc_subtensor_2" not in text


def test_sums_of_parts_have_derivatives_themselves() -> None:
    def bent(z: Any) -> Any:
        return (ns.grad(gates)(z) ** 2).sum() + ns.jvp(gates, (z,), (z,))[1]

    text_of_right_gradient(bent, WIDE)


@pytest.mark.parametrize("length", [5, 20, 33, 60, 99])
def test_slices_of_one_text_fit_every_length(length: int) -> None:
    gradient = ns.grad(lambda z: weighted(z[10:30], z[30:60], z[70:80]))
    z = RNG.normal(size=length)
    expected = np.zeros(length)
    for k, part in enumerate((slice(10, 30), slice(30, 60), slice(70, 80))):
        expected[part] = (k + 1) * (np.sin(z[part]) + z[part] * np.cos(z[part]))
    np.testing.assert_allclose(gradient(z), expected, rtol=1e-12, atol=1e-12)


def test_values_of_a_users_rule_may_broadcast_to_their_part() -> None:
    @ns.custom_vjp
    def first(z: Any) -> Any:
        return z[:10].sum()

    first.defvjp(lambda z: (first(z), z), lambda z, g: (nt.set_subtensor(np.zeros_like(z)[:10], g),))
    np.testing.assert_allclose(ns.grad(lambda z: first(z) + z[10:].sum())(LONG), np.ones(40))


# sums over the steps of a loop ----------------------------------------------------------------------------------------

TABLE, TOKENS = RNG.normal(size=(50, 3)), RNG.integers(-50, 50, 9)
PAIRS = RNG.integers(0, 50, (9, 4))
GATHERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "a row": lambda k, p, E: np.tanh(E[k]),
    "rows, some twice": lambda k, p, E: np.sin(E[p]).sum(axis=0),
    "two gathers": lambda k, p, E: E[k] * E[p[0]],
    "a gather and a constant row": lambda k, p, E: E[k] * E[7],
    "a gather and the whole": lambda k, p, E: E[k] + np.sin(E).sum(axis=0),
    "an element": lambda k, p, E: np.stack([E[k, p[1] % 3], E[k, 0], E[3, p[0] % 3]]),
    "rows of slices": lambda k, p, E: np.sin(E[p[0] % 20 : p[0] % 20 + 5]).sum(axis=0) * E[2:4].sum(axis=0),
}


@pytest.mark.parametrize("name", GATHERS)
def test_gathers_in_a_loop(name: str) -> None:
    """Of a table that all steps read: with and without checkpoints, and in lanes."""

    def cost(E: Any, checkpoint: Any = None, tokens: Any = TOKENS) -> Any:
        step = lambda k, p, h, E: 0.5 * h + GATHERS[name](k, p, E)  # noqa: E731
        return (ns.scan(step, [tokens, PAIRS], np.zeros(3), E, checkpoint=checkpoint, return_updates=False)[-1] ** 2).sum()

    along = RNG.normal(size=TABLE.shape)
    expected = ns.jit(ns.grad(cost), mode="python")(TABLE)
    f = ns.jit(cost, mode="python")
    narrow, wide = ((f(TABLE + h * along) - f(TABLE - h * along)) / (2 * h) for h in (1e-3, 2e-3))
    np.testing.assert_allclose((expected * along).sum(), (4 * narrow - wide) / 3, rtol=1e-7)
    for checkpoint in (None, 3):
        gradient = ns.grad(lambda E, checkpoint=checkpoint: cost(E, checkpoint))
        np.testing.assert_allclose(gradient(TABLE), expected, rtol=1e-12, atol=1e-13)
    lanes = ns.jit(ns.vmap(ns.grad(lambda E, tokens: cost(E, None, tokens)), in_axes=(None, 0)))
    np.testing.assert_allclose(lanes(TABLE, np.stack([TOKENS, TOKENS[::-1]]))[0], expected, rtol=1e-12, atol=1e-13)


@pytest.mark.usefixtures("rewritten")
def test_a_table_is_not_added_whole_at_each_step() -> None:
    gradient = ns.grad(lambda E: ns.scan(lambda k, h, E: np.tanh(h + E[k]), TOKENS, np.zeros(3), E, return_updates=False)[-1].sum())
    gradient(TABLE)
    loops = gradient.source().split("for t in")
    assert "range(E.shape" not in loops[-1]


STATES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "an element with another": lambda k, u, x: nt.inc_subtensor(x[k % 40], u * x[(k * 7) % 40]),
    "an element by itself": lambda k, u, x: nt.set_subtensor(x[k], u * x[k] * x[k]),
    "a ring": lambda k, u, x: nt.set_subtensor(x[k % 40], u * u),
    "two elements": lambda k, u, x: nt.set_subtensor(nt.set_subtensor(x[k], u * x[3])[3], x[k] * x[5]),
    "an element and the row": lambda k, u, x: nt.set_subtensor(x[k], u * x[k] + (x * x)[::7].sum() * 0.01),
}


@pytest.mark.parametrize("name", STATES)
def test_states_of_which_elements_are_replaced(name: str) -> None:
    numbers = RNG.normal(size=9)

    def cost(u: Any, x: Any, end: bool = True, checkpoint: Any = None) -> Any:
        rows = ns.scan(STATES[name], [TOKENS % 40, u], x, checkpoint=checkpoint, return_updates=False)
        return (np.sin(rows[-1] if end else rows) * np.arange(40)).sum()

    for end, checkpoint in ((True, None), (False, None), (True, 4)):
        f = lambda u, x, end=end, checkpoint=checkpoint: cost(u, x, end, checkpoint)  # noqa: E731
        found, expected = ns.grad(f, (0, 1))(numbers, LONG), ns.jit(ns.grad(f, (0, 1)), mode="python")(numbers, LONG)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)
        ns.verify_grad(f, (numbers, LONG), mode="python")
    ends = ns.grad(cost, (0, 1))
    ends(numbers, LONG)
    keeps_rows = name == "an element and the row"
    assert ("_path" in ends.source()) == keeps_rows
