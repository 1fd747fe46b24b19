"""Initial values and updates held against the step's results: dtype, rank and shape must be the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import ScanTypeError
from ...ir.node import Node, constant_value
from ...types import TensorType, show_shape
from ..shared import SharedVariable
from ..tracing import code_of
from ..variable import Variable
from .arguments import Taps

_ORDER = "buifc"  # a kind holds the numbers of those before it


def check_initial_axis(variable: Variable, taps: Taps, where: str) -> None:
    """ValueError unless the initial value has a leading axis that is long enough for the taps, as far as that is known."""
    depth = -min(taps)
    if not variable.ndim:
        raise ValueError(
            f"{where} with taps {list(taps)} needs an initial value with a leading axis of {depth} rows, oldest first; it is a scalar "
            f"({variable.type}): write np.full({depth}, x0)"
        )
    rows = variable.type.shape[0]
    if rows is not None and rows < depth:
        raise ValueError(f"{where}: the initial value has {rows} rows along its leading axis, but taps {list(taps)} need {depth}")


def check_number(number: Variable, write: Node, argument: str | None, where: str) -> None:
    """ScanTypeError if a number as initial value would lose its meaning in the dtype of the step's result."""
    dtype = np.dtype(write.type.dtype)
    if not _holds(dtype, number.node):
        raise ScanTypeError(
            f"{where}{_argument(argument)} starts as {_number(number.node)}, which the step's result, {write.type}{_line(write)}, cannot "
            f"hold; give an initial value of dtype {dtype}, or write result.astype({number.type.dtype!r}) in the step"
        )


def _holds(dtype: np.dtype[Any], number: Node) -> bool:
    """Does a number without a dtype of its own keep its meaning in `dtype`?"""
    value = constant_value(number)
    if value is None and number.type.kind == "i" and dtype.kind in "iu":
        return True  # an integer that the run gives is checked by the run
    if value is None:
        return _ORDER.index(number.type.kind) <= _ORDER.index(dtype.kind)
    if value.dtype.kind == "c" and dtype.kind != "c":
        return False
    with np.errstate(all="ignore"):
        return (value.dtype.kind in "fc" and dtype.kind == value.dtype.kind) or bool(np.all(value.astype(dtype) == value))


def _number(node: Node) -> object:
    value = constant_value(node)
    return f"the {node.type.dtype} number" if value is None else value.item()


def check_state(row: TensorType, write: Node, has_axis: bool, argument: str | None, where: str, fn: Callable[..., Any]) -> None:
    """ScanTypeError unless the step's result has the dtype, rank and (where known) shape of a row of the initial value."""
    result = write.type
    rows = " in each row" if has_axis else ""
    seen = f"{where}{_argument(argument)} starts as {row}{rows}, but the step's result is {result.strong()}{_line(write, fn)}"
    if not _same_shape(row, result):
        raise ScanTypeError(
            f"{seen}; dtype and shape must be the same: write {_of_shape(result)} as initial value, "
            f"or return a result of shape {show_shape(row.shape)}"
        )
    if row.dtype != result.dtype:
        raise ScanTypeError(
            f"{seen}; the dtypes must be the same: write {_of_dtype(row, result)} as initial value, or result.astype({row.dtype!r})"
        )


def check_carry(shared: SharedVariable, write: Node, where: str) -> None:
    """ScanTypeError unless the update of a shared variable has its dtype and rank, or is a number that this dtype holds."""
    type_, result = shared.type, write.type
    if result.weak and not result.rank and not type_.rank:
        if not _holds(np.dtype(type_.dtype), write):
            raise ScanTypeError(
                f"{where}: the update of the shared variable {shared.name or repr(shared)} ({type_}) is {_number(write)}{_line(write)}, "
                f"which {type_.dtype} cannot hold; write update.astype({type_.dtype!r}) if the loss is meant"
            )
        return
    if type_.dtype != result.dtype or not _same_shape(type_, result):
        raise ScanTypeError(
            f"{where}: the update of the shared variable {shared.name or repr(shared)} ({type_}) is {result.strong()}{_line(write)}; "
            f"they must agree in dtype and shape: write update.astype({type_.dtype!r})"
        )


def _same_shape(a: TensorType, b: TensorType) -> bool:
    return a.rank == b.rank and all(x == y or x is None or y is None for x, y in zip(a.shape, b.shape, strict=True))


def _argument(name: str | None) -> str:
    return f" (argument {name!r} of the step)" if name else ""


def _line(write: Node, fn: Callable[..., Any] | None = None) -> str:
    if write.origin:
        return f" ({write.origin[0]}, line {write.origin[1]})"
    code = None if fn is None else code_of(fn)
    return f" ({code.co_filename}, line {code.co_firstlineno})" if code else ""


def _of_dtype(row: TensorType, result: TensorType) -> str:
    return f"x0.astype({result.dtype!r})" if row.rank else f"np.{result.dtype.replace('bool', 'bool_')}(x0)"


def _of_shape(result: TensorType) -> str:
    return f"np.zeros({show_shape(result.shape)}, {result.dtype!r})" if result.rank else f"np.{result.dtype}(0)"
