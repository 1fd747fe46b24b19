"""A GPU for each process: workers on one machine divide its devices among themselves."""

from __future__ import annotations

import functools
import os
import tempfile
from pathlib import Path

from ..errors import BatchError
from .lock import Lock

_held: list[Lock] = []  # until this process ends


@functools.cache
def own_device() -> int:
    """The number of a device that no other process of numbascan on this machine has; any one where all are taken."""
    from ..emit.runtime.cuda import names_of_devices

    names = names_of_devices()
    for number, name in enumerate(names):
        lock = Lock(Path(tempfile.gettempdir(), f"numbascan-{name}.lock"), name)
        try:
            lock.__enter__()
        except (BatchError, PermissionError):  # another worker's, another user's
            continue
        _held.append(lock)
        return number
    return os.getpid() % max(1, len(names))
