"""Incomplete gamma and beta functions: SciPy's values, and also derivatives with respect to the shapes, which SciPy lacks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..ir.node import Node
from .algebra import add, div, mul, neg, sub
from .algebra import call as op
from .elementwise import Partials, compiled
from .special import of_scipy, scipy_function, special, whole_first

betaln, digamma = scipy_function("betaln"), scipy_function("psi")  # compiled code calls those of C

# densities ----------------------------------------------------------------------------------------------------------


def below_log(u: Any, ratio: Any) -> Any:
    """u - log(ratio), ratio being 1 + u, exact near 1: the logarithm is 2 artanh(v), v = u / (2 + u), by its power series."""
    v = u / (2.0 + u)
    if not abs(v) < 0.15:
        return u - np.log(ratio)
    power, total = v * v, 1.0 / 3.0
    for k in range(5, 25, 2):
        total += power / k
        power *= v * v
    return u * v - 2.0 * v * v * v * total


def stirling_rest(a: Any) -> Any:
    """log(gamma(a)) less Stirling's formula for it, for a of at least 10 (DLMF 5.11.1)."""
    r = 1.0 / a
    z = r * r
    return r * (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z * (1 / 1680 - z * (1 / 1188 - z * (691 / 360360 - z / 156))))))


def log_gamma_density(a: Any, x: Any) -> Any:
    """log(x**(a - 1) exp(-x) / gamma(a)); where a is large by the distance of x from a, since the terms cancel."""
    a_, x_ = np.float64(a), np.float64(x)
    if not (a_ > 0.0 and x_ >= 0.0):
        value = -np.inf if a_ == 0.0 else np.nan
    elif x_ == np.inf:
        value = -np.inf if a_ < np.inf else np.nan
    elif a_ < 10.0:
        value = (0.0 if a_ == 1.0 else (a_ - 1.0) * np.log(x_)) - x_ - math.lgamma(a_)
    elif x_ > 0.0:
        value = -a_ * below_log((x_ - a_) / a_, x_ / a_) - np.log(x_) + 0.5 * np.log(a_ / (2.0 * np.pi)) - stirling_rest(a_)
    else:
        value = -np.inf
    return type(x)(value)


def log_beta_density(a: Any, b: Any, x: Any) -> Any:
    """log(x**(a - 1) (1 - x)**(b - 1) / beta(a, b)); where a and b are large by the distance of x from a / (a + b)."""
    a_, b_, x_ = np.float64(a), np.float64(b), np.float64(x)
    if a_ >= 10.0 and b_ >= 10.0 and x_ > 0.0 and x_ < 1.0:
        n = a_ + b_
        distance = (b_ * x_ - a_ * (1.0 - x_)) / n
        value = (
            -a_ * below_log(distance * (n / a_), x_ * (n / a_))
            - b_ * below_log(-distance * (n / b_), (1.0 - x_) * (n / b_))
            - np.log(x_)
            - np.log1p(-x_)
        )
        value += 0.5 * (np.log(a_ / (2.0 * np.pi)) + np.log(b_ / n)) + stirling_rest(n) - stirling_rest(a_) - stirling_rest(b_)
    else:
        powers = (0.0 if a_ == 1.0 else (a_ - 1.0) * np.log(x_)) + (0.0 if b_ == 1.0 else (b_ - 1.0) * np.log1p(-x_))
        value = powers - np.float64(betaln(a_, b_))
    return type(x)(value)


LOG_GAMMA_DENSITY = special(
    "log_gamma_density",
    compiled(log_gamma_density),
    lambda out, a, x: (sub(op("log", x), op("digamma", a)), sub(div(sub(a, 1), x), 1)),
    (0.3, 24.1),
    (0.4, 30.3),
    evaluate=np.vectorize(log_gamma_density, otypes="d"),
)
LOG_BETA_DENSITY = special(
    "log_beta_density",
    compiled(log_beta_density),
    lambda out, a, b, x: (
        add(op("log", x), sub(op("digamma", add(a, b)), op("digamma", a))),
        add(op("log1p", neg(x)), sub(op("digamma", add(a, b)), op("digamma", b))),
        sub(div(sub(a, 1), x), div(sub(b, 1), sub(1, x))),
    ),
    (0.3, 24.1),
    (0.4, 30.3),
    (0.05, 0.9),
    evaluate=np.vectorize(log_beta_density, otypes="d"),
)

# slopes in the shapes -----------------------------------------------------------------------------------------------
#
# The distribution function of shape a is the integral of the density up to x. Its derivative is that of density * (log(t) - c), where c
# makes the integral over the whole range 0. The factor changes its sign once: on one side of x it keeps its sign, and the integral over
# that side loses nothing. It is taken over log(t), for beta over log(t / (1 - t)), by the rule of H. Takahasi & M. Mori (Publ. RIMS 9
# (1974) 721-741). The rule resolves narrow parts at either end, so the side is cut in two where the density bends.

STEPS, STEP = 80, 1 / 24


def tanh_sinh(k: Any) -> Any:
    """Where point k of the rule lies, as a share of the interval, and its weight, for k from -STEPS to STEPS."""
    tail = np.exp(-np.pi * np.sinh(k * STEP))
    share = 1.0 / (1.0 + tail)
    return share, STEP * np.pi * np.cosh(k * STEP) * share * share * tail


def gammainc_slope(a: Any, x: Any) -> Any:
    """The derivative of gammainc(a, x) with respect to a."""
    a_, x_ = np.float64(a), np.float64(x)
    if not (a_ > 0.0 and x_ > 0.0 and a_ < np.inf and x_ < np.inf):
        return type(x)(0.0 if a_ > 0.0 and a_ < np.inf and (x_ == 0.0 or x_ == np.inf) else np.nan)
    first = np.log(x_) - np.float64(digamma(a_))
    top = np.float64(log_gamma_density(a_, x_)) + np.log(x_)
    middle = 0.0
    if first >= 0.0:
        middle = max(np.log(max(a_, 1.0)) - np.log(x_), 0.0)
        far = max(x_, a_, 1.0)
        end = middle + min(np.sqrt(90.0 / far), 1.5 + np.log1p(90.0 / far))
    else:
        end = -11.0 / np.sqrt(a_) if a_ >= 121.0 else -1.0 - 45.0 / a_
    total = 0.0
    for k in range(-STEPS, STEPS + 1):
        share, weight = tanh_sinh(k)
        w = middle * share
        total += middle * weight * np.exp(top + a_ * w - x_ * np.expm1(w)) * (first + w)
        w = middle + (end - middle) * share
        total += abs(end - middle) * weight * np.exp(top + a_ * w - x_ * np.expm1(w)) * (first + w)
    return type(x)(-total if first >= 0.0 else total)


def digamma_rise(a: Any, more: Any) -> Any:
    """digamma(a + more) - digamma(a), exact where more is small: one sum for both (DLMF 5.7.6), then both expansions (DLMF 5.11.2)."""
    total = 0.0
    while a < 30.0:
        total += more / (a * (a + more))
        a += 1.0
    r, s = 1.0 / a, 1.0 / (a + more)
    squares, y, z = more * r * s * (r + s), r * r, s * s
    series = 1 / 12 - (y + z) / 120 + (y * y + y * z + z * z) / 252 - (y + z) * (y * y + z * z) / 240
    return total + np.log1p(more * r) + 0.5 * more * r * s + squares * series


def betainc_slope(a: Any, b: Any, x: Any, is_second: Any) -> Any:
    """The derivative of betainc(a, b, x) with respect to a; `is_second`: to b."""
    if not (a > 0.0 and b > 0.0 and x > 0.0 and x < 1.0 and a < np.inf and b < np.inf):
        return 0.0 if a > 0.0 and b > 0.0 and a < np.inf and b < np.inf and (x == 0.0 or x == 1.0) else np.nan
    log_x, log_y = np.log(x), np.log1p(-x)
    zero = -digamma_rise(b, a) if is_second else -digamma_rise(a, b)
    is_above = ((log_y if is_second else log_x) >= zero) != is_second  # the side of x where the factor keeps its sign
    start = log_x - log_y
    top = np.float64(log_beta_density(a, b, x)) + log_x + log_y
    middle = np.log(max(a, 1.0)) - np.log(max(b, 1.0)) - start
    if (middle > 0.0) != is_above:
        middle = 0.0
    width = a * (b / (a + b))
    edge = start + middle
    if width >= 121.0:
        length = 11.0 / np.sqrt(width)
    else:
        length = max(-edge if is_above else edge, 0.0) + 4.0 + 60.0 / (b if is_above else a)
    end = middle + (length if is_above else -length)
    total = 0.0
    for k in range(-STEPS, STEPS + 1):
        share, weight = tanh_sinh(k)
        for piece in range(2):
            low, high = (0.0, middle) if piece == 0 else (middle, end)
            w = low + (high - low) * share
            v = start + w
            near = np.log1p(np.exp(-abs(v)))  # log(1 + exp(-|v|)), of which log(t) and log(1 - t) are made
            less = np.log1p(x * np.expm1(w)) if abs(w) < 1.0 else max(v, 0.0) + near + log_y  # log((1 - x) / (1 - t))
            more = w - less if abs(w) < 1.0 else min(v, 0.0) - near - log_x  # log(t / x)
            factor = (-max(v, 0.0) if is_second else min(v, 0.0)) - near - zero
            total += abs(high - low) * weight * np.exp(top + a * more - b * less) * factor
    return -total if is_above else total


def betainc_slope_a(a: Any, b: Any, x: Any) -> Any:
    """The derivative of betainc(a, b, x) with respect to a."""
    return type(x)(betainc_slope(np.float64(a), np.float64(b), np.float64(x), False))


def betainc_slope_b(a: Any, b: Any, x: Any) -> Any:
    """The derivative of betainc(a, b, x) with respect to b."""
    return type(x)(betainc_slope(np.float64(a), np.float64(b), np.float64(x), True))


NO_SECOND = "the second derivative with respect to a shape is not supported"
A, X, SHARES = (0.3, 24.1), (0.4, 30.3), (0.05, 0.9)
GAMMAINC_SLOPE = special(
    "gammainc_slope",
    compiled(gammainc_slope),
    lambda out, a, x: (NO_SECOND, mul(op("exp", op("log_gamma_density", a, x)), sub(op("log", x), op("digamma", a)))),
    A,
    X,
    evaluate=np.vectorize(gammainc_slope, otypes="d"),
    samples=whole_first(A, X),
)


def _beta_slope_partials(is_second: bool) -> Partials:
    def partials(out: Node, a: Node, b: Node, x: Node) -> tuple[Any, ...]:
        log, shape = (op("log1p", neg(x)), b) if is_second else (op("log", x), a)
        factor = add(log, sub(op("digamma", add(a, b)), op("digamma", shape)))
        return NO_SECOND, NO_SECOND, mul(op("exp", op("log_beta_density", a, b, x)), factor)

    return partials


BETAINC_SLOPE_A, BETAINC_SLOPE_B = (
    special(
        function.__name__,
        compiled(function),
        _beta_slope_partials(is_second),
        A,
        X,
        SHARES,
        evaluate=np.vectorize(function, otypes="d"),
        samples=whole_first(A, X, SHARES),
    )
    for function, is_second in ((betainc_slope_a, False), (betainc_slope_b, True))
)


# distribution functions ---------------------------------------------------------------------------------------------

GAMMAINC = of_scipy(
    "gammainc",
    lambda out, a, x: (op("gammainc_slope", a, x), op("exp", op("log_gamma_density", a, x))),
    A,
    X,
    operands="a x",
    summary="the regularised lower incomplete gamma function, the distribution function of a gamma number of shape a",
)
GAMMAINCC = of_scipy(
    "gammaincc",
    lambda out, a, x: (neg(op("gammainc_slope", a, x)), neg(op("exp", op("log_gamma_density", a, x)))),
    A,
    X,
    operands="a x",
    summary="1 - gammainc(a, x), exact for large x",
)
BETAINC = of_scipy(
    "betainc",
    lambda out, a, b, x: (
        op("betainc_slope_a", a, b, x),
        op("betainc_slope_b", a, b, x),
        op("exp", op("log_beta_density", a, b, x)),
    ),
    A,
    X,
    SHARES,
    operands="a b x",
    summary="the regularised incomplete beta function, the distribution function of a beta number of shapes a and b",
)
