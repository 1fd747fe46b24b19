"""Converts values from outside: arrays and numbers to what compiled code takes, or to a given type. Variables stay."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from ..backends import require_cuda
from ..emit.runtime.device_array import DeviceArray, on_gpu, put_beside
from ..types import TensorType, dtype_name, show_shape
from .variable import GREATEST_FLOAT, Variable, array_of, is_large, refuse_other_arrays

_NUMBERS = (bool, int, float, complex, np.bool_, np.number)


def is_number_list(value: Any) -> bool:
    """Whether `value` is a list that means an array: numbers, or lists of these, all the way down."""
    return type(value) is list and all(isinstance(item, _NUMBERS) or is_number_list(item) for item in value)


_ELSEWHERE = "; what is none is named in static_argnames of ns.jit, or read from outside, as by lambda x: f(x, value)"


def as_argument(value: Any, label: str) -> Any:
    """`value` as a native, C-contiguous array, a number, or the Variable that it is. `label` begins the messages.

    Byte-swapped, strided and read-only arrays come out as NumPy would read them; lists of numbers become arrays.
    Raises TypeError for objects, strings, masked arrays, np.matrix and unsupported dtypes, ValueError for ragged lists.
    """
    if isinstance(value, DeviceArray) or on_gpu(value):
        return _on_device(value, label)
    refuse_other_arrays(value, label)
    if isinstance(value, (Variable, *_NUMBERS)):
        return _checked_number(value, label)
    if isinstance(value, (str, bytes)) or callable(value):
        raise TypeError(f"{label} is {value!r} ({type(value).__name__}); pass an array or a number{_ELSEWHERE}")
    try:
        array = array_of(value, label)
    except ValueError as error:
        raise ValueError(f"{label} is no array: {error}") from None
    if array.dtype == object and any(isinstance(item, Variable) for item in array.flat):
        raise TypeError(f"{label} is an object array of variables; write np.stack([...])")
    try:
        dtype = np.dtype(dtype_name(array.dtype))
    except TypeError as error:
        is_number = array.dtype.kind in "iufc"
        seen = f"dtype {array.dtype}" if is_number else f"dtype {array.dtype}, not of numbers"
        raise TypeError(f"{label} is a {type(value).__name__} of {seen} ({error}){'' if is_number else _ELSEWHERE}") from None
    return np.require(array, dtype, ("C", "A"))


def _on_device(value: Any, label: str) -> Any:
    """An array on a GPU, not copied; one of rank 0 as a number."""
    if not isinstance(value, DeviceArray):
        require_cuda(label)
        from ..emit.runtime.cuda import taken

        value = taken(value, label)
    try:
        dtype_name(value.dtype)
    except TypeError as error:
        raise TypeError(f"{label} is on a GPU and has dtype {value.dtype}, not of numbers ({error})") from None
    return value if value.ndim else value.copy_to_host()[()]


def _checked_number(value: Any, label: str) -> Any:
    if isinstance(value, (np.float16, np.longdouble, np.clongdouble)) and np.dtype(type(value)).name not in ("float64", "complex128"):
        raise TypeError(f"{label} has dtype {np.dtype(type(value))}, which is not supported; write np.float64(...) or np.float32(...)")
    if type(value) is int and not -(2**63) <= value < 2**63:
        instead = f"np.uint64({value}) or float({value})" if 0 < value < 2**64 else f"float({value})"
        raise OverflowError(f"{label} is the Python integer {value}, out of bounds for int64; write {instead}")
    return value


def type_of(value: Any) -> TensorType:
    """The type of a value that `as_argument` gave. Python numbers, True and False too, are weak: they give way to the other's dtype."""
    if isinstance(value, Variable):
        return value.type
    if isinstance(value, (np.ndarray, DeviceArray)):
        return TensorType(value.dtype.name, value.shape)
    if isinstance(value, np.generic):
        return TensorType(dtype_name(np.asarray(value).dtype))
    if isinstance(value, bool):
        return TensorType("bool", (), weak=True)
    if isinstance(value, numbers.Integral):
        return TensorType("int64", (), weak=True)
    return TensorType("float64" if isinstance(value, numbers.Real) else "complex128", (), weak=True)


_RANK = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}  # a kind holds the values of those before it
_WEAK = (int, float, complex, list, tuple)


def fit(value: Any, type_: TensorType, where: str, downcast: bool | None = None) -> Any:
    """`value` as an array of `type_`, on a GPU if it is there. `where` begins the messages: which function, which argument.

    An array is cast where NumPy calls it safe; a number, a 0-d array or a list of numbers also where nothing is lost, as 3.0 for int32.
    downcast: None lets Python's floats be rounded, False does not, True casts anything real.
    """
    if isinstance(value, DeviceArray) or on_gpu(value):
        value = _on_device(value, where)
        if isinstance(value, DeviceArray) and value.dtype == np.dtype(type_.dtype):
            _check_shape(value, type_, where)
            return value
    array = _as_array(value, type_, where)
    dtype = np.dtype(type_.dtype)
    if array.dtype != dtype:
        array = _cast(value, array, dtype, where, downcast)
    _check_shape(array, type_, where)
    return put_beside(value, array) if isinstance(value, DeviceArray) else array


def _as_array(value: Any, type_: TensorType, where: str) -> np.ndarray:
    if isinstance(value, Variable):
        raise TypeError(f"{where} is symbolic ({value!r}), but a value is needed; pass an array or a number")
    if is_large(value) and (abs(value) <= GREATEST_FLOAT if type_.kind in "fc" else type_.dtype == "uint64" and 0 <= value < 2**64):
        return np.asarray(value, type_.dtype)
    return np.asarray(as_argument(value, where))


def _cast(value: Any, array: np.ndarray, dtype: np.dtype[Any], where: str, downcast: bool | None) -> np.ndarray:
    with np.errstate(all="ignore"):
        if np.can_cast(array.dtype, dtype, "safe"):
            return array.astype(dtype)
        if _RANK[array.dtype.kind] <= 2 and downcast:
            return array.astype(dtype)
        if (not array.ndim or isinstance(value, (list, tuple))) and _holds(array, dtype):
            return array.astype(dtype)
        if isinstance(value, _WEAK) and not isinstance(value, np.generic) and downcast is not False and _rounds_to(array, dtype):
            return array.astype(dtype)
    lost = f"which {dtype} does not hold{'' if array.ndim or array.dtype.kind == 'c' else f' (the value is {array})'}"
    fix = f"value.astype({dtype.name!r}) if the loss is meant, or allow_input_downcast=True in ns.function"
    raise TypeError(f"{where} has dtype {array.dtype}, {lost}; write {'value.real' if array.dtype.kind == 'c' else fix}")


def _holds(array: np.ndarray, dtype: np.dtype[Any]) -> bool:
    """Whether `dtype` holds every number exactly. No number counts as a bool, no complex number as real."""
    if not array.size:
        return True
    if dtype.kind == "b" or (array.dtype.kind == "c" and dtype.kind != "c"):
        return False
    numbers = array.ravel().tolist()  # Python compares integers with floats exactly
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return all(number == number // 1 and limits.min <= number <= limits.max for number in numbers)
    cast = array.astype(dtype)
    return cast.ravel().tolist() == numbers if array.dtype.kind in "iu" else np.array_equal(cast, array, equal_nan=True)


def _rounds_to(array: np.ndarray, dtype: np.dtype[Any]) -> bool:
    """Whether numbers may be rounded to `dtype`: a float or complex one that keeps their kind, in which no finite one overflows."""
    if dtype.kind not in "fc" or _RANK[array.dtype.kind] > _RANK[dtype.kind]:
        return False
    return np.array_equal(np.isfinite(array.astype(dtype)), np.isfinite(array))


def _check_shape(array: np.ndarray | DeviceArray, type_: TensorType, where: str) -> None:
    if array.ndim != type_.rank:
        raise TypeError(
            f"{where} has {array.ndim} dimensions (shape {array.shape}), but {type_} has {type_.rank}; "
            f"pass an array of shape {show_shape(type_.shape)}, as value.reshape(…) or value[np.newaxis] gives"
        )
    for axis, (seen, dim) in enumerate(zip(array.shape, type_.shape, strict=True)):
        if dim is not None and seen != dim:
            raise ValueError(
                f"{where} has shape {array.shape}, but {type_} has {dim} along axis {axis}; "
                f"pass an array of shape {show_shape(type_.shape)}, or declare the dimension as None"
            )
