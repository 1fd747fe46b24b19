"""Decorated methods: what `ns.scan` and `ns.jit` make in a class binds to an instance, as a function does."""

from __future__ import annotations

import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")
MOST_HELD = 16  # instances without weak references whose code is kept


def is_function(value: Any) -> bool:
    """Whether a decorator takes `value`: a callable, or a classmethod, which is callable once a class has it."""
    return callable(value) or isinstance(value, classmethod)


def bound_to(fn: Any, instance: Any, owner: type | None) -> Any:
    """`fn` as an attribute gives it: a method of the instance, or of the class. `fn` itself where nothing is bound."""
    bind = getattr(type(fn), "__get__", None)
    return fn if bind is None else bind(fn, instance, owner)


def method_behind(fn: Any) -> types.MethodType | None:
    """The bound method from which decorators made `fn`; None where there is none."""
    return next((part for part in _layers(fn) if isinstance(part, types.MethodType)), None)


def as_attribute(made: Any) -> tuple[Any, ...] | None:
    """The pickle of a bound method that decorators in its class made: that attribute of its object. None if it was made elsewhere."""
    method = method_behind(made)
    there = None if method is None else getattr(method.__self__, method.__name__, None)
    is_there = list(map(type, _layers(there))) == list(map(type, _layers(made))) and method_behind(there) == method
    return (getattr, (method.__self__, method.__name__)) if method is not None and is_there else None


def _layers(fn: Any) -> Iterator[Any]:
    """The layers of a decorated function, from the outermost to the user's method or function."""
    while fn is not None:
        yield fn
        fn = None if isinstance(fn, types.MethodType) else getattr(fn, "__wrapped__", None)


class PerInstance(Generic[T]):
    """One value for each instance, which does not keep the instance alive."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._values: dict[int, tuple[weakref.ref[Any], T]] = {}
        self._held: dict[int, tuple[Any, T]] = {}
        self._lock = threading.RLock()  # an instance may go while it is held

    def of(self, instance: Any) -> T:
        """The value of `instance`, made on first use."""
        key = id(instance)
        known = self._values.get(key)
        if known is not None and known[0]() is instance:
            return known[1]
        with self._lock:
            return self._added(key, instance)

    def _added(self, key: int, instance: Any) -> T:
        known = self._values.get(key)
        if known is not None and known[0]() is instance:
            return known[1]
        try:
            reference = weakref.ref(instance, lambda _: self._values.pop(key, None))
        except TypeError:
            if key not in self._held:
                while len(self._held) >= MOST_HELD:
                    self._held.pop(next(iter(self._held)))
                self._held[key] = instance, self._make()
            return self._held[key][1]
        self._values[key] = reference, self._make()
        return self._values[key][1]
