"""Host functions of modules with CUDA kernels: launches, memory, errors. Importing this imports Numba's CUDA half.

Under NUMBA_ENABLE_CUDASIM=1 Python runs the kernels, with few threads: right numbers, slowly, on any machine.
"""

from __future__ import annotations

import inspect
import math
import re
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache, wraps
from typing import Any

import numpy as np

from ..inside import cuda_package
from .cuda_functions import host as host
from .device_array import DeviceArray, is_contiguous
from .external_names import OF_THIS_PROCESS
from .gpu_names import MOST_NUMBERS

cuda = cuda_package.cuda()
SIMULATED = cuda_package.is_simulated()

BLOCK = 4 if SIMULATED else 128  # threads
MOST_BLOCKS = 1 if SIMULATED else 2**30
PARTS = 8192  # blocks of a grid at most
NONE = 2**63 - 1  # in place of an error's number where there is no error
OF_DRIVER = {"CudaDriverError", "CUDAError"}  # errors of numba-cuda, and of cuda-core below it
SLOW = 4  # double precision that takes more than this many times as long as single precision gets a warning
SHARE = 0.5  # of the device's free memory, for the private memory of a loop's passes
_LARGE = 2**26  # bytes of an array above which free memory is checked first
_OF_SIMULATOR = 2**16  # bytes, in place of that share in the simulator
_launching = threading.RLock()  # the simulator runs one launch at a time

Error = tuple[type[Exception], str, tuple[type, ...]]


def kernel(**options: Any) -> Callable[[Callable[..., None]], Any]:
    """The decorator of kernels."""

    def decorate(function: Callable[..., None]) -> Any:
        made = cuda.jit(function) if SIMULATED else cuda.jit(function, **options)
        if not any(OF_THIS_PROCESS in name for name in function.__code__.co_names):
            cuda_package.keep_machine_code(made)
        return made

    return decorate


def array(shape: tuple[int, ...], dtype: Any) -> Any:
    """Memory of the device, not initialised."""
    dims = tuple(max(int(dim), 0) for dim in shape)
    size = math.prod(dims) * np.dtype(dtype).itemsize
    if size > _LARGE and size > (free := _room()[0]):
        raise MemoryError(f"an array takes {size:,} bytes, and {free:,} are free on the device")
    return cuda.device_array(dims, dtype)


def _room() -> tuple[int, int]:
    """The free bytes of the device, and all its bytes."""
    if SIMULATED:
        return 2**63, 2**63
    context = cuda.current_context()
    context.memory_manager.deallocations.clear()  # memory that Numba would give back later
    free, total = context.get_memory_info()
    return int(free), int(total)


def room_after(error: BaseException, device: int) -> tuple[int, int]:
    """The free bytes of a device and all its bytes, once the frames of a failed call have let go of their arrays."""
    one: BaseException | None = error
    while one is not None:
        traceback.clear_frames(one.__traceback__)
        one = one.__cause__
    with on_device(device, "its memory"):
        return _room()


def on_grid(kernel: Any, first: Any, last: Any, args: Sequence[Any], errors: Sequence[Error] = ()) -> None:
    """Runs the passes `first` to `last` of a loop, each in a thread of its own. The first pass that fails raises its error."""
    first, last = int(first), int(last)
    if last <= first:
        return
    blocks = min(-(-(last - first) // BLOCK), MOST_BLOCKS)
    if not errors:
        _launch(kernel, blocks, BLOCK, (first, last, *args))
        return
    pass_, code, _ = _failure(kernel, blocks, BLOCK, (first, last, *args), len(errors))
    if code is not None:  # that pass once more, alone: the numbers of the first run may be those of another pass
        _, again, seen = _failure(kernel, 1, 1, (pass_, pass_ + 1, *args), len(errors))
        _raise(errors[code if again is None else again], seen)


def alone(kernel: Any, args: Sequence[Any], errors: Sequence[Error] = ()) -> None:
    """Runs statements in a single thread."""
    if not errors:
        _launch(kernel, 1, 1, args)
        return
    _, code, seen = _failure(kernel, 1, 1, args, len(errors))
    if code is not None:
        _raise(errors[code], seen)


def in_one_grid(kernel: Any, passes: Any, args: Sequence[Any], errors: Sequence[Error] = ()) -> None:
    """Runs statements in a cooperative grid, whose threads wait for one another.

    passes: those of its longest loop, None if unknown.
    """
    if not errors:
        _launch(kernel, _blocks_at_once(kernel, passes, args), BLOCK, args)
        return
    _, code, seen = _failure(kernel, _blocks_at_once(kernel, passes, args), BLOCK, args, len(errors))
    if code is not None:
        _raise(errors[code], seen)


def _blocks_at_once(kernel: Any, passes: Any, args: Sequence[Any]) -> int:
    """The blocks of a cooperative grid: as many as the device holds at once, and no more than there is work for."""
    if SIMULATED:
        return 1
    compiled = kernel.compile(tuple(kernel.typeof_pyval(arg) for arg in args))
    most = min(int(compiled.max_cooperative_grid_blocks(BLOCK)), PARTS)
    return most if passes is None else max(1, min(most, -(-int(passes) // BLOCK)))


def _failure(kernel: Any, blocks: int, threads: int, args: Sequence[Any], n_errors: int) -> tuple[int, int | None, list[float]]:
    """Runs a kernel; the first pass that failed, the number of its error (None if none failed), and the numbers for its message."""
    error, seen = cuda.to_device(np.array([NONE, NONE])), cuda.to_device(np.zeros(MOST_NUMBERS))
    _launch(kernel, blocks, threads, (*args, error, seen))
    number = int(error.copy_to_host().min())
    if number == NONE:
        return 0, None, []
    return number // n_errors, number % n_errors, list(seen.copy_to_host())


def _raise(error: Error, seen: Sequence[float]) -> None:
    kind, message, types = error
    raise kind(message, *(type_(number) for type_, number in zip(types, seen, strict=False)))


def _launch(kernel: Any, blocks: int, threads: int, args: Sequence[Any]) -> None:
    if SIMULATED:
        with _launching:
            kernel[blocks, threads](*args)
        return
    with cuda_package.without_advice():
        of_grid = kernel[blocks, threads]
    of_grid(*args)


def at_once(passes: Any, size: Any, group: int = 1) -> int:
    """The number of passes, of `size` bytes each, whose memory fits at once: whole groups, at least one, and no more than `passes`."""
    free = _OF_SIMULATOR if SIMULATED else int(_room()[0] * SHARE)
    return max(1, min(int(passes), max(free // max(int(size), 1) // group, 1) * group))


def parts(dtype: Any) -> Any:
    """An array for one sum of each block."""
    return cuda.device_array(PARTS, dtype)


def number(dtype: Any) -> Any:
    """An array for the one number that a kernel computes."""
    return cuda.device_array(1, dtype)


def as_number(array: Any) -> Any:
    """The number in an array of one, on the host."""
    return array.copy_to_host()[0]


def put(array: np.ndarray, device: int) -> DeviceArray:
    """A copy of an array on a device."""
    with on_device(device, "an array for the device"):
        return DeviceArray(cuda.to_device(np.ascontiguousarray(array)), device)


def taken(value: Any, label: str) -> DeviceArray:
    """An array of another library, not copied. Waits until all streams of its device are done."""
    if SIMULATED:
        raise TypeError(f"{label} is on a GPU ({type(value).__name__}), where Numba's simulator does not reach; pass an array of NumPy")
    place = getattr(value, "__dlpack_device__", None)
    device = int(cuda.get_current_device().id) if place is None else int(place()[1])
    with on_device(device, label):
        try:
            memory = cuda.as_cuda_array(value)
        except RuntimeError as error:  # a tensor of torch that asks for gradients
            raise TypeError(f"{label} is on a GPU and cannot be read there ({error}); of a tensor of torch pass value.detach()") from error
        if not is_contiguous(memory):
            strides = f"strides {memory.strides}"
            raise ValueError(f"{label} is on a GPU and is not C-contiguous ({strides}); pass value.contiguous(), or a copy")
        cuda.synchronize()
    return DeviceArray(memory, device)


@contextmanager
def on_device(device: int, what: str) -> Iterator[None]:
    """Inside, memory is taken and kernels run on a device. Errors of the driver become Python's; `what` begins their messages.

    Raises ValueError if there is no such device, MemoryError if its memory is full, RuntimeError for the driver's other errors.
    """
    if device >= len(cuda.gpus):
        raise ValueError(f"device={device} is not there: devices are counted from 0, and this machine has {len(cuda.gpus)}")
    try:
        with nullcontext() if SIMULATED else cuda.gpus[device]:
            yield
    except Exception as error:
        if OF_DRIVER.isdisjoint(kind.__name__ for kind in type(error).__mro__):
            raise
        if "OUT_OF_MEMORY" in str(error):
            raise MemoryError(f"{what}: device {device} has no memory left ({error})") from error
        raise RuntimeError(f"{what}: device {device} has failed, and may be lost to this process ({error}); start Python anew") from error


def names_of_devices() -> list[str]:
    """A name for each device that this process sees: the same in all processes, in whatever order they count devices."""
    return ["simulator"] if SIMULATED else [re.sub(r"\W+", "-", str(device.uuid)) for device in cuda.list_devices()]


def callable_with(
    function: Callable[..., Any], is_written: Sequence[bool], n_constants: int, device: int, is_double: bool
) -> Callable[..., Any]:
    """A host function made callable with any arrays: NumPy's are copied to the device, and results are copied back. If an argument is on
    the device, the results stay there.

    is_written: True for arguments that are result arrays, which get their elements from the device. n_constants: the last arguments, the
    same at every call, are copied once. is_double: True if there are arrays of double precision.
    """
    constants: list[Any] = []

    @wraps(function)
    def call(*values: Any) -> Any:
        n_given = len(values) - n_constants
        with on_device(device, function.__name__):
            if is_double:
                _note_slow_doubles()
            if n_constants and not constants:
                constants[:] = [_to_device(value, device) for value in values[n_given:]]
            given = [*(_to_device(value, device) for value in values[:n_given]), *constants]
            with np.errstate(all="ignore"):
                results = function(*given)
            for value, filled, is_result in zip(values, given, is_written, strict=True):
                if is_result:
                    value[...] = filled.copy_to_host()
            many = results if isinstance(results, tuple) else (results,)
            stays = any(isinstance(value, DeviceArray) for value in values)
            if stays:  # errors of kernels are raised here, and the caller may write to the arguments again
                cuda.synchronize()
            arrays = [_apart(result, given, device) if stays else _to_host(result) for result in many]
        return tuple(arrays) if isinstance(results, tuple) else arrays[0]

    return call


@cache
def _note_slow_doubles() -> None:
    """Warns, once in a process, that a device is slow with double precision."""
    if SIMULATED:
        return
    device = cuda.get_current_device()
    ratio = int(device.SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO)
    if ratio > SLOW:
        name = device.name.decode() if isinstance(device.name, bytes) else device.name
        warnings.warn(
            f"{name} computes with float64 at 1/{ratio} of the speed of float32; pass float32 arrays where their precision is enough",
            RuntimeWarning,
            stacklevel=4,
        )


def taken_by(function: Callable[..., Any]) -> dict[str, tuple[int, int, int]]:
    """By kernel of a module, if it was launched: registers, local bytes and shared bytes, the most over all kinds of arguments."""
    found: dict[str, tuple[int, int, int]] = {}
    for name, kernel in inspect.unwrap(function).__globals__.items():
        if not SIMULATED and hasattr(kernel, "get_regs_per_thread") and kernel.overloads:
            told = kernel.get_regs_per_thread(), kernel.get_local_mem_per_thread(), kernel.get_shared_mem_per_block()
            registers, local, shared = (max(sizes.values()) for sizes in told)
            found[name] = int(registers), int(local), int(shared)
    return found


def _to_device(value: Any, device: int) -> Any:
    if isinstance(value, DeviceArray):
        if value.device != device:
            raise ValueError(f"an argument is on device {value.device}, and mode='cuda' runs on {device}; write ns.Mode(device=…)")
        return value.memory
    if isinstance(value, np.ndarray) and value.ndim:
        return cuda.to_device(value)
    return {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}.get(type(value), type(value))(value)


def _to_host(result: Any) -> Any:
    return result.copy_to_host() if hasattr(result, "copy_to_host") else result


def _apart(result: Any, given: Sequence[Any], device: int) -> Any:
    """A result as an array on the device: a copy if it may share an argument's memory or is not contiguous."""
    if not hasattr(result, "copy_to_host"):
        return result
    arrays = [argument for argument in given if hasattr(argument, "copy_to_host")]
    is_own = is_contiguous(result) and not any(_meet(result, argument) for argument in arrays)
    return DeviceArray(result, device) if is_own else put(result.copy_to_host(), device)


def _meet(one: Any, other: Any) -> bool:
    """True if two arrays may share memory."""
    if not (one.size and other.size):
        return False
    (first, last), (start, stop) = _ends(one), _ends(other)
    return first < stop and start < last


def _ends(memory: Any) -> tuple[int, int]:
    """The addresses at which the elements of an array begin and end."""
    told = memory._ary.__array_interface__ if SIMULATED else memory.__cuda_array_interface__
    first = int(told["data"][0])
    steps = zip(memory.shape, memory.strides, strict=True)
    return first, first + sum((dim - 1) * stride for dim, stride in steps) + np.dtype(memory.dtype).itemsize
