"""What a traced function read from outside: closures, globals, attributes, defaults. A later call asks whether all is as it was.

A value read while tracing is frozen in the graph. So numbers are compared by value, everything else by identity, lists and dicts
by what they hold, and arrays also by content: an array may have been read by NumPy while tracing (`W.sum() * y`), which leaves
no mark in the graph.
"""

from __future__ import annotations

import functools
import inspect
import pickle
import random
import sys
import sysconfig
import types
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np

from .entry import is_number

WATCHED = 1 << 24  # bytes of an array that are compared before every call
_MISSING = object()
_PARTS = ("__wrapped__", "fwd", "bwd")  # where what ns.jit, ns.grad, ns.custom_vjp and their like make keeps the user's functions
_LIBRARIES = ("numpy", "scipy", "numba", "numbascan", "builtins", "math", "cmath", "operator", "functools", "itertools")
_FOREIGN = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})


class Guards:
    """The reads of one function, made when it is traced. `hold()` is asked before every call."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.cells: list[tuple[types.CellType, Any]] = []
        self.names: list[tuple[dict[str, Any], str, Any]] = []
        self.attributes: list[tuple[Any, str, Any]] = []
        self.containers: list[tuple[Any, Hashable]] = []
        self.arrays: list[tuple[np.ndarray, bytes]] = []
        self.generators: list[Any] = []
        self.array_names: dict[int, str] = {}
        self._seen: dict[int, Any] = {}
        self._objects: list[Any] = []
        self._code_names = set(_PARTS)
        self._package = _package_of(fn)
        self._visit(fn)
        self._visit_attributes()
        self._seen.clear()  # or what is traced would be held by its own guards

    def hold(self) -> bool:
        """Whether every read would give what it gave."""
        for cell, value in self.cells:
            if (now := _content(cell)) is not value and not _equal(now, value):
                return False
        for names, name, value in self.names:
            if (now := names.get(name, _MISSING)) is not value and not _equal(now, value):
                return False
        for holder, name, value in self.attributes:
            if (now := getattr(holder, name, _MISSING)) is not value and not _equal(now, value):
                return False
        for container, held in self.containers:
            if _inside(container) != held:
                return False
        return not self.arrays or all(_bytes(array) == content for array, content in self.arrays)

    def holds_array(self, array: np.ndarray) -> bool:
        """Whether `array`, or what it is a view of, was found outside the function: later calls must see it change."""
        known = {id(found) for found, _ in self.arrays}
        base: Any = array
        while isinstance(base, np.ndarray):
            if id(base) in known:
                return True
            base = base.base
        return False

    def _is_ours(self, value: Any) -> bool:
        return _is_ours(value, self._package)

    # collecting -----------------------------------------------------------------------------------------------------

    def _visit(self, value: Any, name: str = "") -> None:
        if value is None or is_number(value) or isinstance(value, (str, bytes, type)) or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, np.ndarray):
            self.arrays.append((value, _bytes(value)))
            self.array_names[id(value)] = name
        elif isinstance(value, (list, tuple, set, frozenset, dict)):
            self.containers.append((value, _inside(value)))
            for key, child in value.items() if isinstance(value, dict) else enumerate(value):
                self._visit(child, f"{name}_{key}")
        elif isinstance(value, (np.random.Generator, np.random.RandomState, random.Random)):
            self.generators.append(value)
        elif isinstance(value, functools.partial):
            self._visit_all(value.func, value.args, value.keywords)
        elif isinstance(value, types.MethodType):
            self._visit_all(value.__func__, value.__self__)
        elif isinstance(value, types.FunctionType):
            self._visit_function(value)
        elif self._is_ours(value):
            self._objects.append(value)

    def _visit_all(self, *values: Any) -> None:
        for value in values:
            self._visit(value)

    def _visit_function(self, fn: types.FunctionType) -> None:
        if not self._is_ours(fn):
            return
        self._visit_all(fn.__defaults__, fn.__kwdefaults__, getattr(fn, "__wrapped__", None))
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
            value = _content(cell)
            self.cells.append((cell, value))
            self._visit(value, name)
        for code in _codes(fn.__code__):
            self._code_names.update(code.co_names)
            for name in code.co_names:
                value = fn.__globals__.get(name, _MISSING)
                if value is not _MISSING and not (isinstance(value, types.ModuleType) and not self._is_ours(value)):
                    self.names.append((fn.__globals__, name, value))
                    self._visit(value, name)

    def _visit_attributes(self) -> None:
        """Attributes of objects and modules, as far as their names stand in the code; again, as long as new code comes to light."""
        done: set[tuple[int, str]] = set()
        before: tuple[int, int] | None = None
        while before != (before := (len(done), len(self._seen))):
            for holder in list(self._objects):
                self._visit(inspect.getattr_static(type(holder), "__call__", None))
                for name in self._code_names & (set(dir(type(holder))) | set(getattr(holder, "__dict__", ()))):
                    if (id(holder), name) not in done:
                        done.add((id(holder), name))
                        self._visit_attribute(holder, name)

    def _visit_attribute(self, holder: Any, name: str) -> None:
        value = getattr(holder, name, _MISSING)
        if isinstance(value, types.MethodType):  # a new object at every access
            self._visit(value.__func__)
            return
        self.attributes.append((holder, name, value))
        if value is not _MISSING:
            self._visit(value, name)


def _equal(now: Any, before: Any) -> bool:
    """Whether both are the same number."""
    return is_number(before) and type(now) is type(before) and bool(now == before)


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return _MISSING


def _bytes(array: np.ndarray) -> bytes:
    """The content of an array; of one that is larger than WATCHED a sample, or asking would cost more than the call."""
    if array.nbytes <= WATCHED:
        return array.tobytes()
    return array.flat[:: array.nbytes // WATCHED + 1].tobytes()


def _inside(container: Any) -> Hashable:
    """What a container holds: the numbers themselves, the identity of everything else."""
    if isinstance(container, dict):
        return tuple((key, value if is_number(value) else id(value)) for key, value in container.items())
    return tuple(value if is_number(value) else id(value) for value in container)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function and of the functions, lambdas and comprehensions written inside it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _codes(const)


def _module_of(value: Any) -> str:
    module = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return module if isinstance(module, str) else type(value).__module__


def _package_of(fn: Any) -> str:
    """The top-level package in which a function, or what a partial calls, was written."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    return _module_of(fn).split(".")[0]


def _is_ours(value: Any, package: str) -> bool:
    """Whether `value` is code or data of the user: of the traced function's own package, or of none that is installed."""
    module = _module_of(value)
    code = getattr(value, "__code__", None)
    is_run_text = module == "builtins" and code is not None  # what `exec` made in a namespace without a name
    if module.split(".")[0] in _LIBRARIES and not is_run_text:
        return False
    if module.split(".")[0] == package:
        return True
    file = code.co_filename if code is not None else getattr(sys.modules.get(module), "__file__", None)
    return not (file or "").startswith(_FOREIGN)


def random_state(guards: Guards | None = None) -> bytes:
    """The state of the global random generators, and of those that a function captured."""
    known = [np.random.get_state(legacy=False), random.getstate()]  # noqa: NPY002 - the legacy state is what must not be used
    for generator in () if guards is None else guards.generators:
        known.append(_state_of(generator))
    return pickle.dumps(known)


def _state_of(generator: Any) -> Any:
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    return generator.get_state(legacy=False) if isinstance(generator, np.random.RandomState) else generator.getstate()
