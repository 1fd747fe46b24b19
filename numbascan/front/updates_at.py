"""`x.at[index].set(y)` and its like, as JAX writes an array with some elements replaced.

NumPy's arrays have no `at`: code with it runs on traced values alone. Each method gives a new array, and leaves x as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ops.last_state import last_state
from ..tracebacks import entry, with_entries
from .numpy.choices import where
from .numpy.indexing import is_traced_mask
from .numpy.shape import broadcast_arrays, broadcast_to
from .scan.scan import scan
from .variable import METHODS, PROPERTIES, Variable, as_variable, at_line


@with_entries(("__getitem__",))
class At:
    """`x.at`: `x.at[index]` is a part of x that is to be replaced."""

    def __init__(self, x: Variable) -> None:
        self._x = x

    def __repr__(self) -> str:
        return f"{self._x!r}.at"

    def __getitem__(self, index: Any) -> PartAt:
        return PartAt(self._x, index)


@with_entries(("set", "add", "subtract", "multiply", "divide", "power", "min", "max", "apply", "get"))
class PartAt:
    """`x.at[index]`. Each method but `get` returns x with that part replaced.

    An index is what x[index] takes. An index out of bounds is an error, where JAX
    drops it. An element that an array of indices names several times is replaced once for each, in their order.
    `indices_are_sorted` and `unique_indices` are taken and not needed.
    """

    def __init__(self, x: Variable, index: Any) -> None:
        self._x, self._index = x, index

    def __repr__(self) -> str:
        return f"{self._x!r}.at[{self._index!r}]"

    def set(self, values: Any, **how: Any) -> Variable:
        """x with `values` there."""
        return self._replaced("set", lambda part, new: new, values, how)

    def add(self, values: Any, **how: Any) -> Variable:
        """x with `values` added there."""
        return self._replaced("add", np.add, values, how)

    def subtract(self, values: Any, **how: Any) -> Variable:
        """x with `values` subtracted there."""
        return self._replaced("subtract", np.subtract, values, how)

    def multiply(self, values: Any, **how: Any) -> Variable:
        """x multiplied by `values` there."""
        return self._replaced("multiply", np.multiply, values, how)

    def divide(self, values: Any, **how: Any) -> Variable:
        """x divided by `values` there."""
        return self._replaced("divide", np.divide, values, how)

    def power(self, values: Any, **how: Any) -> Variable:
        """x to the power of `values` there."""
        return self._replaced("power", np.power, values, how)

    def min(self, values: Any, **how: Any) -> Variable:
        """The lesser of x and `values` there."""
        return self._replaced("min", np.minimum, values, how)

    def max(self, values: Any, **how: Any) -> Variable:
        """The greater of x and `values` there."""
        return self._replaced("max", np.maximum, values, how)

    mul, div = multiply, divide

    def apply(self, function: Callable[[Any], Any], **how: Any) -> Variable:
        """x with `function(x)`, elementwise, there."""
        return self._replaced("apply", lambda part, new: function(part), None, how)

    def get(self, **how: Any) -> Variable:
        """x[index]."""
        self._check("get", how)
        return self._x[self._index]

    def _check(self, name: str, how: dict[str, Any]) -> None:
        known = {"indices_are_sorted", "unique_indices", "mode", "wrap_negative_indices", *({"fill_value"} if name == "get" else ())}
        for option, value in how.items():
            if option not in known:
                raise TypeError(f"x.at[index].{name}() has no argument {option!r}{at_line()}")
            if (option == "mode" and value not in (None, "promise_in_bounds")) or (option == "wrap_negative_indices" and value is not True):
                raise ValueError(
                    f"x.at[index].{name}({option}={value!r}){at_line()}: an index out of bounds is an error here, and negative ones count "
                    "from the end; write np.clip(index, 0, n - 1), or np.where for the elements that are meant"
                )
            if option == "fill_value" and value is not None:
                raise ValueError(f"x.at[index].get(fill_value=…){at_line()}: write np.where(index < n, x[np.minimum(index, n - 1)], value)")

    def _replaced(self, name: str, new_part: Callable[[Any, Any], Any], values: Any, how: dict[str, Any]) -> Variable:
        self._check(name, how)
        x, given = self._x, None if values is None else as_variable(values)
        mask = self._index
        if is_traced_mask(mask) and mask.ndim <= x.ndim and (given is None or not given.ndim):
            mask = mask[(..., *(None,) * (x.ndim - mask.ndim))]
            return where(mask, self._fitting(new_part(x, given), name), x)
        part = x[self._index]
        if name == "set" or not _may_repeat(self._index):
            return METHODS["set"](part, self._fitting(new_part(part, given), name))
        if name in ("add", "subtract"):
            return METHODS["inc"](part, self._fitting(new_part(0, given), name))
        return self._one_by_one(part, new_part, given, name)

    def _one_by_one(self, part: Variable, new_part: Callable[[Any, Any], Any], given: Variable | None, name: str) -> Variable:
        """An array of indices may name an element twice: a loop over them, as np.multiply.at runs it."""
        x = self._x
        entries = self._index if isinstance(self._index, tuple) else (self._index,)
        places = [as_variable(entry) if not isinstance(entry, slice | type(None) | type(...)) else None for entry in entries]
        if any(place is None or place.type.kind not in "iu" for place in places):
            raise TypeError(
                f"x.at[index].{name}(y){at_line()}: an array of indices beside slices may name an element twice; write a loop, as "
                "for k in range(n): y[i[k]] = f(y[i[k]], v[k])"
            )
        flat = [place.reshape((-1,)) for place in broadcast_arrays(*places)]
        rest = x.shape[len(places) :]
        sequences = flat if given is None else [*flat, broadcast_to(given, part.shape).reshape((-1, *rest))]

        def replace(*args: Any) -> Any:
            *step, y = args
            place, new = (tuple(step), None) if given is None else (tuple(step[:-1]), step[-1])
            return METHODS["set"](y[place], self._fitting(new_part(y[place], new), name))

        path = scan(replace, sequences=sequences, outputs_info=x, return_updates=False)
        return Variable(last_state(x.node, path.node))

    def _fitting(self, value: Any, name: str) -> Variable:
        """A value in the dtype of x. TypeError for one of another kind."""
        value, dtype = as_variable(value), self._x.dtype
        if value.type.weak or value.dtype == dtype:
            return value
        if not np.can_cast(value.dtype, dtype, "same_kind"):
            raise TypeError(f"x.at[index].{name}(y){at_line()}: {value.type} does not go into {self._x.type}; write x.astype(dtype) before")
        return METHODS["astype"](value, dtype)


def _may_repeat(index: Any) -> bool:
    """True if an index may name an element twice: with an array of integers in it."""
    entries = index if isinstance(index, tuple) else (index,)
    arrays = [as_variable(one) for one in entries if isinstance(one, Variable | np.ndarray | list)]
    return any(one.ndim and one.type.kind in "iu" for one in arrays)


PROPERTIES["at"] = entry(At)
