"""Linear algebra under NumPy's and SciPy's names: products, systems, factors, eigenvalues, the matrix exponential.

Matrices stand in the last two axes, leading axes broadcast. NumPy's functions take variables themselves (`np.linalg.solve(A, b)`);
SciPy has no such protocol, so write `nt.linalg.solve_triangular`, `nt.linalg.cho_solve`, `nt.linalg.expm` for SciPy's functions of these
names. A singular matrix, or one that is not positive definite, raises `LinAlgError` when it is met.
"""

from __future__ import annotations

import operator
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ...ops import linalg as cards
from ...tracebacks import entries, entry
from ..variable import Variable, as_variable, at_line, implements, op
from . import decompositions
from .averages import norm
from .creation import eye, trace
from .decompositions import several
from .einsum import einsum, multi_dot
from .products import (
    batched_dot,
    conjugated,
    cross,
    dot,
    inner,
    kron,
    matmul,
    matvec,
    outer,
    polyval,
    tensordot,
    vdot,
    vecdot,
    vecmat,
    vector_outer,
)
from .shape import broadcast_to, swapaxes
from .systems import cho_solve, solve, solve_triangular


class SlogdetResult(NamedTuple):
    """Sign (of modulus 1 where complex) of a determinant, and the logarithm of its size."""

    sign: Variable
    logabsdet: Variable


class EighResult(NamedTuple):
    """Eigenvalues in ascending order, and eigenvectors as columns."""

    eigenvalues: Variable
    eigenvectors: Variable


class QRResult(NamedTuple):
    """Orthonormal columns, and the upper triangle."""

    Q: Variable
    R: Variable


# matrices -----------------------------------------------------------------------------------------------------------


@implements(np.linalg.inv)
def inv(a: Any) -> Variable:
    """The inverse of a matrix; to solve a system, `solve` is faster and more accurate.

    Raises LinAlgError where `a` is not square, or is singular.
    """
    return op(cards.INV, a)


@implements(np.linalg.det)
def det(a: Any) -> Variable:
    """The determinant of a matrix. Raises LinAlgError where `a` is not square."""
    return op(cards.DET, a)


@implements(np.linalg.slogdet)
def slogdet(a: Any) -> SlogdetResult:
    """Sign of the determinant of a matrix and the logarithm of its size; (0, -inf) where it is singular.

    >>> import numbascan.tensor as nt
    >>> sign, logabsdet = nt.slogdet(nt.zmatrix("A"))
    >>> sign.dtype, logabsdet.dtype
    (dtype('complex128'), dtype('float64'))
    """
    return SlogdetResult(*several(cards.SLOGDET, a))


@implements(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Variable:
    """The lower triangle L with L @ L^H = a; with `upper`, the upper triangle U with U^H @ U = a. Only that triangle of `a` is read.

    Raises LinAlgError where `a` is not square, or is not positive definite.
    """
    if not upper:
        return op(cards.CHOLESKY, a)
    return conjugated(_transposed(op(cards.CHOLESKY, conjugated(_transposed(as_variable(a))))))


def _transposed(a: Variable) -> Variable:
    """`a` with its last two axes exchanged. A vector or a scalar is returned as it is: the caller refuses it."""
    return swapaxes(a, -1, -2) if a.ndim > 1 else a


@implements(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> EighResult:
    """Eigenvalues of a Hermitian matrix in ascending order, and its eigenvectors as columns.

    `UPLO` says which triangle of `a` is read: "L" or "U". The sign of an eigenvector is LAPACK's choice.

    Raises LinAlgError where `a` is not square, or the method does not converge.
    """
    return EighResult(*several(cards.EIGH, a, lower=_is_lower(UPLO)))


@implements(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Variable:
    """Eigenvalues of a Hermitian matrix in ascending order; arguments and errors as for `eigh`."""
    return op(cards.EIGVALSH, a, lower=_is_lower(UPLO))


def _is_lower(uplo: str) -> bool:
    if uplo not in ("L", "l", "U", "u"):
        raise ValueError(f"UPLO={uplo!r}; give 'L' or 'U'{at_line()}")
    return uplo in "Ll"


@implements(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    """Q with orthonormal columns and an upper triangle R with Q @ R = a.

    Arguments: `a` of shape (…, m, n); `mode` "reduced" for Q of min(m, n) columns, "complete" for m columns, "r" for R alone.

    Raises ValueError for another mode, LinAlgError where `a` is no matrix.
    """
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"np.linalg.qr: mode={mode!r} is not supported for traced values; give 'reduced', 'complete' or 'r'{at_line()}")
    both = QRResult(*several(cards.QR, a, complete=mode == "complete"))
    return both.R if mode == "r" else both


@entry
def expm(a: Any) -> Variable:
    """The exponential of a matrix, by scaling and squaring; NaN where `a` is not finite.

    Method: N. J. Higham (2005), SIAM J. Matrix Anal. Appl. 26(4), 1179-1193. Raises LinAlgError where `a` is not square.
    """
    return op(cards.EXPM, a)


@implements(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Variable:
    """The product of n copies of a matrix, of its inverse for a negative n; n is an int known now.

    Raises TypeError for another n, LinAlgError where `a` is not square, or is singular and n negative.
    """
    try:
        exponent = operator.index(n)
    except TypeError as error:
        raise TypeError(
            f"np.linalg.matrix_power: n={n!r} must be an int that is known while tracing{at_line()}; for a loop use ns.scan"
        ) from error
    x = as_variable(a)
    cards.square_matrix("matrix_power", x.type)
    if exponent < 0:
        x, exponent = inv(x), -exponent
    if exponent == 0:
        return broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape)
    result: Variable | None = None
    while exponent:
        if exponent % 2:
            result = x if result is None else matmul(result, x)
        exponent //= 2
        x = matmul(x, x) if exponent else x
    assert result is not None
    return result


linalg = SimpleNamespace(
    **{name: getattr(decompositions, name) for name in decompositions.__all__},
    norm=norm,
    trace=trace,
    cho_solve=cho_solve,
    cholesky=cholesky,
    cross=cross,
    det=det,
    eigh=eigh,
    eigvalsh=eigvalsh,
    expm=expm,
    inv=inv,
    kron=kron,
    matmul=matmul,
    matrix_power=matrix_power,
    multi_dot=multi_dot,
    outer=vector_outer,
    qr=qr,
    slogdet=slogdet,
    solve=solve,
    solve_triangular=solve_triangular,
    tensordot=tensordot,
    vecdot=vecdot,
)
"""`nt.linalg`: the functions of `numpy.linalg` and `scipy.linalg` that are supported here."""

__all__ = ["cho_solve", "cholesky", "cross", "det", "dot", "eigh", "eigvalsh", "einsum", "expm", "inner", "inv", "kron", "linalg", "matmul"]
__all__ += ["matrix_power", "matvec", "multi_dot", "outer", "qr", "slogdet", "solve", "solve_triangular", "tensordot", "vdot", "vecdot"]
__all__ += ["batched_dot", "polyval", "vecmat"]

entries(globals(), __all__)
