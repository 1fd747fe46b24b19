"""The key of a kernel: a digest of everything that its machine code depends on.

* its text;
* the files of `emit/runtime/` and `emit/inside/` whose functions the text uses, with all that they import, and the file that compiles it;
* the functions beside cards that it calls, directly or through others: their code, and the values that they read;
* Numba with its settings, the shortcuts that are on, llvmlite, LLVM, NumPy, SciPy, Python, the processor, the vector forms of libm.

So a stored kernel is right wherever its key is the same: in the next run, another checkout, the next release. The code that writes the text
is no part of the key: it may change freely while the text stays the same.

Not in the key: settings that a program makes in `numba.config` by hand; none of them changes a number.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType, NoneType
from typing import Any

import numpy as np

from ..ops.elementwise import HELPERS, in_lanes
from .inside.shortcuts import SHORTCUTS, numba_version

PACKAGE = __name__.partition(".")[0]
RUNTIME, COMPILES = f"{__package__}.runtime", f"{__package__}.cache"
VALUES = (f"{PACKAGE}.ops.elementwise", f"{PACKAGE}.ir.loops")  # only what is imported from these counts; other files count whole
OTHERWISE = (f"{__package__}.cache_bound", __name__)  # not in the key: they decide how long code is kept, and under which key
SETTINGS = ".numba_config.yaml"  # Numba reads it in the folder where it is started
STARTED = time.time()
_ALONE = f"process {os.getpid()}, {os.urandom(16).hex()}"
_IMPORT = re.compile(r"^[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)", re.MULTILINE)
_NUMBERS = (bool, int, float, complex, str, bytes, NoneType, Fraction, np.generic, np.dtype)

Import = tuple[str, tuple[str, ...]]
"""A module of numbascan, and the names imported from it."""


def kernel_key(text: str, *more: object) -> str:
    """The key of a generated module. `more`: anything else that its machine code depends on."""
    return digest([*_environment(), *map(str, more), *made_of(text), text])


def made_of(text: str, compiles: str = "") -> list[str]:
    """What a generated module uses of numbascan, as texts in a fixed order: the part of its key that no machine and no version changes.

    compiles: the module that compiles it, else that of the CPU.
    """
    reached = Reached()
    reached.module(compiles or COMPILES)
    reached.imports(_imports(text, ""))
    for name in HELPERS.keys() & {word.removesuffix(in_lanes("")) for word in re.findall(r"\w+", text)}:
        reached.helper(name)
    return reached.told()


def key_of_modules(modules: Iterable[str]) -> str:
    """The key of the compiled functions of modules that many kernels call."""
    reached = Reached()
    for module in [COMPILES, *modules]:
        reached.module(module)
    return digest([*_environment(), *reached.told()])


def modules_of_routines(text: str) -> list[str]:
    """The modules of routines on whole arrays that a text imports."""
    return [f"{RUNTIME}.routines.{name}" for module, names in _imports(text, "") if module == f"{RUNTIME}.routines" for name in names]


def digest(parts: Iterable[str]) -> str:
    """A short digest of texts, with their boundaries."""
    total = hashlib.sha256()
    for part in parts:
        total.update(f"{len(part)}:{part}".encode())
    return total.hexdigest()[:20]


class Reached:
    """The files and values that a kernel reaches, as texts. Values are those of this process, so that computed tables count."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.functions: dict[int, FunctionType] = {}  # by id, and kept alive: a freed object's id is used again
        self._parts: set[str] = set()

    def told(self) -> list[str]:
        """All texts, in a fixed order.

        If a file changes while this process runs, its code here may be the older one: the key is then one of this process only.
        """
        now = time.time()
        is_changed = any(STARTED < _changed(name) <= now for name in self.modules)
        return [*sorted(self._parts), *[_ALONE] * is_changed]

    def module(self, name: str) -> None:
        """Adds a whole file, and what it imports."""
        if name in self.modules or name in OTHERWISE:
            return
        self.modules.add(name)
        content, imports = _file(name)
        self._parts.add(f"{name}: {content}")
        self.imports(imports)

    def imports(self, imports: Iterable[Import]) -> None:
        """Adds what a file imports."""
        for module, names in imports:
            for each in names:
                if _is_module(f"{module}.{each}"):
                    self.module(f"{module}.{each}")
                elif module not in VALUES:
                    self.module(module)
                elif each != "HELPERS":  # those that are called are added one by one
                    self._parts.add(f"{module}.{each} = {self._told(getattr(importlib.import_module(module), each))}")

    def helper(self, name: str) -> None:
        """Adds a function of numbers that generated code calls."""
        helper = HELPERS[name]
        self.module(f"{RUNTIME}.{helper.module}")
        self._parts.add(f"{name} in {helper.module}, {helper.arity}, {helper.cost}: {self._told(helper.function)}")

    def _told(self, value: Any) -> str:
        """A value as a text that is the same in every process."""
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, CodeType):
            constants = self._told(value.co_consts)
            shape = (value.co_argcount, value.co_kwonlyargcount, value.co_flags, value.co_freevars, value.co_cellvars)
            return f"{value.co_code!r} {value.co_names} {value.co_varnames} {shape} {constants}"
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            return f"{value.dtype} {value.shape} {value.tobytes()!r}"
        if isinstance(value, tuple | list):
            return f"{type(value).__name__}({', '.join(map(self._told, value))})"
        if isinstance(value, set | frozenset):
            return f"set({', '.join(sorted(map(self._told, value)))})"
        if isinstance(value, dict):
            return f"dict({', '.join(f'{self._told(key)}: {self._told(each)}' for key, each in value.items())})"
        if isinstance(value, ModuleType):
            return self._named(value.__name__, "")
        if isinstance(value, np.ufunc):
            return f"ufunc {value.__name__}"
        if isinstance(value, type | BuiltinFunctionType):
            return self._named(value.__module__ or "", value.__qualname__)
        if isinstance(value, _NUMBERS):
            return f"{type(value).__name__} {value!r}"
        return self._whatever(value)

    def _named(self, module: str, name: str) -> str:
        """A value told by its name; if it is numbascan's, its file is added too."""
        if module.partition(".")[0] == PACKAGE:
            self.module(module)
        return f"{module}.{name}"

    def _function(self, function: FunctionType) -> str:
        """A function told by its name; its code, and the values that this reads, become parts."""
        name = f"{function.__module__}.{function.__qualname__}"
        if id(function) in self.functions:
            return name
        self.functions[id(function)] = function
        if function.__module__.partition(".")[0] != PACKAGE:  # NumPy's or Python's own: their versions are in the key
            return name
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        own = [self._told(function.__code__), self._told(function.__defaults__), self._told(function.__kwdefaults__), self._told(cells)]
        for each in sorted(_names_in(function.__code__)):
            if each in HELPERS:
                self.helper(each)
            if (
                each in function.__globals__ and getattr(HELPERS.get(each), "function", each) is not None
            ):  # else compiled code stands for it
                own.append(f"{each} = {self._told(function.__globals__[each])}")
        self._parts.add(f"{name}: {' '.join(own)}")
        return name

    def _whatever(self, value: Any) -> str:
        """A value that has no text of its own: every file of cards is added for it."""
        for path in sorted((_root() / "ops").glob("*.py")):
            self.module(f"{PACKAGE}.ops.{path.stem}")
        return f"{type(value).__module__}.{type(value).__qualname__}"


def _names_in(code: CodeType) -> set[str]:
    """The names that code reads, also in functions within it."""
    return {*code.co_names, *(name for each in code.co_consts if isinstance(each, CodeType) for name in _names_in(each))}


@cache
def _root() -> Path:
    return Path(__file__).parents[1]


@cache
def _file(module: str) -> tuple[str, tuple[Import, ...]]:
    """A digest of the file of a module, and what it imports."""
    text = text_of(module)
    return digest([text]), tuple(_imports(text, _package_of(module)))


def text_of(module: str) -> str:
    """The text of a module of numbascan; if it cannot be read, a text that no other process has."""
    try:
        return _file_of(module).read_text(encoding="utf-8")
    except OSError:
        return _ALONE


def _changed(module: str) -> float:
    """When a module's file was last written, or moved into place."""
    try:
        status = _file_of(module).stat()
    except OSError:  # gone
        return time.time()
    return max(status.st_mtime, status.st_ctime)


@cache
def _file_of(module: str) -> Path:
    path = _root().joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def _is_module(name: str) -> bool:
    return _file_of(name).is_file()


def _package_of(module: str) -> str:
    return module if _file_of(module).name == "__init__.py" else module.rpartition(".")[0]


def _imports(text: str, package: str) -> Iterator[Import]:
    """The modules of numbascan that a text imports from, with the names; also imports within functions."""
    for place, names in _IMPORT.findall(text):
        module = importlib.util.resolve_name(place, package) if place.startswith(".") else place
        if module.partition(".")[0] == PACKAGE:
            words = re.sub(r"#[^\n]*", "", names).strip("()").split(",")
            yield module, tuple(word.split()[0] for word in words if word.strip())


# what compiles ---------------------------------------------------------------------------------------------------------


def _environment() -> list[str]:
    """Versions, the processor, and the settings as they were first (helpers are compiled once) and as they are now."""
    return [*_machine(), *_first_settings(), *_settings()]


def _settings() -> tuple[str, ...]:
    """Numba's settings, and the shortcuts through its internals that are taken."""
    told = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith("NUMBA_"))
    with suppress(OSError):
        told.append(Path(SETTINGS).read_text(encoding="utf-8"))
    return (*told, *(name for name, shortcut in SHORTCUTS.items() if shortcut.is_chosen()))


@cache
def _first_settings() -> tuple[str, ...]:
    return _settings()


@cache
def _machine() -> tuple[str, ...]:
    import llvmlite
    from llvmlite import binding

    from .inside import vector_forms

    versions = (sys.version, np.__version__, scipy_version(), llvmlite.__version__, numba_version(), str(binding.llvm_version_info))
    processor = (binding.get_process_triple(), binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten())
    return (*versions, *processor, *sorted(vector_forms.present()))


@cache
def scipy_version() -> str:
    """The version of SciPy, whose C functions kernels call, found without importing it."""
    spec = importlib.util.find_spec("scipy")
    try:
        match = re.search(r'^version = "([^"]+)"', Path(str(spec and spec.origin)).with_name("version.py").read_text(), re.MULTILINE)
    except OSError:
        match = None
    if match is not None:
        return match[1]
    from importlib.metadata import version  # slow to import

    return version("scipy")
