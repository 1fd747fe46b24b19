"""Masks that only the run knows, in converted code: each function beside itself under Python, arguments included."""

from __future__ import annotations

import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import numbascan as ns
from numbascan.front.tree import flattened

X, LONG = np.array([0.5, -1.0, 2.0, -0.25, 0.75, 3.0, -2.0]), np.cos(np.arange(40.0)) * 2
TABLE = np.cos(np.arange(20.0)).reshape(5, 4)


def assert_as_python(f: Callable[..., Any], *args: Any, mode: str | None = "python") -> None:
    plain, own = copy.deepcopy(args), copy.deepcopy(args)
    expected, result = f(*plain), ns.jit(f, mode=mode)(*own)
    for one, other in zip(flattened((expected, plain))[0], flattened((result, own))[0], strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-12)
        assert np.asarray(other).dtype == np.asarray(one).dtype


def up_and_down(x: Any) -> Any:
    steps = x[1:] - x[:-1]
    rises, falls = steps[steps > 0], steps[steps < 0]
    return rises.mean() / -falls.mean(), len(rises), rises.size, rises[::2] + 1, np.percentile(falls, 30)


def a_copy(x: Any) -> Any:
    kept = x[x > 0]
    kept[0] = 100.0
    return x.sum(), kept.sum()


def written(x: Any, y: Any) -> Any:
    z = x.copy()
    z[z > 0] = y[x > 0] * 2
    x[x < 0] = -x[x < 0]
    x[x > 0.6] *= np.arange(np.sum(x > 0.6)) + 1.0
    return z


def read_before(x: Any) -> Any:
    def halved() -> Any:
        x[0] = -7.0
        return np.arange(3.0)

    x[x > 0.6] += halved()
    return x.sum()


def rows_and_columns(m: Any) -> Any:
    m[m[:, 0] > 0, 1:] = 7.0
    m[:, m.sum(0) > 0] += np.arange(5.0)[:, None]
    m[m > 0] = np.arange(np.sum(m > 0))
    m[m[:, 1] > 2] = np.arange(4.0)
    return m[m[:, 0] > 0].sum(0), m[np.nonzero(m > 1)].sum(), np.nonzero(m)


def at_places(x: Any) -> Any:
    first = np.argmax(x > 0.6)
    total = 0.0
    for i in np.where(x > 0)[0]:
        total += x[i] * i
    for v in x[x > 0]:
        total += v * v
    return np.delete(x, first), np.insert(x, first, 0.0), x[np.flatnonzero(x > 0)[0]], np.argwhere(x > 0)[0, 0], total


def in_a_loop(x: Any) -> Any:
    out, left, count = np.zeros(5), x > 0, 0
    for i in range(5):
        kept = x[x > 0.1 * i]
        out[i] = kept.sum() / len(kept)
    while left.any():
        count += np.flatnonzero(left)[0]
        left[np.flatnonzero(left)[0]] = False
    if x[0] > -100:
        best = x[x < 1].max()
    else:
        best = 0.0
    return out, count, best


def put(x: Any) -> Any:
    y, z = x.copy(), x.copy()
    np.putmask(x, x > 0, [1.0, 2.0, 3.0])
    np.place(y, y > 0, [1.0, 2.0, 3.0])
    np.put(z, [0, 3, 5], [1.0, 2.0])
    return y, z


def pieces(x: Any) -> Any:
    return np.piecewise(x, [x < 0, x >= 0.6], [lambda v: -v, lambda v: v**2]), np.piecewise(x, [x < 0], [0.0, lambda v: v * 3])


def nothing(x: Any) -> Any:
    return x[x > 1e9].sum(), x[x > 1e9]


def sets(x: Any) -> Any:
    values, counts = np.unique(np.round(x), return_counts=True)
    return values[np.argmax(counts)], values, np.setdiff1d(values, [0.0, 1.0]), np.repeat(values, counts), np.tile(values, counts[0])


def conditions(x: Any) -> Any:
    x[x[0] > 0, 1] = 5
    x[1, x[0] > 9] = 7
    x[x[0] < 0, 2] += 1
    x[x[0] > -9, 0] *= 2
    return x.sum()


def put_at_truth_values(x: Any) -> Any:
    np.put(x, x > 1, 7)
    return x


def conditions_in_one_array(x: Any) -> Any:
    return np.piecewise(x, np.array([x < 0, x >= 2]), [-1, 1]), np.piecewise(x, [x > 100], [lambda v: v.min(), 0.5])


PROGRAMS = [
    up_and_down,
    a_copy,
    read_before,
    at_places,
    in_a_loop,
    put,
    pieces,
    nothing,
    sets,
    conditions,
    put_at_truth_values,
    conditions_in_one_array,
]


@pytest.mark.parametrize("f", PROGRAMS)
def test_masks_mean_what_they_mean_under_python(f: Callable[..., Any]) -> None:
    for x in (X, LONG) if f is not read_before else (X,):
        assert_as_python(f, x)


@pytest.mark.parametrize("f", [up_and_down, at_places, in_a_loop, put, sets])
def test_compiled_masks(f: Callable[..., Any]) -> None:
    assert_as_python(f, LONG, mode=None)


def test_pieces_of_a_number_and_ends_of_whole_numbers() -> None:
    for x in (3.0, -1.0, 0.5):
        assert_as_python(lambda x: np.piecewise(x, [x < 0, x >= 2], [1.0, 2.0, 3.0]), x)
    for dtype in ("int8", "float32", "float64"):
        assert_as_python(lambda x: (np.quantile(x, 1), np.quantile(x, np.array([0, 1]))), X.astype(dtype))


def test_what_numpy_refuses_to_write_is_refused() -> None:
    def rows(x: Any) -> None:
        x[x > 0] = np.ones((1, 4))

    for f, x in (
        (rows, X.copy()),
        (lambda k: np.putmask(k, k > 0, np.array([0.5])), np.arange(4)),
        (lambda k: np.place(k, k > 0, np.array([300])), np.arange(4, dtype="int8")),
    ):
        with pytest.raises(TypeError):
            f(x.copy())
        with pytest.raises(TypeError):
            ns.jit(f, mode="python")(x)
    with pytest.raises(TypeError, match="overwrite_input"):
        ns.jit(lambda x: np.quantile(x, 0.5, overwrite_input=True), mode="python")(X)


def test_what_is_written_behind_a_mask() -> None:
    for mode in ("python", None):
        assert_as_python(written, X, -X, mode=mode)
        assert_as_python(rows_and_columns, TABLE, mode=mode)
        with pytest.raises(ValueError, match=r"do not fit|shape mismatch"):
            ns.jit(lambda x: x.__setitem__(x > 0, np.arange(3.0)), mode=mode)(X.copy())


def test_derivatives_of_what_is_written_behind_a_mask() -> None:
    def f(x: Any, y: Any) -> Any:
        return (np.arange(7.0) * written(x.copy(), y)).sum()

    found = ns.jit(ns.grad(f, argnums=(0, 1)), mode="python")(X, -X)
    np.testing.assert_allclose(found[0], np.arange(7.0) * (X <= 0))
    np.testing.assert_allclose(found[1], np.arange(7.0) * (X > 0) * 2)


def test_draws_and_checkpoints_meet_masks() -> None:
    def walk(n: int, rng: Any) -> Any:
        path = np.cumsum(rng.normal(size=n))
        return path[path > 0].sum(), np.unique(np.sign(path))

    total, signs = ns.jit(walk)(50, np.random.default_rng(1))
    assert total >= 0
    assert set(signs.tolist()) <= {-1.0, 0.0, 1.0}

    def step(s: Any, x: Any) -> Any:
        return s * 0.5 + x[x > s].sum()

    plain = ns.grad(lambda x: ns.scan(step, outputs_info=1.0, non_sequences=x, n_steps=9, return_updates=False)[-1])
    saving = ns.grad(
        lambda x: ns.scan_checkpoints(step, outputs_info=1.0, non_sequences=x, n_steps=9, save_every_N=3, return_updates=False)[-1]
    )
    np.testing.assert_allclose(saving(X), plain(X), rtol=1e-13)


def test_batches_and_threads_meet_masks() -> None:
    rows = np.cos(np.arange(210.0)).reshape(7, 30) * 2
    sums = ns.batch(lambda x: x[x > 0].sum(), (rows,), progress=False)
    np.testing.assert_allclose(np.asarray(sums[...]), [row[row > 0].sum() for row in rows])
    with pytest.raises(ns.BatchError, match="results of cases have different shapes"):
        ns.batch(lambda x: x[x > 0], (rows,), progress=False)
    kept = ns.jit(lambda x: ([v for v in x if v > 0], x[x < 0]))
    with ThreadPoolExecutor(3) as pool:
        lengths = [n for n in (17, 19, 23, 30) for _ in range(3)]
        for n, (some, others) in zip(lengths, pool.map(lambda n: kept(rows[n % 7, :n]), lengths), strict=True):
            np.testing.assert_array_equal(some, [v for v in rows[n % 7, :n] if v > 0])
            np.testing.assert_array_equal(others, rows[n % 7, :n][rows[n % 7, :n] < 0])


def test_views_of_whole_parts_write_the_part() -> None:
    def through_a_row(m: Any) -> Any:
        row = m[1]
        view = row[:]
        view[:] = 5.0
        view[1] += 2
        return m, row, view

    def through_a_matrix(m: Any) -> Any:
        matrix = m[1]
        view = matrix[:]
        view[0] = 9.0
        view[1:, 0] *= 2
        return m, view[2:][:]

    for mode in ("python", None):
        assert_as_python(through_a_row, TABLE, mode=mode)
        assert_as_python(through_a_matrix, np.arange(24.0).reshape(2, 3, 4), mode=mode)


def test_extremes_of_what_is_known_to_be_empty() -> None:
    assert_as_python(lambda x: (max(x[:0], default=0.5), min(x[x > 1e9], default=x[0])), X)
    with pytest.raises(ValueError, match="empty"):
        ns.jit(lambda x: max(x[:0]), mode="python")(X)
