"""A closed graph as the statements of a function: every node's lowering, and the names under which results are returned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...ir.graph import Graph
from ...ir.loop_node import SCAN
from ...ir.loops import Index, Name, Return, Stmt, add, compare
from ...ir.names import Names
from ...ir.node import Node
from ...ops.card import Card
from ...ops.control import IF_ELSE
from ..builder import Builder
from ..storage.arguments import KernelArguments
from ..storage.save_mem import may_end_early
from ..storage.stores import copied
from ..storage.tensor_values import InMemory, Value
from ..target import Target
from . import card, choice, loop
from .scope import FunctionContext, Scope


def _lower(scope: Scope, node: Node) -> list[Value]:
    """The values of a node's results, by the kind of its op."""
    if node.op is SCAN:
        return loop.lower(scope, node)
    if node.op is IF_ELSE:
        return choice.lower(scope, node)
    if isinstance(node.op, Card):
        return card.lower(scope, node)
    raise TypeError(f"{node.op.name} ({node}) cannot be compiled; it runs in mode='python'")


class FunctionBuilder:
    """The function in the making. `is_given`: which results are written into arrays of the caller."""

    def __init__(self, graph: Graph, target: Target, is_given: Sequence[bool], check_finite: bool, names: Names) -> None:
        self.graph = graph
        self.builder = Builder(names)
        self.arguments = KernelArguments(self.builder, graph, is_given)
        context = FunctionContext(self.builder, self.arguments, _lower, check_finite, target)
        self.scope = Scope(context, graph.outputs, self.arguments.inputs, out=self.arguments.out_of)

    def body(self) -> list[Stmt]:
        """The statements of the whole function, results returned."""
        self.scope.run()
        returned: set[str] = {argument.name for argument in self.arguments.declared}
        names = [self._returned(node, out, returned) for node, out in zip(self.graph.outputs, self.arguments.out, strict=True)]
        self.builder.emit(Return(tuple(names)))
        return self.builder.root.stmts

    def _returned(self, node: Node, out: InMemory | None, returned: set[str]) -> str:
        """The name under which one result is returned: an array that is neither an argument nor `returned` yet, or a number."""
        value = self.scope.value(node)
        if not node.type.rank:
            expr = value.at(())
            if isinstance(expr, Name):
                return expr.name
            return self.builder.variable(node.name or "result", expr, node.type.dtype).name
        if out is not None:
            return self._into(node, value, out)
        if isinstance(value, InMemory) and not value.lead and value.array not in returned | self.builder.views:
            returned.add(value.array)
            return self._cut(value)
        array = self.builder.alloc(node.name or "result", value.dims, node.type.dtype)
        copied(self.builder, value, InMemory(node.type, value.dims, array))
        return array

    def _cut(self, value: InMemory) -> str:
        """The rows of `value` that hold results: behind the initial rows, up to the last step."""
        allocated = self.builder.shapes.get(value.array)
        rows = value.dims[0]
        is_whole = value.offset == 0 and (allocated is None or allocated[0] == rows)
        if is_whole:
            return value.array
        stop = add(rows, value.offset)
        is_end = allocated is not None and allocated[0] == stop
        text = "[{0}:]" if is_end else "[{0}:{1}].copy()"  # a copy: the rest may be long
        return self.builder.alias(value.array.removesuffix("_path"), value.array, text, value.offset, stop)

    def _into(self, node: Node, value: Value, out: InMemory) -> str:
        """The caller's array, written unless the loop has written it."""
        if isinstance(value, InMemory) and value.array == out.array:
            rows = value.dims[0]
            if self.builder.are_equal(rows, out.dims[0]):
                return out.array
            return self._first_rows(out, rows)
        ends_early = may_end_early(node)
        for axis, (there, dim) in enumerate(zip(out.dims, value.dims, strict=True)):
            message = f"out=: dimension {axis} is {{0}}, the result has {{1}}"
            if axis == 0 and ends_early:  # how many rows there are only the run knows
                self.builder.check(compare(">=", there, dim), "ValueError", message, there, dim)
            else:
                self.builder.same(there, dim, "ValueError", message)
        copied(self.builder, value, replace(out, dims=value.dims))
        return self._first_rows(out, value.dims[0]) if ends_early else out.array

    def _first_rows(self, out: InMemory, rows: Index) -> str:
        return self.builder.alias(f"{out.array}_rows", out.array, "[:{0}]", rows)
