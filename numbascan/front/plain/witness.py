"""Changes that a branch or a pass makes to Python's own objects unnoted: found by comparing what they hold before and after it.

A witness follows what code can name: closures, globals, attributes of modules, the contents of containers and objects, and their classes.
It runs none of the user's code. What no branch changes (libraries, modules as such) is not looked into.
"""

from __future__ import annotations

import array
import builtins
import functools
import gc
import itertools
import operator
import sys
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..captures.namespaces import ABSENT, CONTAINERS, PARTS, PLAIN, content, is_installed, items, slots, slots_of, space_of
from ..captures.reachable import LIBRARY_PARTS, names_of
from ..converted.source import is_library_name, runtime
from ..variable import Variable
from .cells import functions_of
from .made import InPlaceOfAList

MOST_OBJECTS = 4000  # looked at
MOST_ITEMS = 50_000  # of a container; the items of a longer one are not looked at
MOST_BYTES = 1 << 24  # of arrays' contents kept

_ATOMS = PLAIN | {
    *(Variable, types.ModuleType, types.GetSetDescriptorType, types.WrapperDescriptorType, types.MethodDescriptorType),
    *(types.MemberDescriptorType, types.ClassMethodDescriptorType, type(np.dtype("f8")), type(runtime)),
}
"""Classes whose objects never change, or only in ways that are noted."""
_WRAPPERS = PARTS.keys() - {functools._lru_cache_wrapper, functools.singledispatchmethod}  # whose own tables change
_ITERATORS = frozenset(
    {zip, map, filter, enumerate, reversed, *map(type, (iter([]), iter(()), iter({}), iter({}.values()), iter({}.items()), iter(set())))}
    | set(map(type, (iter(""), iter(range(0)), iter(range(2**70)), iter(b""), reversed([]), reversed({}))))
)
"""Iterators whose position can be read."""


@dataclass(eq=False, slots=True)
class _Spot:
    """A global variable, or an attribute of a module."""

    space: dict[str, Any]
    name: str


@dataclass(frozen=True, slots=True)
class _Kind:
    """How to read what an object holds, and how to give it back; `give` is None where that cannot be."""

    word: str
    read: Callable[[Any], Any]
    give: Callable[[Any, Any], None] | None


@dataclass(eq=False, slots=True)
class Record:
    """An object, and what it held before."""

    value: Any
    kind: _Kind
    name: str
    before: Any

    @property
    def label(self) -> str:
        """Its name in messages."""
        return f"{self.kind.word} {self.name}" if self.name else self.kind.word

    @property
    def is_global(self) -> bool:
        """True for a global variable or an attribute of a module."""
        return self.kind is _GLOBAL

    @property
    def may_be_given_back(self) -> bool:
        """Whether the object can be given what it held before."""
        return self.kind.give is not None

    def give_back(self) -> None:
        """Gives the object what it held before, where that can be."""
        if self.kind.give is not None:
            self.kind.give(self.value, self.before)

    def changed_parts(self) -> dict[Any, tuple[Any, Any]] | None:
        """For a variable, an object or a dict, by name (key) of each changed part: its value before, and now. None for all else."""
        if self.kind in (_CELL, _GLOBAL):
            return {self.name: (self.before[0], self.kind.read(self.value)[0])}
        if self.kind not in (_ATTRIBUTES, _INSTANCE, _CLASS) and not isinstance(self.value, dict):
            return None
        members = [slot.__name__ for slot in slots_of(type(self.value))] if self.kind is _INSTANCE else []
        before, now = (_by_name(holds, members) for holds in (self.before, self.kind.read(self.value)))
        pairs = {name: (before.get(name, ABSENT), now.get(name, ABSENT)) for name in {**before, **now}}
        return {name: pair for name, pair in pairs.items() if not _is_same(*pair)}

    def is_same(self) -> bool:
        """Whether it still holds what it held before."""
        now = self.kind.read(self.value)
        if type(now) is not tuple:
            return bool(now == self.before)
        return len(now) == len(self.before) and (all(map(operator.is_, now, self.before)) or all(map(_is_same, now, self.before)))


def _value_of(record: Record) -> Any:
    return record.value


def _is_same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) is int and one == other)


class Witness:
    """A record of all that the code of some functions, and some values, can reach, as it is now.

    is_whole: whether it knows every object that was there. It does not where limits were met.
    """

    def __init__(self, parts: Iterable[Callable[..., Any]], values: Iterable[Any] = ()) -> None:
        self._known: dict[int, Any] = {}
        self._records: list[Record] = []
        self._spots: set[tuple[int, str]] = set()
        self._todo: list[tuple[Any, str]] = []
        self._n_bytes = 0
        self.is_whole = True
        for part in parts:
            for one in functions_of(part):
                self._look_at_code(one)
        self._add(values, "")
        while self._todo and len(self._known) < MOST_OBJECTS:
            self._look(*self._todo.pop())
        self.is_whole = self.is_whole and not self._todo
        self._todo.clear()

    def knows(self, value: Any) -> bool:
        """Whether an object may have been there when the witness was made."""
        return not self.is_whole or id(value) in self._known

    def held(self) -> list[Variable]:
        """The variables that the witness refers to, each as often as it does."""
        return [one for record in self._records if type(record.before) is tuple for one in record.before if type(one) is Variable]

    def references(self) -> list[Any]:
        """The variables and lists that the witness refers to, each as often as it does."""
        holders = [record.before for record in self._records if type(record.before) is tuple]
        parts = itertools.chain(*holders, map(_value_of, self._records), self._known.values())
        lists = [one for one in parts if type(one) is list or isinstance(one, InPlaceOfAList)]
        return [*self.held(), *lists]

    def changes(self) -> list[Record]:
        """The records of what holds something else now."""
        return [record for record in self._records if not record.is_same()]

    def has_lasting_changes(self) -> bool:
        """Whether something changed that cannot be given back."""
        return any(record.kind.give is None and not record.is_same() for record in self._records)

    # what is looked at ------------------------------------------------------------------------------------------------

    def _add(self, values: Iterable[Any], name: str) -> None:
        self._todo += [(value, name) for value in values if type(value) not in _ATOMS]

    def _look(self, value: Any, name: str) -> None:
        kind: Any = type(value)
        if kind in _ATOMS or id(value) in self._known:
            return
        role = _role(kind)
        if role == "atom":
            if str(kind.__module__).partition(".")[0] == "numbascan" and isinstance(space := space_of(value), dict):
                self._add((space[part] for part in LIBRARY_PARTS if part in space), name)
            return
        self._known[id(value)] = value
        if kind is types.FunctionType:
            self._look_at_function(value, name)
        elif role == "class":
            self._look_at_class(value)
        elif kind in _WRAPPERS:
            self._add((getattr(value, part) for part in PARTS[kind]), name)
        elif role == "opaque":
            self._add(gc.get_referents(value), name)
        else:
            if issubclass(kind, _UNCHANGING):
                self._add(items(value), name)
            for one in _kinds(kind):
                self._record(value, one, name)

    def _record(self, value: Any, kind: _Kind, name: str) -> None:
        if issubclass(type(value), np.ndarray):  # the real class: proxies say that they are arrays
            self._add((value.base,), name)  # which another view in the function may show
            self._n_bytes += value.nbytes
            if self._n_bytes > MOST_BYTES:
                self.is_whole = False
                return
        before = kind.read(value)
        self._records.append(Record(value, kind, name, before))
        if type(before) is not tuple:
            return
        if len(before) > MOST_ITEMS:
            self.is_whole = self.is_whole and set(map(type, before)) <= _ATOMS
        else:
            self._add(before, name)
        if kind is _INSTANCE and not is_library_name(type(value).__module__):
            self._todo.append((type(value), name))

    def _look_at_function(self, f: types.FunctionType, name: str) -> None:
        if is_library_name(str(f.__globals__.get("__name__"))) or is_installed(f.__code__.co_filename):
            self._add((one for one in map(content, f.__closure__ or ()) if callable(one)), name)  # the user's, that it calls
            return
        self._add((f.__defaults__, f.__kwdefaults__), name)
        if vars(f):
            self._record(f, _ATTRIBUTES, name)
        self._look_at_code(f)

    def _look_at_code(self, f: Any) -> None:
        """The variables that a function shares with others: cells, globals, attributes of modules."""
        code, space = f.__code__, f.__globals__
        for name, cell in zip(code.co_freevars, f.__closure__ or (), strict=True):
            if id(cell) not in self._known and content(cell) is not runtime:
                self._known[id(cell)] = cell
                self._record(cell, _CELL, name)
        names = names_of(code)
        for name in names.variables:
            if name in space or not hasattr(builtins, name):
                self._spot(space, name)
                if type(space.get(name)) is types.ModuleType:
                    self._look_at_module(space[name], names.attributes)

    def _look_at_module(self, module: types.ModuleType, names: set[str]) -> None:
        if is_library_name(module.__name__) or is_installed(getattr(module, "__file__", None)):
            return
        for name in names & vars(module).keys():
            self._spot(vars(module), name)

    def _spot(self, space: dict[str, Any], name: str) -> None:
        if (id(space), name) not in self._spots:
            self._spots.add((id(space), name))
            self._record(_Spot(space, name), _GLOBAL, name)

    def _look_at_class(self, cls: type) -> None:
        meta: Any = type(cls)
        for base in (*cls.__mro__, *meta.__mro__):
            if (base is cls or id(base) not in self._known) and not is_library_name(base.__module__) and not _is_foreign(base):
                self._known[id(base)] = base
                self._record(base, _CLASS, base.__name__)


@lru_cache(maxsize=1024)
def _is_foreign(cls: type) -> bool:
    module = sys.modules.get(cls.__module__)
    return is_installed(getattr(module, "__file__", None))


# kinds of objects -----------------------------------------------------------------------------------------------------


def _of_cell(cell: Any) -> tuple[Any, ...]:
    return (content(cell),)


def _give_cell(cell: Any, before: Sequence[Any]) -> None:
    if before[0] is ABSENT:
        del cell.cell_contents
    else:
        cell.cell_contents = before[0]


def _of_spot(spot: _Spot) -> tuple[Any, ...]:
    return (spot.space.get(spot.name, ABSENT),)


def _give_spot(spot: _Spot, before: Sequence[Any]) -> None:
    if before[0] is ABSENT:
        spot.space.pop(spot.name, None)
    else:
        spot.space[spot.name] = before[0]


def _by_name(holds: Sequence[Any], members: Sequence[str]) -> dict[str, Any]:
    """What an object holds under each name: in its namespace, and in `members`, which come last."""
    n_pairs = len(holds) - len(members)
    return dict(_pairs(holds[:n_pairs])) | dict(zip(members, holds[n_pairs:], strict=True))


def _pairs(before: Sequence[Any]) -> zip[tuple[Any, Any]]:
    half = len(before) // 2
    return zip(before[:half], before[half : 2 * half], strict=True)


def _give_dict(holder: Any, before: Sequence[Any]) -> None:
    base: Any = OrderedDict if isinstance(holder, OrderedDict) else dict
    base.clear(holder)
    for key, value in _pairs(before):
        base.__setitem__(holder, key, value)


def _give_set(holder: Any, before: Sequence[Any]) -> None:
    set.clear(holder)
    set.update(holder, before)


def _give_deque(holder: Any, before: Sequence[Any]) -> None:
    deque.clear(holder)
    deque.extend(holder, before)


def _give_bytes(holder: Any, before: bytes) -> None:
    if isinstance(holder, bytearray):
        bytearray.__setitem__(holder, slice(None), before)
    else:
        del holder[:]
        holder.frombytes(before)


def _of_array(x: Any) -> Any:
    return tuple(x.ravel().tolist()) if x.dtype.hasobject else x.tobytes()


def _give_array(x: Any, before: Any) -> None:
    if x.dtype.hasobject:
        x[...] = np.fromiter(before, object, len(before)).reshape(x.shape)
    else:
        np.copyto(x, np.frombuffer(before, x.dtype).reshape(x.shape))


def _of_instance(value: Any) -> tuple[Any, ...]:
    space, members = space_of(value), slots_of(type(value))
    return (*(items(space) if isinstance(space, dict) else ()), *(slots((value, members)) if members else ()))


def _give_instance(value: Any, before: Sequence[Any]) -> None:
    members, space = slots_of(type(value)), space_of(value)
    if isinstance(space, dict):
        _give_dict(space, before[: len(before) - len(members)])
    for member, one in zip(members, before[len(before) - len(members) :], strict=True):
        if one is not ABSENT:
            member.__set__(value, one)
        elif slots((value, (member,)))[0] is not ABSENT:
            member.__delete__(value)


def _of_class(cls: type) -> tuple[Any, ...]:
    return (*vars(cls), *vars(cls).values())


def _give_class(cls: type, before: Sequence[Any]) -> None:
    known = dict(_pairs(before))
    for name in [name for name in vars(cls) if name not in known]:
        type.__delattr__(cls, name)
    for name, value in known.items():
        if vars(cls).get(name, ABSENT) is not value:
            type.__setattr__(cls, name, value)


def _of_generator(value: Any) -> tuple[Any, ...]:
    frame = value.gi_frame
    return () if frame is None else (frame.f_lasti, *frame.f_locals.values())


def _of_iterator(value: Any) -> tuple[Any, ...]:
    _, parts, *state = value.__reduce__()
    return (*parts, *state)


_CELL = _Kind("the variable", _of_cell, _give_cell)
_GLOBAL = _Kind("the variable", _of_spot, _give_spot)
_ATTRIBUTES = _Kind("the attributes of the function", lambda f: items(vars(f)), lambda f, before: _give_dict(vars(f), before))
_INSTANCE = _Kind("the object", _of_instance, _give_instance)
_CLASS = _Kind("the class", _of_class, _give_class)
_ITERATOR = _Kind("the iterator", _of_iterator, None)
_GENERATOR = _Kind("the generator", _of_generator, None)
_COUNTER = _Kind("the counter", repr, None)
_KINDS: dict[type, _Kind] = {
    list: _Kind("the list", lambda value: tuple(list.__iter__(value)), lambda value, before: list.__setitem__(value, slice(None), before)),
    dict: _Kind("the dict", items, _give_dict),
    set: _Kind("the set", lambda value: tuple(sorted(set.__iter__(value), key=id)), _give_set),
    deque: _Kind("the deque", lambda value: tuple(deque.__iter__(value)), _give_deque),
    bytearray: _Kind("the bytearray", bytes, _give_bytes),
    array.array: _Kind("the array", lambda value: value.tobytes(), _give_bytes),
    np.ndarray: _Kind("the array", _of_array, _give_array),
    types.GeneratorType: _GENERATOR,
    itertools.count: _COUNTER,
}
_UNCHANGING = (tuple, frozenset, *(cls for cls in CONTAINERS if cls not in _KINDS))


@lru_cache(maxsize=1024)
def _kinds(cls: type) -> tuple[_Kind, ...]:
    """What can be read from the objects of a class."""
    own = [kind for base, kind in _KINDS.items() if issubclass(cls, base)]
    if cls in _ITERATORS:
        own.append(_ITERATOR)
    if cls.__dictoffset__ or slots_of(cls):
        own.append(_INSTANCE)
    return tuple(own)


@lru_cache(maxsize=1024)
def _role(cls: Any) -> str:
    """ "atom": its objects do not change; "class"; "seen": one can see what they hold; "opaque": one cannot."""
    if issubclass(cls, type):
        return "class"
    if cls is types.FunctionType or cls in _WRAPPERS:
        return "seen"
    root = str(cls.__module__).partition(".")[0]
    if root in ("numbascan", "numba") or issubclass(cls, (np.generic, np.dtype, types.ModuleType)):
        return "atom"
    base = next(one for one in cls.__mro__ if not _is_written_in_python(one))
    if issubclass(cls, (*_KINDS, *_UNCHANGING)) or base in _ITERATORS or base is object or issubclass(base, BaseException):
        return "seen" if _kinds(cls) or issubclass(cls, _UNCHANGING) else "atom"
    if base in _ATOMS or f"{base.__module__}.{base.__name__}" in _IMMUTABLE:
        return "seen" if _kinds(cls) else "atom"
    return "opaque"


_IMMUTABLE = frozenset(
    {"re.Pattern", "re.Match", "decimal.Decimal", "datetime.date", "datetime.datetime", "datetime.time", "datetime.timedelta"}
    | {
        "datetime.timezone",
        "operator.itemgetter",
        "operator.attrgetter",
        "operator.methodcaller",
        "builtins.memoryview",
        "types.GenericAlias",
    }
    | {"types.UnionType", "builtins.mappingproxy", "types.SimpleNamespace", "builtins.super", "builtins.object", "weakref.ReferenceType"}
)
"""Classes written in C whose objects do not change by themselves."""


def _is_written_in_python(cls: type) -> bool:
    """Whether a class was made by a `class` statement."""
    if cls.__flags__ & (1 << 8) or not cls.__flags__ & (1 << 9):  # an immutable type, or none made at run time
        return False
    module = sys.modules.get(cls.__module__)
    return module is None or getattr(module, "__file__", "x.py") is None or (getattr(module, "__file__", "x.py")).endswith((".py", ".pyc"))


def is_opaque(value: Any) -> bool:
    """Whether nobody can see what a value is made of, so that what a call does to it cannot be known."""
    kind: Any = type(value)
    return kind not in _ATOMS and (_role(kind) == "opaque" or kind in _ITERATORS or kind in (types.GeneratorType, itertools.count))
