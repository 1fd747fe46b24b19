"""Values written down: into locals, or into memory."""

from __future__ import annotations

from ...ir.loops import Expr, Index, Load, Store
from ...ir.node import Node
from ...ops.card import Card
from ...ops.lowering import Passes
from ..builder import Builder, Indices
from ..casts import cast
from .tensor_values import InLocals, InMemory, Value


def fixed_dims(builder: Builder, node: Node, dims: Indices) -> Indices:
    """`dims` as lengths that no longer change: a number that the type fixes replaces an expression, which must agree at run time."""
    result: list[Index] = []
    for axis, (known, dim) in enumerate(zip(node.type.shape, dims, strict=True)):
        if known is not None and not isinstance(dim, int):
            builder.same(dim, known, "ValueError", f"{node.op.name}: dimension {axis} is {{0}}, expected {{1}}")
        result.append(builder.settled("length", builder.representative(dim)) if known is None else known)
    return tuple(result)


def label_of(node: Node) -> str:
    """The name of a value: the user's, or that of its card."""
    return node.name or (node.op.hint if isinstance(node.op, Card) else "") or node.op.name


def in_locals(builder: Builder, node: Node, elements: dict[tuple[int, ...], Expr]) -> InLocals:
    """One local per element."""
    label = label_of(node)
    named: dict[tuple[int, ...], Expr] = {}
    for index, expr in elements.items():
        named[index] = builder.let("_".join((label, *map(str, index))), expr)
    dims = tuple(dim or 0 for dim in node.type.shape)
    return InLocals(node.type, dims, named, builder, builder.block, label)


def replaces_part(reader: Node, node: Node) -> bool:
    """True if `reader` is the array `node` with a part of it replaced."""
    kind = reader.op.lower if isinstance(reader.op, Card) else None
    return isinstance(kind, Passes) and kind.inside is not None and reader.inputs[0] is node


def store(place: InMemory, index: Indices, expr: Expr, combine: str = "") -> Store:
    """The statement that writes one element of a value in memory."""
    load = place.at(index)
    assert isinstance(load, Load)
    return Store(load.array, load.index, cast(expr, place.type.dtype), combine)


def copied(builder: Builder, value: Value, place: InMemory) -> None:
    """Writes a value into an array, whose shape must be that of the value; values in locals without a loop."""
    for axis, (there, dim) in enumerate(zip(place.dims, value.dims, strict=True)):
        builder.same(there, dim, "ValueError", f"dimension {axis} of what is written is {{1}}, where {{0}} is expected")
    if isinstance(value, InLocals):
        for index, expr in value.elements.items():
            builder.emit(store(place, index, expr))
        return
    builder.nest(value.dims, lambda index: builder.emit(store(place, index, value.at(index))))


def is_there(value: Value, place: InMemory) -> bool:
    """True if a value lies in exactly this memory."""
    return isinstance(value, InMemory) and (value.array, value.lead, value.offset) == (place.array, place.lead, place.offset)
