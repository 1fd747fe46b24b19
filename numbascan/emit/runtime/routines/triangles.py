"""Cholesky factors and triangular systems of C-contiguous arrays, for generated code: `routine(results…, operands…, fixed values…)`.

As in linalg.py, `cholesky_into_3` is `cholesky_into` for matrices known to have 3 rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...inside.lapack import potrf
from .small import SMALL, column, copy_matrix, helper, in_any_order, inner, known_rows, routine

DOT = 1000  # elements from which BLAS's dot product is as fast as a loop: a call takes as long as a loop over 400
BLOCK = 32  # rows of a triangular system that are solved by loops; the rest is matrix products


@inner
def _cholesky_small(n: int, x: Any, a: Any) -> bool:
    for j in range(n):
        for i in range(j):
            x[i, j] = 0
        pivot = a[j, j].real
        for k in range(j):
            pivot -= x[j, k].real * x[j, k].real + x[j, k].imag * x[j, k].imag
        if pivot <= 0:  # NaN passes, as with LAPACK
            return False
        root = np.sqrt(pivot)
        x[j, j] = root
        for i in range(j + 1, n):
            total = a[i, j]
            for k in range(j):
                total -= x[i, k] * x[j, k].conjugate()
            x[i, j] = total / root
    return True


@helper
def _cholesky_large(x: Any, a: Any) -> bool:
    copy_matrix(x, a)
    if potrf(x, ord("U")) != 0:  # the lower triangle in C order is the upper one to Fortran
        return False
    for i in range(len(a)):
        for j in range(i + 1, len(a)):
            x[i, j] = 0
    return True


@routine
def cholesky_into(x: Any, a: Any) -> bool:
    """The lower triangle x with x @ x^H = a; reads the lower triangle of a. False where a is not positive definite."""
    n = len(a)
    return _cholesky_small(n, x, a) if n <= SMALL else _cholesky_large(x, a)


def _cholesky_known(n: int) -> Any:
    def run(x: Any, a: Any) -> bool:
        return _cholesky_small(n, x, a)

    return run


# triangular systems -------------------------------------------------------------------------------------------------


@inner
def _element(a: Any, i: int, j: int, trans: int) -> Any:
    """Element (i, j) of a, of its transpose (1), or of its conjugate transpose (2)."""
    if trans == 0:
        return a[i, j]
    return a[j, i].conjugate() if trans == 2 else a[j, i]


@inner
def _substitute(n: int, x: Any, a: Any, m: int, lower: bool, trans: int, unit: bool) -> bool:
    """Solves op(a) @ y = x, with y in place of x, for the m columns of x; False where a diagonal element is 0."""
    forward = lower == (trans == 0)
    for step in range(n):
        i = step if forward else n - 1 - step
        for k in range(0 if forward else i + 1, i if forward else n):
            for j in range(m):
                x[i, j] -= _element(a, i, k, trans) * x[k, j]
        if not unit:
            pivot = _element(a, i, i, trans)
            if pivot == 0:
                return False
            for j in range(m):
                x[i, j] /= pivot
    return True


@inner
def _triangular_small(n: int, x: Any, a: Any, b: Any, m: int, lower: bool, trans: int, unit: bool) -> bool:
    for i in range(n):
        for j in range(m):
            x[i, j] = b[i, j]
    return _substitute(n, x, a, m, lower, trans, unit)


@helper
def _part(a: Any, rows: Any, columns: Any, trans: int) -> Any:
    """A contiguous copy of rows and columns (each: start, stop) of op(a)."""
    copy = np.empty((rows[1] - rows[0], columns[1] - columns[0]), a.dtype)
    for i in range(copy.shape[0]):
        for j in range(copy.shape[1]):
            copy[i, j] = _element(a, rows[0] + i, columns[0] + j, trans)
    return copy


@helper
def _triangular_large(x: Any, a: Any, b: Any, lower: bool, trans: int, unit: bool) -> bool:
    """Solves BLOCK rows at a time; the rows solved before enter by a matrix product."""
    n, m = x.shape
    forward = lower == (trans == 0)
    copy_matrix(x, b)
    for step in range(0, n, BLOCK):
        rows = (step, min(n, step + BLOCK)) if forward else (max(0, n - step - BLOCK), n - step)
        solved = (0, rows[0]) if forward else (rows[1], n)
        block = x[rows[0] : rows[1]]
        if solved[0] < solved[1]:
            product = np.empty((len(block), m), a.dtype)
            np.dot(_part(a, rows, solved, trans), x[solved[0] : solved[1]], product)
            for i in range(len(block)):
                for j in range(m):
                    block[i, j] -= product[i, j]
        if not _substitute(len(block), block, _part(a, rows, rows, trans), m, forward, 0, unit):
            return False
    return True


@in_any_order
def _sum_of_products(a: Any, i: int, x: Any, first: int, last: int) -> Any:
    """The dot product of a[i, first:last] and x[first:last]. Callers pass unsigned indices, which need no check for negative ones."""
    total = x.dtype.type(0)
    for k in range(first, last):
        total += a[i, k] * x[k]
    return total


@helper
def _triangular_vector(x: Any, a: Any, b: Any, lower: bool, trans: int, unit: bool) -> bool:
    """Reads `a` row by row. With trans 0 the solved elements enter the next one by a dot product; else each enters all that need it."""
    n = len(x)
    forward = lower == (trans == 0)
    for i in range(n):
        x[i] = b[i]
    for step in range(n):
        i = step if forward else n - 1 - step
        first, last = (0, i) if forward == (trans == 0) else (i + 1, n)
        if trans == 0:
            if last - first < DOT:
                x[i] -= _sum_of_products(a, np.uint64(i), x, np.uint64(first), np.uint64(last))
            else:
                x[i] -= np.dot(a[i, first:last], x[first:last])
        if not unit:
            pivot = _element(a, i, i, trans)
            if pivot == 0:
                return False
            x[i] /= pivot
        if trans != 0:
            for k in range(first, last):
                x[k] -= (a[i, k].conjugate() if trans == 2 else a[i, k]) * x[i]
    return True


@routine
def triangular_into(x: Any, a: Any, b: Any, lower: bool, trans: int, unit: bool) -> bool:
    """op(a) @ x = b for a matrix b; only the one triangle of a is read. False where it is singular."""
    n, m = x.shape
    return _triangular_small(n, x, a, b, m, lower, trans, unit) if n <= BLOCK else _triangular_large(x, a, b, lower, trans, unit)


@routine
def triangular_vector_into(x: Any, a: Any, b: Any, lower: bool, trans: int, unit: bool) -> bool:
    """op(a) @ x = b for a vector b; only the one triangle of a is read. False where it is singular."""
    n = len(x)
    return (
        _triangular_small(n, column(x), a, column(b), 1, lower, trans, unit)
        if n <= BLOCK
        else _triangular_vector(x, a, b, lower, trans, unit)
    )


def _triangular_known(n: int) -> Any:
    def run(x: Any, a: Any, b: Any, lower: bool, trans: int, unit: bool) -> bool:
        return _triangular_small(n, x, a, b, b.shape[1], lower, trans, unit)

    return run


def _triangular_vector_known(n: int) -> Any:
    def run(x: Any, a: Any, b: Any, lower: bool, trans: int, unit: bool) -> bool:
        return _triangular_small(n, column(x), a, column(b), 1, lower, trans, unit)

    return run


__getattr__ = known_rows(
    {
        "cholesky_into": _cholesky_known,
        "triangular_into": _triangular_known,
        "triangular_vector_into": _triangular_vector_known,
    }
)
