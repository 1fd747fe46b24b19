"""ScanInplaceOptimizer: where a state may be updated in place, its new row written over the old one.

A step overwrites rows last, after it has computed everything else that it reads and stores. So a new row may overwrite the old one if
whatever is computed while rows are overwritten finds the rows that it reads as they were:

- the row's own loop reads the old row only at the index that it writes;
- or parts of the row are replaced, one after the other. What is written, and where, is computed before that, into locals or work rows,
  unless it reads nothing of the row but the elements that it replaces;
- or an inner loop that starts from the row does so in each of its steps, and only its last row is read. The loop's other operands are
  computed before: small parts of the row, and not the row itself;
- or a choice does so in one branch, and the other one does too, or leaves the row as it was. Its operands are computed before in the
  same way. A choice of several results updates those that can be updated together.

All else that comes late, since it reads new rows, or rows between two parts, is put into one order with them: a value is made after its
operands, and before the next part of each row that its loops read is replaced. Where that is a circle, a small part of a row that is read
in it, such as an element, is computed before. If there is none, a state keeps two rows.

Not handled:
- states with several taps
- rows that another state takes over
- slices that may be as long as the row, if what is written reads other elements of it: a second row then costs no more than a work row
- inner loops with two results whose last rows are read
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

from ...ir.graph import Graph, toposort, users
from ...ir.loop_node import SCAN, loop_spec
from ...ir.node import ITEM, Node, constant_value, outputs_of, owner_of
from ...ir.ports import LoopSpec, State
from ...ops.card import Card
from ...ops.control import IF_ELSE, branches
from ...ops.elementwise import ADD
from ...ops.indexing import GATHER, INDEX
from ...ops.lowering import Elementwise
from ...ops.runtime_attributes import filled
from ..target import Target
from .placement import Placement, is_rotated, is_small, placements
from .save_mem import STATE_BEHIND
from .stores import replaces_part

LARGE = 64  # slices of more elements may be as long as the row

Places = Mapping[Node, Placement]
Readers = Mapping[Node, Sequence[Node]]
Parts = list[Node]  # from the old row to the new one, each the one before with a part replaced


@dataclass(frozen=True)
class Updates:
    """The values that overwrite the rows they come from.

    rows: the values to make after everything else, in this order, each with the new rows that it is or leads to: several for a loop that
    updates several, none for a value that only reads the results of such a loop.
    stored: values that must be computed before that, not where they are read.
    """

    rows: Mapping[Node, Sequence[Node]] = field(default_factory=dict)
    stored: Set[Node] = frozenset()

    @property
    def writes(self) -> Set[Node]:
        """The new rows in the memory of the old ones. Others may be keys of `rows`, made late since they read others."""
        return {write for writes in self.rows.values() for write in writes}


def updated_in_place(spec: LoopSpec, candidates: Set[Node], target: Target) -> Updates:
    """The updates that may be made in place, among the `candidates`: new rows whose old rows nobody keeps."""
    ports = [port for port in states_of(spec) if port.write in candidates and port.taps == (-1,)]
    return _updated(ports, spec.inner_outputs(), target)


def states_of(spec: LoopSpec) -> list[State]:
    """The states of a loop, then its shared variables as states."""
    return [*spec.states, *(State(carry.shared, (-1,), (carry.read,), carry.write) for carry in spec.carries)]


def updated_in_branch(graph: Graph, places: Mapping[int, int], target: Target) -> Updates:
    """The updates in one branch of a choice whose results take the memory of arguments. places: by result, the number of its argument."""
    pairs = [(graph.inputs[k], graph.outputs[result]) for result, k in places.items()]
    return _updated([State(read, (-1,), (read,), write) for read, write in pairs if read is not write], graph.outputs, target)


def updated_results(choice: Node, target: Target) -> dict[int, int]:
    """The results of a choice that may be updated in the memory of an argument, together, each with the argument's number."""
    places: dict[int, int] = {}
    for result, output in enumerate(outputs_of(choice)):
        arguments = {_argument_before(graph, result) for graph in branches(choice)} - {None}
        k = arguments.pop() if len(arguments) == 1 else None
        if k is not None and output.type.rank and choice.inputs[1 + k].type == output.type and not is_small(output, target):
            places[result] = k
    places = {result: k for result, k in places.items() if [*places.values()].count(k) == 1}
    while places:
        sides = [(graph, updated_in_branch(graph, places, target)) for graph in branches(choice)]
        fitting = {
            result: k
            for result, k in places.items()
            if all(graph.outputs[result] is graph.inputs[k] or graph.outputs[result] in side.writes for graph, side in sides)
        }
        if fitting == places:
            break
        places = fitting
    return places


def _updated(ports: Sequence[State], outputs: Sequence[Node], target: Target) -> Updates:
    readers = users(outputs)
    ports = [port for port in ports if outputs.count(port.write) == 1]
    parts = {port: parts for port in ports if (parts := _replaced_parts(port, readers, outputs, target))}
    early: Set[Node] = frozenset()  # what is read of rows before these are overwritten, and not where it is needed
    while True:  # each round takes one row that is read too late: what is read of it is read early, or its state given up
        chains = dict(parts)
        stored = _stored(chains, outputs, readers, target, early)
        places = placements(outputs, readers, target, stored)
        rows = {port: [port.reads[0], *chains.get(port, [port.write])] for port in ports if port in chains or _maps_elements(port, places)}
        makers = {port: {node for part in versions[1:] for node in made_with(part)} for port, versions in rows.items()}
        late = _late_values(outputs, {node for nodes in makers.values() for node in nodes})
        ordered, stuck = _in_order(late, _turns(rows, late, outputs, places))
        if not stuck:
            return Updates({node: [port.write for port in rows if node in makers[port]] for node in ordered}, stored)
        small = next((turn.reads for turn in stuck if turn.is_small(turn.port in chains)), None)
        if small is not None:
            early |= small
        else:
            ports = [port for port in ports if port is not stuck[0].port]
            parts.pop(stuck[0].port, None)
            early = frozenset()


# the order in which rows are overwritten, and read ---------------------------------------------------------------------


@dataclass(frozen=True)
class _Turn:
    """What a value reads of a row of `port`, for which it is made before a part of the row is replaced.

    reads: what is computed where the value is, and may be computed before; empty if the value itself reads the row.
    """

    port: State
    reads: Set[Node]

    def is_small(self, is_in_parts: bool) -> bool:
        """True if what is read may be copied before: more than a number only of a row that is replaced in parts.

        A row of which all is written anyway is written into a second one at no cost.
        """
        return bool(self.reads) and all(not read.type.rank or (is_in_parts and _is_small_part(read)) for read in self.reads)


Turns = dict[Node, dict[Node, _Turn]]  # by what overwrites a row, all that must be made before it


def _late_values(outputs: Sequence[Node], makers: Set[Node]) -> dict[Node, None]:
    """The values that overwrite rows, and all that is made from them."""
    late: dict[Node, None] = {}
    for node in toposort(outputs):
        if node in makers or not late.keys().isdisjoint(node.inputs):
            late[node] = None
    return late


def _turns(rows: Mapping[State, Sequence[Node]], late: Iterable[Node], outputs: Sequence[Node], places: Places) -> Turns:
    """What must be made before a part of a row is replaced: all late values that read the row as it was, but the part itself.

    A result that is computed where it is stored, at the end of the step, cannot be: it is entered as if the part had to precede itself.
    """
    turns: Turns = {}
    following = {row: (port, made_with(part)) for port, versions in rows.items() for row, part in pairwise(versions)}
    for node in late:
        reads: dict[Node, set[Node]] = {}
        for one in _computed_in(node, places):
            for row in one.inputs:
                reads.setdefault(row, set()).add(one)
        is_last, is_direct = node in outputs and _is_read_later(node, places), not _is_read_later(node, places)
        for row, (port, (maker, *others)) in following.items():
            if row in reads and node not in (maker, *others):
                turn = _Turn(port, frozenset() if is_direct and node in reads[row] else reads[row])
                turns.setdefault(maker, {})[maker if is_last else node] = turn
    return turns


def _in_order(nodes: Iterable[Node], turns: Turns) -> tuple[list[Node], list[_Turn]]:
    """The nodes in an order that puts each after its operands, and after what else must precede it; or the turns in a circle of these."""
    left, ordered = dict.fromkeys(nodes), list[Node]()
    while left:
        node = next((one for one in left if left.keys().isdisjoint([*one.inputs, *turns.get(one, ())])), None)
        if node is None:
            return [], _circle(left, turns)
        ordered.append(node)
        del left[node]
    return ordered, []


def _circle(left: Mapping[Node, None], turns: Turns) -> list[_Turn]:
    """The turns in a circle of nodes each of which waits for the next one."""
    path = [next(iter(left))]
    while path[-1] not in path[:-1]:
        path.append(next(one for one in (*turns.get(path[-1], ()), *path[-1].inputs) if one in left))
    circle = path[path.index(path[-1]) :]
    return [turns[node][before] for node, before in pairwise(circle) if before in turns.get(node, ())]


# parts of a row that are replaced -----------------------------------------------------------------------------------


def _replaced_parts(state: State, readers: Readers, outputs: Sequence[Node], target: Target) -> Parts:
    """The replacements of parts that lead from the old row to the new one; empty if the step makes it otherwise, or reads a row between."""
    (read,) = state.reads
    parts = [state.write]
    while (before := updated_operand(parts[0], target)) is not None and read not in _others(parts[0], before):
        between = {*made_with(parts[0])} - {before, parts[0]}
        if any(_is_read_besides(one, readers) or one in outputs for one in between):
            return []
        if before is read:
            return parts
        if before in outputs or before in _others(parts[0], before):
            return []
        parts.insert(0, before)
    return []


def _is_read_besides(node: Node, readers: Readers) -> bool:
    """True if a value has several readers; results of a loop do not count."""
    if node.op in (SCAN, IF_ELSE) and all(reader.op is ITEM for reader in readers[node]):
        return False
    return len(readers[node]) > 1


def _is_small_part(read: Node) -> bool:
    """True if what is read of a row is small enough to copy it."""
    return (read.type.size or inf) <= LARGE or (read.op in (INDEX, GATHER) and _is_small(_entries(read, read.inputs[1:])))


def updated_operand(part: Node, target: Target) -> Node | None:
    """The array that `part` may update in the array's own row; None if there is none. `part` is that array

    - with a part of it replaced;
    - after an inner loop that starts from it, and updates it in place in every step;
    - or after a choice: one branch updates it in place, and the other one does too, or leaves it as it was.

    Whether `part` reads the array elsewhere is for the caller to check. Not handled: changes of the type.
    """
    before = _array_before(part)
    if before is None or replaces_part(part, before):
        return before
    if before.type != part.type or is_small(part, target):
        return None
    choice = made_with(part)[0]
    if choice.op is IF_ELSE:
        k = updated_results(choice, target).get(owner_of(part)[1])
        return None if k is None else choice.inputs[1 + k]
    spec = loop_spec(made_with(part)[0])
    ports = states_of(spec)
    writes = updated_in_place(spec, {port.write for port in ports if not is_rotated(port, target)}, target).writes
    return before if any(port.initial is before and port.write in writes for port in ports) else None


def _array_before(part: Node) -> Node | None:
    """The array that `part` would update, judged by how it is made."""
    if part.inputs and replaces_part(part, part.inputs[0]):
        return part.inputs[0]
    state = _last_state(part)
    if state is not None:
        return state.initial
    choice = made_with(part)[0]
    if choice.op is not IF_ELSE:
        return None
    arguments = {_argument_before(graph, owner_of(part)[1]) for graph in branches(choice)} - {None}
    return next((before for k, before in enumerate(choice.inputs[1:]) if arguments == {k}), None)


def _argument_before(graph: Graph, result: int) -> int | None:
    """The number of the argument that a branch would update for a result; None if there is none."""
    node: Node | None = graph.outputs[result]
    while node is not None and node not in graph.inputs:
        node = _array_before(node)
    return None if node is None else graph.inputs.index(node)


def _last_state(part: Node) -> State | None:
    """The state of a loop whose last row, or value after the last step, is `part`; None unless its one tap is -1."""
    loop, *between = made_with(part)
    if loop.op is not SCAN:
        return None
    spec = loop_spec(loop)
    position = next((one.number("index") for one in between if one.op is ITEM), 0)
    if part.op in (SCAN, ITEM):  # a shared variable's last value
        k = position - len(spec.states) - len(spec.traces)
        return states_of(spec)[len(spec.states) + k] if k >= 0 else None
    if part.op is INDEX and part.attr("spec") != (-1,):
        return None
    state = spec.states[position] if position < len(spec.states) else None
    return None if state is None or state.taps != (-1,) or state.has_axis else state


def made_with(part: Node) -> list[Node]:
    """The nodes that are made together with a part: for the last row of a loop, the loop and its result come first."""
    if part.op is ITEM and part.inputs[0].op in (SCAN, IF_ELSE):
        return [part.inputs[0], part]
    if part.op not in (INDEX, STATE_BEHIND):
        return [part]
    result = part.inputs[0]
    return [result.inputs[0], result, part] if result.op is ITEM else [result, part]


def _others(part: Node, before: Node) -> list[Node]:
    """The operands of a part, without the array before it."""
    inputs = list(made_with(part)[0].inputs)
    inputs.remove(before)
    return inputs


def _stored(chains: dict[State, Parts], outputs: Sequence[Node], readers: Readers, target: Target, early: Set[Node]) -> Set[Node]:
    """The values to compute before rows are overwritten. Removes from `chains` the states for which these would be large."""
    stored = early
    while True:
        places = placements(outputs, readers, target, stored)
        late = {
            (state, first, _is_large(part, first))
            for state, parts in chains.items()
            for k, part in enumerate(parts)
            for rows in [[state.reads[0], *parts[:k]]]
            for one in _late(part, rows[-1], {*rows[:-1]}, places)
            for first in _numbers_in(one, {*rows}, places) or {one}
        }
        if not late:
            return stored
        large = {state for state, _, is_large in late if is_large}
        for state in large:
            del chains[state]
        stored = early if large else stored | {one for _, one, _ in late}


def _late(part: Node, before: Node, older: Set[Node], places: Places) -> list[Node]:
    """The operands of a part (what is written, and where) that would read the row (`before`) while it is being overwritten, or as it was
    still earlier (`older`)."""
    rows = older | {before}
    if not replaces_part(part, before):
        return [one for one in made_with(part)[0].inputs if _is_read_late(one, rows, places)]
    value, *others = part.inputs[1:]
    if _is_one_element(part) and not any(_is_read_late(one, older, places) for one in (value, *others)):
        return []  # everything is read before the one element is written
    late = [one for one in others if _is_read_late(one, rows, places)]
    if late or not _is_read_late(value, rows, places):
        return late
    return [value] if _is_read_late(value, older, places) or not _reads_what_it_replaces(part, before, places) else []


def _is_read_late(node: Node, rows: Set[Node], places: Places) -> bool:
    """True if a value is computed only where it is read, and from one of the rows."""
    return _is_read_later(node, places) and any(not rows.isdisjoint(one.inputs) for one in _computed_in(node, places))


def _numbers_in(node: Node, rows: Set[Node], places: Places) -> set[Node]:
    """The numbers that a value reads of rows: made early, they serve in place of the value, unless it reads more of them."""
    return {one for one in _computed_in(node, places) if not one.type.rank and not rows.isdisjoint(one.inputs)}


def _reads_what_it_replaces(part: Node, read: Node, places: Places) -> bool:
    """True if what is written reads the row only at the elements that it replaces."""
    shape = part.inputs[1].type.shape
    stack, seen = [part.inputs[1]], set[Node]()
    while stack:
        node = stack.pop()
        if node in seen or not _is_read_late(node, {read}, places):
            continue
        seen.add(node)
        is_region = node.op is INDEX and node.inputs == (read, *part.inputs[2:]) and node.attr("spec") == part.attr("spec")
        is_aligned = isinstance(node.op, Card) and isinstance(node.op.lower, Elementwise) and read not in node.inputs
        if node.type.shape != shape or not (is_region or is_aligned):
            return False
        stack += [] if is_region else node.inputs
    return True


def _entries(part: Node, places: Sequence[Node]) -> list[object]:
    """The index of a part, axis by axis. `places`: the operands in it."""
    return [entry for entry in filled(part.attr("spec"), iter(places)) if entry != "newaxis"]


def _is_one_element(part: Node) -> bool:
    entries = _entries(part, part.inputs[2:])
    is_single = all(isinstance(entry, int) or (isinstance(entry, Node) and not entry.type.rank) for entry in entries)
    return is_single and len(entries) == part.type.rank


def _is_large(part: Node, value: Node) -> bool:
    """True if a value that is computed before the row is overwritten may be as large as the row."""
    if not value.type.rank:
        return False
    if not replaces_part(part, part.inputs[0]):
        is_part = value.op in (INDEX, GATHER) and _is_small(_entries(value, value.inputs[1:]))
        return not is_part and (value.type.size is None or value.type.size > LARGE)
    return value is part.inputs[1] and not _is_small(_entries(part, part.inputs[2:]))


def _is_small(entries: Sequence[object]) -> bool:
    """True if a part is small along some axis, or has positions (then a row is copied whole before parts of it are replaced)."""
    return any(not isinstance(entry, tuple) or _most(*entry) <= LARGE for entry in entries)


def _most(start: object, stop: object, step: object) -> float:
    """The most elements that a slice can have; infinity if that is not known."""
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
    """True if a value is computed only where it is read (inlined)."""
    return places.get(node) is Placement.INLINE


def _maps_elements(state: State, places: Places) -> bool:
    """True if every element of the new row depends on the old row only at its own place."""
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
    """True if the values computed inside the write's loop read the state only at the loop's own index."""
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
