"""Calls in converted code: users' functions are converted, and Python's own functions take traced values as they take numbers."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from ..converted.source import converted, is_of_library
from ..variable import CAPTURE, WRITERS, Variable, as_variable
from .containers import check_container
from .frames import FRAMES
from .stores import check_plain, contents_of

REPLACED: dict[Any, Callable[..., Any]] = {}
"""What is called in the place of Python's and NumPy's functions: with these very arguments, and for known ones the same result."""

MUTATING: dict[type, frozenset[str]] = {
    list: frozenset({"append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse"}),
    dict: frozenset({"update", "pop", "popitem", "clear", "setdefault"}),
    set: frozenset({"add", "discard", "remove", "pop", "clear", "update", "difference_update", "intersection_update"}),
}

WRITING = frozenset({"fill", "sort", "put", "partition", "itemset", "resize", "setfield", "byteswap", "setflags"})
"""Methods of NumPy's arrays that write into them."""


def callee(f: Any) -> Any:
    """What is called where the user's code calls `f`."""
    if CAPTURE.makes_arrays:
        return functools.partial(_made, f)
    return _callee(f)


def _made(f: Any, *args: Any, **kwargs: Any) -> Any:
    """What a call gives, arrays of NumPy's as traced ones. Those that were there before are not written."""
    value = _callee(f)(*args, **kwargs)
    before = [part for part in (getattr(f, "__self__", None), *args, *kwargs.values()) if isinstance(part, np.ndarray)]
    function = getattr(f, "__func__", f)
    return _traced(value, before, type(function) is types.FunctionType and not is_of_library(function))


def _traced(value: Any, before: list[np.ndarray], is_users: bool) -> Any:
    if type(value) is np.ndarray and value.dtype.kind in "biufc":
        array = Variable(as_variable(value).node)
        array.is_0d = not value.ndim
        array.is_c = value.flags.c_contiguous
        if is_users or any(np.may_share_memory(value, other) for other in before):
            array.home = "an array that is read from outside, or of an object"
        return array
    if type(value) in (tuple, list) and any(type(part) is np.ndarray for part in value):
        return type(value)(_traced(part, before, is_users) for part in value)
    return value


def _callee(f: Any) -> Any:
    kind = type(f)
    if kind is types.FunctionType or kind is types.MethodType:
        return REPLACED[f] if f in REPLACED else converted(f)
    if kind is types.BuiltinMethodType:
        owner = type(f.__self__)
        if (owner is np.ndarray and f.__name__ in WRITING) or (owner is np.ufunc and f.__name__ == "at"):
            return functools.partial(_written, f)
        if owner in MUTATING and f.__name__ in MUTATING[owner]:
            check_container(f.__self__)
            return functools.partial(_changed, f) if FRAMES.stack else f
        return REPLACED.get(f, f)
    if kind is functools.partial:
        inner = callee(f.func)
        return f if inner is f.func else functools.partial(inner, *f.args, **f.keywords)
    try:
        ours = REPLACED.get(f, f)
    except TypeError:  # without a hash
        return f
    return functools.partial(_into, f) if ours is f and FRAMES.stack and isinstance(f, (np.ufunc, _DISPATCHER)) else ours


_DISPATCHER = type(np.sum)  # of functions that ask their arguments who answers


def _written(method: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls a method that writes into an array of NumPy's."""
    array, *rest = args if isinstance(method.__self__, np.ufunc) else (method.__self__, *args)
    if isinstance(array, np.ndarray):
        check_plain(array, (*rest, *kwargs.values()))
    return method(*args, **kwargs)


def _into(f: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls a function of NumPy's that may write its result into an array of NumPy's, or into its first argument."""
    out = kwargs.get("out", args[0] if args and f in WRITERS else None)
    for array in out if isinstance(out, tuple) else (out,):
        if isinstance(array, np.ndarray):
            check_plain(array, args)
    return f(*args, **kwargs)


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
