"""Random numbers for generated code: the functions of `ops/draw_methods.py`, compiled for numbers. Importing this imports Numba.

They are compiled unchanged, in strict arithmetic whatever the mode of their callers: a draw is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from types import CodeType, FunctionType
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, njit, types
from numba.extending import intrinsic

from ...ops import draw_methods, rejection

_JIT = not vars(config)["DISABLE_JIT"]  # NUMBA_DISABLE_JIT=1: Python runs generated code


@intrinsic
def _multiply_wide(typing: Any, a: Any, b: Any) -> Any:
    """The upper and the lower half of a product of 128 bits, by one instruction."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Sequence[ir.Value]) -> ir.Value:
        word, wide = ir.IntType(64), ir.IntType(128)
        product = builder.mul(*(builder.zext(arg, wide) for arg in args))
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), word)
        return context.make_tuple(builder, signature.return_type, (high, builder.trunc(product, word)))

    return types.UniTuple(types.uint64, 2)(types.uint64, types.uint64), emit


@intrinsic
def _select(typing: Any, condition: Any, a: Any, b: Any) -> Any:
    """One of two values, both computed: a branch would keep SIMD out of the loop around it."""
    result = typing.unify_types(a, b)

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Sequence[ir.Value]) -> ir.Value:
        held = context.cast(builder, args[0], signature.args[0], types.boolean)
        values = [context.cast(builder, value, type_, result) for value, type_ in zip(args[1:], signature.args[1:], strict=True)]
        return builder.select(held, *values)

    return result(condition, a, b), emit


def _bitcast(source: Any, target: Any) -> Any:
    """An intrinsic that reads the bits of a number as a number of another type."""

    @intrinsic
    def cast(typing: Any, value: Any) -> Any:
        def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Sequence[ir.Value]) -> ir.Value:
            return builder.bitcast(args[0], context.get_value_type(target))

        return target(source), emit

    return cast


_PRIMITIVES = {
    "multiply_wide": _multiply_wide,
    "select": _select,
    "bits_of": _bitcast(types.float64, types.uint64),
    "double_of": _bitcast(types.uint64, types.float64),
}
assert set(_PRIMITIVES) == set(draw_methods.PRIMITIVES)


Compile = Callable[[Callable[..., Any]], Any]
_njit = njit(error_model="numpy")


def _compiled(
    modules: Sequence[Any], compile_: Compile, primitives: Mapping[str, Any], code_of: Callable[..., CodeType] = attrgetter("__code__")
) -> dict[str, Any]:
    """By name, the methods of modules, compiled for numbers."""
    names: dict[str, Any] = {**{name: value for module in modules for name, value in vars(module).items()}, **primitives}
    for module in modules:
        for name in module.METHODS:
            names[name] = compile_(FunctionType(code_of(vars(module)[name]), names, name))
    return names


def _sampler(sampler: rejection.Sampler, methods: Mapping[str, Any], compile_: Compile) -> Any:
    """The function that draws one number."""
    setup, proposal = methods[sampler.setup], methods[sampler.proposal]
    test, philox = methods[sampler.test], methods["philox"]
    value = _value(sampler, methods, compile_)
    zero, one, attempts = np.uint64(0), np.uint64(1), rejection.ATTEMPTS
    nothing = np.dtype(sampler.dtype).type(np.nan if sampler.dtype == "float64" else 0)

    @compile_
    def accepted(k0: Any, k1: Any, number: Any, position: Any, parameters: Any) -> Any:
        prepared = setup(parameters)
        for k in range(1, attempts):
            x0, x1, x2, x3 = philox(k0, k1, np.uint64(k), position + one, number, zero)
            at_once, proposed = proposal(x0, x1, x2, x3, prepared)
            if at_once or test(x0, x1, x2, x3, prepared, proposed):
                return value(x0, x1, x2, x3, prepared, proposed)
        return nothing

    draw = accepted if sampler.search is None else _searching(sampler.search, accepted, methods, compile_)
    if sampler.parameters == 1:
        return compile_(lambda k0, k1, number, position, a: draw(k0, k1, number, position, (a,)))
    if sampler.parameters == 2:
        return compile_(lambda k0, k1, number, position, a, b: draw(k0, k1, number, position, (a, b)))
    return compile_(lambda k0, k1, number, position, a, b, c: draw(k0, k1, number, position, (a, b, c)))


def _value(sampler: rejection.Sampler, methods: Mapping[str, Any], compile_: Compile) -> Any:
    """The function for a sampler's value, by the simpler formula where that is the same."""
    value = methods[sampler.value]
    if sampler.plain is None:
        return value
    is_plain, plain = (methods[name] for name in sampler.plain)

    @compile_
    def shorter(x0: Any, x1: Any, x2: Any, x3: Any, prepared: Any, proposed: Any) -> Any:
        is_shorter = is_plain(prepared)
        return plain(x0, x1, x2, x3, prepared, proposed) if is_shorter else value(x0, x1, x2, x3, prepared, proposed)

    return shorter


def _searching(search: rejection.Search, accepted: Any, methods: Mapping[str, Any], compile_: Compile) -> Any:
    """A function that draws by search where the parameters are small, else by rejection."""
    is_small, start, following, end = (methods[name] for name in (search.is_small, search.start, search.following, search.end))
    philox, uniform_of, fewest = methods["philox"], methods["uniform_of"], rejection.FEWEST
    zero, one = np.uint64(0), np.uint64(1)

    @compile_
    def draw(k0: Any, k1: Any, number: Any, position: Any, parameters: Any) -> Any:
        if not is_small(parameters):
            return end(accepted(k0, k1, number, position, parameters), parameters)
        word, _, _, _ = philox(k0, k1, one, position + one, number, zero)
        u, probability, k = uniform_of(word), start(parameters), 0.0
        while u >= probability and probability > fewest:
            u -= probability
            k += 1.0
            probability = following(k, probability, parameters)
        return end(k, parameters)

    return draw


def _normal_by_parts(methods: Mapping[str, Any], compile_: Compile) -> Any:
    """The function that makes a single normal number by one of two formulas, inside or tail. Draws of many numbers do not call it."""
    tail_of, is_outside, turned_to = methods["tail_of"], methods["is_outside"], methods["turned_to"]
    inside, outside = methods["normal_inside"], methods["normal_outside"]

    @compile_
    def normal_of(word: Any) -> Any:
        tail = tail_of(word)
        return turned_to(word, outside(tail) if is_outside(tail) else inside(tail))

    return normal_of


def _quiet(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method as Python runs it: without warnings, since words are meant to overflow."""

    def function(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            result = method(*args)
        return result[()] if isinstance(result, np.ndarray) else result

    return function


def in_python() -> dict[str, Any]:
    """By name, the functions that generated code calls, as Python runs them."""
    methods = {name: _quiet(vars(module)[name]) for module in (draw_methods, rejection) for name in module.METHODS}
    return methods | {name: _quiet(rejection.sampled(sampler)) for name, sampler in rejection.SAMPLERS.items()}


def functions_for(compile_: Compile, primitives: Mapping[str, Any], code_of: Callable[..., CodeType]) -> dict[str, Any]:
    """The same, compiled for a machine.

    compile_: compiles a function. primitives: the machine's own PRIMITIVES. code_of: the code to compile for a method.
    """
    called = _compiled([draw_methods, rejection], compile_, primitives, code_of)
    called["normal_of"] = _normal_by_parts(called, compile_)  # the samplers call it, too
    return called | {name: _sampler(sampler, called, compile_) for name, sampler in rejection.SAMPLERS.items()}


def _functions() -> dict[str, Any]:
    """The same for the CPU."""
    if not _JIT:
        return in_python()
    # inlined, since a call would keep SIMD out of the loop around it (a normal number in a loop: 32 ns, inlined 14); not within rejection,
    # which is never SIMD: there a call is less code
    inlined = _compiled([draw_methods], njit(error_model="numpy", forceinline=True), _PRIMITIVES)
    called = functions_for(_njit, _PRIMITIVES, attrgetter("__code__"))
    return inlined | {name: called[name] for name in (*rejection.METHODS, "normal_of", *rejection.SAMPLERS)}


_FUNCTIONS = _functions()
philox, normal_pair = _FUNCTIONS["philox"], _FUNCTIONS["normal_pair"]
tail_of, is_outside, turned_to = _FUNCTIONS["tail_of"], _FUNCTIONS["is_outside"], _FUNCTIONS["turned_to"]
normal_inside, normal_outside = _FUNCTIONS["normal_inside"], _FUNCTIONS["normal_outside"]
globals().update((name, _FUNCTIONS[name]) for name in (*draw_methods.METHODS, *rejection.METHODS, *rejection.SAMPLERS))
