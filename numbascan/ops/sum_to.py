"""Sums that undo a broadcast: a value summed to the shape before the broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.loops import Index, Literal, compare
from ..ir.node import Node, constant_value
from ..types import TensorType
from .algebra import broadcast_to, dims_of, node_of, same_dims, summed_to
from .card import register
from .lowering import Indices, Operands, Pass, View
from .runtime_attributes import HOLE, SizedCard, filled, only_place, run_numbers, sized
from .shape import known_shape

OF_GRADIENT = "a gradient has length {0} along axis {axis}, its variable {1}"


class _SumToCard(SizedCard):
    """Rebuilt with a known shape, it is a sum, or the value itself. At run time only axes that stretched are summed."""

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
        view.broadcasts(dim, length, "ValueError", OF_GRADIENT.replace("{axis}", str(axis)))
    return dims


def _rows_dims(view: Operands) -> Indices:
    text = view.attrs["text"]
    (n_rows, *lengths), (first, *others) = view.dims(0), run_numbers(view, view.attrs["shape"], 1)
    view.broadcasts(first, n_rows, "ValueError", text.replace("{axis}", "0"))
    for axis, (length, dim) in enumerate(zip(lengths, others, strict=True), 1):
        message = text.replace("{axis}", str(axis))
        if view.attrs["sums"] and view.stretches(dim, length):
            view.broadcasts(dim, length, "ValueError", message)
        else:
            view.same(length, dim, "ValueError", message, unless=compare("==", n_rows, 0))
    return (first, *others)


def _sums(view: Operands) -> Sequence[Pass] | None:
    """Passes that write zeros, then add, in any order, along the axes on which the variable was stretched; None without such axes."""
    lengths, dims = view.dims(0), run_numbers(view, view.attrs["shape"], 1)
    short = [view.stretches(dim, length) for length, dim in zip(lengths, dims, strict=True)]
    if not any(short):
        return None
    zero = Literal(view.out.dtype, 0)
    return (
        Pass(dims, lambda index: index, lambda index: zero),
        Pass(lengths, lambda index: tuple(map(_summed_at, index, short)), lambda index: view.at(0, index), "+"),
    )


def _row_sums(view: Operands) -> Sequence[Pass] | None:
    return _sums(view) if view.attrs["sums"] else None


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


class _RowsToCard(SizedCard):
    """Rebuilt with lengths known to be equal, it is the rows themselves."""

    def rebuilt(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        dims = filled(node.attr("shape"), iter(inputs[1:]))
        return rows_to(inputs[0], dims, str(node.attr("text")), bool(node.attr("sums")))


def rows_to(x: Node, dims: Sequence[Node | int], text: str = OF_GRADIENT, sums: bool = True) -> Node:
    """The rows of a loop, checked to have a shape. If there are no rows they get it, whatever lengths a step would give them.

    text: the error for a length {0} along {axis} that is not {1}. sums: the rows are summed over stretched axes, as by `summed_to`.
    """
    shape = tuple(map(node_of, dims))
    if sums:
        x = summed_to(x, [own if constant_value(dim) is None else dim for own, dim in zip(dims_of(x), shape, strict=True)])
    return x if same_dims(x, shape) else sized(ROWS_TO, (x,), shape, text=text, sums=sums)


def _rows_to(x: Any, *sizes: Any, shape: tuple[Any, ...], text: str, sums: bool) -> Any:
    return _evaluate(x, *sizes, shape=shape) if len(x) else np.empty(tuple(map(int, filled(shape, iter(sizes)))), x.dtype)


ROWS_TO = register(
    _RowsToCard(
        "rows_to",
        _rows_to,
        lambda x, *sizes, shape, text, sums: _infer(x, *sizes, shape=shape),
        View(_rows_dims, lambda view, index: index, keeps_order=True, renames=True, summed=_row_sums),
        samples=lambda: [((np.arange(6.0).reshape(2, 3) - 2.5, 3), {"shape": (2, HOLE), "text": OF_GRADIENT, "sums": True})],
        linear=(0,),
        vjp=lambda node, cotangent: (broadcast_to(cotangent, dims_of(node.inputs[0])), *(None,) * (len(node.inputs) - 1)),
        resizes=True,
    )
)
