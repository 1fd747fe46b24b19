"""Random numbers: Philox4x64-10, and functions of its words, each written once for NumPy's arrays and for compiled code.

The functions of METHODS are arithmetic without branches. Here they work on arrays; `emit/runtime/random.py` compiles their text for
numbers, with other functions under the names of PRIMITIVES. They use only +, -, *, /, sqrt and floor, whose results IEEE 754 fixes to
the last bit: every draw has the same bits in every mode, in SIMD code or not. So logarithms and exponentials are made here, not taken
from libm.

Philox: Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import math
from typing import Any

import numpy as np

U = np.uint64

# primitives: NumPy's ------------------------------------------------------------------------------------------------

_HALF, _LOW = U(32), U(0xFFFFFFFF)


def multiply_wide(a, b):
    """The upper and the lower 64 bits of a product of 64-bit words."""
    a_low, a_high, b_low, b_high = a & _LOW, a >> _HALF, b & _LOW, b >> _HALF
    middle = a_high * b_low + (a_low * b_low >> _HALF)
    return a_high * b_high + (middle >> _HALF) + ((middle & _LOW) + a_low * b_high >> _HALF), a * b


def select(condition, a, b):
    """a where the condition holds, else b."""
    return np.where(condition, a, b)


def bits_of(x):
    """The 64 bits of a double."""
    return np.asarray(x, np.float64).view(np.uint64)


def double_of(bits):
    """The double of 64 bits."""
    return np.asarray(bits, np.uint64).view(np.float64)


PRIMITIVES = ("multiply_wide", "select", "bits_of", "double_of")

# words --------------------------------------------------------------------------------------------------------------

_M0, _M1 = U(0xD2E7470EE14C6C93), U(0xCA5A826395121157)
_W0, _W1 = U(0x9E3779B97F4A7C15), U(0xBB67AE8584CAA73B)


def philox(k0, k1, c0, c1, c2, c3):
    """The four words of a counter, under a key of two words."""
    for _ in range(10):
        high0, low0 = multiply_wide(_M0, c0)
        high1, low1 = multiply_wide(_M1, c2)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = k0 + _W0, k1 + _W1
    return c0, c1, c2, c3


def random_bits(k0, k1, number, tag, position):
    """Word `position` of a draw: as NumPy's Philox gives them one after the other for this key and the counter (0, 0, number, tag)."""
    x0, x1, x2, x3 = philox(k0, k1, (position >> U(2)) + U(1), position & U(0), number, tag)
    place = position & U(3)
    return select(place < U(2), select(place == U(0), x0, x1), select(place == U(2), x2, x3))


# from words to numbers ----------------------------------------------------------------------------------------------


def uniform_of(word):
    """A double in [0, 1), as NumPy makes it: a multiple of 2**-53."""
    return np.float64(word >> U(11)) * 1.1102230246251565e-16


def single_uniform_of(word):
    """A number in [0, 1) that single precision holds: a multiple of 2**-24."""
    return np.float64(word >> U(40)) * 5.960464477539063e-08


def uniform_open(word):
    """A double in (0, 1), never either end: the middles of 2**52 equal parts."""
    return (np.float64(word >> U(12)) + 0.5) * 2.220446049250313e-16


_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # the former has 32 bits: whole numbers times it are exact
_ROOT_HALF, _FRACTION = U(0x3FE6A09E667F3BCD), U(0xFFFFFFFFFFFFF)
_ONE_LESS_ROOT_HALF = U(0x3FF0000000000000 - 0x3FE6A09E667F3BCD)


def exact_log(x):
    """The logarithm: x = 2**e m with m in [sqrt(1/2), sqrt(2)), log(m) = 2 atanh(f / (2 + f)) by its power series, f = m - 1.

    The first term left out is below 2**-55 of the sum. Within 2 ulp; x subnormal: as 0.
    """
    moved = bits_of(x) + _ONE_LESS_ROOT_HALF
    e = np.float64(moved >> U(52)) - 1023.0
    f = double_of((moved & _FRACTION) + _ROOT_HALF) - 1.0
    s = f / (2.0 + f)
    z = s * s
    series = z * (1 / 15 + z * (1 / 17 + z * (1 / 19 + z * (1 / 21))))
    series = z * (1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9 + z * (1 / 11 + z * (1 / 13 + series))))))
    value = e * _LN2_HIGH + (2.0 * s + (2.0 * s * series + e * _LN2_LOW))
    value = select(x < 2.2250738585072014e-308, -np.inf, value)
    return select(x >= 0.0, select(x == np.inf, np.inf, value), np.nan)


_TWO_TO_52 = 4503599627370496.0


def exact_exp(x):
    """The exponential: x = k log(2) + r, |r| <= log(2) / 2, exp(r) by its power series. Within 2 ulp, below the normal range 0."""
    k = np.floor(select((x > -708.0) & (x < 710.0), x, 0.0) * 1.4426950408889634 + 0.5)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    tail = 1 / 5040 + r * (
        1 / 40320 + r * (1 / 362880 + r * (1 / 3628800 + r * (1 / 39916800 + r * (1 / 479001600 + r * (1 / 6227020800)))))
    )
    series = 0.5 + r * (1 / 6 + r * (1 / 24 + r * (1 / 120 + r * (1 / 720 + r * tail))))
    power = double_of((bits_of(k + (_TWO_TO_52 + 1022.0)) & U(0xFFF)) << U(52))  # 2**(k - 1): 2**1024 is no double
    value = (1.0 + (r + r * r * series)) * power * 2.0
    value = select(x <= -708.0, 0.0, select(x >= 709.782712893384, np.inf, value))
    return select(x == x, value, np.nan)


def exact_log1p(x):
    """log(1 + x), accurate also for small x; W. Kahan's correction of what rounding 1 + x loses."""
    y = 1.0 + x
    lost = select((y > 0.0) & (y < np.inf), (x - (y - 1.0)) / y, 0.0)
    return select(y == 1.0, x, exact_log(y) + lost)


def exact_arctan(x):
    """The arctangent: a quarter of the angle by its power series, of 1 / |x| where |x| is above 1. Within 4 ulp."""
    is_steep = np.abs(x) > 1.0
    t = select(is_steep, 1.0 / select(is_steep, np.abs(x), 1.0), np.abs(x))
    t = t / (1.0 + np.sqrt(1.0 + t * t))
    t = t / (1.0 + np.sqrt(1.0 + t * t))
    z = t * t
    series = 1 / 13 - z * (1 / 15 - z * (1 / 17 - z * (1 / 19 - z * (1 / 21 - z * (1 / 23 - z * (1 / 25))))))
    series = 1 / 3 - z * (1 / 5 - z * (1 / 7 - z * (1 / 9 - z * (1 / 11 - z * series))))
    angle = 4.0 * (t - t * z * series)
    angle = select(is_steep, 1.5707963267948966 - angle, angle)
    return select(x < 0.0, -angle, angle)


def exponential_of(word):
    """An exponential number of mean 1: the inverse distribution function."""
    return -exact_log(uniform_open(word))


def _turned(quarter, cosine, sine):
    """The cosine of an angle plus `quarter` quarter turns."""
    value = select(quarter & U(1) == U(0), cosine, sine)
    return select((quarter == U(1)) | (quarter == U(2)), -value, value)


def cosine_and_sine(word):
    """A point on the unit circle, anywhere: a number of quarter turns, and from there t in (-pi/4, pi/4), by power series."""
    quarter = word >> U(62)
    t = (uniform_open(word << U(2)) - 0.5) * 1.5707963267948966
    z = t * t
    cosine = 1 / 40320 - z * (1 / 3628800 - z * (1 / 479001600 - z * (1 / 87178291200 - z * (1 / 20922789888000))))
    cosine = 1.0 - z * (0.5 - z * (1 / 24 - z * (1 / 720 - z * cosine)))
    sine = 1 / 362880 - z * (1 / 39916800 - z * (1 / 6227020800 - z * (1 / 1307674368000 - z * (1 / 355687428096000))))
    sine = t - t * z * (1 / 6 - z * (1 / 120 - z * (1 / 5040 - z * sine)))
    return _turned(quarter, cosine, sine), _turned((quarter + U(3)) & U(3), cosine, sine)


def normal_pair(word, other):
    """Two independent normal numbers, of mean 0 and variance 1, from two words: Box & Muller (1958)."""
    radius = np.sqrt(-2.0 * exact_log(uniform_open(word)))
    cosine, sine = cosine_and_sine(other)
    return radius * cosine, radius * sine


def cauchy_of(word):
    """A Cauchy number of median 0 and scale 1: the slope of a line through a point of the unit circle."""
    cosine, sine = cosine_and_sine(word)
    return sine / cosine


def gumbel_of(word):
    """A Gumbel number of location 0 and scale 1: the inverse distribution function."""
    return -exact_log(exponential_of(word))


def laplace_of(word):
    """A Laplace number of mean 0 and scale 1: an exponential one, with a sign from the last bit."""
    size = exponential_of(word)
    return select(word & U(1) == U(0), size, -size)


def logistic_of(word):
    """A logistic number of mean 0 and scale 1: the inverse distribution function."""
    u = uniform_open(word)
    return exact_log(u) - exact_log(1.0 - u)


# a single normal number: M. J. Wichura, algorithm AS 241 (PPND16), Applied Statistics 37 (1988) 477-484; relative error about 1e-16

_FIRST_BIT, _WIDTH_OF_MIDDLE = U(1 << 63), 0.425


def tail_of(word):
    """The probability of a number further out than that of a word, in (0, 1/2]: all bits but the first, rounded only if it is large."""
    return (np.float64(select(word < _FIRST_BIT, word, ~word)) + 0.5) * 5.421010862427522e-20


def is_outside(tail):
    """Whether a number is outside of the middle part of the distribution: 15 in 100 are."""
    return 0.5 - tail > _WIDTH_OF_MIDDLE


def normal_inside(tail):
    """The size of a normal number in the middle part."""
    q = 0.5 - tail
    t = 0.180625 - q * q
    above = 45921.953931549871457 + t * (67265.770927008700853 + t * (33430.575583588128105 + t * 2509.0809287301226727))
    above = 3.3871328727963666080 + t * (133.14166789178437745 + t * (1971.5909503065514427 + t * (13731.693765509461125 + t * above)))
    below = 21213.794301586595867 + t * (39307.895800092710610 + t * (28729.085735721942674 + t * 5226.4952788528545610))
    below = 1.0 + t * (42.313330701600911252 + t * (687.18700749205790830 + t * (5394.1960214247511077 + t * below)))
    return q * above / below


def normal_outside(tail):
    """The size of a normal number in the tails: one function up to a tail of exp(-25), another one beyond."""
    r = np.sqrt(-exact_log(tail))
    is_far = r > 5.0
    t = r - select(is_far, 5.0, 1.6)
    near = 1.27045825245236838258 + t * (0.241780725177450611770 + t * (0.0227238449892691845833 + t * 7.74545014278341407640e-4))
    near = 1.42343711074968357734 + t * (4.63033784615654529590 + t * (5.76949722146069140550 + t * (3.64784832476320460504 + t * near)))
    far = 0.0265321895265761230930 + t * (1.24266094738807843860e-3 + t * (2.71155556874348757815e-5 + t * 2.01033439929228813265e-7))
    far = 6.65790464350110377720 + t * (5.46378491116411436990 + t * (1.78482653991729133580 + t * (0.296560571828504891230 + t * far)))
    above = select(is_far, far, near)
    near = 0.148103976427480074590 + t * (0.0151986665636164571966 + t * (5.47593808499534494600e-4 + t * 1.05075007164441684324e-9))
    near = 1.0 + t * (2.05319162663775882187 + t * (1.67638483018380384940 + t * (0.689767334985100004550 + t * near)))
    far = 7.86869131145613259100e-4 + t * (1.84631831751005468180e-5 + t * (1.42151175831644588870e-7 + t * 2.04426310338993978564e-15))
    far = 1.0 + t * (0.599832206555887937690 + t * (0.136929880922735805310 + t * (0.0148753612908506148525 + t * far)))
    return above / select(is_far, far, near)


def turned_to(word, size):
    """A size with the sign that the first bit of a word says."""
    return select(word < _FIRST_BIT, -size, size)


def normal_of(word):
    """A normal number of mean 0 and variance 1: the inverse distribution function at (word + 1/2) 2**-64, up to 9.155 on either side."""
    tail = tail_of(word)
    return turned_to(word, select(is_outside(tail), normal_outside(tail), normal_inside(tail)))


def random_normal(k0, k1, number, tag, position):
    """Normal number `position` of a draw: words 2j and 2j + 1 give the numbers 2j and 2j + 1."""
    x0, x1, x2, x3 = philox(k0, k1, (position >> U(2)) + U(1), position & U(0), number, tag)
    is_first = position & U(2) == U(0)
    one, other = normal_pair(select(is_first, x0, x2), select(is_first, x1, x3))
    return select(position & U(1) == U(0), one, other)


METHODS = (
    *(
        "philox",
        "random_bits",
        "uniform_of",
        "single_uniform_of",
        "uniform_open",
        "exact_log",
        "exact_exp",
        "exact_log1p",
        "exact_arctan",
        "exponential_of",
    ),
    *("_turned", "cosine_and_sine", "normal_pair", "cauchy_of", "gumbel_of", "laplace_of", "logistic_of", "random_normal"),
    *("tail_of", "is_outside", "normal_inside", "normal_outside", "turned_to", "normal_of"),
)


# whole draws, for the oracle ----------------------------------------------------------------------------------------


def words(k0: Any, k1: Any, number: Any, count: int) -> np.ndarray:
    """The first `count` words of a draw."""
    blocks = np.arange(1, -(-count // 4) + 1, dtype=U)
    with np.errstate(over="ignore"):
        made = philox(U(k0), U(k1), blocks, U(0) * blocks, U(number), U(0))
    return np.stack(np.broadcast_arrays(*made), axis=-1).reshape(-1)[:count]


def normals(k0: Any, k1: Any, number: Any, count: int) -> np.ndarray:
    """The first `count` normal numbers of a draw."""
    made = words(k0, k1, number, count + count % 2)
    return np.stack(normal_pair(made[::2], made[1::2]), axis=-1).reshape(-1)[:count]


assert math.isclose(_LN2_HIGH + _LN2_LOW, math.log(2.0), rel_tol=1e-16)
