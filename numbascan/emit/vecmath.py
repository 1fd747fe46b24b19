"""Functions of libm for generated code, which LLVM's vectoriser turns into calls of libmvec; elsewhere they are the plain calls.

Each is an intrinsic: no function of its own is compiled. float32 stays float32, all else gives float64. `sigmoid` and what follows it are
written without branches, so that they are vectorised as well.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from .libmvec import ARITY, present, vector_names

present()  # generated code read from the disk imports this module: the symbols it refers to must be there

PURE = ("readnone", "nounwind", "willreturn")  # errno does not count
BOUNDED = ("sin", "cos")
USED = "llvm.compiler.used"
POINTER = ir.IntType(8).as_pointer()


# declarations -------------------------------------------------------------------------------------------------------


def _call(context: Any, builder: ir.IRBuilder, name: str, *args: ir.Value) -> ir.Value:
    """A call of a function of libm, which names its vector forms."""
    module, type_ = builder.module, args[0].type
    is_double = isinstance(type_, ir.DoubleType)
    symbol = name if is_double else f"{name}f"
    if name == "hypot" and sys.platform == "win32":
        symbol = f"_{symbol}"
    function = module.globals.get(symbol) or ir.Function(module, ir.FunctionType(type_, [type_] * len(args)), symbol)
    named = vector_names(name, 8 if is_double else 4, _features(context.codegen().magic_tuple()[2]))
    variants = {vector: _vector_form(module, name, vector, type_, lanes) for lanes, vector in named.items() if vector in present()}
    attributes = [*PURE]
    if variants:
        _keep(module, variants.values())
        attributes.append(f'"vector-function-abi-variant"="{",".join(f"{vector}({form.name})" for vector, form in variants.items())}"')
    for attribute in attributes:
        set.add(function.attributes, attribute)  # llvmlite's own `add` knows neither strings nor all names
    return builder.call(function, args)


@cache
def _features(listed: str) -> frozenset[str]:
    """The features that code is compiled for, of a list such as "+avx2,-avx512f"."""
    return frozenset(feature[1:] for feature in listed.split(",") if feature.startswith("+"))


def _vector_form(module: ir.Module, name: str, vector: str, type_: ir.Type, lanes: int) -> ir.Function:
    """The function that is called in place of so many scalar calls."""
    arity = ARITY[name]
    vectors = ir.VectorType(type_, lanes)
    plain = module.globals.get(vector) or ir.Function(module, ir.FunctionType(vectors, [vectors] * arity), vector)
    return _within_one(module, plain) if name in BOUNDED else plain


def _within_one(module: ir.Module, vector: ir.Function) -> ir.Function:
    """A vector form whose results lie in [-1, 1]: libmvec's are 1 + 2**-52 here and there, and sqrt(1 - cos(x)**2) would be NaN."""
    name = f"within_one{vector.name}"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, vector.ftype, name)
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block())
    value, type_ = builder.call(vector, function.args), vector.ftype.return_type
    high, low = (ir.Constant(type_, [bound] * type_.count) for bound in (1.0, -1.0))
    value = builder.select(builder.fcmp_ordered("<", high, value), high, value)  # NaN stays
    builder.ret(builder.select(builder.fcmp_ordered(">", low, value), low, value))
    return function


def _keep(module: ir.Module, functions: Iterable[ir.Function]) -> None:
    """Lets functions that nothing calls yet live until the vectoriser looks for them."""
    used = module.globals.get(USED)
    kept = [] if used is None else used.initializer.constant
    names = {pointer.get_reference() for pointer in kept}
    kept = [*kept, *(pointer for pointer in (function.bitcast(POINTER) for function in functions) if pointer.get_reference() not in names)]
    if used is None:
        used = ir.GlobalVariable(module, ir.ArrayType(POINTER, 0), USED)
        used.linkage, used.section = "appending", "llvm.metadata"
    used.value_type = ir.ArrayType(POINTER, len(kept))
    used.initializer = ir.Constant(used.value_type, kept)


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


def _libm(name: str) -> Any:
    return _intrinsic(name, ARITY[name], lambda context, builder, *args: _call(context, builder, name, *args))


exp, expm1, exp2 = _libm("exp"), _libm("expm1"), _libm("exp2")
log, log1p, log2, log10 = _libm("log"), _libm("log1p"), _libm("log2"), _libm("log10")
sin, cos, tan, asin, acos, atan = _libm("sin"), _libm("cos"), _libm("tan"), _libm("asin"), _libm("acos"), _libm("atan")
sinh, cosh, tanh, asinh, acosh, atanh = _libm("sinh"), _libm("cosh"), _libm("tanh"), _libm("asinh"), _libm("acosh"), _libm("atanh")
erf, erfc, cbrt = _libm("erf"), _libm("erfc"), _libm("cbrt")
pow, hypot, atan2 = _libm("pow"), _libm("hypot"), _libm("atan2")


# built on them ------------------------------------------------------------------------------------------------------


def _exp_of_minus_abs(context: Any, builder: ir.IRBuilder, x: ir.Value, base: str = "exp") -> ir.Value:
    """exp(-|x|), which never overflows."""
    size = builder.call(builder.module.declare_intrinsic("llvm.fabs", [x.type]), [x])
    return _call(context, builder, base, builder.fneg(size))


def _sigmoid(context: Any, builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """1 / (1 + exp(-x)), below 0 as exp(x) / (1 + exp(x))."""
    one, tail = ir.Constant(x.type, 1.0), _exp_of_minus_abs(context, builder, x)
    above = builder.select(builder.fcmp_ordered("<", x, ir.Constant(x.type, 0.0)), tail, one)
    return builder.fdiv(above, builder.fadd(one, tail))


def _softplus(context: Any, builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """log(1 + exp(x)) as max(x, 0) + log1p(exp(-|x|))."""
    zero, tail = ir.Constant(x.type, 0.0), _exp_of_minus_abs(context, builder, x)
    greater = builder.select(builder.fcmp_ordered(">", x, zero), x, zero)
    return builder.fadd(greater, _call(context, builder, "log1p", tail))


def _logaddexp(base: str, scale: float) -> Callable[..., ir.Value]:
    """log(exp(x) + exp(y)) as max(x, y) + log1p(exp(-|x - y|)), where x - y is 0 for equal infinities; `scale`: 1 / log(base)."""

    def text(context: Any, builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
        gap = builder.select(builder.fcmp_ordered("==", x, y), ir.Constant(x.type, 0.0), builder.fsub(x, y))
        tail = _call(context, builder, "log1p", _exp_of_minus_abs(context, builder, gap, base))
        greater = builder.select(builder.fcmp_ordered(">", x, y), x, y)
        return builder.fadd(greater, tail if scale == 1.0 else builder.fmul(ir.Constant(x.type, scale), tail))

    return text


sigmoid, softplus = _intrinsic("sigmoid", 1, _sigmoid), _intrinsic("softplus", 1, _softplus)
logaddexp = _intrinsic("logaddexp", 2, _logaddexp("exp", 1.0))
logaddexp2 = _intrinsic("logaddexp2", 2, _logaddexp("exp2", 1 / math.log(2.0)))
add_any_order = _intrinsic("add_any_order", 2, lambda context, builder, x, y: builder.fadd(x, y, flags=("reassoc",)))
