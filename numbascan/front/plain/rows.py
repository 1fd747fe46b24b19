"""What a loop may run over as a scan: ranges, arrays by rows, and `enumerate`, `zip`, `reversed` of these, of known or traced length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from ...errors import TracerError
from ...ops.card import card_named
from ..numpy.creation import arange
from ..numpy.shape_arguments import dim
from ..tree import LEAF, Structure, unflatten
from ..variable import CAPTURE, Variable, as_variable, at_line, op
from .truth import is_traced


@dataclass(frozen=True)
class Rows:
    """An iterable of rows.

    sources: what the rows are taken from, ranges and arrays. structure: how the rows of all sources make one item. length: of the shortest.
    """

    sources: tuple[Any, ...]
    structure: Structure
    length: Any

    @property
    def leaves(self) -> list[Variable]:
        """The sources as sequences of a scan."""
        return [_sequence(source) for source in self.sources]

    def one(self, rows: Sequence[Any]) -> Any:
        """The item that rows make. What is Python's int in a loop of Python is such a number here."""
        numbers = [_python_int(row) if isinstance(source, _RANGES) else row for source, row in zip(self.sources, rows, strict=True)]
        return unflatten(self.structure, numbers)

    def at(self, k: int) -> Any:
        """Item k."""
        return self.one([source[k] for source in self.sources])

    def after(self, k: int) -> Rows:
        """The items from k on."""
        return Rows(tuple(source[k:] for source in self.sources), self.structure, self.length - k)

    def __iter__(self) -> Iterator[Any]:
        if not isinstance(self.length, int):
            raise TracerError(
                f"a comprehension, or a call of list or the like, runs over as many items as only the run knows{at_line()}; write a `for` "
                "loop, or array code for all at once"
            )
        return (self.at(k) for k in range(self.length))

    def __len__(self) -> int:
        return len(range(self.length)) if isinstance(self.length, int) else _no_length()


def _no_length() -> int:
    raise TracerError(f"how many items there are only the run knows{at_line()}")


class Once:
    """What `zip`, `enumerate` and `reversed` give: an iterator, which runs out. Where it stands is known at every place of the code."""

    def __init__(self, rows: Rows) -> None:
        self._rows, self._born, self._at, self._why = rows, CAPTURE.frame, 0, ""

    def taken(self) -> Rows:
        """The items that are left, for what runs over them. TypeError where that was done before."""
        self._check()
        rows, at = self._rows.after(self._at) if self._at else self._rows, at_line()
        self._move(self._at, f"was run over before{at}")
        return rows

    def __iter__(self) -> Once:
        return self

    def __next__(self) -> Any:
        self._check()
        if not isinstance(self._rows.length, int):
            raise TypeError(
                f"a comprehension, `next`, or a call of list or the like, takes of as many items as only the run knows{at_line()}; write a "
                "`for` loop, or array code for all at once"
            )
        if self._at >= self._rows.length:
            raise StopIteration
        self._move(self._at + 1, "")
        return self._rows.at(self._at - 1)

    def _check(self) -> None:
        if self._why:
            raise TypeError(
                f"an iterator (of zip, enumerate or reversed) {self._why}, and is read again{at_line()}; under Python it runs out: make "
                "one for each loop"
            )

    def _move(self, at: int, why: str) -> None:
        frame, before = CAPTURE.frame, (self._at, self._why)
        if frame is not None:
            frame.undone.append((None, lambda: self._set(*before)))
        while frame is not None and not frame.made(self._born):
            if not frame.is_trial:
                raise TypeError(
                    f"an iterator (of zip, enumerate, reversed) that was made before is advanced in {frame.place}; make it there"
                )
            frame = frame.outer
        self._set(at, why)

    def _set(self, at: int, why: str) -> None:
        self._at, self._why = at, why


@dataclass(frozen=True)
class TracedRange:
    """`range(start, stop, step)` of traced bounds."""

    start: Any
    stop: Any
    step: Any

    @property
    def length(self) -> Variable:
        """How many numbers there are."""
        first, last, step = (as_variable(part).astype("int64") for part in (self.start, self.stop, self.step))
        up, down = -((first - last) // step), -((last - first) // -step)
        return as_variable(np.maximum(np.where(step > 0, up, down), 0))

    def __getitem__(self, index: Any) -> Any:
        return self.numbers()[index]

    def numbers(self) -> Variable:
        """All of them."""
        first, step = as_variable(self.start).astype("int64"), as_variable(self.step).astype("int64")
        return first + step * arange(self.length)


_RANGES = (range, TracedRange)


def _python_int(number: Any) -> Any:
    """A number of a range: it takes the dtype of the arrays that it meets."""
    is_strong = isinstance(number, Variable) and not number.type.weak
    return op(card_named("python_number"), number) if is_strong else number


def rows_of(items: Any) -> Rows | None:
    """The rows that a loop over `items` runs over; None for what only Python can run over."""
    if isinstance(items, Once):
        return items.taken()
    if isinstance(items, Rows):
        return items
    if isinstance(items, range):
        return Rows((items,), LEAF, len(items))
    if isinstance(items, Variable) or is_traced(items):
        array = as_variable(items)
        if not array.ndim:
            raise TypeError(f"iteration over a 0-d array: {array!r} is one number{at_line()}")
        return Rows((array,), LEAF, dim(array, 0))
    if type(items) is np.ndarray and items.ndim and items.dtype.kind in "biufc":
        return Rows((items,), LEAF, len(items))
    return None


def zipped(parts: Sequence[Rows]) -> Rows:
    """Rows side by side, as far as the shortest goes."""
    lengths = [part.length for part in parts]
    known = [length for length in lengths if isinstance(length, int)]
    traced = [length for length in lengths if not isinstance(length, int)]
    length = min(known) if not traced else reduce(np.minimum, traced + ([min(known)] if known else []))
    sources = tuple(source for part in parts for source in part.sources)
    return Rows(sources, (tuple, None, tuple(part.structure for part in parts)), length)


def turned(rows: Rows) -> Rows:
    """Rows from the last to the first. Those of several sources have one length."""
    return Rows(tuple(_turned(source, rows.length) for source in rows.sources), rows.structure, rows.length)


def _turned(source: Any, length: Any) -> Any:
    if isinstance(source, TracedRange):
        last = as_variable(source.start) + (source.length - 1) * as_variable(source.step)
        return TracedRange(last, last - source.length * as_variable(source.step), -as_variable(source.step))
    return source[:length][::-1]


def _sequence(source: Any) -> Variable:
    if isinstance(source, TracedRange):
        return source.numbers()
    if isinstance(source, range):
        return as_variable(np.arange(source.start, source.stop, source.step)) if len(source) <= 16 else _numbers(source)
    return as_variable(source)


def _numbers(source: range) -> Variable:
    return source.start + source.step * arange(np.int64(len(source)))
