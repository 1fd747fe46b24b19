"""Where checkpoints lie: how far to go before the next state is stored."""

from __future__ import annotations

from math import comb

import numpy as np

from ..ir.loops import Template
from ..types import TensorType
from .card import Card, register
from .lowering import Elementwise


TURNS = "turns"  # the note of a loop over blocks; its first non-sequences are slots, block and, of a periodic schedule, stride


def binomial_split(steps: int, states: int) -> int:
    """The steps to the next stored state, when `steps` are to be undone with `states` stored at a time.

    >>> [binomial_split(10, 3), binomial_split(2, 1)]
    [4, 1]
    """
    r = 0
    while comb(states + r, states) < steps:
        r += 1
    return min(comb(states + r - 1, states), steps - comb(states + r - 2, states - 1)) if r else 0


def extra_steps(steps: int, states: int) -> int:
    """How many forward steps undoing `steps` takes with `states` stored at a time: the least number there is.

    Griewank & Walther, ACM Transactions on Mathematical Software 26 (2000) 19-45.

    >>> [extra_steps(10, 3), extra_steps(100, 5), extra_steps(1000, 10), extra_steps(10**6, 100)]
    [15, 316, 3636, 3817896]
    """
    r = 0
    while comb(states + r, states) < steps:
        r += 1
    return r * steps - comb(states + r, r - 1) if r else 0


def steps_again(steps: int, slots: int, block: int, stride: int | None = None) -> int:
    """How many forward steps undoing `steps` takes, `block` of them at once, with `slots` states stored at a time.

    Besides these, each backward step computes what it needs of the forward one. `stride`: steps between stored states, None: binomial.

    >>> [steps_again(10, 3, 1), steps_again(100, 10, 10, 10)]
    [15, 180]
    """
    if block == 1 and stride is None:
        return extra_steps(steps, slots)
    stored, end, count = [0], steps, 0
    while end > 0:
        apart, free = end - stored[-1], slots - len(stored)
        if apart > block and free > 0:
            ahead = min(stride, apart - 1) if stride is not None else binomial_split(-(-apart // block), free + 1) * block
            stored.append(stored[-1] + ahead)
            count += ahead
            continue
        ahead = max(apart - block, 0)
        count += ahead + (apart - ahead - 1)  # within the block, all states but the first are computed again
        end = stored[-1] + ahead
        if not ahead:
            stored.pop()
    return count


def _infer(steps: TensorType, states: TensorType) -> TensorType:
    return TensorType("int64")


BINOMIAL_SPLIT = register(
    Card(
        "binomial_split",
        lambda steps, states: np.int64(binomial_split(int(steps), int(states))),
        _infer,
        Elementwise(lambda *types: ("int64",) * 3, lambda *loop: Template("binomial_split({0}, {1})")),
        samples=lambda: [((np.int64(10), np.int64(3)), {}), ((np.int64(2), np.int64(1)), {}), ((np.int64(1), np.int64(4)), {})],
        no_gradient="a number of steps is an integer",
    )
)
