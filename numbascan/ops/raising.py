"""`raise` and `assert` that only the run decides: a value, where a condition holds; else an error of one of Python's classes."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from .card import Card, apply, register
from .lowering import Indices, Operands, View


def _raising(x: Any, holds: Any, error: str, message: str) -> Any:
    if not holds:
        raise getattr(builtins, error)(message)
    return x


def _dims(view: Operands) -> Indices:
    message = str(view.attrs["message"]).replace("{", "{{").replace("}", "}}")
    view.check(view.at(1), str(view.attrs["error"]), message)
    return view.dims(0)


RAISING: Card = register(
    Card(
        "raising",
        _raising,
        lambda x, holds, error, message: x,
        View(_dims, lambda view, index: index),
        samples=lambda: [((np.array([0.5, 2.0]), np.bool_(True)), {"error": "ValueError", "message": "a sample"})],
        linear=(0,),
        vjp=lambda node, cotangent: (
            apply(RAISING, cotangent, node.inputs[1], error=node.attr("error"), message=node.attr("message")),
            None,
        ),
    )
)
"""The first operand where the second holds; else an error. A cotangent takes the same way."""
