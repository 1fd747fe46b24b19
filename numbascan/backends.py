"""Backends of modes: the machine that loops are planned for, the text of a module, and how that becomes a function.

`BACKENDS` has one for each mode that compiles; nothing else tells modes apart by their name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .emit.cache import jit_is_off, load, load_kernels
from .emit.cpu import module as cpu
from .emit.cuda import module as cuda
from .emit.estimates import KernelMemory, Memory, lanes_of, memory_of
from .errors import CudaUnavailableError
from .ir.loops import Alloc, Function, walk
from .modes import LOOP_PASSES, Mode
from .ops.card import at_line
from .plan.cpu import CPU
from .plan.cuda import CUDA
from .plan.plan import Plan
from .plan.target import Target


class Backend:
    """The CPU, by Numba.

    machine: the target of plans. language: the name of its text in `source(target=…)`. reserved: names that the text uses.
    """

    machine: Target = CPU
    language = "cpu"
    reserved: tuple[str, ...] = cpu.RESERVED
    takes_device_arrays = False

    def require(self) -> None:
        """Raises where nothing can run on the machine."""

    def text(self, function: Function, mode: Mode) -> str:
        """The text of a module."""
        return cpu.module_text(function, (cpu.FINITE_OR_NOT if mode.check_finite else "True") * mode.fastmath, mode.threads)

    def loaded(self, plan: Plan, text: str, name: str, device: int) -> Callable[..., Any] | None:
        """The compiled function; None where Numba is told to compile nothing."""
        return None if jit_is_off() else load(text, name)

    def memory(self, plan: Plan, function: Callable[..., Any], values: Sequence[Any], again: Any, device: int) -> Memory:
        """Bytes that a call with these values stores. again: steps that run more than once."""
        return memory_of(plan.function, values, again)

    def too_large(self, plan: Plan, values: Sequence[Any], error: Exception, device: int) -> str:
        """The text of an error about the machine's memory; "" where nobody knows better than the error itself."""
        return ""


class Cuda(Backend):
    """A GPU, by numba-cuda. What runs there is imported when it is used."""

    machine, language = CUDA, "cuda"
    reserved = (*cpu.RESERVED, *cuda.RESERVED)
    takes_device_arrays = True

    def require(self) -> None:
        require_cuda()

    def text(self, function: Function, mode: Mode) -> str:
        return cuda.module_text(function, mode.fastmath)

    def loaded(self, plan: Plan, text: str, name: str, device: int) -> Callable[..., Any]:
        from .emit.runtime.cuda import callable_with, on_device

        if routines := cuda.called_routines(plan.function):
            from .emit.runtime.cuda_externals import compile_for_device

            with on_device(device, name):
                for routine in routines:
                    compile_for_device(routine)
        arguments = plan.function.arguments
        dtypes = [argument.dtype for argument in arguments]
        dtypes += [stmt.dtype for stmt in walk(plan.function.body) if isinstance(stmt, Alloc)]
        is_double = not {"float64", "complex128"}.isdisjoint(dtypes)
        written = [argument.is_written for argument in arguments]
        return callable_with(load_kernels(text, name), written, len(plan.constants), device, is_double)

    def memory(self, plan: Plan, function: Callable[..., Any], values: Sequence[Any], again: Any, device: int) -> Memory:
        """The memory that kernels take besides stored values."""
        from .emit.runtime.cuda import at_once, on_device, taken_by

        with on_device(device, plan.function.name):
            memory = memory_of(plan.function, values, again, at_once)
            return replace(memory, kernels=tuple(KernelMemory(name, *sizes) for name, sizes in taken_by(function).items()))

    def too_large(self, plan: Plan, values: Sequence[Any], error: Exception, device: int) -> str:
        """ "" where the device's memory would suffice."""
        from .emit.runtime.cuda import room_after

        free, total = room_after(error, device)
        size = memory_of(plan.function, values).total + sum(value.nbytes for value in values if isinstance(value, np.ndarray))
        if size <= free:
            return ""
        what = f"{plan.function.name}{at_line()}: there is no memory on device {device} for its arrays, which take"
        lanes = lanes_of(plan.function, values)
        fitting = lanes * free // size
        instead = f"about {fitting:,} of the {lanes:,} lanes fit at a time, as ns.batch takes them with chunk={fitting}"
        less = "pass less at a time; keep_last or save_every keep fewer rows"
        return f"{what} {size:,} bytes: {free:,} of its {total:,} are free; {instead if fitting else less}"


BACKENDS: dict[str, Backend] = {"numba": Backend(), "cuda": Cuda()}
LOOP_PASSES.update(dict.fromkeys(one.__name__ for backend in BACKENDS.values() for one in backend.machine.passes))
OF_LANGUAGES = {backend.language: mode for mode, backend in BACKENDS.items()}  # the modes whose code `source` shows


def backend_of(mode: Mode) -> Backend:
    """The backend of a mode; the CPU's, whose plans stand for all, if the mode compiles nothing."""
    return BACKENDS.get(mode.target, BACKENDS["numba"])


def require_cuda(what: str = "mode='cuda'") -> None:
    """Raises CudaUnavailableError where nothing can run on a GPU."""
    from .emit.inside import cuda_package

    reason = cuda_package.missing()
    if reason:
        raise CudaUnavailableError(f"{what}: {reason}")
