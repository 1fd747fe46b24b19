"""LAPACK from compiled code, in place on arrays in Fortran order, without a check for NaN.

Numba's own `np.linalg` refuses NaN and infinity, which NumPy lets through; so its bindings of LAPACK are called one level lower.
The functions here have a body only under Numba, and give LAPACK's `info`: 0 where all went well. An array in C order is, to
Fortran, its transpose. Arrays are arguments here, so the caller keeps them alive while LAPACK sees only their addresses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload  # strict=False: the two signatures may differ in their annotations
from numba.np.linalg import _LAPACK, F_INT_nptype, get_blas_kind

PIVOT = np.dtype(F_INT_nptype)


def _binding(name: str, array: Any) -> tuple[Any, int]:
    """LAPACK's function for the array's dtype, and the letter that names the dtype."""
    return getattr(_LAPACK(), name)(array.dtype), ord(get_blas_kind(array.dtype, name))


def gesv(a: Any, pivots: Any, b: Any, n_columns: int) -> int:
    """Solves a x = b: b becomes x, a its factors; info k > 0 says that the k-th pivot is 0."""
    raise NotImplementedError


@overload(gesv, strict=False)
def _gesv(a: Any, pivots: Any, b: Any, n_columns: Any) -> Any:
    call, kind = _binding("numba_xgesv", a)
    return lambda a, pivots, b, n_columns: call(kind, len(a), n_columns, a.ctypes, len(a), pivots.ctypes, b.ctypes, len(a))


def getrf(a: Any, pivots: Any) -> int:
    """The factors L and U of a, with row exchanges; info k > 0 says that the k-th pivot is 0."""
    raise NotImplementedError


@overload(getrf, strict=False)
def _getrf(a: Any, pivots: Any) -> Any:
    call, kind = _binding("numba_xxgetrf", a)
    return lambda a, pivots: call(kind, len(a), len(a), a.ctypes, len(a), pivots.ctypes)


def getri(a: Any, pivots: Any) -> int:
    """The inverse, from what getrf made."""
    raise NotImplementedError


@overload(getri, strict=False)
def _getri(a: Any, pivots: Any) -> Any:
    call, kind = _binding("numba_ez_xxgetri", a)
    return lambda a, pivots: call(kind, len(a), a.ctypes, len(a), pivots.ctypes)


def potrf(a: Any, triangle: int) -> int:
    """The Cholesky factor in the triangle ord("L") or ord("U") of a; info k > 0 says that the k-th leading minor is not positive."""
    raise NotImplementedError


@overload(potrf, strict=False)
def _potrf(a: Any, triangle: Any) -> Any:
    call, kind = _binding("numba_xxpotrf", a)
    return lambda a, triangle: call(kind, triangle, len(a), a.ctypes, len(a))


def heevd(a: Any, eigenvalues: Any, job: int, triangle: int) -> int:
    """Eigenvalues, ascending; with job ord("V") a becomes the eigenvectors, one per column. info > 0: no convergence."""
    raise NotImplementedError


@overload(heevd, strict=False)
def _heevd(a: Any, eigenvalues: Any, job: Any, triangle: Any) -> Any:
    call, kind = _binding("numba_ez_xxxevd", a)
    return lambda a, eigenvalues, job, triangle: call(kind, job, triangle, len(a), a.ctypes, len(a), eigenvalues.ctypes)


def geqrf(a: Any, tau: Any, n_rows: int, n_columns: int) -> int:
    """R in the upper triangle of a, the reflectors of Q below it and in tau."""
    raise NotImplementedError


@overload(geqrf, strict=False)
def _geqrf(a: Any, tau: Any, n_rows: Any, n_columns: Any) -> Any:
    call, kind = _binding("numba_ez_geqrf", a)
    return lambda a, tau, n_rows, n_columns: call(kind, n_rows, n_columns, a.ctypes, n_rows, tau.ctypes)


def orgqr(a: Any, tau: Any, n_rows: int, n_columns: int) -> int:
    """The first `n_columns` columns of Q, from as many reflectors as geqrf made."""
    raise NotImplementedError


@overload(orgqr, strict=False)
def _orgqr(a: Any, tau: Any, n_rows: Any, n_columns: Any) -> Any:
    call, kind = _binding("numba_ez_xxgqr", a)
    return lambda a, tau, n_rows, n_columns: call(kind, n_rows, n_columns, len(tau), a.ctypes, n_rows, tau.ctypes)
