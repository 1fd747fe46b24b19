"""Derivatives of linear algebra. Rules are exact, and made of cards that have derivatives themselves.

The pairing of cotangents and tangents is Re(sum(w * v)), without conjugation: the adjoint of v -> a @ v is w -> a^T @ w, also for complex
a. Derivatives are those of the function as it reads its operand: elements of a triangle that is not read have none. So the gradient of
`cholesky`, `eigh` and `eigvalsh` is a triangle. Systems that average the operand with its transpose first have a symmetric one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import NullGradientError
from ..ir.node import Node, item
from ..types import show_shape
from .algebra import (
    add,
    axes_sum,
    call,
    cast,
    concatenate,
    conj,
    dims_of,
    div,
    expand,
    indexed,
    matmul,
    mul,
    neg,
    node_of,
    sub,
    swap_last,
    total,
    where,
    zeros_like,
)
from .card import at_line
from .runtime_attributes import sized
from .shape import ARANGE

FULL = (None, None, None)


# matrices -----------------------------------------------------------------------------------------------------------


def _lead(a: Node) -> tuple[int, ...]:
    """Labels for the leading axes of a stack of matrices."""
    return tuple(range(3, a.type.rank + 1))


def _times(a: Node, x: Node) -> Node:
    """a @ x for matrices x, or for vectors x, which have one axis less."""
    if x.type.rank == a.type.rank:
        return matmul(a, x)
    lead = _lead(a)
    return call("contract", a, x, labels=((*lead, 0, 1), (*lead, 1), (*lead, 0)))


def _outer(x: Node, y: Node, is_vector: bool) -> Node:
    """x @ y^T for matrices, or for vectors as columns."""
    if not is_vector:
        return matmul(x, swap_last(y))
    lead = tuple(range(2, x.type.rank + 1))
    return call("contract", x, y, labels=((*lead, 0), (*lead, 1), (*lead, 0, 1)))


def _adjoint(a: Node) -> Node:
    """The conjugate transposes of a stack of matrices."""
    return conj(swap_last(a))


def _column_sums(a: Node, b: Node) -> Node:
    """The sums of a * b over each column."""
    lead = _lead(a)
    return call("contract", a, b, labels=((*lead, 0, 1), (*lead, 0, 1), (*lead, 1)))


def _order(a: Node) -> tuple[Node, Node]:
    """The row numbers of a square matrix as a column, and its column numbers as a row."""
    count = sized(ARANGE, (node_of(0), node_of(1)), (dims_of(a)[-1],), dtype="int64")
    return expand(count, (1,)), count


def _triangle(a: Node, lower: bool = True, diagonal: float = 1) -> Node:
    """One triangle of a square matrix, its diagonal times a number, zeros elsewhere. The other triangle of `a` may be NaN."""
    row, column = _order(a)
    i, j = (row, column) if lower else (column, row)
    if diagonal == 1:
        return where(call("greater_equal", i, j), a, 0)
    rest = where(call("equal", i, j), mul(a, diagonal), 0) if diagonal else 0
    return where(call("greater", i, j), a, rest)


def _hermitian(a: Node, lower: bool) -> Node:
    """The Hermitian matrix read from one triangle of `a`; imaginary parts of the diagonal are not read."""
    half = _triangle(a, lower, 0.5)
    return add(half, _adjoint(half))


def _read(w: Node, lower: bool) -> Node:
    """The cotangent of `a` from that of `_hermitian(a, lower)`."""
    return _triangle(add(w, _adjoint(w)), lower, 0.5)


# systems ------------------------------------------------------------------------------------------------------------


def _solve_vjp(node: Node, w: Node) -> Sequence[Node]:
    """With a @ x = b: a^-T @ w for b, and minus that @ x^T for a."""
    a, b = node.inputs
    right = call(node.op.name, swap_last(a), w)
    return neg(_outer(right, node, b.type.rank < a.type.rank)), right


def _solve_jvp(node: Node, da: Node | None, db: Node | None) -> Node:
    right = total([db, None if da is None else neg(_times(da, node))])
    assert right is not None
    return call(node.op.name, node.inputs[0], right)


def _triangular_vjp(node: Node, w: Node) -> Sequence[Node]:
    """As for `solve`, for the elements that are read. If op(a) = a^H both sides are conjugated, which gives a system with a itself."""
    a, b = node.inputs
    lower, trans, unit = (node.attr(key) for key in ("lower", "trans", "unit"))
    is_vector, is_conjugate = b.type.rank < a.type.rank, trans == 2
    x, given = (conj(node), conj(w)) if is_conjugate else (node, w)
    right = call(node.op.name, a, given, lower=lower, trans=0 if trans else 1, unit=unit)
    outer = _outer(x, right, is_vector) if trans else _outer(right, x, is_vector)
    return _triangle(neg(outer), bool(lower), 0 if unit else 1), conj(right) if is_conjugate else right


def _triangular_jvp(node: Node, da: Node | None, db: Node | None) -> Node:
    moved: Node | None = None
    if da is not None:
        moved = _triangle(da, bool(node.attr("lower")), 0 if node.attr("unit") else 1)
        moved = swap_last(moved) if node.attr("trans") else moved
        moved = neg(_times(conj(moved) if node.attr("trans") == 2 else moved, node))
    right = total([db, moved])
    assert right is not None
    return call(node.op.name, node.inputs[0], right, **node.params)


# inverse, determinants ----------------------------------------------------------------------------------------------


def _inv_vjp(node: Node, w: Node) -> Sequence[Node]:
    turned = swap_last(node)
    return (neg(matmul(matmul(turned, w), turned)),)


def _inv_jvp(node: Node, da: Node) -> Node:
    return neg(matmul(matmul(node, da), node))


def _scaled_inverse(scale: Node, a: Node) -> Node:
    """scale * a^-T, for a stack of matrices and a number for each."""
    rank = scale.type.rank
    return mul(expand(scale, (rank, rank + 1)), swap_last(call("inv", a)))


def _trace_of_quotient(a: Node, da: Node) -> Node:
    """The trace of a^-1 @ da."""
    lead = _lead(a)
    return call("contract", call("inv", a), da, labels=((*lead, 0, 1), (*lead, 1, 0), lead))


def _det_vjp(node: Node, w: Node) -> Sequence[Node]:
    """The gradient by the inverse, which raises LinAlgError at a singular matrix, though there is a gradient."""
    return (_scaled_inverse(mul(w, node), node.inputs[0]),)


def _det_jvp(node: Node, da: Node) -> Node:
    return mul(node, _trace_of_quotient(node.inputs[0], da))


def _slogdet_vjp(node: Node, w_sign: Node | None, w_log: Node | None) -> Sequence[Node]:
    """By log(det) = log(sign) + logabsdet: its imaginary part turns the sign; a real sign is constant."""
    (a,) = node.inputs
    if node.types[0].kind != "c":
        return (zeros_like(a) if w_log is None else _scaled_inverse(w_log, a),)
    turning = None if w_sign is None else mul(call("imag", mul(w_sign, item(node, 0))), 1j)
    scale = total([w_log, turning])
    assert scale is not None
    return (_scaled_inverse(scale, a),)


def _slogdet_jvp(node: Node, da: Node) -> tuple[Node | None, Node]:
    change = _trace_of_quotient(node.inputs[0], da)
    if change.type.kind != "c":
        return None, change
    return mul(mul(call("imag", change), 1j), item(node, 0)), call("real", change)


# factors ------------------------------------------------------------------------------------------------------------


def _under(factor: Node, right: Node, trans: int = 0, lower: bool = True) -> Node:
    return call("solve_triangular", factor, right, lower=lower, trans=trans, unit=False)


def _cholesky_vjp(node: Node, w: Node) -> Sequence[Node]:
    """The adjoint of the jvp, step by step: only the lower triangle of a has a gradient.

    Murray (2016), Differentiation of the Cholesky decomposition, arXiv:1602.07527.
    """
    inner = _under(node, _triangle(matmul(swap_last(node), w), True, 0.5), 1)  # L^-T P(L^T w)
    return (_read(swap_last(_under(node, swap_last(inner), 2)), True),)  # that @ conj(L)^-1


def _cholesky_jvp(node: Node, da: Node) -> Node:
    """L P(L^-1 da L^-H), where P takes the lower triangle with half the diagonal."""
    inner = _under(node, _adjoint(_under(node, _hermitian(da, True))))
    return matmul(node, _triangle(inner, True, 0.5))


def _check_qr(node: Node) -> None:
    m, n = node.inputs[0].type.shape[-2:]
    is_complete = bool(node.attr("complete"))
    if m is None or n is None or m == n or (m > n and not is_complete):  # unknown: r is a square matrix, or solve_triangular refuses it
        return
    kind = "the factors of a matrix that has fewer rows than columns" if m < n else "the columns that complete q"
    raise NullGradientError(
        f"qr has no derivative{_place(node)}: {kind} have none here, its shape is {show_shape(node.inputs[0].type.shape)}; "
        "nt.disconnected_grad(x) takes x as a constant"
    )


def _place(node: Node) -> str:
    return f" ({node.origin[0]}, line {node.origin[1]})" if node.origin else at_line()


def _qr_vjp(node: Node, w_q: Node | None, w_r: Node | None) -> Sequence[Node]:
    """The adjoint of the jvp, step by step."""
    _check_qr(node)
    q, r = item(node, 0), item(node, 1)
    upper = total([None if w_r is None else matmul(w_r, swap_last(r)), None if w_q is None else neg(matmul(swap_last(q), w_q))])
    assert upper is not None
    both = total([w_q, matmul(conj(q), _hermitian(upper, False))])
    assert both is not None
    return (swap_last(_under(r, swap_last(both), 0, False)),)  # that @ r^-T


def _qr_jvp(node: Node, da: Node) -> tuple[Node, Node]:
    """dr = u @ r and dq = da @ r^-1 - q @ u. The upper triangle u keeps q^H @ q = 1 and, as LAPACK does, the diagonal of r real.

    It solves u + u^H = c + c^H with c = q^H @ da @ r^-1 = q^H @ dq + u, where q^H @ dq is skew.
    """
    _check_qr(node)
    q, r = item(node, 0), item(node, 1)
    right = swap_last(_under(r, swap_last(da), 1, False))
    upper = _read(matmul(_adjoint(q), right), False)
    return sub(right, matmul(q, upper)), matmul(upper, r)


# eigenvalues --------------------------------------------------------------------------------------------------------


def _gaps(values: Node, vectors: Node) -> Node:
    """1 / (w_j - w_i) for i != j, 0 on the diagonal; infinite between equal eigenvalues: their eigenvectors have no derivative."""
    row, column = _order(vectors)
    is_off = call("not_equal", row, column)
    rank = vectors.type.rank
    difference = sub(expand(values, (rank - 2,)), expand(values, (rank - 1,)))
    return div(cast(is_off, values.type.dtype), where(is_off, difference, 1))


def _from_eigen(vectors: Node, values: Node, w_values: Node | None, w_vectors: Node | None, lower: bool) -> Node:
    """The cotangent of the matrix: conj(V) @ (diag(w_values) + gaps * (V^T @ w_vectors)) @ V^T, on the triangle that is read."""
    turned = conj(vectors)
    left = None if w_values is None else mul(turned, expand(w_values, (vectors.type.rank - 2,)))
    mixed = None if w_vectors is None else matmul(turned, mul(_gaps(values, vectors), matmul(swap_last(vectors), w_vectors)))
    both = total([left, mixed])
    assert both is not None
    return _read(matmul(both, swap_last(vectors)), lower)


def _eigh_vjp(node: Node, w_values: Node | None, w_vectors: Node | None) -> Sequence[Node]:
    """The cotangent for eigenvalues that differ. Through eigenvectors of equal ones it is infinite or NaN; sums over these have gradients.

    A complex eigenvector is known up to a factor of modulus 1. As in JAX it is taken to move at right angles to itself: results that do not
    depend on the factor have their derivatives. Other results follow LAPACK's choice, a real first component (last, for the upper
    triangle), and are not described. The factor of an eigenvector with 0 at that place has no derivative.
    """
    values, vectors = item(node, 0), item(node, 1)
    return (_from_eigen(vectors, values, w_values, w_vectors, bool(node.attr("lower"))),)


def _eigh_jvp(node: Node, da: Node) -> tuple[Node, Node]:
    values, vectors = item(node, 0), item(node, 1)
    moved = matmul(_hermitian(da, bool(node.attr("lower"))), vectors)
    mixed = mul(_gaps(values, vectors), matmul(_adjoint(vectors), moved))
    return _column_sums(conj(vectors), moved), matmul(vectors, mixed)


def _both_of(node: Node) -> tuple[Node, Node]:
    """The eigenvalues of an `eigvalsh`, and the eigenvectors that it does not compute."""
    both = call("eigh", node.inputs[0], **node.params)
    return item(both, 0), item(both, 1)


def _eigvalsh_vjp(node: Node, w: Node) -> Sequence[Node]:
    values, vectors = _both_of(node)
    return (_from_eigen(vectors, values, w, None, bool(node.attr("lower"))),)


def _eigvalsh_jvp(node: Node, da: Node) -> Node:
    _, vectors = _both_of(node)
    return _column_sums(conj(vectors), matmul(_hermitian(da, bool(node.attr("lower"))), vectors))


# the matrix exponential ---------------------------------------------------------------------------------------------


def _size(e: Node) -> Node:
    """A power of two near the sum of absolute values of each matrix, 1 where that is 0 or not finite. Derivatives take it as a constant."""
    rank, size = e.type.rank, call("absolute", e)
    size = axes_sum(size, (rank - 2, rank - 1), keepdims=True)
    is_fine = call("logical_and", call("greater", size, 0), call("isfinite", size))
    exponent = cast(call("floor", call("log2", where(is_fine, size, 1))), "int64")  # an integer: nothing is differentiated through it
    return call("exp2", cast(exponent, size.type.dtype))


def _frechet(a: Node, e: Node) -> Node:
    """The derivative of expm at `a` along `e`: the upper right block of the exponential of [[a, e], [0, a]].

    `e` is scaled to size 1: a large one would determine how often the whole matrix is halved, which costs digits.

    Higham (2008), Functions of Matrices, theorem 3.6.
    """
    rank, size = a.type.rank, _size(e)
    upper, lower = concatenate((a, div(e, size)), rank - 1), concatenate((zeros_like(a), a), rank - 1)
    n = dims_of(a)[-1]
    block = ((None, n, None), (n, None, None))
    whole = call("expm", concatenate((upper, lower), rank - 2))
    return mul(indexed(whole, (*(FULL for _ in range(rank - 2)), *block)), size)


def _expm_vjp(node: Node, w: Node) -> Sequence[Node]:
    return (_frechet(swap_last(node.inputs[0]), w),)


def _expm_jvp(node: Node, da: Node) -> Node:
    return _frechet(node.inputs[0], da)


# by the names of cards ----------------------------------------------------------------------------------------------

RULES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "solve": (_solve_vjp, _solve_jvp),
    "solve_vector": (_solve_vjp, _solve_jvp),
    "solve_triangular": (_triangular_vjp, _triangular_jvp),
    "solve_triangular_vector": (_triangular_vjp, _triangular_jvp),
    "solve_factor": (_triangular_vjp, _triangular_jvp),
    "solve_factors": (_triangular_vjp, _triangular_jvp),
    "inv": (_inv_vjp, _inv_jvp),
    "det": (_det_vjp, _det_jvp),
    "slogdet": (_slogdet_vjp, _slogdet_jvp),
    "cholesky": (_cholesky_vjp, _cholesky_jvp),
    "qr": (_qr_vjp, _qr_jvp),
    "eigh": (_eigh_vjp, _eigh_jvp),
    "eigvalsh": (_eigvalsh_vjp, _eigvalsh_jvp),
    "expm": (_expm_vjp, _expm_jvp),
}
"""The vjp and the jvp of each card."""
