"""`assert` and `raise` in converted code. Those that only the run decides become checks of the compiled code."""

from __future__ import annotations

import builtins
import re
import sys
from typing import Any

from ...errors import TracerBoolError, TracerError
from ...ops.raising import RAISING, named
from ..tracing import CHECKING
from ..variable import CAPTURE, HOOKS, Variable, as_variable, at_line, op
from .frames import Place, decides, note
from .joining import held

_CARRIED = frozenset(
    {ArithmeticError, AssertionError, Exception, IndexError, KeyError, LookupError, NotImplementedError, OverflowError, RuntimeError}
    | {TypeError, ValueError, ZeroDivisionError}
)
"""Python's errors that compiled code can raise, with one text."""


class RaisedAtRun(TracerBoolError):
    """A `raise` in a branch that only the run decides: it ends that branch. Where no choice catches it, it is the refusal.

    error: what is raised.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(
            f"a `raise` of {type(error).__name__} that only the run decides{at_line()}: an error that is made of one text can be raised "
            "there, in a branch of an `if` whose other branch goes on; return a number that tells (np.nan), and look at the result"
        )
        self.error = error

    def is_carried(self) -> bool:
        """Whether compiled code can raise it."""
        args = self.error.args
        is_text = not args or (len(args) == 1 and isinstance(args[0], str))
        return CHECKING.checks is not None and is_text and (type(self.error) in _CARRIED or _is_of_text(self.error))

    def unless(self, holds: Variable) -> None:
        """Adds a check: the run raises the error unless a condition holds."""
        checks = CHECKING.checks
        assert checks is not None

        def write(value: Any) -> None:
            checks.passed = value

        place = Place(checks, "what is checked", lambda: held(checks.passed), write, checks.passed, checks.born, is_private=True)
        note((id(checks), "checks"), place)
        text = str.__str__(self.error.args[0]) if self.error.args else ""
        message = text or f"raise {type(self.error).__name__}"
        cls: Any = type(self.error)
        name, message = (cls.__name__, message) if cls in _CARRIED else ("RuntimeError", named(cls, message))
        checks.passed = op(RAISING, as_variable(checks.passed), holds, error=name, message=message)


def _is_of_text(error: BaseException) -> bool:
    """Whether an error of a user's class can be made again from its text alone."""
    cls: Any = type(error)
    if not isinstance(error, Exception) or isinstance(error, StopIteration | StopAsyncIteration):
        return False
    try:
        text = str.__str__(error.args[0]) if error.args else "a text"
        again = cls(text)
        is_same = not error.args or vars(again) == vars(error)
        return type(again) is cls and again.args == (text,) and is_same
    except Exception:
        return False


_OURS = re.compile(r", line \d+(, in .*)?\)")  # our messages give the line of the user's code so


def caught() -> None:
    """Raises a refusal again that an `except` of the user's has caught: tracing failed, not the program."""
    error = sys.exc_info()[1]
    if CAPTURE.home is not None and is_refusal(error):
        assert error is not None
        raise error


def is_refusal(error: BaseException | None) -> bool:
    """Whether an error says that something cannot be traced."""
    return isinstance(error, TracerError) or (isinstance(error, (TypeError, ValueError)) and bool(_OURS.search(str(error))))


def raised(error: Any, *_: Any) -> Any:
    """What `raise error` raises. Raises RaisedAtRun itself where only the run decides."""
    if decides():
        made = error() if isinstance(error, type) and issubclass(error, BaseException) else error
        if isinstance(made, BaseException):
            raise RaisedAtRun(made)
    return error


def failed(message: Any) -> Any:
    """What `assert condition, message` raises where the condition does not hold; `message`: in a tuple, empty for none."""
    return raised(builtins.AssertionError(*message))


HOOKS["is_refusal"] = is_refusal
