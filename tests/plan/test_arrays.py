"""Products of matrices take operands where they lie: rows of arrays, however they are reached, are not copied. What lies otherwise is."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

RNG = np.random.default_rng(3)
ROWS, SQUARE, LINE, PLACES = RNG.normal(size=(7, 30, 30)), RNG.normal(size=(30, 30)), RNG.normal(size=30), np.array([4, 0, 6])

IN_PLACE: dict[str, Callable[..., Any]] = {
    "a row": lambda x, m, v, k: x[2] @ m,
    "a row from the end": lambda x, m, v, k: x[-2] @ m,
    "a row of the rows read backwards": lambda x, m, v, k: x[::-1][1] @ m,
    "a row that only the run knows": lambda x, m, v, k: x[k[0]] @ m,
    "a transposed row": lambda x, m, v, k: x[2].T @ m,
    "both transposed": lambda x, m, v, k: m.T @ x[2].T,
    "axes swapped before a row is taken": lambda x, m, v, k: np.swapaxes(x, 1, 2)[3] @ m,
    "rows of a matrix": lambda x, m, v, k: m[3:] @ v,
    "rows of a matrix, up to one": lambda x, m, v, k: m[:-4] @ m,
    "rows of a row": lambda x, m, v, k: x[1, 2:25] @ m,
    "a part of a vector": lambda x, m, v, k: m[:, 4] * 0 + m[:25].T @ v[5:],
    "twice the same": lambda x, m, v, k: x[1] @ x[1],
}

COPIED: dict[str, Callable[..., Any]] = {
    "columns": lambda x, m, v, k: m[:, 3:] @ v[3:],
    "a column": lambda x, m, v, k: m @ m[:, 3],
    "rows of all rows": lambda x, m, v, k: x[:, 4] @ m,
    "every second row": lambda x, m, v, k: m[::2] @ v,
    "rows backwards": lambda x, m, v, k: m[::-1] @ v,
    "a vector backwards": lambda x, m, v, k: m @ v[::-1],
    "chosen rows": lambda x, m, v, k: m[k] @ m,
    "a vector broadcast": lambda x, m, v, k: m @ np.broadcast_to(v, (30, 30)),
    "a column broadcast": lambda x, m, v, k: np.broadcast_to(v[:, None], (30, 30)) @ m,
    "rows rolled": lambda x, m, v, k: np.roll(m, 3, axis=0) @ v,
    "a diagonal": lambda x, m, v, k: m @ np.diagonal(m),
    "another dtype": lambda x, m, v, k: x[2].astype("float32") @ m,
}


def computed(f: Callable[..., Any]) -> tuple[Any, str]:
    """What compiled code gives, and its text."""
    compiled = ns.jit(f)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Numba warns of products of arrays that are not contiguous
        return compiled(ROWS, SQUARE, LINE, PLACES), compiled.source()


@pytest.mark.parametrize("name", IN_PLACE)
def test_what_lies_side_by_side_is_not_copied(name: str) -> None:
    actual, text = computed(IN_PLACE[name])
    np.testing.assert_allclose(actual, IN_PLACE[name](ROWS, SQUARE, LINE, PLACES), rtol=1e-12, atol=1e-12)
    copies = [line for line in text.splitlines() if line.strip().startswith("row")]
    assert copies == []


@pytest.mark.parametrize("name", COPIED)
def test_what_lies_otherwise_is_copied(name: str) -> None:
    actual, text = computed(COPIED[name])
    np.testing.assert_allclose(actual, COPIED[name](ROWS, SQUARE, LINE, PLACES), rtol=1e-6 if "dtype" in name else 1e-12, atol=1e-12)
    assert "np.dot" in text


def same_in_both_modes(f: Callable[..., Any], *arguments: Any) -> str:
    compiled = ns.jit(f)
    expected = ns.jit(f, mode="python")(*arguments)
    np.testing.assert_allclose(compiled(*arguments), expected, rtol=1e-10, atol=1e-12)
    return compiled.source()


@pytest.mark.parametrize(
    "product", [lambda o: o.T @ o[:, 0], lambda o: o.T @ o, lambda o: o[1:].T @ o[:-1]], ids=["vector", "matrix", "parts"]
)
def test_of_a_loop_that_ended_early_the_rows_that_ran_are_multiplied(product: Callable[..., Any]) -> None:
    def total(x: Any) -> Any:
        def step(u: Any, s: Any) -> Any:
            return (0.5 * s + u, s * u), ns.until(u[0] > 3)

        state, trace = ns.scan(step, sequences=x, outputs_info=[np.zeros(30), None], return_updates=False)
        return product(state) + product(trace)

    x = RNG.uniform(size=(200, 30))
    x[50] = 9.0
    assert "np.dot" in same_in_both_modes(total, x)


def test_rows_of_a_row_end_where_they_should_if_every_length_is_known() -> None:
    text = same_in_both_modes(lambda x, y: x[1, 2:5] @ y, RNG.normal(size=(4, 16, 12)), RNG.normal(size=(12, 40)))
    assert "x[1, 2:5]" in text


def test_a_step_may_multiply_a_state_by_itself() -> None:
    def powers(a: Any) -> Any:
        def step(x: Any, y: Any) -> Any:
            return x.T @ x, y.T @ x.T / 4

        x, y = ns.scan(step, outputs_info=[a, a], n_steps=4, return_updates=False)
        return x[-1] + y.sum(axis=0)

    same_in_both_modes(powers, SQUARE / 30)


def test_a_step_may_multiply_rows_of_a_stack_that_it_writes_into() -> None:
    def last(stack: Any, m: Any) -> Any:
        def step(k: Any, stack: Any) -> Any:
            return nt.set_subtensor(stack[k + 1], np.tanh(stack[k].T @ m))

        return ns.scan(step, sequences=np.arange(6), outputs_info=stack, return_updates=False)[-1]

    same_in_both_modes(last, ROWS, SQUARE)


def test_a_gradient_multiplies_rows_of_states_and_sequences_where_they_lie() -> None:
    def cost(m: Any, x: Any) -> Any:
        def step(u: Any, h: Any, m: Any) -> Any:
            return np.tanh(u @ m + h @ m)

        return ns.scan(step, sequences=x, outputs_info=np.zeros((30, 30)), non_sequences=m, return_updates=False).sum()

    text = same_in_both_modes(lambda m, x: ns.grad(cost)(m, x), SQUARE / 9, ROWS)
    assert "//" not in text  # no place of an element is found by division
