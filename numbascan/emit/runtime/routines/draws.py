"""Draws of many numbers, for njit: each Philox block is computed once for all its words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import config, njit

from ....ops import draw_methods
from ..intrinsics import small_array
from ..random import is_outside, normal_inside, normal_outside, normal_pair, philox, tail_of, turned_to

TILE = 64  # words of a tile, which stays in the first cache: Philox is no SIMD, what follows is


@njit(error_model="numpy")
def words_ahead(result: Any, k0: Any, k1: Any, number: Any, tag: Any, position: Any, stride: Any) -> None:
    """Fills `result` with the words of a draw from `position` on, every `stride`-th."""
    two, zero, n = np.uint64(2), np.uint64(0), len(result)
    before: Any = -np.int64(position) & 3  # up to the next whole block
    whole = (n - before) & ~3 if stride == 1 and n > before else 0
    first = ((position + np.uint64(before)) >> two) + np.uint64(1)
    for k in range(before, before + whole, 4):
        x0, x1, x2, x3 = philox(k0, k1, first, zero, number, tag)
        result[k], result[k + 1], result[k + 2], result[k + 3] = x0, x1, x2, x3
        first += np.uint64(1)
    block = ~(position >> two)
    x0, x1, x2, x3 = zero, zero, zero, zero
    for i in range(n - whole):
        k = i if i < before else i + whole
        at = position + np.uint64(stride) * np.uint64(k)
        if at >> two != block:
            block = at >> two
            x0, x1, x2, x3 = philox(k0, k1, block + np.uint64(1), zero, number, tag)
        place = at & np.uint64(3)
        result[k] = (x0 if place == zero else x1) if place < two else (x2 if place == two else x3)


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


@njit(error_model="numpy")
def single_normals_ahead(result: Any, k0: Any, k1: Any, number: Any, tag: Any, position: Any, stride: Any) -> None:
    """Fills `result` with the normal numbers of a draw, one for each word, from `position` on, every `stride`-th.

    All numbers are computed by the formula for the middle of the distribution, then those in the tails again, gathered, by theirs:
    7 -> 3.5 ns a number.
    """
    word, place = small_array((TILE,), np.uint64), small_array((TILE,), np.int64)
    tail, size = small_array((TILE,), np.float64), small_array((TILE,), np.float64)
    for start in range(0, len(result), TILE):
        count = min(TILE, len(result) - start)
        words_ahead(word[:count], k0, k1, number, tag, position + np.uint64(stride) * np.uint64(start), stride)
        for j in range((count + 7) & ~7):  # in SIMD: whole registers
            tail[j] = tail_of(word[j])
            size[j] = normal_inside(tail[j])
        outside: Any = 0
        for j in range(count):
            place[outside], tail[outside] = j, tail[j]  # outside <= j
            outside += np.int64(is_outside(tail[j]))
        for k in range((outside + 7) & ~7):
            tail[k] = normal_outside(tail[k])
        for k in range(outside):
            size[place[k]] = tail[k]
        for j in range(count):
            result[start + j] = turned_to(word[j], size[j])


@njit
def words_into(result: Any, k0: Any, k1: Any, number: Any, count: Any = 0) -> None:
    """Fills `result` with the words of a draw."""
    words_ahead(result, k0, k1, number, np.uint64(0), np.uint64(0), 1)


@njit
def normals_into(result: Any, k0: Any, k1: Any, number: Any, count: Any = 0) -> None:
    """Fills `result` with the normal numbers of a draw."""
    normals_ahead(result, k0, k1, number, np.uint64(0), np.uint64(0), 1)


def _in_python(method: Any) -> Any:
    """A routine in NumPy's arithmetic, without warnings, since words are meant to overflow."""

    def ahead(result: Any, k0: Any, k1: Any, number: Any, tag: Any, position: Any, stride: Any) -> None:
        with np.errstate(over="ignore"):
            result[:] = method(k0, k1, number, tag, np.uint64(position) + np.uint64(stride) * np.arange(len(result), dtype=np.uint64))

    return ahead


if vars(config)["DISABLE_JIT"]:  # NUMBA_DISABLE_JIT=1: Python runs generated code
    globals().update(words_ahead=_in_python(draw_methods.random_bits), normals_ahead=_in_python(draw_methods.random_normal))
    globals().update(single_normals_ahead=_in_python(lambda *operands: draw_methods.normal_of(draw_methods.random_bits(*operands))))
