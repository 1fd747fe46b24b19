"""Comprehensions, generator expressions, `map` and `filter`: what makes elements, and what takes them.

    (f(v) for v in x if c)     becomes     made(x, lambda items, each: [each.when(c, lambda: each(f(v))) for v in items])

The taker of the elements (a list, a sum, the body of a loop) passes `each`. So it decides how a traced condition is met (by a choice), and
a length that only the run knows (by a scan).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..variable import HOOKS, Variable, at_line
from .cells import Cells, Joined, Part
from .choices import chosen_in
from .loops import for_each
from .made import Made, Make, RunsOut
from .rows import Once, Rows, rows_of
from .stores import check_iterator
from .truth import plain, truth


class Each:
    """Takes elements one after the other: `taken` runs for each, and changes the variables `names`, until a flag of `exits` is set."""

    def __init__(self, taken: Part, names: Sequence[str], exits: Sequence[str] = ()) -> None:
        self.taken, self.names, self.exits = taken, names, exits
        self._cells = Cells((taken,), (*names, *exits))

    def __call__(self, element: Any) -> None:
        self.taken(element)

    def when(self, condition: Any, then: Part) -> None:
        """Takes the elements that `then` makes, if a condition holds."""
        known = truth(condition)
        if isinstance(known, Variable):
            chosen_in(known, then, None, self._cells)
        elif known:
            then()

    def over(self, source: Any, make: Make) -> None:
        """Takes the elements that are made of each item of a source."""
        for_each(source, Joined((make, self.taken), lambda item: make([item], self)), self.names, self.exits)


def run(items: Any, taken: Part, names: Sequence[str], exits: Sequence[str] = ()) -> None:
    """Hands each element of items of any kind to `taken`, as `Each` does."""
    if isinstance(items, Made):
        Each(taken, names, exits).over(*items.taken())
    else:
        for_each(items, taken, names, exits)


HOOKS["run"] = run


def is_open(items: Any) -> bool:
    """Whether only the run knows how many items there are."""
    if isinstance(items, Variable):
        return bool(items.ndim) and not isinstance(items.type.shape[0], int)
    return items.is_open() if isinstance(items, Made) else isinstance(items, Rows | Once) and not isinstance(items.length, int)


def is_run(items: Any) -> bool:
    """Whether `run` has to hand the elements on: they are made on demand, or only the run knows how many there are."""
    return isinstance(items, Made) or is_open(items)


# iterators ------------------------------------------------------------------------------------------------------------


class Generated(RunsOut, Made, Iterator[Any]):
    """A generator expression, `map` or `filter`: an iterator."""

    what = "an iterator (a generator expression, map or filter)"

    def __init__(self, source: Any, make: Make) -> None:
        super().__init__()
        rows = None if isinstance(source, Made) else rows_of(source)
        if rows is None and not isinstance(source, Made):
            check_iterator(source, "a comprehension")
            source = iter(source)
        self._source, self._make = source if rows is None else rows, make
        self._elements: Iterator[Any] | None = None

    def is_open(self) -> bool:
        return is_open(self._source)

    def taken(self) -> tuple[Any, Make]:
        self.check()
        self.finish()
        if self._elements is not None:
            return self._elements, each_of
        return unfolded(self._source, self._make)

    def __next__(self) -> Any:
        self.check()
        if self.is_open():
            raise TypeError(
                f"`next`, or a call of what is not Python's own, takes of as many elements as only the run knows{at_line()}; write a "
                "`for` loop, or np.array of a list"
            )
        self.move(self._at + 1, "", is_stuck=True)
        if self._elements is None:
            self._elements = _lazily(self._source, self._make)
        return next(self._elements)


def each_of(items: Iterable[Any], each: Any) -> None:
    """The items themselves, as elements."""
    for item in items:
        each(item)


def unfolded(source: Any, make: Make) -> tuple[Any, Make]:
    """A source and what makes elements of its items; for nested makers, the innermost source and one maker in place of all."""
    if not isinstance(source, Made):
        return source, make
    inner, make_inner = source.taken()
    return inner, lambda items, each: make_inner(items, _Behind(each, make))


class _Behind:
    """Takes elements, and hands on what is made of each."""

    def __init__(self, each: Any, make: Make) -> None:
        self._each, self._make = each, make

    def __call__(self, element: Any) -> None:
        self._make([element], self._each)

    def when(self, condition: Any, then: Part) -> None:
        self._each.when(condition, then)

    def over(self, source: Any, make: Make) -> None:
        self._each.over(*unfolded(source, lambda items, each: make(items, _Behind(each, self._make))))


class _Waiting:
    """Takes the elements that Python makes of one item. `inner`: sources that are still to be run over."""

    def __init__(self) -> None:
        self.elements: list[Any] = []
        self.inner: list[tuple[Any, Make]] = []

    def __call__(self, element: Any) -> None:
        self.elements.append(element)

    def when(self, condition: Any, then: Part) -> None:
        if plain(condition):
            then()

    def over(self, source: Any, make: Make) -> None:
        self.inner.append((source, make))


def _lazily(source: Any, make: Make) -> Iterator[Any]:
    """The elements, each made on demand as under Python."""
    for item in items_of(source):
        waiting = _Waiting()
        make([item], waiting)
        yield from waiting.elements
        for inner in waiting.inner:
            yield from _lazily(*inner)


def items_of(source: Any) -> Iterable[Any]:
    """The items that Python iterates over."""
    rows = rows_of(source)
    if rows is not None:
        return iter(rows)
    check_iterator(source, "a comprehension")
    items: Iterable[Any] = source
    return items
