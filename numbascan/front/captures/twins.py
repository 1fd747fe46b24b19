"""Twins: functions that are made anew at each call of the code around them, and read the same. What was traced of one holds for the other.

Of code met as several functions, the last few are held, with a copy of what they read; none that reads large arrays. Others are compared
with the copy, since another thread may change what a held function reads at any moment.

Two functions are alike if their values are equal, and the same objects stand at the same places: code may ask `a is b`, or change a list
that has two names. The globals that code names count, too.

Not handled: objects of a closure that another object holds, or a global container.
"""

from __future__ import annotations

import operator
import types
import weakref
from collections.abc import Callable, Iterable
from numbers import Number
from typing import Any

import numpy as np

from .guards import same
from .namespaces import ABSENT, content
from .reachable import global_names

MOST_CODES, MOST_TWINS = 64, 4
LARGEST = 1 << 20  # bytes of an array that is held for a call that may come

_COPIED = (list, tuple, dict, types.FunctionType, np.ndarray)


class Twin:
    """A function, and a copy of what it read just before it was traced."""

    __slots__ = ("copy", "fn", "named")

    def __init__(self, fn: types.FunctionType) -> None:
        copies: dict[int, _Copy] = {}
        self.fn, self.copy = fn, _copied(fn, copies)
        globals_ = _named(copies.values())
        others = {id(space[name]): object() for space, name in globals_}  # in the place of those that no closure holds: none is kept alive
        self.named = [(space, name, (others | copies)[id(space[name])]) for space, name in globals_]

    def is_like(self, fn: Callable[..., Any], but_numbers: bool = False) -> bool:
        """Whether a function does what this one did when it was copied; with `but_numbers`, numbers may differ."""
        if not self.copy.is_of(fn):
            return False
        if all(map(operator.is_, _parts(fn), self.copy.parts)):
            return True
        pairs = _Pairs(but_numbers)
        return all(pairs.are_one(space.get(name, ABSENT), value) for space, name, value in self.named) and pairs.are_alike(fn, self.copy)


_twins: dict[types.CodeType, tuple[Twin, ...]] = {}  # the latest last


def twin_of(fn: types.FunctionType, but_numbers: bool = False) -> Twin | None:
    """The latest twin with a function's code that read the same; with `but_numbers`, numbers may differ. None if there is none."""
    for twin in reversed(_twins.get(fn.__code__, ())):
        if twin.is_like(fn, but_numbers):
            return twin
    return None


def new_twin(fn: Callable[..., Any]) -> Twin | None:
    """A function as it is now, to be held for the next one of the same code.

    None for the first function of its code, which may be the only one, and for one that reads large arrays.
    """
    if not isinstance(fn, types.FunctionType) or not reads_little(fn):
        return None
    if fn.__code__ not in _twins:
        if len(_twins) >= MOST_CODES:
            _twins.clear()
        _twins[fn.__code__] = ()
        return None
    return Twin(fn)


def remember(twin: Twin) -> None:
    """Holds a twin for later calls."""
    code = twin.fn.__code__
    _twins[code] = (*_twins.get(code, ())[1 - MOST_TWINS :], twin)


_frozen: dict[types.CodeType, tuple[Twin, ...]] = {}  # of functions that nobody else reaches, the latest last
_met: weakref.WeakSet[types.FunctionType] = weakref.WeakSet()


def one_of_all(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The one function that stands for all of the same code that read the same. Whoever keeps its trace holds it.

    Of code that was met before it is a frozen copy, so that its trace is valid for every function like it.
    """
    if not isinstance(fn, types.FunctionType) or fn in _met:
        return fn
    known = _frozen.get(fn.__code__)
    twin = next((twin for twin in reversed(known or ()) if twin.is_like(fn)), None)
    if twin is None and known is not None and reads_little(fn):
        twin = Twin(_owned(fn, {}))
        if twin.is_like(fn):  # not where it has attributes, or reads what is like nothing else
            _frozen[fn.__code__] = (*known[1 - MOST_TWINS :], twin)
            return twin.fn
    elif twin is not None:
        return twin.fn
    if known is None:
        if len(_frozen) >= MOST_CODES:
            _frozen.clear()
        _frozen[fn.__code__] = ()
    _met.add(fn)
    return fn


def _owned(value: Any, known: dict[int, Any]) -> Any:
    """A copy of a function, a container or an array, and of those in it, that nobody else changes. `known`: by the id of the original."""
    kind = type(value)
    if kind not in _COPIED or id(value) in known:
        return known.get(id(value), value)
    if kind is np.ndarray:
        return known.setdefault(id(value), value.copy())
    if kind is tuple:
        return known.setdefault(id(value), tuple([_owned(part, known) for part in value]))
    if kind is list:
        parts = known[id(value)] = []
        parts += [_owned(part, known) for part in value]
        return parts
    if kind is dict:
        items = known[id(value)] = {}
        items |= {key: _owned(part, known) for key, part in value.copy().items()}
        return items
    cells = tuple([types.CellType() for _ in value.__closure__ or ()])
    fn = known[id(value)] = types.FunctionType(value.__code__, value.__globals__, value.__name__, None, cells or None)
    fn.__defaults__, fn.__kwdefaults__ = _owned(value.__defaults__, known), _owned(value.__kwdefaults__, known)
    for cell, original in zip(cells, value.__closure__ or (), strict=True):
        if (part := content(original)) is not ABSENT:
            cell.cell_contents = _owned(part, known)
    return fn


def reads_little(fn: types.FunctionType) -> bool:
    """Whether holding `fn` keeps no large array alive."""
    return all(_is_small(value) for value in _parts(fn))


def _is_small(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.nbytes <= LARGEST
    values = value.values() if type(value) is dict else value
    return type(value) not in (list, tuple, dict) or all(_is_small(part) for part in values)


class _Copy:
    """What a function, a container or an array was: its class, what describes it as a whole, and its parts."""

    __slots__ = ("about", "kind", "parts")

    def __init__(self, value: Any) -> None:
        self.kind, self.about = type(value), _about(value)
        self.parts: list[Any] = []

    def is_of(self, value: Any) -> bool:
        """Whether a value is the same as a whole. Its parts may differ."""
        if type(value) is not self.kind or self.about is None:
            return False
        about = _about(value)
        return about is not None and (all(map(operator.is_, about, self.about)) if self.kind is types.FunctionType else about == self.about)


def _about(value: Any) -> tuple[Any, ...] | None:
    """What describes a function, a container or an array as a whole; None for one that is like no other."""
    kind = type(value)
    if kind is types.FunctionType:
        return None if value.__dict__ else (value.__code__, value.__globals__)
    if kind is np.ndarray:
        return None if value.dtype.hasobject else (value.dtype, value.shape, value.strides, value.tobytes())
    return ()


def _parts(value: Any) -> list[Any]:
    """What a function reads, or what a container holds."""
    kind = type(value)
    if kind is types.FunctionType:
        cells = value.__closure__
        return [value.__defaults__, value.__kwdefaults__, *map(content, cells)] if cells else [value.__defaults__, value.__kwdefaults__]
    return [*value, *value.values()] if kind is dict else [] if kind is np.ndarray else [*value]


def _copied(value: Any, known: dict[int, _Copy]) -> Any:
    """A copy of a function, a container or an array; any other value itself. `known`: by the id of the original."""
    if type(value) not in _COPIED:
        return value
    copy = known.get(id(value))
    if copy is None:
        copy = known[id(value)] = _Copy(value)
        copy.parts = [_copied(part, known) for part in _parts(value)]
    return copy


def _named(copies: Iterable[_Copy]) -> list[tuple[dict[str, Any], str]]:
    """The globals named by functions' code that are functions, containers or arrays: a closure may hold the same object."""
    spaces = [(copy.about[1], global_names(copy.about[0])) for copy in copies if copy.kind is types.FunctionType and copy.about]
    return [(space, name) for space, names in spaces for name in names if type(space.get(name)) in _COPIED]


class _Pairs:
    """What is being compared, by identity: each value has one partner. A function may stand in its own closure, a list in itself."""

    __slots__ = ("but_numbers", "met", "partners", "values")

    def __init__(self, but_numbers: bool) -> None:
        self.but_numbers = but_numbers
        self.partners: dict[int, Any] = {}  # by the id of a value what it was before
        self.values: dict[int, Any] = {}  # and back
        self.met: set[int] = set()

    def are_one(self, value: Any, before: Any) -> bool:
        """Whether a value is the same object wherever its partner before was the same object."""
        return self.partners.setdefault(id(value), before) is before and self.values.setdefault(id(before), value) is value

    def are_alike(self, value: Any, before: Any) -> bool:
        """Whether code that reads a value would do what it did.

        Numbers, strings, arrays and functions are compared by what they are, other objects by identity.
        """
        if type(before) is not _Copy:
            if self.but_numbers and type(value) is type(before) and isinstance(value, Number):
                return True
            return (value is before or same(value, before)) and self.are_one(value, before)
        if not self.are_one(value, before):
            return False
        if id(before) in self.met:
            return True
        self.met.add(id(before))
        if not before.is_of(value):
            return False
        parts = _parts(value)
        return len(parts) == len(before.parts) and all(map(self.are_alike, parts, before.parts))
