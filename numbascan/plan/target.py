"""What a plan must know of the machine that it is for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..ir.loops import Function


@dataclass(frozen=True)
class Cost:
    """Cycles of an operation: until its result is there; of the unit that it occupies; the same per element of a SIMD pass."""

    latency: float
    scalar: float
    vector: float


@dataclass(frozen=True)
class Target:
    """A machine as data: a plan for another one is made with another value.

    `passes`: what is done to the loops of a function, in this order; `ns.Mode(without=[…])` takes the names of these functions.
    """

    name: str
    passes: tuple[Pass, ...]
    costs: Mapping[str, Cost]  # of the operations of each class of cost
    routines: frozenset[str]  # that plans call by themselves; others are those of cards
    calls_routines: bool  # those of cards; else these are written out, where they can be
    buffer_cost: float  # cycles for writing and reading one number of a block
    move_cost: float  # cycles for moving one number from the results of a tile of lanes to the row of its lane
    locals_limit: int  # elements of a fixed shape that are kept one local each; beyond, compile time and spills grow
    stores_parts: bool  # a small array of which parts are replaced at places that the run computes lies in memory, not in locals
    rotated_locals: int  # elements over all lags of a state that are rotated through locals
    adds_rows: bool  # products that are written out add rows, which needs no other order of sums to fill the SIMD unit
    blas_from: int  # products from which a call of BLAS pays; unknown sizes count as large
    tile: int  # lanes that go side by side
    cache: int  # bytes that the memory of such lanes should fit into
    tile_memory: int  # bytes that it may take if a lane has very much
    few_lanes: int  # lanes below which tiles, or threads, gain nothing
    few_steps: int  # of a lane, below which it gains nothing to take its loop apart
    left_by_lane: int  # numbers that lanes leave for a loop behind them
    short_step: float  # cycles of the SIMD unit per lane of a step in which counting the lanes takes as long
    kept_steps: int  # of a tile, whose results are kept before they are moved to the rows of lanes
    block: int  # steps of a block of time
    block_gain: float  # of the cost of the plain loop, which blocks must not exceed
    longest_strip: int  # steps
    drawn_ahead: int  # numbers that are drawn at once
    few_draws: int  # steps below which draws ahead gain nothing
    written_out: int  # passes from which a loop is long enough for SIMD, if the compiler does not write it out first
    stack_row: int  # bytes of a work row on the stack
    stack: int  # bytes of all such rows of a function


Pass = Callable[[Function, Target], Function]
