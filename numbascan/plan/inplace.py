"""ScanInplaceOptimizer: where a state may be updated in its own row.

A new row may overwrite the old one element by element if every element depends on the old row at its own place alone, and nothing
that is computed later reads the old row. The same holds for a row of which a step replaces a part, such as a stack of checkpoints. Not
handled: states with several taps, rows that another state takes over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from ..ir.graph import users
from ..ir.node import Node
from ..ir.ports import LoopSpec, State
from ..ops.card import Card
from ..ops.lowering import Elementwise, Generate, Passes, View
from .place import Place, is_small, placements

Readers = Mapping[Node, Sequence[Node]]


def updated_in_place(spec: LoopSpec) -> list[Node]:
    """The results of a step that may overwrite the row that they come from, if nobody keeps rows, in the order in which a step has to.

    A row may be read for other such results, which then come before: each in a loop of its own, or in one loop at the same element.
    """
    outputs = spec.inner_outputs()
    readers = users(outputs)
    places = placements(outputs, readers)
    ports = [*spec.states, *(State(carry.shared, (-1,), (carry.read,), carry.write) for carry in spec.carries)]
    parts = [port for port in ports if _replaces_part(outputs, port, readers, places)]
    behind = {port: _computed_in(port.write, places) for port in ports if _maps_elements(outputs, port, readers, places)}
    of_parts = {port.reads[0] for port in parts}
    reads = {port: {parent for node in nodes for parent in node.inputs} for port, nodes in behind.items()}
    left = [port for port in behind if of_parts.isdisjoint(reads[port])]
    while True:
        known = {port: set().union(*(behind[one] for one in left if one is port or not is_small(one.write))) for port in left}
        kept = [port for port in left if known[port].issuperset(readers.get(port.reads[0], ()))]
        if len(kept) == len(left):
            ordered = _ordered(left, reads)
            if len(ordered) == len(left):
                return [port.write for port in (*parts, *ordered)]
            kept = ordered + [port for port in left if port not in ordered][1:]  # rows that are each read for the other: one stays
        left = kept


def _ordered(ports: Sequence[State], reads: Mapping[State, Set[Node]]) -> list[State]:
    """Ports, each behind those for which its row is read, as far as they do not go in a circle."""
    found: list[State] = []
    while True:
        left = [port for port in ports if port not in found]
        ready = [port for port in left if not any(port.reads[0] in reads[other] for other in left if other is not port)]
        if not ready:
            return found
        found += ready


def _replaces_part(outputs: Sequence[Node], state: State, readers: Readers, places: Mapping[Node, Place]) -> bool:
    """Does a step write into a part of the row, when all that reads the old row has been computed?"""
    write, read = state.write, state.reads[0]
    is_part = isinstance(write.op, Card) and isinstance(write.op.lower, Passes) and write.op.lower.inside is not None
    if not is_part or state.taps != (-1,) or write.inputs[0] is not read or outputs.count(write) != 1 or read in outputs:
        return False
    if readers[write]:
        return False
    stack, seen = [read], {read}
    while stack:
        node = stack.pop()
        for reader in readers[node]:
            if reader is write:
                if node is not read or write.inputs.count(read) > 1:
                    return False
            elif _is_read_later(reader, places) and reader not in seen:
                if reader in outputs:
                    return False
                seen.add(reader)
                stack.append(reader)
    return True


def _is_read_later(node: Node, places: Mapping[Node, Place]) -> bool:
    """Is a value computed only where it is read, and not at once?"""
    is_view = isinstance(node.op, Card) and isinstance(node.op.lower, View | Generate)
    return is_view or places.get(node) is Place.INLINE


def _maps_elements(outputs: Sequence[Node], state: State, readers: Readers, places: Mapping[Node, Place]) -> bool:
    """Does every element of the new row depend on the old one at its own place alone?"""
    read, write = state.reads[0], state.write
    if state.taps != (-1,) or write is read or outputs.count(write) != 1 or read in outputs:
        return False
    if not isinstance(write.op, Card) or not isinstance(write.op.lower, Elementwise):
        return False
    return not readers[write] and _reads_aligned(write, read, places)


def _computed_in(write: Node, places: Mapping[Node, Place]) -> set[Node]:
    """The nodes that are computed in the loop that writes `write`."""
    found, stack = {write}, [write]
    while stack:
        for parent in stack.pop().inputs:
            if parent not in found and _is_read_later(parent, places):
                found.add(parent)
                stack.append(parent)
    return found


def _reads_aligned(write: Node, read: Node, places: Mapping[Node, Place]) -> bool:
    """Do the values computed inside the write's loop read the state at the loop's own index alone?"""
    stack, seen = [write], {write}
    while stack:
        node = stack.pop()
        is_aligned = isinstance(node.op, Card) and isinstance(node.op.lower, Elementwise) and node.type.shape == write.type.shape
        for parent in node.inputs:
            if parent is read:
                if not is_aligned or parent.type.shape != write.type.shape:
                    return False
            elif places.get(parent) is Place.INLINE and parent not in seen:
                seen.add(parent)
                if not is_aligned and _depends(parent, read):
                    return False
                stack.append(parent)
    return True


def _depends(node: Node, read: Node) -> bool:
    from ..ir.graph import toposort

    return read in toposort([node])
