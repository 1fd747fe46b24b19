"""Functions from nodes to nodes, in which derivatives are written: on cards and in `grad/`.

Operands are nodes or numbers; numbers are weak. Cards are looked up by name, so that every file of cards can import this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from ..ir.graph import leaves
from ..ir.node import Node, constant, constant_value
from ..types import TensorType
from .card import apply, card_named
from .dims import dim_node, is_dim
from .runtime_attributes import SizedCard, sized

Operand = Node | complex | float | int


def node_of(value: Operand) -> Node:
    """A node itself; a number as a weak constant, as in the user's own expressions."""
    if isinstance(value, Node):
        return value
    dtype = "int64" if isinstance(value, int) else "float64" if isinstance(value, float) else "complex128"
    return constant(value, dtype, weak=True)


def call(name: str, *operands: Operand, **attrs: Any) -> Node:
    """The card of that name applied to nodes and numbers."""
    return apply(card_named(name), *map(node_of, operands), **attrs)


def _sized(name: str, arrays: tuple[Node, ...], nest: Any, **others: Any) -> Node:
    """The sized card of that name applied to arrays; `nest` is its attribute, with nodes in place of holes."""
    card = card_named(name)
    assert isinstance(card, SizedCard)
    return sized(card, arrays, nest, **others)


# arithmetic ---------------------------------------------------------------------------------------------------------


def add(a: Operand, b: Operand) -> Node:
    """a + b."""
    return call("add", a, b)


def sub(a: Operand, b: Operand) -> Node:
    """a - b."""
    return call("subtract", a, b)


def mul(a: Operand, b: Operand) -> Node:
    """a * b."""
    return call("multiply", a, b)


def div(a: Operand, b: Operand) -> Node:
    """a / b."""
    return call("true_divide", a, b)


def neg(a: Operand) -> Node:
    """-a."""
    return call("negative", a)


def power(a: Operand, b: Operand) -> Node:
    """a**b."""
    return call("power", a, b)


def square(a: Operand) -> Node:
    """a * a."""
    return call("square", a)


def where(condition: Operand, a: Operand, b: Operand) -> Node:
    """`a` where the condition holds, else `b`."""
    return call("where", condition, a, b)


def conj(a: Node) -> Node:
    """The complex conjugate; a real value is its own."""
    return call("conjugate", a) if a.type.kind == "c" else a


def cast(a: Node, dtype: str) -> Node:
    """`a` cast to a strong dtype. A complex value cast to a real dtype gives its real part."""
    if a.type.dtype == dtype and not a.type.weak:
        return a
    if a.type.kind == "c" and not dtype.startswith("complex"):
        a = call("real", a)
        return a if a.type.dtype == dtype else call("cast", a, dtype=dtype)
    return call("cast", a, dtype=dtype)


def total(terms: Sequence[Node | None]) -> Node | None:
    """The sum of the terms that are not None; None if all are."""
    there = [term for term in terms if term is not None]
    return reduce(add, there) if there else None


def terms_of(node: Node) -> list[Node]:
    """The terms of a sum of values of one type, from left to right."""
    return leaves(node, lambda one: one.op.name == "add" and all(parent.type == one.type for parent in one.inputs))


# shapes -------------------------------------------------------------------------------------------------------------


def dims_of(x: Node) -> tuple[Node, ...]:
    """The dimensions of `x` as nodes: weak constants where fixed, else those of the earliest value that has them."""
    return tuple(dim_node(x, axis) for axis in range(x.type.rank))


def broadcast_to(x: Node, dims: Sequence[Node | int]) -> Node:
    """`x` broadcast to a shape; `x` itself if it has that shape."""
    nodes = tuple(node_of(dim) for dim in dims)
    if same_dims(x, nodes):
        return x
    return _sized("broadcast_to", (x,), nodes)


def is_check(x: Node) -> bool:
    """True if `x` is its operand, checked for its dimensions. Open dimensions that meet are equal."""
    return isinstance(x.op, SizedCard) and x.op.resizes and x.type.shape == x.inputs[0].type.shape


def unchecked(x: Node) -> Node:
    """`x` without checks of its dimensions."""
    while is_check(x):
        x = x.inputs[0]
    return x


def same_dims(x: Node, dims: Sequence[Node]) -> bool:
    """True if `x` is known to have these dimensions."""
    return x.type.rank == len(dims) and all(_is_same(x, axis, dim) for axis, dim in enumerate(dims))


def _is_same(x: Node, axis: int, dim: Node) -> bool:
    known, number = x.type.shape[axis], constant_value(dim)
    if known is None or number is None:
        return known is None and number is None and is_dim(dim, x, axis)
    return known == int(number)


def full_like(x: Node, value: complex, dtype: str | None = None) -> Node:
    """An array of one value, with the shape of `x`, and its dtype unless another is given."""
    return broadcast_to(constant(value, dtype or x.type.dtype), dims_of(x))


def zeros_like(x: Node) -> Node:
    """Zeros in the shape and dtype of `x`."""
    return full_like(x, 0)


def is_zero(x: Node) -> bool:
    """True if `x` is a constant 0, or one broadcast."""
    return _is_everywhere(x, 0)


def is_one(x: Node) -> bool:
    """True if `x` is a constant 1, or one broadcast."""
    return _is_everywhere(x, 1)


def _is_everywhere(x: Node, number: int) -> bool:
    while x.op is card_named("broadcast_to"):
        x = x.inputs[0]
    value = constant_value(x)
    return value is not None and bool((value == number).all())


def axes_sum(x: Node, axes: Sequence[int], keepdims: bool = False) -> Node:
    """The sum over axes, in the dtype of `x`."""
    if not axes:
        return x
    return cast(call("sum", x, axis=tuple(axes), keepdims=keepdims), x.type.dtype)


def expand(x: Node, axes: Sequence[int]) -> Node:
    """`x` with new axes of length 1, at these places of the result."""
    rank = x.type.rank + len(axes)
    spec = tuple("newaxis" if axis in axes else (None, None, None) for axis in range(rank))
    return call("index", x, spec=spec) if axes else x


def transpose(x: Node, axes: Sequence[int]) -> Node:
    """`x` with its axes in another order."""
    return x if tuple(axes) == tuple(range(x.type.rank)) else call("transpose", x, axes=tuple(axes))


def swap_last(x: Node) -> Node:
    """The transposes of a stack of matrices."""
    rank = x.type.rank
    return transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def flip(x: Node) -> Node:
    """The rows of `x` from the last to the first."""
    return call("index", x, spec=((None, None, -1),))


def rows(x: Node, start: Operand | None = None, stop: Operand | None = None) -> Node:
    """`x[start:stop]`; the bounds may be known only to the run."""
    return indexed(x, (((start, stop, None)),))


def indexed(x: Node, spec: tuple[Any, ...]) -> Node:
    """`x[spec]`, with entries as in `index_entries.py`, and nodes where only the run knows."""
    return _sized("index", (x,), spec)


def incremented(x: Node, y: Node, spec: tuple[Any, ...]) -> Node:
    """`x` with `y` added inside a region."""
    return _sized("inc_subtensor", (x, y), spec)


def concatenate(arrays: Sequence[Node], axis: int = 0) -> Node:
    """The arrays joined along an axis."""
    return arrays[0] if len(arrays) == 1 else call("concatenate", *arrays, axis=axis)


def matmul(a: Node, b: Node) -> Node:
    """The product of matrices, or of stacks of matrices with equal leading axes."""
    lead = tuple(range(3, a.type.rank + 1))
    return call("contract", a, b, labels=((*lead, 0, 1), (*lead, 1, 2), (*lead, 0, 2)))


def sum_to(x: Node, like: Node) -> Node:
    """`x` summed to the shape of `like`, which was broadcast to that of `x`: the cotangent of a broadcast."""
    return summed_to(x, dims_of(like))


def summed_to(x: Node, dims: Sequence[Node | int]) -> Node:
    """`x` summed over the leading axes that `dims` lacks, and over the axes of length 1 in `dims`."""
    shape = tuple(node_of(dim) for dim in dims)
    if is_zero(x):
        return broadcast_to(constant(0, x.type.dtype), shape)
    x = axes_sum(x, range(x.type.rank - len(shape)))
    known = [constant_value(dim) for dim in shape]
    ones = [axis for axis, dim in enumerate(known) if dim is not None and int(dim) == 1 and x.type.shape[axis] != 1]
    x = axes_sum(x, ones, keepdims=True)
    return x if same_dims(x, shape) else _sized("sum_to", (x,), shape)


def is_float(type_: TensorType) -> bool:
    """True if the type has derivatives: if it is real or complex."""
    return type_.kind in "fc"


def known_as(x: Node, like: Node) -> Node:
    """`x` with the known dimensions of `like` in its type. Both must have the same shape."""
    places = zip(x.type.shape, like.type.shape, dims_of(x), strict=True)
    dims = [here if known is None or mine is not None else node_of(known) for mine, known, here in places]
    return broadcast_to(x, dims)


def taken(x: Node, spec: tuple[Any, ...]) -> Node:
    """`x[spec]`, where `spec` may hold arrays of positions."""
    has_arrays = any(isinstance(entry, Node) and entry.type.rank for entry in spec)
    return _sized("gather" if has_arrays else "index", (x,), spec) if spec else x


def written(x: Node, y: Operand, spec: tuple[Any, ...]) -> Node:
    """`x` with `y` in place of a region."""
    return _sized("set_subtensor", (x, node_of(y)), spec)


def counted(n: Operand) -> Node:
    """The integers from 0 to n - 1."""
    return _sized("arange", (constant(0, "int64"), constant(1, "int64")), (node_of(n),), dtype="int64")


def along_last(x: Node, places: Node) -> tuple[Node, ...]:
    """The index that takes `places` along the last axis of `x`, and every place along the others."""
    last, dims = x.type.rank - 1, dims_of(x)
    others = (expand(counted(dims[k]), [axis for axis in range(last + 1) if axis != k]) for k in range(last))
    return *others, places


def on_axis(entry: Any, axis: int) -> tuple[Any, ...]:
    """The index with `entry` on one axis, and whole axes before it."""
    return (*((None, None, None),) * axis, entry)


def flip_axis(x: Node, axis: int) -> Node:
    """`x` read backwards along an axis."""
    return call("index", x, spec=on_axis((None, None, -1), axis))


def to_last(x: Node, axis: int) -> Node:
    """`x` with an axis moved to the end."""
    return transpose(x, (*(k for k in range(x.type.rank) if k != axis), axis))


def from_last(x: Node, axis: int) -> Node:
    """`x` with its last axis moved to place `axis`."""
    last = x.type.rank - 1
    return transpose(x, (*range(axis), last, *range(axis, last)))
