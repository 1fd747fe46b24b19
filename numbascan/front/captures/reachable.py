"""What a function can read from outside, found from its code before and after it is traced. No code of the user's is run for it.

Followed are closures, defaults, the globals that code names, what containers hold, and attributes of objects, classes and modules that some
code names. Every attribute counts where any may be read: by code that makes names while it runs (`getattr`, `vars`), and by code of
packages that are not known here.
"""

from __future__ import annotations

import abc
import array
import builtins
import contextvars
import ctypes
import dis
import functools
import importlib.util
import operator
import random
import sys
import types
import typing
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from ..shared import SharedVariable
from .namespaces import CONTAINERS, MAPPINGS, PARTS, PLAIN, Namespace, content, is_installed, items, parts_of, slots_of, space_of

_LIBRARIES = ("numpy", "scipy", "numba", "numbascan", "builtins", "math", "cmath", "operator", "functools", "itertools")
_QUIET = {
    *(*_LIBRARIES, "_operator", "_pytest", "_thread", "abc", "collections", "contextvars", "enum", "random", "reprlib", "time"),
    *("types", "typing"),
}
"""Packages whose functions read no attribute of the objects that they are given. pytest's stand in every `assert` of a test."""

_BY_NAME = (getattr, hasattr, vars, dir, operator.attrgetter, operator.methodcaller)
_BY_GLOBAL_NAME = (globals, eval, exec)
_OPENERS = frozenset(map(id, _BY_NAME))
_GLOBAL_OPENERS = frozenset(map(id, _BY_GLOBAL_NAME))
_OPENING_NAMES = frozenset(
    {"__dict__", "__getattribute__", "__slots__", "format", "format_map", *(function.__name__ for function in _BY_NAME)}
)
_GLOBAL_OPENING_NAMES = frozenset({"__globals__", *(function.__name__ for function in _BY_GLOBAL_NAME)})

_BUFFERS = (bytearray, array.array, memoryview, ctypes.Array, ctypes.Structure, ctypes.Union, ctypes._SimpleCData)
_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)

LIBRARY_PARTS = ("__wrapped__", "fwd", "bwd", "options", "_defaults", "py_func")
"""Attributes in which objects made by ns.jit, ns.scan, Numba and their like keep what is the user's."""
_SIMPLE = {np.ndarray, OrderedDict, defaultdict, weakref.ref, contextvars.ContextVar, *CONTAINERS, *_BUFFERS, *PARTS}
"""Classes whose objects have nothing but content."""
_BARE = _SIMPLE | {object, bool, int, float, complex, str, bytes, abc.ABC, typing.Generic, typing.Protocol}
"""Classes whose methods read no attributes by themselves."""


class Reachable:
    """What a function can read, also through what it is given. Lists of what is to be watched, by kind.

    own: functions, containers and arrays of its closure, by id. If given, only what can be read in other ways is looked for.
    """

    def __init__(self, fn: Callable[..., Any], given: Iterable[Any] = (), own: Mapping[int, Any] | None = None) -> None:
        self.functions: list[types.FunctionType] = []
        self.objects: list[Any] = []
        self.containers: list[Any] = []
        self.buffers: list[Any] = []
        self.arrays: list[tuple[np.ndarray, str]] = []
        self.like_arrays: list[Any] = []
        self.generators: list[Any] = []
        self.contexts: list[contextvars.ContextVar[Any]] = []
        self.references: list[weakref.ref[Any]] = []
        self.shared: list[SharedVariable] = []
        self.attributes: set[str] = set()
        self.stored: set[str] = set()  # names of variables and attributes that code gives other values; "[]" where it does elements
        self._is_open = self._are_globals_open = False
        self._globals: dict[int, Namespace] = {}
        self._builtins = Namespace(vars(builtins), set(), is_closed=True)
        self._modules = Namespace(sys.modules, set(), is_closed=True)
        self.spaces = [self._builtins, self._modules]
        self.seen: dict[int, Any] = {}
        self._package = _package_of(fn)
        self._todo: list[tuple[Any, str]] = []
        if own is None:
            self._add(fn, *given)
        else:
            self._look_around(own)
        while True:
            while self._todo:
                self._look(*self._todo.pop())
            self._open()
            self._todo += [value for space in self.spaces for value in space.fresh()]
            if not self._todo:
                break

    @property
    def builtins(self) -> set[str]:
        """The builtins that code names."""
        return self._builtins.names

    def _open(self) -> None:
        """Every attribute counts, and every global, where code may read any."""
        for space in self.spaces:
            if not space.is_closed:
                space.whole |= self._are_globals_open if type(space.holder) is dict else self._is_open

    def _add(self, *values: Any, name: str = "") -> None:
        self._todo += [(value, name) for value in values]

    def _look(self, value: Any, name: str) -> None:
        kind = type(value)  # the real one: proxies say that they are what they stand for
        if kind in PLAIN or (issubclass(kind, (np.generic, np.dtype)) and not issubclass(kind, np.void)) or id(value) in self.seen:
            return
        self.seen[id(value)] = value
        self._is_open |= id(value) in _OPENERS
        self._are_globals_open |= id(value) in _GLOBAL_OPENERS
        if kind in weakref.ProxyTypes:
            self._add(_behind(value), name=name)
        elif issubclass(kind, types.FunctionType):
            self._look_at_function(value)
        elif issubclass(kind, types.ModuleType):
            self._look_at_module(value)
        elif issubclass(kind, type):
            self._look_at_class(value)
        elif issubclass(kind, _GENERATORS):
            self.generators.append(value)
        else:
            self._look_at_content(value, name)
            self._add(*(getattr(value, part) for cls in kind.__mro__ for part in PARTS.get(cls, ())), name=name)
            if issubclass(kind, types.BuiltinFunctionType):
                self._is_open |= value.__name__ in _OPENING_NAMES
                self._look_at_foreign(value)
            elif kind not in _SIMPLE:
                self._look_at_object(value)

    def _look_at_content(self, value: Any, name: str) -> None:
        """Elements of arrays, items of containers, and what stands behind references."""
        kind = type(value)
        if issubclass(kind, np.ndarray):
            self.arrays.append((value, name))
            if value.dtype.hasobject:
                self._add(*value.ravel().tolist())
        elif issubclass(kind, CONTAINERS):
            self.containers.append(value)
            children = items(value)
            labels = children[: len(children) // 2] if issubclass(kind, MAPPINGS) else range(len(children))
            self._todo += [(child, f"{name}_{label}") for label, child in zip(cycle(labels), children) if type(child) not in PLAIN]
        elif issubclass(kind, _BUFFERS):
            self.buffers.append(value)
        elif issubclass(kind, np.void):
            self.like_arrays.append(value)
        elif issubclass(kind, contextvars.ContextVar):
            self.contexts.append(value)
            with suppress(LookupError):
                self._add(value.get())
        elif issubclass(kind, weakref.ref):
            self.references.append(value)
            self._add(value())

    def _look_at_function(self, fn: types.FunctionType) -> None:
        if not self._is_ours(fn):
            self._look_at_foreign(fn)
            return
        self.functions.append(fn)
        self._add(fn.__defaults__, fn.__kwdefaults__, vars(fn) or None)
        for name, value in zip(fn.__code__.co_freevars, map(content, fn.__closure__ or ()), strict=True):
            self._add(value, name=name)
        self._look_at_code(fn)

    def _look_around(self, own: Mapping[int, Any]) -> None:
        """What objects of a closure name, and what they hold besides each other."""
        for value in own.values():
            if isinstance(value, types.FunctionType):
                (self._look_at_code if self._is_ours(value) else self._look_at_foreign)(value)
            self._add(*(part for part in parts_of(value) if id(part) not in own))

    def _look_at_code(self, fn: types.FunctionType) -> None:
        space, names = self._space_of_globals(fn.__globals__), names_of(fn.__code__)
        space.names |= names.variables
        self.stored |= names.stored
        self.attributes |= names.attributes
        self._is_open |= not _OPENING_NAMES.isdisjoint(names.attributes)
        self._are_globals_open |= not _GLOBAL_OPENING_NAMES.isdisjoint(names.attributes)
        self._builtins.names |= (names.variables - fn.__globals__.keys()) & vars(builtins).keys()
        self._modules.names.update(_imported(names.modules, fn.__globals__))

    def _space_of_globals(self, names: dict[str, Any]) -> Namespace:
        if (known := self._globals.get(id(names))) is None:
            self.spaces.append(known := self._globals.setdefault(id(names), Namespace(names, set())))
        return known

    def _look_at_module(self, module: types.ModuleType) -> None:
        if self._is_ours(module):
            self.spaces.append(Namespace(module, self.attributes))
            self._add(type(module))
        else:
            self._look_at_foreign(module)

    def _look_at_class(self, cls: type) -> None:
        if not self._is_ours(cls):
            self._look_at_foreign(cls)
            return
        self.objects.append(cls)
        foreign = [meta for meta in type.mro(type(cls)) if meta not in (type, abc.ABCMeta, object) and not self._is_ours(meta)]
        for base in cls.__mro__:
            if base is cls:
                self.spaces.append(Namespace(cls, self.attributes, bool(foreign)))
            elif self._is_ours(base):
                self._add(base)
        self._add(type(cls))

    def _look_at_object(self, value: Any) -> None:
        """An object of a class that the user, or a package, has written."""
        kind = type(value)
        if issubclass(kind, SharedVariable):
            self.shared.append(value)
        elif _root_of(kind) in ("numbascan", "numba"):
            if isinstance(space_of(value), dict):
                self.spaces.append(Namespace(value, set(LIBRARY_PARTS), is_closed=True))
        else:
            self.objects.append(value)
            self._add(kind)
            foreign = [cls for cls in kind.__mro__ if cls not in _BARE and not self._is_ours(cls)]
            if isinstance(space_of(value), dict):
                self.spaces.append(Namespace(value, self.attributes, bool(foreign)))
            if members := slots_of(kind):
                self.spaces.append(Namespace(value, self.attributes, bool(foreign), members))
            if foreign and hasattr(kind, "__array__") and not issubclass(kind, np.ndarray):
                self.like_arrays.append(value)

    def _look_at_foreign(self, value: Any) -> None:
        """Code of a package. One that is not known may read every attribute of what it is given."""
        self._is_open |= _module_of(value).split(".")[0] not in _QUIET

    def _is_ours(self, value: Any) -> bool:
        return _is_ours(value, self._package)


def _behind(proxy: Any) -> Any:
    """What a weak proxy stands for; None if that is gone."""
    try:
        return proxy.__init__.__self__
    except (AttributeError, ReferenceError):
        return None


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function and of the functions, lambdas and comprehensions written inside it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _codes(const)


class Names(NamedTuple):
    """What a code object names, with the functions written inside it. modules: to import, each with the number of dots."""

    variables: set[str]  # globals
    attributes: set[str]
    modules: set[tuple[str, int]]
    stored: set[str]  # variables and attributes that get other values; "[]" where elements do


@functools.lru_cache(maxsize=4096)
def names_of(code: types.CodeType) -> Names:
    """What a code object names. Nobody changes it."""
    names = Names(set(), set(), set(), set())
    for one in _codes(code):
        instructions = [instruction for instruction in dis.get_instructions(one) if instruction.opname != "EXTENDED_ARG"]
        for k, instruction in enumerate(instructions):
            if instruction.opname == "IMPORT_NAME":  # before it: the number of dots, and what is imported from the module
                names.modules.add((instruction.argval, instructions[k - 2].argval))
            elif instruction.opname.startswith(("STORE_", "DELETE_")):
                if instruction.opname.endswith(("_SUBSCR", "_SLICE")):
                    names.stored.add("[]")
                elif not instruction.opname.endswith("_FAST"):
                    names.stored.add(str(instruction.argval))
            elif "GLOBAL" in instruction.opname or instruction.opname.endswith("_NAME"):
                names.variables.add(instruction.argval)
            elif instruction.opcode in dis.hasname:
                names.attributes.add(instruction.argval)
            elif instruction.opname == "MATCH_CLASS":  # reads attributes that the class, or a constant, names
                names.attributes.add("__dict__")
    return names


def _imported(modules: Iterable[tuple[str, int]], names: dict[str, Any]) -> Iterator[str]:
    """The names of modules that a function imports while it runs, and of the packages they lie in."""
    for module, dots in modules:
        try:
            full = importlib.util.resolve_name("." * dots + module, names.get("__package__") or "") if dots else module
        except ImportError:  # as the function will see, if it comes there
            continue
        yield from (full.rsplit(".", end)[0] for end in range(full.count(".") + 1))


def _module_of(value: Any) -> str:
    module = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return module if isinstance(module, str) else type(value).__module__


def _root_of(kind: type) -> str:
    """The top-level package in which a class was written."""
    return str(kind.__module__).split(".")[0]


def _package_of(fn: Any) -> str:
    """The top-level package in which a function, or what a partial calls, was written."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    return _module_of(fn).split(".")[0]


def _is_ours(value: Any, package: str) -> bool:
    """Whether `value` is code of the user: of the traced function's own package, or of none that is installed."""
    module = _module_of(value)
    code = value.__code__ if isinstance(value, types.FunctionType) else None
    is_run_text = module == "builtins" and code is not None  # what `exec` made in a namespace without a name
    if (module.split(".")[0] in _LIBRARIES or module in sys.builtin_module_names) and not is_run_text:
        return False
    if module.split(".")[0] == package:
        return True
    home = value if isinstance(value, types.ModuleType) else sys.modules.get(module)  # a module need not be known to Python
    file = code.co_filename if code is not None else getattr(home, "__dict__", {}).get("__file__")
    return not is_installed(file)
