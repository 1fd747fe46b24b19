"""The variables that a function shares with its branches and bodies: read, bound and unbound from outside."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import CellType
from typing import Any

from ..variable import Variable

Part = Callable[..., Any]  # a branch of a choice, or one pass of a loop


class _Ours(threading.local):
    """By id of an object: the number of references to it that choices and loops being traced hold."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()


_OURS = _Ours()


@contextmanager
def keeping(values: Mapping[str, Any]) -> Iterator[None]:
    """Counts the references of a choice or a loop that keeps variables' values in a dict, while it runs."""
    with keeping_all(values.values()):
        yield


@contextmanager
def keeping_all(values: Iterable[Any]) -> Iterator[None]:
    """Counts the references of a choice or a loop that keeps values, while it runs: one for each time a value occurs."""
    ids = list(map(id, values))
    del values  # a list of them would be one more reference to each
    _OURS.counts.update(ids)
    try:
        yield
    finally:
        _OURS.counts.subtract(ids)


def soles(values: Mapping[str, Any]) -> set[int]:
    """The ids of the cells of arrays that one variable alone refers to, apart from choices and loops.

    To be called within `keeping(values)`. Joins rely on it: an array that is one of two may be written if nobody else can tell which it is.
    """
    arrays = [name for name in values if isinstance(values[name], Variable)]
    return {id(values[name].cell) for name in arrays if sys.getrefcount(values[name]) - _OURS.counts[id(values[name])] == _OF_ONE_VARIABLE}


def own_variables(part: Part) -> dict[str, Any]:
    """The values of the variables that a part shares with its function, by name."""
    names = dict.fromkeys(name for one in functions_of(part) for name in one.__code__.co_freevars)
    return Cells((part,), tuple(names)).values()


def sole_values(part: Part) -> dict[str, Any]:
    """The values of a part's variables to which nobody else refers, apart from choices and loops, by name."""
    values = own_variables(part)
    return {name: values[name] for name in values if sys.getrefcount(values[name]) - 1 - _OURS.counts[id(values[name])] == _OF_ONE_VARIABLE}


def sole_parts(space: dict[Any, Any]) -> dict[Any, Any]:
    """The values of a dict to which nobody else refers, apart from choices and loops, by key."""
    return {key: space[key] for key in space if sys.getrefcount(space[key]) - _OURS.counts[id(space[key])] == _OF_ONE_KEY}


def references(values: list[Any]) -> list[int]:
    """How many references there are to each of some values besides that of the list itself, apart from choices and loops."""
    return [sys.getrefcount(one) - _OURS.counts[id(one)] - _OF_ONE_LIST for one in values]


class Joined:
    """Several functions as one part: `action` runs their code. A name that they share is the last one's variable."""

    def __init__(self, functions: Sequence[Part], action: Callable[..., None]) -> None:
        self.functions = [one for function in functions for one in functions_of(function)]
        self.action = action
        self.__code__, self.__closure__, self.__globals__ = (
            self.functions[0].__code__,
            self.functions[0].__closure__,
            self.functions[0].__globals__,
        )

    def __call__(self, *args: Any) -> None:
        self.action(*args)


def functions_of(part: Part) -> Sequence[Part]:
    """The functions whose code a part runs."""
    return part.functions if isinstance(part, Joined) else (part,)


class Absent:
    """The placeholder for the value of a variable that is not bound."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT = Absent()


class GlobalVariable:
    """A global variable with the interface of a cell."""

    def __init__(self, space: dict[str, Any], name: str) -> None:
        self._space, self._name = space, name

    @property
    def cell_contents(self) -> Any:
        if self._name not in self._space:
            raise ValueError(self._name)
        return self._space[self._name]

    @cell_contents.setter
    def cell_contents(self, value: Any) -> None:
        self._space[self._name] = value

    @cell_contents.deleter
    def cell_contents(self) -> None:
        self._space.pop(self._name, None)


class Cells:
    """The variables `names` of some parts of a function."""

    def __init__(self, parts: Sequence[Part | None], names: Sequence[str]) -> None:
        held: dict[str, CellType | GlobalVariable] = {}
        functions = [one for part in parts if part is not None for one in functions_of(part)]
        for one in functions:
            held.update(zip(one.__code__.co_freevars, one.__closure__ or (), strict=True))
        spaces = [one.__globals__ for one in reversed(functions)]
        self._cells = {name: held[name] if name in held else GlobalVariable(spaces[0], name) for name in names}

    def values(self) -> dict[str, Any]:
        """What each variable holds now; ABSENT where it is not bound."""
        return {name: content(cell) for name, cell in self._cells.items()}

    def fill(self, values: Mapping[str, Any]) -> None:
        """Binds variables; ABSENT unbinds."""
        for name, value in values.items():
            fill(self._cells[name], value)


def fill(cell: CellType | GlobalVariable, value: Any) -> None:
    """Binds a variable; ABSENT unbinds it."""
    if value is ABSENT:
        del cell.cell_contents
    else:
        cell.cell_contents = value


def content(cell: CellType | GlobalVariable) -> Any:
    """What a variable holds; ABSENT where it is not bound."""
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT


def line_of(part: Part | None) -> str:
    """Where a branch or a body begins, for messages."""
    return "" if part is None else f" ({part.__code__.co_filename}, line {part.__code__.co_firstlineno})"


def _references() -> int:
    """The reference count that `soles` finds for an object that one variable alone holds."""
    held = object()

    def part() -> object:
        return held

    values = {"held": content(part.__closure__[0])}  # type: ignore[index]
    return sys.getrefcount(values["held"]) - 1


def _references_of_a_dict() -> int:
    """The reference count that `sole_parts` finds for an object that one dict alone holds."""
    space = {"held": object()}
    return sys.getrefcount(space["held"])


_OF_ONE_VARIABLE, _OF_ONE_KEY, _OF_ONE_LIST = _references(), _references_of_a_dict(), 0
(_OF_ONE_LIST,) = references([object()])
