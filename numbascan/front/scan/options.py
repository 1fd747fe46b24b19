"""The keywords of scan that are no arguments of the step, checked once."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ...checkpoint import Checkpoint
from ...modes import Mode, as_mode


@dataclass(frozen=True)
class Options:
    """How to run a scan and what to keep of it. `in_graph`: the loop becomes part of a larger graph and notes its mode there."""

    truncate_gradient: int = -1
    go_backwards: bool = False
    mode: Mode | None = None
    name: str = "scan"
    profile: bool | str = False
    allow_gc: bool | None = None
    strict: bool = False
    return_list: bool = False
    return_updates: bool = True
    keep_last: int | None = None
    save_every: int = 1
    checkpoint: Any = None
    in_graph: bool = False

    def notes(self) -> tuple[tuple[str, object], ...]:
        """What later stages are to know of the loop, as far as it is not the default."""
        notes = [("checkpoint", self.checkpoint)] if self.checkpoint is not None else []
        if self.mode is not None and self.in_graph:
            notes.append(("mode", self.mode))
        return tuple(notes)

    def trace_mode(self) -> Mode | None:
        """The mode in which the step will run; None where that is for the graph around it to say."""
        return self.mode if self.in_graph else self.mode or Mode()

    def for_graph(self) -> Options:
        return replace(self, in_graph=True)


KEYWORDS = tuple(field.name for field in fields(Options) if field.name != "in_graph")


def make_options(fn: Callable[..., Any], given: dict[str, Any]) -> Options:
    """The options that keywords mean. TypeError for an unknown keyword, ValueError for a value that none of them takes."""
    unknown = [key for key in given if key not in KEYWORDS]
    if unknown:
        known = ", ".join(("sequences", "outputs_info", "non_sequences", "n_steps", *KEYWORDS))
        raise TypeError(f"scan got an unexpected keyword argument {unknown[0]!r}; it takes {known}")
    values = dict(given)
    name = values["name"] = step_name(fn) if values.get("name") is None else str(values["name"])
    where = f"scan {name!r}"
    values["mode"] = None if values.get("mode") is None else _mode(values["mode"], where)
    values["truncate_gradient"] = _truncate(values.get("truncate_gradient", -1), where)
    values["keep_last"], values["save_every"] = _kept_rows(values.get("keep_last"), values.get("save_every", 1), where)
    values["checkpoint"] = _checkpoint(values.get("checkpoint"), where)
    for key in ("go_backwards", "strict", "return_list", "return_updates"):
        if key in values:
            values[key] = bool(values[key])
    return Options(**values)


def _mode(value: Any, where: str) -> Mode:
    try:
        return as_mode(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}: {error}") from None


def step_name(fn: Callable[..., Any]) -> str:
    """The name of a scan that was given none: that of its step, where it has one."""
    name = getattr(getattr(fn, "func", fn), "__name__", "scan")
    return name if name.isidentifier() else "scan"


def _is_count(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)) and int(value) >= 1


def _truncate(value: Any, where: str) -> int:
    if value is None or value == -1:
        return -1
    if not _is_count(value):
        raise ValueError(f"{where}: truncate_gradient is {value!r}; give the number of steps to go back, or -1 for all")
    return int(value)


def _kept_rows(keep_last: Any, save_every: Any, where: str) -> tuple[int | None, int]:
    if keep_last is not None and not _is_count(keep_last):
        raise ValueError(f"{where}: keep_last is {keep_last!r}; give an int of 1 or more")
    if not _is_count(save_every):
        raise ValueError(f"{where}: save_every is {save_every!r}; give an int of 1 or more")
    if keep_last is not None and save_every != 1:
        raise ValueError(f"{where}: keep_last={keep_last} and save_every={save_every} exclude each other; give one")
    return None if keep_last is None else int(keep_last), int(save_every)


def _checkpoint(value: Any, where: str) -> Any:
    if value is None or isinstance(value, Checkpoint):
        return value
    if isinstance(value, str) and value == "auto":
        return Checkpoint(_half_of_free_memory())
    if not _is_count(value):
        raise ValueError(f"{where}: checkpoint is {value!r}; give None, an int of 1 or more, 'auto', or ns.Checkpoint(memory=...)")
    return int(value)


def _half_of_free_memory() -> int:
    """In bytes, as a power of two: the code that is generated must not change with every reading."""
    pages = os.sysconf("SC_AVPHYS_PAGES") if hasattr(os, "sysconf") and "SC_AVPHYS_PAGES" in os.sysconf_names else 2**18
    free = pages * (os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096)
    return 1 << max((free // 2).bit_length() - 1, 20)
