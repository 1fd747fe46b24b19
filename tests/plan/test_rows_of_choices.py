"""What the sides of a choice compute goes straight where it ends: into the next row of a state, or the memory that both sides share."""

from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

START = np.linspace(-1.0, 2.0, 40)
CHOICES = {
    "elements": lambda c, x: nt.ifelse(c, lambda: x * 0.5 + 1.0, lambda: x - 0.25),
    "as it was": lambda c, x: nt.ifelse(c, lambda: x, lambda: x - 0.25),
    "views": lambda c, x: nt.ifelse(c, lambda: x[::-1], lambda: nt.roll(x, 3)),
    "routines": lambda c, x: nt.ifelse(c, lambda: np.sort(x), lambda: np.cumsum(x) * 0.1),
    "sums": lambda c, x: nt.ifelse(c, lambda: np.outer(x, x).sum(axis=0) / 40, lambda: nt.outer(x, x[:3]) @ x[:3] / 4),
    "a loop": lambda c, x: nt.ifelse(
        c, lambda: ns.scan(lambda y: y * 0.9 + 0.01, outputs_info=x, n_steps=3, return_updates=False)[-1], lambda: x * 0.5
    ),
    "a choice": lambda c, x: nt.ifelse(c, lambda: nt.ifelse(x[0] > 0, lambda: x * 0.5, lambda: -x), lambda: x + x[::-1]),
    "parts": lambda c, x: nt.ifelse(c, lambda: nt.set_subtensor(x[3:9], 0.0), lambda: x * 0.5),
    "fixed": lambda c, x: nt.ifelse(c, lambda: nt.ones_like(x), lambda: x * 2.0),
}


@pytest.mark.parametrize("name", CHOICES)
def test_a_state_that_is_chosen_has_the_values_of_the_side_taken(name: str) -> None:
    def programs(x: Any, u: Any) -> Any:
        def step(t: Any, u: Any, x: Any) -> Any:
            chosen = CHOICES[name](t % 3 == 0, x)
            return chosen, chosen[::2] * u

        kept = [ns.scan(step, [np.arange(7), u], [x, None], keep_last=k, return_updates=False) for k in (None, [1, None], [3, 1])]
        until = ns.scan(lambda t, x: (CHOICES[name](t % 3 == 0, x), ns.until(t > 3)), np.arange(7), x, return_updates=False)
        taps = ns.scan(
            lambda t, x, y: CHOICES[name](t % 3 == 0, x) + 0.1 * y, np.arange(7), {"initial": nt.stack([x, x * 2]), "taps": [-2, -1]}
        )[0][-1]
        return kept, until[-1], taps, CHOICES[name](u[0] > 0, x)

    u = np.array([0.3, -0.2, 0.5, 0.1, 0.9, -1.1, 0.4])
    for first in (1.0, -1.0):
        given = START, u * first
        found, expected = (ns.jit(programs, mode=mode)(*given) for mode in (None, "python"))
        for one, other in zip(leaves(found), leaves(expected), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)


def leaves(nest: Any) -> list[Any]:
    return [leaf for one in nest for leaf in leaves(one)] if isinstance(nest, list | tuple) else [nest]


def test_the_sides_write_into_the_next_row(rewritten: None) -> None:
    f = ns.jit(lambda x: ns.scan(lambda t, x: CHOICES["elements"](t % 2 == 0, x), np.arange(20), x, keep_last=1, return_updates=False))
    f(START)
    assert "chosen" not in f.source()
    f = ns.jit(lambda x: CHOICES["elements"](x[0] > 0, x))
    f(START)
    assert f.memory().work == 0


def test_results_that_are_one_value_or_read_each_other() -> None:
    def several(x: Any) -> Any:
        def one() -> Any:
            y = x * 2.0
            return y, y, y + x[::-1]

        return nt.ifelse(x[0] > 0, one, lambda: (x, x + 1.0, x - 1.0))

    for x in (START, -START):
        for found, expected in zip(ns.jit(several)(x), ns.jit(several, mode="python")(x), strict=True):
            np.testing.assert_array_equal(found, expected)
