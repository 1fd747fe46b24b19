"""Singular values, pseudo-inverses, LU factors, and eigenvalues of matrices that are not symmetric.

As in linalg.py, values are those of NumPy and SciPy. The oracle and compiled code use one LAPACK, which chooses signs of singular vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir.loops import least
from ..types import TensorType, show_shape
from .card import Card, at_line, register
from .decomposition_rules import RULES
from .linalg import float_dtype, real_dtype, square_matrix
from .lowering import Indices, Library, Operands
from .runtime_attributes import must_equal

Samples = list[tuple[tuple[Any, ...], dict[str, Any]]]

NOT_CONVERGED = "SVD did not converge"
NO_EIGENVALUES = "Array must not contain infs or NaNs, or eigenvalues did not converge"


def _dtypes(*types: TensorType) -> tuple[str, ...]:
    return tuple(float_dtype(type_) for type_ in types)


def rows_and_columns(name: str, a: TensorType) -> tuple[int | None, int | None, int | None]:
    """The dimensions of a stack of matrices, and the lesser of them; LinAlgError if `a` is no stack of matrices."""
    if a.rank < 2:
        raise np.linalg.LinAlgError(f"{name} needs a matrix, not an array of shape {show_shape(a.shape)}{at_line()}")
    m, n = a.shape[-2:]
    return m, n, None if m is None or n is None else min(m, n)


def _each(a: Any, function: Callable[[Any], Any], *results: Any) -> None:
    """Fills the results with those of a function of one matrix."""
    for place in np.ndindex(a.shape[:-2]):
        for result, value in zip(results, function(a[place]), strict=True):
            result[place] = value


def _floats(a: Any) -> Any:
    return a if a.dtype.kind in "fc" else a.astype("float64")


def _check_finite(name: str, a: Any, text: str) -> None:
    if not np.isfinite(a).all():
        raise np.linalg.LinAlgError(f"{name}: {text}")


def _matrices() -> Samples:
    rng = np.random.default_rng(8)
    shapes: list[tuple[int, ...]] = [(4, 3), (2, 5), (3, 3), (2, 4, 2), (11, 9)]
    arrays = [rng.normal(size=shape) for shape in shapes]
    arrays += [arrays[0] + 1j * rng.normal(size=(4, 3)), arrays[2].astype("float32"), np.array([[2, 1], [5, -3]])]
    return [((a,), {}) for a in arrays]


def _squares() -> Samples:
    return [((a[..., :k, :k].copy(),), {}) for ((a,), _) in _matrices() for k in (min(a.shape[-2:]),)]


# singular values ----------------------------------------------------------------------------------------------------


def _svd_shapes(a: Any, k: Any, is_full: bool) -> tuple[Any, Any, Any]:
    batch, m, n = tuple(a[:-2]), a[-2], a[-1]
    return (*batch, m, m if is_full else k), (*batch, k), (*batch, n if is_full else k, n)


def _svd(a: Any, full: bool) -> tuple[Any, Any, Any]:
    from scipy.linalg import svd

    _check_finite("svd", a, NOT_CONVERGED)
    a, k = _floats(a), min(a.shape[-2:])
    u, s, vh = (np.empty(shape, a.dtype) for shape in _svd_shapes(a.shape, k, full))
    s = s.real
    if k:
        _each(a, lambda matrix: svd(matrix, full_matrices=full, check_finite=False), u, s, vh)
    else:
        u[...], vh[...] = np.eye(u.shape[-2], u.shape[-1]), np.eye(vh.shape[-2], vh.shape[-1])
    return u, s, vh


def _svd_infer(a: TensorType, full: bool) -> tuple[TensorType, ...]:
    k, dtype = rows_and_columns("svd", a)[2], float_dtype(a)
    u, s, vh = _svd_shapes(a.shape, k, full)
    return TensorType(dtype, u), TensorType(real_dtype(dtype), s), TensorType(dtype, vh)


def _svd_dims(view: Operands) -> tuple[Indices, ...]:
    dims = view.dims(0)
    return _svd_shapes(dims, least(dims[-2], dims[-1]), view.attrs["full"])


SVD = register(
    Card(
        "svd",
        _svd,
        _svd_infer,
        Library(lambda a: "spectral.svd_into", ((2,), (2, 1, 2)), _svd_dims, dtypes=_dtypes, message=f"svd: {NOT_CONVERGED}"),
        samples=lambda: [((a,), {"full": full}) for full in (False, True) for ((a,), _) in _matrices()],
        vjp=RULES["svd"][0],
        jvp=RULES["svd"][1],
    )
)


def _svdvals(a: Any) -> Any:
    _check_finite("svdvals", a, NOT_CONVERGED)
    return np.linalg.svd(a, compute_uv=False)


def _svdvals_dims(view: Operands) -> tuple[Indices, ...]:
    dims = view.dims(0)
    return ((*dims[:-2], least(dims[-2], dims[-1])),)


SVDVALS = register(
    Card(
        "svdvals",
        _svdvals,
        lambda a: TensorType(real_dtype(float_dtype(a)), (*a.shape[:-2], rows_and_columns("svdvals", a)[2])),
        Library(lambda a: "spectral.svdvals_into", ((2,), (1,)), _svdvals_dims, dtypes=_dtypes, message=f"svdvals: {NOT_CONVERGED}"),
        samples=_matrices,
        vjp=RULES["svdvals"][0],
        jvp=RULES["svdvals"][1],
    )
)


def _pinv(a: Any, rcond: Any) -> Any:
    _check_finite("pinv", a, NOT_CONVERGED)
    return np.linalg.pinv(a, rcond)


def _pinv_infer(a: TensorType, rcond: TensorType) -> TensorType:
    m, n, _ = rows_and_columns("pinv", a)
    return TensorType(float_dtype(a), (*a.shape[:-2], n, m))


def _pinv_dims(view: Operands) -> tuple[Indices, ...]:
    dims = view.dims(0)
    for n, m in zip(dims[:-2], view.dims(1), strict=True):
        must_equal(view, n, m, "pinv: leading axes of lengths {0} and {1} do not fit")
    return ((*dims[:-2], dims[-1], dims[-2]),)


PINV = register(
    Card(
        "pinv",
        _pinv,
        _pinv_infer,
        Library(
            lambda a, rcond: "spectral.pinv_into",
            ((2, 0), (2,)),
            _pinv_dims,
            dtypes=lambda a, rcond: (float_dtype(a), "float64"),
            message=f"pinv: {NOT_CONVERGED}",
        ),
        samples=lambda: [((a, np.full(a.shape[:-2], 0.3)), {}) for ((a,), _) in _matrices()],
        vjp=RULES["pinv"][0],
        jvp=RULES["pinv"][1],
    )
)


# LU factors ---------------------------------------------------------------------------------------------------------


def _lu(a: Any) -> tuple[Any, Any]:
    from scipy.linalg.lapack import get_lapack_funcs

    a = _floats(a)
    lu, pivots = a.copy(), np.empty((*a.shape[:-2], min(a.shape[-2:])), "int32")
    (getrf,) = get_lapack_funcs(("getrf",), (a,))
    if pivots.size:
        _each(a, lambda matrix: getrf(matrix)[:2], lu, pivots)
    return lu, pivots


def _lu_infer(a: TensorType) -> tuple[TensorType, ...]:
    k = rows_and_columns("lu_factor", a)[2]
    return TensorType(float_dtype(a), a.shape), TensorType("int32", (*a.shape[:-2], k))


def _lu_dims(view: Operands) -> tuple[Indices, ...]:
    dims = view.dims(0)
    return dims, (*dims[:-2], least(dims[-2], dims[-1]))


LU = register(
    Card(
        "lu_factor",
        _lu,
        _lu_infer,
        Library(lambda a: "linalg.lu_into", ((2,), (2, 1)), _lu_dims, dtypes=_dtypes),
        samples=_matrices,
        vjp=RULES["lu_factor"][0],
        jvp=RULES["lu_factor"][1],
    )
)

NO_ROW = "a pivot names a row that is not there"


def _permutation(pivots: Any) -> Any:
    n = pivots.shape[-1]
    order = np.broadcast_to(np.arange(n), pivots.shape).copy()
    for place in np.ndindex(pivots.shape[:-1]):
        for k, j in enumerate(pivots[place]):
            if not 0 <= j < n:
                raise np.linalg.LinAlgError(f"lu: {NO_ROW}")
            order[(*place, [k, j])] = order[(*place, [j, k])]
    return order


PERMUTATION = register(
    Card(
        "permutation_of_pivots",
        _permutation,
        lambda pivots: TensorType("int64", pivots.shape),
        Library(
            lambda pivots: "linalg.permutation_into",
            ((1,), (1,)),
            lambda view: (view.dims(0),),
            dtypes=lambda pivots: ("int64",),
            message=f"lu: {NO_ROW}",
        ),
        samples=lambda: [((np.array([2, 1, 3, 3]),), {}), ((np.array([[1, 1], [0, 1]], "int32"),), {})],
        no_gradient="an order is made of integers",
    )
)


# eigenvalues --------------------------------------------------------------------------------------------------------


def _complex_dtype(a: TensorType) -> str:
    return "complex64" if float_dtype(a) in ("float32", "complex64") else "complex128"


def _eig_routine(name: str) -> Callable[[TensorType], str]:
    return lambda a: f"spectral.{name}_complex_into" if a.kind == "c" else f"spectral.{name}_real_into"


def _eig_dims(*drop: int) -> Callable[[Operands], tuple[Indices, ...]]:
    def dims(view: Operands) -> tuple[Indices, ...]:
        square = view.dims(0)
        must_equal(view, square[-2], square[-1], "eig: a matrix of {0} rows and {1} columns is not square")
        return tuple(square[: len(square) - count] for count in drop)

    return dims


def _eig(a: Any) -> tuple[Any, Any]:
    from scipy.linalg import eig

    _check_finite("eig", a, NO_EIGENVALUES)
    a = _floats(a)
    dtype = np.result_type(a, "complex64")
    values, vectors = np.empty(a.shape[:-1], dtype), np.empty(a.shape, dtype)
    if a.size:
        _each(a, lambda matrix: eig(matrix, check_finite=False), values, vectors)
    return values, vectors


def _eigvals(a: Any) -> Any:
    from scipy.linalg import eigvals

    _check_finite("eigvals", a, NO_EIGENVALUES)
    a = _floats(a)
    values = np.empty(a.shape[:-1], np.result_type(a, "complex64"))
    if a.size:
        _each(a, lambda matrix: (eigvals(matrix, check_finite=False),), values)
    return values


def _eig_infer(a: TensorType) -> tuple[TensorType, ...]:
    n = square_matrix("eig", a)
    return TensorType(_complex_dtype(a), (*a.shape[:-2], n)), TensorType(_complex_dtype(a), (*a.shape[:-2], n, n))


EIG = register(
    Card(
        "eig",
        _eig,
        _eig_infer,
        Library(_eig_routine("eig"), ((2,), (1, 2)), _eig_dims(1, 0), dtypes=_dtypes, message=f"eig: {NO_EIGENVALUES}"),
        samples=_squares,
        vjp=RULES["eig"][0],
        jvp=RULES["eig"][1],
    )
)
EIGVALS = register(
    Card(
        "eigvals",
        _eigvals,
        lambda a: TensorType(_complex_dtype(a), (*a.shape[:-2], square_matrix("eigvals", a))),
        Library(_eig_routine("eigvals"), ((2,), (1,)), _eig_dims(1), dtypes=_dtypes, message=f"eigvals: {NO_EIGENVALUES}"),
        samples=_squares,
        vjp=RULES["eigvals"][0],
        jvp=RULES["eigvals"][1],
    )
)
