"""The reverse rule of a loop under checkpoints: few states are stored, the others recomputed.

The stored states are a stack, the first step's at its bottom. Each turn of the outer loop compares `position`, the step of the top state,
with `end`, the step after the last one that is not undone yet:

    too far apart, and room on the stack    advance from the top and store the state that is reached
    too far apart, no room                  advance from the top to one block before the end, and undo that block
    one block apart                         undo the block, and pop the stack

A block is undone as any loop is: run once with all its states stored, then backwards. The schedule (`checkpoint_sizes.py`) says how long a
block is, and how far to advance before storing. Online, the loop itself has filled the stack while it ran, and every segment between two of
its states is undone in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..checkpoint import Checkpoint
from ..ir.graph import substitute
from ..ir.loop_node import scan_node
from ..ir.node import Node, constant, named, new_input, outputs_of
from ..ir.ports import Carry, LoopSpec, NonSeq, State
from ..ir.respecialise import settled
from ..ops.algebra import (
    add,
    broadcast_to,
    call,
    cast,
    concatenate,
    counted,
    expand,
    incremented,
    indexed,
    is_zero,
    mul,
    rows,
    sub,
    where,
    written,
    zeros_like,
)
from ..ops.card import apply
from ..ops.checkpoint_schedule import BLOCK, THINNED_STRIDE, TURNS
from ..ops.history import HISTORY
from ..ops.row_checks import window
from ..ops.runtime_attributes import filled, sized
from ..ops.thinned import THINNED
from .checkpoint_sizes import (
    ROOT,
    Schedule,
    as_int,
    bytes_of,
    ceil_div,
    greatest,
    int_node,
    least,
    row_dims,
    row_like,
    schedule_for,
    shifted,
)
from .closed_loops import closed_loop
from .masks import Cotangent, Reverse
from .recurrence import Recurrence

Cotangents = dict[int, Node]
"""Cotangents by place: of the rows of states before the first step, oldest first, then of sequences, then of non-sequences."""


def needs_rows(note: object) -> bool:
    """True if the schedule stores states during the loop's own run."""
    return isinstance(note, Checkpoint) and note.schedule == "online"


class Checkpointed:
    """The backward loop of one loop under checkpoints.

    recurrences: states and shared variables alike. above: cotangents of the traces' rows. ran: the number of steps that the loop ran;
    steps: the number of these, the last ones, that are undone. hide: a cotangent of 0 stays 0 whatever slope it meets.
    """

    def __init__(
        self, spec: LoopSpec, recurrences: Sequence[Recurrence], above: Sequence[Node | None], ran: Node, steps: Node, hide: bool
    ) -> None:
        self.spec, self.recurrences, self.above, self.hide = spec, recurrences, above, hide
        self.ran, self.steps = as_int(ran), as_int(steps)
        self.is_cut = steps is not ran
        self.begin = sub(self.ran, self.steps) if self.is_cut else int_node(0)

    def cotangents(
        self, note: object, reads: Mapping[Node, None], residuals: Sequence[Node], results: Mapping[Node, Node], reverse: Reverse
    ) -> Cotangents:
        """The cotangents of initial rows, sequences and non-sequences whose inner inputs are in `reads`.

        residuals: values of the step that a block keeps. results: the rows of states, by their first inner input.
        """
        self.reads, self.reverse = reads, reverse
        if isinstance(note, Checkpoint) and needs_rows(note) and self.is_cut:
            note = replace(note, schedule="binomial")  # the stack would hold states of steps that are not undone
        plan = schedule_for(note, self.steps, as_int(self.spec.n_steps), *bytes_of(self.recurrences, residuals, self._outside()))
        stack, places, top = self._thinned(plan, results) if plan.kind == "online" else self._first(plan)
        return self._loop(plan, stack, places, top)

    def _outside(self) -> dict[Node, Node]:
        """For each inner input of the step, an outer value of its shape."""
        outer_rows = {read: row_like(seq.outer) for seq in self.spec.seqs for read in seq.reads}
        for one in self.recurrences:
            outer_rows |= {read: broadcast_to(constant(0, read.type.dtype), row_dims(one)) for read in one.reads}
        return outer_rows | {port.read: port.outer for port in self.spec.non_seqs}

    # the stack at first ---------------------------------------------------------------------------------------------

    def _first(self, plan: Schedule) -> tuple[list[Node], Node, Node]:
        """The stack, the steps of its states, and the index of its top: all hold the state before the first step that is undone."""
        start = [self._initial(one) for one in self.recurrences]
        if self.is_cut:
            start = self._advanced(start, int_node(0), self.begin, (TURNS, "ahead"))
        stack = [
            broadcast_to(expand(state, (0,)), (plan.slots, *self._dims(one))) for one, state in zip(self.recurrences, start, strict=True)
        ]
        return stack, broadcast_to(self.begin, (plan.slots,)), int_node(0)

    def _thinned(self, plan: Schedule, results: Mapping[Node, Node]) -> tuple[list[Node], Node, Node]:
        """The same, of a stack that the loop has filled while it ran."""
        stack = [
            named(
                sized(THINNED, (one.initial, results[one.reads[0]]), (plan.slots, plan.found), depth=one.depth, has_axis=one.has_axis),
                self._name("checkpoints", one),
            )
            for one in self.recurrences
        ]
        assert plan.found is not None
        stride = apply(THINNED_STRIDE, self.steps, plan.found)
        return stack, mul(counted(plan.slots), stride), greatest(sub(ceil_div(self.steps, stride), int_node(1)), int_node(0))

    def _initial(self, one: Recurrence) -> Node:
        """The state before the first step."""
        start = one.initial
        if one.has_axis:
            start = indexed(start, (0,)) if one.depth == 1 else rows(start, None, one.depth)
        return broadcast_to(cast(start, one.write.type.dtype), self._dims(one))

    @staticmethod
    def _dims(one: Recurrence) -> tuple[Node, ...]:
        """The dimensions of a state as it is stored: a row, or the rows that the taps reach, oldest first."""
        return row_dims(one) if one.depth == 1 else (int_node(one.depth), *row_dims(one))

    @staticmethod
    def _name(prefix: str, one: Recurrence) -> str:
        return f"{prefix}_{one.reads[0].name or 'state'}"

    # parts of a turn ------------------------------------------------------------------------------------------------

    def _part(self, seqs: Sequence[Node], non_seqs: Sequence[Node], count: Node, *notes: tuple[str, object]) -> LoopSpec:
        """`count` steps of the loop, without its states and results."""
        return replace(
            self.spec,
            n_steps=count,
            seqs=tuple(replace(seq, outer=outer) for seq, outer in zip(self.spec.seqs, seqs, strict=True)),
            states=(),
            traces=(),
            carries=(),
            non_seqs=tuple(replace(port, outer=outer) for port, outer in zip(self.spec.non_seqs, non_seqs, strict=True)),
            until=None,
            truncate_gradient=-1,
            notes=(*self._notes(), *notes),
        )

    def _notes(self) -> list[tuple[str, object]]:
        """The notes of the loop, but for its checkpoints, turns and blocks."""
        return [note for note in self.spec.notes if note[0] not in ("checkpoint", TURNS, BLOCK)]

    def _pieces(self, begin: Node, count: Node) -> list[Node]:
        """The rows of each sequence that `count` steps from `begin` on read."""
        return [window(seq.outer, begin, shifted(count, seq.span)) for seq in self.spec.seqs]

    def _non_seqs(self) -> list[Node]:
        return [port.outer for port in self.spec.non_seqs]

    def _advanced(self, start: Sequence[Node], begin: Node, count: Node, *notes: tuple[str, object]) -> list[Node]:
        """The states `count` steps after `begin`."""
        spec = self._part(self._pieces(begin, count), self._non_seqs(), count, *notes)
        single = [(one, state) for one, state in zip(self.recurrences, start, strict=True) if one.depth == 1]
        several = [(one, state) for one, state in zip(self.recurrences, start, strict=True) if one.depth > 1]
        spec = replace(
            spec,
            states=tuple(State(state, one.taps, one.reads, one.write, True) for one, state in several),
            carries=tuple(Carry(state, one.reads[0], one.write) for one, state in single),
        )
        results = iter(outputs_of(scan_node(settled(spec))))
        values = {}
        for one, state in several:
            newest = rows(next(results), -one.depth)
            values[one.reads] = broadcast_to(rows(concatenate([state, newest]), -one.depth), self._dims(one))
        for one, _ in single:
            values[one.reads] = next(results)
        return [values[one.reads] for one in self.recurrences]

    def _undone(self, start: Sequence[Node], begin: Node, count: Node, along: Mapping[int, Node]) -> list[Node | None]:
        """The cotangents that a block gives to its first states, the rows of sequences that it reads, and non-sequences; None: none.

        along: cotangents of the states after its last step.
        """
        fresh = [new_input(node.type, node.name) for node in start]
        whole = [new_input(seq.outer.type, seq.outer.name) for seq in self.spec.seqs]
        fed = [window(x, begin, shifted(count, seq.span)) for x, seq in zip(whole, self.spec.seqs, strict=True)]
        fixed = [new_input(node.type, node.name) for node in self._non_seqs()]
        states = [State(state, one.taps, one.reads, one.write, one.depth > 1) for state, one in zip(fresh, self.recurrences, strict=True)]
        spec = replace(self._part(fed, fixed, count, (BLOCK, True)), states=tuple(states), traces=self.spec.traces)
        results = outputs_of(scan_node(settled(spec)))
        outputs, seeds = self._seeds(fresh, results, begin, count, along)
        wrt = [*fresh, *fed, *fixed]
        sources = [node for node, is_wanted in zip(wrt, self._are_wanted(), strict=True) if is_wanted]
        found = self.reverse(outputs, [Cotangent(seed, None, self.hide) for seed in seeds], sources)
        values = {source: one.value for source, one in zip(sources, found, strict=True) if one is not None}
        back = dict(zip([*fresh, *whole, *fixed], [*start, *(seq.outer for seq in self.spec.seqs), *self._non_seqs()], strict=True))
        cotangents = [values.get(node) for node in wrt]
        return [None if value is None else substitute([value], back)[0] for value in cotangents]

    def _seeds(
        self, fresh: Sequence[Node], results: Sequence[Node], begin: Node, count: Node, along: Mapping[int, Node]
    ) -> tuple[list[Node], list[Node]]:
        """The results of a block that have cotangents, and their cotangents."""
        outputs, seeds = [], []
        n = len(self.recurrences)
        above = [one.rows for one in self.recurrences] + list(self.above)
        for k, result in enumerate(results):
            value = above[k]
            piece = None if value is None else window(value, begin, count)
            last = along.get(k)
            if last is not None and self.recurrences[k].depth == 1:  # `split_last` takes it apart: right for a block of no steps too
                piece = incremented(zeros_like(result) if piece is None else piece, last, (-1,))
            elif last is not None and k < n:
                depth = self.recurrences[k].depth
                outputs.append(rows(apply(HISTORY, fresh[k], result, depth=depth, has_axis=True), count))
                seeds.append(last)
            if piece is not None:
                outputs.append(result)
                seeds.append(piece)
        return outputs, seeds

    def _are_wanted(self) -> list[bool]:
        """For each state, sequence and non-sequence: whether its cotangent is wanted."""
        are_read = [any(read in self.reads for read in one.reads) for one in self.recurrences]
        are_read += [any(read in self.reads for read in seq.reads) for seq in self.spec.seqs]
        return are_read + [port.read in self.reads for port in self.spec.non_seqs]

    # the loop -------------------------------------------------------------------------------------------------------

    def _loop(self, outside: Schedule, stack: Sequence[Node], places: Node, top: Node) -> Cotangents:
        reads = {name: new_input(node.type, f"{TURNS}_{name}") for name, node in outside.fields().items()}
        plan = outside.on(reads)
        n, are_wanted = len(self.recurrences), self._are_wanted()
        end_in, top_in = new_input(int_node(0).type, "end"), new_input(int_node(0).type, "top")
        places_in = new_input(places.type, "places")
        stack_in = [new_input(node.type, self._name("checkpoints", one)) for node, one in zip(stack, self.recurrences, strict=True)]
        firsts = {k: self._last_cotangents(self.recurrences[k]) for k in range(n) if are_wanted[k]}
        along = {k: new_input(node.type, self._name("d", self.recurrences[k])) for k, node in firsts.items()}

        position = named(indexed(places_in, (top_in,)), "position")
        apart = sub(end_in, position)
        is_stored, ahead = plan.turn(apart, sub(sub(plan.slots, int_node(1)), top_in))
        reached = self._advanced([indexed(node, (top_in,)) for node in stack_in], position, ahead)
        here = named(add(position, ahead), "here")
        count = named(least(where(is_stored, int_node(0), sub(end_in, here)), plan.block), "count")
        undone = self._undone(reached, here, count, along)

        new_end = where(is_stored, end_in, here)
        is_popped = call("less_equal", ahead, int_node(0))
        new_top = where(is_stored, add(top_in, int_node(1)), where(is_popped, sub(top_in, int_node(1)), top_in))
        pushed = zip([*stack, places], [*stack_in, places_in], [*reached, here], strict=True)
        carries = [Carry(node, read, _pushed(read, value, top_in, is_stored)) for node, read, value in pushed]
        carries += [Carry(self.ran, end_in, new_end), Carry(top, top_in, new_top)]
        fixed = len(carries)
        order = [k for k, is_wanted in enumerate(are_wanted) if is_wanted]
        for k in order:
            carries.append(Carry(firsts[k], along[k], undone[k] or along[k]) if k < n else self._sum(k - n, undone[k], here, count))
        spec = LoopSpec(
            n_steps=mul(int_node(2), self.steps),  # an upper bound: each turn stores a state or undoes a block
            carries=tuple(carries),
            non_seqs=tuple(NonSeq(node, reads[name]) for name, node in outside.fields().items()),
            until=call("less_equal", new_end, self.begin),
            name=f"{self.spec.name}_checkpoints",
            notes=(*self._notes(), (TURNS, plan.kind), ("checkpoint", ROOT)),
        )
        return dict(zip(order, outputs_of(closed_loop(spec))[fixed:], strict=True))

    def _last_cotangents(self, one: Recurrence) -> Node:
        """The cotangent of a state after the last step: of its last row what readers outside the loop gave, else zeros."""
        zeros = broadcast_to(constant(0, one.write.type.dtype), self._dims(one))
        if one.last is None:
            return zeros
        return broadcast_to(one.last, self._dims(one)) if one.depth == 1 else incremented(zeros, one.last, (-1,))

    def _sum(self, k: int, value: Node | None, here: Node, count: Node) -> Carry:
        """The carry that adds up what the turns give to the k-th of sequences and non-sequences."""
        seqs = self.spec.seqs
        outer = seqs[k].outer if k < len(seqs) else self.spec.non_seqs[k - len(seqs)].outer
        zeros = zeros_like(outer)
        read = new_input(zeros.type, f"d_{outer.name or 'x'}")
        if value is None:
            return Carry(zeros, read, read)
        if k >= len(seqs):
            return Carry(zeros, read, add(read, value))
        region = _region(value)
        if region is not None:  # zeros but for some rows
            value, start, stop = region
            return Carry(zeros, read, incremented(read, value, ((_sum_of(here, start), _sum_of(here, stop), None),)))
        return Carry(zeros, read, incremented(read, value, ((here, shifted(add(here, count), seqs[k].span), None),)))


def _pushed(read: Node, value: Node, top: Node, is_stored: Node) -> Node:
    """The stack with `value` pushed on its top where `is_stored` holds, else unchanged."""
    n = cast(is_stored, "int64")
    slot = add(top, int_node(1))
    return written(read, rows(expand(value, (0,)), None, n), ((slot, add(slot, n), None),))


def _sum_of(here: Node, number: Node | int) -> Node:
    return shifted(here, number) if isinstance(number, int) else add(here, number)


def _region(value: Node) -> tuple[Node, Node | int, Node | int] | None:
    """(values, start, stop) of a value that is zeros with `values` added to rows start:stop, or put there; None for any other value."""
    if value.op.name not in ("inc_subtensor", "set_subtensor") or not is_zero(value.inputs[0]):
        return None
    spec = filled(value.attr("spec"), iter(value.inputs[2:]))
    if len(spec) != 1 or not isinstance(spec[0], tuple):
        return None
    start, stop, step = spec[0]
    if step is not None or any(bound is None or (isinstance(bound, int) and bound < 0) for bound in (start, stop)):
        return None
    return value.inputs[1], start, stop
