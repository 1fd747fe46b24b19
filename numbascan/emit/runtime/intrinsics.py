"""Intrinsics for generated code: what LLVM can do and Numba has no function for. Importing this imports Numba.

- `small_array`: a work row on the stack.
- `lanes`: the bound of a loop, hidden from LLVM.
- `in_threads`: passes shared out to threads.
- `interrupted` and its like: True if the call is to stop, asked after every pass of a loop.
- `wrapping_add` and its like: the user's int64 arithmetic, modulo 2**64 as in NumPy. Numba tells LLVM that its own never overflows, so
  that x + 1 > x becomes True and (x * 8) // 8 becomes x. For indices that saves work; for values it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from ..inside import arrays, kept_memory, looks, threads

_IN_PYTHON = bool(vars(config)["DISABLE_JIT"])  # NUMBA_DISABLE_JIT=1: Python runs generated code

# LLVM must know these symbols before Numba loads a kernel from its cache
looks.addresses()
kept_memory.addresses()


@intrinsic
def _lanes(typing: Any, count: Any) -> Any:
    """`count`, hidden from LLVM, which would unroll a short loop of known length before it looks for SIMD."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        number = ir.IntType(64)
        same = ir.FunctionType(number, [number])
        return builder.asm(same, "", "=r,0", [context.cast(builder, args[0], signature.args[0], types.int64)], False)

    return types.int64(count), emit


@intrinsic
def _interrupted(typing: Any, first: Any) -> Any:
    """True if the call is to stop. The clock is read seldom, the first time after `first` steps."""
    return types.boolean(types.int64), lambda context, builder, signature, args: _look(builder, _new(builder), *args)


@intrinsic
def _interrupted_at(typing: Any, first: Any, done: Any, passes: Any) -> Any:
    """The same in an outermost loop with `done` of `passes` passes done, which reports the progress of the call."""
    return types.boolean(*[types.int64] * 3), lambda context, builder, signature, args: _look(builder, _new(builder), *args)


@intrinsic
def _new_watch(typing: Any) -> Any:
    """A new watch, by which the threads of a call know whether it was stopped."""
    return types.int64(), lambda context, builder, signature, args: _new(builder)


@intrinsic
def _stopped(typing: Any, watch: Any, first: Any) -> Any:
    """True if a call of several threads is to stop; with `first` 0, True if it was stopped already."""
    return types.boolean(types.int64, types.int64), lambda context, builder, signature, args: _look(builder, *args)


@intrinsic
def _stopped_at(typing: Any, watch: Any, first: Any, done: Any, passes: Any) -> Any:
    """The same in the outermost loop of a thread, at lane `done` of `passes`."""
    return types.boolean(*[types.int64] * 4), lambda context, builder, signature, args: _look(builder, *args)


def _new(builder: ir.IRBuilder) -> Any:
    """A watch: whether the call was stopped, and the time of its next look (`inside/looks.py`)."""
    number = ir.IntType(64)
    return builder.ptrtoint(_at_entry(builder, number(0), number(0)), number)


def _look(builder: ir.IRBuilder, watch: Any, first: Any, *place: Any) -> Any:
    """True if the call is to stop: code that counts steps down, and at 0 calls the function that reads the clock."""
    bit, number = ir.IntType(1), ir.IntType(64)
    visit = looks.addresses().get(looks.VISIT)
    if visit is None:
        return bit(False)
    if isinstance(first, ir.Constant) and not first.constant:
        return builder.icmp_signed("!=", builder.load(builder.inttoptr(watch, number.as_pointer())), number(0))
    left, site = _at_entry(builder, first), _at_entry(builder, first, number(0))
    fewer = builder.sub(builder.load(left), number(1))
    builder.store(fewer, left)
    around = builder.block
    with builder.if_then(builder.icmp_signed("==", fewer, number(0)), likely=False):
        kind = ir.FunctionType(bit, [number.as_pointer(), number.as_pointer(), number, number])
        function = builder.module.globals.get(looks.VISIT) or ir.Function(builder.module, kind, looks.VISIT)
        function.attributes.add("inaccessiblemem_or_argmemonly")  # arrays and their shapes stay in registers
        stopped = builder.call(function, [builder.inttoptr(watch, number.as_pointer()), site, *(place or (number(0), number(0)))])
        builder.store(builder.load(site), left)
        visited = builder.block
    answer = builder.phi(bit)
    answer.add_incoming(bit(False), around)
    answer.add_incoming(stopped, visited)
    return answer


def _at_entry(builder: ir.IRBuilder, *numbers: Any) -> Any:
    """Stack memory that holds these numbers when the call begins."""
    kind = ir.ArrayType(ir.IntType(64), len(numbers))
    with builder.goto_entry_block():
        place = builder.alloca(kind)
        builder.store(ir.Constant(kind, numbers), place)
    return builder.gep(place, [ir.IntType(32)(0)] * 2)


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
interrupted, interrupted_at, new_watch, stopped, stopped_at = (
    (lambda *_: False) if _IN_PYTHON else look for look in (_interrupted, _interrupted_at, _new_watch, _stopped, _stopped_at)
)
in_threads: Any = (lambda *_: False) if _IN_PYTHON else threads.in_threads
