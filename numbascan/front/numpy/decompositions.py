"""Singular values and what derives from them, LU factors, eigenvalues of any square matrix, and matrix equations."""

from __future__ import annotations

import builtins
from typing import Any, NamedTuple

import numpy as np

from ...ir.node import outputs_of
from ...ops import decompositions as cards
from ...ops.card import Card
from ...ops.decomposition_rules import order_of
from ...ops.dims import dim_node
from ...ops.linalg import square_matrix
from ...tracebacks import entries
from ..variable import Variable, as_variable, at_line, implements, op
from .choices import where
from .creation import arange, eye, identity, tril, triu, zeros
from .indexing import take, take_along_axis
from .joining import common_dtype, concatenate
from .math import cast
from .products import conjugated
from .reductions import argsort, max, sum
from .shape import atleast_2d, broadcast_to, reshape, specify_shape, swapaxes
from .shape_arguments import NOT_GIVEN, dim, shape_of
from .systems import solve, solve_triangular


class SVDResult(NamedTuple):
    """Singular vectors as columns of U and as rows of Vh, and singular values in descending order."""

    U: Variable
    S: Variable
    Vh: Variable


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors as columns, complex."""

    eigenvalues: Variable
    eigenvectors: Variable


def several(card: Card, *operands: Any, **attrs: Any) -> list[Variable]:
    """All results of a card."""
    return [Variable(node) for node in outputs_of(op(card, *operands, **attrs).node)]


# singular values ----------------------------------------------------------------------------------------------------


@implements(np.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Singular values S in descending order, and orthonormal U and Vh with U @ diag(S) @ Vh = a.

    Arguments: `a` of shape (…, m, n); full_matrices, m columns of U and n rows of Vh, else min(m, n) each; compute_uv=False, S alone;
    hermitian, only the lower triangle of `a` is read.

    Signs (factors of modulus 1, where complex) of singular vectors are LAPACK's choice. Derivatives are those of singular values that
    differ: vectors of equal ones have none (infinite or NaN), nor have, of full_matrices, those that complete a basis: NullGradientError.

    Raises LinAlgError where `a` is no matrix or not finite, or singular values do not converge.

    >>> import numbascan.tensor as nt
    >>> nt.linalg.svd(nt.tensor("float64", shape=(5, 3)), full_matrices=False).U
    <item: float64[5, 3]>
    """
    x = _hermitian(a) if hermitian else as_variable(a)
    if not compute_uv:
        return svdvals(x)
    m, n, _ = cards.rows_and_columns("svd", x.type)
    return SVDResult(*several(cards.SVD, x, full=bool(full_matrices) and (m is None or m != n)))


@implements(np.linalg.svdvals)
def svdvals(x: Any, /) -> Variable:
    """The singular values of a matrix, in descending order. Errors as for `svd`."""
    return op(cards.SVDVALS, x)


@implements(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = NOT_GIVEN) -> Variable:
    """The Moore-Penrose inverse of a matrix: singular values up to `rcond` (1e-15, as in NumPy) times the greatest count as 0.

    Arguments: rcond, a number, or one for each matrix of a stack; rtol, NumPy's other name for it, of which None is max(m, n) times the
    distance of 1 to the next number; hermitian, only the lower triangle of `a` is read.

    Derivatives are those of a matrix whose rank stays as it is. For an rcond that drops more than rounding errors they go by singular
    vectors: second derivatives are then those of singular values that differ. Errors as for `svd`.
    """
    x = _hermitian(a) if hermitian else as_variable(a)
    if rcond is not None and rtol is not NOT_GIVEN:
        raise ValueError(f"np.linalg.pinv: rcond and rtol are the same{at_line()}; give one of them")
    cutoff = (1e-15 if rtol is NOT_GIVEN else rtol) if rcond is None else rcond
    cards.rows_and_columns("pinv", x.type)
    cutoff = _rounding(x) if cutoff is None else cutoff
    return op(cards.PINV, x, broadcast_to(cast(as_variable(cutoff), "float64"), shape_of(x)[:-2]))


def _hermitian(a: Any) -> Variable:
    """The Hermitian matrix whose lower triangle is that of `a`."""
    lower = tril(a, -1)
    return tril(a) + conjugated(swapaxes(lower, -1, -2))


def _rounding(x: Variable) -> Any:
    """max(m, n) times the distance of 1 to the next number."""
    eps = float(np.finfo(x.type.dtype if x.type.kind in "fc" else "float64").eps)
    m, n = shape_of(x)[-2:]
    greater: Any = builtins.max(m, n) if isinstance(m, int) and isinstance(n, int) else np.maximum(m, n)
    return eps * greater


@implements(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Variable:
    """The number of singular values greater than `tol`: by default max(m, n) times the rounding error of the greatest, or `rtol` times it.

    A vector has rank 1 where it is not 0.
    """
    x = as_variable(A)
    if x.ndim < 2:
        is_some: Any = x != 0
        return cast(is_some.any(), "int64")
    if tol is not None and rtol is not None:
        raise ValueError(f"np.linalg.matrix_rank: give tol or rtol, not both{at_line()}")
    s = svdvals(_hermitian(x) if hermitian else x)
    if tol is None:
        least = as_variable(_rounding(x) if rtol is None else rtol)
        tol = max(_with_zero(s), axis=-1, keepdims=True) * (least[..., None] if least.ndim else least)
    else:
        tol = as_variable(tol)[..., None]
    is_counted: Any = s > tol
    return sum(is_counted, axis=-1)


def _with_zero(s: Variable) -> Variable:
    """Singular values with a 0 appended, since an empty matrix has none."""
    return concatenate([s, zeros((*shape_of(s)[:-1], 1), s.dtype)], axis=-1)


@implements(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Variable, Variable, Variable, Variable]:
    """x for which a @ x is nearest to b, and of several such x the shortest: (x, residuals, rank, singular values of a).

    Arguments: `a` of shape (m, n); `b` of shape (m,) or (m, k); rcond, singular values up to rcond times the greatest count as 0: max(m, n)
    times the rounding error unless given, -1 for the rounding error.

    The residuals are the sums of squares of b - a @ x, for m > n; there are none (shape (0,)) for m <= n. NumPy leaves them out where the
    rank is less than n, too, which here would make a shape depend on values. Derivatives are those of a matrix whose rank stays as it is.

    Raises LinAlgError as `svd` does, and where `a` and `b` do not fit.

    >>> import numbascan.tensor as nt
    >>> x, residuals, rank, s = nt.linalg.lstsq(
    ...     nt.tensor("float64", shape=(5, 2)), nt.tensor("float64", shape=(5,))
    ... )
    >>> x.type.shape, residuals.type.shape, rank.dtype
    ((2,), (1,), dtype('int32'))
    """
    matrix, right = as_variable(a), as_variable(b)
    if matrix.ndim != 2 or right.ndim not in (1, 2):
        raise np.linalg.LinAlgError(f"lstsq: {matrix!r} and {right!r} are no matrix and right-hand side of one or two axes{at_line()}")
    m, n = matrix.type.shape
    if m is not None and right.type.shape[0] not in (None, m):
        raise np.linalg.LinAlgError(f"lstsq: {matrix!r} and {right!r} have different numbers of rows{at_line()}")
    dtype = common_dtype([matrix, right]) if "f" in (kinds := {matrix.type.kind, right.type.kind}) or "c" in kinds else "float64"
    dtype = "float64" if dtype not in ("float32", "float64", "complex64", "complex128") else dtype
    matrix, right = cast(matrix, dtype), cast(right, dtype)
    columns = right if right.ndim == 2 else right[:, None]
    cutoff = as_variable(_rounding(matrix) if rcond is None else rcond)
    cutoff = where(cutoff < 0, float(np.finfo(dtype).eps), cutoff)
    s = svdvals(matrix)
    x = pinv(matrix, cutoff) @ columns
    apart = columns - matrix @ x
    residuals = sum((apart * conjugated(apart)).real, axis=0)
    if m is None or n is None:
        residuals = residuals[: where(as_variable(dim(matrix, 0)) > dim(matrix, 1), dim(residuals, 0), 0)]
    elif m <= n:
        residuals = residuals[:0]
    rank = cast(sum(s > cast(cutoff, s.dtype) * max(_with_zero(s)), axis=-1), "int32")
    return (x if right.ndim == 2 else x[:, 0]), residuals, rank, s


@implements(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Variable:
    """The condition of a matrix: its norm times that of its inverse; for p None or 2 the greatest by the least singular value.

    Raises LinAlgError where `x` is not square and p is another norm, or where it is singular.
    """
    values = as_variable(x)
    if p in (None, 2, -2):
        s = svdvals(values)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    result: Variable = np.linalg.norm(values, p, axis=(-2, -1)) * np.linalg.norm(np.linalg.inv(values), p, axis=(-2, -1))
    return result


# LU factors ---------------------------------------------------------------------------------------------------------


def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Variable, Variable]:
    """LU factors of a matrix for `lu_solve`, as SciPy has them: L below the diagonal and U in one matrix, and pivots.

    Row k was exchanged with row pivots[k], for each k in turn. `overwrite_a` and `check_finite` change nothing: NaN goes through.

    >>> import numbascan.tensor as nt
    >>> lu, pivots = nt.linalg.lu_factor(nt.dmatrix("A"))
    >>> lu.dtype, pivots.dtype
    (dtype('float64'), dtype('int32'))
    """
    lu, pivots = several(cards.LU, a)
    return lu, pivots


def _inverse_order(pivots: Variable, rows: Variable) -> Variable:
    """For each row of the matrix, its position among the rows of the factors."""
    return argsort(Variable(order_of(pivots.node, dim_node(rows.node, rows.ndim - 2))))


def lu_solve(lu_and_piv: Any, b: Any, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True) -> Variable:
    """x with a @ x = b from the factors of `a` that `lu_factor` gives; with trans=1 of its transpose, with 2 of its conjugate transpose.

    Raises LinAlgError where the matrix is singular, or a pivot names no row of it.
    """
    if trans not in (0, 1, 2):
        raise ValueError(f"lu_solve: trans={trans!r}; give 0, 1 or 2{at_line()}")
    lu, pivots, right = (as_variable(one) for one in (*lu_and_piv, b))
    if pivots.type.kind not in "iu" or pivots.ndim != lu.ndim - 1:
        raise TypeError(f"lu_solve: the pivots are {pivots!r}{at_line()}; give what lu_factor gives, (lu, piv)")
    order = Variable(order_of(pivots.node, dim_node(lu.node, lu.ndim - 2)))
    columns = right[:, None] if right.ndim == 1 else right
    if trans:
        x = solve_triangular(lu, solve_triangular(lu, columns, trans), trans, lower=True, unit_diagonal=True)
        x = _rows_at(x, argsort(order))
    else:
        x = solve_triangular(lu, solve_triangular(lu, _rows_at(columns, order), lower=True, unit_diagonal=True))
    return x[..., 0] if right.ndim == 1 else x


def _rows_at(x: Variable, order: Variable) -> Variable:
    """The rows of matrices in the given order, which may differ for each matrix of a stack."""
    if order.ndim == 1:
        return take(x, order, axis=x.ndim - 2)
    x = broadcast_to(x, (*shape_of(order)[:-1], *shape_of(x)[-2:])) if x.ndim <= order.ndim else x
    return take_along_axis(x, order[..., None], -2)


def lu(
    a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True, p_indices: bool = False
) -> tuple[Variable, ...]:
    """LU factors of a matrix, as SciPy has them: (p, l, u) with p @ l @ u = a, of which p is a permutation, l has ones on its diagonal.

    Arguments: permute_l, give (p @ l, u); p_indices, p as numbers of rows: l[p] @ u = a. The others change nothing: NaN goes through.

    >>> import numbascan.tensor as nt
    >>> [x.type.shape for x in nt.linalg.lu(nt.tensor("float64", shape=(4, 3)))]
    [(4, 4), (4, 3), (3, 3)]
    """
    both, pivots = lu_factor(a)
    m, k = dim(both, both.ndim - 2), dim(pivots, pivots.ndim - 1)
    upper = triu(both[..., :k, :])
    lower = tril(both[..., :k], -1) + eye(m, k, dtype=both.dtype)
    places = _inverse_order(pivots, both)
    if permute_l:
        return _rows_at(lower, places), upper
    if p_indices:
        return cast(places, "int32"), lower, upper
    return cast(places[..., None] == arange(m), np.zeros(0, both.dtype).real.dtype), lower, upper


# eigenvalues --------------------------------------------------------------------------------------------------------


@implements(np.linalg.eig)
def eig(a: Any) -> EigResult:
    """Eigenvalues of a square matrix and its eigenvectors as columns, of length 1: a @ v[:, k] = w[k] * v[:, k].

    They are complex always: NumPy gives real ones where all happen to be real, which only values say. Their order is LAPACK's, and so is
    the factor of modulus 1 of each vector. Derivatives are those of eigenvalues that differ, and vectors move at right angles to
    themselves: results that do not depend on those factors have their derivatives. For symmetric matrices `eigh` is better in all.

    Raises LinAlgError where `a` is not square or not finite, or the method does not converge.

    >>> import numbascan.tensor as nt
    >>> nt.linalg.eig(nt.dmatrix("A")).eigenvalues.dtype
    dtype('complex128')
    """
    return EigResult(*several(cards.EIG, a))


@implements(np.linalg.eigvals)
def eigvals(a: Any) -> Variable:
    """The eigenvalues of a square matrix, complex always. Arguments and errors as for `eig`."""
    return op(cards.EIGVALS, a)


# equations between matrices -----------------------------------------------------------------------------------------


def block_diag(*arrs: Any) -> Variable:
    """A matrix with the arrays as blocks on its diagonal and zeros elsewhere; a vector is a row, a number a block of one.

    >>> import numbascan.tensor as nt
    >>> nt.linalg.block_diag(nt.tensor("float64", shape=(2, 3)), [[1.0]]).type.shape
    (3, 4)
    """
    blocks = [atleast_2d(x) for x in arrs] or [zeros((1, 0))]
    if any(x.ndim > 2 for x in blocks):
        raise ValueError(f"block_diag: a block has at most two axes, they have {[x.ndim for x in blocks]}{at_line()}")
    dtype = common_dtype(blocks)
    sizes = [shape_of(x) for x in blocks]
    row, column = (_added(size[axis] for size in sizes) for axis in (0, 1))
    result = zeros((row, column), dtype)
    row = column = 0
    for x, (m, n) in zip(blocks, sizes, strict=True):
        result = result[row : row + m, column : column + n].set(cast(x, dtype))
        row, column = row + m, column + n
    return result


def _added(sizes: Any) -> Any:
    total: Any = 0
    for size in sizes:
        total = total + size
    return total


def solve_sylvester(a: Any, b: Any, q: Any) -> Variable:
    """x with a @ x + x @ b = q.

    Arguments: `a` of shape (…, m, m), `b` of shape (…, n, n), `q` of shape (…, m, n). As one system of m * n equations: of more than some
    hundred unknowns SciPy's method, which has no derivative here, takes less time and memory.

    Raises LinAlgError where an eigenvalue of `a` is minus one of `b`.

    >>> import numbascan.tensor as nt
    >>> nt.linalg.solve_sylvester(nt.dmatrix("A"), nt.dmatrix("B"), nt.dmatrix("Q")).ndim
    2
    """
    left, right = _squares("solve_sylvester", a, b)
    m, n = dim(left, left.ndim - 1), dim(right, right.ndim - 1)
    system = _kron(left, identity(n)) + _kron(identity(m), swapaxes(right, -1, -2))
    return _unknowns(system, q, m, n)


def solve_continuous_lyapunov(a: Any, q: Any) -> Variable:
    """x with a @ x + x @ a^H = q. Method, arguments and errors as for `solve_sylvester`."""
    x = as_variable(a)
    return solve_sylvester(x, conjugated(swapaxes(x, -1, -2)), q)


def solve_discrete_lyapunov(a: Any, q: Any, method: str | None = None) -> Variable:
    """x with a @ x @ a^H - x + q = 0.

    Arguments: `a` and `q` of shape (…, n, n). As one system of n * n equations: SciPy's method "direct". "bilinear" is refused.

    Raises LinAlgError where the product of two eigenvalues of `a` (one conjugated) is 1.
    """
    if method not in (None, "direct"):
        raise ValueError(f"solve_discrete_lyapunov: method={method!r} is not supported on traced values{at_line()}; leave method out")
    (x,) = _squares("solve_discrete_lyapunov", a)
    n = dim(x, x.ndim - 1)
    return _unknowns(identity(n * n) - _kron(x, conjugated(x)), q, n, n)


def _squares(name: str, *matrices: Any) -> list[Variable]:
    variables = [as_variable(one) for one in matrices]
    for x in variables:
        square_matrix(name, x.type)
    return variables


def _kron(a: Variable, b: Variable) -> Variable:
    """The Kronecker product of matrices in the last two axes; leading axes broadcast."""
    blocks = a[..., :, None, :, None] * b[..., None, :, None, :]
    sizes = shape_of(blocks)
    (m, n), (p, q) = shape_of(a)[-2:], shape_of(b)[-2:]
    return reshape(blocks, (*sizes[:-4], m * p, n * q))


def _unknowns(system: Variable, q: Any, m: Any, n: Any) -> Variable:
    """The solution of a system whose unknowns are the elements of a matrix of m rows and n columns."""
    right = as_variable(q)
    if right.ndim < 2:
        raise ValueError(f"the right-hand side {right!r} is no matrix{at_line()}")
    lead = shape_of(right)[:-2]
    flat = reshape(specify_shape(right, (*lead, m, n)), (*lead, m * n, 1))
    x = solve(system, flat)
    return reshape(x, (*shape_of(x)[:-2], m, n))


__all__ = ["block_diag", "cond", "eig", "eigvals", "lstsq", "lu", "lu_factor", "lu_solve", "matrix_rank", "pinv"]
__all__ += ["solve_continuous_lyapunov", "solve_discrete_lyapunov", "solve_sylvester", "svd", "svdvals"]

entries(globals(), __all__)
