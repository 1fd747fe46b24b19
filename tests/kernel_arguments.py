"""What kernels are given, held against what they were compiled for: they trust it, and would read beyond the end of anything else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numbascan.emit.runtime.device_array import DeviceArray, is_contiguous

PYTHON = {"float64": float, "int64": int, "bool": bool, "complex128": complex}


def hold() -> None:
    """From now on every kernel that is run looks at its arguments."""
    from numbascan.compile import Kernel

    run = Kernel.run

    def checked(kernel: Kernel, values: Sequence[Any], out: Sequence[Any] = ()) -> list[Any]:
        check(kernel, values, out)
        return run(kernel, values, out)

    Kernel.run = checked  # type: ignore[method-assign]


def check(kernel: Any, values: Sequence[Any], out: Sequence[Any] = ()) -> None:
    """AssertionError unless dtypes, ranks, layout and fixed dimensions are those of the kernel."""
    name, arguments = kernel.plan.function.name, kernel.plan.function.arguments
    given = [*values, *out, *kernel._constants]
    assert len(given) == len(arguments), f"{name} takes {len(arguments)} arguments, not {len(given)}"
    for argument, value in zip(arguments, given, strict=True):
        assert is_taken(argument, value), f"{name} takes {argument}, not {value!r}"
    for node, value in zip(kernel.graph.inputs, values, strict=True):
        fits = all(dim in (None, length) for dim, length in zip(node.type.shape, np.shape(value), strict=True))
        assert fits, f"{name} takes {node.type} as {node.name}, not an array of shape {np.shape(value)}"


def is_taken(argument: Any, value: Any) -> bool:
    """Whether compiled code may take `value` for `argument` without a second look."""
    dtype = np.dtype(argument.dtype)
    if argument.rank == 0:
        plain = PYTHON.get(argument.dtype)
        return type(value) is dtype.type or (type(value) is plain and (plain is not int or -(2**63) <= value < 2**63))
    if isinstance(value, DeviceArray):
        return bool(value.dtype == dtype and value.ndim == argument.rank and is_contiguous(value.memory) and not argument.is_written)
    flags = value.flags
    return bool(
        type(value) is np.ndarray
        and value.dtype == dtype
        and value.ndim == argument.rank
        and flags.c_contiguous
        and flags.aligned
        and (flags.writeable or not argument.is_written)
    )
