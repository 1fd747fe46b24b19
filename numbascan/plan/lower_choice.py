"""A lazy choice: only the branch taken runs. Both sides write the same locals or arrays."""

from __future__ import annotations

from ..ir.loops import If, Index, Length, Let, Name
from ..ir.node import Node
from ..ops.control import branches
from ..types import TensorType
from .scope import Scope, cast
from .values import InLocals, InMemory, Value
from .write import copied


def lower(scope: Scope, node: Node) -> list[Value]:
    """The values of a choice's results."""
    builder = scope.builder
    condition = cast(scope.value(node.inputs[0]).at(()), "bool")
    operands = [scope.value(parent) for parent in node.inputs[1:]]
    names = [builder.fresh(output.name or "chosen") for output in branches(node)[0].outputs]
    sides = []
    for graph in branches(node):
        with builder.branch() as side:
            inner = Scope(scope.kernel, graph.outputs, dict(zip(graph.inputs, operands, strict=True)))
            inner.run()
            for name, type_, output in zip(names, node.types, graph.outputs, strict=True):
                _bind(inner, name, type_, inner.value(output))
        sides.append(side)
    builder.emit(If(condition, *sides))
    return [_result(scope, name, type_) for name, type_ in zip(names, node.types, strict=True)]


def _bind(scope: Scope, name: str, type_: TensorType, value: Value) -> None:
    """Gives `name` the branch's value: a number, or an array of the branch's shape."""
    from ..ir.loops import Alloc

    if not type_.rank:
        scope.builder.emit(Let(name, cast(value.at(()), type_.dtype)))
        return
    scope.builder.emit(Alloc(name, value.dims, type_.dtype))
    copied(scope, value, InMemory(type_, value.dims, name))


def _result(scope: Scope, name: str, type_: TensorType) -> Value:
    scope.builder.written[name] = scope.builder.block
    if not type_.rank:
        return InLocals(type_, (), {(): Name(type_.dtype, name)}, scope.builder, scope.builder.block)
    dims: tuple[Index, ...] = tuple(Length("int64", name, k) if dim is None else dim for k, dim in enumerate(type_.shape))
    return InMemory(type_, dims, name)
