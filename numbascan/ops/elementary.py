"""Elementwise elementary functions: exponentials, logarithms, trigonometry, rounding; casts and the parts of complex numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir.loops import ATOM, Template
from ..types import TensorType
from .card import Card, register
from .elementwise import IDENTITY, by_kind, call, elementwise, loop_card, points, ufunc_loop, undefined
from .lowering import Elementwise


def _function(ufunc: np.ufunc, real: str, complex_: str = "", domain: tuple[float, float] = (-1.7, 2.1), *keys: Callable[..., Any]) -> Card:
    """The card of a function of one operand; `complex_` names the text for complex ones, default: there is none."""
    texts = {"f": call(f"{real}({{0}})"), "c": call(f"{complex_}({{0}})")}
    return elementwise(ufunc.__name__, ufunc, texts, *keys, domains=(domain,))


EXP = _function(np.exp, "math.exp", "complex_exp")
EXPM1 = _function(np.expm1, "math.expm1", "complex_expm1")
EXP2 = _function(np.exp2, "np.exp2", "complex_exp2")
LOG = _function(np.log, "math.log", "complex_log", (0.3, 3.1))
LOG1P = _function(np.log1p, "math.log1p", "np.log1p", (-0.7, 3.1))
LOG2 = _function(np.log2, "math.log2", "complex_log2", (0.3, 3.1))
LOG10 = _function(np.log10, "math.log10", "complex_log10", (0.3, 3.1))

SIN = _function(np.sin, "math.sin", "complex_sin")
COS = _function(np.cos, "math.cos", "complex_cos")
TAN = _function(np.tan, "math.tan", "complex_tan", (-1.2, 1.3))
ARCSIN = _function(np.arcsin, "math.asin", "complex_arcsin", (-0.8, 0.9))
ARCCOS = _function(np.arccos, "math.acos", "complex_arccos", (-0.8, 0.9))
ARCTAN = _function(np.arctan, "math.atan", "np.arctan")
SINH = _function(np.sinh, "math.sinh", "complex_sinh")
COSH = _function(np.cosh, "math.cosh", "complex_cosh")
TANH = _function(np.tanh, "math.tanh", "complex_tanh")
ARCSINH = _function(np.arcsinh, "math.asinh", "complex_arcsinh")
ARCCOSH = _function(np.arccosh, "math.acosh", "complex_arccosh", (1.2, 3.3))
ARCTANH = _function(np.arctanh, "math.atanh", "np.arctanh", (-0.8, 0.9))
ARCTAN2 = elementwise("arctan2", np.arctan2, call("math.atan2({0}, {1})"), domains=((0.3, 1.9), (-1.7, 2.1)))
DEG2RAD = _function(np.deg2rad, "math.radians", "", (-300.0, 400.0), np.radians)
RAD2DEG = _function(np.rad2deg, "math.degrees", "", (-1.7, 2.1), np.degrees)

LOGADDEXP = elementwise("logaddexp", np.logaddexp, call("logaddexp({0}, {1})"))
LOGADDEXP2 = elementwise("logaddexp2", np.logaddexp2, call("logaddexp2({0}, {1})"))

# Not math.floor and its like: those give integers in Numba, wrong beyond 2**63.
FLOOR = elementwise("floor", np.floor, by_kind(biu=IDENTITY, f=call("np.floor({0})")))
CEIL = elementwise("ceil", np.ceil, by_kind(biu=IDENTITY, f=call("np.ceil({0})")))
TRUNC = elementwise("trunc", np.trunc, by_kind(biu=IDENTITY, f=call("np.trunc({0})")), np.fix)
RINT = elementwise("rint", np.rint, call("np.rint({0})"))


# dtypes -------------------------------------------------------------------------------------------------------------


def _cast(x: Any, dtype: str) -> Any:
    return np.asarray(x).astype(dtype)


def _cast_type(x: TensorType, dtype: str) -> TensorType:
    if x.kind == "c" and np.dtype(dtype).kind not in "cb":
        raise undefined(f"astype({dtype!r})", (x,), "it would lose the imaginary part; write x.real or np.abs(x)")
    return x.with_dtype(dtype)


def _cast_samples() -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    ((values, _),) = points((-7.3, 8.1))()
    return [(values, {"dtype": dtype}) for dtype in ("float32", "int64", "bool", "complex128")]


CAST = register(
    Card(
        "cast",
        _cast,
        _cast_type,
        Elementwise(lambda x: (x.dtype, x.dtype), lambda *loop: IDENTITY),  # results are cast by the driver
        samples=_cast_samples,
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


_IMAG_OF_REAL = by_kind(b=call("False"), iu=call("0"), uint64=call("np.uint64(0)"), float32=call("np.float32(0.0)"), f=call("0.0"))

_part_samples = points((-1.7, 2.1), with_complex=True)
COMPLEX = loop_card("complex", _complex, _complex_loop, call("complex({0}, {1})"), samples=points((-1.7, 2.1), (0.3, 1.9)))
REAL = loop_card("real", np.real, _part_loop, by_kind(biuf=IDENTITY, c=Template("{0}.real", ATOM, (ATOM,))), samples=_part_samples)
IMAG = loop_card("imag", np.imag, _part_loop, {**_IMAG_OF_REAL, "c": Template("{0}.imag", ATOM, (ATOM,))}, samples=_part_samples)
CONJUGATE = elementwise("conjugate", np.conjugate, by_kind(iuf=IDENTITY, c=call("np.conj({0})")))
