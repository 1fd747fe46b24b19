"""Loops with buffers of cotangents (mit_mot ports) as loops without: what is added to later rows becomes a state.

Only the rows of a buffer from the one that is read to the last one that is written are live: the largest tap is the number of rows stored.
Row s of the buffer is what stood there at first plus what the steps s - 1, s - 3, … added to it at their taps 1, 3, …:

    read at step s  =  outer[s] + p1[s - 1] + p3[s - 3]

A tap of 1 alone makes a single row that every step replaces. With three taps or more, all but the nearest become a chain of states. Each
hands its sum to the next nearer one, so that the number of live rows is the last tap, not the sum of all taps:

    read at step s  =  outer[s] + p1[s - 1] + q3[s - 3]    where    q3[s] = p3[s] + q8[s - 5],    q8[s] = p8[s] + ...
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ..ir.graph import substitute, toposort
from ..ir.loop_node import SCAN, loop_spec, scan_node
from ..ir.node import ITEM, Node, constant, constant_value, new_input, outputs_of, owner_of
from ..ir.ports import Carry, LoopSpec, MitMot, Seq, State, Trace, row_of
from ..ir.respecialise import settled
from ..ops.algebra import broadcast_to, concatenate, dims_of, expand, incremented, is_zero, rows, sub, terms_of, total
from ..ops.control import inlined, with_bodies
from ..ops.indexing import INDEX
from ..ops.runtime_attributes import HOLE
from .masks import Cotangent, Reverse


def without_mit_mots(outputs: Sequence[Node], keep: Collection[Node] = ()) -> tuple[Node, ...]:
    """`outputs` rebuilt without mit_mot ports, inner graphs excepted; nodes in `keep`, and what is behind them, stay as they are."""
    done: dict[Node, Node] = {node: node for node in keep}
    loops: dict[Node, _Plain] = {}
    for node in toposort(outputs, stop=keep):
        if node in done:
            continue
        inputs = tuple(done.get(parent, parent) for parent in node.inputs)
        if node.op is SCAN and loop_spec(node).mit_mots:
            loops[node] = _Plain(loop_spec(node).with_outer(inputs))
            if len(node.types) == 1:
                done[node] = loops[node].result(0)
            continue
        replacement = _of_loop(node, loops) or _of_one_row(node, inputs)
        done[node] = replacement or (node if inputs == node.inputs else node.op.rebuild(node, inputs))
    return tuple(done[node] for node in outputs)


def unbuffered(node: Node) -> tuple[dict[Node, Node], tuple[Node, ...]]:
    """(inputs, results) of an equal loop without mit_mot ports. inputs: its fresh inputs, by the outer nodes that they stand for."""
    outer = {parent: new_input(parent.type, parent.name) for parent in node.inputs}
    loop = node.op.rebuild(node, tuple(outer[parent] for parent in node.inputs))
    return outer, without_mit_mots(outputs_of(loop))


def buffered_cotangents(
    node: Node, cotangents: Sequence[Cotangent | None], needed: Collection[int], reverse: Reverse
) -> list[Cotangent | None]:
    """The cotangents of the outer inputs of a loop with buffers, through the equal loop without."""
    outer, results = unbuffered(node)
    pairs = [(out, value) for out, value in zip(results, cotangents, strict=True) if value is not None]
    places = {node.inputs[k]: k for k in sorted(needed, reverse=True)}  # the first place of an input that stands at several
    found = reverse([out for out, _ in pairs], [value for _, value in pairs], [outer[parent] for parent in places])
    back = {fresh: parent for parent, fresh in outer.items()}
    result: list[Cotangent | None] = [None] * len(node.inputs)
    for k, one in zip(places.values(), found, strict=True):
        result[k] = None if one is None else Cotangent(substitute([one.value], back)[0], None, one.hides)
    return result


def _of_loop(node: Node, loops: dict[Node, _Plain]) -> Node | None:
    """The replacement of a loop's result, or of a buffer's rows after the last step; None for any other node."""
    if node.op is ITEM and node.inputs[0] in loops:
        index = node.number("index")
        return loops[node.inputs[0]].result(index)
    if node.op.name != "index":
        return None
    source = node.inputs[0]
    loop, index = owner_of(source)
    if loop not in loops or not _starts_behind(node, loop_spec(loop).n_steps):
        return None
    return loops[loop].tail(index) if index < len(loops[loop].parts) else None


def _of_one_row(node: Node, inputs: Sequence[Node]) -> Node | None:
    """The row that alone is in the operand whose row 0 is read; None for any other node."""
    is_first = node.op is INDEX and node.attr("spec") == (0,) and inputs[0].op is INDEX and len(inputs[0].inputs) == 1
    return inputs[0].inputs[0] if is_first and inputs[0] is expand(inputs[0].inputs[0], (0,)) else None


def _starts_behind(node: Node, n_steps: Node) -> bool:
    """True if an index is `x[n_steps:]`."""
    count = constant_value(n_steps)
    if count is not None:
        return node.attr("spec") == ((int(count), None, None),)
    return node.attr("spec") == ((HOLE, None, None),) and node.inputs[1] is n_steps


def plain_graphs(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """`outputs` without mit_mot ports, inner graphs included, and without nodes that only derivatives ask for."""
    return without_mit_mots(with_bodies(inlined(outputs), plain_graphs))


@dataclass
class _BufferParts:
    """A buffer at first: its rows at the steps (None: zeros), what is added to row 0, the rows after them (None: zeros), their number."""

    rows: Node | None
    first: Node | None
    tail: Node | None
    depth: Node


class _Plain:
    """A loop without mit_mot ports that gives the results of one with them."""

    def __init__(self, spec: LoopSpec) -> None:
        self.old = spec = spec.opened()
        self.parts = [_parts(port, spec.n_steps) for port in spec.mit_mots]
        self.seqs: list[Seq] = []
        self.states: list[State] = []
        self.carries: list[Carry] = []
        self.now: list[Node] = []
        self.added: list[list[State | Carry]] = []
        reads = {port.reads[0]: self._read(port, parts) for port, parts in zip(spec.mit_mots, self.parts, strict=True)}
        new = replace(
            spec,
            seqs=(*spec.seqs, *self.seqs),
            mit_mots=(),
            states=(*spec.states, *self.states),
            traces=(*spec.traces, *map(Trace, self.now)),
            carries=(*spec.carries, *self.carries),
        )
        new = new.with_inner(new.inner_inputs(), substitute(new.inner_outputs(), reads))
        moving = {*(read for state in new.states for read in state.reads), *(carry.read for carry in new.carries)}
        own = new.states[len(spec.states) :], new.carries[len(spec.carries) :]
        later = {port.write: _waiting_least(port.write, moving) for ports in own for port in ports}
        self.loop = scan_node(settled(new.with_inner(new.inner_inputs(), tuple(later.get(node, node) for node in new.inner_outputs()))))
        self.results = outputs_of(self.loop)

    def _read(self, port: MitMot, parts: _BufferParts) -> Node:
        """The value that replaces the first read of a buffer. Records the new ports."""
        assert port.in_taps == (0, *port.out_taps), port
        assert min(port.out_taps, default=1) > 0, port
        type_ = row_of(port.outer.type)
        addends = [_addend(write, read) for write, read in zip(port.writes, port.reads[1:], strict=True)]
        terms: list[Node] = []
        if parts.rows is not None:
            terms.append(new_input(row_of(parts.rows.type), port.reads[0].name))
            self.seqs.append(Seq(parts.rows, (0,), (terms[0],)))
        added: list[State | Carry] = []
        later: list[Node] = []  # what the next nearer state reads of a farther one
        by_tap = dict(zip(port.out_taps, addends, strict=True))
        farthest_first = sorted(by_tap, reverse=True)
        for tap, nearer in zip(farthest_first, [*farthest_first[1:], 0], strict=True):
            is_read = nearer in (0, farthest_first[-1])  # by the step itself
            write, read = total([by_tap[tap], *later]), new_input(type_, port.reads[0].name)
            assert write is not None
            added.append(_state(port, tap if is_read else tap - nearer, parts.first if nearer == 0 else None, read, write))
            later = [] if is_read else [read]
            terms += [read] if is_read else []
        for state in added:
            (self.carries if isinstance(state, Carry) else self.states).append(state)  # type: ignore[arg-type]
        self.added.append(added)
        now = total(terms)
        assert now is not None
        self.now.append(now)
        return now

    def result(self, index: int) -> Node:
        """The value of result `index` of the old loop."""
        # new results: old states, own states, old traces, rows read of each buffer (`now`), old carries, own carries
        old, n_buffers = self.old, len(self.parts)
        if index < n_buffers:
            first_now = len(old.states) + len(self.states) + len(old.traces)
            return concatenate([self.results[first_now + index], self.tail(index)])
        k = index - n_buffers
        if k >= len(old.states):
            k += len(self.states)
        if index - n_buffers >= len(old.states) + len(old.traces):
            k += len(self.now)
        return self.results[k]

    def tail(self, index: int) -> Node:
        """The rows of a buffer after the last step."""
        parts = self.parts[index]
        chain, nearest = self.added[index][:-1], self.added[index][-1:]
        terms = [self._tail_of(ports, parts.depth) for ports in (chain[::-1], nearest) if ports]
        tail = total(terms if parts.tail is None else [parts.tail, *terms])
        assert tail is not None
        return tail

    def _tail_of(self, ports: Sequence[State | Carry], depth: Node) -> Node:
        """What a chain of ports, the nearest first, has added to the rows after the last step."""
        tail = concatenate([self._newest(port) for port in ports])
        n = sum(1 if isinstance(port, Carry) else port.depth for port in ports)
        rest = sub(depth, constant(n, "int64", weak=True))
        zero = broadcast_to(constant(0, tail.type.dtype), (rest, *dims_of(tail)[1:]))
        return tail if zero.type.shape[0] == 0 else concatenate([tail, zero])

    def _newest(self, port: State | Carry) -> Node:
        """The rows of a port that later steps would have read."""
        if isinstance(port, Carry):
            place = len(self.old.states) + len(self.states) + len(self.old.traces) + len(self.now) + len(self.old.carries)
            return expand(self.results[place + self.carries.index(port)], (0,))
        newest = rows(self.results[len(self.old.states) + self.states.index(port)], -port.depth)
        return rows(concatenate([port.initial, newest]), -port.depth)  # a loop of fewer steps leaves initial rows


def _waiting_least(write: Node, moving: Collection[Node]) -> Node:
    """A sum of cotangents, terms that wait for an earlier step last: then the next step waits for the fewest additions."""
    early: list[Node] = []
    late: list[Node] = []
    for term in terms_of(write):
        (late if any(node in moving for node in toposort([term])) else early).append(term)
    return total([*early, *late]) or write


def _state(port: MitMot, tap: int, first: Node | None, read: Node, addend: Node) -> State | Carry:
    dims, dtype = dims_of(port.outer)[1:], port.outer.type.dtype
    if port.out_taps == (1,):
        return Carry(broadcast_to(constant(0, dtype), dims) if first is None else first, read, addend)
    initial = broadcast_to(constant(0, dtype), (tap, *dims))
    initial = initial if first is None else incremented(initial, first, (0,))
    return State(initial, (-tap,), (read,), addend, has_axis=True)


def _addend(write: Node, read: Node) -> Node:
    """What a step adds to a row."""
    assert write.op.name == "add", f"a buffer is written with {write}, which is no sum"
    assert read in write.inputs, f"a buffer is written with {write}, which adds nothing to {read}"
    a, b = write.inputs
    return b if a is read else a


def _parts(port: MitMot, n_steps: Node) -> _BufferParts:
    outer = port.outer
    depth = sub(dims_of(outer)[0], n_steps)
    first = None
    if outer.op.name == "inc_subtensor" and outer.attr("spec") == (0,) and outer.inputs[1].type.rank == outer.type.rank - 1:
        outer, first = outer.inputs
    if is_zero(outer):
        return _BufferParts(None, first, None, _depth_of(outer, n_steps) or depth)
    if outer.op.name == "concatenate" and len(outer.inputs) == 2 and is_zero(outer.inputs[1]):
        dense, zeros = outer.inputs
        return _BufferParts(None if is_zero(dense) else dense, first, None, dims_of(zeros)[0])
    return _BufferParts(outer, first, rows(outer, n_steps), depth)


def _depth_of(zeros: Node, n_steps: Node) -> Node | None:
    """k where zeros are written with n_steps + k rows; else None."""
    count = zeros.inputs[1] if len(zeros.inputs) > 1 else None
    if count is not None and count.op.name == "add" and count.inputs[0] is n_steps:
        return count.inputs[1]
    return None
