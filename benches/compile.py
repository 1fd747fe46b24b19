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
from collections.abc import Sequence
from statistics import median
from time import process_time_ns, thread_time_ns

COMPILING = ("lowered", "np_empty", "operator_types", "declarations", "object_code", "array_class")
RUNNING = (
    "entry_point",
    "array_class",
    "cache_lines",
    "stack",
    "vector_forms",
    "threads",
    "lapack",
    "numpy_sorts",
    "numpy_fft",
    "scipy_functions",
)


def step_of(lines: int) -> str:
    """A step on rows of 20 numbers whose code has about so many lines: elementwise work, branches, sums, views."""
    body, count = ["    y0 = 0.5 * s + x"], max(2, round(0.47 * (lines - 8)))
    for k in range(1, count):
        y = f"y{k - 1}"
        texts = (
            f"0.5 * {y} + c * x",
            f"np.tanh({y}).sum() - s",
            f"np.where({y} > s, x, {y})",
            f"{y} * s[::-1] / (2 + x * x)",
            f"np.cumsum({y}) * c",
        )
        body.append(f"    y{k} = {texts[k % len(texts)]}")
    return "\n".join(["def step(x, s, c):", *body, f"    return y{count - 1}"])


def first_result(lines: int) -> None:
    """Prints the processor's seconds from the start of Python to the first result."""
    import numpy as np

    import numbascan as ns

    names = {"np": np}
    exec(step_of(lines), names)
    ns.scan(names["step"])(np.ones((5, 20)), np.ones(20), 0.25)
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
        "numpy_sorts": (lambda x: np.sort(x), (rng.normal(size=1000),)),
        "numpy_fft": (lambda x: np.fft.fft(x), (rng.normal(size=100),)),
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


def medians(what: str, names: Sequence[str], runs: int) -> dict[tuple[str, str], float]:
    """By cache (`compile`: empty, `load`: warm) and the shortcut that was left out, none for ""; processes alternate."""
    times: dict[tuple[str, str], list[float]] = {}
    for _ in range(runs):
        for without in ("", *names):
            with tempfile.TemporaryDirectory() as folder:
                for cache in ("compile", "load"):
                    times.setdefault((cache, without), []).append(seconds(what, without, folder))
    return {key: median(found) for key, found in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="shortcuts; all without")
    parser.add_argument("--lines", type=int, nargs="*", default=[10, 100, 1000], help="of the code that is compiled")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        first_result(int(options.child)) if options.child.isdigit() else call_time(options.child)
        return
    names = options.names or list(dict.fromkeys((*COMPILING, *RUNNING)))
    cells: dict[str, list[str]] = {name: [] for name in names}
    for lines in options.lines:
        found = medians(str(lines), [name for name in names if name in COMPILING], options.runs)
        print(f"{lines} lines: {found['compile', '']:.2f} s, from a warm cache {found['load', '']:.2f} s", flush=True)
        print({f"{cache} -{name}": round(time / found[cache, ""], 3) for (cache, name), time in found.items() if name}, flush=True)
        for name in names:
            cells[name] += [f"{found[cache, name] / found[cache, '']:.2f}" if name in COMPILING else "" for cache in ("compile", "load")]
    print("| shortcut | " + " | ".join(f"{cache}, {lines} lines" for lines in options.lines for cache in ("compile", "load")) + " | run |")
    print("|---" * (2 * len(options.lines) + 2) + "|")
    for name in names:
        run = medians(name, [name], options.runs) if name in RUNNING else {}
        ratio = f"{run['load', name] / run['load', '']:.2f}" if run else ""
        print(f"| {name} | {' | '.join(cells[name])} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
