"""Locals of numbers are no more than memory to Numba's lowering: written once for each value, and not at their birth and death.

Numba fills every local that lives in several blocks with zeros when the function starts, reads what it held before it is written, and
fills it with zeros again when it dies: that keeps counts of references. For numbers nothing comes of it but work for LLVM, which takes
it out again at a cost that grows with the square of the function's length (2,800 lines: 120 s of 390, now 35 of 290).

Memory that code fills anyway is not filled with zeros when the function starts, either.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from llvmlite import ir

from .shortcuts import PLAIN_LOCALS as NUMBA


def replace(stack: ExitStack) -> None:
    """Has Numba lower locals this way until the stack is closed."""
    if NUMBA.is_taken():
        stack.enter_context(NUMBA.replaced(alloca=alloca, storevar=storevar, delvar=delvar))
        stack.enter_context(NUMBA.replaced(alloca_once=alloca_once, alloca_once_value=alloca_once_value, __init__=struct_proxy))


def _is_plain(lower: Any, type_: Any) -> bool:
    """Does a value of a type count no references?"""
    return not lower.context.enable_debuginfo and not lower.context.data_model_manager[type_].contains_nrt_meminfo()


def alloca(self: Any, name: str, type_: Any) -> Any:
    """Memory for a local."""
    if not _is_plain(self, type_):
        return NUMBA.alloca(self, name, type_)
    with self.builder.goto_entry_block():
        return self.builder.alloca(self.context.get_value_type(type_), name=name)


def storevar(self: Any, value: ir.Value, name: str, argidx: int | None = None) -> None:
    """Gives a local a value."""
    if argidx is not None or name in self._singly_assigned_vars or not _is_plain(self, self.typeof(name)):
        return NUMBA.storevar(self, value, name, argidx)
    place = self.getvar(name)
    if value.type != place.type.pointee:
        return NUMBA.storevar(self, value, name, argidx)  # which says what is wrong
    self.builder.store(value, place)
    return None


def delvar(self: Any, name: str) -> None:
    """Ends the life of a local."""
    if not _is_plain(self, self.typeof(name)):
        NUMBA.delvar(self, name)


def alloca_once(builder: ir.IRBuilder, type_: ir.Type, size: Any = None, name: str = "", zfill: bool = False) -> Any:
    """Memory that holds zeros from the function's start; where it is asked for, from there alone."""
    if not zfill:
        return NUMBA.alloca_once(builder, type_, size, name)
    count = ir.Constant(NUMBA.intp_t, size) if isinstance(size, int) else size
    with builder.goto_entry_block():
        place = builder.alloca(type_, size=count, name=name)
    builder.store(type_(None), place)
    return place


def alloca_once_value(builder: ir.IRBuilder, value: ir.Value, name: str = "", zfill: bool = False) -> Any:
    """Memory that holds a value from here on."""
    with builder.goto_entry_block():
        place = builder.alloca(value.type, name=name)
    builder.store(value, place)
    return place


def struct_proxy(self: Any, context: Any, builder: ir.IRBuilder, value: ir.Value | None = None, ref: Any = None) -> None:
    """A struct in memory, which holds a value from here on."""
    if value is not None and ref is None and type(self)._make_refs is NUMBA._make_refs:
        with builder.goto_entry_block():
            ref = builder.alloca(value.type)
    vars(NUMBA)["__init__"](self, context, builder, value, ref)
