"""Runs many random programs: `python tests/random_programs/run.py --programs 2000 --seed 0`.

Prints a summary, and for each difference a script that shows it, made as short as may be.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

PROGRAMS_PER_PROCESS = 120
LONGEST = 600  # seconds: a program that takes longer hangs

if __name__ in ("__main__", "__mp_main__"):  # as a script, and in its processes: the helpers are the package around it
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    sys.path[:] = [folder for folder in sys.path if Path(folder or ".").resolve() != Path(__file__).resolve().parent]
    os.environ.setdefault("NUMBASCAN_CACHE_DIR", tempfile.mkdtemp(prefix="numbascan-random-"))


@dataclass
class Outcome:
    """What came of one program. label: refused, same, flat (of gradients: all are zero), open, singular or different."""

    label: str
    differences: list[tuple[str, str]] = field(default_factory=list)
    source: str = ""
    tally: Counter[str] = field(default_factory=Counter)


def one(seed: int, ways: tuple[str, ...], gradients: bool) -> Outcome:
    """Runs the program of a seed."""
    from random_programs.draw import draw_program
    from random_programs.generate import RandomChooser, Refused

    tally: Counter[str] = Counter()
    try:
        program = draw_program(RandomChooser(seed), gradients)
        found = list(_differ(gradients, tally)(program, list(ways) or ways_of(seed, gradients), known_of(seed)))
    except Refused:
        return Outcome("refused")
    if all(difference.excuse for difference in found):
        return Outcome(found[0].excuse if found else "flat" if tally["flat programs"] else "same", tally=tally)
    return Outcome("different", [(difference.way, str(difference)) for difference in found], program.source(), tally)


def _differ(gradients: bool, tally: Counter[str]) -> Any:
    from random_programs.compare import differences
    from random_programs.gradients import gradient_differences

    return partial(gradient_differences, tally=tally) if gradients else differences


def ways_of(seed: int, gradients: bool = False) -> list[str]:
    """By which ways the program of a seed is run: always by NumPy node by node, and by two compiled ones; of gradients, by all in turn."""
    if gradients:
        every = ["reverse python", "forward python", "second python", "called python", "checkpoints python"]
        return every + [["reverse"], ["forward"], ["second"], ["called"]][seed // 40 % 4] * (seed % 10 == 0)
    compiled = (("called", "symbolic"), ("at_once", "read"), ("called", "out"), ("jit", "read"))[seed % 4]
    meeting = ("odd", "replaced", "twice", "threads", "checked")[seed // 4 % 5]
    return ["python", *compiled, f"{compiled[1]} python", *((meeting, "replaced python", "twice python") if seed % 3 == 0 else ())]


def known_of(seed: int) -> Any:
    """Which dimensions are declared: none for every other program, else some."""
    import random

    chance = random.Random(seed)
    return (lambda: False) if seed % 2 else (lambda: chance.random() < 0.3)


def report(seed: int, outcome: Outcome, gradients: bool, seconds: float = 240.0) -> str:
    """The differences, and a program made short that shows the first of them."""
    from random_programs.draw import draw_program
    from random_programs.generate import RandomChooser
    from random_programs.shrink import shrunk

    lines = [f"=== program {seed} differs", *(f"  {text}" for _, text in outcome.differences)]
    if outcome.differences[0][0] == "generator":
        return "\n".join(lines)
    program = draw_program(RandomChooser(seed), gradients)
    if not seconds:
        return "\n".join([*lines, _shown(program) if gradients else program.source()])
    smaller, text = shrunk(program, outcome.differences[0][0], lambda: known_of(seed), seconds, _differ(gradients, Counter()))
    return "\n".join([*lines, f"  made short: {text}", _shown(smaller) if gradients else smaller.source()])


def _shown(program: Any) -> str:
    from random_programs.compare import expected
    from random_programs.costs import draw_cost

    return f"{program.setup()}\n{draw_cost(program, expected(program)).show()}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--way", action="append", default=[], help="one of compare.WAYS; default: by turns")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--gradients", action="store_true", help="derivatives of programs in double precision; ways: gradients.WAYS")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    tally: Counter[str] = Counter()
    start = time.monotonic()
    for seed, outcome in _outcomes(options):
        counts[outcome.label] += 1
        tally += outcome.tally
        if outcome.label == "different":
            short = 0 if options.no_shrink else 60 if options.gradients else 240
            print("\n" + report(seed, outcome, options.gradients, short), flush=True)
        if outcome.label == "singular":
            print(f"program {seed} stands where there is no derivative", flush=True)
        if sum(counts.values()) % 100 == 0:
            print(f"{seed}: {dict(counts)} {dict(tally) or ''}, {time.monotonic() - start:.0f} s", flush=True)
    print(
        f"{counts['same']} programs ran without a difference, {counts['different']} with one, {counts['refused']} were of no use, "
        f"{counts['open']} met a dimension that only the run knows to be 1"
        + f", {counts['flat']} had gradients of zero and no difference, {counts['singular']} no gradient; {dict(tally)}" * options.gradients
        + f"; {time.monotonic() - start:.0f} s"
    )
    return 1 if counts["different"] else 0


def _outcomes(options: Any) -> Any:
    """The seeds and what came of them, until so many programs ran. A process ends after some programs: compiled code stays in memory."""
    start, ran, seed = time.monotonic(), 0, options.seed
    ways = tuple(options.way)
    running: dict[Any, int] = {}
    with ProcessPoolExecutor(options.jobs, get_context("spawn"), max_tasks_per_child=PROGRAMS_PER_PROCESS) as pool:
        while ran < options.programs and time.monotonic() - start < options.seconds:
            while len(running) < 2 * options.jobs:
                running[pool.submit(_guarded, seed, ways, options.gradients)] = seed
                seed += 1
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                outcome = done.result()
                ran += outcome.label in ("same", "different")
                yield running.pop(done), outcome


def _guarded(seed: int, ways: tuple[str, ...], gradients: bool) -> Outcome:
    def ended(*_: Any) -> None:
        raise TimeoutError(f"no result after {LONGEST} seconds")

    signal.signal(signal.SIGALRM, ended)
    signal.alarm(LONGEST)
    try:
        return one(seed, ways, gradients)
    except Exception:
        return Outcome("different", [("generator", traceback.format_exc())])
    finally:
        signal.alarm(0)


if __name__ == "__main__":
    folder = os.environ["NUMBASCAN_CACHE_DIR"]
    try:
        code = main()
    finally:
        if "numbascan-random-" in folder:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(code)
