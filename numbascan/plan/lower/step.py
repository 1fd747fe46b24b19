"""One step of a loop: what it reads, its body, what it stores, and how its states advance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ...ir import loops as ir
from ...ir import messages
from ...ir.node import Node
from ...ir.ports import LoopSpec, Seq
from ...ops.control import IF_ELSE
from ..builder import Builder, Indices
from ..casts import cast
from ..storage.inplace import Updates
from ..storage.placement import is_small
from ..storage.save_mem import All, Every, Last, LastRows, LastStates, Lengths, Path, Request, Thinned
from ..storage.states import Destination, LocalState, NextRow, ResultRows, RingState, StateStorage, is_kept
from ..storage.stores import copied, is_there
from ..storage.tensor_values import Computed, InLocals, InMemory, Value, indices_of
from ..storage.thinning import Thinning
from .invariants import Invariants, integer_states
from .scope import Scope, is_made_in_place

Elements = dict[tuple[int, ...], ir.Expr]


@dataclass
class LoopResult:
    """One result of the loop: which rows are read, and the memory for them."""

    position: int
    write: Node
    name: str
    requests: dict[Node, Request]
    storage: StateStorage | None = None
    dims: Indices = ()  # of a row, once the step is made
    sinks: dict[Request, ResultRows] = field(default_factory=dict)
    last: dict[tuple[int, ...], ir.Name] = field(default_factory=dict)  # for a small trace: its elements in the last step
    thinned: dict[Request, Thinning] = field(default_factory=dict)

    @property
    def rows_read(self) -> list[Request]:
        """The distinct requests, in a process-independent order: those that hold nodes, which hash by address, keep their own order."""
        others = {request for request in self.requests.values() if not isinstance(request, Thinned)}
        return [*others, *dict.fromkeys(request for request in self.requests.values() if isinstance(request, Thinned))]

    @property
    def most_last(self) -> int:
        """The greatest k for which the last k rows are read; 0 if there is none."""
        return max((request.k for request in self.requests.values() if isinstance(request, LastRows)), default=0)

    @property
    def most_states(self) -> int:
        """The greatest k for which the last k rows of the state are read, initial ones included; 0 if there is none."""
        return max((request.k for request in self.requests.values() if isinstance(request, LastStates)), default=0)

    @property
    def most_kept(self) -> int:
        """The greatest k for which the last k rows are read, whether initial ones count or not."""
        return max(self.most_last, self.most_states)

    @property
    def is_whole(self) -> bool:
        """True if all rows are kept."""
        return not {All(), Path()}.isdisjoint(self.rows_read)


class Step:
    """The body of the loop, at step t."""

    def __init__(self, outer: Scope, spec: LoopSpec, t: ir.Index, results: Sequence[LoopResult], steps: ir.Name | None) -> None:
        self.outer, self.spec, self.builder = outer, spec, outer.builder
        self.t, self.results, self.steps = t, results, steps
        self.behind: Sequence[ir.Expr] = ()  # what holds of the last values of states

    def make(self, updates: Updates) -> None:
        """Writes the step. `updates`: the values that overwrite the rows they come from, and their late readers; all else comes first.

        A step sees states as they were before it. So the condition of `until` and small new rows are in locals before a row is overwritten,
        every check and store comes before locals and rings advance, and only then may the loop end.
        """
        spec, in_place = self.spec, updates.rows
        self.scope = scope = self.outer.inner(spec.inner_outputs(), {}, self._targets(updates), updates.stored)
        scope.rows_around = self._rows_around()
        scope.env.update(self._arguments())
        self._hold_steady()
        for result in self.results:
            for thinning in result.thinned.values():
                thinning.keep(self.t)
        scope.run(last=in_place)
        new: dict[int, Elements | None] = {}
        stop = None
        for late in (False, True):
            for write in in_place if late else ():
                scope.make(write)
            results = [result for result in self.results if (result.write in in_place) == late]
            new |= {result.position: self._new_row(result, bool(in_place)) for result in results}
            if spec.until is not None and (spec.until in in_place) == late:
                stop = self._condition(spec.until)
            if scope.context.check_finite and not spec.waits and not late:
                self._tell_lane()
            self._store_all(results, new)
        self._rotate(new)
        for result in self.results:
            if isinstance(result.storage, LocalState):
                self._store_rows(result, dict(result.storage.lags[0]))
        if stop is not None and self.steps is not None:
            self.builder.emit(ir.If(stop, [ir.Let(self.steps.name, ir.add(self.t, 1), is_new=False), ir.Break()]))

    # what the step reads --------------------------------------------------------------------------------------------

    def _hold_steady(self) -> None:
        """Tells the block what holds of integer states from here to the end of the step."""
        states = integer_states([result.storage for result in self.results])
        if not states:
            return
        self.builder.hold_steady(state.name.name for state in states)
        invariants = Invariants(self.outer, self.scope, self.spec, states, self.t)
        for condition in invariants.at_start:
            self.builder.learn(condition)
        self.behind = invariants.behind

    def _arguments(self) -> dict[Node, Value]:
        env: dict[Node, Value] = {}
        for seq in self.spec.seqs:
            for tap, read in zip(seq.taps, seq.reads, strict=True):
                env[read] = self._row(seq, tap, read, self.outer.value(seq.outer))
        for storage in [result.storage for result in self.results if result.storage is not None]:
            for tap, read in zip(storage.state.taps, storage.state.reads, strict=True):
                env[read] = storage.read(tap, self.t, self.builder.block)
        for non_seq in self.spec.non_seqs:
            env[non_seq.read] = self.outer.value(non_seq.outer)
        return env

    def _row(self, seq: Seq, tap: int, read: Node, rows: Value) -> Value:
        """The row of a sequence at step t, at one tap."""
        where = ir.add(self.t, seq.before + tap)
        if isinstance(rows, InMemory):
            lead = (*rows.lead, ir.add(where, rows.offset))
            row: Value = InMemory(read.type, rows.dims[1:], rows.array, lead)
        else:
            row = Computed(read.type, rows.dims[1:], lambda index: rows.at((where, *index)))
        if read.type.rank == 0 and self.scope.reads(read) > 1:
            element = self.builder.let(read.name, row.at(()), hoist=False)
            return InLocals(read.type, (), {(): element}, self.builder, self.builder.block)
        return row

    # what the step writes -------------------------------------------------------------------------------------------

    def _targets(self, updates: Updates) -> dict[Node, list[Destination]]:
        """For each result in memory, where its row is written as it is computed; for a stage of an overwritten row, that row."""
        targets: dict[Node, list[Destination]] = {}
        for result in self.results:
            for request, rows in result.sinks.items():
                rows.where = self._where(result, request, rows)
            is_made = is_made_in_place(result.write)
            if is_small(result.write, self.outer.target) or not (is_made or result.write in updates.rows or result.write.op is IF_ELSE):
                continue
            places: list[Destination] = []
            if result.storage is not None:
                place = result.storage.target(self.t)
                if place is not None:
                    row = NextRow(self.builder, place, self._changed_shape(result))
                    for part, writes in updates.rows.items():
                        if result.write in writes and part is not result.write:
                            targets.setdefault(part, []).append(row)
                    places.append(row)
            if is_made:
                places += [rows for request, rows in result.sinks.items() if not isinstance(request, Every | Lengths)]
            if places:
                targets.setdefault(result.write, []).extend(places)
        return targets

    def _rows_around(self) -> dict[Node, Destination]:
        """For results that are kept whole and nothing else, the rows of this loop that inner loops may write directly."""
        rows: dict[Node, Destination] = {}
        for result in self.results:
            if result.storage is None and [*result.sinks] == [All()] and not is_small(result.write, self.outer.target):
                rows.setdefault(result.write, result.sinks[All()])
        return rows

    def _changed_shape(self, result: LoopResult) -> Callable[[int], str]:
        """The message, by axis, for a step that changes the shape of a state."""
        position = [other for other in self.results if other.storage is not None].index(result)
        return lambda axis: messages.changed_shape(self.spec, position, axis)

    def _where(self, result: LoopResult, request: Request, rows: ResultRows) -> ir.Index:
        """The number of the row that step t writes, among those that a request keeps."""
        if rows.first is not None:
            return ir.sub(self.t, rows.first)
        if rows.back is not None:
            return ir.sub(rows.back, self.t)
        if isinstance(request, LastRows):
            return ir.mod(self.t, request.k)
        if isinstance(request, Every):
            return ir.floor_div(ir.sub(self.t, request.start), request.k)
        if isinstance(request, Path | LastStates) and result.storage is not None:
            row = ir.add(self.t, result.storage.state.depth)
            return ir.mod(row, request.k) if isinstance(request, LastStates) else row
        return 0 if isinstance(request, Last) else self.t

    def _new_row(self, result: LoopResult, is_overwritten: bool) -> Elements | None:
        """The elements of a small row, each in a form that later writes cannot change; None for a row in memory.

        `is_overwritten`: the step writes into memory that it has read.
        """
        if not is_small(result.write, self.outer.target):
            return None
        value, type_ = self.scope.value(result.write), result.write.type
        elements = {index: cast(value.at(index), type_.dtype) for index in indices_of(type_.shape)}
        if self._is_checked(result):
            return {index: self.builder.let(result.name, element, hoist=False) for index, element in elements.items()}  # read twice
        return {index: self._held(element, f"{result.name}_next") for index, element in elements.items()} if is_overwritten else elements

    def _held(self, expr: ir.Expr, hint: str) -> ir.Expr:
        """The expression, held in a local if it reads memory: the step may overwrite that."""
        return self.builder.let(hint, expr, hoist=False) if any(is_element for _, is_element in ir.names_in(expr)) else expr

    def _condition(self, until: Node) -> ir.Expr:
        """Whether this step is the last one, evaluated before states advance: it may be a state itself."""
        condition = cast(self.scope.value(until).at(()), "bool")
        if isinstance(condition, ir.Name) and condition.name in self.builder.moving:
            return self.builder.variable("stop", condition, "bool")
        return self.builder.let("stop", condition, hoist=False)

    def _tell_lane(self) -> None:
        """Adds the lane to errors about results that are not finite, for loops inside a loop over lanes."""
        for stmt in ir.walk(self.builder.block.stmts):
            if isinstance(stmt, ir.Fail) and stmt.error == "FloatingPointError":
                stmt.message, stmt.numbers = messages.in_lane(stmt.message, len(stmt.numbers)), (*stmt.numbers, self.t)

    def _is_checked(self, result: LoopResult) -> bool:
        return self.scope.context.check_finite and result.write.type.kind in "fc"

    def _check_finite(self, result: LoopResult, elements: Elements | None) -> None:
        """Fails at the first step whose result is not finite."""
        if not self._is_checked(result):
            return
        message = messages.not_finite(self.spec, result.name, result.write)
        template = ir.Template("math.isfinite({0})" if result.write.type.kind == "f" else "np.isfinite({0})", cost=ir.CALL)

        def check(element: ir.Expr) -> None:
            finite = ir.Apply("bool", template, (element,))
            self.builder.emit(ir.If(ir.negated(finite), [ir.Fail("FloatingPointError", message, (self.t,))]))

        if elements is not None:
            for element in elements.values():
                check(element)
        else:
            row = self.scope.value(result.write)
            self.builder.nest(row.dims, lambda index: check(row.at(index)))

    def _store_all(self, results: Sequence[LoopResult], new: Mapping[int, Elements | None]) -> None:
        """Checks that new rows have the shape of the old ones and are finite, then stores what no loop of the body has stored."""
        for result in results:
            if result.storage is not None:
                row = InMemory(result.write.type, result.storage.dims, "")
                NextRow(self.builder, row, self._changed_shape(result)).place(self.scope.value(result.write).dims)
        for result in results:  # before any store: states are still as the step read them
            self._check_finite(result, new[result.position])
        for result in results:
            if not isinstance(result.storage, LocalState):
                self._store_rows(result, new[result.position])

    def _store_rows(self, result: LoopResult, elements: Elements | None) -> None:
        """Stores what no loop of the body has stored: small rows, rows that a card did not make in place, every k-th row."""
        write, builder = result.write, self.builder
        result.dims = dims = self.scope.value(write).dims
        source = self.scope.value(write) if elements is None else InLocals(write.type, dims, elements, builder, builder.block)
        is_done = elements is None and is_made_in_place(write)
        for request, rows in result.sinks.items():
            place = rows.place(dims)
            if isinstance(request, Every) or rows.first is not None:
                with builder.branch() as stores:
                    copied(builder, source, place)
                is_due = (
                    is_kept(self.t, request.start, request.k) if isinstance(request, Every) else ir.compare(">=", self.t, rows.first or 0)
                )
                builder.emit(ir.If(is_due, stores))
            elif not is_done and not isinstance(request, Lengths) and self.scope.placed.get(write) is not rows:
                copied(builder, source, place)
        target = None if result.storage is None else result.storage.target(self.t)
        if target is not None and not is_done and not is_there(source, target):
            copied(builder, source, target)

    def _rotate(self, new: dict[int, Elements | None]) -> None:
        """Advances all states at once: no local is overwritten before all its readers have run."""
        self.builder.advance()
        moves: list[tuple[ir.Name, ir.Expr]] = []
        for result in self.results:
            elements = new[result.position]
            if isinstance(result.storage, LocalState):
                assert elements is not None
                moves += result.storage.moves(elements)
            elif isinstance(result.storage, RingState):
                moves += result.storage.moves()
            if elements is not None:
                moves += [(name, elements[index]) for index, name in result.last.items()]
        assign_all(self.builder, moves)


def assign_all(builder: Builder, moves: Sequence[tuple[ir.Name, ir.Expr]]) -> None:
    """Writes `a, b = …` as single assignments, in an order that overwrites nothing still to be read; a cycle costs one more local."""
    left = [(name, expr) for name, expr in moves if name != expr]
    while left:
        for k, (name, expr) in enumerate(left):
            others = left[:k] + left[k + 1 :]
            if not any(name.name == read for _, other in others for read, _ in ir.names_in(other)):
                builder.assign(name, expr)
                left = others
                break
        else:
            targets = {name.name for name, _ in left}  # only saving an expression that reads one of them frees it
            k = next(k for k, (_, expr) in enumerate(left) if any(read in targets for read, _ in ir.names_in(expr)))
            name, expr = left[k]
            saved = builder.let(f"{name.name}_next", expr, hoist=False)
            if isinstance(expr, ir.Name):  # `let` keeps names as they are: a swap needs a local of its own
                saved = builder.variable(f"{name.name}_next", expr, name.dtype)
            left[k] = (name, saved)
