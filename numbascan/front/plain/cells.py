"""The variables that a function shares with its branches and bodies: read, filled and emptied from outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import CellType
from typing import Any

Part = Callable[..., Any]  # a branch of a choice, or one pass of a loop


class Absent:
    """A variable that is not bound, and why where that needs a word."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT = Absent()


class _Global:
    """A global variable, with the attribute of a cell."""

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
        held: dict[str, CellType | _Global] = {}
        for part in parts:
            if part is not None:
                held.update(zip(part.__code__.co_freevars, part.__closure__ or (), strict=True))
        spaces = [part.__globals__ for part in parts if part is not None]
        self._cells = {name: held[name] if name in held else _Global(spaces[0], name) for name in names}

    def values(self) -> dict[str, Any]:
        """What each variable holds now; ABSENT where it is not bound."""
        return {name: _content(cell) for name, cell in self._cells.items()}

    def fill(self, values: Mapping[str, Any]) -> None:
        """Binds variables; ABSENT unbinds."""
        for name, value in values.items():
            if value is ABSENT:
                del self._cells[name].cell_contents
            else:
                self._cells[name].cell_contents = value


def _content(cell: CellType | _Global) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT


def line_of(part: Part | None) -> str:
    """Where a branch or a body begins, for messages."""
    return "" if part is None else f" ({part.__code__.co_filename}, line {part.__code__.co_firstlineno})"
