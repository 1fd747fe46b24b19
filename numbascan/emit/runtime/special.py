"""Scalar functions for generated code: SciPy's machine code, and what it lacks."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numba import njit

from ...ops.elementwise import HELPERS
from ..inside import scipy_functions

_scalar = njit(error_model="numpy")
_psi = scipy_functions.function("psi", 1)


@_scalar
def digamma(x: Any) -> Any:
    """The logarithmic derivative of the gamma function."""
    return type(x)(_psi(np.float64(x)))


@_scalar
def polygamma(n: Any, x: Any) -> Any:
    """The n-th derivative of digamma; infinite at its poles, as SciPy's, and NaN for n < 0."""
    if n == 0:
        return digamma(x)
    if n < 0:
        return type(x)(np.nan)
    factorial = math.gamma(n + 1.0)
    return type(x)((factorial if n % 2 else -factorial) * _power_sum(n + 1, np.float64(x)))


@_scalar
def _power_sum(m: int, x: float) -> float:
    """The sum of (x + k)**-m over k >= 0, for m > 1. For x < 0: that over all integers k, less that over k < 0."""
    if x > 0:
        return _positive_power_sum(m, x)
    if x == math.floor(x):
        return np.inf
    part = x - np.rint(x)  # the sum over all integers has period 1, and is even or odd as m is
    near, far = abs(part), 1.0 - abs(part)
    sign = -1.0 if m % 2 else 1.0
    exponent = -float(m)
    # in this order an odd sum is exactly 0 at halves
    everything = (near**exponent + sign * far**exponent) + (_positive_power_sum(m, 1 + near) + sign * _positive_power_sum(m, 1 + far))
    return (everything if part > 0 else sign * everything) - sign * _positive_power_sum(m, 1 - x)


_TAYLOR = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600, -3617 / 10670622842880000)
"""Bernoulli numbers B_2j / (2j)!."""


@_scalar
def _positive_power_sum(m: int, x: float) -> float:
    """The same for x > 0: terms one by one, then the rest by the formula of Euler and Maclaurin (DLMF 25.11.5)."""
    total = 0.0
    while x < 10 + m:  # from there on what the formula leaves out is below rounding
        term = x ** -float(m)
        total += term
        if term < 1e-17 * total:
            return total
        x += 1.0
    rest = x ** (1.0 - m)  # the term x**-m alone might underflow
    total += rest / (m - 1) + 0.5 * rest / x
    factor = rest * m / (x * x)
    for k in range(len(_TAYLOR)):
        total += _TAYLOR[k] * factor
        factor *= (m + 2 * k + 1) * (m + 2 * k + 2) / (x * x)
    return total


@cache
def _of_scipy(name: str, arity: int) -> Any:
    function = scipy_functions.function(name, arity)
    if arity == 1:
        return _scalar(lambda x: type(x)(function(np.float64(x))))
    if arity == 2:
        return _scalar(lambda x, y: type(x)(function(np.float64(x), np.float64(y))))
    return _scalar(lambda x, y, z: type(x)(function(np.float64(x), np.float64(y), np.float64(z))))


def __getattr__(name: str) -> Any:
    """Functions that SciPy has under the same name."""
    helper = HELPERS.get(name)
    if helper is None or helper.module != "special":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _of_scipy(name, helper.arity)
