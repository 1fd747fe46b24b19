"""What a store costs: `python benches/batches.py [cases]`.

Lorenz by Runge and Kutta, 1,000 steps a case, a million cases: `ns.batch` into a Zarr store beside the kernel that it runs, on arrays in
memory. Both have been called before. Then the peak of the memory that the batch takes, in a process of its own.
"""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import numbascan as ns

ROUNDS = 7
MEMORY = "200MB"


def slope(x: Any, y: Any, z: Any, rho: Any) -> tuple[Any, Any, Any]:
    return 10.0 * (y - x), x * (rho - z) - y, x * y - 8 / 3 * z


def lorenz(rho: Any) -> dict[str, Any]:
    def moved(state: Any, slopes: Any, dt: float) -> tuple[Any, ...]:
        return tuple(one + dt * along for one, along in zip(state, slopes, strict=True))

    def step(*state: Any) -> tuple[Any, ...]:
        a = slope(*state, rho)
        b = slope(*moved(state, a, 0.005), rho)
        c = slope(*moved(state, b, 0.005), rho)
        d = slope(*moved(state, c, 0.01), rho)
        return moved(state, [p + 2 * (q + r) + s for p, q, r, s in zip(a, b, c, d, strict=True)], 0.01 / 6)

    x, y, z = ns.scan(step, outputs_info=[1.0, 1.0, 1.0], n_steps=1000, keep_last=1, return_updates=False)
    return {"x": x, "y": y, "z": z}


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> None:
    n_cases = int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000
    rho = np.linspace(20.0, 30.0, n_cases)
    numbers = itertools.count()
    kernel = ns.vmap(lorenz)
    with tempfile.TemporaryDirectory() as folder:

        def stored() -> object:
            return ns.batch(lorenz, (rho,), store=Path(folder, f"{next(numbers)}.zarr"), progress=False)

        first = seconds(stored)
        kernel(rho)
        pairs = [(seconds(lambda: kernel(rho)), seconds(stored)) for _ in range(ROUNDS)]
        bare, whole = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratio = statistics.median(b / a for a, b in pairs)
        print(f"{n_cases:,} cases: kernel {bare:.2f} s, into a store {whole:.2f} s, ratio {ratio:.3f}; the first call {first:.2f} s")
        command = [sys.executable, __file__, "--memory", str(n_cases), str(Path(folder, "memory.zarr"))]
        print(subprocess.run(command, capture_output=True, text=True, check=True).stdout, end="")


def peak(n_cases: int, store: str) -> None:
    """Prints by how much the memory of this process rises in a batch, as Linux tells it."""
    rho = np.linspace(20.0, 30.0, n_cases)
    ns.batch(lorenz, (rho[:1000],), store=f"{store}-small", progress=False)  # traced and loaded
    Path("/proc/self/clear_refs").write_text("5")  # the peak is that of now
    before = kilobytes("VmRSS")
    ns.batch(lorenz, (rho,), store=store, progress=False, memory=MEMORY)
    print(f"memory={MEMORY}: at most {(kilobytes('VmHWM') - before) / 1e3:.0f} MB more than before")


def kilobytes(field: str) -> int:
    return next(int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))


if __name__ == "__main__":
    peak(int(sys.argv[2]), sys.argv[3]) if sys.argv[1:2] == ["--memory"] else main()
