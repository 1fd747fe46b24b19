"""Loop passes: without any one of them the values are the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.plan.cpu import CPU

rng = np.random.default_rng(3)
X, LANES, WIDE = rng.normal(size=700), rng.normal(size=(70, 3)), rng.normal(size=(50, 40)) / 8
A, B, C = rng.normal(size=(3, 40, 40)) / 8

STREAM = nt.random.RandomStream(seed=5)
scan = ns.scan


def two_rows(u):
    """Two rows, element by element, of which one is read for the other."""

    def step(u):
        row = np.exp(u)
        return row, row * u

    return scan(step, sequences=u, return_updates=False)


def powers(a):
    return scan(lambda p, a: p * a, outputs_info=np.ones(40), non_sequences=a, n_steps=9, return_updates=False)[-1]


def pendulums(starts):
    def lane(start):
        def step(y, v):
            v = v - 0.05 * np.sin(y)
            return y + 0.05 * v, v, v * v

        y, v, energy = scan(step, outputs_info=[start[0], start[1], None], n_steps=30, return_updates=False)
        return y, v[-1], energy.sum()

    return ns.vmap(lane)(starts)


def running_sums(starts):
    """Loops over time whose ends are added up."""

    def step(start, total):
        y = scan(lambda y: y - 0.1 * np.sin(y), outputs_info=start, n_steps=30, return_updates=False)[-1]
        return total + y * total.dtype.type(0.5), y

    return scan(lambda start, total: step(start[0], total), sequences=starts, outputs_info=[np.float64(0), None], return_updates=False)


def last_rows(starts):
    def lane(start):
        return scan(lambda y: y - 0.1 * y * y, outputs_info=start[0], n_steps=30, keep_last=5, return_updates=False)

    return ns.vmap(lane)(starts)


def likelihood(x):
    step = lambda x, v: (0.1 + 0.2 * x * x + 0.5 * v, np.log(v) + x * x / v)  # noqa: E731 - a step as users write it
    return scan(step, sequences=x, outputs_info=[1.0, None], return_updates=False)[1].sum()


def two_lags(a, b, c, u):
    step = lambda u, x3, x1, a, b, c: np.tanh(x1 @ a + x3 @ b + u @ c)  # noqa: E731
    initial = {"initial": u[:3], "taps": [-3, -1]}
    return scan(step, sequences=u, outputs_info=[initial], non_sequences=[a, b, c], return_updates=False)


def noise(x):
    return scan(lambda x, y: 0.9 * y + x * STREAM.normal(), sequences=x, outputs_info=0.0, return_updates=False)


def noise_in_lanes(starts):
    lane = lambda start: scan(lambda y: np.sin(y) + STREAM.normal(), outputs_info=start[0], n_steps=40, return_updates=False)[-1]  # noqa: E731
    return ns.vmap(lane)(starts)


def ring(x):
    return scan(lambda x: 0.5 * x + 0.3 * np.roll(x, 1) - 0.2 * x[::-1], outputs_info=x, n_steps=30, return_updates=False)


def row_sums(x):
    """Sums in any order of work rows of a fixed shape."""

    def step(x, s):
        row = np.exp(x * s)
        return row / row.sum()

    return scan(step, sequences=x, outputs_info=np.full(12, 0.1), return_updates=False)


def settled(starts):
    """Lanes that end by themselves."""

    def lane(start):
        step = lambda y: (y - 0.1 * y * y + 0.02 / (1 + y), ns.until(y < 0.4))  # noqa: E731
        return scan(step, outputs_info=start[0], n_steps=60, return_updates=False)[-1]

    return ns.vmap(lane)(starts)


PROGRAMS: dict[str, list[tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    "fusion": [(two_rows, (WIDE,))],
    "interchange": [(powers, (rng.uniform(0.5, 1.5, size=40),))],
    "distribution": [(running_sums, (LANES,))],
    "index_set_splitting": [(last_rows, (LANES,))],
    "tiles": [(pendulums, (LANES,))],
    "if_conversion": [(settled, (LANES,))],
    "blocks": [(likelihood, (X,))],
    "strips": [(two_lags, (A, B, C, WIDE))],
    "batched_draws": [(noise, (X,)), (noise_in_lanes, (LANES,))],
    "peeling": [(ring, (rng.normal(size=40),))],
    "reassociation": [(row_sums, (rng.normal(size=(20, 12)),))],
    "stack_rows": [(row_sums, (rng.normal(size=(20, 12)),)), (pendulums, (LANES,)), (likelihood, (X,))],
}


def results(program: Any, mode: Any, arguments: tuple[Any, ...]) -> tuple[list[Any], str]:
    """What a program gives in a mode, with the numbers of a new stream, and its source."""
    STREAM.seed(5)
    compiled = ns.jit(program, mode=mode)
    result = compiled(*arguments)
    return [np.asarray(one) for one in (result if isinstance(result, (tuple, list)) else (result,))], compiled.source()


def agree(found: list[Any], wanted: list[Any]) -> None:
    for actual, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-13)


def test_every_loop_pass_has_programs() -> None:
    assert set(PROGRAMS) == {loop_pass.__name__ for loop_pass in CPU.passes}


@pytest.mark.parametrize("name, program, arguments", [(name, *one) for name, programs in PROGRAMS.items() for one in programs])
def test_without_a_pass_the_loops_are_others_and_the_values_the_same(name: str, program: Any, arguments: tuple[Any, ...]) -> None:
    (plain, _), (values, text), (others, other_text) = (
        results(program, mode, arguments) for mode in ("python", None, ns.Mode(without=[name]))
    )
    agree(values, plain)
    agree(others, plain)
    assert text != other_text


@pytest.mark.parametrize("program, arguments", [one for programs in PROGRAMS.values() for one in programs[:1]])
def test_without_all_passes_the_values_are_the_same(program: Any, arguments: tuple[Any, ...]) -> None:
    agree(results(program, ns.Mode(without=list(PROGRAMS)), arguments)[0], results(program, "python", arguments)[0])
