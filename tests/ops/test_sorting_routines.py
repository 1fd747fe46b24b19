"""Rows of every length and kind are sorted as NumPy does, by comparing and by counting digits; the median takes its middles."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from wide import wide

import numbascan as ns
from numbascan.emit.runtime.routines import sorting

rng = np.random.default_rng(3)
LENGTHS = (1, 2, 3, 16, 17, 47, 48, 49, 50, 399, 400, 401, 3000)


def rows(dtype: str) -> Iterator[np.ndarray]:
    """Rows of many lengths: at random, with equal numbers, sorted and backwards, with the ends of the dtype."""
    for n in LENGTHS:
        values = (rng.normal(size=n) * 1e8).astype(dtype)
        few = rng.integers(-3, 4, size=n).astype(dtype)
        yield from (values, few, np.sort(values), np.sort(values)[::-1].copy(), np.full(n, 7, dtype))
        if np.dtype(dtype).kind == "f":
            ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, np.finfo(dtype).tiny, -np.finfo(dtype).max], dtype)
            yield np.where(rng.random(n) < 0.3, rng.choice(ends, n), values)
        else:
            yield np.where(rng.random(n) < 0.3, rng.choice([np.iinfo(dtype).min, np.iinfo(dtype).max, 0, -1], n), values).astype(dtype)


@pytest.mark.parametrize("dtype", wide(["float64", "int32", "float32", "int64"], first=2))
def test_sorted_rows_and_their_order(dtype: str) -> None:
    sort, order = (getattr(sorting, f"{name}_{dtype}_into") for name in ("sort", "argsort"))
    for row in rows(dtype):
        found, places = np.empty_like(row), np.empty(len(row), np.int64)
        sort(found, row)
        order(places, row)
        expected = np.sort(row, kind="stable")
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found[found == 0]), np.signbit(expected[expected == 0]))
        np.testing.assert_array_equal(places, np.argsort(row, kind="stable"))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_the_two_in_the_middle(dtype: str) -> None:
    take = sorting.middles_into_complex if dtype == "complex128" else sorting.middles_into
    for row in rows("float64"):
        values = row.astype(dtype)
        if dtype == "complex128":
            values.imag = row[::-1]
        found, n = np.empty(2, dtype), len(row)
        take(found, values)
        expected = np.sort(values)
        ends = expected[[-1, -1]] if np.isnan(expected[-1]) else expected[[(n - 1) // 2, n // 2]]
        np.testing.assert_array_equal(found, ends)


def test_medians_of_lanes_and_their_gradients() -> None:
    x = np.round(rng.normal(size=(5, 450)), 1)  # with ties
    for axis in (None, 0, 1, (0, 1)):
        compiled = ns.jit(lambda x, axis=axis: np.median(x, axis=axis))
        np.testing.assert_array_equal(compiled(x), np.median(x, axis=axis))
    slopes = ns.jit(ns.vmap(ns.grad(np.median)))(x)
    assert slopes.sum(axis=1).tolist() == [1.0] * 5
    for row, slope in zip(x, slopes, strict=True):
        places = np.flatnonzero(slope)
        assert sorted(row[places]) == sorted({*np.sort(row)[[224, 225]]}) or len(places) == 2
    assert np.isnan(ns.jit(np.median)(np.array([1.0, np.nan, 2.0])))
    with pytest.raises(IndexError, match=r"np\.median"):
        ns.jit(np.median)(np.empty(0))
