"""Ensembles on the CPU, beside JAX's `jit` of `vmap`: `python benches/lanes.py [--jax PYTHON] [--rounds N]`.

Lorenz systems, a Runge–Kutta step of order 4 each: 4,096 over 500 steps, the mean square of their ends, and its gradient in the starts;
10,000 over 1,000 steps; and 4,096 that stop by themselves, after 1 to some 4,000 steps. Both must give the same numbers to 1e-6 (those of
ends after 500 steps: the systems are chaotic). The candidates take turns; a ratio is the median over rounds.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from timing import BENCHES, timed

import numbascan as ns

STARTS = np.random.default_rng(0).normal(size=(10_000, 3))
LENGTHS = np.ceil(np.random.default_rng(1).exponential(500.0, 4_096))
STEP, LANES, STEPS, LONG, MOST = 0.005, 4_096, 500, 1_000, 10_000
REST = 0.2  # seconds until the threads of the candidate before have come to rest
GOALS = {"gradient": 15.0, "10,000 lanes": 8.0, "until": 20.0}  # JAX's time over ours
MOST_OF_FORWARD = 6.0  # the gradient's time over that of the ends


def slope(y: Any, array: Callable[..., Any] = np.array) -> Any:
    return array([10.0 * (y[1] - y[0]), y[0] * (28.0 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])


def step(y: Any, array: Callable[..., Any] = np.array) -> Any:
    a = slope(y, array)
    b = slope(y + STEP / 2 * a, array)
    c = slope(y + STEP / 2 * b, array)
    return y + STEP / 6 * (a + 2 * b + 2 * c + slope(y + STEP * c, array))


def ours() -> dict[str, Callable[[], Any]]:
    """The workloads, by name."""

    def end(start: Any, n_steps: int) -> Any:
        return ns.scan(step, outputs_info=start, n_steps=n_steps, return_updates=False)[-1]

    def stopped(start: Any, length: Any) -> Any:
        def until(y: Any, t: Any) -> Any:
            return [step(y), t + 1.0], ns.until(t + 1.0 >= length)

        return ns.scan(until, outputs_info=[start, 0.0], n_steps=MOST, return_updates=False)[0][-1]

    ends = ns.vmap(lambda start: end(start, STEPS))
    forward = ns.jit(lambda starts: (ends(starts) ** 2).mean())
    gradient = ns.vmap(ns.grad(lambda start: (end(start, STEPS) ** 2).mean()))
    many, until = ns.vmap(lambda start: end(start, LONG)), ns.vmap(stopped)
    return {
        "forward": lambda: forward(STARTS[:LANES]),
        "gradient": lambda: gradient(STARTS[:LANES]),
        "10,000 lanes": lambda: many(STARTS),
        "until": lambda: until(STARTS[:LANES], LENGTHS),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--jax", type=Path, help="a Python interpreter that has JAX")
    chosen = parser.parse_args()
    command = [str(chosen.jax), str(BENCHES / "lanes_in_jax.py")]
    jax = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) if chosen.jax else None
    own: dict[str, list[float]] = {}
    theirs: dict[str, list[float]] = {}
    workloads = ours()
    for _ in range(chosen.rounds):
        for name, run in workloads.items():
            time.sleep(REST)
            own.setdefault(name, []).append(timed(run, 0.3))
            if jax is None:
                continue
            print(name, file=jax.stdin)
            answer = jax.stdout.readline().split()  # type: ignore[union-attr]
            theirs.setdefault(name, []).append(float(answer[0]))
            if name != "10,000 lanes":
                assert np.allclose(np.mean(np.abs(run())), float(answer[1]), rtol=1e-6), (name, answer)
    print(f"{'workload':<16}{'numbascan':>14}{'JAX':>14}{'JAX / ours':>12}{'at least':>10}")
    for name, seconds in own.items():
        line = f"{name:<16}{statistics.median(seconds) * 1e3:>11.2f} ms"
        if jax is not None:
            ratio = statistics.median(other / one for one, other in zip(seconds, theirs[name], strict=True))
            line += f"{statistics.median(theirs[name]) * 1e3:>11.2f} ms{ratio:>12.1f}{GOALS.get(name, ''):>10}"
            line += "  MISSED" * (ratio < GOALS.get(name, 0.0))
        print(line, flush=True)
    ratio = statistics.median(one / other for one, other in zip(own["gradient"], own["forward"], strict=True))
    print(f"gradient over forward {ratio:.2f}, at most {MOST_OF_FORWARD}{'  MISSED' * (ratio > MOST_OF_FORWARD)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
