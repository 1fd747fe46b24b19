"""Measures numbascan beside loops written by hand, in one run: `python benches/run.py [--json FILE] [workload …]`.

Before anything is timed, both must give the same numbers to 1e-6. The candidates take turns; what counts is the median of their ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hand
import numba
import numpy as np
import ours
from data import CALL, inputs, n_steps
from timing import fresh, leaves, same, timed

import numbascan as ns

ROUNDS = 7
SECONDS = 0.15  # of runs of one candidate per round

# the ratios that must not be exceeded
BY_HAND = {
    "cumsum": 1.3,
    "power": 1.3,
    "lorenz": 1.3,
    "garch": 1.3,
    "heat1d": 1.3,
    "kalman": 2.0,
    "rnn": 2.0,
    "lorenz-grad": 1.5,
    "garch-grad": 1.5,
    "power-grad": 1.5,
}
FORWARD = {"kalman-grad": 4.0, "hmm-grad": 4.0, "rnn-grad": 4.0, "lstm-grad": 4.0}  # beside numbascan's computation of the same cost
STORED = {"lorenz-checkpointed": 6.0}  # the gradient in 10 MB beside the one that stores all
FRESH = {"lorenz": (2.0, 1.0), "lorenz-grad": (3.0, 1.0)}  # seconds without a cache, and from the disk cache
CALL_LIMIT = 10.0  # microseconds

Run = Callable[[], Any]


def checkpointed() -> tuple[Run, Run]:
    start, n = np.array([1.0, 1.1, 1.2]), 1_000_000

    def gradient(**options: Any) -> Run:
        slope = ns.grad(lambda start, h: ours.lorenz(start, h, n, **options).mean())
        return lambda: slope(start, 1e-5)

    return gradient(checkpoint=ns.Checkpoint(memory="10MB")), gradient()


def pair(name: str) -> tuple[Run, Run, str, float]:
    """Our workload, what it is measured beside, what that is, and the limit. Raises SystemExit where the numbers are not right."""
    if name in STORED:
        run, other = right = checkpointed()
        what, limit = "stored", STORED[name]
    else:
        arguments = inputs(name)
        run, other = right = ours.call(name, arguments), hand.call(name, arguments)
        what, limit = "by hand", BY_HAND.get(name, 0.0)
        if name in FORWARD:
            forward = ns.jit(ours.cost(name))
            other, what, limit = lambda: forward(*arguments), "forward", FORWARD[name]
    if not same(*(list(leaves(candidate())) for candidate in right)):
        raise SystemExit(f"{name}: numbascan's numbers are not right")
    return run, other, what, limit


def compared(name: str) -> dict[str, Any]:
    """Times and ratio of one workload; the candidates take turns."""
    run, other, what, limit = pair(name)
    rounds = [(timed(run, SECONDS), timed(other, SECONDS)) for _ in range(ROUNDS)]
    ratio = statistics.median(ours / other for ours, other in rounds)
    ours_s, other_s = (statistics.median(column) for column in zip(*rounds, strict=True))
    scale = 1e9 / (1_000_000 if name in STORED else n_steps(name))
    row = {"name": name, "ours_ns": ours_s * scale, "other": what, "other_ns": other_s * scale, "ratio": ratio}
    return {**row, "limit": limit, "met": ratio <= limit}


def limited(name: str, value: float, limit: float) -> dict[str, Any]:
    """A row of a figure that must not exceed a limit."""
    return {"name": name, "value": value, "limit": limit, "met": value <= limit}


def first_calls() -> list[dict[str, Any]]:
    """Seconds of a fresh process to the first result: without a cache, and from the disk cache."""
    rows = []
    for name, (cold_limit, warm_limit) in FRESH.items():
        cold, warm = [], []
        for _ in range(3):
            with tempfile.TemporaryDirectory() as folder:
                cold.append(fresh(sys.executable, "ours", name, {"NUMBASCAN_CACHE_DIR": folder}))
                warm.append(fresh(sys.executable, "ours", name, {"NUMBASCAN_CACHE_DIR": folder}))
        rows.append(limited(f"{name}, first call, no cache (s)", statistics.median(cold), cold_limit))
        rows.append(limited(f"{name}, first call, disk cache (s)", statistics.median(warm), warm_limit))
    return rows


def call_overhead() -> dict[str, Any]:
    """Microseconds of a call on two small arrays, which has next to nothing to do."""
    run = ours.call(CALL, inputs(CALL))
    return limited("call on two small arrays (us)", statistics.median(timed(run, SECONDS) for _ in range(ROUNDS)) * 1e6, CALL_LIMIT)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*BY_HAND, *FORWARD, *STORED]
    parser.add_argument("workloads", nargs="*", choices=[[], *names], metavar="workload", help=f"all if none: {', '.join(names)}")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    chosen = parser.parse_args()
    machine = f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{machine}, NumPy {np.__version__}, Numba {numba.__version__}, numbascan {ns.__version__}")
    print(f"{'workload':<20}{'numbascan':>16}{'beside':>16}{'':10}{'ratio':>8}{'at most':>9}")
    rows = []
    for name in chosen.workloads or names:
        row = compared(name)
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
