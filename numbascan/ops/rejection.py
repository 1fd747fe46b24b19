"""Distributions whose draws take an open number of words: by rejection, or by search through a distribution function.

Words and functions are those of `draw_methods.py`. As there, all is arithmetic without branches: for arrays here, compiled for numbers in
`emit/runtime/random.py`. Each element has its own sequence of words, as the counter's second word is its position plus one: no element's
draw depends on another's. Parameters come as a tuple of doubles; their ranges are checked before.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .draw_methods import (
    U,
    cauchy_of,
    exact_arctan,
    exact_exp,
    exact_log,
    exact_log1p,
    exponential_of,
    multiply_wide,
    normal_of,
    normal_pair,
    philox,
    select,
    uniform_of,
    uniform_open,
)

ATTEMPTS = 1000  # at worst one in two is accepted; NaN never is, and NaN is what it gives

# gamma: Marsaglia & Tsang, ACM Transactions on Mathematical Software 26 (2000) 363-372 --------------------------------


def gamma_setup(parameters):
    """(d, c) of the method for a shape of at least 1, and 1 / shape where it is less: then gamma(a) is gamma(a + 1) U**(1 / a)."""
    (a,) = parameters
    d = select(a < 1.0, a + 1.0, a) - 1 / 3
    return d, 1.0 / np.sqrt(9.0 * d), select(a < 1.0, 1.0 / a, 0.0)


def gamma_proposal(x0, x1, x2, x3, made):
    """A normal number x, t = c x, and whether they are taken without a logarithm."""
    x = normal_of(x0)
    t = made[1] * x
    return (1.0 + t > 0.0) & (uniform_open(x2) < 1.0 - 0.0331 * (x * x) * (x * x)), (x, t)


NEAR = 0.03  # t up to which terms that cancel are left out: for shapes from 1e15 on, their rounding would decide what is accepted


def gamma_test(x0, x1, x2, x3, made, proposed):
    """Whether the number is taken."""
    return _is_gamma(made[0], proposed[0], proposed[1], x2)


def _is_gamma(d, x, t, word):
    """Whether a proposal is taken: by x**2 / 2 + d - d v + d log(v), v = (1 + t)**3, and as a power series, 9 d t**2 being x**2."""
    v = (1.0 + t) * (1.0 + t) * (1.0 + t)
    tail = t * (1 / 5 - t * (1 / 6 - t * (1 / 7 - t * (1 / 8 - t * (1 / 9 - t * (1 / 10 - t * (1 / 11))))))) - 1 / 4
    near = 3.0 * (d * (t * t)) * (t * t) * tail
    return select(np.abs(t) < NEAR, near, 0.5 * x * x + d - d * v + d * exact_log(v)) > -exponential_of(word)


def gamma_is_plain(made):
    """Whether the shape is 1 or more, and its number needs no power of a uniform one."""
    return made[2] == 0.0


def gamma_plain_value(x0, x1, x2, x3, made, proposed):
    """The gamma number of a shape of 1 or more: d (1 + t)**3, rounded once beside d."""
    d, t = made[0], proposed[1]
    return select(np.abs(t) < NEAR, d + d * (t * (3.0 + t * (3.0 + t))), d * ((1.0 + t) * (1.0 + t) * (1.0 + t)))


def gamma_value(x0, x1, x2, x3, made, proposed):
    """The gamma number of any shape, with the correction for a shape below 1."""
    return gamma_plain_value(x0, x1, x2, x3, made, proposed) * exact_exp(-exponential_of(x3) * made[2])


def log_gamma_plain_value(x0, x1, x2, x3, made, proposed):
    """The logarithm of a gamma number over d, of a shape of 1 or more."""
    return 3.0 * exact_log1p(proposed[1])


def log_gamma_value(x0, x1, x2, x3, made, proposed):
    """The logarithm of the same number over d: that of a shape near 0 may itself be no double, and log(d) would hide what is random."""
    return log_gamma_plain_value(x0, x1, x2, x3, made, proposed) - exponential_of(x3) * made[2]


# beta: 1 / (1 + y / x) of two gamma numbers, made of one block of words and taken together


def beta_setup(parameters):
    """(d, c) of the method for either shape, and the shapes."""
    a, b = parameters
    d = select(a < 1.0, a + 1.0, a) - 1 / 3
    e = select(b < 1.0, b + 1.0, b) - 1 / 3
    return d, 1.0 / np.sqrt(9.0 * d), e, 1.0 / np.sqrt(9.0 * e), a, b


def beta_proposal(x0, x1, x2, x3, made):
    """What two gamma numbers are made of, and whether both are taken without a logarithm."""
    x, y = normal_of(x0), normal_of(x1)
    t, s = made[1] * x, made[3] * y
    is_first = (1.0 + t > 0.0) & (uniform_open(x2) < 1.0 - 0.0331 * (x * x) * (x * x))
    return is_first & (1.0 + s > 0.0) & (uniform_open(x3) < 1.0 - 0.0331 * (y * y) * (y * y)), (x, t, y, s)


def beta_test(x0, x1, x2, x3, made, proposed):
    """Whether both are accepted: only then the two numbers are independent."""
    x, t, y, s = proposed
    return _is_gamma(made[0], x, t, x2) & _is_gamma(made[2], y, s, x3)


def beta_is_plain(made):
    """Whether both shapes are 1 or more, and their numbers need no powers of uniform ones."""
    return (made[4] >= 1.0) & (made[5] >= 1.0)


def _cube(t):
    """(1 + t)**3, rounded once where t is near 0."""
    return select(np.abs(t) < NEAR, 1.0 + t * (3.0 + t * (3.0 + t)), (1.0 + t) * (1.0 + t) * (1.0 + t))


def beta_plain_value(x0, x1, x2, x3, made, proposed):
    """The beta number of shapes of 1 or more: gamma numbers themselves may be too large for a double, their ratio is not."""
    return 1.0 / (1.0 + made[2] / made[0] * (_cube(proposed[3]) / _cube(proposed[1])))


def beta_value(x0, x1, x2, x3, made, proposed):
    """The beta number of any shapes: by logarithms, those of shapes near 0 may be no doubles. It takes two more words, of a block whose key
    and counter are the words of this one."""
    d, _, e, _, a, b = made
    y0, y1, _, _ = philox(x0, x1, x2, x3, x0 & U(0), x0 & U(0))
    log_x = 3.0 * exact_log1p(proposed[1]) - exponential_of(y0) * select(a < 1.0, 1.0 / a, 0.0)
    log_y = 3.0 * exact_log1p(proposed[3]) - exponential_of(y1) * select(b < 1.0, 1.0 / b, 0.0)
    by_logarithms = 1.0 / (1.0 + exact_exp(log_y - log_x + exact_log(e / d)))
    return select(beta_is_plain(made), beta_plain_value(x0, x1, x2, x3, made, proposed), by_logarithms)


# probabilities, accurate also where they are many: C. Loader, "Fast and accurate computation of binomial probabilities" (2000)


def stirling_error(k):
    """log(k!) less Stirling's formula for it, k >= 1: log(sqrt(2 pi k) (k / e)**k)."""
    small = select(k < 16.0, k, 1.0)
    factorial = select(small > 1.0, small, 1.0)
    for j in range(1, 15):
        factorial = factorial * select(small - j > 1.0, small - j, 1.0)
    direct = exact_log(factorial) - (small + 0.5) * exact_log(small) + small - 0.9189385332046728
    r = 1.0 / k
    z = r * r
    series = r * (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z * (1 / 1680 - z * (1 / 1188 - z * (691 / 360360))))))
    return select(k < 16.0, direct, series)


def deviance(k, mean):
    """k log(k / mean) + mean - k, k > 0, without loss where k is near the mean."""
    difference = k - mean
    v = difference / (k + mean)
    z = v * v
    tail = 1 / 9 + z * (1 / 11 + z * (1 / 13 + z * (1 / 15 + z * (1 / 17 + z * (1 / 19 + z * (1 / 21))))))
    near = difference * v + 2.0 * k * v * z * (1 / 3 + z * (1 / 5 + z * (1 / 7 + z * tail)))
    return select(np.abs(v) < 0.1, near, k * exact_log(k / mean) + mean - k)


def poisson_log_probability(k, mean):
    """log(mean**k exp(-mean) / k!)"""
    above = select(k > 0.0, k, 1.0)
    value = -stirling_error(above) - deviance(above, mean) - 0.5 * exact_log(6.283185307179586 * above)
    return select(k > 0.0, value, -mean)


def binomial_log_probability(k, n, p, q):
    """log(n! / (k! (n - k)!) p**k q**(n - k)), 0 < p < 1"""
    inside = (k > 0.0) & (k < n)
    a = select(inside, k, 1.0)
    m = select(inside, n, 2.0)
    b = m - a
    value = stirling_error(m) - stirling_error(a) - stirling_error(b) - deviance(a, m * p) - deviance(b, m * q)
    value = value + 0.5 * exact_log(m / (6.283185307179586 * a * b))
    return select(inside, value, n * select(k > 0.0, exact_log(p), exact_log1p(-p)))


# Poisson and binomial: transformed rejection, W. Hoermann, Insurance: Mathematics and Economics 12 (1993) 39-45 and Journal of Statistical
# Computation and Simulation 46 (1993) 101-110; where the mean is below 10, search from 0 on

FEWEST = 1e-20  # a probability at which the search ends: what is left of it is rounding


def poisson_is_small(parameters):
    """Whether to search."""
    (mean,) = parameters
    return mean < 10.0


def poisson_start(parameters):
    """The probability of 0."""
    (mean,) = parameters
    return exact_exp(-mean)


def poisson_next(k, probability, parameters):
    """The probability of k, from that of k - 1."""
    (mean,) = parameters
    return probability * (mean / k)


def poisson_end(k, parameters):
    """The number at place k: k itself."""
    return k


def poisson_setup(parameters):
    """The mean, and the constants a, b, 1 / alpha, v_r of the method."""
    (mean,) = parameters
    mean = select(mean < 10.0, 10.0, mean)
    b = 0.931 + 2.53 * np.sqrt(mean)
    return mean, -0.059 + 0.02483 * b, b, 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2.0)


def poisson_proposal(x0, x1, x2, x3, made):
    """A number, and how near the middle it is."""
    mean, a, b, _, v_r = made
    u = uniform_open(x0) - 0.5
    us = 0.5 - np.abs(u)
    return (us >= 0.07) & (uniform_open(x1) <= v_r), (np.floor((2.0 * a / us + b) * u + mean + 0.43), us)


def poisson_test(x0, x1, x2, x3, made, proposed):
    """Whether the number is taken."""
    mean, a, b, inverse_alpha, _ = made
    k, us = proposed
    v = uniform_open(x1)
    bound = exact_log(v * inverse_alpha / (a / (us * us) + b))
    is_inside = (k >= 0.0) & ((us >= 0.013) | (v <= us))
    return is_inside & (bound <= poisson_log_probability(select(k >= 0.0, k, 0.0), mean))


def count_value(x0, x1, x2, x3, made, proposed):
    """The number itself."""
    return proposed[0]


def _smaller(p):
    """The probability of the rarer one, success or failure."""
    return select(p > 0.5, 1.0 - p, p)


def binomial_is_small(parameters):
    """Whether to search."""
    n, p = parameters
    return n * _smaller(p) < 10.0


def binomial_start(parameters):
    """The probability of 0."""
    n, p = parameters
    return exact_exp(n * exact_log1p(-_smaller(p)))


def binomial_next(k, probability, parameters):
    """The probability of k, from that of k - 1."""
    n, p = parameters
    p = _smaller(p)
    return probability * ((n - k + 1.0) * p / (k * (1.0 - p)))


def binomial_end(k, parameters):
    """The other way round where p was above 1/2."""
    n, p = parameters
    k = select(k > n, n, k)
    return select(p > 0.5, n - k, k)


def binomial_setup(parameters):
    """The parameters, and the constants a, b, alpha, v_r of the method."""
    n, p = parameters
    is_small = n * _smaller(p) < 10.0
    n, p = select(is_small, 20.0, n), select(is_small, 0.5, _smaller(p))
    spread = np.sqrt(n * p * (1.0 - p))
    b = 1.15 + 2.53 * spread
    return n, p, -0.0873 + 0.0248 * b + 0.01 * p, b, (2.83 + 5.1 / b) * spread, 0.92 - 4.2 / b


def binomial_proposal(x0, x1, x2, x3, made):
    """A number, and how near the middle it is."""
    n, p, a, b, _, v_r = made
    u = uniform_open(x0) - 0.5
    us = 0.5 - np.abs(u)
    k = np.floor((2.0 * a / us + b) * u + n * p + 0.5)
    return (k >= 0.0) & (k <= n) & (us >= 0.07) & (uniform_open(x1) <= v_r), (k, us)


def binomial_test(x0, x1, x2, x3, made, proposed):
    """Whether the number is taken."""
    n, p, a, b, alpha, _ = made
    k, us = proposed
    q = 1.0 - p
    bound = exact_log(uniform_open(x1) * alpha / (a / (us * us) + b))
    is_inside = (k >= 0.0) & (k <= n)
    mode = binomial_log_probability(np.floor((n + 1.0) * p), n, p, q)
    return is_inside & (bound <= binomial_log_probability(select(is_inside, k, 0.0), n, p, q) - mode)


# hypergeometric: ratio of uniforms, E. Stadlober, Journal of Computational and Applied Mathematics 31 (1990) 181-189, with probabilities
# made of binomial ones; search where the mean is below 10. Good and bad ones change places, and drawn ones and those that are left, so that
# there are fewer of the former


def _drawn_less(parameters):
    """(good ones, drawn ones, all), exchanged with the bad ones and those left so that the first two are at most half of all."""
    good, bad, drawn = parameters
    every = good + bad
    return select(good < bad, good, bad), select(drawn < every - drawn, drawn, every - drawn), every


def hypergeometric_log_probability(k, good, drawn, every):
    """log of C(good, k) C(every - good, drawn - k) / C(every, drawn)"""
    p = drawn / select(every > 0.0, every, 1.0)
    q = 1.0 - p
    value = binomial_log_probability(k, good, p, q) + binomial_log_probability(drawn - k, every - good, p, q)
    return value - binomial_log_probability(drawn, every, p, q)


def _hypergeometric_mean(good, drawn, every):
    return drawn * (good / select(every > 0.0, every, 1.0))


def hypergeometric_is_small(parameters):
    """Whether to search."""
    good, drawn, every = _drawn_less(parameters)
    return _hypergeometric_mean(good, drawn, every) < 10.0


def hypergeometric_start(parameters):
    """The probability of 0."""
    good, drawn, every = _drawn_less(parameters)
    return exact_exp(hypergeometric_log_probability(0.0 * good, good, drawn, every))


def hypergeometric_next(k, probability, parameters):
    """The probability of k, from that of k - 1."""
    good, drawn, every = _drawn_less(parameters)
    return probability * ((good - k + 1.0) / k * ((drawn - k + 1.0) / (every - good - drawn + k)))


def hypergeometric_end(k, parameters):
    """Undoes the exchanges of `_drawn_less`: of drawn ones and those left, and of good and bad ones."""
    good, bad, drawn = parameters
    fewer, less, _ = _drawn_less(parameters)
    k = select(k > fewer, fewer, k)
    k = select(k > less, less, k)
    k = select(less < drawn, fewer - k, k)
    return select(good < bad, k, drawn - k)


def hypergeometric_setup(parameters):
    """The parameters, the middle and the width of the hat, and the logarithm of the greatest probability."""
    good, drawn, every = _drawn_less(parameters)
    is_small = _hypergeometric_mean(good, drawn, every) < 10.0
    good, drawn, every = select(is_small, 20.0, good), select(is_small, 20.0, drawn), select(is_small, 40.0, every)
    mean = _hypergeometric_mean(good, drawn, every)
    spread = np.sqrt(mean * (1.0 - good / every) * ((every - drawn) / (every - 1.0)) + 0.5)
    mode = np.floor((drawn + 1.0) * ((good + 1.0) / (every + 2.0)))
    greatest = hypergeometric_log_probability(mode, good, drawn, every)
    return good, drawn, every, mean + 0.5, 1.7155277699214135 * spread + 0.8989161620588988, greatest


def hypergeometric_proposal(x0, x1, x2, x3, made):
    """A number, and the height under the hat; none is taken without its probability."""
    _, _, _, middle, width, _ = made
    u = uniform_open(x0)
    return u < 0.0, (np.floor(middle + width * (uniform_open(x1) - 0.5) / u), u)


def hypergeometric_test(x0, x1, x2, x3, made, proposed):
    """Whether the number is taken."""
    good, drawn, every, _, _, greatest = made
    k, u = proposed
    is_inside = (k >= 0.0) & (k <= good) & (k <= drawn)
    probability = hypergeometric_log_probability(select(is_inside, k, 0.0), good, drawn, every)
    return is_inside & (2.0 * exact_log(u) <= probability - greatest)


# angles: D. J. Best & N. I. Fisher, Applied Statistics 28 (1979) 152-157, by tangents of half the angle, so that nothing cancels


def vonmises_setup(parameters):
    """kappa, y = kappa (s - 1) of the method, and the tangent by which half an angle shrinks; 2 kappa may be infinite."""
    (kappa,) = parameters
    y = 0.5 + 0.5 / (np.sqrt(1.0 + 4.0 * kappa * kappa) + 2.0 * kappa)
    return kappa, y, np.sqrt(0.5 * y / (0.5 * y + kappa))


def vonmises_proposal(x0, x1, x2, x3, made):
    """The tangent of half an angle, of a wrapped Cauchy distribution; none is taken without a logarithm."""
    tangent = made[2] * cauchy_of(x0)
    return tangent != tangent, tangent


def vonmises_test(x0, x1, x2, x3, made, proposed):
    """Whether the angle is taken."""
    kappa, y, _ = made
    z = proposed * proposed
    y = y + 2.0 * (kappa * select(z < 1e16, z / (1.0 + z), 1.0))
    return exponential_of(x1) >= y - 1.0 - exact_log(y)


def vonmises_value(x0, x1, x2, x3, made, proposed):
    """The angle, in (-pi, pi)."""
    return 2.0 * exact_arctan(proposed)


# Wald: J. R. Michael, W. R. Schucany & R. W. Haas, The American Statistician 30 (1976) 88-90: one of the two roots of an equation


def wald_setup(parameters):
    """The parameters."""
    return parameters


def wald_proposal(x0, x1, x2, x3, made):
    """The lesser root of the equation for the square of a normal number, and the ratio of mean and root; always accepted."""
    mean, scale = made
    x, _ = normal_pair(x0, x1)
    w = 0.5 * (mean / scale) * (x * x)
    ratio = 1.0 + w + np.sqrt(w * (w + 2.0))
    is_far = ~(w < 1e17)  # 1 is below rounding there, and w may be infinite
    return w == w, (select(is_far, scale / (x * x), mean / ratio), ratio)


def wald_test(x0, x1, x2, x3, made, proposed):
    """Nothing else is tried."""
    return proposed[0] == proposed[0]


def wald_value(x0, x1, x2, x3, made, proposed):
    """One of the two roots."""
    root, ratio = proposed
    return select(uniform_of(x2) * (1.0 + 1.0 / ratio) <= 1.0, root, made[0] * ratio)


# whole numbers below a bound: D. Lemire, ACM Transactions on Modeling and Computer Simulation 29 (2019) 3


def below_setup(parameters):
    """The bound (0 for 2**64), and the low words that are refused."""
    (bound,) = parameters
    divisor = select(bound == U(0), U(1), bound)
    return bound, (~divisor + U(1)) % divisor


def below_proposal(x0, x1, x2, x3, made):
    """The upper word of a product, refused where the lower one says that it would come once too often."""
    bound, refused = made
    high, low = multiply_wide(x0, bound)
    return low >= refused, (high, low)


def below_test(x0, x1, x2, x3, made, proposed):
    """Every word is below 2**64."""
    return made[0] == U(0)


def below_value(x0, x1, x2, x3, made, proposed):
    """The number."""
    return select(made[0] == U(0), x0, proposed[0])


# by inversion -------------------------------------------------------------------------------------------------------


def geometric_of(word, p):
    """How many trials of probability p it takes until one succeeds."""
    tries = np.floor(exponential_of(word) / -exact_log1p(-p)) + 1.0
    return select(tries < 9.2e18, tries, 9.2e18)


# samplers -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Search:
    """Search through a distribution from 0 on, where `is_small`. start: the first probability. following: the next ones. end: the value."""

    is_small: str
    start: str
    following: str
    end: str


@dataclass(frozen=True)
class Sampler:
    """The way to draw an element, by names of functions here.

    setup: the values made of the parameters. proposal: a proposal, and whether it is taken at once. test: whether it is taken otherwise.
    value: its value. dtype: that of the parameters and the result. plain: the condition on the values of `setup` under which a simpler
    value is the same, and that value; only draws of one number ask, arrays always take `value`.
    """

    parameters: int
    setup: str
    proposal: str
    test: str
    value: str
    search: Search | None = None
    dtype: str = "float64"
    plain: tuple[str, str] | None = None


_POISSON = Search("poisson_is_small", "poisson_start", "poisson_next", "poisson_end")
_BINOMIAL = Search("binomial_is_small", "binomial_start", "binomial_next", "binomial_end")
_HYPERGEOMETRIC = Search("hypergeometric_is_small", "hypergeometric_start", "hypergeometric_next", "hypergeometric_end")
SAMPLERS = {
    "random_gamma": Sampler(1, "gamma_setup", "gamma_proposal", "gamma_test", "gamma_value", plain=("gamma_is_plain", "gamma_plain_value")),
    "random_log_gamma": Sampler(
        1, "gamma_setup", "gamma_proposal", "gamma_test", "log_gamma_value", plain=("gamma_is_plain", "log_gamma_plain_value")
    ),
    "random_beta": Sampler(2, "beta_setup", "beta_proposal", "beta_test", "beta_value", plain=("beta_is_plain", "beta_plain_value")),
    "random_poisson": Sampler(1, "poisson_setup", "poisson_proposal", "poisson_test", "count_value", _POISSON),
    "random_binomial": Sampler(2, "binomial_setup", "binomial_proposal", "binomial_test", "count_value", _BINOMIAL),
    "random_hypergeometric": Sampler(
        3, "hypergeometric_setup", "hypergeometric_proposal", "hypergeometric_test", "count_value", _HYPERGEOMETRIC
    ),
    "random_vonmises": Sampler(1, "vonmises_setup", "vonmises_proposal", "vonmises_test", "vonmises_value"),
    "random_wald": Sampler(2, "wald_setup", "wald_proposal", "wald_test", "wald_value"),
    "random_below": Sampler(1, "below_setup", "below_proposal", "below_test", "below_value", dtype="uint64"),
}

METHODS = (
    *("gamma_setup", "gamma_proposal", "_is_gamma", "gamma_test", "gamma_value", "gamma_is_plain", "gamma_plain_value", "log_gamma_value"),
    *("log_gamma_plain_value", "beta_setup", "beta_proposal", "beta_test", "beta_is_plain", "_cube", "beta_plain_value", "beta_value"),
    *("stirling_error", "deviance"),
    *("poisson_log_probability", "binomial_log_probability", "poisson_is_small", "poisson_start", "poisson_next", "poisson_end"),
    *("poisson_setup", "poisson_proposal", "poisson_test", "count_value", "_smaller"),
    *("binomial_is_small", "binomial_start", "binomial_next", "binomial_end", "binomial_setup", "binomial_proposal", "binomial_test"),
    *("_drawn_less", "hypergeometric_log_probability", "_hypergeometric_mean", "hypergeometric_is_small", "hypergeometric_start"),
    *("hypergeometric_next", "hypergeometric_end", "hypergeometric_setup", "hypergeometric_proposal", "hypergeometric_test"),
    *("vonmises_setup", "vonmises_proposal", "vonmises_test", "vonmises_value"),
    *("wald_setup", "wald_proposal", "wald_test", "wald_value"),
    *("below_setup", "below_proposal", "below_test", "below_value", "geometric_of"),
)


def sampled(sampler: Sampler) -> Callable[..., np.ndarray]:
    """A sampler for arrays, called by the oracle. Refused elements go on to their next words."""
    names = globals()
    setup, proposal, test, value = (names[name] for name in (sampler.setup, sampler.proposal, sampler.test, sampler.value))

    def draw(k0: Any, k1: Any, number: Any, position: Any, *parameters: Any) -> np.ndarray:
        arrays = np.broadcast_arrays(k0, k1, number, position, *parameters)
        shape = arrays[0].shape
        k0, k1, number, position, *parameters = (array.reshape(-1) for array in arrays)  # type: ignore[assignment]
        made = np.broadcast_arrays(*setup(tuple(parameters)))
        result = np.full(position.shape, np.nan).astype(sampler.dtype)
        left = np.arange(result.size)
        if sampler.search is not None:
            left = _searched(sampler.search, (k0, k1, number, position), tuple(parameters), result)
        for k in range(1, ATTEMPTS):
            if not left.size:
                break
            words = philox(k0[left], k1[left], np.full(left.shape, k, U), position[left] + U(1), number[left], np.zeros(left.shape, U))
            given = tuple(part[left] for part in made)
            accepted, proposed = proposal(*words, given)
            accepted = accepted | test(*words, given, proposed)
            result[left[accepted]] = value(*words, given, proposed)[accepted]
            left = left[~accepted]
        if sampler.search is not None:
            big = ~names[sampler.search.is_small](tuple(parameters))
            result[big] = names[sampler.search.end](result, tuple(parameters))[big]
        return result.reshape(shape)

    return draw


def _searched(search: Search, place: tuple[Any, ...], parameters: tuple[Any, ...], result: np.ndarray) -> np.ndarray:
    """Fills `result` where search finds it; returns the elements that are left."""
    names = globals()
    is_small = names[search.is_small](parameters)
    chosen = np.flatnonzero(is_small)
    given = tuple(parameter[chosen] for parameter in parameters)
    k0, k1, number, position = (part[chosen] for part in place)
    word, *_ = philox(k0, k1, np.full(chosen.shape, 1, U), position + U(1), number, np.zeros(chosen.shape, U))
    u, probability, k = uniform_of(word), names[search.start](given), np.zeros(chosen.shape)
    while (goes := (u >= probability) & (probability > FEWEST)).any():
        u, k = np.where(goes, u - probability, u), np.where(goes, k + 1.0, k)
        probability = np.where(goes, names[search.following](np.where(k > 0.0, k, 1.0), probability, given), probability)
    result[chosen] = names[search.end](k, given)
    return np.flatnonzero(~is_small)
