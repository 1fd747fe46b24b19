"""Dicts whose keys are numbers, at a key that only the run knows; elements of lists that are nests, at a place that only the run knows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns

WEIGHTS = {-1: 0.5, 0: 1.0, 1: 2.0}


def looked_up(k: Any) -> Any:
    return WEIGHTS[k] * 2 + {0: 1, 1: 5, -1: 7}[k]


def otherwise(k: Any) -> Any:
    return WEIGHTS.get(k, 9.0)


def by_floats(k: Any) -> Any:
    return {0.5: 1, 1.0: 2, 0.0: 3}[k / 2]


def by_truth(k: Any) -> Any:
    a, b = {True: (1, 2.5), False: (3, 4.5)}[k > 0]
    return a + 10 * b


def of_tuples(k: Any) -> Any:
    return {0: (0, 1), 1: (1, 0)}[k] + (7,)


def of_arrays(k: Any) -> Any:
    return {0: np.arange(3.0), 1: np.ones(3)}[k] * 2


def metropolis(n: Any) -> Any:
    boltzmann = {-8: math.exp(-3.2), -4: 0.2, 0: 1.0, 4: 0.3, 8: 0.1}
    total = 0.0
    for k in range(n):
        total += boltzmann[(k * 4) % 20 - 8] * k
    return total


def counted(n: Any) -> Any:
    counts = {0: 0, 1: 0, 2: 0}
    for k in range(n):
        counts[(k * k) % 3] += 1
        counts[2] = counts.get(k, 3) + counts[1]
    return counts, max(counts.values())


def in_a_branch(n: Any) -> Any:
    seen = {1: 0.0, 2: 0.0}
    if n > 0:
        seen[n] += 5
    else:
        seen[2] += n
    return seen


def remembered(x: Any) -> Any:
    known, total = {}, 0.0
    for k in range(40):
        if k % 5 not in known:
            known[k % 5] = x * k
        total += known[k % 5]
    return total


@pytest.mark.parametrize(
    ("f", "keys"),
    [
        (looked_up, [0, 1, -1, 1.0, True, np.int8(1), np.float64(0)]),
        (otherwise, [1, 5, 0.5, -1.0]),
        (by_floats, [0, 1, 2]),
        (by_truth, [1, -1]),
        (of_tuples, [0, 1]),
        (of_arrays, [0, 1]),
        (metropolis, [0, 3, 20]),
        (counted, [0, 1, 7, 20]),
        (in_a_branch, [1, 2, -3]),
        (remembered, [2.0]),
    ],
)
def test_keys_that_the_run_knows(f: Callable[[Any], Any], keys: list[Any]) -> None:
    compiled = ns.jit(f)
    for key in keys:
        found, expected = compiled(key), f(key)
        assert type(found) is type(expected) or isinstance(found, np.ndarray)
        np.testing.assert_equal(found, expected)


@pytest.mark.parametrize(("f", "key"), [(looked_up, 2), (looked_up, 0.5), (by_floats, math.nan), (in_a_branch, 5), (looked_up, 2**60)])
def test_a_key_that_is_not_there_is_a_key_error(f: Callable[[Any], Any], key: Any) -> None:
    with pytest.raises(KeyError, match="no key of the dict is equal"):
        ns.jit(f)(key)


def test_gradients_and_lanes() -> None:
    def f(x: Any) -> Any:
        return WEIGHTS[1] * x + {0: x * x, 1: x**3}[int(x > 0)]

    assert ns.grad(f)(2.0) == 14.0
    assert ns.grad(f)(-2.0) == -2.0
    np.testing.assert_array_equal(ns.vmap(looked_up)(np.array([0, 1, -1, 0])), [looked_up(k) for k in (0, 1, -1, 0)])


def test_other_keys_are_refused() -> None:
    with pytest.raises(ns.TracedKeyError):  # it may be a new one
        ns.jit(lambda k: {1: 2.0}.__setitem__(k, 3.0))(1)
    for keys in ({}, {"a": 1}, {1: 2, "a": 3}, {(0, 1): 2}, {math.nan: 1.0}, {2**60: 1}):
        with pytest.raises(ns.TracedKeyError):
            ns.jit(lambda k, keys=keys: keys[k])(1)
    with pytest.raises(ns.TracedKeyError):
        ns.jit(lambda k: {k: 1})(1)


def test_what_is_one_of_several_may_not_be_written() -> None:
    def array(k: Any) -> Any:
        several = {0: np.arange(3.0), 1: np.ones(3)}
        x = several[k]
        x[0] = 5
        return several[1]

    def of_list(k: Any) -> Any:
        rows = [[1, 2], [3, 4]]
        row = rows[k]
        row[0] = 5
        return rows[1]

    def the_list(k: Any) -> Any:
        rows = [[1, 2], [3, 4]]
        row = rows[k]
        rows[1][0] = 5
        return row

    def of_tuples(k: Any) -> Any:
        pairs = [([1.0], 2.0), ([3.0], 4.0)]
        first, _ = pairs[k]
        first[0] = 5.0
        return pairs[1][0]

    def in_a_tuple(k: Any) -> Any:
        rows = ([1, 2], [3, 4])
        row = rows[k]
        rows[0][0] = 5
        return row

    for f in (array, of_list, the_list, of_tuples, in_a_tuple):
        with pytest.raises((TypeError, ValueError), match="copy it first"):
            ns.jit(f)(1)


def test_elements_that_are_tuples_and_lists_stay_such() -> None:
    def tuples(k: Any) -> Any:
        moves = [(0, 1), (2, 3)]
        step = moves[k]
        return step + step, len(step)

    def lists(k: Any) -> Any:
        rows = [[1, 2.5], [3, 4.5]]
        return rows[k] + [7], sum(rows[k]), rows[k][1], len(rows[k])

    def nests(k: Any) -> Any:
        (a, b), c = (((1, 2), 3.0), ((4, 5), 6.0))[k]
        return a + 10 * b + 100 * c

    for f in (tuples, lists, nests):
        for k in (0, 1, -1):
            np.testing.assert_equal(ns.jit(f)(k), f(k))
    with pytest.raises(TypeError, match="of several kinds"):
        ns.jit(lambda k: [(0, 1), (2, 3, 4)][k])(1)


TABLE = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]
LONG = [[float(i * j % 7) for j in range(100)] for i in range(4)]


def rows_in_a_loop(n: Any) -> Any:
    total, row, best = 0.0, TABLE[0], TABLE[1]
    for i in range(n):
        total += row[1]
        row = TABLE[i % 3]
        if row[0] > best[0]:
            best = row
    return total, best[2]


def rows_of_a_choice(k: Any) -> Any:
    row = TABLE[k] if k > 0 else TABLE[k + 1]
    return row[2], len(row), row * 2, row == TABLE[1]


def functions_of_rows(k: Any) -> Any:
    row = TABLE[k]
    return max(row), sum(row), sorted(row), np.sum(row), np.array(row) * 2, np.dot(row, TABLE[0]), 5.0 in row, row[1:], [*row]


def loops_over_rows(k: Any) -> Any:
    total = 0.0
    for j, v in enumerate(TABLE[k]):
        total += j * v
    for v, w in zip(TABLE[k], TABLE[0], strict=True):
        total += v * w
    return total + sum([v * v for v in TABLE[k]])


def written_into_an_array(k: Any) -> Any:
    y = np.zeros(3)
    y[:] = TABLE[k]
    y += TABLE[k]
    return y


def turns(n: Any) -> Any:
    directions = [(0, 1), (1, 0), (0, -1), (-1, 0)]
    x, y, step = 0, 0, directions[0]
    for i in range(n):
        x, y = x + step[0], y + step[1]
        if i % 3 == 0:
            step = directions[i % 4]
    return x, y


def long_rows(k: Any) -> Any:
    total = 0.0
    for j in range(100):
        total += LONG[k][j] * j
    return total, max(LONG[k]), LONG[k][99 - k]


@pytest.mark.parametrize(
    "f", [rows_in_a_loop, rows_of_a_choice, functions_of_rows, loops_over_rows, written_into_an_array, turns, long_rows]
)
def test_rows_of_tables(f: Callable[[Any], Any]) -> None:
    for k in (0, 1, 2) if f is not turns else (0, 5, 30):
        np.testing.assert_equal(ns.jit(f)(k), f(k))
