"""The reverse rule of a loop: a loop that runs backwards, with a buffer of cotangents for every state.

At the step s of the backward loop, which undoes step t = T - 1 - s, the buffer of a state with taps -1 and -3 is used like this:

    row of the buffer      s       s+1     s+2     s+3
    row of the state       t       t-1     t-2     t-3
                           read    +=              +=

Row s is complete when step s reads it: it is the cotangent of the state's row t. What the step's own reads get is added to the rows
of t - 1 and t - 3. Rows beyond the last step belong to the initial values. Buffer and sequences lie in the order of the backward steps.

What a backward step needs of the forward one: rows of states are read again, contractions and factorisations are kept in a trace,
elementwise work is computed again. The backward loop is a loop like any other, so its derivatives follow by the same rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from ..ir.graph import substitute, toposort
from ..ir.loop_node import loop_spec, scan_node
from ..ir.node import CONSTANT, Node, constant, new_input, outputs_of
from ..ir.ports import IN_BLOCKS, Carry, LoopSpec, MitMot, NonSeq, Seq, Trace, row_of
from ..ir.respecialise import settled
from ..ops.algebra import (
    add,
    broadcast_to,
    call,
    concatenate,
    dims_of,
    expand,
    flip,
    incremented,
    indexed,
    rows,
    same_dims,
    sub,
    summed_to,
    total,
    zeros_like,
)
from ..ops.card import apply
from ..ops.dims import DIM
from ..ops.history import HISTORY
from ..ops.random import REJECTED
from ..ops.row_checks import is_window
from .checkpoint import Checkpointed, needs_rows
from .checkpoint_sizes import shifted
from .cotangent_rows import split_last
from .masks import Cotangent, Reverse
from .mit_mots import buffered_cotangents
from .product_order import in_cheap_order
from .products import ProductTerm, factors_of, split_products
from .read_back import reading_values
from .read_rows import reading_rows
from .recurrence import Recurrence, with_untouched
from .residuals import is_less_than_its_table, parts_of_rows, residuals, rows_of_loops
from .reverse import drawn_writes, over_all_steps, reaching, refuse_drawn
from .row_shapes import as_row
from .rules import no_derivative
from .sparse_cotangents import added


def scan_cotangents(
    node: Node, cotangents: Sequence[Cotangent | None], needed: Collection[int], reverse: Reverse
) -> list[Cotangent | None]:
    """The cotangents of a loop's outer inputs (those in `needed`) from those of its results."""
    spec = loop_spec(node)
    if spec.mit_mots:
        return buffered_cotangents(node, cotangents, needed, reverse)
    values = [None if one is None else one.value for one in cotangents]
    hide = any(one is not None and one.hides for one in cotangents)
    backward, note = _Backward(spec, values, set(needed), reverse, hide), dict(spec.notes).get("checkpoint")
    results = with_untouched(spec, values, backward.cotangents() if note is None else backward.checkpointed(note), needed)
    return [None if value is None else Cotangent(value, None, backward.hide) for value in results]


class _Backward:
    """The backward loop of one loop, in the making. `hide`: a cotangent of 0 stays 0 whatever slope it meets."""

    def __init__(self, spec: LoopSpec, cotangents: Sequence[Node | None], needed: set[int], reverse: Reverse, hide: bool) -> None:
        self.spec = reading_rows(reading_values(spec.opened()))
        self.needed, self.reverse, self.hide = needed, reverse, hide
        values = iter(cotangents)
        self.recurrences = [
            Recurrence(port.initial, port.taps, port.reads, port.write, port.has_axis, False, next(values)) for port in self.spec.states
        ]
        self.trace_rows = [next(values) for _ in self.spec.traces]
        for carry in self.spec.carries:
            last = next(values)
            self.recurrences.append(Recurrence(carry.shared, (-1,), (carry.read,), carry.write, False, True, None, last))
        for recurrence in self.recurrences:
            if recurrence.rows is not None:
                recurrence.rows, recurrence.last = split_last(recurrence.rows)
        self.seqs: list[Seq] = []
        self.mit_mots: list[MitMot] = []
        self.traces: list[Trace] = []
        self.sums: list[Carry] = []
        self.fixed = {port.read for port in self.spec.non_seqs}
        self.inside: dict[Node, Node] = {}  # what the backward step reads in place of a value of the forward step
        self.lengths: dict[Node, Node] = {}  # of states, by what stands for them in the backward step

    # which values have cotangents -----------------------------------------------------------------------------------

    def _initials(self) -> range:
        _, states, carries, _ = self.spec.outer_places()
        return range(states.start, carries.stop)

    def _dependent_reads(self) -> dict[Node, None]:
        """The inner inputs whose cotangents are wanted: they stand for needed outer inputs, or depend on these over the steps."""
        seqs, _, _, non_seqs = self.spec.outer_places()
        reads: dict[Node, None] = {}
        for place, seq in zip(seqs, self.spec.seqs, strict=True):
            reads |= dict.fromkeys(seq.reads if place in self.needed else ())
        for place, non_seq in zip(non_seqs, self.spec.non_seqs, strict=True):
            reads |= dict.fromkeys((non_seq.read,) if place in self.needed else ())
        for place, recurrence in zip(self._initials(), self.recurrences, strict=True):
            reads |= dict.fromkeys(recurrence.reads if place in self.needed else ())
        return over_all_steps(toposort(self._writes()), reads, [(one.reads, one.write) for one in self.recurrences])

    def _writes(self) -> list[Node]:
        return [*(one.write for one in self.recurrences), *(trace.write for trace in self.spec.traces)]

    def _step(self) -> dict[Node, Node]:
        """The cotangent of each inner input that gets one, as a graph over inner inputs and `self.above`.

        A fixed-point iteration. The cotangent of a result gives cotangents to reads. An earlier step wrote what a step reads, so these
        writes get cotangents as well, and the step is differentiated again with them, until no read is new. The same goes for hiding: where
        a step hides something of a state, the zeros that the earlier step gets hide, too.
        """
        reads = self._dependent_reads()
        active = reaching(toposort(self._writes()), reads)
        above: dict[int, Node] = {}  # by place among the writes: what stands for the cotangent of the write
        writes = self._writes()
        cotangents = [one.rows or one.last for one in self.recurrences] + self.trace_rows
        self._refuse_drawn([writes[k] for k, value in enumerate(cotangents) if value is not None], set(reads))
        alive = [k for k, value in enumerate(cotangents) if value is not None and writes[k] in active]
        while True:
            above |= {k: new_input(writes[k].type.strong(), f"d_{writes[k].name or 'out'}") for k in alive if k not in above}
            seeds = [Cotangent(value, None, self.hide) for value in above.values()]
            found = dict(zip(reads, self.reverse([writes[k] for k in above], seeds, list(reads)), strict=True))
            step = {read: one.value for read, one in found.items() if one is not None}
            hidden = {read for read, one in found.items() if one is not None and one.hides}
            if hidden and not self.hide:
                self.hide = True
                if any(not hidden.isdisjoint(one.reads) for one in self.recurrences):
                    alive = []
                    continue
            # also a write that depends on nothing and lets nothing through: the first steps read initial values
            alive = [k for k, one in enumerate(self.recurrences) if k not in above and any(read in step for read in one.reads)]
            if not alive:
                refuse_drawn([writes[k] for k in above], [(one.reads, one.write) for one in self.recurrences if one.write in active])
                self.above = above
                return step

    def _refuse_drawn(self, results: list[Node], reads: set[Node]) -> None:
        """Raises NullGradientError for a result that comes from draws by rejection, at some step, with values in `reads`."""
        behind = drawn_writes(self.spec, reads, set())
        for write in results:
            if write in behind:
                raise no_derivative(write, REJECTED)

    def cotangents(self) -> list[Node | None]:
        """The cotangents of the outer inputs."""
        step = self._step()
        if not step:
            return [None] * len(self.spec.outer_inputs())
        # What the backward step reads is settled before anything is made of it: rows that states store anyway, then residuals. Products
        # are reordered with these as leaves, and only then is it known which other values it reads (`used`), which the ports below ask.
        self.stored = self._stored_writes(list(step.values()))
        inner = rows_of_loops(list(step.values()), self.spec.inner_inputs(), self._is_kept)
        traced = residuals(list(step.values()), self._writes(), self.spec.inner_inputs(), [*self.stored, *inner], self.fixed)
        traced += inner
        step = dict(zip(step, in_cheap_order(step.values(), [*traced, *self.stored]), strict=True))
        rows = [read for one in self.recurrences for read in one.reads]
        parts = parts_of_rows(list(step.values()), self._writes(), rows, {*traced, *self.stored}, self.fixed)
        kept = {part: as_row(part, self.fixed) or (part, part) for part in parts}
        traced += [row for row, _ in kept.values()]
        step = dict(zip(step, substitute(list(step.values()), {part: again for part, (_, again) in kept.items()}), strict=True))
        step = self._with_lengths(step, [*traced, *self.stored])
        self.used = set(toposort(step.values(), stop=[*traced, *self.stored]))
        self._forward(traced)
        self._recurrence_ports(step)
        self._trace_ports()
        self._sequence_ports(step)
        self._sum_ports(step)
        self._sources(traced)
        return self._results(step)

    def _with_lengths(self, step: dict[Node, Node], stop: Collection[Node]) -> dict[Node, Node]:
        """The step with the lengths of initial values, which no step changes, in place of those of states that are only measured."""
        order = toposort(step.values(), stop=stop)
        read = {parent for node in order for parent in node.inputs if node.op is not DIM and node not in stop} | set(step.values())
        lengths: dict[Node, Node] = {}
        for one in self.recurrences:
            for node in order:
                if node.op is DIM and node.inputs[0] in one.reads and read.isdisjoint(one.reads):
                    lengths[node] = new_input(node.type)
                    self.lengths[lengths[node]] = dims_of(one.initial)[node.number("axis") + one.has_axis]
        if not lengths:
            return step
        kept = {node: new_input(node.type) for node in stop}  # what is kept is measured in the forward step
        values = substitute(substitute(list(step.values()), kept), lengths)
        return dict(zip(step, substitute(values, {stands_for: node for node, stands_for in kept.items()}), strict=True))

    def _is_kept(self, rows: Node) -> bool:
        """True for rows of an inner loop that is not run again: of blocks of lanes, whose steps all have the same shapes; of a row of a
        table."""
        return (IN_BLOCKS, True) in self.spec.notes or is_less_than_its_table(rows, self.fixed)

    def checkpointed(self, note: object) -> list[Node | None]:
        """The same, with few of the states stored."""
        reads, step = self._dependent_reads(), self._step()
        result: list[Node | None] = [None] * len(self.spec.outer_inputs())
        if not step:
            return result
        traced = self._kept_besides(step)
        carried = self.recurrences[len(self.spec.states) :]
        self.stored, self.used = [], {one.reads[0] for one in carried} if needs_rows(note) else set()
        self._forward([])
        loop = Checkpointed(self.spec, self.recurrences, self.trace_rows, self.ran, self.steps, self.hide)
        cotangents = loop.cotangents(note, reads, traced, self.state_rows, self.reverse)
        seqs, _, _, non_seqs = self.spec.outer_places()
        for place, (k, one) in zip(self._initials(), enumerate(self.recurrences), strict=True):
            if place in self.needed and k in cotangents:
                result[place] = self._initial_cotangent(one, cotangents[k] if one.depth > 1 else expand(cotangents[k], (0,)))
        for k, place in enumerate((*seqs, *non_seqs), len(self.recurrences)):
            result[place] = cotangents.get(k)
        return result

    def _kept_besides(self, step: dict[Node, Node]) -> list[Node]:
        """The values of the forward step that the backward loop of a block keeps of each step, besides states."""
        values = list(step.values())
        traced = residuals(values, self._writes(), self.spec.inner_inputs(), self._stored_writes(values), self.fixed)
        summed = [step[port.read] for port in self.spec.non_seqs if port.read in step]
        factors = dict.fromkeys(factor for contribution in summed for factor in factors_of(contribution, self.fixed))
        writes, inputs = self._writes(), self.spec.inner_inputs()
        factor_rows = substitute(list(factors), {above: writes[k] for k, above in self.above.items()})
        return [*traced, *(value for value in factor_rows if value not in inputs)]  # rows that the step reads are there anyway

    def _stored_writes(self, values: Sequence[Node]) -> list[Node]:
        """The writes of states whose rows the backward step reads anyway: these need not be recomputed."""
        inner = set(self.spec.inner_inputs())
        read = set(toposort(values)) & inner
        return [one.write for one in self.recurrences if read & set(one.reads) and one.write not in inner and one.write.op is not CONSTANT]

    def _is_used(self, one: Recurrence) -> bool:
        """True if the backward step reads rows of a state."""
        return not self.used.isdisjoint(one.reads) or (one.write in self.stored and one.write in self.used)

    def _forward(self, traced: Sequence[Node]) -> None:
        """The forward loop, with the rows that the backward one needs among its results."""
        spec = self.spec
        must_count = spec.until is not None and not (spec.states or spec.traces or traced)
        carried = self.recurrences[len(spec.states) :]
        converted = [one for k, one in enumerate(carried) if self._is_used(one) or (must_count and k == 0)]
        left = [carry for carry in spec.carries if all(carry.read is not one.reads[0] for one in converted)]
        states = (*spec.states, *(one.as_state() for one in converted))
        loop = scan_node(settled(replace(spec, states=states, traces=(*spec.traces, *map(Trace, traced)), carries=tuple(left))))
        results = outputs_of(loop)
        self.state_rows = dict(zip((state.reads[0] for state in states), results, strict=False))
        self.kept_rows = dict(zip(traced, results[len(states) + len(spec.traces) :], strict=False))
        ran = spec.n_steps if spec.until is None else dims_of(results[0])[0]
        self.ran = ran
        self.steps = ran if spec.truncate_gradient == -1 else call("minimum", ran, constant(spec.truncate_gradient, "int64"))

    # its ports ------------------------------------------------------------------------------------------------------

    def _recurrence_ports(self, step: dict[Node, Node]) -> None:
        """A buffer for each state whose reads have cotangents; a sequence for one that no step reads again."""
        self.buffer_of: dict[int, int] = {}
        for k, one in enumerate(self.recurrences):
            if k not in self.above:
                continue
            taps = [(-tap, step[read]) for tap, read in zip(one.taps, one.reads, strict=True) if read in step]
            outer = self._buffer(one)
            if not taps:
                self._add_sequence(outer, (0,), (self.above[k],))
                continue
            reads = tuple(new_input(row_of(outer.type)) for _ in taps)
            writes = tuple(add(read, value) for read, (_, value) in zip(reads, taps, strict=True))
            places = tuple(place for place, _ in taps)
            now = new_input(row_of(outer.type), self.above[k].name)
            self.inside[self.above[k]] = now
            self.buffer_of[k] = len(self.mit_mots)
            self.mit_mots.append(MitMot(outer, (0, *places), (now, *reads), places, writes))

    def _buffer(self, one: Recurrence) -> Node:
        """The cotangents of a state's rows in the order of the backward steps, then zeros for the initial rows."""
        dims, dtype = dims_of(one.initial)[one.has_axis :], one.write.type.dtype
        zero = constant(0, dtype)
        if one.rows is None:
            buffer = broadcast_to(zero, (call("add", self.steps, constant(one.depth, "int64")), *dims))
        else:
            buffer = concatenate([self._backwards(one.rows), broadcast_to(zero, (one.depth, *dims))])
        return buffer if one.last is None else incremented(buffer, one.last, (0,))

    def _backwards(self, value: Node) -> Node:
        """Rows of all steps, from the last step to the earliest that is undone."""
        return flip(value) if self.steps is self.ran else rows(flip(value), None, self.steps)

    def _trace_ports(self) -> None:
        for k, value in enumerate(self.trace_rows, len(self.recurrences)):
            if k in self.above:
                assert value is not None
                self._add_sequence(self._backwards(value), (0,), (self.above[k],))

    def _add_sequence(self, outer: Node, taps: tuple[int, ...], stands_for: Iterable[Node]) -> None:
        """A sequence of the backward loop; its rows stand for values of the forward step."""
        inner = {value: new_input(row_of(outer.type), value.name) for value in stands_for}
        self.inside.update(inner)
        self.seqs.append(Seq(outer, taps, tuple(inner.values())))

    def _sequence_ports(self, step: dict[Node, Node]) -> None:
        self.seq_traces: dict[Node, int] = {}
        for seq in self.spec.seqs:
            for read in seq.reads:
                if read in step:
                    self.seq_traces[read] = len(self.traces)
                    self.traces.append(Trace(self._in_shape_of(read, step[read], range(read.type.rank))))

    def _sum_ports(self, step: dict[Node, Node]) -> None:
        """The cotangent of a non-sequence is a sum over the steps: taken in the loop, that of large products after it."""
        self.sum_of: dict[Node, int] = {}
        self.products: dict[Node, list[tuple[ProductTerm, int, int]]] = {}
        for port in self.spec.non_seqs:
            if port.read not in step:
                continue
            others, products = split_products(step[port.read], self.fixed, (IN_BLOCKS, True) in self.spec.notes)
            self.products[port.read] = [(product, *self._factors(product, port.read)) for product in products]
            if others:
                zeros = zeros_like(port.outer)
                read = new_input(zeros.type, f"d_{port.outer.name or 'non_seq'}")
                self.sum_of[port.read] = len(self.sums)
                self.sums.append(Carry(zeros, read, added(read, others)))

    def _factors(self, product: ProductTerm, read: Node) -> tuple[int, int]:
        """The numbers of the traces that keep the factors of what `read` gets."""
        a, b, out = product.labels
        places = ([out.index(label) if label in out else None for label in labels] for labels in (a, b))
        first, second = (
            self._traced(self._in_shape_of(read, factor, axes)) for factor, axes in zip((product.a, product.b), places, strict=True)
        )
        return first, second

    def _in_shape_of(self, read: Node, value: Node, axes: Iterable[int | None]) -> Node:
        """A value of the backward step, each dimension that of the given axis of `read`: so it is in rows of a loop of no steps, too.

        Such a loop asks nothing of its operands, and what its step would make of them may have other dimensions.
        """
        own, wanted = dims_of(value), dims_of(read)
        fitted = summed_to(value, [dim if axis is None else wanted[axis] for dim, axis in zip(own, axes, strict=True)])
        self.used |= set(toposort([fitted], stop=[value]))
        return fitted

    def _traced(self, value: Node) -> int:
        """The number of the trace that keeps a value of every step."""
        writes = [trace.write for trace in self.traces]
        if value in writes:
            return writes.index(value)
        self.traces.append(Trace(value))
        return len(writes)

    def _sum(self, port: NonSeq, traced: Sequence[Node], sums: Sequence[Node]) -> Node | None:
        """The cotangent of a non-sequence from all steps."""
        if port.read not in self.products:
            return None
        terms = [product.summed(traced[a], traced[b]) for product, a, b in self.products[port.read]]
        return total([sums[self.sum_of[port.read]], *terms] if port.read in self.sum_of else terms)

    def _sources(self, traced: Sequence[Node]) -> None:
        """The values of the forward step that the backward step reads: sequences, states, what was kept, non-sequences."""
        for seq in self.spec.seqs:
            if not self.used.isdisjoint(seq.reads):
                self._add_sequence(flip(self._used_rows(seq)), tuple(-tap for tap in seq.taps), seq.reads)
        for one in self.recurrences:
            if self._is_used(one):
                self._state_source(one)
        for value in traced:
            self._add_sequence(flip(self._undone(self.kept_rows[value])), (0,), (value,))
        self.non_seqs = []
        for port in self.spec.non_seqs:
            if port.read in self.used:
                inner = new_input(port.outer.type, port.outer.name)
                self.inside[port.read] = inner
                self.non_seqs.append(NonSeq(port.outer, inner))
        self.non_seqs += [NonSeq(length, read) for read, length in self.lengths.items() if read in self.used]

    def _state_source(self, one: Recurrence) -> None:
        """The rows of a state: those that the step read, and the one that it wrote."""
        result = self.state_rows[one.reads[0]]
        again = (one.write,) if one.write in self.stored and one.write in self.used and one.write not in self.inside else ()
        if self.used.isdisjoint(one.reads):
            if again:  # else another state with the same write has brought it
                self._add_sequence(flip(self._undone(result)), (0,), again)
            return
        history = apply(HISTORY, one.initial, result, depth=one.depth, has_axis=one.has_axis)
        self._add_sequence(flip(self._undone(history, one.depth)), (*(-tap for tap in one.taps), *(0 for _ in again)), (*one.reads, *again))

    def _undone(self, value: Node, more: int = 0) -> Node:
        """The rows that the undone steps read, of the rows of all steps and `more`: the last ones, where the gradient is truncated."""
        truncated = self.spec.truncate_gradient
        return value if truncated == -1 else rows(value, -truncated - more)

    def _used_rows(self, seq: Seq) -> Node:
        """The rows of a sequence that the loop's steps have read."""
        count = shifted(self.ran, seq.span)
        return seq.outer if self._reads_whole(seq) or is_window(seq.outer, count) else rows(seq.outer, None, count)

    def _reads_whole(self, seq: Seq) -> bool:
        """True if there are surely as many steps as the sequence has rows."""
        return seq.span == 0 and (is_window(seq.outer, self.ran) or same_dims(seq.outer, (self.ran, *dims_of(seq.outer)[1:])))

    # what comes out -------------------------------------------------------------------------------------------------

    def _results(self, step: dict[Node, Node]) -> list[Node | None]:
        spec = LoopSpec(
            n_steps=self.steps,
            seqs=tuple(self.seqs),
            mit_mots=tuple(self.mit_mots),
            traces=tuple(self.traces),
            carries=tuple(self.sums),
            non_seqs=tuple(self.non_seqs),
            name=f"{self.spec.name}_gradient",
            notes=tuple(note for note in self.spec.notes if note[0] != "checkpoint"),
        )
        writes = substitute(spec.inner_outputs(), self.inside)
        loop = scan_node(settled(spec.with_inner(spec.inner_inputs(), writes)))
        loop.origin = loop.origin or self.spec.n_steps.origin
        results, n_rows = outputs_of(loop), len(self.mit_mots) + len(self.traces)
        buffers, traced, sums = results[: len(self.mit_mots)], results[len(self.mit_mots) : n_rows], results[n_rows:]
        result: list[Node | None] = [None] * len(self.spec.outer_inputs())
        seqs, _, _, non_seqs = self.spec.outer_places()
        for place, seq in zip(seqs, self.spec.seqs, strict=True):
            result[place] = self._sequence_cotangent(seq, traced) if place in self.needed else None
        for place, (k, one) in zip(self._initials(), enumerate(self.recurrences), strict=True):
            if place in self.needed and k in self.above:
                buffer = buffers[self.buffer_of[k]] if k in self.buffer_of else self._buffer(one)
                tail = rows(buffer, self.steps)
                result[place] = self._initial_cotangent(one, tail if one.depth == 1 else flip(tail))
        for place, port in zip(non_seqs, self.spec.non_seqs, strict=True):
            result[place] = self._sum(port, traced, sums)
        return result

    def _first_undone(self) -> Node | None:
        """The earliest step that is undone; None for step 0."""
        return None if self.steps is self.ran else sub(self.ran, self.steps)

    def _sequence_cotangent(self, seq: Seq, traced: Sequence[Node]) -> Node | None:
        """The cotangent of a sequence: what its taps get, added up where they read the same rows; zeros for rows that were not read."""
        cotangent: Node | None = None
        first = self._first_undone()
        for tap, read in zip(seq.taps, seq.reads, strict=True):
            if read not in self.seq_traces:
                continue
            value = flip(traced[self.seq_traces[read]])
            if len(seq.taps) == 1 and first is None and self._reads_whole(seq):
                return value
            start: Node = constant(seq.before + tap, "int64") if first is None else add(first, constant(seq.before + tap, "int64"))
            region = ((start, add(start, self.steps), None),)
            cotangent = incremented(zeros_like(seq.outer) if cotangent is None else cotangent, value, region)
        return cotangent

    def _initial_cotangent(self, one: Recurrence, before: Node) -> Node:
        """The cotangent of an initial value, from those of the rows before the first undone step, oldest first."""
        first = self._first_undone()
        if first is not None:  # rows that earlier steps have written count as constants
            left = call("maximum", sub(constant(one.depth, "int64"), first), constant(0, "int64"))
            nothing = broadcast_to(constant(0, before.type.dtype), (sub(constant(one.depth, "int64"), left), *dims_of(before)[1:]))
            before = concatenate([nothing, rows(before, None, left)])
        if not one.has_axis:
            return indexed(before, (0,))
        if one.initial.type.shape[0] == one.depth:
            return before
        return incremented(zeros_like(one.initial), before, ((None, one.depth, None),))
