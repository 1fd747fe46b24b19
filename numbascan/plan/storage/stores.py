"""Values written down: into locals, into memory, into every array that waits for them."""

from __future__ import annotations

from collections.abc import Callable

from ...ir.loops import Expr, Index, Load, Store
from ...ir.node import Node
from ...ops.card import Card
from ...ops.lowering import Passes
from ..lower.scope import Scope, cast, nest, scalar_name
from .placement import is_small
from .states import Rows
from .tensor_values import Indices, InLocals, InMemory, Value, indices_of


def fixed_dims(scope: Scope, node: Node, dims: Indices) -> Indices:
    """`dims` with what the type knows put in: a fixed number beats an expression, which must agree at run time. They stay what they are."""
    result: list[Index] = []
    for axis, (known, found) in enumerate(zip(node.type.shape, dims, strict=True)):
        if known is not None and not isinstance(found, int):
            scope.builder.same(found, known, "ValueError", f"{node.op.name}: dimension {axis} is {{0}}, expected {{1}}")
        result.append(scope.builder.settled("length", found) if known is None else known)
    return tuple(result)


def hint(node: Node) -> str:
    """A name for a value that the user gave none."""
    return {"multiply": "product", "add": "total", "subtract": "difference", "true_divide": "ratio"}.get(node.op.name, node.op.name)


def in_locals(scope: Scope, node: Node, elements: dict[tuple[int, ...], Expr]) -> InLocals:
    """One local per element."""
    builder, label = scope.builder, node.name or hint(node)
    named: dict[tuple[int, ...], Expr] = {}
    for index, expr in elements.items():
        name = "_".join((label, *map(str, index)))
        named[index] = expr if scalar_name(expr) else builder.let(name, expr)
    dims = tuple(dim or 0 for dim in node.type.shape)
    return InLocals(node.type, dims, named, builder, builder.block, label)


def filled(scope: Scope, node: Node, dims: Indices, element: Callable[[Indices], Expr]) -> InMemory:
    """The value in memory, written by one loop nest; into every array that waits for it."""
    places = destinations(scope, node, dims)

    def body(index: Indices) -> None:
        expr = element(index)
        if len(places) > 1 and not scalar_name(expr):
            expr = scope.builder.let(node.name, expr, hoist=False)
        for place in places:
            scope.builder.emit(store(place, index, expr))

    if is_small(node) and node.type.rank <= 1:
        for index in indices_of(node.type.shape):
            body(index)
    else:
        nest(scope.builder, dims, body)
    return places[0]


def destinations(scope: Scope, node: Node, dims: Indices) -> list[InMemory]:
    """The arrays that a value is to be written into, or a work row of its own."""
    waiting = scope.targets.get(node)
    if waiting:
        return [one.place(dims) for one in waiting]
    row = _row_ahead(scope, node)
    if row is not None:
        return [row.place(dims)]
    array = scope.builder.alloc(node.name or node.op.name, dims, node.type.dtype)
    return [InMemory(node.type, dims, array)]


def _row_ahead(scope: Scope, node: Node) -> Rows | None:
    """The row of a result that is this value with parts of it replaced, one after the other, and nothing else reads it."""
    while node not in scope.targets:
        readers = scope.readers.get(node, ())
        if len(readers) != 1 or not _replaces_part(readers[0], node):
            return None
        node = readers[0]
    (row, *others) = scope.targets[node]
    return row if isinstance(row, Rows) and not others else None


def _replaces_part(reader: Node, node: Node) -> bool:
    kind = reader.op.lower if isinstance(reader.op, Card) else None
    return isinstance(kind, Passes) and kind.inside is not None and reader.inputs[0] is node


def store(place: InMemory, index: Indices, expr: Expr, combine: str = "") -> Store:
    """The statement that writes one element of a value in memory."""
    load = place.at(index)
    assert isinstance(load, Load)
    return Store(load.array, load.index, cast(expr, place.type.dtype), combine)


def copied(scope: Scope, value: Value, place: InMemory) -> None:
    """Writes a value into an array, whose shape must be that of the value; values in locals without a loop."""
    for axis, (there, made) in enumerate(zip(place.dims, value.dims, strict=True)):
        if there != made:
            scope.builder.same(there, made, "ValueError", f"dimension {axis} of what is written is {{1}}, where {{0}} is expected")
    if isinstance(value, InLocals):
        for index, expr in value.elements.items():
            scope.builder.emit(store(place, index, expr))
        return
    nest(scope.builder, value.dims, lambda index: scope.builder.emit(store(place, index, value.at(index))))
