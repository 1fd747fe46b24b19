"""The sweeps over chunks that replace a loop over time, and the check that the chunks meet (see `prefix.py`).

Every row is computed from the row before by a step of the loop as it stands. Only the states at the start of a chunk are computed in
another way, floats in about twice their precision (`linear_step.Twice`). The error of that is not predicted but checked. Integers and
extremes must be equal where chunks meet, and zeros must have one sign, because quotients show it. For floats each sweep computes three
things of its chunk:

- the distance of each step of the loop from the exact step: at most a few roundings, unless the step rounds on purpose;
- these distances added up and carried through the steps: the loop's end plus this is the exact end, and must be the next start;
- the sum of the sizes of all terms: it bounds what the chunk's roundings can change.

The loop as it stands would differ from the chunks by the distances at their ends, carried through the chunks that follow. If that exceeds
1024 times what roundings can change there, the loop as it stands runs in one thread. So it does if anything overflows or is lost.

Chunks depend on the number of steps only, so results have the same bits at every run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain

import numpy as np

from ...ir.loops import (
    IN_ORDER,
    MAX_OR_NAN,
    PRODUCT,
    ROUNDED_DIFFERENCE,
    ROUNDED_SUM,
    Alloc,
    Apply,
    Expr,
    For,
    If,
    Index,
    Let,
    Literal,
    Load,
    Name,
    Stmt,
    Store,
    Template,
    add,
    both,
    chosen,
    compare,
    either,
    floor_div,
    least,
    mapped,
    mul,
    names_in,
    sub,
    with_values,
)
from ...ir.names import Names
from .linear_step import MAGNITUDE, Code, LinearStep, Magnitudes, Number, Plain, Shape, Twice, shape_of

SHORTEST = 64
"""The fewest steps of a chunk. Long loops have as many chunks as steps in one: the serial sweep over chunks is then as short as a chunk."""

_CHUNK = Template("max({1}, int({0} ** 0.5))")
_SIGN = Template("math.copysign(1.0, {0})")

_ROUNDINGS = 4.0
"""The error allowed to a step, in roundings of what it adds up: 1 for a product and a sum, half for a start, the rest for longer steps."""

_GROWTH = 1024.0
"""The growth allowed to an error, in multiples of what roundings can change.

The loop's own roundings grow as much, but some loops make none: x = 2 * x - 1 from 1.
"""


@dataclass(frozen=True)
class Extreme:
    """An extreme of the state and `other`, with the order of its two operands."""

    template: Template
    other: Expr
    is_state_first: bool


class Sweeps(ABC):
    """The loops over chunks that replace one loop. Here the states must be equal where chunks meet."""

    def __init__(self, names: Names, loop: For, states: Sequence[Let], passes: Index) -> None:
        self.names, self.loop, self.passes = names, loop, passes
        assert isinstance(states[0].value, Expr)
        self.dtype = states[0].value.dtype
        self.states = [Name(self.dtype, state.name) for state in states]
        self.length, self.n_chunks, self.chunk = (Name("int64", names.fresh(hint)) for hint in ("chunk_steps", "n_chunks", "chunk"))
        self.starts, self.ends, self.agrees = (names.fresh(hint) for hint in ("starts", "ends", "agrees"))
        self.offsets = names.fresh("offsets")

    def stmts(self) -> list[Stmt]:
        """All statements that replace the loop, in order."""
        return [
            Let(self.length.name, Apply("int64", _CHUNK, (self.passes, SHORTEST))),
            Let(self.n_chunks.name, floor_div(sub(add(self.passes, self.length), 1), self.length)),
            *(Alloc(array, (self.n_chunks, numbers), self.dtype) for array, numbers in self.arrays().items() if numbers),
            Alloc(self.starts, (add(self.n_chunks, 1), self.n_starts()), self.dtype),
            Alloc(self.agrees, (self.n_chunks,), "bool"),
            self.over_chunks(self.composed(), "threads"),
            *self.joined(),
            self.over_chunks(self.swept(), "threads"),
            *self.checked(),
        ]

    def arrays(self) -> dict[str, int]:
        """How many numbers each array holds per chunk."""
        return {self.offsets: len(self.states), self.ends: len(self.states)}

    def n_starts(self) -> int:
        """How many numbers a start has."""
        return len(self.states)

    @abstractmethod
    def composed(self) -> list[Stmt]:
        """Computes what a chunk makes of any state."""

    @abstractmethod
    def joined(self) -> list[Stmt]:
        """Computes the states at the start of each chunk and after the last, one chunk after the other."""

    def swept(self) -> list[Stmt]:
        """Runs the loop as it stands in a chunk, and stores whether its end equals the next chunk's start."""
        own = {state.name: self.fresh(state.name) for state in self.states}
        before: list[Stmt] = [Let(own[state.name].name, self.at(self.starts, k)) for k, state in enumerate(self.states)]
        steps = self.steps(with_own_locals(self.loop.body, self.names, {name: local.name for name, local in own.items()}))
        ends = [own[state.name] for state in self.states]
        return [*before, steps, *self.kept(self.ends, ends), *self._compared(ends)]

    def _compared(self, ends: Sequence[Expr]) -> list[Stmt]:
        starts = [self.fresh("start") for _ in ends]
        read = [Let(start.name, self.next_start(k)) for k, start in enumerate(starts)]
        return [*read, Store(self.agrees, (self.chunk,), both(*(self.are_same(*pair) for pair in zip(starts, ends, strict=True))))]

    def are_same(self, a: Expr, b: Expr) -> Expr:
        """True if two numbers are equal, zeros also in sign, or both are NaN."""
        equal = compare("==", a, b)
        if not self.dtype.startswith("float"):
            return equal
        signs = compare("==", *(Apply("float64", _SIGN, (one,)) for one in (a, b)))
        return either(both(equal, signs), both(compare("!=", a, a), compare("!=", b, b)))

    def checked(self) -> list[Stmt]:
        """Assigns the last states if all chunks agree; else runs the loop as it stands."""
        is_right = Name("bool", self.names.fresh("is_right"))
        agrees = both(is_right, Load("bool", self.agrees, (self.chunk,)))
        before, body = self.reached(is_right)
        last = sub(self.n_chunks, 1)
        ends: list[Stmt] = [Let(state.name, Load(self.dtype, self.ends, (last, k)), is_new=False) for k, state in enumerate(self.states)]
        return [
            Let(is_right.name, Literal("bool", True)),
            *before,
            self.over_chunks([Let(is_right.name, agrees, is_new=False), *body]),
            If(is_right, [If(compare(">", self.n_chunks, 0), ends)], [self.loop]),
        ]

    def reached(self, is_right: Name) -> tuple[list[Stmt], list[Stmt]]:
        """Further checks of the chunks: statements before the loop over them, and in it."""
        return [], []

    # parts of these ---------------------------------------------------------------------------------------------------

    def over_chunks(self, body: Sequence[Stmt], kind: str = "sequential") -> For:
        return For(self.chunk.name, 0, self.n_chunks, list(body), kind=kind)

    def steps(self, body: Sequence[Stmt]) -> For:
        """A loop over the steps of a chunk."""
        start = add(self.loop.start, mul(self.chunk, self.length))
        return replace(self.loop, start=start, stop=least(add(start, self.length), self.loop.stop), body=list(body), kind="sequential")

    def needed(self, exprs: Iterable[Index]) -> list[Stmt]:
        """The locals of a step that expressions read."""
        reads = {name for expr in exprs for name, _ in names_in(expr)}
        kept: list[Stmt] = []
        for stmt in reversed(self.loop.body):
            if isinstance(stmt, Let) and stmt.is_new and stmt.name in reads:
                reads |= {name for name, _ in names_in(stmt.value)}
                kept.append(stmt)
        return kept[::-1]

    def fresh(self, hint: str) -> Name:
        return Name(self.dtype, self.names.fresh(hint))

    def at(self, array: str, k: int) -> Load:
        return Load(self.dtype, array, (self.chunk, k))

    def next_start(self, k: int) -> Load:
        return Load(self.dtype, self.starts, (add(self.chunk, 1), k))

    def kept(self, array: str, values: Iterable[Expr]) -> list[Stmt]:
        return [Store(array, (self.chunk, k), value) for k, value in enumerate(values)]


class ExtremeSweeps(Sweeps):
    """The sweeps of one state that is the extreme of itself and another number."""

    def __init__(self, names: Names, loop: For, state: Let, form: Extreme, passes: Index) -> None:
        super().__init__(names, loop, [state], passes)
        self.form = form

    def composed(self) -> list[Stmt]:
        """The extreme of a chunk, started from the loop's first state: that changes no result, and needs no neutral number."""
        offset = self.fresh("offset")
        body = [*self.needed([self.form.other]), Let(offset.name, self._of_both(offset, self.form.other), is_new=False)]
        return [Let(offset.name, self.states[0]), self.steps(with_own_locals(body, self.names)), *self.kept(self.offsets, [offset])]

    def joined(self) -> list[Stmt]:
        start = self.fresh("start")
        moved = Let(start.name, self._of_both(start, self.at(self.offsets, 0)), is_new=False)
        loop = self.over_chunks([*self.kept(self.starts, [start]), moved])
        return [Let(start.name, self.states[0]), loop, Store(self.starts, (self.n_chunks, 0), start)]

    def _of_both(self, state: Expr, other: Expr) -> Expr:
        return Apply(self.dtype, self.form.template, (state, other) if self.form.is_state_first else (other, state))


class LinearSweeps(Sweeps):
    """The sweeps of states that a step is linear in; integers wrap modulo a power of 2."""

    width = 1  # locals of a number

    def __init__(self, names: Names, loop: For, states: Sequence[Let], passes: Index) -> None:
        super().__init__(names, loop, states, passes)
        self.step = LinearStep(loop.body, [state.name for state in states])
        self.shape: Shape = shape_of(self.step)
        self.factors = names.fresh("factors")

    def arithmetic(self, code: Code, has_offsets: bool = False) -> Plain | Twice:
        """The arithmetic of what chunks make of states."""
        return Plain(code, has_offsets)

    def arrays(self) -> dict[str, int]:
        numbers = {self.factors: self.shape.entries, self.offsets: self.shape.offsets}
        return {**{array: len(places) * self.width for array, places in numbers.items()}, self.ends: len(self.states)}

    def n_starts(self) -> int:
        return len(self.states) * self.width

    def composed(self) -> list[Stmt]:
        code = Code(self.names, self.dtype)
        named = self.coefficients(code)
        factors = {place: self.number("factor") for place in self.shape.entries}
        offsets = {row: self.number("offset") for row in self.shape.offsets}
        moved: list[Stmt] = []
        for column, rows in self.shape.columns.items():
            before = self._before(code, {row: factors[row, column] for row in rows})
            after = self.step.after(before, self.arithmetic(code), named)
            moved += [stmt for row in rows for stmt in self._set(factors[row, column], after[row])]
        after = self.step.after(self._before(code, offsets), self.arithmetic(code, has_offsets=True), named)
        moved += [stmt for row, offset in offsets.items() for stmt in self._set(offset, after[row])]
        first, then, last = self.watched(factors)
        return [
            *(stmt for (row, column), factor in factors.items() for stmt in self._set(factor, (code.number(row == column),), is_new=True)),
            *(stmt for offset in offsets.values() for stmt in self._set(offset, None, is_new=True)),
            *first,
            self.steps(with_own_locals([*code.stmts, *moved, *then], self.names, made_by=self.loop.body)),
            *self.kept(self.factors, chain.from_iterable(factors.values())),
            *self.kept(self.offsets, chain.from_iterable(offsets.values())),
            *last,
        ]

    def watched(self, factors: Mapping[tuple[int, int], Number]) -> tuple[list[Stmt], list[Stmt], list[Stmt]]:
        """Statements that watch the numbers of a chunk's matrix: before, in and after its steps."""
        return [], [], []

    def coefficients(self, code: Code) -> dict[Expr, Expr]:
        """The locals that hold what steps multiply by and add."""
        values = dict.fromkeys(self.step.coefficients())
        code.stmts += self.needed(values)
        return {value: value if isinstance(value, Name | Literal) else code.let("coefficient", value) for value in values}

    def joined(self) -> list[Stmt]:
        code = Code(self.names, self.dtype)
        starts = [self.number("start") for _ in self.states]
        code.stmts += self.kept(self.starts, chain.from_iterable(starts))
        moved = self._applied(code, starts)
        return [
            *(stmt for start, state in zip(starts, self.states, strict=True) for stmt in self._set(start, (state,), is_new=True)),
            self.over_chunks([*code.stmts, *(stmt for pair in zip(starts, moved, strict=True) for stmt in self._set(*pair))]),
            *(Store(self.starts, (self.n_chunks, k), part) for k, part in enumerate(chain.from_iterable(starts))),
        ]

    def _applied(self, code: Code, states: Sequence[Number]) -> list[Number]:
        """The states after a chunk, from those before it."""
        arithmetic = self.arithmetic(code)
        terms: list[list[Number]] = [[] if k in self.shape.columns else [state] for k, state in enumerate(states)]
        for k, (row, column) in enumerate(self.shape.entries):
            terms[row].append(arithmetic.product(self.parts(self.factors, k), states[column]))
        for k, row in enumerate(self.shape.offsets):
            terms[row].append(self.parts(self.offsets, k))
        totals = [reduce(arithmetic.plus, of_row) for of_row in terms]
        return [self.normal(code, arithmetic.held("total", total)) for total in totals]

    def normal(self, code: Code, number: Number) -> Number:
        """The number with a first part that is the float nearest to its whole."""
        return number

    # parts of these ---------------------------------------------------------------------------------------------------

    def number(self, hint: str) -> tuple[Name, ...]:
        """Locals for a number."""
        return tuple(self.fresh(f"{hint}_rest" if part else hint) for part in range(self.width))

    def parts(self, array: str, k: int) -> Number:
        """The k-th number that an array has of a chunk."""
        return tuple(self.at(array, k * self.width + part) for part in range(self.width))

    def _before(self, code: Code, numbers: Mapping[int, Number]) -> dict[str, Number | None]:
        """Copies of the numbers before a step, by state: the step then assigns their locals."""
        return {
            state.name: tuple(code.let("before", part) for part in numbers[k]) if k in numbers else None
            for k, state in enumerate(self.states)
        }

    def _set(self, locals_: Number, value: Number | None, is_new: bool = False) -> list[Stmt]:
        """Assigns a value to a number's locals; None is 0."""
        zero = Literal(self.dtype, 0.0 if self.dtype.startswith("float") else 0)
        parts = [*(value or ()), zero, zero][: len(locals_)]
        return [Let(local.name, part, is_new) for local, part in zip(locals_, parts, strict=True) if isinstance(local, Name)]


class RoundedSweeps(LinearSweeps):
    """The sweeps of floats: starts in twice the precision, and ends compared up to roundings."""

    width = 2

    def __init__(self, names: Names, loop: For, states: Sequence[Let], passes: Index) -> None:
        super().__init__(names, loop, states, passes)
        self.growths, self.sizes = names.fresh("growths"), names.fresh("sizes")
        self.code = Code(names, self.dtype)  # operations alone
        limits = np.finfo(self.dtype)
        self.smallest, self.greatest = (self.code.number(float(x)) for x in (limits.tiny, limits.max))
        self.rounding = self.code.number(_ROUNDINGS * float(limits.eps))

    def arithmetic(self, code: Code, has_offsets: bool = False) -> Plain | Twice:
        return Twice(code, has_offsets)

    def arrays(self) -> dict[str, int]:
        return {**super().arrays(), self.growths: len(self.shape.entries), self.sizes: len(self.states)}

    def watched(self, factors: Mapping[tuple[int, int], Number]) -> tuple[list[Stmt], list[Stmt], list[Stmt]]:
        """Statements that keep the greatest magnitude of each number of the matrix."""
        growths = {place: self.fresh("growth") for place in factors}
        first: list[Stmt] = [Let(growth.name, self.code.number(row == column)) for (row, column), growth in growths.items()]
        then: list[Stmt] = [
            Let(growth.name, self._op(MAX_OR_NAN, self._size(factors[place][0]), growth), is_new=False) for place, growth in growths.items()
        ]
        return first, then, self.kept(self.growths, growths.values())

    def normal(self, code: Code, number: Number) -> Number:
        total, *rests = number
        if not rests:
            return number
        is_whole = compare("==", rests[0], code.number(0))
        whole = code.let("whole", chosen(is_whole, total, self._op(ROUNDED_SUM, total, *rests)))  # -0.0 + 0.0 is 0.0
        return whole, self._op(ROUNDED_DIFFERENCE, *rests, self._op(ROUNDED_DIFFERENCE, whole, total))

    def swept(self) -> list[Stmt]:
        """Runs the loop as it stands in a chunk, and checks each step's rounding and that the end meets the next chunk's start."""
        ends = [self.fresh(state.name) for state in self.states]
        lost, sizes = ([self.fresh(hint) for _ in self.states] for hint in ("lost", "size"))
        is_right = Name("bool", self.names.fresh("is_close"))
        before: list[Stmt] = [Let(is_right.name, Literal("bool", True))]
        for k, parts in enumerate(zip(ends, lost, sizes, strict=True)):
            values = (*self.parts(self.starts, k), self.code.number(0))
            before += [Let(part.name, value) for part, value in zip(parts, values, strict=True)]
        code = Code(self.names, self.dtype)
        named = self.coefficients(code)
        states = {state.name: code.let("before", state) for state in self.states}
        of_lost = {state.name: (code.let("before", one),) for state, one in zip(self.states, lost, strict=True)}
        of_sizes = {name: (code.let("magnitude", self._size(state)),) for name, state in states.items()}
        exact = self.step.after({name: (state,) for name, state in states.items()}, Twice(code, has_offsets=True), named)
        carried = self.step.after(of_lost, Plain(code), named)
        scales = self.step.after(of_sizes, Magnitudes(code), named)
        known = {stmt.name for stmt in code.stmts if isinstance(stmt, Let)}
        body = [*code.stmts, *(stmt for stmt in self.loop.body if not isinstance(stmt, Let) or stmt.name not in known)]
        for k, state in enumerate(self.states):
            body += self._judged(state, exact[k], carried[k], scales[k], lost[k], sizes[k], is_right)
        own = {state.name: end.name for state, end in zip(self.states, ends, strict=True)}
        return [
            *before,
            self.steps(with_own_locals(body, self.names, own, made_by=self.loop.body)),
            *self.kept(self.ends, ends),
            *self.kept(self.sizes, sizes),
            *self._met(ends, lost, sizes, is_right),
        ]

    def _judged(
        self, state: Name, exact: Number | None, carried: Number | None, scale: Number | None, lost: Name, size: Name, is_right: Name
    ) -> list[Stmt]:
        """After a step of the loop: judges its distance from the exact step, and adds it to what is lost so far."""
        total, *rests = exact or (self.code.number(0),)
        rounding = Name(self.dtype, self.names.fresh("rounding"))
        difference = self._total(self._op(ROUNDED_DIFFERENCE, total, state), *rests)
        terms = [self._size(state), self.smallest, *(scale or ())]  # roundings of subnormals do not shrink with the number
        scale_of_step = Name(self.dtype, self.names.fresh("scale"))
        within = either(compare("<=", self._size(rounding), self._limit(scale_of_step)), compare("!=", rounding, rounding))
        return [
            Let(rounding.name, difference),
            Let(scale_of_step.name, self._total(*terms)),
            Let(size.name, self._plus(size, scale_of_step), is_new=False),
            Let(lost.name, self._total(rounding, *(carried or ())), is_new=False),
            Let(is_right.name, both(is_right, within), is_new=False),
        ]

    def _met(self, ends: Sequence[Name], lost: Sequence[Name], sizes: Sequence[Name], is_right: Name) -> list[Stmt]:
        """Stores whether the exact ends of a chunk are the starts of the next one, up to roundings."""
        stmts: list[Stmt] = []
        agree: list[Expr] = [is_right]
        for k, (end, rest, size) in enumerate(zip(ends, lost, sizes, strict=True)):
            start, start_rest, apart = (self.fresh(hint) for hint in ("start", "start_rest", "apart"))
            is_same, is_near = (Name("bool", self.names.fresh(hint)) for hint in ("is_same", "is_near"))
            places = (self.next_start(k * self.width + part) for part in range(self.width))
            stmts += [Let(local.name, place) for local, place in zip((start, start_rest), places, strict=True)]
            between = self._plus(self._op(ROUNDED_DIFFERENCE, end, start), self._op(ROUNDED_DIFFERENCE, rest, start_rest))
            sizes_hold = both(compare("<=", self._size(apart), self._limit(size)), compare("<=", size, self.greatest))
            within = both(compare("!=", start, end), sizes_hold)
            stmts += [Let(apart.name, between), Let(is_same.name, self.are_same(start, end)), Let(is_near.name, within)]
            agree.append(either(is_same, is_near))
        return [*stmts, Store(self.agrees, (self.chunk,), both(*agree))]

    def _limit(self, size: Expr) -> Expr:
        """How much roundings can change terms of this total size."""
        return self._times(self.rounding, size)

    def reached(self, is_right: Name) -> tuple[list[Stmt], list[Stmt]]:
        """Checks in each chunk how far, at most, the loop as it stands would be from it."""
        off = [self.fresh("off") for _ in self.states]
        code = Code(self.names, self.dtype)
        before = [code.let("before", one) for one in off]
        terms: list[list[Expr]] = [[] if k in self.shape.columns else [self._size(one)] for k, one in enumerate(before)]
        moved: list[list[Expr]] = [[] if k in self.shape.columns else [one] for k, one in enumerate(before)]
        for k, (row, column) in enumerate(self.shape.entries):
            terms[row].append(self._times(self.at(self.growths, k), self._size(before[column])))
            moved[row].append(self._times(self.at(self.factors, k * self.width), before[column]))
        within: list[Stmt] = []
        for k, (of_row, one) in enumerate(zip(terms, off, strict=True)):
            limit = self._times(self.code.number(_GROWTH), self._limit(self.at(self.sizes, k)))
            reach = code.let("reach", self._total(*of_row))
            is_near = either(compare("<=", reach, limit), compare("!=", reach, reach))
            within.append(Let(is_right.name, both(is_right, is_near), is_new=False))
            missing = self._op(ROUNDED_DIFFERENCE, self.at(self.ends, k), self.next_start(k * self.width))
            code.stmts.append(Let(one.name, self._total(missing, *moved[k]), is_new=False))
        return [Let(one.name, self.code.number(0)) for one in off], [*code.stmts, *within]

    def _op(self, template: Template, *args: Index) -> Apply:
        return self.code.op(template, *args)

    def _plus(self, a: Expr, b: Expr) -> Expr:
        return self._op(IN_ORDER, a, b)

    def _total(self, *terms: Expr) -> Expr:
        return reduce(self._plus, terms)

    def _times(self, a: Expr, b: Expr) -> Expr:
        return self._op(PRODUCT, a, b)

    def _size(self, value: Expr) -> Expr:
        return self._op(MAGNITUDE, value)


def with_own_locals(
    stmts: Sequence[Stmt], names: Names, others: Mapping[str, str] | None = None, made_by: Sequence[Stmt] | None = None
) -> list[Stmt]:
    """The statements with fresh names for the locals that they (or the statements `made_by`) define, and with the names in `others`."""
    made = [stmt.name for stmt in (stmts if made_by is None else made_by) if isinstance(stmt, Let) and stmt.is_new]
    own = {name: names.fresh(name) for name in made} | dict(others or {})

    def other(expr: Expr) -> Index | None:
        return Name(expr.dtype, own[expr.name]) if isinstance(expr, Name) and expr.name in own else None

    changed = [with_values(stmt, lambda expr: mapped(expr, other)) for stmt in stmts]
    return [replace(stmt, name=own.get(stmt.name, stmt.name)) if isinstance(stmt, Let) else stmt for stmt in changed]
