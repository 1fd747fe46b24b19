"""Capsules of DLPack: memory that another library takes without a copy.

The structs are those of its header without a version (github.com/dmlc/dlpack, include/dlpack/dlpack.h).
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}  # of kinds of numbers
_NAME = b"dltensor"  # of a capsule that is not consumed yet


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


_lent: dict[int, tuple[Any, ...]] = {}  # by the address of a struct that another library may hold: the struct, and all it points to
# our own prototypes: the functions of ctypes.pythonapi are shared, and another library may declare them otherwise
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _give_back(struct: int) -> None:
    _lent.pop(struct, None)


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _destroy(capsule: int) -> None:
    """The destructor of a capsule: gives the memory back if nobody has consumed it."""
    if _is_valid(capsule, _NAME):
        _lent.pop(_pointer(capsule, _NAME), None)


def capsule(data: int, device: tuple[int, int], shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any], owner: Any) -> Any:
    """A capsule for memory at the address `data`, strides in bytes; `owner` is kept alive for as long as somebody holds the memory."""
    numbers = ctypes.c_int64 * len(shape)
    dims, steps = numbers(*shape), numbers(*(stride // dtype.itemsize for stride in strides))
    tensor = _Tensor(data, *device, len(shape), _CODES[dtype.kind], 8 * dtype.itemsize, 1, dims, steps, 0)
    managed = _Managed(tensor, None, ctypes.cast(_give_back, ctypes.c_void_p))
    _lent[ctypes.addressof(managed)] = managed, dims, steps, owner
    return _new(ctypes.addressof(managed), _NAME, ctypes.cast(_destroy, ctypes.c_void_p))
