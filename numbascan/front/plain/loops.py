"""`for` and `while`: over known values as Python has them, else as a scan whose states are what the body changes.

A loop of known length runs as Python's while its body computes nothing that is traced. A long one whose body does is rolled up into a scan
from the first such pass on, which is taken back; where that cannot be (a list that grows, a shape that changes), it is written out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...checkpoint import Checkpoint
from ...errors import TracerError
from ...ir.graph import free_inputs
from ...ir.node import constant_value, next_serial
from ..numpy.creation import zeros
from ..numpy.joining import concatenate
from ..scan.arguments import Arguments, make_options
from ..scan.returns import until
from ..scan.scan import symbolic
from ..tracing import PART_OF
from ..tree import Structure, alike, flattened, paths, unflatten
from ..tree import describe as describe_structure
from ..variable import CAPTURE, Variable, as_variable, at_line
from .cells import ABSENT, Cells, Part, line_of
from .choices import choose
from .frames import Frame, Place, frame, note
from .joining import UNSET, as_type, is_numeric, is_same, promoted, zeros_like
from .rows import Rows, rows_of
from .truth import either, negation, truth

UNROLLED = 16  # passes that are written out: a scan has a cost of its own
MOST_WRITTEN_OUT = 4096  # passes of a loop that cannot be a scan
ATTEMPTS = 12  # traces of a body until its states stand
_MOST_STEPS = 2**63 - 1
_KEPT = Checkpoint("64MB")  # states that a loop of unknown length keeps for its gradient


def for_each(items: Any, body: Part, names: Sequence[str], exits: Sequence[str]) -> None:
    """`for item in items: body(item)`, until a flag of `exits` is set."""
    loop = _Loop(body, Cells((body,), (*names, *exits)), tuple(dict.fromkeys((*names, *exits))), exits)
    rows = rows_of(items)
    if rows is not None and not isinstance(rows.length, int):
        loop.rolled(rows)
    elif rows is None or rows.length <= UNROLLED or not CAPTURE.home:
        loop.one_by_one(iter(items if rows is None else rows))
    else:
        loop.tried(rows)


def repeat(test: Callable[[], Any], body: Part, names: Sequence[str], exits: Sequence[str]) -> None:
    """`while test(): body()`, until a flag of `exits` is set."""
    loop = _Loop(body, Cells((body,), (*names, *exits)), tuple(dict.fromkeys((*names, *exits))), exits)
    while True:
        over = loop.is_over()
        if over is True:
            return
        goes_on = truth(test()) if over is False else True
        if over is not False or isinstance(goes_on, Variable):
            loop.while_rolled(test)
            return
        if not goes_on:
            return
        body()


@dataclass(slots=True)
class _Loop:
    """A loop that is being run or traced: the function of a pass, the variables that it shares, and the flags that end it."""

    body: Part
    cells: Cells
    names: tuple[str, ...]
    exits: Sequence[str]

    def is_over(self) -> Any:
        """Whether a flag has ended the loop: Python's bool, or traced."""
        if not self.exits:
            return False
        values = self.cells.values()
        over = either(*[values[name] for name in self.exits])
        return truth(over)

    # in Python's way --------------------------------------------------------------------------------------------------

    def one_by_one(self, items: Iterator[Any]) -> None:
        """Passes written out. Behind one that may have ended the loop all others stand under a choice."""
        for item in items:
            self.body(item)
            over = self.is_over()
            if over is True:
                return
            if over is not False:
                self._under_choice(over, items)
                return

    def _under_choice(self, over: Variable, items: Iterator[Any]) -> None:
        rest = _closing_over(self.body, lambda: self.one_by_one(items))
        choose(over, None, rest, self.names)

    def tried(self, rows: Rows) -> None:
        """A long loop of known length."""
        for k in range(rows.length):
            before, mark = self.cells.values(), next_serial()
            with frame(f"a loop{line_of(self.body)}", is_trial=True) as noted:
                self.body(rows.at(k))
            over = self.is_over()
            if over is True:
                return
            if over is False and next_serial() == mark + 1:
                continue
            if rows.length - k <= UNROLLED:
                if over is not False:
                    self._under_choice(over, iter(rows.after(k + 1)))
                    return
                continue
            noted.take_back()
            self.cells.fill(before)
            self._rest(rows.after(k))
            return

    def _rest(self, rows: Rows) -> None:
        """What is left of a loop, as a scan, or written out where that cannot be."""
        before = self.cells.values()
        try:
            with frame(f"a loop{line_of(self.body)}", is_trial=False) as noted:
                self.rolled(rows)
        except (TypeError, ValueError, IndexError, KeyError, TracerError, AttributeError):
            noted.take_back()
            self.cells.fill(before)
            if rows.length > MOST_WRITTEN_OUT:
                raise
            self.one_by_one(iter(rows))
            return
        last = noted.take_back()
        for key, place in noted.places.items():
            note(key, lambda place=place: place)
            place.write(last[key])

    # as a scan --------------------------------------------------------------------------------------------------------

    def rolled(self, rows: Rows) -> None:
        """The loop over rows as a scan; none of its steps runs where a flag is set before."""
        over = self.is_over()
        _Scan(self, rows, None).run(over)

    def while_rolled(self, test: Callable[[], Any]) -> None:
        """The loop as a scan of as many steps as its condition lets run."""
        _Scan(self, None, test).run(self.is_over())


def _closing_over(part: Part, action: Callable[[], None]) -> Part:
    """`action` as a part with the cells of another one."""

    class _Part:
        __code__, __closure__, __globals__ = part.__code__, part.__closure__, part.__globals__

        def __call__(self) -> None:
            action()

    return _Part()


class _Again(Exception):
    """The body is traced again: what is carried has changed."""


@dataclass(slots=True)
class _Carried:
    """A value that goes from pass to pass: a variable or a place that the body writes. `initial`: its leaves before the loop."""

    label: str
    structure: Structure
    initial: list[Variable]


class _Scan:
    """A loop as a scan. The body is traced until it is known what it changes, and of which types that is."""

    def __init__(self, loop: _Loop, rows: Rows | None, test: Callable[[], Any] | None) -> None:
        self.loop, self.rows, self.test = loop, rows, test
        self.start = loop.cells.values()
        self.what = f"the loop{line_of(loop.body)}"
        self.carried: dict[Any, _Carried] = {}
        self.places: dict[tuple[int, Any], Place] = {}
        self.kept: set[str] = set()  # variables that each pass leaves as they were, or sets before it reads them
        self.fresh: dict[str, Structure] = {}  # variables that are not bound before: their structure behind a pass
        for name, value in self.start.items():
            if value is not ABSENT and value is not UNSET:
                leaves, structure = flattened(value)
                if leaves and all(map(is_numeric, leaves)):
                    self.carried[name] = _Carried(name, structure, [as_variable(leaf) for leaf in leaves])

    def run(self, over: Any) -> None:
        """Binds the variables as they are behind the loop."""
        for _ in range(ATTEMPTS):
            try:
                results = self._traced(over)
            except _Again:
                self.loop.cells.fill(self.start)
                continue
            self._bind(results)
            return
        raise TypeError(f"{self.what}: what its body changes has another type at each pass{at_line()}; give it one dtype and shape before")

    # one trace --------------------------------------------------------------------------------------------------------

    def _traced(self, over: Any) -> list[Any]:
        carried = list(self.carried.items())
        sequences = self.rows.leaves if self.rows is not None else []
        initial = [leaf for _, one in carried for leaf in one.initial]
        parts = [f"row_{k}" for k in range(len(sequences))] + [path for _, one in carried for path in paths(one.structure, one.label)]

        def step(*values: Variable) -> Any:
            return self._step(values[: len(sequences)], values[len(sequences) :])

        step.__name__ = "loop"
        vars(step).update({PART_OF: CAPTURE.home, "__wrapped__": self.loop.body})
        step.__signature__ = _signature(parts)  # type: ignore[attr-defined]
        options = make_options(step, {"return_list": True, "return_updates": False, "checkpoint": _KEPT if self.test is not None else None})
        n_steps, self.n_steps = self._n_steps(over)
        arguments = Arguments(sequences, [*initial, None, None], None, options.name)
        return list(symbolic(step, arguments, n_steps, options.for_graph()))

    def _n_steps(self, over: Any) -> tuple[Any, int | None]:
        """The number of steps at most, and that number where it is known and all of them run."""
        if self.rows is not None:
            length = self.rows.length
            if over is False:
                return (as_variable(np.int64(length)) if isinstance(length, int) else length), (length if isinstance(length, int) else None)
            return as_variable(np.where(over, 0, length)).astype("int64"), None
        assert self.test is not None
        if over is not False:
            go_on = self._guarded(over)
        else:
            go_on = truth(self.test())
        return as_variable(np.where(go_on, _MOST_STEPS, 0)).astype("int64"), None

    def _guarded(self, over: Any) -> Any:
        from .choices import value_of

        return truth(value_of(over, lambda: False, lambda: truth(self.test())))  # type: ignore[misc]

    def _step(self, row: Sequence[Variable], states: Sequence[Variable]) -> Any:
        """One pass on placeholders: what it carries on, what it leaves behind, and whether it is the last."""
        loop, values = self.loop, iter(states)
        given: dict[Any, list[Variable]] = {}
        with frame(f"the body of {self.what}") as noted:
            start = dict(self.start)
            for key, one in self.carried.items():
                given[key] = [next(values) for _ in one.initial]
                for leaf in given[key]:
                    leaf.home = CAPTURE.home
                if key in self.places:
                    self.places[key].write(unflatten(one.structure, given[key]))
                    note(key, lambda key=key: self.places[key])
                else:
                    start[key] = unflatten(one.structure, given[key])
            for name in self.fresh:
                start[name] = ABSENT
            loop.cells.fill(start)
            try:
                loop.body(*([self.rows.one(row)] if self.rows is not None else []))
                ends = loop.cells.values()
                over = loop.is_over()
                go_on = negation(over) if self.test is None else self._goes_on(over)
                over_result = None if go_on is True else negation(go_on)
            finally:
                written = noted.take_back()
                loop.cells.fill(self.start)
        self._note_places(noted, written)
        ends.update(written)
        return self._returned(given, ends, over_result)

    def _goes_on(self, over: Any) -> Any:
        assert self.test is not None
        return truth(self.test()) if over is False else self._guarded(over)

    def _note_places(self, noted: Frame, written: dict[tuple[int, Any], Any]) -> None:
        """_Again where the body writes an array, an element or an attribute that is not carried yet."""
        new = {key: place for key, place in noted.places.items() if key not in self.places}
        for key, place in new.items():
            leaves, structure = flattened(place.before)
            if not all(map(is_numeric, leaves)):
                raise TypeError(f"{self.what} writes {place.label}, which holds no numbers; only numbers and arrays can be carried along")
            self.places[key] = place
            self.carried[key] = _Carried(place.label, structure, [as_variable(leaf) for leaf in leaves])
        if new:
            raise _Again

    def _returned(self, given: dict[Any, list[Variable]], ends: dict[Any, Any], over: Any) -> Any:
        results: list[Variable] = []
        again = False
        for key, one in self.carried.items():
            end = ends[key]
            if end is ABSENT:
                raise UnboundLocalError(f"{one.label} is deleted in {self.what}")
            leaves, structure = flattened(end)
            if not alike(structure, one.structure):
                raise TypeError(
                    f"{self.what}: {one.label} is {describe_structure(one.structure)} before it and {describe_structure(structure)} behind a "
                    f"pass{at_line()}; give it one structure"
                )
            for k, (before, leaf) in enumerate(zip(list(one.initial), leaves, strict=True)):
                if not is_numeric(leaf):
                    raise TypeError(f"{self.what}: {one.label} is a number before it and {leaf!r} behind a pass{at_line()}; give it one kind")
                again |= self._settled(one, k, before, as_variable(leaf))
                results.append(as_variable(leaf))
        if again:
            raise _Again
        self._check_rest(ends)
        behind = {name: ends[name] for name in self.loop.names if name not in self.carried and self.start[name] in (ABSENT, UNSET)}
        behind = {name: value for name, value in behind.items() if value is not ABSENT and value is not UNSET}
        leaves, self.behind = flattened(behind)
        others = [leaf for leaf in leaves if not is_numeric(leaf)]
        self.constants = {k: leaf for k, leaf in enumerate(leaves) if not is_numeric(leaf)}
        traced = tuple(as_variable(leaf) for leaf in leaves if is_numeric(leaf))
        del others
        reads = {leaf.node for values in given.values() for leaf in values}
        self._check_reads(reads, given, results, traced, over)
        outputs: list[Any] = [*results, {"behind": traced}, {"none": ()}]
        return outputs if over is None else [*outputs, until(over)]

    def _settled(self, one: _Carried, k: int, before: Variable, after: Variable) -> bool:
        """Whether a state has another type behind a pass than before it; then it is promoted."""
        if before.ndim != after.ndim or not all(a is None or b is None or a == b for a, b in zip(before.type.shape, after.type.shape, strict=True)):
            raise TypeError(
                f"{self.what}: {one.label} has shape {_shape(before)} before it and {_shape(after)} behind a pass{at_line()}; give it one shape"
            )
        if before.type.dtype == after.type.dtype and before.type.weak == after.type.weak:
            return False
        type_ = promoted(before.type, after.type)
        if (type_.dtype, type_.weak) == (before.type.dtype, before.type.weak):
            return False
        one.initial[k] = as_type(before, type_)
        return True

    def _check_rest(self, ends: dict[Any, Any]) -> None:
        """TypeError for a variable that is no number, and that the body changes."""
        for name in self.loop.names:
            start = self.start[name]
            if name not in self.carried and start is not ABSENT and start is not UNSET and not _is_unchanged(start, ends[name]):
                raise TypeError(
                    f"{self.what} changes {name}, which holds a {type(start).__name__}{at_line()}; only numbers, arrays and nests of these can "
                    "be carried from pass to pass"
                )

    def _check_reads(self, reads: set[Any], given: dict[Any, list[Variable]], results: list[Variable], traced: Sequence[Variable], over: Any) -> None:
        """_Again for a variable that every pass leaves as it was: then it is no state, and keeps what is known of it."""
        position, again = 0, False
        for key, values in list(given.items()):
            ends = results[position : position + len(values)]
            position += len(values)
            one = self.carried[key]
            if all(end.node is value.node for end, value in zip(ends, values, strict=True)) and key not in self.places:
                again = True
            elif all(_is_constant(end, before) for end, before in zip(ends, one.initial, strict=True)) and key not in self.places:
                again = True
            else:
                continue
            del self.carried[key]
            self.kept.add(key)
        if again:
            raise _Again

    # behind the loop --------------------------------------------------------------------------------------------------

    def _bind(self, results: list[Any]) -> None:
        values = dict(self.start)
        rows = iter(results)
        for key, one in self.carried.items():
            last = [_last(before, next(rows), self.n_steps) for before in one.initial]
            value = unflatten(one.structure, last)
            if key in self.places:
                place = self.places[key]
                note(key, lambda place=place: place)
                place.write(value)
            else:
                values[key] = value
        behind = iter(next(rows)["behind"])
        names = [self.constants[k] if k in self.constants else _last_of(next(behind), self.n_steps) for k in range(_n_leaves(self.behind))]
        values.update(unflatten(self.behind, names))
        self.loop.cells.fill(values)


def _is_unchanged(start: Any, end: Any) -> bool:
    return start is end or (end is not ABSENT and is_same(start, end))


def _is_constant(end: Variable, before: Variable) -> bool:
    """Whether every pass leaves the known value that there was before."""
    if constant_value(end.node) is None or constant_value(before.node) is None:
        return False
    return end.node is before.node


def _last(before: Variable, rows: Variable, n_steps: int | None) -> Variable:
    """A state behind the last step; as it was before where there was none."""
    if n_steps:
        return _weak_as(rows[-1], before)
    first = as_type(before, _strong(rows))
    return _weak_as(concatenate([first[np.newaxis], rows[-1:]])[-1], before)


def _strong(rows: Variable) -> Any:
    from ...types import TensorType

    return TensorType(rows.type.dtype, ())


def _weak_as(value: Variable, before: Variable) -> Variable:
    return as_type(value, before.type) if before.type.weak and not value.type.weak else value


def _last_of(rows: Variable, n_steps: int | None) -> Variable:
    """What the last step left behind; zeros where there was none."""
    if n_steps:
        return rows[-1]
    return concatenate([zeros((1, *rows.shape[1:]), rows.type.dtype), rows[-1:]])[-1]


def _shape(x: Variable) -> str:
    from ...types import show_shape

    return show_shape(x.type.shape)


def _n_leaves(structure: Structure) -> int:
    from ..tree import n_leaves

    return n_leaves(structure)


def _signature(names: Iterable[str]) -> Any:
    import inspect

    return inspect.Signature([inspect.Parameter(_clean(k, name), inspect.Parameter.POSITIONAL_ONLY) for k, name in enumerate(names)])


def _clean(k: int, name: str) -> str:
    return name if name.isidentifier() and not name.startswith("_") else f"value_{k}"


__all__ = ["field", "for_each", "free_inputs", "repeat"]
