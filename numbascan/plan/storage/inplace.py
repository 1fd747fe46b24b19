"""ScanInplaceOptimizer: where a state may be updated in its own row.

A step overwrites rows last of all, when everything else that it reads and stores has been computed. So a new row may overwrite the old
one where nothing in the step reads the new row, and what is computed while rows are overwritten meets the old row before that:

- its own loop reads the old row at the index that it writes alone, or replaces a part of it (as in a stack of checkpoints) unread;
- the loops that overwrite other rows, and read this one, come first.

Not handled: states with several taps, rows that another state takes over.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from ...ir.graph import toposort, users
from ...ir.node import Node
from ...ir.ports import LoopSpec, State
from ...ops.card import Card
from ...ops.lowering import Elementwise, Generate, Passes, View
from ..target import Target
from .placement import Placement, placements

Places = Mapping[Node, Placement]
Reads = Mapping[State, Set[Node]]  # what the loop that writes a state's new row reads


def updated_in_place(spec: LoopSpec, candidates: Set[Node], target: Target) -> list[Node]:
    """Those of the `candidates`, new rows of which nobody keeps old ones, that overwrite the old row, in the order in which a step has to
    make them: after all the rest."""
    outputs = spec.inner_outputs()
    readers = users(outputs)
    places = placements(outputs, readers, target)
    ports = [*spec.states, *(State(carry.shared, (-1,), (carry.read,), carry.write) for carry in spec.carries)]
    reads: dict[State, Set[Node]] = {}
    for port in ports:
        is_last = port.write in candidates and port.taps == (-1,) and outputs.count(port.write) == 1 and not readers[port.write]
        if is_last and (_maps_elements(port, places) or _replaces_part(port, places)):
            reads[port] = {parent for node in _computed_in(port.write, places) for parent in node.inputs}
    return [port.write for port in _ordered(reads)]


def _ordered(reads: Reads) -> list[State]:
    """States, each behind those for which its row is read; of rows that are each read for the other one is left out."""
    left, ordered = dict(reads), []
    while left:
        port, behind = next(iter(left)), []
        while port not in behind and (reader := _reader(port, left)) is not None:
            behind.append(port)
            port = reader
        if port not in behind:
            ordered.append(port)
        del left[port]
    return ordered


def _reader(port: State, reads: Reads) -> State | None:
    """Another state for which the row of `port` is read."""
    return next((other for other, nodes in reads.items() if other is not port and port.reads[0] in nodes), None)


def _replaces_part(state: State, places: Places) -> bool:
    """Does a step write into a part of the row, for which it reads nothing else of it?"""
    write, read = state.write, state.reads[0]
    is_part = isinstance(write.op, Card) and isinstance(write.op.lower, Passes) and write.op.lower.inside is not None
    inputs = [parent for node in _computed_in(write, places) for parent in node.inputs]
    return is_part and write.inputs[0] is read and inputs.count(read) == 1


def _is_read_later(node: Node, places: Places) -> bool:
    """Is a value computed only where it is read, and not at once?"""
    is_view = isinstance(node.op, Card) and isinstance(node.op.lower, View | Generate)
    return is_view or places.get(node) is Placement.INLINE


def _maps_elements(state: State, places: Places) -> bool:
    """Does every element of the new row depend on the old one at its own place alone?"""
    read, write = state.reads[0], state.write
    return isinstance(write.op, Card) and isinstance(write.op.lower, Elementwise) and _reads_aligned(write, read, places)


def _computed_in(write: Node, places: Places) -> set[Node]:
    """The nodes that are computed in the loop that writes `write`."""
    nodes, stack = {write}, [write]
    while stack:
        for parent in stack.pop().inputs:
            if parent not in nodes and _is_read_later(parent, places):
                nodes.add(parent)
                stack.append(parent)
    return nodes


def _reads_aligned(write: Node, read: Node, places: Places) -> bool:
    """Do the values computed inside the write's loop read the state at the loop's own index alone?"""
    stack, seen = [write], {write}
    while stack:
        node = stack.pop()
        is_aligned = isinstance(node.op, Card) and isinstance(node.op.lower, Elementwise) and node.type.shape == write.type.shape
        for parent in node.inputs:
            if parent is read:
                if not is_aligned or parent.type.shape != write.type.shape:
                    return False
            elif places.get(parent) is Placement.INLINE and parent not in seen:
                seen.add(parent)
                if not is_aligned and _depends(parent, read):
                    return False
                stack.append(parent)
    return True


def _depends(node: Node, read: Node) -> bool:
    return read in toposort([node])
