"""Work rows on the stack, and bounds of loops that LLVM does not see. Importing this imports Numba."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import config
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

CACHE_LINE = 64  # bytes


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
        array = make_array(array_type)(context, builder)
        strides = [size * math.prod(dims[axis + 1 :]) for axis in range(len(dims))]
        lengths, steps = ([context.get_constant(types.intp, number) for number in row] for row in (dims, strides))
        data = builder.bitcast(memory, element.as_pointer())
        populate_array(array, data, lengths, steps, context.get_constant(types.intp, size), None)
        return array._getvalue()

    return array_type(shape, dtype), emit


@intrinsic
def _lanes(typing: Any, count: Any) -> Any:
    """`count`, without LLVM's knowing it: it writes out short loops of a known number of passes before it looks for SIMD."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        number = ir.IntType(64)
        same = ir.FunctionType(number, [number])
        return builder.asm(same, "", "=r,0", [context.cast(builder, args[0], signature.args[0], types.int64)], False)

    return types.int64(count), emit


# NUMBA_DISABLE_JIT=1: Python runs generated code
_in_python = bool(vars(config)["DISABLE_JIT"])
small_array: Any = np.empty if _in_python else _small_array
lanes: Any = int if _in_python else _lanes
