"""`if`, `a if c else b`, `and`, `or`: known conditions as Python has them, traced ones as a lazy choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...ir.node import Node, next_serial
from ..control import chosen_nodes
from ..variable import Variable
from .cells import Cells, Part, line_of
from .frames import Frame, frame, note
from .joining import Way, joined
from .truth import COMPARISONS, truth


def choose(condition: Any, then: Part | None, other: Part | None, names: Sequence[str]) -> None:
    """One of two branches, or where only the run knows which, both, and a choice for each variable that one of them changes."""
    known = truth(condition)
    if not isinstance(known, Variable):
        side = then if known else other
        if side is not None:
            side()
        return
    cells = Cells((then, other), names)
    before = cells.values()
    sides = [_ran(side, cells, before) for side in (then, other)]
    places = f" in one branch{line_of(then)}", f" in the other{line_of(other)}"
    ways: list[Way] = [(name, sides[0].values[name], sides[1].values[name]) for name in names]
    written = {**sides[0].frame.places, **sides[1].frame.places}
    ways += [(place.label, *(side.written.get(key, place.before) for side in sides)) for key, place in written.items()]
    values = joined(ways, places, _chooser(known.node, [side.mark for side in sides]))
    cells.fill(dict(zip(names, values, strict=False)))
    for (key, place), value in zip(written.items(), values[len(names) :], strict=True):
        note(key, lambda place=place: place)
        place.write(value)


@dataclass(slots=True)
class _Side:
    """What a branch has made: the variables, and what it wrote."""

    mark: int
    values: dict[str, Any]
    frame: Frame
    written: dict[tuple[int, Any], Any]


def _ran(side: Part | None, cells: Cells, before: dict[str, Any]) -> _Side:
    """A branch that is traced, with all that it changes taken back."""
    mark = next_serial()
    with frame(f"a branch of an `if` that only the run decides{line_of(side)}") as noted:
        try:
            if side is not None:
                side()
            values = cells.values()
        finally:
            written = noted.take_back()
            cells.fill(before)
    return _Side(mark, values, noted, written)


def _chooser(condition: Node, marks: Sequence[int]) -> Callable[[list[tuple[Variable, Variable]]], list[Variable]]:
    return lambda pairs: [Variable(node) for node in chosen_nodes(condition, pairs, marks)]


def value_of(condition: Any, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
    """`then if condition else other`."""
    known = truth(condition)
    if not isinstance(known, Variable):
        return then() if known else other()
    return _value(known, then, other)


def _value(condition: Variable, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
    marks, values = [], []
    for side in (then, other):
        marks.append(next_serial())
        with frame("a side of a choice that only the run decides") as noted:
            values.append(side())
        if noted.places:
            raise TypeError(f"a side of `a if c else b`, `and` or `or` writes {next(iter(noted.places.values())).label}; write it as an `if`")
    return joined([("the value", values[0], values[1])], (" on one side", " on the other"), _chooser(condition.node, marks))[0]


def both(value: Any, rest: Callable[[], Any]) -> Any:
    """`value and rest`."""
    known = truth(value)
    if isinstance(known, Variable):
        return _value(known, rest, lambda: value)
    return rest() if known else value


def one_of(value: Any, rest: Callable[[], Any]) -> Any:
    """`value or rest`."""
    known = truth(value)
    if isinstance(known, Variable):
        return _value(known, lambda: value, rest)
    return value if known else rest()


def compared(left: Any, *pairs: tuple[str, Callable[[], Any]]) -> Any:
    """`left < b < c`: each value is computed once, and none behind a comparison that does not hold."""
    (name, value), *rest = pairs
    right = value()
    result = COMPARISONS[name](left, right)
    return both(result, lambda: compared(right, *rest)) if rest else result
