"""Calls in converted code: users' functions are converted, and Python's own functions take traced values as they take numbers."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from ..converted.source import converted
from ..variable import CAPTURE, Variable, as_variable
from .collected import takes_arrays, with_arrays
from .frames import FRAMES
from .stores import contents_of

REPLACED: dict[Any, Callable[..., Any]] = {}
"""What is called in the place of Python's and NumPy's functions: with these very arguments, and for known ones the same result."""

MUTATING: dict[type, frozenset[str]] = {
    list: frozenset({"append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse"}),
    dict: frozenset({"update", "pop", "popitem", "clear", "setdefault"}),
    set: frozenset({"add", "discard", "remove", "pop", "clear", "update", "difference_update", "intersection_update"}),
}


def callee(f: Any) -> Any:
    """What is called where the user's code calls `f`."""
    if CAPTURE.makes_arrays:
        return functools.partial(_made, f)
    return _callee(f)


def _made(f: Any, *args: Any, **kwargs: Any) -> Any:
    """What a call gives, arrays of NumPy's as traced ones."""
    return _traced(_callee(f)(*args, **kwargs))


def _traced(value: Any) -> Any:
    if type(value) is np.ndarray and value.ndim and value.dtype.kind in "biufc":
        return Variable(as_variable(value).node)
    return type(value)(map(_traced, value)) if type(value) in (tuple, list) and any(type(part) is np.ndarray for part in value) else value


def _callee(f: Any) -> Any:
    kind = type(f)
    if kind is types.FunctionType:
        return REPLACED.get(f) or converted(f)
    if kind is types.MethodType:
        return converted(f)
    if kind is types.BuiltinMethodType:
        owner = type(f.__self__)
        if owner is str and f.__name__ == "format":
            return REPLACED[str.format](f.__self__)
        if owner in MUTATING and FRAMES.stack and f.__name__ in MUTATING[owner]:
            return functools.partial(_changed, f)
        return REPLACED.get(f, f)
    if kind is functools.partial:
        inner = callee(f.func)
        return f if inner is f.func else functools.partial(inner, *f.args, **f.keywords)
    try:
        ours = REPLACED.get(f)
    except TypeError:  # without a hash
        return f
    return ours or (with_arrays(f) if takes_arrays(f) else f)


def _changed(method: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls a method that changes a list, dict or set: taken back with the branch or pass, or refused there."""
    holder, now = method.__self__, FRAMES.stack[-1]
    if not now.is_trial:
        raise TypeError(
            f"{type(holder).__name__}.{method.__name__} in {now.what} changes how many things it holds; make an array of the full length "
            "before (np.zeros), and write its elements"
        )
    now.undone.append(contents_of(holder))
    return method(*args, **kwargs)


def replaces(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: this function of ours is called in the place of Python's `functions`."""

    def noted(ours: Callable[..., Any]) -> Callable[..., Any]:
        REPLACED.update(dict.fromkeys(functions, ours))
        return ours

    return noted
