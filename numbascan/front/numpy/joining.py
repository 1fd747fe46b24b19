"""Arrays joined end to end or along a new axis, and taken apart again."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.node import constant
from ...ops.shape import CONCATENATE
from ...tracebacks import entries
from ...types import dtype_name
from ..variable import Variable, as_variable, at_line, implements, op
from .math import cast
from .shape import atleast_1d, atleast_2d, atleast_3d, expand_dims, ravel, reshape
from .shape_arguments import as_arrays, axis_of, dim, fixed_int, refuse, shape_of, size_of


def common_dtype(arrays: Sequence[Variable]) -> str:
    """NumPy's common dtype. As there, a Python number that becomes part of an array counts as float64, int64 or complex128."""
    return dtype_name(np.result_type(*(x.type.dtype for x in arrays)))


def _refuse_casts(name: str, arrays: Sequence[Variable], dtype: Any, casting: Any) -> None:
    """TypeError if the rule `casting` forbids to cast an array to the dtype of the result."""
    common = np.dtype(common_dtype(arrays) if dtype is None else dtype_name(dtype))
    for x in arrays:
        if not np.can_cast(x.dtype, common, casting):
            raise TypeError(f"{name}: {x!r} cannot be cast to {common} by the rule casting={casting!r}{at_line()}; write x.astype(…)")


def _joined(arrays: Sequence[Variable], axis: int, dtype: Any, name: str) -> Variable:
    common = common_dtype(arrays) if dtype is None else dtype_name(dtype)
    if len({x.ndim for x in arrays}) > 1:
        raise ValueError(
            f"{name}: the arrays have {', '.join(str(x.ndim) for x in arrays)} dimensions{at_line()}; all must have equally many"
        )
    parts = [cast(x, common) for x in arrays]
    return parts[0] if len(parts) == 1 else op(CONCATENATE, *parts, axis=axis)


@implements(np.concatenate, np.concat)
def concatenate(arrays: Any, axis: int | None = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Variable:
    """The arrays joined end to end along an axis; with axis None all their elements along one.

    Raises ValueError where ranks differ, or lengths along another axis: while tracing if they are known, else when it runs.

    >>> import numbascan.tensor as nt
    >>> nt.concatenate([nt.dvector("x"), [1.0, 2.0]])
    <concatenate: float64[?]>
    """
    refuse("np.concatenate", out=out)
    parts = as_arrays(arrays)
    if not parts:
        raise ValueError(f"np.concatenate needs at least one array{at_line()}")
    _refuse_casts("np.concatenate", parts, dtype, casting)
    if axis is None:
        return _joined([ravel(x) for x in parts], 0, dtype, "np.concatenate")
    if not all(x.ndim for x in parts):
        raise ValueError(f"np.concatenate: numbers cannot be joined along an axis{at_line()}; use np.stack, or np.hstack")
    return _joined(parts, axis_of(axis, parts[0].ndim, "np.concatenate"), dtype, "np.concatenate")


def join(axis: int, *arrays: Any) -> Variable:
    """The arrays joined along an axis: PyTensor's order of arguments."""
    return concatenate(arrays, axis)


@implements(np.stack)
def stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Variable:
    """The arrays joined along a new axis. Numbers of Python count as float64, int64 or complex128, as in NumPy.

    >>> import numbascan.tensor as nt
    >>> x = nt.fscalar("x")
    >>> nt.stack([x, x * 2.0]), nt.stack([x, 1.0])
    (<concatenate: float32[2]>, <concatenate: float64[2]>)
    """
    refuse("np.stack", out=out)
    parts = as_arrays(arrays)
    if not parts:
        raise ValueError(f"np.stack needs at least one array{at_line()}")
    _refuse_casts("np.stack", parts, dtype, casting)
    if len({x.ndim for x in parts}) > 1:
        raise ValueError(f"np.stack: all arrays must have the same shape, they have {[x.type.shape for x in parts]}{at_line()}")
    common = common_dtype(parts) if dtype is None else dtype_name(dtype)
    place = axis_of(axis, parts[0].ndim + 1, "np.stack")
    return _joined([expand_dims(cast(x, common), place) for x in parts], place, common, "np.stack")


@implements(method="_stack")
def _nest(values: Sequence[Any]) -> Variable:
    """A nest of lists, numbers and variables as one array of their common dtype, as `np.array` makes it."""
    leaves = list(_leaves(values))
    if not any(isinstance(leaf, Variable | np.ndarray) for leaf in leaves):
        return Variable(constant(np.asarray([value.tolist() if isinstance(value, np.ndarray) else value for value in values])))
    return _nested(values, common_dtype([as_variable(leaf) for leaf in leaves]))


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.dtype == object)


def _leaves(values: Any) -> Any:
    for value in values:
        if _is_list(value):
            yield from _leaves(value)
        else:
            yield value


def _nested(values: Any, dtype: str) -> Variable:
    if _is_list(values):
        return stack([_nested(value, dtype) for value in values])
    return cast(as_variable(values), dtype)


@implements(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Variable:
    """The arrays side by side: joined along the second axis, vectors and numbers along the first.

    >>> import numbascan.tensor as nt
    >>> nt.hstack([nt.dvector("x"), 1.0])
    <concatenate: float64[?]>
    """
    parts = _several(atleast_1d, tup)
    _refuse_casts("np.hstack", parts, dtype, casting)
    return _joined(parts, 0 if parts[0].ndim == 1 else 1, dtype or _dtype(tup), "np.hstack")


@implements(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Variable:
    """The arrays one under the other: joined along the first axis, vectors as rows.

    >>> import numbascan.tensor as nt
    >>> nt.vstack([nt.dvector("x"), nt.dmatrix("y")])
    <concatenate: float64[?, ?]>
    """
    parts = _several(atleast_2d, tup)
    _refuse_casts("np.vstack", parts, dtype, casting)
    return _joined(parts, 0, dtype or _dtype(tup), "np.vstack")


@implements(np.dstack)
def dstack(tup: Any) -> Variable:
    """The arrays one behind the other: joined along the third axis."""
    return _joined(_several(atleast_3d, tup), 2, _dtype(tup), "np.dstack")


@implements(np.column_stack)
def column_stack(tup: Any) -> Variable:
    """Vectors as columns of a matrix, matrices beside them."""
    wide = [x if x.ndim > 1 else expand_dims(atleast_1d(x), 1) for x in as_arrays(tup)]
    return _joined(wide, 1, _dtype(tup), "np.column_stack")


def _several(widen: Any, arrays: Any) -> list[Variable]:
    parts = as_arrays(arrays)
    if not parts:
        raise ValueError(f"there is nothing to stack{at_line()}; at least one array is needed")
    return [widen(x) for x in parts]


def _dtype(arrays: Any) -> str:
    return common_dtype(as_arrays(arrays))


@implements(np.block)
def block(arrays: Any) -> Variable:
    """One array of blocks: the innermost lists are joined along the last axis, lists of these along the last but one, and so on.

    Raises ValueError for lists of unequal depth and for blocks that do not fit, TypeError for tuples.

    >>> import numbascan.tensor as nt
    >>> A = nt.dmatrix("A")
    >>> nt.block([[A, nt.zeros_like(A)], [nt.zeros_like(A), A]])
    <concatenate: float64[?, ?]>
    """
    depth = _depth(arrays)
    leaves = [as_variable(leaf) for leaf in _leaves([arrays])]
    rank = max(depth, *(leaf.ndim for leaf in leaves))
    return _blocks(arrays, depth, rank, common_dtype(leaves))


def _depth(arrays: Any) -> int:
    """The depth of nested lists. TypeError for a tuple, ValueError for unequal depths and empty lists."""
    if isinstance(arrays, tuple):
        raise TypeError(f"np.block: blocks stand in lists, not in the tuple {arrays!r}{at_line()}; write [...]")
    if not isinstance(arrays, list):
        return 0
    depths = {_depth(part) for part in arrays}
    if len(depths) != 1:
        raise ValueError(f"np.block: {'an empty list' if not depths else 'lists of unequal depth'}{at_line()}; all must be nested equally")
    return depths.pop() + 1


def _blocks(arrays: Any, depth: int, rank: int, dtype: str) -> Variable:
    if depth:
        return _joined([_blocks(part, depth - 1, rank, dtype) for part in arrays], rank - depth, dtype, "np.block")
    x = cast(as_variable(arrays), dtype)
    return expand_dims(x, tuple(range(rank - x.ndim))) if x.ndim < rank else x


def stacklists(arg: Any) -> Variable:
    """A nest of lists as one array, a new axis for each level: PyTensor's name for `np.array` of it.

    >>> import numbascan.tensor as nt
    >>> x = nt.dscalar("x")
    >>> nt.stacklists([[x, 0.0], [1.0, x]])
    <concatenate: float64[2, 2]>
    """
    return as_variable(arg)


@implements(np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Variable:
    """`values` at the end of `arr`, along an axis; without axis all elements along one."""
    return concatenate((arr, values), axis)


# taken apart --------------------------------------------------------------------------------------------------------


def part(x: Variable, axis: int, start: Any, stop: Any, step: Any = None) -> Variable:
    """x[…, start:stop:step, …] along one axis."""
    return x[(*(slice(None),) * axis, slice(start, stop, step))]


@implements(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Variable]:
    """Parts of an array along an axis: equally long ones, or cut at the places given.

    Arguments: indices_or_sections, how many parts (an int), or a sequence of places, traced ones too.

    Raises ValueError where the length is no multiple of the number of parts.

    >>> import numbascan.tensor as nt
    >>> [p.type.shape for p in nt.split(nt.tensor("float64", shape=(6,), name="x"), 3)]
    [(2,), (2,), (2,)]
    """
    x = as_variable(ary)
    place = axis_of(axis, x.ndim, "np.split")
    if np.ndim(indices_or_sections):
        return _cut(x, indices_or_sections, place)
    n_parts = fixed_int(indices_or_sections, "np.split: the number of sections")
    if n_parts < 1:
        raise ValueError(f"np.split: the number of sections must be positive, it is {n_parts}{at_line()}")
    length = x.type.shape[place]
    if length is None:  # the run checks that the length is a multiple
        sizes = shape_of(x)
        parts = reshape(x, (*sizes[:place], n_parts, -1, *sizes[place + 1 :]))
        return [parts[(*(slice(None),) * place, k)] for k in range(n_parts)]
    if length % n_parts:
        raise ValueError(f"np.split: length {length} is no multiple of {n_parts} sections{at_line()}; np.array_split takes any")
    return _cut(x, [k * (length // n_parts) for k in range(1, n_parts)], place)


def _cut(x: Variable, places: Any, axis: int) -> list[Variable]:
    cuts = [0, *(size_of(places[k], "np.split: a place") for k in range(len(places))), None]
    bounds = [Variable(cut) if not isinstance(cut, int | None) else cut for cut in cuts]
    return [part(x, axis, first, last) for first, last in itertools.pairwise(bounds)]


@implements(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Variable]:
    """As `split`, with parts whose lengths may differ by one."""
    x = as_variable(ary)
    place = axis_of(axis, x.ndim, "np.array_split")
    if np.ndim(indices_or_sections):
        return _cut(x, indices_or_sections, place)
    n_parts = fixed_int(indices_or_sections, "np.array_split: the number of sections")
    length = dim(x, place)
    small, longer = length // n_parts, length % n_parts  # the first `longer` parts have one more
    lesser = np.minimum if isinstance(length, Variable) else min
    return _cut(x, [k * small + lesser(k, longer) for k in range(1, n_parts)], place)


@implements(np.hsplit)
def hsplit(ary: Any, indices_or_sections: Any) -> list[Variable]:
    """Parts along the second axis, of a vector along the first."""
    return split(ary, indices_or_sections, 0 if as_variable(ary).ndim == 1 else 1)


@implements(np.vsplit)
def vsplit(ary: Any, indices_or_sections: Any) -> list[Variable]:
    """Parts along the first axis."""
    return split(ary, indices_or_sections, 0)


@implements(np.dsplit)
def dsplit(ary: Any, indices_or_sections: Any) -> list[Variable]:
    """Parts along the third axis."""
    return split(ary, indices_or_sections, 2)


__all__ = [
    *("append", "array_split", "block", "column_stack", "concatenate", "dsplit", "dstack", "hsplit", "hstack", "join", "split", "stack"),
    "stacklists",
    *("vsplit", "vstack"),
]

entries(globals(), __all__)
