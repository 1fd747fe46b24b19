"""What a plan must know about its machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..ir.loops import Function


@dataclass(frozen=True)
class Cost:
    """The cycles of an operation: until its result is ready; that its unit is busy; the latter per element of a SIMD pass."""

    latency: float
    scalar: float
    vector: float


@dataclass(frozen=True)
class Target:
    """A machine as data: another value gives plans for another machine.

    `passes`: the loop passes, in the order in which they run; `ns.Mode(without=[…])` takes the names of these functions.
    """

    name: str
    passes: tuple[Pass, ...]
    costs: Mapping[str, Cost]  # of an operation, by its class of cost
    routines: frozenset[str]  # routines that plans call on their own, besides those of cards
    calls_routines: bool  # whether routines of cards are called; else they are written out where possible
    buffer_cost: float  # cycles for writing and reading one number of a block
    move_cost: float  # cycles for moving one number from the results of a tile of lanes to the row of its lane
    locals_limit: int  # most elements of a fixed shape with one local each; beyond, compile time and spills grow
    stores_parts: bool  # a small array lives in memory, not in locals, if parts are replaced at places computed at run time
    rotated_locals: int  # most elements over all lags of a state that are rotated through locals
    adds_rows: bool  # products that are written out add rows: that fills the SIMD unit without reassociation
    blas_from: int  # multiplications from which a call of BLAS pays; unknown sizes count as large
    tile: int  # lanes that run side by side
    cache: int  # bytes that the memory of such lanes should fit into
    tile_memory: int  # bytes that it may take if a lane has very much
    min_lanes: int  # lanes below which tiles, or threads, gain nothing
    min_steps: int  # steps of a lane below which tiles and loop distribution gain nothing
    max_lane_sums: int  # most numbers that a lane leaves for the second loop of a distribution
    short_step: float  # cycles of the SIMD unit per lane below which counting the lanes of a step takes as long as the step
    kept_steps: int  # steps of a tile whose results are kept before they are moved to the rows of lanes
    block: int  # steps of a block of time
    block_gain: float  # the fraction of the plain loop's cost below which blocks pay
    max_strip: int  # steps
    draws_at_once: int  # numbers that are drawn at once
    min_draws: int  # steps below which draws ahead gain nothing
    unroll_limit: int  # passes from which a loop is long enough for SIMD, unless the compiler unrolls it first
    stack_row: int  # bytes of a work row on the stack
    stack: int  # bytes of all such rows of a function


Pass = Callable[[Function, Target], Function]
