"""What comes in from outside: arrays and numbers as the compiled code takes them, Variables as they are."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from ..types import TensorType, dtype_name
from .variable import Variable, array_of, refuse_other_arrays

_NUMBERS = (bool, int, float, complex, np.bool_, np.number)


def is_number(value: Any) -> bool:
    """Whether `value` is a Python or NumPy number."""
    return isinstance(value, _NUMBERS)


def is_number_list(value: Any) -> bool:
    """Whether `value` is a list that means an array: numbers, or lists of these, all the way down."""
    return type(value) is list and all(isinstance(item, _NUMBERS) or is_number_list(item) for item in value)


def as_argument(value: Any, label: str) -> Any:
    """`value` as a native, C-contiguous array, a number, or the Variable that it is. `label` begins the messages.

    Byte-swapped, strided and read-only arrays come out as NumPy would read them; lists of numbers become arrays.
    Raises TypeError for objects, strings, masked arrays, np.matrix and unsupported dtypes, ValueError for ragged lists.
    """
    if isinstance(value, (Variable, *_NUMBERS)):
        return _checked_number(value, label)
    refuse_other_arrays(value, label)
    if isinstance(value, (str, bytes)) or callable(value):
        raise TypeError(f"{label} is {value!r} ({type(value).__name__}); pass an array or a number")
    try:
        array = array_of(value, label)
    except ValueError as error:
        raise ValueError(f"{label} is no array: {error}") from None
    if array.dtype == object and any(isinstance(item, Variable) for item in array.flat):
        raise TypeError(f"{label} is an object array of variables; write np.stack([...])")
    try:
        dtype = np.dtype(dtype_name(array.dtype))
    except TypeError as error:
        raise TypeError(f"{label} is a {type(value).__name__} of dtype {array.dtype}, not of numbers ({error})") from None
    return np.require(array, dtype, ("C", "A"))


def _checked_number(value: Any, label: str) -> Any:
    if isinstance(value, (np.float16, np.longdouble, np.clongdouble)) and np.dtype(type(value)).name not in ("float64", "complex128"):
        raise TypeError(f"{label} has dtype {np.dtype(type(value))}, which is not supported; write np.float64(...) or np.float32(...)")
    if type(value) is int and not -(2**63) <= value < 2**63:
        instead = f"np.uint64({value}) or float({value})" if 0 < value < 2**64 else f"float({value})"
        raise OverflowError(f"{label} is the Python integer {value}, out of bounds for int64; write {instead}")
    return value


def type_of(value: Any) -> TensorType:
    """The type of a value that `as_argument` gave. Python numbers are weak: they give way to the other operand's dtype."""
    if isinstance(value, Variable):
        return value.type
    if isinstance(value, np.ndarray):
        return TensorType(value.dtype.name, value.shape)
    if isinstance(value, (bool, np.generic)):
        return TensorType(dtype_name(np.asarray(value).dtype))
    if isinstance(value, numbers.Integral):
        return TensorType("int64", (), weak=True)
    return TensorType("float64" if isinstance(value, numbers.Real) else "complex128", (), weak=True)
