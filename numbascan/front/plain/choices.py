"""`if`, `a if c else b`, `and`, `or`: known conditions as Python has them, traced ones as a lazy choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ir.node import Node, next_serial
from ..control import chosen_nodes
from ..tracing import hidden
from ..variable import Variable, as_variable, at_line
from .cells import Cells, Part, keeping, line_of, soles
from .checks import RaisedAtRun
from .chosen import settle as settle_holders
from .frames import FRAMES, Frame, frame, note
from .joining import Way, assured, filler, held, joined
from .made import OtherDtype
from .truth import compare, truth


def choose(condition: Any, then: Part | None, other: Part | None, names: Sequence[str]) -> None:
    """Runs one of two branches. For a traced condition, traces both, and each variable that one of them changes becomes a choice."""
    known = truth(condition)
    if isinstance(known, Variable):
        chosen_in(known, then, other, Cells((then, other), names))
    elif (side := then if known else other) is not None:
        side()


def chosen_in(condition: Variable, then: Part | None, other: Part | None, cells: Cells) -> None:
    """`choose` for a traced condition. The variables `cells` need not be those of the branches' own code."""
    before = cells.values()
    check_depth()
    with keeping(before):
        sole = soles(before)
        try:
            _both_ways(condition, then, other, cells, before, sole)
        except OtherDtype as error:
            if FRAMES.stack:
                raise
            error.promote()
            _both_ways(condition, then, other, cells, before, sole)


_DEEPEST, _MOST = 40, 1000
"""How deep choices may lie within each other, and how many may lie more than `_DEEP` deep, before they are taken for a recursion."""
_DEEP = 8


def check_depth() -> None:
    """RecursionError where choices lie so deep within each other that the function must be one that calls itself until the run ends it."""
    depth = len(FRAMES.stack)
    FRAMES.n_deep = 0 if not depth else FRAMES.n_deep + (depth > _DEEP)
    if depth > _DEEPEST or FRAMES.n_deep > _MOST:
        raise RecursionError(
            f"a function calls itself in a branch that only the run decides{at_line()}: both branches are traced, and so it would never "
            "end; write a `while` loop, with an array as its stack"
        )


def _both_ways(condition: Variable, then: Part | None, other: Part | None, cells: Cells, before: dict[str, Any], sole: set[int]) -> None:
    """Traces both branches, and binds each variable to its value behind them."""
    holds = as_variable(np.logical_not(condition)), condition  # an error on a side is raised unless this holds
    first = _ran(then, (then, other), cells, before, holds[0])
    with hidden(first.mark, next_serial()):
        sides = [first, _ran(other, (then, other), cells, before, holds[1])]
    if any(side.error is not None for side in sides):
        if sides[0].error is not None and sides[1].error is not None:
            raise sides[1].error
        for side, live, part, unless in zip(sides, reversed(sides), (other, then), holds, strict=True):
            if side.error is not None and part is None:  # without another branch no variable depends on the choice
                side.error.unless(unless)
                return
            if side.error is not None:
                side.follow(live, before)
    where = f" in one branch{line_of(then)}", f" in the other{line_of(other)}"
    ways: list[Way] = [(name, sides[0].values[name], sides[1].values[name]) for name in before]
    written = {**sides[0].frame.places, **sides[1].frame.places}
    ways += [(place.label, *(side.written.get(key, held(place.before)) for side in sides)) for key, place in written.items()]
    chooser = _chooser(condition.node, [side.mark for side in sides])
    values, settle = joined(ways, where, (sides[0].frame, sides[1].frame), chooser, sole)
    names = {
        name: settle_holders(name, [(side.objects[name], side.frame) for side in sides], value)
        for name, value in zip(before, values, strict=False)
    }
    cells.fill(names)
    for (key, place), value in zip(written.items(), values[len(before) :], strict=True):
        note(key, place)
        objects = [(side.frame.objects.get(key, place.before), side.frame) for side in sides]
        place.write(settle_holders(place.label, objects, value))
    settle()


@dataclass(slots=True)
class _Side:
    """The outcome of a traced branch: its variables, as values and as objects, and its writes. error: what ends it."""

    mark: int
    values: dict[str, Any]
    objects: dict[str, Any]
    frame: Frame
    written: dict[tuple[int, Any], Any]
    error: RaisedAtRun | None = None

    def follow(self, live: _Side, before: dict[str, Any]) -> None:
        """Gives a side that ends in an error values like those of the live side. Nobody reads them."""
        self.values = {name: filler(value, held(before[name]), self.frame) for name, value in live.values.items()}
        self.objects = {name: live.objects[name] if value is live.values[name] else value for name, value in self.values.items()}
        for key, place in live.frame.places.items():
            if key not in self.written:
                self.written[key] = filler(live.written[key], held(place.before), self.frame)


def _ran(side: Part | None, parts: Sequence[Part | None], cells: Cells, before: dict[str, Any], unless: Variable) -> _Side:
    """Traces a branch, and takes back all that it changed. unless: a condition that is false in the branch."""
    error = None
    mark = next_serial()
    with frame(f"a branch of an `if` that only the run decides{line_of(side)}", parts=parts) as noted:
        try:
            if side is not None:
                try:
                    side()
                except RaisedAtRun as raised:
                    if not raised.is_carried():
                        raise
                    error = raised
                except IndexError as missing:  # what the branch reads is not there, as Python finds where it runs
                    error = RaisedAtRun(IndexError(str(missing)))
                    if not error.is_carried():
                        raise
            objects = {name: assured(value, before[name]) for name, value in cells.values().items()}
            values = {name: held(value) for name, value in objects.items()}
        finally:
            written = noted.undo(cells, before)
        noted.refuse_changes()
    if error is None:
        return _Side(mark, values, objects, noted, written)
    with frame(noted.what) as noted:  # only the error is left of all that the branch did
        error.unless(unless)
        written = noted.take_back()
    return _Side(mark, values, objects, noted, written, error)


def _chooser(condition: Node, marks: Sequence[int]) -> Callable[[list[tuple[Variable, Variable]]], list[Variable]]:
    return lambda pairs: [Variable(node) for node in chosen_nodes(condition, pairs, marks)]


def value_of(condition: Any, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
    """`then if condition else other`."""
    known = truth(condition)
    if not isinstance(known, Variable):
        return then() if known else other()
    return _value(known, then, other)


def _value(condition: Variable, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
    check_depth()
    marks, objects, values, frames = [], [], [], []
    for side in (then, other):
        marks.append(next_serial())
        with hidden(marks[0], marks[-1]), frame("a side of a choice that only the run decides", parts=[then, other]) as noted:
            try:
                objects.append(side())
                values.append(held(objects[-1]))
            finally:
                noted.take_back()
                noted.restore()
            noted.refuse_changes()
        frames.append(noted)
        if noted.places:
            raise TypeError(
                f"a side of `a if c else b`, `and` or `or` writes {next(iter(noted.places.values())).label}; write it as an `if`"
            )
    way = "the value", values[0], values[1]
    (result,), settle = joined(
        [way], (f" on one side{at_line()}", " on the other"), (frames[0], frames[1]), _chooser(condition.node, marks)
    )
    settle()
    return settle_holders("the value", list(zip(objects, frames, strict=True)), result)


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
    """`left < b < c`. Each value is computed once, and only if the comparisons before it hold."""
    (name, value), *rest = pairs
    right = value()
    result = compare(name, left, right)
    return both(result, lambda: compared(right, *rest)) if rest else result
