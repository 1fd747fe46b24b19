"""Elementwise elementary functions: exponentials, logarithms, trigonometry, rounding; casts and the parts of complex numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import exp, exp2, log1p

from ..ir.loops import ATOM, FUNCTION, PLAIN, Template
from ..ir.node import Node
from ..types import TensorType
from .algebra import add, conj, div, mul, neg, square, sub, where
from .algebra import call as op
from .card import Card, register
from .complex_functions import (
    LN2,
    complex_arccos,
    complex_arccosh,
    complex_arcsin,
    complex_arcsinh,
    complex_cos,
    complex_cosh,
    complex_exp,
    complex_exp2,
    complex_expm1,
    complex_log,
    complex_log2,
    complex_log10,
    complex_sin,
    complex_sinh,
    complex_tan,
    complex_tanh,
)
from .elementwise import IDENTITY, Code, by_kind, call, compiled, elementwise, libm, loop_card, points, ufunc_loop, undefined
from .lowering import Elementwise

Slope = Callable[[Node, Node], Any]


def _function(
    ufunc: np.ufunc,
    slope: Slope,
    real: Template,
    complex_: Template | None = None,
    domain: tuple[float, float] = (-1.7, 2.1),
    *keys: Callable[..., Any],
    **facets: Any,
) -> Card:
    """The card of a function of one operand, with its slope. complex_: its text for complex operands; default: none."""
    texts = {"f": real} if complex_ is None else {"f": real, "c": complex_}
    return elementwise(ufunc.__name__, ufunc, texts, *keys, domains=(domain,), partials=lambda out, x: (slope(out, x),), **facets)


def _inverse(real: Callable[[Node], Node], complex_: Callable[[Node], Node]) -> Slope:
    """The slope 1 / d: d(operand) for reals, d(result) for complex numbers, as only the result knows the side of the branch cut."""
    return lambda out, x: div(1, complex_(out) if x.type.kind == "c" else real(x))


def _one_minus_square(x: Node) -> Node:
    """1 - x**2 without cancellation near 1 and -1."""
    return mul(sub(1, x), add(1, x))


LN10 = math.log(10.0)

EXP = _function(np.exp, lambda out, x: out, libm("exp"), compiled(complex_exp), summary="e**x")
EXPM1 = _function(np.expm1, lambda out, x: add(out, 1), libm("expm1"), compiled(complex_expm1), summary="e**x - 1, exact near 0")
EXP2 = _function(np.exp2, lambda out, x: mul(LN2, out), libm("exp2"), compiled(complex_exp2), summary="2**x")
LOG = _function(np.log, lambda out, x: div(1, x), libm("log"), compiled(complex_log), (0.3, 3.1), summary="the natural logarithm")
LOG1P = _function(
    np.log1p, lambda out, x: div(1, add(1, x)), libm("log1p"), call("np.log1p({0})"), (-0.7, 3.1), summary="log(1 + x), exact near 0"
)
LOG2 = _function(
    np.log2, lambda out, x: div(1 / LN2, x), libm("log2"), compiled(complex_log2), (0.3, 3.1), summary="the logarithm to base 2"
)
LOG10 = _function(
    np.log10, lambda out, x: div(1 / LN10, x), libm("log10"), compiled(complex_log10), (0.3, 3.1), summary="the logarithm to base 10"
)

SIN = _function(np.sin, lambda out, x: op("cos", x), libm("sin"), compiled(complex_sin), summary="the sine of x radians")
COS = _function(np.cos, lambda out, x: neg(op("sin", x)), libm("cos"), compiled(complex_cos), summary="the cosine of x radians")
TAN = _function(
    np.tan, lambda out, x: add(1, square(out)), libm("tan"), compiled(complex_tan), (-1.2, 1.3), summary="the tangent of x radians"
)
ARCSIN = _function(
    np.arcsin,
    _inverse(lambda x: op("sqrt", _one_minus_square(x)), lambda out: op("cos", out)),
    libm("asin"),
    compiled(complex_arcsin),
    (-0.8, 0.9),
    summary="the inverse sine; NaN for real numbers outside [-1, 1]",
    aliases="asin",
)
ARCCOS = _function(
    np.arccos,
    _inverse(lambda x: neg(op("sqrt", _one_minus_square(x))), lambda out: neg(op("sin", out))),
    libm("acos"),
    compiled(complex_arccos),
    (-0.8, 0.9),
    summary="the inverse cosine; NaN for real numbers outside [-1, 1]",
    aliases="acos",
)
ARCTAN = _function(
    np.arctan, lambda out, x: div(1, add(1, square(x))), libm("atan"), call("np.arctan({0})"), summary="the inverse tangent", aliases="atan"
)
SINH = _function(np.sinh, lambda out, x: op("cosh", x), libm("sinh"), compiled(complex_sinh), summary="the hyperbolic sine")
COSH = _function(np.cosh, lambda out, x: op("sinh", x), libm("cosh"), compiled(complex_cosh), summary="the hyperbolic cosine")
TANH = _function(np.tanh, lambda out, x: sub(1, square(out)), libm("tanh"), compiled(complex_tanh), summary="the hyperbolic tangent")
ARCSINH = _function(
    np.arcsinh,
    _inverse(lambda x: op("hypot", 1.0, x), lambda out: op("cosh", out)),  # x**2 may overflow
    libm("asinh"),
    compiled(complex_arcsinh),
    summary="the inverse hyperbolic sine",
    aliases="asinh",
)
ARCCOSH = _function(
    np.arccosh,
    _inverse(lambda x: mul(op("sqrt", sub(x, 1)), op("sqrt", add(x, 1))), lambda out: op("sinh", out)),  # x**2 may overflow
    libm("acosh"),
    compiled(complex_arccosh),
    (1.2, 3.3),
    summary="the inverse hyperbolic cosine; NaN for real numbers below 1",
    aliases="acosh",
)
ARCTANH = _function(
    np.arctanh,
    lambda out, x: div(1, _one_minus_square(x)),
    libm("atanh"),
    call("np.arctanh({0})"),
    (-0.8, 0.9),
    summary="the inverse hyperbolic tangent; NaN for real numbers outside [-1, 1]",
    aliases="atanh",
)


def _arctan2_partials(out: Node, y: Node, x: Node) -> tuple[Node, Node]:
    """(x, -y) / r**2; r**2 itself may overflow."""
    r = op("hypot", x, y)
    return div(div(x, r), r), neg(div(div(y, r), r))


ARCTAN2 = elementwise(
    "arctan2",
    np.arctan2,
    libm("atan2", 2),
    domains=((0.3, 1.9), (-1.7, 2.1)),
    partials=_arctan2_partials,
    summary="the angle of the point (x2, x1), in [-pi, pi]",
    aliases="atan2",
)
DEG2RAD = _function(
    np.deg2rad,
    lambda out, x: math.pi / 180,
    call("math.radians({0})"),
    None,
    (-300.0, 400.0),
    np.radians,
    summary="degrees as radians",
    aliases="radians",
)
RAD2DEG = _function(
    np.rad2deg,
    lambda out, x: 180 / math.pi,
    call("math.degrees({0})"),
    None,
    (-1.7, 2.1),
    np.degrees,
    summary="radians as degrees",
    aliases="degrees",
)


def _share(out: Node, x: Node, y: Node, scale: float = 1) -> Node:
    """The share of x in the sum of exponentials; 0 where both are -inf."""
    difference = sub(x, y) if scale == 1 else mul(scale, sub(x, y))
    return op("sigmoid", where(op("equal", out, -math.inf), -math.inf, difference))


def logaddexp(x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)) as max(x, y) + log1p(exp(-|x - y|)), where x - y is 0 for equal infinities."""
    gap = type(x)(0) if x == y else x - y
    return (x if x > y else y) + log1p(exp(-abs(gap)))


def logaddexp2(x: Any, y: Any) -> Any:
    """The same to base 2."""
    gap = type(x)(0) if x == y else x - y
    return (x if x > y else y) + type(x)(1 / LN2) * log1p(exp2(-abs(gap)))


LOGADDEXP = elementwise(
    "logaddexp",
    np.logaddexp,
    compiled(logaddexp, FUNCTION),
    partials=lambda out, x, y: (_share(out, x, y), _share(out, y, x)),
    summary="log(exp(x1) + exp(x2)) without overflow",
)
LOGADDEXP2 = elementwise(
    "logaddexp2",
    np.logaddexp2,
    compiled(logaddexp2, FUNCTION),
    partials=lambda out, x, y: (_share(out, x, y, LN2), _share(out, y, x, LN2)),
    summary="log2(2**x1 + 2**x2) without overflow",
)


def _rounding(ufunc: np.ufunc, code: Code, *keys: Callable[..., Any], **facets: Any) -> Card:
    """The card of a function that rounds to whole numbers: its derivative is 0."""
    return elementwise(ufunc.__name__, ufunc, code, *keys, partials=lambda out, x: (0,), is_cheap=True, **facets)


# Not math.floor and the like: those give integers in Numba, wrong beyond 2**63.
FLOOR = _rounding(np.floor, by_kind(biu=IDENTITY, f=call("np.floor({0})", PLAIN)), summary="the greatest whole number <= x, in x's dtype")
CEIL = _rounding(np.ceil, by_kind(biu=IDENTITY, f=call("np.ceil({0})", PLAIN)), summary="the least whole number >= x, in x's dtype")
TRUNC = _rounding(
    np.trunc, by_kind(biu=IDENTITY, f=call("np.trunc({0})", PLAIN)), np.fix, summary="x without its fraction, in x's dtype", aliases="fix"
)
RINT = _rounding(
    np.rint, call("np.rint({0})", PLAIN), summary="the nearest whole number, halves to the even one", aliases="round_half_to_even"
)


# dtypes -------------------------------------------------------------------------------------------------------------


def float_to_uint64(x: Any) -> Any:
    """x without its fraction; a negative number counts down from 2**64, as NumPy has it."""
    return np.uint64(np.int64(x)) if x < 9223372036854775808.0 else np.uint64(x)


FLOAT_TO_UINT64 = compiled(float_to_uint64)


def _cast(x: Any, dtype: str) -> Any:
    return np.asarray(x).astype(dtype)


def _cast_type(x: TensorType, dtype: str) -> TensorType:
    if x.kind == "c" and np.dtype(dtype).kind not in "cb":
        raise undefined(f"astype({dtype!r})", (x,), "it would lose the imaginary part; write x.real or np.abs(x)")
    return x.with_dtype(dtype)


def _cast_samples() -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    (((x,), _),) = points((-7.3, 8.1))()
    pairs = (("float64", "complex128"), ("float32", "float64"), ("int64", "float32"), ("int64", "bool"), ("int8", "uint16"))
    return [((x.astype(start),), {"dtype": end}) for start, end in pairs]


CAST = register(
    Card(
        "cast",
        _cast,
        _cast_type,
        Elementwise(lambda x: (x.dtype, x.dtype), lambda *loop: IDENTITY),  # results are cast by the driver
        samples=_cast_samples,
        partials=lambda out, x, dtype: (1,),
        is_cheap=True,
    )
)


# complex numbers ----------------------------------------------------------------------------------------------------

_float_loop = ufunc_loop(np.hypot)
_COMPLEX_OF = {"float32": "complex64", "float64": "complex128"}
_FLOAT_OF = {complex_: real for real, complex_ in _COMPLEX_OF.items()}


def _complex_loop(re: TensorType, im: TensorType) -> tuple[str, ...]:
    dtype = _float_loop(re, im)[0]
    return dtype, dtype, _COMPLEX_OF[dtype]


def _part_loop(z: TensorType) -> tuple[str, ...]:
    return z.dtype, _FLOAT_OF.get(z.dtype, z.dtype)


def _complex(re: Any, im: Any) -> Any:
    z = np.empty(np.broadcast_shapes(np.shape(re), np.shape(im)), _COMPLEX_OF[re.dtype.name])
    z.real, z.imag = re, im  # re + 1j * im would make NaN of an infinite part
    return z


_IMAG_OF_REAL = by_kind(
    b=Template("False"), iu=Template("0"), uint64=Template("np.uint64(0)"), float32=Template("np.float32(0.0)"), f=Template("0.0")
)

_part_samples = points((-1.7, 2.1), with_complex=True)
# Re(w * dz) with dz = dx + i dy gives dx the real part of w, dy that of i w; the driver takes the real parts.
COMPLEX = loop_card(
    "complex",
    _complex,
    _complex_loop,
    call("complex({0}, {1})"),
    samples=points((-1.7, 2.1), (0.3, 1.9)),
    partials=lambda out, re, im: (1, 1j),
    linear=(0, 1),
    summary="the complex number re + i im",
    operands="re im",
    is_cheap=True,
)
REAL = loop_card(
    "real",
    np.real,
    _part_loop,
    by_kind(biuf=IDENTITY, c=Template("{0}.real", ATOM, (ATOM,))),
    samples=_part_samples,
    partials=lambda out, z: (1,),
    is_cheap=True,
)
IMAG = loop_card(
    "imag",
    np.imag,
    _part_loop,
    {**_IMAG_OF_REAL, "c": Template("{0}.imag", ATOM, (ATOM,))},
    samples=_part_samples,
    partials=lambda out, z: (-1j if z.type.kind == "c" else 0,),
    linear=(0,),
    is_cheap=True,
)
CONJUGATE = elementwise(
    "conjugate",
    np.conjugate,
    by_kind(iuf=IDENTITY, c=call("np.conj({0})")),
    linear=(0,),
    vjp=lambda node, cotangent: (conj(cotangent),),
    summary="the complex conjugate",
    aliases="conj",
    is_cheap=True,
)
