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

from ...ir.loops import (
    DIFFERENCE,
    IN_ORDER,
    INDEX_DIFFERENCE,
    INDEX_PRODUCT,
    INDEX_SUM,
    LEAST,
    PRODUCT,
    Alias,
    Alloc,
    Apply,
    Break,
    Call,
    Expr,
    For,
    Function,
    If,
    Index,
    Let,
    Literal,
    Load,
    Name,
    Return,
    Stmt,
    Store,
    Template,
    add,
    expressions,
    least,
    mapped,
    may_end,
    names_in,
    parts,
    rebuilt,
    slope_and_rest,
    sub,
    walk,
    with_blocks,
    with_values,
)
from ...ir.mentions import loads_in, memory_of
from ...ir.names import Names
from ..target import Target

_SUMS, _DIFFERENCES, _PRODUCTS = (IN_ORDER, INDEX_SUM), (DIFFERENCE, INDEX_DIFFERENCE), (PRODUCT, INDEX_PRODUCT)
_CASTS = {dtype: Template(f"np.{dtype}({{0}})") for dtype in ("int64", "uint64")}
_FIRST, _FIRST_OF_LANE = Template("[:{0}]"), Template("[:{0}, {1}]")
_LONGEST = 64  # parts of an operand up to which its locals are substituted
Places = dict[tuple[int, Apply], Load]  # where a draw's number is, by the id of the loop over lanes around it and the draw


def batched_draws(function: Function, target: Target) -> Function:
    """The function with such loops in strips, and the memory for the numbers in front."""
    allocs = [stmt for stmt in walk(function.body) if isinstance(stmt, Alloc)]
    rooms = {stmt.name: stmt.shape[0] for stmt in allocs if stmt.shape and isinstance(stmt.shape[0], int)}
    draws_ahead = _Ahead(target, function.names.copy(), rooms, memory_of(function.body))
    body = draws_ahead.each(function.body, {})
    read = {name for stmt in walk(body) for expr in expressions(stmt) for name, _ in names_in(expr)}
    read |= {name for stmt in walk(body) if isinstance(stmt, Call) for name in stmt.args}
    read |= {name for stmt in walk(body) if isinstance(stmt, Return) for name in stmt.names}
    unread = draws_ahead.operands - read
    body = rebuilt(body, lambda stmt: [] if isinstance(stmt, Let) and stmt.name in unread else None)
    return replace(function, body=[*draws_ahead.allocs, *body], names=draws_ahead.names)


@dataclass(frozen=True)
class _Draw:
    """A draw in a loop: its operands, how far its position moves per step, and the loop over lanes around it."""

    expr: Apply
    operands: tuple[Index, ...]
    stride: int
    lanes: For | None
    room: int  # lanes of a tile


@dataclass
class _Ahead:
    target: Target
    names: Names
    rooms: Mapping[str, int]  # lengths of the arrays that have a fixed one
    memory: Mapping[str, str]  # one name for all views of an array
    allocs: list[Stmt] = field(default_factory=list)
    operands: set[str] = field(default_factory=set)  # locals that may be dead once their draws are made ahead

    def each(self, stmts: Sequence[Stmt], pieces: Mapping[Index, int]) -> list[Stmt]:
        """The statements with draws made ahead. `pieces`: the most passes of inner loops, by their stop."""
        result: list[Stmt] = []
        for stmt in stmts:
            if isinstance(stmt, For):
                draws = list(self._draws(stmt))
                result += self._split(stmt, draws, pieces) if draws else [self._inside(stmt, pieces)]
            else:
                result.append(with_blocks(stmt, lambda block: self.each(block, pieces)))
        return result

    def _inside(self, loop: For, pieces: Mapping[Index, int]) -> For:
        return replace(loop, body=self.each(loop.body, {**pieces, **_piece(loop)}))

    def _split(self, loop: For, draws: Sequence[_Draw], pieces: Mapping[Index, int]) -> list[Stmt]:
        """The loop with its draws made ahead: all at once if its passes are known to be few, else strip by strip."""
        most = loop.stop if isinstance(loop.stop, int) else pieces.get(loop.stop)
        has_lanes = any(draw.lanes for draw in draws)
        if loop.start == 0 and most is not None and most <= 4 * self.target.draws_at_once and not has_lanes:
            draws_first, places = self._made(draws, Name("int64", loop.name), 0, loop.stop, most)
            return [*draws_first, self._inside(_with_numbers(loop, places), pieces)]
        first, stop = (Name("int64", self._fresh(f"{loop.name}{k}")) for k in (0, 1))
        draws_first, places = self._made(draws, Name("int64", loop.name), first, stop, self.target.draws_at_once)
        kind = "time" if loop.kind == "time" else "sequential"
        inner = replace(self._inside(_with_numbers(loop, places), pieces), start=first, stop=stop, kind=kind)
        body = [Let(stop.name, least(add(first, self.target.draws_at_once), loop.stop)), *draws_first, inner]
        pieces_of_loop = For(first.name, loop.start, loop.stop, body, self.target.draws_at_once, loop.kind)
        if not may_end(inner.body):
            return [pieces_of_loop]
        ended = self._fresh("ended")
        inner.body = _telling(inner.body, Let(ended, Literal("bool", True), is_new=False))
        body.append(If(Name("bool", ended), [Break()]))
        return [Let(ended, Literal("bool", False)), pieces_of_loop]

    def _made(self, draws: Sequence[_Draw], t: Name, first: Index, stop: Index, steps: int) -> tuple[list[Stmt], Places]:
        """The calls that draw for the steps from `first` to `stop`, and where each number is stored."""
        stmts: list[Stmt] = []
        places: Places = {}
        for draw in draws:
            dtype = draw.expr.dtype
            hint = "normal" if dtype == "float64" else "word"
            array, part = (self._fresh(f"{hint}_{word}") for word in ("ahead", "part"))
            count = sub(stop, first)
            lets, names = self._operands(draw, t, first)
            call = Call(draw.expr.template.ahead, (part, *names, repr(draw.stride)), results=(part,))
            if draw.lanes is None:
                self.allocs.append(Alloc(array, (steps,), dtype))
                places[id(draw.lanes), draw.expr] = Load(dtype, array, (sub(t, first),))
                stmts += [*lets, Alias(part, array, _FIRST, (count,)), call]
            else:
                lane = Name("int64", draw.lanes.name)
                self.allocs.append(Alloc(array, (steps, draw.room), dtype))
                places[id(draw.lanes), draw.expr] = Load(dtype, array, (sub(t, first), lane))
                body: list[Stmt] = [*lets, Alias(part, array, _FIRST_OF_LANE, (count, lane)), call]
                stmts.append(replace(draw.lanes, body=body, kind="sequential"))
        return stmts, places

    def _operands(self, draw: _Draw, t: Name, first: Index) -> tuple[list[Stmt], list[str]]:
        """The names of a draw's operands at step `first`, and the statements that compute them."""
        lets: list[Stmt] = []
        names: list[str] = []
        for word, operand in zip(("key", "key", "number", "tag", "position"), draw.operands, strict=True):
            value = _at(operand, t, first)
            name = value.name if isinstance(value, Name) else self._fresh(word)
            lets += [] if isinstance(value, Name) else [Let(name, value)]
            names.append(name)
        return lets, names

    def _fresh(self, hint: str) -> str:
        return self.names.fresh(hint)

    # which draws --------------------------------------------------------------------------------------------------------

    def _draws(self, loop: For) -> Iterator[_Draw]:
        """The draws that may be made ahead, in a loop's body and in loops over the lanes of a tile inside it."""
        passes = sub(loop.stop, loop.start)
        if loop.step != 1 or (isinstance(passes, int) and passes < self.target.min_draws):
            return
        inner = [stmt for stmt in loop.body if isinstance(stmt, For) and stmt.step == 1]
        found = [
            (body, lanes, drawn)
            for body, lanes in [(loop.body, None), *((stmt.body, stmt) for stmt in inner)]
            if (drawn := dict(_found(body, self.target)))
        ]
        if not found:
            return
        changed = self._changed(loop)
        again = {stmt.name for stmt in walk(loop.body) if isinstance(stmt, Let) and not stmt.is_new}
        for body, lanes, drawn in found:
            lets = {stmt.name: stmt.value for stmt in (*loop.body, *body) if isinstance(stmt, Let) and stmt.name not in again}
            if lanes is None:
                yield from self._drawn_in(loop, drawn, lets, None, changed)
            elif not _reads((lanes.start, lanes.stop), changed | {loop.name}):
                yield from self._drawn_in(loop, drawn, lets, lanes, changed - {lanes.name})

    def _drawn_in(
        self, loop: For, drawn: Mapping[Apply, tuple[Index, ...]], lets: Mapping[str, Index], lanes: For | None, changed: set[str]
    ) -> Iterator[_Draw]:
        for expr, args in drawn.items():
            operands = tuple(_expanded(arg, lets) for arg in args)
            stride = _slope(operands[-1], Name("int64", loop.name))
            room = 0 if lanes is None else self._room(operands, lanes)
            if stride is None or stride < 1 or _reads(operands, changed) or _reads(operands[:-1], {loop.name}):
                continue
            if lanes is None or room:
                self.operands |= lets.keys()
                yield _Draw(expr, operands, stride, lanes, room)

    def _changed(self, loop: For) -> set[str]:
        """All names that the loop's passes may change, other names of the same memory included."""
        every = list(walk(loop.body))
        written = {stmt.name for stmt in every if isinstance(stmt, Let | For | Alias | Alloc)}
        written |= {stmt.array for stmt in every if isinstance(stmt, Store)}
        written |= {text for stmt in every if isinstance(stmt, Call) for text in stmt.args}
        touched = {self.memory[name] for name in written if name in self.memory}
        return written | {name for name, memory in self.memory.items() if memory in touched}

    def _room(self, operands: Iterable[Index], lanes: For) -> int:
        """The most lanes of a tile: the length of a row that holds the operands; 0 if no such row is known."""
        lane = (Name("int64", lanes.name),)
        rows = (load.array for expr in operands for load in loads_in(expr) if load.index == lane)
        tile = self.target.tile
        return next((self.rooms[array] for array in rows if self.rooms.get(array, tile + 1) <= tile), 0)


def _piece(loop: For) -> dict[Index, int]:
    """For a loop over strips: the length of a strip, as an expression, with its maximum. Empty for other loops."""
    steps: dict[Index, int] = {}
    first = Name("int64", loop.name)
    for stmt in loop.body:
        if isinstance(stmt, Let) and isinstance(stmt.value, Apply):
            end = stmt.value
            if isinstance(loop.step, int) and end.template == LEAST and end.args[0] == add(first, loop.step):
                steps[sub(Name("int64", stmt.name), first)] = loop.step
    return steps


def _found(body: Sequence[Stmt], target: Target) -> Iterator[tuple[Apply, tuple[Index, ...]]]:
    """The draws in scalars and stores that a routine of the target can make ahead, each with its operands."""
    stack = [part for stmt in body if isinstance(stmt, Let | Store) for part in expressions(stmt)]
    while stack:
        expr = stack.pop()
        if isinstance(expr, Apply):
            draw = _draw_of(expr) if expr.template.ahead in target.routines else None
            if draw is None:
                stack += expr.args
            else:
                yield expr, draw.args


def _draw_of(expr: Apply) -> Apply | None:
    """The draw behind an expression that has a routine: the expression itself, or its only operand if that is a word drawn."""
    (word, *others) = expr.args
    if others:
        return expr
    return word if isinstance(word, Apply) and word.template.ahead else None


def _expanded(expr: Index, lets: Mapping[str, Index]) -> Index:
    """An expression with the locals of a pass substituted, level by level. A long one keeps some, and is then refused as an operand."""

    def written_out(part: Expr) -> Index | None:
        if isinstance(part, Name):
            return lets.get(part.name)
        return part if isinstance(part, Load) else None

    before: Index | None = None
    while expr != before and next(islice(parts(expr), _LONGEST, None), None) is None:
        before, expr = expr, mapped(expr, written_out)
    return expr


def _reads(exprs: Iterable[Index], names: set[str]) -> bool:
    return any(name in names for expr in exprs for name, _ in names_in(expr))


def _slope(expr: Index, t: Name) -> int | None:
    """The growth of an integer per step; None if it is not known to be constant."""
    known = slope_and_rest(expr, t)
    if known is not None:
        return known[0]
    if not isinstance(expr, Apply):
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


def _at(expr: Index, t: Name, first: Index) -> Index:
    """The expression with `first` for step t."""

    def moved(part: Expr) -> Index | None:
        if isinstance(part, Apply) and part.template in _SUMS and part.dtype == "int64":
            return add(*(mapped(arg, moved) for arg in part.args))
        return first if part == t else None

    return mapped(expr, moved)


def _telling(stmts: Sequence[Stmt], tell: Stmt) -> list[Stmt]:
    """A loop's body with `tell` before every break out of the loop."""
    result: list[Stmt] = []
    for stmt in stmts:
        ends = [tell, stmt] if isinstance(stmt, Break) else [stmt]
        result += [with_blocks(stmt, lambda block: _telling(block, tell))] if isinstance(stmt, If) else ends
    return result


def _with_numbers(loop: For, places: Places, lanes: For | None = None) -> For:
    """The loop with its draws replaced by loads of the numbers made ahead."""

    def place(part: Expr) -> Load | None:
        return places.get((id(lanes), part)) if isinstance(part, Apply) else None

    body: list[Stmt] = []
    for stmt in loop.body:
        if isinstance(stmt, For):
            body.append(_with_numbers(stmt, places, stmt) if lanes is None else stmt)
        else:
            body.append(with_values(stmt, lambda expr: mapped(expr, place)))
    return replace(loop, body=body)
