"""Functions of sets of values, and how often each stands in an array."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...tracebacks import entries
from ..variable import Variable, as_variable, at_line, implements, number_as
from .choices import where
from .creation import arange, zeros
from .indexing import not_negative
from .joining import concatenate
from .math import cast
from .places import flatnonzero
from .rearranging import diff
from .reductions import argsort, searchsorted, sort
from .shape import ravel, reshape, specify_shape
from .shape_arguments import dim, shape_of, size_of, value_of


@implements(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: Any = 0, *, length: Any = None) -> Variable:
    """How often each of the integers 0, 1, … stands in the vector `x`; with weights the sums of these.

    Arguments: weights, a number for each element of x; minlength, the least length of the result; length (of `nt.bincount` alone), its
    length, for steps of loops and for lanes, where it must not depend on values: without it the greatest element of x says it.

    Raises IndexError for an element that is negative, or not less than `length`, when it runs.

    >>> import numbascan.tensor as nt
    >>> nt.bincount(nt.lvector("x"), length=4)
    <inc_subtensor: int64[4]>
    """
    numbers = as_variable(x)
    if numbers.ndim != 1 or numbers.type.kind not in "biu" or numbers.type.dtype == "uint64":
        raise TypeError(f"np.bincount: x is {numbers!r}{at_line()}; a vector of integers is needed, as x.astype('int64') gives")
    numbers = cast(numbers, "int64")
    if length is None:
        least = cast(as_variable(value_of(size_of(minlength, "np.bincount: minlength"))), "int64")
        length = concatenate([numbers, reshape(least, (1,)) - 1]).max() + 1
    places = not_negative(numbers, length)
    if weights is None:
        return zeros((length,), "int64")[places].inc(1)
    return zeros((length,))[places].inc(cast(specify_shape(weights, shape_of(numbers)), "float64"))


@implements(np.isin)
def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: str | None = None) -> Variable:
    """Whether each of the elements is among `test_elements`, or with `invert` is not; NaN is among none.

    `assume_unique` and `kind` say how NumPy searches, and change nothing here.

    >>> import numbascan.tensor as nt
    >>> nt.isin(nt.lvector("k"), [1, 2, 5])
    <any: bool[?]>
    """
    if kind not in (None, "sort", "table"):
        raise ValueError(f"np.isin: kind is {kind!r}{at_line()}; use 'sort', 'table' or None")
    x, others = as_variable(element), ravel(as_variable(test_elements))
    n = dim(others, 0)
    if isinstance(n, int) and n <= 16:
        result: Any = (x[..., None] == others).any(axis=-1)
    else:
        ordered = sort(others)
        result = (searchsorted(ordered, x, "right") > searchsorted(ordered, x)) & (x == x)
    return ~result if invert else result


@implements(np.unique)
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The values of `ar`, each once, in ascending order.

    Arguments:
        return_index: give the place of the first of each, too.
        return_inverse: the place in the result of each element of `ar`; `size` or more for a value that has no room there.
        return_counts: how often each stands in `ar`.
        equal_nan: whether NaN is one value. sorted: changes nothing, they are in order in any case.
        size (of `nt.unique` alone): the length of the result, for steps of loops and for lanes, where it must not depend on values, as in
            JAX's function of this name: the first `size` values.
        fill_value: what stands behind the last value; the least one unless given. Its place there is that of the least, its count 0.

    Returns the values, or a tuple of these and what else was asked for.

    >>> import numbascan.tensor as nt
    >>> nt.unique(nt.dvector("x"), size=3)
    <where: float64[3]>
    """
    if axis is not None:
        raise TypeError(f"nt.unique(axis={axis!r}) is not supported on traced values{at_line()}; leave axis out")
    x = as_variable(ar)
    values = ravel(x)
    order = argsort(values)
    values, n = values[order], dim(values, 0)
    before = np.roll(values, 1)
    is_new: Any = (values != before) & ~(np.isnan(values) & np.isnan(before)) if equal_nan and x.type.kind in "fc" else values != before
    is_new = is_new | (arange(n) == 0)
    number = is_new.cumsum() - 1
    if size is None:
        first = flatnonzero(is_new)
        results = [values[first], order[first]]
        counts = diff(concatenate([first, [n]])) if return_counts else None
    else:
        results, counts = _first(values, order, is_new, number, size, fill_value)
    inverse = reshape(zeros((n,), "int64")[order].set(number), shape_of(x)) if return_inverse else None
    asked = [results[0], *[results[1]] * bool(return_index), *[inverse] * bool(return_inverse), *[counts] * bool(return_counts)]
    return asked[0] if len(asked) == 1 else tuple(asked)


def _first(
    values: Variable, order: Variable, is_new: Variable, number: Variable, size: Any, fill_value: Any
) -> tuple[list[Variable], Variable]:
    """The first `size` values with the places of the first of each, and how often each stands there."""
    try:
        room = operator.index(size)
    except TypeError:
        room = -1
    if room < 0:
        raise TypeError(f"nt.unique: size is {size!r}{at_line()}; give an int that is known while tracing, 0 or more")
    place = where(is_new & (number < room), number, room)  # values without room go to an extra place behind the last
    is_value = arange(room) < is_new.sum()

    def filled(values: Variable, fill: Any) -> Variable:
        listed = zeros((room + 1,), values.dtype)[place].set(values)
        return where(is_value, listed[:room], listed[0] if fill is None else number_as(as_variable(fill), values.dtype))

    counts = zeros((room + 1,), "int64")[np.minimum(number, room)].inc(1)[:room]
    return [filled(values, fill_value), filled(order, None)], counts


@implements(np.union1d)
def union1d(ar1: Any, ar2: Any) -> Variable:
    """The values of both arrays, each once, in ascending order."""
    return unique(concatenate([ravel(ar1), ravel(ar2)]))


@implements(np.setdiff1d)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Variable:
    """The values of `ar1` that `ar2` lacks: each once, in ascending order, or those of a set (`assume_unique`) in their order."""
    values = ravel(ar1) if assume_unique else unique(ar1)
    return values[isin(values, ar2, invert=True)]


@implements(np.intersect1d)
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The values that both arrays have, each once, in ascending order.

    return_indices: give the places of the first of each in `ar1` and in `ar2`, too.
    """
    (one, first), (other, second) = (_with_places(values, assume_unique) for values in (ar1, ar2))
    every = concatenate([one, other])
    order = argsort(every)
    every = every[order]
    at = flatnonzero(every[1:] == every[:-1])
    common = every[at]
    return (common, first[order[at]], second[order[at + 1] - dim(one, 0)]) if return_indices else common


def _with_places(values: Any, is_set: bool) -> Any:
    x = ravel(values)
    return (x, arange(dim(x, 0))) if is_set else unique(x, return_index=True)


@implements(np.setxor1d)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Variable:
    """The values that one of the arrays has and the other lacks, each once, in ascending order."""
    every = sort(concatenate([ravel(ar) if assume_unique else unique(ar) for ar in (ar1, ar2)]))
    differs = concatenate([[True], every[1:] != every[:-1], [True]])
    return every[(differs[1:] & differs[:-1])[: dim(every, 0)]]


__all__ = ["bincount", "intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique"]

entries(globals(), __all__)
