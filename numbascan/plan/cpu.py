"""The CPU as a target: cores with 256-bit SIMD or more, caches, BLAS.

The cycles are those of present x86-64 cores: latencies and throughputs of add, multiply and divide are from the vendors' manuals, calls of
mathematical functions are measured (docs/accuracy.md tells which have a SIMD form).
"""

from __future__ import annotations

from ..ir.loops import CALL, DIVISION, FUNCTION, PLAIN
from .passes.batched_draws import batched_draws
from .passes.blocks import blocks
from .passes.distribution import distribution
from .passes.fusion import fusion
from .passes.if_conversion import if_conversion
from .passes.index_set_splitting import index_set_splitting
from .passes.interchange import interchange
from .passes.peeling import peeling
from .passes.reassociation import reassociation
from .passes.stack_rows import stack_rows
from .passes.strips import strips
from .passes.tiles import tiles
from .target import Cost, Target

CPU = Target(
    name="cpu",
    passes=(
        fusion,
        interchange,
        distribution,
        index_set_splitting,
        tiles,
        if_conversion,
        blocks,
        strips,
        batched_draws,
        peeling,
        reassociation,
        stack_rows,
    ),
    costs={PLAIN: Cost(3.5, 0.6, 0.2), DIVISION: Cost(13, 5, 1.7), FUNCTION: Cost(20, 18, 3.5), CALL: Cost(20, 20, 20)},
    routines=frozenset({"np.dot", "draws.words_ahead", "draws.normals_ahead", "draws.single_normals_ahead"}),
    calls_routines=True,
    buffer_cost=1.0,
    move_cost=3.0,
    locals_limit=8,
    stores_parts=True,
    rotated_locals=16,
    adds_rows=True,
    blas_from=512,  # a call takes about 0.2 microseconds
    tile=64,  # eight of the widest registers, enough to hide the latency of a step
    cache=2**19,  # a share of the second-level cache
    tile_memory=2**26,
    min_lanes=16,
    min_steps=16,
    max_lane_sums=8,
    short_step=2.0,
    kept_steps=8,  # a cache line of a lane's row
    block=256,  # a few arrays of this length stay in the first-level cache
    block_gain=0.8,
    max_strip=64,
    draws_at_once=64,
    min_draws=4,
    unroll_limit=8,
    stack_row=4096,
    stack=65536,
)
