"""Twins: functions that are made anew at each call of the code around them, and read the same. What was traced of one holds for the other.

Of code met as several functions, the last few are held, with a frozen copy; none that reads large arrays. Others are compared with the
copy, since another thread may change what a held function reads at any moment.

Two functions are alike if their values are equal, and the same objects stand at the same places: code may ask `a is b`, or change a list
that has two names. Only what the closures alone hold may be another object: what a function can read in another way, too, as a global or
an attribute, must be that very object. Functions that ask for addresses (`id`, `hash`) are like no other.

Not handled: `repr` of an object, which shows its address.
"""

from __future__ import annotations

import copy
import operator
import types
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from numbers import Number
from types import MappingProxyType
from typing import Any

import numpy as np

from .guards import Guards, about_array, same
from .namespaces import ABSENT, content, parts_of
from .reachable import Reachable, names_of

MOST_CODES, MOST_TWINS = 64, 4
LARGEST = 1 << 20  # bytes of an array that is held for a call that may come

Functions = tuple[Any, ...]
_COPIED = (list, tuple, dict, types.FunctionType, np.ndarray)
_VIEWS: tuple[Any, ...] = (np.ndarray, type(np.lib.stride_tricks.as_strided(np.ones(1)).base))
"""Classes with a `base`, to which the memory belongs."""
_ADDRESSES = frozenset({"id", "hash"})
"""Builtins that give another number for each object."""


class Twin(Guards):
    """Functions that are traced, and a frozen copy of them: with containers, arrays and functions that nobody else changes.

    is_frozen: the copies themselves are the functions that are traced. live: objects that are not copied, by id.
    """

    def __init__(self, functions: Functions, is_frozen: bool = False, live: Mapping[int, Any] = MappingProxyType({})) -> None:
        known = {key: (value, value) for key, value in live.items()}
        self.copy: Functions = _owned(functions, known)
        self.functions = self.copy if is_frozen else functions
        pairs = [(value, made) for value, made in known.values() if made is not value]
        self._own = {id(made): made for _, made in pairs}
        self._was = {id(made): _Was(made if is_frozen else value, made) for value, made in pairs}
        memories = Counter(was.memory for was in self._was.values())
        for was in self._was.values():
            was.is_apart = was.is_apart and memories[was.memory] == 1
        self._look()

    def _look(self) -> None:
        first = next(one for one in self.copy if isinstance(one, types.FunctionType))
        super().__init__(first, self.copy)
        around = Reachable(first, own=self._own)
        memories = {id(memory): memory for memory in (_memory(array) for array, _ in around.arrays)}
        self.elsewhere = around.seen | memories  # held: a new object in the place of one that is gone would look like it
        own = [was is not None and was.id not in self.elsewhere for was in map(self._was.get, map(id, self.copy))]
        self._heads = [
            (fn.__code__, fn.__globals__, self._was[id(fn)].parts) if is_own else (None, None, [])
            for fn, is_own in zip(self.copy, own, strict=True)
        ]
        functions = [*around.functions, *(value for value in self._own.values() if isinstance(value, types.FunctionType))]
        self._is_like_none = any(map(_asks_for_addresses, functions))

    def again(self) -> Twin:
        """The same with what else is read as it is now."""
        now = copy.copy(self)
        now._look()
        return now

    def is_like(self, functions: Functions, but_numbers: bool = False) -> bool:
        """Whether functions do what these did when they were copied; with `but_numbers`, numbers may differ.

        That what both read besides their closures is unchanged, `hold` says.
        """
        if self._is_like_none:
            return False
        for fn, (code, space, parts) in zip(functions, self._heads, strict=True):
            if not (
                code is not None
                and fn.__code__ is code
                and fn.__globals__ is space
                and not fn.__dict__
                and id(fn) not in self.elsewhere
                and all(map(operator.is_, parts_of(fn), parts))
            ):
                return _Pairs(self._was, self.elsewhere, but_numbers).are_alike(functions, self.copy)
        return True


def _asks_for_addresses(fn: types.FunctionType) -> bool:
    return fn.__name__ != "__hash__" and not _ADDRESSES.isdisjoint(names_of(fn.__code__).variables - fn.__globals__.keys())


class _Known:
    """The latest twins of each code, the latest last."""

    def __init__(self) -> None:
        self._twins: dict[Any, tuple[Twin, ...]] = {}

    def is_met(self, functions: Functions) -> bool:
        """Whether others of their code were met before: those that are the only ones are not worth a twin."""
        key = _codes_of(functions)
        if key in self._twins:
            return True
        if len(self._twins) >= MOST_CODES:
            self._twins.clear()
        self._twins[key] = ()
        return False

    def like(self, functions: Functions, but_numbers: bool = False) -> Twin | None:
        """The latest twin that is like these functions; None if there is none."""
        for twin in reversed(self._twins.get(_codes_of(functions), ())):
            if twin.is_like(functions, but_numbers):
                return twin
        return None

    def add(self, twin: Twin, old: Twin | None) -> None:
        """Holds a twin, in the place of an old one."""
        key = _codes_of(twin.functions)
        known = tuple([one for one in self._twins.get(key, ()) if one is not old])
        self._twins[key] = (*known[1 - MOST_TWINS :], twin)


def _codes_of(functions: Functions) -> Any:
    if len(functions) == 1:
        return functions[0].__code__
    return tuple([fn.__code__ if type(fn) is types.FunctionType else type(fn) for fn in functions])


_KNOWN, _FROZEN = _Known(), _Known()  # the second: copies of functions that nobody else reaches
_MET: weakref.WeakSet[Any] = weakref.WeakSet()


def twin_of(fn: types.FunctionType, but_numbers: bool = False) -> Twin | None:
    """The latest twin with a function's code that read the same; with `but_numbers`, numbers may differ. None if there is none."""
    return _KNOWN.like((fn,), but_numbers)


def new_twin(fn: Callable[..., Any]) -> Twin | None:
    """A function as it is now, to be held for the next one of the same code.

    None for the first function of its code, and for one that has attributes, or reads large arrays.
    """
    is_one = isinstance(fn, types.FunctionType) and _is_copied(fn) and reads_little(fn) and _KNOWN.is_met((fn,))
    return Twin((fn,)) if is_one else None


def read_by(fn: Callable[..., Any], twin: Twin) -> object:
    """Holds a twin for later calls, since the trace of a function like it is over. The copy of what was read; None if that has changed.

    What the function has changed itself is taken as it is now.
    """
    now = twin if twin.hold() or twin.changed_elsewhere() else twin.again()
    if not now.is_like((fn,)) or not now.hold():
        return None
    _KNOWN.add(now, twin)
    return now.copy


def one_of_all(functions: Functions) -> Functions:
    """The functions that stand for all of the same code that read the same. Whoever keeps their trace holds them.

    Of code that was met before they are frozen copies, so that the trace is valid for all functions like these. What functions share, a
    list that one of them changes, they share as copies.
    """
    if all(not isinstance(fn, types.FunctionType) or fn in _MET for fn in functions):
        return functions
    old = _FROZEN.like(functions)
    if old is not None and old.hold():
        return old.functions
    if old is not None or (all(map(reads_little, functions)) and _FROZEN.is_met(functions)):
        twin = Twin(functions, is_frozen=True) if old is None else old.again()
        if not twin.is_like(functions):  # they hold what can be read in another way
            twin = Twin(functions, is_frozen=True, live=twin.elsewhere)
        if twin.is_like(functions):
            _FROZEN.add(twin, old)
            return twin.functions
    _MET.update(fn for fn in functions if isinstance(fn, types.FunctionType))
    return functions


def _owned(value: Any, known: dict[int, tuple[Any, Any]]) -> Any:
    """A copy of a function, a container or an array, and of those in it, that nobody else changes. `known`: both, by the original's id."""
    if not _is_copied(value) or id(value) in known:
        return known.get(id(value), (value, value))[1]
    kind, made = type(value), value
    if kind is np.ndarray:
        made = _owned_array(value)
    elif kind is types.FunctionType:
        cells = tuple([types.CellType() for _ in value.__closure__ or ()])
        made = types.FunctionType(value.__code__, value.__globals__, value.__name__, None, cells or None)
    elif kind is not tuple:
        made = kind()
    known[id(value)] = value, made  # a list may hold itself
    if kind is tuple:
        made = tuple([_owned(part, known) for part in value])
        known[id(value)] = value, made
    elif kind is list:
        made += [_owned(part, known) for part in value]
    elif kind is dict:
        made |= {_owned(key, known): _owned(part, known) for key, part in value.copy().items()}
    elif kind is types.FunctionType:
        made.__defaults__, made.__kwdefaults__ = _owned(value.__defaults__, known), _owned(value.__kwdefaults__, known)
        for cell, original in zip(made.__closure__ or (), value.__closure__ or (), strict=True):
            if (part := content(original)) is not ABSENT:
                cell.cell_contents = _owned(part, known)
    return made


def _owned_array(array: np.ndarray) -> np.ndarray:
    """A copy with memory of its own, which is a view if the array is one."""
    made = array.copy(order="K")
    made = made if array.base is None else made[...]
    made.flags.writeable = array.flags.writeable
    return made


def reads_little(fn: Callable[..., Any]) -> bool:
    """Whether holding `fn` keeps no large array alive."""
    seen: set[int] = set()
    todo: list[Any] = [fn]
    while todo:
        value = todo.pop()
        if isinstance(value, np.ndarray) and value.nbytes > LARGEST:
            return False
        if type(value) in _COPIED and id(value) not in seen:
            seen.add(id(value))
            todo += parts_of(value)
    return True


# how functions compare ----------------------------------------------------------------------------------------------


def _is_copied(value: Any) -> bool:
    """Whether another function, container or array may stand for it. Not for functions with attributes, and arrays of objects."""
    kind = type(value)
    if kind is types.FunctionType:
        return not value.__dict__
    return kind in _COPIED and not (kind is np.ndarray and value.dtype.hasobject)


def _memory(value: Any) -> Any:
    """The object in whose memory an array lies. Any other value itself."""
    while (base := value.base if isinstance(value, _VIEWS) else value.obj if isinstance(value, memoryview) else None) is not None:
        value = base
    return value


class _Was:
    """What an object of a closure was: its identity, its parts, as copies, and of an array what it held and where it lay."""

    __slots__ = ("about", "address", "id", "is_apart", "memory", "parts")

    def __init__(self, value: Any, made: Any) -> None:
        self.id, self.memory, self.parts = id(value), id(_memory(value)), parts_of(made)
        self.is_apart = self.id == self.memory  # no other array lies there
        if type(value) is np.ndarray:
            self.about, self.address = about_array(value), _address(value)


def _address(array: np.ndarray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


class _Pairs:
    """What is being compared, by identity: each value has one partner. A function may stand in its own closure, a list in itself."""

    __slots__ = ("_but_numbers", "_elsewhere", "_met", "_partners", "_shifts", "_values", "_was")

    def __init__(self, was: dict[int, _Was], elsewhere: dict[int, Any], but_numbers: bool) -> None:
        self._was, self._elsewhere, self._but_numbers = was, elsewhere, but_numbers
        self._partners: dict[int, int] = {}  # by the id of a value that of what it was before
        self._values: dict[int, int] = {}  # and back
        self._shifts: dict[int, int] = {}  # by the id of a memory how far another one lies from it
        self._met: set[int] = set()

    def _are_one(self, value: int, before: int) -> bool:
        """Whether a value is the same object wherever its partner before was, and that very object where it is read in another way."""
        if value != before and (value in self._elsewhere or before in self._elsewhere):
            return False
        return self._partners.setdefault(value, before) == before and self._values.setdefault(before, value) == value

    def are_alike(self, value: Any, before: Any) -> bool:
        """Whether code that reads a value would do what it did.

        Numbers, strings, arrays and functions are compared by what they are, other objects by identity.
        """
        if before is None:
            return value is None
        was = self._was.get(id(before))
        if was is None:
            if self._but_numbers and type(value) is type(before) and isinstance(value, Number):
                return True
            return (value is before or same(value, before)) and self._are_one(id(value), id(before))
        if not _is_copied(value) or type(value) is not type(before) or not self._are_one(id(value), was.id):
            return False
        if was.id in self._met:
            return True
        self._met.add(was.id)
        if type(value) is np.ndarray:
            return self._are_arrays_alike(value, was)
        if type(value) is types.FunctionType and not (value.__code__ is before.__code__ and value.__globals__ is before.__globals__):
            return False
        parts = parts_of(value)
        return len(parts) == len(was.parts) and all(map(self.are_alike, parts, was.parts))

    def _are_arrays_alike(self, value: np.ndarray, before: _Was) -> bool:
        """Whether two arrays are the same, and lie at the same places of memories that are the same wherever they occur."""
        if about_array(value) != before.about or not self._are_one(memory := id(_memory(value)), before.memory):
            return False
        if before.is_apart:
            return True
        shift = _address(value) - before.address
        return self._shifts.setdefault(memory, shift) == shift and not (shift and memory == before.memory)
