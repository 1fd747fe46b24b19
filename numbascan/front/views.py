"""Where arrays of a traced function lie: views of others, and what may be one."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from ..ir.node import Node
from ..ops.card import at_line

if TYPE_CHECKING:
    from .variable import Variable


class View:
    """Where a view lies: the array it is a view of, how to read it there, and how to make that array with other elements in the place.

    seen: the value of the base that the view was read from. write: None for a view that NumPy lets nobody write.
    """

    __slots__ = ("base", "read", "seen", "write")

    def __init__(self, base: Variable, read: Callable[[Any], Any], write: Callable[[Any, Any], Any] | None) -> None:
        self.base, self.read, self.write, self.seen = base, read, write, base.node

    def changed(self) -> Node | None:
        """What the view holds now, where its base has changed since it was read."""
        now = self.base.node
        if now is self.seen:
            return None
        self.check()
        self.seen = now
        node: Node = self.read(self.base).node
        return node

    def check(self) -> None:
        """Nothing: it is known to be a view. Asked where it is written, and where its base was."""


class UnsureView(View):
    """What may be a view of one array or of another, or a copy: which is the same until one of them is written. `why`: in words.

    An array that nobody has any more is written by nobody, so others are held weakly, and their cells tell what was written before.
    is_shared: another name of the same array was made at the same place.
    """

    __slots__ = ("is_shared", "others", "why")

    def __init__(self, value: Variable, others: Sequence[Variable], why: str, is_shared: bool = False) -> None:
        super().__init__(value, lambda base: base, None)
        refs: list[Callable[[], Variable | None]] = [
            partial(_itself, other) if other.view_of is not None else weakref.ref(other) for other in others
        ]
        self.others = [(ref, other.cell, other.node) for ref, other in zip(refs, others, strict=True)]
        self.why, self.is_shared = why, is_shared

    def changed(self) -> Node | None:
        """None, or ValueError."""
        for ref, cell, seen in self.others:
            other = ref()
            if (cell[0] if other is None else other.node) is not seen:
                self.refuse()
        return None

    def check(self) -> None:
        """ValueError where one of the others is still there."""
        self.changed()
        if self.is_shared or any(ref() is not None for ref, _, _ in self.others):
            self.refuse()

    def refuse(self) -> NoReturn:
        """ValueError."""
        raise ValueError(f"{self.why}, and one of them is written{at_line()}; copy it first, as x.copy()")


def _itself(array: Variable) -> Variable:
    return array


class Moved(UnsureView):
    """An array that a loop hands on from pass to pass under another name: nobody knows which one this name has now."""

    __slots__ = ()

    def changed(self) -> Node | None:
        """ValueError."""
        self.refuse()
