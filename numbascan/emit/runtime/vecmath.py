"""Functions of libm for generated code, which LLVM's vectoriser turns into calls of libmvec.

`exp_in_lanes` and its like, for loops over elements, have the same bits wherever an element stands.

Each is an intrinsic: no function of its own is compiled. float32 stays float32, all else gives float64. `sigmoid` and what follows it are
written without branches, so that they are vectorised as well.
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
    "sigmoid": lambda x: np.exp(-np.logaddexp(-x, 0)),
    "softplus": lambda x: np.logaddexp(x, 0),
    "add_any_order": operator.add,
}
"""What NumPy has under no name or another one."""


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


exp, expm1, exp2 = _libm("exp"), _libm("expm1"), _libm("exp2")
log, log1p, log2, log10 = _libm("log"), _libm("log1p"), _libm("log2"), _libm("log10")
sin, cos, tan, asin, acos, atan = _libm("sin"), _libm("cos"), _libm("tan"), _libm("asin"), _libm("acos"), _libm("atan")
sinh, cosh, tanh, asinh, acosh, atanh = _libm("sinh"), _libm("cosh"), _libm("tanh"), _libm("asinh"), _libm("acosh"), _libm("atanh")
erf, erfc, cbrt = _libm("erf"), _libm("erfc"), _libm("cbrt")
pow, hypot, atan2 = _libm("pow"), _libm("hypot"), _libm("atan2")


# built on them ------------------------------------------------------------------------------------------------------


def _exp_of_minus_abs(call: Caller, context: Any, builder: ir.IRBuilder, x: ir.Value, base: str = "exp") -> ir.Value:
    """exp(-|x|), which never overflows."""
    size = builder.call(builder.module.declare_intrinsic("llvm.fabs", [x.type]), [x])
    return call(context, builder, base, builder.fneg(size))


def _sigmoid(call: Caller, context: Any, builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """1 / (1 + exp(-x)), below 0 as exp(x) / (1 + exp(x))."""
    one, tail = ir.Constant(x.type, 1.0), _exp_of_minus_abs(call, context, builder, x)
    above = builder.select(builder.fcmp_ordered("<", x, ir.Constant(x.type, 0.0)), tail, one)
    return builder.fdiv(above, builder.fadd(one, tail))


def _softplus(call: Caller, context: Any, builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """log(1 + exp(x)) as max(x, 0) + log1p(exp(-|x|))."""
    zero, tail = ir.Constant(x.type, 0.0), _exp_of_minus_abs(call, context, builder, x)
    greater = builder.select(builder.fcmp_ordered(">", x, zero), x, zero)
    return builder.fadd(greater, call(context, builder, "log1p", tail))


def _logaddexp(call: Caller, context: Any, builder: ir.IRBuilder, x: ir.Value, y: ir.Value, base: str = "exp") -> ir.Value:
    """log(exp(x) + exp(y)) as max(x, y) + log1p(exp(-|x - y|)), where x - y is 0 for equal infinities."""
    gap = builder.select(builder.fcmp_ordered("==", x, y), ir.Constant(x.type, 0.0), builder.fsub(x, y))
    tail = call(context, builder, "log1p", _exp_of_minus_abs(call, context, builder, gap, base))
    greater = builder.select(builder.fcmp_ordered(">", x, y), x, y)
    return builder.fadd(greater, tail if base == "exp" else builder.fmul(ir.Constant(x.type, 1 / math.log(2.0)), tail))


def _built(name: str, caller: Caller = call) -> Any:
    text, arity, options = _TEXTS[name]
    return _intrinsic(name, arity, lambda context, builder, *args: text(caller, context, builder, *args, **options))


_TEXTS: dict[str, tuple[Callable[..., ir.Value], int, dict[str, str]]] = {
    "sigmoid": (_sigmoid, 1, {}),
    "softplus": (_softplus, 1, {}),
    "logaddexp": (_logaddexp, 2, {}),
    "logaddexp2": (_logaddexp, 2, {"base": "exp2"}),
}
sigmoid, softplus, logaddexp, logaddexp2 = _built("sigmoid"), _built("softplus"), _built("logaddexp"), _built("logaddexp2")
add_any_order = _intrinsic("add_any_order", 2, lambda context, builder, x, y: builder.fadd(x, y, flags=("reassoc",)))

globals().update({f"{name}_in_lanes": _libm(name, call_in_lanes) for name in ARITY})
globals().update({f"{name}_in_lanes": _built(name, call_in_lanes) for name in _TEXTS})
