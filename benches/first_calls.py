"""First calls of programs that take long to compile, in fresh processes, beside JAX: `python benches/first_calls.py --jax PYTHON`.

Seconds of the processor, all threads together, since these say the same on a machine that has other work; the candidates take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from first_calls_data import INPUTS

HERE = Path(__file__).parent
SCRIPTS = {"numbascan": "first_calls_ours.py", "JAX": "first_calls_in_jax.py"}


def once(python: str, script: str, name: str, environment: dict[str, str]) -> tuple[float, float]:
    """The number that a program gives, and the processor's seconds of its process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [python, str(HERE / script), name]
    done = subprocess.run(command, env=os.environ | environment, check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return float(done.stdout), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measured(pythons: dict[str, str], rounds: int) -> list[dict[str, Any]]:
    """A row for each program without a cache on the disk, and one with a warm cache."""
    rows = []
    for name in INPUTS:
        seconds: dict[tuple[str, str], list[float]] = {}
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as folder:
                kept = {
                    "NUMBASCAN_CACHE_DIR": folder,
                    "JAX_COMPILATION_CACHE_DIR": folder,
                    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
                    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
                }
                for cache in ("none", "warm"):
                    numbers = {}
                    for candidate, script in SCRIPTS.items():
                        numbers[candidate], took = once(pythons[candidate], script, name, kept)
                        seconds.setdefault((cache, candidate), []).append(took)
                    assert abs(numbers["numbascan"] / numbers["JAX"] - 1) < 1e-6, (name, numbers)
        for cache in ("none", "warm"):
            rows.append({"name": name, "cache": cache, "seconds": {its: statistics.median(seconds[cache, its]) for its in SCRIPTS}})
            print(rows[-1], flush=True)
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown, for docs/performance.md."""
    lines = ["| seconds of the processor | cache on disk | numbascan | JAX | JAX ÷ ours |", "|---|---|---:|---:|---:|"]
    for row in rows:
        ours, theirs = row["seconds"]["numbascan"], row["seconds"]["JAX"]
        lines.append(f"| {row['name']} | {row['cache']} | {ours:.1f} | {theirs:.1f} | {theirs / ours:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jax", required=True, help="the Python of an environment with JAX")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, default=HERE / "results" / "first_calls" / "latest.json")
    chosen = parser.parse_args()
    rows = measured({"numbascan": sys.executable, "JAX": chosen.jax}, chosen.rounds)
    chosen.json.parent.mkdir(exist_ok=True)
    chosen.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(table(rows))
