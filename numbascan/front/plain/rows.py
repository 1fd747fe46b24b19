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
from ..variable import Variable, as_variable, at_line, op
from .made import Made, RunsOut
from .truth import is_traced


@dataclass(frozen=True)
class Rows:
    """An iterable of rows.

    - sources: what the rows are taken from, ranges and arrays. structure: how the rows of all sources make one item.
    - length: of the shortest.
    - lists: the lists below, each with what it held. Who runs over a list sees what is written into it and what is appended, so that a list
      which holds other arrays now is refused (`check`); what is written into its arrays is read from there.
    """

    sources: tuple[Any, ...]
    structure: Structure
    length: Any
    lists: tuple[tuple[Any, Any], ...] = ()

    def check(self) -> None:
        """TypeError where a list below has changed otherwise than by writes into its arrays."""
        if any(one.held() is not before for one, before in self.lists):
            raise TypeError(
                f"a list changes while a loop (or zip, enumerate, …) runs over it{at_line()}, and it is held as an array; run over a copy, "
                "as list(xs), or over range(len(xs))"
            )

    @property
    def leaves(self) -> list[Variable]:
        """The sources as sequences of a scan."""
        self.check()
        return [_sequence(source) for source in self.sources]

    def one(self, rows: Sequence[Any]) -> Any:
        """The item that rows make. Elements of ranges and the like are Python's numbers, as in Python's loops."""
        numbers = [python_number(row) if isinstance(source, _OF_PYTHON) else row for source, row in zip(self.sources, rows, strict=True)]
        return unflatten(self.structure, numbers)

    def at(self, k: int) -> Any:
        """Item k."""
        self.check()
        return self.one([source[k] for source in self.sources])

    def after(self, k: int) -> Rows:
        """The items from k on."""
        return Rows(tuple(source[k:] for source in self.sources), self.structure, self.length - k, self.lists)

    def __iter__(self) -> Iterator[Any]:
        if not isinstance(self.length, int):
            raise TracerError(
                f"what is not Python's own, or makes a dict, runs over as many items as only the run knows{at_line()}; write a `for` loop, "
                "or np.array of a list"
            )
        return (self.at(k) for k in range(self.length))

    def __len__(self) -> int:
        return len(range(self.length)) if isinstance(self.length, int) else _no_length()

    def __getitem__(self, index: Any) -> Any:
        """An element, or some, of a range."""
        if isinstance(index, slice):
            if index.start is None and index.stop is None and type(index.step) is int and index.step == -1:
                return turned(self)
            numbers = self.array()[index]
            return Rows((PythonNumbers(numbers),), LEAF, dim(numbers, 0))
        return python_number(self.array()[index])

    def array(self) -> Variable:
        """The numbers of a range."""
        (source,) = self.sources
        return _sequence(source)

    def __contains__(self, value: Any) -> Any:
        raise TypeError(f"`in` asks a range that only the run knows{at_line()}; write `start <= k < stop`")


def _no_length() -> int:
    raise TracerError(f"how many items there are only the run knows{at_line()}")


class Once(RunsOut):
    """What `zip`, `enumerate` and `reversed` give."""

    def __init__(self, rows: Rows) -> None:
        super().__init__()
        self._rows = rows

    @property
    def length(self) -> Any:
        """How many items there were at first."""
        return self._rows.length

    def taken(self) -> Rows:
        """Hands out the items that are left, and ends the iterator. TypeError if it was run over before."""
        self.check()
        rows = self._rows.after(self._at) if self._at else self._rows
        self.finish()
        return rows

    def __next__(self) -> Any:
        self.check()
        if not isinstance(self._rows.length, int):
            raise TypeError(
                f"`next`, or a call of what is not Python's own, takes of as many items as only the run knows{at_line()}; write a "
                "`for` loop, or array code for all at once"
            )
        if self._at >= self._rows.length:
            raise StopIteration
        self.move(self._at + 1, "")
        return self._rows.at(self._at - 1)


class PythonNumbers:
    """An array whose elements are Python's numbers."""

    __slots__ = ("array",)

    def __init__(self, array: Variable) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> Any:
        return python_number(self.array[index])


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
        """All its numbers."""
        first, step = as_variable(self.start).astype("int64"), as_variable(self.step).astype("int64")
        return first + step * arange(self.length)


@dataclass(frozen=True)
class Digits:
    """The index along one axis, for elements counted in C order: `numbers // stride % size`."""

    numbers: Any
    stride: Any
    size: Any

    def __getitem__(self, index: Any) -> Any:
        part = self.numbers[index]
        return Digits(part, self.stride, self.size) if isinstance(index, slice) else part // self.stride % self.size

    def all(self) -> Variable:
        """The index of every element."""
        return as_variable(_sequence(self.numbers) // self.stride % self.size)


def places(shape: Sequence[Any]) -> Rows:
    """The indices of all elements of an array, in C order, each a tuple. Lengths are known or traced."""
    strides: list[Any] = [1]
    for size in reversed(shape):
        strides.insert(0, strides[0] * size)
    length, *strides = strides
    numbers = range(length) if isinstance(length, int) else TracedRange(0, length, 1)
    safe = [max(size, 1) if isinstance(size, int) else np.maximum(size, 1) for size in (*strides, *shape)]  # `Digits` divides by these
    digits = [Digits(numbers, stride, size) for stride, size in zip(safe[: len(shape)], safe[len(shape) :], strict=True)]
    return Rows(tuple(digits), (tuple, None, (LEAF,) * len(digits)), length)


def array_below(source: Any) -> Variable | None:
    """The traced array that rows are taken from, if they are."""
    array = source.array if isinstance(source, PythonNumbers) else source
    return array if isinstance(array, Variable) else None


_OF_PYTHON = (range, TracedRange, PythonNumbers, Digits)


def python_number(number: Any) -> Any:
    """A number as Python's own, which takes the dtype of the arrays that it meets; for an array, `PythonNumbers`."""
    if not isinstance(number, Variable) or number.type.weak:
        return number
    return PythonNumbers(number) if number.ndim else op(card_named("python_number"), number)


def rows_of(items: Any) -> Rows | None:
    """The rows that a loop over `items` runs over; None for what only Python can run over."""
    if isinstance(items, Once):
        return items.taken()
    if isinstance(items, Made):
        return items.rows()
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
    lists = tuple(one for part in parts for one in part.lists)
    return Rows(sources, (tuple, None, tuple(part.structure for part in parts)), length, lists)


def turned(rows: Rows) -> Rows:
    """Rows from the last to the first. Those of several sources have one length."""
    return Rows(tuple(_turned(source, rows.length) for source in rows.sources), rows.structure, rows.length, rows.lists)


def _turned(source: Any, length: Any) -> Any:
    if isinstance(source, TracedRange):
        last = as_variable(source.start) + (source.length - 1) * as_variable(source.step)
        return TracedRange(last, last - source.length * as_variable(source.step), -as_variable(source.step))
    return source[:length][::-1]


def _sequence(source: Any) -> Variable:
    if isinstance(source, PythonNumbers):
        return source.array
    if isinstance(source, Digits):
        return source.all()
    if isinstance(source, TracedRange):
        return source.numbers()
    if isinstance(source, range):
        return as_variable(np.arange(source.start, source.stop, source.step)) if len(source) <= 16 else _numbers(source)
    return as_variable(source)


def _numbers(source: range) -> Variable:
    return source.start + source.step * arange(np.int64(len(source)))
