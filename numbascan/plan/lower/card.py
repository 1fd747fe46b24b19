"""Values of cards: elementwise work, views, region-wise writes. One function per kind of lowering."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from ...ir.loops import BROADCAST_DIM, Apply, Expr, Index, Literal, both, compare, in_shape, least
from ...ir.node import Node
from ...ops.card import Card, overflow_message, weak_bounds
from ...ops.elementwise import IDENTITY
from ...ops.lowering import Contract, Elementwise, Fold, Generate, Library, Pass, Passes, View
from ...ops.reshape import axis_groups
from ...ops.runtime_attributes import stretched
from ..builder import Indices
from ..casts import cast
from ..storage.placement import Placement
from ..storage.stores import fixed_dims, in_locals, is_there, label_of, store
from ..storage.tensor_values import Computed, InMemory, Value, indices_of
from . import contract as lower_contract
from . import fold as lower_fold
from . import library as lower_library
from .known_operands import simpler
from .routine_operands import array_of, in_memory
from .scope import NodeOperands, Scope, location


def lower(scope: Scope, node: Node) -> list[Value]:
    """The values of a card's node, one per result."""
    assert isinstance(node.op, Card)
    kind = node.op.lower
    if isinstance(kind, Library) and kind.written_out is not None:
        is_written_out = kind.is_written_out(scope.target.calls_routines, *(parent.type for parent in node.inputs))
        kind = kind.written_out if is_written_out else kind
    if isinstance(kind, Library):
        return lower_library.lower(scope, node, kind)
    view = NodeOperands(scope, node)
    if isinstance(kind, Elementwise):
        value = _elementwise(scope, node, kind)
    elif isinstance(kind, View):
        value = _view(scope, node, kind)
    elif isinstance(kind, Generate):
        element = kind.element
        value = _computed(scope, node, kind.dims(view), lambda index: cast(element(view, index), node.type.dtype))
    elif isinstance(kind, Passes):
        value = _passes(scope, node, kind)
    elif isinstance(kind, Fold):
        value = lower_fold.lower(scope, node, kind)
    else:
        assert isinstance(kind, Contract)
        value = lower_contract.lower(scope, node, kind)
    return [value]


def _view(scope: Scope, node: Node, kind: View) -> Value:
    view = NodeOperands(scope, node)
    dims, place, passes = kind.dims(view), kind.index, kind.summed(view)
    if passes is not None:
        places = scope.destinations(node, fixed_dims(scope.builder, node, dims))
        for one in passes:
            _run_pass(scope, one, places)
        return places[0]
    is_lazy = scope.placement(node) is Placement.INLINE
    reshaped = _other_shape(scope, node, dims, kind.renames) if kind.keeps_order and is_lazy else None
    return reshaped or _computed(scope, node, dims, lambda index: view.at(0, place(view, index)))


def _other_shape(scope: Scope, node: Node, dims: Indices, renames: bool) -> Value | None:
    """The same memory in another shape, where finding an element's place would take divisions by numbers that only the run knows.

    What is computed is put into memory first if products alone read it: they would copy it anyway. `renames`: so it is where dimensions
    may be others than those of the memory.
    """
    value = in_memory(scope, node.inputs[0])
    if node in scope.targets or not dims:
        return None
    groups = axis_groups(value.dims, dims)
    divisors = [value.dims[axis] for ins, outs in groups if len(ins) > 1 or len(outs) > 1 for axis in ins]
    if renames and isinstance(value, InMemory):
        if all(map(scope.builder.are_equal, value.dims, dims)):
            return value
    elif not divisors or (isinstance(value, InMemory) and all(isinstance(dim, int) for dim in divisors)):
        return None
    if not isinstance(value, InMemory) and not all(_is_product(reader) for reader in scope.readers.get(node, ())):
        return None
    array = array_of(scope, value, node.type.dtype)
    name = scope.builder.alias(f"{array}_flat", array, in_shape(len(dims)).text, *dims)
    scope.builder.views.add(name)
    return InMemory(node.type, fixed_dims(scope.builder, node, dims), name)


def _is_product(node: Node) -> bool:
    return isinstance(node.op, Card) and isinstance(node.op.lower, Contract)


def _elementwise(scope: Scope, node: Node, kind: Elementwise) -> Value:
    card, dims = node.op, broadcast_dims(scope, node)
    assert isinstance(card, Card)
    loop = kind.loop(*(parent.type for parent in node.inputs))
    template = kind.code(*loop)
    result_dtype = loop[len(node.inputs)]
    view = NodeOperands(scope, node)
    _check_weak_integers(scope, node, loop)

    def operand(k: int, index: Indices, dtype: str) -> Expr:
        one = view.at(k, index, dtype)
        return view.short(one) if template.writes(k) > 1 else one

    def element(index: Indices) -> Expr:
        operands = tuple(
            operand(k, stretched(view, k, index, dims), dtype) for k, dtype in zip(range(len(node.inputs)), loop, strict=False)
        )
        if template is BROADCAST_DIM:
            common = Apply("int64", BROADCAST_DIM, operands)
            return next((one for one in operands if scope.builder.are_equal(one, common)), common)
        known = simpler(scope.builder, card, result_dtype, operands)
        computed = operands[0] if template is IDENTITY else known or Apply(result_dtype, template, operands)
        return cast(computed, node.type.dtype)

    return _computed(scope, node, dims, element)


def _check_weak_integers(scope: Scope, node: Node, loop: Sequence[str]) -> None:
    """A Python integer must fit the dtype in which it is taken, as in NumPy."""
    for parent, dtype in zip(node.inputs, loop, strict=False):
        bounds = weak_bounds(parent.type, dtype)
        if bounds is None or parent.type.rank:
            continue
        value = scope.value(parent).at(())
        if not isinstance(value, Literal):
            fits = both(compare(">=", value, bounds[0]), compare("<=", value, bounds[1]))
            NodeOperands(scope, node).check(fits, "OverflowError", overflow_message(node.op.name, dtype), value)


def broadcast_dims(scope: Scope, node: Node) -> Indices:
    """Dimensions of an elementwise result. Those that only the run knows must be equal, unless they are at most 1."""
    return tuple(_broadcast_dim(scope, node, axis) for axis in range(node.type.rank))


def _broadcast_dim(scope: Scope, node: Node, axis: int) -> Index:
    builder, rank = scope.builder, node.type.rank
    places = [(parent, axis - rank + parent.type.rank) for parent in node.inputs]
    dims = dict.fromkeys(scope.value(parent).dims[place] for parent, place in places if place >= 0 and parent.type.shape[place] != 1)
    known: Index | None = node.type.shape[axis]
    if known is None and dims:
        known = next(iter(dims)) if len(dims) == 1 else next((dim for dim in dims if not builder.is_at_most_one(dim)), None)
        known = reduce(least, dims) if known is None else known
    known = 1 if known is None else known
    message = f"{node.op.name}: operands do not broadcast: dimension {axis} is {{0}} in one and {{1}} in another"
    for dim in dims:
        if dim != known:
            builder.broadcasts(dim, known, "ValueError", message + location(scope, node))
    return known if node in scope.targets else builder.representative(known)  # a row's memory, around the loop, asks what it is there


def _computed(scope: Scope, node: Node, dims: Indices, element: Callable[[Indices], Expr]) -> Value:
    """The value of a node whose elements are known one by one, placed as decided."""
    dims = fixed_dims(scope.builder, node, dims)
    placement = scope.placement(node)
    if node in scope.targets:
        return scope.filled(node, dims, element)
    if placement is Placement.INLINE:
        return Computed(node.type, dims, _read_in_place(scope, node, element))
    if placement is Placement.LOCALS:
        return in_locals(scope.builder, node, {index: element(index) for index in indices_of(node.type.shape)})
    return scope.filled(node, dims, element)


def _read_in_place(scope: Scope, node: Node, element: Callable[[Indices], Expr]) -> Callable[[Indices], Expr]:
    """`element`, kept in a local of the loop that reads it when the graph reads the node more than once. It may name its index often."""
    builder = scope.builder

    def at(index: Indices) -> Expr:
        index = tuple(builder.short("place", i) for i in index)
        if scope.reads(node) < 2:
            return element(index)
        # a step within a step may hold the same node, of other values
        return builder.remembered((scope, node, index), label_of(node), lambda: element(index))

    return at


def _passes(scope: Scope, node: Node, kind: Passes) -> Value:
    view = NodeOperands(scope, node)
    dims = fixed_dims(scope.builder, node, kind.dims(view))
    by_row = kind.by_row
    if by_row is not None and scope.placement(node) is Placement.INLINE:
        return Computed(node.type, dims, _read_in_place(scope, node, lambda index: by_row.element(view, index)))
    passes = kind.passes(view)
    if scope.placement(node) is Placement.LOCALS and node not in scope.targets:
        elements = _written_in_locals(passes)
        if elements is not None:
            return in_locals(scope.builder, node, {index: elements[index] for index in indices_of(node.type.shape)})
    places = _taken_over(scope, node, kind) or scope.destinations(node, dims)
    if kind.inside is not None and len(places) == 1 and is_there(scope.value(node.inputs[0]), places[0]):
        passes = [kind.inside(view)]
    for one in passes:
        _run_pass(scope, one, places)
    return places[0]


def _taken_over(scope: Scope, node: Node, kind: Passes) -> list[InMemory]:
    """The memory of operand 0, where that was taken for it here and nothing else reads it: then only what changes is written."""
    if kind.inside is None or node in scope.targets:
        return []
    memory = scope.left_behind(node.inputs[0])
    return [] if memory is None else [memory]


def _written_in_locals(passes: object) -> dict[tuple[int, ...], Expr] | None:
    """The elements after all passes, where every place is known now; None where one depends on the run."""
    elements: dict[tuple[int, ...], Expr] = {}
    assert isinstance(passes, list | tuple)
    for one in passes:
        assert isinstance(one, Pass)
        if one.combine or not all(isinstance(count, int) for count in one.counts):
            return None
        for index in indices_of(tuple(count for count in one.counts if isinstance(count, int))):
            place = one.place(index)
            fixed = tuple(i for i in place if isinstance(i, int))
            if len(fixed) != len(place):
                return None
            elements[fixed] = one.element(index)
    return elements


def _run_pass(scope: Scope, one: Pass, places: list[InMemory]) -> None:
    def body(index: Indices) -> None:
        expr, position = one.element(index), one.place(index)
        if len(places) > 1:
            expr = scope.builder.let(None, expr, hoist=False)
        for place in places:
            scope.builder.emit(store(place, position, expr, one.combine))

    scope.builder.nest(one.counts, body)
