"""Parts of arrays at places that only the run knows, under JAX's names: slices of a fixed size that are moved until they fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ops.of_shape import of_shape
from ..tracebacks import entries
from ..types import show_shape
from .numpy.indexing import set_subtensor
from .numpy.shape_arguments import axis_of, shape_of, sizes_of, value_of
from .variable import Variable, as_variable, number_as

_MOST = 2**63 - 1  # the greatest index
_RANGE = {"b": "b", "i": "iufc", "f": "fc", "c": "c"}  # the kinds of dtypes that a Python number of a kind may take


def dynamic_slice(operand: Any, start_indices: Any, slice_sizes: Any, *, allow_negative_indices: bool | Sequence[bool] = True) -> Any:
    """The part of `operand` that begins at `start_indices` and has the shape `slice_sizes`: a new array.

    Arguments:
        operand: an array.
        start_indices: an integer for each axis, known to the run alone or before; negative ones count from the end. A slice that would
            go beyond an end begins where it fits.
        slice_sizes: the length along each axis.
        allow_negative_indices: False, or False for an axis: a negative start means 0 there.

    Raises TypeError for starts that are no integers or not one for each axis, ValueError for sizes that are larger than the array.

    >>> import numbascan.lax as lax, numpy as np
    >>> lax.dynamic_slice(np.arange(5), (4,), (2,))
    array([3, 4])
    """
    x = array_of(operand)
    return _part(x, _starts(start_indices), list(slice_sizes), allow_negative_indices, "lax.dynamic_slice")


def dynamic_slice_in_dim(operand: Any, start_index: Any, slice_size: Any, axis: int = 0, *, allow_negative_indices: bool = True) -> Any:
    """`slice_size` rows of `operand` along an axis, from `start_index` on. Starts and errors as for `dynamic_slice`.

    >>> import numbascan.lax as lax, numpy as np
    >>> lax.dynamic_slice_in_dim(np.arange(5), -4, 3)
    array([1, 2, 3])
    """
    what = "lax.dynamic_slice_in_dim"
    x = array_of(operand)
    along = axis_of(axis, x.ndim, what)
    sizes = [slice_size if k == along else size for k, size in enumerate(_shape(x))]
    return _part(x, _start_along(x, start_index, along), sizes, allow_negative_indices, what)


def dynamic_index_in_dim(operand: Any, index: Any, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True) -> Any:
    """The row of `operand` at `index` along an axis, which has length 1 then, and is left out where `keepdims` is false.

    Negative indices count from the end; beyond an end stands the row there. Errors as for `dynamic_slice`.

    >>> import numbascan.lax as lax, numpy as np
    >>> lax.dynamic_index_in_dim(np.array([[1, 2], [3, 4]]), 7, axis=1, keepdims=False)
    array([2, 4])
    """
    what = "lax.dynamic_index_in_dim"
    x = array_of(operand)
    along = axis_of(axis, x.ndim, what)
    sizes = [1 if k == along else size for k, size in enumerate(_shape(x))]
    row = _part(x, _start_along(x, index, along), sizes, allow_negative_indices, what)
    return row if keepdims else np.squeeze(row, along)


def dynamic_update_slice(operand: Any, update: Any, start_indices: Any, *, allow_negative_indices: bool | Sequence[bool] = True) -> Any:
    """`operand` with the part that begins at `start_indices` replaced by `update`: a new array.

    Arguments: operand, update, arrays of one dtype and rank, where a Python number takes the dtype of `operand`; start_indices,
    allow_negative_indices, as for `dynamic_slice`. An update that would go beyond an end begins where it fits.

    Raises TypeError where dtypes or ranks differ, ValueError for an update that is larger than the array, else as `dynamic_slice`.

    >>> import numbascan.lax as lax, numpy as np
    >>> lax.dynamic_update_slice(np.zeros(4), np.array([1.0, 2.0]), (3,))
    array([0., 0., 1., 2.])
    """
    what = "lax.dynamic_update_slice"
    x = array_of(operand)
    return _updated(x, _of_dtype(update, x, what), _starts(start_indices), allow_negative_indices, what)


def dynamic_update_slice_in_dim(operand: Any, update: Any, start_index: Any, axis: int, *, allow_negative_indices: bool = True) -> Any:
    """`operand` with rows along an axis, from `start_index` on, replaced by `update`. As `dynamic_update_slice` otherwise.

    >>> import numbascan.lax as lax, numpy as np
    >>> lax.dynamic_update_slice_in_dim(np.zeros(4), np.ones(2), 1, axis=0)
    array([0., 1., 1., 0.])
    """
    what = "lax.dynamic_update_slice_in_dim"
    x = array_of(operand)
    starts = _start_along(x, start_index, axis_of(axis, x.ndim, what))
    return _updated(x, _of_dtype(update, x, what), starts, allow_negative_indices, what)


def dynamic_update_index_in_dim(operand: Any, update: Any, index: Any, axis: int, *, allow_negative_indices: bool = True) -> Any:
    """`operand` with the row at `index` along an axis replaced by `update`, which may lack that axis. As `dynamic_update_slice` otherwise.

    >>> import numbascan.lax as lax, numpy as np
    >>> lax.dynamic_update_index_in_dim(np.zeros((2, 2)), np.ones(2), 1, axis=0)
    array([[0., 0.],
           [1., 1.]])
    """
    what = "lax.dynamic_update_index_in_dim"
    x = array_of(operand)
    along = axis_of(axis, x.ndim, what)
    row = _of_dtype(update, x, what)
    row = np.expand_dims(row, along) if row.ndim == x.ndim - 1 else row
    return _updated(x, row, _start_along(x, index, along), allow_negative_indices, what)


# slices ---------------------------------------------------------------------------------------------------------------


def _part(x: Any, starts: list[Any], sizes: list[Any], wraps: bool | Sequence[bool], what: str) -> Any:
    if len(sizes) != x.ndim:
        raise TypeError(f"{what}: slice_sizes has {len(sizes)} entries, but operand has {x.ndim} axes; give one for each")
    lengths = [value_of(size) for size in sizes_of(sizes, f"{what}: slice_sizes")]
    if any(isinstance(length, int) and length < 0 for length in lengths):
        raise ValueError(f"{what}: slice_sizes is {tuple(lengths)}; give lengths of 0 or more")
    _check_fits(lengths, x, "slice_sizes is", what)
    places = _places(x, starts, lengths, wraps, what)
    if not any(isinstance(one, Variable) for one in (x, *starts, *lengths)):
        return x[places].copy()
    part = as_variable(x)[places]
    return Variable(of_shape(part.node, sizes_of(tuple(lengths), "slice_sizes"), f"{what}: the part"))


def _updated(x: Any, update: Any, starts: list[Any], wraps: bool | Sequence[bool], what: str) -> Any:
    if update.ndim != x.ndim:
        raise TypeError(f"{what}: update has {update.ndim} axes, operand {x.ndim}; give as many: an axis of length 1 is update[None]")
    lengths = list(_shape(update))
    _check_fits(lengths, x, "update has shape", what)
    places = _places(x, starts, lengths, wraps, what)
    if not any(isinstance(one, Variable) for one in (x, update, *starts)):
        result = x.copy()
        result[places] = update
        return result
    part = as_variable(x)[places]
    # an update that is longer than the array must not broadcast, nor be cut
    fitting = of_shape(as_variable(update).node, sizes_of(shape_of(part), "update"), f"{what}: update")
    return set_subtensor(part, Variable(fitting))


def _check_fits(lengths: Sequence[Any], x: Any, seen: str, what: str) -> None:
    """ValueError for a length that is known to be larger than that of the array; others are checked when it runs."""
    for length, most in zip(lengths, _shape(x), strict=True):
        if isinstance(length, int) and isinstance(most, int) and length > most:
            shape, whole = [show_shape(tuple([n if isinstance(n, int) else None for n in sizes])) for sizes in (lengths, _shape(x))]
            raise ValueError(f"{what}: {seen} {shape}, but operand {whole}; it must not be larger along any axis")


def _places(x: Any, starts: list[Any], lengths: Sequence[Any], wraps: bool | Sequence[bool], what: str) -> tuple[slice, ...]:
    """The slices of these lengths, as near to their starts as the array allows."""
    if len(starts) != x.ndim:
        raise TypeError(f"{what}: start_indices has {len(starts)} entries, but operand has {x.ndim} axes; give one for each")
    wrapping = [bool(wraps)] * x.ndim if isinstance(wraps, bool | np.bool_) else [bool(one) for one in wraps]
    if len(wrapping) != x.ndim:
        raise ValueError(f"{what}: allow_negative_indices has {len(wrapping)} entries for {x.ndim} axes; give a bool, or one for each")
    firsts = [_first(*one, what) for one in zip(starts, lengths, _shape(x), wrapping, strict=True)]
    return tuple([slice(first, first + length) for first, length in zip(firsts, lengths, strict=True)])


def _first(start: Any, length: Any, most: Any, wraps: bool, what: str) -> Any:
    """The first position of a slice of a length among `most` positions: `start`, or as near to it as the slice fits."""
    place: Any = start if isinstance(start, Variable) else np.asarray(start)
    if place.ndim or place.dtype.kind not in "iu":
        raise TypeError(f"{what}: the start {start!r} is no integer scalar; write .astype('int64') for other dtypes, start[0] for arrays")
    if not isinstance(place, Variable):
        place = max(min(int(place), _MOST), -_MOST)
    elif place.dtype == "uint64":
        place = np.minimum(place, np.uint64(_MOST)).astype("int64")
    else:
        place = place.astype("int64")
    if all(isinstance(one, int) for one in (place, length, most)):
        return min(max(place + most if wraps and place < 0 else place, 0), most - length)
    if wraps:
        place = np.where(place < 0, place + most, place)
    return np.minimum(np.maximum(place, 0), np.maximum(most - length, 0))


# arguments ------------------------------------------------------------------------------------------------------------


def array_of(value: Any) -> Any:
    """A Variable or an array; lists and arrays of variables are stacked."""
    if isinstance(value, Variable):
        return value
    array = np.asarray(value)
    return as_variable(value) if array.dtype == object else array


def _shape(x: Any) -> tuple[Any, ...]:
    return shape_of(x) if isinstance(x, Variable) else x.shape


def _starts(start_indices: Any) -> list[Any]:
    """The starts, one for each axis: a sequence, or an array of one axis."""
    if isinstance(start_indices, Variable):
        return [start_indices[k] for k in range(len(start_indices))]
    return list(start_indices)


def _start_along(x: Any, start: Any, axis: int) -> list[Any]:
    return [start if k == axis else 0 for k in range(x.ndim)]


def _of_dtype(update: Any, x: Any, what: str) -> Any:
    """`update` as an array of the dtype of `x`, which a Python number takes. TypeError for another dtype."""
    array = array_of(update)
    is_number = array.type.weak if isinstance(array, Variable) else isinstance(update, bool | int | float | complex)
    if is_number and not isinstance(update, np.generic) and x.dtype.kind in _RANGE[array.dtype.kind]:
        return number_as(array, x.dtype) if isinstance(array, Variable) else np.array(update, x.dtype)
    if array.dtype != x.dtype:
        raise TypeError(
            f"{what}: update is {array.dtype}, operand {x.dtype}; the dtype must be the same: write update.astype({x.dtype.name!r})"
        )
    return array


__all__ = [
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
]

entries(globals(), __all__)
