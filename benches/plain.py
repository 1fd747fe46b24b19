"""Plain Python beside Numba, the same text in both: `python benches/plain.py [name …]`; names as in plain_data.py.

Both have one core, and must give the same numbers to 1e-6. They take turns; what counts is the median of the ratios. A first call is the
processor's seconds without a cache on the disk, in a process that has compiled a small function before. A gradient stands beside the run
of its function.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from peers import Worker, beside, results_of
from plain_data import DIFFERENTIATED, PROGRAMS

MODULES = {"numbascan": "plain_ours", "njit": "plain_njit"}
SMALL = "largest_sum"  # compiled first, so that no first call is that of a process


def measured(name: str, workers: dict[str, Worker], rounds: int, seconds: float) -> dict[str, Any]:
    """Microseconds of a run, seconds of the first call, the median ratio of our time to njit's, and the gradient's time to the run's."""
    row = beside("njit", name, workers, rounds, seconds)
    if name in DIFFERENTIATED:
        ours = {"numbascan": workers["numbascan"]}
        _, faults = results_of(f"{name}-grad", ours)
        if faults:
            raise SystemExit(f"{name}-grad: {faults}")
        row["gradient_first_s"] = ours["numbascan"].ask(cpu=True)["cpu"]
        gradient = statistics.median(ours["numbascan"].ask(time=seconds)["best"] for _ in range(rounds))
        row["gradient"] = gradient * 1e6 / row["us"]["numbascan"]
    return row


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown, for docs/performance.md, and their means."""
    lines = [
        "| program | µs, ours | njit | ours ÷ njit | first call, ours | njit | gradient ÷ run | its first call |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in sorted(rows, key=lambda row: -row["ratio"]):
        us, first = row["us"], row["first_s"]
        gradient = f"{row['gradient']:.1f} | {row['gradient_first_s']:.2f}" if "gradient" in row else " | "
        lines.append(
            f"| {row['name']} | {us['numbascan']:.0f} | {us['njit']:.0f} | {row['ratio']:.2f} "
            f"| {first['numbascan']:.2f} | {first['njit']:.2f} | {gradient} |"
        )
    run = statistics.geometric_mean(row["ratio"] for row in rows)
    first_call = statistics.geometric_mean(row["first_s"]["numbascan"] / row["first_s"]["njit"] for row in rows)
    gradients = [row["gradient"] for row in rows if "gradient" in row]
    gradient = f", gradients {statistics.geometric_mean(gradients):.2f} × their runs" if gradients else ""
    return "\n".join([*lines, "", f"Geometric means: runs {run:.2f}, first calls {first_call:.2f} × njit's{gradient}."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="all if none")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.1, help="of runs of one candidate per round")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    chosen = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rows = []
    with tempfile.TemporaryDirectory() as empty:
        os.environ |= {"NUMBASCAN_CACHE_DIR": empty, "OPENBLAS_NUM_THREADS": "1"}
        workers = {candidate: Worker(sys.executable, module) for candidate, module in MODULES.items()}
        results_of(SMALL, workers)
        for name in chosen.names or PROGRAMS:
            rows.append(measured(name, workers, chosen.rounds, chosen.seconds))
            print(json.dumps(rows[-1]), flush=True)
    if chosen.json:
        versions = {candidate: worker.versions for candidate, worker in workers.items()}
        chosen.json.write_text(json.dumps({"versions": versions, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    print(table(rows))


if __name__ == "__main__":
    main()
