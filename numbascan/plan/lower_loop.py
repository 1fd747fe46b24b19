"""A Scan as a loop: checks, storage, the step, stores and rotations.

before the loop    n_steps checked, sequences checked, initial rows copied, memory taken
step t             the body; results stored; states rotated; `until`
after the loop     results cut to the steps that ran
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..ir import messages
from ..ir.loops import Apply, Break, Expr, Fail, If, Index, Let, Literal, Name, Template, add, compare, floor_div, mod, names_in, sub
from ..ir.node import Node, outputs_of
from ..ir.ports import LoopSpec, Seq, State, loop_spec
from ..ops.card import Card
from ..types import TensorType
from .builder import Builder, negated
from .inplace import may_update_in_place
from .place import is_small
from .save_mem import All, Every, Last, LastRows, Request, requests
from .scope import Scope, cast, nest, scalar_name
from .storage import LocalState, PathState, RingState, Rows, RowState, StateStore, Tail, Waiting, every_count, is_kept
from .values import Computed, Indices, InLocals, InMemory, Value, indices_of
from .write import copied

LOCALS_ROWS = 16  # elements over all lags that are rotated through locals

Elements = dict[tuple[int, ...], Expr]


@dataclass
class Result:
    """One result of the loop: which rows are wanted, and the memory for them."""

    position: int
    write: Node
    name: str
    wanted: dict[Node, Request]
    store: StateStore | None = None
    dims: Indices = ()  # of a row, once the step is made
    sinks: dict[Request, Rows] = field(default_factory=dict)

    def kinds(self) -> set[Request]:
        return set(self.wanted.values())


def lower(scope: Scope, node: Node) -> list[Value]:
    """The results of a Scan: mit_mots, states, traces, carries."""
    return _Loop(scope, node).make()


class _Loop:
    def __init__(self, scope: Scope, node: Node) -> None:
        self.scope, self.node, self.builder = scope, node, scope.builder
        self.spec: LoopSpec = loop_spec(node)
        self.wanted = requests(node, scope.readers, scope.outputs)
        self.n_steps: Index = 0
        self.steps: Index = 0
        self._fitting: set[Index] = set()

    def make(self) -> list[Value]:
        self.n_steps = self._counted()
        self._check_sequences()
        results = self._results()
        buffers = [self._buffer(port.outer, port.outer.name or "cotangent") for port in self.spec.mit_mots]
        steps = self.builder.variable("steps", self.n_steps, "int64") if self.spec.until is not None else None
        self.steps = self.n_steps if steps is None else steps
        outer_block = self.builder.block
        with self.builder.loop("t", self.n_steps, always=True) as t:
            homes = self.builder.steps_within(self._changing(results, buffers), self.builder.block)
            _Step(self, t, results, buffers, steps).make()
        self.builder.home.update(homes)
        self.builder.written.update(dict.fromkeys(homes, outer_block))
        return [*buffers, *(self._finished(result) for result in results)]

    # before the loop ------------------------------------------------------------------------------------------------

    def _counted(self) -> Index:
        """n_steps as an index expression, checked."""
        element = self.scope.value(self.spec.n_steps).at(())
        if isinstance(element, Literal):
            return int(element.value.real)
        n_steps = self.builder.let("n_steps", cast(element, "int64"))
        self._fitting = self._lengths(self.spec.n_steps)
        if not self._fitting:
            self.builder.check(compare(">=", n_steps, 0), "ValueError", messages.negative_steps(self.spec), n_steps)
        return n_steps

    def _lengths(self, node: Node) -> set[Index]:
        """The numbers of rows of which n_steps is the least, so that it is neither negative nor too large; empty if it is not such a least."""
        if node.op.name == "dim":
            axis = node.attr("axis")
            assert isinstance(axis, int)
            return {self.scope.value(node.inputs[0]).dims[axis]}
        if node.op.name == "minimum":
            parts = [self._lengths(parent) for parent in node.inputs]
            return set().union(*parts) if all(parts) else set()
        return set()

    def _check_sequences(self) -> None:
        for seq in self.spec.seqs:
            rows = self.scope.value(seq.outer).dims[0]
            needed = add(self.n_steps, seq.span)
            if rows != needed and not (seq.span == 0 and rows in self._fitting):
                message = messages.short_sequence(self.spec, seq)
                self.builder.check(compare(">=", rows, needed), "ValueError", message, rows, needed, self.n_steps)
        for state in self.spec.states:
            if state.has_axis:
                rows = self.scope.value(state.initial).dims[0]
                self.builder.check(compare(">=", rows, state.depth), "ValueError", messages.short_initial(self.spec, state), rows)

    def _results(self) -> list[Result]:
        spec = self.spec
        offset = len(spec.mit_mots)
        results = []
        for k, state in enumerate(spec.states):
            result = Result(offset + k, state.write, state.reads[0].name or "state", self.wanted[offset + k])
            result.store = self._store(state, result)
            results.append(result)
        offset += len(spec.states)
        results += [
            Result(offset + k, trace.write, trace.write.name or "out", self.wanted[offset + k]) for k, trace in enumerate(spec.traces)
        ]
        offset += len(spec.traces)
        for k, carry in enumerate(spec.carries):
            state = State(carry.shared, (-1,), (carry.read,), carry.write)
            result = Result(offset + k, carry.write, carry.read.name or "carry", {self._output(offset + k): Last()})
            result.store = self._store(state, result)
            results.append(result)
        for result in results:
            self._sinks(result)
        return results

    def _output(self, position: int) -> Node:
        return outputs_of(self.node)[position]

    def _store(self, state: State, result: Result) -> StateStore:
        """The cheapest storage that holds what is read of a state."""
        initial = self.scope.value(state.initial)
        size = state.write.type.size
        if size is not None and is_small(state.write) and size * state.depth <= LOCALS_ROWS:
            return LocalState(self.builder, state, initial, result.name)
        if All() in result.kinds() and self._given(result) is None:
            return PathState(self.builder, state, initial, result.name, self.n_steps)
        if may_update_in_place(self.spec, state):
            return RowState(self.builder, state, initial, result.name)
        return RingState(self.builder, state, initial, result.name)

    def _given(self, result: Result) -> InMemory | None:
        """The caller's array for a result that is wanted whole."""
        return self.scope.kernel.given.get(self._output(result.position)) if self.scope is self.scope.kernel.scope else None

    def _sinks(self, result: Result) -> None:
        """Rows of memory for what is wanted of a result, where its storage does not hold it anyway."""
        row = result.write.type
        for request in result.kinds():
            if isinstance(request, All) and not isinstance(result.store, PathState):
                given = self._given(result)
                rows = Rows(self.builder, f"{result.name}_rows" if result.store else result.name, row, self.n_steps, 0)
                if given is not None:
                    rows.array, rows.dims = given.array, given.dims[1:]
                    message = f"scan {self.spec.name!r}: out= has {{0}} rows for {result.name}, the loop makes {{1}}"
                    self.builder.same(given.dims[0], self.n_steps, "ValueError", message)
                result.sinks[request] = rows
            elif isinstance(request, LastRows):
                result.sinks[request] = Rows(self.builder, f"{result.name}_tail", row, request.k, 0)
            elif isinstance(request, Every):
                count = every_count(self.n_steps, request.start, request.k)
                result.sinks[request] = Rows(self.builder, f"{result.name}_kept", row, count, 0)
            elif isinstance(request, Last) and result.store is None:
                result.sinks[request] = Rows(self.builder, f"{result.name}_last", row, 1, 0)

    def _buffer(self, outer: Node, name: str) -> InMemory:
        """A copy of a mit_mot's buffer, to be read and written by the steps."""
        value = self.scope.value(outer)
        buffer = InMemory(outer.type, value.dims, self.builder.alloc(name, value.dims, outer.type.dtype))
        copied(self.scope, value, buffer)
        return buffer

    @staticmethod
    def _changing(results: Sequence[Result], buffers: Sequence[InMemory]) -> list[str]:
        names = [name for result in results if result.store is not None for name in result.store.changing()]
        return [*names, *(buffer.array for buffer in buffers)]

    # after the loop -------------------------------------------------------------------------------------------------

    def _finished(self, result: Result) -> Value:
        """The value of a result; the nodes that read only some of its rows get theirs at once."""
        shape = self.node.types[result.position]
        whole: Value = Computed(shape, (self.steps, *result.dims), _nothing_left)
        for node, request in result.wanted.items():
            value = self._rows(result, request, shape)
            if node is self._output(result.position):
                whole = value
            else:
                self.scope.env[node] = value
        return whole

    def _rows(self, result: Result, request: Request, shape: TensorType) -> Value:
        if isinstance(request, All):
            if isinstance(result.store, PathState):
                return result.store.all_rows(self.steps, shape)
            return result.sinks[request].all_rows(self.steps, shape)
        if isinstance(request, Last):
            is_carry = result.position >= len(self.spec.mit_mots) + len(self.spec.states) + len(self.spec.traces)
            if not is_carry:
                message = f"scan {self.spec.name!r}: the last row of {result.name} was asked for, but the loop ran 0 steps"
                self.builder.check(compare(">", self.n_steps, 0), "IndexError", message)
            if result.store is not None:
                return result.store.last(self.steps)
            return result.sinks[request].place(result.sinks[request].dims)
        if isinstance(request, LastRows):
            return Tail(result.sinks[request], request.k).value(self.steps, shape)
        return result.sinks[request].all_rows(every_count(self.steps, request.start, request.k), shape)


def _nothing_left(index: object) -> Expr:
    raise AssertionError("a row was read that save_mem took to be unread")


class _Step:
    """The body of the loop, at step t."""

    def __init__(self, loop: _Loop, t: Index, results: Sequence[Result], buffers: Sequence[InMemory], steps: Name | None) -> None:
        self.loop, self.spec, self.builder = loop, loop.spec, loop.builder
        self.t, self.results, self.buffers, self.steps = t, results, buffers, steps

    def make(self) -> None:
        spec = self.spec
        outputs = spec.inner_outputs()
        scope = Scope(self.loop.scope.kernel, outputs, {}, self._targets())
        self.scope = scope
        scope.env.update(self._arguments())
        late = [result.write for result in self.results if isinstance(result.store, RowState)]
        scope.run(last=late)
        # `run` leaves small results as expressions: they are read before any state changes
        self._store_buffers()
        new = {result.position: self._new_row(result) for result in self.results}
        stop = None if spec.until is None else self._condition(spec.until)
        self._check_shapes()
        for result in self.results:
            if not isinstance(result.store, LocalState):
                self._store_rows(result, new[result.position])
        self._rotate(new)
        for result in self.results:
            if isinstance(result.store, LocalState):
                self._store_rows(result, dict(result.store.lags[0]))
        if scope.kernel.check_finite:
            for result in self.results:
                self._check_finite(result, scope.value(result.write), new[result.position])
        if stop is not None and self.steps is not None:
            self.builder.emit(If(stop, [Let(self.steps.name, add(self.t, 1), is_new=False), Break()]))

    # what the step reads --------------------------------------------------------------------------------------------

    def _arguments(self) -> dict[Node, Value]:
        env: dict[Node, Value] = {}
        outer = self.loop.scope
        for seq in self.spec.seqs:
            for tap, read in zip(seq.taps, seq.reads, strict=True):
                env[read] = self._row(seq, tap, read, outer.value(seq.outer))
        for port, buffer in zip(self.spec.mit_mots, self.buffers, strict=True):
            for tap, read in zip(port.in_taps, port.reads, strict=True):
                env[read] = InMemory(read.type, buffer.dims[1:], buffer.array, (add(self.t, tap),))
        stores = [result for result in self.results if result.store is not None]
        for result in stores:
            assert result.store is not None
            for tap, read in zip(result.store.state.taps, result.store.state.reads, strict=True):
                env[read] = result.store.read(tap, self.t, self.builder.block)
        for non_seq in self.spec.non_seqs:
            env[non_seq.read] = outer.value(non_seq.outer)
        return env

    def _row(self, seq: Seq, tap: int, read: Node, rows: Value) -> Value:
        """The row of a sequence at step t, at one tap."""
        where = add(self.t, seq.before + tap)
        if isinstance(rows, InMemory):
            lead = (*rows.lead, add(where, rows.offset))
            row: Value = InMemory(read.type, rows.dims[1:], rows.array, lead)
        else:
            row = Computed(read.type, rows.dims[1:], lambda index: rows.at((where, *index)))
        if read.type.rank == 0 and self.scope.reads(read) > 1:
            element = self.builder.let(read.name, row.at(()), hoist=False)
            return InLocals(read.type, (), {(): element}, self.builder, self.builder.block)
        return row

    # what the step writes -------------------------------------------------------------------------------------------

    def _targets(self) -> dict[Node, list[Waiting]]:
        """For each result in memory, where its row goes as it is computed."""
        targets: dict[Node, list[Waiting]] = {}
        for result in self.results:
            for rows in result.sinks.values():
                rows.where = self._where(result, rows)
            if is_small(result.write) or not _is_made_in_place(result.write):
                continue
            places: list[Waiting] = []
            if result.store is not None:
                place = result.store.target(self.t)
                if place is not None:
                    places.append(place)
            places += [rows for request, rows in result.sinks.items() if not isinstance(request, Every)]
            if places:
                targets.setdefault(result.write, []).extend(places)
        return targets

    def _where(self, result: Result, rows: Rows) -> Index:
        for request, sink in result.sinks.items():
            if sink is rows:
                if isinstance(request, LastRows):
                    return mod(self.t, request.k)
                if isinstance(request, Every):
                    return floor_div(sub(self.t, request.start), request.k)
                if isinstance(request, Last):
                    return 0
        return self.t

    def _new_row(self, result: Result) -> Elements | None:
        """The elements of a small row, each in a form that later writes cannot change; None for a row in memory."""
        if not is_small(result.write):
            return None
        value = self.scope.value(result.write)
        return {index: cast(value.at(index), result.write.type.dtype) for index in indices_of(result.write.type.shape)}

    def _condition(self, until: Node) -> Expr:
        condition = cast(self.scope.value(until).at(()), "bool")
        return (
            condition if scalar_name(condition) and not self._moves_names(condition) else self.builder.let("stop", condition, hoist=False)
        )

    def _moves_names(self, expr: Expr) -> bool:
        changing = {name for result in self.results if result.store is not None for name in result.store.changing()}
        return any(name in changing for name, _ in names_in(expr))

    def _check_finite(self, result: Result, value: Value, elements: Elements | None) -> None:
        """Fails at the first step whose result is not finite."""
        write = result.write
        if write.type.kind not in "fc":
            return
        where = f" ({write.origin[0]}, line {write.origin[1]})" if write.origin else ""
        message = f"scan {self.spec.name!r}, step {{0}}: {result.name}{where} is not finite"
        if isinstance(result.store, LocalState):
            value = result.store.last(0)
        elif elements is not None:
            value = InLocals(value.type, value.dims, elements, self.builder, self.builder.block)
        template = Template("math.isfinite({0})" if write.type.kind == "f" else "np.isfinite({0})")

        def check(index: Indices) -> None:
            finite = Apply("bool", template, (value.at(index),))
            self.builder.emit(If(negated(finite), [Fail("FloatingPointError", message, (self.t,))]))

        if elements is not None:
            for index in indices_of(write.type.shape):
                check(index)
        else:
            nest(self.builder, value.dims, check)

    def _store_buffers(self) -> None:
        """Writes of mit_mots: all are computed before the first is stored."""
        kept = []
        for port, buffer in zip(self.spec.mit_mots, self.buffers, strict=True):
            for tap, write in zip(port.out_taps, port.writes, strict=True):
                value = self.scope.value(write)
                if isinstance(value, Computed | InLocals):
                    row = InMemory(write.type, value.dims, self.builder.alloc(None, value.dims, write.type.dtype))
                    copied(self.scope, value, row)
                    value = row
                kept.append((value, InMemory(write.type, buffer.dims[1:], buffer.array, (add(self.t, tap),))))
        for value, place in kept:
            copied(self.scope, value, place)

    def _check_shapes(self) -> None:
        """A state's new row has the shape of the old one."""
        stores = [result for result in self.results if result.store is not None]
        for position, result in enumerate(stores):
            assert result.store is not None
            for axis, (before, after) in enumerate(zip(result.store.dims, self.scope.value(result.write).dims, strict=True)):
                if before != after:
                    message = messages.changed_shape(self.spec, position, axis)
                    self.builder.same(before, after, "ValueError", message)

    def _store_rows(self, result: Result, elements: Elements | None) -> None:
        """Stores that no loop of the body has done: small rows, rows that a card did not make, every k-th row."""
        write, builder = result.write, self.builder
        result.dims = dims = self.scope.value(write).dims
        source = self.scope.value(write) if elements is None else InLocals(write.type, dims, elements, builder, builder.block)
        is_done = elements is None and _is_made_in_place(write)
        for request, rows in result.sinks.items():
            place = rows.place(dims)
            if isinstance(request, Every):
                with builder.branch() as kept:
                    copied(self.scope, source, place)
                builder.emit(If(is_kept(self.t, request.start, request.k), kept))
            elif not is_done:
                copied(self.scope, source, place)
        target = None if result.store is None else result.store.target(self.t)
        if target is not None and not is_done:
            copied(self.scope, source, target)

    def _rotate(self, new: dict[int, Elements | None]) -> None:
        """All states move on at once: no local is overwritten that another still has to read."""
        moves: list[tuple[Name, Expr]] = []
        for result in self.results:
            elements = new[result.position]
            if isinstance(result.store, LocalState):
                assert elements is not None
                moves += result.store.moves(elements)
            elif isinstance(result.store, RingState):
                moves += result.store.moves()
        assign_all(self.builder, moves)


def assign_all(builder: Builder, moves: Sequence[tuple[Name, Expr]]) -> None:
    """`a, b = …` as single assignments in an order that overwrites nothing still to be read; a cycle costs one more local."""
    left = [(name, expr) for name, expr in moves if name != expr]
    while left:
        for k, (name, expr) in enumerate(left):
            others = left[:k] + left[k + 1 :]
            if not any(name.name == read for _, other in others for read, _ in names_in(other)):
                builder.assign(name, expr)
                left = others
                break
        else:
            name, expr = left[0]
            saved = builder.let(f"{name.name}_next", expr, hoist=False)
            if isinstance(expr, Name):  # `let` keeps names as they are: a swap needs a local of its own
                saved = builder.variable(f"{name.name}_next", expr, name.dtype)
            left[0] = (name, saved)


def _is_made_in_place(write: Node) -> bool:
    """Does the lowering of `write` put it where it is waited for? What the step was given, and results among several, are copied."""
    return isinstance(write.op, Card) and len(write.types) == 1
