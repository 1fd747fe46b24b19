"""Broadcasting undone: a value summed to the shape that something had before it was broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.node import Node
from ..types import TensorType
from .algebra import broadcast_to, dims_of, summed_to
from .card import register
from .lowering import Indices, Operands, View
from .runtime_attributes import HOLE, SizedCard, filled, must_equal, run_numbers
from .shape import known_shape


class _SumToCard(SizedCard):
    """Once the shape is known, it is a sum, or nothing. What is left to the run keeps its elements: open dimensions are equal."""

    def rebuilt(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        return summed_to(inputs[0], filled(node.attr("shape"), iter(inputs[1:])))


def _evaluate(x: Any, *sizes: Any, shape: tuple[Any, ...]) -> Any:
    dims = tuple(map(int, filled(shape, iter(sizes))))
    axes = tuple(axis for axis, dim in enumerate(dims) if dim == 1 and x.shape[axis] != 1)
    return np.broadcast_to(np.sum(x, axis=axes, keepdims=True, dtype=x.dtype), dims)


def _infer(x: TensorType, *sizes: TensorType, shape: tuple[Any, ...]) -> TensorType:
    return TensorType(x.dtype, known_shape(shape))  # an open dimension may turn out to be 1, whatever x has there


def _dims(view: Operands) -> Indices:
    dims: Indices = run_numbers(view, view.attrs["shape"], 1)
    for axis, (length, dim) in enumerate(zip(view.dims(0), dims, strict=True)):
        must_equal(view, length, dim, f"a gradient has length {{0}} along axis {axis}, its variable {{1}}")
    return dims


SUM_TO = register(
    _SumToCard(
        "sum_to",
        _evaluate,
        _infer,
        View(_dims, lambda view, index: index, keeps_dims=True),
        samples=lambda: [((np.arange(6.0).reshape(2, 3) - 2.5, 3), {"shape": (2, HOLE)})],
        linear=(0,),
        vjp=lambda node, cotangent: (broadcast_to(cotangent, dims_of(node.inputs[0])), *(None,) * (len(node.inputs) - 1)),
        resizes=True,
    )
)
