"""`assert` and `raise` in converted code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import TracerBoolError
from ..variable import Variable, at_line
from .frames import FRAMES
from .truth import truth


def check(condition: Any, message: Callable[[], Any]) -> None:
    """`assert condition, message`."""
    known = truth(condition)
    if isinstance(known, Variable):
        raise TracerBoolError(f"an `assert` asks for a value that only the run knows{at_line()}; take it out, or check the result")
    if not known:
        text = message()
        raise AssertionError(*([] if text is None else [text]))


def raised(error: Any, *_: Any) -> Any:
    """What `raise error` raises."""
    if FRAMES.stack and not FRAMES.stack[-1].is_trial:
        raise TracerBoolError(
            f"a `raise` that only the run decides{at_line()}; return a number that tells (np.nan), and look at the result"
        )
    return error
