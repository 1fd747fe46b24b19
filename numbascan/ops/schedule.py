"""Where checkpoints lie: how far to go before the next state is stored."""

from __future__ import annotations

from math import comb

import numpy as np

from ..ir.loops import Template
from ..types import TensorType
from .card import Card, register
from .lowering import Elementwise


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
