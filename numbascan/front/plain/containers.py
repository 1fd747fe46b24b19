"""Lists and dicts that are one of two, as the run decides: where another name knows one of the two, none of them may be written any more.

Structure and elements of the two go on as a new list or dict. If nobody else knows the two, that is as good as they were.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from ..variable import CAPTURE, at_line
from .cells import of_choices


def known_elsewhere(values: Mapping[str, Any]) -> dict[str, list[Any]]:
    """For each variable the lists and dicts in its value that something else holds, too. `values` holds each once, besides its variable."""
    names = [name for name in values if isinstance(values[name], (list, dict, tuple))]
    found: dict[str, list[Any]] = {}
    for name in names:
        is_known = sys.getrefcount(values[name]) - of_choices(values[name]) > _OF_VARIABLE
        if shared := list(_shared(values[name], is_known)):
            found[name] = shared
    return found


def _shared(value: Any, is_known: bool) -> Iterator[Any]:
    """The containers in a value that something else holds; all in one that it holds."""
    if type(value) in (list, dict) and is_known:
        yield value
    if type(value) in (list, dict, tuple):
        keys = list(value) if type(value) is dict else range(len(value))
        for key in keys:
            if type(value[key]) in (list, dict, tuple):
                is_held = is_known or sys.getrefcount(value[key]) > _OF_PARENT
                yield from _shared(value[key], is_held)


def containers_in(value: Any) -> Iterator[Any]:
    """The lists and dicts in a value."""
    return _shared(value, True)


def freeze(value: Any, label: str) -> None:
    """From here on, the lists and dicts in a value may not be written."""
    frozen = vars(CAPTURE.home).setdefault("frozen", {})
    for container in containers_in(value):
        frozen[id(container)] = container, label


def is_frozen(holder: Any) -> bool:
    """Whether a list or dict may not be written."""
    return CAPTURE.home is not None and id(holder) in vars(CAPTURE.home).get("frozen", {})


def check_container(holder: Any) -> None:
    """ValueError for a list or dict that may not be written."""
    if is_frozen(holder):
        kind, label = type(holder).__name__, vars(CAPTURE.home)["frozen"][id(holder)][1]
        raise ValueError(
            f"{label} is one of two that only the run tells apart, and a {kind} of these is written{at_line()}; copy it before, as "
            f"{kind}(x), or write before"
        )


def _references() -> tuple[int, int]:
    """What is counted for a list that one variable and `values` hold, and for one that a list holds."""

    def count(values: Mapping[str, Any]) -> int:
        counts = []
        for name in values:
            counts.append(sys.getrefcount(values[name]))
        return counts[0]

    part: list[Any] = []

    def variable() -> Any:
        return part

    cell = variable.__closure__[0]  # type: ignore[index]
    parents: list[Any] = [[]]
    return count({"part": cell.cell_contents}), sys.getrefcount(parents[0])


_OF_VARIABLE, _OF_PARENT = _references()
