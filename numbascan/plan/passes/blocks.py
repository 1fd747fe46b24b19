"""Blocks of time: divisions and functions that no state waits for move out of a loop of scalars into vectorized passes.

    # before: for t in range(n):                # after: for t0 in range(0, n, 256):
    #             total += log(v) + x[t] / v    #            t1 = min(t0 + 256, n)
    #             v = a + b * x[t] + c * v      #            x_block = x[t0:t1]
    #                                           #            for s in range(t1 - t0):   the recurrence alone
    #                                           #                v_block[s] = v
    #                                           #                v = a + b * x_block[s] + c * v
    #                                           #            for s in range(t1 - t0):   what no state waits for
    #                                           #                total += log(v_block[s]) + x_block[s] / v_block[s]

This is loop distribution within a block. What depends on sequences alone is computed in a pass before the recurrence. A block stays in the
cache, so memory does not grow with the number of steps. Inside a block arrays are read through slices, so that the compiler sees that no
index is negative. A cost model (`plan/cost.py`) decides: work that is hidden behind the latency of the recurrence stays where it is.
Not handled: steps with loops, calls or conditions inside; rows that a state reads back from memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...ir import loops as ir
from ...ir.accesses import Memory, Passes
from ...ir.names import Names
from ..cost import is_sum, latency, scalar_cost, vector_cost, vector_gain
from ..target import Target

Position = int


def blocks(function: ir.Function, target: Target) -> ir.Function:
    """The function with such loops in blocks, and the memory for blocks in front."""
    views = {stmt.name for stmt in ir.walk(function.body) if isinstance(stmt, ir.Alias)}
    memory: list[ir.Stmt] = []
    names, arrays = function.names.copy(), Memory(function.body, function.rings)

    def in_blocks(stmt: ir.Stmt) -> list[ir.Stmt] | None:
        if not isinstance(stmt, ir.For) or not _is_plain(stmt, views, target):
            return None
        parts = _BodyParts(stmt, target)
        passes = Passes(stmt, arrays, arrays.effects(stmt.body))
        return [_Blocked(parts, names, memory, passes).make() if parts.is_worth_it() else stmt]

    body = ir.rebuilt(function.body, in_blocks)
    return replace(function, body=[*memory, *body], names=names)


def _is_plain(loop: ir.For, views: set[str], target: Target) -> bool:
    """True for a long loop of stores and scalars assigned once a step, none of whose arrays is a view if it stores anything."""
    if not all(isinstance(stmt, ir.Let | ir.Store) for stmt in loop.body) or loop.step != 1:
        return False
    names = [stmt.name for stmt in loop.body if isinstance(stmt, ir.Let)]
    if len(names) > len(set(names)):
        return False
    steps = ir.sub(loop.stop, loop.start)
    if isinstance(steps, int) and steps < target.block:
        return False
    touched = {name for stmt in loop.body for part in ir.expressions(stmt) for name, is_element in ir.names_in(part) if is_element}
    stored = {stmt.array for stmt in loop.body if isinstance(stmt, ir.Store)}
    return not (stored and (touched | stored) & views)


class _BodyParts:
    """A loop's body split three ways: the pass before the recurrence, the recurrence, and the pass after it."""

    def __init__(self, loop: ir.For, target: Target) -> None:
        self.loop, self.body, self.target = loop, loop.body, target
        self.lets = {stmt.name: k for k, stmt in enumerate(loop.body) if isinstance(stmt, ir.Let) and stmt.is_new}
        self.moves = {stmt.name: k for k, stmt in enumerate(loop.body) if isinstance(stmt, ir.Let) and not stmt.is_new}
        self.stored = {stmt.array for stmt in loop.body if isinstance(stmt, ir.Store)}
        self.free: set[str] = set()  # scalars that depend on no state
        for name, k in self.lets.items():
            if self.is_free(*ir.expressions(loop.body[k])):
                self.free.add(name)
        self.after = self._after()

    def is_free(self, *exprs: ir.Index) -> bool:
        """True if no expression depends on a state or on an array that the step stores."""
        for expr in exprs:
            for name, is_element in ir.names_in(expr):
                if is_element and name in self.stored:
                    return False
                if not is_element and (name in self.moves or (name in self.lets and name not in self.free)):
                    return False
        return True

    def sums(self, k: Position) -> bool:
        """True if statement k adds to a sum that may be reassociated and that nothing else in the step reads."""
        stmt = self.body[k]
        if not isinstance(stmt, ir.Let) or stmt.is_new or not is_sum(stmt):
            return False
        assert isinstance(stmt.value, ir.Apply)
        others = [part for j, other in enumerate(self.body) if j != k for part in ir.expressions(other)]
        return not any(name == stmt.name for part in (*others, stmt.value.args[1]) for name, _ in ir.names_in(part))

    def closure(self, *exprs: ir.Index) -> set[Position]:
        """The positions of the step's scalars that expressions read, directly or through other scalars."""
        positions: set[Position] = set()
        stack = list(exprs)
        while stack:
            for name, _ in ir.names_in(stack.pop()):
                k = self.lets.get(name)
                if k is not None and k not in positions:
                    positions.add(k)
                    stack += ir.expressions(self.body[k])
        return positions

    def _after(self) -> set[Position]:
        """The stores and sums that no state waits for and that are worth a pass of their own."""
        ends = {k for k, stmt in enumerate(self.body) if isinstance(stmt, ir.Store) or self.sums(k)}
        states = set(self.moves.values()) - ends
        needed = self.closure(*(part for k in states for part in ir.expressions(self.body[k])))
        return {k for k in ends if self._may_leave(k) and self._gain(k, needed)}

    def _may_leave(self, k: Position) -> bool:
        """True if statement k depends on no stored array and, for a store, is the only one of its array, which the step does not read."""
        parts = [part for j in (k, *self.closure(*ir.expressions(self.body[k]))) for part in ir.expressions(self.body[j])]
        stmt = self.body[k]
        if isinstance(stmt, ir.Store) and sum(isinstance(other, ir.Store) and other.array == stmt.array for other in self.body) > 1:
            return False
        if any(is_element and name in self.stored for part in parts for name, is_element in ir.names_in(part)):
            return False
        read = {name for other in self.body for part in ir.expressions(other) for name, is_element in ir.names_in(part) if is_element}
        return not isinstance(stmt, ir.Store) or stmt.array not in read

    def _gain(self, k: Position, needed: set[Position]) -> bool:
        own = [k, *(self.closure(*ir.expressions(self.body[k])) - needed)]
        return any(vector_gain(part) for j in own for part in ir.expressions(self.body[j]))

    # what it costs --------------------------------------------------------------------------------------------------

    def staying(self) -> list[Position]:
        """The statements of the recurrence: states, the stores that stay, and the scalars that they read."""
        carried = {k for k, stmt in enumerate(self.body) if not (isinstance(stmt, ir.Let) and stmt.is_new)} - self.after
        return sorted(carried | self.closure(*(part for k in carried for part in ir.expressions(self.body[k]))))

    def leaving(self) -> list[Position]:
        """The statements of the pass after: stores and sums that leave, and scalars they read that are free or not in the recurrence."""
        staying = {k for k in self.staying() if not self._is_free_at(k)}
        positions = set(self.after)
        stack = [part for k in self.after for part in ir.expressions(self.body[k])]
        while stack:
            for name, _ in ir.names_in(stack.pop()):
                k = self.lets.get(name, -1)
                if k >= 0 and k not in staying | positions:
                    positions.add(k)
                    stack += ir.expressions(self.body[k])
        return sorted(positions)

    def _is_free_at(self, k: Position) -> bool:
        stmt = self.body[k]
        return isinstance(stmt, ir.Let) and stmt.name in self.free

    def lifted(self) -> list[ir.Expr]:
        """The recurrence's expressions that depend on no state and are worth a pass before it."""
        lifted: list[ir.Expr] = []
        for k in self.staying():
            stmt = self.body[k]
            if isinstance(stmt, ir.Let) and stmt.name in self.free:
                continue  # the expression that reads it lifts it
            for part in ir.expressions(stmt)[:1]:
                self._find_lifted(part, lifted)
        return lifted

    def _find_lifted(self, expr: ir.Index, lifted: list[ir.Expr]) -> None:
        if isinstance(expr, int):
            return
        if self.is_free(expr):
            if self._is_worth_lifting(expr) and expr not in lifted:
                lifted.append(expr)
        elif isinstance(expr, ir.Apply) and expr.template.level not in (ir.CHOICE, ir.AND, ir.OR):  # a branch not taken is not computed
            for part in expr.args:
                self._find_lifted(part, lifted)

    def _is_worth_lifting(self, expr: ir.Expr) -> bool:
        inner = (part for k in self.closure(expr) for part in ir.expressions(self.body[k]))
        return any(map(vector_gain, (expr, *inner)))

    def is_worth_it(self) -> bool:
        """True if blocks cost less than the loop as it stands."""
        states = {name: k for name, k in self.moves.items() if not self.sums(k)}
        if not states:
            return False  # no recurrence: the loop is vectorized as it is
        lifted, staying = self.lifted(), self.staying()
        if not lifted and not self.after:
            return False
        chain = max(latency(self.body, self.lets, set(states), k, self.target) for k in states.values())
        plain = max(chain, scalar_cost((part for stmt in self.body for part in ir.expressions(stmt)), self.target))
        before = [*lifted, *(part for k in self.closure(*lifted) for part in ir.expressions(self.body[k]))]
        after = [part for k in self.leaving() for part in ir.expressions(self.body[k])]
        left = scalar_cost(
            (self._left(part, lifted) for k in staying if not self._is_free_at(k) for part in ir.expressions(self.body[k])), self.target
        )
        passes = sum(vector_cost(part, self.target) for part in (*before, *after))
        passes += self.target.buffer_cost * (len(lifted) + len(self.after))
        # The recurrence takes its latency or its remaining work, whichever is longer; the other passes come on top.
        return max(chain, left) + passes < self.target.block_gain * plain

    def _left(self, expr: ir.Index, lifted: Sequence[ir.Expr]) -> ir.Index:
        """The part of an expression that the recurrence still computes after the pass before it."""
        return ir.mapped(expr, lambda part: ir.Name(part.dtype, "lifted") if isinstance(part, ir.Apply) and part in lifted else None)


@dataclass
class _Blocked:
    """The loops over one block, and around them the loop over blocks."""

    parts: _BodyParts
    names: Names
    memory: list[ir.Stmt]
    passes: Passes

    def make(self) -> ir.For:
        """The loop over blocks."""
        loop, names, block = self.parts.loop, self.names, self.parts.target.block
        self.t = ir.Name("int64", loop.name)
        self.first, self.stop = (ir.Name("int64", names.fresh(f"{loop.name}{k}")) for k in (0, 1))
        self.at = ir.Name("int64", names.fresh("s"))  # no counter of a loop around this one
        self.buffers: dict[ir.Expr, ir.Load] = {}
        self.saved: dict[tuple[str, bool], ir.Load] = {}
        self.slices: dict[tuple[str, int, ir.Index], str] = {}
        before, after = self._before(), self._after()
        passes = ("what no state enters", before), ("the recurrence", self._middle()), ("what no state waits for", after)
        loops: list[ir.Stmt] = []
        for text, stmts in passes:
            if stmts:
                loops += [
                    ir.Note(text),
                    ir.For(self.at.name, 0, ir.sub(self.stop, self.first), [self._placed_stmt(stmt) for stmt in stmts]),
                ]
        stop = ir.Let(self.stop.name, ir.least(ir.add(self.first, block), loop.stop))
        return ir.For(self.first.name, loop.start, loop.stop, [stop, *self._taken(), *loops], block, loop.kind)

    # places in a block ----------------------------------------------------------------------------------------------

    def _placed(self, expr: ir.Index) -> ir.Index:
        """An expression of step t, rewritten for step s of the block."""
        return ir.mapped(expr, self._place_of)

    def _place_of(self, expr: ir.Expr) -> ir.Index | None:
        if isinstance(expr, ir.Apply) and expr.template.level in (ir.CHOICE, ir.AND, ir.OR):
            # No slices in branches: in steps that do not take a branch its index may lie outside the array, and so would the slice.
            condition, *others = expr.args
            return replace(expr, args=(self._placed(condition), *(ir.mapped(part, self._now) for part in others)))
        return ir.Load(expr.dtype, *self._place(expr.array, expr.index)) if isinstance(expr, ir.Load) else self._now(expr)

    def _now(self, expr: ir.Expr) -> ir.Index | None:
        return ir.add(self.first, self.at) if expr == self.t else None

    def _placed_stmt(self, stmt: ir.Stmt) -> ir.Stmt:
        if isinstance(stmt, ir.Store):
            array, index = self._place(stmt.array, stmt.index)
            return ir.Store(array, index, self._placed(stmt.value), stmt.combine)
        return ir.with_values(stmt, self._placed)

    def _place(self, array: str, index: tuple[ir.Index, ...]) -> tuple[str, tuple[ir.Index, ...]]:
        """The same element in the block's slice of an array, if its row number is t or -t plus what no step changes; else in the array."""
        rows = self.passes.form(index[0]) if index and isinstance(index[0], ir.Expr) else None
        if rows is None or rows[0] not in (1, -1):
            return array, tuple(map(self._placed, index))
        key = array, *rows
        if key not in self.slices:
            self.slices[key] = self.names.fresh(f"{array}_block")
        # Rows that go down with t are one slice, too, which is read from its end.
        at: ir.Index = self.at if rows[0] == 1 else ir.sub(ir.sub(ir.sub(self.stop, self.first), 1), self.at)
        return self.slices[key], (at, *map(self._placed, index[1:]))

    def _taken(self) -> list[ir.Stmt]:
        """The slices."""
        aliases: list[ir.Stmt] = []
        for (array, slope, rest), name in self.slices.items():
            ends = (self.first, self.stop) if slope == 1 else (ir.sub(1, self.stop), ir.sub(1, self.first))
            aliases.append(ir.Alias(name, array, ir.ROWS, tuple(ir.add(rest, end) for end in ends)))
        return aliases

    # the passes -----------------------------------------------------------------------------------------------------

    def _buffer(self, hint: str, dtype: str) -> ir.Load:
        """This step's element of new memory that holds one number per step of a block."""
        name = self.names.fresh(f"{hint}_block")
        self.memory.append(ir.Alloc(name, (self.parts.target.block,), dtype))
        return ir.Load(dtype, name, (self.at,))

    def _before(self) -> list[ir.Stmt]:
        parts = self.parts
        lifted = parts.lifted()
        stmts = [parts.body[k] for k in sorted(parts.closure(*lifted))]
        for k, expr in enumerate(lifted):
            self.buffers[expr] = load = self._buffer(expr.name if isinstance(expr, ir.Name) else f"before_{k}", expr.dtype)
            stmts.append(ir.Store(load.array, load.index, expr))
        return stmts

    def _after(self) -> list[ir.Stmt]:
        """The pass after. It also registers in `saved` what it needs from the recurrence, so it is made before `_middle`."""
        return _live([self._from_blocks(k) for k in self.parts.leaving()])

    def _from_blocks(self, k: Position) -> ir.Stmt:
        """Statement k of the step; it reads the recurrence's values from the block's memory."""
        stmt = self.parts.body[k]
        if isinstance(stmt, ir.Store):
            return ir.with_values(stmt, lambda expr: self._read(expr, k))
        assert isinstance(stmt, ir.Let)
        if k in self.parts.after:
            assert isinstance(stmt.value, ir.Apply)
            value = stmt.value
            return replace(stmt, value=replace(value, args=(value.args[0], self._read(value.args[1], k))))
        return replace(stmt, value=self._read(stmt.value, k))

    def _read(self, expr: ir.Index, k: Position) -> ir.Index:
        return ir.mapped(expr, lambda part: self.buffers.get(part) or (self._saved(part, k) if isinstance(part, ir.Name) else None))

    def _saved(self, name: ir.Name, k: Position) -> ir.Expr:
        """A recurrence scalar as saved for statement k, before or after its update; other names stay."""
        parts = self.parts
        moved = parts.moves.get(name.name)
        is_taken = moved is not None or (parts.lets.get(name.name, -1) in parts.staying() and name.name not in parts.free)
        if not is_taken:
            return name
        key = name.name, moved is not None and k > moved
        if key not in self.saved:
            self.saved[key] = self._buffer(name.name, name.dtype)
        return self.saved[key]

    def _middle(self) -> list[ir.Stmt]:
        parts = self.parts
        stmts: list[ir.Stmt] = []
        for (name, is_new_value), load in self.saved.items():
            if name in parts.moves and not is_new_value:
                stmts.append(ir.Store(load.array, load.index, ir.Name(load.dtype, name)))
        for stmt in _live([self._without_lifted(k) for k in parts.staying()]):
            stmts.append(stmt)
            if isinstance(stmt, ir.Let) and (stmt.name, not stmt.is_new) in self.saved:
                load = self.saved[stmt.name, not stmt.is_new]
                stmts.append(ir.Store(load.array, load.index, ir.Name(load.dtype, stmt.name)))
        return stmts

    def _without_lifted(self, k: Position) -> ir.Stmt:
        """Statement k of the step; it reads lifted expressions from the block's memory."""
        stmt = self.parts.body[k]
        assert isinstance(stmt, ir.Let | ir.Store)
        return replace(stmt, value=ir.mapped(stmt.value, self._shorter))

    def _shorter(self, expr: ir.Expr) -> ir.Expr | None:
        is_left = isinstance(expr, ir.Load) or (isinstance(expr, ir.Apply) and expr.template.level in (ir.CHOICE, ir.AND, ir.OR))
        return self.buffers.get(expr) or (expr if is_left else None)


def _live(stmts: Sequence[ir.Stmt]) -> list[ir.Stmt]:
    """The statements without scalars that no later statement reads."""
    needed: list[ir.Stmt] = []
    read: set[str] = set()
    for stmt in reversed(stmts):
        if isinstance(stmt, ir.Let) and stmt.is_new and stmt.name not in read:
            continue
        needed.append(stmt)
        read |= {name for part in ir.expressions(stmt) for name, _ in ir.names_in(part)}
    return needed[::-1]
