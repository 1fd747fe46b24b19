"""Functions that generated code calls, written with public names of NumPy and Numba, for standalone modules (`emit/export/module.py`).

A function here replaces that of the same name in `intrinsics.py`, `vecmath.py`, `random.py`, `routines/` or `inside/`. Its text is copied
into modules, with all that it calls, so nothing here may import numbascan but functions that can be copied, too. Results agree up to the
last bits of libm's functions and of sums in any order; loops are not stopped by signals, and lanes run in one thread.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from .routines.sorting import _merge_sort_into

helper = njit(error_model="numpy")
inner = njit(error_model="numpy", forceinline=True)
in_any_order = njit(error_model="numpy", fastmath={"reassoc"})  # sums take several accumulators
routine = helper

# memory ---------------------------------------------------------------------------------------------------------------


@inner
def small_array(shape: Any, dtype: Any) -> Any:
    """A work row."""
    return np.empty(shape, dtype)


@inner
def column(x: Any) -> Any:
    """A vector seen as a matrix of one column."""
    return x.reshape((-1, 1))


# integers: Numba tells LLVM that signed arithmetic never overflows; unsigned arithmetic may ---------------------------------


@inner
def wrapping_add(x: Any, y: Any) -> Any:
    """x + y of whole numbers, modulo 2**64."""
    return type(x | y)(np.uint64(x) + np.uint64(y))


@inner
def wrapping_sub(x: Any, y: Any) -> Any:
    """x - y of whole numbers, modulo 2**64."""
    return type(x | y)(np.uint64(x) - np.uint64(y))


@inner
def wrapping_mul(x: Any, y: Any) -> Any:
    """x * y of whole numbers, modulo 2**64."""
    return type(x | y)(np.uint64(x) * np.uint64(y))


# in any order -----------------------------------------------------------------------------------------------------------


@njit(error_model="numpy", forceinline=True, fastmath={"reassoc"})
def add_any_order(x: Any, y: Any) -> Any:
    """x + y in a sum that may take several accumulators."""
    return x + y


@inner
def max_or_nan(x: Any, y: Any) -> Any:
    """The greater one, NaN where one is NaN."""
    return x if x > y or x != x else y


@inner
def min_or_nan(x: Any, y: Any) -> Any:
    """The lesser one, NaN where one is NaN."""
    return x if x < y or x != x else y


# functions of libm; float32 stays float32 ---------------------------------------------------------------------------------


@inner
def exp(x: Any) -> Any:
    """e**x."""
    return math.exp(x)


@inner
def expm1(x: Any) -> Any:
    """e**x - 1."""
    return math.expm1(x)


@inner
def exp2(x: Any) -> Any:
    """2**x."""
    return math.exp2(x)


@inner
def log(x: Any) -> Any:
    """The natural logarithm."""
    return math.log(x)


@inner
def log1p(x: Any) -> Any:
    """log(1 + x)."""
    return math.log1p(x)


@inner
def log2(x: Any) -> Any:
    """The logarithm to base 2."""
    return math.log2(x)


@inner
def log10(x: Any) -> Any:
    """The logarithm to base 10."""
    return math.log10(x)


@inner
def sin(x: Any) -> Any:
    """The sine."""
    return math.sin(x)


@inner
def cos(x: Any) -> Any:
    """The cosine."""
    return math.cos(x)


@inner
def tan(x: Any) -> Any:
    """The tangent."""
    return math.tan(x)


@inner
def asin(x: Any) -> Any:
    """The inverse sine."""
    return math.asin(x)


@inner
def acos(x: Any) -> Any:
    """The inverse cosine."""
    return math.acos(x)


@inner
def atan(x: Any) -> Any:
    """The inverse tangent."""
    return math.atan(x)


@inner
def sinh(x: Any) -> Any:
    """The hyperbolic sine."""
    return math.sinh(x)


@inner
def cosh(x: Any) -> Any:
    """The hyperbolic cosine."""
    return math.cosh(x)


@inner
def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    return math.tanh(x)


@inner
def asinh(x: Any) -> Any:
    """The inverse hyperbolic sine."""
    return math.asinh(x)


@inner
def acosh(x: Any) -> Any:
    """The inverse hyperbolic cosine."""
    return math.acosh(x)


@inner
def atanh(x: Any) -> Any:
    """The inverse hyperbolic tangent."""
    return math.atanh(x)


@inner
def erf(x: Any) -> Any:
    """The error function."""
    return math.erf(x)


@inner
def erfc(x: Any) -> Any:
    """1 - erf(x)."""
    return math.erfc(x)


@inner
def cbrt(x: Any) -> Any:
    """The cube root."""
    return np.cbrt(x)


@inner
def pow(x: Any, y: Any) -> Any:
    """x**y."""
    return math.pow(x, y)


@inner
def atan2(x: Any, y: Any) -> Any:
    """The angle of the point (y, x)."""
    return math.atan2(x, y)


@inner
def hypot(x: Any, y: Any) -> Any:
    """The length of the vector (x, y)."""
    return math.hypot(x, y)


# what SciPy has for numbascan's own code ------------------------------------------------------------------------------------

_BY_SQUARES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
"""Bernoulli numbers B_2k / 2k."""


@helper
def digamma(x: Any) -> Any:
    """The logarithmic derivative of the gamma function, by its asymptotic series from 10 on; error 2e-15, relative if the value exceeds 1.

    DLMF 5.5.2, 5.5.4 and 5.11.2. At poles as SciPy's: infinite at zeros, NaN at negative whole numbers.
    """
    y, value = np.float64(x), 0.0
    if y == 0:
        return type(x)(-math.copysign(np.inf, y))
    if y < 0:
        part = y - np.rint(y)
        if part == 0:
            return type(x)(np.nan)
        value, y = -math.pi / math.tan(math.pi * part), 1.0 - y
    while y < 10.0:
        value -= 1.0 / y
        y += 1.0
    z, power = 1.0 / (y * y), 1.0
    series = 0.0
    for k in range(len(_BY_SQUARES)):
        power *= z
        series += _BY_SQUARES[k] * power
    return type(x)(value + (math.log(y) - 0.5 / y - series))


# words of random numbers ------------------------------------------------------------------------------------------------


@inner
def multiply_wide(a: Any, b: Any) -> Any:
    """The upper and the lower 64 bits of a product of 64-bit words."""
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a_low, a_high, b_low, b_high = a & low, a >> half, b & low, b >> half
    middle = a_high * b_low + (a_low * b_low >> half)
    return a_high * b_high + (middle >> half) + ((middle & low) + a_low * b_high >> half), a * b


@inner
def select(condition: Any, a: Any, b: Any) -> Any:
    """a where the condition holds, else b."""
    return a if condition else b


@inner
def bits_of(x: Any) -> Any:
    """The 64 bits of a double."""
    return np.float64(x).view(np.uint64)


@inner
def double_of(bits: Any) -> Any:
    """The double of 64 bits."""
    return np.uint64(bits).view(np.float64)


# whole arrays -----------------------------------------------------------------------------------------------------------

sort_into = _merge_sort_into


@helper
def _dot_by_loops(a: Any, b: Any, result: Any) -> None:
    """result = a @ b as sums of rows of `b`: SIMD adds whole rows."""
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            result[i, j] = 0
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                result[i, j] += a[i, k] * b[k, j]


@helper
def row_products(out: Any, a: Any, w: Any) -> None:
    """out = a @ w, each row computed by itself."""
    _dot_by_loops(a, w, out)


@in_any_order
def _dot_of_rows(a: Any, x: Any, result: Any) -> None:
    for i in range(a.shape[0]):
        total = result.dtype.type(0)
        for k in range(len(x)):
            total += a[i, k] * x[k]
        result[i] = total


@in_any_order
def _dot_of_vectors(a: Any, b: Any) -> Any:
    total = a.dtype.type(0)
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


try:
    import scipy.linalg.cython_blas  # noqa: F401 - by which Numba's np.dot calls BLAS

    HAS_BLAS = True
except ImportError:
    HAS_BLAS = False

if HAS_BLAS:

    @helper
    def dot(a: Any, b: Any) -> Any:
        """The product of two vectors."""
        return np.dot(a, b)

    @helper
    def dot_into(a: Any, b: Any, result: Any) -> None:
        """Makes `result` the product of two matrices, or of a matrix and a vector."""
        np.dot(a, b, result)

else:

    @helper
    def dot(a: Any, b: Any) -> Any:
        """The product of two vectors."""
        return _dot_of_vectors(a, b)

    @helper
    def dot_into(a: Any, b: Any, result: Any) -> None:
        """Makes `result` the product of two matrices, or of a matrix and a vector."""
        if b.ndim == 1:
            _dot_of_rows(a, b, result)
        else:
            _dot_by_loops(a, b, result)


# LAPACK's routines by loops. Arrays are in Fortran's order: a[j, i] is the element in row i and column j -----------------

PIVOT = np.dtype(np.int32)


@helper
def getrf(a: Any, pivots: Any) -> int:
    """The factors L and U of a, with row exchanges, counted from 1; info k > 0 says that the k-th pivot is 0."""
    n_columns, n_rows = a.shape
    info = 0
    for k in range(min(n_rows, n_columns)):
        largest = k
        for i in range(k + 1, n_rows):
            if abs(a[k, i].real) + abs(a[k, i].imag) > abs(a[k, largest].real) + abs(a[k, largest].imag):
                largest = i
        pivots[k] = largest + 1
        if a[k, largest] == 0:
            info = k + 1 if info == 0 else info
            continue
        if largest != k:
            for j in range(n_columns):
                a[j, k], a[j, largest] = a[j, largest], a[j, k]
        for i in range(k + 1, n_rows):
            a[k, i] /= a[k, k]
        for j in range(k + 1, n_columns):
            for i in range(k + 1, n_rows):
                a[j, i] -= a[k, i] * a[j, k]
    return info


@helper
def _solve_factored(a: Any, pivots: Any, b: Any) -> None:
    """Solves in place for each row of `b` (Fortran's order), given LU factors `a` and their row exchanges."""
    n = len(a)
    for column in range(len(b)):
        x = b[column]
        for k in range(n):
            x[k], x[pivots[k] - 1] = x[pivots[k] - 1], x[k]
        for k in range(n):
            for i in range(k + 1, n):
                x[i] -= a[k, i] * x[k]
        for step in range(n):
            k = n - 1 - step
            x[k] /= a[k, k]
            for i in range(k):
                x[i] -= a[k, i] * x[k]


@helper
def gesv(a: Any, pivots: Any, b: Any, n_columns: int) -> int:
    """Solves a x = b: b becomes x, a its factors; info k > 0 says that the k-th pivot is 0."""
    info = getrf(a, pivots)
    if info == 0:
        _solve_factored(a, pivots, b)
    return info


@helper
def getri(a: Any, pivots: Any) -> int:
    """The inverse, in place of getrf's factors."""
    n = len(a)
    inverse = np.empty((n, n), a.dtype)
    for j in range(n):
        for i in range(n):
            inverse[j, i] = 1 if i == j else 0
    _solve_factored(a, pivots, inverse)
    for j in range(n):
        for i in range(n):
            a[j, i] = inverse[j, i]
    return 0


@helper
def potrf(a: Any, triangle: int) -> int:
    """The Cholesky factor in the triangle ord("U") of a; info k > 0 says that the k-th leading minor is not positive."""
    for j in range(len(a)):
        pivot = a[j, j].real
        for k in range(j):
            pivot -= a[j, k].real * a[j, k].real + a[j, k].imag * a[j, k].imag
        if pivot <= 0:  # NaN passes, as with LAPACK
            return j + 1
        root = np.sqrt(pivot)
        a[j, j] = root
        for i in range(j + 1, len(a)):
            total = a[i, j]
            for k in range(j):
                total -= a[i, k] * np.conj(a[j, k])
            a[i, j] = total / root
    return 0
