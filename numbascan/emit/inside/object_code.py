"""Machine code of kernels on disk, loaded without Numba.

What Numba makes of a kernel is a function of Python's C interface. It calls Python, libm, and the C part of Numba (arrays in and out,
memory, errors), whose extension modules load without the rest of Numba. LLVM links these: 5 ms, where Numba takes 0.4 s to start and to
load its own cache. An error that a kernel raises is put together by Numba, which is imported then.

Not handled, and left to Numba:

- object files other than ELF;
- symbols that are not found: all are looked up first, since LLVM ends the process if one is missing.
"""

from __future__ import annotations

import builtins
import ctypes
import hashlib
import importlib.machinery
import importlib.util
import pickle
import struct
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from . import kept_memory, looks, numpy_fft, numpy_sorts
from .shortcuts import OBJECT_CODE, OBJECT_CODE_LOADED, numba_folder

NDARRAY = "numbascan_ndarray"  # the symbol under which kernels find the class of NumPy's arrays

_ELF_64_LITTLE = b"\x7fELF\x02\x01"
_SYMBOL_TABLE = 2  # the type of an ELF section
_CHECKSUM = hashlib.sha256().digest_size
_VARARGS_AND_KEYWORDS = 3  # METH_VARARGS | METH_KEYWORDS
_linked: list[Any] = []  # objects that machine code needs as long as the process lives


class Entry(NamedTuple):
    """A compiled kernel: its object code, the symbol to call, and by symbol the objects that code looks up in environments."""

    code: bytes
    wrapper: str
    environments: dict[str, list[Any]]


class Damaged(Exception):
    """The file is not as it was written."""


def import_numba() -> None:
    """Imports Numba as a whole. To be called before a part of it is imported.

    Another thread may import Numba at the same time: it would wait for the part, and the part for it. Python ends such a deadlock by going
    on with unfinished modules.
    """
    importlib.import_module("numba")


# the file --------------------------------------------------------------------------------------------------------------


def file_of(path: Path) -> Path:
    """The file of machine code beside the generated module `path`."""
    return path.with_suffix(".code")


def entry_of(dispatcher: Any) -> Entry | None:
    """The entry for a function that Numba has just compiled; None if it cannot be loaded without Numba."""
    if not hasattr(dispatcher, "overloads") or not OBJECT_CODE.is_taken():  # NUMBA_DISABLE_JIT=1 leaves a function of Python
        return None
    (compiled,) = dispatcher.overloads.values()
    try:
        library = compiled.library
        environments = [compiled.environment, *compiled._find_referenced_environments()]
        constants = {environment.env_name: list(environment.consts) for environment in environments}
        known = all(isinstance(constant, np.dtype) for objects in constants.values() for constant in objects)
        code = library._compiled_object  # None: Numba took it from its own cache
        if code is None or not known or compiled.reload_init or library.has_dynamic_globals or not code.startswith(_ELF_64_LITTLE):
            return None
        return Entry(bytes(code), compiled.fndesc.llvm_cpython_wrapper_name, constants)
    except AttributeError:  # this Numba is built otherwise
        return None


def packed(entry: Entry) -> bytes:
    """The entry as the content of a file, its checksum first."""
    content = pickle.dumps(tuple(entry))
    return hashlib.sha256(content).digest() + content


def _unpacked(data: bytes) -> Entry:
    checksum, content = data[:_CHECKSUM], data[_CHECKSUM:]
    if hashlib.sha256(content).digest() != checksum:
        raise Damaged
    return Entry(*pickle.loads(content))


# loading ---------------------------------------------------------------------------------------------------------------


def load(path: Path) -> Callable[..., Any] | None:
    """The kernel whose machine code lies beside the module `path`; None where there is none, or Numba must load it. May raise Damaged."""
    try:
        data = file_of(path).read_bytes()
    except OSError:
        return None
    if not OBJECT_CODE.is_chosen() or not OBJECT_CODE_LOADED.is_taken(_extension):
        return None
    entry = _unpacked(data)
    addresses = {name: _address(name) for name in set(undefined_symbols(entry.code))}
    return _linked_function(entry, path.stem, addresses) if all(addresses.values()) else None


def _linked_function(entry: Entry, name: str, addresses: dict[str, int | None]) -> Callable[..., Any]:
    from llvmlite import binding

    for symbol, address in addresses.items():
        binding.add_symbol(symbol, address)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _target().create_target_machine())
    engine.add_object_file(binding.ObjectFileRef.from_data(entry.code))
    engine.finalize_object()
    environments = []
    for symbol, constants in entry.environments.items():
        place = engine.get_global_value_address(symbol)
        if place:  # else the optimiser found that nothing reads it
            environment = OBJECT_CODE_LOADED.Environment({"__name__": name})
            environment.consts.extend(constants)
            ctypes.c_void_p.from_address(place).value = id(environment)
            environments.append(environment)
    method = _Method(name.encode(), engine.get_function_address(entry.wrapper), _VARARGS_AND_KEYWORDS, None)
    function = _new_function(ctypes.addressof(method), None, None)
    _linked.append((engine, environments, method, function))
    return function


class _Method(ctypes.Structure):
    """PyMethodDef of Python's C interface."""

    _fields_ = (("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


_Unpickle = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
_new_function = ctypes.pythonapi.PyCFunction_NewEx
_new_function.restype = ctypes.py_object
_new_function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]


@cache
def _target() -> Any:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_triple(binding.get_process_triple())


def undefined_symbols(code: bytes) -> Iterator[str]:
    """The undefined symbols of an ELF object file."""
    (start,) = struct.unpack_from("<Q", code, 40)
    size, count = struct.unpack_from("<HH", code, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, start + k * size) for k in range(count)]
    for _, kind, _, _, offset, length, link, _, _, entry_size in sections:
        if kind == _SYMBOL_TABLE:
            names = sections[link][4]
            for place in range(offset, offset + length, entry_size):
                name, _, _, section = struct.unpack_from("<IBBH", code, place)
                if section == 0 and name:
                    yield code[names + name : code.index(0, names + name)].decode()


# symbols ---------------------------------------------------------------------------------------------------------------


def _address(symbol: str) -> int | None:
    """Where a symbol is: in Numba's C code, our own or NumPy's, among Python's exceptions, where LLVM knows it to be, or in the process."""
    address = _numba_symbols().get(symbol)
    if address is not None:
        return address
    if symbol.startswith("numbascan_"):
        owners = (owner for owner in (numpy_sorts, numpy_fft, kept_memory) if symbol.startswith(owner.BEGINNING))
        return next(owners, looks).addresses().get(symbol)
    if symbol.startswith("PyExc_"):  # Numba means the class, where C has a pointer to it
        return id(getattr(builtins, symbol.removeprefix("PyExc_")))
    from llvmlite import binding

    try:
        return binding.address_of_symbol(symbol) or ctypes.cast(_process()[symbol], ctypes.c_void_p).value
    except AttributeError:
        return None


@cache
def _numba_symbols() -> dict[str, int]:
    """The C functions of Numba, under the names by which compiled code calls them."""
    helpers, functions, memory = map(_extension, ("numba._helperlib", "numba._dynfunc", "numba.core.runtime._nrt_python"))
    memory.memsys_use_cpython_allocator()  # as Numba does when it is imported
    addresses = {f"numba_{name}": address for module in (helpers, functions) for name, address in module.c_helpers.items()}
    addresses |= {name if name.startswith("_") else f"NRT_{name}": address for name, address in memory.c_helpers.items()}
    addresses["numba_unpickle"] = _after_import(addresses["numba_unpickle"])
    return {**addresses, "_Py_NoneStruct": id(None), NDARRAY: id(np.ndarray)}


def _after_import(unpickle: int) -> int | None:
    """Numba's C function that puts errors together, with an import of Numba before it: it imports a part of Numba.

    Ctrl-C does not wait for that import: its error is read as any pickle.
    """
    function = _Unpickle(unpickle)

    def unpickled(data: int, size: int, digest: int) -> Any:
        if looks.is_stopped():
            return pickle.loads(ctypes.string_at(data, size))
        import_numba()
        return function(data, size, digest)

    callback = _Unpickle(unpickled)
    _linked.append(callback)
    return ctypes.cast(callback, ctypes.c_void_p).value


@cache
def _process() -> Any:
    return ctypes.CDLL(None)


def _extension(name: str) -> ModuleType:
    """An extension module of Numba, without the package around it. A later `import numba` gets the same module from Python."""
    if not name.startswith("numba."):
        return importlib.import_module(name)
    with _module_lock(name):
        if name in sys.modules:
            return sys.modules[name]
        folder = numba_folder().joinpath(*name.split(".")[1:-1])
        loaders = (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES)
        spec = importlib.machinery.FileFinder(str(folder), loaders).find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules.pop(name, None)  # Python has put it there, though the package around it is not imported
        return module


def _module_lock(name: str) -> Any:
    """The lock that Python holds while it imports `name`: another thread may import Numba just now, and must not lose its modules."""
    bootstrap: Any = importlib._bootstrap
    return bootstrap._ModuleLockManager(name)
