"""A lazy choice: only the branch taken runs. Both branches write the same locals or arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...ir.graph import Graph, users
from ...ir.loops import Alloc, If, Length, Let, Name, Stmt, negated
from ...ir.node import Node
from ...ops.control import branches
from ...types import TensorType
from ..builder import Builder, Indices
from ..casts import cast
from ..storage.inplace import Updates, updated_in_branch, updated_operand
from ..storage.placement import is_small
from ..storage.states import NextRow
from ..storage.stores import copied, is_there
from ..storage.tensor_values import InLocals, InMemory, Value
from ..target import Target
from .scope import Scope, is_made_in_place


def lower(scope: Scope, node: Node) -> list[Value]:
    """The values of a choice's results."""
    before = updated_operand(node, scope.target) if node in scope.targets else None
    target = None if before is None else scope.row_updated(node, before)
    if before is not None and target is not None:
        k = node.inputs.index(before) - 1
        return [_written(scope, node, target, [updated_in_branch(graph, k, scope.target) for graph in branches(node)])]
    target = next((row for row in scope.targets.get(node, ()) if isinstance(row, NextRow) and row.row.lead), None)
    if target is not None:  # a row that nothing has read yet
        return [_written(scope, node, target, [Updates() for _ in branches(node)])]
    builder = scope.builder
    condition = cast(scope.value(node.inputs[0]).at(()), "bool")
    operands = [scope.value(parent) for parent in node.inputs[1:]]
    names = [builder.fresh(output.name or "chosen") for output in branches(node)[0].outputs]
    sides, rows_of_sides = [], []
    for graph in branches(node):
        with builder.branch() as side:
            rows = [_SideRow(side, name, type_) for name, type_ in zip(names, node.types, strict=True)]
            pairs = zip(graph.outputs, rows, strict=True)
            targets = {output: [row] for output, row in pairs if _goes_nowhere_else(graph, output, scope.target)}
            inner = scope.inner(graph.outputs, dict(zip(graph.inputs, operands, strict=True)), targets)
            inner.run()
            for row, output in zip(rows, graph.outputs, strict=True):
                row.hold(builder, inner.value(output))
        rows_of_sides.append(rows)
        sides.append(side)
    results = [_result(scope, pair) for pair in zip(*rows_of_sides, strict=True)]
    builder.emit(If(condition, *sides))
    return results


def _written(scope: Scope, node: Node, target: NextRow, updates: Sequence[Updates]) -> Value:
    """The result in the row of a state. Each branch writes all of it, or, if an operand lies in the row, only its changes (`updates`)."""
    builder = scope.builder
    condition = cast(scope.value(node.inputs[0]).at(()), "bool")
    operands = [scope.value(parent) for parent in node.inputs[1:]]
    sides = []
    for graph, changes in zip(branches(node), updates, strict=True):
        (output,) = graph.outputs
        with builder.branch() as side:
            parts = [part for part, writes in changes.rows.items() if writes]
            targets = {part: [target] for part in [*parts, *([output] if is_made_in_place(output) else [])]}
            inner = scope.inner(graph.outputs, dict(zip(graph.inputs, operands, strict=True)), targets, changes.stored)
            inner.run(last=changes.rows)
            for part in changes.rows:
                inner.make(part)
            value = inner.value(output)
            if not is_made_in_place(output) and not is_there(value, target.row):
                copied(builder, value, target.place(value.dims))
        sides.append(side)
    then, otherwise = sides
    if then:
        builder.emit(If(condition, then, otherwise))
    elif otherwise:
        builder.emit(If(negated(condition), otherwise))
    return target.row


def _goes_nowhere_else(graph: Graph, output: Node, target: Target) -> bool:
    """True if a branch makes a result directly in its memory, and nothing else in the branch reads it."""
    is_alone = graph.outputs.count(output) == 1 and not users(graph.outputs).get(output)
    return is_alone and is_made_in_place(output) and not is_small(output, target)


@dataclass
class _SideRow:
    """A result of one branch, under a name that both share: its dimensions, and the statement before which it must be allocated."""

    side: list[Stmt]
    name: str
    type: TensorType
    dims: Indices = ()
    count: int | None = None  # statements of the branch before those that write it, once it is placed
    before: Stmt | None = None

    def place(self, dims: Indices) -> InMemory:
        self.dims, self.count = dims, len(self.side)
        return InMemory(self.type, dims, self.name)

    def hold(self, builder: Builder, value: Value) -> None:
        """Assigns the branch's value to the name, a number or the elements of an array, unless it was made there."""
        if not self.type.rank:
            builder.emit(Let(self.name, cast(value.at(()), self.type.dtype)))
            return
        if self.count is None:
            copied(builder, value, self.place(value.dims))
        self.before = next(iter(self.side[self.count :]), None)


def _result(scope: Scope, on_sides: Sequence[_SideRow]) -> Value:
    """The result, allocated before the choice if both branches have one shape that is known there, else in each branch."""
    builder, name, type_ = scope.builder, on_sides[0].name, on_sides[0].type
    builder.written[name] = builder.block
    if not type_.rank:
        return InLocals(type_, (), {(): Name(type_.dtype, name)}, builder, builder.block)
    dims = on_sides[0].dims
    if all(one.dims == dims for one in on_sides) and builder.is_known(*dims):
        builder.alloc_as(name, dims, type_.dtype)
        return InMemory(type_, dims, name)
    for one in on_sides:
        place = len(one.side) if one.before is None else next(k for k, stmt in enumerate(one.side) if stmt is one.before)
        one.side.insert(place, Alloc(name, one.dims, type_.dtype))
    dims = tuple(Length("int64", name, k) if dim is None else dim for k, dim in enumerate(type_.shape))
    builder.sides.update({dim: tuple(one.dims[k] for one in on_sides) for k, dim in enumerate(dims) if not isinstance(dim, int)})
    return InMemory(type_, dims, name)
