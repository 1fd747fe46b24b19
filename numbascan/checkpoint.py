"""How a gradient trades memory for steps: `ns.Checkpoint`."""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import dataclass
from math import isfinite
from numbers import Real

from .tracebacks import with_entries

SCHEDULES = ("binomial", "periodic", "online")
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def number_of_bytes(text: str) -> int | None:
    """The bytes that a text such as "512MB" or "2GiB" says; None where it says none."""
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+(?:[eE][0-9]+)?)\s*([A-Za-z]*)\s*", text)
    if match is None or match[2].upper() not in _UNITS:
        return None
    return int(float(match[1]) * _UNITS[match[2].upper()])


def bytes_from_environment(variable: str, default: int, meaning: str) -> int:
    """The bytes that an environment variable says, a number or a text such as "500MB"; the default if it is not set.

    meaning: of the default, for the warning about a text that says no bytes.
    """
    text = os.environ.get(variable, "")
    size = number_of_bytes(text) if text.strip() else default
    if size is None:
        words = f"{variable} is {text!r}; write bytes as a number, or a text such as '500MB'. {meaning}"
        warnings.warn(words, stacklevel=3)
        return default
    return size


@with_entries()
@dataclass(frozen=True)
class Checkpoint:
    """What a gradient of a loop may store, and how it goes about it.

    Arguments:
        memory: for the states that are stored, and for what a block of steps keeps besides: a number of bytes, or a text such as "512MB"
            or "2GiB". All states are stored while they fit; one is stored in any case.
        schedule: "binomial" (the least number of extra forward steps, Griewank & Walther 2000), "periodic" (every k-th state, then all
            states of one segment at a time), or "online" (states are stored while the loop itself runs, before its length is known, and
            thinned out as they get too many: best with `until`, and where the value is asked for as well).

    Raises ValueError for a memory that is no positive number of bytes, and for another schedule.

    >>> Checkpoint("512MB").bytes
    512000000
    """

    memory: int | str
    schedule: str = "binomial"

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            raise ValueError(f"ns.Checkpoint: schedule is {self.schedule!r}; it must be one of {', '.join(map(repr, SCHEDULES))}")
        if self.bytes < 1:
            raise ValueError(f"ns.Checkpoint: memory is {self.memory!r}; give a positive number of bytes")

    @property
    def bytes(self) -> int:
        """The memory as a number of bytes."""
        if isinstance(self.memory, str):
            size = number_of_bytes(self.memory)
            if size is None:
                raise ValueError(f"ns.Checkpoint: memory is {self.memory!r}; write bytes as a number, or a text such as '512MB' or '2GiB'")
            return size
        given: object = self.memory  # whatever a user wrote there
        if isinstance(given, bool) or not isinstance(given, Real) or not isfinite(given):
            raise ValueError(f"ns.Checkpoint: memory is {given!r}; write bytes as a number, or a text such as '512MB'")
        return int(float(given))
