"""What every measurement shares: times, the comparison of results, and processes that start anew."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

BENCHES = Path(__file__).resolve().parent


def timed(run: Callable[[], Any], seconds: float) -> float:
    """Seconds of one run: the fastest of those that fill `seconds`, since other work on the machine only ever adds.

    Runs of less than 0.1 ms are timed in bundles, which hide what the clock takes.
    """
    start = time.perf_counter()
    run()
    bundle = max(1, int(1e-4 / (time.perf_counter() - start)))
    best, spent, bundles = float("inf"), 0.0, 0
    while spent < seconds or bundles < 3:
        start = time.perf_counter()
        for _ in repeat(None, bundle):
            run()
        took = time.perf_counter() - start
        best, spent, bundles = min(best, took / bundle), spent + took, bundles + 1
    return best


def leaves(result: Any) -> Iterator[np.ndarray]:
    """The arrays of a result, which may be nested tuples and lists."""
    if isinstance(result, tuple | list):
        for part in result:
            yield from leaves(part)
    else:
        yield np.asarray(result)


def same(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    """Do two lists of results agree to 1e-6, element by element? What cancels to next to nothing counts beside the largest of its array."""
    return all(
        x.shape == y.shape and np.allclose(x, y, rtol=1e-6, atol=1e-9 * np.nanmax(np.abs(y), initial=0), equal_nan=True)
        for x, y in zip(a, b, strict=True)
    )


def fresh(python: str, candidate: str, name: str, environment: dict[str, str]) -> float:
    """Seconds from the start of a Python process to its end, in which a candidate (a module of this folder) runs one workload once."""
    command = [python, str(BENCHES / "fresh.py"), candidate, name]
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}  # else modules are compiled each time
    start = time.perf_counter()
    subprocess.run(command, env={**usual, **environment}, check=True, capture_output=True)
    return time.perf_counter() - start
