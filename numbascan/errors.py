"""Exceptions of numbascan: each says what was seen, where, and what to write instead."""

from __future__ import annotations

import importlib
from typing import Any


class ScanError(Exception):
    """Base class of the errors that only numbascan raises."""


class ScanTypeError(ScanError, TypeError, ValueError):
    """An initial value and the step's result disagree in dtype, rank or shape."""


class TracerError(ScanError, TypeError):
    """A traced value was used where only a concrete one can stand."""


class TracerBoolError(TracerError):
    """Python control flow (`if`, `while`, `and`, `bool()`) met a traced value."""


class TracedKeyError(TracerError, ValueError):
    """A traced value is a key of a dict, or an element of a set."""


class GlobalDrawError(ScanError, TypeError):
    """A function was traced that draws from a generator outside, or another thread has drawn meanwhile."""


class MissingInputError(ScanError, ValueError):
    """A graph needs a variable that nobody gives it."""


class UnusedInputError(ScanError, ValueError):
    """An input of a function plays no part in its outputs or updates."""


class DisconnectedInputError(ScanError, ValueError):
    """A gradient was asked with respect to something that the cost does not depend on."""


class NullGradientError(ScanError, TypeError):
    """A gradient was asked through something that has none."""


class ArgumentNumberError(ScanError, ValueError, TypeError):
    """A derivative was asked with respect to an argument that the function is not given."""


class GradientError(ScanError, AssertionError):
    """`ns.verify_grad` found a gradient that differs from the finite difference."""


class DebugError(ScanError, ArithmeticError):
    """`mode="debug"` found a value that differs from NumPy's, or the first NaN."""


class CompilationError(ScanError, RuntimeError):
    """The code that a function became does not compile: a fault of numbascan, which `mode="python"` does not meet."""


class RecompilationWarning(RuntimeWarning):
    """A function is compiled for the third time, because of a number or a length that is fixed in its code."""


class CudaUnavailableError(ScanError, RuntimeError):
    """`mode="cuda"` without a CUDA device or driver. The text ends with what `numbascan info` says about the GPU."""

    def __str__(self) -> str:
        return f"{super().__str__()}; numbascan info says: gpu {gpu()}"


class BatchError(ScanError, RuntimeError):
    """`ns.batch` met a case that fails: `case` is its number, `inputs` is what it was given. Both are None where a store is in use."""

    def __init__(self, text: str, case: int | None = None, inputs: object = None) -> None:
        super().__init__(text)
        self.case, self.inputs = case, inputs

    def __reduce__(self) -> tuple[object, ...]:
        return BatchError, (*self.args, self.case, self.inputs)


def gpu() -> str:
    """The GPUs that CUDA code would run on and the driver's version, or why there is none."""
    try:
        from numba import config, cuda

        if vars(config)["ENABLE_CUDASIM"]:
            return "Numba's simulator (NUMBA_ENABLE_CUDASIM=1)"
        if not cuda.is_available():
            return "none: no CUDA driver or device"
        devices = [_described(device) for device in cuda.list_devices()]
        major, minor = importlib.import_module("numba.cuda.cudadrv.driver").driver.get_version()
        return f"{'; '.join(devices)}; driver for CUDA {major}.{minor}"
    except Exception as error:  # whatever a broken driver raises
        return f"none: {error}"


def _described(device: Any) -> str:
    """The number of a GPU, its name, what it can do, and its memory."""
    name = device.name.decode() if isinstance(device.name, bytes) else device.name
    capability = ".".join(map(str, device.compute_capability))
    with device:
        free, total = device.get_primary_context().get_memory_info()
    return f"{device.id}: {name}, compute capability {capability}, {free / 1e9:.1f} of {total / 1e9:.1f} GB free"
