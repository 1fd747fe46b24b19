"""Strip-mining of time: products of a matrix with rows known some steps ahead become one matrix product for these steps.

    # before: for t in range(n):                 # after: for t0 in range(0, n, 3):
    #             np.dot(W, x[t + 2], a)         #            t1 = min(t0 + 3, n)
    #             np.dot(V, y[t], b)             #            np.dot(x[t0:t1], U.T, y[t0 + 1:t1 + 1])
    #             x[t + 3] = tanh(a + b)         #            np.dot(y[t0:t1], V.T, b[:t1 - t0])
    #             np.dot(U, x[t], y[t + 1])      #            for t in range(t0, t1):
    #                                            #                np.dot(W, x[t + 2], a)
    #                                            #                x[t + 3] = tanh(a + b[t - t0])

The matrix is then read once per strip, not once per step: three products of 64 x 64 by a vector take 1.7 us, one of 64 x 64 by 64 x 3 takes
0.7 us. Statements that depend on each other within a strip stay together, in order. Rings of rows become windows, whose newest rows move
to the front when a strip ends.
Not handled:
- steps with conditions or memory inside
- rows of several axes
- loops that each lane runs for itself
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from ...ir import loops as ir
from ...ir.mentions import mentioned
from ...ir.names import Names
from ..target import Target
from .dependence import Access, Position, StepDependences, Unclear


def strips(function: ir.Function, target: Target) -> ir.Function:
    """The function with such loops in strips."""
    shapes: dict[str, tuple[ir.Index, ...]] = {}
    names = function.names.copy()

    def stripped(stmt: ir.Stmt) -> list[ir.Stmt] | None:
        return _strips(stmt, function, target, names, shapes) if isinstance(stmt, ir.For) and _is_plain(stmt) else None

    def shaped(stmt: ir.Stmt) -> list[ir.Stmt] | None:
        return [replace(stmt, shape=shapes[stmt.name])] if isinstance(stmt, ir.Alloc) and stmt.name in shapes else None

    return replace(function, body=ir.rebuilt(ir.rebuilt(function.body, stripped), shaped), names=names)


def _is_plain(loop: ir.For) -> bool:
    """True for a loop over time of products, scalars, stores, views, routines, and loops of scalars and stores."""
    inner = [stmt for outer in loop.body if isinstance(outer, ir.For) for stmt in ir.walk([outer])]
    return (
        loop.kind == "time"
        and loop.step == 1
        and any(isinstance(stmt, ir.Call) and stmt.turned is not None for stmt in loop.body)
        and all(isinstance(stmt, ir.Alias | ir.Let | ir.Store | ir.Call | ir.For) for stmt in loop.body)
        and all(isinstance(stmt, ir.Let | ir.Store | ir.For) for stmt in inner)
    )


def _strips(
    loop: ir.For, function: ir.Function, target: Target, names: Names, shapes: dict[str, tuple[ir.Index, ...]]
) -> list[ir.Stmt] | None:
    try:
        body = StepDependences(loop, function)
        length = body.best_length(target.max_strip)
    except Unclear:
        return None
    return _Strips(body, length, names, shapes).make() if length else None


class _Strips:
    """The loop over strips of a body."""

    def __init__(self, body: StepDependences, length: int, names: Names, shapes: dict[str, tuple[ir.Index, ...]]) -> None:
        self.body, self.length, self.names, self.shapes = body, length, names, shapes
        self.after = body.after(length)
        self.products = set(body.products(length))
        self.first, self.stop = (ir.Name("int64", self.names.fresh(f"{body.t.name}{k}")) for k in (0, 1))
        self.passed = ir.sub(body.t, self.first)
        self.groups = list(self._groups())
        of_groups = [{a.array for k in group for a in body.accesses[k] if a.row is None} & body.written for group in self.groups]
        met = Counter(array for arrays in of_groups for array in arrays)
        self.widened = {array for array, groups in met.items() if groups > 1}  # several groups use them: a row for each step of a strip

    def _groups(self) -> Iterator[list[Position]]:
        """Groups in an order that respects all dependences: statements that run step by step together, or one product for all steps."""
        left = set(range(len(self.body.steps)))
        while left:
            waiting = {b for a in self.products & left for b in self.after[a]}
            group = sorted(left - self.products - waiting) or [min(self.products & left - waiting)]
            yield group
            left -= set(group)

    def make(self) -> list[ir.Stmt] | None:
        """The loop over strips; registers the new shapes of the memory that grows. None if a ring's index remains in it."""
        loop, body = self.body.loop, self.body
        stmts: list[ir.Stmt] = [ir.Let(self.stop.name, ir.least(ir.add(self.first, self.length), loop.stop))]
        for group in self.groups:
            if group[0] in self.products:
                stmts += self._product(group[0])
            else:
                stmts.append(ir.For(loop.name, self.first, self.stop, [stmt for k in group for stmt in self._step(body.steps[k])]))
        stmts += [self._moved(array, len(names) - 1) for array, names in body.rings.items()]
        if (body.lags.keys() | body.turns) & mentioned(stmts):
            return None
        for array in self.widened:
            self.shapes[array] = (self.length, *body.allocs[array].shape)
        for array, names in body.rings.items():
            self.shapes[array] = (len(names) - 1 + self.length, *body.allocs[array].shape[1:])
        note = ir.Note(f"{self.length} steps at a time: products with rows that are known by then")
        return [note, ir.For(self.first.name, loop.start, loop.stop, stmts, self.length, "time")]

    def _product(self, k: Position) -> list[ir.Stmt]:
        """One product for all steps of a strip."""
        call = self.body.steps[k]
        assert isinstance(call, ir.Call)
        (matrix, *_), (_, *vectors) = call.args, self.body.accesses[k]
        rows, result = (self._strip(one) for one in vectors)
        assert call.turned is not None
        turned = False, not call.turned[0]
        return [rows, result, ir.Call("np.dot", (rows.name, matrix, result.name), results=(result.name,), turned=turned)]

    def _strip(self, one: Access) -> ir.Alias:
        """A view of the rows of a strip."""
        name = self.names.fresh(f"{one.array}_strip")
        first, stop = (
            (self.first, self.stop) if one.row is not None and one.array not in self.body.rings else (0, ir.sub(self.stop, self.first))
        )
        shift = (one.row or 0) + self._depth(one.array)
        if first == shift == 0:
            return ir.Alias(name, one.array, ir.Template("[:{0}]"), (stop,))
        return ir.Alias(name, one.array, ir.ROWS, (ir.add(first, shift), ir.add(stop, shift)))

    def _depth(self, array: str) -> int:
        """The number of rows in a window that are older than the strip; 0 for arrays that are no ring."""
        return len(self.body.rings[array]) - 1 if array in self.body.rings else 0

    def _step(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        """A statement of a step, with the views that it needs in front."""
        for name in sorted(mentioned([stmt]) & self.body.views.keys()):
            array, row = self.body.row_of(name)
            yield replace(self.body.views[name], args=(self._row(array, row),))
        if isinstance(stmt, ir.Call):
            rows = {}
            for array in sorted({*stmt.args} & self.widened):
                rows[array] = self.names.fresh(f"{array}_row")
                yield ir.Alias(rows[array], array, ir.ROW, (self.passed,))
            args, results = (tuple(rows.get(array, array) for array in arrays) for arrays in (stmt.args, stmt.results))
            yield replace(stmt, args=args, results=results)
        else:
            yield self._placed(stmt)

    def _row(self, array: str, row: ir.Index) -> ir.Index:
        """The row number in the window that replaces a ring; other row numbers stay."""
        if not (isinstance(row, ir.Name) and row.name in self.body.lags):
            return row
        _, lag = self.body.lags[row.name]
        return ir.add(self.passed, self._depth(array) - lag)

    def _placed(self, stmt: ir.Stmt) -> ir.Stmt:
        if isinstance(stmt, ir.For):
            return replace(stmt, start=self._in(stmt.start), stop=self._in(stmt.stop), body=[self._placed(inner) for inner in stmt.body])
        if isinstance(stmt, ir.Store):
            return replace(stmt, index=self._place(stmt.array, stmt.index), value=self._in(stmt.value))
        return ir.with_values(stmt, self._in)

    def _place(self, array: str, index: tuple[ir.Index, ...]) -> tuple[ir.Index, ...]:
        lead = (self.passed,) if array in self.widened else ()
        return (*lead, self._in(self._row(array, index[0])), *map(self._in, index[1:])) if index else lead

    def _in(self, expr: ir.Index) -> ir.Index:
        return ir.mapped(expr, lambda part: replace(part, index=self._place(part.array, part.index)) if isinstance(part, ir.Load) else None)

    def _moved(self, array: str, depth: int) -> ir.Stmt:
        """Moves the newest rows of a window to its front, the oldest of them first: the ranges may overlap."""
        alloc = self.body.allocs[array]
        names = [self.names.fresh(letter, is_counter=True) for letter in "kijlmnpq"[: len(alloc.shape)]]
        for name in names:
            self.names.free(name)
        row, *rest = (0 if depth == 1 else ir.Name("int64", names[0]), *(ir.Name("int64", name) for name in names[1:]))
        stmt: ir.Stmt = ir.Store(array, (row, *rest), ir.Load(alloc.dtype, array, (ir.add(row, ir.sub(self.stop, self.first)), *rest)))
        for name, dim in zip(names[:0:-1], alloc.shape[:0:-1], strict=True):
            stmt = ir.For(name, 0, dim, [stmt])
        return stmt if depth == 1 else ir.For(names[0], 0, depth, [stmt])
