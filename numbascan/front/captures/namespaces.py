"""Where Python keeps values: namespaces, slots, closures, containers. Read as they are: no code of the user runs for it.

What is plain data, what holds other objects for good, and what was installed, is said here, for all that look at what code reads.
"""

from __future__ import annotations

import functools
import sysconfig
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

COMPARED = frozenset({bool, int, str, bytes, range})
"""Classes, besides numbers with fractions, whose objects hold nothing and are the same if they are equal."""
PLAIN = COMPARED | {float, complex, slice, *map(type, (None, ..., NotImplemented, np.sum)), types.CodeType, np.ufunc}
"""Classes whose objects never change, and lead to nothing that does."""
CONTAINERS: tuple[type, ...] = (
    list,
    tuple,
    set,
    frozenset,
    dict,
    deque,
    types.MappingProxyType,
    type({}.keys()),
    type({}.values()),
    type({}.items()),
    type(OrderedDict().keys()),
    type(OrderedDict().values()),
    type(OrderedDict().items()),
)
MAPPINGS = (dict, types.MappingProxyType)

PARTS: dict[type, tuple[str, ...]] = {
    functools.partial: ("func", "args", "keywords"),
    functools.partialmethod: ("func", "args", "keywords"),
    functools.singledispatchmethod: ("dispatcher",),
    functools.cached_property: ("func",),
    functools._lru_cache_wrapper: ("__wrapped__",),
    property: ("fget", "fset", "fdel"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    types.MethodType: ("__func__", "__self__"),
    types.BuiltinMethodType: ("__self__",),
    types.MethodWrapperType: ("__self__",),
}
"""By class, the attributes in which its objects hold other functions and values for good."""
ABSENT = object()
_INSTALLED = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
_CODE = (types.FunctionType, *PARTS)
_HIDDEN = frozenset(
    ("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__builtins__", "__loader__", "__spec__", "__cached__")
)


@dataclass(eq=False)
class Namespace:
    """A namespace: of an object, a class or a module, a dict of globals, or the `slots` of an object.

    names: those that code names. whole: every name counts. is_closed: no names but these ever count.
    """

    holder: Any
    names: set[str]
    whole: bool = False
    slots: tuple[types.MemberDescriptorType, ...] = ()
    is_closed: bool = False
    done: set[str] = field(default_factory=set)

    def now(self) -> Mapping[str, Any]:
        """Its names and values: a view, but for slots."""
        if self.slots:
            values = zip(self.slots, slots((self.holder, self.slots)), strict=True)
            return {slot.__name__: value for slot, value in values if value is not ABSENT}
        space: Mapping[str, Any] = self.holder if type(self.holder) is dict else space_of(self.holder)
        return space

    def is_of_object(self) -> bool:
        """Whether the namespace as a whole may be replaced."""
        return not self.slots and not isinstance(self.holder, (dict, type, types.ModuleType))

    def present(self) -> list[str]:
        """The names that count and are there."""
        space = self.now()
        if self.whole:
            return [name for name in tuple(space) if name not in _HIDDEN]
        if not isinstance(self.holder, (type, types.ModuleType)):
            return [name for name in tuple(space) if name in self.names]
        # __getitem__, __getattr__ and their like run without being named
        return [name for name, value in tuple(space.items()) if name in self.names or (name[:2] == "__" and isinstance(value, _CODE))]

    def fresh(self) -> Iterator[tuple[Any, str]]:
        """The values and names of names that count, and did not the last time."""
        space = self.now()
        for name in self.present():
            if name not in self.done:
                self.done.add(name)
                yield space.get(name), name


def is_installed(file: Any) -> bool:
    """Whether a file, if there is one, is Python's or that of an installed package."""
    return str(file or "").startswith(_INSTALLED)


def content(cell: types.CellType) -> Any:
    """What a closure holds; ABSENT for a variable that is not bound yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT


def items(container: Any) -> tuple[Any, ...]:
    """What a container holds, keys first. No method of a user's class is called for it."""
    if isinstance(container, defaultdict):
        return (*dict.keys(container), *dict.values(container), container.default_factory)
    if isinstance(container, OrderedDict):  # has an order of its own
        keys = tuple(OrderedDict.__iter__(container))
        return (*keys, *(dict.get(container, key) for key in keys))
    if isinstance(container, dict):
        return (*dict.keys(container), *dict.values(container))
    if isinstance(container, types.MappingProxyType):
        return (*container, *container.values())
    if type(container) in CONTAINERS:
        return tuple(container)
    base: Any = next(cls for cls in CONTAINERS if isinstance(container, cls))
    return tuple(base.__iter__(container))


def parts_of(value: Any) -> list[Any]:
    """What a function of a closure reads, or what a list, tuple or dict holds; nothing of an array."""
    kind = type(value)
    if kind is types.FunctionType:
        cells = value.__closure__
        return [value.__defaults__, value.__kwdefaults__, *map(content, cells)] if cells else [value.__defaults__, value.__kwdefaults__]
    return [*value, *value.values()] if kind is dict else [*value] if kind in (list, tuple) else []


def space_of(value: Any) -> Any:
    """The namespace of an object, a class or a module, as it is; None where there is none."""
    own: Any = type(value).__getattribute__
    try:
        return (object.__getattribute__ if isinstance(own, types.FunctionType) else own)(value, "__dict__")
    except Exception:  # objects of packages may raise anything
        return None


def slots(named: tuple[Any, Iterable[types.MemberDescriptorType]]) -> tuple[Any, ...]:
    """What slots of an object hold; ABSENT for one that is not set."""
    value, members = named
    values = []
    for member in members:
        try:
            values.append(member.__get__(value))
        except AttributeError:
            values.append(ABSENT)
    return tuple(values)


def slots_of(kind: type) -> tuple[types.MemberDescriptorType, ...]:
    """The slots of a class written in Python, and of its bases."""
    members = (member for cls in kind.__mro__ if "__slots__" in vars(cls) for member in vars(cls).values())
    return tuple(member for member in members if isinstance(member, types.MemberDescriptorType))
