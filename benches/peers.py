"""Measures numbascan beside loops by hand, JAX and PyTensor, and writes docs/performance.md: `python benches/peers.py [workload …]`.

Each candidate has a process of its own, since PyTensor holds Numba at an older version: `--jax` and `--pytensor` name their interpreters.
All get the same inputs, and must give the same numbers to 1e-6 before anything is timed. They take turns; what counts is the
median of their ratios.
With names of workloads, the figures of these are printed and nothing is written.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import page
from data import CALL, NAMES, n_steps
from timing import BENCHES, fresh, same

MODULES = {"numbascan": "ours", "by hand": "hand", "JAX": "in_jax", "PyTensor": "in_pytensor"}
REST = 0.2  # seconds before a turn: the threads of the candidate before wait for more work, busily, for a while
FRESH = ("lorenz", "garch-grad", "kalman")
FRESH_BY = ("numbascan", "by hand", "JAX")  # the loop by hand has no cache


class Failure(Exception):
    """What a candidate says that it cannot do."""


class Worker:
    """A candidate in its own process; see worker.py for what it answers."""

    def __init__(self, python: str, module: str) -> None:
        command = [python, str(BENCHES / "worker.py"), module]
        self._module = module
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.versions: dict[str, str] = self._answer()

    def ask(self, **request: Any) -> dict[str, Any]:
        print(json.dumps(request), file=self._process.stdin)
        answer = self._answer()
        if "error" in answer:
            raise Failure(answer["error"])
        return answer

    def _answer(self) -> dict[str, Any]:
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._module}: the process ended with code {self._process.wait()}")
        return json.loads(line)


def results_of(name: str, workers: dict[str, Worker]) -> tuple[dict[str, list[np.ndarray]], dict[str, str]]:
    """What each candidate computes, and what is wrong with those that compute nothing."""
    results, faults = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for candidate, worker in workers.items():
            path = Path(folder, f"{candidate}.npz")
            try:
                worker.ask(prepare=name, save=str(path))
            except Failure as failure:
                faults[candidate] = str(failure)
            else:
                with np.load(path) as arrays:
                    results[candidate] = list(arrays.values())
    return results, faults


def measured(name: str, workers: dict[str, Worker], rounds: int, seconds: float) -> dict[str, Any]:
    """Nanoseconds per step of each candidate that is right, and how many times numbascan's time that is."""
    results, faults = results_of(name, workers)
    faults |= {candidate: "other numbers" for candidate, arrays in results.items() if not same(arrays, results["by hand"])}
    if "numbascan" in faults:
        raise SystemExit(f"{name}: {faults['numbascan']}")
    able = [candidate for candidate in workers if candidate not in faults]
    times: dict[str, list[float]] = {candidate: [] for candidate in able}
    for k in range(rounds):
        for candidate in able[k % len(able) :] + able[: k % len(able)]:
            time.sleep(REST)
            times[candidate].append(workers[candidate].ask(time=seconds)["best"])
    return {
        "name": name,
        "ns": {candidate: statistics.median(times[candidate]) * 1e9 / n_steps(name) for candidate in able},
        "times_ours": {
            candidate: statistics.median(its / ours for its, ours in zip(times[candidate], times["numbascan"], strict=True))
            for candidate in able
            if candidate != "numbascan"
        },
        "faults": faults,
    }


def beside(peer: str, name: str, workers: dict[str, Worker], rounds: int, seconds: float) -> dict[str, Any]:
    """Microseconds of a run, the processor's seconds of the first call, and the median ratio of our time to the peer's."""
    results, faults = results_of(name, workers)
    if faults or not same(*results.values()):
        raise SystemExit(f"{name}: {faults or 'other numbers'}")
    first = {candidate: worker.ask(cpu=True)["cpu"] for candidate, worker in workers.items()}
    turns = [{candidate: worker.ask(time=seconds)["best"] for candidate, worker in workers.items()} for _ in range(rounds)]
    return {
        "name": name,
        "us": {candidate: statistics.median(turn[candidate] for turn in turns) * 1e6 for candidate in workers},
        "ratio": statistics.median(turn["numbascan"] / turn[peer] for turn in turns),
        "first_s": first,
    }


def fresh_starts(pythons: dict[str, str], rounds: int) -> list[dict[str, Any]]:
    """Seconds of a whole process, from the start of Python past the first result: without a cache, and with a warm one on disk."""
    rows = []
    with tempfile.TemporaryDirectory() as warm:
        kept = {
            "NUMBASCAN_CACHE_DIR": warm,
            "JAX_COMPILATION_CACHE_DIR": warm,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
        for name in FRESH:
            seconds: dict[tuple[str, str], list[float]] = {}
            for candidate in ("numbascan", "JAX"):  # fills the caches, and the system's own
                fresh(pythons[candidate], MODULES[candidate], name, kept)
            for _ in range(rounds):
                with tempfile.TemporaryDirectory() as empty:
                    nothing = {"NUMBASCAN_CACHE_DIR": empty, "JAX_ENABLE_COMPILATION_CACHE": "false"}
                    for cache, environment, candidates in (("none", nothing, FRESH_BY), ("warm", kept, ("numbascan", "JAX"))):
                        for candidate in candidates:
                            took = fresh(pythons[candidate], MODULES[candidate], name, environment)
                            seconds.setdefault((cache, candidate), []).append(took)
            for cache in ("none", "warm"):
                ratio = statistics.median(its / own for its, own in zip(seconds[cache, "JAX"], seconds[cache, "numbascan"], strict=True))
                medians = {candidate: statistics.median(took) for (its, candidate), took in seconds.items() if its == cache}
                rows.append({"name": name, "cache": cache, "seconds": medians, "times_ours": ratio})
    return rows


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        cpu = next((line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")), cpu)
    return {"cpu": cpu, "cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}", "python": platform.python_version()}


def shown(row: dict[str, Any]) -> str:
    """A row of the table, as it is printed while measuring."""
    cells = [f"{page.nanoseconds(row['ns'][c]) if c in row['ns'] else '–':>14}" for c in MODULES]
    return f"{row['name']:<14}" + "".join(cells) + "".join(f"{row['times_ours'].get(c, float('nan')):>9.2f}" for c in page.OTHERS)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", choices=[[], *NAMES, CALL], metavar="workload", help="all if none")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.15, help="of runs of one candidate per round")
    parser.add_argument("--jax", default=sys.executable, help="a Python interpreter that has JAX")
    parser.add_argument("--pytensor", default=sys.executable, help="one that has PyTensor")
    parser.add_argument("--json", type=Path, help="where the figures go; benches/results/ if not given")
    parser.add_argument("--from-json", type=Path, help="make the page from these figures, and measure nothing")
    parser.add_argument("--page", type=Path, default=BENCHES.parent / "docs" / "performance.md")
    return parser.parse_args()


def main() -> int:
    chosen = parsed()
    if chosen.from_json:
        page.write(json.loads(chosen.from_json.read_text(encoding="utf-8")), chosen.page)
        return 0
    pythons = {"numbascan": sys.executable, "by hand": sys.executable, "JAX": chosen.jax, "PyTensor": chosen.pytensor}
    workers = {candidate: Worker(pythons[candidate], module) for candidate, module in MODULES.items()}
    print("ns per step".ljust(14) + "".join(f"{c:>14}" for c in MODULES) + "".join(f"{c:>9}" for c in page.OTHERS))
    rows = []
    for name in chosen.workloads or (*NAMES, CALL):
        rows.append(measured(name, workers, chosen.rounds, chosen.seconds))
        print(shown(rows[-1]), flush=True)
    if chosen.workloads:
        return 0
    calls = rows.pop()["ns"]
    versions = {candidate: worker.versions for candidate, worker in workers.items() if worker.versions}
    figures = {
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "versions": versions,
        "rows": rows,
        "call_us": {candidate: ns * n_steps(CALL) / 1000 for candidate, ns in calls.items()},
        "fresh": fresh_starts(pythons, chosen.rounds),
        "growth": int(subprocess.run([sys.executable, BENCHES / "growth.py"], capture_output=True, check=True).stdout),
    }
    slug = "-".join("".join(c if c.isalnum() else " " for c in figures["machine"]["cpu"].lower()).split())
    path = chosen.json or BENCHES / "results" / f"{figures['date']}-{slug}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    page.write(figures, chosen.page)
    print(f"wrote {path} and {chosen.page}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
