"""Values of a step that have one shape at every step, so that a trace can keep them; padded rows of short slices that have not."""

from __future__ import annotations

from collections.abc import Collection

from ..ir.node import INPUT, Node, constant, constant_value, owner_of
from ..ops.algebra import broadcast_to, dims_of, indexed, written
from ..ops.card import Card
from ..ops.dims import DIM
from ..ops.elementwise import ADD, SUB
from ..ops.index_entries import FULL, for_all_axes
from ..ops.indexing import INDEX
from ..ops.lowering import Library
from ..ops.runtime_attributes import filled

FEW = 16  # most elements of a slice that is kept in place of its row


def has_one_shape(node: Node, fixed: Collection[Node]) -> bool:
    """True if a value of the step surely has the same shape at every step. `fixed`: the inputs of the step whose values do not change.

    The shapes of inputs never change: they are rows. But a slice may end at a number that changes.
    """
    return _are_fixed(dims_of(node), fixed)


def _are_fixed(dims: Collection[Node], fixed: Collection[Node]) -> bool:
    left, seen = list(dims), set[Node]()
    while left:
        one = left.pop()
        if one in seen:
            continue
        seen.add(one)
        if one.op is INPUT and one not in fixed:
            return False
        left += _shaped_by(one.inputs[0]) if one.op is DIM else one.inputs
    return True


def _shaped_by(node: Node) -> list[Node]:
    """What the shape of a value depends on: dimensions of its operands, and values."""
    source = owner_of(node)[0]
    if source.op is INPUT:
        return []
    if source.op is INDEX:
        return [*dims_of(source.inputs[0]), *source.inputs[1:]]
    if isinstance(source.op, Card) and isinstance(source.op.lower, Library):
        return [dim for operand in source.inputs for dim in dims_of(operand)]
    return [node]


def as_row(node: Node, fixed: Collection[Node]) -> tuple[Node, Node] | None:
    """(the row that a trace keeps of a value of the step, the value restored from it); None where no row of one shape is known.

    A slice of few elements that the end of its array may cut short is padded with zeros to its full width.
    """
    if has_one_shape(node, fixed):
        return node, node
    entries = entries_of(node) if node.op is INDEX else ("newaxis",)
    if "newaxis" in entries:
        return None
    assert isinstance(node.op, Card)
    like = broadcast_to(constant(0, node.type.dtype), dims_of(node.inputs[0]))  # only measured: no element is read
    dims = dims_of(node.op.rebuilt(node, (like, *node.inputs[1:])))
    widths = [width_of(entry) for entry in entries if isinstance(entry, tuple)]
    if not _are_fixed([dim for dim, width in zip(dims, widths, strict=True) if width is None], fixed):
        return None
    shape = [dim if width is None else width for dim, width in zip(dims, widths, strict=True)]
    region = tuple(FULL if width is None else (None, dim, None) for dim, width in zip(dims, widths, strict=True))
    row = written(broadcast_to(constant(0, node.type.dtype), shape), node, region)
    return row, indexed(row, region)


def entries_of(node: Node) -> tuple[object, ...]:
    """The entries between the brackets of an index, for all axes, with nodes for what is known at run time only."""
    entries = for_all_axes(filled(node.attr("spec"), iter(node.inputs[1:])), node.inputs[0].type.rank)
    return tuple(entries)


def width_of(entry: object) -> int | None:
    """The most elements that a slice can have, whatever the array; None where that is not known to be few.

    `j:j + 3` has three or fewer, also where one of the two is negative and counts from the end.
    """
    start, stop, step = entry if isinstance(entry, tuple) else (None, None, None)
    if start is None or stop is None or step not in (None, 1):
        return None
    (base, first), (other, last) = _split(start), _split(stop)
    is_known = base is other and (base is not None or (first < 0) == (last < 0))
    return last - first if is_known and 0 < last - first <= FEW else None


def _split(place: object) -> tuple[Node | None, int]:
    """(value known at run time only, or None; number added to it) of a place. Only sums of int64 are split: others would wrap."""
    if not isinstance(place, Node):
        assert isinstance(place, int)
        return None, place
    if place.type.dtype == "int64" and place.op in (ADD, SUB):
        a, b = place.inputs
        number = constant_value(b)
        if number is not None and a.type.dtype == "int64":
            return a, int(number) if place.op is ADD else -int(number)
        number = constant_value(a)
        if number is not None and b.type.dtype == "int64" and place.op is ADD:
            return b, int(number)
    return place, 0
