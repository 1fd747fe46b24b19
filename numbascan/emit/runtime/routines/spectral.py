"""Eigenvalues, singular values, QR factors and the matrix exponential of C-contiguous arrays, for generated code.

A call is `routine(results…, operands…, fixed values…)`. Eigenvectors, singular vectors and QR factors are LAPACK's for every size: their
signs are what NumPy's or SciPy's are.
"""

from __future__ import annotations

from fractions import Fraction
from math import factorial
from typing import Any

import numpy as np

from ...inside.lapack import cgeev, geqrf, gesdd, heevd, orgqr, rgeev
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


# singular values ----------------------------------------------------------------------------------------------------


@helper
def _is_finite(a: Any) -> bool:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if not np.isfinite(a[i, j]):
                return False
    return True


@helper
def _singular(s: Any, work: Any, u: Any, vh: Any, job: int) -> bool:
    """LAPACK's singular values and vectors of a matrix in Fortran's order; False where it is not finite, or they do not converge."""
    if not _is_finite(work):
        return False
    if len(s) > 0:
        return gesdd(work, s, u, vh, job) == 0
    for vectors in (u, vh):  # without singular values, the vectors that complete a basis are unit vectors
        for i in range(vectors.shape[0]):
            for j in range(vectors.shape[1]):
                vectors[i, j] = 1 if i == j else 0
    return True


@routine
def svd_into(u: Any, s: Any, vh: Any, a: Any) -> bool:
    """u @ diag(s) @ vh = a, singular values in descending order; the shapes of u and vh say how many vectors.

    False where `a` is not finite, or they do not converge.
    """
    work, left, right = np.empty(a.T.shape, a.dtype), np.empty(u.T.shape, a.dtype), np.empty(vh.T.shape, a.dtype)
    copy_transposed(work, a)
    is_full = u.shape[1] > len(s) or vh.shape[0] > len(s)
    if not _singular(s, work, left, right, ord("A") if is_full else ord("S")):
        return False
    copy_transposed(u, left)
    copy_transposed(vh, right)
    return True


@routine
def svdvals_into(s: Any, a: Any) -> bool:
    """Singular values in descending order. False where `a` is not finite, or they do not converge."""
    work, none = np.empty(a.T.shape, a.dtype), np.empty((0, 0), a.dtype)
    copy_transposed(work, a)
    return _singular(s, work, none, none, ord("N"))


@routine
def pinv_into(x: Any, a: Any, rcond: float) -> bool:
    """The pseudo-inverse of `a`: singular values up to rcond times the greatest count as 0.

    False where `a` is not finite, or singular values do not converge.
    """
    m, n = a.shape
    k = min(m, n)
    s, u, vh = np.empty(k, a.real.dtype), np.empty((m, k), a.dtype), np.empty((k, n), a.dtype)
    if not svd_into(u, s, vh, a):
        return False
    left, right = np.empty((n, k), a.dtype), np.empty((k, m), a.dtype)
    for j in range(k):
        factor = 1 / s[j] if s[j] > rcond * s[0] else s[j] * 0
        for i in range(n):
            left[i, j] = vh[j, i].conjugate() * factor
        for i in range(m):
            right[j, i] = u[i, j].conjugate()
    for i in range(n):
        for j in range(m):
            x[i, j] = 0
    if k > SMALL:
        np.dot(left, right, x)
        return True
    for i in range(n):
        for h in range(k):
            for j in range(m):
                x[i, j] += left[i, h] * right[h, j]
    return True


# eigenvalues of any square matrix -----------------------------------------------------------------------------------


@helper
def _eig_real(values: Any, vectors: Any, a: Any, job: int) -> bool:
    n = len(a)
    work, right = np.empty(a.shape, a.dtype), np.empty(a.shape, a.dtype)
    real, imag = np.empty(n, a.dtype), np.empty(n, a.dtype)
    copy_transposed(work, a)
    if n > 0 and (not _is_finite(a) or rgeev(work, real, imag, right, job) != 0):
        return False
    for j in range(n):
        values[j] = complex(real[j], imag[j])
    for j in range(n if job == ord("V") else 0):
        # the vectors of a conjugate pair, j and j + 1: right[j] +- right[j + 1] * 1j
        first, sign = (j - 1, -1) if imag[j] < 0 else (j, 1)
        for i in range(n):
            vectors[i, j] = complex(right[first, i], sign * right[first + 1, i] if imag[j] != 0 else 0)
    return True


@helper
def _eig_complex(values: Any, vectors: Any, a: Any, job: int) -> bool:
    work, right = np.empty(a.shape, a.dtype), np.empty(a.shape, a.dtype)
    copy_transposed(work, a)
    if len(a) > 0 and (not _is_finite(a) or cgeev(work, values, right, job) != 0):
        return False
    if job == ord("V"):
        copy_transposed(vectors, right)
    return True


@routine
def eig_real_into(values: Any, vectors: Any, a: Any) -> bool:
    """Eigenvalues of a real matrix, as complex numbers, and its eigenvectors, one per column. False where there are none."""
    return _eig_real(values, vectors, a, ord("V"))


@routine
def eig_complex_into(values: Any, vectors: Any, a: Any) -> bool:
    """Eigenvalues of a complex matrix, and its eigenvectors, one per column. False where there are none."""
    return _eig_complex(values, vectors, a, ord("V"))


@routine
def eigvals_real_into(values: Any, a: Any) -> bool:
    """Eigenvalues of a real matrix, as complex numbers. False where there are none."""
    return _eig_real(values, np.empty((0, 0), values.dtype), a, ord("N"))


@routine
def eigvals_complex_into(values: Any, a: Any) -> bool:
    """Eigenvalues of a complex matrix. False where there are none."""
    return _eig_complex(values, np.empty((0, 0), a.dtype), a, ord("N"))


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
    """The 1-norm: the largest sum of absolute values in a column; NaN if there is a NaN."""
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
    """x = q(a)^-1 p(a), the Pade approximant of exp; q is p with other signs of the odd powers. False where q(a) is singular."""
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

    False where the denominator of the approximant is singular.
    """
    return _expm(x, a, _DOUBLE)


@routine
def expm_single_into(x: Any, a: Any) -> bool:
    """The exponential of a in single precision."""
    return _expm(x, a, _SINGLE)
