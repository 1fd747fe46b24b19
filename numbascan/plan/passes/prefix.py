"""A recurrence in one number that is linear, or an extreme, goes in chunks of steps, each in a thread.

    # before: for t in range(n):            # after: threads over c:                    # what a chunk makes of any state
    #             x = a[t] * x + b[t]       #            for t in chunk c:
    #             rows[t] = x               #                offset = a[t] * offset + b[t]
                                            #                factor = a[t] * factor
                                            #        for c in range(n_chunks):         # the state at the start of each chunk
                                            #            starts[c + 1] = factors[c] * starts[c] + offsets[c]
                                            #        threads over c:                   # the loop as it stands, from there
                                            #            x = starts[c]
                                            #            for t in chunk c: …
                                            #            agrees[c] = x is starts[c + 1], up to its rounding
                                            #        if not all(agrees): the loop as it stands, in one thread

States that do not read each other have a loop each. Running sums, products and extremes of cards are such loops, too.
Not handled: states that read each other; steps in which the state stands twice or is multiplied twice; loops that may end early, that can
fail, that read what they write, or that stand inside others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

import numpy as np

from ...ir.loops import (
    DIFFERENCE,
    GREATEST,
    IN_ORDER,
    LEAST,
    MAX_OR_NAN,
    MIN_OR_NAN,
    PRODUCT,
    Apply,
    Expr,
    For,
    Function,
    Index,
    Let,
    Literal,
    Name,
    Note,
    Stmt,
    Store,
    expressions,
    greatest,
    names_in,
    slope_and_rest,
    sub,
    walk,
)
from ...ir.mentions import loads_in, memory_of, mentions_in
from ..target import Target
from .prefix_sweeps import NEGATIVE, SHORTEST, Extreme, Linear, Sweeps, with_own_locals

_EXTREMES = (GREATEST, LEAST, MAX_OR_NAN, MIN_OR_NAN)


def prefix(function: Function, target: Target) -> Function:
    """The function with such loops in chunks."""
    prefixes = _Prefixes(function, target)
    return replace(function, body=prefixes.block(function.body), names=prefixes.names)


class _Prefixes:
    def __init__(self, function: Function, target: Target) -> None:
        self.target, self.names = target, function.names.copy()
        self.memory, self.mentions = memory_of(function.body), mentions_in(list(walk(function.body)))
        self.rings = function.rings

    def block(self, stmts: Sequence[Stmt]) -> list[Stmt]:
        result: list[Stmt] = []
        for stmt in stmts:
            chunks = self._chunks(stmt) if isinstance(stmt, For) else None
            result += [stmt] if chunks is None else chunks
        return result

    def _chunks(self, loop: For) -> list[Stmt] | None:
        """What replaces a loop; None: it stays."""
        passes = greatest(sub(loop.stop, loop.start), 0)
        if isinstance(passes, int) and passes < SHORTEST * self.target.few_lanes:
            return None
        if not self._is_plain(loop):
            return None
        parts = self._by_state(loop)
        chunks = [self._sweeps(part, passes) for part in parts]
        if all(one is None for one in chunks):
            return None
        return [stmt for part, one in zip(parts, chunks, strict=True) for stmt in ([part] if one is None else one)]

    def _sweeps(self, loop: For, passes: Index) -> list[Stmt] | None:
        """What replaces a loop of one state."""
        moved = _moved(loop)
        if len(moved) != 1 or not isinstance(moved[0].value, Expr):
            return None
        form = _step(loop, moved[0])
        return None if form is None else Sweeps(self.names, loop, moved[0], form, passes).stmts()

    def _is_plain(self, loop: For) -> bool:
        """Does a loop hold scalars and stores alone, of which each step has its own, states apart?"""
        body = loop.body
        if any(is_element for bound in (loop.start, loop.stop) for _, is_element in names_in(bound)):
            return False
        is_handled = loop.kind in ("time", "sequential") and loop.step == 1
        if not is_handled or not all(isinstance(stmt, Let | Store | Note) for stmt in body):
            return False
        within = mentions_in([loop, *walk(body)])
        new = {stmt.name for stmt in body if isinstance(stmt, Let) and stmt.is_new}
        return not any(self.mentions[name] > within[name] for name in new) and self._stores_apart(
            loop, {*new, *(stmt.name for stmt in _moved(loop))}
        )

    def _by_state(self, loop: For) -> list[For]:
        """A loop for each state, if no statement needs two. What needs none goes with the first, scalars with all that read them."""
        states = [stmt.name for stmt in _moved(loop)]
        needed: dict[str, set[str]] = {name: {name} for name in states}
        of_state: dict[str, list[Stmt]] = {name: [] for name in states}
        if len(states) < 2 or len(of_state) < len(states):
            return [loop]
        for stmt in loop.body:
            read = {name for expr in expressions(stmt) for name, _ in names_in(expr)}
            read |= {stmt.name} if isinstance(stmt, Let) and not stmt.is_new else set()
            needs = set[str]().union(*(needed.get(name, set()) for name in read))
            if len(needs) > 1:
                return [loop]
            if isinstance(stmt, Let) and stmt.is_new:
                needed[stmt.name] = needs
            if isinstance(stmt, Let) and not needs:
                for body in of_state.values():
                    body.append(stmt)
            else:
                of_state[next(iter(needs), states[0])].append(stmt)
        first, *others = (_without_unread(body) for body in of_state.values())
        return [replace(loop, body=body) for body in (first, *(with_own_locals(body, self.names) for body in others))]

    def _stores_apart(self, loop: For, of_step: Set[str]) -> bool:
        """Does every step write places of its own, which no step reads?"""
        stores = [stmt for stmt in loop.body if isinstance(stmt, Store)]
        written = [self._root(stmt.array) for stmt in stores]
        read = {self._root(load.array) for stmt in loop.body for expr in expressions(stmt) for load in loads_in(expr)}
        if len({*written}) < len(written) or read & {*written} or any(array in self.rings for array in written):
            return False
        return all(not stmt.combine and self._moves(stmt.index, loop, of_step) for stmt in stores)

    @staticmethod
    def _moves(index: Iterable[Index], loop: For, of_step: Set[str]) -> bool:
        """Is the place another one at every step?"""
        for one in index:
            move = slope_and_rest(one, Name("int64", loop.name))
            if move is not None and move[0] != 0 and not any(name in of_step or is_element for name, is_element in names_in(move[1])):
                return True
        return False

    def _root(self, array: str) -> str:
        return self.memory.get(array, array)


def _moved(loop: For) -> list[Let]:
    """The statements that give states their next values."""
    return [stmt for stmt in loop.body if isinstance(stmt, Let) and not stmt.is_new]


def _without_unread(body: Sequence[Stmt]) -> list[Stmt]:
    """Statements without the locals that none of them reads."""
    kept: list[Stmt] = []
    read: set[str] = set()
    for stmt in reversed(body):
        if not isinstance(stmt, Let) or not stmt.is_new or stmt.name in read:
            kept.append(stmt)
            read |= {name for expr in expressions(stmt) for name, _ in names_in(expr)}
    return kept[::-1]


# What a step makes of the state ---------------------------------------------------------------------------------------


def _step(loop: For, state: Let) -> Linear | Extreme | None:
    """The next state by the state; None where it is neither form."""
    forms: dict[str, Linear | None] = {state.name: Linear()}  # of locals that depend on the state; None: not linear
    for stmt in loop.body:
        if not isinstance(stmt, Let):
            continue
        if stmt is state:
            return _extreme(stmt, forms) or (_form(stmt.value, forms) if _depends(stmt.value, forms) else None)
        if _depends(stmt.value, forms):
            forms[stmt.name] = _form(stmt.value, forms)
    return None


def _extreme(state: Let, forms: Mapping[str, Linear | None]) -> Extreme | None:
    value = state.value
    if not isinstance(value, Apply) or value.template not in _EXTREMES:
        return None
    others = [arg for arg in value.args if arg != Name(value.dtype, state.name)]
    if len(others) != 1 or not isinstance(others[0], Expr) or others[0].dtype != value.dtype or _depends(others[0], forms):
        return None
    return Extreme(value.template, others[0], is_state_first=value.args[1] == others[0])


def _depends(value: Index, forms: Mapping[str, Linear | None]) -> bool:
    return any(name in forms for name, _ in names_in(value))


def _form(value: Index, forms: Mapping[str, Linear | None]) -> Linear | None:
    """A value that depends on the state, by the state; None where it is not linear, or where its coefficients are none that the loop
    computes: a rounding of their own, the same in every step, would add up."""
    if isinstance(value, Name):
        return forms[value.name]
    if not isinstance(value, Apply) or value.template not in (IN_ORDER, DIFFERENCE, PRODUCT) or np.dtype(value.dtype).kind not in "fiu":
        return None
    left, right = value.args
    inner, other, is_left = (left, right, True) if _depends(left, forms) else (right, left, False)
    if not isinstance(other, Expr) or _depends(other, forms) or {_expr(inner).dtype, other.dtype} != {value.dtype}:
        return None
    form = _form(inner, forms)
    if form is None or value.template is not PRODUCT:
        return None if form is None else _sum(form, other, value, is_left)
    return Linear(form.offset, other, None) if form.factor is None else None


def _sum(form: Linear, other: Expr, value: Apply, is_left: bool) -> Linear:
    """A sum or a difference of a value that is linear, on the left or right, and another one."""

    def negative(x: Expr) -> Expr:
        if value.dtype.startswith("float"):
            return Apply(value.dtype, NEGATIVE, (x,))
        return Apply(value.dtype, DIFFERENCE, (Literal(value.dtype, 0), x))

    is_difference = value.template is DIFFERENCE
    offset = negative(other) if is_difference and is_left else other
    if form.offset is not None:
        offset = Apply(value.dtype, value.template, (form.offset, other) if is_left else (other, form.offset))
    if not is_difference or is_left:
        return replace(form, offset=offset)
    one = Literal(value.dtype, 1.0 if value.dtype.startswith("float") else 1)
    return Linear(form.inner, negative(form.factor or one), offset)


def _expr(value: Index) -> Expr:
    assert isinstance(value, Expr)
    return value
