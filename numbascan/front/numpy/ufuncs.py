"""Elementwise functions with one card behind them: made from a table, under NumPy's and PyTensor's names.

FUNCTIONS holds them all, by name; `from .ufuncs import tanh` works too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ops import compare, elementary, elementwise, special  # noqa: F401 - importing them registers the cards
from ...ops.card import CARDS, Card
from ..variable import METHODS, Variable, implements, op

# card: (operands, what the function gives, its other names)
_TABLE: dict[str, tuple[str, str, str]] = {
    "add": ("x1 x2", "x1 + x2", ""),
    "subtract": ("x1 x2", "x1 - x2", "sub"),
    "multiply": ("x1 x2", "x1 * x2", "mul"),
    "true_divide": ("x1 x2", "x1 / x2; integers give floats", "true_div divide"),
    "floor_divide": ("x1 x2", "x1 // x2; 0 where an integer is divided by 0", "int_div floor_div"),
    "remainder": ("x1 x2", "x1 % x2, with the sign of x2; 0 where an integer is divided by 0", "mod"),
    "fmod": ("x1 x2", "the remainder of x1 / x2 with the sign of x1", ""),
    "negative": ("x", "-x", "neg"),
    "absolute": ("x", "the absolute value; of complex numbers the modulus", "abs"),
    "sign": ("x", "-1, 0 or 1; z / |z| for complex numbers", "sgn"),
    "square": ("x", "x * x", "sqr"),
    "sqrt": ("x", "the square root; NaN for negative real numbers", ""),
    "cbrt": ("x", "the cube root", ""),
    "reciprocal": ("x", "1 / x, in x's dtype", ""),
    "hypot": ("x1 x2", "sqrt(x1**2 + x2**2) without overflow", ""),
    "copysign": ("x1 x2", "|x1| with the sign of x2", ""),
    "heaviside": ("x1 x2", "0 where x1 < 0, x2 where x1 == 0, 1 where x1 > 0", ""),
    "maximum": ("x1 x2", "the greater of two; NaN where one is NaN", ""),
    "minimum": ("x1 x2", "the lesser of two; NaN where one is NaN", ""),
    "fmax": ("x1 x2", "the greater of two; a number beside a NaN wins", ""),
    "fmin": ("x1 x2", "the lesser of two; a number beside a NaN wins", ""),
    "logical_and": ("x1 x2", "whether both are true", ""),
    "logical_or": ("x1 x2", "whether one or both are true", ""),
    "logical_xor": ("x1 x2", "whether just one is true", ""),
    "logical_not": ("x", "whether x is false", ""),
    "bitwise_and": ("x1 x2", "x1 & x2, bit by bit", "and_"),
    "bitwise_or": ("x1 x2", "x1 | x2, bit by bit", "or_"),
    "bitwise_xor": ("x1 x2", "x1 ^ x2, bit by bit", "xor"),
    "invert": ("x", "~x, every bit turned over", "bitwise_not"),
    "left_shift": ("x1 x2", "x1 << x2; 0 where x2 is negative or too large", ""),
    "right_shift": ("x1 x2", "x1 >> x2; only sign bits where x2 is negative or too large", ""),
    "isnan": ("x", "whether x is NaN", ""),
    "isinf": ("x", "whether x is infinite", ""),
    "isfinite": ("x", "whether x is neither infinite nor NaN", ""),
    "signbit": ("x", "whether the sign bit is set, as in -0.0", ""),
    "exp": ("x", "e**x", ""),
    "expm1": ("x", "e**x - 1, exact near 0", ""),
    "exp2": ("x", "2**x", ""),
    "log": ("x", "the natural logarithm", ""),
    "log1p": ("x", "log(1 + x), exact near 0", ""),
    "log2": ("x", "the logarithm to base 2", ""),
    "log10": ("x", "the logarithm to base 10", ""),
    "logaddexp": ("x1 x2", "log(exp(x1) + exp(x2)) without overflow", ""),
    "logaddexp2": ("x1 x2", "log2(2**x1 + 2**x2) without overflow", ""),
    "sin": ("x", "the sine of x radians", ""),
    "cos": ("x", "the cosine of x radians", ""),
    "tan": ("x", "the tangent of x radians", ""),
    "arcsin": ("x", "the inverse sine; NaN for real numbers outside [-1, 1]", "asin"),
    "arccos": ("x", "the inverse cosine; NaN for real numbers outside [-1, 1]", "acos"),
    "arctan": ("x", "the inverse tangent", "atan"),
    "arctan2": ("x1 x2", "the angle of the point (x2, x1), in [-pi, pi]", "atan2"),
    "sinh": ("x", "the hyperbolic sine", ""),
    "cosh": ("x", "the hyperbolic cosine", ""),
    "tanh": ("x", "the hyperbolic tangent", ""),
    "arcsinh": ("x", "the inverse hyperbolic sine", "asinh"),
    "arccosh": ("x", "the inverse hyperbolic cosine; NaN for real numbers below 1", "acosh"),
    "arctanh": ("x", "the inverse hyperbolic tangent; NaN for real numbers outside [-1, 1]", "atanh"),
    "deg2rad": ("x", "degrees as radians", "radians"),
    "rad2deg": ("x", "radians as degrees", "degrees"),
    "floor": ("x", "the greatest whole number <= x, in x's dtype", ""),
    "ceil": ("x", "the least whole number >= x, in x's dtype", ""),
    "trunc": ("x", "x without its fraction, in x's dtype", "fix"),
    "rint": ("x", "the nearest whole number, halves to the even one", "round_half_to_even"),
    "conjugate": ("x", "the complex conjugate", "conj"),
    "complex": ("re im", "the complex number re + i im", ""),
    "sigmoid": ("x", "1 / (1 + exp(-x))", "expit"),
    "softplus": ("x", "log(1 + exp(x)) without overflow", "log1pexp"),
    "erf": ("x", "the error function", ""),
    "erfc": ("x", "1 - erf(x), exact for large x", ""),
    "erfinv": ("x", "the inverse of the error function", ""),
    "gamma": ("x", "the gamma function", ""),
    "gammaln": ("x", "the logarithm of |gamma(x)|", ""),
    "digamma": ("x", "the logarithmic derivative of the gamma function", "psi"),
    "betaln": ("x1 x2", "the logarithm of |beta(x1, x2)|", ""),
}

_EXAMPLES = {  # where float64 operands do not show it
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"), "l"),
    "conjugate": "z",
}

FUNCTIONS: dict[str, Callable[..., Variable]] = {}


def _docstring(card: Card, name: str, operands: list[str], summary: str) -> str:
    keys = [f"np.{key.__name__}" for key in card.keys if hasattr(key, "__name__")]
    letter = _EXAMPLES.get(card.name, "d")
    arguments = [f'nt.{letter}vector("{operand}")' for operand in operands]
    dtype = {"complex": "complex128", "conjugate": "complex128"}.get(card.name, "int64" if letter == "l" else "float64")
    if card.infer(*(_vector_type(letter) for _ in operands)).dtype == "bool":  # type: ignore[union-attr]
        dtype = "bool"
    also = f"; {' and '.join(keys)} of a variable {'is' if len(keys) == 1 else 'are'} the same" if keys else ""
    if summary.startswith(("the ", "whether ")):
        summary = summary[0].upper() + summary[1:]
    return (
        f"{summary}, elementwise.\n\n"
        f"    Arguments ({', '.join(operands)}): variables, arrays or numbers of any shapes that broadcast{also}.\n"
        "    Returns a variable of the broadcast shape; dtypes combine as in NumPy 2.\n"
        "    Raises TypeError where NumPy does not define it for the dtypes, ValueError for shapes that do not broadcast.\n\n"
        "    >>> import numbascan.tensor as nt\n"
        f"    >>> nt.{name}({', '.join(arguments)})\n"
        f"    <{card.name}: {dtype}[?]>\n    "
    )


def _vector_type(letter: str) -> Any:
    from ...types import TensorType

    return TensorType({"l": "int64", "z": "complex128"}.get(letter, "float64"), (None,))


def _function(card: Card, name: str, operands: list[str], summary: str) -> Callable[..., Variable]:
    def function(*values: Any) -> Variable:
        if len(values) != len(operands):
            raise TypeError(f"nt.{name} takes {len(operands)} operands ({', '.join(operands)}), got {len(values)}")
        return op(card, *values)

    parameters = [inspect.Parameter(operand, inspect.Parameter.POSITIONAL_ONLY) for operand in operands]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _docstring(card, name, operands, summary)
    return function


def _fill() -> None:
    scipy_names = {card.name: name for name, card in special.SCIPY.items()}
    for card_name, (operands, summary, aliases) in _TABLE.items():
        card = CARDS[card_name]
        function = _function(card, card_name, operands.split(), summary)
        implements(*card.keys)(function)
        for key in card.keys:
            if isinstance(key, np.ufunc):  # np.exp(np.array([x, y])) calls the method `exp` of each element
                METHODS.setdefault(key.__name__, function)
        if card_name in scipy_names:
            implements(f"scipy.special.{scipy_names[card_name]}")(function)
        FUNCTIONS.update(dict.fromkeys((card_name, *aliases.split()), function))


_fill()
__test__ = {name: FUNCTIONS[name] for name in _TABLE}  # their examples are tests too


def __getattr__(name: str) -> Callable[..., Variable]:
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
