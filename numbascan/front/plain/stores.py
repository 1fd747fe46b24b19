"""Writes in converted code: `x[i] = v`, `obj.a = v`, `x += v`. What a branch or a pass writes is noted, so that it can be carried along."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..tracing import NeedsTracedArrays
from ..variable import CAPTURE, Variable, as_variable, at_line
from .arrays import changed, written
from .frames import FRAMES, Place, note
from .joining import held
from .truth import is_traced

IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.iadd,
    "Sub": operator.isub,
    "Mult": operator.imul,
    "Div": operator.itruediv,
    "FloorDiv": operator.ifloordiv,
    "Mod": operator.imod,
    "Pow": operator.ipow,
    "MatMult": operator.imatmul,
    "LShift": operator.ilshift,
    "RShift": operator.irshift,
    "BitAnd": operator.iand,
    "BitOr": operator.ior,
    "BitXor": operator.ixor,
}


def holds_traced(value: Any) -> bool:
    """Whether a value, or what tuples and lists in it hold, is a variable."""
    if isinstance(value, (tuple, list)):
        return any(map(holds_traced, value))
    if isinstance(value, slice):
        return any(map(holds_traced, (value.start, value.stop, value.step)))
    return isinstance(value, Variable) or is_traced(value)


def outside(value: Any) -> Any:
    """What the function reads from outside, or of an object: where it makes traced arrays, one of NumPy's is traced, and not written."""
    if not CAPTURE.makes_arrays or type(value) is not np.ndarray or value.dtype.kind not in "biufc" or not value.ndim:
        return value
    array = Variable(as_variable(value).node)
    array.home = "an array that is read from outside"
    return array


def key(value: Any) -> Any:
    """A key of a dict, or an element of a set. TypeError for a traced one: only the run knows which others are equal.

    Variables of the symbolic interface are keys of updates: they are told apart as objects.
    """
    if holds_traced(value) and not (isinstance(value, Variable) and value.home is None):
        raise TypeError(
            f"a traced value is a key of a dict, or an element of a set{at_line()}: only the run knows which it equals; write an array "
            "and an index, or np.unique of an array"
        )
    return value


def keys(values: Any) -> list[Any]:
    """Elements of a set."""
    return [key(value) for value in values]


def item(holder: Any, index: Any) -> Any:
    """`holder[index]`."""
    if isinstance(holder, Mapping):
        return holder[key(index)]
    if not holds_traced(index) or isinstance(holder, Variable):
        return holder[index]
    if isinstance(holder, np.ndarray) or (isinstance(holder, (list, tuple)) and not isinstance(index, slice)):
        return as_variable(holder)[index]
    if isinstance(holder, range):
        return holder.start + holder.step * as_variable(index)
    return holder[index]


def set_item(value: Any, holder: Any, index: Any) -> None:
    """`holder[index] = value`."""
    if isinstance(holder, Mapping):
        key(index)
    if isinstance(holder, Variable):
        written(holder, index, value)
        return
    if isinstance(holder, np.ndarray) and holder.dtype != object:
        _check_plain(holder, (value, index))
    elif FRAMES.stack and isinstance(holder, (list, dict)):
        _note_item(holder, index)
    holder[index] = value


def _check_plain(array: np.ndarray, parts: tuple[Any, ...]) -> None:
    """NeedsTracedArrays where only the run knows what becomes of an array of NumPy's."""
    if CAPTURE.home is not None and (holds_traced(parts) or (FRAMES.stack and not FRAMES.stack[-1].is_trial)):
        raise NeedsTracedArrays(
            f"an array that is read from outside is written with what only the run knows{at_line()}; copy it first (x.copy()), "
            "or make it a state"
        )
    if FRAMES.stack:
        before = array.copy()
        FRAMES.stack[-1].undone.append(lambda: np.copyto(array, before))


def _note_item(holder: Any, index: Any) -> None:
    if isinstance(holder, dict) and index not in holder:
        raise TypeError(
            f"a dict gets the new key {index!r} in {FRAMES.stack[-1].what}{at_line()}; give it the key before, with a value "
            "of the same kind"
        )
    if isinstance(index, slice) or holds_traced(index):
        raise TypeError(f"a list is written at {index!r} in {FRAMES.stack[-1].what}{at_line()}; use an array (np.zeros)")
    key = range(len(holder))[index] if isinstance(holder, list) else index

    def write(value: Any) -> None:
        holder[key] = value

    label = f"an element [{key!r}] of a {type(holder).__name__}"
    note((id(holder), ("item", key)), Place(holder, label, lambda: held(holder[key]), write, holder[key]))


def set_attribute(value: Any, holder: Any, name: str) -> None:
    """`holder.name = value`."""
    if FRAMES.stack and not isinstance(holder, Variable):
        _note_attribute(holder, name)
    setattr(holder, name, value)


def _note_attribute(holder: Any, name: str) -> None:
    if not hasattr(holder, name):
        raise TypeError(
            f"a {type(holder).__name__} gets the new attribute {name!r} in {FRAMES.stack[-1].what}{at_line()}; give it the attribute before"
        )
    label = f"the attribute {name!r} of a {type(holder).__name__}"
    read, write = (lambda: held(getattr(holder, name))), (lambda value: setattr(holder, name, value))
    note((id(holder), name), Place(holder, label, read, write, getattr(holder, name)))


def update(old: Any, name: str, value: Callable[[], Any]) -> Any:
    """What `x += value` binds x to."""
    new = value()
    if isinstance(old, Variable):
        return changed(old, _binary(name), new)
    if isinstance(old, np.ndarray) and old.dtype != object:
        if not FRAMES.stack and not holds_traced(new):
            return IN_PLACE[name](old, new)
        _check_plain(old, (new,))
    elif FRAMES.stack and isinstance(old, (list, dict, set)) and FRAMES.stack[-1].is_trial:
        FRAMES.stack[-1].undone.append(contents_of(old))
    elif FRAMES.stack and isinstance(old, (list, dict, set)):
        raise TypeError(
            f"a {type(old).__name__} grows in {FRAMES.stack[-1].what}{at_line()}; make an array of the full length before (np.zeros)"
        )
    return IN_PLACE[name](old, new)


def contents_of(holder: Any) -> Callable[[], None]:
    """What gives a list, dict or set back what it holds now."""
    before = holder.copy()

    def undo() -> None:
        holder.clear()
        holder.extend(before) if isinstance(holder, list) else holder.update(before)

    return undo


def _binary(name: str) -> Callable[[Any, Any], Any]:
    return _BINARY[name]


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, function.__name__[1:] if function.__name__ not in ("iand", "ior") else f"{function.__name__[1:]}_")
    for name, function in IN_PLACE.items()
}


def update_item(holder: Any, index: Any, name: str, value: Callable[[], Any]) -> None:
    """`holder[index] += value`."""
    if isinstance(holder, Variable) and isinstance(index, Variable) and index.type.kind == "b":
        written(holder, index, _BINARY[name](holder, value()))
        return
    set_item(update(item(holder, index), name, value), holder, index)


def update_attribute(holder: Any, attribute: str, name: str, value: Callable[[], Any]) -> None:
    """`holder.attribute += value`."""
    set_attribute(update(getattr(holder, attribute), name, value), holder, attribute)
