"""Views among the arrays of a traced function, and what may be one."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..ir.node import Node
from ..ops.card import at_line

if TYPE_CHECKING:
    from .variable import Variable


class Assumption:
    """Something assumed of arguments while a function is traced. is_used: the trace is right only if it holds.

    parts: the assumptions that this one follows from.
    """

    __slots__ = ("is_used", "parts")

    def __init__(self, parts: Sequence[Assumption] = ()) -> None:
        self.parts, self.is_used = tuple(parts), False

    def use(self) -> None:
        """Marks it as used: a call has to check whether it holds."""
        self.is_used = True
        for part in self.parts:
            part.use()


class _Asked(threading.local):
    """lists: one for each function that is traced, with an entry for each question of the function about its arguments.

    views: the ids of those that are being asked whether they have changed.
    """

    def __init__(self) -> None:
        self.lists: list[list[bool]] = []
        self.views: set[int] = set()


_ASKED = _Asked()


@contextmanager
def asking_same() -> Iterator[list[bool]]:
    """Gives a list while a function is traced. It stays empty unless the function asks which of its arguments are one array."""
    _ASKED.lists.append([])
    try:
        yield _ASKED.lists[-1]
    finally:
        _ASKED.lists.pop()


def note_same() -> None:
    """Notes that the function that is traced asks which of its arguments are one array. TypeError where no call can tell."""
    if not _ASKED.lists:
        raise TypeError(f"`is` asks whether two arguments are one array{at_line()}, and only ns.jit knows; leave it out")
    _ASKED.lists[-1].append(True)


class Either(Assumption):
    """The assumption of a value that is a number or an array of rank 0, and nobody knows which. is_changed: `x += y` has replaced it."""

    __slots__ = ("is_changed",)

    def __init__(self) -> None:
        super().__init__()
        self.is_changed = False

    def use(self) -> None:
        """ValueError: writing the value would mean either of two things."""
        raise ValueError(f"a number or an array of rank 0, as only the run decides, is written{at_line()}; write x = x + y")

    def replaced(self, x: Variable, result: Variable, frame: Any) -> Variable:
        """What `x += y` gives: a new value. From then on nobody may read the one before, which may have changed or not."""
        is_own = frame is None or frame.made(x.born)
        if result.type.dtype != x.type.dtype or not (is_own or frame.is_trial):  # the other branch may read it
            self.use()
        if not is_own:
            frame.undone.append((x, lambda: setattr(x, "view_of", None)))
        self.is_changed = True
        result.is_0d = self
        x.view_of = Moved(result, [], "a number or an array of rank 0, as only the run decides, has another name")
        return result


def all_of(facts: Sequence[bool | Assumption]) -> bool | Assumption:
    """Whether all of some facts hold: True, False, or an assumption."""
    if not all(facts):
        return False
    assumed = [fact for fact in facts if isinstance(fact, Assumption)]
    return (assumed[0] if len(assumed) == 1 else Assumption(assumed)) if assumed else True


def use(fact: bool | Assumption) -> None:
    """Notes that what is traced relies on a fact."""
    if isinstance(fact, Assumption):
        fact.use()


def is_array(x: Variable) -> bool:
    """Whether a variable is an array, which can be written, and not a number."""
    return bool(x.ndim) or x.is_0d is True


class NeedsTracedArrays(ValueError):
    """A traced value is written into a NumPy array.

    The traced function is traced again, with traced arrays in the place of those that it makes.
    """


class View:
    """A view: the array that it is a view of, how to read it there, and how to make that array with other elements in it.

    seen: the value of the base that the view was read from. write: None for a read-only view. fact: True, or the assumption under which it
    is a view.
    """

    __slots__ = ("base", "fact", "read", "seen", "write")

    def __init__(
        self,
        base: Variable,
        read: Callable[[Any], Any],
        write: Callable[[Any, Any], Any] | None,
        fact: bool | Assumption = True,
    ) -> None:
        self.base, self.read, self.write, self.seen, self.fact = base, read, write, base.node, fact

    def changed(self) -> Node | None:
        """The node of what the view holds now, if its base has changed since it was read; else None."""
        now = self.base.node
        if now is self.seen:
            return None
        self.check()
        use(self.fact)
        self.seen = now
        node: Node = self.read(self.base).node
        return node

    def check(self) -> None:
        """Nothing to check: it is known to be a view. Called where it is read after its base was written."""


class FlatView(View):
    """`x.flat`: all elements in C order. What is taken out of it is a copy."""

    __slots__ = ()


class UnsureView(View):
    """What may be a view of one of several arrays, or a copy. It does not matter which until one of them is written. `why`: the reason.

    Others are held weakly: nobody writes an array that is gone, and its cell tells what was written before. Only views are held, since
    their bases may still be written. is_shared: another name of the same array was made at the same place. arrays: NumPy arrays among the
    others, each with what it held.
    """

    __slots__ = ("arrays", "is_shared", "others", "why")

    def __init__(
        self, value: Variable, others: Sequence[Variable], why: str, is_shared: bool = False, arrays: Sequence[np.ndarray] = ()
    ) -> None:
        super().__init__(value, lambda base: base, None)
        refs: list[Callable[[], Variable | None]] = [
            partial(_itself, other) if other.view_of is not None else weakref.ref(other) for other in others
        ]
        self.others = [(ref, other.cell, other.node) for ref, other in zip(refs, others, strict=True)]
        self.arrays = [(array, array.tobytes()) for array in arrays]
        self.why, self.is_shared = why, is_shared

    def changed(self) -> Node | None:
        """None; ValueError if one of the others was written.

        Others ask their own others. Each is asked once: in a chain of choices the ways to the first array double with each one.
        """
        is_first, asked = not _ASKED.views, _ASKED.views
        if id(self) in asked:
            return None
        asked.add(id(self))
        try:
            for ref, cell, seen in self.others:
                other = ref()
                if (cell[0] if other is None else other.node) is not seen:
                    self.refuse()
        finally:
            if is_first:
                asked.clear()
        if any(array.tobytes() != before for array, before in self.arrays):
            self.refuse()
        return None

    def check(self) -> None:
        """ValueError where one of the others is still there."""
        self.changed()
        if self.is_shared or self.arrays or any(ref() is not None for ref, _, _ in self.others):
            self.refuse()

    def refuse(self) -> NoReturn:
        """ValueError; with NumPy arrays among the others NeedsTracedArrays: more is known of traced arrays."""
        error = NeedsTracedArrays if self.arrays else ValueError
        raise error(f"{self.why}, and one of them is written{at_line()}; copy it first, as x.copy()")


class PlainView(View):
    """A part of an array of NumPy's, at a place that only the run knows. Where it is written, the function is traced with traced arrays."""

    __slots__ = ("array",)

    def __init__(self, base: Variable, array: np.ndarray, write: Callable[[Any, Any], Any]) -> None:
        super().__init__(base, lambda base: base, write)
        self.array = array


def root_of(array: Variable) -> Variable:
    """The array that an array is a view of, or a view of a view of; itself for no view, and for what may be one of several."""
    while array.view_of is not None and not isinstance(array.view_of, UnsureView | PlainView):
        array = array.view_of.base
    return array


def _itself(array: Variable) -> Variable:
    return array


class Moved(UnsureView):
    """An array that a loop hands on from pass to pass under another name: nobody knows which one this name has now."""

    __slots__ = ()

    def changed(self) -> Node | None:
        """ValueError."""
        self.refuse()
