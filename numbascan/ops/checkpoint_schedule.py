"""Checkpoint schedules: the number of stored states, the steps between them, and their cost in forward steps."""

from __future__ import annotations

from collections.abc import Callable
from math import comb

import numpy as np

from ..types import TensorType
from .card import Card, register
from .elementwise import compiled
from .lowering import Elementwise

TURNS = "turns"  # the note of a loop over blocks, with its schedule; "ahead" is that of a run of steps before it
NUMBERS = {"binomial": ("slots", "block"), "periodic": ("block", "stride"), "online": ("slots", "block", "found"), "ahead": ()}
BLOCK = "block"  # the note of a loop whose n_steps is the lesser of a number and its upper bound


def binomial_split(steps: int, states: int) -> int:
    """The steps to the next stored state, when `steps` >= 2 are to be undone with `states` stored at a time.

    With r such that C(states + r, states) is the first not below `steps`, no step is run forward more than r times. Griewank & Walther,
    ACM Transactions on Mathematical Software 26 (2000) 19-45.

    >>> [binomial_split(10, 3), binomial_split(2, 1)]
    [4, 1]
    """
    before, now, r = 0, 1, 0
    while now < steps:
        r += 1
        before, now = now, now * (states + r) // r
    if r == 0:
        return 0
    return min(before, steps - before * states // (states + r - 1))


def _repetitions(steps: int, states: int) -> int:
    """The greatest number of times that a step is run forward."""
    r = 0
    while comb(states + r, states) < steps:
        r += 1
    return r


def extra_steps(steps: int, states: int) -> int:
    """The least number of forward steps that undoes `steps` steps with `states` stored at a time.

    Griewank & Walther, ACM Transactions on Mathematical Software 26 (2000) 19-45.

    >>> [
    ...     extra_steps(10, 3),
    ...     extra_steps(100, 5),
    ...     extra_steps(1000, 10),
    ...     extra_steps(10**6, 100),
    ... ]
    [15, 316, 3636, 3817896]
    """
    r = _repetitions(steps, states)
    return r * steps - comb(states + r, r - 1) if r else 0


def fewest_slots(steps: int, memory: int, state: int, row: int) -> int:
    """The least number of states between which all steps of a block can be stored in what is left of the memory; 0: there is none.

    memory, state, row: bytes in all, of a stored state, of a step in a block. The two states at the ends of a block are free. Then no step
    is run forward more than twice, which is the least possible as well.

    >>> fewest_slots(100, 8 * 30, 8, 8)
    4
    """
    slots = 1
    while slots <= memory // state:
        longest = (memory - slots * state) // row + 2
        fewest = (steps - 1) // longest + 1  # more states leave shorter blocks: none between has slots * longest >= steps
        if slots >= fewest:
            return slots
        if slots > longest * row // state + 2:  # beyond its greatest value the product falls
            return 0
        slots = fewest
    return 0


def thinned_stride(steps: int, slots: int) -> int:
    """The steps between stored states after a loop that thinned them out as they got too many: a power of two.

    >>> [thinned_stride(8, 8), thinned_stride(9, 8), thinned_stride(100, 3)]
    [1, 2, 64]
    """
    apart, stride = (steps - 1) // slots + 1, 1  # the product of slots and stride may be beyond 2**63
    while stride < apart and stride < 2**62:
        stride *= 2
    return stride


def steps_again(steps: int, slots: int | None = None, block: int = 1, stride: int = 0, found: int = 0) -> int:
    """The forward steps that undo `steps` steps, `block` of them at once, with `slots` states stored at a time (None: any number).

    Besides these, each backward step computes what it needs of its forward step. stride: the steps between stored states, if periodic.
    found: the greatest number of states that the loop's own run has stored, if online.

    >>> [
    ...     steps_again(10, slots=3),
    ...     steps_again(100, block=10, stride=10),
    ...     steps_again(100, slots=5, block=2, found=2),
    ... ]
    [15, 180, 252]
    """
    slots = steps if slots is None else slots
    if found:
        apart = thinned_stride(steps, found)
        starts = range(0, steps, apart)
        return sum(_steps_again(min(apart, steps - start), slots - k, block) for k, start in enumerate(starts))
    return _steps_again(steps, slots, block, stride)


def _steps_again(steps: int, slots: int, block: int, stride: int = 0) -> int:
    if block == 1 and not stride:
        return extra_steps(steps, slots)
    stored, end, count = [0], steps, 0
    while end > 0:
        apart, free = end - stored[-1], slots - len(stored)
        if apart > max(block, stride) and free > 0:
            blocks = -(-apart // block)
            ahead = stride or apart - (blocks - binomial_split(blocks, free + 1)) * block
            stored.append(stored[-1] + ahead)
            count += ahead
            continue
        ahead = max(apart - block, 0)
        count += ahead + (apart - ahead - 1)  # within the block, all states but the first are computed again
        end = stored[-1] + ahead
        if not ahead:
            stored.pop()
    return count


def _number(evaluate: Callable[..., int], samples: list[tuple[int, ...]]) -> Card:
    """The card of `evaluate`, a function from integers to an integer."""
    code, arity = compiled(evaluate), len(samples[0])
    return register(
        Card(
            evaluate.__name__,
            lambda *numbers: np.int64(evaluate(*map(int, numbers))),
            lambda *types: TensorType("int64"),
            Elementwise(lambda *types: ("int64",) * (arity + 1), lambda *loop: code),
            samples=lambda: [(tuple(map(np.int64, numbers)), {}) for numbers in samples],
            no_gradient="a number of steps is an integer",
        )
    )


BINOMIAL_SPLIT = _number(binomial_split, [(10, 3), (2, 1), (1, 4)])
FEWEST_SLOTS = _number(fewest_slots, [(100, 240, 8, 8), (2**63 - 1, 10**11, 8, 8), (100, 24, 8, 8), (7, 8, 8, 80), (1, 8, 8, 8)])
THINNED_STRIDE = _number(thinned_stride, [(100, 3), (8, 8), (0, 1), (2**63 - 1, 4_000_000)])
