"""Patterns that are easily slow, each beside a plain loop in Numba: `python benches/cliffs.py [pattern …]`.

A pattern is an entry of `PATTERNS`: our function, the loop by hand, their arguments, and the ratio that must not be exceeded. Before
anything is timed, both must give the same numbers to 1e-6. The two take turns; what counts is the median of the ratios.
`COMPILED` holds seconds of first calls.
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

ROUNDS = 7
SECONDS = 0.1  # of runs of one candidate per round

rng = np.random.default_rng(0)


def last(step: Callable[..., Any], start: Any, n_steps: int | None = None, sequences: Any = None) -> Any:
    """The last row of a scan."""
    return ns.scan(step, sequences, start, n_steps=n_steps, return_updates=False, keep_last=1)


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
}


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
    rounds = [(timed(lambda: compiled(*arguments), SECONDS), timed(lambda: by_hand(*arguments), SECONDS)) for _ in range(ROUNDS)]
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
    parser.add_argument("patterns", nargs="*", metavar="pattern", help=f"all if none: {', '.join([*PATTERNS, *COMPILED])}")
    chosen = parser.parse_args().patterns
    print(f"{'pattern':<40}{'numbascan':>12}{'by hand':>12}{'ratio':>8}{'at most':>9}")
    for name, pattern in PATTERNS.items():
        if not chosen or name in chosen:
            mine, others, ratio = compared(pattern)
            missed = "  MISSED" * (ratio > pattern[3])
            print(f"{name:<40}{mine * 1e6:>9.1f} us{others * 1e6:>9.1f} us{ratio:>8.2f}{pattern[3]:>9.1f}{missed}", flush=True)
    for name, (run, limit) in COMPILED.items():
        if not chosen or name in chosen:
            spent = first_call(run)
            print(f"{name:<40}{spent:>10.2f} s{limit:>31.1f}{'  MISSED' * (spent > limit)}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
