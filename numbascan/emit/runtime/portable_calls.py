"""Functions that exported modules call around their kernels. Their text is copied into these modules (`emit/export/module.py`)."""

from __future__ import annotations

import sys
import zlib
from typing import Any

import numba
import numpy as np
from numba import TypingError, njit, types
from numba.extending import overload


def kept_by_numba(**options: Any) -> Any:
    """A decorator: Numba compiles the function, and keeps its machine code beside this file, for modules of this name.

    To load that code, Numba looks for the module by its name: nothing is kept for a module that `sys.modules` does not hold by it.
    """
    is_found = __spec__ is not None and vars(sys.modules.get(__name__, sys)) is globals()

    def decorated(function: Any) -> Any:
        function.__qualname__ = f"{zlib.crc32(__name__.encode()):08x}.{function.__name__}"  # part of the name of the file
        return njit(cache=is_found, **options)(function)

    return decorated


def argument_of(what: str, value: Any, dtype: str, rank: int, casting: Any) -> Any:
    """`value` as a number, or as a C-contiguous array, of that dtype. TypeError for another rank, and for a dtype that does not fit.

    `casting`: which dtypes of arrays fit, as in np.can_cast. Numbers and lists fit where the dtype holds them, floats where it rounds them.
    """
    array = np.asarray(value)
    is_loose = not np.ndim(value) or isinstance(value, (list, tuple))
    if not (np.can_cast(array.dtype, dtype, casting) or (is_loose and _holds(array, np.dtype(dtype)))):
        raise TypeError(f"{what} has dtype {array.dtype}, where {dtype} is needed; write value.astype({dtype!r}) if that is meant")
    if array.ndim != rank:
        raise TypeError(f"{what} has {array.ndim} dimensions (shape {array.shape}), where {rank} are needed")
    return np.require(array, dtype, ["C", "A"]) if rank else array.astype(dtype)[()]


def _holds(array: Any, dtype: Any) -> bool:
    """True if the dtype holds all the numbers, floats rounded. Numbers are no truth values, and complex numbers are not real."""
    kind, other = array.dtype.kind, dtype.kind
    if kind not in "biufc" or other == "b" or (kind == "c" and other != "c"):
        return False
    with np.errstate(all="ignore"):
        cast = array.astype(dtype)
    if kind in "fc" and other in "fc":
        return np.array_equal(np.isfinite(cast), np.isfinite(array))
    return bool(cast.tolist() == array.tolist())


def leaves_of(what: str, value: Any, form: Any) -> list[Any]:
    """The arrays of a nest, which must have the structure of `form`, a nest with `...` as its leaves."""
    if form is ...:
        return [value]
    if form is None:
        if value is not None:
            raise TypeError(f"{what} must be None")
        return []
    if isinstance(form, dict):
        if not isinstance(value, dict) or value.keys() != form.keys():
            raise TypeError(f"{what} must be a dict with the keys {', '.join(map(repr, form))}")
        return [leaf for key in form for leaf in leaves_of(f"{what}[{key!r}]", value[key], form[key])]
    if not isinstance(value, (list, tuple)) or len(value) != len(form):
        raise TypeError(f"{what} must be a tuple or list of {len(form)}")
    return [leaf for k in range(len(form)) for leaf in leaves_of(f"{what}[{k}]", value[k], form[k])]


def in_compiled_code(what: str, dtype: str, rank: int) -> Any:
    """A function that takes an argument in compiled code: a number, or an array made C-contiguous. Numba refuses other types."""
    order = types.Boolean, types.Integer, types.Float, types.Complex
    kind, number = numba.from_dtype(np.dtype(dtype)), np.dtype(dtype).type
    refused = f"{what} must be {f'an array of {dtype} with {rank} dimensions' if rank else f'a number that {dtype} holds'}"

    def take(value: Any) -> Any:
        raise NotImplementedError(f"{what}: this is compiled code, and Numba is told to compile nothing (NUMBA_DISABLE_JIT)")

    def checked(value: Any) -> Any:
        taken = number(value)
        if taken != value:
            raise OverflowError(refused)
        return taken

    @overload(take, strict=False)
    def typed(value: Any) -> Any:
        if rank and isinstance(value, types.Array) and value.dtype == kind and value.ndim == rank:
            return lambda value: np.ascontiguousarray(value)
        if not rank and isinstance(value, order[: 1 + [isinstance(kind, one) for one in order].index(True)]):
            return checked if isinstance(kind, types.Integer) and value != kind else lambda value: number(value)
        raise TypingError(f"{refused}, not {value}")

    return take


def readable(error: Exception) -> Exception:
    """An error of compiled code, with the numbers that it saw put into its text."""
    text, *numbers = error.args or ("",)
    return type(error)(text.format(*numbers)) if numbers and isinstance(text, str) else error
