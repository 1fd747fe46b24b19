"""How far a batch has come."""

from __future__ import annotations

from typing import Any

from ..progress import Display, Show


class Progress:
    """Tells how many of `count` cases are done, `done` of them before. `close` tells the end.

    progress: True for a display, False, or a function of both numbers.
    """

    def __init__(self, progress: Any, done: int, count: int) -> None:
        self.done, self.count = done, count
        self._display = Display("ns.batch", "cases", count, done) if progress is True else None
        self._show: Show | None = self._display or (progress if callable(progress) else None)
        self.add(0)

    def add(self, cases: int) -> None:
        """So many more cases are done."""
        self.done += cases
        if self._show is not None:
            self._show(self.done, self.count)

    def close(self) -> None:
        """Nothing more will be told."""
        if self._display is not None:
            self._display.end()
