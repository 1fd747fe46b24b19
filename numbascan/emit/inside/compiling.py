"""Compiling generated modules with shortcuts: functions of Numba's are replaced meanwhile. Importing this imports Numba."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import binding
from numba import config

from . import arrays, inner_functions, kept_memory, one_pipeline, products
from .object_code import NDARRAY
from .shortcuts import ARRAY_CLASS, CACHE_LINES, COMPILER, DECLARATIONS, DECLARATIONS_OF_CODE, OPERATOR_TYPES

CACHE_LINE = 64  # bytes
ROUTINES: list[Any] = []
"""Functions that many modules call. `emit/cache.py` keeps their machine code: Numba's own cache would not see that a helper has changed."""


@contextmanager
def short_ways() -> Iterator[None]:
    """Inside, Numba compiles with every shortcut that is taken."""
    with ExitStack() as stack:
        if COMPILER.is_taken():
            # the contexts are asked for before Numba's lock is taken: whoever asks holds their lock and waits for Numba's. In the other
            # order, a second thread that asks at the same time would be a deadlock
            typing_context, target_context = COMPILER.cpu_target.typing_context, COMPILER.cpu_target.target_context
            stack.enter_context(COMPILER.global_compiler_lock)
            _load_declarations(typing_context, target_context)
            for change in (
                _cache_lines,
                _array_class,
                _operator_types,
                one_pipeline.replace,
                inner_functions.replace,
            ):
                change(stack)
            arrays.replace_np_empty(stack, typing_context)
            products.replace_np_dot(stack, typing_context)
        yield


@cache
def _load_declarations(typing_context: Any, target_context: Any) -> None:
    """Loads Numba's declarations of Python and NumPy, once in a process.

    - Without SciPy (0.15 s), which Numba's linear algebra imports only to see that BLAS is there. SciPy is a dependency, and code that
      calls BLAS imports it when it is called.
    - Lowering first, then types, neither refreshing the other: each of 250 templates would look for new declarations of the other kind,
      25 ms.
    """
    if DECLARATIONS.is_taken() and DECLARATIONS_OF_CODE.is_taken():
        with DECLARATIONS.replaced(ensure_blas=lambda: None):
            importlib.import_module("numba.np.arraymath")
        with DECLARATIONS.replaced(refresh=lambda self: None):
            target_context.refresh()
        with DECLARATIONS_OF_CODE.replaced(refresh=lambda self: None):
            typing_context.refresh()


def keep_in(folder: Path, functions: Iterable[Any]) -> None:
    """Has Numba keep the machine code of functions in a folder, and look for it there.

    LLVM must know the functions of kept memory first: such code may call them, and LLVM ends the process if a symbol is missing.
    """
    kept_memory.addresses()
    with COMPILER.global_compiler_lock if COMPILER.is_taken() else nullcontext():  # nobody else is to see the setting
        settings = vars(config)
        before, settings["CACHE_DIR"] = settings["CACHE_DIR"], str(folder)
        try:
            for function in functions:
                with suppress(AttributeError, RuntimeError):  # NUMBA_DISABLE_JIT=1; a folder that may not be written
                    function.enable_caching()
        finally:
            settings["CACHE_DIR"] = before


def _cache_lines(stack: ExitStack) -> None:
    """Until the stack is closed, compiled code takes its arrays at multiples of 64 bytes."""
    if CACHE_LINES.is_taken():
        stack.enter_context(CACHE_LINES.replaced(get_preferred_array_alignment=lambda context, ty: CACHE_LINE))


def _array_class(stack: ExitStack) -> None:
    """Until the stack is closed, compiled code finds np.ndarray by a symbol."""
    if not ARRAY_CLASS.is_taken():
        return
    pickled, unpickled = ARRAY_CLASS.serialize_object, ARRAY_CLASS.unserialize

    def serialize_object(self: Any, obj: Any) -> Any:
        return obj if obj is np.ndarray else pickled(self, obj)

    def unserialize(self: Any, structptr: Any) -> Any:
        return self.get_c_object(NDARRAY) if structptr is np.ndarray else unpickled(self, structptr)

    binding.add_symbol(NDARRAY, id(np.ndarray))
    stack.enter_context(ARRAY_CLASS.replaced(serialize_object=serialize_object, unserialize=unserialize))


def _operator_types(stack: ExitStack) -> None:
    """Until the stack is closed, the type of an operator's result is found once for the types of its operands."""
    if not OPERATOR_TYPES.is_taken():
        return
    find = OPERATOR_TYPES.get_call_type
    types: dict[Any, Any] = {}

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws or not all(type_.is_precise() for type_ in args):
            return find(self, context, args, kws)
        key = self, tuple(args)
        if key not in types:
            types[key] = find(self, context, args, kws)
        return types[key]

    stack.enter_context(OPERATOR_TYPES.replaced(get_call_type=get_call_type))
