"""Products of matrices and tensors. All sums of products become the one card `contract`; products without a sum become elementwise ones.

Inside, every axis has a label: labels that both operands have and the result lacks are summed over.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Hashable, Sequence
from typing import Any

import numpy as np

from ...ops.contract import CONTRACT
from ...tracebacks import entries
from ...types import show_shape
from ..variable import Variable, as_variable, at_line, implements, op
from . import reductions
from .creation import arange, zeros_like
from .joining import common_dtype, stack
from .math import cast
from .shape import moveaxis, ravel, reshape, transpose
from .shape_arguments import dim
from .ufuncs import FUNCTIONS

Labels = Sequence[Hashable]


# sums of products ---------------------------------------------------------------------------------------------------


def contraction(
    name: str, a: Variable, a_labels: Labels, b: Variable, b_labels: Labels, out: Labels, stretch: Collection[Hashable] = ()
) -> Variable:
    """The product of two operands, summed over all labels that `out` lacks.

    No label may occur twice in one operand. An axis of length 1 whose label is in `stretch` fits any length.
    Raises ValueError, which shows both shapes, if lengths differ.
    """
    a, a_labels, b, b_labels = _without_stretched(name, a, a_labels, b, b_labels, stretch)
    a, a_labels = summed(a, a_labels, {*b_labels, *out})
    b, b_labels = summed(b, b_labels, {*a_labels, *out})
    if all(label in out for label in a_labels if label in b_labels):
        return aligned(a, a_labels, out) * aligned(b, b_labels, out)
    number = {label: k for k, label in enumerate(dict.fromkeys((*a_labels, *b_labels)))}
    labels = tuple(tuple(number[label] for label in names) for names in (a_labels, b_labels, out))
    return op(CONTRACT, a, b, labels=labels)


def _without_stretched(
    name: str, a: Variable, a_labels: Labels, b: Variable, b_labels: Labels, stretch: Collection[Hashable]
) -> tuple[Variable, Labels, Variable, Labels]:
    """The operands without axes of length 1 that are longer in the other operand. ValueError if other shared axes differ."""
    dims_a, dims_b = dict(zip(a_labels, a.type.shape, strict=True)), dict(zip(b_labels, b.type.shape, strict=True))
    shared = [label for label in a_labels if label in dims_b]
    for label in shared:
        n, m = dims_a[label], dims_b[label]
        may_stretch = label in stretch and 1 in (n, m)
        if n is not None and m is not None and n != m and not may_stretch:
            raise ValueError(
                f"np.{name}: shapes {show_shape(a.type.shape)} and {show_shape(b.type.shape)} do not fit: axes of lengths {n} and {m} "
                f"meet{at_line()}"
            )
    short_a = [label for label in shared if label in stretch and dims_a[label] == 1 != dims_b[label]]
    short_b = [label for label in shared if label in stretch and dims_b[label] == 1 != dims_a[label]]
    return *_dropped(a, a_labels, short_a), *_dropped(b, b_labels, short_b)


def _dropped(x: Variable, labels: Labels, short: Labels) -> tuple[Variable, Labels]:
    """x without its axes `short`, which have length 1."""
    if not short:
        return x, labels
    index = tuple(0 if label in short else slice(None) for label in labels)
    return x[index], [label for label in labels if label not in short]


def summed(x: Variable, labels: Labels, remaining: Collection[Hashable]) -> tuple[Variable, Labels]:
    """x summed over the labels that are not kept, in its own dtype; True + True is True."""
    axes = tuple(k for k, label in enumerate(labels) if label not in remaining)
    if not axes:
        return x, labels
    total = np.any(x, axis=axes) if x.dtype == bool else reductions.sum(x, axis=axes, dtype=x.dtype)
    return total, [label for label in labels if label in remaining]


def aligned(x: Variable, labels: Labels, out: Labels) -> Variable:
    """x with its axes in the order of `out`, and axes of length 1 for the labels it lacks."""
    order = [labels.index(label) for label in out if label in labels]
    if order != list(range(x.ndim)):
        x = transpose(x, order)
    if len(order) == len(out):
        return x
    return x[tuple(slice(None) if label in labels else np.newaxis for label in out)]


def no_out(name: str, out: Any) -> None:
    """TypeError if an array to write into is given."""
    if out is not None:
        raise TypeError(f"np.{name}(out=…) cannot write into a traced value{at_line()}; use the result")


# products under NumPy's names ---------------------------------------------------------------------------------------


@implements(np.dot, method="dot")
def dot(a: Any, b: Any, out: None = None) -> Variable:
    """The sum of products over the last axis of `a` and the last but one of `b` (the only one of a vector).

    Arguments: arrays or variables of any rank; a scalar multiplies. Returns the other axes of `a`, then those of `b`.

    Raises ValueError where the lengths of the summed axes differ.

    >>> import numbascan.tensor as nt
    >>> nt.dot(nt.tensor("float64", shape=(4, 3)), nt.tensor("float64", shape=(3, 2)))
    <contract: float64[4, 2]>
    """
    no_out("dot", out)
    x, y = as_variable(a), as_variable(b)
    if not x.ndim or not y.ndim:
        return _scaled(x, y)
    x_labels = [*(("a", k) for k in range(x.ndim - 1)), "sum"]
    y_labels: list[Hashable] = [("b", k) for k in range(y.ndim)]
    y_labels[max(y.ndim - 2, 0)] = "sum"
    return contraction("dot", x, x_labels, y, y_labels, [label for label in (*x_labels, *y_labels) if label != "sum"])


def _scaled(x: Variable, y: Variable) -> Variable:
    """x * y, where Python numbers count as arrays: NumPy's products convert them."""
    dtype = common_dtype([x, y])
    return cast(x, dtype) * cast(y, dtype)


def _stacked(name: str, x1: Any, x2: Any, first: Labels, second: Labels) -> Variable:
    """The product over the label "sum" of core axes `first` and `second`; the leading axes broadcast."""
    x, y = as_variable(x1), as_variable(x2)
    for k, (operand, core) in enumerate(((x, first), (y, second))):
        if operand.ndim < len(core):
            raise ValueError(
                f"np.{name}: operand {k} of shape {show_shape(operand.type.shape)} has {operand.ndim} dimensions, but "
                f"needs {len(core)} or more{at_line()}"
            )
    leads = [[("lead", k - n) for k in range(n)] for n in (x.ndim - len(first), y.ndim - len(second))]
    lead = max(leads, key=len)
    out = [*lead, *(label for label in (*first, *second) if label != "sum")]
    return contraction(name, x, [*leads[0], *first], y, [*leads[1], *second], out, stretch=set(lead))


@implements(np.matmul, np.linalg.matmul)
def matmul(x1: Any, x2: Any) -> Variable:
    """The product of matrices in the last two axes, `x1 @ x2`; leading axes broadcast.

    A vector is a row on the left, a column on the right.

    Raises ValueError for scalars, and where the lengths of the summed axes differ.

    >>> import numbascan.tensor as nt
    >>> nt.tensor("float64", shape=(None, 4, 3)) @ nt.dvector("x")
    <contract: float64[?, 4]>
    """
    first, second = ("row", "sum"), ("sum", "column")
    x, y = as_variable(x1), as_variable(x2)
    return _stacked("matmul", x, y, first if x.ndim > 1 else ("sum",), second if y.ndim > 1 else ("sum",))


@implements(np.matvec)
def matvec(x1: Any, x2: Any) -> Variable:
    """Matrices in the last two axes of `x1` times vectors in the last axis of `x2`; leading axes broadcast."""
    return _stacked("matvec", x1, x2, ("row", "sum"), ("sum",))


@implements(np.vecmat)
def vecmat(x1: Any, x2: Any) -> Variable:
    """Conjugated vectors in the last axis of `x1` times matrices in the last two of `x2`; leading axes broadcast."""
    return _stacked("vecmat", conjugated(as_variable(x1)), x2, ("sum",), ("sum", "column"))


@implements(np.vecdot, np.linalg.vecdot)
def vecdot(x1: Any, x2: Any, axis: int = -1) -> Variable:
    """The sum over `axis` of conj(x1) * x2; the other axes broadcast."""
    x, y = (v if axis == -1 else moveaxis(v, axis, -1) for v in map(as_variable, (x1, x2)))
    return _stacked("vecdot", conjugated(x), y, ("sum",), ("sum",))


def conjugated(x: Variable) -> Variable:
    """The complex conjugate; real numbers as they are."""
    return FUNCTIONS["conjugate"](x) if x.dtype.kind == "c" else x


@implements(np.vdot)
def vdot(a: Any, b: Any) -> Variable:
    """The sum of conj(a) * b over all elements.

    Raises ValueError where `a` and `b` have different numbers of elements.
    """
    return contraction("vdot", ravel(conjugated(as_variable(a))), ["sum"], ravel(as_variable(b)), ["sum"], [])


@implements(np.inner)
def inner(a: Any, b: Any) -> Variable:
    """The sum of products over the last axes of `a` and `b`; a scalar multiplies."""
    x, y = as_variable(a), as_variable(b)
    if not x.ndim or not y.ndim:
        return _scaled(x, y)
    first, second = [("a", k) for k in range(x.ndim - 1)], [("b", k) for k in range(y.ndim - 1)]
    return contraction("inner", x, [*first, "sum"], y, [*second, "sum"], [*first, *second])


@implements(np.outer)
def outer(a: Any, b: Any, out: None = None) -> Variable:
    """Every product of an element of `a` and one of `b`, as a matrix; operands of other ranks are flattened."""
    no_out("outer", out)
    return ravel(as_variable(a))[:, np.newaxis] * ravel(as_variable(b))


@implements(np.linalg.outer)
def vector_outer(x1: Any, x2: Any) -> Variable:
    """`outer` of two vectors. Raises ValueError for operands of other ranks."""
    x, y = as_variable(x1), as_variable(x2)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"np.linalg.outer needs vectors, not shapes {show_shape(x.type.shape)} and {show_shape(y.type.shape)}{at_line()}")
    return outer(x, y)


def batched_dot(a: Any, b: Any) -> Variable:
    """`dot(a[k], b[k])` for each k along the first axis, which both have.

    Raises ValueError for scalars and where lengths differ.

    >>> import numbascan.tensor as nt
    >>> nt.batched_dot(nt.dtensor3("a"), nt.dmatrix("b"))
    <contract: float64[?, ?]>
    """
    x, y = as_variable(a), as_variable(b)
    if not x.ndim or not y.ndim:
        raise ValueError(f"nt.batched_dot: {x!r} and {y!r} need an axis of products each{at_line()}; write a * b for a scalar")
    x_labels: list[Hashable] = ["batch", *(("a", k) for k in range(1, x.ndim))]
    y_labels: list[Hashable] = ["batch", *(("b", k) for k in range(1, y.ndim))]
    if x.ndim > 1 and y.ndim > 1:
        x_labels[-1] = y_labels[max(y.ndim - 2, 1)] = "sum"
    return contraction(
        "batched_dot", x, x_labels, y, y_labels, ["batch", *(one for one in (*x_labels, *y_labels) if one not in ("batch", "sum"))]
    )


@implements(np.polyval)
def polyval(p: Any, x: Any) -> Variable:
    """The polynomial with the coefficients `p`, highest power first, at x.

    Up to 32 coefficients, where their number is fixed, by Horner's rule, else as a sum over powers: NaN where a power overflows beside a
    coefficient of 0, as only great x with many coefficients do.

    >>> import numbascan.tensor as nt
    >>> nt.polyval([1.0, 0.0, -2.0], nt.dvector("x"))
    <add: float64[?]>
    """
    coefficients, place = as_variable(p), as_variable(x)
    if coefficients.ndim != 1:
        raise ValueError(f"np.polyval: the coefficients must be a vector, {coefficients!r} has {coefficients.ndim} axes{at_line()}")
    n = dim(coefficients, 0)
    if not isinstance(n, int) or n > 32:
        dtype = common_dtype([coefficients, place])
        powers = cast(place, dtype)[..., None] ** cast(arange(n)[::-1], dtype)
        return matmul(powers, cast(coefficients, dtype))
    value = zeros_like(place)
    for k in range(n):
        value = value * place + coefficients[k]
    return value


@implements(np.tensordot, np.linalg.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Variable:
    """The sum of products over pairs of axes.

    Arguments: `axes`, a number n for the last n axes of `a` with the first n of `b`, or a pair of axes or of lists of axes.
    Returns the other axes of `a`, then those of `b`. Raises ValueError where paired axes differ in length.
    """
    x, y = as_variable(a), as_variable(b)
    pairs = _axis_pairs(axes, x.ndim, y.ndim)
    x_labels: list[Hashable] = [("a", k) for k in range(x.ndim)]
    y_labels: list[Hashable] = [("b", k) for k in range(y.ndim)]
    for number, (i, j) in enumerate(pairs):
        x_labels[i] = y_labels[j] = number
    out = [label for label in (*x_labels, *y_labels) if not isinstance(label, int)]
    return contraction("tensordot", x, x_labels, y, y_labels, out)


def _axis_pairs(axes: Any, rank_a: int, rank_b: int) -> list[tuple[int, int]]:
    if isinstance(axes, (int, np.integer)):
        pairs = [(rank_a - axes + k, k) for k in range(axes)]
    else:
        first, second = ([operator.index(side)] if np.ndim(side) == 0 else [operator.index(axis) for axis in side] for side in axes)
        if len(first) != len(second):
            raise ValueError(f"np.tensordot: axes={axes} names {len(first)} axes of a, but {len(second)} of b{at_line()}")
        pairs = list(zip(first, second, strict=True))
    for i, j in pairs:
        if not (-rank_a <= i < rank_a and -rank_b <= j < rank_b):
            raise ValueError(f"np.tensordot: axes={axes} do not exist in operands of {rank_a} and {rank_b} dimensions{at_line()}")
    numbers = [(i % rank_a, j % rank_b) for i, j in pairs]
    if len({i for i, _ in numbers}) < len(numbers) or len({j for _, j in numbers}) < len(numbers):
        raise ValueError(f"np.tensordot: axes={axes} name an axis twice{at_line()}")
    return numbers


@implements(np.kron)
def kron(a: Any, b: Any) -> Variable:
    """The Kronecker product: a block of `b` for each element of `a`."""
    x, y = as_variable(a), as_variable(b)
    rank = max(x.ndim, y.ndim)
    x, y = (v[(np.newaxis,) * (rank - v.ndim)] if v.ndim < rank else v for v in (x, y))
    if not rank:
        return x * y
    blocks = x[(slice(None), np.newaxis) * rank] * y[(np.newaxis, slice(None)) * rank]
    return reshape(blocks, tuple(n * m for n, m in zip(x.shape, y.shape, strict=True)))


@implements(np.cross)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Variable:
    """The vector product of vectors of 3 elements, which stand in the axes `axisa`, `axisb`, and `axisc` of the result.

    Raises ValueError for vectors of another length; give a third element 0 to those of 2.
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = moveaxis(as_variable(a), axisa, -1), moveaxis(as_variable(b), axisb, -1)
    for v in (x, y):
        if v.type.shape[-1] != 3:
            raise ValueError(f"np.cross needs vectors known to have 3 elements, not shape {show_shape(v.type.shape)}{at_line()}")
    (x0, x1, x2), (y0, y1, y2) = ([v[..., k] for k in range(3)] for v in (x, y))
    return stack([x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0], axis=axisc)


@implements(np.linalg.cross)
def _cross_of_linalg(x1: Any, x2: Any, /, *, axis: int = -1) -> Variable:
    """`cross` as np.linalg has it: with one axis for all."""
    return cross(x1, x2, axis=operator.index(axis))


__all__ = ["batched_dot", "cross", "dot", "inner", "kron", "matmul", "matvec", "outer", "polyval", "tensordot", "vdot", "vecdot", "vecmat"]

entries(globals(), __all__)
