"""`assert` and `raise` in converted code."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

from ...errors import TracerBoolError, TracerError
from ..variable import CAPTURE, Variable, at_line
from .frames import decides
from .truth import truth


def check(condition: Any, message: Callable[[], Any]) -> None:
    """`assert condition, message`."""
    known = truth(condition)
    if isinstance(known, Variable):
        raise TracerBoolError(f"an `assert` asks for a value that only the run knows{at_line()}; take it out, or check the result")
    if not known:
        text = message()
        raise AssertionError(*([] if text is None else [text]))


_OURS = re.compile(r", line \d+(, in .*)?\)")  # as messages say where the user's code is


def caught() -> None:
    """Passes a refusal on that stands behind an `except` of the user's: tracing has failed, not the program."""
    error = sys.exc_info()[1]
    if CAPTURE.home is not None and is_refusal(error):
        assert error is not None
        raise error


def is_refusal(error: BaseException | None) -> bool:
    """Whether an error says that something cannot be traced."""
    return isinstance(error, TracerError) or (isinstance(error, (TypeError, ValueError)) and bool(_OURS.search(str(error))))


def raised(error: Any, *_: Any) -> Any:
    """What `raise error` raises."""
    if decides():
        raise TracerBoolError(
            f"a `raise` that only the run decides{at_line()}; return a number that tells (np.nan), and look at the result"
        )
    return error
