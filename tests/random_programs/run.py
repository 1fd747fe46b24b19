"""Runs many random programs: `python tests/random_programs/run.py --programs 2000 --seed 0`.

Prints a summary, and for each difference a script that shows it, made as short as may be.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

PROGRAMS_PER_PROCESS, BATCH = 120, 40

if __name__ in ("__main__", "__mp_main__"):  # as a script, and in its processes: the helpers are the package around it
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    sys.path[:] = [folder for folder in sys.path if Path(folder or ".").resolve() != Path(__file__).resolve().parent]
    os.environ.setdefault("NUMBASCAN_CACHE_DIR", tempfile.mkdtemp(prefix="numbascan-random-"))


def one(seed: int, ways: tuple[str, ...]) -> tuple[str, list[tuple[str, str]], str]:
    """Runs the program of a seed: "refused", "same" or "open", or "different"; the differences; the source."""
    from random_programs.compare import differences
    from random_programs.draw import draw_program
    from random_programs.generate import RandomChooser, Refused

    try:
        program = draw_program(RandomChooser(seed))
        found = list(differences(program, list(ways) or ways_of(seed), known_of(seed)))
    except Refused:
        return "refused", [], ""
    if all(difference.is_open for difference in found):
        return ("open" if found else "same"), [], ""
    return "different", [(difference.way, str(difference)) for difference in found], program.source()


def ways_of(seed: int) -> list[str]:
    """By which ways the program of a seed is run: always by NumPy node by node, and by two compiled ones."""
    compiled = (("called", "symbolic"), ("at_once", "read"), ("called", "out"), ("jit", "read"))[seed % 4]
    return ["python", *compiled, f"{compiled[1]} python"]


def known_of(seed: int) -> Any:
    """Which dimensions are declared: none for every other program, else some."""
    import random

    chance = random.Random(seed)
    return (lambda: False) if seed % 2 else (lambda: chance.random() < 0.3)


def report(seed: int, found: list[tuple[str, str]], source: str, ways: tuple[str, ...]) -> None:
    from random_programs.shrink import shrunk

    print(f"\n=== program {seed} differs")
    for _, text in found:
        print(f"  {text}")
    way = found[0][0]
    smaller, text = shrunk(seed, way, known_of(seed))
    print(f"  made short: {text}\n{smaller}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--way", action="append", default=[], help="one of compare.WAYS; default: by turns")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    ways = tuple(options.way)
    start = time.monotonic()
    for seed, outcome in _outcomes(options, ways):
        counts[outcome[0]] += 1
        if outcome[0] == "different":
            if options.no_shrink:
                print(f"\n=== program {seed} differs", *(text for _, text in outcome[1]), outcome[2], sep="\n", flush=True)
            else:
                report(seed, outcome[1], outcome[2], ways)
        if sum(counts.values()) % 100 == 0:
            print(f"{seed}: {dict(counts)}, {time.monotonic() - start:.0f} s", flush=True)
    print(
        f"{counts['same']} programs ran without a difference, {counts['different']} with one, {counts['refused']} were of no use, "
        f"{counts['open']} met a dimension that only the run knows to be 1; "
        f"{time.monotonic() - start:.0f} s"
    )
    return 1 if counts["different"] else 0


def _outcomes(options: Any, ways: tuple[str, ...]) -> Any:
    """The seeds and what came of them, until so many programs ran. A process ends after some programs: compiled code stays in memory."""
    start, ran, seed = time.monotonic(), 0, options.seed
    with ProcessPoolExecutor(options.jobs, get_context("spawn"), max_tasks_per_child=PROGRAMS_PER_PROCESS) as pool:
        while ran < options.programs and time.monotonic() - start < options.seconds:
            batch = range(seed, seed + BATCH * options.jobs)
            for number, outcome in zip(batch, pool.map(_guarded, batch, [ways] * len(batch)), strict=True):
                ran += outcome[0] in ("same", "different")
                yield number, outcome
            seed = batch.stop


def _guarded(seed: int, ways: tuple[str, ...]) -> tuple[str, list[tuple[str, str]], str]:
    try:
        outcome = one(seed, ways)
    except Exception:
        return "different", [("generator", traceback.format_exc())], ""
    return outcome


if __name__ == "__main__":
    folder = os.environ["NUMBASCAN_CACHE_DIR"]
    try:
        code = main()
    finally:
        if "numbascan-random-" in folder:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(code)
