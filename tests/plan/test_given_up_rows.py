"""A state that was given up as one whose row is overwritten is none, though its new row is made late: it reads rows that are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numbascan as ns


def swapped(x: Any, y: Any) -> Any:
    for j in range(len(y)):
        if j < 3:
            x[1] = j
        k = x[0]
        t = y[1]
        y[1] = y[k]
        y[k] = t


def moved(x: Any, a: Any, n: Any) -> Any:
    x, a, s = x.copy(), a.copy(), 0.0
    for i in range(n):
        for _ in range(i):
            s = x[i] + s
            a[1, 0] = 2.0
        x[1:4] = x[2:5]
    return s + (x * np.cos(np.arange(len(x)))).sum() + a.sum()


def test_a_swap_beside_a_choice() -> None:
    x, y = np.arange(20), np.arange(19)
    x[0] = 2
    ours, theirs = (x.copy(), y.copy()), (x.copy(), y.copy())
    ns.jit(swapped)(*ours)
    swapped(*theirs)
    np.testing.assert_array_equal(ours[0], theirs[0])
    np.testing.assert_array_equal(ours[1], theirs[1])


@pytest.mark.parametrize("n", [1, 2, 7])
def test_a_gradient_through_a_moved_slice(n: int) -> None:
    x, a, step = np.linspace(0.0, 1.0, 20), np.ones((20, 18)), 1e-6
    sides = [[moved(x + sign * step * one, a, n) for sign in (1, -1)] for one in np.eye(20)]
    slopes = [(up - down) / (2 * step) for up, down in sides]
    np.testing.assert_allclose(ns.grad(moved)(x, a, n), slopes, rtol=1e-6, atol=1e-7)


def test_a_view_is_read_where_it_is() -> None:
    def of_parts(table: Any) -> Any:
        s = 0.0
        for row in table:
            square = row[:4].reshape(2, 2)
            s += square[0, 1] * 2.0 + (square @ square)[1, 0]
        return s

    table = np.random.default_rng(0).normal(size=(17, 20))
    np.testing.assert_allclose(ns.jit(of_parts)(table), of_parts(table), rtol=1e-12)

    def of_some(row: Any) -> Any:
        square = row[:4].reshape(2, 2)
        return square[square > 0].sum()

    np.testing.assert_allclose(ns.vmap(of_some)(table), [of_some(row) for row in table], rtol=1e-12)
