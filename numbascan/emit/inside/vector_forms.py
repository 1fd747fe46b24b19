"""Functions of libm with the vector forms of glibc's libmvec, declared so that LLVM's vectoriser calls these in loops.

`call` is a plain call where nothing is vectorised. `call_in_lanes`, for loops over elements, gives an element the same bits at every
place: vectors of other lengths, and the elements that do not fill one, go through the same routine.

Which forms there are is known without importing Numba. Measured on x86-64 (docs/accuracy.md); other processors, and systems without the
library, have no forms, and all calls are plain.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import cache
from typing import Any

from llvmlite import binding, ir

from ...ops.elementwise import HELPERS
from . import polynomials
from .shortcuts import VECTOR_FORMS

LIBRARY = "libmvec.so.1"
PURE = ("readnone", "nounwind", "willreturn")  # errno does not count
BOUNDED = ("sin", "cos")
USED = "llvm.compiler.used"
POINTER, INT = ir.IntType(8).as_pointer(), ir.IntType(32)
Forms = Mapping[int, tuple[str, ir.Function]]
Caller = Callable[..., ir.Value]  # of a context, a builder, a function's name, its operands

ARITY = {name: helper.arity for name, helper in HELPERS.items() if helper.module == "vecmath"}
"""How many operands each function takes."""

REGISTERS = (("b", 16, "sse2"), ("c", 32, "avx"), ("d", 32, "avx2"), ("e", 64, "avx512f"))
"""Vector registers of x86-64: the letter in names of functions, the bytes, the feature that the processor must have. The best last."""


def vector_names(name: str, itemsize: int, features: Set[str]) -> dict[int, str]:
    """The vector form of a function for each number of lanes, on a processor with `features`; `itemsize` 4 for float, 8 for double."""
    arity, scalar = ARITY[name], name if itemsize == 8 else f"{name}f"
    named = {}
    for letter, size, feature in REGISTERS:
        if feature in features:
            named[size // itemsize] = f"_ZGV{letter}N{size // itemsize}{'v' * arity}_{scalar}"
    return named


@cache
def present() -> frozenset[str]:
    """The vector forms that this process can call. Loads the library, which compiled code from the disk needs as well."""
    try:
        binding.load_library_permanently(LIBRARY)
    except RuntimeError:
        return frozenset()
    return frozenset(symbol for symbol in _known() if binding.address_of_symbol(symbol))


def _known() -> Iterator[str]:
    """Every vector form there may be."""
    for name in ARITY:
        for itemsize in (4, 8):
            for _, _, feature in REGISTERS:
                yield from vector_names(name, itemsize, {feature}).values()


# declarations ----------------------------------------------------------------------------------------------------------


def call(context: Any, builder: ir.IRBuilder, name: str, *args: ir.Value) -> ir.Value:
    """A call of a function of libm, which names its vector forms."""
    forms = _vector_forms(context, builder.module, name, args[0].type)
    return builder.call(_with_forms(builder.module, _libm_function(builder.module, name, args[0].type), forms), args)


def call_in_lanes(context: Any, builder: ir.IRBuilder, name: str, *args: ir.Value) -> ir.Value:
    """The same by one routine, for vectors of all lengths and for single numbers."""
    module, type_ = builder.module, args[0].type
    if name in polynomials.FUNCTIONS and VECTOR_FORMS.is_taken() and has_fma(context):
        return builder.call(_inlined(module, name, type_), args)
    forms = _vector_forms(context, module, name, type_)
    if not forms:
        return call(context, builder, name, *args)
    most = _preferred_bytes(context) // (8 if isinstance(type_, ir.DoubleType) else 4)
    forms = {lanes: form for lanes, form in forms.items() if lanes <= most}
    routine = forms[max(forms)][1]
    symbol = _symbol(name, type_)
    alone = _of_fewer(module, routine, 1, f"{symbol}_in_lanes")
    alone.attributes.add("noinline")  # the vectoriser looks for calls
    _keep(module, [alone])  # kept, so that LLVM leaves it all the operands that its vector forms have, constant or not
    same = {
        lanes: (vector.removesuffix(symbol) + alone.name, _of_fewer(module, routine, lanes, f"{alone.name}_{lanes}"))
        for lanes, (vector, _) in forms.items()
    }
    return builder.call(_with_forms(module, alone, same), args)


def has_fma(context: Any) -> bool:
    """True if the processor can multiply and add with one rounding. x86 before 2013 cannot; all others with 64 bits can."""
    processor, features = context.codegen().magic_tuple()[0], context.codegen().magic_tuple()[2]
    return "fma" in _features(features) or not processor.startswith(("x86_64", "i686"))


def _inlined(module: ir.Module, name: str, type_: ir.Type) -> ir.Function:
    """A function that LLVM inlines before it looks for vectors."""
    symbol = f"numbascan_{_symbol(name, type_)}"
    if symbol in module.globals:
        return module.globals[symbol]
    function = ir.Function(module, ir.FunctionType(type_, [type_]), symbol)
    function.linkage = "internal"
    function.attributes.add("alwaysinline")
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(polynomials.FUNCTIONS[name](builder, *function.args))
    return function


def _preferred_bytes(context: Any) -> int:
    """The bytes of the longest vectors that LLVM makes: 32 for Intel's processors, whatever registers they have."""
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
    attributes = [*PURE] if VECTOR_FORMS.is_taken() else []
    if forms:
        _keep(module, [form for _, form in forms.values()])
        attributes.append(f'"vector-function-abi-variant"="{",".join(f"{vector}({form.name})" for vector, form in forms.values())}"')
    for attribute in attributes:
        set.add(function.attributes, attribute)  # llvmlite's own `add` knows neither strings nor all names
    return function


def _vector_forms(context: Any, module: ir.Module, name: str, type_: ir.Type) -> Forms:
    """The vector forms that are available, by number of lanes: libmvec's name of each, and the function to call."""
    if not VECTOR_FORMS.is_taken():
        return {}
    named = vector_names(name, 8 if isinstance(type_, ir.DoubleType) else 4, _features(context.codegen().magic_tuple()[2]))
    return {lanes: (vector, _vector_form(module, name, vector, type_, lanes)) for lanes, vector in named.items() if vector in present()}


def _of_fewer(module: ir.Module, routine: ir.Function, lanes: int, name: str) -> ir.Function:
    """The routine for fewer lanes, which are repeated to fill its vectors; for one lane, a function of single numbers."""
    vectors = routine.ftype.return_type
    if lanes == vectors.count:
        return routine
    if name in module.globals:
        return module.globals[name]
    type_ = vectors.element if lanes == 1 else ir.VectorType(vectors.element, lanes)
    function = ir.Function(module, ir.FunctionType(type_, [type_] * len(routine.args)), name)
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block())
    results = builder.call(routine, [_spread(builder, value, vectors, lanes) for value in function.args])
    if lanes == 1:
        builder.ret(builder.extract_element(results, INT(0)))
    else:
        builder.ret(builder.shuffle_vector(results, ir.Constant(vectors, ir.Undefined), _places(range(lanes))))
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
    """The function that is called in place of `lanes` scalar calls."""
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
    """Keeps functions that nothing calls yet in the module until the vectoriser looks for them."""
    used = module.globals.get(USED)
    pointers = [] if used is None else used.initializer.constant
    names = {pointer.get_reference() for pointer in pointers}
    more = [function.bitcast(POINTER) for function in functions]
    pointers = [*pointers, *(pointer for pointer in more if pointer.get_reference() not in names)]
    if used is None:
        used = ir.GlobalVariable(module, ir.ArrayType(POINTER, 0), USED)
        used.linkage, used.section = "appending", "llvm.metadata"
    used.value_type = ir.ArrayType(POINTER, len(pointers))
    used.initializer = ir.Constant(used.value_type, pointers)
