"""Arrays in the memory of a GPU: results and arguments of `mode="cuda"`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

CPU, CUDA = 1, 2  # kinds of devices, as DLPack counts them


class DeviceArray:
    """An array on a GPU. No call writes to it, so it may be the argument of many.

    shape, dtype, ndim, size, nbytes: as NumPy's. device: the number of the GPU. `.copy_to_host()` and `np.asarray(x)` give an array of
    NumPy; torch, CuPy and JAX take it without a copy (`torch.from_dlpack(x)`, `cupy.asarray(x)`, `jax.dlpack.from_dlpack(x)`).
    `ns.device_put` makes one.
    """

    __slots__ = ("__weakref__", "device", "dtype", "memory", "shape")

    def __init__(self, memory: Any, device: int) -> None:
        """`memory`: Numba's device array, which owns the memory or keeps its owner alive."""
        self.memory, self.device = memory, device
        self.shape: tuple[int, ...] = tuple(memory.shape)
        self.dtype: np.dtype[Any] = np.dtype(memory.dtype)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, device={self.device})"

    def copy_to_host(self) -> npt.NDArray[Any]:
        """The numbers as an array of NumPy."""
        from .cuda import on_device

        with on_device(self.device, "a copy to the host"):
            return np.ascontiguousarray(self.memory.copy_to_host())

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("an array on a GPU becomes one of NumPy by a copy; leave out copy=False")
        array = self.copy_to_host()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return _put_again, (self.copy_to_host(), self.device)

    # for other libraries ----------------------------------------------------------------------------------------------

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3 of the protocol. Earlier launches have ended, so a reader need not wait.

        Not marked as read-only: torch takes no read-only arrays.
        """
        told = dict(self.memory.__cuda_array_interface__)  # AttributeError in the simulator, where there is no such memory
        _wait(self.device)
        return {**told, "stream": None}

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's number for the kind of device, and the device."""
        return (CPU, 0) if _host_memory(self.memory) is not None else (CUDA, self.device)

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None) -> Any:
        """A capsule for `from_dlpack` of another library. Earlier launches have ended, so no stream has to wait."""
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"the array is on device {self.__dlpack_device__()}, not {tuple(dl_device)}; write x.copy_to_host()")
        if copy:
            raise BufferError("a copy is not made here; leave out copy=True, and copy what from_dlpack gives")
        from .dlpack import capsule

        _wait(self.device)
        host = _host_memory(self.memory)
        address = host.ctypes.data if host is not None else self.memory.__cuda_array_interface__["data"][0]
        return capsule(address, self.__dlpack_device__(), self.shape, tuple(self.memory.strides), self.dtype, self.memory)


def is_contiguous(memory: Any) -> bool:
    """True if a device array is contiguous in C order."""
    step = np.dtype(memory.dtype).itemsize
    for dim, stride in zip(reversed(tuple(memory.shape)), reversed(tuple(memory.strides)), strict=True):
        if dim > 1 and stride != step:
            return False
        step *= dim
    return True


def on_gpu(value: Any) -> bool:
    """True for an array of another library on a GPU."""
    if isinstance(value, (np.ndarray, np.generic, DeviceArray)):
        return False
    try:
        return getattr(value, "__cuda_array_interface__", None) is not None
    except RuntimeError:  # a tensor of torch that asks for gradients
        return True


def put_beside(value: DeviceArray, array: npt.NDArray[Any]) -> DeviceArray:
    """A copy of an array of NumPy on the device of `value`."""
    return _put_again(array, value.device)


def _put_again(array: npt.NDArray[Any], device: int) -> DeviceArray:
    from .cuda import put

    return put(array, device)


def _wait(device: int) -> None:
    """Waits until all launches on a device have ended."""
    from .cuda import cuda, on_device

    with on_device(device, "what was launched before"):
        cuda.synchronize()


def _host_memory(memory: Any) -> npt.NDArray[Any] | None:
    """The NumPy array behind the simulator's memory; None on a GPU."""
    array = getattr(memory, "_ary", None)
    return array if isinstance(array, np.ndarray) else None
