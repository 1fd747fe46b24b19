"""A choice between an array with parts replaced and the old array becomes a choice of the parts.

    # before: where(c, set_subtensor(x[i], y), x)        # after: set_subtensor(x[i], where(c, y, x[i]))

A sum into a part adds -0.0 where the part stays, which changes no number. A state can then be updated in its own row, at the cost of what
is written.

Arithmetic: none but this sum, in the dtype of the array.

Not handled: arrays of few numbers, unless a place is computed; parts on the way to the new array that something else reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.graph import users
from ..ir.loop_node import loop_spec
from ..ir.node import Node, constant
from ..ops.algebra import cast, taken, where
from ..ops.indexing import INC_SUBTENSOR, SET_SUBTENSOR
from ..ops.runtime_attributes import filled
from .replace_loops import is_in_memory, placed, with_loops, with_step


def choose_parts(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """`outputs` with parts chosen instead of arrays, in the steps of loops."""
    return with_loops(outputs, _changed)


def _changed(loop: Node) -> Sequence[Node] | None:
    spec = loop_spec(loop)
    writes = spec.inner_outputs()
    readers = users(writes)
    choices = {node: parts for node in readers if (parts := _parts(node, readers, writes))}
    if not choices:
        return None
    return with_step(loop, lambda node, done: _chosen(node, choices[node], done) if node in choices else None)


def _parts(node: Node, readers: Mapping[Node, Sequence[Node]], writes: Sequence[Node]) -> list[Node]:
    """The replacements that lead from the old array to the new one, where `node` chooses between these; else nothing."""
    if node.op.name != "where" or node.inputs[0].type.rank or not any(map(is_in_memory, node.inputs[1:])):
        return []
    for new, old in (node.inputs[1:], node.inputs[:0:-1]):
        parts: list[Node] = []
        while new.op in (SET_SUBTENSOR, INC_SUBTENSOR) and len(readers[new]) == 1 and new not in writes:
            parts.insert(0, new)
            new = new.inputs[0]
            if new is old and new.type.dtype == node.type.dtype:
                return parts
    return []


def _chosen(node: Node, parts: Sequence[Node], done: Mapping[Node, Node]) -> Node:
    """The old array with the parts replaced one after the other, each by a choice between the new part and the old one."""
    is_first, old = parts[-1] is node.inputs[1], done[parts[0].inputs[0]]
    new = old
    for part in parts:
        value, *holes = (done[one] for one in part.inputs[1:])
        with placed(part):
            stays = taken(old, filled(part.attr("spec"), iter(holes))) if part.op is SET_SUBTENSOR else _nothing(old)
            value = cast(value, old.type.dtype)
            chosen = where(done[node.inputs[0]], *((value, stays) if is_first else (stays, value)))
            new = part.op.rebuild(part, (new, chosen, *holes))
    return new


def _nothing(array: Node) -> Node:
    """The number that changes no number of the array when it is added."""
    return constant({"f": -0.0, "c": complex(-0.0, -0.0)}.get(array.type.kind, 0), array.type.dtype)
