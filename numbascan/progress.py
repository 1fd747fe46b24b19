"""The progress of loops: shown by a bar of tqdm, a line of a terminal or lines in a log, or told to a function of the user's.

Also asks others whether a loop is to go on, and says that a first call is still compiling.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

BETWEEN_LOOKS = 0.4  # seconds
BETWEEN_LINES = 10  # seconds, in a log
PATIENCE = 1.0  # seconds of compiling that are not told

Show = Callable[[int, int], object]  # of the steps that are done, and all steps

Ask = Callable[[], object]  # raises where the loop is to end

_shows: dict[int, Show] = {}  # by thread
_asks: dict[int, Ask] = {}  # by thread


@contextmanager
def told(show: Show | None) -> Iterator[None]:
    """Inside, loops that this thread runs tell `show` their progress now and then; None: nobody."""
    thread = threading.get_ident()
    before = _shows.pop(thread, None)
    if show is not None:
        _shows[thread] = show
    try:
        yield
    finally:
        _shows.pop(thread, None)
        if before is not None:
            _shows[thread] = before


def who_is_told() -> Show | None:
    """The function that loops of this thread tell their progress; None: nobody."""
    return _shows.get(threading.get_ident())


@contextmanager
def asked(ask: Ask | None) -> Iterator[None]:
    """Inside, loops that this thread runs call `ask` now and then, inner loops too; an error that it raises ends them. None: nobody."""
    thread = threading.get_ident()
    if ask is not None:
        _asks[thread] = ask
    try:
        yield
    finally:
        _asks.pop(thread, None)


def who_is_asked() -> Ask | None:
    """Whom a loop of this thread asks whether to go on."""
    return _asks.get(threading.get_ident())


def seldom(show: Show | None, ask: Ask | None) -> Show:
    """Both, which may be called at every step, and are so often enough."""
    if show is None and ask is None:
        return lambda done, passes: None
    due = perf_counter() + BETWEEN_LOOKS

    def tell(done: int, passes: int) -> None:
        nonlocal due
        if perf_counter() >= due:
            due = perf_counter() + BETWEEN_LOOKS
            if ask is not None:
                ask()
            if show is not None:
                show(done, passes)

    return tell


def checked_progress(value: Any, name: str) -> bool | Show:
    """The argument `progress`. TypeError unless it is a bool or can be called."""
    if not (isinstance(value, bool) or callable(value)):
        raise TypeError(f"scan {name!r}: progress is {value!r}; give True, False, or a function of the steps done and of all")
    return value


@contextmanager
def shown(progress: bool | Show, label: str, total: int, may_end: bool, unit: str = "steps") -> Iterator[None]:
    """Inside, the progress of a loop of `total` steps is shown; or a function is called with the steps done and `total`.

    `may_end`: the loop may end before. If not, all steps are shown as done at the end.
    """
    display = Display(label, unit, total) if progress is True else None
    show = display or progress
    assert callable(show)
    try:
        with told(lambda done, passes: show(done * total // max(passes, 1), total)):  # the passes of lanes are steps of all
            yield
        if not may_end:
            show(total, total)
    finally:
        if display is not None:
            display.end()


def is_watched() -> bool:
    """Whether the standard error is a terminal or a notebook, and not a log."""
    return bool(getattr(sys.stderr, "isatty", lambda: False)()) or "ipykernel" in sys.modules


_compiling: set[int] = set()  # threads whose compiling is being told


@contextmanager
def compiling(name: str) -> Iterator[None]:
    """Inside, somebody who watches reads that `name` is being compiled, once that takes more than a second, and then how long it took.

    Not in a log, and not where the environment variable NUMBASCAN_QUIET is set.
    """
    thread = threading.get_ident()
    if thread in _compiling or os.environ.get("NUMBASCAN_QUIET", "0") not in ("", "0") or not is_watched():
        yield
        return
    start, is_said = perf_counter(), threading.Event()

    def say() -> None:
        print(f"numbascan: compiling {name} …", end="", file=sys.stderr, flush=True)
        is_said.set()

    timer = threading.Timer(PATIENCE, say)
    timer.daemon = True
    _compiling.add(thread)
    timer.start()
    try:
        yield
    finally:
        _compiling.discard(thread)
        timer.cancel()
        timer.join()  # a line that has begun is whole
        if is_said.is_set():
            print(f" {perf_counter() - start:.1f} s", file=sys.stderr, flush=True)


class Display:
    """Shows steps, rate and time left: by tqdm where it is installed, in a line of its own else; in a log in a line every ten seconds."""

    def __init__(self, label: str, unit: str, total: int, before: int = 0) -> None:
        """`before`: the steps that are done already, and do not count for the rate."""
        self.label, self.unit, self.total, self.before = label, unit, total, before
        self.start = self.latest = perf_counter()
        self.text = ""  # what is not printed yet
        self.is_live = is_watched()
        self.bar: Any = None
        if self.is_live and importlib.util.find_spec("tqdm"):
            from tqdm.auto import tqdm

            self.bar = tqdm(desc=label, initial=before, total=total, unit=f" {unit}", unit_scale=True)

    def __call__(self, done: int, total: int) -> None:
        """Shows that `done` steps are done."""
        if self.bar is not None:
            self.bar.update(done - self.bar.n)
            return
        now = perf_counter()
        self.text = self._line(done, now - self.start)
        if self.is_live:
            print(f"\r{self.text:<79}", end="", file=sys.stderr, flush=True)
        elif now - self.latest >= BETWEEN_LINES:
            self.latest = now
            self._print()

    def end(self) -> None:
        """Leaves what was shown last."""
        if self.bar is not None:
            self.bar.close()
        elif self.is_live and self.text:
            print(file=sys.stderr)
        elif self.text:
            self._print()

    def _print(self) -> None:
        print(self.text, file=sys.stderr, flush=True)
        self.text = ""

    def _line(self, done: int, seconds: float) -> str:
        rate = (done - self.before) / max(seconds, 1e-9)
        left = f"{_time((self.total - done) / rate)} left" if rate and done < self.total else f"in {_time(seconds)}"
        return f"{self.label}: {done:,} of {self.total:,} {self.unit}, {rate:,.4g} a second, {left}"


def _time(seconds: float) -> str:
    """Seconds as 4.2 s, 3:05 or 1:02:45."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
