"""None or a number, as only the run decides: `best = None` before a loop whose passes make it a number.

Such a value is a number, and a flag for whether it is there. `is None` asks the flag. Computing with a number that is not there raises a
TypeError in the run.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ops.raising import RAISING
from ..tree import fields_of, is_record, unflatten
from ..variable import HOOKS, Deferred, Variable, as_variable, op


@dataclass(frozen=True, eq=False)
class Option(Deferred, np.lib.mixins.NDArrayOperatorsMixin):
    """None, or a number. has: whether it is the number."""

    has: Any
    value: Any

    def number(self) -> Variable:
        """The number; where it is None, the run raises a TypeError."""
        message = "a number is needed, and it is None: no branch and no pass has given it another value"
        return op(RAISING, as_variable(self.value), as_variable(self.has), error="TypeError", message=message)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*map(number_in, inputs), **kwargs)

    def __array_function__(self, func: Any, _: Any, args: Any, kwargs: Any) -> Any:
        return func(*map(number_in, args), **{name: number_in(value) for name, value in kwargs.items()})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.number(), name)

    def __getitem__(self, index: Any) -> Any:
        return self.number()[index]

    def __eq__(self, other: object) -> Any:
        return np.logical_not(self.has) if other is None else self.number() == other

    def __ne__(self, other: object) -> Any:
        return self.has if other is None else self.number() != other

    def __bool__(self) -> bool:
        return bool(self.number())

    def __abs__(self) -> Any:
        return abs(self.number())

    def __round__(self, ndigits: Any = None) -> Any:
        return round(self.number(), ndigits)

    def __repr__(self) -> str:
        return f"<None or {self.value!r}>"


Option.__hash__ = None  # type: ignore[assignment]


def number_in(value: Any) -> Any:
    """A value; for None or a number (`Option`), the number."""
    return value.number() if isinstance(value, Option) else value


def numbers_in(nest: Any) -> Any:
    """A nest with the number in the place of each `Option`."""
    if isinstance(nest, Option):
        return nest.number()
    if isinstance(nest, dict):
        found = {key: numbers_in(value) for key, value in nest.items()}
        return nest if all(found[key] is nest[key] for key in found) else found
    if isinstance(nest, (tuple, list)):
        parts = list(map(numbers_in, nest))
        if all(map(operator.is_, parts, nest)):
            return nest
        return nest._make(parts) if hasattr(nest, "_make") else type(nest)(parts)
    if is_record(type(nest)):
        fields = fields_of(nest)
        numbers = numbers_in(fields)
        return nest if numbers is fields else unflatten((type(nest), tuple(numbers), ("*",) * len(numbers)), numbers.values())
    return nest


def as_options(one: Any, other: Any) -> tuple[Any, Any]:
    """Two values; both as an `Option` where one is None or an `Option`, and the other a number, None or an `Option`. Not two Nones."""
    if not any(value is None or isinstance(value, Option) for value in (one, other)):
        return one, other
    numbers = [value.value if isinstance(value, Option) else value for value in (one, other) if value is not None]
    if not numbers or not all(map(_is_number, numbers)):
        return one, other
    return _as_option(one, numbers[0]), _as_option(other, numbers[-1])


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, complex, np.number, np.bool_)) or (
        isinstance(value, Variable) and not value.ndim and value.is_0d is not True
    )


def _as_option(value: Any, like: Any) -> Any:
    if isinstance(value, Option):
        return value
    return Option(False, zero_like(as_variable(like))) if value is None else Option(True, value)


def zero_like(x: Variable) -> Any:
    """Zero, in the type of a number."""
    zero = x.dtype.type(0)
    return as_variable(zero.item() if x.type.weak else zero)


HOOKS["returned"] = numbers_in
