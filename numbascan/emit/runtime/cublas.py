"""Large matrix products by cuBLAS, called between kernels on their stream.

cuBLAS stores matrices column by column, so it sees a matrix stored row by row as its transpose: the factors are swapped.
The same call gives the same bits on one device: no sum depends on which thread finishes first.
"""

from __future__ import annotations

import ctypes
import importlib
import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..inside import cuda_package
from .gpu_names import LARGE_PRODUCT

TOO_LARGE = 2**24
"""Multiplications from which a product needs cuBLAS: a loop with one thread for each element of the result is too slow."""
INSTALL = "pip install nvidia-cublas (nvidia-cublas-cu12 beside numbascan[cuda12])"
LETTERS = {"float32": "S", "float64": "D", "complex64": "C", "complex128": "Z"}
ABSENT = ""  # the letter of an axis that is absent, of length 1
Operand = tuple[Any, tuple[int, ...]]  # an array, and the index of the operand's first element in it

_lock = threading.Lock()  # held while a handle is in use
_handles: dict[int, ctypes.c_void_p] = {}  # by device


def takes_cublas(size: int) -> bool:
    """True if a product of `size` multiplications goes to cuBLAS.

    Raises ImportError where cuBLAS is needed and not installed.
    """
    if size < LARGE_PRODUCT:
        return False
    if library() is not None:
        return True
    if size >= TOO_LARGE and not cuda_package.is_simulated():
        raise ImportError(f"a product of matrices with {size:,} multiplications needs cuBLAS on a GPU: {INSTALL}")
    return False


def by_cublas(labels: str, lengths: Mapping[str, int], left: Operand, right: Operand, result: Operand) -> bool:
    """Computes a product by cuBLAS, if it is large; False if it did nothing.

    labels: the letters of the arrays' axes, such as "bik,.kj->bij": rows i, columns j, summed k, batch b, "." for an axis at a fixed
    index. lengths: by letter.
    """
    dtypes = {np.dtype(array.dtype).name for array, _ in (left, right, result)}
    if len(dtypes) > 1 or min(lengths.values()) < 1 or not takes_cublas(math.prod(lengths.values())):
        return False
    axes = labels.replace("->", ",").split(",")
    a, b, c = (_Factor.of(operand, letters, lengths) for operand, letters in zip((left, right, result), axes, strict=True))
    if a.meets(c) or b.meets(c):  # cuBLAS would read what it has written
        return False
    return _multiplied(a, b, c, {ABSENT: 1, **lengths}, *dtypes)


@cache
def library() -> Any:
    """cuBLAS of CUDA 12 or later; None where it is not installed, and in the simulator."""
    if cuda_package.is_simulated():
        return None
    try:
        finder: Any = importlib.import_module("cuda.pathfinder")
        found = ctypes.CDLL(finder.load_nvidia_dynamic_lib("cublas").abs_path)
    except (ImportError, OSError, RuntimeError):
        return None
    return found if hasattr(found, "cublasDgemm_v2_64") else None


@dataclass(frozen=True)
class _Factor:
    """An operand: the address of its first element, and its stride along each letter, in elements."""

    address: int
    steps: Mapping[str, int]
    last: int  # the address behind its last element

    @staticmethod
    def of(operand: Operand, axes: str, lengths: Mapping[str, int]) -> _Factor:
        array, start = operand
        itemsize = np.dtype(array.dtype).itemsize
        address = _address(array) + sum(place * stride for place, stride in zip(start, array.strides, strict=True))
        bytes_apart = {letter: stride for letter, stride in zip(axes, array.strides, strict=True) if letter != "."}
        last = address + sum((lengths[letter] - 1) * stride for letter, stride in bytes_apart.items()) + itemsize
        return _Factor(address, {ABSENT: 0, **{letter: stride // itemsize for letter, stride in bytes_apart.items()}}, last)

    def meets(self, other: _Factor) -> bool:
        """True if two operands may share memory."""
        return self.address < other.last and other.address < self.last


def _multiplied(left: _Factor, right: _Factor, result: _Factor, n: Mapping[str, int], dtype: str) -> bool:
    """Calls cuBLAS; False where a matrix is stored in an order that it does not take."""
    batch, rows, columns = (letter if letter in n else ABSENT for letter in "bij")
    summed = "k"
    if batch == ABSENT and ABSENT in (rows, columns):
        matrix, vector, along = (left, right, rows) if columns == ABSENT else (right, left, columns)
        return _by_vector(matrix, vector, result, along, summed, n, dtype)
    # to cuBLAS a result stored row by row is its transpose, right.T @ left.T; one stored column by column is left @ right
    for first, second, inner, outer in ((right, left, columns, rows), (left, right, rows, columns)):
        to = _stored(result, inner, outer, n)
        a, b = _stored(first, inner, summed, n), _stored(second, summed, outer, n)
        if to is not None and not to[0] and a is not None and b is not None:
            break
    else:
        return False
    sizes = *map(int, a[0:1] + b[0:1]), *map(ctypes.c_int64, (n[inner], n[outer], n[summed]))
    alpha, beta = _number(dtype, 1), _number(dtype, 0)
    if batch == ABSENT:
        steps: list[tuple[Any, ...]] = [(), (), ()]
    else:
        steps = [(ctypes.c_longlong(factor.steps.get(batch, 0)),) for factor in (first, second, result)]
    x, y, z = (
        (ctypes.c_void_p(factor.address), ctypes.c_int64(stored[1]), *step)
        for factor, stored, step in zip((first, second, result), (a, b, to), steps, strict=True)
    )
    count = () if batch == ABSENT else (ctypes.c_int64(n[batch]),)
    name = "gemm_v2_64" if batch == ABSENT else "gemmStridedBatched_64"
    _call(f"{LETTERS[dtype]}{name}", *sizes, ctypes.byref(alpha), *x, *y, ctypes.byref(beta), *z, *count)
    return True


def _by_vector(matrix: _Factor, vector: _Factor, result: _Factor, along: str, summed: str, n: Mapping[str, int], dtype: str) -> bool:
    """Calls cuBLAS for a matrix and a vector."""
    stored = _stored(matrix, along, summed, n)
    if stored is None:
        return False
    is_turned, leading = stored
    shape = (n[summed], n[along]) if is_turned else (n[along], n[summed])
    alpha, beta = _number(dtype, 1), _number(dtype, 0)
    operands = (
        (ctypes.c_void_p(factor.address), ctypes.c_int64(step))
        for factor, step in ((matrix, leading), (vector, vector.steps[summed]), (result, result.steps[along]))
    )
    a, x, y = operands
    _call(f"{LETTERS[dtype]}gemv_v2_64", int(is_turned), *map(ctypes.c_int64, shape), ctypes.byref(alpha), *a, *x, ctypes.byref(beta), *y)
    return True


def _stored(factor: _Factor, inner: str, outer: str, n: Mapping[str, int]) -> tuple[bool, int] | None:
    """For a matrix with columns along `inner`: whether it is stored as its transpose, and its leading dimension. None if it is stored
    in neither order."""
    for is_turned, (fast, slow) in enumerate(((inner, outer), (outer, inner))):
        leading = factor.steps[slow] if n[slow] > 1 else n[fast]
        if (factor.steps[fast] == 1 or n[fast] == 1) and leading >= n[fast]:
            return bool(is_turned), leading
    return None


def _number(dtype: str, value: int) -> Any:
    """A number for cuBLAS, which takes its address."""
    kind = ctypes.c_float if dtype in ("float32", "complex64") else ctypes.c_double
    return (kind * 2)(value, 0)


def _call(name: str, *args: Any) -> None:
    """Calls a function of cuBLAS on the kernels' device and stream."""
    cublas = library()
    device = 0 if cuda_package.is_simulated() else int(cuda_package.cuda().get_current_device().id)
    with _lock:
        _checked(cublas, name, _handle(cublas, device), *args)


def _handle(cublas: Any, device: int) -> ctypes.c_void_p:
    """The handle of cuBLAS for a device, made once."""
    if device not in _handles:
        handle = ctypes.c_void_p()
        _checked(cublas, "Create_v2", ctypes.byref(handle))
        _handles[device] = handle
    return _handles[device]


def _checked(cublas: Any, name: str, *args: Any) -> None:
    status = getattr(cublas, f"cublas{name}")(*args)
    if status == 3:
        raise MemoryError("cuBLAS has no memory left on the device")
    if status:
        raise RuntimeError(f"cuBLAS has failed: cublas{name} returned status {status}")


def _address(array: Any) -> int:
    told = array._ary.__array_interface__ if cuda_package.is_simulated() else array.__cuda_array_interface__
    return int(told["data"][0])
