"""Constructors of symbolic variables under PyTensor's names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.node import CONSTANT, labelled, new_input
from ..ops.card import user_line
from ..tracebacks import entries, with_entries
from ..types import SUPPORTED_DTYPES, Shape, TensorType, dtype_name
from .variable import METHODS, Variable, as_variable


def tensor(
    first: Any = None, /, shape: int | Iterable[int | None] | None = None, name: str | None = None, *, dtype: Any = None
) -> Variable:
    """A symbolic variable of any rank.

    Arguments: a dtype first, float64 unless given, or (as in PyTensor) a name together with dtype=…; shape, an int for each dimension
    that is fixed and None for each that is not. A fixed dimension is checked at every call.

    Raises TypeError where dtype or shape cannot be understood, ValueError for a negative dimension.

    >>> import numbascan.tensor as nt
    >>> nt.tensor("float32", shape=(None, 3), name="x")
    <x: float32[?, 3]>
    >>> nt.tensor("x", dtype="float32", shape=(None, 3))
    <x: float32[?, 3]>
    """
    if isinstance(first, str) and dtype is not None:
        if name is not None:
            raise TypeError(f"nt.tensor got two names, {first!r} and {name!r}; as a dtype write one of {', '.join(SUPPORTED_DTYPES)}")
        name = first
    elif first is not None:
        if dtype is not None:
            raise TypeError(f"nt.tensor got two dtypes, {first!r} and {dtype!r}; give one")
        dtype = _first_dtype(first) if isinstance(first, str) else first
    if shape is None:
        raise TypeError("nt.tensor needs shape: one entry for each dimension, None where it is not fixed, as in shape=(None, 3)")
    return _variable(dtype_name("float64" if dtype is None else dtype), _shape(shape), name)


def _first_dtype(text: str) -> str:
    """The dtype that a string names. TypeError for no dtype, and for one letter, which may also be meant as the variable's name."""
    try:
        dtype = dtype_name(text)
    except TypeError:
        raise TypeError(
            f"nt.tensor got {text!r}, which is none of the dtypes {', '.join(SUPPORTED_DTYPES)}; for a variable of that name write "
            f"nt.tensor({text!r}, dtype='float64', shape=…)"
        ) from None
    if len(text) == 1:
        raise TypeError(
            f"nt.tensor got {text!r}, which may be a name or the dtype {dtype}; write nt.tensor({dtype!r}, shape=…), or for a variable of "
            f"that name nt.tensor({text!r}, dtype=…, shape=…)"
        )
    return dtype


def _shape(shape: int | Iterable[int | None]) -> Shape:
    dims = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    for dim in dims:
        if dim is not None and (isinstance(dim, bool) or not isinstance(dim, (int, np.integer))):
            raise TypeError(f"shape={dims} holds {dim!r}; each dimension is an int, or None where it is not fixed")
        if dim is not None and dim < 0:
            raise ValueError(f"shape={dims} holds the negative dimension {dim}")
    return tuple(None if dim is None else int(dim) for dim in dims)


def _variable(dtype: str, shape: Shape, name: str | None) -> Variable:
    if name is not None and not isinstance(name, str):
        raise TypeError(f"the name of a variable must be a string, not {name!r}; give dtype and shape by keyword")
    return Variable(new_input(TensorType(dtype, shape), name, user_line()))


@dataclass(frozen=True)
@with_entries(("__call__",))
class Constructor:
    """Makes variables of one rank; `dtype` None leaves the dtype to the caller."""

    shape: Shape
    dtype: str | None = None

    def __call__(self, name: str | None = None, *, dtype: Any = None, shape: Iterable[int | None] | None = None) -> Variable:
        """A variable called `name`; `shape` may fix dimensions."""
        if self.dtype is not None and dtype is not None and dtype_name(dtype) != self.dtype:
            raise TypeError(f"this constructor makes {self.dtype} variables, not {dtype}; use nt.tensor")
        fixed = self.shape if shape is None else _shape(shape)
        if len(fixed) != len(self.shape):
            raise ValueError(f"shape={fixed} has {len(fixed)} dimensions, but this constructor makes variables with {len(self.shape)}")
        return _variable(self.dtype or dtype_name("float64" if dtype is None else dtype), fixed, name)


@dataclass(frozen=True)
@with_entries(("__call__",))
class Several:
    """The plural of a constructor: `nt.vectors("a b")`, `nt.vectors("a", "b")` or `nt.vectors(2)` give a list of variables."""

    single: Constructor

    def __call__(self, *names: str | int) -> list[Variable]:
        if len(names) == 1 and isinstance(names[0], int):
            return [self.single() for _ in range(names[0])]
        if not all(isinstance(name, str) for name in names):
            raise TypeError(f"names must be strings (or one number of variables), not {names}")
        return [self.single(name) for text in names for name in str(text).split()]


RANKS: dict[tuple[str, str], Shape] = {
    ("scalar", "scalars"): (),
    ("vector", "vectors"): (None,),
    ("matrix", "matrices"): (None, None),
    ("row", "rows"): (1, None),
    ("col", "cols"): (None, 1),
    ("tensor3", "tensor3s"): (None,) * 3,
    ("tensor4", "tensor4s"): (None,) * 4,
}
DTYPES = (None, "int8", "int16", "int32", "int64", "float32", "float64", "complex64", "complex128")

for _letter, _dtype in zip(("", *"bwilfdcz"), DTYPES, strict=True):
    for (_single, _plural), _dims in RANKS.items():
        globals()[_letter + _single] = Constructor(_dims, _dtype)
        globals()[_letter + _plural] = Several(Constructor(_dims, _dtype))


def as_tensor_variable(x: Any, name: str | None = None, *, dtype: Any = None) -> Variable:
    """`x` as a variable: a variable as it is, an array or a nest of variables as one, a Python number as a number that takes the other
    operand's dtype unless `dtype` is given.

    >>> import numbascan.tensor as nt
    >>> nt.as_tensor_variable([1.0, 2.0]).ndim
    1
    """
    variable = as_variable(x)
    if variable.node.op is CONSTANT and (name is not None or dtype is not None):
        return constant(x, name, dtype)
    return variable if dtype is None else METHODS["astype"](variable, dtype)


as_tensor = as_tensor_variable


def constant(x: Any, name: str | None = None, dtype: Any = None) -> Variable:
    """A fixed array or number. A Python number takes the other operand's dtype unless `dtype` is given.

    Raises TypeError for a symbolic value and for a dtype that is not supported.

    >>> import numbascan.tensor as nt
    >>> nt.constant([1, 2], dtype="float32")
    <constant: float32[2]>
    """
    value = as_variable(x if dtype is None else np.asarray(x, dtype=dtype_name(dtype)))
    if value.node.op is not CONSTANT:
        raise TypeError(f"nt.constant needs an array or a number, not the symbolic {value!r}; use it as it is, or nt.as_tensor_variable")
    return value if name is None else Variable(labelled(value.node, name))


__all__ = [name for name, value in globals().items() if isinstance(value, (Constructor, Several))]
__all__ += ["as_tensor", "as_tensor_variable", "constant", "tensor"]

entries(globals(), __all__)
