"""Checks that the loops of a function are legal. Tests call it after every loop pass.

- Every name is defined, on every path to it, before it is used.
- Nothing is stored into a read-only array.
- No index is negative or beyond its array.
- Where passes of a loop run side by side, each writes places and scalars of its own, reductions apart.

Not handled: indices reached only under a condition, or without a known bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .check import IllegalGraphError
from .loops import (
    AND,
    CHOICE,
    COMPARE_WITH,
    GREATEST,
    LEAST,
    OR,
    Alias,
    Alloc,
    Apply,
    Break,
    Call,
    Expr,
    Fail,
    For,
    Function,
    If,
    Index,
    Length,
    Let,
    Load,
    Name,
    Return,
    Stmt,
    Store,
    add,
    expressions,
    is_reduction,
    linear,
    mul,
    names_in,
    sub,
    walk,
    with_blocks,
)
from .mentions import mentioned

SIDE_BY_SIDE = ("simd", "tile", "lanes")
DEEPEST, MOST_TRIES = 16, 40  # limits on substitutions in the search for a bound: nested, and in total


def check_loops(function: Function) -> None:
    """Raises IllegalGraphError, listing every fault, unless the loops are legal."""
    check = _Check(function)
    check.block(function.body, {argument.name for argument in function.arguments})
    if check.faults:
        raise IllegalGraphError("\n".join(dict.fromkeys(check.faults)))


@dataclass
class _Check:
    function: Function
    faults: list[str] = field(default_factory=list)
    shapes: dict[str, tuple[Index, ...]] = field(default_factory=dict)
    counters: dict[str, For] = field(default_factory=dict)  # of the enclosing loops, innermost last
    depth: int = 0  # of conditions
    equal: list[set[Index]] = field(default_factory=list)  # values that checks in enclosing blocks found equal
    none: set[Index] = field(default_factory=set)  # values that checks found not positive: a loop with such a count runs no pass
    below: list[tuple[Index, Index]] = field(default_factory=list)  # pairs that checks found to be less, and not
    tries: int = 0  # substitutions left in the search for the current bound

    def __post_init__(self) -> None:
        every = list(walk(self.function.body))
        changed = {stmt.name for stmt in every if isinstance(stmt, Let) and not stmt.is_new}
        self.fixed = {stmt.name: stmt.value for stmt in every if isinstance(stmt, Let) and stmt.name not in changed}
        self.read_only = {argument.name for argument in self.function.arguments if argument.rank and not argument.is_written}

    def block(self, stmts: Sequence[Stmt], known: set[str]) -> set[str] | None:
        """The names defined after a block, given those `known` before it; None where control leaves it before its end."""
        around = self.equal, self.none, self.below
        self.equal, self.none, self.below = list(self.equal), set(self.none), list(self.below)
        try:
            return self._statements(stmts, set(known))
        finally:
            self.equal, self.none, self.below = around

    def _statements(self, stmts: Sequence[Stmt], known: set[str]) -> set[str] | None:
        for stmt in stmts:
            self._reads(stmt, known)
            if isinstance(stmt, Break | Fail | Return):
                return None
            if isinstance(stmt, For):
                self._loop(stmt, known)
            elif isinstance(stmt, If):
                self.depth += 1
                sides = [side for side in (self.block(stmt.then, known), self.block(stmt.otherwise, known)) if side is not None]
                self.depth -= 1
                if not sides:
                    return None
                known = set.intersection(*sides)
                if isinstance(stmt.then[-1], Fail):
                    self._note_passed(stmt.condition)
            elif isinstance(stmt, Store | Call):
                self._writes(stmt)
            elif isinstance(stmt, Let | Alloc | Alias):
                known.add(stmt.name)
                if isinstance(stmt, Alloc):
                    self.shapes[stmt.name] = stmt.shape
                elif isinstance(stmt, Alias) and stmt.array in self.read_only:
                    self.read_only.add(stmt.name)
        return known

    def _note_passed(self, condition: Expr) -> None:
        """Notes what a false `condition` implies, that values are equal or not positive, where all of them are constant in this block."""
        if not isinstance(condition, Apply):
            return
        if not {name for name, _ in names_in(condition)} <= {*self.fixed, *self.counters, *(one.name for one in self.function.arguments)}:
            return
        if condition.template == COMPARE_WITH[">"] and condition.args[1] == 0:
            self.none.add(condition.args[0])
        if condition.template == COMPARE_WITH[">="]:
            self.below.append((condition.args[0], condition.args[1]))
        if condition.template != COMPARE_WITH["!="]:
            return
        joined = [one for one in self.equal if not one.isdisjoint(condition.args)]
        self.equal = [one for one in self.equal if one not in joined] + [set(condition.args).union(*joined)]

    def _reads(self, stmt: Stmt, known: set[str]) -> None:
        names = {name for expr in expressions(stmt) for name, _ in names_in(expr)}
        if isinstance(stmt, Store | Alias):
            names.add(stmt.array)
        elif isinstance(stmt, Call):
            names |= {arg for arg in stmt.args if arg.isidentifier() and arg not in ("True", "False", "None")}
        elif isinstance(stmt, Return):
            names |= set(stmt.names)
        self.faults += [f"{name} is used before it is defined" for name in sorted(names - known)]
        if not self.depth:
            for expr in (*expressions(stmt), *((Load("", stmt.array, stmt.index),) if isinstance(stmt, Store) else ())):
                self._indices(expr)

    def _writes(self, stmt: Store | Call) -> None:
        arrays = (stmt.array,) if isinstance(stmt, Store) else stmt.results
        self.faults += [f"{array} is written, and may only be read" for array in arrays if array in self.read_only]

    # indices ----------------------------------------------------------------------------------------------------------

    def _indices(self, expr: Index) -> None:
        if isinstance(expr, Load) and expr.index:
            shape = self.shapes.get(expr.array) or tuple(Length("int64", expr.array, axis) for axis in range(len(expr.index)))
            if len(shape) != len(expr.index):
                self.faults.append(f"{expr.array} has {len(shape)} axes, and {len(expr.index)} indices")
            for axis, (index, dim) in enumerate(zip(expr.index, shape, strict=False)):
                self._index(f"an index of {expr.array} along axis {axis}", index, dim)
        for part in _reached(expr):
            self._indices(part)

    def _index(self, what: str, index: Index, dim: Index) -> None:
        is_fixed = isinstance(dim, int)
        fewest, past = self._bound_of(index, False, is_fixed), self._bound_of(sub(index, dim), True, is_fixed)
        checked = [sub(self._written_out(sub(index, dim)), self._written_out(sub(a, b))) for a, b in self.below]
        past = min([past, *(more - 1 for more in checked if isinstance(more, int))]) if past is not None else None
        if (past is not None and past >= 0) or (fewest is not None and fewest < 0):
            end = past if past is None else past + dim if isinstance(dim, int) else f"{past + 1} past the last"
            self.faults.append(f"{what} goes from {fewest} to {end}; its length is {dim if is_fixed else 'known to the run'}")

    def _written_out(self, expr: Index) -> Index:
        """A sum with the definitions of its terms in the place of these."""
        terms, number = linear(expr)
        result: Index = number
        for term, factor in terms.items():
            is_local = isinstance(term, Name) and term.name in self.fixed and term.name not in self.counters
            other = self.fixed[term.name] if is_local and isinstance(term, Name) else term
            result = add(result, mul(other if other == term or linear(other)[0] == {other: 1} else self._written_out(other), factor))
        return result

    def _bound_of(self, expr: Index, is_upper: bool, may_guess: bool) -> int | None:
        self.tries = MOST_TRIES
        return self._bound(expr, is_upper, may_guess)

    def _bound(self, expr: Index, is_upper: bool, may_guess: bool, depth: int = 0) -> int | None:
        """The greatest value of an expression, or the least (`is_upper` False); None where no bound is known.

        `may_guess`: an unknown bound beside a known one is taken to be so far away that the known one is reached.
        """
        terms, number = linear(expr)
        if not terms:
            return number
        self.tries -= 1
        if depth == DEEPEST or self.tries < 0:
            return None
        for term, others in self._bounds(terms, is_upper):
            rest, factor = sub(expr, mul(term, terms[term])), terms[term]
            bounds = [self._bound(add(rest, mul(other, factor)), is_upper, may_guess, depth + 1) for other in others]
            known = [bound for bound in bounds if bound is not None]
            if known and (may_guess or len(known) == len(bounds)):
                return min(known) if is_upper else max(known)
        return None

    def _bounds(self, terms: dict[Index, int], is_upper: bool) -> Iterator[tuple[Index, tuple[Index, ...]]]:
        """Terms with their values or bounds (upper or lower, by factor and `is_upper`); counters last, innermost first.

        Several bounds of one term hold together: the tightest counts.
        """
        for term, factor in terms.items():
            numbers = {value for one in self.equal if term in one for value in one if isinstance(value, int)}
            if numbers:
                yield term, (numbers.pop(),)
            if isinstance(term, Name) and term.name in self.fixed and term.name not in self.counters:
                yield term, (self.fixed[term.name],)
            elif isinstance(term, Apply) and term.template == (LEAST if (factor > 0) == is_upper else GREATEST):
                yield term, term.args
        for name, loop in reversed(self.counters.items()):
            counter = Name("int64", name)
            if counter in terms and (last := _last(loop)) is not None:
                yield counter, (last if (terms[counter] > 0) == is_upper else loop.start,)

    # loops ------------------------------------------------------------------------------------------------------------

    def _loop(self, loop: For, known: set[str]) -> None:
        if loop.start == 0 and loop.stop in self.none:
            return
        if loop.kind in SIDE_BY_SIDE:
            self._check_writers(loop)
        around, self.counters = self.counters, {**{name: one for name, one in self.counters.items() if name != loop.name}, loop.name: loop}
        self.block(loop.body, known | {loop.name})
        self.counters = around

    def _check_writers(self, loop: For) -> None:
        inside = list(walk(loop.body))
        own = {stmt.name for stmt in inside if isinstance(stmt, Alloc | Alias) or (isinstance(stmt, Let) and stmt.is_new)}
        for stmt in inside:
            is_read = isinstance(stmt, Let) and any(name == stmt.name for name, _ in names_in(stmt.value))
            if isinstance(stmt, Let) and is_read and stmt.name not in own and not is_reduction(stmt):
                self.faults.append(f"passes of the loop over {loop.name} side by side give {stmt.name} their values")
        of_pass = {loop.name, *own} | {one.name for one in inside if isinstance(one, For) and _reads_any(one, {loop.name, *own})}
        around = list(self._outside(loop))
        outside = mentioned([stmt for stmt in around if not isinstance(stmt, Alloc | Alias)])
        outside |= {argument.name for argument in self.function.arguments}
        for stmt in reversed(around):  # a view that only the loop uses is memory that only the loop uses
            outside |= mentioned([stmt]) if isinstance(stmt, Alias) and stmt.name in outside else set()
        for stmt in inside:
            is_shared = isinstance(stmt, Store) and stmt.array not in own and not of_pass & {n for i in stmt.index for n, _ in names_in(i)}
            if isinstance(stmt, Store) and is_shared and (loop.kind != "lanes" or stmt.array in outside):
                self.faults.append(f"passes of the loop over {loop.name} side by side write one place of {stmt.array}")

    def _outside(self, loop: For) -> Iterator[Stmt]:
        """The statements around a loop, each without those inside it."""
        inside = {id(stmt) for stmt in walk([loop])}
        for stmt in walk(self.function.body):
            if id(stmt) not in inside:
                yield with_blocks(stmt, lambda block: [])


def _reached(expr: Index) -> tuple[Index, ...]:
    """The operands that are evaluated whenever the expression is: of a choice, `and` or `or` only the first."""
    if isinstance(expr, Load):
        return expr.index
    if not isinstance(expr, Apply):
        return ()
    return expr.args[:1] if expr.template.level in (CHOICE, AND, OR) else expr.args


def _reads_any(loop: For, names: set[str]) -> bool:
    return any(name in names for bound in (loop.start, loop.stop) for name, _ in names_in(bound))


def _last(loop: For) -> Index | None:
    """The index of a loop's last pass; None where it is not known."""
    if loop.step == 1:
        return sub(loop.stop, 1)
    if not (isinstance(loop.start, int) and isinstance(loop.stop, int) and isinstance(loop.step, int)):
        return None
    return max(range(loop.start, loop.stop, loop.step), default=loop.start)
