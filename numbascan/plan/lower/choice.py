"""A lazy choice: only the branch taken runs. Both branches write the same locals or arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...ir.graph import Graph, users
from ...ir.loops import Alloc, If, Length, Let, Name, Stmt, negated
from ...ir.node import Node, outputs_of
from ...ops.control import branches
from ...types import TensorType
from ..builder import Builder, Indices
from ..casts import cast
from ..storage.inplace import Updates, updated_in_branch, updated_results
from ..storage.placement import is_small
from ..storage.states import Destination, NextRow
from ..storage.stores import copied, is_there
from ..storage.tensor_values import InLocals, InMemory, Value
from ..target import Target
from .scope import Scope, is_made_in_place


def lower(scope: Scope, node: Node) -> list[Value]:
    """The values of a choice's results.

    One that updates what lies in the row of a state is made there: each branch writes its changes. So is a row that nothing has read yet.
    """
    places, rows = _updated_rows(scope, node)
    if not places and len(node.types) == 1:
        fresh = next((row for row in scope.targets.get(node, ()) if isinstance(row, NextRow) and row.row.lead), None)
        rows = {} if fresh is None else {0: fresh}
    builder = scope.builder
    condition = cast(scope.value(node.inputs[0]).at(()), "bool")
    operands = [scope.value(parent) for parent in node.inputs[1:]]
    outputs = branches(node)[0].outputs
    others = {k: builder.fresh(output.name or "chosen") for k, output in enumerate(outputs) if k not in rows}
    sides, rows_of_sides = [], []
    for graph, holds in zip(branches(node), (condition, negated(condition)), strict=True):
        with builder.branch() as side:
            builder.learn(holds)
            own = {k: _SideRow(side, name, node.types[k]) for k, name in others.items()}
            _make(scope, graph, operands, rows, own, updated_in_branch(graph, places, scope.target) if places else Updates())
        rows_of_sides.append(own)
        sides.append(side)
    results = [rows[k].row if k in rows else _result(scope, [own[k] for own in rows_of_sides]) for k in range(len(node.types))]
    then, otherwise = sides
    if then:
        builder.emit(If(condition, then, otherwise))
    elif otherwise:
        builder.emit(If(negated(condition), otherwise))
    return results


def _updated_rows(scope: Scope, node: Node) -> tuple[dict[int, int], dict[int, NextRow]]:
    """By result: the number of the argument that it updates, and the row of a state that holds the argument and is to hold the result."""
    places: dict[int, int] = {}
    rows: dict[int, NextRow] = {}
    outputs = outputs_of(node)
    wanted = [k for k, output in enumerate(outputs) if any(isinstance(row, NextRow) for row in scope.targets.get(output, ()))]
    for k, argument in updated_results(node, scope.target).items() if wanted else ():
        row = scope.row_updated(outputs[k], node.inputs[1 + argument]) if k in wanted else None
        if row is not None:
            places[k], rows[k] = argument, row
    return places, rows


def _make(
    scope: Scope, graph: Graph, operands: Sequence[Value], rows: Mapping[int, NextRow], own: Mapping[int, _SideRow], changes: Updates
) -> None:
    """The statements of a branch. rows: of states, by result. own: memory for the other results. changes: what overwrites a row, last."""
    builder, outputs = scope.builder, graph.outputs
    targets: dict[Node, list[Destination]] = {}
    for k, row in rows.items():
        parts = [part for part, writes in changes.rows.items() if outputs[k] in writes]
        for part in dict.fromkeys([*parts, *([outputs[k]] if is_made_in_place(outputs[k]) else [])]):
            targets.setdefault(part, []).append(row)
    for k, mine in own.items():
        if _goes_nowhere_else(graph, outputs[k], scope.target):
            targets.setdefault(outputs[k], []).append(mine)
    inner = scope.inner(outputs, dict(zip(graph.inputs, operands, strict=True)), targets, changes.stored)
    inner.run(last=changes.rows)
    for k, mine in own.items():  # before a row is overwritten that they read
        if outputs[k] not in changes.rows:
            mine.hold(builder, inner.value(outputs[k]))
    for part in changes.rows:
        inner.make(part)
    for k, mine in own.items():
        if outputs[k] in changes.rows:
            mine.hold(builder, inner.value(outputs[k]))
    for k, row in rows.items():
        value = inner.value(outputs[k])
        if not is_made_in_place(outputs[k]) and not is_there(value, row.row):
            copied(builder, value, row.place(value.dims))


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
