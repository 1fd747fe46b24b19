"""What is known of a value before it exists: dtype, rank, and the dimensions that are fixed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Shape = tuple[int | None, ...]

SUPPORTED_DTYPES = (
    "bool",
    *("int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64"),
    *("complex64", "complex128"),
)


@dataclass(frozen=True, slots=True)
class TensorType:
    """dtype name and shape; a dimension is an int where it is fixed, None where only the run knows it.

    `weak` marks the type of a Python number: it gives way to the other operand's dtype, as in NumPy 2.
    """

    dtype: str
    shape: Shape = ()
    weak: bool = False

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int | None:
        """Number of elements, None where a dimension is unknown."""
        total = 1
        for dim in self.shape:
            if dim is None:
                return None
            total *= dim
        return total

    @property
    def kind(self) -> str:
        """NumPy's kind letter: b, i, u, f or c."""
        return np.dtype(self.dtype).kind

    def with_shape(self, shape: Iterable[int | None]) -> TensorType:
        return replace(self, shape=tuple(shape))

    def with_dtype(self, dtype: str) -> TensorType:
        return replace(self, dtype=dtype, weak=False)

    def strong(self) -> TensorType:
        return replace(self, weak=False) if self.weak else self

    def __str__(self) -> str:
        dims = ", ".join("?" if dim is None else str(dim) for dim in self.shape)
        return f"{self.dtype}[{dims}]"


def numpy_dtype(dtype: object) -> np.dtype[Any]:
    """What `dtype` means to NumPy; PyTensor's "floatX" is float64."""
    return np.dtype("float64" if isinstance(dtype, str) and dtype == "floatX" else dtype)  # type: ignore[call-overload]


def dtype_name(dtype: object) -> str:
    """The name of a supported dtype; TypeError for every other one, byte order aside."""
    name = numpy_dtype(dtype).newbyteorder("=").name
    if name not in SUPPORTED_DTYPES:
        raise TypeError(f"dtype {name} is not supported; use one of {', '.join(SUPPORTED_DTYPES)}")
    return str(name)


def broadcast_shapes(*shapes: Shape) -> Shape:
    """NumPy's broadcasting where dimensions may be unknown.

    An unknown dimension beside a fixed one other than 1 takes the fixed one; two unknown ones stay unknown
    and must be equal at run time.
    """
    rank = max((len(shape) for shape in shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    result: list[int | None] = []
    for dims in zip(*padded, strict=True):
        fixed = {dim for dim in dims if dim is not None and dim != 1}
        if len(fixed) > 1:
            raise ValueError(f"shapes {' and '.join(map(show_shape, shapes))} do not broadcast together")
        result.append(fixed.pop() if fixed else (None if None in dims else 1))
    return tuple(result)


def show_shape(shape: Shape) -> str:
    """A shape as NumPy prints it, with ? for an unknown dimension."""
    inner = ", ".join("?" if dim is None else str(dim) for dim in shape)
    return f"({inner},)" if len(shape) == 1 else f"({inner})"
