"""Parts shared by the routines on small matrices: memory on the stack, elimination, and variants for a known number of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ...inside.arrays import column as column
from ...inside.compiling import ROUTINES

SMALL = 8  # rows up to which plain loops win: 0.5 us against LAPACK's 0.9 at 8, both about 1 us at 10

inner = numba.njit(error_model="numpy", forceinline=True)  # inlined: a known `n` unrolls its loops
_in_place: Any = intrinsic  # untyped: the first argument of an intrinsic is Numba's
helper = numba.njit(error_model="numpy")
in_any_order = numba.njit(error_model="numpy", fastmath={"reassoc"})  # sums take several accumulators


def routine(function: Callable[..., Any]) -> Any:
    """A function that generated code calls."""
    ROUTINES.append(helper(function))
    return ROUTINES[-1]


def known_rows(makers: dict[str, Callable[[int], Any]]) -> Callable[[str], Any]:
    """A module's `__getattr__` that gives `solve_into_3`: `solve_into` for matrices of 3 rows, made when first asked for."""
    variants: dict[str, Any] = {}

    def find(name: str) -> Any:
        base, _, rows = name.rpartition("_")
        if base not in makers or not rows.isdigit() or int(rows) > SMALL:
            raise AttributeError(f"no routine is called {name!r}")
        if name not in variants:
            variants[name] = inner(makers[base](int(rows)))
        return variants[name]

    return find


@_in_place
def stack_memory(typingctx: Any, like: Any) -> Any:
    """A pointer to SMALL x SMALL elements of an array's dtype, which live until the calling function returns."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        element = context.get_data_type(like.dtype)
        with builder.goto_entry_block():
            memory = builder.alloca(ir.ArrayType(element, SMALL * SMALL))
        return builder.bitcast(memory, element.as_pointer())

    return types.CPointer(like.dtype)(like), code


@inner
def copy_in(n: int, lu: Any, a: Any) -> None:
    """Makes the first n rows and columns of lu a copy of a."""
    for i in range(n):
        for j in range(n):
            lu[i, j] = a[i, j]


@helper
def copy_matrix(x: Any, a: Any) -> None:
    """Makes x a copy of a. A loop: Numba takes half a second to compile `x[:] = a`."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = a[i, j]


@helper
def copy_transposed(x: Any, a: Any) -> None:
    """Copies the transpose of a into the first rows of x, which in Fortran's order then are a."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            x[j, i] = a[i, j]


@inner
def magnitude(z: Any) -> Any:
    """LAPACK's measure of a pivot: no square root for complex numbers."""
    return abs(z.real) + abs(z.imag)


@inner
def eliminate(n: int, lu: Any, x: Any, m: int) -> int:
    """Makes lu an upper triangle by Gaussian elimination with partial pivoting, and does the same to the m columns of x.

    Returns the sign of the row exchanges, 0 where a pivot is 0. Rows are exchanged whenever a larger pivot turns up: so every index
    is a constant if n is, and lu stays in registers (25 ns instead of 50 for 3 x 3).
    """
    sign = 1
    for k in range(n):
        for i in range(k + 1, n):
            if magnitude(lu[i, k]) > magnitude(lu[k, k]):
                sign = -sign
                for j in range(k, n):
                    lu[k, j], lu[i, j] = lu[i, j], lu[k, j]
                for j in range(m):
                    x[k, j], x[i, j] = x[i, j], x[k, j]
        if lu[k, k] == 0:
            return 0
        for i in range(k + 1, n):
            factor = lu[i, k] / lu[k, k]
            for j in range(k + 1, n):
                lu[i, j] -= factor * lu[k, j]
            for j in range(m):
                x[i, j] -= factor * x[k, j]
    return sign


@inner
def solve_small(n: int, x: Any, a: Any, b: Any, m: int) -> bool:
    """a @ x = b for the m columns of b (which may be x itself); False where a is singular."""
    for i in range(n):
        for j in range(m):
            x[i, j] = b[i, j]
    lu = numba.carray(stack_memory(a), (SMALL, SMALL))
    copy_in(n, lu, a)
    if eliminate(n, lu, x, m) == 0:
        return False
    for step in range(n):
        i = n - 1 - step
        for k in range(i + 1, n):
            for j in range(m):
                x[i, j] -= lu[i, k] * x[k, j]
        for j in range(m):
            x[i, j] /= lu[i, i]
    return True
