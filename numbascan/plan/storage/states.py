"""Where the rows of a loop live: states between steps, and results that outlive it.

locals   scalars and small vectors: one local per element and lag, rotated at the end of a step
path     the whole result is read: rows -depth … n-1 in one array, read and written at t
ring     depth + 1 rows, the oldest of which is written next; row numbers rotate, nothing is copied
window   the same for many rows, or for as many last rows as are read: row r of the path lies at r modulo their number
row      one row, updated in place (see inplace.py)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from ...ir import loops as ir
from ...ir import messages
from ...ir.names import verbatim
from ...ir.ports import State
from ...types import TensorType
from ..builder import Block, Builder, Indices
from ..casts import cast
from .tensor_values import InLocals, InMemory, Value, indices_of

FEW_ROWS = 16  # rows up to which their memory has a fixed shape, even for fewer steps, and each has a statement or a local


class Destination(Protocol):
    """A place in memory for a value whose dimensions are not known yet."""

    def place(self, dims: Indices) -> InMemory: ...


@dataclass
class ResultRows:
    """Memory for `count` rows of one result; a step writes row `where`. `lead`: their index in an array of more axes.

    `first`: the first step whose row is written; None: all are. `back`: the row of step 0 if later steps write earlier rows; None: rows
    follow the steps.
    """

    builder: Builder
    hint: str
    type: TensorType  # of one row
    count: ir.Index
    where: ir.Index
    owner: tuple[str, str] = ("scan", "out")  # loop and result, as named in errors
    told: Sequence[ir.Index | None] = ()  # dimensions by the graph around a loop that may have no step
    array: str | None = None  # set once allocated, or given by the caller
    dims: Indices = ()
    lead: Indices = ()
    first: ir.Index | None = None
    back: ir.Index | None = None
    late: bool = False  # allocated in the first step
    misfit: str = ""  # for rows of another value's memory: the message if they do not fit
    home: Block = field(init=False)  # around the loop

    def __post_init__(self) -> None:
        self.home = self.builder.block

    def place(self, dims: Indices) -> InMemory:
        """The row of this step; allocates the memory if that has not been done."""
        around = self._around(dims)
        dims = tuple(self.builder.representative(dim) for dim in dims)
        if self.array is None and self.builder.home_of(*around).depth <= self.home.depth:
            self.array, self.dims = self.builder.alloc(self.hint, (self.count, *around), self.type.dtype), around
        elif self.array is None:
            self.array = self._taken_late(dims)
        if self.late:
            self._check_late(dims)
        else:
            for axis, (there, dim) in enumerate(zip(self.dims, dims, strict=True), 1):
                message = f"out=: dimension {axis} of {verbatim(self.hint)} is {{0}}, the result has {{1}}"
                self.builder.same(there, dim, "ValueError", self.misfit or message)
        return InMemory(self.type, dims, self.array, (*self.lead, self.where))

    def _around(self, dims: Indices) -> Indices:
        """The dimensions as they are where the loop has no step: those told around it, not those that a step would find equal to them."""
        seen = tuple(self.builder.seen_from(self.home, dim) for dim in dims)
        told = tuple(None if dim is None else self.builder.seen_from(self.home, dim) for dim in self.told or [None] * len(dims))
        facts = self.home.facts
        return tuple(dim if one is None or facts.form(dim) == facts.form(one) else one for dim, one in zip(seen, told, strict=True))

    def _taken_late(self, dims: Indices) -> str:
        """Allocates in the first step, which alone knows the length of a row; later rows must be as long. Without a step no row is read."""
        builder = self.builder
        before = tuple(
            next((ir.greatest(side, 0) for side in self._sides(dim) if builder.home_of(side).depth <= self.home.depth), 0) for dim in dims
        )
        name = builder.fresh(self.hint, "row", self.home)
        is_taken = builder.fresh(f"{name}_is_taken", "is_taken", self.home)
        self.home.stmts += [ir.Alloc(name, (0, *before), self.type.dtype), ir.Let(is_taken, ir.Literal("bool", False))]
        self.dims = tuple(ir.Length("int64", name, axis) for axis in range(1, 1 + len(dims)))
        builder.shapes[name], builder.written[name] = (self.count, *self.dims), builder.block
        alloc: list[ir.Stmt] = [
            ir.Alloc(name, (self.count, *dims), self.type.dtype),
            ir.Let(is_taken, ir.Literal("bool", True), is_new=False),
        ]
        builder.emit(ir.If(ir.negated(ir.Name("bool", is_taken)), alloc))
        self.late = True
        return name

    def _sides(self, dim: ir.Index) -> Iterator[ir.Index]:
        """Candidates for a row's dimension if no step runs: itself, then its dimensions in the branches of a choice, the last one first."""
        yield dim
        for side in reversed(self.builder.sides.get(dim, ())):
            yield from self._sides(self.builder.representative(side))

    def _check_late(self, dims: Indices) -> None:
        """Checks the dimensions where the row is written: those of the array are not known before."""
        for axis, (there, dim) in enumerate(zip(self.dims, dims, strict=True)):
            if there != dim:
                message = messages.ragged_rows(*self.owner, axis)
                self.builder.emit(ir.If(ir.compare("!=", dim, there), [ir.Fail("ValueError", message, (there, dim))]))

    def all_rows(self, rows: ir.Index, shape: TensorType) -> InMemory:
        """The rows written, as one value."""
        assert self.array is not None
        return InMemory(shape, (rows, *self.dims), self.array, self.lead)


@dataclass
class NextRow:
    """The row into which a state's next value is written. The value must have the shape of the state."""

    builder: Builder
    row: InMemory
    message: Callable[[int], str]  # for an axis; {0}: its length on entry, {1}: in the step's result

    def place(self, dims: Indices) -> InMemory:
        """The row, with a check that it has the dimensions of the value."""
        for axis, (there, dim) in enumerate(zip(self.row.dims, dims, strict=True)):
            self.builder.same(there, dim, "ValueError", self.message(axis))
        return self.row


class StateStorage:
    """A state between steps. Made before the loop; `enter` inside it; `leave` at the end of a step."""

    def __init__(self, builder: Builder, state: State, initial: Value, name: str) -> None:
        self.builder, self.state, self.initial, self.name = builder, state, initial, name
        self.type = state.write.type
        row = initial.dims[1:] if state.has_axis else initial.dims
        self.dims: Indices = tuple(known if known is not None else dim for known, dim in zip(self.type.shape, row, strict=True))

    def initial_row(self, k: ir.Index, index: Indices) -> ir.Expr:
        """An element of the k-th initial row, oldest first, in the state's dtype."""
        place = (k, *index) if self.state.has_axis else index
        return cast(self.initial.at(place), self.type.dtype)

    def changing(self) -> list[str]:
        """Names whose content changes from step to step."""
        raise NotImplementedError

    def read(self, tap: ir.Index, t: ir.Index, body: Block) -> Value:
        """The value at a tap, inside the loop; in a path or a window also at a run-time tap."""
        raise NotImplementedError

    def target(self, t: ir.Index) -> InMemory | None:
        """Where the new row is written; None for locals."""
        raise NotImplementedError

    def last(self, steps: ir.Index) -> Value:
        """The newest row, after the loop."""
        raise NotImplementedError


class LocalState(StateStorage):
    """One local per element and lag."""

    def __init__(self, builder: Builder, state: State, initial: Value, name: str) -> None:
        super().__init__(builder, state, initial, name)
        self.lags: list[dict[tuple[int, ...], ir.Name]] = []
        self.starts: dict[tuple[int, ...], ir.Expr] = {}  # of the newest row
        depth = state.depth
        for lag in range(1, depth + 1):
            label = name if depth == 1 else f"{name}_tm{lag}"
            elements = {}
            for index in indices_of(self.type.shape):
                start = self.initial_row(depth - lag, index)
                elements[index] = builder.variable("_".join((label, *map(str, index))), start, self.type.dtype)
                self.starts.setdefault(index, start)
            self.lags.append(elements)

    def changing(self) -> list[str]:
        return [name.name for elements in self.lags for name in elements.values()]

    def read(self, tap: ir.Index, t: ir.Index, body: Block) -> Value:
        assert isinstance(tap, int)
        elements: dict[tuple[int, ...], ir.Expr] = dict(self.lags[-tap - 1])
        return InLocals(self.type, self.dims, elements, self.builder, body, self.name)

    def target(self, t: ir.Index) -> None:
        return None

    def moves(self, new: dict[tuple[int, ...], ir.Expr]) -> list[tuple[ir.Name, ir.Expr]]:
        """What each local becomes at the end of a step."""
        moves: list[tuple[ir.Name, ir.Expr]] = []
        for older, newer in zip(self.lags[:0:-1], self.lags[-2::-1], strict=True):
            moves += [(older[index], newer[index]) for index in older]
        return moves + [(name, new[index]) for index, name in self.lags[0].items()]

    def last(self, steps: ir.Index) -> Value:
        elements: dict[tuple[int, ...], ir.Expr] = dict(self.lags[0])
        return InLocals(self.type, self.dims, elements, self.builder, self.builder.block, self.name)


class PathState(StateStorage):
    """All rows in one array, the initial ones first."""

    def __init__(self, builder: Builder, state: State, initial: Value, name: str, n_steps: ir.Index) -> None:
        super().__init__(builder, state, initial, name)
        self.array = builder.alloc(f"{name}_path", (ir.add(n_steps, state.depth), *self.dims), self.type.dtype)
        write_initial(self, self.array)

    def changing(self) -> list[str]:
        return [self.array]

    def read(self, tap: ir.Index, t: ir.Index, body: Block) -> Value:
        return InMemory(self.type, self.dims, self.array, (ir.add(ir.add(t, self.state.depth), tap),))

    def target(self, t: ir.Index) -> InMemory:
        return InMemory(self.type, self.dims, self.array, (ir.add(t, self.state.depth),))

    def last(self, steps: ir.Index) -> Value:
        return InMemory(self.type, self.dims, self.array, (ir.add(steps, self.state.depth - 1),))


class RingState(StateStorage):
    """depth + 1 rows; locals hold the row number for each age."""

    def __init__(self, builder: Builder, state: State, initial: Value, name: str) -> None:
        super().__init__(builder, state, initial, name)
        depth = state.depth
        self.array = builder.alloc(f"{name}_rows", (depth + 1, *self.dims), self.type.dtype)
        write_initial(self, self.array)
        labels = ["now", "before", *(f"tm{lag}" for lag in range(2, depth + 1))]
        self.rows = [builder.variable(f"{name}_{label}", depth - lag, "int64") for lag, label in enumerate(labels)]
        builder.rings[self.array] = tuple(row.name for row in self.rows)

    def changing(self) -> list[str]:
        return [self.array, *(row.name for row in self.rows)]

    def read(self, tap: ir.Index, t: ir.Index, body: Block) -> Value:
        assert isinstance(tap, int)
        return InMemory(self.type, self.dims, self.array, (self.rows[-tap],))

    def target(self, t: ir.Index) -> InMemory:
        return InMemory(self.type, self.dims, self.array, (self.rows[0],))

    def moves(self) -> list[tuple[ir.Name, ir.Expr]]:
        moves: list[tuple[ir.Name, ir.Expr]] = [
            (newer, older) for newer, older in zip(self.rows, [self.rows[-1], *self.rows[:-1]], strict=True)
        ]
        return moves[::-1]

    def last(self, steps: ir.Index) -> Value:
        return InMemory(self.type, self.dims, self.array, (self.rows[1],))


class WindowState(StateStorage):
    """The last `n_rows` rows of the path, more than the taps reach, or all rows if there are fewer (`room`: steps)."""

    def __init__(self, builder: Builder, state: State, initial: Value, name: str, n_rows: int, room: ir.Index) -> None:
        super().__init__(builder, state, initial, name)
        self.n_rows = n_rows
        self.array = builder.alloc(f"{name}_rows", (window_rows(n_rows, state, room), *self.dims), self.type.dtype)
        write_initial(self, self.array)

    def row(self, r: ir.Index) -> InMemory:
        """Row r of the path, initial ones first."""
        return InMemory(self.type, self.dims, self.array, (ir.mod(r, self.n_rows),))

    def changing(self) -> list[str]:
        return [self.array]

    def read(self, tap: ir.Index, t: ir.Index, body: Block) -> Value:
        return self.row(ir.add(ir.add(t, self.state.depth), tap))

    def target(self, t: ir.Index) -> InMemory:
        return self.row(ir.add(t, self.state.depth))

    def last(self, steps: ir.Index) -> Value:
        return self.row(ir.add(steps, self.state.depth - 1))


def window_rows(n_rows: int, state: State, room: ir.Index) -> ir.Index:
    """The number of rows to allocate if the last `n_rows` of a state are kept, initial ones included; `room`: steps."""
    return n_rows if n_rows <= FEW_ROWS else ir.add(ir.least(n_rows - state.depth, room), state.depth)


class RowState(StateStorage):
    """One row, updated in place; `array`: the memory of the initial value, if it may be taken over."""

    def __init__(self, builder: Builder, state: State, initial: Value, name: str, array: str | None = None) -> None:
        super().__init__(builder, state, initial, name)
        self.array = array or builder.alloc(name, self.dims, self.type.dtype)
        if array is not None:
            return
        builder.nest(self.dims, lambda index: builder.emit(ir.Store(self.array, index, self.initial_row(0, index))))

    def changing(self) -> list[str]:
        return [self.array]

    def read(self, tap: ir.Index, t: ir.Index, body: Block) -> Value:
        return InMemory(self.type, self.dims, self.array)

    def target(self, t: ir.Index) -> InMemory:
        return InMemory(self.type, self.dims, self.array)

    def last(self, steps: ir.Index) -> Value:
        return InMemory(self.type, self.dims, self.array)


def write_initial(storage: StateStorage, array: str) -> None:
    """Copies the initial rows to the beginning of `array`."""
    builder, depth = storage.builder, storage.state.depth

    def copy(k: ir.Index, index: Indices) -> None:
        builder.emit(ir.Store(array, (k, *index), storage.initial_row(k, index)))

    if depth > FEW_ROWS:
        builder.nest((depth, *storage.dims), lambda index: copy(index[0], index[1:]))
        return
    for k in range(depth):
        builder.nest(storage.dims, partial(copy, k))


def every_count(steps: ir.Index, start: int, k: int) -> ir.Index:
    """The number of steps start, start + k, … below `steps`."""
    return ir.floor_div(ir.add(ir.greatest(ir.sub(steps, start), 0), k - 1), k) if not isinstance(steps, int) or steps > start else 0


def is_kept(t: ir.Index, start: int, k: int) -> ir.Expr:
    """Whether step t is one of start, start + k, …, as an expression."""
    return ir.both(ir.compare(">=", t, start), ir.compare("==", ir.mod(ir.sub(t, start), k), 0))
