"""Functions that Python never calls become machine code as parts of the functions that call them, and not by themselves, too.

Numba optimises and translates every function when it is compiled, and its copy in each function that calls it once more. Of the Hessian of
a Kalman filter, whose lanes are a function of 1,640 lines, that was 29 % of a first call.

Such a function has no entry for Python (`no_cpython_wrapper`). Nothing may ask for its address but code that is linked with it.
"""

from __future__ import annotations

import weakref
from contextlib import ExitStack
from typing import Any

from . import one_pipeline
from .shortcuts import INNER_FUNCTIONS as NUMBA

_ENVIRONMENT = "_ZN08NumbaEnv"  # how the names of variables begin that hold the environments of functions
_parts: weakref.WeakSet[Any] = weakref.WeakSet()  # libraries that are no machine code by themselves


def replace(stack: ExitStack) -> None:
    """Has Numba do so until the stack is closed."""
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
            return {}.popitem  # an object of its own, of the class that is asked for; a call of it fails
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
    """Lets code find the environment of a part, unless the optimiser found that nothing reads it."""
    if codegen._engine.get_global_value_address(name):
        codegen.set_env(name, environment)
