"""Linear systems, inverses and determinants of C-contiguous arrays, for generated code: `routine(results…, operands…)`.

Matrices of up to SMALL rows are handled by plain loops without allocation, larger ones by LAPACK. `solve_vector_into_3` is
`solve_vector_into` for matrices known to have 3 rows: the compiler unrolls its loops (16, 25, 40 ns for 2, 3, 4 rows; LAPACK takes
280 to 420).

A routine returns False if a matrix is singular, and the generated code, which knows the user's line, raises the error. If the routine
raised it, Numba could not remove its atomic reference counts, some 20 ns a call.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from ...inside.lapack import PIVOT, gesv, getrf, getri
from .small import (
    SMALL,
    column,
    copy_in,
    copy_matrix,
    copy_transposed,
    eliminate,
    helper,
    inner,
    known_rows,
    magnitude,
    routine,
    solve_small,
    stack_memory,
)

# solve and inv ------------------------------------------------------------------------------------------------------


@helper
def solve_large(x: Any, a: Any, b: Any) -> bool:
    """a @ x = b for a matrix b; False where a is singular."""
    n, m = x.shape
    matrix, columns = np.empty((n, n), a.dtype), np.empty((m, n), a.dtype)  # in Fortran's order: a, b
    copy_transposed(matrix, a)
    copy_transposed(columns, b)
    if gesv(matrix, np.empty(n, PIVOT), columns, m) != 0:
        return False
    copy_transposed(x, columns)
    return True


@routine
def solve_into(x: Any, a: Any, b: Any) -> bool:
    """a @ x = b for a matrix b; False where a is singular."""
    n = len(a)
    return solve_small(n, x, a, b, b.shape[1]) if n <= SMALL else solve_large(x, a, b)


@routine
def solve_vector_into(x: Any, a: Any, b: Any) -> bool:
    """a @ x = b for a vector b; False where a is singular."""
    n = len(a)
    return solve_small(n, column(x), a, column(b), 1) if n <= SMALL else solve_large(column(x), a, column(b))


def _solve_known(n: int) -> Any:
    def run(x: Any, a: Any, b: Any) -> bool:
        return solve_small(n, x, a, b, b.shape[1])

    return run


def _solve_vector_known(n: int) -> Any:
    def run(x: Any, a: Any, b: Any) -> bool:
        return solve_small(n, column(x), a, column(b), 1)

    return run


@inner
def _inv_small(n: int, x: Any, a: Any) -> bool:
    for i in range(n):
        for j in range(n):
            x[i, j] = 1 if i == j else 0
    return solve_small(n, x, a, x, n)


@helper
def _inv_large(x: Any, a: Any) -> bool:
    copy_matrix(x, a)  # to Fortran the transpose of a; what comes back is the transpose of its inverse
    pivots = np.empty(len(a), PIVOT)
    return getrf(x, pivots) == 0 and getri(x, pivots) == 0


@routine
def inv_into(x: Any, a: Any) -> bool:
    """The inverse of a; False where it is singular."""
    n = len(a)
    return _inv_small(n, x, a) if n <= SMALL else _inv_large(x, a)


def _inv_known(n: int) -> Any:
    def run(x: Any, a: Any) -> bool:
        return _inv_small(n, x, a)

    return run


# factors ------------------------------------------------------------------------------------------------------------


@routine
def lu_into(lu: Any, pivots: Any, a: Any) -> None:
    """The factors L (without its diagonal of ones) and U in one matrix, and for each row in turn the row that it was exchanged with."""
    m, n = a.shape
    work, exchanged = np.empty((n, m), a.dtype), np.empty(min(m, n), PIVOT)  # in Fortran's order: m rows
    copy_transposed(work, a)
    if len(exchanged) > 0:
        getrf(work, exchanged)
    copy_transposed(lu, work)
    for k in range(len(exchanged)):
        pivots[k] = exchanged[k] - 1


@routine
def permutation_into(order: Any, pivots: Any) -> bool:
    """The order of rows after they were exchanged in turn; False for an exchange with a row that is not there."""
    n = len(pivots)
    for k in range(n):
        order[k] = k
    for k in range(n):
        j = pivots[k]
        if not 0 <= j < n:
            return False
        order[k], order[j] = order[j], order[k]
    return True


# determinants -------------------------------------------------------------------------------------------------------


@inner
def _phase_and_log(n: int, lu: Any, sign: int, phase: Any, log: Any) -> None:
    """The product of pivots as a unit number and the logarithm of its size; (0, -inf) where the sign is 0."""
    phase[0] = sign
    log[0] = 0 if sign != 0 else -np.inf
    for k in range(n if sign != 0 else 0):
        size = abs(lu[k, k])
        phase[0] *= lu[k, k] / size
        log[0] += np.log(size)


@inner
def _det_of(n: int, lu: Any, sign: int, det: Any) -> None:
    """The product of pivots; by logarithms, as NumPy does it, where a partial product may overflow or lose digits."""
    det[0] = sign
    is_safe = True
    for k in range(n if sign != 0 else 0):
        det[0] *= lu[k, k]
        is_safe = is_safe and 1e-30 < magnitude(det[0]) < 1e30
    if not is_safe:
        det[0], log = sign, 0.0
        for k in range(n):
            size = abs(lu[k, k])
            det[0] *= lu[k, k] / size
            log += np.log(size)
        det[0] *= np.exp(log)


@helper
def _factored(a: Any) -> Any:
    """LAPACK's factors of the transpose of a, and the sign of the row exchanges, 0 where a is singular."""
    lu, pivots = np.empty(a.shape, a.dtype), np.empty(len(a), PIVOT)
    copy_matrix(lu, a)
    sign = 1 if getrf(lu, pivots) == 0 else 0
    for k in range(len(a)):
        if pivots[k] != k + 1:
            sign = -sign
    return lu, sign


@inner
def _det_small(n: int, det: Any, a: Any) -> None:
    lu = numba.carray(stack_memory(a), (SMALL, SMALL))
    copy_in(n, lu, a)
    _det_of(n, lu, eliminate(n, lu, lu, 0), det)


@inner
def _slogdet_small(n: int, sign: Any, log: Any, a: Any) -> None:
    lu = numba.carray(stack_memory(a), (SMALL, SMALL))
    copy_in(n, lu, a)
    _phase_and_log(n, lu, eliminate(n, lu, lu, 0), sign, log)


@routine
def det_into(det: Any, a: Any) -> None:
    """The determinant of a, into an array of one element."""
    if len(a) <= SMALL:
        _det_small(len(a), det, a)
    else:
        lu, exchanges = _factored(a)
        _det_of(len(a), lu, exchanges, det)


@routine
def slogdet_into(sign: Any, log: Any, a: Any) -> None:
    """Sign (or phase) of the determinant of a and the logarithm of its size, into arrays of one element."""
    if len(a) <= SMALL:
        _slogdet_small(len(a), sign, log, a)
    else:
        lu, exchanges = _factored(a)
        _phase_and_log(len(a), lu, exchanges, sign, log)


def _det_known(n: int) -> Any:
    def run(det: Any, a: Any) -> None:
        _det_small(n, det, a)

    return run


def _slogdet_known(n: int) -> Any:
    def run(sign: Any, log: Any, a: Any) -> None:
        _slogdet_small(n, sign, log, a)

    return run


__getattr__ = known_rows(
    {
        "solve_into": _solve_known,
        "solve_vector_into": _solve_vector_known,
        "inv_into": _inv_known,
        "det_into": _det_known,
        "slogdet_into": _slogdet_known,
    }
)
