"""An array of which a part is replaced lends its memory to the result, where nothing else reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(2, 30, 4))


def both(f: Callable[..., Any], *arguments: Any) -> str:
    """The text of `f`, which gives compiled what the interpreter gives."""
    compiled, expected = ns.jit(f), ns.jit(f, mode="python")(*arguments)
    for actual, wanted in zip(
        *(value if isinstance(value, tuple) else (value,) for value in (compiled(*arguments), expected)), strict=True
    ):
        np.testing.assert_allclose(actual, wanted, rtol=1e-13, atol=1e-13)
    return compiled.source()


def test_parts_written_one_after_another_take_one_array() -> None:
    def filled(x: Any, y: Any) -> Any:
        z = nt.set_subtensor((x + y)[3:9], y[3:9])
        z = nt.inc_subtensor(z[::2], x[::2])
        return nt.set_subtensor(z[-1], 0.0)

    assert both(filled, X, Y).count("np.empty") == 1


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: (lambda z: (nt.set_subtensor(z[3:9], 1.0), nt.set_subtensor(z[5:], 2.0)))(np.tanh(x) * y),
        lambda x, y: (lambda z: (nt.set_subtensor(z[3:9], 1.0), z))(np.tanh(x) * y),
        lambda x, y: (lambda z: nt.set_subtensor(z[3:9], z[:6]))(np.tanh(x) * y),
        lambda x, y: (lambda z: nt.inc_subtensor(nt.set_subtensor(z[3:9], 1.0)[4:], z[:-4]))(np.tanh(x) * y),
        lambda x, y: (lambda z: nt.set_subtensor(z.T[1:3], z.T[:2]).sum(axis=0))(np.tanh(x) * y),
        lambda x, y: nt.set_subtensor(x[3:9], 1.0),
        lambda x, y: nt.set_subtensor(np.full_like(x, 2.0)[3:9], x[3:9]),
        lambda x, y: nt.set_subtensor(x.reshape(4, 30)[1], y.reshape(4, 30)[2]) + x.reshape(4, 30),
    ],
    ids=["two results", "a result itself", "read by its part", "read later", "a transpose", "an argument", "one number", "another shape"],
)
def test_what_is_read_elsewhere_stays(f: Callable[..., Any]) -> None:
    both(f, X, Y)


def test_rows_that_a_loop_keeps_stay() -> None:
    def rows(x: Any) -> Any:
        path = ns.scan(lambda u, s: np.tanh(s + u), sequences=x, outputs_info=x[0], return_updates=False)
        return nt.set_subtensor(path[3:9], 1.0), path[-1], path[-4:], nt.set_subtensor(path[-4:][1], 0.0)

    both(rows, X)


def test_a_step_writes_parts_of_its_own_rows_alone() -> None:
    def rows(x: Any, y: Any) -> Any:
        def step(u: Any, s: Any, r: Any) -> Any:
            z = nt.set_subtensor((s * u)[:2], u[:2])
            z = nt.inc_subtensor(z[1:], r[1:])
            return z, nt.set_subtensor(s[0], z[1])

        return tuple(ns.scan(step, sequences=np.tile(x, 5), outputs_info=[np.tile(y[0], 5), np.tile(y[1], 5)], return_updates=False))

    both(rows, X, Y)


def test_a_branch_writes_into_memory_of_its_own_alone() -> None:
    def chosen(x: Any, y: Any) -> Any:
        z = np.tanh(x) * y
        return nt.ifelse(x[0, 0] > 9, lambda: nt.set_subtensor(z[3:], 0.0), lambda: nt.inc_subtensor((z + 1)[:3], 5.0)) + z

    both(chosen, X, Y)


def test_a_loop_goes_on_in_the_memory_of_its_initial_value() -> None:
    def end(x: Any, y: Any) -> Any:
        return ns.scan(lambda u, s: s * 0.5 + u, x, np.tanh(y[0] + x[1]), return_updates=False)[-1]

    def of_rows(x: Any, y: Any) -> Any:  # the first row of two is the state
        taps = {"initial": np.stack([y[0], 2 * y[1]]), "taps": [-2]}
        return ns.scan(lambda u, s: np.tanh(s + u), x, [taps], return_updates=False)[-1]

    def of_one_row(x: Any, y: Any) -> Any:
        taps = {"initial": np.tanh(y[:1] + x[:1]), "taps": [-1]}
        return ns.scan(lambda u, s: np.tanh(s + u), x, [taps], return_updates=False)[-1]

    def twice(x: Any, y: Any) -> Any:
        start = np.tanh(y[0] + x[1])
        return ns.scan(lambda u, s: s * 0.5 + u, x, start, return_updates=False)[-1] + start

    x, y = RNG.normal(size=(2, 30, 40))
    assert both(end, x, y).count("np.empty") == 1
    for f in (of_rows, of_one_row, twice):
        both(f, x, y)
