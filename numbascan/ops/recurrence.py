"""Linear recurrences along the last axis, which the derivatives of running products are made of, with or without zero factors.

    out[0] = b[0], out[k] = a[k] * out[k - 1] + b[k]

Its derivative is a recurrence again, read backwards: derivatives of any order do not divide, and take time in proportion to the length.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.node import Node, constant
from ..types import TensorType, dtype_name
from .algebra import call, flip_axis, mul, on_axis, total, written
from .card import Card, register
from .lowering import Indices, Library, Operands
from .runtime_attributes import must_equal


def _evaluate(a: Any, b: Any) -> Any:
    result = np.array(b, dtype=np.result_type(a, b))
    for k in range(1, result.shape[-1]):
        result[..., k] += a[..., k] * result[..., k - 1]
    return result


def _infer(a: TensorType, b: TensorType) -> TensorType:
    dims = (m if n is None else n for n, m in zip(a.shape, b.shape, strict=True))
    return TensorType(dtype_name(np.result_type(a.dtype, b.dtype)), tuple(dims))


def _dtypes(a: TensorType, b: TensorType) -> tuple[str, ...]:
    return (_infer(a, b).dtype,) * 2


def _dims(view: Operands) -> tuple[Indices, ...]:
    for n, m in zip(view.dims(0), view.dims(1), strict=True):
        must_equal(view, n, m, "a recurrence: factors and terms have lengths {0} and {1}")
    return (view.dims(1),)


def one_later(x: Node, first: float) -> Node:
    """Along the last axis: `first`, then `x` without its last element."""
    return _starting(_rolled(x), first)


def _rolled(x: Node) -> Node:
    return call("roll", x, shift=(1,), axis=x.type.rank - 1)


def _starting(x: Node, first: float) -> Node:
    return written(x, constant(first, x.type.dtype), on_axis((None, 1, None), x.type.rank - 1))


def recurrence_back(a: Node, cotangent: Node) -> Node:
    """The cotangent of the terms: out[k] = cotangent[k] + a[k + 1] * out[k + 1]."""
    axis = cotangent.type.rank - 1
    return flip_axis(call("recurrence", _rolled(flip_axis(a, axis)), flip_axis(cotangent, axis)), axis)


def _vjp(node: Node, cotangent: Node) -> tuple[Node, Node]:
    back = recurrence_back(node.inputs[0], cotangent)
    return _starting(mul(back, _rolled(node)), 0), back


def _jvp(node: Node, da: Node | None, db: Node | None) -> Node | None:
    moved = total([db, None if da is None else _starting(mul(da, _rolled(node)), 0)])
    return None if moved is None else call("recurrence", node.inputs[0], moved)


def _samples() -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    a = np.sin(np.arange(12.0)).reshape(3, 4) * 2
    b = np.cos(np.arange(12.0)).reshape(3, 4)
    return [((a, b), {}), ((a[0], b[1].astype("float32")), {}), ((a[:2] + 1j, b[:2]), {}), ((a[:, :0], b[:, :0]), {})]


RECURRENCE = register(
    Card(
        "recurrence",
        _evaluate,
        _infer,
        Library(lambda a, b: "recurrences.recur_into", ((1, 1), (1,)), _dims, dtypes=_dtypes),
        samples=_samples,
        vjp=_vjp,
        jvp=_jvp,
    )
)
