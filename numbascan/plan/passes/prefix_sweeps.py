"""What a loop over time in chunks of steps is made of: sweeps over the chunks, and the check that they meet (see `prefix.py`).

Every row is a step of the loop from the row before it; the state at the start of a chunk alone is computed in another way, with floats in
about twice their precision (compensated sums and products: Ogita, Rump and Oishi, SIAM J. Sci. Comput. 26, 2005; each operation is rounded
by itself, where a GPU would join products to sums). It is compared with the end of the chunk before, once that has been reached, so
nothing need be known of the numbers in advance: what a composition overflows or loses shows there, and so does a step that rounds its
state on purpose. Integers and extremes must be equal. Floats may differ by what the roundings of the loop in the chunk can have changed:
machine epsilon times the sum of its states, each as large as the factors behind it make it by the end. What such a difference becomes
later must be at most 1024 times as large; a product alone keeps its relative size.

Chunks depend on the number of steps alone, so results are the same bits at every run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from ...ir.loops import (
    DIFFERENCE,
    IN_ORDER,
    MAX_OR_NAN,
    PRODUCT,
    ROUNDED_DIFFERENCE,
    ROUNDED_PRODUCT,
    ROUNDED_SUM,
    UNARY,
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

SHORTEST = 64
"""Steps of a chunk. Longer ones are as many as there are chunks: what one thread does alone is then as short as what each does."""

NEGATIVE = Template("-{0}", UNARY, (UNARY,))
_CHUNK = Template("max({1}, int({0} ** 0.5))")
_MAGNITUDE = Template("abs({0})")
_PRODUCT_AND_SUM = Template("math.fma({0}, {1}, {2})")
"""Rounded once: less a product, what its rounding has taken off."""

_ROUNDINGS = 4.0
"""How often the roundings of the loop: 1 for a product and a sum in each step, half for the two starts; some steps have more operations."""

_GROWTH = 1024.0
"""How often a difference at the start of a chunk, later. Roundings of the loop grow as much, but some make none: x = 2 * x - 1 from 1."""


@dataclass(frozen=True)
class Linear:
    """factor * (state + inner) + offset, of the state before a step; None: 1 and 0."""

    inner: Expr | None = None
    factor: Expr | None = None
    offset: Expr | None = None


@dataclass(frozen=True)
class Extreme:
    """An extreme of the state and `other`, or of `other` and the state."""

    template: Template
    other: Expr
    is_state_first: bool


class Sweeps:
    """The loops over chunks in the place of one loop."""

    def __init__(self, names: Names, loop: For, state: Let, form: Linear | Extreme, passes: Index) -> None:
        self.names, self.loop, self.state, self.form, self.passes = names, loop, state, form, passes
        assert isinstance(state.value, Expr)
        self.dtype = state.value.dtype
        of_step = form if isinstance(form, Linear) else Linear(offset=form.other)
        self.inner, self.factor, self.offset = of_step.inner, of_step.factor, of_step.offset
        has_offset = self.inner is not None or self.offset is not None
        self.is_rounded = isinstance(form, Linear) and self.dtype.startswith("float")
        self.may_grow = self.is_rounded and self.factor is not None and has_offset
        self.length, self.n_chunks, self.chunk = (Name("int64", names.fresh(hint)) for hint in ("chunk_steps", "n_chunks", "chunk"))
        self.starts, self.agrees = names.fresh("starts"), names.fresh("agrees")
        self.growths, self.ends = names.fresh("growths"), names.fresh("ends")
        rests = ("", "_rests") if self.is_rounded else ("",)
        self.factors = [names.fresh(f"factors{rest}") for rest in rests] if self.factor is not None else []
        self.offsets = [names.fresh(f"offsets{rest}") for rest in rests] if has_offset else []

    def stmts(self) -> list[Stmt]:
        """All of them, in their order."""
        arrays = [*self.factors, *self.offsets, *([self.growths] if self.may_grow else []), self.ends]
        return [
            Let(self.length.name, Apply("int64", _CHUNK, (self.passes, SHORTEST))),
            Let(self.n_chunks.name, floor_div(sub(add(self.passes, self.length), 1), self.length)),
            *(Alloc(array, (self.n_chunks,), self.dtype) for array in arrays),
            Alloc(self.starts, (add(self.n_chunks, 1),), self.dtype),
            Alloc(self.agrees, (self.n_chunks,), "bool"),
            self._composed(),
            *self._joined(),
            self._swept(),
            *self._checked(),
        ]

    def _composed(self) -> For:
        """What each chunk makes of any state; an extreme is taken of it and the first state, which changes nothing."""
        before: list[Stmt] = []
        after: list[Stmt] = []
        body = self._needed(self.inner, self.factor, self.offset)
        inner, a, b = (
            self._named(value, hint, body)
            for value, hint in ((self.inner, "step_inner"), (self.factor, "step_factor"), (self.offset, "step_offset"))
        )
        if self.offsets:
            offset = self._sum("offset")
            before += self._beginning(offset, self._number(0) if isinstance(self.form, Linear) else Name(self.dtype, self.state.name))
            body += [*self._increased(offset, inner), *self._scaled(offset, a), *self._increased(offset, b)]
            after += [Store(array, (self.chunk,), part) for array, part in zip(self.offsets, offset, strict=True)]
        if self.factors:
            factor, growth = self._sum("factor"), Name(self.dtype, self.names.fresh("growth"))
            before += self._beginning(factor, self._number(1))
            body += self._scaled(factor, a)
            after += [Store(array, (self.chunk,), part) for array, part in zip(self.factors, factor, strict=True)]
            if self.may_grow:
                before.append(Let(growth.name, self._number(1)))
                body.append(Let(growth.name, self._op(MAX_OR_NAN, self._size(factor[0]), growth), is_new=False))
                after.append(Store(self.growths, (self.chunk,), growth))
        return self._over_chunks([*before, self._steps(with_own_locals(body, self.names)), *after], kind="threads")

    def _named(self, value: Expr | None, hint: str, body: list[Stmt]) -> Expr | None:
        """A coefficient of a step; a local for it goes into `body` if it is read often."""
        if value is None or not self.is_rounded or isinstance(value, Name | Literal):
            return value
        local = Name(self.dtype, self.names.fresh(hint))
        body.append(Let(local.name, value))
        return local

    def _joined(self) -> list[Stmt]:
        """The state at the start of each chunk, one after the other, and behind the last."""
        x, *rest = state = self._sum("start")
        factor, *factor_rest = map(self._at, self.factors) if self.factors else (None,)
        offset, *offset_rest = map(self._at, self.offsets) if self.offsets else (None,)
        body: list[Stmt] = [Store(self.starts, (self.chunk,), x)]
        moved = [*self._scaled(state, factor), *self._increased(state, offset)]
        if rest:
            lost, whole = (Name(self.dtype, self.names.fresh(hint)) for hint in ("lost", "whole"))
            terms = [*(self._op(ROUNDED_PRODUCT, part, x) for part in factor_rest), *offset_rest]
            body += [
                Let(lost.name, reduce(self._rounded_sum, terms)),
                *moved,
                Let(lost.name, self._rounded_sum(rest[0], lost), is_new=False),
                Let(whole.name, self._rounded_sum(x, lost)),
                Let(rest[0].name, self._rounded_difference(lost, self._rounded_difference(whole, x)), is_new=False),
                Let(x.name, whole, is_new=False),
            ]
        else:
            body += moved
        first = self._beginning(state, Name(self.dtype, self.state.name))
        return [*first, self._over_chunks(body), Store(self.starts, (self.n_chunks,), x)]

    def _sum(self, hint: str) -> list[Name]:
        """Locals for a number: of one that is rounded a second one, for what does not fit into the first."""
        hints = [hint, f"{hint}_rest"] if self.is_rounded else [hint]
        return [Name(self.dtype, self.names.fresh(one)) for one in hints]

    def _beginning(self, sum_: Sequence[Name], value: Expr) -> list[Stmt]:
        return [Let(part.name, self._number(0) if k else value) for k, part in enumerate(sum_)]

    def _scaled(self, sum_: Sequence[Name], factor: Expr | None) -> list[Stmt]:
        """Such a number times a factor."""
        x, *rest = sum_
        if factor is None:
            return []
        if not rest:
            return [Let(x.name, self._op(ROUNDED_PRODUCT, factor, x), is_new=False)]
        (lost,), scaled = rest, Name(self.dtype, self.names.fresh("scaled"))
        rounding = self._op(_PRODUCT_AND_SUM, factor, x, self._op(NEGATIVE, scaled))
        return [
            Let(scaled.name, self._op(ROUNDED_PRODUCT, factor, x)),
            Let(lost.name, self._rounded_sum(self._op(ROUNDED_PRODUCT, factor, lost), rounding), is_new=False),
            Let(x.name, scaled, is_new=False),
        ]

    def _increased(self, sum_: Sequence[Name], offset: Expr | None) -> list[Stmt]:
        """Such a number with an offset added, or the extreme of both."""
        x, *rest = sum_
        if offset is None:
            return []
        if isinstance(self.form, Extreme):
            value = self._op(self.form.template, *((x, offset) if self.form.is_state_first else (offset, x)))
            return [Let(x.name, value, is_new=False)]
        if not rest:
            return [Let(x.name, self._rounded_sum(x, offset), is_new=False)]
        (lost,) = rest
        total, added = (Name(self.dtype, self.names.fresh(hint)) for hint in ("total", "added"))
        lost_of_x = self._rounded_difference(x, self._rounded_difference(total, added))
        rounding = self._rounded_sum(lost_of_x, self._rounded_difference(offset, added))
        return [
            Let(total.name, self._rounded_sum(x, offset)),
            Let(added.name, self._rounded_difference(total, x)),
            Let(lost.name, self._rounded_sum(lost, rounding), is_new=False),
            Let(x.name, total, is_new=False),
        ]

    def _swept(self) -> For:
        """The loop as it stands, chunk by chunk, and whether its state agrees with the start of the next one."""
        x, error = (Name(self.dtype, self.names.fresh(hint)) for hint in (self.state.name, "error"))
        before: list[Stmt] = [Let(x.name, self._at(self.starts))]
        body = list(self.loop.body)
        if self.is_rounded:
            before.append(Let(error.name, self._size(x)))
            body.append(Let(error.name, self._error(error), is_new=False))
        after = [Store(self.ends, (self.chunk,), x), *self._compared(x, error)]
        steps = self._steps(with_own_locals(body, self.names, {self.state.name: x.name}))
        return self._over_chunks([*before, steps, *after], kind="threads")

    def _error(self, error: Expr) -> Expr:
        """How far roundings may have taken the state, in units of machine epsilon, after a step."""
        smallest = self._number(float(np.finfo(self.dtype).tiny))  # below it roundings do not shrink with the number
        before = error if self.factor is None else self._op(PRODUCT, self._size(self.factor), error)
        return self._plus(before, self._plus(self._size(Name(self.dtype, self.state.name)), smallest))

    def _compared(self, end: Expr, error: Expr) -> list[Stmt]:
        """Whether the end of a chunk is the computed start of the next one, up to roundings; NaN where NaN is."""
        start, is_same = Name(self.dtype, self.names.fresh("start")), Name("bool", self.names.fresh("is_same"))
        read = Let(start.name, Load(self.dtype, self.starts, (add(self.chunk, 1),)))
        equal = compare("==", start, end)
        if not self.dtype.startswith("float"):
            return [read, Store(self.agrees, (self.chunk,), equal)]
        same = Let(is_same.name, either(equal, both(compare("!=", start, start), compare("!=", end, end))))
        if not self.is_rounded:
            return [read, same, Store(self.agrees, (self.chunk,), is_same)]
        limits = np.finfo(self.dtype)
        bound = self._op(PRODUCT, self._number(_ROUNDINGS * float(limits.eps)), error)
        is_close = compare("<=", self._size(self._minus(start, end)), bound)
        is_finite = compare("<=", error, self._number(float(limits.max)))
        return [read, same, Store(self.agrees, (self.chunk,), either(is_same, both(is_close, is_finite)))]

    def _checked(self) -> list[Stmt]:
        """The last state where all chunks agree; else the loop as it stands."""
        is_right, reach = Name("bool", self.names.fresh("is_right")), Name(self.dtype, self.names.fresh("reach"))
        agrees = both(is_right, Load("bool", self.agrees, (self.chunk,)))
        before, body = [Let(is_right.name, Literal("bool", True))], [Let(is_right.name, agrees, is_new=False)]
        if self.may_grow:
            grown = self._op(PRODUCT, reach, self._at(self.growths))
            before.append(Let(reach.name, self._number(1)))
            body[0] = replace(body[0], value=both(agrees, compare("<=", grown, self._number(_GROWTH))))
            reached = self._op(PRODUCT, self._size(self._at(self.factors[0])), reach)
            body.append(Let(reach.name, self._op(MAX_OR_NAN, reached, self._number(1)), is_new=False))
        end = Let(self.state.name, Load(self.dtype, self.ends, (sub(self.n_chunks, 1),)), is_new=False)
        return [
            *before,
            self._over_chunks(body),
            If(is_right, [If(compare(">", self.n_chunks, 0), [end])], [self.loop]),
        ]

    # parts of these ---------------------------------------------------------------------------------------------------

    def _over_chunks(self, body: Sequence[Stmt], kind: str = "sequential") -> For:
        return For(self.chunk.name, 0, self.n_chunks, list(body), kind=kind)

    def _steps(self, body: Sequence[Stmt]) -> For:
        """A loop over the steps of a chunk."""
        start = add(self.loop.start, mul(self.chunk, self.length))
        return replace(self.loop, start=start, stop=least(add(start, self.length), self.loop.stop), body=list(body), kind="sequential")

    def _needed(self, *exprs: Index | None) -> list[Stmt]:
        """The locals of a step that expressions read."""
        reads = {name for expr in exprs if expr is not None for name, _ in names_in(expr)}
        kept: list[Stmt] = []
        for stmt in reversed(self.loop.body):
            if isinstance(stmt, Let) and stmt.is_new and stmt.name in reads:
                reads |= {name for name, _ in names_in(stmt.value)}
                kept.append(stmt)
        return kept[::-1]

    def _at(self, array: str) -> Load:
        return Load(self.dtype, array, (self.chunk,))

    def _number(self, value: float) -> Literal:
        return Literal(self.dtype, float(value) if self.dtype.startswith("float") else int(value))

    def _op(self, template: Template, *args: Index) -> Apply:
        return Apply(self.dtype, template, args)

    def _plus(self, a: Index, b: Index) -> Apply:
        return self._op(IN_ORDER, a, b)

    def _minus(self, a: Index, b: Index) -> Apply:
        return self._op(DIFFERENCE, a, b)

    def _rounded_sum(self, a: Index, b: Index) -> Apply:
        return self._op(ROUNDED_SUM, a, b)

    def _rounded_difference(self, a: Index, b: Index) -> Apply:
        return self._op(ROUNDED_DIFFERENCE, a, b)

    def _size(self, value: Index) -> Apply:
        return self._op(_MAGNITUDE, value)


def with_own_locals(stmts: Iterable[Stmt], names: Names, others: Mapping[str, str] | None = None) -> list[Stmt]:
    """Statements with locals of their own: those that they make, and `others`."""
    own = {stmt.name: names.fresh(stmt.name) for stmt in stmts if isinstance(stmt, Let) and stmt.is_new} | dict(others or {})

    def other(expr: Expr) -> Index | None:
        return Name(expr.dtype, own[expr.name]) if isinstance(expr, Name) and expr.name in own else None

    changed = [with_values(stmt, lambda expr: mapped(expr, other)) for stmt in stmts]
    return [replace(stmt, name=own.get(stmt.name, stmt.name)) if isinstance(stmt, Let) else stmt for stmt in changed]
