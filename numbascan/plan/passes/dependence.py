"""Dependences between the statements of a step, with their distances in steps.

Statement b depends on statement a of `distance` steps before if both touch one row, or one scalar, and one of them writes it.
A row is known by its offset from the step: `x[t + 2]` is written two steps before it is read as `x[t]`.

The rule is that of loop distribution: two statements may be taken apart for a strip of n steps unless they depend on each other within n
steps, directly or through others. The analysis is conservative: a write without a known row, and one by a routine that is no product,
counts as a write of the whole array. Where even that cannot be told, the loop is refused (`Unclear`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ...ir import loops as ir
from ...ir.mentions import loads_in, memory_of, mentioned

Position = int  # of a statement in the body


class Unclear(Exception):
    """It is not known what a step reads or writes."""


@dataclass(frozen=True)
class Access:
    """Step t reads or writes row t + `row` of an array; any part of it if `row` is None."""

    array: str
    row: int | None
    is_write: bool


class StepDependences:
    """The dependences between the statements of a loop over time."""

    def __init__(self, loop: ir.For, function: ir.Function) -> None:
        every = list(ir.walk(function.body))
        self.loop = loop
        self.ranks = {argument.name: argument.rank for argument in function.arguments}
        self.ranks |= {stmt.name: len(stmt.shape) for stmt in every if isinstance(stmt, ir.Alloc)}
        self.t = ir.Name("int64", loop.name)
        inside = {id(stmt) for stmt in ir.walk([loop])}
        self.outside = [_alone(stmt) for stmt in every if id(stmt) not in inside]
        self.mentions = Counter(name for stmt in self.outside for name in mentioned([stmt]))
        self.allocs = {stmt.name: stmt for stmt in self.outside if isinstance(stmt, ir.Alloc)}
        moved = {stmt.name for stmt in loop.body if isinstance(stmt, ir.Let) and not stmt.is_new}
        self.rings = {array: names for array, names in function.rings.items() if names[0] in moved}
        self.lags = {name: (array, lag) for array, names in self.rings.items() for lag, name in enumerate(names)}
        self.views = {stmt.name: stmt for stmt in loop.body if isinstance(stmt, ir.Alias)}
        self.turns = {stmt.name for stmt in loop.body if isinstance(stmt, ir.Let) and self._turns_a_ring(stmt)}
        self.steps = [
            stmt for stmt in loop.body if not isinstance(stmt, ir.Alias) and not (isinstance(stmt, ir.Let) and self._turns_a_ring(stmt))
        ]
        self.written = {self.row_of(array)[0] if array in self.views else array for array in _written(self.steps)}
        self.accesses = [
            [access for access in self._of(stmt) if access.array in self.written or isinstance(stmt, ir.Call)] for stmt in self.steps
        ]
        self._check()

    def _turns_a_ring(self, stmt: ir.Let) -> bool:
        return stmt.name in self.lags or (stmt.is_new and isinstance(stmt.value, ir.Name) and stmt.value.name in self.lags)

    # what a step touches --------------------------------------------------------------------------------------------

    def row_of(self, name: str) -> tuple[str, ir.Index]:
        """The array and the row number of a view that is one row."""
        view = self.views[name]
        if view.text != ir.ROW or view.array in self.views:
            raise Unclear
        return view.array, view.args[0]

    def _of(self, stmt: ir.Stmt) -> Iterator[Access]:
        if isinstance(stmt, ir.Call):
            for arg in stmt.args:
                yield self._access(arg, (), stmt.turned is None or arg in stmt.results)
        else:
            for inner in ir.walk([stmt]):
                if isinstance(inner, ir.Store):
                    yield self._access(inner.array, inner.index, True)
                for load in (load for expr in ir.expressions(inner) for load in loads_in(expr)):
                    yield self._access(load.array, load.index, False)

    def _access(self, array: str, index: tuple[ir.Index, ...], is_write: bool) -> Access:
        if array in self.views:
            array, row = self.row_of(array)
            index = (row,)
        if array in self.rings:
            ring, lag = self.lags.get(index[0].name, ("", 0)) if index and isinstance(index[0], ir.Name) else ("", 0)
            if ring != array:
                raise Unclear
            return Access(array, -lag, is_write)
        slope, place = (ir.slope_and_rest(index[0], self.t) if index else (0, 0)) or (2, 0)
        if slope and array in self.written and (slope != 1 or not isinstance(place, int)):
            raise Unclear
        return Access(array, place if slope == 1 and isinstance(place, int) else None, is_write)

    def _check(self) -> None:
        """Raises `Unclear` unless every written array is accessed always by rows or never, and has one name.

        It must be an argument or an allocation. Rings must have one allocation, and no array may be read whole.
        """
        kinds = {array: {a.row is None for found in self.accesses for a in found if a.array == array} for array in self.written}
        taken = Counter(stmt.name for stmt in self.outside if isinstance(stmt, ir.Alloc))
        in_calls = {name for stmt in self.outside if isinstance(stmt, ir.Call) for name in stmt.args}
        is_read_whole = any(not load.index for stmt in ir.walk(self.steps) for expr in ir.expressions(stmt) for load in loads_in(expr))
        if (
            any(len(found) > 1 for found in kinds.values())
            or not self.written <= self.ranks.keys()
            or self._meets_a_view()
            or any(taken[array] != 1 or self.allocs[array].shape[0] != len(names) for array, names in self.rings.items())
            or in_calls & self.rings.keys()
            or is_read_whole
        ):
            raise Unclear

    def _meets_a_view(self) -> bool:
        """True if the loop mentions an alias, made outside, of memory that the steps write."""
        memory = memory_of(self.outside)
        written = {memory[array] for array in self.written if array in memory}
        return any(memory.get(name) in written for name in mentioned([self.loop]) - self.written)

    # dependences ------------------------------------------------------------------------------------------------------

    def best_length(self, longest: int) -> int:
        """The strip length that saves most; 0 if none saves anything."""
        lengths = {distance for distance in self._distances() if 2 <= distance <= longest}
        self.of_a_step = {array for array in self.written if self._is_of_a_step(array)} if lengths else set()
        self.pairs = list(self._pairs()) if lengths else []
        savings = {length: len(self.products(length)) * (1 - 1 / length) for length in sorted(lengths)}
        return max(savings, key=lambda length: (savings[length], length)) if any(savings.values()) else 0

    def _distances(self) -> set[int]:
        """The distances, in steps, between two uses of one row."""
        rows: dict[str, set[int]] = {}
        for access in (access for found in self.accesses for access in found):
            if access.row is not None and access.array in self.written:
                rows.setdefault(access.array, set()).add(access.row)
        return {abs(a - b) for places in rows.values() for a in places for b in places}

    def _is_of_a_step(self, array: str) -> bool:
        """True for a work array that one statement of a step writes and only later ones read."""
        writers = [k for k, found in enumerate(self.accesses) if any(a.array == array and a.is_write for a in found)]
        readers = [k for k, found in enumerate(self.accesses) if any(a.array == array and not a.is_write for a in found)]
        is_memory_alone = array in self.allocs and self.mentions[array] == 1
        return is_memory_alone and len(writers) == 1 and min(readers, default=len(self.steps)) > writers[0]

    def _pairs(self) -> Iterator[tuple[Position, Position, int]]:
        """(a, b, distance): statement b of the step `distance` later depends on statement a."""
        made = [{inner.name for inner in ir.walk([stmt]) if isinstance(inner, ir.Let)} for stmt in self.steps]
        read = [names | self._locals(stmt) for names, stmt in zip(made, self.steps, strict=True)]
        for a, first in enumerate(self.accesses):
            for b, second in enumerate(self.accesses[a:], a):
                for one in first:
                    for other in second:
                        if one.array == other.array and one.array in self.written and (one.is_write or other.is_write):
                            yield from self._order(a, b, one, other)
                if a != b and (made[a] & read[b] or made[b] & read[a]):
                    yield from ((a, b, 0), (b, a, 1))

    def _locals(self, stmt: ir.Stmt) -> set[str]:
        """The locals that a statement and its views read."""
        views = [self.views[name] for name in mentioned([stmt]) & self.views.keys()]
        exprs = [expr for inner in (*ir.walk([stmt]), *views) for expr in ir.expressions(inner)]
        return {name for expr in exprs for name, is_element in ir.names_in(expr) if not is_element}

    def _order(self, a: Position, b: Position, one: Access, other: Access) -> Iterator[tuple[Position, Position, int]]:
        if one.row is None or other.row is None:
            if a != b:
                yield a, b, 0
                if one.array not in self.of_a_step:
                    yield b, a, 1
        elif one.row < other.row:  # the greater offset touches a row first: `x[t + 2]` is touched two steps before `x[t]`
            yield b, a, other.row - one.row
        elif a != b or one.row > other.row:
            yield a, b, one.row - other.row

    def after(self, length: int) -> list[set[Position]]:
        """For each statement, those that depend on it within a strip, directly or through others."""
        after: list[set[Position]] = [set() for _ in self.steps]
        for a, b, distance in self.pairs:
            if distance < length:
                after[a].add(b)
        for k in range(len(after)):
            for reached in after:
                if k in reached:
                    reached |= after[k]
        return after

    def products(self, length: int) -> list[Position]:
        """The matrix-vector products that do not depend on themselves within a strip."""
        after = self.after(length)
        return [k for k in range(len(self.steps)) if k not in after[k] and self._is_product(k)]

    def _is_product(self, k: Position) -> bool:
        stmt = self.steps[k]
        if not isinstance(stmt, ir.Call) or stmt.turned is None or stmt.turned[1]:
            return False
        matrix, *vectors = self.accesses[k]
        is_fixed = matrix.array not in self.written and stmt.args[0] not in self.views
        return is_fixed and all(self._is_vector(one) for one in vectors)

    def _is_vector(self, one: Access) -> bool:
        return one.array in self.of_a_step and self.ranks[one.array] == 1 if one.row is None else self.ranks.get(one.array) == 2


def _alone(stmt: ir.Stmt) -> ir.Stmt:
    """The statement without the statements inside it."""
    if isinstance(stmt, ir.For):
        return replace(stmt, body=[])
    return ir.If(stmt.condition, []) if isinstance(stmt, ir.If) else stmt


def _written(stmts: Sequence[ir.Stmt]) -> Iterator[str]:
    """The arrays that statements may write; a view counts under its own name."""
    for stmt in ir.walk(stmts):
        if isinstance(stmt, ir.Store):
            yield stmt.array
        elif isinstance(stmt, ir.Call):
            yield from stmt.args if stmt.turned is None else stmt.results
