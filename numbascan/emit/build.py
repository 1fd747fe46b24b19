"""Generated modules imported, which has Numba compile them. Importing this imports Numba."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import binding
from numba.core import analysis, cgutils, ssa, typing, untyped_passes
from numba.core.base import BaseContext
from numba.core.compiler_lock import global_compiler_lock
from numba.core.lowering import BaseLower, Lower
from numba.core.pythonapi import PythonAPI
from numba.core.registry import cpu_target
from numba.core.types.functions import BaseFunction

from .inside import long_functions, plain_locals
from .inside.object_code import NDARRAY, is_tried

CACHE_LINE = 64  # bytes


def imported(path: Path, name: str) -> Any:
    """The function `name` of the generated module `path`: Numba's dispatcher, with its one signature compiled."""
    spec = importlib.util.spec_from_file_location(f"numbascan_generated.{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Numba looks the function's module up when it saves machine code
    make_contexts()
    with ExitStack() as stack:
        stack.enter_context(global_compiler_lock)  # nobody else compiles meanwhile
        for change in (_deep_recursion, *(_shortcuts() if is_tried() else ())):
            stack.enter_context(change())
        spec.loader.exec_module(module)
    return getattr(module, name)


def _shortcuts() -> tuple[Callable[[], Any], ...]:
    """Changes of Numba while it compiles a kernel, for versions whose inside is known."""
    from .inside.arrays import short_np_empty

    load_declarations()
    binding.add_symbol(NDARRAY, id(np.ndarray))
    return (
        _rows_on_cache_lines,
        _class_of_arrays_by_symbol,
        _no_entry_for_c,
        _types_found_once,
        _plain_locals,
        _memory_is_zero_once,
        _no_squares,
        short_np_empty,
    )


def entry_point(dispatcher: Any) -> Callable[..., Any]:
    """The compiled function itself: it takes arguments of the very types that it was compiled for, and does not look at them twice."""
    compiled = getattr(dispatcher, "overloads", {})  # NUMBA_DISABLE_JIT=1 leaves a function of Python
    return next(iter(compiled.values())).entry_point if compiled else dispatcher


@contextmanager
def _deep_recursion() -> Iterator[None]:
    """Inside, Python may recurse as deep as Numba asks: it walks the blocks of a function by recursion, and large ones have thousands."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 100_000))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _no_entry_for_c() -> Any:
    """Functions compiled inside get no second entry for callers in C: nobody asks for it, and it is 5 % of compiling a short kernel."""
    return _changed(BaseLower, create_cfunc_wrapper=lambda self: None)


def _plain_locals() -> Any:
    """Locals of numbers inside take no care of references, which costs LLVM minutes in a long kernel."""
    return _changed(Lower, alloca=plain_locals.alloca, storevar=plain_locals.storevar, delvar=plain_locals.delvar)


def _memory_is_zero_once() -> Any:
    """Memory that code compiled inside fills anyway is not filled with zeros when the function starts."""
    stack = ExitStack()
    stack.enter_context(_changed(cgutils, alloca_once=plain_locals.alloca_once, alloca_once_value=plain_locals.alloca_once_value))
    stack.enter_context(_changed(cgutils._StructProxy, __init__=plain_locals.struct_proxy))
    return stack


def _no_squares() -> Any:
    """What Numba asks of every local and block inside takes no longer for long functions than for short ones."""
    stack = ExitStack()
    stack.enter_context(_changed(analysis, compute_live_map=long_functions.live_map))
    stack.enter_context(_changed(untyped_passes, fixup_var_define_in_scope=long_functions.define_everywhere))
    stack.enter_context(_changed(ssa, _run_block_rewrite=long_functions.rewritten_blocks, _run_ssa=long_functions.run_ssa))
    return stack


def _types_found_once() -> Any:
    """Inside, the type of `x + y` is found once for the types of x and y; Numba tries dozens of templates, each time: 15 % of compiling."""
    find = BaseFunction.get_call_type
    found: dict[Any, Any] = {}

    def get_call_type(self: BaseFunction, context: Any, args: Any, kws: Any) -> Any:
        if kws or not all(type_.is_precise() for type_ in args):
            return find(self, context, args, kws)
        key = self, tuple(args)
        if key not in found:
            found[key] = find(self, context, args, kws)
        return found[key]

    return _changed(BaseFunction, get_call_type=get_call_type)


def make_contexts() -> None:
    """Has Numba make its contexts, if it has not yet. Before its compiler lock is taken: whoever asks for them holds a lock of their own
    and waits for that one, as another thread may at the same time."""
    for context in ("typing_context", "target_context"):
        getattr(cpu_target, context)


@cache
def load_declarations() -> None:
    """Loads what Numba knows of Python and NumPy: once in a process, 0.2 s of its first compilation.

    It does so without SciPy: NumPy's linear algebra asks for it only to know that BLAS is there, and it is (a dependency). That saves
    0.15 s; code that calls BLAS still imports it, where it is called. The declarations of types and those of code are loaded one after
    the other: each of 250 templates would look for new ones of the other kind, 25 ms.
    """
    from numba.np import linalg

    with _changed(linalg, ensure_blas=lambda: None):
        importlib.import_module("numba.np.arraymath")
    with _changed(typing.BaseContext, refresh=lambda self: None):
        cpu_target.target_context.refresh()
    with _changed(BaseContext, refresh=lambda self: None):
        cpu_target.typing_context.refresh()


@contextmanager
def _changed(owner: Any, **methods: Callable[..., Any]) -> Iterator[None]:
    """Functions of a class or module of Numba, others for a while."""
    before = {name: getattr(owner, name) for name in methods}
    try:
        for name, method in methods.items():
            setattr(owner, name, method)
        yield
    finally:
        for name, method in before.items():
            setattr(owner, name, method)


def _rows_on_cache_lines() -> Any:
    """Code compiled inside takes its arrays at multiples of 64 bytes; Numba's own 32 split every second AVX-512 store in two.

    Measured on a row of 1,000 numbers updated in place: 97 ns a pass aligned, 160 ns where the heap happened to give 32 bytes.
    """
    return _changed(BaseContext, get_preferred_array_alignment=lambda self, dtype: CACHE_LINE)


def _class_of_arrays_by_symbol() -> Any:
    """Code compiled inside finds np.ndarray by a symbol; Numba's own would look its pickle up in a dict of Python for each result."""
    pickled, unpickled = PythonAPI.serialize_object, PythonAPI.unserialize

    def serialize_object(self: PythonAPI, obj: Any) -> Any:
        return obj if obj is np.ndarray else pickled(self, obj)

    def unserialize(self: PythonAPI, place: Any) -> Any:
        return self.get_c_object(NDARRAY) if place is np.ndarray else unpickled(self, place)

    return _changed(PythonAPI, serialize_object=serialize_object, unserialize=unserialize)
