"""Arrays made from sizes and numbers, which may be traced: constant ones, ranges, grids, and diagonals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.node import constant, constant_value
from ...ops.card import FOLD_LIMIT
from ...ops.dims import DIM
from ...ops.runtime_attributes import sized
from ...ops.shape import ARANGE
from ...tracebacks import entries
from ...types import dtype_name, numpy_dtype
from ..variable import Variable, as_variable, at_line, check_weak, implements, number_as
from .choices import where
from .joining import common_dtype
from .math import cast
from .shape import broadcast_sizes, broadcast_to, expand_dims, moveaxis, result_type, specify_shape
from .shape_arguments import axes_of, dim, fixed_int, only_c_order, refuse, shape_of, size_of, value_of

# one value everywhere -----------------------------------------------------------------------------------------------


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C") -> Variable:
    """An array of one value; its sizes may be traced.

    Arguments: shape, an integer or a sequence of these; fill_value, a number or what broadcasts to the shape; dtype, that of the
    value unless given.

    Raises ValueError for a negative size: while tracing if it is known, else when it runs.

    >>> import numbascan.tensor as nt
    >>> nt.full((2, nt.lscalar("n")), 1.5)
    <broadcast_to: float64[2, ?]>
    """
    only_c_order("nt.full", order)
    value = as_variable(fill_value)
    check_weak(value, value.dtype if dtype is None else dtype, "np.full: ")
    return broadcast_to(cast(value, value.dtype) if dtype is None else number_as(value, dtype), shape)


def zeros(shape: Any, dtype: Any = "float64", order: str = "C") -> Variable:
    """An array of zeros; its sizes may be traced.

    >>> import numbascan.tensor as nt
    >>> nt.zeros(3)
    <constant: float64[3]>
    """
    return full(shape, 0, dtype or "float64", order)


def ones(shape: Any, dtype: Any = "float64", order: str = "C") -> Variable:
    """An array of ones; its sizes may be traced."""
    return full(shape, 1, dtype or "float64", order)


empty = zeros


@implements(np.full_like)
def full_like(a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **like: Any) -> Variable:
    """An array of one value, of the shape and dtype of `a` unless others are given.

    >>> import numbascan.tensor as nt
    >>> nt.full_like(nt.fmatrix("x"), 2)
    <broadcast_to: float32[?, ?]>
    """
    refuse("np.full_like", **like)
    x = as_variable(a)
    return full(shape_of(x) if shape is None else shape, fill_value, x.dtype if dtype is None else dtype)


@implements(np.zeros_like, np.empty_like, method="zeros_like")
def zeros_like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **like: Any) -> Variable:
    """Zeros, of the shape and dtype of `a` unless others are given."""
    return full_like(a, 0, dtype, order, subok, shape, **like)


@implements(np.ones_like, method="ones_like")
def ones_like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **like: Any) -> Variable:
    """Ones, of the shape and dtype of `a` unless others are given."""
    return full_like(a, 1, dtype, order, subok, shape, **like)


empty_like = zeros_like


def alloc(value: Any, *shape: Any) -> Variable:
    """`value` broadcast to a shape: PyTensor's order of arguments."""
    return broadcast_to(cast(as_variable(value), as_variable(value).dtype), shape)


def fill(a: Any, b: Any) -> Variable:
    """`b` broadcast to the shape of `a`."""
    return alloc(b, *shape_of(as_variable(a)))


# ranges -------------------------------------------------------------------------------------------------------------


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Variable:
    """Evenly spaced numbers from `start` up to, not including, `stop`; one argument is `stop`. All may be traced.

    Returns a vector; its dtype is NumPy's common one of the arguments.

    Raises ZeroDivisionError for a step of 0, when it runs.

    >>> import numbascan.tensor as nt
    >>> nt.arange(nt.lscalar("n"))
    <arange: int64[?]>
    """
    numbers = [0, start, step] if stop is None else [start, stop, step]
    values = [as_variable(number) for number in numbers]
    if any(value.ndim for value in values):
        raise TypeError(f"nt.arange: start, stop and step must be scalars, they are {numbers}{at_line()}")
    known = [constant_value(value.node) for value in values]
    if all(number is not None for number in known) and not _is_long(known, dtype):
        return Variable(constant(np.arange(*numbers if not isinstance(numbers[1], Variable) else known, dtype=dtype)))
    name = common_dtype(values) if dtype is None else dtype_name(dtype)
    first, last, stride = values
    length = size_of(_length(first, last, stride), "nt.arange: the length")
    return Variable(sized(ARANGE, (first.node, stride.node), (length,), dtype=name))


def _is_long(numbers: Sequence[Any], dtype: Any) -> bool:
    """True for integers that are better counted in the loop than kept as an array."""
    are_integers = all(number.dtype.kind in "i" for number in numbers) and dtype_name("int64" if dtype is None else dtype) == "int64"
    return are_integers and numbers[2] != 0 and len(range(*map(int, numbers))) > FOLD_LIMIT


def _length(start: Variable, stop: Variable, step: Variable) -> Any:
    if "f" in (start.type.kind, stop.type.kind, step.type.kind):
        return np.maximum(np.ceil((stop - start) / step), 0).astype("int64")
    starts_at_0, steps_by_1 = (constant_value(x.node) == number for x, number in ((start, 0), (step, 1)))
    if starts_at_0 and steps_by_1:
        return stop if stop.node.op is DIM else np.maximum(stop, 0)
    first, last, stride = (cast(x, "int64") for x in (start, stop, step))
    if steps_by_1:
        return where(last > first, last - first, 0)
    # the difference may exceed int64
    is_up = stride > 0
    distance, stride = (cast(where(is_up, x, -x), "uint64") for x in (last - first, stride))
    return where(where(is_up, last > first, last < first), cast((distance - 1) // stride + 1, "int64"), 0)


@implements(np.linspace)
def linspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0, **device: Any
) -> Any:
    """`num` evenly spaced numbers from `start` to `stop`, which is among them unless endpoint is False.

    Arguments: start, stop, numbers or arrays that broadcast; num, an integer, traced or not; retstep, give the step too; axis, where
    the new axis stands.

    >>> import numbascan.tensor as nt
    >>> nt.linspace(0.0, nt.dscalar("end"), 5)
    <where: float64[5]>
    """
    refuse("np.linspace", **device)
    count = value_of(size_of(num, "np.linspace: num"))
    if isinstance(count, int) and count < 0:
        raise ValueError(f"np.linspace: num cannot be negative, it is {count}{at_line()}")
    real = result_type(as_variable(start), as_variable(stop), 0.0)
    first, last = cast(as_variable(start), real), cast(as_variable(stop), real)
    n_steps = count - 1 if endpoint else count
    divisor = max(n_steps, 1) if isinstance(n_steps, int) else np.maximum(n_steps, 1)
    step = (last - first) / cast(as_variable(divisor), np.zeros(0, real).real.dtype)
    rank = max(first.ndim, last.ndim)
    places = expand_dims(arange(count), tuple(range(1, rank + 1))) if rank else arange(count)
    result = places.astype(step.dtype) * step + first
    if endpoint:
        result = where((places == count - 1) & (places > 0), last, result)
    if dtype is not None and numpy_dtype(dtype).kind in "iu":
        result = np.floor(result)
    result = cast(moveaxis(result, 0, axis) if rank else result, real if dtype is None else dtype)
    return (result, where(as_variable(n_steps) > 0, step, np.nan)) if retstep else result


@implements(np.logspace)
def logspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0) -> Variable:
    """`base` to the powers of `num` evenly spaced numbers from `start` to `stop`."""
    result = np.power(base, linspace(start, stop, num, endpoint, axis=axis))
    return result if dtype is None else cast(result, dtype)


@implements(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Variable, ...]:
    """The coordinates of a grid, one array for each vector; with indexing="xy" the first vector runs along the second axis.

    >>> import numbascan.tensor as nt
    >>> nt.meshgrid(nt.dvector("x"), [0.0, 1.0])[0]
    <broadcast_to: float64[2, ?]>
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"np.meshgrid: indexing is {indexing!r}{at_line()}; use 'xy' or 'ij'")
    vectors = [as_variable(x).reshape(-1) for x in xi]
    order = list(range(len(vectors)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    grids = [x[tuple(slice(None) if axis == k else None for axis in range(len(order)))] for k, x in zip(order, vectors, strict=True)]
    sizes = broadcast_sizes(grids)
    return tuple(grids if sparse else [broadcast_to(x, sizes) for x in grids])


# diagonals ----------------------------------------------------------------------------------------------------------


def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = "float64") -> Variable:
    """A matrix of N rows and M columns with ones on the k-th diagonal.

    >>> import numbascan.tensor as nt
    >>> nt.eye(nt.lscalar("n"), 3)
    <cast: float64[?, 3]>
    """
    rows, columns = arange(N), arange(N if M is None else M)
    return cast(rows[:, None] + k == columns, dtype)


def identity(n: Any, dtype: Any = "float64") -> Variable:
    """The identity matrix of n rows."""
    return eye(n, dtype=dtype)


def identity_like(x: Any) -> Variable:
    """The identity matrix of the shape and dtype of `x`."""
    like = as_variable(x)
    rows, columns = shape_of(like)
    return eye(rows, columns, dtype=like.dtype)


def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = "float64") -> Variable:
    """A matrix of N rows and M columns with ones at and below the k-th diagonal."""
    rows, columns = arange(N), arange(N if M is None else M)
    return cast(rows[:, None] + k >= columns, dtype)


def tril_indices(n: Any, k: Any = 0, m: Any = None) -> tuple[Variable, Variable]:
    """Rows and columns of the places at and below the k-th diagonal of a matrix of n rows and m columns, in C order; all may be traced.

    >>> import numbascan.tensor as nt
    >>> A = nt.dmatrix("A")
    >>> A[nt.tril_indices(A.shape[0])]
    <gather: float64[?]>
    """
    columns = n if m is None else m
    return _places_of(np.clip(arange(n) + k + 1, 0, columns), 0)


def triu_indices(n: Any, k: Any = 0, m: Any = None) -> tuple[Variable, Variable]:
    """Rows and columns of the places at and above the k-th diagonal of a matrix of n rows and m columns, in C order; all may be traced."""
    columns = n if m is None else m
    first = np.clip(arange(n) + k, 0, columns)
    return _places_of(columns - first, first)


def _places_of(counts: Variable, first: Any) -> tuple[Variable, Variable]:
    """Rows and columns of `counts[k]` neighbouring elements in each row k, which begin in column `first`."""
    ends = counts.cumsum()
    places = arange(counts.sum())
    rows = ends.searchsorted(places, side="right")
    starts = first - (ends - counts)
    return rows, places + starts[rows]


@implements(np.tril_indices_from)
def tril_indices_from(arr: Any, k: Any = 0) -> tuple[Variable, Variable]:
    """`tril_indices` for the shape of a matrix."""
    return tril_indices(*_rows_and_columns(arr, k, "np.tril_indices_from"))


@implements(np.triu_indices_from)
def triu_indices_from(arr: Any, k: Any = 0) -> tuple[Variable, Variable]:
    """`triu_indices` for the shape of a matrix."""
    return triu_indices(*_rows_and_columns(arr, k, "np.triu_indices_from"))


def _rows_and_columns(arr: Any, k: Any, name: str) -> tuple[Any, Any, Any]:
    x = as_variable(arr)
    if x.ndim != 2:
        raise ValueError(f"{name} needs a matrix, {x!r} has {x.ndim} axes{at_line()}")
    rows, columns = shape_of(x)
    return rows, k, columns


@implements(np.tril)
def tril(m: Any, k: Any = 0) -> Variable:
    """`m` with zeros above the k-th diagonal of the last two axes.

    >>> import numbascan.tensor as nt
    >>> nt.tril(nt.dmatrix("m"), -1)
    <where: float64[?, ?]>
    """
    x = as_variable(m)
    return where(_lower(x, k), x, x.dtype.type(0))


@implements(np.triu)
def triu(m: Any, k: Any = 0) -> Variable:
    """`m` with zeros below the k-th diagonal of the last two axes."""
    x = as_variable(m)
    return where(_lower(x, k - 1), x.dtype.type(0), x)


def _lower(x: Variable, k: Any) -> Variable:
    if x.ndim < 2:
        raise ValueError(f"np.tril and np.triu need at least two axes, {x!r} has {x.ndim}{at_line()}")
    return arange(dim(x, x.ndim - 2))[:, None] + k >= arange(dim(x, x.ndim - 1))


@implements(np.diag)
def diag(v: Any, k: Any = 0) -> Variable:
    """A matrix with the vector `v` on its k-th diagonal; of a matrix its k-th diagonal.

    >>> import numbascan.tensor as nt
    >>> nt.diag(nt.dvector("v"))
    <set_subtensor: float64[?, ?]>
    """
    x, offset = as_variable(v), fixed_int(k, "np.diag: k")
    if x.ndim == 2:
        return diagonal(x, offset)
    if x.ndim != 1:
        raise ValueError(f"np.diag needs a vector or a matrix, {x!r} has {x.ndim} axes{at_line()}")
    n = dim(x, 0)
    size = n + abs(offset) if offset else n
    return zeros((size, size), x.dtype)[_diagonal_places(n, offset)].set(x)


@implements(np.diagflat)
def diagflat(v: Any, k: Any = 0) -> Variable:
    """A matrix with all elements of `v` on its k-th diagonal."""
    return diag(as_variable(v).reshape(-1), k)


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> Variable:
    """`a` with `val` on its main diagonal. NumPy's function of this name writes into `a`, which a traced value does not allow.

    Arguments: `a`, a matrix, or an array of more axes of one length; val, a number, or a vector with an element for each place; wrap: in a
    matrix of more rows than columns the diagonal begins anew below itself, one row further down.

    >>> import numbascan.tensor as nt
    >>> nt.fill_diagonal(nt.dmatrix("A"), 1.0)
    <set_subtensor: float64[?, ?]>
    """
    x = as_variable(a)
    if x.ndim < 2:
        raise ValueError(f"nt.fill_diagonal: at least two axes are needed, {x!r} has {x.ndim}{at_line()}")
    sizes = shape_of(x)
    if x.ndim > 2:
        if len({size for size in x.type.shape if size is not None}) > 1:
            raise ValueError(f"nt.fill_diagonal: all axes of {x!r} must have one length{at_line()}")
        x = specify_shape(x, (sizes[0],) * x.ndim)
        return x[(arange(sizes[0]),) * x.ndim].set(val)
    rows, columns = sizes
    if not wrap:
        return x[_diagonal_places(_diagonal_length(rows, columns, 0), 0)].set(val)
    places = arange(0, rows * columns, columns + 1)
    return x.reshape(-1)[places].set(val).reshape(sizes)


@implements(np.diagonal, method="diagonal")
def diagonal(a: Any, offset: Any = 0, axis1: int = 0, axis2: int = 1) -> Variable:
    """The diagonal of the plane of two axes, `offset` places to the right, as the last axis.

    >>> import numbascan.tensor as nt
    >>> nt.diagonal(nt.tensor("float64", shape=(3, 4), name="x"), 2)
    <gather: float64[2]>
    """
    x, shift = as_variable(a), fixed_int(offset, "np.diagonal: offset")
    first, second = axes_of((axis1, axis2), x.ndim, "np.diagonal")
    x = moveaxis(x, (first, second), (-2, -1))
    n = _diagonal_length(dim(x, x.ndim - 2), dim(x, x.ndim - 1), shift)
    return x[(*(slice(None),) * (x.ndim - 2), *_diagonal_places(n, shift))]


def _diagonal_places(n: Any, offset: int) -> tuple[Variable, Variable]:
    places = arange(n)
    moved = places + abs(offset) if offset else places
    return (places, moved) if offset >= 0 else (moved, places)


def _diagonal_length(rows: Any, columns: Any, offset: int) -> Any:
    if isinstance(rows, int) and isinstance(columns, int):
        return max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    if offset == 0 and as_variable(rows).node is as_variable(columns).node:
        return rows
    return np.minimum(rows + min(offset, 0), columns - max(offset, 0))


@implements(np.trace, method="trace")
def trace(a: Any, offset: Any = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Variable:
    """The sum along a diagonal, as `diagonal` takes it.

    >>> import numbascan.tensor as nt
    >>> nt.trace(nt.dmatrix("x"))
    <sum: float64[]>
    """
    refuse("np.trace", out=out)
    return diagonal(a, offset, axis1, axis2).sum(axis=-1, dtype=dtype)


@implements(np.vander)
def vander(x: Any, N: Any = None, increasing: bool = False) -> Variable:
    """The powers of x as columns, the highest first unless `increasing`."""
    values = as_variable(x)
    if values.ndim != 1:
        raise ValueError(f"np.vander needs a vector, {values!r} has {values.ndim} axes{at_line()}")
    powers = arange(dim(values, 0) if N is None else N)
    powers = powers if increasing else powers[::-1]
    return values[:, None] ** powers


__all__ = [
    *(
        "alloc",
        "arange",
        "diag",
        "diagflat",
        "diagonal",
        "empty",
        "empty_like",
        "eye",
        "fill",
        "fill_diagonal",
        "full",
        "full_like",
        "identity",
    ),
    *(
        "identity_like",
        "linspace",
        "logspace",
        "meshgrid",
        "ones",
        "ones_like",
        "trace",
        "tri",
        "tril",
        "tril_indices",
        "tril_indices_from",
        "triu",
        "triu_indices",
        "triu_indices_from",
        "vander",
        "zeros",
    ),
    "zeros_like",
]

entries(globals(), __all__)
