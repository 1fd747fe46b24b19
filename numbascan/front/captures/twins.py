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

_COPIED = (list, tuple, dict, types.FunctionType, np.ndarray)
_VIEWS: tuple[Any, ...] = (np.ndarray, type(np.lib.stride_tricks.as_strided(np.ones(1)).base))
"""Classes with a `base`, to which the memory belongs."""
_ADDRESSES = frozenset({"id", "hash"})
"""Builtins that give another number for each object."""


class Twin(Guards):
    """A function that is traced, and a frozen copy of it: with containers, arrays and functions that nobody else changes.

    is_frozen: the copy itself is the function that is traced. live: objects that are not copied, by id.
    """

    def __init__(self, fn: types.FunctionType, is_frozen: bool = False, live: Mapping[int, Any] = MappingProxyType({})) -> None:
        known = {key: (value, value) for key, value in live.items()}
        self.copy = _owned(fn, known)
        self.fn: types.FunctionType = self.copy if is_frozen else fn
        pairs = [(value, made) for value, made in known.values() if made is not value]
        self._own = {id(made): made for _, made in pairs}
        self._was = {id(made): _Was(made if is_frozen else value, made) for value, made in pairs}
        self._look()

    def _look(self) -> None:
        super().__init__(self.copy)
        around = Reachable(self.copy, own=self._own)
        memories = {id(memory): memory for memory in (_memory(array) for array, _ in around.arrays)}
        self.elsewhere = around.seen | memories  # held: a new object in the place of one that is gone would look like it
        functions = [*around.functions, *(value for value in self._own.values() if isinstance(value, types.FunctionType))]
        self._is_like_none = id(self.copy) not in self._own or any(map(_asks_for_addresses, functions))

    def again(self) -> Twin:
        """The same with what else is read as it is now."""
        now = copy.copy(self)
        now._look()
        return now

    def is_like(self, fn: Callable[..., Any], but_numbers: bool = False) -> bool:
        """Whether a function does what this one did when it was copied; with `but_numbers`, numbers may differ.

        That what both read besides their closures is unchanged, `hold` says.
        """
        before = self.copy
        if self._is_like_none or not _is_copied(fn) or fn.__code__ is not before.__code__ or fn.__globals__ is not before.__globals__:
            return False
        if all(map(operator.is_, parts_of(fn), self._was[id(before)].parts)):
            return True
        return _Pairs(self._was, self.elsewhere, but_numbers).are_alike(fn, before)


def _asks_for_addresses(fn: types.FunctionType) -> bool:
    return fn.__name__ != "__hash__" and not _ADDRESSES.isdisjoint(names_of(fn.__code__).variables - fn.__globals__.keys())


class _Known:
    """The latest twins of each code, the latest last."""

    def __init__(self) -> None:
        self._twins: dict[types.CodeType, tuple[Twin, ...]] = {}

    def is_met(self, fn: types.FunctionType) -> bool:
        """Whether another function of its code was met before: one that is the only one is not worth a twin."""
        if fn.__code__ in self._twins:
            return True
        if len(self._twins) >= MOST_CODES:
            self._twins.clear()
        self._twins[fn.__code__] = ()
        return False

    def like(self, fn: types.FunctionType, but_numbers: bool = False) -> Twin | None:
        """The latest twin that is like a function; None if there is none."""
        for twin in reversed(self._twins.get(fn.__code__, ())):
            if twin.is_like(fn, but_numbers):
                return twin
        return None

    def add(self, twin: Twin, old: Twin | None = None) -> None:
        """Holds a twin, in the place of an old one."""
        known = tuple([one for one in self._twins.get(twin.fn.__code__, ()) if one is not old])
        self._twins[twin.fn.__code__] = (*known[1 - MOST_TWINS :], twin)


_KNOWN, _FROZEN = _Known(), _Known()  # the second: copies of functions that nobody else reaches
_MET: weakref.WeakSet[types.FunctionType] = weakref.WeakSet()
twin_of = _KNOWN.like


def new_twin(fn: Callable[..., Any]) -> Twin | None:
    """A function as it is now, to be held for the next one of the same code.

    None for the first function of its code, and for one that reads large arrays.
    """
    return Twin(fn) if isinstance(fn, types.FunctionType) and reads_little(fn) and _KNOWN.is_met(fn) else None


def read_by(fn: Callable[..., Any], twin: Twin) -> object:
    """Holds a twin for later calls, since the trace of a function like it is over. The copy of what was read; None if that has changed.

    What the function has changed itself is taken as it is now.
    """
    now = twin if twin.hold() or twin.changed_elsewhere() else twin.again()
    if not now.is_like(fn) or not now.hold():
        return None
    _KNOWN.add(now, twin)
    return now.copy


def one_of_all(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The one function that stands for all of the same code that read the same. Whoever keeps its trace holds it.

    Of code that was met before it is a frozen copy, so that its trace is valid for every function like it.
    """
    if not isinstance(fn, types.FunctionType) or fn in _MET:
        return fn
    old = _FROZEN.like(fn)
    if old is not None and old.hold():
        return old.fn
    if old is not None or (reads_little(fn) and _FROZEN.is_met(fn)):
        twin = Twin(fn, is_frozen=True) if old is None else old.again()
        if not twin.is_like(fn):  # it holds what can be read in another way
            twin = Twin(fn, is_frozen=True, live=twin.elsewhere)
        if twin.is_like(fn):
            _FROZEN.add(twin, old)
            return twin.fn
    _MET.add(fn)
    return fn


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


def reads_little(fn: types.FunctionType) -> bool:
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

    __slots__ = ("about", "address", "id", "memory", "parts")

    def __init__(self, value: Any, made: Any) -> None:
        self.id, self.parts = id(value), parts_of(made)
        if type(value) is np.ndarray:
            self.about, self.address, self.memory = about_array(value), _address(value), id(_memory(value))


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
        if type(value) is types.FunctionType and (value.__code__ is not before.__code__ or value.__globals__ is not before.__globals__):
            return False
        parts = parts_of(value)
        return len(parts) == len(was.parts) and all(map(self.are_alike, parts, was.parts))

    def _are_arrays_alike(self, value: np.ndarray, before: _Was) -> bool:
        """Whether two arrays are the same, and lie at the same places of memories that are the same wherever they occur."""
        if about_array(value) != before.about or not self._are_one(memory := id(_memory(value)), before.memory):
            return False
        shift = _address(value) - before.address
        return self._shifts.setdefault(memory, shift) == shift and not (shift and memory == before.memory)
