"""Functions that are made anew at each call of the code around them, and read the same: what was traced of one holds for the other.

Of code that was met as several functions the last ones are held, with what they read: few, and none that reads large arrays.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from numbers import Number
from typing import Any

import numpy as np

from .guards import same
from .namespaces import content

MOST_CODES, MOST_TWINS = 64, 4
LARGEST = 1 << 20  # bytes of an array that is held for a call that may come

_twins: dict[types.CodeType, tuple[types.FunctionType, ...]] = {}  # the latest last


def twin_of(fn: Callable[..., Any], but_numbers: bool = False) -> Callable[..., Any]:
    """A function seen before that is the same code and reads the same, but for numbers if so asked; `fn` itself where there is none."""
    if not isinstance(fn, types.FunctionType):
        return fn
    return next((twin for twin in reversed(_twins.get(fn.__code__, ())) if _Pairs(but_numbers).are_alike(fn, twin)), fn)


def remember_twin(fn: Callable[..., Any]) -> None:
    """Holds a function for the next one of the same code, unless it is the first: that may be the only one."""
    if not isinstance(fn, types.FunctionType) or not reads_little(fn):
        return
    others = _twins.get(fn.__code__)
    if others is None and len(_twins) >= MOST_CODES:
        _twins.clear()
    _twins[fn.__code__] = () if others is None else (*others[1 - MOST_TWINS :], fn)


def reads_little(fn: types.FunctionType) -> bool:
    """Whether no large array is kept alive by holding `fn`."""
    return all(_is_small(value) for value in _read_by(fn))


def _is_small(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.nbytes <= LARGEST
    values = value.values() if type(value) is dict else value
    return type(value) not in (list, tuple, dict) or all(_is_small(part) for part in values)


class _Pairs:
    """Pairs that are being compared, by identity: a function may stand in its own closure, a list in itself."""

    def __init__(self, but_numbers: bool) -> None:
        self.but_numbers = but_numbers
        self.met: set[tuple[int, int]] = set()

    def are_alike(self, a: Any, b: Any) -> bool:
        """Would code that reads `a` or `b` do the same? Numbers, strings, arrays and functions by what they are; other objects are one."""
        kind = type(a)
        if a is b or (id(a), id(b)) in self.met:
            return True
        if type(b) is not kind:
            return False
        if kind is np.ndarray:
            return not a.dtype.hasobject and (a.dtype, a.shape, a.strides) == (b.dtype, b.shape, b.strides) and a.tobytes() == b.tobytes()
        if kind not in (list, tuple, dict, types.FunctionType):
            return same(a, b) or (self.but_numbers and isinstance(a, Number))
        self.met.add((id(a), id(b)))
        if kind is dict:
            return self._all_alike([*a, *a.values()], [*b, *b.values()])
        if kind is not types.FunctionType:
            return self._all_alike(a, b)
        is_one_code = a.__code__ is b.__code__ and a.__globals__ is b.__globals__ and not vars(a) and not vars(b)
        return is_one_code and self._all_alike(_read_by(a), _read_by(b))

    def _all_alike(self, some: Sequence[Any], others: Sequence[Any]) -> bool:
        return len(some) == len(others) and all(map(self.are_alike, some, others))


def _read_by(fn: types.FunctionType) -> list[Any]:
    return [fn.__defaults__, fn.__kwdefaults__, *map(content, fn.__closure__ or ())]
