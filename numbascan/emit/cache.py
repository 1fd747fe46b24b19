"""Generated modules on disk: real files, imported as usual, their machine code cached beside them by Numba.

The folder is private to the user (it holds code): made with mode 0700, its owner checked. A file is written under another name and
moved into place, so that several processes may write at once; a damaged entry is made again.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
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

import numba
from numba.core.base import BaseContext

CACHE_LINE = 64  # bytes
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
    count = len(entries())
    for path in entries():
        _remove_compiled(path)
        path.unlink(missing_ok=True)
    _loaded.clear()
    return count


def load(text: str, name: str) -> Callable[..., Any]:
    """The function `name` of a generated module, compiled; from memory or disk where the same text was compiled before."""
    digest = hashlib.sha256(f"{_helpers_digest()}\n{numba.__version__}\n{text}".encode()).hexdigest()[:20]
    with _compiling:
        if digest not in _loaded:
            _loaded[digest] = _made(text, name, cache_folder() / f"{name}_{digest}.py")
        return _loaded[digest]


def _made(text: str, name: str, path: Path) -> Callable[..., Any]:
    _write(path, text)
    try:
        return _imported(path, name)
    except Exception:  # whatever a damaged entry breaks: made again once; a real fault comes again
        _remove_compiled(path)
        return _imported(path, name)


def _imported(path: Path, name: str) -> Callable[..., Any]:
    spec = importlib.util.spec_from_file_location(f"numbascan_generated.{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Numba looks the function's module up when it saves machine code
    _load_numba_arrays()
    with _rows_on_cache_lines():
        spec.loader.exec_module(module)
    function: Callable[..., Any] = getattr(module, name)
    return function


@cache
def _load_numba_arrays() -> None:
    """Loads Numba's array functions without SciPy behind them: they ask for it only to know that BLAS is there, and it is (a dependency).

    Saves about 0.15 s of the first call of a process. Code that calls BLAS still imports it, where it is called.
    """
    from numba.np import linalg

    before = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = before


@contextmanager
def _rows_on_cache_lines() -> Iterator[None]:
    """Code compiled inside takes its arrays at multiples of 64 bytes; Numba's own 32 split every second AVX-512 store in two.

    Measured on a row of 1,000 numbers updated in place: 97 ns a pass aligned, 160 ns where the heap happened to give 32 bytes.
    """
    before = BaseContext.get_preferred_array_alignment
    setattr(BaseContext, "get_preferred_array_alignment", lambda self, dtype: CACHE_LINE)  # noqa: B010 - mypy: methods are fixed
    try:
        yield
    finally:
        setattr(BaseContext, "get_preferred_array_alignment", before)  # noqa: B010 - mypy: methods are fixed


def _write(path: Path, text: str) -> None:
    """Writes the file unless it stands there already: a new time stamp would void the machine code beside it."""
    try:
        if path.read_text(encoding="utf-8") == text:
            return
    except (OSError, UnicodeDecodeError):
        pass
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, path)


def _remove_compiled(path: Path) -> None:
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}*"):
        compiled.unlink(missing_ok=True)


@cache
def _helpers_digest() -> str:
    """Changes when a helper that generated code calls does: Numba would not notice."""
    here = Path(__file__).parent
    files = [here / "scalars.py", here / "special.py", *sorted((here / "routines").glob("*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files if file.exists())).hexdigest()
