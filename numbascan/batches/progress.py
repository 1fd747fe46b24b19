"""The progress of a batch."""

from __future__ import annotations

from typing import Any

from ..progress import Display, Show


class Progress:
    """Shows how many of `count` cases are done, `done` of them from the start. `close` ends the display.

    progress: True for a display, False, or a function of both numbers.
    """

    def __init__(self, progress: Any, done: int, count: int) -> None:
        self.done, self.count = done, count
        self._display = Display("ns.batch", "cases", count, done) if progress is True else None
        self._show: Show | None = self._display or (progress if callable(progress) else None)
        self.add(0)

    def add(self, cases: int) -> None:
        """Counts and shows `cases` more that are done."""
        self.done += cases
        if self._show is not None:
            self._show(self.done, self.count)

    def close(self) -> None:
        """Ends the display."""
        if self._display is not None:
            self._display.end()
