"""A GPU as a target: one thread for each independent pass of a loop, with the steps inside.

Values that fit in registers are kept there, one local each; with more locals Numba's front-end time grows faster than the program. A
thread's memory is free up to some kilobytes, and interleaved with that of its neighbours.
"""

from __future__ import annotations

from dataclasses import replace

from .cpu import CPU
from .gpu.threads import threads
from .passes.distribution import distribution
from .passes.fusion import fusion

CUDA = replace(
    CPU,
    name="cuda",
    passes=(fusion, distribution, threads),
    routines=frozenset(),
    calls_routines=False,
    adds_rows=False,  # one sum for each thread, in a register
    locals_limit=16,
    stores_parts=False,  # registers have no places
    rotated_locals=32,
    min_lanes=32,  # a warp
    min_steps=0,  # lanes alone are worth threads
    max_lane_sums=32,  # each is one more tree of sums
    stack_row=2048,
    stack=8192,
)
