"""Frozen copies of functions that users compiled with Numba: nobody else changes what a copy reads.

Numba reads globals when it compiles, whenever that is. A copy reads values of its own instead: numbers and arrays as they were when it
was made, copies of the Numba functions that it calls, modules with the attributes that it names. So `told`, a text of all that it reads,
is right whenever it is compiled. Importing this imports Numba.

The text tells the code, and each value that it reads if that is one of these:

- a number, text, a NumPy dtype, scalar or array, a tuple of these;
- a type or a function of NumPy, Numba, `math`, `cmath`, `operator` or Python itself;
- another function of Numba, or a module.

Any other value (a class, a C function, a function of Python that an extension of Numba replaces) may hold what no text tells. Then the
function is `alone`, and its machine code is for this process only.
"""

from __future__ import annotations

import builtins
import dis
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType, NoneType
from typing import Any

import numba
import numpy as np

LIBRARIES = ("builtins", "cmath", "math", "numba", "numpy", "operator")
"""Modules whose functions and types are told by name alone: their versions stand in every key."""

_NUMBERS = (bool, int, float, complex, str, bytes, NoneType, type(...))
_OF_NUMBA: Any = numba.njit(lambda: None)  # a sample: it has the class and the pipeline of every such function
_THIS_PROCESS = f"{os.getpid()} {os.urandom(16).hex()}"


class Draws(TypeError):
    """The function draws from a global generator."""


def is_of_numba(function: Any) -> bool:
    """True for what `numba.njit` makes."""
    return isinstance(function, type(_OF_NUMBA))


@dataclass(eq=False)
class Frozen:
    """A function and all that it reads. `reads` has globals, `cells` what closures hold; Numba functions among them are Frozen, too.

    options: those given to Numba. signatures: the types given to Numba, if any. is_alone: True if it may read what no text tells.
    is_recursive: True if it, or one that it calls, calls itself. n_bytes: the size of all arrays that they read.
    """

    python: FunctionType
    options: dict[str, Any]
    signatures: list[Any]
    reads: dict[str, Any] = field(default_factory=dict)
    cells: list[Any] = field(default_factory=list)
    defaults: tuple[Any, ...] | None = None
    told: str = ""
    is_alone: bool = False
    is_recursive: bool = False
    n_bytes: int = 0

    def parts(self) -> list[Frozen]:
        """It, and the Numba functions that it calls."""
        parts: list[Frozen] = []
        self.built(lambda _, of: parts.append(of))
        return parts

    @property
    def handles_errors(self) -> bool:
        """True if its own code raises, asserts or tries."""
        codes = list(_codes(self.python.__code__))
        return any(code.co_exceptiontable or any(one.opname == "RAISE_VARARGS" for one in dis.get_instructions(code)) for code in codes)

    def built(
        self,
        make: Callable[[FunctionType, Frozen], Any],
        known: dict[int, Any] | None = None,
        instead: Callable[[Any], Any] = lambda value: value,
    ) -> Any:
        """The result of `make` for a copy of the function, in which the Numba functions that it reads are results of `make`, too.

        instead: gives the replacement of a value that it reads.
        """
        known = {} if known is None else known
        if id(self) in known:
            return known[id(self)]
        python = self.python
        names: dict[str, Any] = {"__name__": python.__module__, "__builtins__": builtins}
        cells = tuple(CellType() for _ in self.cells)
        copy = FunctionType(python.__code__, names, python.__name__, None, cells or None)
        copy.__module__, copy.__qualname__ = python.__module__, python.__qualname__
        known[id(self)] = function = make(copy, self)  # before what it reads: that may be itself

        def put(value: Any) -> Any:
            if isinstance(value, Frozen):
                return value.built(make, known, instead)
            if isinstance(value, _Attributes):
                module = ModuleType(value.name)
                vars(module).update({name: put(one) for name, one in value.named.items()})
                return module
            return tuple(map(put, value)) if type(value) is tuple else instead(value)

        names.update({name: put(value) for name, value in self.reads.items()})
        for cell, value in zip(cells, self.cells, strict=True):
            cell.cell_contents = put(value)
        copy.__defaults__ = put(self.defaults)
        return function


@dataclass
class _Attributes:
    """A module of the user's, and those of its attributes that code names."""

    name: str
    named: dict[str, Any]


def frozen(function: Any) -> Frozen:
    """A function of Numba's as it reads now. Draws where it draws from a generator that Numba keeps."""
    freezing = _Freezing()
    copy = freezing.function(function)
    copy.told = "\n".join([*freezing.told, *_extensions()])
    copy.is_alone, copy.is_recursive, copy.n_bytes = freezing.is_alone, freezing.is_recursive, freezing.n_bytes
    return copy


@cache
def _extensions() -> tuple[str, ...]:
    """The installed packages that extend Numba, with their versions."""
    return tuple(sorted(f"{one.value} {one.dist.version if one.dist else ''}" for one in entry_points(group="numba_extensions")))


class _Freezing:
    """One walk through all that a function reads. told: a line for each thing that counts."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.is_alone, self.is_recursive, self.n_bytes = False, False, 0
        self._open: set[int] = set()  # functions that are being walked through
        self._known: dict[int, tuple[Frozen, int]] = {}

    def function(self, function: Any) -> Frozen:
        if id(function) in self._known:
            copy, number = self._known[id(function)]
            self.is_recursive |= id(function) in self._open
            self.told.append(f"function {number}")
            return copy
        python = function.py_func
        options = {name: value for name, value in function.targetoptions.items() if name != "parallel"}
        signatures = [] if function._can_compile else list(function.nopython_signatures)
        copy = Frozen(python, {**options, "locals": dict(function.locals)}, signatures)
        self._known[id(function)] = copy, len(self._known)
        self._open.add(id(function))
        if function._compiler.pipeline_class is not _OF_NUMBA._compiler.pipeline_class:
            self._alone(function._compiler.pipeline_class)
            copy.options["pipeline_class"] = function._compiler.pipeline_class
        code = python.__code__
        self.told.append(f"def {python.__module__}.{python.__qualname__} {copy.options} {signatures} {code.co_filename}")
        self.told.append(_told_code(code))
        names, attributes = _names_in(code)
        for name in sorted(names & python.__globals__.keys()):
            self.told.append(name)
            copy.reads[name] = self.value(python.__globals__[name], attributes)
        copy.cells = [self._cell(cell, attributes) for cell in python.__closure__ or ()]
        copy.defaults = self.value(python.__defaults__, attributes)
        self._open.remove(id(function))
        return copy

    def _cell(self, cell: CellType, attributes: frozenset[str]) -> Any:
        try:
            return self.value(cell.cell_contents, attributes)
        except ValueError:  # nothing is in it yet
            return self._alone(None)

    def value(self, value: Any, attributes: frozenset[str]) -> Any:
        """A value that code reads, copied if it may change. Adds it to `told`, or marks the function as alone."""
        if is_of_numba(value):
            return self.function(value)
        if isinstance(value, ModuleType):
            return self._module(value, attributes)
        if type(value) is tuple:
            self.told.append(f"tuple of {len(value)}")
            return tuple([self.value(one, attributes) for one in value])
        if type(value) is np.ndarray and not value.dtype.hasobject:
            copy = value.copy(order="K")
            self.n_bytes += copy.nbytes
            self.told.append(f"array {value.dtype} {value.shape} {value.strides} {value.tobytes().hex()}")
            return copy
        if type(value) in _NUMBERS or isinstance(value, (np.generic, np.dtype)):
            self.told.append(f"{type(value)} {value!r} {value.dtype if isinstance(value, np.generic) else ''}")
            return value
        if isinstance(value, numba.types.Type):
            self.told.append(f"type {value!r}")
            return value
        _refuse_draws(value)
        if isinstance(value, np.ufunc):
            self.told.append(f"ufunc {value.__name__}")
            return value
        module = getattr(value, "__module__", None) or ""
        if isinstance(value, (type, FunctionType, BuiltinFunctionType)) and module.partition(".")[0] in LIBRARIES:
            self.told.append(f"{module}.{value.__qualname__}")
            return value
        return self._alone(value)

    def _module(self, module: ModuleType, attributes: frozenset[str]) -> Any:
        self.told.append(f"module {module.__name__}")
        if module.__name__.partition(".")[0] in LIBRARIES:
            if module is np.random or (module is np and "random" in attributes):
                raise Draws("np.random")
            return module
        if module is random:
            raise Draws("random")
        named: dict[str, Any] = {}
        for name in sorted(attributes & vars(module).keys()):
            self.told.append(name)
            named[name] = self.value(vars(module)[name], attributes)
        return _Attributes(module.__name__, named)

    def _alone(self, value: Any) -> Any:
        self.is_alone = True
        self.told.append(f"alone {_THIS_PROCESS} {id(value)}")
        return value


def _refuse_draws(value: Any) -> None:
    owner = getattr(value, "__self__", None)
    if isinstance(owner, (np.random.RandomState, np.random.Generator, random.Random)):
        raise Draws(f"{type(owner).__name__}.{value.__name__}")
    if isinstance(value, (np.random.RandomState, np.random.Generator, random.Random)):
        raise Draws(type(value).__name__)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _codes(const)


@cache
def _names_in(code: CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """The globals that code reads, and the attributes."""
    instructions = [one for each in _codes(code) for one in dis.get_instructions(each) if one.opcode in dis.hasname]
    are_global = {one.argval for one in instructions if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return frozenset(are_global), frozenset(one.argval for one in instructions if one.opname not in ("LOAD_GLOBAL", "LOAD_NAME"))


def _told_code(code: CodeType) -> str:
    """Code as a text, with its line numbers, which errors show."""
    constants = [_told_code(one) if isinstance(one, CodeType) else f"{type(one)} {_in_order(one)!r}" for one in code.co_consts]
    shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags, code.co_freevars, code.co_cellvars)
    lines = code.co_firstlineno, code.co_linetable, code.co_exceptiontable
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {shape} {lines} {constants}"


def _in_order(constant: Any) -> Any:
    """A constant whose repr is the same in every process: the order of texts in a set is not."""
    return sorted(constant, key=repr) if isinstance(constant, frozenset) else constant
