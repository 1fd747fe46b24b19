"""Values as a type asks for them: the checks that every array and number passes on its way into a graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..types import TensorType, show_shape
from .conversion import as_argument
from .variable import GREATEST_FLOAT, Variable, is_large

_RANK = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}  # a kind holds the values of those before it
_WEAK = (int, float, complex, list, tuple)


def fit(value: Any, type_: TensorType, where: str, downcast: bool | None = None) -> np.ndarray:
    """`value` as an array of `type_`. `where` begins the messages: which function, which argument.

    downcast: None lets Python numbers (and lists) take a narrower dtype of their kind, False only where that is exact, True casts anything
    real. An array is cast where NumPy calls it safe.
    """
    array = _as_array(value, type_, where)
    dtype = np.dtype(type_.dtype)
    if array.dtype != dtype:
        array = _cast(value, array, dtype, where, downcast)
    _check_shape(array, type_, where)
    return array


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
        if isinstance(value, _WEAK) and not isinstance(value, np.generic) and _holds(array, dtype, downcast):
            return array.astype(dtype)
    fix = f"value.astype({dtype.name!r}) if the loss is meant, or allow_input_downcast=True in ns.function"
    raise TypeError(
        f"{where} has dtype {array.dtype}, which {dtype} does not hold; write {'value.real' if array.dtype.kind == 'c' else fix}"
    )


def _holds(array: np.ndarray, dtype: np.dtype[Any], downcast: bool | None) -> bool:
    """Whether Python numbers, as NumPy reads them, may become `dtype`: integers exactly, floats rounded unless `downcast` is False."""
    if not array.size:
        return True
    if _RANK[array.dtype.kind] > _RANK[dtype.kind]:
        return False
    cast = array.astype(dtype)
    if dtype.kind in "iu" or downcast is False:
        return np.array_equal(cast, array, equal_nan=True)
    return np.array_equal(np.isfinite(cast), np.isfinite(array))


def _check_shape(array: np.ndarray, type_: TensorType, where: str) -> None:
    if array.ndim != type_.rank:
        raise TypeError(
            f"{where} has {array.ndim} dimensions (shape {array.shape}), but {type_} has {type_.rank}; "
            f"pass an array of shape {show_shape(type_.shape)}, as value.reshape(…) or value[np.newaxis] gives"
        )
    for axis, (seen, wanted) in enumerate(zip(array.shape, type_.shape, strict=True)):
        if wanted is not None and seen != wanted:
            raise ValueError(
                f"{where} has shape {array.shape}, but {type_} has {wanted} along axis {axis}; "
                f"pass an array of shape {show_shape(type_.shape)}, or declare the dimension as None"
            )
