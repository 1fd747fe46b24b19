"""What a branch or a pass changes besides variables: it is noted, so that it can be taken back and carried along.

A write outside every branch and pass that the run decides is Python's own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ..variable import CAPTURE


@dataclass(eq=False, slots=True)
class Frame:
    """One branch or pass that is being traced.

    places: elements and attributes that were written: what reads one, what writes it, and the value before.
    undone: how to take back all else. what: how messages call it. is_trial: it may yet be Python's own, so
    that what it does to lists is taken back and not refused.
    """

    what: str
    is_trial: bool = False
    places: dict[tuple[int, Any], Place] = field(default_factory=dict)
    undone: list[Callable[[], None]] = field(default_factory=list)
    outer: Frame | None = None

    def made(self, born: Frame | None) -> bool:
        """Whether what was made in a branch or pass was made in this one, so that nobody outside knows it."""
        while born is not None and born is not self:
            born = born.outer
        return born is self

    def hand_on(self) -> None:
        """What was noted becomes the business of the branch or pass around: it stays done."""
        if self.outer is not None:
            for key, place in self.places.items():
                self.outer.places.setdefault(key, place)
            self.outer.undone.extend(self.undone)

    def take_back(self) -> dict[tuple[int, Any], Any]:
        """Everything as it was before; the values that the places had last."""
        last = {key: place.read() for key, place in self.places.items()}
        for undo in reversed(self.undone):
            undo()
        for place in self.places.values():
            place.write(place.before)
        return last


@dataclass(eq=False, slots=True)
class Place:
    """An element of a list or dict, an attribute, or an array: something that a name does not hold, and that was written."""

    holder: Any
    label: str
    read: Callable[[], Any]
    write: Callable[[Any], None]
    before: Any
    born: Frame | None = None  # of an array: where it was made


class _Frames(threading.local):
    def __init__(self) -> None:
        self.stack: list[Frame] = []


FRAMES = _Frames()


@contextmanager
def frame(what: str, is_trial: bool = False) -> Iterator[Frame]:
    """While a branch or a pass is traced."""
    new = Frame(what, is_trial, outer=CAPTURE.frame)
    FRAMES.stack.append(new)
    CAPTURE.frame = new
    try:
        yield new
    finally:
        FRAMES.stack.pop()
        CAPTURE.frame = new.outer


def note(key: tuple[int, Any], place: Place) -> None:
    """Notes that a place is about to be written, where a branch or a pass is traced."""
    if FRAMES.stack and key not in FRAMES.stack[-1].places:
        FRAMES.stack[-1].places[key] = place
