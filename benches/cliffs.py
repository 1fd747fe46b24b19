"""Patterns that are easily slow, each beside a plain loop in Numba: `python benches/cliffs.py [pattern …]`.

A pattern is an entry of `PATTERNS`: our function, the loop by hand, their arguments, and the ratio that must not be exceeded. Before
anything is timed, both must give the same numbers to 1e-6. The two take turns; what counts is the median of the ratios.
`GRADIENTS` holds costs whose gradient is beside the cost itself, `DRAWS` distributions beside NumPy's Generator, `CALLS` microseconds of
calls, `COMPILED` seconds of first calls.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from timing import leaves, same, timed

import numbascan as ns
import numbascan.tensor as nt

ROUNDS = 7
SECONDS = 0.1  # of runs of one candidate per round

rng = np.random.default_rng(0)


def last(step: Callable[..., Any], start: Any, n_steps: int | None = None, sequences: Any = None, non_sequences: Any = None) -> Any:
    """The last row of a scan."""
    return ns.scan(step, sequences, start, non_sequences, n_steps, return_updates=False, keep_last=1)


# states of a few elements ---------------------------------------------------------------------------------------------

INPUTS = rng.normal(size=20_000)


def few(us: Any, x: Any) -> Any:
    return last(lambda u, x: 0.999 * x + u, x, None, us)


@njit
def few_by_hand(us, x):  # type: ignore[no-untyped-def]
    x = x.copy()
    for t in range(us.shape[0]):
        for i in range(x.shape[0]):
            x[i] = 0.999 * x[i] + us[t]
    return x


def few_tanh(us: Any, x: Any) -> Any:
    return last(lambda u, x: np.tanh(0.9 * x + u), x, None, us)


@njit
def few_tanh_by_hand(us, x):  # type: ignore[no-untyped-def]
    x = x.copy()
    for t in range(us.shape[0]):
        for i in range(x.shape[0]):
            x[i] = np.tanh(0.9 * x[i] + us[t])
    return x


# neighbours -----------------------------------------------------------------------------------------------------------

STEPS = 400
WAVE, PAIR, GRID = rng.normal(size=1_000), rng.normal(size=(2, 1_000)), rng.normal(size=(40, 40))


def roll(x: Any) -> Any:
    return last(lambda x: x + 0.1 * (np.roll(x, 1) - 2 * x + np.roll(x, -1)), x, STEPS)


def pad_wrap(x: Any) -> Any:
    def step(x: Any) -> Any:
        around = np.pad(x, 1, mode="wrap")
        return x + 0.1 * (around[:-2] - 2 * x + around[2:])

    return last(step, x, STEPS)


@njit
def ring_by_hand(x):  # type: ignore[no-untyped-def]
    x, y, n = x.copy(), np.empty_like(x), x.shape[0]
    for _ in range(STEPS):
        y[0] = x[0] + 0.1 * (x[n - 1] - 2 * x[0] + x[1])
        for i in range(1, n - 1):
            y[i] = x[i] + 0.1 * (x[i - 1] - 2 * x[i] + x[i + 1])
        y[n - 1] = x[n - 1] + 0.1 * (x[n - 2] - 2 * x[n - 1] + x[0])
        x, y = y, x
    return x


def pad_edge(x: Any) -> Any:
    def step(x: Any) -> Any:
        around = np.pad(x, 1, mode="edge")
        return x + 0.1 * (around[:-2] - 2 * x + around[2:])

    return last(step, x, STEPS)


@njit
def edge_by_hand(x):  # type: ignore[no-untyped-def]
    x, y, n = x.copy(), np.empty_like(x), x.shape[0]
    for _ in range(STEPS):
        y[0] = x[0] + 0.1 * (x[1] - x[0])
        for i in range(1, n - 1):
            y[i] = x[i] + 0.1 * (x[i - 1] - 2 * x[i] + x[i + 1])
        y[n - 1] = x[n - 1] + 0.1 * (x[n - 2] - x[n - 1])
        x, y = y, x
    return x


def pad_zeros(x: Any) -> Any:
    def step(x: Any) -> Any:
        around = np.pad(x, 1)
        return x + 0.1 * (around[:-2] - 2 * x + around[2:])

    return last(step, x, STEPS)


@njit
def zeros_by_hand(x):  # type: ignore[no-untyped-def]
    x, y, n = x.copy(), np.empty_like(x), x.shape[0]
    for _ in range(STEPS):
        y[0] = x[0] + 0.1 * (x[1] - 2 * x[0])
        for i in range(1, n - 1):
            y[i] = x[i] + 0.1 * (x[i - 1] - 2 * x[i] + x[i + 1])
        y[n - 1] = x[n - 1] + 0.1 * (x[n - 2] - 2 * x[n - 1])
        x, y = y, x
    return x


def shift_of_the_run(x: Any, shift: Any) -> Any:
    return last(lambda x: 0.5 * x + 0.4 * np.roll(x, shift), x, STEPS)


@njit
def shift_by_hand(x, shift):  # type: ignore[no-untyped-def]
    x, y, n = x.copy(), np.empty_like(x), x.shape[0]
    for _ in range(STEPS):
        for i in range(shift):
            y[i] = 0.5 * x[i] + 0.4 * x[i - shift + n]
        for i in range(shift, n):
            y[i] = 0.5 * x[i] + 0.4 * x[i - shift]
        x, y = y, x
    return x


def roll_2d(x: Any) -> Any:
    def step(x: Any) -> Any:
        return x + 0.1 * (np.roll(x, 1, 0) + np.roll(x, -1, 0) + np.roll(x, 1, 1) + np.roll(x, -1, 1) - 4 * x)

    return last(step, x, STEPS)


@njit
def torus_by_hand(x):  # type: ignore[no-untyped-def]
    x, y, (m, n) = x.copy(), np.empty_like(x), x.shape
    for _ in range(STEPS):
        for i in range(m):
            up, down = i - 1 if i > 0 else m - 1, i + 1 if i < m - 1 else 0
            y[i, 0] = x[i, 0] + 0.1 * (x[up, 0] + x[down, 0] + x[i, n - 1] + x[i, 1] - 4 * x[i, 0])
            for j in range(1, n - 1):
                y[i, j] = x[i, j] + 0.1 * (x[up, j] + x[down, j] + x[i, j - 1] + x[i, j + 1] - 4 * x[i, j])
            y[i, n - 1] = x[i, n - 1] + 0.1 * (x[up, n - 1] + x[down, n - 1] + x[i, n - 2] + x[i, 0] - 4 * x[i, n - 1])
        x, y = y, x
    return x


def backwards(x: Any) -> Any:
    return last(lambda x: 0.5 * x + 0.4 * x[::-1], x, STEPS)


@njit
def backwards_by_hand(x):  # type: ignore[no-untyped-def]
    x, y, n = x.copy(), np.empty_like(x), x.shape[0]
    for _ in range(STEPS):
        for i in range(n):
            y[i] = 0.5 * x[i] + 0.4 * x[n - 1 - i]
        x, y = y, x
    return x


def even_and_odd(x: Any) -> Any:
    def step(x: Any) -> Any:
        even, odd = x[::2], x[1::2]
        return np.concatenate([0.5 * (even + odd), 0.5 * (even - odd)])

    return last(step, x, STEPS)


@njit
def even_and_odd_by_hand(x):  # type: ignore[no-untyped-def]
    x, y, half = x.copy(), np.empty_like(x), x.shape[0] // 2
    for _ in range(STEPS):
        for i in range(half):
            y[i] = 0.5 * (x[2 * i] + x[2 * i + 1])
            y[i + half] = 0.5 * (x[2 * i] - x[2 * i + 1])
        x, y = y, x
    return x


def rows_of_a_pair(z: Any) -> Any:
    return last(lambda z: np.stack([z[0] + 0.01 * z[1], z[1] - 0.01 * z[0]]), z, STEPS)


@njit
def pair_by_hand(z):  # type: ignore[no-untyped-def]
    z, w = z.copy(), np.empty_like(z)
    for _ in range(STEPS):
        for i in range(z.shape[1]):
            w[0, i] = z[0, i] + 0.01 * z[1, i]
            w[1, i] = z[1, i] - 0.01 * z[0, i]
        z, w = w, z
    return z


# parts of a state -------------------------------------------------------------------------------------------------------

LONG, FROM, TO, ADDED = rng.normal(size=100_000), *rng.integers(0, 100_000, (2, 2_000)), rng.normal(size=2_000)
ROWS, ROW = rng.normal(size=(300, 300)), rng.integers(0, 300, 2_000)


def put(x: Any, index: Any, value: Any) -> Any:
    return nt.set_subtensor(x[index], value)


def swaps(x: Any, at: Any, other: Any) -> Any:
    return last(lambda i, j, x: put(put(x, i, x[j]), j, x[i]), x, None, [at, other])


@njit
def swaps_by_hand(x, at, other):  # type: ignore[no-untyped-def]
    x = x.copy()
    for t in range(at.shape[0]):
        x[at[t]], x[other[t]] = x[other[t]], x[at[t]]
    return x


def moves(x: Any, at: Any, other: Any) -> Any:
    return last(lambda i, j, x: put(x, i, x[j]), x, None, [at, other])


@njit
def moves_by_hand(x, at, other):  # type: ignore[no-untyped-def]
    x = x.copy()
    for t in range(at.shape[0]):
        x[at[t]] = x[other[t]]
    return x


def two_places(x: Any, us: Any) -> Any:
    return last(lambda u, x: put(put(x, 0, u), 1, u + x[0]), x, None, us)


@njit
def two_places_by_hand(x, us):  # type: ignore[no-untyped-def]
    x = x.copy()
    for t in range(us.shape[0]):
        before = x[0]
        x[0] = us[t]
        x[1] = us[t] + before
    return x


def perhaps(x: Any, us: Any, at: Any) -> Any:
    return last(lambda u, i, x: np.where(u > 0, put(x, i, u), x), x, None, [us, at])


@njit
def perhaps_by_hand(x, us, at):  # type: ignore[no-untyped-def]
    x = x.copy()
    for t in range(us.shape[0]):
        if us[t] > 0:
            x[at[t]] = us[t]
    return x


def chosen(x: Any, us: Any, at: Any) -> Any:
    return last(lambda u, i, x: nt.ifelse(u > 0, put(x, i, x[i] + u), x), x, None, [us, at])


@njit
def chosen_by_hand(x, us, at):  # type: ignore[no-untyped-def]
    x = x.copy()
    for t in range(us.shape[0]):
        if us[t] > 0:
            x[at[t]] += us[t]
    return x


def inner_sets(x: Any, us: Any, at: Any) -> Any:
    def step(u: Any, i: Any, x: Any) -> Any:
        return last(lambda k, x, u, i: put(x, i + k, 0.5 * x[i + k] + u), x, None, np.arange(5), [u, i])

    return last(step, x, None, [us, at])


@njit
def inner_sets_by_hand(x, us, at):  # type: ignore[no-untyped-def]
    x = x.copy()
    for t in range(us.shape[0]):
        for k in range(5):
            x[at[t] + k] = 0.5 * x[at[t] + k] + us[t]
    return x


def read_again(x: Any, us: Any, at: Any, to: Any) -> Any:
    def step(u: Any, i: Any, j: Any, x: Any, s: Any) -> Any:
        x = put(x, i, u)
        return x, 0.5 * s + x[j]

    return last(step, [x, 0.0], None, [us, at, to])


@njit
def read_again_by_hand(x, us, at, to):  # type: ignore[no-untyped-def]
    x, s = x.copy(), 0.0
    for t in range(us.shape[0]):
        x[at[t]] = us[t]
        s = 0.5 * s + x[to[t]]
    return x, s


def learnt(q: Any, ks: Any, us: Any) -> Any:
    """Values of four actions, that of one moved towards its reward: reinforcement learning."""
    return last(lambda k, u, q: put(q, k, q[k] + 0.3 * (u - q[k])), q, None, [ks, us])


@njit
def learnt_by_hand(q, ks, us):  # type: ignore[no-untyped-def]
    q = q.copy()
    for t in range(us.shape[0]):
        k = ks[t]
        if not -q.shape[0] <= k < q.shape[0]:
            raise IndexError
        q[k] += 0.3 * (us[t] - q[k])
    return q


def slices(x: Any, us: Any) -> Any:
    return last(lambda u, x: put(x, slice(100, 110), x[100:110] * 0.5 + u), x, None, us)


@njit
def slices_by_hand(x, us):  # type: ignore[no-untyped-def]
    x = x.copy()
    for t in range(us.shape[0]):
        for i in range(100, 110):
            x[i] = x[i] * 0.5 + us[t]
    return x


def rows(x: Any, at: Any) -> Any:
    return last(lambda i, x: put(x, i, x[i] * 0.5), x, None, at)


@njit
def rows_by_hand(x, at):  # type: ignore[no-untyped-def]
    x = x.copy()
    for t in range(at.shape[0]):
        for j in range(x.shape[1]):
            x[at[t], j] = x[at[t], j] * 0.5
    return x


# extremes and running sums ----------------------------------------------------------------------------------------------

SHORT, LINE, PULSES = rng.normal(size=16), rng.normal(size=10_000), rng.normal(size=200)
MOVES, SEEN = np.log(rng.dirichlet(np.ones(256), 256)), rng.normal(size=(50, 256))


def greatest(x: Any, us: Any) -> Any:
    return last(lambda u, x: x * 0.9 + 0.01 * np.max(x) + u, x, None, us)


@njit
def greatest_by_hand(x, us):  # type: ignore[no-untyped-def]
    x = x.copy()
    for t in range(us.shape[0]):
        most = x[0]
        for i in range(1, x.shape[0]):
            most = max(most, x[i])
        for i in range(x.shape[0]):
            x[i] = x[i] * 0.9 + 0.01 * most + us[t]
    return x


def place_of_greatest(x: Any, us: Any) -> Any:
    return last(lambda u, x: put(x, np.argmax(x), u), x, None, us)


@njit
def place_of_greatest_by_hand(x, us):  # type: ignore[no-untyped-def]
    x = x.copy()
    for t in range(us.shape[0]):
        at, most = 0, x[0]
        for i in range(1, x.shape[0]):
            if x[i] > most:
                at, most = i, x[i]
        x[at] = us[t]
    return x


def greatest_and_place(x: Any, us: Any) -> Any:
    return last(lambda u, s, x: 0.5 * s + np.max(x * u) + np.argmax(x * u), 0.0, None, us, x)


@njit
def greatest_and_place_by_hand(x, us):  # type: ignore[no-untyped-def]
    s = 0.0
    for t in range(us.shape[0]):
        at, most = 0, x[0] * us[t]
        for i in range(1, x.shape[0]):
            if x[i] * us[t] > most:
                at, most = i, x[i] * us[t]
        s = 0.5 * s + most + at
    return s


def best_path(moves: Any, seen: Any) -> Any:
    def step(e: Any, best: Any, moves: Any) -> Any:
        ways = best[:, None] + moves
        return np.max(ways, axis=0) + e, np.argmax(ways, axis=0)

    return ns.scan(step, seen, [np.zeros(256), None], moves, return_updates=False)


@njit
def best_path_by_hand(moves, seen):  # type: ignore[no-untyped-def]
    n = moves.shape[0]
    best, new = np.zeros(n), np.empty(n)
    rows, ways = np.empty(seen.shape), np.empty(seen.shape, np.int64)
    for t in range(seen.shape[0]):
        new[:], ways[t] = best[0] + moves[0], 0
        for i in range(1, n):
            for j in range(n):
                way = best[i] + moves[i, j]
                if way > new[j]:
                    new[j], ways[t, j] = way, i
        best[:] = new + seen[t]
        rows[t] = best
    return rows, ways


def best_of_rows(moves: Any, seen: Any) -> Any:
    return last(lambda e, best, moves: np.max(best + moves, axis=1) + e, np.zeros(256), None, seen, moves)


@njit
def best_of_rows_by_hand(moves, seen):  # type: ignore[no-untyped-def]
    n = moves.shape[0]
    best, new = np.zeros(n), np.empty(n)
    for t in range(seen.shape[0]):
        for i in range(n):
            new[i] = best[0] + moves[i, 0]
            for j in range(1, n):
                new[i] = max(new[i], best[j] + moves[i, j])
        best[:] = new + seen[t]
    return best


def running_sum(x: Any, us: Any) -> Any:
    return last(lambda u, x: 0.5 * x + 1e-4 * np.cumsum(x) + u, x, None, us)


@njit
def running_sum_by_hand(x, us):  # type: ignore[no-untyped-def]
    x = x.copy()
    for t in range(us.shape[0]):
        total = 0.0
        for i in range(x.shape[0]):
            total += x[i]
            x[i] = 0.5 * x[i] + 1e-4 * total + us[t]
    return x


# tables and inner loops ---------------------------------------------------------------------------------------------------

WORD, OTHER_WORD = rng.integers(0, 4, (2, 500))
SIGNAL, OTHER_SIGNAL = rng.normal(size=(2, 500))
WEIGHTS_OF, VALUES_OF = rng.integers(1, 50, 100), rng.random(100)
BINS, COLUMNS, ENTRIES, VECTOR = *rng.integers(0, 1_000, (2, 20_000)), rng.normal(size=20_000), rng.normal(size=1_000)
CDF, UNIFORM = np.cumsum(rng.dirichlet(np.ones(256), 256), 1), 0.999 * rng.random(5_000)


def edit_distance(word: Any, other: Any) -> Any:
    def row(i: Any, letter: Any, before: Any, other: Any) -> Any:
        def cell(one: Any, up: Any, corner: Any, left: Any) -> Any:
            return np.minimum(np.minimum(up + 1, left + 1), corner + (letter != one))

        return np.concatenate([[i + 1], ns.scan(cell, [other, before[1:], before[:-1]], i + 1, return_updates=False)])

    return last(row, np.arange(501), None, [np.arange(500), word], other)


@njit
def edit_distance_by_hand(word, other):  # type: ignore[no-untyped-def]
    n = other.shape[0]
    before, row = np.arange(n + 1), np.empty(n + 1, np.int64)
    for i in range(word.shape[0]):
        row[0] = i + 1
        for j in range(n):
            row[j + 1] = min(min(before[j + 1] + 1, row[j] + 1), before[j] + (word[i] != other[j]))
        before, row = row, before
    return before


def warping(signal: Any, other: Any) -> Any:
    def row(x: Any, before: Any, other: Any) -> Any:
        def cell(y: Any, up: Any, corner: Any, left: Any) -> Any:
            return np.abs(x - y) + np.minimum(np.minimum(up, left), corner)

        return np.concatenate([np.full(1, np.inf), ns.scan(cell, [other, before[1:], before[:-1]], np.inf, return_updates=False)])

    return last(row, np.concatenate([np.zeros(1), np.full(500, np.inf)]), None, signal, other)[1:]


@njit
def warping_by_hand(signal, other):  # type: ignore[no-untyped-def]
    n = other.shape[0]
    before, row = np.full(n + 1, np.inf), np.full(n + 1, np.inf)
    before[0] = 0.0
    for x in signal:
        for j in range(n):  # NaN wins, as in the step
            row[j + 1] = abs(x - other[j]) + np.minimum(np.minimum(before[j + 1], row[j]), before[j])
        before, row = row, before
        row[0] = np.inf
    return before[1:]


def knapsack(weights: Any, values: Any) -> Any:
    def step(weight: Any, value: Any, best: Any) -> Any:
        room = nt.arange(5_001)
        return np.where(room >= weight, np.maximum(best, best[np.maximum(room - weight, 0)] + value), best)

    return last(step, np.zeros(5_001), None, [weights, values])


@njit
def knapsack_by_hand(weights, values):  # type: ignore[no-untyped-def]
    best, new = np.zeros(5_001), np.empty(5_001)
    for k in range(weights.shape[0]):
        new[: weights[k]] = best[: weights[k]]
        for room in range(weights[k], 5_001):
            new[room] = max(best[room], best[room - weights[k]] + values[k])
        best, new = new, best
    return best


def histogram(bins: Any, weights: Any) -> Any:
    return last(lambda k, w, x: nt.inc_subtensor(x[k], w), np.zeros(1_000), None, [bins, weights])


@njit
def histogram_by_hand(bins, weights):  # type: ignore[no-untyped-def]
    x = np.zeros(1_000)
    for t in range(bins.shape[0]):
        if not -1_000 <= bins[t] < 1_000:
            raise IndexError("no such bin")
        x[bins[t]] += weights[t]
    return x


def coo_sum(rows: Any, columns: Any, entries: Any, x: Any) -> Any:
    return last(lambda i, j, w, y, x: nt.inc_subtensor(y[i], w * x[j]), np.zeros(1_000), None, [rows, columns, entries], x)


@njit
def coo_sum_by_hand(rows, columns, entries, x):  # type: ignore[no-untyped-def]
    y = np.zeros(1_000)
    for t in range(rows.shape[0]):
        if not (-1_000 <= rows[t] < 1_000 and -x.shape[0] <= columns[t] < x.shape[0]):
            raise IndexError("no such place")
        y[rows[t]] += entries[t] * x[columns[t]]
    return y


def chain(cdf: Any, us: Any) -> Any:
    return last(lambda u, s, cdf: np.searchsorted(cdf[s], u), 0, None, us, cdf)


@njit
def chain_by_hand(cdf, us):  # type: ignore[no-untyped-def]
    s = 0
    for u in us:
        s = np.searchsorted(cdf[s], u)
    return s


# linear algebra ---------------------------------------------------------------------------------------------------------

BANDS = 1.4 * np.eye(64) - 0.2 * (np.eye(64, k=1) + np.eye(64, k=-1))


def implicit(x: Any, a: Any) -> Any:
    return last(lambda x: np.linalg.solve(a, x + 0.1 * np.tanh(x)), x, 200)


@njit
def implicit_by_hand(x, a):  # type: ignore[no-untyped-def]
    for _ in range(200):
        x = np.linalg.solve(a, x + 0.1 * np.tanh(x))
    return x


BATCHES = {n: rng.normal(size=(2, count, n, n)) / n for count, n in ((200, 3), (200, 8), (64, 16), (16, 64))}
BATCH_OF_ROWS, RIGHT_SIDES = rng.normal(size=(64, 16)), rng.normal(size=(64, 8))
TURN = np.linalg.qr(rng.normal(size=(3, 3)))[0] / 2


def batch(a: Any, x: Any) -> Any:
    return last(lambda x, a: a @ x, x, 20, None, a)


@njit
def batch_by_hand(a, x):  # type: ignore[no-untyped-def]
    x, y = x.copy(), np.empty_like(x)
    for _ in range(20):
        for b in range(a.shape[0]):
            np.dot(a[b], x[b], y[b])
        x, y = y, x
    return x


def batch_of_rows(a: Any, x: Any) -> Any:
    return last(lambda x, a: np.einsum("bij,bj->bi", a, x), x, 20, None, a)


def turned(a: Any, x: Any, us: Any) -> Any:
    return last(lambda u, x, a: np.tanh(a @ x + u), x, None, us, a)


@njit
def turned_by_hand(a, x, us):  # type: ignore[no-untyped-def]
    x, y = x.copy(), np.empty_like(x)
    for t in range(us.shape[0]):
        for i in range(x.shape[0]):
            total = us[t]
            for j in range(x.shape[0]):
                total += a[i, j] * x[j]
            y[i] = np.tanh(total)
        x, y = y, x
    return x


def right_sides(b: Any, a: Any) -> Any:
    return last(lambda b, a: np.linalg.solve(a, b + 0.1), b, 50, None, a)


@njit
def right_sides_by_hand(b, a):  # type: ignore[no-untyped-def]
    for _ in range(50):
        b = np.linalg.solve(a, b + 0.1)
    return b


# sorting, softmax, choices, rows that are kept ------------------------------------------------------------------------

LONGER = rng.normal(size=2_000_000)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max())
    return e / e.sum()


@njit
def softmax_by_hand(x):  # type: ignore[no-untyped-def]
    greatest, total, e = x[0], 0.0, np.empty_like(x)
    for i in range(x.shape[0]):
        greatest = max(greatest, x[i])
    for i in range(x.shape[0]):
        e[i] = np.exp(x[i] - greatest)
        total += e[i]
    for i in range(x.shape[0]):
        e[i] /= total
    return e


def chosen_rows(x: Any) -> Any:
    return last(lambda k, x: nt.ifelse(k % 2 == 0, lambda: x * 0.5 + 1.0, lambda: x + 1.0), x, None, np.arange(20))


@njit
def chosen_rows_by_hand(x):  # type: ignore[no-untyped-def]
    x, y = x.copy(), np.empty_like(x)
    for k in range(20):
        if k % 2 == 0:
            for i in range(x.shape[0]):
                y[i] = x[i] * 0.5 + 1.0
        else:
            for i in range(x.shape[0]):
                y[i] = x[i] + 1.0
        x, y = y, x
    return x


def last_rows(us: Any, x: Any) -> Any:
    return ns.scan(lambda u, x: 0.9 * x + u, us, x, return_updates=False, keep_last=10)


@njit
def last_rows_by_hand(us, x):  # type: ignore[no-untyped-def]
    n, ring, rows = us.shape[0], np.empty((10, x.shape[0])), np.empty((10, x.shape[0]))
    ring[0] = x
    for t in range(n):
        for i in range(x.shape[0]):
            ring[(t + 1) % 10, i] = 0.9 * ring[t % 10, i] + us[t]
    for k in range(10):
        rows[k] = ring[(n - 9 + k) % 10]
    return rows


def tanh_of_singles(us: Any, x: Any) -> Any:
    return last(lambda u, x: np.tanh(np.float32(0.9) * x + u), x, None, us)


@njit
def tanh_of_singles_by_hand(us, x):  # type: ignore[no-untyped-def]
    x = x.copy()
    for t in range(us.shape[0]):
        for i in range(x.shape[0]):
            x[i] = np.tanh(np.float32(0.9) * x[i] + us[t])
    return x


Pattern = tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...], float]
PATTERNS: dict[str, Pattern] = {
    **{f"state of {n}": (few, few_by_hand, (INPUTS, rng.normal(size=n)), 1.3) for n in (1, 3, 8, 9, 12, 15, 16, 17, 33, 64)},
    **{f"tanh of {n}": (few_tanh, few_tanh_by_hand, (INPUTS, rng.normal(size=n)), 1.3) for n in (3, 9, 12, 16, 33)},
    "roll": (roll, ring_by_hand, (WAVE,), 1.3),
    "roll, shift of the run": (shift_of_the_run, shift_by_hand, (WAVE, 300), 1.3),
    "roll, two axes": (roll_2d, torus_by_hand, (GRID,), 1.3),
    "pad, wrap": (pad_wrap, ring_by_hand, (WAVE,), 1.3),
    "pad, edge": (pad_edge, edge_by_hand, (WAVE,), 1.3),
    "pad, zeros": (pad_zeros, zeros_by_hand, (WAVE,), 1.3),
    "backwards": (backwards, backwards_by_hand, (WAVE,), 1.3),
    "even and odd": (even_and_odd, even_and_odd_by_hand, (WAVE,), 1.3),
    "rows of a pair": (rows_of_a_pair, pair_by_hand, (PAIR,), 1.3),
    "swaps of two elements": (swaps, swaps_by_hand, (LONG, FROM, TO), 1.3),
    "an element from another": (moves, moves_by_hand, (LONG, FROM, TO), 1.3),
    "two constant places": (two_places, two_places_by_hand, (LONG, ADDED), 1.3),
    "an element, perhaps": (perhaps, perhaps_by_hand, (LONG, ADDED, FROM), 1.3),
    "an element, by ifelse": (chosen, chosen_by_hand, (LONG, ADDED, FROM), 1.3),
    "elements, by an inner loop": (inner_sets, inner_sets_by_hand, (LONG, ADDED, FROM % 90_000), 1.3),
    "one of four elements": (learnt, learnt_by_hand, (LONG[:4].copy(), np.tile(FROM % 4, 10), np.tile(ADDED, 10)), 1.3),
    "an element, read again": (read_again, read_again_by_hand, (LONG, ADDED, FROM, TO), 1.3),
    "a slice of itself": (slices, slices_by_hand, (LONG, ADDED), 1.3),
    "rows of a matrix": (rows, rows_by_hand, (ROWS, ROW), 1.3),
    "greatest of 16": (greatest, greatest_by_hand, (SHORT, INPUTS), 1.2),
    "greatest of 10,000": (greatest, greatest_by_hand, (LINE, PULSES), 1.2),
    "place of the greatest": (place_of_greatest, place_of_greatest_by_hand, (LINE, PULSES), 1.2),
    "the greatest and its place": (greatest_and_place, greatest_and_place_by_hand, (LINE, PULSES), 1.2),
    "the best path": (best_path, best_path_by_hand, (MOVES, SEEN), 1.2),
    "greatest of each row": (best_of_rows, best_of_rows_by_hand, (MOVES, SEEN), 1.2),
    "a running sum": (running_sum, running_sum_by_hand, (LINE, PULSES), 1.3),
    "edit distance": (edit_distance, edit_distance_by_hand, (WORD, OTHER_WORD), 1.3),
    "time warping": (warping, warping_by_hand, (SIGNAL, OTHER_SIGNAL), 1.3),
    "knapsack": (knapsack, knapsack_by_hand, (WEIGHTS_OF, VALUES_OF), 1.3),
    "histogram": (histogram, histogram_by_hand, (BINS, ENTRIES), 1.3),
    "sums at rows and columns": (coo_sum, coo_sum_by_hand, (BINS, COLUMNS, ENTRIES, VECTOR), 1.3),
    "a search in a row of a table": (chain, chain_by_hand, (CDF, UNIFORM), 1.3),
    **{f"batch of {n} x {n}": (batch, batch_by_hand, tuple(pair), 1.2) for n, pair in BATCHES.items()},
    "batch of rows": (batch_of_rows, batch_by_hand, (BATCHES[16][0], BATCH_OF_ROWS), 1.2),
    "tanh of 3 x 3": (turned, turned_by_hand, (TURN, SHORT[:3], INPUTS), 1.2),
    "one matrix, eight right-hand sides": (right_sides, right_sides_by_hand, (RIGHT_SIDES, BANDS), 1.2),
    "one matrix, many systems": (implicit, implicit_by_hand, (LONG[:64], BANDS), 1.2),
    **{f"sort of {n}": (lambda x: np.sort(x), lambda x: np.sort(x), (LONGER[:n],), 1.5) for n in (1_000, 100_000)},
    "sort of rows of 10": (lambda x: np.sort(x), lambda x: np.sort(x), (LONGER[:10_000].reshape(-1, 10),), 1.5),
    "argsort of 1000": (lambda x: np.argsort(x), lambda x: np.argsort(x, kind="stable"), (LONGER[:1_000],), 1.5),
    **{f"median of {n}": (lambda x: np.median(x), lambda x: np.median(x), (LONGER[:n],), 1.5) for n in (100, 10_000)},
    "softmax of 2,000,000": (softmax, softmax_by_hand, (LONGER,), 1.3),
    "a choice of rows": (chosen_rows, chosen_rows_by_hand, (LONGER[:1_000_000],), 1.3),
    "the last ten rows": (last_rows, last_rows_by_hand, (INPUTS, SHORT), 1.3),
    "tanh of 64 in float32": (tanh_of_singles, tanh_of_singles_by_hand, (INPUTS.astype("float32"), LONG[:64].astype("float32")), 0.5),
}


# gradients: times of the forward loop ---------------------------------------------------------------------------------

TABLE, TOKENS, WEIGHTS = rng.normal(size=(5_000, 16)), rng.integers(0, 5_000, 1_000), rng.normal(size=(16, 16)) / 4
SEASONS, PLACES, POSITIONS = 1 + 0.01 * rng.normal(size=365), np.arange(2_000), rng.integers(0, 100_000, (2_000, 8))


def embedded(E: Any, W: Any) -> Any:
    return (last(lambda k, h, W, E: np.tanh(h @ W + E[k]), np.zeros(16), None, TOKENS, [W, E]) ** 2).sum()


def seasonal(p: Any) -> Any:
    return last(lambda k, x, p: 0.99 * p[k % 365] * x + 0.01, 1.0, None, np.arange(20_000), p)


def ring(u: Any, x: Any) -> Any:
    return (last(lambda k, u, x: put(x, k % 5_000, u * u), x, None, [PLACES, u]) ** 2).sum()


def set_rows(u: Any, x: Any) -> Any:
    return (last(lambda k, u, x: put(x, k, u * u), x, None, [ROW, u]) ** 2).sum()


def set_positions(u: Any, x: Any) -> Any:
    return (last(lambda p, u, x: put(x, p, x[p] * u), x, None, [POSITIONS, u]) ** 2).sum()


def added_elements(u: Any, x: Any) -> Any:
    return (last(lambda k, u, x: nt.inc_subtensor(x[k % 5_000], u * x[(7 * k) % 5_000]), x, None, [PLACES, u]) ** 2).sum()


def truncated(w: Any, us: Any) -> Any:
    path = ns.scan(lambda u, x, w: np.tanh(w * x + u), us, LONG[:20], w, truncate_gradient=10, return_updates=False)
    return (path[-1] ** 2).sum()


def set_slices(u: Any, x: Any) -> Any:
    return (last(lambda k, u, x: nt.set_subtensor(x[k : k + 10], np.sin(x[k : k + 10]) * u), x, None, [PLACES % 990, u]) ** 2).sum()


def pushed(u: Any, x: Any) -> Any:
    return (last(lambda u, x: np.concatenate([x[1:], np.tanh(x[:1]) + u * x[5:6]]), x, None, u) ** 2).sum()


def diffused(x: Any) -> Any:
    def step(x: Any) -> Any:
        return np.concatenate([x[:1], np.sin(x[1:-1] + 0.1 * (x[2:] - 2 * x[1:-1] + x[:-2])), x[-1:]])

    return (last(step, x, 2_000) ** 2).sum()


def diffused_on_a_ring(x: Any) -> Any:
    return (last(lambda x: np.sin(x + 0.1 * (np.roll(x, 1) - 2 * x + np.roll(x, -1))), x, 2_000) ** 2).sum()


STARTS = rng.normal(size=(4_096, 3))


def lorenz_end(start: Any, rho: Any) -> Any:
    """500 steps of Runge and Kutta's."""

    def slope(y: Any) -> Any:
        return np.array([10.0 * (y[1] - y[0]), y[0] * (rho - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])

    def step(y: Any) -> Any:
        a = slope(y)
        b = slope(y + 0.005 * a)
        c = slope(y + 0.005 * b)
        return y + 0.01 / 6 * (a + 2 * b + 2 * c + slope(y + 0.01 * c))

    return ns.scan(step, outputs_info=start, n_steps=500, return_updates=False)[-1]


def ensemble(starts: Any) -> Any:
    return (ns.vmap(lambda start: lorenz_end(start, 28.0))(starts) ** 2).mean()


def ensemble_of_one_rate(starts: Any, rate: Any) -> Any:
    """Also with respect to a number that all lanes share."""
    return (ns.vmap(lambda start: lorenz_end(start, rate))(starts) ** 2).mean()


GRADIENTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], float]] = {
    "rows of a table": (embedded, (TABLE, WEIGHTS), 4.0),
    "elements of a season": (seasonal, (SEASONS,), 4.0),
    "a ring that is set": (ring, (ADDED, LONG[:5_000]), 4.0),
    "rows that are set": (set_rows, (rng.normal(size=(2_000, 300)), ROWS), 4.0),
    "positions that are set": (set_positions, (ADDED, LONG), 4.0),
    "elements that are added": (added_elements, (ADDED, LONG[:5_000]), 4.0),
    "slices that are set": (set_slices, (ADDED, LONG[:1_000]), 4.0),
    "a row that is pushed on": (pushed, (ADDED, LONG[:300]), 4.0),
    "neighbours, by concatenate": (diffused, (LONG[:300],), 4.0),
    "neighbours, by roll": (diffused_on_a_ring, (LONG[:300],), 4.0),
    "ten steps of 20,000": (truncated, (0.5, INPUTS), 1.3),
    "4,096 lanes of Lorenz": (ensemble, (STARTS,), 6.0),
    "lanes that share a rate": (ensemble_of_one_rate, (STARTS, 28.0), 6.0),
}


# draws: beside a Generator of NumPy in a loop by hand -----------------------------------------------------------------

STREAM, GENERATOR, DRAWN = nt.random.RandomStream(1), np.random.default_rng(1), 100_000


def drawn_by_hand(method: str, *parameters: float) -> Callable[[], Any]:
    names: dict[str, Any] = {"np": np}
    call = f"g.{method}({', '.join(map(str, parameters))})"
    text = f"def fill(g):\n    x = np.empty({DRAWN})\n    for i in range({DRAWN}):\n        x[i] = {call}\n    return x"
    exec(text, names)
    fill = njit(names["fill"])
    return lambda: fill(GENERATOR)


def drawn(method: str, *parameters: float) -> tuple[Callable[[], Any], Callable[[], Any]]:
    return ns.jit(lambda: getattr(STREAM, method)(*parameters, size=DRAWN)), drawn_by_hand(method, *parameters)


DRAWS: dict[str, tuple[str, tuple[float, ...]]] = {
    "integers": ("integers", (0, 100)),
    "beta": ("beta", (2.0, 3.0)),
    "beta of a shape below 1": ("beta", (0.5, 3.0)),
    "gamma": ("gamma", (2.0,)),
    "gamma of a shape below 1": ("gamma", (0.5,)),
    "t": ("standard_t", (5.0,)),
    "binomial": ("binomial", (100, 0.3)),
    "geometric": ("geometric", (0.2,)),
    "exponential": ("exponential", (1.0,)),
    "normal": ("normal", (0.0, 1.0)),
    "poisson": ("poisson", (4.0,)),
}


# calls: microseconds --------------------------------------------------------------------------------------------------

scaled = ns.jit(lambda x, k: last(lambda s: s * k + 1, x, 3))
CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], float]] = {
    "a float": (scaled, (LONG[:3], 0.5), 5.0),
    "a number of NumPy": (scaled, (LONG[:3], np.float64(0.5)), 5.0),
    "a strided array": (scaled, (PAIR.T[:3, 0], 0.5), 5.0),
    "a step made anew": (lambda x: ns.scan(lambda x, s: s + x, x, 0.0, return_updates=False), (LONG[:5],), 5.0),
    "30 states": (lambda *x: THIRTY(None, x, n_steps=3), tuple(rng.normal(size=30).tolist()), 5.0),
}
THIRTY = ns.scan(lambda *x: [0.5 * a + b for a, b in zip(x, x[1:] + x[:1], strict=True)])


# first calls ----------------------------------------------------------------------------------------------------------


def gradient_of_taps(n_taps: int) -> None:
    def cost(w: Any, xs: Any) -> Any:
        def step(x: Any, *before: Any) -> Any:
            return np.tanh(x + sum(w[k] * one for k, one in enumerate(before)))

        start = {"initial": np.zeros(n_taps), "taps": list(range(-n_taps, 0))}
        return (ns.scan(step, xs, start, return_updates=False) ** 2).sum()

    ns.grad(cost)(np.full(n_taps, 0.9 / n_taps), INPUTS[:200])


def statements(count: int) -> None:
    def unrolled(x: Any) -> Any:
        for _ in range(count):
            x = np.sin(x) + np.roll(x, 1)
        return x

    ns.jit(unrolled)(WAVE)


COMPILED: dict[str, tuple[Callable[[], None], float]] = {
    "gradient of 25 taps (s)": (lambda: gradient_of_taps(25), 3.0),
    "gradient of 50 taps (s)": (lambda: gradient_of_taps(50), 5.0),
    "50 statements with sin and roll (s)": (lambda: statements(50), 6.0),
}


def compared(pattern: Pattern) -> tuple[float, float, float]:
    """(our seconds, those of the loop by hand, the median of the ratios); the candidates take turns."""
    ours, by_hand, arguments, _ = pattern
    compiled = ns.jit(ours)
    if not same(*(list(leaves(candidate(*arguments))) for candidate in (compiled, by_hand))):
        raise SystemExit(f"{ours.__name__}: numbascan's numbers are not right")
    return by_turns(compiled, by_hand, arguments)


def by_turns(one: Callable[..., Any], other: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[float, float, float]:
    """(seconds of the one, of the other, the median of the ratios)."""
    rounds = [(timed(lambda: one(*arguments), SECONDS), timed(lambda: other(*arguments), SECONDS)) for _ in range(ROUNDS)]
    mine, others = (statistics.median(column) for column in zip(*rounds, strict=True))
    return mine, others, statistics.median(one / other for one, other in rounds)


def first_call(run: Callable[[], None]) -> float:
    """Seconds of a run, nothing of which has been compiled before."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NUMBASCAN_CACHE_DIR"] = folder
        start = time.perf_counter()
        run()
        return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "patterns", nargs="*", metavar="pattern", help=f"all if none: {', '.join([*PATTERNS, *GRADIENTS, *DRAWS, *CALLS, *COMPILED])}"
    )
    chosen = parser.parse_args().patterns
    print(f"{'pattern':<40}{'numbascan':>12}{'by hand':>12}{'ratio':>8}{'at most':>9}")
    for name, pattern in PATTERNS.items():
        if not chosen or name in chosen:
            mine, others, ratio = compared(pattern)
            missed = "  MISSED" * (ratio > pattern[3])
            print(f"{name:<40}{mine * 1e6:>9.1f} us{others * 1e6:>9.1f} us{ratio:>8.2f}{pattern[3]:>9.1f}{missed}", flush=True)
    for name, (cost, arguments, limit) in GRADIENTS.items():
        if not chosen or name in chosen:
            mine, forward, ratio = by_turns(ns.jit(ns.grad(cost, tuple(range(len(arguments))))), ns.jit(cost), arguments)
            missed = "  MISSED" * (ratio > limit)
            print(
                f"{name + ', gradient/forward':<40}{mine * 1e6:>9.1f} us{forward * 1e6:>9.1f} us{ratio:>8.2f}{limit:>9.1f}{missed}",
                flush=True,
            )
    for name, (method, parameters) in DRAWS.items():
        if not chosen or name in chosen:
            mine, others, ratio = by_turns(*drawn(method, *parameters), ())
            missed = "  MISSED" * (ratio > 2.0)
            print(f"{'draws, ' + name:<40}{mine * 1e6:>9.1f} us{others * 1e6:>9.1f} us{ratio:>8.2f}{2.0:>9.1f}{missed}", flush=True)
    for name, (call, arguments, limit) in CALLS.items():
        if not chosen or name in chosen:
            spent = 1e6 * statistics.median(timed(lambda call=call, arguments=arguments: call(*arguments), SECONDS) for _ in range(ROUNDS))
            print(f"{'a call with ' + name:<40}{spent:>9.1f} us{limit:>29.1f}{'  MISSED' * (spent > limit)}", flush=True)
    for name, (run, limit) in COMPILED.items():
        if not chosen or name in chosen:
            spent = first_call(run)
            print(f"{name:<40}{spent:>10.2f} s{limit:>31.1f}{'  MISSED' * (spent > limit)}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
