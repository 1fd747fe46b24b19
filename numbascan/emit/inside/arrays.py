"""`np.empty` in generated code, typed and lowered in one step. Importing this imports Numba.

Numba's own is five functions deep, which it compiles one by one: 0.15 s of the first kernel of a process, and 0.05 s for each further
dtype and rank. The checks are the same, and so are the errors.

Large arrays ask Linux for pages of 2 MB, as NumPy's do: the first write to each page of 4 KB costs 2 µs otherwise (a system's answer,
and zeros), which is more than most loops take for the 512 numbers on it.

Not handled, and left to Numba: keywords, shapes of unsigned integers, dtypes as strings or classes of Python.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_new_ref, lower_builtin
from numba.core.registry import cpu_target
from numba.core.typing.templates import AbstractTemplate, signature
from numba.np.arrayobj import make_array, populate_array

LARGE = 1 << 22  # bytes from which NumPy asks for large pages
PAGE = 1 << 12
_MADV_HUGEPAGE = 14  # of Linux


class Empty(AbstractTemplate):
    """The type of `np.empty(shape)` and `np.empty(shape, dtype)`."""

    key = np.empty

    def generic(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        shape, *dtype = args
        dims = [*shape] if isinstance(shape, (types.UniTuple, types.Tuple)) else [shape]
        known = all(isinstance(dim, types.Integer) and getattr(dim, "signed", False) for dim in dims)
        if kws or not known or not all(isinstance(spec, types.DTypeSpec) for spec in dtype):
            return None
        return signature(types.Array(dtype[0].dtype if dtype else types.float64, len(dims), "C"), *args)


@contextmanager
def short_np_empty() -> Iterator[None]:
    """Code compiled inside takes its arrays this way."""
    context = cpu_target.typing_context
    before = context.resolve_value_type(np.empty)
    try:
        _set_type(context, types.Function([Empty, *before.templates]))
        yield
    finally:
        _set_type(context, before)


def _set_type(context: Any, function: Any) -> None:
    context._remove_global(np.empty)
    context._insert_global(np.empty, function)


@lower_builtin(np.empty, types.Any)
@lower_builtin(np.empty, types.Any, types.Any)
def lower_empty(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """The code: sizes checked, memory taken, an array made of it."""
    array = make_array(sig.return_type)(context, builder)
    shape = _shape(context, builder, sig.args[0], args[0])
    itemsize = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(sig.return_type.dtype)))
    strides = _strides(context, builder, shape, itemsize)
    alignment = context.get_preferred_array_alignment(sig.return_type.dtype)
    meminfo = context.nrt.meminfo_alloc_aligned(builder, strides[0], alignment)
    data = context.nrt.meminfo_data(builder, meminfo)
    if sys.platform == "linux":
        _ask_for_large_pages(builder, data, strides[0])
    pointer = builder.bitcast(data, context.get_data_type(sig.return_type.dtype).as_pointer())
    populate_array(array, pointer, shape, strides[1:], itemsize, meminfo)
    return impl_ret_new_ref(context, builder, sig.return_type, array._getvalue())


def _ask_for_large_pages(builder: Any, data: Any, size: Any) -> None:
    """Advice that the system may follow or not: whether it does changes no result."""
    long, pointer, int_ = size.type, data.type, ir.IntType(32)
    madvise = cgutils.get_or_insert_function(builder.module, ir.FunctionType(int_, [pointer, long, int_]), "madvise")
    with cgutils.if_unlikely(builder, builder.icmp_signed(">=", size, long(LARGE))):
        start = builder.ptrtoint(data, long)
        to_page = builder.and_(builder.neg(start), long(PAGE - 1))  # bytes before the first whole page
        builder.call(madvise, [builder.gep(data, [to_page]), builder.sub(size, to_page), int_(_MADV_HUGEPAGE)])


def _shape(context: Any, builder: Any, type_: Any, value: Any) -> list[Any]:
    """The dimensions, none of them negative."""
    is_number = isinstance(type_, types.Integer)
    types_, values = ([type_], [value]) if is_number else ([*type_], cgutils.unpack_tuple(builder, value))
    dims = [context.cast(builder, dim, kind, types.intp) for dim, kind in zip(values, types_, strict=True)]
    zero = context.get_constant(types.intp, 0)
    for dim in dims:
        with cgutils.if_unlikely(builder, builder.icmp_signed("<", dim, zero)):
            context.call_conv.return_user_exc(builder, ValueError, ("negative dimensions not allowed",))
    return dims


def _strides(context: Any, builder: Any, shape: list[Any], itemsize: Any) -> list[Any]:
    """The bytes of the whole array, then those from one index to the next along each axis."""
    strides, overflow = [itemsize], cgutils.false_bit
    for dim in reversed(shape):
        product = builder.smul_with_overflow(strides[0], dim)
        strides.insert(0, builder.extract_value(product, 0))
        overflow = builder.or_(overflow, builder.extract_value(product, 1))
    with cgutils.if_unlikely(builder, overflow):
        message = "array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum possible size."
        context.call_conv.return_user_exc(builder, ValueError, (message,))
    return strides
