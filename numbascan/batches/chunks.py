"""Chunks of cases: runs of cases that are blocks of the grid, as many as fit into memory and into a second."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

TOGETHER = 64  # the fewest cases of a chunk, where memory allows: lanes of SIMD, and some for each thread
SECONDS = 1.0  # the time of a chunk, about
TRIAL = 0.005  # seconds of a trial that is long enough to tell how long cases take


@dataclass(frozen=True)
class Chunks:
    """The cases of axes of `shape`, in blocks of `block`. A block has length 1 along the first axes, all of the last ones."""

    shape: tuple[int, ...]
    block: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of cases of a whole chunk."""
        return math.prod(self.block)

    def __len__(self) -> int:
        return math.prod(math.ceil(length / block) for length, block in zip(self.shape, self.block, strict=True))

    def slices(self, number: int) -> tuple[slice, ...]:
        """The place of a chunk among the cases, a slice for each axis."""
        result: list[slice] = []
        for length, block in zip(reversed(self.shape), reversed(self.block), strict=True):
            number, place = divmod(number, math.ceil(length / block))
            result.append(slice(place * block, min((place + 1) * block, length)))
        return tuple(reversed(result))

    def cases(self, number: int) -> tuple[int, int]:
        """(the first case of a chunk, the one after its last)."""
        slices = self.slices(number)
        strides = [math.prod(self.shape[k + 1 :]) for k in range(len(self.shape))]
        first = sum(one.start * stride for one, stride in zip(slices, strides, strict=True))
        return first, first + math.prod(one.stop - one.start for one in slices)

    def count(self, number: int) -> int:
        """The number of cases of a chunk."""
        first, stop = self.cases(number)
        return stop - first


def chunks_of(shape: tuple[int, ...], size: int) -> Chunks:
    """Chunks of at most `size` cases.

    >>> chunks_of((100, 10), 35).block, chunks_of((100, 10), 4).block
    ((3, 10), (1, 4))
    """
    block = []
    for length in reversed(shape):
        here = max(1, min(length, size))
        block.append(here)
        size = size // here if here == length else 1
    return Chunks(shape, tuple(reversed(block)))


def cases_in_a_chunk(count: int, most: int, seconds_of: Callable[[int], float | None]) -> int:
    """The number of cases of a chunk: at most `most`, and about as many as take a second.

    seconds_of: the time of the first n cases; None where one of them fails.
    """
    most = max(1, min(most, count))
    if most <= TOGETHER:
        return most
    tried = 1
    while True:
        seconds = seconds_of(tried)
        if seconds is None:
            return most if tried == 1 else min(most, max(TOGETHER, tried))
        if seconds > TRIAL or tried >= most:
            size = max(TOGETHER, min(most, int(tried * SECONDS / max(seconds, 1e-9))))
            return math.ceil(count / math.ceil(count / size))  # chunks of about equal size: no small one is left over
        tried = min(tried * max(2, min(8, math.ceil(1.5 * TRIAL / max(seconds, 1e-9)))), most)
