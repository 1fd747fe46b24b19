"""A Scan as a loop: checks, storage, the step, stores and rotations.

before the loop    n_steps checked, sequences checked, initial rows copied, memory taken
step t             the body; results stored; states rotated; `until`
after the loop     results cut to the steps that ran
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ...ir import messages
from ...ir.graph import toposort
from ...ir.loop_node import loop_spec
from ...ir.loops import BROADCAST_DIM, Expr, Index, Literal, Name, add, compare, index_expr, least, mod, sub
from ...ir.names import verbatim
from ...ir.node import Node, constant_value, outputs_of
from ...ir.ports import LoopSpec, State, Trace
from ...ir.respecialise import MISFIT
from ...ops.algebra import is_zero
from ...ops.checkpoint_schedule import BLOCK
from ...ops.compare import MINIMUM
from ...ops.dims import COMMON_DIM, DIM, dim_node
from ...ops.gradient_identities import LINKS
from ...ops.index_entries import Region
from ...ops.indexing import SET_SUBTENSOR
from ...ops.lowering import Passes
from ...ops.runtime_attributes import enough
from ...ops.thinned import THINNED
from ...types import TensorType
from ..builder import Indices
from ..casts import cast
from ..storage.inplace import Updates, states_of, updated_in_place
from ..storage.placement import Placement, is_rotated, is_short_in_memory, is_small
from ..storage.save_mem import (
    MOST_ROWS,
    All,
    Every,
    FromEnd,
    Last,
    LastRows,
    LastState,
    LastStates,
    Lengths,
    Path,
    Request,
    Thinned,
    requests,
)
from ..storage.states import (
    FEW_ROWS,
    LocalState,
    PathState,
    ResultRows,
    RingState,
    RowState,
    StateStorage,
    WindowState,
    every_count,
    window_rows,
    write_initial,
)
from ..storage.stores import store
from ..storage.tensor_values import Computed, InLocals, InMemory, Value, indices_of
from ..storage.thinning import Thinning
from .scope import NodeOperands, Scope, location
from .step import LoopResult, Step


def lower(scope: Scope, node: Node) -> list[Value]:
    """The results of a Scan: states, traces, carries. ValueError where lengths of its step do not fit and it cannot be planned."""
    try:
        return _lowered(scope, node)
    except KeyError:  # an element of a short array that it has not
        misfit = dict(loop_spec(node).notes).get(MISFIT)
        if misfit is None:
            raise
        raise ValueError(misfit) from None


def _lowered(scope: Scope, node: Node) -> list[Value]:
    if loop_spec(node).mit_mots:
        raise AssertionError(f"{node}: buffers of cotangents become states before a loop is planned (grad/mit_mots.py)")
    with scope.builder.step_of(loop_spec(node).name):
        return _Loop(scope, node).make()


class _Loop:
    """One Scan. `n_steps`: the steps asked for; `room`: the rows to take memory for; `steps`: those that ran, which `until` may make fewer.

    `_fitting`: numbers of rows that n_steps cannot exceed, so that nothing is checked against them; `_in_place`: see `updated_in_place`.
    """

    def __init__(self, scope: Scope, node: Node) -> None:
        self.scope, self.node, self.builder = scope, node, scope.builder
        self.spec: LoopSpec = loop_spec(node)
        self.requests = requests(node, scope.readers, scope.outputs)
        self.n_steps: Index = 0
        self.room: Index = 0
        self.steps: Index = 0
        self._in_place = Updates()

    def make(self) -> list[Value]:
        """Statements before the loop, the loop, and the values of its results.

        Storage is chosen before the step is made: where a row goes decides how the step's own loops write it. Inside, what changes from
        step to step is at home in the loop, or the builder would hoist what reads it; behind the loop, it is at home outside again.
        """
        self.n_steps = self._counted()
        self.room = self._most_steps()
        self._check_sequences()
        results = self._results()
        steps = self.builder.variable("steps", self.n_steps, "int64") if self.spec.until is not None else None
        self.steps = self.n_steps if steps is None else steps
        with self.builder.loop("t", self.n_steps, kind="lanes" if self._is_free(results) else "time", always=True) as t:
            homes = self.builder.change_here(self._changing(results))
            step = Step(self.scope, self.spec, t, results, steps)
            step.make(self._in_place)
        self.builder.loop_ended(homes)
        self.builder.stay([] if steps is None else [steps.name])
        for condition in step.behind:
            self.builder.learn(condition)
        return [self._finished(result) for result in results]

    def _is_free(self, results: Sequence[LoopResult]) -> bool:
        """Does no step wait for another one? Then they may run in any order."""
        return not self.spec.waits and all(
            isinstance(request, All | Every | FromEnd | Lengths) for result in results for request in result.rows_read
        )

    # before the loop ------------------------------------------------------------------------------------------------

    def _counted(self) -> Index:
        """n_steps as an index expression, checked."""
        element = self.scope.value(self.spec.n_steps).at(())
        if isinstance(element, Literal):
            return int(element.value.real)
        n_steps = self.builder.settled("n_steps", self.builder.let("n_steps", cast(element, "int64")))
        self.builder.check(compare(">=", n_steps, 0), "ValueError", messages.negative_steps(self.spec), n_steps)
        return n_steps

    def _most_steps(self) -> Index:
        """The rows to take memory for: of a block inside a loop as many as any block has, so that the memory is taken outside."""
        if (BLOCK, True) not in self.spec.notes or self.spec.n_steps.op is not MINIMUM or isinstance(self.n_steps, int):
            return self.n_steps
        for parent in self.spec.n_steps.inputs:
            most = cast(self.scope.value(parent).at(()), "int64")
            if self.builder.home_of(most).depth < self.builder.home_of(self.n_steps).depth:
                return int(most.value.real) if isinstance(most, Literal) else self.builder.let("most", most)
        return self.n_steps

    def _check_sequences(self) -> None:
        for seq in self.spec.seqs:
            rows = self.scope.value(seq.outer).dims[0]
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
        self.builder.check(compare("<=", self.n_steps, MOST_ROWS), "MemoryError", messages.many_steps(self.spec), self.n_steps)

    def _results(self) -> list[LoopResult]:
        """The results, with storage for states and room for the rows that are read.

        Which rows are overwritten in place is decided for all states together, before any gets its storage: they may read each other's.
        """
        spec = self.spec
        names = iter(messages.result_names(spec))
        carries = states_of(spec)[len(spec.states) :]
        ports: list[State | Trace] = [*spec.states, *spec.traces, *carries]
        results = [LoopResult(k, port.write, next(names), self.requests[k]) for k, port in enumerate(ports)]
        for result in results[len(results) - len(carries) :]:
            result.requests = {self._output(result.position): Last()}
        for result in results:
            if FromEnd() in result.rows_read and not self._is_stored_from_end(result):
                result.requests[self._output(result.position)] = All()
        states = [(port, result) for port, result in zip(ports, results, strict=True) if isinstance(port, State)]
        rows = {
            state.write
            for state, result in states
            if not (is_rotated(state, self.scope.target) or self._is_path(result) or self._is_window(state, result))
        }
        self._in_place = updated_in_place(spec, rows, self.scope.target)
        for state, result in states:
            result.storage = self._storage(state, result)
        for result in results:
            self._add_sinks(result)
        return results

    def _is_stored_from_end(self, result: LoopResult) -> bool:
        """Are rows that are read from the last to the first stored so? Not those of states, which the next step reads, nor what anybody
        else reads, nor those of lanes, which stay where other passes look for them."""
        is_trace = len(self.spec.states) <= result.position < len(self.spec.states) + len(self.spec.traces)
        return is_trace and self.spec.waits and set(result.rows_read) <= {FromEnd(), Lengths()}

    def _output(self, position: int) -> Node:
        return outputs_of(self.node)[position]

    def _storage(self, state: State, result: LoopResult) -> StateStorage:
        """The cheapest storage that holds what is read of a state."""
        initial = self.scope.value(state.initial)
        is_carry = result.position >= len(self.spec.states)
        position = result.position - len(self.spec.traces) * is_carry
        for axis, (there, dim) in enumerate(zip(initial.dims[state.has_axis :], state.write.type.shape, strict=True)):
            if dim is not None:  # the initial value has the shape that every step gives
                self.builder.same(there, dim, "ValueError", messages.changed_shape(self.spec, position, axis))
        if is_rotated(state, self.scope.target):
            return LocalState(self.builder, state, initial, result.name)
        if self._is_path(result):
            self._check_room()
            return PathState(self.builder, state, initial, result.name, self.room)
        if state.write in self._in_place.writes:
            return RowState(self.builder, state, initial, result.name, self._taken_over(state))
        if state.depth >= FEW_ROWS or result.most_kept > 1:
            return WindowState(self.builder, state, initial, result.name, max(state.depth + 1, result.most_kept), self.room)
        return RingState(self.builder, state, initial, result.name)

    def _is_window(self, state: State, result: LoopResult) -> bool:
        """Are the last rows of a state kept, and is none of them copied from a row that is updated in place? On the stack that is faster:
        LLVM knows that the two overlap nowhere, and cannot tell the rows of one array apart."""
        size = state.write.type.size
        is_on_stack = size is not None and size * np.dtype(state.write.type.dtype).itemsize <= self.scope.target.stack_row
        return result.most_kept > 1 and not is_on_stack

    def _is_path(self, result: LoopResult) -> bool:
        """True if all rows of a state are kept, in memory of its own."""
        if is_short_in_memory(result.write, self.scope.target):
            return False
        return Path() in result.rows_read or (All() in result.rows_read and self._out(result) is None)

    def _taken_over(self, state: State) -> str | None:
        """The row that the loop is to update in place; or what its initial value lies in, where nobody else reads that."""
        initial = state.initial
        target = self.scope.row_updated(self.node, initial)
        if target is not None:
            return target.row.array
        memory = self.scope.left_behind(initial)
        if memory is not None and initial.type.dtype == state.write.type.dtype and not state.has_axis:
            return memory.array
        if initial.op is not THINNED or self.scope.readers.get(initial) != [self.node]:
            return None
        value = self.scope.value(initial)
        return value.array if isinstance(value, InMemory) and not value.lead else None

    def _out(self, result: LoopResult) -> InMemory | None:
        """The caller's array for all rows of a result."""
        return self.scope.out.get(self._output(result.position))

    @staticmethod
    def _only_node(result: LoopResult, request: LastRows) -> Node | None:
        """The node that reads such rows, if no other one reads of the last rows."""
        nodes = [node for node, other in result.requests.items() if isinstance(other, LastRows)]
        return nodes[0] if len(nodes) == 1 and result.requests[nodes[0]] == request else None

    def _row_around(self, node: Node | None, result: LoopResult, count: Index) -> InMemory | None:
        """The row of the loop around that is to hold `count` rows of a result, where its shape is known before the first step."""
        row = tuple(dim for dim in result.write.type.shape if dim is not None)
        around = None if node is None else self.scope.rows_around.get(node)
        if node is None or around is None or self.spec.until is not None or self.room != self.n_steps or len(row) < result.write.type.rank:
            return None
        self.scope.placed[node] = around
        return around.place((count, *row))

    def _add_sinks(self, result: LoopResult) -> None:
        """Room for the rows that are read of a result, where its storage does not hold them anyway."""
        for request in result.rows_read:
            if isinstance(request, Thinned) and result.storage is not None:
                name = next(node.name for node, same in result.requests.items() if same == request)
                numbers = self._fixed(request.n_rows), self._fixed(request.most)
                result.thinned[request] = Thinning(self.builder, result.storage, *numbers, name or f"{result.name}_kept")
            elif isinstance(request, Last | LastState) and result.storage is None and is_small(result.write, self.scope.target):
                result.last = self._last_elements(result)
            elif (rows := self._sink(result, request)) is not None:
                result.sinks[request] = rows

    def _last_elements(self, result: LoopResult) -> dict[tuple[int, ...], Name]:
        """Locals for the last row of a small trace."""
        dtype, shape = result.write.type.dtype, result.write.type.shape
        zero = Literal(dtype, False if dtype == "bool" else 0)
        labels = {index: "_".join((f"{result.name}_last", *map(str, index))) for index in indices_of(shape)}
        return {index: self.builder.variable(label, zero, dtype) for index, label in labels.items()}

    def _sink(self, result: LoopResult, request: Request) -> ResultRows | None:
        """Memory for the rows that a request asks for; None where they lie elsewhere."""
        storage = result.storage
        if isinstance(request, All):
            return self._all_rows(result)
        if isinstance(request, LastRows):
            return self._tail(result, request.k)
        if isinstance(request, Every):
            return self._memory(result, "_kept", every_count(self.n_steps, request.start, request.k))
        if isinstance(request, FromEnd) and not result.is_whole:
            return self._rows_from_end(result)
        if isinstance(request, Path) and storage is not None and not isinstance(storage, PathState):
            self._check_room()
            rows = self._memory(result, "_path", add(self.room, storage.state.depth))
            write_initial(storage, rows.place(storage.dims).array)
            return rows
        if isinstance(request, LastStates) and isinstance(storage, LocalState | RowState) and self._needs_ring(result, request):
            rows = self._memory(result, "_rows", window_rows(request.k, storage.state, self.room))
            write_initial(storage, rows.place(storage.dims).array)
            return rows
        if isinstance(request, Lengths) and storage is None:
            return self._memory(result, "_lengths", 0)
        is_kept = storage is not None or result.is_whole or result.most_last > 0
        return self._memory(result, "_last", 1) if isinstance(request, Last) and not is_kept else None

    @staticmethod
    def _needs_ring(result: LoopResult, request: LastStates) -> bool:
        """True if a state that holds one row needs a ring for its last rows: they lie neither in a path nor in a longer ring."""
        return Path() not in result.rows_read and request.k == result.most_states

    def _tail(self, result: LoopResult, k: int) -> ResultRows | None:
        """A ring for the last rows of a result; None where they lie elsewhere: in the path, in the state's own rows, in a longer ring."""
        in_state = result.storage is not None and (k == 1 or isinstance(result.storage, WindowState))
        if result.is_whole or in_state or k < result.most_last:
            return None
        count = least(k, self.n_steps)
        around = (
            self._row_around(self._only_node(result, LastRows(k)), result, count) if is_small(result.write, self.scope.target) else None
        )
        if around is not None:
            rows = self._memory(result, "_tail", count)
            rows.array, rows.dims, rows.lead, rows.first = around.array, around.dims[1:], around.lead, sub(self.n_steps, count)
            return rows
        return self._memory(result, "_tail", k if k <= FEW_ROWS else least(k, self.n_steps))

    def _memory(self, result: LoopResult, suffix: str, count: Index) -> ResultRows:
        told = () if result.storage is not None or self.spec.has_step else self._told_dims(result)
        return ResultRows(self.builder, result.name + suffix, result.write.type, count, 0, (self.spec.name, result.name), told)

    def _told_dims(self, result: LoopResult) -> tuple[Index | None, ...]:
        """The dimensions of a row by the graph around the loop, as rewrites and gradients see them; None where it does not tell."""
        rows = self._output(result.position)
        return tuple(self._told(dim_node(rows, axis)) for axis in range(1, rows.type.rank))

    def _told(self, dim: Node) -> Index | None:
        """A dimension that is made of dimensions of values around the loop."""
        number = constant_value(dim)
        if number is not None:
            return int(number)
        if dim.op is DIM:
            measured = dim.inputs[0]
            while measured not in self.scope.env and measured.op in LINKS:
                measured = measured.inputs[0]
            return self.scope.value(measured).dims[dim.number("axis")] if measured in self.scope.env else None
        parts = [self._told(one) for one in dim.inputs] if dim.op is COMMON_DIM else []
        known = [part for part in parts if part is not None]
        return self.builder.let("common_dim", index_expr(BROADCAST_DIM, *known)) if len(known) == 2 else None

    def _all_rows(self, result: LoopResult) -> ResultRows | None:
        """Memory for every row: the caller's array, or the row of the loop around that is to hold them. None where the path has them."""
        out = self._out(result)
        if out is None and (Path() in result.rows_read or isinstance(result.storage, PathState)):
            return None
        rows = self._memory(result, "_rows" if result.storage else "", self.room)
        if out is not None:
            rows.array, rows.dims = out.array, out.dims[1:]
            message = f"{messages.title(self.spec.name)}: out= has {{0}} rows for {verbatim(result.name)}, the loop makes {{1}}"
            self.builder.same(out.dims[0], self.n_steps, "ValueError", message)
        elif (around := self._row_around(self._output(result.position), result, self.n_steps)) is not None:
            rows.array, rows.dims, rows.lead = around.array, around.dims[1:], around.lead
        return rows

    def _rows_from_end(self, result: LoopResult) -> ResultRows:
        """Memory for every row, the last one first: that of zeros among which the rows are put, where that alone is read."""
        nodes = [node for node, request in result.requests.items() if isinstance(request, FromEnd)]
        node = nodes[0] if len(nodes) == 1 else None
        rows = self._memory(result, "", self.room)
        rows.back = sub(self.n_steps, 1)
        if node is not None and (zeros := self._zeros_around(node)) is not None:
            rows.array, rows.dims, rows.lead, rows.back = zeros.array, zeros.dims[1:], zeros.lead, add(zeros.offset, rows.back)
            told = "nt.set_subtensor: {1} values along an axis do not fit {0} places"
            rows.misfit = told + location(self.scope, self.scope.readers[node][0])
        elif (around := self._row_around(node, result, self.n_steps)) is not None:
            rows.array, rows.dims, rows.lead = around.array, around.dims[1:], around.lead
        return rows

    def _zeros_around(self, rows: Node) -> InMemory | None:
        """Memory of zeros, as `nt.set_subtensor(zeros[start:stop], rows)` asks for, where nothing else reads the rows; `offset`: start."""
        readers = self.scope.readers[rows]
        if len(readers) != 1 or not self._puts_among_zeros(readers[0], rows):
            return None
        (node,) = readers
        for part in toposort([node.inputs[0], *node.inputs[2:]], stop=list(self.scope.env)):
            self.scope.make(part)
        row = self.scope.value(node.inputs[0]).dims[1:]
        self.scope.env[rows] = Computed(rows.type, (self.n_steps, *row), _nothing_left)
        view = NodeOperands(self.scope, node)
        assert isinstance(SET_SUBTENSOR.lower, Passes)
        dims = SET_SUBTENSOR.lower.dims(view)
        (place,) = self.scope.destinations(node, dims)
        region = Region(view, 2, "nt.set_subtensor").ranges()[0]
        zero = cast(Literal("int64", 0), node.type.dtype)
        self.builder.nest((region.before, *row), lambda index: self.builder.emit(store(place, index, zero)))
        after = partial(region.place_after, n=dims[0])
        self.builder.nest((region.after, *row), lambda index: self.builder.emit(store(place, (after(index[0]), *index[1:]), zero)))
        self.scope.env[node] = place
        return replace(place, offset=region.first)

    def _puts_among_zeros(self, node: Node, rows: Node) -> bool:
        """True if a value is zeros but for `rows`, lies in memory at one place, and needs nothing else that the loop makes."""
        if node.op is not SET_SUBTENSOR or node.inputs[1] is not rows or not is_zero(node.inputs[0]) or node.type.dtype != rows.type.dtype:
            return False
        if _are_repeated(rows, node):
            return False
        spec, others = node.attr("spec"), [node.inputs[0], *node.inputs[2:]]
        is_slice = isinstance(spec, tuple) and len(spec) == 1 and isinstance(spec[0], tuple) and spec[0][2] is None
        is_placed = self.scope.placement(node) is Placement.MEMORY and len(self.scope.targets.get(node, ())) < 2
        return is_slice and is_placed and node not in self.scope.last and self.node not in toposort(others)

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

    @staticmethod
    def _changing(results: Sequence[LoopResult]) -> list[str]:
        names = [name for result in results if result.storage is not None for name in result.storage.changing()]
        names += [name.name for result in results for name in result.last.values()]
        return names + [name for result in results for thinning in result.thinned.values() for name in thinning.changing()]

    # after the loop -------------------------------------------------------------------------------------------------

    def _finished(self, result: LoopResult) -> Value:
        """The value of a result; the nodes that read only some of its rows get theirs at once."""
        shape = self.node.types[result.position]
        whole: Value = Computed(shape, (self.steps, *result.dims), _nothing_left)
        for node, request in result.requests.items():
            value = result.thinned[request].value(node.type) if isinstance(request, Thinned) else self._rows(result, request, shape)
            if node is self._output(result.position):
                whole = value
            elif node not in self.scope.env:
                self.scope.env[node] = value
        return whole

    def _rows(self, result: LoopResult, request: Request, shape: TensorType) -> Value:
        if isinstance(request, All):
            if request in result.sinks:
                return result.sinks[request].all_rows(self.steps, shape)
            return self._path(result, shape, first=result.storage.state.depth if result.storage is not None else 0)
        if isinstance(request, FromEnd):
            if request in result.sinks:
                return result.sinks[request].all_rows(self.steps, shape)
            every = self._rows(result, All(), shape)
            return Computed(shape, every.dims, lambda index: every.at((sub(sub(self.steps, 1), index[0]), *index[1:])))
        if isinstance(request, Path):
            return self._path(result, shape, first=0)
        if isinstance(request, LastState):
            return self._last_elements_of(result) if result.storage is None else result.storage.last(self.steps)
        if isinstance(request, Last):
            is_carry = result.position >= len(self.spec.states) + len(self.spec.traces)
            if not is_carry:
                message = (
                    f"{messages.title(self.spec.name)}: the last row of {verbatim(result.name)} was asked for, but the loop ran 0 steps"
                )
                self.builder.check(compare(">", self.n_steps, 0), "IndexError", message)
            if result.storage is not None:
                return result.storage.last(self.steps)
            if result.last:
                return self._last_elements_of(result)
            if request in result.sinks:
                return result.sinks[request].place(result.sinks[request].dims)
            dims, at = self._kept_at(result, shape)
            return Computed(result.write.type, dims, lambda index: at((sub(self.steps, 1), *index)))
        if isinstance(request, Lengths):
            dims = result.sinks[request].dims if result.storage is None else result.storage.dims
            return Computed(shape, (self.steps, *dims), _nothing_left)
        if isinstance(request, LastRows):
            count = least(request.k, self.steps)
            if request in result.sinks and result.sinks[request].first is not None:
                return result.sinks[request].all_rows(count, shape)
            dims, at = self._kept_at(result, shape)  # a result of its own, whatever else is read from there
            return Computed(shape, (count, *dims), lambda index: at((add(sub(self.steps, count), index[0]), *index[1:])))
        if isinstance(request, LastStates):
            return self._last_states(result, request.k, shape)
        assert isinstance(request, Every)
        return result.sinks[request].all_rows(every_count(self.steps, request.start, request.k), shape)

    def _last_elements_of(self, result: LoopResult) -> InLocals:
        """The last row of a small trace."""
        elements: dict[tuple[int, ...], Expr] = dict(result.last)
        return InLocals(result.write.type, result.dims, elements, self.builder, self.builder.block, f"{result.name}_last")

    def _kept_at(self, result: LoopResult, shape: TensorType) -> tuple[Indices, Callable[[Indices], Expr]]:
        """The dimensions of a row, and the elements of the last rows by the number of their step, from where they lie."""
        storage = result.storage
        if result.is_whole:
            whole = self._rows(result, All(), shape)
            return whole.dims[1:], whole.at
        if isinstance(storage, WindowState):
            depth = storage.state.depth
            return storage.dims, lambda index: storage.row(add(index[0], depth)).at(index[1:])
        longest = result.most_last
        if storage is not None and longest == 1:
            last = storage.last(self.steps)
            return storage.dims, lambda index: last.at(index[1:])
        rows = result.sinks[LastRows(longest)]
        ring = rows.all_rows(rows.count, shape)
        return rows.dims, lambda index: ring.at((mod(index[0], longest), *index[1:]))

    def _last_states(self, result: LoopResult, k: int, shape: TensorType) -> Value:
        """The last rows of a state, initial ones among them, from where they lie."""
        assert result.storage is not None
        n_rows = add(self.steps, result.storage.state.depth)
        count = least(k, n_rows)
        first, type_ = sub(n_rows, count), TensorType(shape.dtype, (None, *shape.shape[1:]))
        dims = (count, *result.storage.dims)
        return Computed(type_, dims, lambda index: self._row_of_state(result, add(first, index[0])).at(index[1:]))

    def _row_of_state(self, result: LoopResult, r: Index) -> InMemory:
        """One of the last rows of a state, initial ones counted."""
        storage = result.storage
        assert storage is not None
        if isinstance(storage, WindowState):
            return storage.row(r)
        if isinstance(storage, PathState) or Path() in result.sinks:
            return InMemory(storage.type, storage.dims, self._path_array(result), (r,))
        ring = result.sinks[LastStates(result.most_states)]
        assert ring.array is not None
        return InMemory(storage.type, storage.dims, ring.array, (mod(r, result.most_states),))

    def _path(self, result: LoopResult, shape: TensorType, first: int) -> InMemory:
        """The rows of a state from one of the initial ones on."""
        storage = result.storage
        assert storage is not None
        array = self._path_array(result)
        dims = (add(self.steps, storage.state.depth - first), *storage.dims)
        return InMemory(TensorType(shape.dtype, (None, *shape.shape[1:])), dims, array, offset=first)

    @staticmethod
    def _path_array(result: LoopResult) -> str:
        array = result.storage.array if isinstance(result.storage, PathState) else result.sinks[Path()].array
        assert array is not None
        return array


def _are_repeated(rows: Node, whole: Node) -> bool:
    """Are rows broadcast to the place in `whole` that they are put into? Then none lies there as the loop makes it."""
    is_longer = any(dim == 1 and there != 1 for dim, there in zip(rows.type.shape, (None, *whole.type.shape[1:]), strict=False))
    return rows.type.rank != whole.type.rank or is_longer


def _nothing_left(index: object) -> Expr:
    raise AssertionError("a row was read that save_mem took to be unread")
