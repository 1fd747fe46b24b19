"""LAPACK from compiled code, in place on arrays in Fortran order, without a check for NaN. Importing this imports Numba.

Numba's own `np.linalg` refuses NaN and infinity, which NumPy lets through; so its bindings of LAPACK are called one level lower. Where
they are missing, compiled code calls the functions below through Python, which use SciPy's bindings.

Each gives LAPACK's `info`: 0 where all went well. An array in C order is, to Fortran, its transpose. Arrays are arguments here, so the
caller keeps them alive while LAPACK sees only their addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import objmode
from numba.extending import overload, register_jitable  # strict=False: the two signatures may differ in their annotations

from .shortcuts import LAPACK

PIVOT = np.dtype(np.int32 if not LAPACK.is_taken() else LAPACK.F_INT_nptype)


def _by_scipy(name: str, a: Any, *operands: Any, **options: Any) -> Any:
    """The results of SciPy's binding for the matrix that Fortran sees, under its complex name where that is another one."""
    from scipy.linalg.lapack import get_lapack_funcs

    is_complex = np.iscomplexobj(a)
    (function,) = get_lapack_funcs(({"orgqr": "ungqr", "syevd": "heevd"}.get(name, name) if is_complex else name,), (a,))
    return function(a.T, *operands, **options)


_IN_PYTHON: list[Callable[..., int]] = []


@register_jitable
def _through_python(place: int, operands: Any) -> Any:
    with objmode(info="int64"):
        info = _IN_PYTHON[place](*operands)
    return info


def _bound(binding: str, native: Callable[..., Callable[..., int]]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Decorator: compiled code calls Numba's `binding` in place of the function.

    `native` makes that call from the binding and the letter of the first argument's dtype.
    """

    def decorated(function: Callable[..., int]) -> Callable[..., int]:
        place = len(_IN_PYTHON)
        _IN_PYTHON.append(function)

        def typed(a: Any, *others: Any) -> Callable[..., int]:
            if not LAPACK.is_taken():
                return lambda *operands: _through_python(place, operands)
            return native(getattr(LAPACK._LAPACK(), binding)(a.dtype), ord(LAPACK.get_blas_kind(a.dtype, binding)))

        overload(function, strict=False)(typed)
        return function

    return decorated


@_bound(
    "numba_xgesv",
    lambda call, kind: lambda a, pivots, b, n_columns: call(kind, len(a), n_columns, a.ctypes, len(a), pivots.ctypes, b.ctypes, len(a)),
)
def gesv(a: Any, pivots: Any, b: Any, n_columns: int) -> int:
    """Solves a x = b: b becomes x, a its factors; info k > 0 says that the k-th pivot is 0."""
    factors, exchanges, x, info = _by_scipy("gesv", a, b.T)
    a[:], pivots[:], b[:] = factors.T, exchanges + 1, x.T
    return int(info)


@_bound("numba_xxgetrf", lambda call, kind: lambda a, pivots: call(kind, a.shape[1], len(a), a.ctypes, a.shape[1], pivots.ctypes))
def getrf(a: Any, pivots: Any) -> int:
    """The factors L and U of a, with row exchanges, counted from 1; info k > 0 says that the k-th pivot is 0."""
    factors, exchanges, info = _by_scipy("getrf", a)
    a[:], pivots[:] = factors.T, exchanges + 1
    return int(info)


@_bound("numba_ez_xxgetri", lambda call, kind: lambda a, pivots: call(kind, len(a), a.ctypes, len(a), pivots.ctypes))
def getri(a: Any, pivots: Any) -> int:
    """The inverse, in place of getrf's factors."""
    inverse, info = _by_scipy("getri", a, pivots - 1)
    a[:] = inverse.T
    return int(info)


@_bound("numba_xxpotrf", lambda call, kind: lambda a, triangle: call(kind, triangle, len(a), a.ctypes, len(a)))
def potrf(a: Any, triangle: int) -> int:
    """The Cholesky factor in the triangle ord("L") or ord("U") of a; info k > 0 says that the k-th leading minor is not positive."""
    factor, info = _by_scipy("potrf", a, lower=triangle == ord("L"), clean=False)
    a[:] = factor.T
    return int(info)


@_bound(
    "numba_ez_xxxevd",
    lambda call, kind: lambda a, values, job, triangle: call(kind, job, triangle, len(a), a.ctypes, len(a), values.ctypes),
)
def heevd(a: Any, eigenvalues: Any, job: int, triangle: int) -> int:
    """Eigenvalues, ascending; with job ord("V") a becomes the eigenvectors, one per column. info > 0: no convergence."""
    values, vectors, info = _by_scipy("syevd", a, compute_v=job == ord("V"), lower=triangle == ord("L"))
    eigenvalues[:], a[:] = values, vectors.T
    return int(info)


@_bound("numba_ez_geqrf", lambda call, kind: lambda a, tau, n_rows, n_columns: call(kind, n_rows, n_columns, a.ctypes, n_rows, tau.ctypes))
def geqrf(a: Any, tau: Any, n_rows: int, n_columns: int) -> int:
    """R in the upper triangle of a, the reflectors of Q below it and in tau."""
    factors, scales, _, info = _by_scipy("geqrf", a[:n_columns])
    a[:n_columns], tau[:] = factors.T, scales
    return int(info)


@_bound(
    "numba_ez_xxgqr",
    lambda call, kind: lambda a, tau, n_rows, n_columns: call(kind, n_rows, n_columns, len(tau), a.ctypes, n_rows, tau.ctypes),
)
def orgqr(a: Any, tau: Any, n_rows: int, n_columns: int) -> int:
    """The first `n_columns` columns of Q, from as many reflectors as geqrf made."""
    columns, _, info = _by_scipy("orgqr", a[:n_columns], tau)
    a[:n_columns] = columns.T
    return int(info)


@_bound(
    "numba_ez_gesdd",
    lambda call, kind: (
        lambda a, s, u, vh, job: call(
            kind, job, a.shape[1], len(a), a.ctypes, a.shape[1], s.ctypes, u.ctypes, max(1, u.shape[1]), vh.ctypes, max(1, vh.shape[1])
        )
    ),
)
def gesdd(a: Any, s: Any, u: Any, vh: Any, job: int) -> int:
    """Singular values, descending, and singular vectors: all with job ord("A"), one for each value with ord("S"), none with ord("N").

    a is lost. info > 0: no convergence.
    """
    left, s[:], right, info = _by_scipy("gesdd", a, compute_uv=job != ord("N"), full_matrices=job == ord("A"))
    if job != ord("N"):
        u[:], vh[:] = left.T, right.T
    return int(info)


@_bound(
    "numba_ez_rgeev",
    lambda call, kind: (
        lambda a, real, imag, vectors, job: call(
            kind, ord("N"), job, len(a), a.ctypes, len(a), real.ctypes, imag.ctypes, vectors.ctypes, 1, vectors.ctypes, len(a)
        )
    ),
)
def rgeev(a: Any, real: Any, imag: Any, vectors: Any, job: int) -> int:
    """Eigenvalues of a real matrix; with job ord("V") eigenvectors, of pairs real and imaginary part. info > 0: no convergence."""
    real[:], imag[:], _, right, info = _by_scipy("geev", a, compute_vl=False, compute_vr=job == ord("V"))
    if job == ord("V"):
        vectors[:] = right.T
    return int(info)


@_bound(
    "numba_ez_cgeev",
    lambda call, kind: (
        lambda a, values, vectors, job: call(
            kind, ord("N"), job, len(a), a.ctypes, len(a), values.ctypes, vectors.ctypes, 1, vectors.ctypes, len(a)
        )
    ),
)
def cgeev(a: Any, values: Any, vectors: Any, job: int) -> int:
    """Eigenvalues of a complex matrix; with job ord("V") eigenvectors. info > 0: no convergence."""
    values[:], _, right, info = _by_scipy("geev", a, compute_vl=False, compute_vr=job == ord("V"))
    if job == ord("V"):
        vectors[:] = right.T
    return int(info)
