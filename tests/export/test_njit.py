"""Compiled objects within functions that Numba compiles."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan import lax


@ns.scan
def path(y, factor):
    return y * factor, ns.until(y > 100.0)


def compiled_path():
    path.lower(outputs_info=1.0, non_sequences=2.0, n_steps=3)
    return path.njit


def test_a_loop_runs_within_compiled_code():
    steps = compiled_path()

    @numba.njit
    def lengths(factors):
        return np.array([len(steps(1.0, factor, 50)) for factor in factors])

    factors = np.array([2.0, 3.0, 1.0])
    assert [len(path(outputs_info=1.0, non_sequences=factor, n_steps=50)) for factor in factors] == lengths(factors).tolist()


def test_it_is_a_function_of_numba():
    steps = compiled_path()
    path(outputs_info=1.0, non_sequences=np.float64(2.0), n_steps=3)  # another kind than that which was asked for
    assert isinstance(steps, type(numba.njit(lambda: None)))
    assert steps is path.njit


def test_errors_of_the_run_are_raised_in_compiled_code():
    steps = compiled_path()

    @numba.njit
    def rows(n_steps):
        return steps(1.0, 2.0, n_steps)

    with pytest.raises(ValueError, match="n_steps is"):
        rows(-1)


def test_other_types_are_refused_while_numba_compiles():
    steps = compiled_path()

    @numba.njit
    def rows(n_steps):
        return steps(1.0, 2.0, n_steps)

    with pytest.raises(numba.TypingError, match="path: n_steps must be a number that int64 holds, not float64"):
        rows(2.5)


def test_arrays_of_other_lengths_and_types_are_refused():
    doubled = ns.jit(lambda x: 2 * x, name="doubled").lower(np.ones(3)).njit

    @numba.njit
    def of_any(x):
        return doubled(x)

    assert of_any(np.arange(6.0)[::2]).tolist() == [0.0, 4.0, 8.0]
    with pytest.raises(ValueError, match="doubled: x has length"):
        of_any(np.ones(4))
    with pytest.raises(numba.TypingError, match="doubled: x must be an array of float64 with 1 dimensions"):
        of_any(np.arange(3))


def test_whole_numbers_that_do_not_fit_are_refused():
    n = nt.iscalar("n")
    next_one = ns.function([n], n + 1, name="next_one").njit

    @numba.njit
    def of_int64(n):
        return next_one(n)

    assert of_int64(7) == 8
    with pytest.raises(OverflowError, match="next_one: n must be a number that int32 holds"):
        of_int64(2**40)


def test_several_results_are_a_tuple():
    slope = ns.value_and_grad(lambda p: np.sum(p["a"] ** 2) * p["b"], 0).lower({"a": np.ones(3), "b": 2.0}).njit

    @numba.njit
    def descent(a, b):
        value, of_a, of_b = slope(a, b)
        return value, a - 0.1 * of_a, of_b

    value, a, of_b = descent(np.ones(3), 2.0)
    np.testing.assert_allclose([value, *a, of_b], [6.0, 0.6, 0.6, 0.6, 3.0])


def test_threads_that_ask_at_once_get_one_function():
    """Of a loop of unknown length, which ends at the square root."""
    root = ns.jit(lambda x: lax.while_loop(lambda s: abs(s * s - x) > 1e-12, lambda s: 0.5 * (s + x / s), x)).lower(2.0)
    with ThreadPoolExecutor(4) as pool:
        functions = list(pool.map(lambda _: root.njit, range(8)))
    assert len(set(map(id, functions))) == 1
    assert functions[0](2.0) == root(2.0)


def test_a_gradient_with_checkpoints():
    def end(x):
        return ns.scan(lambda s: 1.1 * np.sin(s), outputs_info=x, n_steps=50, checkpoint=7, return_updates=False)[-1]

    slope = ns.jit(ns.grad(end)).lower(0.5)
    np.testing.assert_allclose(slope.njit(0.5), slope(0.5), rtol=1e-13)
