"""Lists, dicts, objects and NumPy arrays that are one of two, as the run decides. Which one is not known, so neither may be written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..tracing import NeedsTracedArrays
from ..tree import fields_of, is_record
from ..variable import CAPTURE, at_line
from .frames import Frame
from .joining import RESULT, is_absent


def holders(value: Any) -> list[Any]:
    """The parts of a nest that can be written, besides traced arrays: lists, dicts, objects and NumPy arrays."""
    kind = type(value)
    if kind is np.ndarray:
        return [value]
    if isinstance(value, (list, tuple)):
        return [*([] if isinstance(value, tuple) else [value]), *(one for part in value for one in holders(part))]
    if isinstance(value, dict):
        return [value, *(one for part in value.values() for one in holders(part))]
    if is_record(kind):
        return [value, *(one for part in fields_of(value).values() for one in holders(part))]
    return []


def settle(label: str, sides: Sequence[tuple[Any, Frame]], result: Any) -> Any:
    """The value of a nest that is one of two: the nest itself where both are one object, else `result`.

    All are frozen if either nest holds an object that is known elsewhere: outside its branch, or at two places of the nest.
    """
    (one, _), (other, _) = sides
    if is_absent(one) or is_absent(other):
        return result
    mine = holders(one)
    if one is other:
        return one if mine else result
    both = [(holder, frame) for value, frame in sides for holder in holders(value)]
    counts = Counter((id(holder), id(frame)) for holder, frame in both)
    if any(is_known(holder, frame) or counts[id(holder), id(frame)] > 1 for holder, frame in both):
        what = "what the function returns" if label == RESULT else label
        freeze([*(holder for holder, _ in both), *holders(result)], f"{what} is one of two, and only the run decides which")
    return result


def is_known(holder: Any, frame: Frame) -> bool:
    """Whether an object existed before a branch or pass, or is frozen."""
    return is_frozen(holder) or frame.knew(holder)


def is_frozen(holder: Any) -> bool:
    """Whether an object may not be written."""
    return CAPTURE.home is not None and id(holder) in CAPTURE.home.frozen


def freeze(found: Iterable[Any], why: str) -> None:
    """Forbids writing the objects found, as long as the function is traced."""
    if CAPTURE.home is not None:
        CAPTURE.home.frozen.update((id(holder), (holder, why)) for holder in found)


def keep_free() -> Callable[[], None]:
    """A function that takes back all freezes from now on."""
    home = CAPTURE.home
    before = {} if home is None else dict(home.frozen)

    def take_back() -> None:
        if home is not None:
            home.frozen = before

    return take_back


def check_free(holder: Any) -> None:
    """TypeError for a frozen list, dict or object that is about to be written, or a frozen iterator that is read."""
    if CAPTURE.home is not None and id(holder) in CAPTURE.home.frozen and not isinstance(holder, np.ndarray):
        _, why = CAPTURE.home.frozen[id(holder)]
        what = "read" if hasattr(holder, "__next__") else "written"
        raise TypeError(f"a {type(holder).__name__} is {what}{at_line()}, and {why}; copy it first, or write numbers and arrays alone")


def check_free_array(array: np.ndarray) -> None:
    """NeedsTracedArrays for a NumPy array that is about to be written and shares memory with a frozen one."""
    for other, why in CAPTURE.home.frozen.values() if CAPTURE.home is not None else ():
        if isinstance(other, np.ndarray) and np.may_share_memory(array, other):
            raise NeedsTracedArrays(f"an array is written{at_line()}, and {why}; copy it first, as x.copy()")
