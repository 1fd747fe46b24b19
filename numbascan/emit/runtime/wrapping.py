"""The user's arithmetic of int64, modulo 2**64 as in NumPy.

Numba tells LLVM that its own never leaves the range, so that x + 1 > x becomes True and (x * 8) // 8 becomes x. That is right for places in
arrays, where it saves work, and wrong for values. Importing this imports Numba.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import config
from numba.extending import intrinsic


def _intrinsic(name: str, ufunc: np.ufunc, instruction: Callable[..., ir.Value]) -> Any:
    """The function that Numba knows as `name`: one instruction."""
    if vars(config)["DISABLE_JIT"]:  # NUMBA_DISABLE_JIT=1: Python runs generated code
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
