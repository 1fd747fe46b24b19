"""Lowered functions go through LLVM's optimiser once.

Numba optimises every function by itself, then all of them together, twice, and prunes reference counts in between. Lowered code has few
of these, at known places (`lowered/code.py`), and is small from the start. Over eighteen workloads, first calls took 0.89 of the time, and
runs 0.98.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from .shortcuts import ONE_PIPELINE as NUMBA

_lowered: weakref.WeakSet[Any] = weakref.WeakSet()  # libraries


def note_lowered(context: Any) -> None:
    """Marks the function that is being compiled as lowered."""
    if NUMBA.is_taken():
        _lowered.add(context.active_code_library)


def optimise(library: Any, otherwise: Callable[[Any], None]) -> None:
    """Optimises a library: in one turn if it is lowered, else as Numba does."""
    if library in _lowered:
        passes, builder = NUMBA._module_pass_manager(library._codegen)
        passes.run(library._final_module, builder)
    else:
        otherwise(library)


def replace(stack: ExitStack) -> None:
    """Has Numba optimise in this way until the stack is closed."""
    if not NUMBA.is_taken():
        return
    functions, final_module = NUMBA._optimize_functions, NUMBA._optimize_final_module

    def _optimize_functions(self: Any, ll_module: Any) -> None:
        if self in _lowered:
            ll_module.data_layout = self._codegen._data_layout
        else:
            functions(self, ll_module)

    def _optimize_final_module(self: Any) -> None:
        optimise(self, final_module)

    stack.enter_context(NUMBA.replaced(_optimize_functions=_optimize_functions, _optimize_final_module=_optimize_final_module))
