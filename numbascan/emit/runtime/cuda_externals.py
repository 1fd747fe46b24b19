"""Functions of `ns.external` as CUDA kernels call them, by the names of `routines/externals.py`: `kepler_1f…(results…, operands…)`.

On a GPU they are device functions made of the same frozen copies, with functions of `math` in place of NumPy's that numba-cuda lacks. The
simulator calls the CPU's machine code, which gives the same numbers: a function that may raise is refused for a GPU. Importing this
imports Numba's CUDA half.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from ..inside import cuda_package
from ..inside.frozen import Frozen
from . import cuda_functions
from .routines import externals

cuda = cuda_package.cuda()
SIMULATED = cuda_package.is_simulated()

OF_NUMPY = (
    "exp",
    "expm1",
    "log1p",
    "sqrt",
    "floor",
    "ceil",
    "fabs",
    "copysign",
    "isfinite",
    "isinf",
    "nextafter",
    "trunc",
    "rint",
    "exp2",
    "cbrt",
)
"""NumPy's names of scalar functions that numba-cuda does not know by them."""

_made: dict[str, tuple[Any, Any]] = {}  # by routine: the user's function, and the one around it that kernels call


def __getattr__(name: str) -> Any:
    return _functions_of(externals.known(name))[1]


def compile_for_device(routine: str) -> None:
    """Compiles a routine for the current device. NotImplementedError, with the name of the user's function, if Numba refuses it for a GPU
    or gives its result another type than on the CPU."""
    if SIMULATED:
        return
    of = externals.known(routine)
    try:
        returned = cuda_package.compiled_for_device(_functions_of(of)[0], of.operands)
    except Exception as error:  # whatever Numba raises, or the CUDA packages that it calls
        told = f"{type(error).__name__}: {externals.reason_of(error)}"
        raise NotImplementedError(f"ns.external: Numba does not compile {of.name} for a GPU ({told}); mode=None takes it") from error
    if returned != of.returned:
        raise NotImplementedError(
            f"ns.external: {of.name} returns {of.returned} on the CPU, and {returned} on a GPU; cast what it returns, or write mode=None"
        )


def _functions_of(of: externals.Compiled) -> tuple[Any, Any]:
    if of.routine not in _made:
        _made[of.routine] = (None, _in_python(of)) if SIMULATED else _on_device(of)
    return _made[of.routine]


def _in_python(of: externals.Compiled) -> Callable[..., None]:
    n = len(of.results)

    def call(*arrays: Any) -> None:
        operands = [getattr(one, "_ary", one) for one in arrays[n:]]  # the simulator's arrays are NumPy's inside
        for result, value in zip(arrays[:n], of(*operands), strict=True):
            result[0] = value

    return call


def _on_device(of: externals.Compiled) -> tuple[Any, Any]:
    def make(python: FunctionType, part: Frozen) -> Any:
        return cuda.jit(python, device=True, fastmath=part.options.get("fastmath") is True)

    function = of.copy.built(make, instead=_on_gpu)
    operands, results = [f"x{k}" for k in range(len(of.operands))], [f"r{k}" for k in range(len(of.results))]
    numbers = {name: externals.NUMBERS[dtype] for name, (dtype, rank) in zip(operands, of.operands, strict=True) if not rank}
    places = [place for place, is_there in enumerate(of.places) if is_there]
    lines = [
        f"def call({', '.join([*results, *operands])}):",
        *(f"    {name} = {name}_type({name})" for name in numbers),
        f"    returned = function({', '.join(operands)})",
        *(f"    {result}[0] = returned{f'[{place}]' * of.is_tuple}" for result, place in zip(results, places, strict=True)),
    ]
    call = externals.new_function("\n".join(lines), function=function, **{f"{name}_type": type_ for name, type_ in numbers.items()})
    return function, cuda.jit(call, device=True)  # which casts numbers to the types that the CPU's code takes


def _on_gpu(value: Any) -> Any:
    """A value as code for a GPU reads it: NumPy, and functions of NumPy's, are replaced."""
    if isinstance(value, ModuleType):
        return _numpy() if value is np else value
    return _of_numpy().get(value, value) if isinstance(value, np.ufunc) else value


@cache
def _of_numpy() -> dict[np.ufunc, Any]:
    return {np.absolute: abs, **{getattr(np, name): getattr(cuda_functions, name) for name in OF_NUMPY}}


@cache
def _numpy() -> ModuleType:
    module = ModuleType("numpy")
    vars(module).update({name: _on_gpu(value) for name, value in vars(np).items() if not isinstance(value, ModuleType)})
    return module
