"""Reductions: accumulators in locals, loops over the reduced axes inside loops over the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...ir.loops import AND, BIT_OR, CHOICE_BETWEEN, LEAST, OR, Apply, Expr, Index, Literal, Name, Template, add, choice, compare, mul, sub
from ...ir.node import Node
from ...ops.lowering import Fold
from ..builder import Indices
from ..casts import cast
from ..storage.placement import Placement, places_of
from ..storage.stores import copied, fixed_dims, in_locals, store
from ..storage.tensor_values import InLocals, InMemory, Value, indices_of
from .scope import Scope

_IS_NEW = Template("{0} == {0} and {0} != {1}", AND, (BIT_OR, BIT_OR))
"""Whether an extreme has changed ({0} before, {1} after). A NaN never changes."""
_IS_BETTER = {sign: Template(f"{{0}} == {{0}} and not {{0}} {sign} {{1}}", AND, (BIT_OR, BIT_OR)) for sign in (">=", "<=")}
"""Whether an element ({1}) beats the extreme so far ({0}). A NaN does, and nothing beats a NaN."""
_IS_IT = Template("{0} == {1} or {0} != {0}", OR, (BIT_OR, BIT_OR))
"""Whether an element is the extreme. If there is a NaN, it is the extreme, and equals nothing."""


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
    is_by_row = _goes_row_by_row(node, kind, operand, axes)
    extremes = _extremes_with_places(scope, node) if is_by_row and node not in scope.targets else None
    if extremes is not None:
        return InMemory(node.type, dims, extremes.array)
    places = scope.destinations(node, dims)
    if is_by_row:
        _row_by_row(scope, node, kind, operand, others, places)
        return places[0]

    def body(index: Indices) -> None:
        expr = element(index)
        for place in places:
            scope.builder.emit(store(place, index, expr))

    scope.builder.nest(dims, body)
    return places[0]


def _goes_row_by_row(node: Node, kind: Fold, operand: Value, axes: Sequence[int]) -> bool:
    """True if whole rows are reduced, element by element, into a result of the dtype in which they are reduced."""
    return bool(axes) and len(operand.dims) - 1 not in axes and (kind.is_place or kind.loop(operand.type) == node.type.dtype)


def _extremes_with_places(scope: Scope, node: Node) -> InMemory | None:
    """The extremes, if the graph also reads their places: one pass makes both. None if it does not."""
    places = places_of(node, scope.readers[node.inputs[0]])
    if places is None:
        return None
    if places not in scope.last:
        scope.make(places)
    extremes = scope.prepared.get((places, "extremes"))
    return extremes if isinstance(extremes, InMemory) else None


def _row_by_row(scope: Scope, node: Node, kind: Fold, operand: Value, others: Sequence[int], places: Sequence[InMemory]) -> None:
    """Accumulates the result row by row: memory is read in order, and the SIMD unit takes a row."""
    builder, place, dtype = scope.builder, places[0], kind.loop(operand.type)
    axes, keepdims = _axes(node), bool(node.attr("keepdims"))
    totals = place
    if kind.is_place:
        totals = InMemory(node.type.with_dtype(dtype), place.dims, builder.alloc(f"{node.op.name}_of", place.dims, dtype))
        scope.prepared[node, "extremes"] = totals

    def at(index: Indices) -> Indices:
        return tuple(index[axis] if axis in others else 0 for axis in range(len(index)) if keepdims or axis in others)

    def begin(index: Indices) -> None:
        builder.emit(store(totals, index, kind.start(dtype)))
        if kind.is_place:
            builder.emit(store(place, index, Literal("int64", 0)))

    def grow(index: Indices) -> None:
        here, element = at(index), cast(operand.at(index), dtype)
        if not kind.is_place:
            builder.emit(store(totals, here, cast(kind.step(totals.at(here), element), dtype)))
            return
        before = builder.let("before", totals.at(here), hoist=False)
        at_before = builder.let("at", place.at(here), hoist=False)
        if dtype.startswith("complex"):  # complex numbers have no < and >
            after = builder.let("after", cast(kind.step(before, element), dtype), hoist=False)
            is_new: Expr = Apply("bool", _IS_NEW, (before, after))
        else:  # two comparisons decide everything: an extreme that respects NaN would take three operations more
            element = builder.let(None, element, hoist=False)
            is_new = builder.let("is_new", Apply("bool", _IS_BETTER[kind.place_stays], (before, element)), hoist=False)
            after = Apply(dtype, CHOICE_BETWEEN, (is_new, element, before))
        builder.emit(store(totals, here, after))
        builder.emit(store(place, here, Apply("int64", CHOICE_BETWEEN, (is_new, _position(axes, index, operand.dims), at_before))))

    builder.nest(place.dims, begin)
    builder.nest(operand.dims, grow)
    for other in places[1:]:
        copied(builder, place, other)


def _position(axes: Sequence[int], index: Indices, dims: Indices) -> Index:
    """The flat index within the reduced axes."""
    position: Index = 0
    for axis in axes:
        position = add(mul(position, dims[axis]), index[axis])
    return position


def _axes(node: Node) -> tuple[int, ...]:
    axes = node.attr("axis")
    assert isinstance(axes, tuple)
    return axes


def _reduced(scope: Scope, node: Node, kind: Fold, operand: Value, axes: Sequence[int], fixed: dict[int, Index]) -> Expr:
    """One element of the result: emits the statements that accumulate it, and returns the expression of it."""
    builder, dtype = scope.builder, kind.loop(operand.type)

    def folded(name: str, start: Expr, step: Callable[[Name, Expr, Index], Expr]) -> Name:
        """An accumulator over all elements. `step` gives its next value from itself, an element and the element's position."""
        accumulator = builder.variable(name, start, start.dtype)

        def body(index: Indices) -> None:
            where = {**fixed, **dict(zip(axes, index, strict=True))}
            place = tuple(where[axis] for axis in range(len(operand.dims)))
            element = cast(operand.at(place), dtype)
            builder.assign(accumulator, cast(step(accumulator, element, _position(axes, place, operand.dims)), start.dtype))

        builder.nest([operand.dims[axis] for axis in axes], body, letters="klmnpqij" if fixed else "ijklmnpq")
        builder.stay([accumulator.name])
        return accumulator

    name, operand_name = node.name or node.op.name, Name(dtype, "x")
    key = (scope, node.inputs[0], axes, tuple(fixed.items()), kind.step(operand_name, operand_name))
    total = builder.block.lookup(key)  # an extreme and its place are often asked for together
    if total is None:
        total = folded(f"{name}_of" if kind.is_place else name, cast(kind.start(dtype), dtype), lambda total, x, _: kind.step(total, x))
        builder.block.memo[key] = total
    if not kind.is_place:
        return cast(total, node.type.dtype)

    last = _position(axes, tuple(sub(dim, 1) for dim in operand.dims), operand.dims)
    start = last if isinstance(last, Expr) else Literal("int64", last)  # a start beyond the end makes LLVM's code ten times slower

    def earlier(first: Name, element: Expr, position: Index) -> Expr:
        element = builder.let(None, element, hoist=False)
        is_it = Apply("bool", _IS_IT, (element, total))
        return Apply("int64", LEAST, (first, choice(is_it, position, start)))

    return folded(name, start, earlier)


def _cumulative(scope: Scope, node: Node, kind: Fold, operand: Value, axis: int) -> Value:
    """Every partial result along one axis."""
    dims = fixed_dims(scope.builder, node, operand.dims)
    places = scope.destinations(node, dims)
    others = [dim for k, dim in enumerate(dims) if k != axis]
    dtype = kind.loop(operand.type)

    def along(outer: Indices) -> None:
        accumulator = scope.builder.variable(node.name or node.op.name, cast(kind.start(dtype), dtype), dtype)
        with scope.builder.loop("k", dims[axis]) as k:
            index = (*outer[:axis], k, *outer[axis:])
            scope.builder.assign(accumulator, cast(kind.step(accumulator, cast(operand.at(index), dtype)), dtype))
            for place in places:
                scope.builder.emit(store(place, index, accumulator))

    scope.builder.nest(others, along)
    return places[0]
