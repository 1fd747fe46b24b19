"""The reverse rule of a loop under checkpoints: few states are stored, the others computed again.

A stack of stored states, the first step's at its bottom. Each turn of the outer loop looks at the top of the stack, at `position`, and at
`end`, behind the last step that is not undone yet:

    too far apart, and room on the stack    go on from the top and store the state that is reached
    too far apart, no room                  go on from the top to one block before the end, and undo that block
    one block apart                         undo the block, and take the top off the stack

A block is undone as any loop is: run once with all its states stored, then backwards. How far to go before storing is the schedule's
affair; with blocks of one step and `binomial_split` the number of forward steps is the least possible (Griewank & Walther 2000).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..checkpoint import Checkpoint
from ..ir.graph import substitute
from ..ir.node import Node, constant, new_input, outputs_of
from ..ir.ports import Carry, LoopSpec, NonSeq, State, scan_node
from ..ir.respecialise import settled
from ..ops.algebra import (
    add,
    broadcast_to,
    call,
    concatenate,
    dims_of,
    expand,
    incremented,
    indexed,
    rows,
    sub,
    where,
    zeros_like,
)
from ..ops.card import apply
from ..ops.history import HISTORY
from ..ops.indexing import SET_SUBTENSOR
from ..ops.schedule import BINOMIAL_SPLIT, TURNS
from ..ops.sized import sized
from ..types import TensorType
from .mapped import closed_loop
from .recurrence import Recurrence

Reverse = Callable[[Sequence[Node], Sequence[Node], Sequence[Node]], list[Node | None]]


def _itemsize(dtype: str) -> int:
    return int(np.dtype(dtype).itemsize)


def _rows_type(stack: Node, one: Recurrence) -> TensorType:
    """The type of the newest rows of a state."""
    return TensorType(one.write.type.dtype, (one.depth, *stack.type.shape[2:]))


def _int(value: int) -> Node:
    return constant(value, "int64")


def _least(a: Node, b: Node) -> Node:
    return call("minimum", a, b)


def _ceil_div(a: Node, b: Node) -> Node:
    return call("floor_divide", sub(add(a, b), _int(1)), b)


@dataclass(frozen=True)
class Schedule:
    """slots: states that are stored at a time. block: steps that are undone at once. stride: steps between stored states, None: binomial."""

    slots: Node
    block: Node
    stride: Node | None = None

    def fields(self) -> tuple[Node, Node, Node | None]:
        return self.slots, self.block, self.stride

    def next_state(self, apart: Node, free: Node) -> Node:
        """How many steps to go before a state is stored, `apart` steps before the end, with so many free places on the stack."""
        if self.stride is not None:
            return _least(self.stride, sub(apart, _int(1)))
        return call("multiply", apply(BINOMIAL_SPLIT, _ceil_div(apart, self.block), add(free, _int(1))), self.block)


def schedule(note: object, steps: Node, bytes_per_state: Node) -> Schedule:
    """The schedule that a scan's `checkpoint` asks for."""
    if isinstance(note, int):
        return Schedule(call("maximum", _ceil_div(steps, _int(note)), _int(1)), _int(note), _int(note))
    assert isinstance(note, Checkpoint)
    states = call("maximum", call("floor_divide", _int(note.bytes), call("maximum", bytes_per_state, _int(1))), _int(1))
    fits = call("less_equal", steps, states)
    half = call("maximum", call("floor_divide", states, _int(2)), _int(1))
    stride = call("maximum", _ceil_div(steps, half), _int(1))
    left = call("maximum", sub(states, half), _int(1))
    if note.schedule == "periodic":
        return Schedule(where(fits, _int(1), half), where(fits, states, _least(stride, left)), stride)
    is_enough = call("less_equal", stride, left)  # a segment can be stored whole: no step is run forward a third time
    block = where(is_enough, stride, _int(1))
    return Schedule(where(fits, _int(1), where(is_enough, half, states)), where(fits, states, block))


# the loop over blocks -----------------------------------------------------------------------------------------------


Found = dict[int, Node]
"""Cotangents by place: of the rows of states before the first step, then of sequences, then of non-sequences."""


class Checkpointed:
    """The backward loop of one loop under checkpoints.

    recurrences: states and shared variables alike; those in `moving` have cotangents. above: cotangents of the traces' rows.
    """

    def __init__(self, spec: LoopSpec, recurrences: Sequence[Recurrence], above: Sequence[Node | None], ran: Node, steps: Node) -> None:
        self.spec, self.recurrences, self.above = spec, recurrences, above
        self.ran, self.steps = ran, steps
        self.first = None if steps is ran else sub(ran, steps)

    def cotangents(self, note: object, wanted: Mapping[Node, None], reverse: Reverse) -> Found:
        """The cotangents of initial rows, sequences and non-sequences whose inner inputs are in `wanted`."""
        self.wanted, self.reverse = wanted, reverse
        start = [self._first_rows(one) for one in self.recurrences]
        begin = _int(0)
        if self.first is not None:
            start, begin = self._gone_on(start, _int(0), self.first), self.first
        plan = schedule(note, self.steps, self._bytes_per_state())
        room = add(plan.slots, _int(1))  # one more, that nobody reads, for turns that store nothing
        stack = [self._stack(rows, room, one) for rows, one in zip(start, self.recurrences, strict=True)]
        places = broadcast_to(begin, (room,))
        return self._loop(plan, stack, places, begin)

    def _first_rows(self, one: Recurrence) -> Node:
        """The initial rows of a state, [depth, *row]."""
        return rows(one.initial, None, one.depth) if one.has_axis else expand(one.initial, (0,))

    def _stack(self, first: Node, room: Node, one: Recurrence) -> Node:
        zeros = broadcast_to(constant(0, one.write.type.dtype), (room, *dims_of(first)))
        stack = sized(SET_SUBTENSOR, (zeros, first), (0,))
        stack.name = stack.name or f"checkpoints_{one.reads[0].name or 'state'}"
        return stack

    def _bytes_per_state(self) -> Node:
        total = _int(0)
        for one in self.recurrences:
            count: Node = _int(one.depth * _itemsize(one.write.type.dtype))
            for dim in dims_of(one.initial)[one.has_axis :]:
                count = call("multiply", count, dim)
            total = add(total, count)
        return total

    # parts of a turn ------------------------------------------------------------------------------------------------

    def _part(self, start: Sequence[Node], seqs: Sequence[Node], non_seqs: Sequence[Node], count: Node, with_traces: bool) -> list[Node]:
        """The results of `count` steps of the loop, from given rows of its states."""
        states = tuple(
            State(rows_, one.taps, one.reads, one.write, True) for rows_, one in zip(start, self.recurrences, strict=True)
        )
        spec = replace(
            self.spec,
            n_steps=count,
            seqs=tuple(replace(seq, outer=outer) for seq, outer in zip(self.spec.seqs, seqs, strict=True)),
            states=states,
            traces=self.spec.traces if with_traces else (),
            carries=(),
            non_seqs=tuple(replace(port, outer=outer) for port, outer in zip(self.spec.non_seqs, non_seqs, strict=True)),
            until=None,
            truncate_gradient=-1,
            notes=tuple(note for note in self.spec.notes if note[0] != "checkpoint"),
        )
        return list(outputs_of(scan_node(settled(spec))))

    def _pieces(self, begin: Node, count: Node) -> list[Node]:
        """The rows of each sequence that `count` steps from `begin` on read."""
        return [rows(seq.outer, begin, add(add(begin, count), _int(seq.span))) for seq in self.spec.seqs]

    def _non_seqs(self) -> list[Node]:
        return [port.outer for port in self.spec.non_seqs]

    def _gone_on(self, start: Sequence[Node], begin: Node, count: Node) -> list[Node]:
        """The newest rows of each state, `count` steps after `begin`."""
        results = self._part(start, self._pieces(begin, count), self._non_seqs(), count, with_traces=False)
        found = []
        for one, first, result in zip(self.recurrences, start, results, strict=True):
            newest = rows(result, -one.depth)
            found.append(rows(concatenate([first, newest]), -one.depth))
        return found

    def _undone(self, start: Sequence[Node], begin: Node, count: Node, along: Mapping[int, Node]) -> tuple[list[Node], list[Node | None]]:
        """(wrt, cotangents) of a block: what its initial rows, sequences and non-sequences get. along: cotangents of its last rows."""
        fresh = [new_input(node.type, node.name) for node in start]
        pieces = self._pieces(begin, count)
        fed = [new_input(node.type, node.name) for node in pieces]
        fixed = [new_input(node.type, node.name) for node in self._non_seqs()]
        results = self._part(fresh, fed, fixed, count, with_traces=True)
        outputs, given = [], []
        for k, one in enumerate(self.recurrences):
            if k in along:
                history = apply(HISTORY, fresh[k], results[k], depth=one.depth, has_axis=True)
                outputs.append(rows(history, count))
                given.append(along[k])
            if one.rows is not None:
                outputs.append(results[k])
                given.append(rows(one.rows, begin, add(begin, count)))
        for k, value in enumerate(self.above):
            if value is not None:
                outputs.append(results[len(self.recurrences) + k])
                given.append(rows(value, begin, add(begin, count)))
        wrt = [*fresh, *fed, *fixed]
        asked = [node for node, is_asked in zip(wrt, self._asked(), strict=True) if is_asked]
        values = dict(zip(asked, self.reverse(outputs, given, asked), strict=True))
        back = dict(zip(wrt, [*start, *pieces, *self._non_seqs()], strict=True))
        return wrt, [None if values.get(node) is None else substitute([values[node]], back)[0] for node in wrt]  # type: ignore[list-item]

    def _asked(self) -> list[bool]:
        """Whether a cotangent is wanted: of states, sequences, non-sequences."""
        found = [any(read in self.wanted for read in one.reads) for one in self.recurrences]
        found += [any(read in self.wanted for read in seq.reads) for seq in self.spec.seqs]
        return found + [port.read in self.wanted for port in self.spec.non_seqs]

    # the loop -------------------------------------------------------------------------------------------------------

    def _loop(self, plan: Schedule, stack: Sequence[Node], places: Node, begin: Node) -> Found:
        outside, plan = plan, Schedule(*(None if node is None else new_input(node.type) for node in plan.fields()))
        n, n_seqs = len(self.recurrences), len(self.spec.seqs)
        asked = self._asked()
        end, top = new_input(_int(0).type, "end"), new_input(_int(0).type, "top")
        places_in = new_input(places.type, "places")
        stack_in = [new_input(node.type, node.name) for node in stack]
        along = {k: new_input(_rows_type(stack[k], self.recurrences[k]), "d_state") for k in range(n) if asked[k]}

        position = indexed(places_in, (top,))
        apart = sub(end, position)
        free = sub(sub(plan.slots, _int(1)), top)
        is_near = call("less_equal", apart, plan.block)
        is_stored = call("logical_and", call("logical_not", is_near), call("greater", free, _int(0)))
        ahead = where(is_near, _int(0), where(is_stored, plan.next_state(apart, free), sub(apart, plan.block)))
        start = [indexed(node, (top,)) for node in stack_in]
        reached = self._gone_on(start, position, ahead)
        here = add(position, ahead)
        slot = where(is_stored, add(top, _int(1)), plan.slots)
        count = where(is_stored, _int(0), sub(end, here))
        _, found = self._undone(reached, here, count, along)

        carries = [
            Carry(node, read, sized(SET_SUBTENSOR, (read, value), (slot,)))
            for node, read, value in zip(stack, stack_in, reached, strict=True)
        ]
        carries.append(Carry(places, places_in, sized(SET_SUBTENSOR, (places_in, here), (slot,))))
        new_end = where(is_stored, end, here)
        carries.append(Carry(self.ran if self.ran.type == _int(0).type else call("cast", self.ran, dtype="int64"), end, new_end))
        is_done_with = call("less_equal", ahead, _int(0))
        carries.append(Carry(_int(0), top, where(is_stored, add(top, _int(1)), where(is_done_with, sub(top, _int(1)), top))))
        fixed = len(carries)
        order: list[int] = []
        for k, (is_asked, value) in enumerate(zip(asked, found, strict=True)):
            if not is_asked:
                continue
            order.append(k)
            if k < n:
                carries.append(Carry(self._last_rows(k), along[k], along[k] if value is None else value))
            else:
                outer = self.spec.seqs[k - n].outer if k < n + n_seqs else self.spec.non_seqs[k - n - n_seqs].outer
                zeros = zeros_like(outer)
                read = new_input(zeros.type, f"d_{outer.name or 'x'}")
                if value is None:
                    write = read
                elif k < n + n_seqs:
                    stop = add(add(here, count), _int(self.spec.seqs[k - n].span))
                    write = incremented(read, value, ((here, stop, None),))
                else:
                    write = add(read, value)
                carries.append(Carry(zeros, read, write))
        spec = LoopSpec(
            n_steps=call("multiply", _int(2), self.steps),  # each turn stores a state or undoes a block: at most so many
            carries=tuple(carries),
            non_seqs=tuple(NonSeq(node, read) for node, read in zip(outside.fields(), plan.fields(), strict=True) if node and read),
            until=call("less_equal", new_end, begin),
            name=f"{self.spec.name}_checkpoints",
            notes=((TURNS, "binomial" if plan.stride is None else "periodic"),),
        )
        results = outputs_of(closed_loop(spec))
        return dict(zip(order, results[fixed:], strict=True))

    def _last_rows(self, k: int) -> Node:
        """The cotangents of the rows behind the last step's write: of the last row, what its readers outside the loop gave."""
        one = self.recurrences[k]
        zeros = broadcast_to(constant(0, one.write.type.dtype), (one.depth, *dims_of(one.initial)[one.has_axis :]))
        return zeros if one.last is None else incremented(zeros, one.last, (-1,))

