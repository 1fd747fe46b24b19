"""ScanInplaceOptimizer: where a state may be updated in its own row.

A new row may overwrite the old one element by element if every element depends on the old row at its own place alone, and nothing
that is computed later reads the old row. Not handled: states with several taps, rows that another state takes over.
"""

from __future__ import annotations

from ..ir.graph import users
from ..ir.node import Node
from ..ir.ports import LoopSpec, State
from ..ops.card import Card
from ..ops.lowering import Elementwise
from .place import Place, placements


def may_update_in_place(spec: LoopSpec, state: State) -> bool:
    """Is one row enough for a state whose rows nobody keeps?"""
    if state.taps != (-1,) or len(spec.states) != 1 or spec.carries or spec.traces or spec.until is not None:
        return False
    outputs = spec.inner_outputs()
    read, write = state.reads[0], state.write
    if write is read or not isinstance(write.op, Card) or not isinstance(write.op.lower, Elementwise):
        return False
    readers = users(outputs)
    return _reads_aligned(write, read, placements(outputs, readers))


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
