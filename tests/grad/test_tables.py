"""Gradients of nested loops that fill and read tables in place: right, and linear in what the loops do."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns

rng = np.random.default_rng(3)


def warping(x: Any, y: Any) -> Any:
    n, m = len(x), len(y)
    cost = np.full((n + 1, m + 1), np.inf)
    cost[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            distance = (x[i - 1] - y[j - 1]) ** 2
            cost[i, j] = distance + min(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1])
    return cost[n, m]


def shortest(lengths: Any) -> Any:
    d = lengths.copy()
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]
    return (d * np.cos(d)).sum()


def cholesky(a: Any) -> Any:
    n = a.shape[0]
    low = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            total = a[i, j]
            for k in range(j):
                total -= low[i, k] * low[j, k]
            low[i, j] = math.sqrt(total) if i == j else total / low[j, j]
    return (low * np.sin(low)).sum()


def solved(a: Any, b: Any) -> Any:
    a, x = a.copy(), b.copy()
    n = len(x)
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[pivot, k]):
                pivot = i
        if pivot != k:
            for j in range(n):
                a[k, j], a[pivot, j] = a[pivot, j], a[k, j]
            x[k], x[pivot] = x[pivot], x[k]
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            for j in range(k, n):
                a[i, j] -= factor * a[k, j]
            x[i] -= factor * x[k]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            x[i] -= a[i, j] * x[j]
        x[i] /= a[i, i]
    return (x * x).sum()


def heat(u: Any, alpha: Any) -> Any:
    u = u.copy()
    for _ in range(5):
        new = u.copy()
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new[i, j] = u[i, j] + alpha * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j])
        u = new
    return (u * u).sum()


def product(a: Any, b: Any) -> Any:
    out = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                out[i, j] += a[i, k] * b[k, j]
    return np.sin(out).sum()


def paths(normals: Any, start: Any, drift: Any) -> Any:
    total = 0.0
    for i in range(normals.shape[0]):
        price, mean = start, 0.0
        for t in range(normals.shape[1]):
            price *= math.exp(drift + 0.2 * normals[i, t])
            mean += price / normals.shape[1]
        total += max(mean - 1.0, 0.0) ** 2
    return total


def early(a: Any, x: Any) -> Any:
    """An `until` in the inner loop, and a row that is read before there is one."""
    table = np.zeros((a.shape[0], a.shape[1]))
    for i in range(a.shape[0]):
        total = 0.0
        for j in range(a.shape[1]):
            before = table[i - 1, j] if i > 0 else x[j]
            total += a[i, j] * before
            table[i, j] = np.tanh(total)
            if total > 1.5:
                break
    return (table * table).sum()


PROGRAMS: dict[Callable[..., Any], Callable[[int], tuple[Any, ...]]] = {
    warping: lambda n: (rng.normal(size=n), rng.normal(size=n + 2)),
    shortest: lambda n: (rng.uniform(1.0, 5.0, (n, n)),),
    cholesky: lambda n: ((lambda a: a @ a.T + np.eye(n))(rng.normal(size=(n, n))),),
    solved: lambda n: (rng.normal(size=(n, n)) + 2 * np.eye(n), rng.normal(size=n)),
    heat: lambda n: (rng.normal(size=(n, n + 1)), 0.1),
    product: lambda n: (rng.normal(size=(n, n + 1)), rng.normal(size=(n + 1, n))),
    paths: lambda n: (rng.normal(size=(n, n + 3)), 1.1, 0.01),
    early: lambda n: (rng.normal(size=(n, n + 1)), rng.normal(size=n + 1)),
}


def slope(f: Callable[..., Any], args: tuple[Any, ...], along: list[Any]) -> float:
    """The derivative along a direction, by a central difference of f as Python runs it."""
    h = 1e-6
    ahead, behind = ([x + sign * h * d for x, d in zip(args, along, strict=True)] for sign in (1, -1))
    return float(f(*ahead) - f(*behind)) / (2 * h)


@pytest.mark.parametrize("n", [1, 2, 7, 19])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients_of_tables_are_their_differences(f: Callable[..., Any], n: int) -> None:
    args = PROGRAMS[f](n)
    grads = ns.grad(f, argnums=tuple(range(len(args))), disconnected_inputs="ignore")(*args)  # a table of one row has no inside
    along = [rng.normal(size=np.shape(x)) for x in args]
    if f is cholesky:  # reads the lower triangle
        along = [np.tril(d) for d in along]
    found = sum(np.sum(g * d) for g, d in zip(grads, along, strict=True))
    assert found == pytest.approx(slope(f, args, along), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("f", [warping, shortest, cholesky, product, paths, heat], ids=lambda f: f.__name__)
def test_tables_without_elements_have_gradients_of_zeros(f: Callable[..., Any]) -> None:
    args = tuple(np.zeros((0,) * np.ndim(x)) if np.ndim(x) else x for x in PROGRAMS[f](3))
    for mode in ("numba", "python"):
        grads = ns.jit(ns.grad(f, argnums=tuple(range(len(args))), disconnected_inputs="ignore"), mode=mode)(*args)
        for x, g in zip(args, grads, strict=True):
            assert np.shape(g) == np.shape(x)
            assert not np.any(g)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients_of_tables_are_those_of_the_graph_as_it_is_written(f: Callable[..., Any]) -> None:
    args = PROGRAMS[f](5)
    wrt = tuple(range(len(args)))
    np.testing.assert_equal(
        [np.round(g, 9) for g in ns.grad(f, argnums=wrt)(*args)],
        [np.round(g, 9) for g in ns.jit(ns.grad(f, argnums=wrt), mode="python")(*args)],
    )


@pytest.mark.parametrize("f", [warping, cholesky, paths, early], ids=lambda f: f.__name__)
def test_lanes_of_gradients_of_tables_are_the_gradients(f: Callable[..., Any]) -> None:
    lanes = [PROGRAMS[f](18) for _ in range(3)]
    stacked = tuple(np.stack([lane[k] for lane in lanes]) for k in range(len(lanes[0])))
    gradient = ns.grad(f, argnums=tuple(range(len(stacked))))
    found = ns.vmap(gradient)(*stacked)
    for k, lane in enumerate(lanes):
        for one, expected in zip(found, gradient(*lane), strict=True):
            np.testing.assert_allclose(one[k], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("f", [warping, cholesky, heat], ids=lambda f: f.__name__)
def test_second_derivatives_of_tables(f: Callable[..., Any]) -> None:
    args = PROGRAMS[f](6)
    along = [np.tril(rng.normal(size=np.shape(x))) if np.ndim(x) == 2 else rng.normal(size=np.shape(x)) for x in args]
    gradient = ns.grad(f, argnums=tuple(range(len(args))))

    def moved(*args: Any) -> Any:
        return sum((g * d).sum() for g, d in zip(gradient(*args), along, strict=True))

    second = ns.grad(moved, argnums=tuple(range(len(args))))(*args)
    found = sum(np.sum(g * d) for g, d in zip(second, along, strict=True))
    assert found == pytest.approx(slope(moved, args, along), rel=1e-4, abs=1e-5)


def test_what_is_kept_of_a_table_grows_as_what_is_written() -> None:
    """Twice the rows and columns, four times the steps: no text keeps the table of each step."""
    text = ns.grad(warping, argnums=(0, 1))
    text(*PROGRAMS[warping](20))
    ranks = [line.count(",") for line in text.source().splitlines() if "= np.empty((" in line]
    assert max(ranks) == 1, text.source()


def test_a_row_that_a_loop_without_steps_names_need_not_be_there() -> None:
    def f(a: Any) -> Any:
        low = a.copy()
        for i in range(a.shape[0]):
            for j in range(3):
                total = 1.0
                for k in range(j):
                    total += low[i + j - 1, k] * low[i, k]
                low[i, j] = total * a[i, j]
        return (low * low).sum()

    def unread(a: Any) -> Any:
        low = a.copy()
        for i in range(a.shape[0]):
            steps = 0 if i + 1 >= a.shape[0] else 2
            for k in range(steps):
                low[i, k] = low[i + 1, k] * low[i, k]
            low[i, 2] = low[i, 2] * 2.0
        return (low * low).sum()

    a = rng.normal(size=(18, 4))
    along = [rng.normal(size=a.shape)]
    assert np.sum(ns.grad(unread)(a) * along[0]) == pytest.approx(slope(unread, (a,), along), rel=1e-5)
    with pytest.raises(IndexError):
        ns.grad(f)(a)


def capped(s: Any, n: Any) -> Any:
    values = [s * j for j in range(n + 1)]
    for _ in range(n):
        for j in range(n):
            if values[j] < 3:
                values[j] = s
    return values[0] + values[n]


def followed(w: Any, n: Any) -> Any:
    parents, total = list(range(n)), 0.0
    for e in range(n):
        x = e
        while parents[x] != x:
            x = parents[x]
        parents[x] = 3
        total += w * x
    return total


@pytest.mark.parametrize("f", [capped, followed])
def test_lists_that_a_loop_has_made_are_written_in_inner_loops(f: Any) -> None:
    """Their first rows are the result of one loop, and the initial state of another."""
    for n in (1, 4, 20):
        expected = (f(1.1 + 1e-6, n) - f(1.1 - 1e-6, n)) / 2e-6
        np.testing.assert_allclose(ns.grad(f)(1.1, n), expected, rtol=1e-6)
