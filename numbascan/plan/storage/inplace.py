"""ScanInplaceOptimizer: where a state may be updated in its own row.

A step overwrites rows last of all, when everything else that it reads and stores has been computed. So a new row may overwrite the old
one where nothing in the step reads the new row, and what is computed while rows are overwritten meets the old row before that:

- its own loop reads the old row at the index that it writes alone;
- or parts of the row are replaced, one after the other. What is written, and where, is computed before that, into locals or work rows,
  unless it reads nothing of the row but the elements that it replaces;
- the loops that overwrite other rows, and read this one, come first.

Not handled: states with several taps, rows that another state takes over, and slices that may be as long as the row, where what is
written reads others of its elements: a second row then costs no more than a work row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import inf

from ...ir.graph import toposort, users
from ...ir.node import Node, constant_value
from ...ir.ports import LoopSpec, State
from ...ops.card import Card
from ...ops.elementwise import ADD
from ...ops.indexing import INDEX
from ...ops.lowering import Elementwise
from ...ops.runtime_attributes import filled
from ..target import Target
from .placement import Placement, placements
from .stores import replaces_part

LARGE = 64  # elements of a slice beyond which it may be as long as the row

Places = Mapping[Node, Placement]
Reads = Mapping[State, Set[Node]]  # what is read while a state's new row is written
Readers = Mapping[Node, Sequence[Node]]
Parts = list[Node]  # from the old row to the new one: each is the one before with a part of it replaced


@dataclass(frozen=True)
class Updates:
    """What overwrites the row that it comes from.

    rows: the values to make after all the rest, in this order, and for each the new row that it is or is on the way to.
    stored: values that must be computed before that, not where they are read.
    """

    rows: Mapping[Node, Node] = field(default_factory=dict)
    stored: Set[Node] = frozenset()


def updated_in_place(spec: LoopSpec, candidates: Set[Node], target: Target) -> Updates:
    """The updates of those of the `candidates`, new rows of which nobody keeps old ones, that may be made in place."""
    outputs = spec.inner_outputs()
    readers = users(outputs)
    ports = [*spec.states, *(State(carry.shared, (-1,), (carry.read,), carry.write) for carry in spec.carries)]
    ports = [port for port in ports if port.write in candidates and port.taps == (-1,)]
    ports = [port for port in ports if outputs.count(port.write) == 1 and not readers[port.write]]
    chains = {port: parts for port in ports if (parts := _replaced_parts(port, readers, outputs))}
    stored = _stored(chains, lambda stored: placements(outputs, readers, target, stored))
    places = placements(outputs, readers, target, stored)
    reads: dict[State, Set[Node]] = {}
    for port in ports:
        if port in chains or _maps_elements(port, places):
            computed = [node for part in chains.get(port, [port.write]) for node in _computed_in(part, places)]
            reads[port] = {parent for node in computed for parent in node.inputs}
    return Updates({part: port.write for port in _ordered(reads) for part in chains.get(port, [port.write])}, stored)


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


# parts of a row that are replaced -----------------------------------------------------------------------------------


def _replaced_parts(state: State, readers: Readers, outputs: Sequence[Node]) -> Parts:
    """How the new row comes from the old one by replacing parts of it; nothing where the step makes it otherwise, or reads one between."""
    (read,) = state.reads
    parts = [state.write]
    while parts[0].inputs and replaces_part(parts[0], before := parts[0].inputs[0]) and read not in parts[0].inputs[1:]:
        if before is read:
            return parts
        if len(readers[before]) > 1 or before in outputs:
            return []
        parts.insert(0, before)
    return []


def _stored(chains: dict[State, Parts], placed: Callable[[Set[Node]], Places]) -> Set[Node]:
    """What must be computed before rows are overwritten. Leaves out of `chains` those for which that would be many elements."""
    stored: set[Node] = set()
    while True:
        places = placed(stored)
        late = {(state, part, one) for state, parts in chains.items() for part in parts for one in _late(state, part, places)}
        if not late:
            return stored
        large = {state for state, part, one in late if one is part.inputs[1] and not _is_small(part)}
        for state in large:
            del chains[state]
        stored = set() if large else stored | {one for _, _, one in late}


def _late(state: State, part: Node, places: Places) -> list[Node]:
    """What is written, or says where, and would be read of the row while that is being overwritten."""
    (read,) = state.reads
    if part.inputs[0] is read and _is_one_element(part):
        return []  # all is read before the one element is written
    late = [one for one in part.inputs[2:] if _is_read_late(one, read, places)]
    value = part.inputs[1]
    if late or not _is_read_late(value, read, places) or (part.inputs[0] is read and _reads_what_it_replaces(part, read, places)):
        return late
    return [value]


def _is_read_late(node: Node, read: Node, places: Places) -> bool:
    """Is a value computed where it is read, from the old row?"""
    return _is_read_later(node, places) and any(read in one.inputs for one in _computed_in(node, places))


def _reads_what_it_replaces(part: Node, read: Node, places: Places) -> bool:
    """Does what is written read the row at no element but that in whose place it is written?"""
    shape = part.inputs[1].type.shape
    stack, seen = [part.inputs[1]], set[Node]()
    while stack:
        node = stack.pop()
        if node in seen or not _is_read_late(node, read, places):
            continue
        seen.add(node)
        is_region = node.op is INDEX and node.inputs == (read, *part.inputs[2:]) and node.attr("spec") == part.attr("spec")
        is_aligned = isinstance(node.op, Card) and isinstance(node.op.lower, Elementwise) and read not in node.inputs
        if node.type.shape != shape or not (is_region or is_aligned):
            return False
        stack += [] if is_region else node.inputs
    return True


def _entries(part: Node) -> list[object]:
    """What stands between the brackets of a part that is replaced, axis by axis."""
    return [entry for entry in filled(part.attr("spec"), iter(part.inputs[2:])) if entry != "newaxis"]


def _is_one_element(part: Node) -> bool:
    entries = _entries(part)
    is_single = all(isinstance(entry, int) or (isinstance(entry, Node) and not entry.type.rank) for entry in entries)
    return is_single and len(entries) == part.type.rank


def _is_small(part: Node) -> bool:
    """Is the part small beside the row, or are there positions (then a row is copied whole before parts of it are replaced)?"""
    return any(not isinstance(entry, tuple) or _most(*entry) <= LARGE for entry in _entries(part))


def _most(start: object, stop: object, step: object) -> float:
    """As many elements as a slice has at most, where that is known."""
    if isinstance(start, Node) and isinstance(stop, Node) and stop.op is ADD and start in stop.inputs:
        start, stop = 0, next((value.item() for one in stop.inputs if (value := constant_value(one)) is not None), None)
    elif step is None or (isinstance(step, int) and step > 0):
        start = 0 if start is None and isinstance(stop, int) and stop >= 0 else start
        stop = 0 if stop is None and isinstance(start, int) and start < 0 else stop
    if not isinstance(start, int) or not isinstance(stop, int):
        return inf
    return abs(stop - start) if (start < 0) == (stop < 0 or stop == 0 > start) else inf


# what is computed while a row is overwritten ---------------------------------------------------------------------------


def _is_read_later(node: Node, places: Places) -> bool:
    """Is a value computed only where it is read, and not at once?"""
    return places.get(node) is Placement.INLINE


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
