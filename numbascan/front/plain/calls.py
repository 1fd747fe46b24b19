"""Calls in converted code: users' functions are converted, and Python's own functions replaced by ones that take traced values."""

from __future__ import annotations

import abc
import functools
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from ..converted.source import converted, is_of_library
from ..variable import CAPTURE, Variable, as_variable, at_line
from .chosen import check_free
from .collected import takes_arrays, with_arrays
from .frames import FRAMES
from .scipys import of_scipy
from .stores import check_opaque, check_plain, del_attribute, holds_traced, may_change, outside, set_attribute, set_item

REPLACED: dict[Any, Callable[..., Any]] = {}
"""Our function for each function of Python and NumPy that is replaced: same arguments, and for known ones the same result."""

MUTATING: dict[type, frozenset[str]] = {
    list: frozenset({"append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse"}),
    dict: frozenset({"update", "pop", "popitem", "clear", "setdefault"}),
    set: frozenset({"add", "discard", "remove", "pop", "clear", "update", "difference_update", "intersection_update"}),
}


COMPARING: dict[tuple[type, str], Callable[..., Any]] = {}
"""By class and method name, our function for methods of lists and tuples that compare elements. It takes the list first."""

METHODS_OF: dict[type, Callable[[Any, str], Callable[..., Any]]] = {}
"""By class of Python or NumPy: (object, name of a method) -> what is called in the method's place."""

_GENERATORS = (np.random.Generator, np.random.RandomState)


def callee(f: Any) -> Any:
    """What is called where the user's code calls `f`."""
    if CAPTURE.makes_arrays:
        return functools.partial(_made, f)
    return _callee(f)


def _made(f: Any, *args: Any, **kwargs: Any) -> Any:
    """A call's result, with traced arrays for NumPy's. Arrays that existed before the call may not be written."""
    before = [part for part in (getattr(f, "__self__", None), *args, *kwargs.values()) if isinstance(part, np.ndarray)]
    function = getattr(f, "__func__", f)
    is_users = type(function) is types.FunctionType and not is_of_library(function)
    return _traced(_callee(f)(*args, **kwargs), before, is_users)


def _traced(value: Any, before: list[np.ndarray], is_users: bool) -> Any:
    """A call's result, with traced arrays for NumPy's. An array that anybody else refers to may not be written: they would see it."""
    if type(value) is np.ndarray:
        is_new = sys.getrefcount(value) <= _OF_A_RESULT
        return _array(value, is_new and not is_users, before)
    if type(value) not in (tuple, list) or not any(type(part) is np.ndarray for part in value):
        return value
    if type(value) is list and sys.getrefcount(value) > _OF_A_RESULT:
        return value
    parts = []
    for part in value:
        is_new = sys.getrefcount(part) <= _OF_A_PART
        parts.append(_array(part, is_new and not is_users, before) if type(part) is np.ndarray else part)
    return type(value)(parts)


def _array(array: np.ndarray, is_new: bool, before: list[np.ndarray]) -> Any:
    if array.dtype.kind not in "biufc":
        return array
    base = array.base
    is_new = is_new and (base is None or (isinstance(base, np.ndarray) and sys.getrefcount(base) <= _OF_A_BASE))
    if not is_new or any(np.may_share_memory(array, other) for other in before):
        return outside(array)
    result = Variable(as_variable(array).node)
    result.is_0d, result.is_c = not array.ndim, array.flags.c_contiguous
    return result


def _references() -> tuple[int, int, int]:
    """The reference counts of an object that nobody else holds: in `_traced`, as a part in `_traced`, as the base of an array in `_array`.

    Measured, since they differ between versions of Python.
    """

    def seen(value: Any) -> int:
        return sys.getrefcount(value)

    def of_part(value: Any) -> int:
        count = 0
        for part in value:
            count = sys.getrefcount(part)
        return count

    def of_base(array: Any) -> int:
        base = array.base
        return sys.getrefcount(base)

    def made(f: Any, *args: Any) -> Any:
        return f(np.zeros(*args))

    return made(seen, 2), of_part((np.zeros(2),)), made(lambda array: of_base(array[:1]), 2) - 1


_OF_A_RESULT, _OF_A_PART, _OF_A_BASE = _references()


def _callee(f: Any) -> Any:
    kind = type(f)
    if kind is types.MethodType and type(f.__self__) in METHODS_OF:
        return METHODS_OF[type(f.__self__)](f.__self__, f.__name__)
    if kind is types.FunctionType or kind is types.MethodType:
        own = _replaced(f) if kind is types.FunctionType else f
        if own is f and str(f.__module__).startswith("scipy.") and (ours := of_scipy(f)) is not None:
            return ours
        own = converted(f) if own is f else own
        return own if own is not f or not CAPTURE.home else functools.partial(_watched, f)
    if kind is functools.partial:
        inner = callee(f.func)
        return f if inner is f.func else functools.partial(inner, *f.args, **f.keywords)
    ours = _replaced(f)
    if ours is not f:
        return functools.partial(_watched_ours, f, ours) if _is_watching() and f not in _ASKING else ours
    if isinstance(f, type):
        if _has_own_start(f):
            return functools.partial(_constructed, f)
        return functools.partial(_watched, f) if FRAMES.stack or CAPTURE.home is not None else f
    if kind is types.BuiltinMethodType and type(f.__self__) is str and f.__name__ == "format":
        return functools.partial(REPLACED[str.format], f.__self__)
    if kind is types.BuiltinMethodType and f.__name__ in MUTATING.get(type(f.__self__), ()):
        return functools.partial(_changed, f)
    if kind is types.BuiltinMethodType and (compared := COMPARING.get((type(f.__self__), f.__name__))) is not None:
        return functools.partial(compared, f.__self__)
    if kind is types.BuiltinMethodType and type(f.__self__) is np.ndarray and f.__name__ in _OF_TWO:
        return functools.partial(_of_ndarray, f)
    if kind is types.MethodWrapperType and f.__name__ == "__setitem__" and type(f.__self__) in (list, dict):
        return lambda index, value: set_item(value, f.__self__, index)
    own = converted(f)
    if own is not f:
        return own
    if _is_compiled_by_numba(kind) and CAPTURE.home is not None:
        return functools.partial(_compiled, f)
    return functools.partial(_watched, f) if FRAMES.stack or CAPTURE.home is not None else f


_OF_TWO = ("choose", "clip", "compress", "dot", "repeat", "searchsorted", "take")  # methods of arrays that take another one, and write none


def _of_ndarray(f: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls a method of a NumPy array; for traced arguments that of a constant, as NumPy itself would take them for objects."""
    if holds_traced([*args, *kwargs.values()]):
        return getattr(as_variable(f.__self__), f.__name__)(*args, **kwargs)
    return _watched(f, *args, **kwargs) if FRAMES.stack or CAPTURE.home is not None else f(*args, **kwargs)


def _is_compiled_by_numba(kind: type) -> bool:
    """Whether a class is that of functions compiled by `numba.njit`. Told by its name: Numba is not imported, as it is slow to load."""
    return kind.__module__.startswith("numba.") and any(cls.__name__ == "Dispatcher" for cls in kind.__mro__)


def _compiled(f: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls a function that Numba has compiled; for traced arguments, the Python function that was compiled."""
    if holds_traced([*args, *kwargs.values()]):
        return callee(f.py_func)(*args, **kwargs)
    return _watched(f, *args, **kwargs)


_ASKING = frozenset({isinstance, type, callable, next, setattr, delattr})  # they change nothing, or note it themselves


def _is_watching() -> bool:
    return bool(FRAMES.stack) or (CAPTURE.home is not None and bool(CAPTURE.home.frozen))


def _watched_ours(f: Any, ours: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls our function in the place of one of Python's. Refuses iterators whose position only the run knows."""
    for value in args:
        if hasattr(value, "__next__"):
            check_free(value)
            if FRAMES.stack:
                check_opaque(value, getattr(f, "__name__", type(f).__name__))
    return ours(*args, **kwargs)


def _replaced(f: Any) -> Any:
    if type(f) is type and (f.__module__, f.__name__) == _PRANGE:
        return REPLACED[range]
    try:
        ours = REPLACED.get(f)
    except TypeError:  # unhashable
        return f
    return ours or f


_PRANGE = ("numba.misc.special", "prange")  # in plain Python it is `range`; told by its name, as Numba is slow to load


def _has_own_start(cls: type) -> bool:
    """Whether a class makes its objects by a converted `__init__` alone, without a `__new__` or a metaclass of its own."""
    start = inspect.getattr_static(cls, "__init__", None)
    is_simple = type(cls) in (type, abc.ABCMeta) and cls.__new__ is object.__new__
    return is_simple and type(start) is types.FunctionType and converted(start) is not start


def _constructed(cls: type, *args: Any, **kwargs: Any) -> Any:
    """A new object of a class, by its converted `__init__`."""
    value: Any = object.__new__(cls)
    start: Any = inspect.getattr_static(cls, "__init__")
    if converted(start)(value, *args, **kwargs) is not None:
        raise TypeError(f"{cls.__name__}.__init__ should return None{at_line()}")
    return value


# what calls change ----------------------------------------------------------------------------------------------------


def _changed(method: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls a method that changes a list, dict or set. In a branch or a pass the change is noted, to be taken back, or refused."""
    may_change(method.__self__, f"{type(method.__self__).__name__}.{method.__name__}")
    if (compared := COMPARING.get((type(method.__self__), method.__name__))) is not None:
        return compared(method.__self__, *args, **kwargs)
    return _watched(method, *args, **kwargs)


def _watched(f: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls a function that is not converted. In a branch or a pass, refuses arguments whose changes nobody could see and carry along."""
    for array in _arrays_written(f, args, kwargs):
        check_plain(array, (*args, *kwargs.values()))
    for value in args:
        if hasattr(value, "__next__") or getattr(f, "__module__", None) in _CHANGING_MODULES:
            check_free(value)
    if FRAMES.stack:
        for value in (getattr(f, "__self__", None), *args, *kwargs.values()):
            check_opaque(value, getattr(f, "__name__", type(f).__name__))
    if takes_arrays(f):
        args, kwargs = with_arrays(f, args, kwargs)
    return f(*args, **kwargs)


_CHANGING_MODULES = ("_heapq", "_bisect", "_operator")  # their functions change the lists that they are given
_WRITING_METHODS = frozenset({"fill", "sort", "partition", "put", "itemset", "resize", "setfield", "setflags", "byteswap", "__setitem__"})
_WRITING = {np.copyto: "dst", np.put: "a", np.place: "arr", np.putmask: "a", np.fill_diagonal: "a", np.put_along_axis: "arr"}
"""Functions of NumPy that write their first argument, and its name."""


def _arrays_written(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[np.ndarray]:
    """The NumPy arrays that a call writes."""
    owner, out = getattr(f, "__self__", None), kwargs.get("out")
    found = list(out) if isinstance(out, tuple) else [out]
    if isinstance(owner, np.ndarray) and f.__name__ in _WRITING_METHODS:
        found.append(owner)
    elif isinstance(f, np.ufunc):
        found += args[f.nin :]
    elif type(f) in (types.FunctionType, type(np.copyto)) and f in _WRITING:
        found.append(args[0] if args else kwargs.get(_WRITING[f]))
    elif args and ((isinstance(owner, np.ufunc) and f.__name__ == "at") or (isinstance(owner, _GENERATORS) and f.__name__ == "shuffle")):
        found.append(args[0])
    return [array for array in found if isinstance(array, np.ndarray) and array.dtype != object]


def _next(*args: Any) -> Any:
    """`next(iterator)`."""
    method = inspect.getattr_static(type(args[0]), "__next__", None) if args else None
    if type(method) is not types.FunctionType:
        return _watched(next, *args)
    try:
        return converted(method)(args[0])
    except StopIteration:
        if len(args) > 1:
            return args[1]
        raise


REPLACED.update({setattr: lambda holder, name, value: set_attribute(value, holder, name), delattr: del_attribute, next: _next})


def replaces(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: this function of ours is called in the place of Python's `functions`."""

    def noted(ours: Callable[..., Any]) -> Callable[..., Any]:
        REPLACED.update(dict.fromkeys(functions, ours))
        return ours

    return noted
