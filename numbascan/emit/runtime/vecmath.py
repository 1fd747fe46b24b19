"""Functions of libm for generated code, which LLVM's vectoriser turns into calls of libmvec.

`exp_in_lanes` and its like, for loops over elements, give an element the same bits at every place.

Each is an intrinsic: no function of its own is compiled. float32 stays float32, all else gives float64.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from ...ops.elementwise import in_lanes
from ..inside.vector_forms import ARITY, Caller, call, call_in_lanes, present

present()  # generated code read from the disk imports this module: the symbols it refers to must be there

# intrinsics ---------------------------------------------------------------------------------------------------------


def _signature(*operands: Any) -> Any:
    """float32 for float32 operands, else float64; None (no such function) for what is not a real number."""
    if not all(isinstance(operand, types.Integer | types.Float | types.Boolean) for operand in operands):
        return None
    result = types.float32 if all(operand == types.float32 for operand in operands) else types.float64
    return result(*(result,) * len(operands))


_IN_PYTHON = {
    "erf": math.erf,
    "erfc": math.erfc,
    "add_any_order": operator.add,
    "max_or_nan": np.maximum,
    "min_or_nan": np.minimum,
}
"""The functions that NumPy lacks, or has under another name."""


def _intrinsic(name: str, arity: int, text: Callable[..., ir.Value]) -> Any:
    """The function that Numba knows as `name`: `text(context, builder, *operands)` gives its value."""
    if vars(config)["DISABLE_JIT"]:  # NUMBA_DISABLE_JIT=1: Python runs generated code
        return _IN_PYTHON.get(name) or getattr(np, name)

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Sequence[ir.Value]) -> ir.Value:
        return text(context, builder, *args)

    def one(typing: Any, x: Any) -> Any:
        return (signature, emit) if (signature := _signature(x)) else None

    def two(typing: Any, x: Any, y: Any) -> Any:
        return (signature, emit) if (signature := _signature(x, y)) else None

    function = one if arity == 1 else two
    function.__name__ = function.__qualname__ = name
    return intrinsic(function)


def _libm(name: str, caller: Caller = call) -> Any:
    return _intrinsic(name, ARITY[name], lambda context, builder, *args: caller(context, builder, name, *args))


add_any_order = _intrinsic("add_any_order", 2, lambda context, builder, x, y: builder.fadd(x, y, flags=("reassoc",)))


def _extreme(name: str, instruction: str) -> Any:
    """The greater or the lesser of two numbers, NaN where one is NaN. Of 0.0 and -0.0 it may be either, which saves half of the time.

    The operands are exchanged: LLVM keeps the first one if it is NaN. If that were an accumulator in memory, x86-64 would store the
    others under a mask, which takes AMD's processors four times as long.
    """

    def text(context: Any, builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
        function = builder.module.declare_intrinsic(instruction, [x.type], ir.FunctionType(x.type, [x.type, x.type]))
        return builder.call(function, [y, x], fastmath=("nsz",))

    return _intrinsic(name, 2, text)


max_or_nan = _extreme("max_or_nan", "llvm.maximum")
min_or_nan = _extreme("min_or_nan", "llvm.minimum")

globals().update({name: _libm(name) for name in ARITY})  # exp, …
globals().update({in_lanes(name): _libm(name, call_in_lanes) for name in ARITY})  # exp_in_lanes, …
