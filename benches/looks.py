"""What it costs that long loops look for Ctrl-C: `python benches/looks.py [loop …]`.

Each kernel runs in turns with the same text without its looks. What counts is the median of the ratios.
"""

from __future__ import annotations

import re
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import numbascan as ns
from numbascan.emit.cache import load

ROUNDS = 101
SECONDS = 0.002  # of runs of one candidate per round
LOOK = re.compile(r"\n *if (?:interrupted|stopped)(?:_at)?\(.*\):\n *(?:raise InterruptedError|return)\b")

LORENZ = (1e-3, 10.0, 28.0, 8 / 3)
rng = np.random.default_rng(0)


@ns.scan
def lorenz(y, dt, sigma, rho, beta):
    dy = np.array([sigma * (y[1] - y[0]), y[0] * (rho - y[2]) - y[1], y[0] * y[1] - beta * y[2]])
    return y + dt * dy


@ns.scan(keep_last=1)
def garch(r, h, likelihood, w, a, b):
    h = w + a * r * r + b * h
    return h, likelihood + np.log(h) + r * r / h


@ns.scan(keep_last=1)
def vector(y, u):
    return 0.9 * y + 0.1 * np.roll(y, 1) * u


@ns.scan(keep_last=1)
def newton(x, a):
    y = 0.5 * (x + a / x)
    return y, ns.until(abs(y - x) < -1.0)


def logistic(a: Any) -> Any:
    return ns.scan(lambda x: a * x * (1 - x), outputs_info=0.1, n_steps=300, return_updates=False)[-1]


lanes = ns.vmap(logistic)

# the function, arguments as it is called, and as its kernel takes them
LOOPS: dict[str, tuple[Any, tuple[Any, ...], tuple[Any, ...]]] = {
    "lorenz": (lorenz, (None, np.ones(3), LORENZ, 20_000), (20_000, np.ones(3), *LORENZ)),
    "garch": (garch, (r := rng.normal(size=20_000), [0.1, 0.0], (0.01, 0.1, 0.8)), (r, 0.1, 0.0, 0.01, 0.1, 0.8)),
    "vector of 1000": (vector, (None, y := rng.uniform(size=1000), 0.3, 500), (500, y, 0.3)),
    "vector of 20": (vector, (None, y := rng.uniform(size=20), 0.3, 5000), (5000, y, 0.3)),
    "until": (newton, (None, 1.0, 2.0, 20_000), (20_000, 1.0, 2.0)),
    "lanes": (lanes, (a := rng.uniform(3, 4, size=512),), (a,)),
}


def seconds(function: Callable[..., Any], arguments: tuple[Any, ...], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        function(*arguments)
    return (time.perf_counter() - start) / times


def main() -> None:
    for name in sys.argv[1:] or LOOPS:
        function, call, arguments = LOOPS[name]
        function(*call)
        text = function.source()
        (kernel,) = re.findall(r"^def (\w+)\(", text, re.MULTILINE)[-1:]
        looking, plain = (load(code, kernel) for code in (text, LOOK.sub("", text)))
        times = max(1, int(SECONDS / seconds(plain, arguments, 3)))
        ratios = [seconds(looking, arguments, times) / seconds(plain, arguments, times) for _ in range(ROUNDS)]
        print(f"{name:16}{statistics.median(ratios):8.4f}", flush=True)


if __name__ == "__main__":
    main()
