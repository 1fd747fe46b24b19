"""What generated code asks of LLVM where Numba has no word for it. Importing this imports Numba.

`small_array`: a work row on the stack. `lanes`: a bound of a loop that LLVM does not see. `in_threads`: passes shared out to threads.

`wrapping_add` and its like: the user's arithmetic of int64, modulo 2**64 as in NumPy. Numba tells LLVM that its own never leaves the range,
so that x + 1 > x becomes True and (x * 8) // 8 becomes x. That is right for places in arrays, where it saves work, and wrong for values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from ..inside import arrays, threads

_IN_PYTHON = bool(vars(config)["DISABLE_JIT"])  # NUMBA_DISABLE_JIT=1: Python runs generated code


@intrinsic
def _lanes(typing: Any, count: Any) -> Any:
    """`count`, without LLVM's knowing it: it writes out short loops of a known number of passes before it looks for SIMD."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        number = ir.IntType(64)
        same = ir.FunctionType(number, [number])
        return builder.asm(same, "", "=r,0", [context.cast(builder, args[0], signature.args[0], types.int64)], False)

    return types.int64(count), emit


def _intrinsic(name: str, ufunc: np.ufunc, instruction: Callable[..., ir.Value]) -> Any:
    """The function that Numba knows as `name`: one instruction."""
    if _IN_PYTHON:
        return ufunc

    def function(typing: Any, x: Any, y: Any) -> Any:
        def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
            return instruction(builder, *args)

        if not (isinstance(x, types.Integer) and isinstance(y, types.Integer)):
            return None
        result = types.uint64 if {x, y} <= types.unsigned_domain else types.int64
        return result(result, result), emit

    function.__name__ = function.__qualname__ = name
    return intrinsic(function)


wrapping_add = _intrinsic("wrapping_add", np.add, ir.IRBuilder.add)
wrapping_sub = _intrinsic("wrapping_sub", np.subtract, ir.IRBuilder.sub)
wrapping_mul = _intrinsic("wrapping_mul", np.multiply, ir.IRBuilder.mul)

small_array: Any = np.empty if _IN_PYTHON else arrays.small_array
lanes: Any = int if _IN_PYTHON else _lanes
in_threads: Any = (lambda *_: False) if _IN_PYTHON else threads.in_threads
