"""Random numbers for generated code: the functions of `ops/draw_methods.py`, compiled for numbers. Importing this imports Numba.

They are compiled as they stand there, in strict arithmetic whatever the mode of the code that calls them: a draw is the same bits everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import config
from numba.extending import intrinsic

from ..ops import draw_methods
from .names import RANDOM

_JIT = not vars(config)["DISABLE_JIT"]  # NUMBA_DISABLE_JIT=1: Python runs generated code


@intrinsic
def _multiply_wide(typing: Any, a: Any, b: Any) -> Any:
    """Both halves of a product of 128 bits: one instruction, where two products would be two."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Sequence[ir.Value]) -> ir.Value:
        word, wide = ir.IntType(64), ir.IntType(128)
        product = builder.mul(*(builder.zext(arg, wide) for arg in args))
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), word)
        return context.make_tuple(builder, signature.return_type, (high, builder.trunc(product, word)))

    return types.UniTuple(types.uint64, 2)(types.uint64, types.uint64), emit


@intrinsic
def _select(typing: Any, condition: Any, a: Any, b: Any) -> Any:
    """One of two values, both computed: no branch, so that loops stay loops of SIMD."""
    result = typing.unify_types(a, b)

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Sequence[ir.Value]) -> ir.Value:
        held = context.cast(builder, args[0], signature.args[0], types.boolean)
        values = [context.cast(builder, value, type_, result) for value, type_ in zip(args[1:], signature.args[1:], strict=True)]
        return builder.select(held, *values)

    return result(condition, a, b), emit


def _bitcast(source: Any, target: Any) -> Any:
    """The bits of a number as one of another type."""

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


def _compiled() -> dict[str, Any]:
    """The methods by name, as functions of numbers."""
    names: dict[str, Any] = {**vars(draw_methods), **_PRIMITIVES}
    for name in draw_methods.METHODS:
        # what LLVM leaves as a call keeps SIMD out of the loop around it
        compiler = njit(error_model="numpy", forceinline=name not in draw_methods.LONG)
        names[name] = compiler(FunctionType(vars(draw_methods)[name].__code__, names, name))
    return names


def _quiet(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method on Python's way: words overflow as they should."""

    def function(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            result = method(*args)
        return result[()] if isinstance(result, np.ndarray) else result

    return function


_METHODS = _compiled() if _JIT else {name: _quiet(vars(draw_methods)[name]) for name in draw_methods.METHODS}

philox, normal_pair = _METHODS["philox"], _METHODS["normal_pair"]
globals().update((name, _METHODS[name]) for name in RANDOM)
