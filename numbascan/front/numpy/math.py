"""Elementwise functions that are more than one card: powers, rounding, casts, parts of complex numbers, softmax."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ...ir.node import constant_value
from ...ops.card import Card
from ...ops.elementary import CAST, COMPLEX, IMAG, REAL, RINT
from ...ops.elementwise import POW, RECIPROCAL, SQRT, SQUARE, ufunc_loop
from ...ops.gradient_identities import DISCONNECTED
from ...ops.special import POLYGAMMA
from ...tracebacks import entries
from ...types import dtype_name, numpy_dtype
from ..variable import METHODS, PROPERTIES, Variable, as_variable, at_line, implements, is_large, op
from .choices import where
from .ufuncs import FUNCTIONS


def _same_type(card: Card, x: Variable) -> bool:
    """True if the card's result has the type of x."""
    return card.infer(x.type) == x.type


# powers -------------------------------------------------------------------------------------------------------------


@implements(np.power)
def power(x1: Any, x2: Any) -> Variable:
    """x1**x2, elementwise.

    A number 1, 2, 3, 4, 0.5 or -1 as exponent becomes multiplications, a root or a reciprocal.

    Arguments: variables, arrays or numbers of shapes that broadcast. Returns a variable of the broadcast shape.

    Raises ValueError for an integer base with a negative integer exponent: at once where the exponent is a constant, else when it runs.

    >>> import numbascan.tensor as nt
    >>> nt.power(nt.fvector("x"), 2)
    <square: float32[?]>
    """
    if is_large(x1) or is_large(x2):
        return op(POW, x1, x2)
    base, exponent = as_variable(x1), as_variable(x2)
    result = op(POW, base, exponent) if constant_value(exponent.node) is None else None
    if result is not None:
        return result
    dtype, value = POW.infer(base.type, exponent.type), np.asarray(constant_value(exponent.node))
    assert not isinstance(dtype, tuple)
    if dtype.kind in "iu" and (value < 0).any():
        raise ValueError(
            f"np.power: integers to negative integer powers are not allowed{at_line()}; write x.astype('float64')**({value.min()})"
        )
    short = _short_power(base, value.item()) if value.ndim == 0 and dtype == base.type else None
    return op(POW, base, exponent) if short is None else short


def _short_power(x: Variable, exponent: complex) -> Variable | None:
    """x**exponent without a call of pow, for exponents where NumPy has its own loop, and for 3 and 4; else None."""
    if exponent == 1:
        return x
    if exponent in (2, 3, 4) and _same_type(SQUARE, x):
        square = op(SQUARE, x)
        return square if exponent == 2 else square * x if exponent == 3 else op(SQUARE, square)
    if exponent == 0.5 and _same_type(SQRT, x):
        return op(SQRT, x)
    if exponent == -1 and x.type.kind == "f":
        return op(RECIPROCAL, x)
    return None


@implements(np.float_power)
def float_power(x1: Any, x2: Any) -> Variable:
    """x1**x2 in double precision, whatever the operands' dtypes.

    >>> import numbascan.tensor as nt
    >>> nt.float_power(nt.lvector("x"), -2).dtype
    dtype('float64')
    """
    base, exponent = as_variable(x1), as_variable(x2)
    dtype = "complex128" if "c" in (base.type.kind, exponent.type.kind) else "float64"
    return power(cast(base, dtype), cast(exponent, dtype))


@implements(np.divmod)
def divmod(x1: Any, x2: Any) -> tuple[Variable, Variable]:
    """(x1 // x2, x1 % x2), elementwise.

    >>> import numbascan.tensor as nt
    >>> quotient, rest = divmod(nt.lvector("x"), 7)
    """
    return FUNCTIONS["floor_divide"](x1, x2), FUNCTIONS["remainder"](x1, x2)


@implements(np.modf)
def modf(x: Any) -> tuple[Variable, Variable]:
    """(fraction, whole part), both with the sign of x.

    >>> import numbascan.tensor as nt
    >>> fraction, whole = nt.modf(nt.dvector("x"))
    """
    x = _as_float(x)
    whole = np.trunc(x)
    return np.copysign(where(np.isinf(x), 0.0, x - whole), x), whole


_float_loop = ufunc_loop(np.fabs)


def _as_float(x: Any) -> Variable:
    """x in the real dtype in which NumPy computes with it."""
    x = as_variable(x)
    return cast(x, _float_loop(x.type)[0])


@implements(np.fabs)
def fabs(x: Any) -> Variable:
    """The absolute value as a floating-point number; TypeError for complex numbers."""
    return FUNCTIONS["absolute"](_as_float(x))


@implements(np.positive)
def positive(x: Any) -> Variable:
    """+x, which is x; TypeError for bool, as in NumPy."""
    x = as_variable(x)
    ufunc_loop(np.positive)(x.type)
    return cast(x, x.type.dtype)  # a Python number becomes a NumPy one


# dtypes, rounding, parts --------------------------------------------------------------------------------------------


def cast(x: Any, dtype: Any) -> Variable:
    """x in another dtype. Floating-point numbers lose their fraction when they become integers, as in NumPy.

    Raises TypeError for a dtype that is not supported, and for complex to real: write x.real or np.abs(x).

    >>> import numbascan.tensor as nt
    >>> nt.cast(nt.lvector("k"), "float32")
    <cast: float32[?]>
    """
    x, name = as_variable(x), dtype_name(dtype)
    return x if x.type.dtype == name and not x.type.weak else op(CAST, x, dtype=name)


@implements(method="astype")
def astype(x: Variable, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True) -> Variable:
    """x in another dtype, as `ndarray.astype`; TypeError where `casting` forbids it. Order and copies have no meaning here."""
    if not np.can_cast(x.dtype, numpy_dtype(dtype), casting):  # type: ignore[arg-type]
        raise TypeError(f"x.astype({numpy_dtype(dtype).name!r}): casting={casting!r} forbids a cast from {x.dtype}{at_line()}")
    return cast(x, dtype)


@implements(method="view")
def view(x: Variable, dtype: Any = None, type: Any = None) -> Variable:
    """`x` itself, as `ndarray.view()`; TypeError for a view as another dtype, which reads the bits of memory that a traced value lacks."""
    if type is not None or (dtype is not None and np.dtype(dtype) != x.dtype):
        raise TypeError(
            f"x.view({dtype if type is None else type}): {x!r} is traced and has no memory to be read as something else{at_line()}; "
            "write x.astype(dtype) for its numbers in another dtype, x.real and x.imag for the parts of a complex number"
        )
    return x


@implements(np.round, np.around, method="round")
def round(a: Any, decimals: int = 0) -> Variable:
    """The nearest number with this number of decimals, halves to the even one; integers only change for negative decimals.

    >>> import numbascan.tensor as nt
    >>> nt.round(nt.dvector("x"), 2).dtype
    dtype('float64')
    """
    a = as_variable(a)
    if a.type.kind == "c":
        return op(COMPLEX, round(op(REAL, a), decimals), round(op(IMAG, a), decimals))
    if a.type.kind in "iu":
        unit = 10.0**-decimals
        return a if decimals >= 0 else cast(np.rint(a / unit) * unit, a.type.dtype)
    if decimals == 0 or a.type.kind == "b":
        return op(RINT, a)
    unit = 10.0 ** abs(decimals)
    return np.rint(a * unit) / unit if decimals > 0 else np.rint(a / unit) * unit


@implements(method="rint")
@wraps(FUNCTIONS["rint"])
def _rint_of_element(x: Variable) -> Variable:
    """The method that NumPy's rint and round call on elements of object arrays. TypeError for integers, where the two would differ."""
    if x.type.kind in "iu":
        raise TypeError(f"np.round of np.array([x, y, …]) of traced integers{at_line()}: write np.round(np.stack([x, y, …]))")
    return op(RINT, x)


def iround(x: Any) -> Variable:
    """The nearest integer, halves to the even one, as int64.

    >>> import numbascan.tensor as nt
    >>> nt.iround(nt.dvector("x"))
    <cast: int64[?]>
    """
    return cast(round(x), "int64")


@implements(np.real)
def real(val: Any) -> Variable:
    """The real part; real numbers as they are."""
    val = as_variable(val)
    return op(REAL, val) if val.type.kind == "c" else val


@implements(np.imag)
def imag(val: Any) -> Variable:
    """The imaginary part; zeros for real numbers."""
    return op(IMAG, val)


@implements(np.angle)
def angle(z: Any, deg: bool = False) -> Variable:
    """The angle of complex numbers in (-pi, pi], or in degrees.

    >>> import numbascan.tensor as nt
    >>> nt.angle(nt.zvector("z"))
    <arctan2: float64[?]>
    """
    z = as_variable(z)
    radians = FUNCTIONS["arctan2"](op(IMAG, z), z.real) if z.type.kind == "c" else FUNCTIONS["arctan2"](0, z)
    return radians * (180 / np.pi) if deg else radians


PROPERTIES.update(real=real, imag=imag)


@implements(method="conjugate")
@wraps(FUNCTIONS["conjugate"])
def _conjugate_method(x: Variable) -> Variable:
    """The complex conjugate; real numbers and booleans as they are (np.conj makes int8 of booleans)."""
    return FUNCTIONS["conjugate"](x) if x.type.kind == "c" else x


METHODS["conj"] = METHODS["conjugate"]


@implements(np.nan_to_num)
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Variable:
    """x with numbers in place of NaN and infinities; by default 0 and the greatest and least number of the dtype.

    >>> import numbascan.tensor as nt
    >>> nt.nan_to_num(nt.fvector("x"), nan=-1.0).dtype
    dtype('float32')
    """
    x = as_variable(x)
    if x.type.kind == "c":
        return op(COMPLEX, *(nan_to_num(op(part, x), copy, nan, posinf, neginf) for part in (REAL, IMAG)))
    if x.type.kind != "f":
        return x
    info = np.finfo(x.type.dtype)
    high = float(info.max) if posinf is None else posinf
    low = float(info.min) if neginf is None else neginf
    return where(np.isnan(x), nan, where(x == np.inf, high, where(x == -np.inf, low, x)))


def polygamma(n: Any, x: Any) -> Variable:
    """The n-th derivative of digamma, for whole n >= 0; NaN for n < 0. TypeError where n is no integer.

    >>> import numbascan.tensor as nt
    >>> nt.polygamma(2, nt.fvector("x"))
    <polygamma: float32[?]>
    """
    return op(POLYGAMMA, n, x)


def trigamma(x: Any) -> Variable:
    """The derivative of digamma.

    >>> import numbascan.tensor as nt
    >>> nt.trigamma(nt.dvector("x"))
    <polygamma: float64[?]>
    """
    return op(POLYGAMMA, 1, x)


# composites with reductions -----------------------------------------------------------------------------------------


def _greatest(x: Variable, axis: Any) -> Variable:
    """The greatest value along `axis`, 0 where it is infinite or NaN, so that infinity is never subtracted from itself.

    Derivatives take it as a constant: the functions that use it do not depend on it, so its cotangents would add up to 0.
    """
    top = op(DISCONNECTED, np.max(x, axis=axis, keepdims=True))
    return where(np.isfinite(top), top, 0)


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """log(sum(exp(x))) along `axis` (all, by default) without overflow; -inf where all are -inf, and derivatives of 0 there.

    >>> import numbascan.tensor as nt
    >>> nt.logsumexp(nt.dmatrix("x"), axis=1).ndim
    1
    """
    x = as_variable(x)
    shift = _greatest(x, axis)
    sums: Any = np.sum(np.exp(x - shift), axis=axis, keepdims=True)
    is_none = sums == 0
    total = np.log(where(is_none, 1, sums)) + where(is_none, -np.inf, shift)
    return total if keepdims else np.squeeze(total, axis=axis)


def softmax(x: Any, axis: Any = None) -> Variable:
    """exp(x) / sum(exp(x)) along `axis` (all, by default) without overflow; NaN beside +inf, and where all are -inf.

    >>> import numbascan.tensor as nt
    >>> nt.softmax(nt.dmatrix("x"), axis=1).ndim
    2
    """
    x = as_variable(x)
    top = op(DISCONNECTED, np.max(x, axis=axis, keepdims=True))  # as in `_greatest`
    powers = np.exp(x - top)
    return powers / np.sum(powers, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: Any = None) -> Variable:
    """x - logsumexp(x) along `axis` (all, by default), exact where softmax(x) is near 0 or 1.

    >>> import numbascan.tensor as nt
    >>> nt.log_softmax(nt.dmatrix("x"), axis=1).ndim
    2
    """
    x = as_variable(x)
    shifted = x - _greatest(x, axis)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


pow = power
entries(globals(), ("cast", "iround", "log_softmax", "logsumexp", "polygamma", "softmax", "trigamma"))
FUNCTIONS.update(
    {
        function.__name__: function
        for function in (
            *(power, float_power, divmod, modf, fabs, positive, cast, round, iround, real, imag, angle, nan_to_num),
            *(polygamma, trigamma, logsumexp, softmax, log_softmax),
        )
    },
    pow=power,
    around=round,
)

__all__ = sorted(FUNCTIONS)


def __getattr__(name: str) -> Callable[..., Any]:
    """The functions that a table makes (tanh, add, …) are names of this module too."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
