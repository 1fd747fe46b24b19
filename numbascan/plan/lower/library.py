"""Calls of routines on whole arrays, one per element of the leading axes."""

from __future__ import annotations

from dataclasses import replace

from ...ir.loops import Alias, Call, Expr, Index, Literal, Name, Template
from ...ir.node import Node
from ...ops.lowering import Library
from ...types import TensorType
from ..builder import Indices
from ..casts import cast
from ..storage.stores import copied
from ..storage.tensor_values import Computed, InLocals, InMemory, Value
from . import scalar_routines
from .routine_operands import array_of, in_memory
from .scope import NodeOperands, Scope, location


def lower(scope: Scope, node: Node, kind: Library) -> list[Value]:
    """The values of a routine's results."""
    if kind.message:
        kind = replace(kind, message=kind.message + location(scope, node))
    values = scalar_routines.lower(scope, node, kind)
    if values is not None:
        return values
    view = NodeOperands(scope, node)
    operand_ranks, result_ranks = kind.core
    types = tuple(parent.type for parent in node.inputs)
    dtypes = tuple(type_.dtype for type_ in types) if kind.dtypes is None else kind.dtypes(*types)
    results = [_result(scope, node, type_, dims, rank) for type_, dims, rank in zip(node.types, kind.dims(view), result_ranks, strict=True)]
    routine = kind.routine(*types)
    statics = tuple(repr(value) for value in kind.statics(view.attrs))
    batch_rank = len(node.types[0].shape) - result_ranks[0]
    batch = results[0].dims[:batch_rank]
    parents = zip(node.inputs, dtypes, operand_ranks, strict=False)  # further inputs are sizes of results: not passed on
    operands = [_operand(scope, parent, dtype, rank) for parent, dtype, rank in parents]

    def call(index: Indices) -> None:
        operand_parts = [_element(scope, operand, index) for operand in operands]
        result_parts = [_element(scope, result.array, index) for result in results]
        scope.builder.emit(Call(routine, (*result_parts, *operand_parts, *statics), kind.message, tuple(result_parts)))

    scope.builder.nest(batch, call, letters="bcdefg")
    return [_seen(scope, node, k, result, result_ranks[k]) for k, result in enumerate(results)]


def _result(scope: Scope, node: Node, type_: TensorType, dims: Indices, core_rank: int) -> InMemory:
    """Memory for one result; one of core rank 0 has a last axis of length 1 that only the routine sees."""
    shape: tuple[Index, ...] = tuple(known if known is not None else dim for known, dim in zip(type_.shape, dims, strict=True))
    stored = shape if core_rank else (*shape, 1)
    array = scope.builder.alloc(node.name or node.op.name, stored, type_.dtype)
    return InMemory(type_, shape, array)


def _operand(scope: Scope, parent: Node, dtype: str, core_rank: int) -> str:
    value = scope.value(parent)
    if core_rank == 0 and not value.dims:
        name = scope.builder.let(None, cast(value.at(()), dtype), hoist=False)
        return _text_of(name)
    return array_of(scope, in_memory(scope, parent), dtype)  # a row of a table is passed without a copy


def _text_of(expr: Expr) -> str:
    """The text of a scalar argument of a routine, with its dtype visible."""
    if isinstance(expr, Name):
        return expr.name
    assert isinstance(expr, Literal)
    return repr(expr.value) if expr.dtype in ("bool", "int64", "float64", "complex128") else f"np.{expr.dtype}({expr.value!r})"


def _element(scope: Scope, array: str, index: Indices) -> str:
    """The part of an array that one call gets."""
    if not index:
        return array
    places = ", ".join(f"{{{k}}}" for k in range(len(index)))
    name = scope.builder.fresh(f"{array}_part", "part")
    scope.builder.emit(Alias(name, array, Template(f"[{places}]"), index))
    return name


def _seen(scope: Scope, node: Node, k: int, result: InMemory, core_rank: int) -> Value:
    """A result as the graph sees it."""
    if core_rank:
        targets = scope.targets.get(node, ()) if len(node.types) == 1 else ()
        for target in targets:
            copied(scope.builder, result, target.place(result.dims))
        return result
    if not result.dims:
        element = InMemory(result.type, (1,), result.array).at((0,))
        name = scope.builder.let(node.name or f"{node.op.name}_{k}", element, hoist=False)
        return InLocals(result.type, (), {(): name}, scope.builder, scope.builder.block)
    full = InMemory(result.type, (*result.dims, 1), result.array)
    return Computed(result.type, result.dims, lambda index: full.at((*index, 0)))
