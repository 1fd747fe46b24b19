"""Placement: which values are computed where they are read, which live in locals, which in memory.

A value is *inlined* if only one loop reads it, at the place that the loop writes: this saves a pass over memory.
Not handled: an elementwise value that two loops read is stored even if computing it twice would be cheaper.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from enum import Enum

from ...ir.graph import toposort, users
from ...ir.loop_node import SCAN, loop_spec
from ...ir.loops import Expr, Name
from ...ir.node import Node
from ...ir.ports import State
from ...ops.card import Card
from ...ops.control import IF_ELSE, branches
from ...ops.dims import DIM
from ...ops.elementwise import ADD, MUL, SUB
from ...ops.indexing import is_replaced_at_run_time
from ...ops.lowering import Elementwise, Fold, Generate, Passes, View
from ..target import Target


class Placement(Enum):
    """Where a value lives."""

    INLINE = "inline"
    LOCALS = "locals"
    MEMORY = "memory"


FEW_ROWS = 64  # rows up to which all are computed at once: as cheap, and no row must be selected
MOST_NESTED = 8  # nested values whose rows are computed as they are read
MOST_PLACES, MOST_GATHERED = 64, 4  # most places where a value, or a gather, is inlined: the code of each is written out
OUTSIDE = None  # the root of values that several loops read
# most operations nested in one expression: Python's parser takes 200 brackets, and a pass over memory costs only a few operations
DEEPEST = 32


def placements(
    outputs: Sequence[Node], readers: Mapping[Node, Sequence[Node]], target: Target, stored: Set[Node] = frozenset()
) -> dict[Node, Placement]:
    """Where each value behind `outputs` lives. `readers`: from `ir.graph.users`. `stored`: values that must not be inlined."""
    roots: dict[Node, Node | None] = {}
    places: dict[Node, Placement] = {}
    depths: dict[Node, int] = {}  # of an inlined value: how many others lie between it and the value that is written
    asked = _Places()
    final = {node for node in outputs if len(readers[node]) + outputs.count(node) > 1}
    only_written = set(outputs) - final
    for node in reversed(toposort(outputs)):
        if not isinstance(node.op, Card) or len(node.types) != 1:
            roots[node] = node
            continue
        kind = node.op.lower
        if node in stored:
            places[node], roots[node] = (Placement.LOCALS if _fits_locals(node, target) else Placement.MEMORY), node
            continue
        if node in only_written:  # read once, where the result is stored
            is_inline = isinstance(kind, View | Generate) or (isinstance(kind, Elementwise) and is_small(node, target))
            places[node], roots[node] = (Placement.INLINE if is_inline else Placement.MEMORY), node
            if _fits_locals(node, target) and not is_inline:
                places[node] = Placement.LOCALS
            continue
        reading = _reading_root(node, readers[node], roots, final)
        depth = max((depths.get(reader, 0) + _depth(reader) for reader in readers[node]), default=0)
        if depth < DEEPEST and _is_inline(node, reading, readers, final) and asked.are_few(node, readers[node]):
            places[node], roots[node], depths[node] = Placement.INLINE, reading, depth
        else:
            places[node], roots[node] = (Placement.LOCALS if _fits_locals(node, target) else Placement.MEMORY), node
    return places


class _Places:
    """The places, by number, at which inlined values are read. i[i] reads i at two: a chain of k of these would be written 2**k times."""

    def __init__(self) -> None:
        self.of: dict[Node, set[int]] = {}
        self.numbers: dict[object, int] = {}

    def are_few(self, node: Node, readers: Sequence[Node]) -> bool:
        """True if `readers` have a value written out at few places; it then counts as inlined from here on."""
        places = {self._number(key) for reader in dict.fromkeys(readers) for key in self._keys(node, reader)}
        is_gather = isinstance(node.op, Card) and isinstance(node.op.lower, View) and any(one.type.rank for one in node.inputs[1:])
        if len(places) > (MOST_GATHERED if is_gather else MOST_PLACES):
            return False
        self.of[node] = places
        return True

    def _keys(self, node: Node, reader: Node) -> Iterable[object]:
        """The keys of the places at which `reader` reads: an elementwise value reads where it is read itself."""
        around = self.of.get(reader, {self._number(reader)})
        if isinstance(reader.op, Card) and isinstance(reader.op.lower, Elementwise):
            return around
        return [(reader, k, place) for k, one in enumerate(reader.inputs) if one is node for place in around]

    def _number(self, key: object) -> int:
        return key if isinstance(key, int) else self.numbers.setdefault(key, len(self.numbers))


def _depth(reader: Node) -> int:
    """How much deeper than its reader a value is nested."""
    kind = reader.op.lower if isinstance(reader.op, Card) else None
    return kind.depth if isinstance(kind, View) else 1


def _is_inline(node: Node, reading: Node | None, readers_of: Mapping[Node, Sequence[Node]], final: Iterable[Node]) -> bool:
    """True if a value is computed where it is read."""
    assert isinstance(node.op, Card)
    kind = node.op.lower
    if isinstance(kind, Generate) and kind.from_operand:
        return node not in final and _is_read_by_elements(node, readers_of)
    if isinstance(kind, View | Generate):
        return True
    if isinstance(kind, Passes):
        return _is_by_row(node, final) and all(_reads_rows(node, reader, readers_of, final) for reader in readers_of[node])
    if not isinstance(kind, Elementwise):
        return False
    if node.type.rank:
        return reading is not None or _is_counted_out(node, readers_of, final)
    return _is_nested_scalar(node, readers_of[node], final)


def _is_counted_out(node: Node, readers_of: Mapping[Node, Sequence[Node]], final: Iterable[Node]) -> bool:
    """True for evenly spaced integers that are only read one at a time: computing one costs no more than loading it."""
    if not isinstance(node.op, Card) or len(node.types) > 1 or node.type.rank != 1 or node.type.dtype != "int64":
        return False
    return _is_evenly_spaced(node) and _is_read_singly(node, readers_of, final)


def _is_read_singly(node: Node, readers_of: Mapping[Node, Sequence[Node]], final: Iterable[Node]) -> bool:
    """True if numbers of an array are only read one at a time, as rows of a loop or by their places; in steps and branches, too."""
    readers = readers_of.get(node, ())
    if not readers or node in final:
        return False
    return all(
        _is_read_singly_inside(node, one)
        if one.op in (SCAN, IF_ELSE)
        else _is_one_of(one) or (_is_view(one) and _is_read_singly(one, readers_of, final)) or _is_counted_out(one, readers_of, final)
        for one in readers
    )


def _is_read_singly_inside(node: Node, reader: Node) -> bool:
    """True if a loop reads an array as sequences, one row per step, and all that its steps, or the branches of a choice, read of it are
    single numbers."""
    if reader.op is IF_ELSE:
        places = [k for k, one in enumerate(reader.inputs[1:]) if one is node]
        handed = [(graph.inputs[k], graph.outputs) for graph in branches(reader) for k in places]
        known = len(places)
    else:
        spec, outputs = loop_spec(reader), loop_spec(reader).inner_outputs()
        handed = [(port.read, outputs) for port in spec.non_seqs if port.outer is node]
        known = len(handed) + sum(seq.outer is node and len(seq.taps) == 1 for seq in spec.seqs)
    if known < reader.inputs.count(node):
        return False
    return all(read not in outputs and _is_unread_or_singly_read(read, outputs) for read, outputs in handed)


def _is_unread_or_singly_read(node: Node, outputs: Sequence[Node]) -> bool:
    readers = users(outputs)
    return not readers.get(node) or _is_read_singly(node, readers, outputs)


def _is_one_of(node: Node) -> bool:
    """True for one number of an array."""
    return isinstance(node.op, Card) and isinstance(node.op.lower, View | Generate) and not node.type.rank


def _is_view(node: Node) -> bool:
    return isinstance(node.op, Card) and isinstance(node.op.lower, View) and not any(one.type.rank for one in node.inputs[1:])


def _is_evenly_spaced(node: Node) -> bool:
    """True for numbers made from ranges and scalars by sums, differences and products."""
    kind = node.op.lower if isinstance(node.op, Card) else None
    if not node.type.rank or (isinstance(kind, Generate) and not kind.from_operand):
        return True
    return node.op in (ADD, SUB, MUL) and all(map(_is_evenly_spaced, node.inputs))  # short expressions: they only occur in ranges


def _is_read_by_elements(node: Node, readers_of: Mapping[Node, Sequence[Node]]) -> bool:
    """True if only loops over elements read a value and slices of it. They leave out what is asked at its edges."""
    left, slices = [node], {node}
    while left:
        readers = readers_of.get(left.pop(), ())
        kinds = [reader.op.lower if isinstance(reader.op, Card) else None for reader in readers]
        later = {reader for reader, kind in zip(readers, kinds, strict=True) if not isinstance(kind, Elementwise)}
        is_gather = any(operand.type.rank for reader in later for operand in reader.inputs[1:])
        if not readers or is_gather or not all(isinstance(kind, View | Generate | Elementwise) for kind in kinds) or len(slices) > DEEPEST:
            return False
        left += later - slices
        slices |= later
    return True


def _is_by_row(node: Node, final: Iterable[Node]) -> bool:
    """True if a value has many rows, which may be computed as they are read."""
    kind = node.op.lower if isinstance(node.op, Card) else None
    is_written = isinstance(kind, Passes) and kind.by_row is not None and kind.by_row.may(dict(node.attrs))
    n_rows = node.type.shape[0] if len(node.types) == 1 and node.type.rank else 0
    return is_written and node not in final and (n_rows is None or n_rows > FEW_ROWS)


def _reads_rows(
    node: Node, reader: Node, readers_of: Mapping[Node, Sequence[Node]], final: Iterable[Node], depth: int = MOST_NESTED
) -> bool:
    """True if only loops read `node` through `reader`, one row per step, through at most `depth` values that are computed row by row."""
    if reader.op is DIM:
        return True
    if reader.op is SCAN:
        spec = loop_spec(reader)
        fed = [port.read for port in spec.non_seqs if port.outer is node]
        rows = sum(seq.outer is node for seq in spec.seqs)
        inside, outputs = users(spec.inner_outputs()), spec.inner_outputs()
        return rows + len(fed) == reader.inputs.count(node) and all(
            read not in outputs and all(_reads_rows(read, later, inside, outputs, depth) for later in inside.get(read, ())) for read in fed
        )
    is_by_row = _is_by_row(reader, final)
    is_view = isinstance(reader.op, Card) and isinstance(reader.op.lower, View)
    if reader in final or not (is_view or (is_by_row and depth)) or reader.inputs.count(node) > 1:
        return False
    later = readers_of[reader]
    return bool(later) and all(_reads_rows(reader, one, readers_of, final, depth - is_by_row) for one in later)


def _fits_locals(node: Node, target: Target) -> bool:
    """True if a value is computed into locals. Not a reduction with several results: its loop would be written out once per result."""
    assert isinstance(node.op, Card)
    return is_small(node, target) and not (isinstance(node.op.lower, Fold) and node.type.rank)


def is_small(node: Node, target: Target) -> bool:
    """True if the value may live in locals.

    Not an array with parts that steps replace at computed places: that takes a choice for each local, but only one store in memory.
    """
    return _is_short(node, target) and not is_short_in_memory(node, target)


def is_short_in_memory(node: Node, target: Target) -> bool:
    """True for an array of few elements that lives in memory because steps replace a part of it at a computed place."""
    return target.stores_parts and _is_short(node, target) and _is_replaced_at_run_time(node)


def _is_short(node: Node, target: Target) -> bool:
    size = node.type.size
    return size is not None and size <= target.locals_limit


def _is_replaced_at_run_time(node: Node) -> bool:
    outputs = [graph.outputs[0] for graph in branches(node)] if node.op is IF_ELSE and len(node.types) == 1 else [node]
    return any(map(is_replaced_at_run_time, outputs))


def is_rotated(state: State, target: Target) -> bool:
    """True if the rows that a state looks back at are few numbers, and live in locals."""
    size = state.write.type.size
    return size is not None and is_small(state.write, target) and size * state.depth <= target.rotated_locals


def _reading_root(node: Node, readers: Sequence[Node], roots: Mapping[Node, Node | None], final: Iterable[Node]) -> Node | None:
    """The one loop that reads `node` element by element; None if there are several, or if anything else reads it too."""
    if node in final or not readers:
        return OUTSIDE
    readers = [reader for reader in readers if places_of(reader, readers) is None]
    loops = set()
    for reader in set(readers):
        if not _reads_in_place(node, reader, len(readers)):
            return OUTSIDE
        loops.add(roots.get(reader, OUTSIDE))
    return loops.pop() if len(loops) == 1 else OUTSIDE


def _reads_in_place(node: Node, reader: Node, n_reads: int) -> bool:
    """True if `reader` reads each element of `node` about once, at the index that it computes."""
    if not isinstance(reader.op, Card):
        return False
    kind = reader.op.lower
    if isinstance(kind, Elementwise):
        return reader.type.shape == node.type.shape
    if isinstance(kind, View):  # only one, and only of slices and axes: several would compute elements several times
        is_gather = any(operand.type.rank for operand in reader.inputs[1:])
        return n_reads == 1 and not is_gather and not _widens(node, reader, kind)
    return n_reads == 1 and isinstance(kind, Fold | Passes) and not _reads_twice(reader, kind)


def places_of(node: Node, readers: Sequence[Node]) -> Node | None:
    """Among `readers` of its operand, the node that finds the places of the extremes `node`, if these reduce rows: one pass makes both."""
    kind = node.op.lower if isinstance(node.op, Card) else None
    if not isinstance(kind, Fold) or kind.is_place or kind.cumulative or not _reduces_rows(node):
        return None
    for reader in readers:
        other = reader.op.lower if isinstance(reader.op, Card) else None
        if isinstance(other, Fold) and other.is_place and reader.attrs == node.attrs and _work(reader, other) == _work(node, kind):
            return reader
    return None


def _work(node: Node, kind: Fold) -> tuple[Expr, Expr]:
    """A fold's start and its step on an element; equal for folds that do the same."""
    x = Name(kind.loop(node.inputs[0].type), "x")
    return kind.start(x.dtype), kind.step(x, x)


def _reads_twice(reader: Node, kind: Fold | Passes) -> bool:
    """True if a second pass looks for the extreme element. Reductions of whole rows keep both, and need none."""
    return isinstance(kind, Fold) and kind.is_place and not _reduces_rows(reader)


def _reduces_rows(node: Node) -> bool:
    """True if whole rows are reduced, element by element."""
    axes = node.attr("axis")
    return isinstance(axes, tuple) and bool(axes) and node.inputs[0].type.rank - 1 not in axes


def _widens(node: Node, reader: Node, kind: View) -> bool:
    before, after = node.type, reader.type
    if before.size is not None and after.size is not None:
        return after.size > before.size
    more_axes = sum(dim != 1 for dim in after.shape) > sum(dim != 1 for dim in before.shape)
    return more_axes or kind.repeats


def _is_nested_scalar(node: Node, readers: Sequence[Node], final: Iterable[Node]) -> bool:
    """True for a scalar that only another scalar expression reads, once, and that has no name that a reader of the code would miss."""
    if node in final or len(readers) != 1 or node.name is not None:
        return False
    reader = readers[0]
    return isinstance(reader.op, Card) and isinstance(reader.op.lower, Elementwise) and reader.type.rank == 0
