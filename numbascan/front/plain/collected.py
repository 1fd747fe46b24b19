"""Lists of traced values as arguments of NumPy's functions: they become arrays, where NumPy would make arrays of objects.

A list in the place of an array becomes what np.array makes of it, with the same dtype.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ..variable import METHODS, Variable, as_variable
from .made import Made
from .rows import Rows
from .stores import holds_traced

_OF_SEVERAL = "arrays tup seq args xi condlist choicelist choices funclist keys operands multi_index sample"
_SEVERAL = frozenset(_OF_SEVERAL.split())
"""Parameters whose lists hold several arrays."""
_LISTS = (list, tuple, Made, Rows)
_OF_LENGTHS = "shape newshape axis axes size reps repeats indices_or_sections pad_width shift dims order kth source destination dtype out"
_NO_ARRAYS = frozenset([*_OF_LENGTHS.split(), "N", "M", "k", "num", "edge_order", "mode"])
"""Parameters whose lists are lengths, axes and the like."""
_COMPILED = {np.concatenate: ("arrays",), np.lexsort: ("keys",), np.einsum: ("operands",)}
"""Functions without a readable signature that take several arrays in one parameter."""


def collected(values: Any) -> Variable:
    """np.array of a list or tuple that holds traced values."""
    x = as_variable(with_no_lists(values))
    return METHODS["astype"](x, x.type.dtype) if x.type.weak else x


def takes_arrays(f: Any) -> bool:
    """Whether `f` is a function of NumPy or SciPy that computes with arrays."""
    if isinstance(f, type):
        return False
    return isinstance(f, np.ufunc) or str(getattr(f, "__module__", "")).startswith(("numpy", "scipy"))


def with_arrays(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call of `f`, with arrays for lists of traced values."""
    if not any(isinstance(value, _LISTS) and holds_traced(value) for value in (*args, *kwargs.values())):
        return args, kwargs
    names = _names(f)
    places = [_array_of(value, names[min(k, len(names) - 1)] if names else "") for k, value in enumerate(args)]
    return tuple(places), {name: _array_of(value, name) for name, value in kwargs.items()}


def _array_of(value: Any, name: str) -> Any:
    if name in _NO_ARRAYS or not isinstance(value, _LISTS) or not holds_traced(value):
        return value
    return with_no_lists(value) if name in _SEVERAL and isinstance(value, (list, tuple)) else collected(value)


def with_no_lists(value: Any) -> Any:
    """A nest with an array for each list, or range, whose length only the run knows."""
    if isinstance(value, Made | Rows):
        return value.array()
    is_nest = isinstance(value, (list, tuple)) and not hasattr(value, "_fields")
    return type(value)(map(with_no_lists, value)) if is_nest and any(isinstance(one, _LISTS) for one in value) else value


@cache
def _names(f: Callable[..., Any]) -> Sequence[str]:
    """The names of the parameters by position; the last one stands for all that follow. Empty if they are not known."""
    if f in _COMPILED:
        return _COMPILED[f]
    try:
        return tuple(inspect.signature(f).parameters)
    except (TypeError, ValueError):
        return ()
