"""Whole draws, for njit: the four words of each Philox block in turn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.core import config

from ...ops import draw_methods
from ..memory import small_array
from ..random import normal_pair, philox

TILE = 64  # words between Philox, which SIMD does not take, and what it takes; they stay in the first cache


@njit
def words_into(result: Any, k0: Any, k1: Any, number: Any, count: Any = 0) -> None:
    """Fills `result` with the words of a draw."""
    n = len(result)
    zero = np.uint64(0)
    for block in range(n >> 2):
        x0, x1, x2, x3 = philox(k0, k1, np.uint64(block + 1), zero, number, zero)
        result[4 * block] = x0
        result[4 * block + 1] = x1
        result[4 * block + 2] = x2
        result[4 * block + 3] = x3
    if n & 3:
        last = philox(k0, k1, np.uint64((n >> 2) + 1), zero, number, zero)
        for k in range(n & 3):
            result[(n & ~3) + k] = last[k]


@njit
def normals_into(result: Any, k0: Any, k1: Any, number: Any, count: Any = 0) -> None:
    """Fills `result` with the normal numbers of a draw."""
    n = len(result)
    zero = np.uint64(0)
    word, other = np.empty(TILE, np.uint64), np.empty(TILE, np.uint64)
    one, two = np.empty(TILE), np.empty(TILE)
    for start in range(0, n, 2 * TILE):
        pairs = min(TILE, (n - start + 1) >> 1)
        for j in range(0, pairs, 2):
            x0, x1, x2, x3 = philox(k0, k1, np.uint64((start >> 2) + (j >> 1) + 1), zero, number, zero)
            word[j] = x0
            other[j] = x1
            word[j + 1] = x2
            other[j + 1] = x3
        for j in range(TILE):  # all of them, in SIMD: what the last block leaves over is thrown away
            one[j], two[j] = normal_pair(word[j], other[j])
        for j in range(pairs):
            result[start + 2 * j] = one[j]
            if start + 2 * j + 1 < n:
                result[start + 2 * j + 1] = two[j]


@njit(error_model="numpy")
def words_ahead(result: Any, k0: Any, k1: Any, number: Any, tag: Any, position: Any, stride: Any) -> None:
    """Fills `result` with the words of a draw from `position` on, every `stride`-th."""
    two, zero = np.uint64(2), np.uint64(0)
    block = ~(position >> two)
    x0, x1, x2, x3 = zero, zero, zero, zero
    for k in range(len(result)):
        if position >> two != block:
            block = position >> two
            x0, x1, x2, x3 = philox(k0, k1, block + np.uint64(1), zero, number, tag)
        place = position & np.uint64(3)
        result[k] = (x0 if place == zero else x1) if place < two else (x2 if place == two else x3)
        position += np.uint64(stride)


@njit(error_model="numpy")
def normals_ahead(result: Any, k0: Any, k1: Any, number: Any, tag: Any, position: Any, stride: Any) -> None:
    """Fills `result` with the normal numbers of a draw from `position` on, every `stride`-th."""
    one, zero, n, step = np.uint64(1), np.uint64(0), len(result), np.uint64(stride)
    word, other = small_array((TILE,), np.uint64), small_array((TILE,), np.uint64)
    first, second = small_array((TILE,), np.float64), small_array((TILE,), np.float64)
    shared = 1 if stride == 1 else 0  # neighbours are a pair
    odd: Any = shared & np.int64(position)
    block, (x0, x1, x2, x3) = zero, (zero, zero, zero, zero)
    for start in range(0, (n + odd + shared) >> shared, TILE):
        pairs = min(TILE, ((n + odd + shared) >> shared) - start)
        for j in range(pairs):
            pair = (position + (step << np.uint64(shared)) * np.uint64(start + j)) >> one
            if (pair >> one) + one != block:
                block = (pair >> one) + one
                x0, x1, x2, x3 = philox(k0, k1, block, zero, number, tag)
            word[j], other[j] = (x2, x3) if pair & one else (x0, x1)
        for j in range((pairs + 7) & ~7):  # in SIMD: whole registers
            first[j], second[j] = normal_pair(word[j], other[j])
        here = (start << shared) - odd
        for k in range(max(here, 0), min(here + (pairs << shared), n)):
            j = ((k + odd) >> shared) - start
            result[k] = second[j] if (position + step * np.uint64(k)) & one else first[j]


def _words_in_python(result: Any, k0: Any, k1: Any, number: Any, count: Any = 0) -> None:
    result[:] = draw_methods.words(k0, k1, number, len(result))


def _words_ahead_in_python(result: Any, k0: Any, k1: Any, number: Any, tag: Any, position: Any, stride: Any) -> None:
    places = np.uint64(position) + np.uint64(stride) * np.arange(len(result), dtype=np.uint64)
    result[:] = draw_methods.random_bits(k0, k1, number, tag, places)


def _normals_ahead_in_python(result: Any, k0: Any, k1: Any, number: Any, tag: Any, position: Any, stride: Any) -> None:
    places = np.uint64(position) + np.uint64(stride) * np.arange(len(result), dtype=np.uint64)
    result[:] = draw_methods.random_normal(k0, k1, number, tag, places)


def _normals_in_python(result: Any, k0: Any, k1: Any, number: Any, count: Any = 0) -> None:
    result[:] = draw_methods.normals(k0, k1, number, len(result))


if vars(config)["DISABLE_JIT"]:  # NUMBA_DISABLE_JIT=1: Python runs generated code
    globals().update(words_into=_words_in_python, normals_into=_normals_in_python)
    globals().update(words_ahead=_words_ahead_in_python, normals_ahead=_normals_ahead_in_python)
