"""Derivatives of singular values, LU factors, pseudo-inverses and eigenvalues of any square matrix, as in linalg_rules.py.

The vectors of equal singular values, or of equal eigenvalues, have no derivatives: these come out infinite or NaN.
Complex vectors are known up to a factor of modulus 1, and are taken to move at right angles to themselves. Results that do not depend on
the factor have their derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import NullGradientError
from ..ir.node import Node, constant, constant_value, item
from ..types import show_shape
from .algebra import (
    add,
    along_last,
    axes_sum,
    broadcast_to,
    call,
    cast,
    concatenate,
    conj,
    counted,
    dims_of,
    div,
    expand,
    incremented,
    indexed,
    matmul,
    mul,
    neg,
    sub,
    swap_last,
    taken,
    total,
    where,
    zeros_like,
)
from .linalg_rules import FULL, _adjoint, _column_sums, _gaps, _order, _place

HALF = 0.5


def _rows(values: Node, matrix: Node) -> Node:
    """One number per row of a stack of matrices, as a column."""
    return expand(values, (matrix.type.rank - 1,))


def _columns(values: Node, matrix: Node) -> Node:
    """One number per column of a stack of matrices, as a row."""
    return expand(values, (matrix.type.rank - 2,))


def _diagonal(a: Node) -> Node:
    """The diagonals of a stack of square matrices."""
    row, column = _order(a)
    return axes_sum(where(call("equal", row, column), a, 0), (a.type.rank - 2,))


def _real(x: Node) -> Node:
    return call("real", x) if x.type.kind == "c" else x


# singular values ----------------------------------------------------------------------------------------------------


def _check_svd(node: Node) -> None:
    m, n = node.inputs[0].type.shape[-2:]
    if bool(node.attr("full")) and (m is None or m != n):
        raise NullGradientError(
            f"svd has no derivative{_place(node)} of the vectors that complete a basis, of a matrix of shape "
            f"{show_shape(node.inputs[0].type.shape)}; write full_matrices=False"
        )


def _sums(s: Node, square: Node) -> Node:
    """1 / (s_i + s_j); 0 on the diagonal of real matrices, whose vectors have no phase that could turn."""
    both = add(_rows(s, square), _columns(s, square))
    if square.type.kind == "c":
        return div(constant(1, s.type.dtype), both)
    row, column = _order(square)
    is_off = call("not_equal", row, column)
    return div(cast(is_off, s.type.dtype), where(is_off, both, 1))


def _beyond(a: Node, axis: int, part: Node) -> Node | None:
    """`part`, which moves vectors out of their span, if the matrix is longer along `axis` than along the other one; else None or 0."""
    m, n = a.type.shape[-2:] if axis == 0 else a.type.shape[:-3:-1]
    if m is not None and n is not None:
        return part if m > n else None
    rows, columns = dims_of(a)[-2:]
    return where(call("greater", *((rows, columns) if axis == 0 else (columns, rows))), part, 0)


def _svd_parts(node: Node) -> tuple[Node, Node, Node, Node]:
    """u, s, the conjugate transpose of vh, and vh."""
    u, s, vh = (item(node, k) for k in range(3))
    return u, s, _adjoint(vh), vh


def _svd_jvp(node: Node, da: Node) -> tuple[Node, Node, Node]:
    """The tangents of u, s and vh: Townsend (2016), Differentiating the singular value decomposition.

    Let dp = u^H da v, h its Hermitian part and k the rest. Then du = u w and dv = v z, with w = h / (s_j - s_i) + k / (s_j + s_i) and
    z = h / (s_j - s_i) - k / (s_j + s_i), plus the parts that leave the space of u or v.
    """
    _check_svd(node)
    (a,) = node.inputs
    u, s, v, vh = _svd_parts(node)
    along = matmul(da, v)
    back = matmul(_adjoint(u), da)
    dp = matmul(back, v)
    hermitian, rest = mul(add(dp, _adjoint(dp)), HALF), mul(sub(dp, _adjoint(dp)), HALF)
    apart, together = mul(_gaps(s, dp), hermitian), mul(_sums(s, dp), rest)
    du = total([matmul(u, add(apart, together)), _beyond(a, 0, div(sub(along, matmul(u, dp)), _columns(s, u)))])
    dvh = total([matmul(_adjoint(sub(apart, together)), vh), _beyond(a, 1, div(sub(back, matmul(dp, vh)), _rows(s, vh)))])
    assert du is not None
    assert dvh is not None
    return du, _real(_diagonal(dp)), dvh


def _svd_vjp(node: Node, w_u: Node | None, w_s: Node | None, w_vh: Node | None) -> Sequence[Node]:
    """The adjoint of the jvp, step by step."""
    (a,) = node.inputs
    u, s, _, vh = _svd_parts(node)
    if w_u is not None or w_vh is not None:
        _check_svd(node)
    elif bool(node.attr("full")):  # only the first vectors have singular values
        k = dims_of(s)[-1]
        lead = (FULL,) * (a.type.rank - 1)
        u, vh = indexed(u, (*lead, (None, k, None))), indexed(vh, (*lead[1:], (None, k, None), FULL))
    turned, turned_vh = conj(u), conj(vh)
    inner = None if w_s is None else mul(turned, _columns(w_s, u))
    left = None if w_u is None else matmul(swap_last(u), w_u)
    right = None if w_vh is None else _adjoint(matmul(w_vh, swap_last(vh)))
    if left is not None or right is not None:
        square = left if left is not None else right
        assert square is not None
        both, difference = total([left, right]), total([left, None if right is None else neg(right)])
        assert both is not None
        assert difference is not None
        apart, together = mul(_gaps(s, square), both), mul(_sums(s, square), difference)
        mixed = mul(add(add(apart, _adjoint(apart)), sub(together, _adjoint(together))), HALF)
        inner = total([inner, matmul(turned, mixed)])
    if w_u is not None:
        scaled = div(w_u, _columns(s, u))
        beyond = _beyond(a, 0, sub(scaled, matmul(turned, matmul(swap_last(u), scaled))))
        inner = total([inner, beyond])
    result = None if inner is None else matmul(inner, turned_vh)
    if w_vh is not None:
        scaled = div(w_vh, _rows(s, vh))
        beyond = _beyond(a, 1, sub(scaled, matmul(matmul(scaled, swap_last(vh)), turned_vh)))
        result = total([result, None if beyond is None else matmul(turned, beyond)])
    assert result is not None
    return (result,)


def _svdvals_vjp(node: Node, w: Node) -> Sequence[Node]:
    return _svd_vjp(call("svd", node.inputs[0], full=False), None, w, None)


def _svdvals_jvp(node: Node, da: Node) -> Node:
    u, _, v, _ = _svd_parts(call("svd", node.inputs[0], full=False))
    return _real(_column_sums(conj(u), matmul(da, v)))


def _outside(a: Node, b: Node) -> Node:
    """1 - a @ b."""
    product = matmul(a, b)
    row, column = _order(product)
    return sub(cast(call("equal", row, column), product.type.dtype), product)


def _drops_rounding(node: Node) -> bool:
    """True if the bound is known, and so low that singular values below it are rounding errors."""
    rcond = constant_value(node.inputs[1])
    return rcond is not None and bool((rcond <= 1000 * np.finfo(node.type.dtype).eps).all())


def _quotients(node: Node, s: Node, square: Node) -> tuple[Node, Node]:
    """(f_j - f_i) / (s_j - s_i) and (f_i + f_j) / (s_i + s_j), with f(s) = 1 / s for s above the bound, else 0."""
    is_kept = call(
        "greater", s, mul(expand(node.inputs[1], (s.type.rank - 1,)), indexed(s, (*(FULL,) * (s.type.rank - 1), (None, 1, None))))
    )
    f = where(is_kept, div(constant(1, s.type.dtype), where(is_kept, s, 1)), 0)
    (s_i, s_j), (f_i, f_j) = ((_rows(x, square), _columns(x, square)) for x in (s, f))
    differ = call("not_equal", _rows(is_kept, square), _columns(is_kept, square))
    both = mul(f_i, f_j)
    apart = where(differ, div(sub(f_j, f_i), where(differ, sub(s_j, s_i), 1)), neg(both))
    return apart, where(differ, div(add(f_i, f_j), where(differ, add(s_i, s_j), 1)), both)


def _pinv_vjp(node: Node, w: Node) -> Sequence[Node | None]:
    """The adjoint of the jvp, term by term."""
    a, adjoint = node.inputs[0], _adjoint(node)
    if _drops_rounding(node):
        turned = swap_last(node)
        first = neg(matmul(matmul(turned, w), turned))
        left: Node | None = _outside(a, node)
        right: Node | None = _outside(node, a)
    else:
        u, s, v, vh = _svd_parts(call("svd", a, full=False))
        inner = matmul(matmul(swap_last(v), w), conj(u))
        apart, together = _quotients(node, s, inner)
        apart, together = mul(apart, inner), mul(together, inner)
        mixed = mul(sub(add(apart, _adjoint(apart)), sub(together, _adjoint(together))), HALF)
        first = matmul(matmul(conj(u), mixed), conj(vh))
        left, right = _beyond(a, 0, _outside(u, _adjoint(u))), _beyond(a, 1, _outside(v, vh))
    second = None if left is None else _adjoint(matmul(matmul(swap_last(matmul(node, adjoint)), w), swap_last(left)))
    third = None if right is None else _adjoint(matmul(matmul(swap_last(right), w), swap_last(matmul(adjoint, node))))
    return total([first, second, third]), None


def _pinv_jvp(node: Node, da: Node | None, drcond: Node | None) -> Node:
    """The tangent for a matrix of constant rank. If more than rounding errors is dropped, it is made of singular vectors.

    Golub, Pereyra (1973), The differentiation of pseudo-inverses, SIAM J. Numer. Anal. 10(2), 413-432. Noferini (2017), A formula for the
    Frechet derivative of a generalized matrix function, SIAM J. Matrix Anal. Appl. 38(2), 434-457.
    """
    a, adjoint = node.inputs[0], _adjoint(node)
    if da is None:
        return zeros_like(node)
    moved = _adjoint(da)
    if _drops_rounding(node):
        first = neg(matmul(matmul(node, da), node))
        left: Node | None = _outside(a, node)
        right: Node | None = _outside(node, a)
    else:
        u, s, v, vh = _svd_parts(call("svd", a, full=False))
        dp = matmul(matmul(_adjoint(u), da), v)
        apart, together = _quotients(node, s, dp)
        change = mul(sub(mul(apart, add(dp, _adjoint(dp))), mul(together, sub(dp, _adjoint(dp)))), HALF)
        first = matmul(matmul(v, change), _adjoint(u))
        left, right = _beyond(a, 0, _outside(u, _adjoint(u))), _beyond(a, 1, _outside(v, vh))
    second = None if left is None else matmul(matmul(matmul(node, adjoint), moved), left)
    third = None if right is None else matmul(matmul(right, moved), matmul(adjoint, node))
    result = total([first, second, third])
    assert result is not None
    return result


# LU factors ---------------------------------------------------------------------------------------------------------


def order_of(pivots: Node, n_rows: Node) -> Node:
    """The order of a matrix's rows after its exchanges. Rows behind the last pivot make none of their own."""
    count = dims_of(pivots)[-1]
    others = add(counted(sub(n_rows, count)), count)
    exchanges = concatenate((cast(pivots, "int64"), broadcast_to(others, (*dims_of(pivots)[:-1], *dims_of(others)))), pivots.type.rank - 1)
    return call("permutation_of_pivots", exchanges)


def _rows_in_order(node: Node, x: Node) -> tuple[Node, tuple[Node, ...]]:
    """The transpose of x, and the index that brings the rows of x, its columns, into the order of LU factors."""
    columns = swap_last(x)
    order = order_of(item(node, 1), dims_of(x)[-2])
    return columns, along_last(columns, expand(order, (x.type.rank - 2,)))


def _below(x: Node) -> Node:
    """The part of x below the diagonal, zeros elsewhere."""
    rows, columns = (counted(dim) for dim in dims_of(x)[-2:])
    return where(call("greater", expand(rows, (1,)), columns), x, 0)


def _squares(lu: Node) -> tuple[Node, Node]:
    """Two square matrices: L is below the diagonal of the first, U at and above that of the second. Missing parts are the identity's."""
    *lead, m, n = dims_of(lu)
    k = call("minimum", m, n)
    front = (FULL,) * len(lead)
    lower, upper = indexed(lu, (*front, FULL, (None, k, None))), indexed(lu, (*front, (None, k, None), FULL))

    def added(size: Node) -> Node:
        """The last columns of the identity."""
        columns = add(counted(sub(size, k)), k)
        ones = cast(call("equal", expand(counted(size), (1,)), columns), lu.type.dtype)
        return broadcast_to(ones, (*lead, size, sub(size, k)))

    rank = lu.type.rank
    return concatenate((lower, added(m)), rank - 1), concatenate((upper, swap_last(added(n))), rank - 2)


def _with_lower(lower: Node, x: Node, trans: int) -> Node:
    """The inverse of L (or of its transpose) times x."""
    return call("solve_triangular", lower, x, lower=True, trans=trans, unit=True)


def _by_upper(x: Node, upper: Node, trans: int) -> Node:
    """x times the inverse of U (or of its transpose)."""
    return swap_last(call("solve_triangular", upper, swap_last(x), lower=False, trans=1 - trans, unit=False))


def _lu_jvp(node: Node, da: Node) -> tuple[Node, None]:
    """With x = L^-1 da U^-1, da with its rows in order: dL = L times the part of x below the diagonal, dU = the rest of x times U."""
    lower, upper = _squares(item(node, 0))
    columns, index = _rows_in_order(node, da)
    x = _by_upper(_with_lower(lower, swap_last(taken(columns, index)), 0), upper, 0)
    low = _below(x)
    return add(add(low, matmul(_below(lower), low)), matmul(sub(x, low), sub(upper, _below(upper)))), None


def _lu_vjp(node: Node, w: Node | None, w_pivots: Node | None) -> Sequence[Node]:
    """The adjoint of the jvp, step by step."""
    (a,) = node.inputs
    if w is None:
        return (zeros_like(a),)
    lower, upper = _squares(item(node, 0))
    low = _below(w)
    from_upper = matmul(sub(w, low), swap_last(sub(upper, _below(upper))))
    x = total([_below(add(low, matmul(swap_last(_below(lower)), low))), from_upper, neg(_below(from_upper))])
    assert x is not None
    columns, index = _rows_in_order(node, zeros_like(a))
    return (swap_last(incremented(columns, swap_last(_by_upper(_with_lower(lower, x, 1), upper, 1)), index)),)


# eigenvalues --------------------------------------------------------------------------------------------------------


def _eig_jvp(node: Node, da: Node) -> tuple[Node, Node]:
    """With m = v^-1 da v: the diagonal of m, and v c, where c is m / (w_j - w_i) off the diagonal and keeps lengths on it.

    Giles (2008), Collected matrix derivative results for forward and reverse mode algorithmic differentiation, section 3.1.
    """
    values, vectors = item(node, 0), item(node, 1)
    m = call("solve", vectors, matmul(da, vectors))
    mixed = mul(_gaps(values, vectors), m)
    overlaps = matmul(_adjoint(vectors), vectors)
    along = _column_sums(swap_last(overlaps), mixed)
    return _diagonal(m), sub(matmul(vectors, mixed), mul(vectors, _columns(along, vectors)))


def _eig_vjp(node: Node, w_values: Node | None, w_vectors: Node | None) -> Sequence[Node]:
    """The adjoint of the jvp, step by step."""
    values, vectors = item(node, 0), item(node, 1)
    turned = swap_last(vectors)
    right = None if w_values is None else mul(_rows(w_values, turned), turned)
    if w_vectors is not None:
        overlaps = matmul(_adjoint(vectors), vectors)
        along = mul(swap_last(overlaps), _columns(_column_sums(vectors, w_vectors), overlaps))
        mixed = mul(_gaps(values, vectors), sub(matmul(turned, w_vectors), along))
        right = total([right, matmul(mixed, turned)])
    assert right is not None
    return (call("solve", turned, right),)


def _eigvals_vjp(node: Node, w: Node) -> Sequence[Node]:
    return _eig_vjp(call("eig", node.inputs[0]), w, None)


def _eigvals_jvp(node: Node, da: Node) -> Node:
    return _eig_jvp(call("eig", node.inputs[0]), da)[0]


# by the names of cards ----------------------------------------------------------------------------------------------

RULES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "svd": (_svd_vjp, _svd_jvp),
    "svdvals": (_svdvals_vjp, _svdvals_jvp),
    "pinv": (_pinv_vjp, _pinv_jvp),
    "lu_factor": (_lu_vjp, _lu_jvp),
    "eig": (_eig_vjp, _eig_jvp),
    "eigvals": (_eigvals_vjp, _eigvals_jvp),
}
"""The vjp and the jvp of each card."""
