"""A value that must have a given shape, as a derivative given by the user must have that of what it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.node import Node
from ..types import TensorType, show_shape
from .algebra import node_of, same_dims
from .card import at_line, register
from .lowering import Indices, Operands, View
from .runtime_attributes import HOLE, SizedCard, filled, must_equal, run_numbers, sized
from .shape import known_shape


class _OfShapeCard(SizedCard):
    """Rebuilt on a value known to have the shape, it is the value itself."""

    def rebuilt(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        return of_shape(inputs[0], filled(node.attr("shape"), iter(inputs[1:])), str(node.attr("what")))


def of_shape(x: Node, dims: Sequence[Node | int], what: str) -> Node:
    """`x`, checked to have exactly these dimensions: else ValueError, now or at run time. Nothing broadcasts. what: x, in words."""
    wanted = tuple(map(node_of, dims))
    return x if same_dims(x, wanted) else sized(OF_SHAPE, (x,), wanted, what=what)


def _evaluate(x: Any, *sizes: Any, shape: tuple[Any, ...], what: str) -> Any:
    wanted = tuple(map(int, filled(shape, iter(sizes))))
    if x.shape != wanted:
        raise ValueError(f"{what} has shape {x.shape}; it must have {wanted}")
    return x


def _infer(x: TensorType, *sizes: TensorType, shape: tuple[Any, ...], what: str) -> TensorType:
    wanted = known_shape(shape)
    if x.rank != len(wanted) or any(a != b for a, b in zip(x.shape, wanted, strict=True) if a is not None and b is not None):
        raise ValueError(f"{what} has shape {show_shape(x.shape)}{at_line()}; it must have {show_shape(wanted)}")
    return TensorType(x.dtype, tuple(a if b is None else b for a, b in zip(x.shape, wanted, strict=True)))


def _dims(view: Operands) -> Indices:
    wanted: Indices = run_numbers(view, view.attrs["shape"], 1)
    what = str(view.attrs["what"]).replace("{", "{{").replace("}", "}}")
    for axis, (found, dim) in enumerate(zip(view.dims(0), wanted, strict=True)):
        must_equal(view, found, dim, f"{what} has length {{0}} along axis {axis}; it must have {{1}}")
    return wanted


OF_SHAPE = register(
    _OfShapeCard(
        "of_shape",
        _evaluate,
        _infer,
        View(_dims, lambda view, index: index, keeps_dims=True),
        samples=lambda: [((np.arange(6.0).reshape(2, 3) - 2.5, 3), {"shape": (2, HOLE), "what": "a sample"})],
        linear=(0,),
        vjp=lambda node, cotangent: (cotangent, *(None,) * (len(node.inputs) - 1)),
    )
)
