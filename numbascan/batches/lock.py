"""A lock between processes: a file that names its holder. The system releases it when the holder ends, in whatever way."""

from __future__ import annotations

import errno
import os
import platform
import time
from contextlib import suppress
from pathlib import Path

from ..errors import BatchError

try:
    import fcntl
except ImportError:  # Windows: nothing is locked there
    fcntl = None  # type: ignore[assignment]

PATIENCE = 1.0  # seconds that a sharing process waits: the last of the others takes the lock alone while it removes the file
WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # errors of file systems that have no locks


_held: set[Lock] = set()  # by this process


class Lock:
    """Held while the context lasts. Not held, without an error, where the system has no locks.

    shared: several processes may hold it, if all say so. waits: waits for the holder; else BatchError.
    store: the name of what is locked, for messages.
    """

    def __init__(self, path: Path, store: str, shared: bool = False, waits: bool = False) -> None:
        self.path, self.store, self.shared, self.waits = path, store, shared, waits
        self._file = -1

    def __enter__(self) -> Lock:
        refusal = time.monotonic() + (PATIENCE if self.shared else 0)
        while fcntl is not None and self._file < 0:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                fcntl.flock(file, (fcntl.LOCK_SH if self.shared else fcntl.LOCK_EX) | (0 if self.waits else fcntl.LOCK_NB))
                if _is_at(file, self.path):  # else its holder has removed the file meanwhile: try again with a new one
                    self._file = file
                    _held.add(self)
            except BlockingIOError:
                if time.monotonic() < refusal:
                    time.sleep(0.01)
                    continue
                holder = os.read(file, 200).decode(errors="replace") or "another process"
                raise BatchError(f"ns.batch: the store {self.store} is in use by {holder}; wait for it, or give parts with part=") from None
            except OSError as error:
                if error.errno not in WITHOUT_LOCKS:
                    raise
                return self
            finally:
                if self._file != file:
                    os.close(file)
        if self._file >= 0:
            try:
                self._say_who()
            except BaseException:  # such as Ctrl-C: nobody else would release what is held already
                self.__exit__()
                raise
        return self

    def _say_who(self) -> None:
        """Writes into the file who holds it. Errors are ignored, as of a full disk: it is held all the same."""
        with suppress(OSError):
            os.truncate(self._file, 0)
            os.pwrite(self._file, f"process {os.getpid()} on {platform.node()}".encode(), 0)

    def __exit__(self, *exc: object) -> None:
        if self._file < 0:
            return
        file, self._file = self._file, -1
        _held.discard(self)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # succeeds for the last one that shares it: that removes the file
            if _is_at(file, self.path):
                self.path.unlink(missing_ok=True)
        except OSError:
            pass
        finally:
            os.close(file)


def _let_go() -> None:
    """Closes the locks in a forked process: they are its parent's, and must not outlive that."""
    for lock in _held:
        os.close(lock._file)
        lock._file = -1
    _held.clear()


if fcntl is not None:
    os.register_at_fork(after_in_child=_let_go)


def _is_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False
