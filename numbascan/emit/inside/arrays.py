"""Arrays made from an address: `np.empty`, work rows on the stack, vectors seen as columns. Importing this imports Numba.

`np.empty` is typed and lowered in one step, into a call of a function that a module holds once per rank. Numba's own goes through five
functions, compiled one by one: 0.15 s of the first kernel of a process, and 0.05 s for each further dtype and rank. Checks and errors are
the same.

Large arrays ask Linux for pages of 2 MB, as NumPy's do: otherwise the first write to each page of 4 KB costs 2 µs (a page fault, and
zeroing), more than most loops take for the 512 numbers on it.

Not handled, and left to Numba: keywords, shapes of unsigned integers, dtypes as strings or classes of Python.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, lower_builtin, register_jitable

from . import kept_memory
from .module_functions import CODE, called, raise_where
from .shortcuts import NP_EMPTY, STACK

CACHE_LINE = 64  # bytes
LARGE = 1 << 22  # bytes from which NumPy asks for large pages
PAGE = 1 << 12
_NEGATIVE, _TOO_BIG, _NO_MEMORY = 1, 2, 3  # codes of the errors below
_ERRORS = (
    (ValueError, "negative dimensions not allowed"),
    (ValueError, "array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum possible size."),
    (MemoryError, "Allocation failed (probably too large)."),
)
_POINTER = ir.IntType(8).as_pointer()
_MADV_HUGEPAGE = 14  # of Linux
_MANAGE_MEMORY = 2  # index of the function in Numba's table for C, NRT_api_functions
_in_place: Any = intrinsic  # untyped: the first argument of an intrinsic is Numba's


def new_array(context: Any, builder: Any, type_: Any, data: Any, shape: Sequence[Any], strides: Sequence[Any], meminfo: Any) -> Any:
    """An array in uninitialised memory; `meminfo` counts its references, None on the stack."""
    array = STACK.make_array(type_)(context, builder)
    pointer = builder.bitcast(data, context.get_data_type(type_.dtype).as_pointer())
    itemsize = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(type_.dtype)))
    STACK.populate_array(array, pointer, shape, strides, itemsize, meminfo)
    return array._getvalue()


# np.empty --------------------------------------------------------------------------------------------------------------


def replace_np_empty(stack: ExitStack, typing_context: Any) -> None:
    """Replaces Numba's `np.empty` until the stack is closed."""
    if STACK.is_taken() and NP_EMPTY.is_taken():
        stack.enter_context(replaced(typing_context, np.empty, _template()))


@contextmanager
def replaced(context: Any, function: Any, template: type) -> Iterator[None]:
    """Inside, a function of NumPy is typed by this template first, and by Numba's own where that gives no type."""

    def put(typed: Any) -> None:
        context._remove_global(function)
        context._insert_global(function, typed)

    context.refresh()  # loads Numba's own
    before = context.resolve_value_type(function)
    try:
        put(types.Function([template, *before.templates]))
        yield
    finally:
        put(before)


@cache
def _template() -> type:
    """The type of `np.empty(shape)` and `np.empty(shape, dtype)`, and how they are lowered."""
    lower_builtin(np.empty, types.Any)(lower_empty)
    lower_builtin(np.empty, types.Any, types.Any)(lower_empty)
    return type("Empty", (NP_EMPTY.AbstractTemplate,), {"key": np.empty, "generic": _type_of_empty})


def _type_of_empty(self: Any, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
    shape, *dtype = args
    dims = [*shape] if isinstance(shape, (types.UniTuple, types.Tuple)) else [shape]
    known = all(isinstance(dim, types.Integer) and getattr(dim, "signed", False) for dim in dims)
    if kws or not known or not all(isinstance(spec, types.DTypeSpec) for spec in dtype):
        return None
    return NP_EMPTY.signature(types.Array(dtype[0].dtype if dtype else types.float64, len(dims), "C"), *args)


def lower_empty(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Code that takes memory and makes an array of it."""
    shape = _shape(context, builder, sig.args[0], args[0])
    itemsize = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(sig.return_type.dtype)))
    alignment = ir.IntType(32)(context.get_preferred_array_alignment(sig.return_type.dtype))
    returned = ir.LiteralStructType([_POINTER, CODE])
    taken = called(
        builder, f"numbascan_memory_{len(shape)}", returned, [alignment, itemsize, *shape], lambda inside: _write_memory(context, inside)
    )
    raise_where(context, builder, builder.extract_value(taken, 1), _ERRORS)
    meminfo = builder.extract_value(taken, 0)
    data = context.nrt.meminfo_data(builder, meminfo)
    strides = [itemsize]
    for dim in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], dim))
    array = new_array(context, builder, sig.return_type, data, shape, strides, meminfo)
    return NP_EMPTY.impl_ret_new_ref(context, builder, sig.return_type, array)


def _write_memory(context: Any, builder: Any) -> None:
    """Writes the function that takes memory for an alignment, bytes of an element, and dimensions; it returns the memory, and a code of
    what is wrong."""
    alignment, size, *shape = builder.function.args

    def end(meminfo: Any, code: int) -> None:
        builder.ret(builder.insert_value(ir.Constant(builder.function.function_type.return_type, [None, CODE(code)]), meminfo, 0))

    for dim in shape:
        with NP_EMPTY.if_unlikely(builder, builder.icmp_signed("<", dim, dim.type(0))):
            end(_POINTER(None), _NEGATIVE)
    overflow = ir.IntType(1)(False)
    for dim in reversed(shape):
        product = builder.smul_with_overflow(size, dim)
        size = builder.extract_value(product, 0)
        overflow = builder.or_(overflow, builder.extract_value(product, 1))
    with NP_EMPTY.if_unlikely(builder, overflow):
        end(_POINTER(None), _TOO_BIG)
    if kept_memory.addresses():
        meminfo = called(builder, "numbascan_taken", _POINTER, [size, alignment], lambda inside: _write_taken(context, inside))
    else:
        meminfo = context.nrt.meminfo_alloc_aligned_unchecked(builder, size, alignment)
    with NP_EMPTY.if_unlikely(builder, builder.icmp_unsigned("==", meminfo, _POINTER(None))):
        end(_POINTER(None), _NO_MEMORY)
    if sys.platform == "linux":
        _ask_for_large_pages(builder, context.nrt.meminfo_data(builder, meminfo), size)
    end(meminfo, 0)


def _write_taken(context: Any, builder: Any) -> None:
    """Writes the function that takes memory with a reference count, kept memory for large arrays; null if there is none left."""
    size, alignment = builder.function.args
    with builder.if_then(builder.icmp_signed("<", size, size.type(kept_memory.FROM))):
        builder.ret(context.nrt.meminfo_alloc_aligned_unchecked(builder, size, alignment))
    destructor = ir.FunctionType(ir.VoidType(), [_POINTER, size.type, _POINTER])
    manage = ir.FunctionType(_POINTER, [_POINTER, destructor.as_pointer()])
    take, give, table = (
        NP_EMPTY.get_or_insert_function(builder.module, kind, name)
        for kind, name in (
            (ir.FunctionType(_POINTER, [size.type]), kept_memory.TAKE),
            (destructor, kept_memory.GIVE),
            (ir.FunctionType(manage.as_pointer().as_pointer(), []), "NRT_get_api"),
        )
    )
    data = builder.call(take, [size])
    with builder.if_then(builder.icmp_unsigned("==", data, _POINTER(None)), likely=False):
        builder.ret(_POINTER(None))
    manage_memory = builder.load(builder.gep(builder.call(table, []), [ir.IntType(32)(_MANAGE_MEMORY)]))
    builder.ret(builder.call(manage_memory, [data, give]))


def _ask_for_large_pages(builder: Any, data: Any, size: Any) -> None:
    """Code that advises the system, which may ignore it: results do not depend on that."""
    long, pointer, int_ = size.type, data.type, ir.IntType(32)
    madvise = NP_EMPTY.get_or_insert_function(builder.module, ir.FunctionType(int_, [pointer, long, int_]), "madvise")
    with NP_EMPTY.if_unlikely(builder, builder.icmp_signed(">=", size, long(LARGE))):
        start = builder.ptrtoint(data, long)
        to_page = builder.and_(builder.neg(start), long(PAGE - 1))  # bytes before the first whole page
        builder.call(madvise, [builder.gep(data, [to_page]), builder.sub(size, to_page), int_(_MADV_HUGEPAGE)])


def _shape(context: Any, builder: Any, type_: Any, value: Any) -> list[Any]:
    """The dimensions."""
    is_number = isinstance(type_, types.Integer)
    types_, values = ([type_], [value]) if is_number else ([*type_], NP_EMPTY.unpack_tuple(builder, value))
    return [context.cast(builder, dim, kind, types.intp) for dim, kind in zip(values, types_, strict=True)]


# on the stack ----------------------------------------------------------------------------------------------------------


@intrinsic(prefer_literal=True)
def _small_array(typing: Any, shape: Any, dtype: Any) -> Any:
    """An array of a fixed shape that lives as long as the function runs; not initialised.

    Nothing else can point into it, which LLVM knows: loops over it need no checks for overlap, and small ones become registers.
    """
    dims = [dim.literal_value for dim in shape]
    array_type = types.Array(dtype.dtype, len(dims), "C")

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        element = context.get_data_type(array_type.dtype)
        size = context.get_abi_sizeof(element)
        with builder.goto_entry_block():
            memory = builder.alloca(ir.ArrayType(element, math.prod(dims)))
        memory.align = CACHE_LINE
        strides = [size * math.prod(dims[axis + 1 :]) for axis in range(len(dims))]
        lengths, steps = ([context.get_constant(types.intp, number) for number in row] for row in (dims, strides))
        return new_array(context, builder, array_type, memory, lengths, steps, None)

    return array_type(shape, dtype), emit


@_in_place
def _column(typingctx: Any, x: Any) -> Any:
    """A vector seen as a matrix of one column; costs nothing, where `reshape` counts references (40 ns)."""
    result = types.Array(x.dtype, 2, "C", readonly=not x.mutable)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = STACK.make_array(signature.args[0])(context, builder, args[0])
        matrix = STACK.make_array(result)(context, builder)
        shape = [vector.nitems, context.get_constant(types.intp, 1)]
        STACK.populate_array(matrix, vector.data, shape, [vector.itemsize, vector.itemsize], vector.itemsize, None)
        return matrix._getvalue()

    return result(x), code


_small_array_on_the_heap: Any = register_jitable(lambda shape, dtype: np.empty(shape, dtype))
_column_by_reshaping: Any = register_jitable(lambda x: x.reshape((-1, 1)))
small_array: Any = _small_array if STACK.is_taken() else _small_array_on_the_heap
column: Any = _column if STACK.is_taken() else _column_by_reshaping
