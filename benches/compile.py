"""What each shortcut through Numba's inside buys: `python benches/compile.py [--runs N] [NAME …]`.

Every figure is a ratio of medians, without the shortcut over with it, all others in force: above 1 it buys something. Processes are fresh
and alternate; time is that of the processor, so that other work on the machine counts little.

compile: from the start of Python to the first result, an empty cache; load: the same with a warm one; run: one call of a program that the
shortcut is for.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import process_time_ns, thread_time_ns

LINES = (10, 100, 1000)
COMPILING = ("np_empty", "plain_locals", "long_functions", "operator_types", "c_entries", "declarations", "object_code", "array_class")
RUNNING = ("entry_point", "array_class", "cache_lines", "stack", "vector_forms", "threads", "lapack", "scipy_functions")


def step_of(lines: int) -> str:
    """A step of so many lines: scalars that depend on one another, a branch here and there, as models of many equations have them."""
    body = ["    y0 = 0.5 * s + x"]
    for k in range(1, lines - 1):
        text = (
            f"0.5 * y{k - 1} + c * x",
            f"np.tanh(y{k - 1}) - s",
            f"np.where(y{k - 1} > s, x, y{k - 1})",
            f"y{k - 1} * s / (2.0 + x * x)",
        )
        body.append(f"    y{k} = {text[k % len(text)]}")
    return "\n".join(["def step(x, s, c):", *body, f"    return y{max(lines - 2, 0)}"])


def first_result(lines: int) -> None:
    """Prints the processor's seconds from the start of Python to the first result."""
    import numpy as np

    import numbascan as ns

    names = {"np": np}
    path = Path(tempfile.gettempdir()) / "step.py"
    exec(compile(step_of(lines), str(path), "exec"), names)
    ns.scan(names["step"])(np.arange(5.0), 0.5, 0.25)
    print(process_time_ns() / 1e9)


def call_of(name: str) -> tuple[object, tuple[object, ...]]:
    """A program for a shortcut that makes kernels faster, and its arguments."""
    import numpy as np

    import numbascan as ns
    import numbascan.tensor as nt

    rng = np.random.default_rng(0)

    def small_rows(y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return np.tanh(a @ y) + np.concatenate([y[1:], y[:1]])

    def lanes(start: float) -> np.ndarray:
        return ns.scan(lambda y: y - 0.1 * y * y, outputs_info=start, n_steps=1000, return_updates=False)[-1]

    programs = {
        "entry_point": (lambda x: x + 1.0, (np.ones(3),)),
        "array_class": (lambda x: x + 1.0, (np.ones(3),)),
        "cache_lines": (lambda x: ns.scan(lambda y: y * 0.5, outputs_info=x, n_steps=1000, return_updates=False)[-1], (np.ones(1000),)),
        "stack": (
            lambda y, a: ns.scan(small_rows, outputs_info=y, non_sequences=a, n_steps=1000, return_updates=False)[-1],
            (np.ones(12), rng.normal(size=(12, 12)) / 4),
        ),
        "vector_forms": (lambda x: np.tanh(x), (rng.normal(size=10_000),)),
        "threads": (ns.vmap(lanes), (rng.normal(size=2_000),)),
        "lapack": (lambda a, b: np.linalg.solve(a, b), (rng.normal(size=(12, 12)), np.ones(12))),
        "scipy_functions": (lambda x: nt.digamma(x), (rng.uniform(1, 2, 1000),)),
    }
    function, arguments = programs[name]
    return ns.jit(function), arguments


def call_time(name: str) -> None:
    """Prints the seconds of a call, the least of many: of this thread, so that threads that help count as won."""
    function, arguments = call_of(name)
    function(*arguments)  # type: ignore[operator]
    start = thread_time_ns()
    function(*arguments)  # type: ignore[operator]
    count = max(3, int(2e7 / max(thread_time_ns() - start, 1000)))
    least = float("inf")
    for _ in range(7):
        start = thread_time_ns()
        for _ in range(count):
            function(*arguments)  # type: ignore[operator]
        least = min(least, (thread_time_ns() - start) / count)
    print(least / 1e9)


def seconds(what: str, without: str, folder: str) -> float:
    environment = {**os.environ, "NUMBASCAN_CACHE_DIR": folder, "NUMBASCAN_SHORTCUTS": f"-{without}" if without else ""}
    done = subprocess.run([sys.executable, __file__, "--child", what], env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def ratios(name: str, what: str, runs: int) -> dict[str, float]:
    """Without the shortcut over with it, for an empty cache and a warm one."""
    times: dict[tuple[str, str], list[float]] = {}
    for _ in range(runs):
        for without in ("", name):
            with tempfile.TemporaryDirectory() as folder:
                for cache in ("compile", "load"):
                    times.setdefault((cache, without), []).append(seconds(what, without, folder))
    return {cache: median(times[cache, name]) / median(times[cache, ""]) for cache in ("compile", "load")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="shortcuts; all without")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        first_result(int(options.child)) if options.child.isdigit() else call_time(options.child)
        return
    print("| shortcut | " + " | ".join(f"{cache}, {lines} lines" for cache in ("compile", "load") for lines in LINES) + " | run |")
    print("|---" * (2 * len(LINES) + 2) + "|")
    for name in options.names or dict.fromkeys((*COMPILING, *RUNNING)):
        rows = [ratios(name, str(lines), options.runs) for lines in LINES] if name in COMPILING else []
        cells = [f"{row[cache]:.2f}" for cache in ("compile", "load") for row in rows] or [""] * (2 * len(LINES))
        run = f"{ratios(name, name, options.runs)['load']:.2f}" if name in RUNNING else ""
        print(f"| {name} | {' | '.join(cells)} | {run} |", flush=True)


if __name__ == "__main__":
    main()
