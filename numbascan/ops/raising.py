"""`raise` and `assert` that only the run decides: a value if a condition holds, else an error of one of Python's classes."""

from __future__ import annotations

import builtins
import re
import threading
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ..ir.node import CONSTANT, Node
from .card import Card, apply, register
from .lowering import Indices, Operands, View

_OWN: WeakValueDictionary[str, type[Exception]] = WeakValueDictionary()
_LOCK = threading.Lock()
_MARK = re.compile(r"raise ([^ ]+): (.*)", re.DOTALL)


def named(cls: type[Exception], message: str) -> str:
    """A message that names the class of its error. Compiled code raises Python's own errors; `as_own` turns them into that class."""
    name = f"{cls.__module__}.{cls.__qualname__}"
    with _LOCK:
        k = 1
        while _OWN.setdefault(name if k == 1 else f"{name}#{k}", cls) is not cls:  # another class of that name
            k += 1
    return f"raise {name if k == 1 else f'{name}#{k}'}: {message}"


def as_own(error: Exception) -> Exception:
    """An error of the class that its message names; the error itself if it names none."""
    text = error.args[0] if error.args else None
    found = _MARK.fullmatch(text) if isinstance(text, str) else None
    cls = _OWN.get(found[1]) if found is not None else None
    return error if found is None or cls is None else cls(found[2])


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
        folds=lambda x, holds: bool(holds),  # else only the run knows whether it gets there
        vjp=lambda node, cotangent: (
            apply(RAISING, cotangent, node.inputs[1], error=node.attr("error"), message=node.attr("message")),
            None,
        ),
    )
)
"""The first operand if the second holds, else an error. Cotangents are checked alike."""


def is_error(node: Node) -> bool:
    """Whether a node raises its error wherever it is computed."""
    return node.op is RAISING and all(one.op is CONSTANT for one in node.inputs)
