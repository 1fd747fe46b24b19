"""Parallel prefix: a recurrence that is linear in a few numbers, or a running extreme, runs in chunks of steps, a thread per chunk.

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

States that read each other (two lags, the elements of a vector) are one recurrence, whose factor is a matrix. Other states get a loop each.
Running sums, products and extremes of cards are such loops, too.
Not handled:
- matrices with more numbers to compute than registers hold
- loops that may end early, that can fail, or that read what they write
- loops inside other loops or conditions
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from itertools import combinations

from ...ir.loops import (
    GREATEST,
    LEAST,
    MAX_OR_NAN,
    MIN_OR_NAN,
    Apply,
    Expr,
    For,
    Function,
    Index,
    Let,
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
from ...ir.names import Names
from ..target import Target
from .linear_step import LinearStep
from .prefix_sweeps import SHORTEST, Extreme, ExtremeSweeps, LinearSweeps, RoundedSweeps, Sweeps, with_own_locals

_EXTREMES = (GREATEST, LEAST, MAX_OR_NAN, MIN_OR_NAN)
_MOST_NUMBERS = 16
"""The most states, and the most computed numbers of a chunk's matrix. Each takes three registers of 64 bits.

16 fill 254 of a thread's 255 registers of 32 bits (sm_80 and sm_90, float64), and none is spilt.
"""


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
        """The replacement of a loop; None if it stays."""
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
        """The sweeps that replace a loop whose states form one recurrence; None if it stays."""
        sweeps = _form(self.names, loop, passes)
        return None if sweeps is None else sweeps.stmts()

    def _is_plain(self, loop: For) -> bool:
        """True if the loop holds only scalars and stores, and all but its states is private to a step."""
        body = loop.body
        if any(is_element for bound in (loop.start, loop.stop) for _, is_element in names_in(bound)):
            return False
        is_handled = loop.kind in ("time", "sequential") and loop.step == 1
        if not is_handled or not all(isinstance(stmt, Let | Store | Note) for stmt in body):
            return False
        within = mentions_in([loop, *walk(body)])
        new = {stmt.name for stmt in body if isinstance(stmt, Let) and stmt.is_new}
        moved = [stmt.name for stmt in _moved(loop)]
        if not moved or len({*moved} - new) < len(moved):  # no state, or a local assigned twice in a step
            return False
        return not any(self.mentions[name] > within[name] for name in new) and self._stores_apart(loop, {*new, *moved})

    def _by_state(self, loop: For) -> list[For]:
        """A loop for each group of states that read each other.

        Stores that need no state go with the first group. Scalars that need none go with every group that reads them.
        """
        states = [stmt.name for stmt in _moved(loop)]
        needed = {name: {name} for name in states}
        group = {name: {name} for name in states}
        needs_of: list[set[str]] = []
        for stmt in loop.body:
            read = {name for expr in expressions(stmt) for name, _ in names_in(expr)}
            read |= {stmt.name} if isinstance(stmt, Let) and not stmt.is_new else set()
            needs = set[str]().union(*(needed.get(name, set()) for name in read))
            if isinstance(stmt, Let) and stmt.is_new:
                needed[stmt.name] = needs
            joined = set[str]().union(*(group[name] for name in needs))
            group.update(dict.fromkeys(joined, joined))
            needs_of.append(needs)
        bodies: dict[str, list[Stmt]] = {min(one, key=states.index): [] for one in map(group.__getitem__, states)}
        for stmt, needs in zip(loop.body, needs_of, strict=True):
            if isinstance(stmt, Let) and not needs:
                for body in bodies.values():
                    body.append(stmt)
            else:
                bodies[min(group[next(iter(needs))], key=states.index) if needs else states[0]].append(stmt)
        first, *others = (_without_unread(body) for body in bodies.values())
        return [replace(loop, body=body) for body in (first, *(with_own_locals(body, self.names) for body in others))]

    def _stores_apart(self, loop: For, of_step: Set[str]) -> bool:
        """True if every step writes places of its own, and no step reads an array that is written."""
        stores = [stmt for stmt in loop.body if isinstance(stmt, Store)]
        written = [self._root(stmt.array) for stmt in stores]
        read = {self._root(load.array) for stmt in loop.body for expr in expressions(stmt) for load in loads_in(expr)}
        if read & {*written} or any(array in self.rings for array in written):
            return False
        if any(not self._are_apart(one, other) for one, other in combinations(stores, 2)):
            return False
        return all(not stmt.combine and self._moves(stmt.index, loop, of_step) for stmt in stores)

    def _are_apart(self, one: Store, other: Store) -> bool:
        """True if two stores never meet, whatever their steps: in different arrays, or at two different constants along an axis."""
        if self._root(one.array) != self._root(other.array):
            return True
        along = zip(one.index, other.index, strict=True) if one.array == other.array else ()
        return any(isinstance(i, int) and isinstance(j, int) and 0 <= i != j >= 0 for i, j in along)

    @staticmethod
    def _moves(index: Iterable[Index], loop: For, of_step: Set[str]) -> bool:
        """True if the place differs at every step."""
        for one in index:
            move = slope_and_rest(one, Name("int64", loop.name))
            if move is not None and move[0] != 0 and not any(name in of_step or is_element for name, is_element in names_in(move[1])):
                return True
        return False

    def _root(self, array: str) -> str:
        return self.memory.get(array, array)


def _moved(loop: For) -> list[Let]:
    """The statements that assign the states' next values."""
    return [stmt for stmt in loop.body if isinstance(stmt, Let) and not stmt.is_new]


def _without_unread(body: Sequence[Stmt]) -> list[Stmt]:
    """The statements without the locals that no later statement reads."""
    kept: list[Stmt] = []
    read: set[str] = set()
    for stmt in reversed(body):
        if not isinstance(stmt, Let) or not stmt.is_new or stmt.name in read:
            kept.append(stmt)
            read |= {name for expr in expressions(stmt) for name, _ in names_in(expr)}
    return kept[::-1]


# What a step makes of states ------------------------------------------------------------------------------------------


def _form(names: Names, loop: For, passes: Index) -> Sweeps | None:
    """The sweeps of a loop; None if its states are neither linear nor an extreme, or too many."""
    states = _moved(loop)
    step = LinearStep(loop.body, [stmt.name for stmt in states])
    extreme = _extreme(states[0], step) if len(states) == 1 else None
    if extreme is not None:
        return ExtremeSweeps(names, loop, states[0], extreme, passes)
    if not step.is_linear():
        return None
    sweeps = (RoundedSweeps if step.dtype.startswith("float") else LinearSweeps)(names, loop, states, passes)
    return sweeps if max(len(sweeps.shape.entries), len(states)) <= _MOST_NUMBERS else None


def _extreme(state: Let, step: LinearStep) -> Extreme | None:
    value = state.value
    if not isinstance(value, Apply) or value.template not in _EXTREMES:
        return None
    others = [arg for arg in value.args if arg != Name(value.dtype, state.name)]
    if len(others) != 1 or not isinstance(others[0], Expr) or others[0].dtype != value.dtype or step.reads_states(others[0]):
        return None
    return Extreme(value.template, others[0], is_state_first=value.args[1] == others[0])
