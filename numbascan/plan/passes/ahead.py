"""Draws of one number a step are made for some steps at once.

    # before: for t in range(n):                         # after: for t0 in range(0, n, 64):
    #             y = f(y, random_bits(key, 0, 2, t))    #            t1 = min(t0 + 64, n)
    #                                                    #            draws.words_ahead(word_ahead[:t1 - t0], key, 0, 2, t0, 1)
    #                                                    #            for t in range(t0, t1):
    #                                                    #                y = f(y, word_ahead[t - t0])

A block of Philox, which the SIMD unit does not take, makes four words: one at a time uses each block four times, and its instructions
keep what is made of the words out of the SIMD unit (a normal number in a step: 20 -> 8 ns). What makes normal numbers of single words is
such a routine, too. In tiles each lane has a column.
Not handled: draws in branches of a lazy choice, draws of which neither number nor position grows with the step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...ir.loops import (
    Alias,
    Alloc,
    Apply,
    Break,
    Call,
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
    least,
    names_in,
    parts_of,
    slope_and_rest,
    sub,
    walk,
)
from ...ir.mentions import expressions, loads_in, memory_of
from ...ir.names import Names
from ..target import Target

Places = dict[tuple[int, Apply], Load]  # where a draw is, by the loop that it stands in

ROUTINES = {"random_bits": "draws.words_ahead", "random_normal": "draws.normals_ahead"}
OF_WORDS = {"normal_of": "draws.single_normals_ahead"}  # what is made of a word, with the word
_LEAST = Template("min({0}, {1})")
_SUM, _DIFFERENCE, _PRODUCT, _CAST = "{0} + {1}", "{0} - {1}", "{0} * {1}", re.compile(r"np\.u?int64\(\{0\}\)")


def ahead(function: Function, target: Target) -> Function:
    """The function with such loops in pieces, and the memory for the numbers in front."""
    allocs = [stmt for stmt in walk(function.body) if isinstance(stmt, Alloc)]
    rooms = {stmt.name: stmt.shape[0] for stmt in allocs if stmt.shape and isinstance(stmt.shape[0], int)}
    made = _Ahead(target, function.names.copy(), rooms, memory_of(function.body))
    body = made.each(function.body, {})
    read = {name for stmt in walk(body) for expr in expressions(stmt) for name, _ in names_in(expr)}
    read |= {
        name for stmt in walk(body) if isinstance(stmt, Call | Return) for name in (stmt.args if isinstance(stmt, Call) else stmt.names)
    }
    return replace(function, body=[*made.taken, *_without(body, made.operands - read)], names=made.names)


@dataclass(frozen=True)
class _Draw:
    """A draw in a loop: what makes many, its operands, the numbers from one step to the next, and the loop over lanes that it stands in."""

    expr: Apply
    routine: str
    operands: tuple[Index, ...]
    stride: int
    lanes: For | None
    room: int  # lanes of a tile


@dataclass
class _Ahead:
    target: Target
    names: Names
    rooms: Mapping[str, int]  # the length of arrays that have a fixed one
    memory: Mapping[str, str]  # of views
    taken: list[Stmt] = field(default_factory=list)
    operands: set[str] = field(default_factory=set)  # locals that draws read, perhaps nothing else

    def each(self, stmts: Sequence[Stmt], pieces: Mapping[Index, int]) -> list[Stmt]:
        """`pieces`: how many passes a loop has at most, for stops that say so."""
        found: list[Stmt] = []
        for stmt in stmts:
            if isinstance(stmt, If):
                found.append(If(stmt.condition, self.each(stmt.then, pieces), self.each(stmt.otherwise, pieces)))
            elif isinstance(stmt, For):
                draws = list(self._draws(stmt))
                found += self._split(stmt, draws, pieces) if draws else [self._inside(stmt, pieces)]
            else:
                found.append(stmt)
        return found

    def _inside(self, loop: For, pieces: Mapping[Index, int]) -> For:
        return replace(loop, body=self.each(loop.body, {**pieces, **_piece(loop)}))

    def _split(self, loop: For, draws: Sequence[_Draw], pieces: Mapping[Index, int]) -> list[Stmt]:
        """The loop with its draws made ahead: for all passes where these are few, else piece by piece."""
        most = loop.stop if isinstance(loop.stop, int) else pieces.get(loop.stop)
        has_lanes = any(draw.lanes for draw in draws)
        if loop.start == 0 and most is not None and most <= 4 * self.target.drawn_ahead and not has_lanes:
            made, places = self._made(draws, Name("int64", loop.name), 0, loop.stop, most)
            return [*made, self._inside(_with_numbers(loop, places), pieces)]
        first, stop = (Name("int64", self._fresh(f"{loop.name}{k}")) for k in (0, 1))
        made, places = self._made(draws, Name("int64", loop.name), first, stop, self.target.drawn_ahead)
        kind = "time" if loop.kind == "time" else "sequential"
        inner = replace(self._inside(_with_numbers(loop, places), pieces), start=first, stop=stop, kind=kind)
        body = [Let(stop.name, least(add(first, self.target.drawn_ahead), loop.stop)), *made, inner]
        pieces_of_loop = For(first.name, loop.start, loop.stop, body, self.target.drawn_ahead, loop.kind)
        if not _may_end(inner.body):
            return [pieces_of_loop]
        ended = self._fresh("ended")
        inner.body = _telling(inner.body, Let(ended, Literal("bool", True), is_new=False))
        body.append(If(Name("bool", ended), [Break()]))
        return [Let(ended, Literal("bool", False)), pieces_of_loop]

    def _made(self, draws: Sequence[_Draw], t: Name, first: Index, stop: Index, steps: int) -> tuple[list[Stmt], Places]:
        """The calls that draw for the steps from `first` to `stop`, and where each number then is."""
        stmts: list[Stmt] = []
        places: Places = {}
        for draw in draws:
            dtype = draw.expr.dtype
            hint = "normal" if dtype == "float64" else "word"
            array, part = (self._fresh(f"{hint}_{word}") for word in ("ahead", "part"))
            count = sub(stop, first)
            lets, names = self._operands(draw, t, first)
            call = Call(draw.routine, (part, *names, repr(draw.stride)))
            if draw.lanes is None:
                self.taken.append(Alloc(array, (steps,), dtype))
                places[id(draw.lanes), draw.expr] = Load(dtype, array, (sub(t, first),))
                stmts += [*lets, Alias(part, Template(f"{array}[:{{0}}]"), (count,)), call]
            else:
                lane = Name("int64", draw.lanes.name)
                self.taken.append(Alloc(array, (steps, draw.room), dtype))
                places[id(draw.lanes), draw.expr] = Load(dtype, array, (sub(t, first), lane))
                body: list[Stmt] = [*lets, Alias(part, Template(f"{array}[:{{0}}, {{1}}]"), (count, lane)), call]
                stmts.append(replace(draw.lanes, body=body, kind="sequential"))
        return stmts, places

    def _operands(self, draw: _Draw, t: Name, first: Index) -> tuple[list[Stmt], list[str]]:
        """A draw's operands for a routine, with what computes them."""
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
        """The draws of a loop's passes, and of loops over the lanes of a tile in it, that may be made before."""
        passes = sub(loop.stop, loop.start)
        if loop.step != 1 or (isinstance(passes, int) and passes < self.target.few_draws):
            return
        changed = self._changed(loop)
        yield from self._drawn_in(loop.body, loop, None, changed)
        for stmt in loop.body:
            if isinstance(stmt, For) and stmt.step == 1 and not _reads((stmt.start, stmt.stop), changed | {loop.name}):
                yield from self._drawn_in(stmt.body, loop, stmt, changed - {stmt.name})

    def _drawn_in(self, body: Sequence[Stmt], loop: For, lanes: For | None, changed: set[str]) -> Iterator[_Draw]:
        again = {stmt.name for stmt in walk(loop.body) if isinstance(stmt, Let) and not stmt.is_new}
        lets = {stmt.name: stmt.value for stmt in body if isinstance(stmt, Let) and stmt.name not in again}
        for expr, (routine, args) in dict(_found(body)).items():
            operands = tuple(_expanded(arg, lets) for arg in args)
            stride = _slope(operands[-1], Name("int64", loop.name))
            room = 0 if lanes is None else self._room(operands, lanes)
            if stride is None or stride < 1 or _reads(operands, changed) or _reads(operands[:-1], {loop.name}):
                continue
            if lanes is None or room:
                self.operands |= lets.keys()
                yield _Draw(expr, routine, operands, stride, lanes, room)

    def _changed(self, loop: For) -> set[str]:
        """All that the passes of a loop give a value."""
        every = list(walk(loop.body))
        found = {stmt.name for stmt in every if isinstance(stmt, Let | For | Alias | Alloc)}
        found |= {stmt.array for stmt in every if isinstance(stmt, Store)}
        found |= {text for stmt in every if isinstance(stmt, Call) for text in stmt.args}
        touched = {self.memory[name] for name in found if name in self.memory}
        return found | {name for name, memory in self.memory.items() if memory in touched}

    def _room(self, operands: Iterable[Index], lanes: For) -> int:
        """How many lanes a tile has at most: the operands are in rows of that length. 0 where they are not."""
        lane = (Name("int64", lanes.name),)
        rows = (load.array for expr in operands for load in loads_in(expr) if load.index == lane)
        tile = self.target.tile
        return next((self.rooms[array] for array in rows if self.rooms.get(array, tile + 1) <= tile), 0)


def _piece(loop: For) -> dict[Index, int]:
    """Where a loop takes some passes at a time: the number of these, with the most that it can be."""
    found: dict[Index, int] = {}
    first = Name("int64", loop.name)
    for stmt in loop.body:
        if isinstance(stmt, Let) and isinstance(stmt.value, Apply):
            end = stmt.value
            if end.template == _LEAST and end.args[0] == add(first, loop.step):
                found[sub(Name("int64", stmt.name), first)] = loop.step
    return found


def _found(body: Sequence[Stmt]) -> Iterator[tuple[Apply, tuple[str, tuple[Index, ...]]]]:
    """The draws among the expressions of scalars and stores, each with its routine and its operands."""
    stack = [part for stmt in body if isinstance(stmt, Let | Store) for part in parts_of(stmt)]
    while stack:
        expr = stack.pop()
        if isinstance(expr, Apply):
            drawn = _drawn(expr)
            if drawn is not None:
                yield expr, drawn
            else:
                stack += expr.args


def _drawn(expr: Apply) -> tuple[str, tuple[Index, ...]] | None:
    """The routine that makes many of a draw, or of what is made of its word, and the operands of the draw."""
    name, word = _called(expr), expr.args[0] if expr.args else None
    if name in OF_WORDS and isinstance(word, Apply) and _called(word) == "random_bits":
        return OF_WORDS[name], word.args
    return (ROUTINES[name], expr.args) if name in ROUTINES else None


def _called(expr: Apply) -> str:
    return expr.template.text.partition("(")[0]


def _expanded(expr: Index, lets: Mapping[str, Index]) -> Index:
    """An expression with the locals of a pass written out."""
    if isinstance(expr, Name) and expr.name in lets:
        return _expanded(lets[expr.name], lets)
    return replace(expr, args=tuple(_expanded(arg, lets) for arg in expr.args)) if isinstance(expr, Apply) else expr


def _reads(exprs: Iterable[Index], names: set[str]) -> bool:
    return any(name in names for expr in exprs for name, _ in names_in(expr))


def _slope(expr: Index, t: Name) -> int | None:
    """By how much a whole number grows with each step; None where that is not known."""
    known = slope_and_rest(expr, t)
    if known is not None:
        return known[0]
    if not isinstance(expr, Apply):
        return None
    text, parts = expr.template.text, [_slope(arg, t) for arg in expr.args]
    if _CAST.fullmatch(text):
        return parts[0]
    if text not in (_SUM, _DIFFERENCE, _PRODUCT) or expr.dtype != "int64":
        return None
    (a, b), factor = parts, expr.args[1]
    if a is None or b is None:
        return None
    if text == _PRODUCT:
        return a * factor if isinstance(factor, int) else None
    return a + b if text == _SUM else a - b


# statements -----------------------------------------------------------------------------------------------------------


def _at(expr: Index, t: Name, first: Index) -> Index:
    """An expression of step t at step `first`."""
    if expr == t:
        return first
    if isinstance(expr, Load):
        return replace(expr, index=tuple(_at(part, t, first) for part in expr.index))
    if isinstance(expr, Apply):
        args = tuple(_at(arg, t, first) for arg in expr.args)
        return add(*args) if expr.template.text == _SUM and expr.dtype == "int64" else replace(expr, args=args)
    return expr


def _may_end(stmts: Sequence[Stmt]) -> bool:
    """May a pass end the loop whose body this is?"""
    return any(isinstance(stmt, Break) or (isinstance(stmt, If) and _may_end([*stmt.then, *stmt.otherwise])) for stmt in stmts)


def _telling(stmts: Sequence[Stmt], tell: Stmt) -> list[Stmt]:
    """A loop's body with `tell` wherever it ends the loop."""
    found: list[Stmt] = []
    for stmt in stmts:
        if isinstance(stmt, If):
            found.append(If(stmt.condition, _telling(stmt.then, tell), _telling(stmt.otherwise, tell)))
        else:
            found += [tell, stmt] if isinstance(stmt, Break) else [stmt]
    return found


def _without(stmts: Sequence[Stmt], names: set[str]) -> list[Stmt]:
    """Statements without the locals `names`, which nothing reads."""
    found: list[Stmt] = []
    for stmt in stmts:
        if isinstance(stmt, For):
            found.append(replace(stmt, body=_without(stmt.body, names)))
        elif isinstance(stmt, If):
            found.append(If(stmt.condition, _without(stmt.then, names), _without(stmt.otherwise, names)))
        elif not (isinstance(stmt, Let) and stmt.name in names):
            found.append(stmt)
    return found


def _with_numbers(loop: For, places: Places, lanes: For | None = None) -> For:
    """The loop with its draws read from where they are."""

    def read(expr: Index) -> Index:
        if isinstance(expr, Apply):
            return places.get((id(lanes), expr)) or replace(expr, args=tuple(map(read, expr.args)))
        return replace(expr, index=tuple(map(read, expr.index))) if isinstance(expr, Load) else expr

    body: list[Stmt] = []
    for stmt in loop.body:
        if isinstance(stmt, Let):
            body.append(replace(stmt, value=read(stmt.value)))
        elif isinstance(stmt, Store):
            body.append(replace(stmt, index=tuple(map(read, stmt.index)), value=read(stmt.value)))
        else:
            body.append(_with_numbers(stmt, places, stmt) if isinstance(stmt, For) and lanes is None else stmt)
    return replace(loop, body=body)
