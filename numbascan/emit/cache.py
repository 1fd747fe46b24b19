"""Generated modules on disk: real files, their machine code beside them.

The folder is private to the user (it holds code): made with mode 0700, its owner checked. A file is written under another name and
moved into place, so that several processes may write at once; a damaged entry is made again.

Machine code is read without Numba where that is possible (`object_code.py`); else the module is imported as any other, and Numba, which
has a cache of its own there, compiles it or finds it.
"""

from __future__ import annotations

import gc
import hashlib
import os
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from .inside import object_code

MADE_BETWEEN_COLLECTIONS = 1_000_000  # objects; about 100 MB

_compiling = threading.RLock()

_loaded: dict[str, Callable[..., Any]] = {}


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
    """The generated modules in the cache folder, newest first."""
    return sorted(cache_folder().glob("*.py"), key=lambda path: path.stat().st_mtime, reverse=True)


def clear() -> int:
    """Removes every generated module and its machine code; how many modules there were."""
    with _compiling:
        found = entries()
        for path in found:
            _remove_compiled(path)
            path.unlink(missing_ok=True)
        _loaded.clear()
    return len(found)


def load(text: str, name: str) -> Callable[..., Any]:
    """The function `name` of a generated module, compiled; from memory or disk where the same text was compiled before.

    It takes its arguments as they were declared: other dtypes, ranks or layouts than those are not found out.
    """
    digest = hashlib.sha256(f"{_environment()}\n{text}".encode()).hexdigest()[:20]
    with _compiling:
        if digest not in _loaded:
            _loaded[digest] = _stored_or_made(text, name, cache_folder() / f"{name}_{digest}.py")
        return _loaded[digest]


def _stored_or_made(text: str, name: str, path: Path) -> Callable[..., Any]:
    _write(path, text.encode())
    try:
        return object_code.load(path) or _made(path, name)
    except Exception:  # whatever a damaged or removed entry breaks: made again once; a real fault comes again
        _remove_compiled(path)
        _write(path, text.encode())
        return _made(path, name)


def _made(path: Path, name: str) -> Callable[..., Any]:
    """The function as Numba compiles it, its machine code stored."""
    with _few_collections():
        object_code.import_numba()
        from . import build

        function = build.imported(path, name)
    entry = object_code.entry_of(function)
    if entry is not None:
        _write(object_code.file_of(path), object_code.packed(entry))
    return build.entry_point(function)


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
    object_code.file_of(path).unlink(missing_ok=True)
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}*"):
        compiled.unlink(missing_ok=True)


@cache
def _environment() -> str:
    """Changes when what compiles does: Numba and its settings, the processor, or a helper that generated code calls."""
    here = Path(__file__).parent
    methods = [here.parent / "ops" / f"{name}.py" for name in ("draw_methods", "rejection")]  # the text of draws is compiled from there
    files = [*sorted(here.rglob("*.py")), *methods]
    helpers = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    settings = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith("NUMBA_"))
    return "\n".join([helpers, *settings, *object_code.platform()])
