"""A lazy choice: only the branch taken runs. Both sides write the same locals or arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...ir.loops import Alloc, If, Length, Let, Name, Stmt, negated
from ...ir.node import Node
from ...ops.control import branches
from ...types import TensorType
from ..builder import Indices
from ..casts import cast
from ..storage.inplace import updated_in_branch, updated_operand
from ..storage.states import NextRow
from ..storage.stores import copied, is_there
from ..storage.tensor_values import InLocals, InMemory, Value
from .scope import Scope


def lower(scope: Scope, node: Node) -> list[Value]:
    """The values of a choice's results."""
    before = updated_operand(node, scope.target) if node in scope.targets else None
    target = None if before is None else scope.row_updated(node, before)
    if before is not None and target is not None:
        return [_updated(scope, node, before, target)]
    builder = scope.builder
    condition = cast(scope.value(node.inputs[0]).at(()), "bool")
    operands = [scope.value(parent) for parent in node.inputs[1:]]
    names = [builder.fresh(output.name or "chosen") for output in branches(node)[0].outputs]
    sides, results_of_sides = [], []
    for graph in branches(node):
        with builder.branch() as side:
            inner = scope.inner(graph.outputs, dict(zip(graph.inputs, operands, strict=True)))
            inner.run()
            outputs = zip(names, node.types, graph.outputs, strict=True)
            results_of_sides.append([_bind(inner, name, type_, inner.value(output)) for name, type_, output in outputs])
        sides.append(side)
    pairs = zip(*results_of_sides, strict=True)
    results = [_result(scope, name, type_, pair) for name, type_, pair in zip(names, node.types, pairs, strict=True)]
    builder.emit(If(condition, *sides))
    return results


def _updated(scope: Scope, node: Node, before: Node, target: NextRow) -> Value:
    """The result in the row of an operand, where `before` lies: each side writes what it changes of that, or nothing."""
    builder, k = scope.builder, node.inputs.index(before) - 1
    condition = cast(scope.value(node.inputs[0]).at(()), "bool")
    operands = [scope.value(parent) for parent in node.inputs[1:]]
    sides = []
    for graph in branches(node):
        updates = updated_in_branch(graph, k, scope.target)
        with builder.branch() as side:
            targets = {part: [target] for part in updates.rows}
            inner = scope.inner(graph.outputs, dict(zip(graph.inputs, operands, strict=True)), targets, updates.stored)
            inner.run(last=updates.rows)
            for part in updates.rows:
                inner.make(part)
            value = inner.value(graph.outputs[0])
            if not is_there(value, target.row):
                copied(builder, value, target.place(value.dims))
        sides.append(side)
    then, otherwise = sides
    if then:
        builder.emit(If(condition, then, otherwise))
    elif otherwise:
        builder.emit(If(negated(condition), otherwise))
    return target.row


@dataclass(frozen=True)
class _SideResult:
    """A result of one side: its dimensions, and the statement before which its memory must be there."""

    dims: Indices
    side: list[Stmt]
    before: Stmt | None


def _bind(scope: Scope, name: str, type_: TensorType, value: Value) -> _SideResult:
    """Gives `name` the branch's value: a number, or the elements of an array."""
    side = scope.builder.block.stmts
    if not type_.rank:
        scope.builder.emit(Let(name, cast(value.at(()), type_.dtype)))
        return _SideResult((), side, None)
    count = len(side)
    copied(scope.builder, value, InMemory(type_, value.dims, name))
    return _SideResult(value.dims, side, side[count] if count < len(side) else None)


def _result(scope: Scope, name: str, type_: TensorType, on_sides: Sequence[_SideResult]) -> Value:
    """The result, in memory taken before the choice if both sides have one shape that is known there, else by each side."""
    builder = scope.builder
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
