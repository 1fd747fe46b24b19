"""`np.dot(a, b, out)` and `np.dot(x, y)` as single calls of BLAS. Importing this imports Numba.

Numba compiles its own `np.dot` anew for each pair of types, checks of lengths included: 0.15 s for each. Here a product in a kernel is a
call of a small function, which a module holds once per dtype. It calls the same routines of BLAS with the same arguments as Numba's, so
results have the same bits. The errors are the same, but for the words that name the kind of product.

Not handled, and left to Numba: keywords, arrays that are not contiguous, `np.dot(a, b)` of matrices, operands of two dtypes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import lower_builtin

from .arrays import replaced
from .module_functions import CODE, called, raise_where
from .shortcuts import NP_DOT, STACK

_NUMBER, _BYTE = ir.IntType(64), ir.IntType(8)
_POINTER = _BYTE.as_pointer()
_LARGEST = 2**31 - 1  # a C int, as which BLAS takes a length
_WRONG, _TOO_LARGE, _ABSENT = 1, 2, 3  # codes of the errors below
_ERRORS = (
    (ValueError, "incompatible array sizes for np.dot"),
    (OverflowError, "array size too large to fit in C int"),
    (RuntimeError, "SciPy's BLAS is not found"),
)
_KINDS = {types.float32: "s", types.float64: "d", types.complex64: "c", types.complex128: "z"}
_Arguments = list[Any]


def replace_np_dot(stack: ExitStack, typing_context: Any) -> None:
    """Replaces Numba's `np.dot` until the stack is closed."""
    if STACK.is_taken() and NP_DOT.is_taken():
        stack.enter_context(replaced(typing_context, np.dot, _template()))


@cache
def _template() -> type:
    lower_builtin(np.dot, types.Array, types.Array)(_of_vectors)
    lower_builtin(np.dot, types.Array, types.Array, types.Array)(_into)
    return type("Dot", (NP_DOT.AbstractTemplate,), {"key": np.dot, "generic": _typed})


def _typed(self: Any, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
    known = all(isinstance(one, types.Array) and one.dtype in _KINDS and one.layout in ("C", "F") and one.aligned for one in args)
    if kws or not known or len({one.dtype for one in args}) != 1:
        return None
    ranks = [one.ndim for one in args]
    if ranks == [1, 1]:
        return NP_DOT.signature(args[0].dtype, *args)
    if ranks in ([2, 2, 2], [2, 1, 1], [1, 2, 1]) and args[2].layout == "C" and args[2].mutable:
        return NP_DOT.signature(args[2], *args)
    return None


def _of_vectors(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """np.dot(x, y)"""
    (x, m), (y, n) = _operands(context, builder, sig.args, args)
    result = NP_DOT.alloca_once(builder, context.get_value_type(sig.return_type))
    _call(context, builder, sig.return_type, _vector_by_vector, [x, m, y, n, builder.bitcast(result, _POINTER)])
    return builder.load(result)


def _into(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """np.dot(a, b, out)"""
    a, b, out = _operands(context, builder, sig.args, args)
    a_type, b_type, out_type = sig.args
    in_c_order = [ir.IntType(1)(int(one.layout == "C")) for one in sig.args]
    if a_type.ndim == b_type.ndim:
        _call(context, builder, out_type.dtype, _matrix_by_matrix, [*a, in_c_order[0], *b, in_c_order[1], *out])
    else:
        matrix, vector, place = (a, b, 0) if a_type.ndim == 2 else (b, a, 1)
        data, *shape = matrix
        shape = shape if place == 0 else shape[::-1]  # vector @ matrix is the transposed matrix @ vector
        is_c = in_c_order[0] if place == 0 else builder.not_(in_c_order[1])
        _call(context, builder, out_type.dtype, _matrix_by_vector, [data, *shape, is_c, *vector, *out])
    return NP_DOT.impl_ret_borrowed(context, builder, sig.return_type, args[2])


def _operands(context: Any, builder: Any, arrays: Any, values: Any) -> list[_Arguments]:
    """The address and the lengths of each array."""
    NP_DOT.ensure_blas()
    views = [STACK.make_array(one)(context, builder, value) for one, value in zip(arrays, values, strict=True)]
    return [[builder.bitcast(view.data, _POINTER), *NP_DOT.unpack_tuple(builder, view.shape)] for view in views]


def _call(context: Any, builder: Any, dtype: Any, body: Callable[[Any, Any, Any], None], args: _Arguments) -> None:
    """Calls the function that `body` writes, which the module holds once per dtype; raises the error of its code."""
    code = called(builder, f"numbascan{body.__name__}_{dtype}", CODE, args, lambda inside: body(context, inside, dtype))
    raise_where(context, builder, code, _ERRORS)


# the functions of a module -----------------------------------------------------------------------------------------------


def _vector_by_vector(context: Any, builder: Any, dtype: Any) -> None:
    x, m, y, n, out = builder.function.args
    _check(builder, [(m, n)], [n])
    _blas(builder, "xxdot", [_letter(dtype), _BYTE(0), n, x, y, out])


def _matrix_by_vector(context: Any, builder: Any, dtype: Any) -> None:
    a, m, k, is_c, x, n, out, size = builder.function.args
    _check(builder, [(k, n), (m, size)], [m, k])
    _zeros_where_empty(context, builder, dtype, out, [m], [k])
    _by_gemv(builder, context, dtype, (a, m, k, is_c), x, out)


def _matrix_by_matrix(context: Any, builder: Any, dtype: Any) -> None:
    a, m, k, a_is_c, b, l, n, b_is_c, out, rows, columns = builder.function.args
    _check(builder, [(k, l), (m, rows), (n, columns)], [m, k, n])
    _zeros_where_empty(context, builder, dtype, out, [m, n], [k])
    one = _NUMBER(1)
    with builder.if_then(builder.icmp_signed("==", n, one)):
        with builder.if_then(builder.icmp_signed("==", m, one)):
            _blas(builder, "xxdot", [_letter(dtype), _BYTE(0), k, a, b, out])
        _by_gemv(builder, context, dtype, (a, m, k, a_is_c), b, out)
    with builder.if_then(builder.icmp_signed("==", m, one)):
        _by_gemv(builder, context, dtype, (b, n, l, builder.not_(b_is_c)), a, out)
    # to Fortran an array in C order is its transpose: out.T = b.T @ a.T
    alpha, beta = _factors(context, builder, dtype)
    b_way, b_step = builder.select(b_is_c, _BYTE(ord("n")), _BYTE(ord("t"))), builder.select(b_is_c, n, l)
    a_way, a_step = builder.select(a_is_c, _BYTE(ord("n")), _BYTE(ord("t"))), builder.select(a_is_c, k, m)
    _blas(builder, "xxgemm", [_letter(dtype), b_way, a_way, n, m, k, alpha, b, b_step, a, a_step, beta, out, n])


def _by_gemv(builder: Any, context: Any, dtype: Any, matrix: tuple[Any, ...], x: Any, out: Any) -> None:
    """out = matrix @ x, of a matrix of m rows and k columns in C order, or else in Fortran's."""
    a, m, k, is_c = matrix
    alpha, beta = _factors(context, builder, dtype)
    way, rows, columns = builder.select(is_c, _BYTE(ord("t")), _BYTE(ord("n"))), builder.select(is_c, k, m), builder.select(is_c, m, k)
    _blas(builder, "xxgemv", [_letter(dtype), way, rows, columns, alpha, a, rows, x, beta, out])


def _check(builder: Any, equal: list[tuple[Any, Any]], lengths: list[Any]) -> None:
    """Writes early returns for lengths that differ, or exceed what BLAS takes."""
    for one, other in equal:
        with NP_DOT.if_unlikely(builder, builder.icmp_signed("!=", one, other)):
            builder.ret(CODE(_WRONG))
    for length in lengths:
        with NP_DOT.if_unlikely(builder, builder.icmp_signed(">", length, _NUMBER(_LARGEST))):
            builder.ret(CODE(_TOO_LARGE))


def _zeros_where_empty(context: Any, builder: Any, dtype: Any, out: Any, outer: list[Any], summed: list[Any]) -> None:
    """Writes an early return for empty operands, with zeros as the result: BLAS takes no length of 0."""
    size = _NUMBER(context.get_abi_sizeof(context.get_data_type(dtype)))
    is_empty = ir.IntType(1)(False)
    for length in outer:
        size = builder.mul(size, length)
    for length in (*outer, *summed):
        is_empty = builder.or_(is_empty, builder.icmp_signed("==", length, _NUMBER(0)))
    with NP_DOT.if_unlikely(builder, is_empty):
        NP_DOT.memset(builder, out, size, 0)
        builder.ret(CODE(0))


def _factors(context: Any, builder: Any, dtype: Any) -> tuple[Any, Any]:
    """The addresses of 1 and 0, the factors of the product and of the result's former content."""
    slots = [NP_DOT.make_constant_slot(context, builder, dtype, number) for number in (1.0, 0.0)]
    alpha, beta = (builder.bitcast(slot, _POINTER) for slot in slots)
    return alpha, beta


def _letter(dtype: Any) -> Any:
    return _BYTE(ord(_KINDS[dtype]))


def _blas(builder: Any, routine: str, args: _Arguments) -> None:
    """Calls one of Numba's C functions for BLAS and returns its code: 0, unless BLAS is missing."""
    kind = ir.FunctionType(CODE, [one.type for one in args])
    code = builder.call(NP_DOT.get_or_insert_function(builder.module, kind, f"numba_{routine}"), args)
    builder.ret(builder.select(builder.icmp_signed("==", code, CODE(0)), CODE(0), CODE(_ABSENT)))
