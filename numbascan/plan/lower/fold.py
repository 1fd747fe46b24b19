"""Reductions: accumulators in locals, loops over the reduced axes inside loops over the others."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.loops import Expr, Index, Name, add, compare, mul
from ...ir.node import Node
from ...ops.lowering import Fold, only
from ..builder import Indices
from ..casts import cast
from ..storage.placement import Placement
from ..storage.stores import copied, fixed_dims, in_locals, store
from ..storage.tensor_values import InLocals, InMemory, Value, indices_of
from .scope import Scope


def lower(scope: Scope, node: Node, kind: Fold) -> Value:
    """The value of a reduction."""
    operand = scope.value(node.inputs[0])
    axes = _axes(node)
    if not kind.allow_empty:
        for axis in axes:
            message = f"{node.op.name}: zero elements to reduce along axis {axis}, and no identity"
            scope.builder.check(compare("!=", operand.dims[axis], 0), "ValueError", message)
    if kind.cumulative:
        return _cumulative(scope, node, kind, operand, axes[0])
    others = [axis for axis in range(len(operand.dims)) if axis not in axes]
    keepdims = bool(node.attr("keepdims"))
    operand_dims = [1 if axis in axes else dim for axis, dim in enumerate(operand.dims) if keepdims or axis not in axes]
    dims = fixed_dims(scope.builder, node, tuple(operand_dims))

    def element(index: Indices) -> Expr:
        outer = [index[axis] for axis in others] if keepdims else list(index)
        return _reduced(scope, node, kind, operand, axes, dict(zip(others, outer, strict=True)))

    if node not in scope.targets and (not dims or scope.placement(node) is Placement.LOCALS):
        elements = {index: element(index) for index in indices_of(node.type.shape)}
        if not dims:
            number = scope.builder.let(node.name, elements[()], hoist=False)
            return InLocals(node.type, (), {(): number}, scope.builder, scope.builder.block)
        return in_locals(scope.builder, node, elements)
    places = scope.destinations(node, dims)
    if _goes_row_by_row(node, kind, operand, axes):
        _row_by_row(scope, node, kind, operand, others, places)
        return places[0]

    def body(index: Indices) -> None:
        expr = element(index)
        for place in places:
            scope.builder.emit(store(place, index, expr))

    scope.builder.nest(dims, body)
    return places[0]


def _goes_row_by_row(node: Node, kind: Fold, operand: Value, axes: Sequence[int]) -> bool:
    """Are whole rows reduced, element by element, into a result of the very dtype in which that is done?"""
    dtypes = kind.loop(operand.type)
    return bool(axes) and len(operand.dims) - 1 not in axes and dtypes == (node.type.dtype,) and kind.finish is only


def _row_by_row(scope: Scope, node: Node, kind: Fold, operand: Value, others: Sequence[int], places: Sequence[InMemory]) -> None:
    """The result grows with every row of the operand: memory is read in its order, and the SIMD unit takes a row."""
    place, dtype = places[0], node.type.dtype
    (start,) = kind.start(dtype)
    keepdims = bool(node.attr("keepdims"))

    def at(index: Indices) -> Indices:
        return tuple(index[axis] if axis in others else 0 for axis in range(len(index)) if keepdims or axis in others)

    def grow(index: Indices) -> None:
        (total,) = kind.step((place.at(at(index)),), cast(operand.at(index), dtype), 0)
        scope.builder.emit(store(place, at(index), cast(total, dtype)))

    scope.builder.nest(place.dims, lambda index: scope.builder.emit(store(place, index, cast(start, dtype))))
    scope.builder.nest(operand.dims, grow)
    for other in places[1:]:
        copied(scope.builder, place, other)


def _axes(node: Node) -> tuple[int, ...]:
    axes = node.attr("axis")
    assert isinstance(axes, tuple)
    return axes


def _reduced(scope: Scope, node: Node, kind: Fold, operand: Value, axes: Sequence[int], fixed: dict[int, Index]) -> Expr:
    """One element of the result: the statements that accumulate it, and the expression that finishes it."""
    builder = scope.builder
    dtypes = kind.loop(operand.type)
    accumulators = _started(scope, node, kind, dtypes)

    def body(index: Indices) -> None:
        where = {**fixed, **dict(zip(axes, index, strict=True))}
        element = cast(operand.at(tuple(where[axis] for axis in range(len(operand.dims)))), dtypes[0])
        if len(accumulators) > 1:
            element = builder.let(None, element, hoist=False)
        position: Index = 0
        for axis, i in zip(axes, index, strict=True):
            position = add(mul(position, operand.dims[axis]), i)
        _advance(scope, accumulators, kind.step(accumulators, element, position))

    builder.nest([operand.dims[axis] for axis in axes], body, letters="klmnpqij" if fixed else "ijklmnpq")
    builder.stay(accumulator.name for accumulator in accumulators)
    return cast(kind.finish(accumulators), node.type.dtype)


def _started(scope: Scope, node: Node, kind: Fold, dtypes: tuple[str, ...]) -> tuple[Name, ...]:
    starts = kind.start(*dtypes)
    names = [node.name or node.op.name, *(f"{node.op.name}_at" for _ in starts[1:])]
    return tuple(scope.builder.variable(name, cast(start, dtype), dtype) for name, start, dtype in zip(names, starts, dtypes, strict=True))


def _advance(scope: Scope, accumulators: Sequence[Name], exprs: Sequence[Expr]) -> None:
    """Gives all accumulators their next values at once: of several, each reads the others as they were."""
    exprs = [cast(expr, name.dtype) for name, expr in zip(accumulators, exprs, strict=True)]
    if len(exprs) > 1:
        pairs = zip(accumulators, exprs, strict=True)
        exprs = [scope.builder.let(f"{name.name}_next", expr, hoist=False) for name, expr in pairs]
    for name, expr in zip(accumulators, exprs, strict=True):
        scope.builder.assign(name, expr)


def _cumulative(scope: Scope, node: Node, kind: Fold, operand: Value, axis: int) -> Value:
    """Every partial result along one axis."""
    dims = fixed_dims(scope.builder, node, operand.dims)
    places = scope.destinations(node, dims)
    others = [dim for k, dim in enumerate(dims) if k != axis]
    dtypes = kind.loop(operand.type)

    def along(outer: Indices) -> None:
        accumulators = _started(scope, node, kind, dtypes)
        with scope.builder.loop("k", dims[axis]) as k:
            index = (*outer[:axis], k, *outer[axis:])
            _advance(scope, accumulators, kind.step(accumulators, cast(operand.at(index), dtypes[0]), k))
            for place in places:
                scope.builder.emit(store(place, index, kind.finish(accumulators)))

    scope.builder.nest(others, along)
    return places[0]
