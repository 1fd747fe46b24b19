"""The errors that a function raises, named in its text."""

from __future__ import annotations

import re

from ..ir.loops import Call, Fail, Function, walk

_LOCATION = re.compile(r" \([^()]*, line \d+\)")


def error_texts(function: Function) -> dict[str, str]:
    """The errors that a function raises, by the name that their text begins with; with their locations in the user's code.

    The module's text leaves the locations out: a step that moves by some lines is the same code, and is not compiled again.
    """
    return {name: message for message, name in named_messages(function).items()}


def without_location(message: str) -> str:
    """The text of an error without locations in the user's code."""
    return _LOCATION.sub("", message)


def named_messages(function: Function) -> dict[str, str]:
    """A name for each error text, so that the function stays readable."""
    texts = dict.fromkeys(stmt.message for stmt in walk(function.body) if isinstance(stmt, Call | Fail) and stmt.message)
    return {text: f"ERROR_{k}" for k, text in enumerate(texts, 1)}
