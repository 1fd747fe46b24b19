"""Statements as they run in all threads of a grid at once, so that a loop over time with wide states is one kernel.

    # before: for t in range(n):            # after: for t in range(n):
    #             threads over i:           #            threads over i:
    #                 y[i] = f(x, i)        #                y[i] = f(x, i)
    #             x[0] = y[3]               #            barrier
                                            #            if first: x[0] = y[3]
                                            #            barrier

Every thread computes all scalars, which therefore are the same in all of them; passes of loops in threads are shared out; what is written
otherwise is written by the first thread. A barrier stands where a statement touches memory that another thread has written since the last
one, or writes memory that another thread has read since then. Loops give the same passes to the same threads, so where two loops meet an
array at the place of the pass alone, each thread meets its own numbers again.

A thread whose pass fails leaves its loop, and says so; behind the loop all threads wait for one another, look, and end together.

Not handled: memory taken inside, routines, and errors in loops within a pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import TypeGuard

from ..ir.loops import (
    Alias,
    Alloc,
    Apply,
    Barrier,
    Break,
    Call,
    Fail,
    For,
    If,
    Index,
    Let,
    Name,
    Return,
    Stmt,
    Store,
    Template,
    add,
    expressions,
    names_in,
    slope_and_rest,
    sub,
    walk,
)
from ..ir.mentions import loads_in, mentions_in

IS_FIRST = Apply("bool", Template("cuda.grid(1) == 0"), ())
SHARED = ("threads", "sums")


class Unfit(Exception):
    """Statements that cannot run so."""


def is_wide(stmt: Stmt) -> bool:
    """Are there passes to share out, inside a statement?"""
    return any(isinstance(one, For) and one.kind in SHARED for one in walk([stmt]))


def in_all_threads(stmts: Sequence[Stmt], memory: Mapping[str, str], views: Set[str], mentions: Counter[str]) -> list[Stmt]:
    """The statements with barriers. `memory`: of names for parts of the same memory, one; `views`: the names of parts; `mentions`: in how
    many statements of the function a name stands."""
    changing = {stmt.name for stmt in walk(stmts) if isinstance(stmt, Let | For)}
    return _Placing(memory, views, mentions, changing).block(stmts, _Since())[0]


def nest_of(loop: For) -> list[For]:
    """The loops of a nest whose passes are counted as one."""
    nest = [loop]
    while len(nest[-1].body) == 1 and isinstance(inner := nest[-1].body[0], For) and inner.kind == loop.kind:
        nest.append(inner)
    return nest


@dataclass(frozen=True)
class _Passes:
    """Which thread meets an element: that of the pass whose counters are what stands on these axes, less these numbers.

    lengths: of the loops but the outermost, by which passes are counted.
    """

    axes: tuple[int, ...]
    origins: tuple[Index, ...]
    lengths: tuple[Index, ...]


_FIRST, _ANY = "the first thread", "any thread"
Owner = _Passes | str
Touched = frozenset[tuple[str, Owner]]  # arrays, and who touches their elements


@dataclass(frozen=True)
class _Since:
    """What is touched since the last barrier."""

    read: Touched = frozenset()
    written: Touched = frozenset()

    def __or__(self, other: _Since) -> _Since:
        return _Since(self.read | other.read, self.written | other.written)

    def waits(self, other: _Since) -> bool:
        """Must a barrier stand before what touches `other`?"""
        return _meet(self.written, other.read) or _meet(self.read | self.written, other.written)


def _meet(some: Touched, others: Touched) -> bool:
    """May two threads touch the same element?"""
    return any(array == other and (owner != by or owner == _ANY) for array, owner in some for other, by in others)


@dataclass
class _Placing:
    """`changing`: scalars that are not the same all the time."""

    memory: Mapping[str, str]
    views: Set[str]
    mentions: Counter[str]
    changing: Set[str]

    def block(self, stmts: Iterable[Stmt], since: _Since) -> tuple[list[Stmt], _Since]:
        """A block with its barriers, and what is touched since the last of them at its end."""
        result: list[Stmt] = []
        for stmt in stmts:
            if isinstance(stmt, Alloc | Call | Return):
                raise Unfit
            if isinstance(stmt, For | If) and not self._is_single(stmt) and (is_wide(stmt) or _stores(stmt)) and not _is_shared(stmt):
                placed, since = self._around(stmt, since)
                result += placed
                continue
            self._check(stmt)
            touches = self._touches(stmt)
            if _is_sum(stmt) or since.waits(touches):
                result.append(Barrier())
                since = _Since()
            result += [If(IS_FIRST, [stmt])] if isinstance(stmt, Store) or self._is_single(stmt) else [stmt]
            since = _Since() if _is_sum(stmt) or is_checked(stmt) else since | touches  # these end with a barrier
        return result, since

    def _around(self, stmt: For | If, since: _Since) -> tuple[list[Stmt], _Since]:
        """A loop or a choice that all threads go through."""
        before: list[Stmt] = []
        head = replace(stmt, body=[]) if isinstance(stmt, For) else If(stmt.condition, [])
        touches = self._touches(head)
        if since.waits(touches):
            before, since = [Barrier()], _Since()
        since |= touches
        if isinstance(stmt, If):
            then, after_then = self.block(stmt.then, since)
            otherwise, after_otherwise = self.block(stmt.otherwise, since)
            return [*before, If(stmt.condition, then, otherwise)], after_then | after_otherwise
        while True:
            body, end = self.block(stmt.body, since)
            if since | end == since:
                break
            since |= end
        everything = _Since()  # a pass may end anywhere
        for one in stmt.body:
            everything |= self._touches(one)
        return [*before, replace(stmt, body=body)], since | everything

    def _check(self, stmt: Stmt) -> None:
        inside = list(walk([stmt]))
        if is_checked(stmt) and any(isinstance(one, For) and _fails(one) for one in walk(nest_of(stmt)[-1].body)):
            raise Unfit
        if any(isinstance(one, Call | Return) or (isinstance(one, Alloc) and not (_is_shared(stmt) and one.on_stack)) for one in inside):
            raise Unfit

    def _is_single(self, stmt: Stmt) -> bool:
        """May the first thread alone run a loop or a choice? Nobody else may need what it computes, nor wait for it in vain."""
        inside = list(walk([stmt]))
        if not isinstance(stmt, For | If) or is_wide(stmt) or not _stores(stmt) or any(isinstance(one, Fail) for one in inside):
            return False
        if isinstance(stmt, If) and any(isinstance(one, Break) for one in inside):
            return False
        within = mentions_in(inside)
        return not any(isinstance(one, Let | Alias) and self.mentions[one.name] > within[one.name] for one in inside)

    def _touches(self, stmt: Stmt) -> _Since:
        if isinstance(stmt, For) and _is_shared(stmt):
            nest = nest_of(stmt)
            return self._touched(walk([stmt]), lambda array, index: self._owner(array, index, nest))
        if isinstance(stmt, Store) or self._is_single(stmt):
            return self._touched(walk([stmt]), lambda *_: _FIRST)
        touched = self._touched([stmt], lambda *_: _ANY)
        inside = stmt.body if isinstance(stmt, For) else [*stmt.then, *stmt.otherwise] if isinstance(stmt, If) else []
        return reduce(or_, map(self._touches, inside), touched)

    def _touched(self, stmts: Iterable[Stmt], owner: Callable[[str, tuple[Index, ...]], Owner]) -> _Since:
        """What statements touch themselves."""
        read: set[tuple[str, Owner]] = set()
        written: set[tuple[str, Owner]] = set()
        for stmt in stmts:
            loads = [(load.array, load.index) for expr in expressions(stmt) for load in loads_in(expr)]
            stores = [(stmt.array, stmt.index)] if isinstance(stmt, Store) else []
            loads += stores if isinstance(stmt, Store) and stmt.combine else []
            read |= {(self._root(array), owner(array, index)) for array, index in loads}
            written |= {(self._root(array), owner(array, index)) for array, index in stores}
        return _Since(frozenset(read), frozenset(written))

    def _owner(self, array: str, index: tuple[Index, ...], nest: Sequence[For]) -> Owner:
        """Who meets an element in a loop in threads. A view's indices are not those of its array."""
        found = [self._axis(index, one) for one in nest]
        known = [one for one in found if one is not None]
        lengths = tuple(sub(one.stop, one.start) for one in nest[1:])
        if array in self.views or len(known) < len(nest) or not all(map(self._is_fixed, lengths)):
            return _ANY
        return _Passes(tuple(axis for axis, _ in known), tuple(origin for _, origin in known), lengths)

    def _axis(self, index: tuple[Index, ...], loop: For) -> tuple[int, Index] | None:
        """The axis on which a loop's counter stands, and what stands there in its first pass."""
        for axis, one in enumerate(index):
            move = slope_and_rest(one, Name("int64", loop.name))
            if move is not None and move[0] == 1 and self._is_fixed(origin := add(move[1], loop.start)):
                return axis, origin
        return None

    def _is_fixed(self, value: Index) -> bool:
        return not any(is_element or name in self.changing for name, is_element in names_in(value))

    def _root(self, array: str) -> str:
        return self.memory.get(array, array)


def _is_shared(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and stmt.kind in SHARED


def is_checked(stmt: Stmt) -> TypeGuard[For]:
    """Is it a loop in threads whose passes may fail?"""
    return isinstance(stmt, For) and _is_shared(stmt) and _fails(stmt)


def _fails(stmt: Stmt) -> bool:
    return any(isinstance(one, Fail) for one in walk([stmt]))


def _is_sum(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and stmt.kind == "sums"


def _stores(stmt: Stmt) -> bool:
    return any(isinstance(one, Store) for one in walk([stmt]))
