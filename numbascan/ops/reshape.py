"""Reshaping in C order. Only axes whose lengths change cost index arithmetic.

Entries of the attribute `shape` are sizes, -1 for what is left over, or ("dim", k) for the k-th dimension of the operand: dimensions
that stay as they are, known or not, cancel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.loops import Index, compare, floor_div, mod
from ..ir.node import Node, constant_value
from ..types import TensorType, show_shape
from .algebra import dims_of
from .card import at_line, register
from .lowering import Indices, Operands, View
from .runtime_attributes import (
    HOLE,
    SizedCard,
    filled,
    must_equal,
    not_negative,
    product,
    quotient,
    ravelled,
    run_numbers,
    sized,
    unravelled,
)

Shape = tuple[Any, ...]


class _ReshapeCard(SizedCard):
    """Rebuilt, it has the operand's dimensions that became known as numbers."""

    def rebuilt(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        return reshaped(inputs[0], filled(node.attr("shape"), iter(inputs[1:])))


def reshaped(x: Node, shape: Shape) -> Node:
    """The node of x in another shape, whose entries may be nodes. One of x's own dimensions is marked: no run need compare the two."""
    known, dims = x.type.shape, dims_of(x) if any(isinstance(part, Node) for part in shape) else ()
    own = [_own_dim(dims, k, part) if isinstance(part, Node) else part for k, part in enumerate(shape)]
    return sized(RESHAPE, (x,), tuple(known[part[1]] if _is_dim(part) and known[part[1]] is not None else part for part in own))


def _own_dim(dims: Sequence[Node], k: int, entry: Node) -> Any:
    """An entry of a shape; `("dim", axis)` if it is a dimension of the operand, of several equal ones that of the same place."""
    own = [axis for axis, dim in enumerate(dims) if dim is entry and constant_value(dim) is None]
    return entry if not own else ("dim", k if k in own else own[0])


def _is_dim(entry: Any) -> bool:
    return isinstance(entry, tuple)


def _type(x: TensorType, *sizes: TensorType, shape: Shape) -> TensorType:
    result = [entry if isinstance(entry, int) and entry >= 0 else x.shape[entry[1]] if _is_dim(entry) else None for entry in shape]
    sources = [entry[1] for entry in shape if _is_dim(entry)]
    rest = [dim for k, dim in enumerate(x.shape) if k not in sources]
    others = [entry for entry in shape if isinstance(entry, int) and entry != -1]
    if None in rest or HOLE in shape:
        return TensorType(x.dtype, tuple(result))
    size, taken = math.prod(dim or 0 for dim in rest), math.prod(others)
    fits = taken == size if -1 not in shape else bool(taken) and size % taken == 0
    if not fits and not sources:  # a dimension that stays may be 0 in the run: then the run decides
        raise ValueError(f"np.reshape: {show_shape(x.shape)} has {size} elements, which do not fit {_show(shape)}{at_line()}")
    if -1 in shape and fits:
        result[shape.index(-1)] = size // taken
    return TensorType(x.dtype, tuple(result))


def _show(shape: Shape) -> str:
    return show_shape(tuple(entry if isinstance(entry, int) else None for entry in shape))


def _asked(view: Operands) -> Indices:
    """The sizes that the attribute names; -1 stays."""
    ins = view.dims(0)
    asked: Indices = run_numbers(view, tuple(ins[entry[1]] if _is_dim(entry) else entry for entry in view.attrs["shape"]), 1)
    return asked


def _result_dims(view: Operands) -> Indices:
    asked = _asked(view)
    if -1 not in asked:
        return asked
    rest = quotient(view.dims(0), tuple(dim for dim in asked if dim != -1))
    if rest is None:
        size, taken = _but_own(view, asked)
        rest = floor_div(size, taken)
    return tuple(rest if dim == -1 else dim for dim in asked)


def _but_own(view: Operands, asked: Indices) -> tuple[Index, Index]:
    """The number of elements, and the product of the sizes asked for but -1, both without the dimensions that stay as they are."""
    shape, left = view.attrs["shape"], dict(enumerate(view.dims(0)))
    others = [
        dim for entry, dim in zip(shape, asked, strict=True) if dim != -1 and not (_is_dim(entry) and left.pop(entry[1], None) is not None)
    ]
    return product(left.values()), product(others)


def _checked_dims(view: Operands) -> Indices:
    shape, ins, asked = view.attrs["shape"], view.dims(0), _asked(view)
    for entry, dim in zip(shape, asked, strict=True):
        if entry == HOLE:
            not_negative(view, dim, "np.reshape")
    others = tuple(dim for dim in asked if dim != -1)
    rest, size, taken = quotient(ins, others), product(ins), product(others)
    message = f"np.reshape: an array of {{0}} elements does not fit the shape {_show(shape)}, whose known part has {{1}}"
    if -1 in shape and rest is None:
        view.check(compare("!=", taken, 0), "ValueError", message, size, taken)
        view.check(compare("==", mod(*_but_own(view, asked)), 0), "ValueError", message, size, taken)
    elif -1 not in shape and rest != 1:
        must_equal(view, size, taken, message)
    return _result_dims(view)


def _index(view: Operands, index: Indices) -> Indices:
    ins, outs = view.dims(0), _result_dims(view)
    places: list[Index] = [0] * len(ins)
    for in_axes, out_axes in axis_groups(ins, outs):
        flat = ravelled(tuple(index[axis] for axis in out_axes), tuple(outs[axis] for axis in out_axes))
        for axis, i in zip(in_axes, unravelled(flat, tuple(ins[axis] for axis in in_axes)), strict=True):
            places[axis] = i
    return tuple(places)


def axis_groups(ins: Indices, outs: Indices) -> list[tuple[list[int], list[int]]]:
    """Groups of axes of an array and of its reshaped form, with equally many elements, as small as can be told.

    >>> axis_groups((4, 3, 5), (12, 1, 5))
    [([0, 1], [0]), ([2], [2])]

    Only the first group needs arithmetic. Axes of length 1 are in no group.
    """
    left = [axis for axis, dim in enumerate(ins) if dim != 1]
    right = [axis for axis, dim in enumerate(outs) if dim != 1]
    groups: list[tuple[list[int], list[int]]] = []
    while left and right:
        a, b = [left.pop(0)], [right.pop(0)]
        while (more := quotient(tuple(ins[k] for k in a), tuple(outs[k] for k in b))) != 1:
            less = quotient(tuple(outs[k] for k in b), tuple(ins[k] for k in a))
            if more is not None and right:
                b.append(right.pop(0))
            elif less is not None and left:
                a.append(left.pop(0))
            elif right and left and _both_fixed(ins, a, outs, b):  # 4·3 against 6·2: neither divides the other yet
                a, b = [*a, left.pop(0)], [*b, right.pop(0)]
            else:  # sizes that only the run knows: all the rest is one group
                a, b, left, right = a + left, b + right, [], []
                break
        groups.append((a, b))
    if groups and (left or right):
        groups[-1] = (groups[-1][0] + left, groups[-1][1] + right)
    return groups


def _both_fixed(ins: Indices, a: list[int], outs: Indices, b: list[int]) -> bool:
    return all(isinstance(ins[k], int) for k in a) and all(isinstance(outs[k], int) for k in b)


def _evaluate(x: Any, *sizes: Any, shape: Shape) -> Any:
    entries = filled(shape, iter(sizes))
    return np.reshape(x, tuple(np.shape(x)[entry[1]] if _is_dim(entry) else int(entry) for entry in entries))


def _samples() -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    x = np.arange(24.0).reshape(2, 3, 4) * 1.5 - 7
    shapes: list[Shape] = [(6, 4), (24,), (2, 1, 3, 4, 1), (2, -1), (3, 8), (4, 3, 2), (("dim", 0), -1), (-1, 1, ("dim", 2)), (-1,), (4, 6)]
    kinds: list[tuple[tuple[Any, ...], dict[str, Any]]] = [((x,), {"shape": shape}) for shape in shapes]
    return [*kinds, ((x, 6), {"shape": (HOLE, -1)}), ((x, 8, 3), {"shape": (HOLE, HOLE)}), ((x[:1, :1, 0],), {"shape": ()})]


def _reshaped_back(node: Node, cotangent: Node) -> tuple[Node | None, ...]:
    return reshaped(cotangent, dims_of(node.inputs[0])), *(None,) * (len(node.inputs) - 1)


RESHAPE = register(
    _ReshapeCard(
        "reshape", _evaluate, _type, View(_checked_dims, _index, keeps_order=True), samples=_samples, linear=(0,), vjp=_reshaped_back
    )
)
