"""The number of lanes in a block. All blocks have the same number, so it divides the number of lanes."""

from __future__ import annotations

import numpy as np

from ..ir.node import Node
from ..types import TensorType
from .card import Card, apply, register
from .elementwise import compiled
from .lowering import Elementwise


def dividing(n: int) -> int:
    """8, the rows that go through a product together, where that divides a number of lanes; else the greatest divisor up to 16.

    Larger blocks are no faster, and leave fewer of them to the threads.

    >>> [dividing(n) for n in (0, 7, 64, 100, 254, 257)]
    [1, 7, 8, 10, 2, 1]
    """
    size = 1
    for divisor in range(2, max(min(n, 16), 1) + 1):
        if n % divisor == 0:
            size = divisor
            if divisor == 8:
                break
    return size


_DIVIDING = compiled(dividing)


def block_size(n: Node) -> Node:
    """The number of lanes in a block, computed at run time: the same code serves every number of lanes."""
    return apply(BLOCK_SIZE, n)


BLOCK_SIZE = register(
    Card(
        "block_size",
        np.vectorize(dividing, otypes=["int64"]),
        lambda n: TensorType("int64", (), weak=True),
        Elementwise(lambda *types: ("int64", "int64"), lambda *loop: _DIVIDING),
        samples=lambda: [((np.int64(n),), {}) for n in (0, 1, 254)],
        no_gradient="a number of lanes is an integer",
        folds=False,
    )
)
