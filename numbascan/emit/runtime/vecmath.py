"""Functions of libm for generated code, which LLVM's vectoriser turns into calls of libmvec.

`exp` and its like are plain calls where nothing is vectorised. `exp_in_lanes` and its like, for loops over elements, have the same bits
wherever an element stands: what is left over when the vectors are full, and vectors of other lengths, go through the same routine.

Each is an intrinsic: no function of its own is compiled. float32 stays float32, all else gives float64. `sigmoid` and what follows it are
written without branches, so that they are vectorised as well.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from ..inside.vector_forms import ARITY, present, vector_names
from ..names import FUNCTIONS, in_lanes

present()  # generated code read from the disk imports this module: the symbols it refers to must be there

PURE = ("readnone", "nounwind", "willreturn")  # errno does not count
BOUNDED = ("sin", "cos")
USED = "llvm.compiler.used"
POINTER, INT = ir.IntType(8).as_pointer(), ir.IntType(32)
Forms = Mapping[int, tuple[str, ir.Function]]
Caller = Callable[..., ir.Value]  # of a context, a builder, a function's name, its operands


# declarations -------------------------------------------------------------------------------------------------------


def _call(context: Any, builder: ir.IRBuilder, name: str, *args: ir.Value) -> ir.Value:
    """A call of a function of libm, which names its vector forms."""
    forms = _vector_forms(context, builder.module, name, args[0].type)
    return builder.call(_with_forms(builder.module, _libm_function(builder.module, name, args[0].type), forms), args)


def _call_in_lanes(context: Any, builder: ir.IRBuilder, name: str, *args: ir.Value) -> ir.Value:
    """The same with one routine behind it, for vectors of all lengths and for single numbers."""
    module, type_ = builder.module, args[0].type
    most = _preferred_bytes(context) // (8 if isinstance(type_, ir.DoubleType) else 4)
    forms = {lanes: form for lanes, form in _vector_forms(context, module, name, type_).items() if lanes <= most}
    if not forms:
        return _call(context, builder, name, *args)
    routine = forms[max(forms)][1]
    symbol = _symbol(name, type_)
    alone = _of_fewer(module, routine, 1, in_lanes(symbol))
    alone.attributes.add("noinline")  # the vectoriser looks for calls
    _keep(module, [alone])  # with all its operands, constant or not, as its vector forms have them
    same = {
        lanes: (vector.removesuffix(symbol) + alone.name, _of_fewer(module, routine, lanes, f"{alone.name}_{lanes}"))
        for lanes, (vector, _) in forms.items()
    }
    return builder.call(_with_forms(module, alone, same), args)


def _preferred_bytes(context: Any) -> int:
    """Of the vectors that LLVM makes: for Intel's processors they are no longer than 32, whatever registers there are."""
    return 64 if context.codegen().magic_tuple()[1].startswith("znver") else 32


def _symbol(name: str, type_: ir.Type) -> str:
    return name if isinstance(type_, ir.DoubleType) else f"{name}f"


def _libm_function(module: ir.Module, name: str, type_: ir.Type) -> ir.Function:
    symbol = _symbol(name, type_)
    if name == "hypot" and sys.platform == "win32":
        symbol = f"_{symbol}"
    return module.globals.get(symbol) or ir.Function(module, ir.FunctionType(type_, [type_] * ARITY[name]), symbol)


def _with_forms(module: ir.Module, function: ir.Function, forms: Forms) -> ir.Function:
    """The function with its attributes, the vector forms among them."""
    attributes = [*PURE]
    if forms:
        _keep(module, [form for _, form in forms.values()])
        attributes.append(f'"vector-function-abi-variant"="{",".join(f"{vector}({form.name})" for vector, form in forms.values())}"')
    for attribute in attributes:
        set.add(function.attributes, attribute)  # llvmlite's own `add` knows neither strings nor all names
    return function


def _vector_forms(context: Any, module: ir.Module, name: str, type_: ir.Type) -> Forms:
    """By the number of lanes, the vector forms that there are: libmvec's name of each, and the function to call."""
    named = vector_names(name, 8 if isinstance(type_, ir.DoubleType) else 4, _features(context.codegen().magic_tuple()[2]))
    return {lanes: (vector, _vector_form(module, name, vector, type_, lanes)) for lanes, vector in named.items() if vector in present()}


def _of_fewer(module: ir.Module, routine: ir.Function, lanes: int, name: str) -> ir.Function:
    """A vector form for fewer lanes, which fill its vectors several times over. For one: of single numbers."""
    vectors = routine.ftype.return_type
    if lanes == vectors.count:
        return routine
    if name in module.globals:
        return module.globals[name]
    type_ = vectors.element if lanes == 1 else ir.VectorType(vectors.element, lanes)
    function = ir.Function(module, ir.FunctionType(type_, [type_] * len(routine.args)), name)
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block())
    found = builder.call(routine, [_spread(builder, value, vectors, lanes) for value in function.args])
    if lanes == 1:
        builder.ret(builder.extract_element(found, INT(0)))
    else:
        builder.ret(builder.shuffle_vector(found, ir.Constant(vectors, ir.Undefined), _places(range(lanes))))
    return function


def _spread(builder: ir.IRBuilder, value: ir.Value, vectors: ir.VectorType, lanes: int) -> ir.Value:
    if lanes == 1:
        value = builder.insert_element(ir.Constant(vectors, ir.Undefined), value, INT(0))
    return builder.shuffle_vector(value, ir.Constant(value.type, ir.Undefined), _places(k % lanes for k in range(vectors.count)))


def _places(lanes: Iterable[int]) -> ir.Constant:
    places = list(lanes)
    return ir.VectorType(INT, len(places))(places)


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


def _libm(name: str, call: Caller = _call) -> Any:
    return _intrinsic(name, ARITY[name], lambda context, builder, *args: call(context, builder, name, *args))


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


def _built(name: str, call: Caller = _call) -> Any:
    text, arity, options = _TEXTS[name]
    return _intrinsic(name, arity, lambda context, builder, *args: text(call, context, builder, *args, **options))


_TEXTS: dict[str, tuple[Callable[..., ir.Value], int, dict[str, str]]] = {
    "sigmoid": (_sigmoid, 1, {}),
    "softplus": (_softplus, 1, {}),
    "logaddexp": (_logaddexp, 2, {}),
    "logaddexp2": (_logaddexp, 2, {"base": "exp2"}),
}
sigmoid, softplus, logaddexp, logaddexp2 = _built("sigmoid"), _built("softplus"), _built("logaddexp"), _built("logaddexp2")
add_any_order = _intrinsic("add_any_order", 2, lambda context, builder, x, y: builder.fadd(x, y, flags=("reassoc",)))

globals().update({in_lanes(name): (_libm if name in ARITY else _built)(name, _call_in_lanes) for name in FUNCTIONS})  # exp_in_lanes, …
