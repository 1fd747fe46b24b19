"""`for` and `while`: Python's own loops over known values, else scans whose states are what the body changes.

A loop of known length runs as Python's while its body computes nothing traced. If it is long, the first pass that does is taken back, and
becomes a scan with all that follow. Where no scan can be (a shape that changes), the passes are unrolled.
"""

from __future__ import annotations

import inspect
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from keyword import iskeyword
from typing import Any, NoReturn

import numpy as np

from ...checkpoint import Checkpoint
from ...errors import TracerError
from ...ir.graph import free_inputs
from ...ir.node import HIDDEN, Node, constant_value, n_asked, next_serial
from ...ops.last_state import last_state
from ...types import TensorType, show_shape
from ..draw_scopes import keep_draws
from ..numpy.creation import zeros
from ..numpy.joining import concatenate
from ..scan.arguments import Arguments, make_options
from ..scan.returns import until
from ..scan.scan import symbolic
from ..tracing import PART_OF, NeedsTracedArrays, hidden
from ..tree import LEAF, Structure, alike, flattened, paths, unflatten
from ..tree import describe as describe_structure
from ..variable import CAPTURE, HOOKS, Variable, as_variable, at_line
from ..views import Either, Moved, UnsureView, View, is_array
from .cells import ABSENT, Cells, Joined, Part, keeping, line_of, own_variables, soles
from .choices import chosen_in, value_of
from .chosen import freeze, holders, is_known, keep_free
from .frames import FRAMES, NO_OBJECT, Frame, Place, Stuck, base_of, frame, note
from .joining import (
    RESULT,
    UNSET,
    Held,
    Returned,
    Unassured,
    as_type,
    assured,
    held,
    is_0d,
    is_absent,
    is_numeric,
    is_outside,
    is_same,
    is_unassured,
    is_unbound,
    one_structure,
    promoted,
    released,
    value_in,
)
from .made import Gone, InPlaceOfAList, Made, OtherDtype
from .options import Option, as_options
from .rows import PythonNumbers, Rows, TracedRange, array_below, rows_of
from .stores import check_iterator
from .truth import either, negation, truth

ENOUGH_KNOWN = 64  # passes in a row that were Python's own, behind which passes run without a trial
UNROLLED = 16  # passes that are unrolled: a scan has a cost of its own
MOST_ASKED = 300  # nodes that they may ask for together: each line of a kernel takes milliseconds to compile
MOST_WRITTEN_OUT = 4096  # passes that are unrolled where the loop cannot be a scan
LAST_ELEMENTS = "_ns_window"  # the variable that holds the last elements of lists to which a pass appends
ATTEMPTS = 12  # traces of a body until its states are settled
_NO_SCAN = (TypeError, ValueError, LookupError, TracerError, AttributeError, NameError, NotImplementedError, RecursionError)
"""Errors of a scan for which the loop is unrolled instead."""
_MOST_STEPS = 2**63 - 1
_, _OPTION = flattened(Option(False, False))
_KEPT = Checkpoint("64MB")  # states that a loop of unknown length keeps for its gradient


def for_each(items: Any, body: Part, names: Sequence[str], exits: Sequence[str]) -> None:
    """`for item in items: body(item)`, until a flag of `exits` is set."""
    if isinstance(items, Made) and items.is_open():
        HOOKS["run"](items, body, names, exits)
        return
    loop = _of_part(body, names, exits)
    check_iterator(items, "a loop")
    rows = rows_of(items)
    if rows is not None and not isinstance(rows.length, int):
        loop.rolled(rows)
    elif rows is None or rows.length < 2 or not CAPTURE.home:
        loop.one_by_one(iter(items if rows is None else rows))
    else:
        loop.tried(rows)
    if rows is not None:
        rows.check()


def collected(rows: Rows, body: Part, names: Sequence[str]) -> dict[str, Any]:
    """By name, what all passes of a loop leave: the nest that one pass leaves, its arrays with a row for each pass."""
    loop = _of_part(body, names, ())
    _Scan(loop, rows, None, kept=names).run(False)
    values = loop.cells.values()
    loop.cells.fill(dict.fromkeys(names, ABSENT))
    return {name: values[name] for name in names}


def repeat(test: Callable[[], Any], body: Part, names: Sequence[str], exits: Sequence[str]) -> None:
    """`while test(): body()`, until a flag of `exits` is set."""
    loop = _of_part(body, names, exits)
    while True:
        over = loop.is_over()
        if over is True:
            return
        goes_on = truth(test()) if over is False else True
        if over is not False or isinstance(goes_on, Variable):
            loop.while_rolled(test, goes_on if over is False else None)
            return
        if not goes_on:
            return
        body()


def _of_part(body: Part, names: Sequence[str], exits: Sequence[str]) -> _Loop:
    every = tuple(dict.fromkeys((*names, *exits)))
    return _Loop(body, Cells((body,), every), every, exits)


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
        """Unrolls the passes. Those behind a pass that may have ended the loop stand under a choice."""
        for item in items:
            self.body(item)
            over = self.is_over()
            if over is True:
                return
            if over is not False:
                self._under_choice(over, items)
                return

    def _under_choice(self, over: Variable, items: Iterator[Any]) -> None:
        freeze([items], "a loop over it was left where only the run decides, so that nobody knows where it stands")
        rest = Joined((self.body,), lambda: self.one_by_one(items))
        chosen_in(over, None, rest, self.cells)

    def tried(self, rows: Rows) -> None:
        """Runs a loop of known length in trial passes: the first that computes something traced becomes a scan, with all that follow.

        It is unrolled instead if it cannot be taken back, or if few passes are left that do little.
        """
        n_known = n_spent = 0  # passes in a row that were Python's own; nodes that unrolled passes have asked for
        for k in range(rows.length):
            if n_known >= ENOUGH_KNOWN:
                if self._goes_on_untried(rows, k):
                    n_known += 1
                    continue
                return
            lists = HOOKS["lists"](self.body) if CAPTURE.grows else {}
            before, taken_back, mark = self.cells.values(), (keep_free(), keep_draws()), n_asked()
            with frame(f"a loop{line_of(self.body)}", is_trial=True, parts=[self.body]) as noted:
                try:
                    self.body(rows.at(k))
                except BaseException:
                    noted.undo(self.cells, before)
                    raise
            over = self.is_over()
            asked = n_asked() - mark
            is_known = over is True or (over is False and not asked)
            grown = HOOKS["longer"](self.body, lists)
            n_left = rows.length - k
            is_long = _is_long(n_left, asked, n_spent) or (isinstance(over, Variable) and n_left > MOST_WAYS_OUT)
            if not is_known and is_long and not self._has_to_stay(noted, n_left):
                noted.undo(self.cells, before)
                for take_back in taken_back:
                    take_back()
                self._rest(rows.after(k), grown)
                return
            noted.hand_on()
            if over is True:
                return
            if over is not False:
                self._under_choice(over, iter(rows.after(k + 1)))
                return
            n_known, n_spent = n_known + 1 if is_known else 0, n_spent + asked

    def _goes_on_untried(self, rows: Rows, k: int) -> bool:
        """Runs pass k as Python does, without a trial, which would cost time. True if the loop goes on so.

        A pass that computes something traced is unrolled, and what is left becomes a scan, or is unrolled if it is short.
        """
        mark, lists = n_asked(), HOOKS["lists"](self.body) if CAPTURE.grows else {}
        self.body(rows.at(k))
        over = self.is_over()
        if over is True:
            return False
        if over is False and n_asked() == mark:
            return True
        if rows.length - k - 1 > UNROLLED:
            self._rest(rows.after(k + 1), HOOKS["longer"](self.body, lists))
        elif over is False:
            self.one_by_one(iter(rows.after(k + 1)))
        else:
            self._under_choice(over, iter(rows.after(k + 1)))
        return False

    def _has_to_stay(self, noted: Frame, n_left: int) -> bool:
        """Whether a pass did what cannot be taken back, so that all passes are unrolled. Stuck, a TypeError, for too many."""
        has_to_stay = noted.is_lasting()
        if has_to_stay and n_left > MOST_WRITTEN_OUT:
            raise Stuck(
                f"{noted.what} has {n_left} passes left, and advances an iterator, draws, or calls what only Python knows{at_line()}; "
                "do that before the loop, with arrays as its result"
            )
        return has_to_stay

    def _rest(self, rows: Rows, grown: Sequence[Any], is_behind_first: bool = False) -> None:
        """Runs what is left of a loop as a scan; where it cannot be one, the first pass alone and a scan; else unrolled.

        grown: the lists to which a pass appends. is_behind_first: the first pass has run alone already.
        """
        before, free = self.cells.values(), keep_free()
        growth = HOOKS["growth"](self.body, grown, rows) if grown and CAPTURE.grows and not self.exits else None
        try:
            with frame(f"a loop{line_of(self.body)}", parts=[self.body]) as noted:
                if growth is None:
                    self.rolled(rows)
                else:
                    loop = _of_part(growth.body, (*self.names, *growth.names), ())
                    _Scan(loop, rows, None, kept=growth.kept).run(False)
            if growth is not None:
                growth.finish()
        except BaseException as error:
            noted.undo(self.cells, before)
            if growth is not None:
                growth.put_back()
            free()
            # the function is traced again for NeedsTracedArrays: unrolled passes would only meet it once more
            is_final = isinstance(error, Stuck) or (isinstance(error, NeedsTracedArrays) and not CAPTURE.makes_arrays)
            if is_final or is_behind_first or noted.is_stuck or rows.length > MOST_WRITTEN_OUT or not isinstance(error, _NO_SCAN):
                raise
            if grown or not self._with_first_pass_alone(rows):
                try:
                    self.one_by_one(iter(rows))
                except RecursionError:  # so many passes that each may end the loop
                    raise error from None
            return
        last = noted.take_back()
        for key, place in noted.places.items():
            note(key, place)
            place.write(released(last[key]) if noted.objects[key] is None else noted.objects[key])

    def _with_first_pass_alone(self, rows: Rows) -> bool:
        """Runs the first pass, which may give variables the kinds that they keep, and the others as a scan. False, undone, if not."""
        if rows.length <= UNROLLED:
            return False
        before, taken_back = self.cells.values(), (keep_free(), keep_draws())
        with frame(f"a loop{line_of(self.body)}", is_trial=True, parts=[self.body]) as noted:
            try:
                self.body(rows.at(0))
                over, rest = self.is_over(), Joined((self.body,), lambda: self._rest(rows.after(1), (), is_behind_first=True))
                if over is False:
                    rest()
                elif over is not True:
                    chosen_in(over, None, rest, self.cells)
            except BaseException as error:
                noted.undo(self.cells, before)
                for take_back in taken_back:
                    take_back()
                if noted.is_stuck or not isinstance(error, _NO_SCAN):
                    raise
                return False
        noted.hand_on()
        return True

    # as a scan --------------------------------------------------------------------------------------------------------

    def rolled(self, rows: Rows) -> None:
        """Runs the loop over rows as a scan. No step runs if a flag is set before it."""
        over = self.is_over()
        _Scan(self, rows, None).run(over)

    def while_rolled(self, test: Callable[[], Any], first: Any) -> None:
        """Runs the loop as a scan that goes on while the condition holds. first: the condition before the loop, if it was asked already."""
        _Scan(self, None, test, first).run(self.is_over())


def _is_long(n_left: int, asked: int, n_spent: int) -> bool:
    """True if a loop is better a scan than unrolled. asked: the nodes that a pass has asked for. n_spent: that those before it have."""
    return n_left > UNROLLED or n_spent + n_left * asked > MOST_ASKED


MOST_WAYS_OUT = 2
"""The most passes that are unrolled where each may end the loop: all that follow stand in a choice, one within the other."""


class _Again(BaseException):
    """Raised to trace a loop's body again: what is carried has changed. No error, so that no `except Exception` of the user's gets it."""

    def __init__(self, scan: _Scan) -> None:
        super().__init__()
        self.scan = scan


class _Row(View):
    """A row of an array that a loop runs over. If the loop writes rows, or the array below them, each pass reads its row from the array."""

    __slots__ = ("scan",)

    def __init__(self, base: Variable, scan: _Scan) -> None:
        super().__init__(base, scan.read_live, scan.read_live)
        self.scan = scan


@dataclass(slots=True)
class _Carried:
    """A value that goes from pass to pass: a variable or a place that the body changes.

    - initial: its leaves before the loop. objects: the same leaves as objects, so that arrays keep their identity.
    - kinds: whether each leaf is an array of rank 0; None where it is one in some passes, and a number in others.
    - is_read: whether a pass reads what the one before has left. is_asked_for: whether it does so and makes nothing of it.
    """

    label: str
    structure: Structure
    initial: list[Variable]
    objects: list[Any]
    kinds: list[bool | None]
    is_read: bool = True
    is_asked_for: bool = False

    def may_be_none(self) -> None:
        """Makes a number a number or None: a pass may leave either."""
        self.structure = _OPTION
        self.initial = [as_variable(True), *self.initial]
        self.objects, self.kinds = [True, *self.objects], [False, *self.kinds]


class _Scan:
    """A loop as a scan. Its body is traced until its changes are known, and their types are settled.

    kept: the variables whose values after every pass are given, not only those after the last.
    """

    def __init__(self, loop: _Loop, rows: Rows | None, test: Callable[[], Any] | None, first: Any = None, kept: Sequence[str] = ()) -> None:
        self.loop, self.rows, self.test, self.first, self.kept = loop, rows, test, first, kept
        self.start = {name: ABSENT if is_unassured(value) else value for name, value in loop.cells.values().items()}
        self.what = f"the loop{line_of(loop.body)}"
        self.carried: dict[Any, _Carried] = {}
        self.places: dict[tuple[int, Any], Place] = {}
        self.left: dict[Any, None] = {}
        self.sole: set[int] = set()
        self.moved: list[Variable] = []
        self.shared: dict[Any, list[tuple[list[Variable], bool, list[np.ndarray]]]] = {}
        self.eithers: list[Either] = []  # among what this pass was given
        self.handed: dict[Any, list[Any]] = {}  # by name bound anew, the cells of the arrays that this pass was given under it
        self.n_steps: int | None = None  # how many steps run, where that is known
        self.is_live = False  # rows are read from what the arrays hold at each pass
        for name, value in self.start.items():
            if not is_unbound(value):
                self._carry_numbers(name, value)

    def _carry_numbers(self, name: str, value: Any) -> None:
        """Carries a number or a nest of numbers from the start. Arrays are carried once a pass puts another in their place."""
        leaves, _ = flattened(value)
        if leaves and all(is_numeric(leaf) and not is_array_leaf(leaf) for leaf in leaves):
            self.carried[name] = _carried(name, value)

    def run(self, over: Any) -> None:
        """Traces the scan, and binds the variables to their values behind it."""
        self.loop.cells.fill(self.start)
        with keeping(self.start):
            self.sole, first = soles(self.start), next_serial()
            for _ in range(ATTEMPTS):
                try:
                    with hidden(first, next_serial()):  # what an earlier trace of the body has made is not there before the loop
                        results = self._traced(over)
                except _Again as again:
                    if again.scan is not self:
                        raise
                    self.loop.cells.fill(self.start)
                    continue
                except NameError as error:
                    if not self._asks_for(error.name):
                        raise
                    continue
                except OtherDtype as other:
                    if FRAMES.stack:
                        raise
                    other.promote()
                    self.loop.cells.fill(self.start)
                    continue
                self._bind(results)
                return
        raise TypeError(f"{self.what}: what its body changes has another type at each pass{at_line()}; give it one dtype and shape before")

    def _asks_for(self, name: str | None) -> bool:
        """Whether a NameError is due to a variable taken for unread that a pass does read, without use. It is carried from now on."""
        one = self.carried.get(name)
        if one is None or one.is_read:
            return False
        one.is_read = one.is_asked_for = True
        return True

    # rows -------------------------------------------------------------------------------------------------------------

    def read_live(self, *_: Any) -> NoReturn:
        """Raises _Again: from the next trace on, rows are read from the arrays as they are at each pass."""
        self.is_live = True
        raise _Again(self)

    def _sequences(self) -> list[Variable]:
        """The sequences of the scan; of live rows, their numbers."""
        rows = self.rows
        if rows is None:
            return []
        if not self.is_live:
            return rows.leaves
        others = Rows(tuple(source for source in rows.sources if array_below(source) is None), rows.structure, rows.length)
        numbers = range(rows.length) if isinstance(rows.length, int) else TracedRange(0, rows.length, 1)
        return [*others.leaves, *Rows((numbers,), rows.structure, rows.length).leaves]

    def _item(self, values: Sequence[Variable]) -> Any:
        """The item of a pass."""
        assert self.rows is not None
        sources = self.rows.sources
        if self.is_live:
            *others, k = values
            rest = iter(others)
            return self.rows.one([next(rest) if array_below(source) is None else source[k] for source in sources])
        for source, value in zip(sources, values, strict=True):
            if isinstance(source, Variable) and source.home is not None and value.ndim:
                value.home, value.view_of = source.home, _Row(source, self)
        return self.rows.one(values)

    def _reads_what_is_written(self, noted: Frame) -> bool:
        """Whether a pass writes an array below the rows."""
        below = [array_below(source) for source in self.rows.sources] if self.rows is not None else []
        roots = {id(array.cell) for source in below if source is not None for array in Held(source).others()}
        return any((root, None) in noted.places for root in roots)

    # one trace --------------------------------------------------------------------------------------------------------

    def _traced(self, over: Any) -> list[Any]:
        sequences = self._sequences()
        states = {key: one for key, one in self.carried.items() if one.is_read}
        labels = {key: self._variable_of(key) or one.label for key, one in states.items()}
        names = [f"row_{k}" for k in range(len(sequences))] + [path for key in states for path in paths(states[key].structure, labels[key])]

        def step(*values: Variable) -> Any:
            return self._step(values[: len(sequences)], values[len(sequences) :])

        step.__name__ = "loop"
        vars(step).update({PART_OF: CAPTURE.home, "__wrapped__": self.loop.body, "__signature__": _signature(names)})
        options = make_options(step, {"return_list": True, "return_updates": False, "checkpoint": _KEPT if self.test is not None else None})
        n_steps = self._most_steps(over)
        arguments = Arguments(sequences, [*(leaf for one in states.values() for leaf in one.initial), None], None, options.name)
        return list(symbolic(step, arguments, n_steps, options.for_graph()))

    def _variable_of(self, key: Any) -> str:
        """The name of a variable that holds an array which the body writes, if there is one."""
        variables = own_variables(self.loop.body) if key in self.places and key[1] is None else {}
        return next((name for name, value in variables.items() if isinstance(value, Variable) and id(value.cell) == key[0]), "")

    def _most_steps(self, over: Any) -> Variable:
        """The largest number of steps: 0 if a flag is set before the loop, or the condition does not hold there."""
        if self.rows is not None:
            length = self.rows.length
            self.n_steps = length if isinstance(length, int) and over is False and not self.loop.exits else None
            most = as_variable(np.int64(length) if isinstance(length, int) else length)
            return most if over is False else as_variable(np.where(over, 0, most)).astype("int64")
        return as_variable(np.where(self._first_goes_on(over), _MOST_STEPS, 0)).astype("int64")

    def _first_goes_on(self, over: Any) -> Any:
        """Whether there is a pass at all. The condition is asked only once, as it may have side effects."""
        if self.first is None:
            self.first = self._goes_on(over)
        return self.first

    def _goes_on(self, over: Any) -> Any:
        """Whether there is one more pass."""
        test = self.test
        if test is None:
            return negation(over)
        return truth(test()) if over is False else truth(value_of(over, lambda: False, lambda: truth(test())))

    def _step(self, row: Sequence[Variable], states: Sequence[Variable]) -> Any:
        """Traces one pass on placeholders. Returns what it carries on, what it leaves behind, and whether it is the last."""
        loop, values = self.loop, iter(states)
        self.eithers, self.handed = [], {}
        given: dict[Any, list[Node]] = {}
        with frame(f"the body of {self.what}", parts=[loop.body, self.test]) as noted:
            start = dict(self.start)
            for key, one in self.carried.items():
                given[key] = [next(values).node for _ in one.initial] if one.is_read else []
                arrays = list(map(Variable, given[key]))
                if self._is_bound(key):
                    self.handed[key] = [array.cell for array in arrays]
                self._note_aliases(noted, key, arrays)
                if key in self.places:
                    note(key, self.places[key])
                    self.places[key].write(self._made_of(one, arrays))
                else:
                    start[key] = self._made_of(one, arrays) if one.is_read else ABSENT
                del arrays
            loop.cells.fill(start)
            del start
            try:
                loop.body(*([self._item(row)] if self.rows is not None else []))
                if self.rows is not None:
                    self.rows.check()
                over = loop.is_over()
                go_on = self._goes_on(over)
                objects: dict[Any, Any] = {name: assured(value, self.start[name]) for name, value in loop.cells.values().items()}
                ends: dict[Any, Any] = {name: held(value) for name, value in objects.items()}
            finally:
                written = noted.undo(loop.cells, self.start)
            noted.refuse_changes()
        if not self.is_live and self._reads_what_is_written(noted):
            self.read_live()
        self._note_places(noted, written)
        objects |= noted.objects
        self.holders = {key: set(map(id, holders(value))) for key, value in objects.items()} if self.kept else {}
        self.known: dict[Any, list[Any]] = {name: self._known_holders(noted, name, self.start[name], objects) for name in loop.names}
        self.known |= {key: self._known_holders(noted, key, place.before, objects) for key, place in self.places.items()}
        ends |= written
        return self._returned(noted, given, ends, None if go_on is True else negation(go_on))

    def _note_aliases(self, noted: Frame, key: Any, arrays: Sequence[Variable]) -> None:
        """Notes the arrays that a name has in this pass as aliases of those that it had before the loop."""
        if isinstance(key, tuple) and key[1] is None:  # an array that is written is no alias of itself
            return
        for array, before in zip(arrays, self.carried[key].objects, strict=False):
            if isinstance(before, Variable) and is_array(before):
                start = Held(before)
                for cell in {id(start.root), *(id(other.cell) for other in start.others())}:
                    noted.aliases.setdefault(cell, []).append(weakref.ref(array))

    def _known_holders(self, noted: Frame, name: Any, before: Any, objects: dict[Any, Any]) -> list[Any]:
        """The lists, dicts and objects of a name or a place behind the loop, if others may know them. Empty if a pass leaves the same."""
        found, start = holders(objects.get(name)), holders(before)
        if list(map(id, found)) == list(map(id, start)):
            return []
        counts = Counter(id(holder) for value in objects.values() for holder in holders(value))
        is_seen = any(is_known(holder, noted) or counts[id(holder)] > 1 for holder in found)
        return [*start, *found] if is_seen or (start and (not self.n_steps or name not in self.carried)) else []

    def _note_places(self, noted: Frame, ends: dict[tuple[int, Any], Any]) -> None:
        """Carries each array, element and attribute that the body writes. Raises _Again if one of them was not carried yet."""
        new = {key: place for key, place in noted.places.items() if key not in self.places and not noted.made(place.born)}
        for key, place in new.items():
            self.places[key] = place
            before, _ = as_options(place.before, ends.get(key))
            self.carried[key] = _carried(place.label, before)
        if new:
            raise _Again(self)

    # what a pass gives --------------------------------------------------------------------------------------------------

    def _returned(self, noted: Frame, given: dict[Any, list[Node]], ends: dict[Any, Any], over: Any) -> Any:
        self._carry_arrays(ends)
        results = {key: self._leaves(one, ends[key]) for key, one in self.carried.items()}
        settled = [self._settled(one, results[key]) for key, one in self.carried.items()]  # a list: all are promoted before the next trace
        if any(settled):
            raise _Again(self)
        self._check_rest(ends)
        behind = {name: ends[name] for name in self.loop.names if is_unbound(self.start[name]) and name not in self.carried}
        behind = {name: behind[name] for name in sorted(behind) if not is_unbound(behind[name])}  # in the order of the leaves of a dict
        leaves, self.behind = flattened(behind)
        self.names_behind = [name for name, value in behind.items() for _ in flattened(value)[0]]
        self._check_arrays(noted, given, results, leaves)
        self.constants = {k: leaf for k, leaf in enumerate(leaves) if not is_numeric(leaf) or self._is_outer(noted, leaf)}
        of_passes = [k for k, leaf in self.constants.items() if isinstance(leaf, InPlaceOfAList) and noted.made(leaf.born)]
        self.constants.update((k, Gone()) for k in of_passes)
        self.others_behind = self._others_behind(noted, leaves, results)
        self.weak_behind = [k not in self.constants and as_variable(value_in(leaf)).type.weak for k, leaf in enumerate(leaves)]
        states = {key: self._promoted(one, results[key]) for key, one in self.carried.items()}
        self.states_behind = self._states_behind(leaves, states)
        known = self.constants.keys() | self.states_behind.keys()
        last = [as_variable(value_in(leaf)) for k, leaf in enumerate(leaves) if k not in known]
        self._check_reads(given, states, last, over)
        self._check_starts(given, states, results)
        self._check_elements()
        unread = [leaf for key, one in self.carried.items() if not one.is_read for leaf in states[key]]
        outputs: list[Any] = [leaf for key, one in self.carried.items() if one.is_read for leaf in states[key]]
        outputs.append({"last": (*unread, *last)})
        return outputs if over is None else [*outputs, until(over)]

    def _states_behind(self, leaves: Sequence[Any], states: dict[Any, list[Variable]]) -> dict[int, tuple[Any, int]]:
        """For each leaf of a function's result that is an array which the loop carries: which state. Its rows are not kept twice."""
        places = {end.node: (key, k) for key, ends in states.items() if self.carried[key].is_read for k, end in enumerate(ends) if end.ndim}
        found = ((k, places.get(as_variable(value_in(leaf)).node)) for k, leaf in enumerate(leaves) if k not in self.constants)
        return {k: place for k, place in found if place is not None and self.start.get(self.names_behind[k]) is UNSET}

    def _others_behind(
        self, noted: Frame, leaves: Sequence[Any], results: dict[Any, list[Any]]
    ) -> list[tuple[list[Variable], bool, list[np.ndarray]]]:
        """For each leaf under a new name: the outer arrays that it may be a view of, whether it has two names, and arrays of NumPy's."""
        others = [leaf for key in results if self._is_bound(key) for leaf in results[key]]
        everything = [leaf for leaf in (*leaves, *others) if isinstance(leaf, Held)]
        counts = Counter(id(leaf.root) for leaf in everything)
        kept = [leaf for name, leaf in zip(self.names_behind, leaves, strict=True) if name in self.kept and isinstance(leaf, Held)]
        last = {id(leaf) for leaf in (*results.get(LAST_ELEMENTS, ()), *kept)}
        elements = self._elements(results, kept)
        has_names = any(id(leaf) not in last and not elements.isdisjoint(leaf.cells()) for leaf in everything)

        def is_shared(name: str, leaf: Held) -> bool:
            is_element = has_names if name in self.kept else not elements.isdisjoint(leaf.cells())
            return is_element or self._is_shared(noted, name, leaf, counts)

        numpys = self._numpys(noted, [*leaves, *others])
        return [
            ([array for array in leaf.others() if not noted.made(array.born)], is_shared(name, leaf), numpys(leaf))
            if isinstance(leaf, Held)
            else ([], False, numpys(leaf))
            for name, leaf in zip(self.names_behind, leaves, strict=True)
        ]

    def _is_shared(self, noted: Frame, name: str, leaf: Held, counts: Counter[int]) -> bool:
        """Whether an array that a pass leaves has two names, or may be another pass's array too."""
        return counts[id(leaf.root)] > 1 or (name in self.kept and (leaf.is_view or not noted.made(leaf.born)))

    def _is_outer(self, noted: Frame, leaf: Any) -> bool:
        """Whether a leaf is an array from before the loop: its name stays a name of that array."""
        if type(leaf) is np.ndarray:
            return bool(self.n_steps) and noted.knew(leaf)
        return isinstance(leaf, Held) and not noted.made(leaf.born) and not leaf.is_view

    def _carry_arrays(self, ends: dict[Any, Any]) -> None:
        """Carries the arrays in whose place a pass puts others. Raises _Again if there are any."""
        again = False
        for name in self.loop.names:
            start, end = self.start[name], ends[name]
            if name in self.carried or name in self.left or is_unbound(start) or is_absent(end) or is_same(held(start), end):
                continue
            if all(map(is_numeric, flattened(start)[0])):
                if _is_unchanged_nest(start, end):
                    continue
                self.carried[name] = _carried(name, as_options(start, end)[0])
                again = True
        if again:
            raise _Again(self)

    def _leaves(self, one: _Carried, end: Any) -> list[Any]:
        """The leaves of a value behind a pass. TypeError for another structure, or for a leaf that is no number."""
        if is_absent(end):
            raise UnboundLocalError(f"{self.what} leaves {one.label} unbound on some way{at_line()}; give it a value on every way")
        if one.structure == _OPTION:
            end = as_options(Option(False, False), end)[1]
        elif isinstance(end, Option) and one.structure == LEAF:
            one.may_be_none()
            raise _Again(self)
        leaves, structure = flattened(end)
        if not alike(structure, one.structure):
            raise TypeError(
                f"{self.what}: {one.label} is {describe_structure(one.structure)} before it and {describe_structure(structure)} behind a "
                f"pass{at_line()}; {one_structure(one.structure, structure)}"
            )
        for leaf in leaves:
            if not is_numeric(leaf):
                raise TypeError(f"{self.what}: {one.label} is a number before it and {leaf!r} behind a pass{at_line()}; give it one kind")
        return leaves

    def _made_of(self, one: _Carried, leaves: Iterable[Variable]) -> Any:
        """A carried value, put together of its leaves. Each leaf is marked as an array of rank 0, a number, or either."""
        given = list(leaves)
        for leaf, kind in zip(given, one.kinds, strict=True):
            if kind is None:
                self.eithers.append(Either())
            leaf.is_0d = self.eithers[-1] if kind is None else kind
        return unflatten(one.structure, given)

    def _settled(self, one: _Carried, ends: Sequence[Any]) -> bool:
        """Promotes a state to a type that holds it before and behind a pass. True if that changes its type."""
        is_new = False
        for k, leaf in enumerate(ends):
            before, after = one.initial[k], as_variable(value_in(leaf))
            if not _has_shape_of(before, after):
                raise TypeError(
                    f"{self.what}: {one.label} has shape {show_shape(before.type.shape)} before it and {show_shape(after.type.shape)} "
                    f"behind a pass{at_line()}; give it one shape"
                )
            type_ = promoted(before.type, after.type)
            kind = one.kinds[k] if one.kinds[k] is (not after.ndim and is_0d(leaf)) else None
            one.kinds[k], is_new = kind, is_new or kind is not one.kinds[k]
            if (before.type.dtype, before.type.weak) not in ((after.type.dtype, after.type.weak), (type_.dtype, type_.weak)):
                one.initial[k], is_new = as_type(before, type_), True
        return is_new

    def _promoted(self, one: _Carried, ends: Sequence[Any]) -> list[Variable]:
        """What a pass leaves, in the type of the state. Left as it is if no pass reads it and there is a pass for sure."""
        values = [as_variable(value_in(leaf)) for leaf in ends]
        if self.n_steps and not one.is_read:
            return values
        types = [
            TensorType(before.type.dtype, value.type.shape, before.type.weak) for value, before in zip(values, one.initial, strict=True)
        ]
        return [as_type(value, type_) for value, type_ in zip(values, types, strict=True)]

    def _check_rest(self, ends: dict[Any, Any]) -> None:
        """TypeError if the body changes a variable that cannot be carried: it is no number, array or nest of these."""
        for name in self.loop.names:
            start, end = self.start[name], ends[name]
            if (
                name in self.carried
                or name in self.left
                or is_unbound(start)
                or is_same(held(start), end)
                or _is_unchanged_nest(start, end)
            ):
                continue
            raise TypeError(
                f"{self.what} changes {name}, which holds a {type(start).__name__}{at_line()}; only numbers, arrays and nests of these can "
                "be carried from pass to pass"
            )

    def _check_arrays(self, noted: Frame, given: dict[Any, list[Node]], results: dict[Any, list[Any]], behind: Sequence[Any]) -> None:
        """ValueError where an array handed from pass to pass is written, and has another name. Sets `moved` and `shared` for `_bind`."""
        names = [key for key in self.carried if self._is_bound(key)]
        handed_on = {node for key in names for node in given[key]}
        ends = [leaf for key in names for leaf in results[key] if isinstance(leaf, Held)]
        roots = {id(leaf.root) for leaf in ends} | {id(array.cell) for leaf in ends for array in leaf.others()}
        arrays = [place.before for place in noted.places.values() if place.content is NO_OBJECT]
        is_written = any(isinstance(array, Variable) and array.node in handed_on for array in arrays)
        is_written = is_written or any(either.is_changed for either in self.eithers)
        starts = [leaf for key in names for leaf in self.carried[key].objects if isinstance(leaf, Variable) and is_array(leaf)]
        kept = [leaf for name, leaf in zip(self.names_behind, behind, strict=True) if name in self.kept and isinstance(leaf, Held)]
        counts = Counter([*(id(leaf.root) for leaf in (*ends, *kept)), *(id(leaf.cell) for leaf in starts)])
        is_own = self._is_own(noted, results, ends)
        elements = self._elements(results, kept)
        lent = {node for key in names for cell, node in zip(self.handed[key], given[key], strict=True) if id(cell) in elements}
        is_known = bool(counts) and (max(counts.values()) > 1 or not is_own)
        is_known = is_known or any(isinstance(array, Variable) and array.node in lent for array in arrays)
        if is_known and (is_written or any((root, None) in self.places for root in roots)):
            raise ValueError(
                f"{self.what}: an array that goes from pass to pass under a name that is bound anew is written, and has another name, too"
                f"{at_line()}; copy it where it gets the other name, as x.copy()"
            )
        counts.update(id(leaf.root) for leaf in behind if isinstance(leaf, Held) and not any(leaf is one for one in kept))
        self.moved = [array for array in starts if id(array.cell) not in self.sole] if is_written else []
        numpys = self._numpys(noted, [*behind, *(leaf for key in names for leaf in results[key])])
        self.shared = {key: [] for key in names}
        for key in names:
            for leaf, start in zip(results[key], self.carried[key].objects, strict=True):
                is_new = isinstance(leaf, Held) and noted.made(leaf.born) and not leaf.is_view
                others = [] if is_new or not isinstance(leaf, Held) else [one for one in leaf.others() if one.born is not noted]
                others += self._seen_by_others([start]) if not self.n_steps else []
                others += self._seen_by_others(starts) if isinstance(leaf, Held) and self._is_handed_on(leaf) else []
                others = [one for one in others if not any(one is array for array in self.moved)]  # those nobody may read
                is_element = isinstance(leaf, Held) and not elements.isdisjoint(leaf.cells())
                is_twice = isinstance(leaf, Held) and (counts[id(leaf.root)] > 1 or is_element)
                also = [*numpys(leaf), *(numpys(start) if not self.n_steps and not is_outside(start) else [])]
                self.shared[key].append((others, is_twice, also))

    def _numpys(self, noted: Frame, leaves: Iterable[Any]) -> Callable[[Any], list[np.ndarray]]:
        """Tells which arrays of NumPy's a leaf behind a pass may share memory with that others have: one from before, or another leaf."""
        counts = Counter(id(base_of(array)) for leaf in leaves for array in _arrays_of(leaf))

        def shared(leaf: Any) -> list[np.ndarray]:
            return [array for array in _arrays_of(leaf) if noted.knew(array) or counts[id(base_of(array))] > 1]

        return shared

    def _elements(self, results: dict[Any, list[Any]], kept: Sequence[Held]) -> set[int]:
        """The ids of the cells of arrays that may be elements of a list: those that this pass has appended, and those that one before has
        appended and this pass was given, as last elements or under names."""
        found = {id for leaf in kept for id in leaf.cells()} | {id(cell) for cell in self.handed.get(LAST_ELEMENTS, ())}
        n_found = -1
        while n_found < len(found):
            n_found = len(found)
            for key, cells in self.handed.items():
                for leaf, cell in zip(results[key], cells, strict=False):
                    if isinstance(leaf, Held) and not found.isdisjoint(leaf.cells()):
                        found.add(id(cell))
        return found

    def _seen_by_others(self, starts: Iterable[Any]) -> list[Variable]:
        """Among values before the loop, the arrays that others have too; and the arrays below views."""
        arrays = [start for start in starts if isinstance(start, Variable) and is_array(start)]
        seen = [array for array in arrays if id(array.cell) not in self.sole]
        return [*seen, *(one for array in arrays if array.view_of is not None for one in Held(array).others())]

    def _is_handed_on(self, leaf: Held) -> bool:
        """Whether what a pass leaves may be an array that it was given."""
        handed = {id(cell) for cells in self.handed.values() for cell in cells}
        return id(leaf.root) in handed or any(id(array.cell) in handed for array in leaf.others())

    def _is_own(self, noted: Frame, results: dict[Any, list[Any]], ends: Sequence[Held]) -> bool:
        """Whether a pass makes all arrays that it leaves.

        Under a name it leaves no view; an element may be a view of arrays that the pass makes and no other element shares.
        """
        sources = Counter(id(array.cell) for leaf in ends for array in leaf.others())
        elements = {id(leaf) for key in results if key in self.places for leaf in results[key]}

        def is_one_of_own(leaf: Held) -> bool:
            return id(leaf) in elements and all(noted.made(one.born) and sources[id(one.cell)] == 1 for one in leaf.others())

        return all(noted.made(leaf.born) and (not leaf.is_view or is_one_of_own(leaf)) for leaf in ends)

    def _is_bound(self, key: Any) -> bool:
        """Whether a carried value is bound anew (a name, an element or an attribute), and is no array that is written."""
        return key not in self.places or self.places[key].content is not NO_OBJECT

    def _check_starts(self, given: dict[Any, list[Node]], states: dict[Any, list[Variable]], results: dict[Any, list[Any]]) -> None:
        """ValueError where a pass writes an array that a name has only before the loop: in other passes the name has another array."""
        written = [key for key in self.places if any(end.node is not node for end, node in zip(states[key], given[key], strict=True))]
        for key, one in self.carried.items():
            starts = [Held(leaf) for leaf in one.objects if isinstance(leaf, Variable) and is_array(leaf)]
            roots = {id(leaf.root) for leaf in starts} | {id(array.cell) for leaf in starts for array in leaf.others()}
            is_handed_on = any(isinstance(leaf, Held) and self._is_handed_on(leaf) for leaf in results[key])
            if self._is_bound(key) and one.is_read and is_handed_on and any((root, None) in written for root in roots):
                raise ValueError(
                    f"{self.what} writes an array that {one.label} has before the loop, and binds {one.label} anew{at_line()}: which array "
                    f"it has at a pass only the run knows; give it a copy, as x.copy()"
                )

    def _check_elements(self) -> None:
        """TypeError where a pass reads a list, dict or object that one before has appended to a list: it would get a copy of it."""
        elements = set().union(*(self.holders[name] for name in self.kept))
        for key, one in self.carried.items():
            if key != LAST_ELEMENTS and one.is_read and not elements.isdisjoint(self.holders.get(key, ())):
                raise TypeError(f"{self.what} reads {one.label}, which a pass before has appended to a list{at_line()}; append a copy")

    def _check_reads(self, given: dict[Any, list[Node]], states: dict[Any, list[Variable]], last: Sequence[Variable], over: Any) -> None:
        """Stops carrying variables that every pass leaves as they were, and notes those that no pass reads. Raises _Again if there are any.

        What is known of a variable is known in the passes only if it is not carried.
        """
        again = False
        for key in [key for key in given if key not in self.places]:
            one = self.carried[key]
            is_left = one.is_read and all(end.node is value for end, value in zip(states[key], given[key], strict=True))
            is_constant = all(
                constant_value(end.node) is not None and end.node is before.node
                for end, before in zip(states[key], one.initial, strict=True)
            )
            if is_left or is_constant:
                del self.carried[key]
                self.left[key] = None
                again = True
        if again:
            raise _Again(self)
        nodes = [leaf.node for leaves in states.values() for leaf in leaves] + [leaf.node for leaf in last]
        nodes += [as_variable(over).node] if over is not None else []
        read = set(free_inputs(nodes))
        for key, leaves in given.items():
            if (
                key not in self.places
                and leaves
                and self.carried[key].is_read
                and not self.carried[key].is_asked_for
                and not any(node in read for node in leaves)
            ):
                self.carried[key].is_read = False
                again = True
        if again:
            raise _Again(self)

    # behind the loop --------------------------------------------------------------------------------------------------

    def _bind(self, results: list[Any]) -> None:
        values = dict(self.start)
        rows, last = iter(results[:-1]), iter(results[-1]["last"])
        found = {key: [next(rows) for _ in one.initial] for key, one in self.carried.items() if one.is_read}
        found |= {key: [next(last) for _ in one.initial] for key, one in self.carried.items() if not one.is_read}
        for key, one in self.carried.items():
            ends = [Variable(self._last(before, row).node) for before, row in zip(one.initial, found[key], strict=True)]
            for end, (others, is_twice, numpys) in zip(ends, self.shared.get(key, []), strict=self._is_bound(key)):
                if (end.ndim or any(one.kinds)) and (others or is_twice or numpys):
                    why = f"{one.label} is one of two arrays, as passes of a loop go"
                    end.view_of = _unsure(one.label, end, others, why, is_twice, numpys)
                    if any(map(is_outside, numpys)):
                        end.home = why
            if key in self.places:
                note(key, self.places[key])
                self.places[key].write(self._made_of(one, ends))
            else:
                values[key] = self._made_of(one, ends)
        names = [
            released(self.constants[k])
            if k in self.constants
            else self._left(name, self._rows_behind(k, found, last), self.weak_behind[k], *self.others_behind[k])
            for k, name in enumerate(self.names_behind)
        ]
        values.update(unflatten(self.behind, names))
        for name, known in self.known.items():
            if known:
                label, now = (self.places[name].label, self.places[name].content()) if name in self.places else (name, values[name])
                freeze([*known, *holders(now)], f"{label} is one of several, as passes of a loop go")
        self.loop.cells.fill(values)
        handed_on = [leaf for one in self.carried.values() for leaf in one.objects if isinstance(getattr(leaf, "is_0d", None), Either)]
        for array in [*self.moved, *handed_on]:
            array.view_of = Moved(array_itself(array), [], f"{array.name or 'an array'} was handed from pass to pass by {self.what}")

    def _last(self, before: Variable, rows: Variable) -> Variable:
        """A state behind the last step; its initial value if there is no step."""
        if self.n_steps:
            return _weak_as(rows[-1], before)
        first = as_type(before, TensorType(rows.type.dtype, ()))
        return _weak_as(Variable(last_state(first.node, rows.node)), before)

    def _rows_behind(self, k: int, states: dict[Any, list[Variable]], last: Iterator[Variable]) -> tuple[Variable, Variable | None]:
        """A leaf's values at all steps, and the initial value if it is a state."""
        key, place = self.states_behind.get(k, (None, 0))
        return (next(last), None) if key is None else (states[key][place], self.carried[key].initial[place])

    def _left(
        self, name: str, steps: tuple[Variable, Variable | None], is_weak: bool, others: Sequence[Variable], is_twice: bool, numpys: Any
    ) -> Any:
        """The value that the last step left under a name that was not bound before; for one of `kept`, the values that all steps left.

        Without a step it is zeros for our own flags and results, and for the user's names an error when read.

        is_weak: it is one of Python's numbers.
        """
        rows, initial = steps
        if name in self.kept:
            every = Variable(rows.node)
            if every.ndim > 1 and (others or is_twice):
                every.view_of = UnsureView(array_itself(every), others, "an element of a list may be a view of an array", is_twice)
            return PythonNumbers(every) if is_weak else every
        why = f"{name}, as a loop leaves it, may be a view of an array"
        if self.n_steps:
            value = Variable(rows[-1].node)
        elif initial is not None:
            value = Variable(self._last(initial, rows).node)
        elif rows.ndim == 1:
            value = Variable(last_state(zeros((), rows.type.dtype).node, rows.node))
        else:
            value = Variable(concatenate([zeros((1, *rows.shape[1:]), rows.type.dtype), rows[-1:]])[-1].node)
        value = as_type(value, TensorType(value.type.dtype, value.type.shape, weak=is_weak))
        if not self.n_steps and not name.startswith(HIDDEN) and self.start.get(name) is not UNSET:
            value.view_of = Unassured(name, value, rows, others, why, is_twice, numpys)
        elif value.ndim and (others or is_twice or numpys):
            value.view_of = _unsure(name, value, others, why, is_twice, numpys)
        return value


def _unsure(label: str, value: Variable, others: Sequence[Variable], why: str, is_twice: bool, numpys: Sequence[np.ndarray]) -> UnsureView:
    view = Returned if label == RESULT else UnsureView
    return view(array_itself(value), others, why, is_twice, [array for array in numpys if not is_outside(array)])


def _arrays_of(leaf: Any) -> list[np.ndarray]:
    """The arrays of NumPy's that a leaf is, or shares memory with."""
    if isinstance(leaf, Held):
        return leaf.arrays()
    return [leaf] if type(leaf) is np.ndarray else []


def _carried(label: str, value: Any) -> _Carried:
    leaves, structure = flattened(value)
    for leaf in leaves:
        if not is_numeric(leaf):
            raise TypeError(
                f"a loop writes {label}, which holds {leaf!r}{at_line()}; only numbers and arrays can be carried from pass to pass"
            )
    return _Carried(
        label,
        structure,
        [as_variable(value_in(leaf)) for leaf in leaves],
        [leaf.array if isinstance(leaf, Held) else leaf for leaf in leaves],
        [not np.ndim(value_in(leaf)) and is_0d(leaf) for leaf in leaves],
    )


def is_array_leaf(leaf: Any) -> bool:
    """Whether a leaf of a nest is an array, which can be written, and no number."""
    return is_array(leaf) if isinstance(leaf, Variable) else isinstance(leaf, np.ndarray)


def array_itself(array: Variable) -> Variable:
    """An array's value as a variable of its own."""
    return Variable(array.node)


def _is_unchanged_nest(start: Any, end: Any) -> bool:
    """Whether a nest holds the same objects."""
    mine, structure = flattened(start)
    theirs, other = flattened(end)
    return structure == other and all(is_same(held(one), leaf) for one, leaf in zip(mine, theirs, strict=True))


def _has_shape_of(one: Variable, other: Variable) -> bool:
    return one.ndim == other.ndim and all(a is None or b is None or a == b for a, b in zip(one.type.shape, other.type.shape, strict=True))


def _weak_as(value: Variable, before: Variable) -> Variable:
    return as_type(value, TensorType(value.type.dtype, (), weak=True)) if before.type.weak and not value.type.weak else value


def _signature(names: Iterable[str]) -> inspect.Signature:
    """Parameters for what a pass reads, by the names of the variables."""
    used: dict[str, None] = {}
    for k, name in enumerate(names):
        is_clear = name.isidentifier() and not iskeyword(name) and not name.startswith("_") and name not in used
        used[name if is_clear else next(one for n in count(k) if (one := f"value_{n}") not in used)] = None
    return inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in used])
