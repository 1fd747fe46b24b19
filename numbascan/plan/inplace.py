"""ScanInplaceOptimizer: where a state may be updated in its own row.

A new row may overwrite the old one element by element if every element depends on the old row at its own place alone, and nothing
that is computed later reads the old row. The same holds for a row of which a step replaces a part, such as a stack of checkpoints. Not
handled: states with several taps, rows that another state takes over.
"""

from __future__ import annotations

from ..ir.graph import users
from ..ir.node import Node
from ..ir.ports import LoopSpec, State
from ..ops.card import Card
from ..ops.lowering import Elementwise, Generate, Passes, View
from .place import Place, placements


def may_update_in_place(spec: LoopSpec, state: State) -> bool:
    """Is one row enough for a state whose rows nobody keeps?"""
    return _replaces_part(spec, state) or _maps_elements(spec, state)


def _replaces_part(spec: LoopSpec, state: State) -> bool:
    """Does a step write into a part of the row, when all that reads the old row has been computed?"""
    outputs, write, read = spec.inner_outputs(), state.write, state.reads[0]
    is_part = isinstance(write.op, Card) and isinstance(write.op.lower, Passes) and write.op.lower.inside is not None
    if not is_part or state.taps != (-1,) or write.inputs[0] is not read or outputs.count(write) != 1 or read in outputs:
        return False
    readers = users(outputs)
    if readers[write]:
        return False
    places = placements(outputs, readers)
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


def _is_read_later(node: Node, places: dict[Node, Place]) -> bool:
    """Is a value computed only where it is read, and not at once?"""
    is_view = isinstance(node.op, Card) and isinstance(node.op.lower, View | Generate)
    return is_view or places.get(node) is Place.INLINE


def _maps_elements(spec: LoopSpec, state: State) -> bool:
    """Does every element of the new row depend on the old one at its own place alone?"""
    outputs = spec.inner_outputs()
    read, write = state.reads[0], state.write
    if state.taps != (-1,) or write is read or outputs.count(write) != 1 or read in outputs:
        return False
    if not isinstance(write.op, Card) or not isinstance(write.op.lower, Elementwise):
        return False
    readers = users(outputs)
    if readers[write]:
        return False
    places = placements(outputs, readers)
    behind = _computed_in(write, places)
    others = {one for port in spec.states for one in port.reads} | {carry.read for carry in spec.carries}
    reads_other_state = not (others - {read}).isdisjoint(parent for node in behind for parent in node.inputs)
    is_alone = all(reader in behind for reader in readers.get(read, ()))
    return is_alone and not reads_other_state and _reads_aligned(write, read, places)


def _computed_in(write: Node, places: dict[Node, Place]) -> set[Node]:
    """The nodes that are computed in the loop that writes `write`."""
    found, stack = {write}, [write]
    while stack:
        for parent in stack.pop().inputs:
            if parent not in found and _is_read_later(parent, places):
                found.add(parent)
                stack.append(parent)
    return found


def _reads_aligned(write: Node, read: Node, places: dict[Node, Place]) -> bool:
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
