"""LAPACK from compiled code, in place on arrays in Fortran order, without a check for NaN. Importing this imports Numba.

Numba's own `np.linalg` refuses NaN and infinity, which NumPy lets through; so its bindings of LAPACK are called one level lower. Where
they are not there, compiled code calls the functions below as they stand, by SciPy's bindings.

Each gives LAPACK's `info`: 0 where all went well. An array in C order is, to Fortran, its transpose. Arrays are arguments here, so the
caller keeps them alive while LAPACK sees only their addresses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import objmode
from numba.extending import overload, register_jitable  # strict=False: the two signatures may differ in their annotations

from .shortcuts import LAPACK

PIVOT = np.dtype(np.int32 if not LAPACK.is_taken() else LAPACK.F_INT_nptype)


def _binding(name: str, array: Any) -> tuple[Any, int]:
    """LAPACK's function for the array's dtype, and the letter that names the dtype."""
    return getattr(LAPACK._LAPACK(), name)(array.dtype), ord(LAPACK.get_blas_kind(array.dtype, name))


def _by_scipy(name: str, a: Any, *operands: Any, **options: Any) -> Any:
    """What SciPy's binding gives for the matrix that Fortran sees; names of complex functions where they are others."""
    from scipy.linalg.lapack import get_lapack_funcs

    is_complex = np.iscomplexobj(a)
    (function,) = get_lapack_funcs(({"orgqr": "ungqr", "syevd": "heevd"}.get(name, name) if is_complex else name,), (a,))
    return function(a.T, *operands, **options)


@register_jitable
def _through_python(place: int, operands: Any) -> Any:
    with objmode(info="int64"):
        info = _IN_PYTHON[place](*operands)
    return info


def gesv(a: Any, pivots: Any, b: Any, n_columns: int) -> int:
    """Solves a x = b: b becomes x, a its factors; info k > 0 says that the k-th pivot is 0."""
    factors, exchanges, x, info = _by_scipy("gesv", a, b.T)
    a[:], pivots[:], b[:] = factors.T, exchanges + 1, x.T
    return int(info)


@overload(gesv, strict=False)
def _gesv(a: Any, pivots: Any, b: Any, n_columns: Any) -> Any:
    if not LAPACK.is_taken():
        return lambda a, pivots, b, n_columns: _through_python(0, (a, pivots, b, n_columns))
    call, kind = _binding("numba_xgesv", a)
    return lambda a, pivots, b, n_columns: call(kind, len(a), n_columns, a.ctypes, len(a), pivots.ctypes, b.ctypes, len(a))


def getrf(a: Any, pivots: Any) -> int:
    """The factors L and U of a, with row exchanges; info k > 0 says that the k-th pivot is 0."""
    factors, exchanges, info = _by_scipy("getrf", a)
    a[:], pivots[:] = factors.T, exchanges + 1
    return int(info)


@overload(getrf, strict=False)
def _getrf(a: Any, pivots: Any) -> Any:
    if not LAPACK.is_taken():
        return lambda a, pivots: _through_python(1, (a, pivots))
    call, kind = _binding("numba_xxgetrf", a)
    return lambda a, pivots: call(kind, len(a), len(a), a.ctypes, len(a), pivots.ctypes)


def getri(a: Any, pivots: Any) -> int:
    """The inverse, from what getrf made."""
    inverse, info = _by_scipy("getri", a, pivots - 1)
    a[:] = inverse.T
    return int(info)


@overload(getri, strict=False)
def _getri(a: Any, pivots: Any) -> Any:
    if not LAPACK.is_taken():
        return lambda a, pivots: _through_python(2, (a, pivots))
    call, kind = _binding("numba_ez_xxgetri", a)
    return lambda a, pivots: call(kind, len(a), a.ctypes, len(a), pivots.ctypes)


def potrf(a: Any, triangle: int) -> int:
    """The Cholesky factor in the triangle ord("L") or ord("U") of a; info k > 0 says that the k-th leading minor is not positive."""
    factor, info = _by_scipy("potrf", a, lower=triangle == ord("L"), clean=False)
    a[:] = factor.T
    return int(info)


@overload(potrf, strict=False)
def _potrf(a: Any, triangle: Any) -> Any:
    if not LAPACK.is_taken():
        return lambda a, triangle: _through_python(3, (a, triangle))
    call, kind = _binding("numba_xxpotrf", a)
    return lambda a, triangle: call(kind, triangle, len(a), a.ctypes, len(a))


def heevd(a: Any, eigenvalues: Any, job: int, triangle: int) -> int:
    """Eigenvalues, ascending; with job ord("V") a becomes the eigenvectors, one per column. info > 0: no convergence."""
    values, vectors, info = _by_scipy("syevd", a, compute_v=job == ord("V"), lower=triangle == ord("L"))
    eigenvalues[:], a[:] = values, vectors.T
    return int(info)


@overload(heevd, strict=False)
def _heevd(a: Any, eigenvalues: Any, job: Any, triangle: Any) -> Any:
    if not LAPACK.is_taken():
        return lambda a, eigenvalues, job, triangle: _through_python(4, (a, eigenvalues, job, triangle))
    call, kind = _binding("numba_ez_xxxevd", a)
    return lambda a, eigenvalues, job, triangle: call(kind, job, triangle, len(a), a.ctypes, len(a), eigenvalues.ctypes)


def geqrf(a: Any, tau: Any, n_rows: int, n_columns: int) -> int:
    """R in the upper triangle of a, the reflectors of Q below it and in tau."""
    factors, scales, _, info = _by_scipy("geqrf", a[:n_columns])
    a[:n_columns], tau[:] = factors.T, scales
    return int(info)


@overload(geqrf, strict=False)
def _geqrf(a: Any, tau: Any, n_rows: Any, n_columns: Any) -> Any:
    if not LAPACK.is_taken():
        return lambda a, tau, n_rows, n_columns: _through_python(5, (a, tau, n_rows, n_columns))
    call, kind = _binding("numba_ez_geqrf", a)
    return lambda a, tau, n_rows, n_columns: call(kind, n_rows, n_columns, a.ctypes, n_rows, tau.ctypes)


def orgqr(a: Any, tau: Any, n_rows: int, n_columns: int) -> int:
    """The first `n_columns` columns of Q, from as many reflectors as geqrf made."""
    columns, _, info = _by_scipy("orgqr", a[:n_columns], tau)
    a[:n_columns] = columns.T
    return int(info)


@overload(orgqr, strict=False)
def _orgqr(a: Any, tau: Any, n_rows: Any, n_columns: Any) -> Any:
    if not LAPACK.is_taken():
        return lambda a, tau, n_rows, n_columns: _through_python(6, (a, tau, n_rows, n_columns))
    call, kind = _binding("numba_ez_xxgqr", a)
    return lambda a, tau, n_rows, n_columns: call(kind, n_rows, n_columns, len(tau), a.ctypes, n_rows, tau.ctypes)


_IN_PYTHON = (gesv, getrf, getri, potrf, heevd, geqrf, orgqr)
