"""Scalar functions for generated code, where NumPy's value is more than one Python operator or one function of `math`.

`type(x)(1)` is a one of the operand's dtype: single precision stays single, unsigned stays unsigned.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from .complexes import (  # noqa: F401 - generated code imports every name from here
    complex_arccos,
    complex_arccosh,
    complex_arcsin,
    complex_arcsinh,
    complex_cos,
    complex_cosh,
    complex_divide,
    complex_exp,
    complex_exp2,
    complex_expm1,
    complex_log,
    complex_log2,
    complex_log10,
    complex_power,
    complex_reciprocal,
    complex_sign,
    complex_sin,
    complex_sinh,
    complex_sqrt,
    complex_square,
    complex_tan,
    complex_tanh,
)
from .intrinsics import wrapping_mul

_scalar = njit(error_model="numpy")  # division by zero gives what IEEE arithmetic gives


@_scalar
def sign(x: Any) -> Any:
    """-1, 0 or 1; NaN for NaN."""
    if x > 0:
        return type(x)(1)
    if x < 0:
        return type(x)(-1)
    return x if x != x else type(x)(0)


@_scalar
def remainder(x: Any, y: Any) -> Any:
    """What floor_divide leaves, with the sign of y; NaN for y == 0."""
    rest = np.fmod(x, y)
    if y == 0:
        return rest
    if rest == 0:
        return math.copysign(rest, y)
    return rest + y if (y < 0) != (rest < 0) else rest


@_scalar
def floor_divide(x: Any, y: Any) -> Any:
    """The greatest whole number <= x / y, exact where x / y rounds up to a whole number."""
    if y == 0:
        return x / y
    rest = np.fmod(x, y)
    quotient = (x - rest) / y
    if rest != 0 and (y < 0) != (rest < 0):
        quotient -= type(x)(1)
    if quotient == 0:
        return math.copysign(type(x)(0), x / y)
    whole = np.floor(quotient)
    return whole + type(x)(1) if quotient - whole > 0.5 else whole


@_scalar
def int_floor_divide(x: Any, y: Any) -> Any:
    """x // y; 0 for y == 0, and the least integer divided by -1 stays itself."""
    if y == 0:
        return y
    return -x if y == -1 else x // y


@_scalar
def float_to_uint64(x: Any) -> Any:
    """x without its fraction; a negative number counts down from 2**64, as NumPy has it."""
    return np.uint64(np.int64(x)) if x < 9223372036854775808.0 else np.uint64(x)


@_scalar
def binomial_split(steps: Any, states: Any) -> Any:
    """How far to go before the next state is stored, when `steps` >= 2 are to be undone with `states` stored at a time.

    With r such that C(states + r, states) is the first not below `steps`, no step is run forward more than r times. Griewank & Walther,
    ACM Transactions on Mathematical Software 26 (2000) 19-45.
    """
    before, now, r = 0, 1, 0
    while now < steps:
        r += 1
        before, now = now, now * (states + r) // r
    if r == 0:
        return 0
    return min(before, steps - before * states // (states + r - 1))


@_scalar
def fewest_slots(steps: Any, memory: Any, state: Any, row: Any) -> Any:
    """The least number of stored states, of `state` bytes, that leave memory for blocks of which so many make up `steps`; 0: none does.

    A step of a block takes `row` bytes, but for its first and last one.
    """
    slots = 1
    while slots * state <= memory:
        longest = (memory - slots * state) // row + 2
        if slots * longest >= steps:
            return slots
        if slots > longest * row // state + 2:  # beyond its greatest value the product falls
            return 0
        slots += 1
    return 0


@_scalar
def thinned_stride(steps: Any, slots: Any) -> Any:
    """The steps between stored states after a loop that thinned them out as they got too many: a power of two."""
    stride = 1
    while slots * stride < steps:
        stride *= 2
    return stride


@_scalar
def int_remainder(x: Any, y: Any) -> Any:
    """x % y with the sign of y; 0 for y == 0."""
    return y if y == 0 else x % y


@_scalar
def int_fmod(x: Any, y: Any) -> Any:
    """x % y with the sign of x, as in C; 0 for y == 0."""
    if y == 0:
        return y
    rest = x % y
    return rest - y if rest != 0 and (rest < 0) != (x < 0) else rest


@_scalar
def int_reciprocal(x: Any) -> Any:
    """1 / x without its fraction. For 0 NumPy leaves the value open; here it is 0."""
    return x if x == 1 or x == -1 else type(x)(0)


@_scalar
def int_square(x: Any) -> Any:
    """x * x, modulo the width of x."""
    return wrapping_mul(x, x)


@_scalar
def int_power(x: Any, n: Any) -> Any:
    """x**n by squaring, modulo the width of x. Raises ValueError for n < 0."""
    if n < 0:
        raise ValueError("np.power: integers to negative integer powers are not allowed; cast the base to float64")
    one = np.uint64(1)  # beside a signed one, Numba makes uint64 operands float64
    result, left = type(x)(1), np.uint64(n)
    while left != 0:
        if left & one != 0:
            result = wrapping_mul(result, x)
        left >>= one
        x = wrapping_mul(x, x)
    return result


@_scalar
def left_shift(x: Any, n: Any) -> Any:
    """x << n; 0 where n is negative or at least 64. Narrower results lose their bits in the cast that follows."""
    return x << n if n >= 0 and n < 64 else x ^ x


@_scalar
def right_shift(x: Any, n: Any) -> Any:
    """x >> n; all bits are the sign where n is negative or at least 64."""
    if n >= 0 and n < 64:
        return x >> n
    return ~(x ^ x) if x < 0 else x ^ x


@_scalar
def heaviside(x: Any, middle: Any) -> Any:
    """0 for x < 0, `middle` for x == 0, 1 for x > 0."""
    if x < 0:
        return type(x)(0)
    if x > 0:
        return type(x)(1)
    return middle if x == 0 else x
