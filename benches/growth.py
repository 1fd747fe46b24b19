"""Prints the bytes that a scan of ten million steps takes beyond one of ten thousand, if its last value alone is read."""

import resource
import sys

import numpy as np
from ours import lorenz

import numbascan as ns


def peak() -> int:
    """The most memory that this process has had, in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


last = ns.jit(lambda start, n_steps: lorenz(start, 1e-4, n_steps)[-1])
last(np.ones(3), 10_000)
before = peak()
last(np.ones(3), 10_000_000)
print(peak() - before)
