"""A step function in plain NumPy, traced once, becomes a compiled loop. `import numbascan as ns`."""

from typing import Any

from . import lax, tensor
from .batches.batch import batch
from .batches.inputs import grid
from .checkpoint import Checkpoint
from .errors import (
    ArgumentNumberError,
    BatchError,
    CompilationError,
    CudaUnavailableError,
    DebugError,
    DisconnectedInputError,
    GlobalDrawError,
    GradientError,
    MissingInputError,
    NullGradientError,
    RecompilationWarning,
    ScanError,
    ScanTypeError,
    TracedKeyError,
    TracerBoolError,
    TracerError,
    UnusedInputError,
)
from .front import updates_at as _updates_at  # noqa: F401 - x.at[index].set(y)
from .front.control import py_step
from .front.converted.source import as_written
from .front.derivatives.custom_vjp import custom_vjp
from .front.derivatives.of_functions import grad, hessian, jacobian, jvp, value_and_grad, vjp
from .front.derivatives.of_variables import Lop, Rop
from .front.derivatives.verify_grad import verify_grad
from .front.device import device_put
from .front.external import external
from .front.function import Function, function
from .front.plain import runtime as _runtime  # noqa: F401 - fills in what converted code calls
from .front.positional_view import ScanArgs
from .front.random import generators as _generators  # noqa: F401 - draws of NumPy's generators in converted code
from .front.scan.returns import until
from .front.scan.scan import ScanFunction, scan
from .front.scan.variants import filter, foldl, foldr, map, reduce, scan_checkpoints
from .front.shared import SharedVariable, shared
from .front.show import draw, show
from .front.transforms import jit
from .front.variable import Variable
from .front.vectorize import vectorize
from .front.vmap import vmap
from .modes import Mode

__all__ = [
    "ArgumentNumberError",
    "BatchError",
    "Checkpoint",
    "CompilationError",
    "CudaUnavailableError",
    "DebugError",
    "DisconnectedInputError",
    "Function",
    "GlobalDrawError",
    "GradientError",
    "Lop",
    "MissingInputError",
    "Mode",
    "NullGradientError",
    "RecompilationWarning",
    "Rop",
    "ScanArgs",
    "ScanError",
    "ScanFunction",
    "ScanTypeError",
    "SharedVariable",
    "TracedKeyError",
    "TracerBoolError",
    "TracerError",
    "UnusedInputError",
    "Variable",
    "as_written",
    "batch",
    "custom_vjp",
    "device_put",
    "draw",
    "external",
    "filter",
    "foldl",
    "foldr",
    "function",
    "grad",
    "grid",
    "hessian",
    "jacobian",
    "jit",
    "jvp",
    "lax",
    "map",
    "py_step",
    "reduce",
    "scan",
    "scan_checkpoints",
    "shared",
    "show",
    "tensor",
    "until",
    "value_and_grad",
    "vectorize",
    "verify_grad",
    "vjp",
    "vmap",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":  # asked for seldom, and slow to find out
        from importlib.metadata import version

        return version("numbascan")
    if name == "interop":
        from importlib import import_module

        return import_module(f"{__name__}.interop")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
