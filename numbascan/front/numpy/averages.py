"""Means, variances, medians and norms over axes."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from ...ops.elementary import COMPLEX
from ...ops.sorting import MIDDLES
from ...tracebacks import entries
from ..variable import METHODS, Variable, as_variable, at_line, implements, op
from .choices import clip, where
from .decompositions import svdvals
from .joining import concatenate
from .math import cast
from .reductions import max, min, sum
from .shape import atleast_2d, broadcast_to, expand_dims, moveaxis, reshape, result_type, squeeze
from .shape_arguments import NOT_GIVEN, axes_of, axis_of, count_of, dim, refuse, shape_of


def _averaged_dtype(x: Variable, dtype: Any) -> Any:
    return dtype if dtype is not None else ("float64" if x.type.kind in "biu" else x.dtype)


def _count(x: Variable, axis: Any, dtype: Any) -> Any:
    """The number of elements that are reduced, as a real number of the precision of `dtype`; an int if it is known."""
    number = count_of([dim(x, k) for k in axes_of(axis, x.ndim, "np.mean")])
    return number if isinstance(number, int) else cast(number, np.zeros(0, dtype).real.dtype)


@implements(np.mean, method="mean")
def mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = NOT_GIVEN) -> Variable:
    """The mean of the elements over axes; without axis of all.

    Arguments: axis, an int, several, or None; dtype, in which to compute (float64 for integers); keepdims, leave the axes as 1.

    >>> import numbascan.tensor as nt
    >>> nt.mean(nt.lmatrix("x"), axis=0).dtype
    dtype('float64')
    """
    refuse("np.mean", out=out, where=where)
    x = as_variable(a)
    wide = _averaged_dtype(x, dtype)
    total = sum(cast(x, wide), axis=axis, dtype=dtype, keepdims=keepdims)  # in the dtype that is asked for, as NumPy: uint8 wraps
    result = total / _count(x, axis, wide if np.dtype(wide).kind in "fc" else "float64")
    return result if dtype is None else cast(result, dtype)


@implements(np.var, method="var")
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = NOT_GIVEN,
    mean: Any = NOT_GIVEN,
    correction: Any = NOT_GIVEN,
) -> Variable:
    """The mean squared distance from the mean over axes, divided by n - ddof.

    Arguments: as for `mean`; ddof (or `correction`), the degrees of freedom taken off.

    >>> import numbascan.tensor as nt
    >>> nt.var(nt.fmatrix("x"), axis=0, ddof=1).dtype
    dtype('float32')
    """
    refuse("np.var", out=out, where=where)
    x = as_variable(a)
    wide = _averaged_dtype(x, dtype)
    if np.dtype(wide).kind not in "fc":
        raise TypeError(f"np.var and np.std: dtype is {np.dtype(wide)}{at_line()}; give that of a floating-point number")
    x = cast(x, wide)
    center = METHODS["mean"](x, axis, keepdims=True) if mean is NOT_GIVEN else mean
    apart = x - center
    squares = (apart * np.conj(apart)).real if x.type.kind == "c" else apart * apart
    if correction is not NOT_GIVEN and ddof != 0:
        raise ValueError(f"np.var and np.std: ddof and correction are one thing{at_line()}; give one of them")
    off = ddof if correction is NOT_GIVEN else correction
    count = _count(x, axis, wide) - off
    result = sum(squares, axis=axis, keepdims=keepdims) / (np.maximum(count, 0) if isinstance(count, Variable) else builtins.max(count, 0))
    return cast(result, wide) if x.type.kind == "c" and as_variable(a).type.kind != "c" else result  # as NumPy, of real numbers


@implements(np.std, method="std")
def std(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, **others: Any) -> Variable:
    """The square root of `var`, which says what the arguments mean."""
    return np.sqrt(var(a, axis, dtype, out, ddof, keepdims, **others))


@implements(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    """The mean of the elements, each counted with its weight."""
    x = as_variable(a)
    if weights is None:
        result: Any = mean(x, axis, keepdims=keepdims)
        total: Any = count_of([dim(x, k) for k in axes_of(axis, x.ndim, "np.average")])
    else:
        w = as_variable(weights)
        if w.ndim == 1 and x.ndim > 1:
            w = expand_dims(w, tuple(range(1, x.ndim - axis_of(axis, x.ndim, "np.average"))))
        wide = _averaged_dtype(x * w, None)
        w = w + np.zeros_like(x, dtype=w.dtype)
        total = sum(cast(w, wide), axis=axis, keepdims=keepdims)
        result = sum(cast(x, wide) * w, axis=axis, keepdims=keepdims) / total
    return (result, np.zeros_like(result) + total) if returned else result


@implements(np.median)
def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Variable:
    """The middle element over axes, or the mean of the two in the middle; NaN where one is NaN, and of nothing.

    Raises IndexError where only the run knows that there is nothing.

    >>> import numbascan.tensor as nt
    >>> nt.median(nt.dmatrix("x"), axis=0).ndim
    1
    """
    refuse("np.median", out=out)
    x = as_variable(a)
    axes = axes_of(axis, x.ndim, "np.median")
    others = [k for k in range(x.ndim) if k not in axes]
    sizes = shape_of(x)
    if 0 in x.type.shape:
        lengths = [(1 if k in axes else sizes[k]) for k in range(x.ndim) if k in others or (keepdims is not NOT_GIVEN and keepdims)]
        return broadcast_to(cast(as_variable(np.nan), _averaged_dtype(x, None)), lengths)
    rows = reshape(np.transpose(x, (*others, *axes)), (*(sizes[k] for k in others), -1))
    middles, n = op(MIDDLES, rows), dim(rows, rows.ndim - 1)
    lower = cast(middles[..., 0], _averaged_dtype(x, None))
    middle = (lower + middles[..., 1]) / 2
    if not isinstance(n, int):
        middle = where(n % 2 == 1, lower, middle)
    elif n % 2 == 1:  # the sum of a number and itself may be infinite
        middle = lower
    return expand_dims(middle, tuple(sorted(axes))) if keepdims is not NOT_GIVEN and keepdims and axes else middle


@implements(np.cov)
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Variable:
    """The covariances of quantities, each a row of `m` (a column, without `rowvar`): a matrix, one number for a vector.

    One row that only the run knows to be one gives a matrix of shape (1, 1), where NumPy gives a number.

    Arguments: y, more quantities; bias, divide by n and not by n - 1; ddof, by n - ddof; fweights, how often each sample counts, integers;
    aweights, the weight of each sample. Negative weights are not looked for.

    Raises ValueError for more than two axes, TypeError for fweights that are not integers.

    >>> import numbascan.tensor as nt
    >>> nt.cov(nt.dmatrix("samples")).ndim
    2
    """
    operands = [as_variable(one) for one in (m, y) if one is not None]
    if any(x.ndim > 2 for x in operands):
        raise ValueError(f"np.cov: m and y have one axis or two, they are {', '.join(map(repr, operands))}{at_line()}")
    if ddof is not None and ddof != int(ddof):
        raise ValueError(f"np.cov: ddof is {ddof!r}{at_line()}; give an int")
    wide = result_type(*operands, np.float64) if dtype is None else dtype
    if np.dtype(wide).kind not in "fc":
        raise TypeError(f"np.cov and np.corrcoef: dtype is {np.dtype(wide)}{at_line()}; give that of a floating-point number")
    rows = [cast(atleast_2d(x), wide) for x in operands]
    if not rowvar:  # as NumPy: a first vector is a row, and a second one that has one row is left alone
        rows[0] = rows[0] if operands[0].ndim == 1 else rows[0].T
        rows[1:] = [x if x.type.shape[0] == 1 else x.T for x in rows[1:]]
    samples = concatenate(rows, axis=0)
    off = int(not bias) if ddof is None else int(ddof)
    weights = _weights(fweights, aweights)
    means, totals = average(samples, axis=1, weights=weights, returned=True)
    total = cast(as_variable(dim(samples, 1)) if weights is None else weights.sum(), totals.dtype)
    if weights is not None and aweights is not None and off:
        freedom = total - off * (weights * cast(as_variable(aweights), "float64")).sum() / total
    else:
        freedom = total - off
    apart = samples - means[:, None]
    products = (apart if weights is None else apart * weights) @ (apart.T if apart.type.kind != "c" else np.conj(apart.T))
    result = products * (1 / np.maximum(freedom, 0))
    return squeeze(result, axis=tuple(k for k in (0, 1) if result.type.shape[k] == 1))


def _weights(fweights: Any, aweights: Any) -> Variable | None:
    """The product of both weights of samples; None if neither is given."""
    result: Variable | None = None
    for name, values in (("fweights", fweights), ("aweights", aweights)):
        if values is None:
            continue
        one = as_variable(values)
        if one.ndim != 1 or (name == "fweights" and one.type.kind not in "iu"):
            raise TypeError(f"np.cov: {name} is {one!r}{at_line()}; give a vector{' of integers' if name == 'fweights' else ''}")
        result = cast(one, "float64") if result is None else result * one
    return result


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Variable:
    """The covariances divided by the standard deviations: between -1 and 1. Arguments as for `cov`.

    >>> import numbascan.tensor as nt
    >>> nt.corrcoef(nt.dmatrix("samples")).ndim
    2
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim < 2:
        return c / c
    deviations = np.sqrt(np.diagonal(c).real)
    c = c / deviations[:, None] / deviations
    return op(COMPLEX, clip(c.real, -1, 1), clip(c.imag, -1, 1)) if c.type.kind == "c" else clip(c, -1, 1)


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Variable:
    """The norm of vectors (one axis) or matrices (two); without axis of x as it is, without ord of all its elements as one vector.

    Arguments: ord, for vectors None, 0, any number, inf or -inf; for matrices None, "fro", "nuc" (the sum of singular values), 1, -1, 2
    or -2 (the greatest and the least of these), inf or -inf.

    Raises ValueError for any other ord.

    >>> import numbascan.tensor as nt
    >>> nt.norm(nt.dmatrix("x"), axis=1)
    <sqrt: float64[?]>
    """
    values = as_variable(x)
    if values.type.kind in "biu":
        values = cast(values, "float64")
    axes = axes_of(axis, values.ndim, "np.linalg.norm")
    if ord is None or (isinstance(ord, str) and ord in ("fro", "f") and len(axes) == 2) or (ord == 2 and len(axes) == 1):
        squares = (values * np.conj(values)).real if values.type.kind == "c" else values * values
        return np.sqrt(sum(squares, axis=axes, keepdims=keepdims))
    if 0 in [values.type.shape[k] for k in axes] and ord in ((np.inf,) if len(axes) == 1 else (1, 2, np.inf)):
        return sum(abs(values), axis=axes, keepdims=keepdims)  # the greatest of no lengths is 0
    if len(axes) == 2 and ord in ("nuc", 2, -2):
        singular = svdvals(moveaxis(values, axes, (-2, -1)))
        chosen = {"nuc": sum, 2: max, -2: min}[ord](singular, axis=-1)
        return expand_dims(chosen, tuple(sorted(axes))) if keepdims else chosen
    if isinstance(ord, str) or len(axes) not in (1, 2) or (len(axes) == 2 and ord not in (1, -1, np.inf, -np.inf)):
        raise ValueError(f"np.linalg.norm: ord={ord!r} over {len(axes)} axes is not supported on traced values{at_line()}; leave ord out")
    return _vector_norm(values, ord, axes, keepdims) if len(axes) == 1 else _matrix_norm(values, ord, axes, keepdims)


@implements(method="norm")
def _norm_method(x: Variable, L: Any = 2, axis: Any = None, keepdims: bool = False) -> Variable:
    """PyTensor's `x.norm(L)`: all elements, or those along axes, as one vector. NumPy's norm of two axes is that of a matrix."""
    axes = axes_of(axis, x.ndim, "x.norm")
    values = cast(x, "float64") if x.type.kind in "biu" else x
    return norm(values, None, axes, keepdims) if L in (None, 2) else _vector_norm(values, L, axes, keepdims)


def _vector_norm(x: Variable, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Variable:
    if ord == 0:
        return cast(sum(x != 0, axis=axes, keepdims=keepdims), np.zeros(0, x.dtype).real.dtype)
    lengths = abs(x)
    if ord in (np.inf, -np.inf):
        return (max if ord > 0 else min)(lengths, axis=axes, keepdims=keepdims)
    if ord == 1:
        return sum(lengths, axis=axes, keepdims=keepdims)
    return sum(lengths**ord, axis=axes, keepdims=keepdims) ** (1.0 / ord)


def _matrix_norm(x: Variable, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Variable:
    summed, compared = (axes[0], axes[1]) if abs(ord) == 1 else (axes[1], axes[0])
    totals = sum(abs(x), axis=summed, keepdims=True)
    result = (max if ord > 0 else min)(totals, axis=compared, keepdims=True)
    return result if keepdims else squeeze(result, axis=axes)


__all__ = ["average", "corrcoef", "cov", "mean", "median", "norm", "std", "var"]

entries(globals(), __all__)
