"""Measures numbascan beside loops written by hand, in one run: `python benches/run.py [--json FILE] [workload …]`.

Before anything is timed, both must give the same numbers to 1e-6; a gradient beside its own forward computation must be the slope of it.
The candidates take turns; what counts is the median of their ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
from gradients import GRADIENTS
from workloads import WORKLOADS, Workload

import numbascan as ns

ROUNDS = 7
SECONDS = 0.15  # of runs of one candidate per round

LORENZ = """
import time; t0 = time.perf_counter()
import numpy as np, numbascan as ns
@ns.scan
def lorenz(y, dt, sigma, rho, beta):
    dy = np.array([sigma * (y[1] - y[0]), y[0] * (rho - y[2]) - y[1], y[0] * y[1] - beta * y[2]])
    return y + dt * dy
lorenz(outputs_info=np.ones(3), non_sequences=(1e-3, 10.0, 28.0, 8 / 3), n_steps=1000)
print(time.perf_counter() - t0)
"""

LORENZ_GRAD = """
import time; t0 = time.perf_counter()
import numpy as np, numbascan as ns
def flow(y):
    return np.array([10.0 * (y[1] - y[0]), y[0] * (28.0 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])
def step(y, h):
    k1 = flow(y)
    k2 = flow(y + h / 2 * k1)
    k3 = flow(y + h / 2 * k2)
    k4 = flow(y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
def mean(start, h):
    return ns.scan(step, outputs_info=start, non_sequences=h, n_steps=1000, return_updates=False).mean()
ns.grad(mean)(np.array([1.0, 1.1, 1.2]), 1e-3)
print(time.perf_counter() - t0)
"""


def same(a: Any, b: Any) -> bool:
    """Do two results agree to 1e-6?"""
    parts = zip(a, b, strict=True) if isinstance(a, tuple | list) else [(a, b)]
    return all(np.allclose(x, y, rtol=1e-6, atol=1e-9) for x, y in parts)


def timed(run: Callable[[], Any]) -> float:
    """Seconds of one run: the fastest of those that fill SECONDS, since other work on the machine only ever adds."""
    times: list[float] = []
    while (sum(times) < SECONDS and len(times) < 1000) or len(times) < 3:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def compared(workload: Workload) -> dict[str, Any]:
    """Times and ratio of one workload; the candidates take turns."""
    if not (workload.is_right() if workload.is_right else same(workload.ours(), workload.other())):
        raise SystemExit(f"{workload.name}: numbascan's numbers are not those of {workload.other_is}")
    rounds = [(timed(workload.ours), timed(workload.other)) for _ in range(ROUNDS)]
    ratio = statistics.median(ours / other for ours, other in rounds)
    ours, other = (statistics.median(column) for column in zip(*rounds, strict=True))
    scale = 1e9 / workload.n_steps
    return {
        "name": workload.name,
        "ours_ns": ours * scale,
        "other": workload.other_is,
        "other_ns": other * scale,
        "ratio": ratio,
        "limit": workload.limit,
        "met": ratio <= workload.limit,
    }


def limited(name: str, value: float, limit: float) -> dict[str, Any]:
    """A row of a figure that must not exceed a limit."""
    return {"name": name, "value": value, "limit": limit, "met": value <= limit}


def seconds_of(script: str, cache: str) -> float:
    """The seconds that a script prints, in a fresh process."""
    environment = {**os.environ, "NUMBASCAN_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    return float(done.stdout)


def first_calls() -> list[dict[str, Any]]:
    """Seconds from the start of Python's work to the result, in a fresh process: without a cache, and from the disk cache."""
    rows = []
    for name, script, cold_limit, warm_limit in (("lorenz", LORENZ, 2.0, 1.0), ("lorenz-grad", LORENZ_GRAD, 3.0, 1.0)):
        cold, warm = [], []
        for _ in range(3):
            with tempfile.TemporaryDirectory() as folder:
                cold.append(seconds_of(script, folder))
                warm.append(seconds_of(script, folder))
        rows.append(limited(f"{name}, first call, no cache (s)", statistics.median(cold), cold_limit))
        rows.append(limited(f"{name}, first call, disk cache (s)", statistics.median(warm), warm_limit))
    return rows


def call_overhead() -> dict[str, Any]:
    """Microseconds of a call of a compiled scan on two small arrays, beyond its single step of work."""

    @ns.scan
    def add(x, s):
        return s + x

    x, s = np.arange(6.0).reshape(2, 3) / 7, np.ones(3)
    add(sequences=x, outputs_info=s)
    runs = [timed(lambda: add(sequences=x, outputs_info=s)) for _ in range(ROUNDS)]
    value = statistics.median(runs) * 1e6
    return limited("call on two small arrays (us)", value, 10.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", help="names; all if none")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    chosen = parser.parse_args()
    machine = f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{machine}, NumPy {np.__version__}, Numba {numba.__version__}, numbascan {ns.__version__}")
    print(f"{'workload':<20}{'numbascan':>16}{'beside':>16}{'':10}{'ratio':>8}{'at most':>9}")
    rows = []
    for make in (*WORKLOADS, *GRADIENTS):
        if chosen.workloads and make.__name__.replace("_", "-") not in chosen.workloads:
            continue
        row = compared(make())
        rows.append(row)
        times = f"{row['ours_ns']:>13.2f} ns{row['other_ns']:>13.2f} ns {row['other']:<9}"
        print(f"{row['name']:<20}{times}{row['ratio']:>8.2f}{row['limit']:>9.1f}{'' if row['met'] else '  MISSED'}", flush=True)
    if not chosen.workloads:
        for row in [*first_calls(), call_overhead()]:
            rows.append(row)
            print(f"{row['name']:<40}{row['value']:>8.2f}{row['limit']:>9.1f}{'' if row['met'] else '  MISSED'}", flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
