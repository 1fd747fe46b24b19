"""Rows that must be there: what a loop checks before it starts, as an op for what is written without a loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.loops import compare
from ..types import TensorType
from .card import Card, register
from .lowering import Indices, Operands, View


def _evaluate(x: Any, needed: int, message: str) -> Any:
    if len(x) < needed:
        raise ValueError(message.format(len(x), needed, 1))
    return x


def _infer(x: TensorType, needed: int, message: str) -> TensorType:
    rows = x.shape[0]
    if rows is not None and rows < needed:
        raise ValueError(message.format(rows, needed, 1))
    return x


def _dims(view: Operands) -> Indices:
    dims = view.dims(0)
    needed = view.attrs["needed"]
    view.check(compare(">=", dims[0], needed), "ValueError", view.attrs["message"], dims[0], needed, 1)
    return dims


AT_LEAST_ROWS = register(
    Card(
        "at_least_rows",  # its operand, of which {0} rows are there and {1} needed
        _evaluate,
        _infer,
        View(_dims, lambda view, index: index),
        samples=lambda: [((np.arange(6.0).reshape(3, 2) / 7,), {"needed": 3, "message": "{0} rows, {1} needed"})],
        linear=(0,),
        vjp=lambda node, cotangent: (cotangent,),
    )
)
