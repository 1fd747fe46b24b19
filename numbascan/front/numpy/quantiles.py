"""What share of the elements is less than a value, and the other way round: quantiles, histograms, the bins of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.node import constant_value
from ...ops.raising import RAISING
from ...tracebacks import entries
from ..variable import Variable, as_variable, at_line, implements, op
from .choices import equal, where
from .creation import arange, linspace, zeros
from .indexing import take_along_axis
from .joining import concatenate
from .math import cast
from .reductions import max, min, searchsorted, sort, sum
from .shape import broadcast_to, expand_dims, moveaxis, ravel, reshape, specify_shape
from .shape_arguments import NOT_GIVEN, axes_of, dim, fixed_int, refuse, shape_of

_METHODS = ("linear", "lower", "higher", "nearest", "midpoint")
_Range = tuple[Any, Any] | None

# quantiles ------------------------------------------------------------------------------------------------------------


def _of_shares(known: Callable[..., Any], whole: int, skips_nan: bool, text: str) -> Callable[..., Variable]:
    """A function like NumPy's, of shares of `whole`."""
    name = f"np.{known.__name__}"

    def function(
        a: Any,
        q: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: Any = NOT_GIVEN,
        *,
        weights: Any = None,
    ) -> Variable:
        refuse(name, out=out, weights=weights, overwrite_input=overwrite_input or None)
        return _quantile(name, a, q, whole, axis, method, keepdims, skips_nan)

    function.__name__ = function.__qualname__ = known.__name__
    function.__doc__ = text
    return implements(known)(function)


quantile = _of_shares(
    np.quantile,
    1,
    False,
    """The values below which the shares `q` (from 0 to 1) of the elements over axes lie; NaN where one is NaN.

    Arguments: q, a number, or a vector, whose axis is the first of the result; method, how to go between two elements: "linear",
    "lower", "higher", "nearest" or "midpoint".

    Raises ValueError for a share outside, when it runs.

    >>> import numbascan.tensor as nt
    >>> nt.quantile(nt.dmatrix("x"), [0.25, 0.75], axis=0).type.shape
    (2, None)
    """,
)
percentile = _of_shares(np.percentile, 100, False, "`quantile` of shares in percent, from 0 to 100.")
nanquantile = _of_shares(np.nanquantile, 1, True, "`quantile` of the elements that are not NaN; NaN where there is none.")
nanpercentile = _of_shares(np.nanpercentile, 100, True, "`percentile` of the elements that are not NaN; NaN where there is none.")


def _quantile(name: str, a: Any, q: Any, whole: int, axis: Any, method: str, keepdims: Any, skips_nan: bool) -> Variable:
    x, q = as_variable(a), as_variable(q)
    if method not in _METHODS:
        raise ValueError(f"{name}: method {method!r} is not supported on traced values{at_line()}; use one of {', '.join(_METHODS)}")
    if x.type.kind == "c" or q.type.kind not in "iuf" or q.ndim > 1:
        raise TypeError(f"{name} of {x!r} at {q!r}{at_line()}: real numbers are needed, and a number or a vector of them for q")
    is_float = x.type.kind == "f"
    shares = cast(q, x.dtype if is_float and q.type.weak else q.dtype if q.type.kind == "f" else "float64")
    is_inside = ((shares >= 0) & (shares <= whole)).all()
    shares = op(RAISING, shares, is_inside, error="ValueError", message=f"{name}: q must be in the range [0, {whole}]")
    shares = shares / shares.dtype.type(whole) if whole != 1 else shares

    axes = axes_of(axis, x.ndim, name)
    others, sizes = [k for k in range(x.ndim) if k not in axes], shape_of(x)
    rows = sort(reshape(np.transpose(x, (*others, *axes)), (*(sizes[k] for k in others), -1)))  # NaN comes last
    last = dim(rows, rows.ndim - 1) - 1
    if is_float and skips_nan:
        last = np.maximum(sum(~np.isnan(rows), axis=-1, keepdims=True) - 1, 0)
    shares = reshape(shares, (-1,))  # along the last axis
    is_end = whole == 1 and q.type.kind in "iu"  # 0 and 1 alone: the ends themselves, in their dtype
    places = shares * cast(as_variable(last), shares.dtype)
    result = _at(rows, places, last, "nearest" if is_end else method, (*shape_of(rows)[:-1], dim(shares, 0)))
    if is_float:
        result = where(np.isnan(rows[..., :1] if skips_nan else rows[..., -1:]), result.dtype.type(np.nan), result)
    result = moveaxis(result, -1, 0)
    keeps = keepdims is not NOT_GIVEN and keepdims
    result = expand_dims(result, tuple(axis + 1 for axis in sorted(axes))) if keeps and axes else result
    return result if q.ndim else result[0]


def _at(rows: Variable, place: Variable, last: Any, method: str, sizes: tuple[Any, ...]) -> Variable:
    """The values of sorted rows at places between their elements, of which `last` is the last."""

    def taken(at: Any) -> Variable:
        return take_along_axis(rows, broadcast_to(np.clip(at.astype("int64"), 0, last), sizes), -1)

    if method in ("lower", "higher", "nearest"):
        return taken({"lower": np.floor, "higher": np.ceil, "nearest": np.rint}[method](place))
    start = np.floor(place)
    share = place - start if method == "linear" else where(place == start, place.dtype.type(0), place.dtype.type(0.5))
    below, above = taken(start), taken(start + 1)
    return where(share >= 0.5, above - (above - below) * (1 - share), below + (above - below) * share)  # as NumPy: exact at both ends


# bins -----------------------------------------------------------------------------------------------------------------


@implements(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: _Range = None, weights: Any = None) -> Variable:
    """The edges of `bins` bins of one width, from the least to the greatest element, or over `range`; edges that are given."""
    refuse("np.histogram_bin_edges", weights=weights)
    if isinstance(bins, str):
        raise TypeError(f"np.histogram: bins is {bins!r}{at_line()}; give how many there are, or their edges")
    edges = as_variable(bins)
    if edges.ndim:
        is_rising = (edges[:-1] <= edges[1:]).all()
        return op(RAISING, edges, is_rising, error="ValueError", message="np.histogram: bins must increase monotonically")
    x, n = ravel(a), fixed_int(bins, "np.histogram: bins")
    if n < 1:
        raise ValueError(f"np.histogram: bins is {n}{at_line()}; one at least is needed")
    if range is None:
        is_empty, every = equal(dim(x, 0), 0), cast(x, "float64")
        ends = min(concatenate([every, [np.inf]])), max(concatenate([every, [-np.inf]]))
        first, last = (where(is_empty, empty, end) for empty, end in zip((0.0, 1.0), ends, strict=True))
        dtype = x.dtype
    else:
        first, last = map(as_variable, range)
        dtype = np.result_type(x.dtype, *(end.dtype for end in (first, last) if not end.type.weak))
        is_range = np.isfinite(first) & np.isfinite(last) & (first <= last)
        message = "np.histogram: range must be finite, and its end not before its start"
        first = op(RAISING, first, is_range, error="ValueError", message=message)
    first, last = (cast(end, "float64") for end in (first, last))
    is_one = first == last
    edges = linspace(where(is_one, first - 0.5, first), where(is_one, last + 0.5, last), n + 1)
    return cast(edges, dtype if np.dtype(dtype).kind == "f" else "float64")


@implements(np.histogram)
def histogram(a: Any, bins: Any = 10, range: _Range = None, density: bool | None = None, weights: Any = None) -> tuple[Variable, Variable]:
    """How many elements lie in each bin, or the sum of their weights, and the edges of the bins; the last bin has both its ends.

    Arguments: bins, how many of one width, an int that is known while tracing, or their rising edges; density: divided by their sum and
    the widths.

    Raises ValueError where range is not given and an element is not finite, when it runs.

    >>> import numbascan.tensor as nt
    >>> nt.histogram(nt.dvector("x"), bins=4)[0].type.shape
    (4,)
    """
    x = ravel(a)
    if x.type.kind == "c" or (weights is not None and as_variable(weights).type.kind == "b"):
        raise TypeError(f"np.histogram of {x!r} with weights {weights!r}{at_line()}: real numbers are counted, and weights are numbers")
    edges = histogram_bin_edges(a, bins, range)
    if not as_variable(bins).ndim and range is None:
        is_finite = np.isfinite(edges[0]) & np.isfinite(edges[-1])
        edges = op(RAISING, edges, is_finite, error="ValueError", message="np.histogram: autodetected range is not finite")
    n = dim(edges, 0) - 1
    bin_ = searchsorted(edges, x, "right") - 1
    is_inside = (x >= edges[0]) & (x <= edges[-1])
    bin_ = where(is_inside, np.minimum(bin_, n - 1), n)
    if weights is None:
        counts = zeros((n + 1,), "int64")[bin_].inc(1)[:n]
    else:
        given = as_variable(weights)
        counts = zeros((n + 1,), given.dtype)[bin_].inc(ravel(specify_shape(given, shape_of(as_variable(a)))))[:n]
    return (counts / (edges[1:] - edges[:-1]) / sum(counts) if density else counts), edges


@implements(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Variable:
    """For each element the number of the bin it lies in: before the first edge 0; edges rise or fall.

    right: whether a bin has its right end rather than its left one. Raises ValueError for edges in no order, when it runs.

    >>> import numbascan.tensor as nt
    >>> nt.digitize(nt.dvector("x"), [0.0, 1.0, 2.5])
    <searchsorted: int64[?]>
    """
    edges, side = as_variable(bins), "left" if right else "right"
    if "c" in (edges.type.kind, as_variable(x).type.kind):
        raise TypeError(f"np.digitize of {x!r} with bins {edges!r}{at_line()}: complex numbers lie in no bin")
    known = constant_value(edges.node)
    if known is not None:
        steps = np.diff(known)
        if not ((steps >= 0).all() or (steps <= 0).all()):
            raise ValueError(f"np.digitize: bins must rise or fall{at_line()}, they are {known}")
        return searchsorted(edges, x, side) if (steps >= 0).all() else len(known) - searchsorted(edges[::-1], x, side)
    rises, falls = (edges[1:] >= edges[:-1]).all(), (edges[1:] <= edges[:-1]).all()
    edges = op(RAISING, edges, rises | falls, error="ValueError", message="np.digitize: bins must rise or fall")
    n = dim(edges, 0)
    ordered = edges[where(rises, arange(n), n - 1 - arange(n))]
    places = searchsorted(ordered, x, side)
    return where(rises, places, n - places)


__all__ = ["digitize", "histogram", "histogram_bin_edges", "nanpercentile", "nanquantile", "percentile", "quantile"]

entries(globals(), __all__)
