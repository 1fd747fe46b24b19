"""What a branch or a pass changes besides variables: it is noted, so that it can be taken back and carried along.

A write outside every branch and pass that the run decides is Python's own. What was changed and not noted is found by a witness, and
refused.
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
from ..variable import CAPTURE, HOOKS, Variable, at_line
from .cells import Cells, GlobalVariable, Part, keeping_all
from .witness import Record, Witness


def NO_OBJECT() -> None:
    """What an array holds as a place: it has a value, and no object."""


@dataclass(eq=False, slots=True)
class Frame:
    """One branch or pass that is being traced.

    places: elements and attributes that were written: what reads one, what writes it, and the value before. objects: what they held at
    the end. undone: how to take back all else, with the object that was changed. what: how messages call it. is_trial: it may yet be
    Python's own, so that what it does to lists is taken back and not refused. witness: what was there before. is_stuck: what it did cannot
    be taken back. aliases: what a loop's names have in a pass, by the id of the cell of the array that they had before it.
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
        """How messages call it, and the line that is traced."""
        line = at_line()
        return self.what if line in self.what else f"{self.what}{line}"

    def knew(self, value: Any) -> bool:
        """Whether an object may have been there before the branch or pass: what was made within is its own."""
        while isinstance(value, np.ndarray) and isinstance(value.base, np.ndarray):
            value = value.base
        return value is None or self.witness is None or self.witness.knows(value)

    def may_note(self, place: Place) -> bool:
        """Whether a place was there before: of objects that were made within nothing is taken back."""
        return place.content is NO_OBJECT or isinstance(place.holder, GlobalVariable) or self.knew(place.holder)

    def made(self, born: Frame | None) -> bool:
        """Whether what was made in a branch or pass was made in this one, so that nobody outside knows it."""
        while born is not None and born is not self:
            born = born.outer
        return born is self

    def note(self, key: tuple[int, Any], place: Place) -> None:
        """Notes that a place is written here."""
        if key not in self.places and self.may_note(place) and not (place.is_private and self.made(place.born)):
            self.places[key] = place

    def hand_on(self) -> None:
        """What was noted becomes the business of the branch or pass around: it stays done."""
        if self.outer is not None:
            for key, place in self.places.items():
                self.outer.note(key, place)
            self.outer.undone += [(value, undo) for value, undo in self.undone if self.outer.knew(value)]
            self.outer.is_stuck = self.outer.is_stuck or self.is_stuck

    def take_back(self) -> dict[tuple[int, Any], Any]:
        """Everything that was noted as it was before; the values that the places had last."""
        self.places = {key: place for key, place in self.places.items() if place.is_changed()}
        try:
            last = {key: place.read() for key, place in self.places.items()}
        finally:  # an array that may not be read is refused, behind all
            self.objects = {key: place.content() for key, place in self.places.items()}
            for _, undo in reversed(self.undone):
                undo()
            for place in self.places.values():
                place.write(place.before)
        return last

    def restore(self) -> None:
        """Gives Python's objects back what they held, where something was changed that was not noted. When all else is taken back."""
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
        """TypeError for what `restore` has found."""
        for record in self.changes:
            error = Stuck if self.is_stuck else TypeError
            raise error(
                f"{record.label} changes in {self.place} in a way that cannot be carried along: give a variable, an element, an "
                "attribute or an array another number there, or take it out"
            )

    def undo(self, cells: Cells, before: Mapping[str, Any]) -> dict[tuple[int, Any], Any]:
        """Everything as it was before, variables too; the values that the places had last."""
        try:
            return self.take_back()
        finally:
            cells.fill(before)
            self.restore()


@dataclass(eq=False, slots=True)
class Place:
    """An element of a list or dict, an attribute, an array, or a variable of another function: what was written besides own variables.

    born: of an array, where it was made. is_changed: of what only may have been written, whether it holds something else now. content:
    of all but arrays, the object that it holds, where `read` gives its value. is_private: nobody reads it where it was made.
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


class _Frames(threading.local):
    def __init__(self) -> None:
        self.stack: list[Frame] = []


FRAMES = _Frames()


class Stuck(TypeError):
    """What a branch or a pass did to an object can neither be carried along nor taken back."""


@contextmanager
def frame(what: str, is_trial: bool = False, parts: Iterable[Part | None] = ()) -> Iterator[Frame]:
    """While a branch or a pass is traced, which the code of `parts` makes."""
    outer: Frame | None = CAPTURE.frame
    new = Frame(what, is_trial, outer=outer)
    new.witness = Witness([part for part in parts if part is not None])
    FRAMES.stack.append(new)
    CAPTURE.frame = new
    try:
        with keeping_all(new.witness.held()):
            yield new
    finally:
        FRAMES.stack.pop()
        CAPTURE.frame = new.outer


def _keep(roots: tuple[Any, ...]) -> Callable[[], None]:
    """What a function that is traced again can reach is as it was before the first time. TypeError where that cannot be."""
    witness = Witness((), roots)

    def take_back() -> None:
        for record in witness.changes():
            record.give_back()
            if not record.is_same():
                raise Stuck(
                    f"{record.label} has changed, and a function that asks for what only the run knows is traced more than once: "
                    "advance iterators and generators before, and pass what they give"
                )

    return take_back


KEPT.append(_keep)
HOOKS["witness"] = Witness


def decides(value: Any = None) -> bool:
    """Whether a branch or a pass is traced of which only the run knows whether it runs, and which began when an object was there."""
    for one in reversed(FRAMES.stack):
        if not one.knew(value):
            return False
        if not one.is_trial:
            return True
    return False


def is_outer(value: Any) -> bool:
    """Whether an object may have been there before the branch or pass that is traced."""
    return bool(FRAMES.stack) and FRAMES.stack[-1].knew(value)


def note(key: tuple[int, Any], place: Place) -> None:
    """Notes that a place is about to be written, where a branch or a pass is traced."""
    if FRAMES.stack:
        FRAMES.stack[-1].note(key, place)
