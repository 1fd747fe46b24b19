"""Systems of linear equations under NumPy's and SciPy's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ops import linalg as cards
from ...tracebacks import entry
from ...types import show_shape
from ..variable import Variable, as_variable, at_line, implements, op
from .shape import broadcast_to


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


@entry
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


@entry
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
    """Matrix and right-hand side with equal leading axes; and whether the right-hand side is one vector, as NumPy 2 sees it."""
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
