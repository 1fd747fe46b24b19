"""Patterns that are easily slow, each beside a plain loop in Numba: `python benches/cliffs.py [pattern …]`.

A pattern is an entry of `PATTERNS`: our function, the loop by hand, their arguments, and the ratio that must not be exceeded. Before
anything is timed, both must give the same numbers to 1e-6. The two take turns; what counts is the median of the ratios.
`GRADIENTS` holds costs whose gradient is beside the cost itself, `CALLS` microseconds of calls, `COMPILED` seconds of first calls.
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


# linear algebra ---------------------------------------------------------------------------------------------------------

BANDS = 1.4 * np.eye(64) - 0.2 * (np.eye(64, k=1) + np.eye(64, k=-1))


def implicit(x: Any, a: Any) -> Any:
    return last(lambda x: np.linalg.solve(a, x + 0.1 * np.tanh(x)), x, 200)


@njit
def implicit_by_hand(x, a):  # type: ignore[no-untyped-def]
    for _ in range(200):
        x = np.linalg.solve(a, x + 0.1 * np.tanh(x))
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
    "an element, read again": (read_again, read_again_by_hand, (LONG, ADDED, FROM, TO), 1.3),
    "a slice of itself": (slices, slices_by_hand, (LONG, ADDED), 1.3),
    "rows of a matrix": (rows, rows_by_hand, (ROWS, ROW), 1.3),
    "one matrix, many systems": (implicit, implicit_by_hand, (LONG[:64], BANDS), 1.2),
}


# gradients: times of the forward loop ---------------------------------------------------------------------------------

TABLE, TOKENS, WEIGHTS = rng.normal(size=(5_000, 16)), rng.integers(0, 5_000, 1_000), rng.normal(size=(16, 16)) / 4
SEASONS, PLACES = 1 + 0.01 * rng.normal(size=365), np.arange(2_000)


def embedded(E: Any, W: Any) -> Any:
    return (last(lambda k, h, W, E: np.tanh(h @ W + E[k]), np.zeros(16), None, TOKENS, [W, E]) ** 2).sum()


def seasonal(p: Any) -> Any:
    return last(lambda k, x, p: 0.99 * p[k % 365] * x + 0.01, 1.0, None, np.arange(20_000), p)


def ring(u: Any, x: Any) -> Any:
    return (last(lambda k, u, x: put(x, k % 5_000, u * u), x, None, [PLACES, u]) ** 2).sum()


def set_rows(u: Any, x: Any) -> Any:
    return (last(lambda k, u, x: put(x, k, u * u), x, None, [ROW, u]) ** 2).sum()


def added_elements(u: Any, x: Any) -> Any:
    return (last(lambda k, u, x: nt.inc_subtensor(x[k % 5_000], u * x[(7 * k) % 5_000]), x, None, [PLACES, u]) ** 2).sum()


GRADIENTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], float]] = {
    "rows of a table": (embedded, (TABLE, WEIGHTS), 4.0),
    "elements of a season": (seasonal, (SEASONS,), 4.0),
    "a ring that is set": (ring, (ADDED, LONG[:5_000]), 4.0),
    "rows that are set": (set_rows, (rng.normal(size=(2_000, 300)), ROWS), 4.0),
    "elements that are added": (added_elements, (ADDED, LONG[:5_000]), 4.0),
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
        "patterns", nargs="*", metavar="pattern", help=f"all if none: {', '.join([*PATTERNS, *GRADIENTS, *CALLS, *COMPILED])}"
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
