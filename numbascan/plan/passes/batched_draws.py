"""Draws of one number per step are made for many steps at once.

    # before: for t in range(n):                         # after: for t0 in range(0, n, 64):
    #             y = f(y, random_bits(key, 0, 2, t))    #            t1 = min(t0 + 64, n)
    #                                                    #            draws.words_ahead(word_ahead[:t1 - t0], key, 0, 2, t0, 1)
    #                                                    #            for t in range(t0, t1):
    #                                                    #                y = f(y, word_ahead[t - t0])

A block of Philox makes four words and is not vectorized. Drawn one at a time, each block is computed four times, and its instructions keep
the arithmetic on the words out of the SIMD unit (a normal number in a step: 20 -> 8 ns). Normal numbers that take one word each have a
routine, too. In tiles each lane has a column.
Not handled: draws in branches of a lazy choice; draws whose position does not grow by a constant per step, or whose other operands change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from ...ir import loops as ir
from ...ir.mentions import loads_in, memory_of
from ...ir.names import Names
from ..target import Target

_SUMS, _DIFFERENCES, _PRODUCTS = (ir.IN_ORDER, ir.INDEX_SUM), (ir.DIFFERENCE, ir.INDEX_DIFFERENCE), (ir.PRODUCT, ir.INDEX_PRODUCT)
_CASTS = {dtype: ir.Template(f"np.{dtype}({{0}})") for dtype in ("int64", "uint64")}
_FIRST, _FIRST_OF_LANE = ir.Template("[:{0}]"), ir.Template("[:{0}, {1}]")
_LONGEST = 64  # parts of an operand up to which its locals are substituted
Places = dict[tuple[int, ir.Apply], ir.Load]  # where a draw's number is, by the id of the loop over lanes around it and the draw


def batched_draws(function: ir.Function, target: Target) -> ir.Function:
    """The function with such loops in strips, and the memory for the numbers in front."""
    allocs = [stmt for stmt in ir.walk(function.body) if isinstance(stmt, ir.Alloc)]
    rooms = {stmt.name: stmt.shape[0] for stmt in allocs if stmt.shape and isinstance(stmt.shape[0], int)}
    draws_ahead = _Ahead(target, function.names.copy(), rooms, memory_of(function.body))
    body = draws_ahead.each(function.body, {})
    read = {name for stmt in ir.walk(body) for expr in ir.expressions(stmt) for name, _ in ir.names_in(expr)}
    read |= {name for stmt in ir.walk(body) if isinstance(stmt, ir.Call) for name in stmt.args}
    read |= {name for stmt in ir.walk(body) if isinstance(stmt, ir.Return) for name in stmt.names}
    unread = draws_ahead.operands - read
    body = ir.rebuilt(body, lambda stmt: [] if isinstance(stmt, ir.Let) and stmt.name in unread else None)
    return replace(function, body=[*draws_ahead.allocs, *body], names=draws_ahead.names)


@dataclass(frozen=True)
class _Draw:
    """A draw in a loop: its operands, how far its position moves per step, and the loop over lanes around it."""

    expr: ir.Apply
    operands: tuple[ir.Index, ...]
    stride: int
    lanes: ir.For | None
    room: int  # lanes of a tile


@dataclass
class _Ahead:
    target: Target
    names: Names
    rooms: Mapping[str, int]  # lengths of the arrays that have a fixed one
    memory: Mapping[str, str]  # one name for all views of an array
    allocs: list[ir.Stmt] = field(default_factory=list)
    operands: set[str] = field(default_factory=set)  # locals that may be dead once their draws are made ahead

    def each(self, stmts: Sequence[ir.Stmt], pieces: Mapping[ir.Index, int]) -> list[ir.Stmt]:
        """The statements with draws made ahead. `pieces`: the most passes of inner loops, by their stop."""
        result: list[ir.Stmt] = []
        for stmt in stmts:
            if isinstance(stmt, ir.For):
                draws = list(self._draws(stmt))
                result += self._split(stmt, draws, pieces) if draws else [self._inside(stmt, pieces)]
            else:
                result.append(ir.with_blocks(stmt, lambda block: self.each(block, pieces)))
        return result

    def _inside(self, loop: ir.For, pieces: Mapping[ir.Index, int]) -> ir.For:
        return replace(loop, body=self.each(loop.body, {**pieces, **_piece(loop)}))

    def _split(self, loop: ir.For, draws: Sequence[_Draw], pieces: Mapping[ir.Index, int]) -> list[ir.Stmt]:
        """The loop with its draws made ahead: all at once if its passes are known to be few, else strip by strip."""
        most = loop.stop if isinstance(loop.stop, int) else pieces.get(loop.stop)
        has_lanes = any(draw.lanes for draw in draws)
        if loop.start == 0 and most is not None and most <= 4 * self.target.draws_at_once and not has_lanes:
            draws_first, places = self._made(draws, ir.Name("int64", loop.name), 0, loop.stop, most)
            return [*draws_first, self._inside(_with_numbers(loop, places), pieces)]
        first, stop = (ir.Name("int64", self._fresh(f"{loop.name}{k}")) for k in (0, 1))
        draws_first, places = self._made(draws, ir.Name("int64", loop.name), first, stop, self.target.draws_at_once)
        kind = "time" if loop.kind == "time" else "sequential"
        inner = replace(self._inside(_with_numbers(loop, places), pieces), start=first, stop=stop, kind=kind)
        body = [ir.Let(stop.name, ir.least(ir.add(first, self.target.draws_at_once), loop.stop)), *draws_first, inner]
        pieces_of_loop = ir.For(first.name, loop.start, loop.stop, body, self.target.draws_at_once, loop.kind)
        if not ir.may_end(inner.body):
            return [pieces_of_loop]
        ended = self._fresh("ended")
        inner.body = _telling(inner.body, ir.Let(ended, ir.Literal("bool", True), is_new=False))
        body.append(ir.If(ir.Name("bool", ended), [ir.Break()]))
        return [ir.Let(ended, ir.Literal("bool", False)), pieces_of_loop]

    def _made(self, draws: Sequence[_Draw], t: ir.Name, first: ir.Index, stop: ir.Index, steps: int) -> tuple[list[ir.Stmt], Places]:
        """The calls that draw for the steps from `first` to `stop`, and where each number is stored."""
        stmts: list[ir.Stmt] = []
        places: Places = {}
        for draw in draws:
            dtype = draw.expr.dtype
            hint = "normal" if dtype == "float64" else "word"
            array, part = (self._fresh(f"{hint}_{word}") for word in ("ahead", "part"))
            count = ir.sub(stop, first)
            lets, names = self._operands(draw, t, first)
            call = ir.Call(draw.expr.template.ahead, (part, *names, repr(draw.stride)), results=(part,))
            if draw.lanes is None:
                self.allocs.append(ir.Alloc(array, (steps,), dtype))
                places[id(draw.lanes), draw.expr] = ir.Load(dtype, array, (ir.sub(t, first),))
                stmts += [*lets, ir.Alias(part, array, _FIRST, (count,)), call]
            else:
                lane = ir.Name("int64", draw.lanes.name)
                self.allocs.append(ir.Alloc(array, (steps, draw.room), dtype))
                places[id(draw.lanes), draw.expr] = ir.Load(dtype, array, (ir.sub(t, first), lane))
                body: list[ir.Stmt] = [*lets, ir.Alias(part, array, _FIRST_OF_LANE, (count, lane)), call]
                stmts.append(replace(draw.lanes, body=body, kind="sequential"))
        return stmts, places

    def _operands(self, draw: _Draw, t: ir.Name, first: ir.Index) -> tuple[list[ir.Stmt], list[str]]:
        """The names of a draw's operands at step `first`, and the statements that compute them."""
        lets: list[ir.Stmt] = []
        names: list[str] = []
        for word, operand in zip(("key", "key", "number", "tag", "position"), draw.operands, strict=True):
            value = _at(operand, t, first)
            name = value.name if isinstance(value, ir.Name) else self._fresh(word)
            lets += [] if isinstance(value, ir.Name) else [ir.Let(name, value)]
            names.append(name)
        return lets, names

    def _fresh(self, hint: str) -> str:
        return self.names.fresh(hint)

    # which draws --------------------------------------------------------------------------------------------------------

    def _draws(self, loop: ir.For) -> Iterator[_Draw]:
        """The draws that may be made ahead, in a loop's body and in loops over the lanes of a tile inside it."""
        passes = ir.sub(loop.stop, loop.start)
        if loop.step != 1 or (isinstance(passes, int) and passes < self.target.min_draws):
            return
        inner = [stmt for stmt in loop.body if isinstance(stmt, ir.For) and stmt.step == 1]
        found = [
            (body, lanes, drawn)
            for body, lanes in [(loop.body, None), *((stmt.body, stmt) for stmt in inner)]
            if (drawn := dict(_found(body, self.target)))
        ]
        if not found:
            return
        changed = self._changed(loop)
        again = {stmt.name for stmt in ir.walk(loop.body) if isinstance(stmt, ir.Let) and not stmt.is_new}
        for body, lanes, drawn in found:
            lets = {stmt.name: stmt.value for stmt in (*loop.body, *body) if isinstance(stmt, ir.Let) and stmt.name not in again}
            if lanes is None:
                yield from self._drawn_in(loop, drawn, lets, None, changed)
            elif not _reads((lanes.start, lanes.stop), changed | {loop.name}):
                yield from self._drawn_in(loop, drawn, lets, lanes, changed - {lanes.name})

    def _drawn_in(
        self,
        loop: ir.For,
        drawn: Mapping[ir.Apply, tuple[ir.Index, ...]],
        lets: Mapping[str, ir.Index],
        lanes: ir.For | None,
        changed: set[str],
    ) -> Iterator[_Draw]:
        for expr, args in drawn.items():
            operands = tuple(_expanded(arg, lets) for arg in args)
            stride = _slope(operands[-1], ir.Name("int64", loop.name))
            room = 0 if lanes is None else self._room(operands, lanes)
            if stride is None or stride < 1 or _reads(operands, changed) or _reads(operands[:-1], {loop.name}):
                continue
            if lanes is None or room:
                self.operands |= lets.keys()
                yield _Draw(expr, operands, stride, lanes, room)

    def _changed(self, loop: ir.For) -> set[str]:
        """All names that the loop's passes may change, other names of the same memory included."""
        every = list(ir.walk(loop.body))
        written = {stmt.name for stmt in every if isinstance(stmt, ir.Let | ir.For | ir.Alias | ir.Alloc)}
        written |= {stmt.array for stmt in every if isinstance(stmt, ir.Store)}
        written |= {text for stmt in every if isinstance(stmt, ir.Call) for text in stmt.args}
        touched = {self.memory[name] for name in written if name in self.memory}
        return written | {name for name, memory in self.memory.items() if memory in touched}

    def _room(self, operands: Iterable[ir.Index], lanes: ir.For) -> int:
        """The most lanes of a tile: the length of a row that holds the operands; 0 if no such row is known."""
        lane = (ir.Name("int64", lanes.name),)
        rows = (load.array for expr in operands for load in loads_in(expr) if load.index == lane)
        tile = self.target.tile
        return next((self.rooms[array] for array in rows if self.rooms.get(array, tile + 1) <= tile), 0)


def _piece(loop: ir.For) -> dict[ir.Index, int]:
    """For a loop over strips: the length of a strip, as an expression, with its maximum. Empty for other loops."""
    steps: dict[ir.Index, int] = {}
    first = ir.Name("int64", loop.name)
    for stmt in loop.body:
        if isinstance(stmt, ir.Let) and isinstance(stmt.value, ir.Apply):
            end = stmt.value
            if isinstance(loop.step, int) and end.template == ir.LEAST and end.args[0] == ir.add(first, loop.step):
                steps[ir.sub(ir.Name("int64", stmt.name), first)] = loop.step
    return steps


def _found(body: Sequence[ir.Stmt], target: Target) -> Iterator[tuple[ir.Apply, tuple[ir.Index, ...]]]:
    """The draws in scalars and stores that a routine of the target can make ahead, each with its operands."""
    stack = [part for stmt in body if isinstance(stmt, ir.Let | ir.Store) for part in ir.expressions(stmt)]
    while stack:
        expr = stack.pop()
        if isinstance(expr, ir.Apply):
            draw = _draw_of(expr) if expr.template.ahead in target.routines else None
            if draw is None:
                stack += expr.args
            else:
                yield expr, draw.args


def _draw_of(expr: ir.Apply) -> ir.Apply | None:
    """The draw behind an expression that has a routine: the expression itself, or its only operand if that is a word drawn."""
    (word, *others) = expr.args
    if others:
        return expr
    return word if isinstance(word, ir.Apply) and word.template.ahead else None


def _expanded(expr: ir.Index, lets: Mapping[str, ir.Index]) -> ir.Index:
    """An expression with the locals of a pass substituted, level by level. A long one keeps some, and is then refused as an operand."""

    def written_out(part: ir.Expr) -> ir.Index | None:
        if isinstance(part, ir.Name):
            return lets.get(part.name)
        return part if isinstance(part, ir.Load) else None

    before: ir.Index | None = None
    while expr != before and next(islice(ir.parts(expr), _LONGEST, None), None) is None:
        before, expr = expr, ir.mapped(expr, written_out)
    return expr


def _reads(exprs: Iterable[ir.Index], names: set[str]) -> bool:
    return any(name in names for expr in exprs for name, _ in ir.names_in(expr))


def _slope(expr: ir.Index, t: ir.Name) -> int | None:
    """The growth of an integer per step; None if it is not known to be constant."""
    known = ir.slope_and_rest(expr, t)
    if known is not None:
        return known[0]
    if not isinstance(expr, ir.Apply):
        return None
    slopes = [_slope(arg, t) for arg in expr.args]
    if expr.template == _CASTS.get(expr.dtype):
        return slopes[0]
    if expr.template not in (*_SUMS, *_DIFFERENCES, *_PRODUCTS) or expr.dtype != "int64":
        return None
    (a, b), factor = slopes, expr.args[1]
    if a is None or b is None:
        return None
    if expr.template in _PRODUCTS:
        return a * factor if isinstance(factor, int) else None
    return a + b if expr.template in _SUMS else a - b


# statements -----------------------------------------------------------------------------------------------------------


def _at(expr: ir.Index, t: ir.Name, first: ir.Index) -> ir.Index:
    """The expression with `first` for step t."""

    def moved(part: ir.Expr) -> ir.Index | None:
        if isinstance(part, ir.Apply) and part.template in _SUMS and part.dtype == "int64":
            return ir.add(*(ir.mapped(arg, moved) for arg in part.args))
        return first if part == t else None

    return ir.mapped(expr, moved)


def _telling(stmts: Sequence[ir.Stmt], tell: ir.Stmt) -> list[ir.Stmt]:
    """A loop's body with `tell` before every break out of the loop."""
    result: list[ir.Stmt] = []
    for stmt in stmts:
        ends = [tell, stmt] if isinstance(stmt, ir.Break) else [stmt]
        result += [ir.with_blocks(stmt, lambda block: _telling(block, tell))] if isinstance(stmt, ir.If) else ends
    return result


def _with_numbers(loop: ir.For, places: Places, lanes: ir.For | None = None) -> ir.For:
    """The loop with its draws replaced by loads of the numbers made ahead."""

    def place(part: ir.Expr) -> ir.Load | None:
        return places.get((id(lanes), part)) if isinstance(part, ir.Apply) else None

    body: list[ir.Stmt] = []
    for stmt in loop.body:
        if isinstance(stmt, ir.For):
            body.append(_with_numbers(stmt, places, stmt) if lanes is None else stmt)
        else:
            body.append(ir.with_values(stmt, lambda expr: ir.mapped(expr, place)))
    return replace(loop, body=body)
