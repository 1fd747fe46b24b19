"""Passes of a loop in several threads. Importing this imports Numba.

Threads start and end within a call: none is left for a fork, or for another library's threads, to meet. To start one takes 20 µs, so work
is shared out only if it takes several times that. Threads take chunks of passes from a common counter.

Only on Linux; elsewhere nothing is shared out.
"""

from __future__ import annotations

import sys
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from . import looks
from .shortcuts import THREADS as NUMBA

SHARE = 1 << 18  # operations that are worth a thread: 25 µs in the SIMD unit, several times that elsewhere
TAKES = 8  # chunks of passes for each thread, at least
MOST_TAKES = 64  # the same for much work: the smaller the chunks, the shorter threads wait for the last ones
LONG = 8 * SHARE  # operations of a chunk, where that gives more than TAKES chunks
MOST = 64  # threads
MASK = 1024  # processors in the system's mask
_long, _int, _byte = ir.IntType(64), ir.IntType(32), ir.IntType(8)
_pointer = _byte.as_pointer()


@intrinsic
def in_threads(typing: Any, part: Any, start: Any, stop: Any, step: Any, work: Any, most: Any, arguments: Any) -> Any:
    """Calls part(first, last, *arguments) for ranges that make up range(start, stop, step), in no more threads than there are processors.

    Returns True if all calls succeeded. False if the work is too little for threads, and nothing was done; or if a call has failed. Then
    the caller calls `part` itself, which fails as it would have done without threads.

    work: operations in a pass. most: threads at most, 0 for no limit. The first of `arguments` is the watch of the caller (`looks.py`).
    """
    signature = types.boolean(part, types.int64, types.int64, types.int64, types.int64, types.int64, arguments)
    if not NUMBA.is_taken():
        return signature, lambda context, builder, sig, args: ir.IntType(1)(False)
    kinds = (types.int64, types.int64, *arguments.types)
    part.dispatcher.get_call_template(kinds, {})  # compiles it

    def emit(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        if sys.platform != "linux":
            return ir.IntType(1)(False)
        _, start, stop, step, work, most, values = args
        done = NUMBA.alloca_once_value(builder, ir.IntType(1)(False))
        operations = builder.mul(builder.sub(stop, start), work)
        with NUMBA.if_unlikely(builder, builder.icmp_signed(">=", operations, _long(2 * SHARE))):
            threads = _least(builder, _processors(builder), builder.sdiv(operations, _long(SHARE)), _long(MOST))
            limit = builder.select(builder.icmp_signed(">", most, _long(0)), most, threads)
            threads = _least(builder, threads, limit)
            with builder.if_then(builder.icmp_signed(">", threads, _long(1))):
                takes = _least(builder, builder.sdiv(operations, builder.mul(threads, _long(LONG))), _long(MOST_TAKES))
                takes = builder.select(builder.icmp_signed(">", takes, _long(TAKES)), takes, _long(TAKES))
                share = builder.sdiv(builder.sub(stop, start), builder.mul(threads, builder.mul(takes, step)))
                grain = builder.mul(step, builder.add(share, _long(1)))
                job = _Job(context, builder, part.dispatcher.overloads[kinds], kinds)
                builder.store(job.shared_out(start, stop, grain, NUMBA.unpack_tuple(builder, values), threads), done)
        return builder.load(done)

    return signature, emit


def _least(builder: ir.IRBuilder, first: Any, *others: Any) -> Any:
    for other in others:
        first = builder.select(builder.icmp_signed("<", other, first), other, first)
    return first


def _processors(builder: ir.IRBuilder) -> Any:
    """The number of processors that this process may use."""
    mask = NUMBA.alloca_once(builder, ir.ArrayType(_long, MASK // 64))
    builder.store(ir.Constant(mask.type.pointee, None), mask)
    ask = _declared(builder, "sched_getaffinity", _int, [_int, _long, _pointer])
    builder.call(ask, [_int(0), _long(MASK // 8), builder.bitcast(mask, _pointer)])
    count = _declared(builder, "llvm.ctpop.i64", _long, [_long])
    total = _long(0)
    for k in range(MASK // 64):
        total = builder.add(total, builder.call(count, [builder.load(NUMBA.gep(builder, mask, 0, k))]))
    return total


def _declared(builder: ir.IRBuilder, name: str, returned: Any, operands: Any) -> Any:
    return NUMBA.get_or_insert_function(builder.module, ir.FunctionType(returned, operands), name)


class _Job:
    """Memory that threads share: the next free pass, whether a call failed, the end of the range, the passes of a chunk, the arguments."""

    NEXT, FAILED, STOP, GRAIN, ARGUMENTS = range(5)

    def __init__(self, context: Any, builder: ir.IRBuilder, compiled: Any, kinds: Any) -> None:
        self.context, self.builder, self.compiled, self.kinds = context, builder, compiled, kinds
        self.type = ir.LiteralStructType([_long] * 4 + [context.get_value_type(kind) for kind in kinds[2:]])
        context.add_linking_libs([compiled.library])

    def shared_out(self, start: Any, stop: Any, grain: Any, arguments: Any, threads: Any) -> Any:
        """Starts threads, works with them, waits for them. True if no call failed."""
        builder = self.builder
        job = NUMBA.alloca_once(builder, self.type)
        for k, value in enumerate((start, _long(0), stop, grain, *arguments)):
            builder.store(value, NUMBA.gep_inbounds(builder, job, 0, k))
        worker, shared = self._worker(), builder.bitcast(job, _pointer)
        ids = NUMBA.alloca_once(builder, ir.ArrayType(_long, MOST))
        started = NUMBA.alloca_once_value(builder, _long(0))
        create = _declared(builder, "pthread_create", _int, [_pointer, _pointer, worker.type, _pointer])
        join = _declared(builder, looks.JOIN, ir.VoidType(), [_pointer, _long])
        nothing, watch = ir.Constant(_pointer, None), builder.inttoptr(arguments[0], _pointer)
        looks.addresses()
        with NUMBA.for_range(builder, builder.sub(threads, _long(1))):
            count = builder.load(started)
            place = builder.bitcast(NUMBA.gep(builder, ids, 0, count), _pointer)
            failed = builder.call(create, [place, nothing, worker, shared])  # then there is one thread fewer
            is_there = builder.zext(builder.icmp_signed("==", failed, _int(0)), _long)
            builder.store(builder.add(count, is_there), started)
        builder.call(worker, [shared])
        with NUMBA.for_range(builder, builder.load(started)) as loop:
            builder.call(join, [watch, builder.load(NUMBA.gep(builder, ids, 0, loop.index))])
        return builder.icmp_signed("==", builder.load(NUMBA.gep_inbounds(builder, job, 0, self.FAILED)), _long(0))

    def _worker(self) -> Any:
        """The function that threads run: it takes passes until there are none left."""
        module = self.builder.module
        function = ir.Function(module, ir.FunctionType(_pointer, [_pointer]), module.get_unique_name("numbascan_thread"))
        function.linkage = "internal"
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        job = builder.bitcast(function.args[0], self.type.as_pointer())

        def field(k: int) -> Any:
            return NUMBA.gep_inbounds(builder, job, 0, k)

        stop, grain = (builder.load(field(k)) for k in (self.STOP, self.GRAIN))
        arguments = [builder.load(field(self.ARGUMENTS - 1 + k)) for k in range(1, len(self.kinds) - 1)]
        again, work, end = (builder.append_basic_block(name) for name in ("again", "work", "end"))
        builder.branch(again)
        builder.position_at_end(again)
        first = builder.atomic_rmw("add", field(self.NEXT), grain, "monotonic")
        builder.cbranch(builder.icmp_signed("<", first, stop), work, end)
        builder.position_at_end(work)
        last = _least(builder, builder.add(first, grain), stop)
        callee = self.context.declare_function(module, self.compiled.fndesc)
        returned = self.compiled.signature.return_type
        status, _ = self.context.call_conv.call_function(builder, callee, returned, self.kinds, [first, last, *arguments])
        with NUMBA.if_unlikely(builder, status.is_error):
            builder.atomic_rmw("or", field(self.FAILED), _long(1), "monotonic")
        builder.branch(again)
        builder.position_at_end(end)
        builder.ret(ir.Constant(_pointer, None))
        return function
