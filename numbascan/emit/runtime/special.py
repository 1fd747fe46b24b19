"""Scalar functions for generated code: SciPy's machine code, and what it lacks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from ..inside.scipy_functions import betaln as _betaln
from ..inside.scipy_functions import erfinv as _erfinv
from ..inside.scipy_functions import psi as _psi

_scalar = njit(error_model="numpy")


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


@_scalar
def erfinv(x: Any) -> Any:
    """The inverse of the error function."""
    return type(x)(_erfinv(np.float64(x)))


@_scalar
def betaln(x: Any, y: Any) -> Any:
    """The logarithm of the absolute value of the beta function."""
    return type(x)(_betaln(np.float64(x), np.float64(y)))
