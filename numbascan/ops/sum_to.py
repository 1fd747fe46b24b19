"""Broadcasting undone: a value summed to the shape that something had before it was broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.loops import Index, Literal
from ..ir.node import Node
from ..types import TensorType
from .algebra import broadcast_to, dims_of, summed_to
from .card import register
from .lowering import Indices, Operands, Pass, View
from .runtime_attributes import HOLE, SizedCard, filled, only_place, run_numbers
from .shape import known_shape


class _SumToCard(SizedCard):
    """Once the shape is known, it is a sum, or nothing. What is left to the run keeps its elements, but along what stretched."""

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
        view.broadcasts(dim, length, "ValueError", f"a gradient has length {{0}} along axis {axis}, its variable {{1}}")
    return dims


def _sums(view: Operands) -> Sequence[Pass] | None:
    """Zeros, then the sums over the axes along which the variable was stretched, where there are any. In any order."""
    lengths, dims = view.dims(0), run_numbers(view, view.attrs["shape"], 1)
    short = [view.stretches(dim, length) for length, dim in zip(lengths, dims, strict=True)]
    if not any(short):
        return None
    zero = Literal(view.out.dtype, 0)
    return (
        Pass(dims, lambda index: index, lambda index: zero),
        Pass(lengths, lambda index: tuple(map(_summed_at, index, short)), lambda index: view.at(0, index), "+"),
    )


def _summed_at(i: Index, is_summed: bool) -> Index:
    return only_place(i) if is_summed else i


SUM_TO = register(
    _SumToCard(
        "sum_to",
        _evaluate,
        _infer,
        View(_dims, lambda view, index: index, keeps_dims=True, summed=_sums),
        samples=lambda: [((np.arange(6.0).reshape(2, 3) - 2.5, 3), {"shape": (2, HOLE)})],
        linear=(0,),
        vjp=lambda node, cotangent: (broadcast_to(cotangent, dims_of(node.inputs[0])), *(None,) * (len(node.inputs) - 1)),
        resizes=True,
    )
)
