"""Generated modules on disk: real files, their machine code beside them.

The folder is private to the user (it holds code): made with mode 0700, its owner checked. A file is written under another name and
moved into place, so that several processes may write at once; a damaged entry is made again. Its name holds the key of the kernel
(`kernel_key.py`), so that one folder may serve several checkouts and releases.

Machine code is read without Numba where that is possible (`object_code.py`); else the module is imported as any other, and Numba, which
has a cache of its own there, compiles it or finds it.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import stat
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from ..errors import CompilationError
from . import cache_bound
from .inside import object_code
from .inside.shortcuts import ENTRY_POINT, numba_version, public_ways
from .kernel_key import kernel_key, key_of_modules, modules_of_routines
from .runtime.external_names import OF_THIS_PROCESS

GENERATED = "numbascan_generated"  # the package of generated modules
MADE_BETWEEN_COLLECTIONS = 1_000_000  # objects; about 100 MB

_compiling = threading.RLock()

_loaded: dict[str, Callable[..., Any]] = {}
_kept_routines: dict[str, Path] = {}  # where the machine code of a module's routines is kept
_modules: dict[str, ModuleType] = {}


def cache_folder() -> Path:
    """The folder of generated modules: $NUMBASCAN_CACHE_DIR, else numbascan/ in the user's cache folder; made if missing.

    A folder that belongs to somebody else, or that others may write to, is refused: a private temporary one takes its place.
    """
    chosen = os.environ.get("NUMBASCAN_CACHE_DIR")
    return _private_folder(Path(chosen) if chosen else _user_cache() / "numbascan")


@cache
def _private_folder(folder: Path) -> Path:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
        if hasattr(os, "getuid") and status.st_uid != os.getuid():
            raise PermissionError(f"{folder} belongs to another user")
        if os.name == "posix" and stat.S_IMODE(status.st_mode) & 0o077:
            folder.chmod(0o700)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return Path(tempfile.mkdtemp(prefix="numbascan-"))  # mkdtemp: mode 0700, gone with the machine's temporary files


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home()))
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def entries() -> list[Path]:
    """The generated modules in the cache folder, those used last first."""
    return sorted(cache_folder().glob("*.py"), key=cache_bound.last_use, reverse=True)


def clear() -> int:
    """Removes every generated module and its machine code; how many modules there were."""
    with _compiling:
        modules = entries()
        for path in {*modules, *cache_bound.entries(cache_folder())}:
            cache_bound.remove(path)
        _loaded.clear()
        _modules.clear()
    return len(modules)


def jit_is_off() -> bool:
    """True if Numba is told to compile nothing, by NUMBA_DISABLE_JIT=1 or in `numba.config`."""
    config = sys.modules.get("numba.core.config")
    setting = os.environ.get("NUMBA_DISABLE_JIT", "0")
    return bool(getattr(config, "DISABLE_JIT", setting.isdigit() and int(setting)))


def load(text: str, name: str) -> Callable[..., Any]:
    """The function `name` of a generated module, compiled; from memory or disk where the same text was compiled before.

    It takes its arguments as they were declared: other dtypes, ranks or layouts than those are not found out.
    """
    digest = kernel_key(text)
    with _compiling:
        if digest not in _loaded:
            file = f"{name}_{digest}.py"
            try:
                _loaded[digest] = _stored_or_made(text, name, cache_folder() / file)
            except OSError:  # the folder is gone, or may not be written any more: looked at again
                _private_folder.cache_clear()
                _loaded[digest] = _stored_or_made(text, name, cache_folder() / file)
            if OF_THIS_PROCESS in text or kernel_key(text) != digest:  # or a file that it is made of has changed meanwhile
                cache_bound.remove(cache_folder() / file)
        return _loaded[digest]


def load_module(text: str, name: str) -> Any:
    """A module that stands alone, from memory where the same text was loaded before; Numba compiles what is called, and caches it."""
    digest = kernel_key(text)
    with _compiling:
        if digest not in _modules:
            object_code.import_numba()
            path = cache_folder() / f"{name}_{digest}.py"
            _write(path, text.encode())
            cache_bound.note_use(path)
            _imported(path, name)
            _modules[digest] = sys.modules[f"{GENERATED}.{path.stem}"]
            cache_bound.trim(path.parent, path)
        return _modules[digest]


def load_kernels(text: str, name: str) -> Callable[..., Any]:
    """The function `name` of a generated module with CUDA kernels; they are compiled, or found on the disk, when they are launched."""
    from .inside import cuda_package, simulator

    cuda_package.cuda()
    digest = kernel_key(text, cuda_package.is_simulated(), cuda_package.version())
    with _compiling:
        if digest not in _loaded:
            path = cache_folder() / f"{name}_{digest}.py"
            _write(path, text.encode())
            cache_bound.note_use(path)
            code = simulator.compiled(text, str(path)) if cuda_package.is_simulated() else None
            _loaded[digest] = _imported(path, name, code)
            if OF_THIS_PROCESS in text:
                cache_bound.remove(path)
            cache_bound.trim(path.parent, path)
        return _loaded[digest]


def _stored_or_made(text: str, name: str, path: Path) -> Callable[..., Any]:
    _write(path, text.encode())
    cache_bound.note_use(path)
    try:
        known = object_code.load(path)
        if known is not None:
            return known
        function = _made(path, name)
        cache_bound.trim(path.parent, path)
        return function
    except Exception:  # whatever a damaged or removed entry breaks: made again once
        _make_anew(path, text)
    try:
        return _made(path, name)
    except Exception as error:  # a shortcut that does not fit this Numba; a real fault comes again
        _make_anew(path, text)
        try:
            with public_ways():
                function = _made(path, name)
        except (OSError, MemoryError, ImportError):
            raise
        except Exception as fault:
            raise not_compiled(name, fault, f"the code is in {path}") from fault
        warnings.warn(f"numbascan compiles without its shortcuts: they fail under Numba {numba_version()}: {error!r}", RuntimeWarning, 2)
        return function


def not_compiled(name: str, fault: Exception, where: str) -> CompilationError:
    """The error for code that Numba refuses. `where`: what to look at, for its message."""
    reason = next(iter(str(fault).strip().splitlines()), "")
    return CompilationError(
        f"{name}: Numba {numba_version()} does not compile what numbascan made of it ({type(fault).__name__}: {reason}); the fault is "
        f"numbascan's: mode='python' runs the same function by NumPy, and {where}, for a report"
    )


def is_of_numba(error: Exception) -> bool:
    """True for an error of one of Numba's own classes."""
    return any(kind.__module__.partition(".")[0] in ("numba", "numba_cuda", "llvmlite") for kind in type(error).__mro__)


def _make_anew(path: Path, text: str) -> None:
    _remove_compiled(path)
    for folder in _kept_routines.values():
        cache_bound.remove(folder)
    _write(path, text.encode())


def _made(path: Path, name: str) -> Callable[..., Any]:
    """The function as Numba compiles it, its machine code stored."""
    object_code.import_numba()
    from .inside.compiling import short_ways

    _keep_routines(path)
    with _few_collections(), _deep_recursion(), short_ways():
        function = _compiled(path, name)
    entry = object_code.entry_of(function)
    if entry is not None:
        _write(object_code.file_of(path), object_code.packed(entry))
    return _entry_point(function)


def _compiled(path: Path, name: str) -> Any:
    """The function, lowered from its text; by Numba's own way where that is not possible."""
    from .inside.lowered import module

    code = None if jit_is_off() else module.module_code(path.read_text(encoding="utf-8"), str(path))
    try:
        return _imported(path, name, code)
    except Exception as error:
        if code is None or not module.is_unknown(error):
            raise
    return _imported(path, name)


def _keep_routines(path: Path) -> None:
    """Lets the routines that a module calls look for their machine code in the cache, and leave it there.

    Numba takes it for current while the file of a routine is: what that calls, and how it is compiled, stands in the key of the folder.
    """
    called = modules_of_routines(path.read_text(encoding="utf-8"))
    if not called:
        return
    from .inside.compiling import ROUTINES, keep_in

    for module in called:
        importlib.import_module(module)
    for module in {routine.__module__ for routine in ROUTINES}:
        folder = path.parent / cache_bound.ROUTINES / key_of_modules([module])
        if _kept_routines.get(module) != folder:
            _kept_routines[module] = folder
            keep_in(folder, [routine for routine in ROUTINES if routine.__module__ == module])
        cache_bound.note_use(folder)


def _imported(path: Path, name: str, code: CodeType | None = None) -> Any:
    """The function `name` of the generated module `path`, as Numba's decorators left it. `code`: to run instead of its text."""
    spec = importlib.util.spec_from_file_location(f"{GENERATED}.{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Numba looks the function's module up when it saves machine code
    if code is None:
        spec.loader.exec_module(module)
    else:
        exec(code, vars(module))
    return getattr(module, name)


def _entry_point(dispatcher: Any) -> Callable[..., Any]:
    """The compiled function itself: it takes arguments of the very types that it was compiled for, and does not look at them twice."""
    compiled = getattr(dispatcher, "overloads", {})  # NUMBA_DISABLE_JIT=1 leaves a function of Python
    return next(iter(compiled.values())).entry_point if compiled and ENTRY_POINT.is_taken() else dispatcher


@contextmanager
def _few_collections() -> Iterator[None]:
    """Inside, garbage is collected seldom: the collector would look again and again through all that Numba makes, 10 % of the time."""
    before = gc.get_threshold()
    try:
        if before[0]:  # 0: the user has switched it off
            gc.set_threshold(max(before[0], MADE_BETWEEN_COLLECTIONS), *before[1:])
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def _deep_recursion() -> Iterator[None]:
    """Inside, Python may recurse as deep as Numba asks: it walks the blocks of a function by recursion, and large ones have thousands."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 100_000))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _write(path: Path, content: bytes) -> None:
    """Writes the file unless it stands there already: a new time stamp would void the machine code beside it."""
    try:
        if path.read_bytes() == content:
            return
    except OSError:
        pass
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    os.replace(temporary, path)


def _remove_compiled(path: Path) -> None:
    for file in cache_bound.files_of(path):
        if file != path:
            file.unlink(missing_ok=True)
