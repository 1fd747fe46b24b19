"""What a branch or a pass changes besides variables, noted so that it can be taken back and carried along.

Outside every branch and pass that the run decides, a write is Python's own. A witness finds changes that were not noted; they are refused.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..tracing import KEPT
from ..tree import flattened
from ..variable import CAPTURE, HOOKS, Variable, at_line
from .cells import Cells, GlobalVariable, Part, keeping_all
from .witness import Record, Witness


def NO_OBJECT() -> None:
    """The `content` of a place that is an array: it has a value, and no object."""


def base_of(value: Any) -> Any:
    """The array of NumPy's that a value is a view of; any other value itself."""
    while isinstance(value, np.ndarray) and isinstance(value.base, np.ndarray):
        value = value.base
    return value


@dataclass(eq=False, slots=True)
class Frame:
    """One branch or pass that is being traced.

    - what: its name in messages.
    - is_trial: a trial pass, which may yet be Python's own: what it does to lists is taken back and not refused.
    - places: the elements and attributes written, each with how to read and write it, and the value before.
    - undone: in their order, for each change what takes it back, with the place, or the object.
    - witness: what was there before. changes: what `restore` found.
    - objects: what the places held at the end.
    - is_stuck: something was done that cannot be taken back.
    - aliases: the arrays that a loop's names have in a pass, by the id of the cell of the array that the name had before the loop.
    """

    what: str
    is_trial: bool = False
    places: dict[tuple[int, Any], Place] = field(default_factory=dict)
    undone: list[tuple[Any, Callable[[], None]]] = field(default_factory=list)
    outer: Frame | None = None
    witness: Witness | None = None
    changes: list[Record] = field(default_factory=list)
    objects: dict[tuple[int, Any], Any] = field(default_factory=dict)
    is_stuck: bool = False
    aliases: dict[int, list[weakref.ref[Variable]]] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Its name in messages, with the line that is traced."""
        line = at_line()
        return self.what if line in self.what else f"{self.what}{line}"

    def knew(self, value: Any) -> bool:
        """Whether an object may have existed before the branch or pass. What was made within is its own."""
        value = base_of(value)
        return value is None or self.witness is None or self.witness.knows(value)

    def may_note(self, place: Place) -> bool:
        """Whether a write to a place is noted: nothing is taken back of objects that were made within."""
        return place.content is NO_OBJECT or isinstance(place.holder, GlobalVariable) or self.knew(place.holder)

    def made(self, born: Frame | None) -> bool:
        """Whether an object born in `born` was made in this branch or pass, or inside it, so that nobody outside knows it."""
        while born is not None and born is not self:
            born = born.outer
        return born is self

    def note(self, key: tuple[int, Any], place: Place) -> None:
        """Notes that a place is written here."""
        if key not in self.places and self.may_note(place) and not (place.is_private and self.made(place.born)):
            self.places[key] = place
            self.undone.append((place, lambda: place.write(place.before)))

    def hand_on(self) -> None:
        """Hands the notes to the branch or pass around. What was done stays done."""
        if self.outer is not None:
            keys = {id(place): key for key, place in self.places.items()}
            for value, undo in self.undone:
                if isinstance(value, Place):
                    if id(value) in keys:
                        self.outer.note(keys[id(value)], value)
                elif self.outer.knew(value):
                    self.outer.undone.append((value, undo))
            self.outer.is_stuck = self.outer.is_stuck or self.is_stuck

    def take_back(self) -> dict[tuple[int, Any], Any]:
        """Takes back everything that was noted, the last change first. Returns the last values of the places that are still there."""
        every = self.places
        self.places = {key: place for key, place in self.places.items() if place.is_there() and place.is_changed()}
        left = {id(place) for key, place in every.items() if key not in self.places and place.is_there()}
        try:
            last = {key: place.read() for key, place in self.places.items()}
        finally:  # reading a place may refuse an array: everything is taken back nevertheless
            self.objects = {key: place.content() for key, place in self.places.items()}
            for value, undo in reversed(self.undone):
                if id(value) not in left:
                    undo()
        return last

    def restore(self) -> None:
        """Gives Python's objects back what they held, where a change was not noted. To be called behind `take_back`."""
        if self.witness is None:
            return
        self.changes = self.witness.changes()
        for record in self.changes:
            record.give_back()
        self.is_stuck = self.is_stuck or not all(record.is_same() for record in self.changes)

    def is_lasting(self) -> bool:
        """Whether something was done that cannot be taken back."""
        return self.is_stuck or (self.witness is not None and self.witness.has_lasting_changes())

    def refuse_changes(self) -> None:
        """TypeError if `restore` has found a change."""
        for record in self.changes:
            error = Stuck if self.is_stuck else TypeError
            raise error(
                f"{record.label} changes in {self.place} in a way that cannot be carried along: give a variable, an element, an "
                "attribute or an array another number there, or take it out"
            )

    def undo(self, cells: Cells, before: Mapping[str, Any]) -> dict[tuple[int, Any], Any]:
        """Takes back everything, variables and changes not noted too. Returns the last values of the places."""
        try:
            return self.take_back()
        finally:
            cells.fill(before)
            self.restore()


@dataclass(eq=False, slots=True)
class Place:
    """Something written besides own variables: an element of a list or dict, an attribute, an array, or another function's variable.

    - born: the branch or pass in which an array, or something private, was made.
    - is_changed: whether it holds something else now. Needed for what only may have been written.
    - content: the object that it holds, where `read` gives its value; NO_OBJECT for arrays.
    - is_private: nobody reads it where it was made, so that a write there is not noted.
    """

    holder: Any
    label: str
    read: Callable[[], Any]
    write: Callable[[Any], None]
    before: Any
    born: Frame | None = None
    is_changed: Callable[[], bool] = lambda: True
    content: Callable[[], Any] = NO_OBJECT
    is_private: bool = False

    def is_there(self) -> bool:
        """Whether the element or attribute exists: a list may be shorter now."""
        try:
            self.content()
        except (LookupError, AttributeError):
            return False
        return True


class _Frames(threading.local):
    def __init__(self) -> None:
        self.stack: list[Frame] = []
        self.n_deep = 0  # choices far within others, since there was none around


FRAMES = _Frames()


class Stuck(TypeError):
    """A change of an object, by a branch or a pass, that can neither be carried along nor taken back."""


@contextmanager
def frame(what: str, is_trial: bool = False, parts: Iterable[Part | None] = ()) -> Iterator[Frame]:
    """The frame of a branch or a pass, while that is traced. parts: its code, for the witness."""
    outer: Frame | None = CAPTURE.frame
    new = Frame(what, is_trial, outer=outer)
    new.witness = Witness([part for part in parts if part is not None])
    FRAMES.stack.append(new)
    CAPTURE.frame = new
    try:
        with keeping_all(new.witness.references()):
            yield new
    finally:
        FRAMES.stack.pop()
        CAPTURE.frame = new.outer


def _keep(roots: tuple[Any, ...]) -> Callable[[], None]:
    """Makes a function that gives all that `roots` can reach its present contents back, before a second trace.

    That raises Stuck, a TypeError, where it cannot.
    """
    witness = Witness((), roots)
    _, *given = roots
    reached = [*(leaf for leaf in flattened(given)[0] if isinstance(leaf, Variable)), *witness.held()]
    arrays = [(array, array.node) for one in reached for array in _with_bases(one)]

    def take_back() -> None:
        for array, node in arrays:
            if array.cell[0] is not node:
                array._hold(node)
        for record in witness.changes():
            record.give_back()
            if not record.is_same():
                raise Stuck(
                    f"{record.label} has changed, and a function that asks for what only the run knows is traced more than once: "
                    "advance iterators and generators before, and pass what they give"
                )

    return take_back


def _with_bases(array: Variable) -> Iterator[Variable]:
    """An array, the array that it is a view of, and so on: the last is what a write changes."""
    yield array
    while array.view_of is not None:
        array = array.view_of.base
        yield array


KEPT.append(_keep)
HOOKS.update(witness=Witness, decides=lambda: decides())


def decides(value: Any = None) -> bool:
    """Whether code is traced in a branch or a pass that only the run decides, and that began when an object was there."""
    for one in reversed(FRAMES.stack):
        if not one.knew(value):
            return False
        if not one.is_trial:
            return True
    return False


def is_outer(value: Any) -> bool:
    """Whether an object may have existed before the branch or pass that is traced."""
    return bool(FRAMES.stack) and FRAMES.stack[-1].knew(value)


def note(key: tuple[int, Any], place: Place) -> None:
    """Notes that a place is about to be written, where a branch or a pass is traced."""
    if FRAMES.stack:
        FRAMES.stack[-1].note(key, place)
