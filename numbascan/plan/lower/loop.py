"""A Scan as a loop: checks, storage, the step, stores and rotations.

before the loop    n_steps checked, sequences checked, initial rows copied, memory taken
step t             the body; results stored; states rotated; `until`
after the loop     results cut to the steps that ran
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir import messages
from ...ir.graph import toposort
from ...ir.loop_node import loop_spec
from ...ir.loops import Expr, Index, Literal, add, compare, least
from ...ir.names import verbatim
from ...ir.node import Node, constant_value, outputs_of
from ...ir.ports import LoopSpec, State, Trace
from ...ops.checkpoint_schedule import BLOCK
from ...ops.runtime_attributes import enough
from ...types import TensorType
from ..casts import cast
from ..storage.inplace import updated_in_place
from ..storage.placement import is_small
from ..storage.save_mem import MOST_ROWS, All, Every, Last, LastRows, Lengths, Path, Request, Thinned, requests
from ..storage.states import LocalState, PathState, ResultRows, RingState, RowState, StateStore, Tail, every_count, write_initial
from ..storage.stores import copied
from ..storage.tensor_values import Computed, InLocals, InMemory, Value, indices_of
from ..storage.thinning import Thinning
from .scope import Scope
from .step import Result, Step

LOCALS_ROWS = 16  # elements over all lags that are rotated through locals
FEW_ROWS = 16  # the last rows of so many steps have memory of a fixed shape, even if there are fewer steps


def lower(scope: Scope, node: Node) -> list[Value]:
    """The results of a Scan: mit_mots, states, traces, carries."""
    with scope.builder.step_of(loop_spec(node).name):
        return _Loop(scope, node).make()


class _Loop:
    def __init__(self, scope: Scope, node: Node) -> None:
        self.scope, self.node, self.builder = scope, node, scope.builder
        self.spec: LoopSpec = loop_spec(node)
        self.wanted = requests(node, scope.readers, scope.outputs)
        self.n_steps: Index = 0
        self.room: Index = 0
        self.steps: Index = 0
        self._fitting: set[Index] = set()
        self._in_place: list[Node] = []

    def make(self) -> list[Value]:
        self.n_steps = self._counted()
        self.room = self._most_steps()
        self._check_sequences()
        results = self._results()
        buffers = [self._buffer(port.outer, port.outer.name or "cotangent") for port in self.spec.mit_mots]
        steps = self.builder.variable("steps", self.n_steps, "int64") if self.spec.until is not None else None
        self.steps = self.n_steps if steps is None else steps
        outer_block = self.builder.block
        with self.builder.loop("t", self.n_steps, kind="lanes" if self._is_free(results) else "time", always=True) as t:
            homes = self.builder.steps_within(self._changing(results, buffers), self.builder.block)
            Step(self.scope, self.spec, t, results, buffers, steps).make(self._in_place)
        self.builder.home.update(homes)
        self.builder.written.update(dict.fromkeys(homes, outer_block))
        self.builder.stay([*homes, "" if steps is None else steps.name])
        return [*buffers, *(self._finished(result) for result in results)]

    def _is_free(self, results: Sequence[Result]) -> bool:
        """Does no step wait for another one? Then they may run in any order."""
        return not self.spec.waits and all(isinstance(request, All | Every | Lengths) for result in results for request in result.kinds())

    # before the loop ------------------------------------------------------------------------------------------------

    def _counted(self) -> Index:
        """n_steps as an index expression, checked."""
        element = self.scope.value(self.spec.n_steps).at(())
        if isinstance(element, Literal):
            return int(element.value.real)
        n_steps = self.builder.settled("n_steps", self.builder.let("n_steps", cast(element, "int64")))
        self._fitting = self._lengths(self.spec.n_steps)
        if not self._fitting and not _is_clamped(self.spec.n_steps):
            self.builder.check(compare(">=", n_steps, 0), "ValueError", messages.negative_steps(self.spec), n_steps)
        return n_steps

    def _most_steps(self) -> Index:
        """The rows to take memory for: of a block inside a loop as many as any block has, so that the memory is taken outside."""
        if (BLOCK, True) not in self.spec.notes or self.spec.n_steps.op.name != "minimum" or isinstance(self.n_steps, int):
            return self.n_steps
        for parent in self.spec.n_steps.inputs:
            most = cast(self.scope.value(parent).at(()), "int64")
            if self.builder.home_of(most).depth < self.builder.home_of(self.n_steps).depth:
                return int(most.value.real) if isinstance(most, Literal) else self.builder.let("most", most)
        return self.n_steps

    def _lengths(self, node: Node) -> set[Index]:
        """The numbers of rows of which n_steps is the least: then it is neither negative nor too large. Empty if it is not such a least."""
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
            if rows != add(self.n_steps, seq.span) and not (seq.span == 0 and rows in self._fitting):
                message = messages.short_sequence(self.spec, seq)
                is_enough, needed = enough(rows, self.n_steps, seq.span)
                self.builder.check(is_enough, "ValueError", message, rows, needed, self.n_steps)
        for state in self.spec.states:
            if state.has_axis:
                rows = self.scope.value(state.initial).dims[0]
                self.builder.check(compare(">=", rows, state.depth), "ValueError", messages.short_initial(self.spec, state), rows)

    def _check_room(self) -> None:
        """n_steps leaves room for the initial rows in front: no sum of both is too large for an integer."""
        if isinstance(self.n_steps, int) and self.n_steps > MOST_ROWS:
            raise MemoryError(messages.many_steps(self.spec).format(self.n_steps))
        if not self._fitting and not self.builder.is_bounded(self.n_steps):
            within = compare("<=", self.n_steps, MOST_ROWS)
            self.builder.check(within, "MemoryError", messages.many_steps(self.spec), self.n_steps)

    def _results(self) -> list[Result]:
        spec = self.spec
        names = iter(messages.result_names(spec))
        offset = len(spec.mit_mots)
        carries = [State(carry.shared, (-1,), (carry.read,), carry.write) for carry in spec.carries]
        ports: list[State | Trace] = [*spec.states, *spec.traces, *carries]
        results = [Result(k, port.write, next(names), self.wanted[k]) for k, port in enumerate(ports, offset)]
        for result in results[len(results) - len(carries) :]:
            result.wanted = {self._output(result.position): Last()}
        stored = [(port, result) for port, result in zip(ports, results, strict=True) if isinstance(port, State)]
        rows = {port.write for port, result in stored if not _fits_locals(port) and not self._is_path(result)}
        self._in_place = updated_in_place(spec, rows)
        for port, result in stored:
            result.store = self._store(port, result)
        for result in results:
            self._sinks(result)
        return results

    def _output(self, position: int) -> Node:
        return outputs_of(self.node)[position]

    def _store(self, state: State, result: Result) -> StateStore:
        """The cheapest storage that holds what is read of a state."""
        initial = self.scope.value(state.initial)
        position = result.position - len(self.spec.mit_mots)
        position -= len(self.spec.traces) if position >= len(self.spec.states) else 0
        for axis, (there, made) in enumerate(zip(initial.dims[state.has_axis :], state.write.type.shape, strict=True)):
            if made is not None and there != made:  # the initial value has the shape that every step gives
                self.builder.same(there, made, "ValueError", messages.changed_shape(self.spec, position, axis))
        if _fits_locals(state):
            return LocalState(self.builder, state, initial, result.name)
        if self._is_path(result):
            self._check_room()
            return PathState(self.builder, state, initial, result.name, self.room)
        if state.write in self._in_place:
            return RowState(self.builder, state, initial, result.name, self._taken_over(state.initial))
        return RingState(self.builder, state, initial, result.name)

    def _is_path(self, result: Result) -> bool:
        """Are all rows of a state kept, in memory of its own?"""
        return Path() in result.kinds() or (All() in result.kinds() and self._given(result) is None)

    def _taken_over(self, initial: Node) -> str | None:
        """The memory of states that the loop before has kept, where nobody else reads them."""
        if initial.op.name != "thinned" or self.scope.readers.get(initial) != [self.node]:
            return None
        value = self.scope.value(initial)
        return value.array if isinstance(value, InMemory) and not value.lead else None

    def _given(self, result: Result) -> InMemory | None:
        """The caller's array for a result that is wanted whole."""
        return self.scope.out.get(self._output(result.position))

    def _row_around(self, result: Result) -> InMemory | None:
        """The row of the loop around that is to hold this result, where its shape is known before the first step."""
        node = self._output(result.position)
        row = tuple(dim for dim in result.write.type.shape if dim is not None)
        waiting = self.scope.rows_around.get(node)
        if waiting is None or self.spec.until is not None or self.room != self.n_steps or len(row) < result.write.type.rank:
            return None
        self.scope.placed[node] = waiting
        return waiting.place((self.n_steps, *row))

    def _sinks(self, result: Result) -> None:
        """Rows of memory for what is wanted of a result, where its storage does not hold it anyway."""
        row, owner = result.write.type, (self.spec.name, result.name)
        for request in result.kinds():
            if isinstance(request, Path) and result.store is not None and not isinstance(result.store, PathState):
                self._check_room()
                rows = ResultRows(self.builder, f"{result.name}_path", row, add(self.room, result.store.state.depth), 0, owner)
                array = rows.place(result.store.dims).array
                write_initial(result.store, array)
                result.sinks[request] = rows
            elif isinstance(request, All) and self._given(result) is None and Path() in result.kinds():
                continue  # rows of the path
            elif isinstance(request, All) and not (isinstance(result.store, PathState) and self._given(result) is None):
                given = self._given(result)
                rows = ResultRows(self.builder, f"{result.name}_rows" if result.store else result.name, row, self.room, 0, owner)
                if given is not None:
                    rows.array, rows.dims = given.array, given.dims[1:]
                    message = f"{messages.title(self.spec.name)}: out= has {{0}} rows for {verbatim(result.name)}, the loop makes {{1}}"
                    self.builder.same(given.dims[0], self.n_steps, "ValueError", message)
                elif (around := self._row_around(result)) is not None:
                    rows.array, rows.dims, rows.lead = around.array, around.dims[1:], around.lead
                result.sinks[request] = rows
            elif isinstance(request, Lengths) and result.store is None:
                result.sinks[request] = ResultRows(self.builder, f"{result.name}_lengths", row, 0, 0, owner)
            elif isinstance(request, LastRows):
                count = request.k if request.k <= FEW_ROWS else least(request.k, self.n_steps)
                result.sinks[request] = ResultRows(self.builder, f"{result.name}_tail", row, count, 0, owner)
            elif isinstance(request, Every):
                count = every_count(self.n_steps, request.start, request.k)
                result.sinks[request] = ResultRows(self.builder, f"{result.name}_kept", row, count, 0, owner)
            elif isinstance(request, Thinned) and result.store is not None:
                name = next(node.name for node, wanted in result.wanted.items() if wanted == request)
                numbers = self._fixed(request.n_rows), self._fixed(request.most)
                result.thinned[request] = Thinning(self.builder, result.store, *numbers, name or f"{result.name}_kept")
            elif isinstance(request, Last) and result.store is None and is_small(result.write):
                zero = Literal(row.dtype, False if row.dtype == "bool" else 0)
                for index in indices_of(row.shape):
                    label = "_".join((f"{result.name}_last", *map(str, index)))
                    result.last[index] = self.builder.variable(label, zero, row.dtype)
            elif isinstance(request, Last) and result.store is None:
                result.sinks[request] = ResultRows(self.builder, f"{result.name}_last", row, 1, 0, owner)

    def _fixed(self, node: Node | int) -> Index:
        """A number that the loop does not depend on, computed before it."""
        if isinstance(node, int):
            return node
        for part in toposort([node], stop=list(self.scope.env)):
            self.scope.make(part)
        element = self.scope.value(node).at(())
        if isinstance(element, Literal):
            return int(element.value.real)
        name = node.name or "slots"
        return self.builder.settled(name, self.builder.let(name, cast(element, "int64")))

    def _buffer(self, outer: Node, name: str) -> InMemory:
        """A copy of a mit_mot's buffer, to be read and written by the steps."""
        value = self.scope.value(outer)
        buffer = InMemory(outer.type, value.dims, self.builder.alloc(name, value.dims, outer.type.dtype))
        copied(self.builder, value, buffer)
        return buffer

    @staticmethod
    def _changing(results: Sequence[Result], buffers: Sequence[InMemory]) -> list[str]:
        names = [name for result in results if result.store is not None for name in result.store.changing()]
        names += [name.name for result in results for name in result.last.values()]
        names += [name for result in results for thinning in result.thinned.values() for name in thinning.changing()]
        return [*names, *(buffer.array for buffer in buffers)]

    # after the loop -------------------------------------------------------------------------------------------------

    def _finished(self, result: Result) -> Value:
        """The value of a result; the nodes that read only some of its rows get theirs at once."""
        shape = self.node.types[result.position]
        whole: Value = Computed(shape, (self.steps, *result.dims), _nothing_left)
        for node, request in result.wanted.items():
            value = result.thinned[request].value(node.type) if isinstance(request, Thinned) else self._rows(result, request, shape)
            if node is self._output(result.position):
                whole = value
            else:
                self.scope.env[node] = value
        return whole

    def _rows(self, result: Result, request: Request, shape: TensorType) -> Value:
        if isinstance(request, All):
            if request in result.sinks:
                return result.sinks[request].all_rows(self.steps, shape)
            return self._path(result, shape, first=result.store.state.depth if result.store is not None else 0)
        if isinstance(request, Path):
            return self._path(result, shape, first=0)
        if isinstance(request, Last):
            is_carry = result.position >= len(self.spec.mit_mots) + len(self.spec.states) + len(self.spec.traces)
            if not is_carry:
                message = (
                    f"{messages.title(self.spec.name)}: the last row of {verbatim(result.name)} was asked for, but the loop ran 0 steps"
                )
                self.builder.check(compare(">", self.n_steps, 0), "IndexError", message)
            if result.store is not None:
                return result.store.last(self.steps)
            if result.last:
                elements: dict[tuple[int, ...], Expr] = dict(result.last)
                return InLocals(result.write.type, result.dims, elements, self.builder, self.builder.block, f"{result.name}_last")
            return result.sinks[request].place(result.sinks[request].dims)
        if isinstance(request, Lengths):
            dims = result.sinks[request].dims if result.store is None else result.store.dims
            return Computed(shape, (self.steps, *dims), _nothing_left)
        if isinstance(request, LastRows):
            return Tail(result.sinks[request], request.k).value(self.steps, shape)
        assert isinstance(request, Every)
        return result.sinks[request].all_rows(every_count(self.steps, request.start, request.k), shape)

    def _path(self, result: Result, shape: TensorType, first: int) -> InMemory:
        """The rows of a state from one of the initial ones on."""
        store = result.store
        assert store is not None
        array = store.array if isinstance(store, PathState) else result.sinks[Path()].array
        assert array is not None
        dims = (add(self.steps, store.state.depth - first), *store.dims)
        return InMemory(TensorType(shape.dtype, (None, *shape.shape[1:])), dims, array, offset=first)


def _fits_locals(state: State) -> bool:
    """Are the rows that a state looks back at few numbers?"""
    size = state.write.type.size
    return size is not None and is_small(state.write) and size * state.depth <= LOCALS_ROWS


def _is_clamped(node: Node) -> bool:
    """Is a number kept from being negative?"""
    return node.op.name == "maximum" and any(value is not None and bool(value == 0) for value in map(constant_value, node.inputs))


def _nothing_left(index: object) -> Expr:
    raise AssertionError("a row was read that save_mem took to be unread")
