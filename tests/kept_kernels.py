"""Compiled code of tests, kept between runs in a folder of the user's cache: most kernels of a run are those of the run before.

That is right because the key of a kernel holds all that it is made of (`emit/kernel_key.py`). What tests put into the place of functions
that compile stands in no file, so that keys hold it apart.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(os.environ.get("NUMBASCAN_TEST_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "numbascan-tests"))
SIZE = "4GB"  # about four full runs that share no kernel; those that were not used for longest go
DAYS = 30  # for which what is not compiled code is kept
COMPILES = ("numbascan.emit", "numbascan.ops", "numba.", "llvmlite", "scipy", "numpy")
DO_NOT = tuple(f"numbascan.emit.{name}" for name in ("cache", "cache_bound", "kernel_key", "cpu.module", "cuda.module"))

changed: list[str] = []
"""What keys hold besides: something in the place of what compiles, until the test ends."""


def use() -> None:
    """From now on compiled code is found and left in the folder; one for all workers, checkouts and environments."""
    os.environ["NUMBASCAN_CACHE_DIR"] = str(FOLDER)
    os.environ.setdefault("NUMBASCAN_CACHE_SIZE", SIZE)


def kept(room: str, key: str, make: Callable[[], Any]) -> Any:
    """What `make` gave for this key in an earlier run, or gives now: what JSON holds. What was not asked for in so many days goes."""
    file = FOLDER / room / key
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
        file.touch()
        return value
    except (OSError, ValueError):  # not there, or half written
        value = make()
    file.parent.mkdir(parents=True, exist_ok=True)
    for other in file.parent.iterdir() if not hash(key) % 100 else ():
        with suppress(OSError):
            if other.stat().st_mtime < time.time() - DAYS * 86_400:
                other.unlink()
    handle, temporary = tempfile.mkstemp(dir=file.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as text:
        json.dump(value, text)
    os.replace(temporary, file)
    return value


def hold() -> None:
    """From now on a test that puts something into the place of what compiles has keys of its own."""
    from numbascan.emit import kernel_key

    settings, setattr_ = kernel_key._settings, pytest.MonkeyPatch.setattr

    def told(patch: pytest.MonkeyPatch, target: Any, *args: Any, **kwargs: Any) -> None:
        module = _module_of(target)
        if module.startswith(COMPILES) and module not in DO_NOT and os.environ.get("NUMBASCAN_CACHE_DIR") == str(FOLDER):
            changed.append(os.urandom(8).hex())
        setattr_(patch, target, *args, **kwargs)

    kernel_key._settings = lambda: (*settings(), *changed)
    pytest.MonkeyPatch.setattr = told  # type: ignore[method-assign, assignment]


def hold_apart(file: str) -> None:
    """From now on the text of this file is part of every key: it changes how kernels are compiled."""
    from numbascan.emit import kernel_key

    settings, text = kernel_key._settings, hashlib.sha256(Path(file).read_bytes()).hexdigest()
    kernel_key._settings = lambda: (*settings(), text)


def _module_of(target: Any) -> str:
    """The module in which something is that a test replaces."""
    if isinstance(target, str):
        return target
    if isinstance(target, ModuleType):
        return target.__name__
    return str(getattr(target, "__module__", None) or type(target).__module__)
