"""Functions that Python never calls become machine code only as parts of the functions that call them.

Numba optimises and translates every function by itself, and its copy in each caller once more. That was 29 % of the first call of a Kalman
filter's Hessian, whose lanes are a function of 1,640 lines.

Such a function has no entry for Python (`no_cpython_wrapper`). Nothing may ask for its address but code that is linked with it.
"""

from __future__ import annotations

import weakref
from contextlib import ExitStack
from typing import Any

from . import one_pipeline
from .shortcuts import INNER_FUNCTIONS as NUMBA

_ENVIRONMENT = "_ZN08NumbaEnv"  # prefix of the variables that hold functions' environments
_parts: weakref.WeakSet[Any] = weakref.WeakSet()  # libraries that do not become machine code by themselves


def replace(stack: ExitStack) -> None:
    """Has Numba compile in this way until the stack is closed."""
    if not NUMBA.is_taken():
        return
    optimise, finalise, executable = NUMBA._optimize_final_module, NUMBA._finalize_final_module, NUMBA.get_executable

    def _optimize_final_module(self: Any) -> None:
        if self not in _parts:
            one_pipeline.optimise(self, optimise)

    def _finalize_final_module(self: Any) -> None:
        if self not in _parts:
            finalise(self)
            return
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_executable(self: Any, library: Any, fndesc: Any, env: Any) -> Any:
        is_new = not library._finalized  # else it comes from Numba's cache, as machine code
        if is_new and not _is_defined(library._final_module, fndesc.llvm_cpython_wrapper_name):
            _parts.add(library)
            return {}.popitem  # a new object of the class that Numba wants; a call of it fails
        function = executable(self, library, fndesc, env)
        for variable in library._final_module.global_variables:
            if variable.name.startswith(_ENVIRONMENT) and (other := NUMBA.lookup_environment(variable.name)) is not None:
                _set(library.codegen, variable.name, other)
        return function

    replaced = {"_optimize_final_module": _optimize_final_module, "_finalize_final_module": _finalize_final_module}
    stack.enter_context(NUMBA.replaced(**replaced, get_executable=get_executable))


def _is_defined(module: Any, name: str) -> bool:
    try:
        return not module.get_function(name).is_declaration
    except NameError:
        return False


def _set(codegen: Any, name: str, environment: Any) -> None:
    """Sets the variable of a part's environment, unless the optimiser has removed it."""
    if codegen._engine.get_global_value_address(name):
        codegen.set_env(name, environment)
