"""The CPU as a target: cores with 256-bit SIMD or more, caches, BLAS.

The cycles are those of present x86-64 cores: latencies and throughputs of add, multiply and divide are from the vendors' manuals, calls of
mathematical functions are measured (docs/accuracy.md tells which have a SIMD form).
"""

from __future__ import annotations

from ..ir.loops import CALL, DIVISION, FUNCTION, PLAIN
from .passes.ahead import ahead
from .passes.blocks import blocks
from .passes.distribute import distribute
from .passes.edges import edges
from .passes.fuse import fuse
from .passes.interchange import interchange
from .passes.masks import masks
from .passes.simd import simd
from .passes.split import split
from .passes.stack import stack
from .passes.strips import strips
from .passes.tiles import tiles
from .target import Cost, Target

CPU = Target(
    name="cpu",
    passes=(fuse, interchange, distribute, split, tiles, masks, blocks, strips, ahead, edges, simd, stack),
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
    few_lanes=16,
    few_steps=16,
    left_by_lane=8,
    short_step=2.0,
    kept_steps=8,  # a cache line of a lane's row
    block=256,  # a few arrays of this length stay in the first-level cache
    block_gain=0.8,
    longest_strip=64,
    drawn_ahead=64,
    few_draws=4,
    written_out=8,
    stack_row=4096,
    stack=65536,
)
