"""Strips of time: the same values for any number of steps, products together only where nothing waits for them."""

import re

import numpy as np
import pytest

import numbascan as ns

rng = np.random.default_rng(7)
A, B, C, D = rng.normal(size=(4, 30, 30)) / 8
X = rng.normal(size=(6, 30)) / 2
U = rng.normal(size=(40, 30))


def scan(step, outputs_info, sequences=None, non_sequences=(A, B, C, D), **others):
    return ns.scan(step, sequences, outputs_info, list(non_sequences), return_updates=False, **others)


def network(n, a, b, c, d):
    """Two states: one of them three steps ahead of the other."""

    def step(u, x3, x1, y, a, b, c, d):
        return np.tanh(a @ x1 + b @ y + u), c @ x3

    return scan(step, [{"initial": X[:3], "taps": [-3, -1]}, X[4]], U, (a, b, c, d), n_steps=n)


def chain(n, a, b, c, d):
    """What is known ahead goes through three products and two functions."""

    def step(x4, x1, a, b, c, d):
        ahead = np.sin(b @ np.tanh(c @ (d @ x4 + 1.0)) * 0.5)
        return np.tanh(a @ x1) + ahead, ahead.sum()

    return scan(step, [{"initial": X[:4], "taps": [-4, -1]}, None], None, (a, b, c, d), n_steps=n)


def without_a_last_step(n, a, b, c, d):
    """No product waits for the step before: all of them are known two steps ahead."""
    return scan(
        lambda x2, x3, a, b, c, d: np.tanh(a @ x2 + b @ x3) + 0.1, [{"initial": X[:3], "taps": [-2, -3]}], None, (a, b, c, d), n_steps=n
    )


def last_row(n, a, b, c, d):
    """States of which the last row alone is kept rotate."""
    x, y = network(n, a, b, c, d)
    return x[-1], y[-1]


def both_ways(n, a, b, c, d):
    """Each state is read two and five steps later by the other one."""

    def step(x5, y2, y1, a, b, c, d):
        return np.tanh(a @ y2 + U[3]), np.cos(b @ x5 + y1 * 0.1)

    return scan(step, [{"initial": X[:5], "taps": [-5]}, {"initial": X[:2], "taps": [-2, -1]}], None, (a, b, c, d), n_steps=n)


def counted(n, a, b, c, d):
    """Scalars beside rows: a sum that each step adds to."""

    def step(x3, x1, total, a, b, c, d):
        new = np.tanh(a @ x1 + b @ x3)
        return new, total * 0.5 + new.max() + (c @ x3).sum()

    return scan(step, [{"initial": X[:3], "taps": [-3, -1]}, 0.25], None, (a, b, c, d), n_steps=n)


def backwards(n, a, b, c, d):
    return scan(
        lambda u, x2, x1, a, b, c, d: np.tanh(a @ x1 + b @ x2) + u,
        [{"initial": X[:2], "taps": [-2, -1]}],
        U,
        (a, b, c, d),
        n_steps=n,
        go_backwards=True,
    )


def a_step_that_waits(n, a, b, c, d):
    return scan(lambda x1, a, b, c, d: np.tanh(b @ (a @ x1) + 0.2), [X[0]], None, (a, b, c, d), n_steps=n)


def ends_early(n, a, b, c, d):
    def step(x3, x1, a, b, c, d):
        new = np.tanh(a @ x1 + b @ x3) + 0.3
        return new, ns.until(new.sum() > 20)

    return scan(step, [{"initial": X[:3], "taps": [-3, -1]}], None, (a, b, c, d), n_steps=n)


STRIPS = {network: 3, chain: 4, without_a_last_step: 2, last_row: 3, both_ways: 5, counted: 3, backwards: 2}
WHOLE = [a_step_that_waits, ends_early]
LEAST = {last_row: 1, ends_early: 1}


def arrays(results):
    return results if isinstance(results, (tuple, list)) else (results,)


def agree(program, *arguments):
    found, expected = (arrays(ns.jit(program, mode=mode)(*arguments)) for mode in (None, "python"))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("program", [*STRIPS, *WHOLE])
def test_any_number_of_steps(program):
    for n in (0, 1, 2, 3, 4, 5, 7, 12, 40):
        if n >= LEAST.get(program, 0):
            agree(program, n, A, B, C, D)


@pytest.mark.parametrize("program", [*STRIPS, *WHOLE])
def test_only_what_is_known_ahead_is_computed_together(program):
    compiled = ns.jit(program)
    compiled(20, A, B, C, D)
    found = re.findall(r"# (\d+) steps at a time", compiled.source())
    assert found == ([str(STRIPS[program])] if program in STRIPS else [])


@pytest.mark.parametrize("program", [network, chain, both_ways, last_row])
def test_gradients(program):
    def cost(n, *matrices):
        return sum((np.sin(result) * 0.7).sum() for result in arrays(program(n, *matrices))) + sum((m * m).sum() for m in matrices)

    for n in (1, 3, 8):
        agree(lambda n, *matrices: ns.grad(cost, argnums=(1, 2, 3, 4))(n, *matrices), n, A, B, C, D)


@pytest.mark.parametrize("program", [network, both_ways])
def test_lanes_and_threads(program):
    lanes = ns.vmap(lambda a: program(12, a, B, C, D))
    matrices = A + rng.normal(size=(9, 1, 1)) / 50
    for one, other in zip(lanes(matrices), ([program(12, a, B, C, D)[k] for a in matrices] for k in (0, 1)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)


def test_the_caller_gives_the_memory():
    @ns.scan
    def step(x3, x1, a, b):
        return np.tanh(a @ x1 + b @ x3)

    given = {"outputs_info": [{"initial": X[:3], "taps": [-3, -1]}], "non_sequences": [A, B], "n_steps": 13, "return_updates": False}
    out = np.full((13, 30), np.nan)
    found = step(**given, out=out)
    assert np.shares_memory(found, out)
    np.testing.assert_allclose(out, step(**given), rtol=1e-12, atol=1e-14)
