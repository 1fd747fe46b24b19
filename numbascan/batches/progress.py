"""How far a batch has come: a bar of tqdm, lines in a log, or a function of the user's."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

BETWEEN_LINES = 10.0  # seconds


class Progress:
    """Tells how many of `count` cases are done. `close` tells the end."""

    def __init__(self, progress: Any, done: int, count: int) -> None:
        self.done, self.count, self._before = done, count, done
        self._started = self._latest = time.monotonic()
        self._bar: Any = None
        self._tell: Callable[[int, int], object] | None = progress if callable(progress) else None
        self._has_lines = False
        if progress is True:
            self._bar = _bar(done, count) if _is_shown() else None
            self._has_lines = self._bar is None
        if self._tell is not None:
            self._tell(done, count)

    def add(self, cases: int) -> None:
        """So many more cases are done."""
        self.done += cases
        if self._bar is not None:
            self._bar.update(cases)
        if self._tell is not None:
            self._tell(self.done, self.count)
        now = time.monotonic()
        if self._has_lines and (now - self._latest >= BETWEEN_LINES or self.done == self.count):
            self._latest = now
            print(self._line(now - self._started), file=sys.stderr, flush=True)

    def _line(self, seconds: float) -> str:
        rate = (self.done - self._before) / max(seconds, 1e-9)
        left = f", {_duration((self.count - self.done) / rate)} left" if rate and self.done < self.count else f" in {_duration(seconds)}"
        return f"ns.batch: {self.done:,} of {self.count:,} cases, {rate:,.4g} a second{left}"

    def close(self) -> None:
        """Nothing more will be told."""
        if self._bar is not None:
            self._bar.close()


def _is_shown() -> bool:
    """Is there somebody to whom a bar would be shown: at a terminal, or in a notebook?"""
    return bool(getattr(sys.stderr, "isatty", lambda: False)()) or "ipykernel" in sys.modules


def _bar(done: int, count: int) -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(initial=done, total=count, unit=" cases", unit_scale=True)


def _duration(seconds: float) -> str:
    whole = int(seconds)
    if whole < 60:
        return f"{seconds:.1f} s"
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}" if whole >= 3600 else f"{whole // 60}:{whole % 60:02} min"
