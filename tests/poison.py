"""Memory of generated code, filled where it is taken: what reads it before anything is written there reads NaN, or -1.

Without this such a read mostly finds zeros, or what an equal run has left there, and a test may pass.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest

BYTE = 0xFF  # of eight: a NaN of every precision; -1 as a signed integer


def fill_memory(patch: pytest.MonkeyPatch) -> None:
    """Code compiled from now on fills its arrays, those on the stack too. To be called with keys of its own: `kept_kernels.hold_apart`."""
    from numbascan.emit.inside import arrays

    patch.setattr(arrays, "new_array", _filling(arrays.new_array))


def _filling(new_array: Any) -> Any:
    """What makes an array of memory; the memory is filled first."""
    from numba.core import cgutils

    def new(context: Any, builder: Any, type_: Any, data: Any, shape: Any, strides: Any, meminfo: Any) -> Any:
        itemsize = cgutils.intp_t(context.get_abi_sizeof(context.get_data_type(type_.dtype)))
        cgutils.memset(builder, builder.bitcast(data, cgutils.voidptr_t), reduce(builder.mul, shape, itemsize), BYTE)
        return new_array(context, builder, type_, data, shape, strides, meminfo)

    return new
