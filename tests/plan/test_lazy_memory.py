"""A branch that is not taken takes no memory and cannot fail; one in a loop takes its small rows once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

M, X = nt.lscalar("m"), nt.dmatrix("x")


def rows(m: Any) -> Any:
    return np.sort(nt.ones((m,)) * m).sum()


def reshaped(m: Any) -> Any:
    return (X.reshape((m, -1)) @ nt.ones((X.size // m,))).sum()


def taken_apart(m: Any) -> Any:
    return np.sort(X.reshape((m, 2, -1)), axis=0)[0].sum()


def solved(m: Any) -> Any:
    return np.linalg.solve(nt.eye(m) * 2, nt.ones((m,))).sum()


def stacked(m: Any) -> Any:
    return np.concatenate([np.sort(nt.ones((m,))), X[0]])[::-1].cumsum()[-1]


def looped(m: Any) -> Any:
    return ns.scan(lambda s: np.sort(s) * 0.5 + 1, outputs_info=nt.ones((m, 3)), n_steps=m, return_updates=False)[-1].sum()


def picked(m: Any) -> Any:
    return np.sort(X[m] * 2.0)[0] + X[m, m]


def chosen_again(m: Any) -> Any:
    return nt.ifelse(m < 50, lambda: rows(m), lambda: solved(m))


WORK = [rows, reshaped, taken_apart, solved, stacked, looped, picked, chosen_again]
GIVEN = np.arange(48.0).reshape(8, 6)


@pytest.mark.parametrize("work", WORK)
def test_a_branch_that_is_not_taken_cannot_fail(work: Any) -> None:
    f, plain = (ns.function([M, X], nt.ifelse(M > 0, work(M), 0.0), mode=mode, on_unused_input="ignore") for mode in (None, "python"))
    for m in (-3, 0, 2, -(2**62), -1):
        np.testing.assert_allclose(f(m, GIVEN), plain(m, GIVEN), rtol=1e-13)


@pytest.mark.parametrize("work", WORK)
def test_a_branch_in_a_loop_that_is_not_taken_cannot_fail(work: Any) -> None:
    def step(t: Any, s: Any, m: Any) -> Any:
        return nt.ifelse(t < m, lambda: s * 0.5 + work(m), lambda: s + 1.0)

    loop = ns.scan(step, np.arange(4), nt.as_tensor_variable(1.0), M, return_updates=False)
    f, plain = (ns.function([M, X], loop, mode=mode, on_unused_input="ignore") for mode in (None, "python"))
    for m in (-3, 2, 0):
        np.testing.assert_allclose(f(m, GIVEN), plain(m, GIVEN), rtol=1e-13)


@pytest.mark.parametrize("in_loop", [False, True])
def test_a_branch_that_is_not_taken_takes_no_memory(in_loop: bool) -> None:
    """More of it than there is: 2e5³ numbers are 64,000 TB."""

    def work(m: Any) -> Any:
        return np.sort(nt.ones((m, m, m)), axis=0).sum()

    if in_loop:
        out = ns.scan(lambda s, m: nt.ifelse(m < 5, lambda: s + work(m), lambda: s), None, nt.as_tensor_variable(1.0), M, 3)[0][-1]
    else:
        out = nt.ifelse(M < 5, work(M), 1.0)
    f = ns.function([M], out)
    assert (f(200_000), f(2)) == (1.0, 25.0 if in_loop else 8.0)


def test_rows_of_a_branch_are_as_long_as_the_step_makes_them() -> None:
    """No step tells how long they are: the branch whose length is known before stands for it, and may be of a length below 0."""

    def step(x: Any, m: Any) -> Any:
        return nt.ifelse(x > 0, lambda: nt.zeros(2) + x, lambda: np.sort(nt.ones((m,))))

    f = ns.jit(lambda x, m: ns.scan(step, x, None, m, return_updates=False))
    np.testing.assert_array_equal(f(np.array([1.0, 2.0]), -3), [[1, 1], [2, 2]])
    assert f(np.zeros(0), -3).shape[0] == 0


def test_small_rows_of_a_branch_in_a_loop_are_taken_before_it() -> None:
    def step(x: Any, s: Any) -> Any:
        return nt.ifelse(s > 2, lambda: s * 0.5 + np.sort(x)[0], lambda: s + np.sort(x[1:] * 2.0)[0])

    f = ns.jit(lambda x: ns.scan(step, x, 1.0, return_updates=False))
    x = np.random.default_rng(0).random((30, 40))
    np.testing.assert_allclose(f(x), ns.jit(f.__wrapped__, mode="python")(x), rtol=1e-13)
    before, _, inside = f.source().partition("for t in")
    assert before.count("= np.empty(") >= 3
    assert "np.empty" not in inside
