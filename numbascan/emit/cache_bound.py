"""The bound of the cache on disk: the least recently used entries go first. Several processes may remove entries at once.

An entry is a generated module with its machine code, or the folder of compiled routines that many modules call. The time of its last use
is the time stamp of a file beside it: from the module's own time stamp Numba sees whether the machine code belongs to the text.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ..checkpoint import bytes_from_environment

VARIABLE, DEFAULT = "NUMBASCAN_CACHE_SIZE", 10**9
ROUTINES = "routines"  # the folder of compiled routines, within that of modules
LEFT = 0.9  # of the bound, down to which entries are removed: many at a time

SEEN_ANEW = 1 / 16  # of the bound: after adding so much this process measures the folder again, because others fill it, too

_sizes: dict[Path, tuple[int, int]] = {}  # by folder: the size measured last, and what was added since; measuring takes time


def bound() -> int:
    """The bytes that the cache may take: $NUMBASCAN_CACHE_SIZE, a number or a text such as "500MB"; 1 GB if it is not set or not read."""
    return bytes_from_environment(VARIABLE, DEFAULT, "The cache takes up to 1 GB")


def note_use(path: Path) -> None:
    """Notes that the entry of the module `path` is used now."""
    with suppress(OSError):  # a read-only folder: nothing is removed there either
        _mark(path).touch(mode=0o600)


def entries(folder: Path) -> list[Path]:
    """The entries of a cache, unordered."""
    return [*folder.glob("*.py"), *(path for path in (folder / ROUTINES).glob("*") if path.is_dir())]


def files_of(path: Path) -> Iterator[Path]:
    """The files of an entry, the module last: the others are found through it as long as it is there."""
    if path.suffix != ".py":
        yield from (file for file in path.rglob("*") if file.is_file())
    else:
        yield path.with_suffix(".code")
        with suppress(OSError), os.scandir(path.parent / "__pycache__") as files:  # `glob` takes three times as long for thousands
            yield from [Path(file) for file in files if file.name.startswith(f"{path.stem}.")]
    yield _mark(path)
    if path.suffix == ".py":
        yield path


def remove(path: Path) -> None:
    """Removes an entry; another process may do the same."""
    for file in files_of(path):
        with suppress(OSError):  # in use, where files in use cannot be removed
            file.unlink(missing_ok=True)
    if path.suffix != ".py":
        shutil.rmtree(path, ignore_errors=True)


def size_of(folder: Path) -> int:
    """The bytes of all files in the cache."""
    return sum(_size(Path(part, file)) for part, _, files in os.walk(folder) for file in files)


def size_of_entry(path: Path) -> int:
    """The bytes of an entry."""
    return sum(map(_size, files_of(path)))


def trim(folder: Path, kept: Path) -> None:
    """Removes the least recently used entries until the cache is below its bound; never `kept`, the new one."""
    allowed = bound()
    size, added = _sizes.get(folder, (allowed, 0))
    added += size_of_entry(kept)
    if added <= SEEN_ANEW * allowed and size + added <= allowed:
        _sizes[folder] = size, added
        return
    size = size_of(folder)
    for path in sorted((path for path in entries(folder) if path != kept), key=last_use) if size > allowed else ():
        if size > LEFT * allowed:
            size -= size_of_entry(path)
            remove(path)
    _sizes[folder] = size, 0


def _mark(path: Path) -> Path:
    return path.with_suffix(".used")


def last_use(path: Path) -> float:
    """When an entry was last used, in seconds."""
    for file in (_mark(path), path):
        try:
            return file.stat().st_mtime
        except OSError:
            continue
    return 0.0


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:  # another process has removed it
        return 0
