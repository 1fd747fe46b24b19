"""A step that reads an element of its new state reads what was written there, or the old state.

    # before: y = set_subtensor(x[i], u), y[j]        # after: y = set_subtensor(x[i], u), where(i == j, u, x[j])

Nothing then reads the new state in the step that makes it, and it is updated in its own row, at the cost of what is written.

Arithmetic: what was added to a part is added once more, in the order of the step and the dtype of the array.

Not handled:
- arrays of few numbers, unless a place is computed
- slices and arrays of positions, on either side
- places on more or fewer axes than were written
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from ..ir.graph import toposort
from ..ir.loop_node import loop_spec
from ..ir.node import Node, constant
from ..ops.algebra import add, call, cast, dims_of, taken, where
from ..ops.indexing import INC_SUBTENSOR, INDEX, SET_SUBTENSOR
from ..ops.runtime_attributes import filled
from .replace_loops import is_in_memory, loop_results, placed, with_loops, with_nodes


def read_parts(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """`outputs` with elements of new states read of the old ones, in the steps of loops."""
    return with_loops(outputs, _changed)


def _changed(loop: Node) -> Sequence[Node] | None:
    spec = loop_spec(loop)
    writes = spec.inner_outputs()
    new = reads_of_parts(writes, [*(state.write for state in spec.states), *(carry.write for carry in spec.carries)])
    return None if new == writes else loop_results(loop, spec.with_inner(spec.inner_inputs(), new))


def reads_of_parts(outputs: Sequence[Node], arrays: Sequence[Node]) -> tuple[Node, ...]:
    """`outputs` that read elements of `arrays`, which are among them, of the arrays before any replacement."""
    parts = {part for array in arrays for part in _parts(array)}
    if not any(node.op is INDEX and node.inputs[0] in parts for node in toposort(outputs)):
        return tuple(outputs)

    def change(node: Node, done: Mapping[Node, Node]) -> Node | None:
        if node.op is not INDEX or node.inputs[0] not in parts:
            return None
        with placed(node):
            return _read(node, parts, done)

    return with_nodes(outputs, change)


def _parts(write: Node) -> Iterator[Node]:
    """The arrays on the way to a new state, the last one first, each of which is the one before with a part replaced."""
    while write.op in (SET_SUBTENSOR, INC_SUBTENSOR) and is_in_memory(write):
        yield write
        write = write.inputs[0]


def _read(node: Node, parts: Set[Node], done: Mapping[Node, Node]) -> Node | None:
    """The element that `node` reads, from the array before any replacement and from what was written since; None where not handled."""
    array, here, written = node.inputs[0], _places(done[node], 1), list[Node]()
    while array in parts:
        if len(here) != len(_places(done[array], 2)) or not here:
            return None
        written.insert(0, done[array])
        array = array.inputs[0]
    value = taken(done[array], tuple(here))
    for part in written:
        new = cast(part.inputs[1], value.type.dtype)
        value = where(_is_same(here, _places(part, 2), part), new if part.op is SET_SUBTENSOR else add(value, new), value)
    return value if value.type == node.type else None


def _places(node: Node, arrays: int) -> list[int | Node]:
    """The positions between the brackets, one per axis from the first one on; none where there is an entry of another kind."""
    entries = filled(node.attr("spec"), iter(node.inputs[arrays:]))
    return list(entries) if all(isinstance(entry, int) or (isinstance(entry, Node) and not entry.type.rank) for entry in entries) else []


def _is_same(here: Sequence[int | Node], there: Sequence[int | Node], array: Node) -> Node:
    """The condition that two places in an array are one. Either may be counted from the end."""
    pairs = [
        (a, b) if _count_alike(a, b) else (_from_start(a, n), _from_start(b, n))
        for a, b, n in zip(here, there, dims_of(array), strict=False)
    ]
    same = [call("equal", a, b) for a, b in pairs if a is not b]
    condition = same[0] if same else constant(True, "bool")
    for one in same[1:]:
        condition = call("logical_and", condition, one)
    return condition


def _count_alike(a: int | Node, b: int | Node) -> bool:
    """True if two positions are surely counted from the same end."""
    return a is b or (isinstance(a, int) and isinstance(b, int) and (a < 0) == (b < 0))


def _from_start(place: int | Node, n: Node) -> int | Node:
    if isinstance(place, int):
        return place if place >= 0 else add(n, place)
    place = cast(place, "int64")
    return where(call("less", place, 0), add(place, n), place)
