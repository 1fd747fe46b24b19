"""A row of a product has the same bits whatever stands beside it."""

from __future__ import annotations

import math
import os
import platform
import subprocess
import sys
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from llvmlite import binding
from numba import TypingError

from numbascan.emit.runtime.routines.row_products import row_products

BOTH = pytest.mark.parametrize("dtype", ["float32", "float64"])
ROWS, COLUMNS, DEPTHS = (1, 2, 3, 7, 8, 33, 100), (1, 3, 8, 13, 32, 100), (0, 1, 5, 8, 32, 129)
HAS_FMA = platform.machine().lower() not in ("x86_64", "amd64") or binding.get_host_cpu_features().get("fma", False)

WITHOUT_FMA = """
import numpy as np
from numbascan.emit.runtime.routines.row_products import row_products

rng = np.random.default_rng(0)
for dtype in np.float32, np.float64:
    a, w = rng.normal(size=(11, 20)).astype(dtype), rng.normal(size=(20, 27)).astype(dtype)
    expected, actual, alone = (np.zeros((11, 27), dtype) for _ in range(3))
    for k in range(20):
        expected += a[:, k, None] * w[k]
    row_products(actual, a, w)
    for i in range(11):
        row_products(alone[i : i + 1], a[i : i + 1], w)
    assert expected.tobytes() == actual.tobytes() == alone.tobytes()
"""


def numbers(dtype: str, *shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def multiplied(a: Any, w: Any) -> Any:
    out = np.full((len(a), w.shape[1]), np.nan, a.dtype)
    row_products(out, a, w)
    return out


def rounded(exact: Fraction, kind: type) -> Any:
    """The closest number of this kind; of two, the one whose last bit is 0."""
    near = kind(float(exact))
    bits = np.int32 if kind is np.float32 else np.int64
    candidates = (np.nextafter(near, kind(-np.inf)), near, np.nextafter(near, kind(np.inf)))
    return min(candidates, key=lambda one: (abs(Fraction(float(one)) - exact), one.view(bits) & 1))


def by_definition(row: Any, column: Any) -> Any:
    kind = row.dtype.type
    total = kind(0)
    for x, y in zip(row, column, strict=True):
        total = rounded(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(total)), kind) if HAS_FMA else x * y + total
    return total


@BOTH
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("n", COLUMNS)
def test_a_row_has_the_same_bits_at_every_place_among_any_number_of_rows(dtype: str, n: int, depth: int) -> None:
    a, w = numbers(dtype, max(ROWS), depth), numbers(dtype, depth, n, seed=1)
    alone = np.concatenate([multiplied(row[None], w) for row in a])
    for m in ROWS:
        for shift in range(m):
            taken = (np.arange(m) + shift) % len(a)
            assert alone[taken].tobytes() == multiplied(a[taken], w).tobytes()


@BOTH
def test_an_element_is_a_chain_of_fused_products_and_sums(dtype: str) -> None:
    for m, depth, n in ((1, 5, 3), (3, 9, 7), (2, 6, 70), (9, 5, 45), (20, 7, 11), (1, 300, 1)):
        a, w = numbers(dtype, m, depth), numbers(dtype, depth, n, seed=1)
        expected = np.array([[by_definition(row, column) for column in w.T] for row in a])
        assert expected.tobytes() == multiplied(a, w).tobytes()


@BOTH
def test_elements_are_right_to_rounding(dtype: str) -> None:
    for m, depth, n in product((1, 5, 70), (1, 8, 129, 300), (1, 2, 8, 15, 16, 24, 33, 64)):
        a, w = numbers(dtype, m, depth), numbers(dtype, depth, n, seed=1)
        exact = np.array([[math.fsum(map(float, row.astype(float) * column.astype(float))) for column in w.T] for row in a])
        bound = depth * np.finfo(dtype).eps * (abs(a).astype(float) @ abs(w).astype(float))
        assert (abs(multiplied(a, w) - exact) <= bound).all()


@BOTH
def test_long_sums_over_many_rows_have_the_bits_of_one_row(dtype: str) -> None:
    for depth, n in ((300, 70), (256, 64), (520, 45)):
        a, w = numbers(dtype, 280, depth), numbers(dtype, depth, n, seed=1)
        assert np.concatenate([multiplied(row[None], w) for row in a]).tobytes() == multiplied(a, w).tobytes()


@BOTH
def test_nan_and_infinity_stay_in_their_row(dtype: str) -> None:
    a, w = numbers(dtype, 33, 40), numbers(dtype, 40, 21, seed=1)
    expected = multiplied(a, w)
    a[[0, 9, 31], [3, 39, 0]] = np.nan, np.inf, -np.inf
    actual = multiplied(a, w)
    finite = np.isfinite(actual).all(axis=1)
    assert np.flatnonzero(~finite).tolist() == [0, 9, 31]
    assert expected[finite].tobytes() == actual[finite].tobytes()


@BOTH
def test_all_nans_are_the_same(dtype: str) -> None:
    a, w = numbers(dtype, 33, 20), numbers(dtype, 20, 70, seed=1)
    a[:, 3], w[9], w[11, ::2] = -np.nan, np.nan, np.inf
    a[:, 11] = 0
    a.view(f"i{a.itemsize}")[:, 5] = a.view(f"i{a.itemsize}")[:, 3] + np.arange(33)
    actual = multiplied(a, w)
    assert np.full((33, 70), np.nan, dtype).tobytes() == actual.tobytes()
    assert np.full((1, 70), np.nan, dtype).tobytes() == multiplied(a[:1], w).tobytes()


@BOTH
@pytest.mark.parametrize("m, depth, n", [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0), (70, 0, 37), (1, 0, 1)])
def test_sums_of_nothing_are_zero(dtype: str, m: int, depth: int, n: int) -> None:
    actual = multiplied(numbers(dtype, m, depth), numbers(dtype, depth, n))
    assert np.zeros((m, n), dtype).tobytes() == actual.tobytes()


@BOTH
def test_nothing_is_written_beside_the_result(dtype: str) -> None:
    for m, n in product((1, 2, 7, 9, 65), (1, 3, 5, 8, 13, 17, 33, 70)):
        around = np.full((m + 40, n), 7, dtype)
        a, w = numbers(dtype, m, 6), numbers(dtype, 6, n)
        row_products(around[20:-20], a, w)
        assert (around[:20] == 7).all()
        assert (around[-20:] == 7).all()
        assert multiplied(a, w).tobytes() == around[20:-20].tobytes()


def test_arrays_of_other_kinds_are_refused() -> None:
    a = numbers("float64", 4, 4)
    for operands in ((a.copy(), a.T, a), (a.copy(), a, a.T), (a.T, a, a), (a.copy(), a.astype("float32"), a), (a > 0, a > 0, a > 0)):
        with pytest.raises(TypingError):
            row_products(*operands)


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="other processors have fused products and sums")
def test_a_processor_without_fused_products_rounds_twice_everywhere() -> None:
    environment = {**os.environ, "NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": "+sse2"}
    done = subprocess.run([sys.executable, "-c", WITHOUT_FMA], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
