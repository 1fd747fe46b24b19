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
from ...types import show_shape
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


# systems ------------------------------------------------------------------------------------------------------------


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Variable:
    """x with a @ x = b.

    Arguments: `a` of shape (…, n, n); `b` of shape (n,), or (…, n, k) for k right-hand sides.
    Returns x in the shape of `b`, with the leading axes of both.

    Raises LinAlgError where `a` is not square, does not fit `b`, or is singular.

    >>> import numbascan.tensor as nt
    >>> nt.solve(nt.tensor("float64", shape=(3, 3)), nt.tensor("float32", shape=(3,)))
    <solve_vector: float64[3]>
    """
    matrix, right, is_vector = _system("solve", a, b)
    return op(cards.SOLVE_VECTOR if is_vector else cards.SOLVE, matrix, right)


def solve_triangular(a: Any, b: Any, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False) -> Variable:
    """x with op(a) @ x = b for a triangular matrix `a`; the other triangle is not read.

    Arguments: as for `solve`; `trans`, 0 or "N" for `a` itself, 1 or "T" for its transpose, 2 or "C" for its conjugate transpose;
    `lower`, for the lower triangle of `a`; `unit_diagonal`, for ones in place of its diagonal.

    Raises LinAlgError as `solve` does.
    """
    kinds: dict[Any, int] = {0: 0, "N": 0, 1: 1, "T": 1, 2: 2, "C": 2}
    if trans not in kinds:
        raise ValueError(f"solve_triangular: trans={trans!r}; give 0, 1, 2, 'N', 'T' or 'C'{at_line()}")
    matrix, right, is_vector = _system("solve_triangular", a, b)
    card = cards.TRIANGULAR_VECTOR if is_vector else cards.TRIANGULAR
    return op(card, matrix, right, lower=bool(lower), trans=kinds[trans], unit=bool(unit_diagonal))


def cho_solve(c_and_lower: tuple[Any, bool], b: Any) -> Variable:
    """x with a @ x = b, from the Cholesky factor of `a`.

    Arguments: a pair (c, lower) of the factor and whether it is the lower one, with a = c @ c^H, or the upper one, with a = c^H @ c;
    `b` as for `solve`.

    >>> import numbascan.tensor as nt
    >>> L = nt.cholesky(nt.dmatrix("A"))
    >>> nt.cho_solve((L, True), nt.dvector("b"))
    <solve_triangular_vector: float64[?]>
    """
    c, lower = c_and_lower
    first, second = (0, 2) if lower else (2, 0)
    return solve_triangular(c, solve_triangular(c, b, first, lower), second, lower)


def _system(name: str, a: Any, b: Any) -> tuple[Variable, Variable, bool]:
    """Matrix and right-hand side with equal leading axes; True for a right-hand side that is one vector, as NumPy 2 sees it."""
    matrix, right = as_variable(a), as_variable(b)
    cards.square_matrix(name, matrix.type)
    if not right.ndim:
        raise np.linalg.LinAlgError(f"{name}: the right-hand side needs 1 or more dimensions, but is a scalar{at_line()}")
    core = 1 if right.ndim == 1 else 2
    n, m = matrix.type.shape[-1], right.type.shape[-core]
    if n is not None and m is not None and n != m:
        shapes = f"{show_shape(matrix.type.shape)} and {show_shape(right.type.shape)}"
        raise np.linalg.LinAlgError(f"{name}: matrix and right-hand side, of shapes {shapes}, do not fit{at_line()}")
    lead = _leading(name, matrix, 2, right, core)
    return _with_leading(matrix, 2, lead), _with_leading(right, core, lead), core == 1


def _leading(name: str, a: Variable, core_a: int, b: Variable, core_b: int) -> list[Any]:
    """The leading axes that two operands broadcast to: lengths, symbolic where only the run knows them."""
    first, second = ([*v.shape[: v.ndim - core]] for v, core in ((a, core_a), (b, core_b)))
    rank = max(len(first), len(second))
    lead: list[Any] = []
    for n, m in zip([1] * (rank - len(first)) + first, [1] * (rank - len(second)) + second, strict=True):
        if isinstance(n, int) and isinstance(m, int) and n != m and 1 not in (n, m):
            shapes = f"{show_shape(a.type.shape)} and {show_shape(b.type.shape)}"
            raise ValueError(f"{name}: leading axes of shapes {shapes} do not broadcast together{at_line()}")
        lead.append(n if (isinstance(n, int) and n != 1) or (isinstance(m, int) and m == 1) else m)
    return lead


def _with_leading(x: Variable, core: int, lead: list[Any]) -> Variable:
    """x with the given leading axes; those whose length only the run knows are taken to be equal already."""
    own = x.type.shape[: x.ndim - core]
    stretches = len(own) < len(lead) or any(n == 1 and not (isinstance(m, int) and m == 1) for n, m in zip(own, lead, strict=True))
    if not stretches:
        return x
    return broadcast_to(x, (*lead, *x.shape[x.ndim - core :]))


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
    """The last two axes exchanged; what is no matrix is left to the function that asked for one."""
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
