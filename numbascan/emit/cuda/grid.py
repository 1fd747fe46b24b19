"""Statements as all threads of a grid run them, with barriers, so that a loop over time with wide states is one kernel.

    # before: for t in range(n):            # after: for t in range(n):
    #             threads over i:           #            threads over i:
    #                 y[i] = f(x, i)        #                y[i] = f(x, i)
    #             x[0] = y[3]               #            barrier
                                            #            if first: x[0] = y[3]
                                            #            barrier

Every thread computes all scalars, so these are the same in all threads. Passes of loops in threads are shared out; the first thread does
all other stores. A barrier is needed before a statement that touches memory that another thread has written since the last barrier, or that
writes memory that another thread has read since then. Loops give the same passes to the same threads: if two loops access an array only at
the place of the pass, each thread finds its own numbers again, and no barrier is needed.

A thread whose pass fails leaves its loop and says so. After the loop all threads wait for one another, look, and end together.

Not handled: memory allocated inside; routines; errors in loops within a pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import TypeGuard

from ...ir import loops as ir
from ...ir.mentions import loads_in, mentions_in

IS_FIRST = ir.Apply("bool", ir.Template("cuda.grid(1) == 0"), ())
SHARED = ("threads", "sums")


class Unfit(Exception):
    """Statements that the threads of a grid cannot run together."""


def is_wide(stmt: ir.Stmt) -> bool:
    """True if a statement holds a loop whose passes are shared out."""
    return any(isinstance(one, ir.For) and one.kind in SHARED for one in ir.walk([stmt]))


def in_all_threads(stmts: Sequence[ir.Stmt], memory: Mapping[str, str], views: Set[str], mentions: Counter[str]) -> list[ir.Stmt]:
    """The statements with barriers.

    memory: one name for all names of the same memory. views: the names of parts of arrays. mentions: the number of statements of the
    function that mention a name.
    """
    changing = {stmt.name for stmt in ir.walk(stmts) if isinstance(stmt, ir.Let | ir.For)}
    return _Placing(memory, views, mentions, changing).block(stmts, _Since())[0]


def nest_of(loop: ir.For) -> list[ir.For]:
    """The loops of a nest whose passes are counted as one."""
    nest = [loop]
    while len(nest[-1].body) == 1 and isinstance(inner := nest[-1].body[0], ir.For) and inner.kind == loop.kind:
        nest.append(inner)
    return nest


@dataclass(frozen=True)
class _Passes:
    """The thread that touches an element: that of the pass whose counters are the indices on these axes, less the origins.

    lengths: of all loops of the nest but the outermost; they decide which pass, and so which thread, has these counters.
    """

    axes: tuple[int, ...]
    origins: tuple[ir.Index, ...]
    lengths: tuple[ir.Index, ...]


_FIRST, _ANY = "the first thread", "any thread"
Owner = _Passes | str
Touched = frozenset[tuple[str, Owner]]  # arrays, and who touches their elements


@dataclass(frozen=True)
class _Since:
    """The elements read and written since the last barrier."""

    read: Touched = frozenset()
    written: Touched = frozenset()

    def __or__(self, other: _Since) -> _Since:
        return _Since(self.read | other.read, self.written | other.written)

    def waits(self, other: _Since) -> bool:
        """True if a barrier is needed before a statement that touches `other`."""
        return _meet(self.written, other.read) or _meet(self.read | self.written, other.written)


def _meet(some: Touched, others: Touched) -> bool:
    """True if two different threads may touch the same element."""
    # one owner is one thread, which needs no barrier for itself; `_ANY` on both sides may be two threads
    return any(array == other and (owner != by or owner == _ANY) for array, owner in some for other, by in others)


@dataclass
class _Placing:
    """Places the barriers. `changing`: scalars that do not keep one value."""

    memory: Mapping[str, str]
    views: Set[str]
    mentions: Counter[str]
    changing: Set[str]

    def block(self, stmts: Iterable[ir.Stmt], since: _Since) -> tuple[list[ir.Stmt], _Since]:
        """The block with its barriers, and what is touched from the last barrier to its end."""
        result: list[ir.Stmt] = []
        for stmt in stmts:
            if isinstance(stmt, ir.Alloc | ir.Call | ir.Return):
                raise Unfit
            if isinstance(stmt, ir.For | ir.If) and not self._is_single(stmt) and (is_wide(stmt) or _stores(stmt)) and not _is_shared(stmt):
                placed, since = self._around(stmt, since)
                result += placed
                continue
            self._check(stmt)
            touches = self._touches(stmt)
            if _is_sum(stmt) or since.waits(touches):
                result.append(ir.Barrier())
                since = _Since()
            result += [ir.If(IS_FIRST, [stmt])] if isinstance(stmt, ir.Store) or self._is_single(stmt) else [stmt]
            since = _Since() if _is_sum(stmt) or is_checked(stmt) else since | touches  # sums and checked loops end with a barrier
        return result, since

    def _around(self, stmt: ir.For | ir.If, since: _Since) -> tuple[list[ir.Stmt], _Since]:
        """A loop or a choice that all threads run, with its barriers."""
        before: list[ir.Stmt] = []
        head = replace(stmt, body=[]) if isinstance(stmt, ir.For) else ir.If(stmt.condition, [])
        touches = self._touches(head)
        if since.waits(touches):
            before, since = [ir.Barrier()], _Since()
        since |= touches
        if isinstance(stmt, ir.If):
            then, after_then = self.block(stmt.then, since)
            otherwise, after_otherwise = self.block(stmt.otherwise, since)
            return [*before, ir.If(stmt.condition, then, otherwise)], after_then | after_otherwise
        while True:  # a pass follows on another one: what the body's end leaves is touched at its beginning, until that adds nothing
            body, end = self.block(stmt.body, since)
            if since | end == since:
                break
            since |= end
        everything = _Since()  # a pass may end anywhere, so any of its accesses may come after the last barrier
        for one in stmt.body:
            everything |= self._touches(one)
        return [*before, replace(stmt, body=body)], since | everything

    def _check(self, stmt: ir.Stmt) -> None:
        inside = list(ir.walk([stmt]))
        if is_checked(stmt) and any(isinstance(one, ir.For) and _fails(one) for one in ir.walk(nest_of(stmt)[-1].body)):
            raise Unfit
        if any(
            isinstance(one, ir.Call | ir.Return) or (isinstance(one, ir.Alloc) and not (_is_shared(stmt) and one.on_stack))
            for one in inside
        ):
            raise Unfit

    def _is_single(self, stmt: ir.Stmt) -> bool:
        """True if only the first thread may run a loop or a choice: no other needs its locals, or would wait for it in vain."""
        inside = list(ir.walk([stmt]))
        if not isinstance(stmt, ir.For | ir.If) or is_wide(stmt) or not _stores(stmt) or any(isinstance(one, ir.Fail) for one in inside):
            return False
        if isinstance(stmt, ir.If) and any(isinstance(one, ir.Break) for one in inside):
            return False
        within = mentions_in(inside)
        return not any(isinstance(one, ir.Let | ir.Alias) and self.mentions[one.name] > within[one.name] for one in inside)

    def _touches(self, stmt: ir.Stmt) -> _Since:
        if isinstance(stmt, ir.For) and _is_shared(stmt):
            nest = nest_of(stmt)
            return self._touched(ir.walk([stmt]), lambda array, index: self._owner(array, index, nest))
        if isinstance(stmt, ir.Store) or self._is_single(stmt):
            return self._touched(ir.walk([stmt]), lambda *_: _FIRST)
        touched = self._touched([stmt], lambda *_: _ANY)
        inside = stmt.body if isinstance(stmt, ir.For) else [*stmt.then, *stmt.otherwise] if isinstance(stmt, ir.If) else []
        return reduce(or_, map(self._touches, inside), touched)

    def _touched(self, stmts: Iterable[ir.Stmt], owner: Callable[[str, tuple[ir.Index, ...]], Owner]) -> _Since:
        """What the given statements touch, without those inside them."""
        read: set[tuple[str, Owner]] = set()
        written: set[tuple[str, Owner]] = set()
        for stmt in stmts:
            loads = [(load.array, load.index) for expr in ir.expressions(stmt) for load in loads_in(expr)]
            stores = [(stmt.array, stmt.index)] if isinstance(stmt, ir.Store) else []
            loads += stores if isinstance(stmt, ir.Store) and stmt.combine else []
            read |= {(self._root(array), owner(array, index)) for array, index in loads}
            written |= {(self._root(array), owner(array, index)) for array, index in stores}
        return _Since(frozenset(read), frozenset(written))

    def _owner(self, array: str, index: tuple[ir.Index, ...], nest: Sequence[ir.For]) -> Owner:
        """The thread that touches an element in a loop in threads; any for a view, whose indices are not those of its array."""
        found = [self._axis(index, one) for one in nest]
        known = [one for one in found if one is not None]
        lengths = tuple(ir.sub(one.stop, one.start) for one in nest[1:])
        if array in self.views or len(known) < len(nest) or not all(map(self._is_fixed, lengths)):
            return _ANY
        return _Passes(tuple(axis for axis, _ in known), tuple(origin for _, origin in known), lengths)

    def _axis(self, index: tuple[ir.Index, ...], loop: ir.For) -> tuple[int, ir.Index] | None:
        """The axis that a loop's counter indexes, and the index there in the first pass; None if there is none."""
        for axis, one in enumerate(index):
            move = ir.slope_and_rest(one, ir.Name("int64", loop.name))
            if move is not None and move[0] == 1 and self._is_fixed(origin := ir.add(move[1], loop.start)):
                return axis, origin
        return None

    def _is_fixed(self, value: ir.Index) -> bool:
        return not any(is_element or name in self.changing for name, is_element in ir.names_in(value))

    def _root(self, array: str) -> str:
        return self.memory.get(array, array)


def _is_shared(stmt: ir.Stmt) -> bool:
    return isinstance(stmt, ir.For) and stmt.kind in SHARED


def is_checked(stmt: ir.Stmt) -> TypeGuard[ir.For]:
    """True for a loop in threads whose passes may fail."""
    return isinstance(stmt, ir.For) and _is_shared(stmt) and _fails(stmt)


def _fails(stmt: ir.Stmt) -> bool:
    return any(isinstance(one, ir.Fail) for one in ir.walk([stmt]))


def _is_sum(stmt: ir.Stmt) -> bool:
    return isinstance(stmt, ir.For) and stmt.kind == "sums"


def _stores(stmt: ir.Stmt) -> bool:
    return any(isinstance(one, ir.Store) for one in ir.walk([stmt]))
