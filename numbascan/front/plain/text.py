"""Text of traced values: it can be shown, but not computed with, since only the run knows the digits."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ..variable import at_line
from .calls import replaces
from .stores import holds_traced

_SHOWN = frozenset(
    {"__str__", "__repr__", "__format__", "__class__", "__new__", "__init__", "__getattribute__", "__doc__", "__getnewargs__"}
)


def _refused(name: str) -> Callable[..., Any]:
    def refuse(self: Any, *_: Any, **__: Any) -> Any:
        raise TypeError(
            f"the text of a traced value is used by str.{name}{at_line()}: only the run knows its digits, so that it can be shown and "
            "not computed with; compute with the number, or hand it out and make the text of the result"
        )

    return refuse


class TracedText(str):
    """What `str`, `repr` and f-strings give of a traced value: its name and type, to be shown."""

    __slots__ = ()

    def __add__(self, other: str) -> TracedText:
        return TracedText(str.__str__(self) + str.__str__(other))

    def __radd__(self, other: str) -> TracedText:
        return TracedText(other + str.__str__(self))

    def __str__(self) -> str:
        return self


for _name, _method in {**vars(str), "__reduce__": None, "__radd__": None}.items():
    if _name not in _SHOWN and _name not in vars(TracedText) and (_name == "__hash__" or callable(_method)):
        setattr(TracedText, _name, _refused(_name))


class _Shown:
    """A traced value where text asks for it: its name and type, whatever the format."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __repr__(self) -> str:
        return str.__str__(self._value) if isinstance(self._value, TracedText) else repr(self._value)

    __str__ = __repr__

    def __format__(self, _: str) -> str:
        return repr(self)


def text(make: Callable[[Callable[[Any], Any]], str]) -> str:
    """An f-string. make: makes the text, passing each value through the function that it gets."""
    traced = []

    def seen(value: Any) -> Any:
        if holds_traced(value) or isinstance(value, TracedText):
            traced.append(value)
            return _Shown(value)
        return value

    made = make(seen)
    return TracedText(made) if traced else made


def percent(template: str, make: Callable[[Callable[[Any], Any]], Any]) -> str:
    """`template % values`. make: gives the values, each passed through the function that it gets. Traced ones are shown in any format."""

    def shown(seen: Callable[[Any], Any]) -> str:
        values = make(seen)
        parts = values.values() if isinstance(values, dict) else values if isinstance(values, tuple) else (values,)
        return (_NUMBERS.sub(r"%\1s", template) if any(isinstance(one, _Shown) for one in parts) else template) % values

    return text(shown)


_NUMBERS = re.compile(r"%(\(\w+\))?[-+ #0]*\d*(?:\.\d+)?[hlL]?[diouxXeEfFgGc]")


def _of_values(known: Callable[..., str]) -> Callable[..., str]:
    def of_values(*args: Any, **kwargs: Any) -> str:
        return TracedText(known(*args, **kwargs)) if holds_traced(list(args)) else known(*args, **kwargs)

    return of_values


for _known in (str, repr, format, ascii):
    replaces(_known)(_of_values(_known))


@replaces(str.format)
def _format(template: str, *args: Any, **kwargs: Any) -> str:
    return text(lambda seen: template.format(*map(seen, args), **{name: seen(value) for name, value in kwargs.items()}))
