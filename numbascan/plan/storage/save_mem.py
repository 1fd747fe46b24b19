"""ScanSaveMem: the rows of each result that are read.

If only the end of a result, or every k-th row, is read, only these rows take memory. A reader asks for one of these:
- `out[-1]` (Last), `out[-k:]` (LastRows), `out[s::k]` (Every), `out[::-1]` (FromEnd)
- the rows from the initial ones on, as gradients read them (Path), or the last of these (LastStates)
- the state after the last step (LastState)
- evenly spaced states, as many as there is room for (Thinned)
- no row, only their length (Lengths)
- anything else (All)

A read of certain rows counted from the end becomes a read of `out[-k:]`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from ...ir.graph import Graph, substitute, toposort
from ...ir.inner_graphs import all_nodes, bodies
from ...ir.loop_node import SCAN, loop_spec
from ...ir.node import ITEM, Node, constant_value, owner_of
from ...ops.algebra import call, cast, concatenate, expand, indexed, is_zero, rows, where
from ...ops.card import Card, apply
from ...ops.control import with_bodies
from ...ops.dims import DIM
from ...ops.history import HISTORY
from ...ops.indexing import GATHER, INDEX
from ...ops.last_state import LAST_STATE
from ...ops.lowering import Generate
from ...ops.runtime_attributes import ARRAY, HOLE, filled, sized
from ...ops.thinned import THINNED
from ...types import TensorType

MOST_ROWS = 2**62  # more than any loop makes
BACKWARDS = (None, None, -1)


@dataclass(frozen=True)
class All:
    """Every row."""


@dataclass(frozen=True)
class Last:
    """The final row, without its axis."""


@dataclass(frozen=True)
class LastRows:
    """The last k rows, or all if there are fewer."""

    k: int


@dataclass(frozen=True)
class Every:
    """Rows start, start + k, …"""

    start: int
    k: int


@dataclass(frozen=True)
class FromEnd:
    """Every row, the last one first."""


@dataclass(frozen=True)
class Path:
    """Every row of a state, and its initial rows before them."""


@dataclass(frozen=True)
class LastStates:
    """The last k rows of a state, of which k - depth at least are new ones, or all if there are fewer; initial rows count."""

    k: int


@dataclass(frozen=True)
class LastState:
    """A state after the last step, without an axis. If there was no step: the initial state, or 0 for a traced number."""


@dataclass(frozen=True)
class Thinned:
    """A state at every 2**m-th step, with the least m that gives at most `most` of them; room for `n_rows`."""

    n_rows: Node | int
    most: Node | int


@dataclass(frozen=True)
class Lengths:
    """No row, only the length of the rows: all must have the same."""


Request = All | Last | LastRows | Every | FromEnd | Path | LastStates | LastState | Thinned | Lengths


def requests(node: Node, readers: Mapping[Node, Sequence[Node]], outputs: Sequence[Node]) -> list[dict[Node, Request]]:
    """For each result of a Scan node: the nodes that read some of its rows, with what they ask for."""
    asked: list[dict[Node, Request]] = [{} for _ in node.types]
    for position, source in _results(node, readers):
        if source in outputs:
            asked[position][source] = All()
        for reader in readers[source]:
            if reader is source:  # noted as an output
                continue
            if reader.op is DIM:
                if reader.attr("axis") != 0:
                    asked[position].setdefault(source, Lengths())
                continue
            is_its_state = len(reader.inputs) > 1 and reader.inputs[1] is source  # else it is another loop's initial rows
            if is_its_state and is_history(reader) and (last := _last_states(reader, readers)):
                asked[position] |= {**last, reader: Lengths()}
                continue
            request = (_state_request(reader, node) if is_its_state else None) or row_request(reader)
            asked[position][source if isinstance(request, All) else reader] = request
    return asked


def _results(node: Node, readers: Mapping[Node, Sequence[Node]]) -> list[tuple[int, Node]]:
    if len(node.types) == 1:
        return [(0, node)]
    return [(index, reader) for reader in dict.fromkeys(readers[node]) if isinstance(index := _item_index(reader), int)]


def _item_index(reader: Node) -> object:
    return reader.attr("index") if reader.op is ITEM else None


def row_request(reader: Node) -> Request:
    """Which rows of its operand a node reads."""
    if reader.op is STATE_BEHIND:
        return LastState()
    if not is_row_read(reader):
        return All()
    spec = reader.attr("spec")
    assert isinstance(spec, tuple)
    first = spec[0]
    if first == -1:
        return Last()
    if first == BACKWARDS:
        return FromEnd()
    start, _, step = first
    if step in (None, 1) and isinstance(start, int) and start < 0:
        return LastRows(min(-start, MOST_ROWS))
    return Every(min(start or 0, MOST_ROWS), min(step or 1, MOST_ROWS))


def _state_request(reader: Node, loop: Node) -> Request | None:
    """The request of a node that reads a state's rows with the initial ones; None for another node."""
    if is_history(reader):
        return Path()
    if not is_thinned(reader):
        return None
    request = Thinned(*filled(reader.attr("slots"), iter(reader.inputs[2:])))
    return request if loop not in toposort(reader.inputs[2:]) else None


def _last_states(history: Node, readers: Mapping[Node, Sequence[Node]]) -> dict[Node, Request]:
    """The nodes that read the last rows of a state, and how many; empty if anything reads other rows too."""
    depth = history.number("depth")
    asked = {reader: row_request(reader) for reader in readers[history]}
    last: dict[Node, Request] = {
        reader: LastStates(request.k) for reader, request in asked.items() if isinstance(request, LastRows) and request.k > depth
    }
    return last if len(last) == len(asked) else {}


def is_history(node: Node) -> bool:
    """True if the node is the rows of a loop's state from its initial ones on."""
    return node.op is HISTORY and _is_of_state(node)


def is_thinned(node: Node) -> bool:
    """True if the node is evenly spaced states of a loop."""
    return node.op is THINNED and _is_of_state(node)


def _is_of_state(node: Node) -> bool:
    """True if the operands are the initial rows of a loop's state, and the state."""
    source = node.inputs[1]
    if not _is_loop_result(source):
        return False
    loop, index = owner_of(source)
    spec = loop_spec(loop)
    state = spec.states[index] if index < len(spec.states) else None
    has_axis, depth = (False, 1) if node.op is LAST_STATE else (node.attr("has_axis"), node.attr("depth"))
    return state is not None and (state.initial, state.depth, state.has_axis) == (node.inputs[0], depth, has_axis)


def _is_of_trace(node: Node) -> bool:
    """True if the node is the last of a loop's traced numbers, or 0 if there is none."""
    initial, source = node.inputs
    if node.type.rank or not is_zero(initial) or not _is_loop_result(source):
        return False
    loop, index = owner_of(source)
    spec = loop_spec(loop)
    return 0 <= index - len(spec.states) < len(spec.traces)


def is_row_read(node: Node) -> bool:
    """True if the node is just `x[-1]`, `x[-k:]`, `x[s::k]` or, if the number of rows is known beforehand, `x[::-1]`."""
    if node.op is not INDEX or len(node.inputs) != 1:
        return False
    spec = node.attr("spec")
    if not isinstance(spec, tuple) or len(spec) != 1:
        return False
    return _is_row_entry(spec[0]) or (spec[0] == BACKWARDS and not may_end_early(node.inputs[0]))


def is_loop_rows(node: Node) -> bool:
    """True if the node is some rows of a loop's result, which the loop itself keeps."""
    return node.op is STATE_BEHIND or is_history(node) or is_thinned(node) or (is_row_read(node) and _is_loop_result(node.inputs[0]))


def may_end_early(node: Node) -> bool:
    """True if `until` decides the number of rows of a loop's result (or of some of its rows)."""
    if node.op is INDEX and is_history(node.inputs[0]):  # rows of an earlier tap
        node = node.inputs[0]
    if is_history(node):
        node = node.inputs[1]
    elif is_thinned(node):
        return False
    elif is_loop_rows(node):
        if row_request(node) in (Last(), LastState()):
            return False
        node = node.inputs[0]
    source = owner_of(node)[0]
    return source.op is SCAN and loop_spec(source).until is not None


def _is_row_entry(entry: object) -> bool:
    if entry == -1:
        return True
    if not isinstance(entry, tuple):
        return False
    start, stop, step = entry
    if stop is not None:
        return False
    if step in (None, 1):
        return isinstance(start, int) and start < 0
    return isinstance(step, int) and step > 1 and (start is None or (isinstance(start, int) and start >= 0))


def _no_row(*_: object) -> NoReturn:
    raise AssertionError("a loop makes its states behind the last step itself")


STATE_BEHIND = Card(
    "state_behind",
    _no_row,
    lambda rows, shape: TensorType(rows.dtype, shape),
    Generate(_no_row, _no_row),
)
"""In a plan, the LAST_STATE of a loop's own state: the initial value is read only in the loop.

Also that of numbers that a loop traces: locals hold the last one, and start at 0, which is the result if there is no step.
"""


def with_states_behind(graph: Graph) -> Graph:
    """The graph with STATE_BEHIND for LAST_STATE wherever the loop itself can give the state; also in steps and branches."""
    return Graph(graph.inputs, _with_states_behind(graph.outputs))


def _with_states_behind(outputs: Sequence[Node]) -> tuple[Node, ...]:
    if any(_holds_last_state(body.outputs) for node in toposort(outputs) for body in bodies(node)):
        outputs = with_bodies(outputs, _with_states_behind)
    done: dict[Node, Node] = {}
    for node in toposort(outputs):
        inputs = tuple(done[parent] for parent in node.inputs)
        done[node] = node if inputs == node.inputs else node.op.rebuild(node, inputs)
        if node.op is LAST_STATE:
            done[node] = _behind(done[node])
        done[node].name, done[node].origin = done[node].name or node.name, done[node].origin or node.origin
    return tuple(done[output] for output in outputs)


def _behind(node: Node) -> Node:
    """LAST_STATE without a row kept for it, from values that the loop keeps of its last step; the node itself if that is not possible."""
    initial, source = node.inputs
    if _is_of_state(node) or _is_of_trace(node):
        return apply(STATE_BEHIND, source, shape=node.type.shape)
    if not _is_loop_result(source):
        return node
    loop, index = owner_of(source)
    spec = loop_spec(loop)
    state = spec.states[index] if index < len(spec.states) else None
    is_trace = 0 <= index - len(spec.states) < len(spec.traces)
    if not is_trace and (state is None or state.depth > 1 or state.has_axis):
        return node
    first = cast(initial, source.type.dtype)
    if is_trace and node.type.rank:
        return indexed(concatenate([expand(first, (0,)), rows(source, -1)]), (-1,))
    return where(call("greater", spec.n_steps, 0), apply(STATE_BEHIND, source, shape=node.type.shape), first)


def _holds_last_state(outputs: Sequence[Node]) -> bool:
    return any(inner.op is LAST_STATE for inner in all_nodes(outputs))


def split_row_reads(graph: Graph) -> Graph:
    """The graph with reads of parts of some rows of a loop's result split in two: the rows, then the parts. Also in steps."""
    return Graph(graph.inputs, _split(graph.outputs))


def _split(outputs: Sequence[Node]) -> tuple[Node, ...]:
    if any(inner.op is SCAN for node in toposort(outputs) for body in bodies(node) for inner in all_nodes(body.outputs)):
        outputs = with_bodies(outputs, _split)
    while True:  # one at a time: a replacement must not hold loops that another one changes
        pair = next(((node, parts) for node in toposort(outputs) if (parts := _in_two(node)) is not None), None)
        if pair is None:
            return tuple(outputs)
        outputs = substitute(outputs, dict([pair]))


def _in_two(node: Node) -> Node | None:
    """A read of a loop's result as a read of some of its rows, then of parts of these; None if it reads just rows, or may read any row."""
    if node.op not in (INDEX, GATHER) or not _is_loop_result(node.inputs[0]) or is_row_read(node):
        return None
    result, *operands = node.inputs
    spec = node.attr("spec")
    assert isinstance(spec, tuple)
    if not spec:
        return None
    if _is_row_entry(spec[0]) and not operands:
        rest = spec[1:] if spec[0] == -1 else ((None, None, None), *spec[1:])
        return sized(INDEX, (sized(INDEX, (result,), spec[:1]),), rest)
    k = _rows_from_end(spec[0], operands)
    return None if k is None else node.op.rebuild(node, (sized(INDEX, (result,), ((-k, None, None),)), *operands))


def _rows_from_end(entry: object, operands: Sequence[Node]) -> int | None:
    """The least k for which `x[-k:][entry]` is `x[entry]`, however many rows x has; None if there is none."""
    if entry == ARRAY:
        places = constant_value(operands[0])
        return None if places is None or not np.all(np.less(places, 0)) else -int(np.min(places, initial=-1))
    if isinstance(entry, int):
        return min(-entry, MOST_ROWS) if entry < 0 else None
    if not isinstance(entry, tuple) or HOLE in entry:
        return None
    start, stop, step = entry
    is_forward = step is None or step > 0
    first, last = (start, stop) if is_forward else (stop, start)  # the bound nearer to row 0, and the other one
    if first is None or first >= 0 or (last is not None and last >= 0):
        return None
    return min(max(int(-first) - (not is_forward), 1), MOST_ROWS)


def _is_loop_result(node: Node) -> bool:
    return owner_of(node)[0].op is SCAN
