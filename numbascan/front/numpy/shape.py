"""Functions that give an array another shape: NumPy's, and PyTensor's names for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ops.dims import common_dim, dim_node
from ...ops.gradient_identities import COPY
from ...ops.of_shape import of_shape
from ...ops.reshape import reshaped
from ...ops.runtime_attributes import sized
from ...ops.shape import BROADCAST_TO, SQUEEZE, TRANSPOSE
from ...tracebacks import entries
from ...types import broadcast_shapes
from ..variable import PROPERTIES, Variable, as_variable, at_line, implements, op
from .shape_arguments import axes_of, axis_of, count_of, dim, only_c_order, shape_of, sizes_of, value_of

# what is known of an array ------------------------------------------------------------------------------------------


@implements(np.shape)
def shape(a: Any) -> tuple[Any, ...]:
    """The shape of `a`: ints, and traced integers for the dimensions that only the run knows.

    >>> import numbascan.tensor as nt
    >>> nt.shape(nt.tensor("float64", shape=(None, 3), name="x"))
    (<dim: int64[]>, 3)
    """
    return shape_of(as_variable(a))


@implements(np.size)
def size(a: Any, axis: Any = None) -> Any:
    """The number of elements of `a`, or their number along an axis; a traced integer where only the run knows.

    >>> import numbascan.tensor as nt
    >>> nt.size(nt.tensor("float64", shape=(2, 3), name="x"))
    6
    """
    x = as_variable(a)
    return count_of([dim(x, k) for k in axes_of(axis, x.ndim, "np.size")])


@implements(np.ndim)
def ndim(a: Any) -> int:
    """The number of dimensions of `a`."""
    return as_variable(a).ndim


@implements(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    """Whether x has a complex dtype."""
    return as_variable(x).type.kind == "c"


@implements(np.isrealobj)
def isrealobj(x: Any) -> bool:
    """Whether x has a dtype that is not complex."""
    return as_variable(x).type.kind != "c"


@implements(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """The dtype that NumPy's promotion gives; Python numbers give way."""
    weak = {"b": False, "i": 0, "f": 0.0, "c": 0j}
    operands = [(weak[x.type.kind] if x.type.weak else x.dtype) if isinstance(x, Variable) else x for x in arrays_and_dtypes]
    return np.result_type(*operands)


PROPERTIES.update(shape=shape, size=size, flat=lambda x: ravel(x), T=lambda x: transpose(x), mT=lambda x: swapaxes(x, -1, -2))


# reshape ------------------------------------------------------------------------------------------------------------


@implements(np.reshape)
def reshape(a: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> Variable:
    """`a` with the same elements, in C order, in another shape.

    Arguments: shape, an integer or a sequence of these, traced ones too; one may be -1, for what is left over.

    Raises ValueError where the numbers of elements differ: while tracing if they are known, else when it runs.

    >>> import numbascan.tensor as nt
    >>> nt.reshape(nt.dvector("x"), (-1, 2))
    <reshape: float64[?, 2]>
    """
    only_c_order("np.reshape", order)
    x = as_variable(a)
    entries = list(sizes_of(shape, "np.reshape: shape"))
    known = [entry for entry in entries if isinstance(entry, int)]
    if known.count(-1) > 1 or any(entry < -1 for entry in known):
        raise ValueError(f"np.reshape: shape {tuple(known)} has more than one unknown or a negative dimension{at_line()}; one may be -1")
    if tuple(entries) == x.type.shape or (x.ndim == 1 and entries == [-1]):
        return x
    return Variable(reshaped(x.node, tuple(entries)))


@implements(method="reshape")
def _reshape_method(a: Variable, *shape: Any, order: str = "C") -> Variable:
    return reshape(a, shape[0] if len(shape) == 1 else shape, order)


@implements(np.ravel, method="ravel")
def ravel(a: Any, order: str = "C") -> Variable:
    """All elements of `a` in C order, along one axis.

    >>> import numbascan.tensor as nt
    >>> nt.ravel(nt.dmatrix("x"))
    <reshape: float64[?]>
    """
    only_c_order("np.ravel", order)
    x = as_variable(a)
    return x if x.ndim == 1 else reshape(x, -1)


@implements(method="flatten")
def flatten(a: Any, order: Any = "C", ndim: int = 1) -> Variable:
    """`a` with its last axes joined, so that `ndim` are left: by default all elements along one axis.

    >>> import numbascan.tensor as nt
    >>> nt.flatten(nt.dtensor3("x"), ndim=2)
    <reshape: float64[?, ?]>
    """
    only_c_order("flatten", order)
    x = as_variable(a)
    return ravel(x) if ndim == 1 else reshape(x, (*shape_of(x)[: ndim - 1], -1))


@implements(np.squeeze, method="squeeze")
def squeeze(a: Any, axis: Any = None) -> Variable:
    """`a` without axes of length 1: those given, or all that are known to be 1.

    A dimension that is open stays, even if a run gives it the length 1: how many axes there are must not depend on a run.

    Raises ValueError where a given axis has another length.

    >>> import numbascan.tensor as nt
    >>> nt.squeeze(nt.drow("x"), axis=0)
    <squeeze: float64[?]>
    """
    x = as_variable(a)
    if axis is None:
        axis = tuple(k for k, length in enumerate(x.type.shape) if length == 1)
    axes = axes_of(axis, x.ndim, "np.squeeze")
    return op(SQUEEZE, x, axis=tuple(sorted(axes))) if axes else x


@implements(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Variable:
    """`a` with new axes of length 1 at the places `axis` of the result.

    >>> import numbascan.tensor as nt
    >>> nt.expand_dims(nt.dvector("x"), -1)
    <index: float64[?, 1]>
    """
    x = as_variable(a)
    count = len(axis) if isinstance(axis, list | tuple) else 1
    axes = axes_of(axis, x.ndim + count, "np.expand_dims")
    return x[tuple(np.newaxis if k in axes else slice(None) for k in range(x.ndim + count))]


def _at_least(rank: int, arrays: tuple[Any, ...], places: dict[int, tuple[int, ...]]) -> Any:
    wide = [as_variable(a) for a in arrays]
    results = [x if x.ndim >= rank else expand_dims(x, places[x.ndim]) for x in wide]
    return results[0] if len(results) == 1 else tuple(results)


@implements(np.atleast_1d)
def atleast_1d(*arys: Any) -> Any:
    """The arrays with at least one axis."""
    return _at_least(1, arys, {0: (0,)})


@implements(np.atleast_2d)
def atleast_2d(*arys: Any) -> Any:
    """The arrays with at least two axes, new ones first."""
    return _at_least(2, arys, {0: (0, 1), 1: (0,)})


@implements(np.atleast_3d)
def atleast_3d(*arys: Any) -> Any:
    """The arrays with at least three axes, as NumPy puts them: (n,) gives (1, n, 1), (m, n) gives (m, n, 1)."""
    return _at_least(3, arys, {0: (0, 1, 2), 1: (0, 2), 2: (2,)})


# axes ---------------------------------------------------------------------------------------------------------------


@implements(np.transpose, np.permute_dims)
def transpose(a: Any, axes: Sequence[int] | None = None) -> Variable:
    """`a` with its axes in another order: that of `axes`, or reversed.

    >>> import numbascan.tensor as nt
    >>> nt.transpose(nt.tensor("float64", shape=(2, 3, None), name="x"), (2, 0, 1))
    <transpose: float64[?, 2, 3]>
    """
    x = as_variable(a)
    order = tuple(reversed(range(x.ndim))) if axes is None else axes_of(tuple(axes), x.ndim, "np.transpose")
    if len(order) != x.ndim:
        raise ValueError(f"np.transpose: {len(order)} axes are given for an array of {x.ndim}{at_line()}")
    return x if order == tuple(range(x.ndim)) else op(TRANSPOSE, x, axes=order)


@implements(method="transpose")
def _transpose_method(a: Variable, *axes: Any) -> Variable:
    return transpose(a, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else (axes or None))


@implements(np.matrix_transpose)
def matrix_transpose(x: Any, /) -> Variable:
    """x with its last two axes exchanged."""
    return swapaxes(x, -1, -2)


@implements(np.swapaxes, method="swapaxes")
def swapaxes(a: Any, axis1: int, axis2: int) -> Variable:
    """`a` with two axes exchanged."""
    x = as_variable(a)
    first, second = axis_of(axis1, x.ndim, "np.swapaxes"), axis_of(axis2, x.ndim, "np.swapaxes")
    exchanged = {first: second, second: first}
    return transpose(x, tuple(exchanged.get(k, k) for k in range(x.ndim)))


@implements(np.rollaxis)
def rollaxis(a: Any, axis: int, start: int = 0) -> Variable:
    """`a` with an axis moved in front of the one that stands at `start`."""
    x = as_variable(a)
    moved = axis_of(axis, x.ndim, "np.rollaxis")
    place = start + x.ndim if start < 0 else start
    if not 0 <= place <= x.ndim:
        raise ValueError(f"np.rollaxis: start is {start}{at_line()}, and the array has {x.ndim} axes")
    return moveaxis(x, moved, place - (moved < place))


@implements(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Variable:
    """`a` with the axes `source` moved to the places `destination`, the others in their order.

    >>> import numbascan.tensor as nt
    >>> nt.moveaxis(nt.tensor("float64", shape=(2, 3, 4), name="x"), 0, -1)
    <transpose: float64[3, 4, 2]>
    """
    x = as_variable(a)
    moved, places = axes_of(source, x.ndim, "np.moveaxis: source"), axes_of(destination, x.ndim, "np.moveaxis: destination")
    if len(moved) != len(places):
        raise ValueError(f"np.moveaxis: {len(moved)} axes have {len(places)} destinations{at_line()}")
    order = [axis for axis in range(x.ndim) if axis not in moved]
    for place, axis in sorted(zip(places, moved, strict=True)):
        order.insert(place, axis)
    return transpose(x, order)


@implements(method="dimshuffle")
def dimshuffle(x: Any, *pattern: Any) -> Variable:
    """x with its axes in the order of `pattern`; "x" stands for a new axis of length 1, an axis of length 1 may be left out.

    >>> import numbascan.tensor as nt
    >>> nt.dvector("x").dimshuffle("x", 0, "x")
    <index: float64[1, ?, 1]>
    """
    x = as_variable(x)
    order = tuple(pattern[0]) if len(pattern) == 1 and isinstance(pattern[0], list | tuple) else pattern
    axes = axes_of(tuple(axis for axis in order if axis != "x"), x.ndim, "dimshuffle")
    dropped = tuple(axis for axis in range(x.ndim) if axis not in axes)
    if dropped:
        x = squeeze(x, dropped)
        axes = tuple(axis - sum(one < axis for one in dropped) for axis in axes)
    new = tuple(k for k, axis in enumerate(order) if axis == "x")
    x = transpose(x, axes)
    return expand_dims(x, new) if new else x


def shape_padleft(x: Any, n_ones: int = 1) -> Variable:
    """x with `n_ones` new axes of length 1 in front."""
    return expand_dims(x, tuple(range(n_ones)))


def shape_padright(x: Any, n_ones: int = 1) -> Variable:
    """x with `n_ones` new axes of length 1 at the end."""
    return expand_dims(x, tuple(range(-n_ones, 0)))


def shape_padaxis(x: Any, axis: int) -> Variable:
    """x with a new axis of length 1 at `axis`."""
    return expand_dims(x, axis)


# broadcasting -------------------------------------------------------------------------------------------------------


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Variable:
    """`array` repeated along axes of length 1, and along new ones in front, up to `shape`. Nothing is stored.

    Raises ValueError where an axis has another length: while tracing if that is known, else when it runs.

    >>> import numbascan.tensor as nt
    >>> nt.broadcast_to(nt.dscalar("x"), (2, nt.lscalar("n")))
    <broadcast_to: float64[2, ?]>
    """
    x = as_variable(array)
    sizes = sizes_of(shape, "np.broadcast_to: shape")
    if sizes == x.type.shape and not x.type.weak:
        return x
    return Variable(sized(BROADCAST_TO, (x.node,), sizes))


def broadcast_sizes(arrays: Sequence[Variable]) -> tuple[Any, ...]:
    """The shape that arrays broadcast to, traced where only the run knows."""
    common = broadcast_shapes(*(x.type.shape for x in arrays))
    result: list[Any] = []
    for axis, known in enumerate(common, -len(common)):
        sources = [x for x in arrays if x.ndim >= -axis and x.type.shape[axis] is None]
        result.append(value_of(common_dim(dim_node(x.node, axis % x.ndim) for x in sources)) if known is None else known)
    return tuple(result)


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Variable, ...]:
    """The arrays, each broadcast to their common shape."""
    arrays = [as_variable(arg) for arg in args]
    sizes = broadcast_sizes(arrays)
    return tuple(broadcast_to(x, sizes) for x in arrays)


def specify_shape(x: Any, shape: Any) -> Variable:
    """x, with dimensions said to be fixed; None leaves one open. When it runs, another length is an error.

    >>> import numbascan.tensor as nt
    >>> nt.specify_shape(nt.dmatrix("x"), (None, 3))
    <of_shape: float64[?, 3]>
    """
    x = as_variable(x)
    lengths = shape if isinstance(shape, list | tuple) else (shape,)
    if len(lengths) != x.ndim:
        raise ValueError(f"nt.specify_shape: {len(lengths)} dimensions are given for an array of {x.ndim}{at_line()}")
    sizes = sizes_of([dim(x, k) if length is None else length for k, length in enumerate(lengths)], "nt.specify_shape: shape")
    return Variable(of_shape(x.node, sizes, f"nt.specify_shape: {x.name or 'the array'}"))


@implements(np.copy, method="copy")
def copy(a: Any, order: str = "K", subok: bool = False) -> Variable:
    """`a`, as a variable of its own: where one of the two is held constant, or replaced, the other is not. Nothing is copied in a run."""
    return op(COPY, a)


__all__ = [
    *("atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_to", "copy", "dimshuffle", "expand_dims", "flatten"),
    *("matrix_transpose", "moveaxis", "ndim", "ravel", "reshape", "result_type", "rollaxis", "shape", "shape_padaxis", "shape_padleft"),
    *("shape_padright", "size", "specify_shape", "squeeze", "swapaxes", "transpose"),
]

entries(globals(), __all__)
