"""Loops with independent passes run in the threads of a GPU; of nested ones, the outermost.

    # before: for i in range(n):            # after: threads over i, j:
    #             for j in range(m):        #            y[i, j] = 2.0 * x[i, j]
    #                 y[i, j] = 2.0 * x[i, j]

Passes are independent if no scalar goes from one to the next, and if all accesses of a written array are, along some axis, at one place
that moves with the loop's counter and with nothing else of the pass. Memory that only one loop over lanes uses becomes memory of each
thread: on its stack if it is small, else with the pass as its last axis, so that neighbouring threads touch neighbouring numbers; as the
first axis, if a function of the user's takes the array.

Not handled:
- loops that may end early
- loops that allocate memory of a size known only at run time, or too large for a thread's stack
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import replace
from functools import reduce

import numpy as np

from ...ir import loops as ir
from ...ir.accesses import Memory, Passes
from ...ir.mentions import mentioned, mentions_in, used_by_alone
from ..passes.side_by_side import Surroundings
from ..target import Target
from .lane_sums import Added, added_by_lanes, added_in_groups, added_up, at_once_in_groups, leaving, memory_of_parts

AT_ONCE = ir.Template("at_once({0}, {1})")
"""The number of passes whose memory fits at once: of {0} passes, with {1} bytes each."""


def threads(function: ir.Function, target: Target) -> ir.Function:
    """The function with such loops marked as of the kind `threads`."""
    return _Sharing(function, target).function()


class _Sharing:
    """The loops of one function."""

    def __init__(self, function: ir.Function, target: Target) -> None:
        self.given, self.target, self.around = function, target, Surroundings.of(function)
        self.every = list(ir.walk(function.body))
        self.memory = Memory(function.body, function.rings)
        self.mentions = mentions_in(self.every)
        self.names = function.names.copy()
        self.moved: set[int] = set()  # ids of memory that only one loop uses, and of its views: they move to that loop

    def function(self) -> ir.Function:
        """The function with its loops in threads."""
        body = self._block(self.given.body, is_outermost=True)

        def without_moved(stmt: ir.Stmt) -> list[ir.Stmt] | None:
            if isinstance(stmt, ir.For) and stmt.kind in ("threads", "chunks"):
                return [stmt]
            return [] if id(stmt) in self.moved else None

        return replace(self.given, body=ir.rebuilt(body, without_moved), names=self.names)

    def _block(self, stmts: Sequence[ir.Stmt], is_outermost: bool) -> list[ir.Stmt]:
        result: list[ir.Stmt] = []
        for stmt in stmts:
            if isinstance(stmt, ir.For):
                result += self._loop(stmt, is_outermost)
            elif isinstance(stmt, ir.If):
                result.append(replace(stmt, then=self._block(stmt.then, is_outermost), otherwise=self._block(stmt.otherwise, is_outermost)))
            else:
                result.append(stmt)
        return result

    def _loop(self, loop: ir.For, is_outermost: bool) -> list[ir.Stmt]:
        added = added_by_lanes(loop, self.around, self.names, self.target) if is_outermost else []
        if added and (with_parts := self._leaving(loop, added)):
            return with_parts
        own = self._own(loop) if loop.kind == "lanes" else []
        if not own and (sums := self._sums(loop)):
            return [self._summed(loop, sums)]
        nest = [loop] if self._is_shared(loop, own) else []
        while nest and not own and len(nest[-1].body) == 1 and isinstance(inner := nest[-1].body[0], ir.For) and self._is_shared(inner, []):
            if any(_depends(inner, one.name) for one in nest):  # no rectangular nest: its passes could not be counted as one loop
                break
            nest.append(inner)
        if not nest or self._passes(nest) < self.target.min_lanes or not (is_outermost or self._is_small(own)):
            return [replace(loop, body=self._block(loop.body, is_outermost=False))]
        if own:
            return self._with_memory(loop, own)
        body = nest[-1].body
        for one in reversed(nest):
            body = [replace(one, body=body, kind="threads")]
        return body

    def _leaving(self, loop: ir.For, added: Sequence[Added]) -> list[ir.Stmt]:
        """A loop whose passes add to shared arrays, in threads; empty if something else prevents that."""
        lanes = leaving(loop, added)
        own = [*self._own(loop), *(one.left for one in added)]
        if self._passes([loop]) < self.target.min_lanes or not self._is_shared(lanes, own):
            return []
        return self._with_memory(lanes, own, added)

    def _sums(self, loop: ir.For) -> set[str]:
        """The sums and extremes of a loop that may be reassociated; empty unless they are all that goes from pass to pass."""
        inside = list(ir.walk(loop.body))
        new = {stmt.name for stmt in inside if isinstance(stmt, ir.Let) and stmt.is_new}
        moved = [stmt for stmt in inside if isinstance(stmt, ir.Let) and stmt.name not in new]
        names = {stmt.name for stmt in moved}
        within = mentions_in(inside)
        is_of_card = all(one.kind == "sequential" for one in (loop, *inside) if isinstance(one, ir.For))
        is_sum = all(_is_in_any_order(stmt, is_of_card) for stmt in moved) and all(within[name] == 1 for name in names)
        is_sum = is_sum and len(moved) == len(names) and not any(isinstance(stmt, ir.Store | ir.Alloc | ir.If | ir.Fail) for stmt in inside)
        return names if is_sum and names and self._is_shared(loop, (), names) and self._passes([loop]) >= self.target.min_lanes else set()

    def _summed(self, loop: ir.For, sums: set[str]) -> ir.For:
        """The loop marked as one of sums, with the loops inside that hold the same sums."""
        (*_, inner) = loop.body
        is_nest = len(loop.body) == 1 and isinstance(inner, ir.For) and self._sums(inner) == sums and not _depends(inner, loop.name)
        return replace(loop, body=[self._summed(inner, sums)] if is_nest and isinstance(inner, ir.For) else loop.body, kind="sums")

    @staticmethod
    def _passes(nest: Sequence[ir.For]) -> float:
        """The number of passes of a nest; infinity if known only at run time."""
        known = [one.stop - one.start if isinstance(one.start, int) and isinstance(one.stop, int) else math.inf for one in nest]
        return math.prod(known)

    # independence -----------------------------------------------------------------------------------------------------

    def _is_shared(self, loop: ir.For, own: Sequence[ir.Alloc | ir.Alias], sums: Set[str] = frozenset()) -> bool:
        """True if the passes of a loop are independent, apart from `own` memory and `sums`."""
        inside = list(ir.walk(loop.body))
        if loop.step != 1 or ir.may_end(loop.body) or any(isinstance(stmt, ir.Return) for stmt in inside):
            return False
        if not self._is_small([stmt for stmt in inside if isinstance(stmt, ir.Alloc)]):
            return False
        effects = self.memory.effects(loop.body)
        if not effects.changed <= effects.made | sums:
            return False
        within = mentions_in([loop, *inside]) if effects.made else self.mentions
        if any(self.mentions[name] > within[name] for name in effects.made):
            return False
        private = {stmt.name for stmt in (*own, *inside) if isinstance(stmt, ir.Alloc)}
        return Passes(loop, self.memory, effects).are_independent(private)

    # memory -----------------------------------------------------------------------------------------------------------

    def _own(self, loop: ir.For) -> list[ir.Alloc | ir.Alias]:
        """The memory allocated outside a loop, and views of it, that only the loop uses."""
        own = used_by_alone(loop, self.every)
        allocated = {stmt.name for stmt in own if isinstance(stmt, ir.Alloc)}
        return [stmt for stmt in own if self.memory.root(stmt.name) in allocated]

    def _is_small(self, own: Sequence[ir.Alloc | ir.Alias]) -> bool:
        """True if each array is small enough for the stack of a thread."""
        return all(_bytes(stmt) <= self.target.stack_row for stmt in own if isinstance(stmt, ir.Alloc))

    def _with_memory(self, loop: ir.For, own: Sequence[ir.Alloc | ir.Alias], added: Sequence[Added] = ()) -> list[ir.Stmt]:
        """The loop with memory of its own for each pass: on the thread's stack, or in arrays with an axis for the passes that run at once.

        What passes leave to be `added` is always in such arrays.
        """
        self.moved |= set(map(id, own))
        small = self._on_stack(own) - {one.left.name for one in added}
        large = [stmt for stmt in own if self.memory.root(stmt.name) not in small]
        inner = [
            replace(stmt, on_stack=True) if isinstance(stmt, ir.Alloc) else stmt for stmt in own if self.memory.root(stmt.name) in small
        ]
        shared = replace(loop, body=[*inner, *loop.body], kind="threads")
        if not large:
            return [shared]
        passes = ir.sub(loop.stop, loop.start)
        together, chunk = self.names.fresh("together"), self.names.fresh("chunk")
        size = reduce(ir.add, [ir.mul(_count(stmt.shape), np.dtype(stmt.dtype).itemsize) for stmt in large if isinstance(stmt, ir.Alloc)])
        n_together = ir.Name("int64", together)
        start = ir.add(loop.start, ir.mul(ir.Name("int64", chunk), n_together))
        taken = {stmt.name for stmt in large} - self._handed_over(loop)
        wide = {name for name in (*self.memory.roots, *taken) if self.memory.root(name) in taken}
        lane = ir.sub(ir.Name("int64", loop.name), start)
        stop = ir.least(ir.add(start, n_together), loop.stop)
        memory, rows = self._rows(large, wide, lane, n_together)
        part = replace(shared, start=start, stop=stop, body=[*inner, *rows, *_of_lane(loop.body, wide, lane, n_together)])
        n_chunks = ir.floor_div(ir.sub(ir.add(passes, n_together), 1), n_together)
        at_once = at_once_in_groups(passes, size) if added else ir.index_expr(AT_ONCE, passes, size)
        parts = [part, *added_in_groups(added, start, stop, self.names)]
        chunks = ir.For(chunk, 0, n_chunks, [*parts], kind="chunks")
        return [ir.Let(together, at_once), *memory, *memory_of_parts(loop, added), chunks, *added_up(loop, added, self.names)]

    def _handed_over(self, loop: ir.For) -> set[str]:
        """The arrays of which a loop hands all, or a part, to a function of the user's, which wants them side by side."""
        return {self.memory.root(name) for stmt in ir.walk(loop.body) if isinstance(stmt, ir.Call) for name in mentioned([stmt])}

    def _rows(
        self, large: Sequence[ir.Alloc | ir.Alias], wide: set[str], lane: ir.Index, n_lanes: ir.Index
    ) -> tuple[list[ir.Alloc | ir.Alias], list[ir.Alias]]:
        """The memory of many lanes, and what stands for that of one in its pass where the lane is the first axis."""
        memory: list[ir.Alloc | ir.Alias] = []
        rows: list[ir.Alias] = []
        for stmt in large:
            if stmt.name in wide:
                memory.append(_of_lanes(stmt, n_lanes))
            elif isinstance(stmt, ir.Alloc):
                memory.append(replace(stmt, name=self.names.fresh(f"{stmt.name}_of_lanes"), shape=(n_lanes, *stmt.shape)))
                rows.append(ir.Alias(stmt.name, memory[-1].name, ir.ROW, (lane,)))
            else:
                rows.append(replace(stmt))
        return memory, rows

    def _on_stack(self, own: Sequence[ir.Alloc | ir.Alias]) -> set[str]:
        """The names of arrays that fit on the stack of a thread together, taken in order."""
        chosen: set[str] = set()
        room: float = self.target.stack
        for stmt in own:
            if isinstance(stmt, ir.Alloc) and _bytes(stmt) <= min(room, self.target.stack_row):
                chosen.add(stmt.name)
                room -= _bytes(stmt)
        return chosen


def _of_lane(stmts: Sequence[ir.Stmt], wide: set[str], lane: ir.Index, n_lanes: ir.Index) -> list[ir.Stmt]:
    """The statements with `lane` as a further last index wherever they access the arrays `wide`."""

    def element(expr: ir.Index) -> ir.Index:
        if isinstance(expr, ir.Load):
            index = tuple(map(element, expr.index))
            return replace(expr, index=(*index, lane) if expr.array in wide else index)
        return replace(expr, args=tuple(map(element, expr.args))) if isinstance(expr, ir.Apply) else expr

    def changed(stmt: ir.Stmt) -> list[ir.Stmt] | None:
        if isinstance(stmt, ir.Store) and stmt.array in wide:
            return [replace(stmt, index=(*stmt.index, lane))]
        return [_of_lanes(stmt, n_lanes)] if isinstance(stmt, ir.Alias) and stmt.name in wide else None

    return ir.rebuilt(ir.with_expressions(stmts, element), changed)


def _of_lanes(stmt: ir.Alloc | ir.Alias, n_lanes: ir.Index) -> ir.Alloc | ir.Alias:
    """An array, or a view of one, with the lanes as its last axis."""
    if isinstance(stmt, ir.Alloc):
        return replace(stmt, shape=(*stmt.shape, n_lanes))
    if not stmt.is_in_shape:
        return replace(stmt)
    return replace(stmt, text=ir.in_shape(len(stmt.args) + 1), args=(*stmt.args, n_lanes))


def _count(shape: Sequence[ir.Index]) -> ir.Index:
    count: ir.Index = 1
    for dim in shape:
        count = ir.mul(count, dim)
    return count


def _is_in_any_order(stmt: ir.Let, is_of_card: bool) -> bool:
    """True if a statement is a reduction whose order is free: a sum, an extreme, or the like.

    The order of integers and truth values is free, because their results are the same in every order. That of a product of floats is not:
    in one order it may overflow, in another not.
    is_of_card: the statement is a reduction card's, not a user's own recurrence. Only then may sums of complex numbers be reassociated.
    """
    value = stmt.value
    if not isinstance(value, ir.Apply) or len(value.args) != 2:
        return False
    state = ir.Name(value.dtype, stmt.name)
    others = [arg for arg in value.args if arg != state]
    if len(others) != 1 or not isinstance(others[0], ir.Expr) or any(name == stmt.name for name, _ in ir.names_in(others[0])):
        return False
    if ir.is_reduction(stmt) or (value.dtype == "bool" and value.template in (ir.OF_TWO_ALL, ir.OF_TWO_ANY)):
        return True
    kind = np.dtype(value.dtype).kind
    if value.template not in (ir.IN_ORDER, ir.PRODUCT) or others[0].dtype != value.dtype:
        return False
    return kind in "iu" or (kind == "c" and value.template is ir.IN_ORDER and is_of_card)


def _depends(loop: ir.For, name: str) -> bool:
    """True if the bounds of a loop depend on a local."""
    return any(name == read for bound in (loop.start, loop.stop) for read, _ in ir.names_in(bound))


def _bytes(array: ir.Alloc) -> float:
    """The bytes of an array; infinity if known only at run time."""
    known = [dim if isinstance(dim, int) else math.inf for dim in array.shape]
    return math.prod(known) * np.dtype(array.dtype).itemsize
