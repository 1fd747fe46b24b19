"""NumPy's functions that write into arrays: `x.fill(v)`, `x.sort()`, `np.copyto(x, v)`, `np.add.at(x, i, v)`, … for traced arrays.

Each takes NumPy's arguments, and refuses those that it has no meaning for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracebacks import entry
from ..numpy import creation, indexing
from ..numpy.places import flatnonzero
from ..numpy.shape import ravel
from ..numpy.shape_arguments import dim
from ..updates_at import PartAt
from ..variable import METHODS, WRITERS, Variable, as_variable, at_line
from .arrays import check_destinations, number_cast, store, written


def _writes(what: str, *functions: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorator: this function of ours writes into its first argument, as NumPy's `functions` do."""

    def noted(ours: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(ours)
        def checked(array: Any, *args: Any, **kwargs: Any) -> None:
            check_destinations((array,), what)
            ours(array, *args, **kwargs)

        WRITERS.update(dict.fromkeys(functions, entry(checked)))
        return ours

    return noted


@_writes("x.fill(y)", "fill")
def fill(x: Variable, value: Any) -> None:
    """x[...] = value, a number."""
    if as_variable(value).ndim:
        raise ValueError(f"x.fill(y){at_line()}: y is one number, not an array of {as_variable(value).ndim} axes")
    written(x, Ellipsis, value)


@_writes("x.sort()", "sort")
def sort(x: Variable, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
    """Sorts x along an axis."""
    if order is not None:
        raise TypeError(f"x.sort(order=…){at_line()}: traced arrays have no fields")
    written(x, Ellipsis, np.sort(Variable(x.node), axis=axis))


@_writes("np.fill_diagonal", np.fill_diagonal)
def fill_diagonal(a: Variable, val: Any, wrap: bool = False) -> None:
    """Writes the main diagonal of `a`."""
    value = as_variable(val)
    written(a, Ellipsis, creation.fill_diagonal(Variable(a.node), _stored(value, a), wrap))


def _stored(value: Variable, x: Variable) -> Variable:
    """A value in the dtype of the array that it is written into."""
    if value.type.kind == "c" and x.type.kind != "c":
        raise TypeError(f"complex numbers are written into an array of {x.type}{at_line()}; write .real")
    return number_cast(value, x) if value.type.weak else METHODS["astype"](value, x.type.dtype)


@_writes("np.put", np.put, "put")
def put(a: Variable, ind: Any, v: Any, mode: str = "raise") -> None:
    """Writes the elements at some flat indices, in C order."""
    if mode != "raise":
        raise TypeError(f"np.put(mode={mode!r}){at_line()}; write the places as np.clip(k, 0, n - 1) or k % n")
    places, values = ravel(ind), _stored(as_variable(v), a)
    places = METHODS["astype"](places, "int64") if places.type.kind == "b" else places  # 0 and 1, and no mask
    if values.ndim and (values.type.shape != places.type.shape or None in places.type.shape):
        values = _repeated("np.put", values, creation.arange(dim(places, 0)))
    flat = ravel(Variable(a.node))
    written(a, Ellipsis, indexing.set_subtensor(flat[places], values).reshape(a.shape))


@_writes("np.copyto", np.copyto)
def copyto(dst: Variable, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """dst[...] = src, where a mask holds."""
    store(dst, src, "np.copyto", casting, where)


@_writes("np.putmask", np.putmask)
def putmask(a: Variable, mask: Any, values: Any) -> None:
    """Writes the values where a mask holds: those at the same places, counted in C order, of the values repeated."""
    _put_where("np.putmask", a, mask, values, lambda places: places)


@_writes("np.place", np.place)
def place(arr: Variable, mask: Any, vals: Any) -> None:
    """Writes the values, repeated, one after the other where a mask holds."""
    _put_where("np.place", arr, mask, vals, lambda places: creation.arange(dim(places, 0)))


def _put_where(name: str, a: Variable, mask: Any, values: Any, which: Callable[[Variable], Any]) -> None:
    """Writes values where a mask holds; `which`: of the values repeated, by the places."""
    where, value = as_variable(mask), as_variable(values)
    if where.ndim != a.ndim:
        raise ValueError(f"{name}{at_line()}: the mask {where!r} must have the shape of the array, {a!r}")
    where = where if where.type.kind == "b" else where != 0
    if isinstance(values, np.ndarray | np.generic | Variable) and not value.type.weak and not np.can_cast(value.dtype, a.dtype, "safe"):
        raise TypeError(f"{name}{at_line()}: values of {value.dtype} are not safe in an array of {a.dtype}; write values.astype(…)")
    while value.ndim and value.type.shape[0] == 1:
        value = value[0]
    written(a, where, _repeated(name, value, which(flatnonzero(where))) if value.ndim else value)


def _repeated(name: str, values: Variable, places: Variable) -> Variable:
    """The elements, repeated without end, at some places."""
    values = ravel(values)
    if values.type.shape[0] == 0:
        raise ValueError(f"{name}{at_line()}: the values are empty; give one at least")
    return values[places % dim(values, 0)]


@_writes("np.put_along_axis", np.put_along_axis)
def put_along_axis(arr: Variable, indices: Any, values: Any, axis: Any) -> None:
    """Writes the elements at the indices along an axis, for every index along the others."""
    if axis is None:
        raise TypeError(f"np.put_along_axis(axis=None){at_line()}; write np.put(x, indices, values)")
    places = as_variable(indices)
    written(arr, indexing.along_axis(arr, places, axis % arr.ndim), values)


def _at(ufunc: np.ufunc, method: str) -> None:
    """ufunc.at(a, indices, b): as often as an element is named."""

    @_writes(f"np.{ufunc.__name__}.at", (ufunc, "at"))
    def at(a: Variable, indices: Any, b: Any) -> None:
        result = np.result_type(
            *[value.dtype if not value.type.weak else 0.0 if value.type.kind == "f" else 0 for value in (a, as_variable(b))]
        )
        if not np.can_cast(result, a.dtype, "same_kind"):
            raise TypeError(f"np.{ufunc.__name__}.at{at_line()}: {as_variable(b).type} does not go into {a.type}")
        written(a, Ellipsis, getattr(PartAt(Variable(a.node), indices), method)(_stored(as_variable(b), a)))


_METHODS = {np.add: "add", np.subtract: "subtract", np.multiply: "multiply", np.divide: "divide", np.power: "power"}
_METHODS |= {np.minimum: "min", np.maximum: "max"}
for _ufunc, _method in _METHODS.items():
    _at(_ufunc, _method)
