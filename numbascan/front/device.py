"""`ns.device_put`: data that stays on a GPU between calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends import require_cuda
from ..emit.runtime.device_array import DeviceArray
from ..modes import checked_device
from ..tracebacks import entry
from .conversion import as_argument
from .tree import flattened, paths, unflatten
from .variable import Variable


@entry
def device_put(x: Any, device: int = 0) -> Any:
    """The arrays of `x` on a GPU, for functions of `mode="cuda"`: what has an argument there leaves its results there.

    Arguments:
        x: an array, or a nest of tuples, lists and dicts of arrays and numbers. Numbers stay as they are.
        device: the number of the GPU, from 0.

    Returns the same nest of DeviceArray: `.copy_to_host()` and `np.asarray` bring one back.

    Raises CudaUnavailableError where there is no GPU, ValueError for a device that does not exist,
    TypeError for anything but arrays of numbers.

    >>> import numbascan as ns, numpy as np
    >>> starts = ns.device_put(np.linspace(0.0, 1.0, 1000))  # doctest: +SKIP
    >>> ns.jit(np.tanh, mode="cuda")(starts)  # doctest: +SKIP
    DeviceArray(shape=(1000,), dtype=float64, device=0)
    """
    number = checked_device(device, "ns.device_put")
    leaves, structure = flattened(x)
    arrays = [_array(leaf, path) for leaf, path in zip(leaves, paths(structure, "x"), strict=True)]
    require_cuda("ns.device_put")
    return unflatten(structure, [_put(array, number) for array in arrays])


def _array(leaf: Any, label: str) -> Any:
    if isinstance(leaf, Variable):
        raise TypeError(f"ns.device_put: {label} is symbolic ({leaf!r}); give an array of numbers")
    return as_argument(leaf, f"ns.device_put: {label}")


def _put(array: Any, device: int) -> Any:
    from ..emit.runtime.cuda import put

    if isinstance(array, DeviceArray):
        return array if array.device == device else put(array.copy_to_host(), device)
    return put(array, device) if isinstance(array, np.ndarray) and array.ndim else array
