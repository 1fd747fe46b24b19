"""Values as the arrays that routines take: memory where the elements lie side by side already, else copies.

A row of an array lies so, whatever way leads to it: backwards through a sequence, or behind views that move nothing.
"""

from __future__ import annotations

from ...ir.loops import Expr, Index, Load, Name, add, names_in, sub
from ...ir.node import Node
from ...ops.card import Card
from ...ops.lowering import View
from ...types import TensorType
from ..builder import Indices
from ..storage.save_mem import is_loop_rows
from ..storage.stores import store
from ..storage.tensor_values import Computed, InLocals, InMemory, Value
from .scope import NodeOperands, Scope

PROBES = tuple(Name("int64", f"probe {k}") for k in range(4))  # no names of Python: they never meet the user's


def oriented(scope: Scope, node: Node, dtype: str) -> tuple[str, bool]:
    """The name of a C-contiguous array with the elements of a value of rank 1 or 2, and whether it is the transpose of the value."""
    node, is_transpose = _behind_views(scope, node)
    value = scope.value(node)
    if value.type.dtype == dtype:
        for is_turned in (False, True)[: value.type.rank]:
            memory = value if isinstance(value, InMemory) else _memory_behind(scope, node, is_turned)
            if memory is not None:
                return named(scope, memory), is_transpose != is_turned
    return array_of(scope, value, dtype), is_transpose


def in_memory(scope: Scope, node: Node) -> Value:
    """A value as the memory that it reads element by element, in order; the value itself where it computes more than that."""
    value = scope.value(node)
    return value if isinstance(value, InMemory) else _memory_behind(scope, node, False) or value


def array_of(scope: Scope, value: Value, dtype: str) -> str:
    """The name of a C-contiguous array with the elements of `value`; copied only where it is not one already."""
    builder = scope.builder
    if value.type.dtype != dtype or isinstance(value, Computed):
        copy = InMemory(TensorType(dtype, value.type.shape), value.dims, builder.alloc(None, value.dims, dtype))
        builder.nest(value.dims, lambda index: builder.emit(store(copy, index, value.at(index))))
        return copy.array
    if isinstance(value, InLocals):
        return value.spilled()
    assert isinstance(value, InMemory)
    return named(scope, value)


def named(scope: Scope, value: InMemory) -> str:
    """The name of an array that is exactly `value`: of the rows that a loop was given room for, those that ran."""
    n_lead = len(value.lead)
    extents = _extents(scope, value.array)
    places, numbers = [f"{{{k}}}" for k in range(n_lead)], list(value.lead)
    stop = add(value.offset, value.dims[0]) if value.dims else 0
    is_end = extents is None or not value.dims or _same(scope, extents[n_lead], stop)
    is_part = value.offset != 0 or not is_end
    if is_part:
        places.append(f"{{{n_lead}}}:" if is_end else f"{{{n_lead}}}:{{{n_lead + 1}}}")
        numbers += [value.offset] if is_end else [value.offset, stop]
    if not places:
        return value.array
    return scope.builder.alias(f"{value.array}_{'rows' if is_part else 'row'}", value.array, f"[{', '.join(places)}]", *numbers)


def _behind_views(scope: Scope, node: Node) -> tuple[Node, bool]:
    """The value behind views that change nothing and transposes, and whether it is the transpose."""
    is_transpose = False
    while (view := _view(scope, node)) is not None:
        probes = PROBES[: node.type.rank]
        places = view.index(NodeOperands(scope, node), probes) if view.keeps_dims else None
        if places != probes:
            if places != probes[::-1] or len(probes) != 2:
                break
            is_transpose = not is_transpose
        node = node.inputs[0]
    return node, is_transpose


def _view(scope: Scope, node: Node) -> View | None:
    """How a node that is another way to read its operand finds the place there; None where it is a value of its own."""
    is_own = node in scope.targets or is_loop_rows(node)  # rows that a loop has kept are all that it has kept
    kind = node.op.lower if isinstance(node.op, Card) and not is_own else None
    return kind if isinstance(kind, View) else None


def _memory_behind(scope: Scope, node: Node, is_turned: bool) -> InMemory | None:
    """The memory that a value (or its transpose) reads element by element, in order; None where it computes more than that."""
    value, rank = scope.value(node), node.type.rank
    if not 0 < rank <= len(PROBES):
        return None
    turn = -1 if is_turned else 1
    probes: Indices = PROBES[:rank]
    with scope.builder.branch() as stmts:
        expr = _element(scope, node, probes[::turn])
    if stmts or not isinstance(expr, Load) or expr.dtype != node.type.dtype or len(expr.index) < rank:
        return None
    lead, (first, *others) = expr.index[:-rank], expr.index[-rank:]
    offset = sub(first, probes[0])
    if tuple(others) != probes[1:] or any(_is_probe(name) for index in (*lead, offset) for name, _ in names_in(index)):
        return None
    extents, dims = _extents(scope, expr.array), value.dims[::turn]
    if extents is None or not all(_same(scope, *pair) for pair in zip(extents[len(lead) + 1 :], dims[1:], strict=True)):
        return None
    return InMemory(node.type.with_shape(node.type.shape[::turn]), dims, expr.array, lead, offset)


def _element(scope: Scope, node: Node, index: Indices) -> Expr:
    """An element; views are looked through even where they keep what they have read in a local."""
    while (view := _view(scope, node)) is not None:
        index = tuple(scope.builder.short("place", i) for i in view.index(NodeOperands(scope, node), index))
        node = node.inputs[0]
    return scope.value(node).at(index)


def _is_probe(name: str) -> bool:
    return any(name == probe.name for probe in PROBES)


def _extents(scope: Scope, array: str) -> Indices | None:
    """The shape of an array that was taken or given; None for any other array."""
    return scope.builder.shapes.get(array) or scope.context.arguments.dims(array)


def _same(scope: Scope, a: Index, b: Index) -> bool:
    return scope.builder.are_equal(a, b)
