"""Memory of generated code, filled where it is taken: what reads it before anything is written there reads NaN, or -1.

Without this such a read mostly finds zeros, or what an equal run has left there, and a test may pass.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest

BYTE = 0xFF  # of eight: a NaN of every precision; -1 as a signed integer


def fill_memory(patch: pytest.MonkeyPatch) -> None:
    """Code compiled from now on fills its arrays, those on the stack too. Nothing that was compiled before may be loaded."""
    from numbascan.emit.inside import arrays
    from numbascan.emit.runtime import intrinsics

    for module in (arrays, intrinsics):
        patch.setattr(module, "populate_array", _filling(module.populate_array))


def _filling(populate_array: Any) -> Any:
    """Numba's function that makes an array of a place in memory; the place is filled first."""
    from numba.core import cgutils

    def populate(array: Any, data: Any, shape: Any, strides: Any, itemsize: Any, meminfo: Any) -> Any:
        builder = array._builder
        size = reduce(builder.mul, cgutils.unpack_tuple(builder, shape) if hasattr(shape, "type") else shape, itemsize)
        cgutils.memset(builder, builder.bitcast(data, cgutils.voidptr_t), size, BYTE)
        return populate_array(array, data, shape, strides, itemsize, meminfo)

    return populate
