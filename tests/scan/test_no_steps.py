"""A loop that runs no step gives what it began with, whatever its step would do: as a loop of Python, which never looks into its body."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.lax as lax
import numbascan.tensor as nt

W = np.arange(1.0, 31.0)
SINGULAR = np.zeros((20, 20))

# Steps of a state, two arrays, a matrix and an integer, each of which fails for these: beyond the end, of lengths that do not fit, …
FAILING: dict[str, Callable[..., Any]] = {
    "an index": lambda s, w, v, a, k: s + w[k],
    "a negative index": lambda s, w, v, a, k: s * w[-k] + np.exp(w[-k]),
    "a row": lambda s, w, v, a, k: s + a[k].sum(),
    "a gather": lambda s, w, v, a, k: s + w[np.array([0, 1]) + k].sum(),
    "a slice": lambda s, w, v, a, k: s + w[:: k - 40].sum(),
    "an element that is set": lambda s, w, v, a, k: s + nt.set_subtensor(w[k], s).sum(),
    "an element that is added to": lambda s, w, v, a, k: s + nt.inc_subtensor(w[k], s).sum(),
    "lengths of a sum": lambda s, w, v, a, k: s + (w * v).sum(),
    "lengths of functions": lambda s, w, v, a, k: s + np.exp(w - v).max(),
    "lengths of a product": lambda s, w, v, a, k: s + np.tanh(a @ v).sum(),
    "lengths of an inner product": lambda s, w, v, a, k: s + w @ v,
    "a shape": lambda s, w, v, a, k: s + w.reshape(k, -1)[0].sum(),
    "a size": lambda s, w, v, a, k: s + nt.zeros(10 - k).sum(),
    "an extreme of nothing": lambda s, w, v, a, k: s + w[k:].max(),
    "a system": lambda s, w, v, a, k: s + np.linalg.solve(a, w[:20] * s).sum(),
    "an inverse": lambda s, w, v, a, k: s + np.linalg.inv(a).sum(),
    "a factor": lambda s, w, v, a, k: s + np.linalg.cholesky(a - 1)[0, 0],
    "singular values": lambda s, w, v, a, k: s + np.linalg.svd(a * np.nan)[1].sum(),
    "singular values alone": lambda s, w, v, a, k: s + np.linalg.svd(a * np.nan, compute_uv=False).sum(),
    "eigenvalues": lambda s, w, v, a, k: s + np.linalg.eigvalsh(a * np.nan).sum(),
    "eigenvalues of any matrix": lambda s, w, v, a, k: s + np.linalg.eigvals(a * np.nan).real.sum(),
    "a matrix that is not square": lambda s, w, v, a, k: s + np.linalg.inv(a[1:]).sum(),
    "a determinant of none": lambda s, w, v, a, k: s + np.linalg.slogdet(a[:, 1:])[1],
    "a product of matrices": lambda s, w, v, a, k: s + np.tanh((a * s) @ a[1:]).sum(),
    "an outer product": lambda s, w, v, a, k: s + (a + w[:, None] * v).sum(),
    "whole powers": lambda s, w, v, a, k: s + (np.arange(30) ** (np.arange(30) - k)).sum() * s,
    "a whole power as a place": lambda s, w, v, a, k: s + w[2 ** (38 - k)],
    "a whole power as an end": lambda s, w, v, a, k: s + np.exp(w[: 2 ** (38 - k)]).sum(),
    "a whole power as a factor": lambda s, w, v, a, k: s + np.exp(w * 2.0 ** (2 ** (38 - k))).sum(),
    "a whole power as a count": lambda s, w, v, a, k: s + lax.fori_loop(0, 2 ** (38 - k), lambda i, x: x + w[i], 0.0),
    "a slice without a step": lambda s, w, v, a, k: s + np.exp(w[:: k - 40]).sum() * s,
}
ARGUMENTS = (W, W[:29], SINGULAR, 40)


def ends(names: Sequence[str], n: Any, w: Any, v: Any, a: Any, k: Any) -> Any:
    """What all loops end with, and their rows; each begins with another number."""
    first = [w[0] + j for j in range(len(names))]
    rows = [ns.scan(FAILING[name], None, s, [w, v, a, k], n, return_updates=False) for s, name in zip(first, names, strict=True)]
    states = [np.concatenate([s[None], row])[-1] for s, row in zip(first, rows, strict=True)]
    return np.stack(states), rows


@pytest.mark.parametrize("mode", ["python", None])
def test_what_only_a_step_would_do_does_not_fail(mode: str | None) -> None:
    states, rows = ns.jit(lambda *args: ends(list(FAILING), *args), mode=mode)(0, *ARGUMENTS)
    np.testing.assert_array_equal(states, 1.0 + np.arange(len(FAILING)))
    assert {row.shape for row in rows} == {(0,)}


@pytest.mark.parametrize("name", FAILING)
def test_the_same_step_fails_where_it_runs(name: str) -> None:
    with pytest.raises((ArithmeticError, LookupError, ValueError, np.linalg.LinAlgError)):
        ns.scan(FAILING[name], None, 1.0, list(ARGUMENTS), 1, mode="python")


@pytest.mark.parametrize("mode", ["python", None])
def test_its_gradient_is_that_of_its_start(mode: str | None) -> None:
    cost = ns.grad(lambda *args: ends(list(FAILING), *args)[0].sum(), argnums=[1, 2, 3], disconnected_inputs="ignore")
    slopes = ns.jit(cost, mode=mode)(0, *ARGUMENTS)
    np.testing.assert_array_equal(slopes[0], np.eye(1, len(W))[0] * len(FAILING))
    assert not slopes[1].any()
    assert not slopes[2].any()
    assert [slope.shape for slope in slopes] == [np.shape(one) for one in ARGUMENTS[:3]]


@pytest.mark.parametrize("mode", ["python", None])
@pytest.mark.parametrize("name", [name for name in FAILING if name != "singular values"])  # whose full vectors have no derivative
def test_its_tangent_is_that_of_its_start(name: str, mode: str | None) -> None:
    def run(n: Any, w: Any, v: Any, a: Any, k: Any) -> Any:
        step = FAILING[name]
        rows = ns.scan(lambda s: (s * 2.0, step(s, w, v, a, k) * s), None, [w[0], None], n_steps=n, return_updates=False)[1]
        return lax.fori_loop(0, n, lambda _, s: step(s, w, v, a, k), w[0]) + (rows * rows).sum()

    value, slope = ns.jit(lambda n, *args: ns.jvp(lambda *floats: run(n, *floats, args[3]), args[:3], args[:3]), mode=mode)(0, *ARGUMENTS)
    assert (value, slope) == (1.0, 1.0)


def test_no_lanes_fail_by_nothing() -> None:
    lanes = ns.vmap(lambda x, w, v, a, k: sum(step(x, w, v, a, k) for step in FAILING.values()), in_axes=(0, None, None, None, None))
    assert lanes(np.zeros(0), *ARGUMENTS).shape == (0,)


def pairs(w: Any, k: Any) -> Any:
    """The sum over i < j of w[i + 1] * w[j]**2, with whole divisions: w[i + 1] is beyond the end where there is no j."""

    def of_row(i: Any, total: Any) -> Any:
        return lax.fori_loop(i + 1, 4, lambda j, s: s + w[i + 1] * w[j] ** 2 + k // (3 - i), total)

    return lax.fori_loop(0, 4, of_row, 0.0)


def plain_pairs(w: Any, k: int) -> Any:
    return sum(w[i + 1] * w[j] ** 2 + k // (3 - i) for i in range(4) for j in range(i + 1, 4))


@pytest.mark.parametrize("mode", ["python", None])
def test_triangular_loops_end_in_a_row_without_steps(mode: str | None) -> None:
    w = np.array([1.0, -2.0, 3.0, 0.5])
    value, slope = ns.jit(ns.value_and_grad(pairs), mode=mode)(w, 7)
    np.testing.assert_allclose(value, plain_pairs(w, 7))
    around = [(plain_pairs(w + h, 7) - plain_pairs(w - h, 7)) / 2e-6 for h in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(slope, around, atol=1e-6)


def test_lanes_without_steps_read_nothing() -> None:
    def lane(n: Any, x: Any, w: Any) -> Any:
        return lax.fori_loop(0, n, lambda i, s: s * w[n + 25] + w[i] / x + w[25 // n], x)

    counts, starts = np.array([0, 4, -3, 2, 0]), np.linspace(1, 2, 5)
    found, slopes = ns.vmap(ns.value_and_grad(lane, argnums=1), in_axes=(0, 0, None))(counts, starts, W)
    for n, x, value, slope in zip(counts, starts, found, slopes, strict=True):
        plain, tangent = x, 1.0
        for i in range(n):
            plain, tangent = plain * W[n + 25] + W[i] / x + W[25 // n], tangent * W[n + 25] - W[i] / x**2
        np.testing.assert_allclose((value, slope), (plain, tangent))


@pytest.mark.parametrize("mode", ["python", None])
def test_a_loop_that_does_not_start_reads_draws_and_divides_nothing(mode: str | None) -> None:
    stream = nt.random.RandomStream(4)

    def run(w: Any, k: Any) -> Any:
        def step(s: Any) -> Any:
            return s * w[k] + stream.normal(w[k], w[k + 1], size=2).sum() + k // (k - 40)

        return lax.while_loop(lambda s: s > w[1], step, w[0])

    value, slope = ns.jit(ns.value_and_grad(run), mode=mode)(W, 40)
    assert value == 1
    np.testing.assert_array_equal(slope, np.eye(1, len(W))[0])


@pytest.mark.parametrize("checkpoint", [None, 2])
def test_empty_sequences_make_no_step(checkpoint: Any) -> None:
    def cost(xs: Any, w: Any, k: Any) -> Any:
        options = {"return_updates": False, "checkpoint": checkpoint}
        return (
            ns.scan(lambda x, s, w: s * x + np.log(w[k]), xs, w[1], w, **options).sum() + lax.scan(lambda c, x: (c * w[k], x), w[2], xs)[0]
        )

    slopes = ns.jit(ns.grad(cost, argnums=[0, 1]))(np.zeros(0), W, 40)
    assert slopes[0].shape == (0,)
    np.testing.assert_array_equal(slopes[1], np.eye(1, len(W), 2)[0])


def test_lengths_that_a_call_fixes_are_no_error_before_the_first_step() -> None:
    w, v, n = nt.dvector("w"), nt.dvector("v"), nt.lscalar("n")
    rows = ns.scan(lambda s, w, v: s + w[5] + (w + v).sum() + w @ v, None, 0.0, [w, v], n, return_updates=False)
    for mode in ("python", None):
        run = ns.function([w, v, n], rows, mode=mode)
        assert run(np.ones(3), np.ones(4), 0).shape == (0,)
        with pytest.raises((IndexError, ValueError)):
            run(np.ones(3), np.ones(4), 1)
        assert run(np.ones(6), np.ones(6), 1) == 1 + 12 + 6


OF_MATRICES: dict[str, Callable[..., Any]] = {
    "a row and a matrix": lambda s, h, x, y, w: (s + (x @ w).sum(), h),
    "a matrix and a row": lambda s, h, x, y, w: (s + np.tanh(w @ x).sum(), h),
    "an outer product": lambda s, h, x, y, w: (s + (np.outer(x, y) * w).sum(), h),
    "a layer": lambda s, h, x, y, w: (s, np.tanh(w @ h)),
    "a state and a matrix": lambda s, h, x, y, w: (s + (h @ w).sum() * s, h * 2),
    "a row and a state": lambda s, h, x, y, w: (s, h + x),
    "a system": lambda s, h, x, y, w: (s + np.linalg.solve(w, x).sum(), h),
    "a sum of products": lambda s, h, x, y, w: (s + np.einsum("i,j,ij->", x, y, w), h),
}
MATRICES = (1.5, np.ones(26), np.zeros((0, 23)), np.zeros((0, 35)), np.ones((37, 24)))


@pytest.mark.parametrize("mode", ["python", None])
@pytest.mark.parametrize("name", OF_MATRICES)
def test_products_that_do_not_fit_have_gradients_of_the_shape_of_their_factors(name: str, mode: str | None) -> None:
    """Products leave the loop, before it or behind it, and its gradient: of no rows they ask nothing."""

    def cost(s: Any, h: Any, x: Any, y: Any, w: Any) -> Any:
        def step(x: Any, y: Any, s: Any, h: Any, w: Any) -> Any:
            new, state = OF_MATRICES[name](s, h, x, y, w)
            return new, state, new * np.tanh(w @ x)

        rows = ns.scan(step, [x, y], [s, h, None], w, return_updates=False)
        return s + h.sum() + sum(one.sum() for one in rows) + (rows[2][:, 0] * 2.0).sum()

    slope = ns.jit(ns.grad(cost, argnums=[0, 1, 2, 3, 4], disconnected_inputs="ignore"), mode=mode)
    slopes = slope(*MATRICES)
    assert [np.shape(slope) for slope in slopes] == [np.shape(one) for one in MATRICES]
    assert [np.sum(slope) for slope in slopes] == [1, 26, 0, 0, 0]
    with pytest.raises(ValueError, match=r"differ|broadcast|rows|shape|square|length"):
        ns.jit(cost, mode=mode)(*MATRICES[:2], np.zeros((2, 23)), np.zeros((2, 35)), MATRICES[4])


FIRST: dict[str, Callable[..., Any]] = {
    "a sum": lambda s, w, v, a: w + v + a[0],
    "a concatenation": lambda s, w, v, a: np.concatenate([a, w[None]]),
    "a choice": lambda s, w, v, a: np.where(s > 0, w, v),
    "a branch": lambda s, w, v, a: nt.ifelse(s > 0, w * v, w),
}
SECOND: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "a product": (lambda s, w, v, a: w @ a, (23,)),
    "a system": (lambda s, w, v, a: np.linalg.solve(a, w), (27,)),
    "a sum along an axis": (lambda s, w, v, a: np.sort(a * s, axis=1).sum(1) * 2.0, (24,)),
    "an element of another": (lambda s, w, v, a: w * (v @ w), (27,)),
}


@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("first", FIRST)
def test_rows_are_as_long_as_told_around_the_loop_whatever_loops_before_would_have_checked(first: str, second: str) -> None:
    """A loop of as many steps says which lengths are equal: where both have a step."""
    args = (np.ones(27), np.ones(25), np.ones((24, 23)))

    def rows(n: Any, w: Any, v: Any, a: Any) -> Any:
        steps = [FIRST[first], SECOND[second][0]]
        return [
            ns.scan(lambda s, step=step: (s, step(s, w, v, a)), None, [1.0, None], n_steps=n, return_updates=False)[1] for step in steps
        ]

    def cost(n: Any, w: Any, v: Any, a: Any) -> Any:
        return sum(np.tanh(one).sum() for one in rows(n, w, v, a)) + w[0] + v[1] + a[2, 3]

    assert ns.jit(rows)(0, *args)[1].shape == (0, *SECOND[second][1])
    slopes = ns.jit(ns.grad(cost, argnums=[1, 2, 3], disconnected_inputs="ignore"))(0, *args)
    assert [(slope.shape, slope.sum()) for slope in slopes] == [(one.shape, 1.0) for one in args]


OF_ROWS: dict[str, Callable[..., Any]] = {
    "an index": lambda s, x, y: s + x[7],
    "an element that is set": lambda s, x, y: s + nt.set_subtensor(x[7], s).sum(),
    "elements that are set": lambda s, x, y: s + nt.set_subtensor(x[:2], y).sum(),
    "lengths of a product": lambda s, x, y: s + (x * y).sum(),
    "an extreme of nothing": lambda s, x, y: s + x[3:].max() * y[0],
}


@pytest.mark.parametrize("mode", ["python", None])
@pytest.mark.parametrize("name", OF_ROWS)
def test_rows_that_do_not_fit_are_no_error_where_there_are_none(name: str, mode: str | None) -> None:
    """Also of a gradient, whose steps wait for sequences alone: no rewrite builds a step again that no lengths fit."""
    x, y = nt.dmatrix("x"), nt.dmatrix("y")
    path = ns.scan(lambda x, y, s: OF_ROWS[name](s, x, y), [x, y], np.float64(0), return_updates=False)
    run = ns.function([x, y], [path, *ns.grad(path.sum(), [x, y], disconnected_inputs="ignore")], mode=mode)
    assert [part.shape for part in run(np.ones((0, 3)), np.ones((0, 5)))] == [(0,), (0, 3), (0, 5)]
    with pytest.raises((IndexError, ValueError)):
        run(np.ones((1, 3)), np.ones((1, 5)))
