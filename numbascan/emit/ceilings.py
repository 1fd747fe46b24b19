"""How fast this machine can be on one core: bytes from memory, and operations in registers. Measured when first asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np

from .cache import load

ROWS = 1 << 22  # 96 MB in three arrays: more than caches hold
LANES = 64  # chains of operations that do not wait for each other, enough to fill the units of today's processors
PASSES = 100_000

TRIAD = """from numba import njit, types

float64_1d = types.Array(types.float64, 1, "C", readonly=True)
float64_1d_out = types.Array(types.float64, 1, "C")


@njit((float64_1d_out, float64_1d, float64_1d, types.float64), cache=True, nogil=True)
def triad(a, b, c, s):
    for i in range(b.shape[0]):
        a[i] = b[i] + s * c[i]
"""

CHAINS = f"""import numpy as np
from numba import njit, types
from numbascan.emit.runtime.intrinsics import small_array


@njit((types.int64, types.float64, types.float64), cache=True, nogil=True, fastmath={{"contract"}})
def chains(passes, factor, term):
    x = small_array(({LANES},), np.float64)
    for k in range({LANES}):
        x[k] = k
    for i in range(passes):
        for k in range({LANES}):
            x[k] = x[k] * factor + term
    total = 0.0
    for k in range({LANES}):
        total += x[k]
    return total
"""


@dataclass(frozen=True)
class Ceilings:
    """Bytes a second to and from memory, as in McCalpin's STREAM triad; operations a second in float64, multiplication and sum as two."""

    bandwidth: float
    arithmetic: float


@cache
def ceilings() -> Ceilings:
    """Of this machine; takes half a second, and as much again where the two loops are not compiled yet."""
    triad, chains = load(TRIAD, "triad"), load(CHAINS, "chains")
    a, b, c = (np.full(ROWS, value) for value in (0.0, 1.0, 2.0))
    return Ceilings(
        bandwidth=3 * a.nbytes / min(_seconds(triad, a, b, c, 3.0) for _ in range(10)),
        arithmetic=2.0 * LANES * PASSES / min(_seconds(chains, PASSES, 0.5, 0.25) for _ in range(20)),
    )


def _seconds(function: Callable[..., Any], *arguments: Any) -> float:
    start = perf_counter()
    function(*arguments)
    return perf_counter() - start
