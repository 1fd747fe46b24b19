"""Eigenvalues, QR factors and the matrix exponential of C-contiguous arrays, for generated code.

A call is `routine(results…, operands…, fixed values…)`. Eigenvectors and QR factors are LAPACK's for every size: their signs are what
NumPy's are.
"""

from __future__ import annotations

from fractions import Fraction
from math import factorial
from typing import Any

import numpy as np

from ...inside.lapack import geqrf, heevd, orgqr
from .linalg import solve_large
from .small import SMALL, copy_matrix, copy_transposed, helper, routine, solve_small


@routine
def eigh_into(values: Any, vectors: Any, a: Any, lower: bool) -> bool:
    """Eigenvalues of a Hermitian matrix, ascending, and its eigenvectors, one per column; reads one triangle of a.

    False where they do not converge.
    """
    work = np.empty(a.shape, a.dtype)
    copy_transposed(work, a)  # in Fortran's order: a
    if len(a) > 0 and heevd(work, values, ord("V"), ord("L") if lower else ord("U")) != 0:
        return False
    copy_transposed(vectors, work)
    return True


@routine
def eigvalsh_into(values: Any, a: Any, lower: bool) -> bool:
    """Eigenvalues of a Hermitian matrix, ascending; reads one triangle of a. False where they do not converge."""
    work = np.empty(a.shape, a.dtype)
    copy_transposed(work, a)
    return len(a) == 0 or heevd(work, values, ord("N"), ord("L") if lower else ord("U")) == 0


@routine
def qr_into(q: Any, r: Any, a: Any) -> None:
    """q @ r = a, with orthonormal columns in q and an upper triangle r; the shape of q says how many columns."""
    m, n = a.shape
    k = q.shape[1]
    work, tau = np.empty((max(n, k), m), a.dtype), np.empty(min(m, n), a.dtype)  # in Fortran's order: m rows
    copy_transposed(work, a)
    if len(tau) > 0:
        geqrf(work, tau, m, n)
    for i in range(k):
        for j in range(n):
            r[i, j] = work[j, i] if i <= j else 0
    if k > 0:
        orgqr(work, tau, m, k)
    copy_transposed(q, work[:k])


# the matrix exponential ---------------------------------------------------------------------------------------------


def _pade(degree: int) -> tuple[float, ...]:
    """Coefficients of the numerator of the diagonal Pade approximant of exp, lowest power first."""
    m = degree
    return tuple(
        float(Fraction(factorial(2 * m - j) * factorial(m), factorial(2 * m) * factorial(m - j) * factorial(j))) for j in range(m + 1)
    )


# Higham (2005), The scaling and squaring method for the matrix exponential revisited, SIAM J. Matrix Anal. Appl. 26(4), 1179-1193:
# the largest 1-norm for which the approximant of each degree is exact to rounding, in double and in single precision.
_DOUBLE = (
    (1.495585217958292e-2, 3),
    (2.539398330063230e-1, 5),
    (9.504178996162932e-1, 7),
    (2.097847961257068e0, 9),
    (5.371920351148152e0, 13),
)
_SINGLE = ((4.258730016922831e-1, 3), (1.880152677804762e0, 5), (3.925724783138660e0, 7))
_PADE = tuple(_pade(degree) + (0.0,) * (13 - degree) for degree in range(14))


@helper
def _multiply(product: Any, a: Any, b: Any) -> None:
    n = len(a)
    if n > SMALL:
        np.dot(a, b, product)
        return
    for i in range(n):
        for j in range(n):
            product[i, j] = 0
        for k in range(n):
            for j in range(n):
                product[i, j] += a[i, k] * b[k, j]


@helper
def _norm(a: Any) -> float:
    """The 1-norm: the largest sum of sizes in a column; NaN where there is one."""
    largest = 0.0
    for j in range(len(a)):
        total = 0.0
        for i in range(len(a)):
            total += abs(a[i, j])
        if not total <= largest:
            largest = total
            if np.isnan(total):
                break
    return largest


@helper
def _approximant(x: Any, a: Any, work: Any, degree: int) -> bool:
    """x = q(a)^-1 p(a), where p and q hold the terms of odd power with sign + and -."""
    n = len(a)
    square, power, odd, even, other = work[0], work[1], work[2], work[3], work[4]
    coefficients = _PADE[degree]
    _multiply(square, a, a)
    for i in range(n):
        for k in range(n):
            odd[i, k] = even[i, k] = 0
            power[i, k] = 1 if i == k else 0
    for j in range(0, degree, 2):
        for i in range(n):
            for k in range(n):
                even[i, k] += power[i, k] * coefficients[j]
                odd[i, k] += power[i, k] * coefficients[j + 1]
        if j + 2 < degree:
            _multiply(other, power, square)
            copy_matrix(power, other)
    _multiply(other, a, odd)
    for i in range(n):
        for k in range(n):
            odd[i, k] = even[i, k] - other[i, k]
            even[i, k] += other[i, k]
    return solve_small(n, x, odd, even, n) if n <= SMALL else solve_large(x, odd, even)


@helper
def _expm(x: Any, a: Any, bounds: Any) -> bool:
    norm = _norm(a)
    if not norm < np.inf:
        for i in range(len(x)):
            for j in range(len(x)):
                x[i, j] = np.nan
        return True
    largest, degree = bounds[-1]
    for bound, enough in bounds:
        if norm <= bound:
            degree = enough
            break
    factor, squarings = 1.0, 0
    while norm * factor > largest:
        factor *= 0.5
        squarings += 1
    work = np.empty((6, *a.shape), a.dtype)
    scaled = work[5]
    for i in range(len(a)):
        for j in range(len(a)):
            scaled[i, j] = a[i, j] * factor
    if not _approximant(x, scaled, work, degree):
        return False
    for _ in range(squarings):
        _multiply(scaled, x, x)
        copy_matrix(x, scaled)
    return True


@routine
def expm_into(x: Any, a: Any) -> bool:
    """The exponential of a in double precision, by scaling, a Pade approximant and squaring; NaN where a is not finite.

    False where the approximant has none.
    """
    return _expm(x, a, _DOUBLE)


@routine
def expm_single_into(x: Any, a: Any) -> bool:
    """The exponential of a in single precision."""
    return _expm(x, a, _SINGLE)
