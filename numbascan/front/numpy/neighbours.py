"""What neighbours along an axis make (convolutions, correlations, slopes), and polynomials through points."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ops.raising import RAISING
from ...tracebacks import entries
from ..variable import Variable, as_variable, at_line, implements, op
from .choices import where
from .creation import arange, vander
from .joining import common_dtype, concatenate, part
from .math import cast
from .rearranging import diff
from .reductions import sum
from .shape import expand_dims, specify_shape
from .shape_arguments import axes_of, dim, fixed_int, refuse

_MODES = ("full", "same", "valid")


@implements(np.convolve)
def convolve(a: Any, v: Any, mode: str = "full") -> Variable:
    """The convolution of two vectors: of length n + m - 1, or of its middle max(n, m) ("same") or max(n, m) - min(n, m) + 1 ("valid").

    >>> import numbascan.tensor as nt
    >>> nt.convolve(
    ...     nt.tensor("float64", shape=(20,), name="x"), [0.25, 0.5, 0.25], mode="same"
    ... )
    <sum: float64[20]>
    """
    x, kernel = _vectors("np.convolve", a, v)
    least = np.minimum(dim(x, 0), dim(kernel, 0))
    return _windows("np.convolve", x, kernel[::-1], mode, (least - 1) // 2)


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: str = "valid") -> Variable:
    """The sums of `a` times the conjugate of `v`, moved along it; lengths as for `convolve`."""
    x, other = _vectors("np.correlate", a, v)
    n, m = dim(x, 0), dim(other, 0)
    least: Any = np.minimum(n, m)
    return _windows(
        "np.correlate",
        x,
        as_variable(np.conj(other)) if other.type.kind == "c" else other,
        mode,
        np.where(n < m, least // 2, (least - 1) // 2),
    )


def _vectors(name: str, a: Any, v: Any) -> list[Variable]:
    vectors = [as_variable(a), as_variable(v)]
    for x in vectors:
        if x.ndim != 1 or x.type.shape[0] == 0:
            raise ValueError(f"{name} of {x!r}{at_line()}: vectors with an element at least are needed")
    return [_of_length(x, dim(x, 0), 1, f"{name}: an array is empty") for x in vectors]


def _of_length(x: Variable, n: Any, least: int, message: str) -> Variable:
    """x, where a length that only the run knows is enough; else ValueError at the run."""
    return x if isinstance(n, int) else op(RAISING, x, as_variable(n) >= least, error="ValueError", message=message)


def _windows(name: str, x: Variable, weights: Variable, mode: str, same: Any) -> Variable:
    """The weighted sums of all windows of x; `same`: the first of them in mode "same"."""
    if mode not in _MODES:
        raise ValueError(f"{name}: mode is {mode!r}{at_line()}; use one of {', '.join(_MODES)}")
    n, m = dim(x, 0), dim(weights, 0)
    start, count = {
        "full": (0, n + m - 1),
        "same": (same, np.maximum(n, m)),
        "valid": (np.minimum(n, m) - 1, np.maximum(n, m) - np.minimum(n, m) + 1),
    }[mode]
    dtype = common_dtype([x, weights])
    at = (arange(count) + start - (m - 1))[:, None] + arange(m)
    inside = cast(x, dtype)[np.clip(at, 0, n - 1)]
    is_inside = (at >= 0) & (at < n)  # outside there is nothing, and not 0: 0 * inf is NaN
    if dtype == "bool":
        return (inside & weights & is_inside).any(axis=1)
    return sum(where(is_inside, inside * cast(weights, dtype), np.dtype(dtype).type(0)), axis=1, dtype=dtype)


@implements(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """The slopes of the values `f` along axes, from both neighbours; at the ends from one side.

    Arguments: varargs, nothing, one distance for all axes, or for each axis a distance or a vector of coordinates; edge_order, 1 or 2: how
    many differences an end takes.

    Returns an array like f, or a tuple of these where there are several axes.

    Raises ValueError for axes of fewer than edge_order + 1 elements, when it runs where only the run knows how many there are.

    >>> import numbascan.tensor as nt
    >>> nt.gradient(nt.tensor("float64", shape=(5,), name="x"), 0.1)
    <concatenate: float64[5]>
    """
    x = as_variable(f)
    axes = axes_of(axis, x.ndim, "np.gradient")
    if len(varargs) not in (0, 1, len(axes)) or (len(varargs) == 1 != len(axes) and as_variable(varargs[0]).ndim):
        raise TypeError(
            f"np.gradient: {len(varargs)} spacings for {len(axes)} axes{at_line()}; give none, one distance, or one for each axis"
        )
    if edge_order not in (1, 2):
        raise ValueError(f"np.gradient: edge_order is {edge_order!r}{at_line()}; use 1 or 2")
    if x.type.kind == "b":
        raise TypeError(f"np.gradient of truth values {x!r}{at_line()}: write x.astype(float)")
    x = x if x.type.kind in "fc" else cast(x, "float64")
    spacings = (1.0,) * len(axes) if not varargs else varargs * len(axes) if len(varargs) == 1 else varargs
    slopes = [_slope(x, axis, as_variable(spacing), edge_order) for axis, spacing in zip(axes, spacings, strict=True)]
    return tuple(slopes) if len(slopes) > 1 else slopes[0]


def _slope(x: Variable, axis: int, spacing: Variable, edge_order: int) -> Variable:
    n = dim(x, axis)
    if isinstance(n, int) and n < edge_order + 1:
        raise ValueError(f"np.gradient: {x!r} has {n} elements along axis {axis}{at_line()}; {edge_order + 1} at least are needed")
    x = _of_length(x, n, edge_order + 1, f"np.gradient: an axis has less than {edge_order + 1} elements")
    if spacing.ndim > 1:
        raise ValueError(f"np.gradient: a spacing is {spacing!r}{at_line()}; give a distance, or a vector of coordinates")
    if spacing.ndim:
        places = specify_shape(spacing, (n,))
        widths = diff(places if places.type.kind == "f" else cast(places, "float64"))
    else:
        widths = None

    def at(k: int) -> Variable:  # the element at k, with its axis
        return part(x, axis, k, k + 1 if k != -1 else None)

    def width(k: int) -> Variable:
        return spacing if widths is None else widths[k]

    if widths is None:
        inner = (part(x, axis, 2, None) - part(x, axis, None, -2)) / (2.0 * spacing)
    else:
        before, after = (expand_dims(one, tuple(range(1, x.ndim - axis))) for one in (widths[:-1], widths[1:]))
        inner = (
            -after / (before * (before + after)) * part(x, axis, None, -2)
            + (after - before) / (before * after) * part(x, axis, 1, -1)
            + before / (after * (before + after)) * part(x, axis, 2, None)
        )
    if edge_order == 1:
        first, last = (at(1) - at(0)) / width(0), (at(-1) - at(-2)) / width(-1)
    else:
        one, two = width(0), width(1)
        first = -(2 * one + two) / (one * (one + two)) * at(0) + (one + two) / (one * two) * at(1) - one / (two * (one + two)) * at(2)
        one, two = width(-2), width(-1)
        last = two / (one * (one + two)) * at(-3) - (two + one) / (one * two) * at(-2) + (2 * two + one) / (two * (one + two)) * at(-1)
    return concatenate([cast(one, x.dtype) for one in (first, inner, last)], axis)


# polynomials ----------------------------------------------------------------------------------------------------------


def _coefficients(name: str, p: Any, m: int) -> Variable:
    x = as_variable(p)
    if x.ndim != 1 or fixed_int(m, f"{name}: m") < 0:
        raise ValueError(f"{name} of {x!r}, {m} times{at_line()}: the coefficients are a vector, and m is 0 or more")
    return x


@implements(np.polyder)
def polyder(p: Any, m: int = 1) -> Variable:
    """The coefficients of the m-th derivative of a polynomial, highest power first."""
    x = _coefficients("np.polyder", p, m)
    for _ in range(fixed_int(m, "np.polyder: m")):
        n = dim(x, 0)
        x = x[:-1] * arange(n - 1, 0, -1)
    return x


@implements(np.polyint)
def polyint(p: Any, m: int = 1, k: Any = None) -> Variable:
    """The coefficients of the m-th antiderivative of a polynomial, highest power first; its constants are 0."""
    refuse("np.polyint", k=k)
    x = _coefficients("np.polyint", p, m)
    for _ in range(fixed_int(m, "np.polyint: m")):
        x = concatenate([x / arange(dim(x, 0), 0, -1), [0.0]])
    return x


@implements(np.polyfit)
def polyfit(x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None, cov: bool = False) -> Variable:
    """The coefficients of the polynomial of degree `deg` that is nearest to points, by least squares, highest power first.

    Arguments: x of shape (n,), y of shape (n,) or (n, m); w, how much each point weighs. As NumPy, by singular values of the columns
    divided by their norms, of which those up to `rcond` (n times the distance of 1 to the next number) times the greatest count as 0.

    >>> import numbascan.tensor as nt
    >>> nt.polyfit(nt.dvector("x"), nt.dvector("y"), 2).type.shape
    (3,)
    """
    refuse("np.polyfit", full=full or None, cov=cov or None)
    places, values = as_variable(x), as_variable(y)
    places, values = (one if one.type.kind in "fc" else cast(one, "float64") for one in (places, values))
    if fixed_int(deg, "np.polyfit: deg") < 0 or places.ndim != 1 or values.ndim not in (1, 2):
        raise ValueError(f"np.polyfit of {places!r} and {values!r}, degree {deg}{at_line()}: a vector, one or two axes, and 0 or more")
    places = _of_length(places, dim(places, 0), 1, "np.polyfit: there are no points")
    columns = vander(places, deg + 1)
    if w is not None:
        weights = as_variable(w)
        columns, values = columns * weights[:, None], values * (weights[:, None] if values.ndim == 2 else weights)
    scale = np.sqrt((columns * columns).sum(axis=0))
    rcond = dim(places, 0) * np.finfo(places.dtype).eps if rcond is None else rcond
    found = as_variable(np.linalg.lstsq(columns / scale, values, rcond)[0])
    return found / (scale[:, None] if found.ndim == 2 else scale)


__all__ = ["convolve", "correlate", "gradient", "polyder", "polyfit", "polyint"]

entries(globals(), __all__)
