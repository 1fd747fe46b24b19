"""Rows of every length and kind are sorted as NumPy does, by its own sorts or by merging; the median takes its middles."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numba import njit
from shortcuts_taken import needs
from wide import wide

import numbascan as ns
from numbascan.emit.inside import numpy_sorts
from numbascan.emit.runtime.routines import sorting
from numbascan.ops.sort_small import NUMBERS

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


SORTS = {
    "NumPy's": njit(lambda result, values: sorting.sort_into(result, values)),
    "merging": sorting._merge_sort_into,
}


@pytest.mark.parametrize("name", SORTS)
@pytest.mark.parametrize("dtype", wide(["float64", "int32", "float32", "int64", "uint8"], first=2))
def test_sorted_rows(dtype: str, name: str) -> None:
    for row in rows(dtype):
        result, expected = np.empty_like(row), np.sort(row, kind="stable")
        SORTS[name](result, row)
        np.testing.assert_array_equal(result, expected)
        np.testing.assert_array_equal(np.signbit(result[result == 0]), np.signbit(expected[expected == 0]))


@pytest.mark.parametrize("dtype", wide(["float64", "int32", "float32", "int64"], first=2))
def test_orders_of_rows(dtype: str) -> None:
    for row in rows(dtype):
        places = np.empty(len(row), np.int64)
        getattr(sorting, f"argsort_{dtype}_into")(places, row)
        np.testing.assert_array_equal(places, np.argsort(row, kind="stable"))


@needs("numpy_sorts")
def test_kernels_that_sort_call_numpy_and_are_loaded_without_numba(tmp_path: Path) -> None:
    """A kernel from the disk finds NumPy's sort, wherever it lies in this process; another NumPy gets another kernel."""
    program = "import sys, numpy as np, numbascan as ns; print(ns.jit(np.sort)(np.arange(20.0)[::-1])[:3], 'numba' in sys.modules)"
    environment = {**os.environ, "NUMBASCAN_CACHE_DIR": str(tmp_path)}
    runs = [subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True) for _ in range(2)]
    assert [run.stdout for run in runs] == ["[0. 1. 2.] True\n", "[0. 1. 2.] False\n"], runs[1].stderr
    (machine_code,) = tmp_path.glob("*.code")
    assert b"numbascan_sort_float64" in machine_code.read_bytes()


def test_a_sort_that_is_not_one_is_not_called() -> None:
    """Each address is tried out before it is used."""
    nothing = numpy_sorts._sort(lambda row, length, _: 0)
    address = ctypes.cast(nothing, ctypes.c_void_p).value or 0
    assert not numpy_sorts._sorts(address, np.dtype("float64"))
    assert not numpy_sorts._sorts(0, np.dtype("float64"))


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


@pytest.mark.parametrize("n", [1, 3, 17])  # 17: of a length that only the run knows
def test_the_one_in_the_middle_may_be_as_large_as_numbers_are(n: int) -> None:
    x = np.full((2, n), np.finfo("float64").max)
    np.testing.assert_array_equal(ns.jit(lambda x: np.median(x, axis=1))(x), x[:, 0])
    assert ns.jit(ns.grad(np.median))(x[0]).sum() == 1


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
    assert np.isnan(ns.jit(np.median)(np.empty(0)))


# short rows, as scalar statements ------------------------------------------------------------------------------------


def short_rows(n: int, dtype: str) -> np.ndarray:
    """Rows with ties, of floats with zeros of both signs, infinities and NaNs."""
    values = rng.integers(0, 4, size=(60, n)).astype("float64")
    if np.dtype(dtype).kind == "f":
        values = np.where(rng.random(values.shape) < 0.4, rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-300], values.shape), values)
    return values.astype(dtype)


def same_rows(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found[found == 0]), np.signbit(expected[expected == 0]))


FIRST = [(2, "float64"), (7, "float64"), (NUMBERS, "float64"), (NUMBERS + 1, "float64"), (5, "uint8"), (3, "bool")]
OTHERS = [(n, dtype) for dtype in ("float64", "float32", "int64", "uint8", "bool") for n in range(1, NUMBERS + 2)]


@pytest.mark.parametrize(("n", "dtype"), wide([*FIRST, *(case for case in OTHERS if case not in FIRST)], first=len(FIRST)))
def test_short_rows(n: int, dtype: str) -> None:
    def f(x: np.ndarray) -> tuple[np.ndarray, ...]:
        ordered = np.sort(x[0])
        places = [np.searchsorted(ordered, x[1], side=side) for side in ("left", "right")]
        return np.sort(x), np.argsort(x, kind="stable"), np.median(x, axis=-1), ordered, *places, np.searchsorted(ordered, x[2, 0])

    x = short_rows(n, dtype)
    assert ("sorting." in ns.jit(f).lower(x).source()) == (n > NUMBERS)
    ordered, order, middle, one, left, right, place = ns.jit(f)(x)
    same_rows(ordered, np.sort(x, kind="stable"))
    same_rows(one, np.sort(x[0], kind="stable"))
    np.testing.assert_array_equal(order, np.argsort(x, kind="stable"))
    np.testing.assert_array_equal(left, np.searchsorted(one, x[1]))
    np.testing.assert_array_equal(right, np.searchsorted(one, x[1], side="right"))
    assert place == np.searchsorted(one, x[2, 0])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(middle, np.median(x, axis=-1))


@pytest.mark.parametrize("checkpoint", [None, 2])
def test_short_rows_in_loops_lanes_and_gradients(checkpoint: int | None) -> None:
    def end(x: np.ndarray) -> np.ndarray:
        def step(u: np.ndarray, x: np.ndarray) -> np.ndarray:
            return np.sort(x * u)[::-1] + 0.1 * x[np.argsort(u)] + np.median(x)

        path = ns.scan(step, sequences=us, outputs_info=x, checkpoint=checkpoint, return_updates=False)
        return (path[-1] * np.arange(1.0, 6.0)).sum()

    us, lanes = rng.normal(size=(6, 5)), rng.normal(size=(70, 5))
    by_numpy = ns.jit(ns.vmap(ns.value_and_grad(end)), mode="python")(lanes)
    for one, other in zip(ns.jit(ns.vmap(ns.value_and_grad(end)))(lanes), by_numpy, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    np.testing.assert_allclose(ns.jit(ns.grad(end))(lanes[0]), by_numpy[1][0], rtol=1e-12)
