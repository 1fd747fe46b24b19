"""Draws beside NumPy's and JAX's: `python benches/draws.py [--jax PYTHON]` prints nanoseconds per number, and how many times ours that is.

Arrays of a million numbers, and the price of a call option by 100,000 paths of 252 days: once with all paths as one state, once as lanes
of `ns.vmap`. Every candidate's price must lie within three standard errors of that of Black & Scholes before its time counts. They take
turns; NumPy's numbers come from the same generator as ours, Philox, and paths from its fastest, PCG64, too.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from timing import BENCHES, timed

import numbascan as ns
import numbascan.tensor as nt

NUMBERS, PATHS, DAYS = 1_000_000, 100_000, 252
REST = 0.2  # seconds until the threads of the candidate before have come to rest
START, STRIKE, RATE, VOLATILITY = 105.0, 100.0, 0.05, 0.2
DRIFT, SPREAD = (RATE - VOLATILITY**2 / 2) / DAYS, VOLATILITY / math.sqrt(DAYS)
PER_RUN = {"uniform": NUMBERS, "normal": NUMBERS, "paths": PATHS * DAYS, "lanes": PATHS * DAYS}


def ours() -> dict[str, Callable[[], Any]]:
    srng = nt.random.RandomStream(1)

    def end(start, shape):
        def day(s):
            return s * np.exp(DRIFT + SPREAD * srng.normal(size=shape))

        return ns.scan(day, outputs_info=start, n_steps=DAYS, return_updates=False)[-1]

    def payoff(s):
        return nt.maximum(s - STRIKE, 0).mean()

    starts = np.full(PATHS, START)
    uniform, normal = ns.jit(lambda: srng.uniform(size=NUMBERS)), ns.jit(lambda: srng.normal(size=NUMBERS))
    paths = ns.jit(lambda starts: payoff(end(starts, PATHS)))
    lanes = ns.jit(lambda starts: payoff(ns.vmap(lambda start: end(start, ()))(starts)))
    return {"uniform": uniform, "normal": normal, "paths": lambda: paths(starts), "lanes": lambda: lanes(starts)}


def numpys(generator: np.random.Generator) -> dict[str, Callable[[], Any]]:
    def paths() -> Any:
        s = np.full(PATHS, START)
        for _ in range(DAYS):
            s = s * np.exp(DRIFT + SPREAD * generator.standard_normal(PATHS))
        return np.maximum(s - STRIKE, 0).mean()

    return {
        "uniform": lambda: generator.random(NUMBERS),
        "normal": lambda: generator.standard_normal(NUMBERS),
        "paths": paths,
        "lanes": paths,
    }


def within_three_errors(price: float) -> bool:
    """Is a price that of Black & Scholes (1973), as far as so many paths can tell?"""
    low = (math.log(START / STRIKE) + RATE - VOLATILITY**2 / 2) / VOLATILITY
    wanted = START * math.exp(RATE) * _normal_cdf(low + VOLATILITY) - STRIKE * _normal_cdf(low)
    second = START**2 * math.exp(2 * RATE + VOLATILITY**2) * _normal_cdf(low + 2 * VOLATILITY)
    second -= 2 * STRIKE * START * math.exp(RATE) * _normal_cdf(low + VOLATILITY) - STRIKE**2 * _normal_cdf(low)
    return abs(price - wanted) < 3 * math.sqrt((second - wanted**2) / PATHS)


def _normal_cdf(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jax", type=Path, help="a Python interpreter that has JAX")
    chosen = parser.parse_args()
    inside = {
        "numbascan": ours(),
        "NumPy, Philox": numpys(np.random.Generator(np.random.Philox(1))),
        "NumPy, PCG64": numpys(np.random.default_rng(1)),
    }
    command = [str(chosen.jax), str(BENCHES / "draws_in_jax.py"), *map(str, (NUMBERS, PATHS, DAYS, START, DRIFT, SPREAD))]
    jax = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) if chosen.jax else None
    print("ns per number".ljust(16), *(f"{candidate:>22}" for candidate in (*inside, *(["JAX"] if jax else []))))
    for name, numbers in PER_RUN.items():
        seconds: dict[str, list[float]] = {}
        for _ in range(chosen.rounds):
            for candidate, runs in inside.items():
                time.sleep(REST)
                price = float(np.mean(runs[name]()))
                seconds.setdefault(candidate, []).append(timed(runs[name], 0.3))
                assert name in ("uniform", "normal") or within_three_errors(price), (candidate, name, price)
            if jax:
                print(name, file=jax.stdin)
                price, took = map(float, jax.stdout.readline().split())
                seconds.setdefault("JAX", []).append(took)
                assert name in ("uniform", "normal") or within_three_errors(price), ("JAX", name, price)
        own = seconds["numbascan"]
        ratios = {candidate: statistics.median(a / b for a, b in zip(took, own, strict=True)) for candidate, took in seconds.items()}
        cells = [f"{statistics.median(took) / numbers * 1e9:10.2f} ({ratios[candidate]:5.2f} x)" for candidate, took in seconds.items()]
        print(name.ljust(16), *(f"{cell:>22}" for cell in cells), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
