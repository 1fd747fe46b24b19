"""Lanes that multiply rows by a matrix which all of them share go in blocks: one product of matrices for a block instead of one per lane.

    # before: for each lane:                        # after: for each block of lanes:
    #             for t in range(steps):                         for t in range(steps):
    #                 h = tanh(x[t] @ W + h @ U)                     H = tanh(X[t] @ W + H @ U)      # a row for each lane

In a block every value that depends on the lane has an axis of lanes in front, behind that of time where a loop stacks rows. All blocks are
of one size, so there is one step for all. Where that does not divide the number of lanes, the last lane fills the last block, and what
comes of that is dropped.

Arithmetic: that of each lane as it was, but for the order of sums within products. **The bits of a lane do not depend on other lanes**, nor
on how many there are: elementwise work and sums within a lane keep their loops, products are `row_product`, and the number of lanes is a
number of the run even where it is known (`ops/block_size.py`). It is made where `ns.vmap` is traced, so derivatives see blocks, too.

A derivative that is infinite in the last lane may be NaN where all lanes share what it is of: what fills the last block counts for nothing
there, and 0 times infinity is NaN.

Not handled, and left as they are: lanes without such a product in a loop, and with anything that has no rule here: derivatives taken in
the lane, `until`, checkpoints, choices between branches, what may fail by its values, decompositions, positions that depend on the lane,
`np.roll`, products with a vector that all share, Python's numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..ir.graph import toposort
from ..ir.loop_node import SCAN, loop_spec, scan_node
from ..ir.node import ITEM, Node, constant_value, named, new_input, outputs_of, owner_of
from ..ir.ports import IN_BLOCKS, LoopSpec, Seq, State, Trace
from ..ops.algebra import broadcast_to, call, cast, dims_of, expand, indexed, transpose
from ..ops.block_size import block_size, from_blocks, in_blocks
from ..ops.card import Card, apply
from ..ops.contract import CONTRACT, labels_of
from ..ops.dims import DIM, dim_node
from ..ops.gradient_identities import LINKS
from ..ops.index_entries import FULL
from ..ops.last_state import LAST_STATE, last_state
from ..ops.lowering import Elementwise, Fold
from ..ops.of_shape import of_shape
from ..ops.reshape import RESHAPE, reshaped
from ..ops.row_product import DTYPES, row_product, turned
from ..ops.runtime_attributes import filled
from ..types import TensorType
from .replace_loops import placed

FEW = {"float64": 63, "float32": 256}
"""Elements of a shared matrix of known lengths up to which products are written out, by the SIMD unit for 64 lanes at once."""


class _NoRule(Exception):
    """A value has no rule here."""


@dataclass(frozen=True)
class _Value:
    """A value in a block. `of_lanes`: it has the axis of lanes in front; else it is the same for all."""

    node: Node
    of_lanes: bool


def lane_blocks(loop: Node) -> list[Node] | None:
    """The results of a loop over lanes, made in blocks; None where that is not handled."""
    spec = loop_spec(loop)
    if not spec.are_lanes or spec.notes or not spec.seqs or any(seq.taps != (0,) for seq in spec.seqs) or not _multiplies_in_loops(spec):
        return None
    spec, n_lanes = spec.opened(), spec.n_steps
    known = constant_value(n_lanes)
    if known is not None and not known:  # blocks have a size of the run, and nothing tells that it makes none
        return None
    size = block_size(n_lanes)
    count = named(call("floor_divide", call("add", n_lanes, call("add", size, -1)), size), "n_blocks")
    seqs = tuple(_in_rows_of_blocks(seq, n_lanes, count, size) for seq in spec.seqs)
    block = _Block({port.read: _Value(port.read, False) for port in spec.non_seqs})
    block.known.update({seq.reads[0]: _Value(new.reads[0], True) for seq, new in zip(spec.seqs, seqs, strict=True)})
    try:
        traces = tuple(Trace(block.for_all_lanes(trace.write)) for trace in spec.traces)
    except _NoRule:
        return None
    if not block.has_products:
        return None
    rows = outputs_of(scan_node(replace(spec, n_steps=count, seqs=seqs, traces=traces, notes=((IN_BLOCKS, True),))))
    return [from_blocks(one, n_lanes) for one in rows]


def _multiplies_in_loops(spec: LoopSpec) -> bool:
    loops = [node for node in toposort(spec.inner_outputs()) if node.op is SCAN]
    return any(node.op is CONTRACT for loop in loops for node in toposort(loop_spec(loop).inner_outputs()))


def _in_rows_of_blocks(seq: Seq, n_lanes: Node, count: Node, size: Node) -> Seq:
    """A sequence of lanes as one of blocks."""
    read = seq.reads[0]
    name = seq.outer.name or "an argument"
    outer = of_shape(seq.outer, (n_lanes, *dims_of(seq.outer)[1:]), f"ns.vmap: {name}, as all arguments with lanes,")
    outer = in_blocks(outer, count, size)
    return Seq(outer, (0,), (new_input(outer.type.with_shape(outer.type.shape[1:]), read.name),))


class _Block:
    """The values of a block of lanes, by those of one lane. `known`: those that are given; one of them has lanes."""

    def __init__(self, known: dict[Node, _Value]) -> None:
        self.known, self.has_products = known, False
        self.rows: dict[Node, Node] = {}  # results of loops that have lanes, as the loop of the block stacks them: time in front

    @property
    def n_lanes(self) -> Node:
        return next(dim_node(value.node, 0) for value in self.known.values() if value.of_lanes)

    def value(self, node: Node) -> _Value:
        """A value of a lane, for the block. Raises _NoRule."""
        for one in toposort([node], stop=list(self.known)):
            if one not in self.known and len(one.types) == 1:
                with placed(one):
                    self.known[one] = self._made(one)
        return self.known[node]

    def for_all_lanes(self, node: Node) -> Node:
        """A value with the axis of lanes; one that is the same for all is repeated."""
        value = self.value(node)
        return value.node if value.of_lanes else broadcast_to(value.node, (self.n_lanes, *dims_of(value.node)))

    def _made(self, node: Node) -> _Value:
        source = owner_of(node)[0]
        if source.op is SCAN:
            for result, (rows, has_lanes) in zip(outputs_of(source), self._of_loop(loop_spec(source).opened()), strict=True):
                self.known[result] = _Value(_lanes_first(rows) if has_lanes else rows, has_lanes)
                if has_lanes:
                    self.rows[result] = rows
            return self.known[node]
        if node.op is ITEM:
            raise _NoRule
        parents = [self.known[parent] for parent in node.inputs]
        if not any(parent.of_lanes for parent in parents):
            inputs = tuple(parent.node for parent in parents)
            return _Value(node if inputs == node.inputs else node.op.rebuild(node, inputs), False)
        if node.op is DIM:
            return _Value(dim_node(parents[0].node, 1 + node.number("axis")), False)
        if not isinstance(node.op, Card) or node.type.weak:
            raise _NoRule
        return _Value(named(self._by_rule(node, node.op, parents), node.name), True)

    def _by_rule(self, node: Node, card: Card, parents: Sequence[_Value]) -> Node:
        if isinstance(card.lower, Elementwise):
            if card.lower.code(*card.lower.loop(*(parent.type for parent in node.inputs))).raises:
                raise _NoRule
            return card.rebuild(node, tuple(_aligned(parent, node.type.rank) for parent in parents))
        if card is CONTRACT:
            return self._product(node, *parents)
        if card is LAST_STATE and node.inputs[1] in self.rows:
            return last_state(self.for_all_lanes(node.inputs[0]), self.rows[node.inputs[1]])
        if card.name == "concatenate":
            return apply(card, *map(self.for_all_lanes, node.inputs), axis=1 + node.number("axis"))
        first, *others = parents
        rule = _rule(card)
        if rule is None or any(other.of_lanes for other in others):
            raise _NoRule
        return rule(self, node, first, [other.node for other in others])

    def _product(self, node: Node, a: _Value, b: _Value) -> Node:
        """Of two values of a lane one product each; with a matrix that all share, the rows of all lanes times it."""
        a_labels, b_labels, out = labels_of(node)
        if a.of_lanes and b.of_lanes:
            lane = 1 + max((*a_labels, *b_labels), default=0)
            return call("contract", a.node, b.node, **{**node.params, "labels": ((lane, *a_labels), (lane, *b_labels), (lane, *out))})
        rows, matrix, labels = (a.node, b.node, b_labels) if a.of_lanes else (b.node, a.node, a_labels)
        dtype = node.type.dtype
        if rows.type.rank != 2 or matrix.type.rank != 2 or len(out) != 1 or dtype not in DTYPES or node.params.get("rounded"):
            raise _NoRule
        self.has_products |= matrix.type.size is None or matrix.type.size > FEW[dtype]
        matrix = cast(matrix, dtype)
        return row_product(cast(rows, dtype), matrix if labels[1] == out[0] else turned(matrix))

    # loops in a lane ------------------------------------------------------------------------------------------------

    def _of_loop(self, spec: LoopSpec) -> list[tuple[Node, bool]]:
        """The results of a loop, and whether they have lanes: behind the axis of time."""
        if spec.until is not None or spec.carries or spec.mit_mots or spec.notes or self.value(spec.n_steps).of_lanes:
            raise _NoRule
        of_lanes = [self.value(state.initial).of_lanes for state in spec.states]
        while True:  # until no further state is written from values of the lane
            loop, inner = self._opened(spec, of_lanes)
            found = [known or inner.value(state.write).of_lanes for known, state in zip(of_lanes, spec.states, strict=True)]
            if found == of_lanes:
                break
            of_lanes = found
        writes = [
            inner.for_all_lanes(state.write) if has else inner.value(state.write).node
            for state, has in zip(spec.states, of_lanes, strict=True)
        ]
        traced = [inner.value(trace.write) for trace in spec.traces]
        self.has_products |= inner.has_products
        states = tuple(replace(state, write=write) for state, write in zip(loop.states, writes, strict=True))
        made = scan_node(replace(loop, states=states, traces=tuple(Trace(value.node) for value in traced)))
        has_lanes = [*of_lanes, *(value.of_lanes for value in traced)]
        return list(zip(outputs_of(made), has_lanes, strict=True))

    def _opened(self, spec: LoopSpec, of_lanes: Sequence[bool]) -> tuple[LoopSpec, _Block]:
        """The loop on inputs for a block, with the states in `of_lanes` for each lane, and the block in which its step is made."""
        known: dict[Node, _Value] = {}

        def opened(read: Node, has_lanes: bool) -> Node:
            shape = (None, *read.type.shape) if has_lanes else read.type.shape
            known[read] = _Value(new_input(TensorType(read.type.dtype, shape, read.type.weak), read.name), has_lanes)
            return known[read].node

        seqs: list[Seq] = []
        for seq in spec.seqs:
            value = self.value(seq.outer)
            reads = tuple(opened(read, value.of_lanes) for read in seq.reads)
            seqs.append(Seq(_swapped(value.node) if value.of_lanes else value.node, seq.taps, reads))
        states = tuple(
            replace(state, initial=self._initial(state, has), reads=tuple(opened(read, has) for read in state.reads))
            for state, has in zip(spec.states, of_lanes, strict=True)
        )
        non_seqs = tuple(
            replace(port, outer=value.node, read=opened(port.read, value.of_lanes))
            for port, value in ((port, self.value(port.outer)) for port in spec.non_seqs)
        )
        n_steps = self.value(spec.n_steps).node
        return replace(spec, n_steps=n_steps, seqs=tuple(seqs), states=states, non_seqs=non_seqs), _Block(known)

    def _initial(self, state: State, has_lanes: bool) -> Node:
        """What a state starts with: its one row, or the axis of its rows in front of that of lanes."""
        value = self.value(state.initial)
        if not has_lanes:
            return value.node
        if not state.has_axis:
            return self.for_all_lanes(state.initial)
        if value.of_lanes:
            return _swapped(value.node)
        n_rows, *dims = dims_of(value.node)
        return broadcast_to(expand(value.node, [1]), (n_rows, self.n_lanes, *dims))


# values of one operand with lanes ---------------------------------------------------------------------------------------

Rule = Callable[[_Block, Node, _Value, Sequence[Node]], Node]
"""(block, the value of a lane, its first operand, which has lanes, and the other ones, which have none) -> the value of the block."""


def _rule(card: Card) -> Rule | None:
    if card in LINKS:
        return lambda block, node, first, others: card.rebuild(node, (first.node, *others))
    return _folded if isinstance(card.lower, Fold) else _OF_SHAPES.get(card.name)


def _folded(block: _Block, node: Node, first: _Value, others: Sequence[Node]) -> Node:
    axes = _axes(node, "axis")
    assert isinstance(node.op, Card)
    if isinstance(node.op.lower, Fold) and node.op.lower.is_place and len(axes) > 1:  # a place among all elements
        raise _NoRule
    return apply(node.op, first.node, **{**node.params, "axis": axes})


def _transposed(block: _Block, node: Node, first: _Value, others: Sequence[Node]) -> Node:
    return transpose(first.node, (0, *_axes(node, "axes")))


def _squeezed(block: _Block, node: Node, first: _Value, others: Sequence[Node]) -> Node:
    return call("squeeze", first.node, axis=_axes(node, "axis"))


def _indexed(block: _Block, node: Node, first: _Value, others: Sequence[Node]) -> Node:
    return indexed(first.node, (FULL, *filled(node.attr("spec"), iter(others))))


def _broadcast(block: _Block, node: Node, first: _Value, others: Sequence[Node]) -> Node:
    return broadcast_to(_aligned(first, node.type.rank), (block.n_lanes, *filled(node.attr("shape"), iter(others))))


def _reshaped(block: _Block, node: Node, first: _Value, others: Sequence[Node]) -> Node:
    entries = filled(node.attr("shape"), iter(others))
    return reshaped(first.node, (("dim", 0), *(("dim", 1 + entry[1]) if isinstance(entry, tuple) else entry for entry in entries)))


_OF_SHAPES: dict[str, Rule] = {
    "transpose": _transposed,
    "squeeze": _squeezed,
    "index": _indexed,
    "broadcast_to": _broadcast,
    RESHAPE.name: _reshaped,
}


def _axes(node: Node, key: str) -> tuple[int, ...]:
    """The axes of a lane in an attribute, behind that of lanes."""
    axes = node.attr(key)
    assert isinstance(axes, tuple)
    return tuple(1 + axis for axis in axes)


def _aligned(value: _Value, rank: int) -> Node:
    """A value whose axes, but that of lanes, are the last ones of `rank`, as broadcasting asks."""
    return expand(value.node, range(1, 2 + rank - value.node.type.rank)) if value.of_lanes else value.node


def _lanes_first(rows: Node) -> Node:
    """Rows by lane. Numbers are moved: else LLVM would have a loop of its own, with sums in another order, for blocks of one lane, whose
    numbers lie side by side in time.
    """
    return turned(rows) if rows.type.rank == 2 else _swapped(rows)


def _swapped(value: Node) -> Node:
    """Lanes and time in each other's place."""
    return transpose(value, (1, 0, *range(2, value.type.rank)))
