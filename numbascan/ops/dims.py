"""Dimensions of nodes as nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

import numpy as np

from ..ir.graph import leaves, substitute, toposort
from ..ir.loop_node import SCAN, loop_spec
from ..ir.loops import BROADCAST_DIM, LEAST, Apply, Expr, Index, Length, Literal, Name
from ..ir.node import Node, constant, constant_value, owner_of
from ..ir.ports import LoopSpec
from ..types import TensorType
from . import failing
from .card import CARDS, Card, apply, register
from .lowering import Elementwise, Fold, Generate, Indices, Library, Operands, View
from .runtime_attributes import SizedCard, filled, sized


class _DimCard(Card):
    """Rebuilt on another operand, it is asked again: of the earliest value that has the dimension."""

    def rebuilt(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        axis: Any = node.attr("axis")
        return dim_node(inputs[0], axis)


def _dim_element(view: Operands, index: Indices) -> Expr:
    dim = view.dims(0)[view.attrs["axis"]]
    return Literal("int64", dim) if isinstance(dim, int) else dim


DIM = register(
    _DimCard(
        "dim",
        lambda x, axis: np.int64(np.shape(x)[axis]),
        lambda x, axis: TensorType("int64", (), weak=True),  # as x.shape[0] is a Python number in NumPy
        Generate(lambda view: (), _dim_element),
        samples=lambda: [((np.arange(24.0).reshape(2, 3, 4),), {"axis": axis}) for axis in range(3)],
        no_gradient="a dimension is an integer",
    )
)


class _CommonDimCard(Card):
    """Rebuilt on dimensions that turn out to be one, it is that dimension."""

    def rebuilt(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        return common_dim(inputs)


def common_dim(dims: Iterable[Node]) -> Node:
    """The dimension to which `dims` broadcast."""
    return reduce(lambda a, b: apply(COMMON_DIM, a, b), dict.fromkeys(dims))


COMMON_DIM = register(
    _CommonDimCard(
        "common_dim",
        lambda a, b: np.where(np.equal(a, 1), b, a),
        lambda a, b: TensorType("int64", (), weak=True),  # a dimension, as its operands are
        Elementwise(lambda *types: ("int64",) * 3, lambda *loop: BROADCAST_DIM),
        samples=lambda: [((np.int64(1), np.int64(5)), {}), ((np.int64(4), np.int64(1)), {})],
        no_gradient="a dimension is an integer",
        is_cheap=True,
    )
)
"""The dimension to which two dimensions broadcast."""


def dim_node(node: Node, axis: int, by_size: bool = False) -> Node:
    """A dimension as a node: a weak constant where it is fixed, else the dimension of the earliest value that has it.

    So a value that is only measured need not be computed. The search stops at a variable that a user holds: it may become an input, or be
    replaced. The graph of a function has no such variables; when it is closed, dimensions are asked again (`DIM`).

    by_size: only for comparing: a value brought to a size has that size. It may be negative, an error only if the value is computed.
    """
    return _asked_behind(node, axis, by_size)


def known_type(node: Node) -> TensorType:
    """The type of `node` with all fixed dimensions, such as known numbers of steps. A replacement of `node` must have them."""
    dims = [dim_node(node, axis) for axis in range(node.type.rank)]
    known = [constant_value(dim) for dim in dims]
    return node.type.with_shape(None if number is None else int(number) for number in known)


def _asked_behind(node: Node, axis: int, by_size: bool = False, through: bool = False) -> Node:
    """`dim_node`. through: the search goes on behind variables that users hold."""
    sources: dict[Node, None] = {}
    stack, seen = [(node, axis)], {(node, axis)}
    while stack:
        node, axis = stack.pop()
        known = node.type.shape[axis]
        is_own = known is not None or (node.is_held and not through)
        elsewhere = None if is_own else (_of_row(node, axis - 1) if axis else _steps_of(node)) or _of_routine(node, axis)
        behind = [] if is_own or elsewhere is not None else _same_dim(node, axis)
        if elsewhere is not None:
            sources[elsewhere] = None
        elif known is not None:
            sources[constant(known, "int64", weak=True)] = None
        elif is_own:
            sources[_held_dim(node, axis)] = None
        elif not behind:
            sources[(_size(node, axis) if by_size else None) or apply(DIM, _blank_view(node), axis=axis)] = None
        fresh = [place for place in dict.fromkeys(behind) if place not in seen]
        seen.update(fresh)
        stack += reversed(fresh)
    return common_dim(sources)


def _blank_view(node: Node) -> Node:
    """A view of a loop's result as a view of zeros of that shape, so that no step runs to measure it. Other nodes stay as they are."""
    card, zeros = node.op, CARDS["broadcast_to"]
    if not node.has_loop or not isinstance(card, Card) or not isinstance(card.lower, View) or node.inputs[0].op is zeros:
        return node
    source, *others = node.inputs
    dims = tuple(dim_node(source, axis) for axis in range(source.type.rank))
    return card.rebuild(node, (sized(zeros, (constant(0, source.type.dtype),), dims), *others))  # type: ignore[arg-type]


def _held_dim(node: Node, axis: int) -> Node:
    """A dimension of a variable that a user holds: its own, unless it is fixed, for example by the number of steps of a loop."""
    behind = _asked_behind(node, axis, through=True) if node.has_loop else None
    return apply(DIM, node, axis=axis) if behind is None or constant_value(behind) is None else behind


def _loop_of(node: Node) -> tuple[LoopSpec, int] | None:
    """The loop that a node is a result of, and the number of that result; None for other nodes."""
    loop, index = owner_of(node)
    return (loop_spec(loop), index) if loop.op is SCAN else None


def _steps_of(node: Node) -> Node | None:
    """The number of rows of a loop's result, if it is the loop's `n_steps`; else None."""
    result = _loop_of(node)
    if result is None:
        return None
    spec, index = result
    n_buffers = len(spec.mit_mots)
    if spec.until is not None or not n_buffers <= index < n_buffers + len(spec.states) + len(spec.traces):
        return None
    n_steps = spec.n_steps
    return n_steps if n_steps.type.weak else apply(COMMON_DIM, n_steps, constant(1, "int64", weak=True))


def _of_row(node: Node, axis: int) -> Node | None:
    """A dimension of a loop's traced rows as a node around the loop; None if there is no such node."""
    result = _loop_of(node)
    if result is None:
        return None
    spec, index = result
    k = index - len(spec.mit_mots) - len(spec.states)
    if not 0 <= k < len(spec.traces):
        return None
    return told_outside(spec, dim_node(spec.traces[k].write, axis))


def told_outside(spec: LoopSpec, dim: Node) -> Node | None:
    """A dimension inside a step as a node around the loop; None if it depends on more than shapes and non-sequences, or may fail.

    In a loop known to have a step it may fail: the step would fail, too.
    """
    return None if not spec.has_step and failing.may_raise(dim) else around(spec, dim, {})


def around(spec: LoopSpec, value: Node, known: Mapping[Node, Node]) -> Node | None:
    """A value of a step as a node around the loop; None if it depends on more than non-sequences, dimensions of sequences, and inputs
    `known` there."""
    outer = {port.read: port.outer for port in spec.non_seqs} | dict(known)
    sequences = {read: seq.outer for seq in spec.seqs for read in seq.reads}
    for asked in toposort([value]):
        of: Any = asked.attr("axis") if asked.op is DIM else None
        if of is not None and asked.inputs[0] in sequences:
            outer[asked] = dim_node(sequences[asked.inputs[0]], of + 1)
    changing = set(spec.inner_inputs()) - set(outer)
    if not changing.isdisjoint(toposort([value], stop=outer)):  # searched inside: an input of the step may also be one around the loop
        return None
    (outside,) = substitute([value], outer)
    return outside


def _of_routine(node: Node, axis: int) -> Node | None:
    """A dimension of a routine's result in terms of its operands' dimensions, as its card gives it; None if it is made otherwise."""
    call, index = owner_of(node)
    if not isinstance(call.op, Card) or not isinstance(call.op.lower, Library):
        return None
    view: Any = _Measured(call)
    return _of_operands(call.op.lower.dims(view)[index][axis], call)


def _of_operands(dim: Index, call: Node) -> Node | None:
    if isinstance(dim, int):
        return constant(dim, "int64", weak=True)
    if isinstance(dim, Length):
        return dim_node(call.inputs[int(dim.array)], dim.axis)
    if not isinstance(dim, Apply) or dim.template is not LEAST:
        return None
    parts = [_of_operands(part, call) for part in dim.args]
    return None if None in parts else apply(CARDS["minimum"], *(part for part in parts if part is not None))


class _Measured:
    """The view of a node for a lowering that asks only for dimensions. An array is named by the number of its operand."""

    def __init__(self, node: Node) -> None:
        self.attrs: dict[str, Any] = dict(node.attrs)
        self.types = tuple(parent.type for parent in node.inputs)

    def dims(self, k: int) -> Indices:
        return tuple(Length("int64", str(k), axis) if dim is None else dim for axis, dim in enumerate(self.types[k].shape))

    def scalar(self, k: int) -> Index:
        return Name("int64", str(k))

    def check(self, *_: object) -> None: ...

    def same(self, *_: object) -> None: ...


def _of_initial(node: Node, axis: int) -> list[tuple[Node, int]]:
    """The initial value of a state or carry, and the axis of a dimension in it: both keep their shape. None for other nodes."""
    result = _loop_of(node)
    if result is None:
        return []
    spec, index = result
    k = index - len(spec.mit_mots)
    if axis and 0 <= k < len(spec.states):
        return [(spec.states[k].initial, axis - 1 + spec.states[k].has_axis)]
    k -= len(spec.states) + len(spec.traces)
    return [(spec.carries[k].shared, axis)] if 0 <= k < len(spec.carries) else []


def _same_dim(node: Node, axis: int) -> list[tuple[Node, int]]:
    """The operands and axes that an unknown dimension comes from; none if it is the node's own."""
    card = node.op
    if not isinstance(card, Card):
        return _of_initial(node, axis)
    if card.dim_from is not None:
        return card.dim_from(node, axis)
    if isinstance(card.lower, Elementwise):
        places = [(parent, axis - node.type.rank + parent.type.rank) for parent in node.inputs]
        return [(parent, position) for parent, position in places if position >= 0 and parent.type.shape[position] is None]
    if isinstance(card.lower, Fold):
        return [(node.inputs[0], axis if card.lower.cumulative else _kept_axis(node, axis))]
    return _asked_of(filled(node.attr("shape"), iter(node.inputs[1:]))[axis]) if _is_resized(node) else []


def _is_resized(node: Node) -> bool:
    return isinstance(node.op, SizedCard) and node.op.resizes


def is_dim(dim: Node, node: Node, axis: int) -> bool:
    """True if `dim` is known to be that dimension of `node`."""
    asked: Any = dim.attr("axis") if dim.op is DIM else None
    return dim_node(node, axis, True) is (dim if asked is None else dim_node(dim.inputs[0], asked, True))


def _size(node: Node, axis: int) -> Node | None:
    """The size that a value was brought to along an axis, if only the run knows it; else None."""
    is_own = _is_resized(node) and not node.is_held
    entry = filled(node.attr("shape"), iter(node.inputs[1:]))[axis] if is_own else None
    return entry if isinstance(entry, Node) else None


def _asked_of(dim: Node) -> list[tuple[Node, int]]:
    """The values and axes that a dimension was asked of; none if the number is no dimension."""
    asked: list[tuple[Node, int]] = []
    for one in leaves(dim, lambda node: node.op is COMMON_DIM):
        axis: Any = one.attr("axis") if one.op is DIM else None
        if axis is not None:
            asked.append((one.inputs[0], axis))
        elif one.op is not COMMON_DIM:
            return []
    return asked


def _kept_axis(node: Node, axis: int) -> int:
    reduced: Any = node.attr("axis")
    is_full = bool(node.attr("keepdims")) or node.type.rank == node.inputs[0].type.rank
    return axis if is_full else [k for k in range(node.inputs[0].type.rank) if k not in reduced][axis]
