"""Statements as they run in all threads of a grid at once, so that a loop over time with wide states is one kernel.

    # before: for t in range(n):            # after: for t in range(n):
    #             threads over i:           #            threads over i:
    #                 y[i] = f(x, i)        #                y[i] = f(x, i)
    #             x[0] = y[3]               #            barrier
                                            #            if first: x[0] = y[3]
                                            #            barrier

Every thread computes all scalars, which therefore are the same in all of them; passes of loops in threads are shared out; what is written
otherwise is written by the first thread. A barrier stands where a statement touches memory that another thread has written since the last
one, or writes memory that another thread has read since then.

Not handled: memory taken inside, routines, and errors in loops in threads, which would leave the other threads waiting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..ir.loops import Alias, Alloc, Apply, Barrier, Break, Call, Fail, For, If, Let, Return, Stmt, Store, Template, expressions, walk
from ..ir.mentions import loads_in, mentions_in

IS_FIRST = Apply("bool", Template("cuda.grid(1) == 0"), ())
SHARED = ("threads", "sums")


class Unfit(Exception):
    """Statements that cannot run so."""


def is_wide(stmt: Stmt) -> bool:
    """Are there passes to share out, inside a statement?"""
    return any(isinstance(one, For) and one.kind in SHARED for one in walk([stmt]))


def in_all_threads(stmts: Sequence[Stmt], memory: Mapping[str, str], mentions: Counter[str]) -> list[Stmt]:
    """The statements with barriers. `memory`: of names for parts of the same memory, one; `mentions`: in how many statements of the
    function a name stands."""
    return _Placing(memory, mentions).block(stmts, _Since())[0]


@dataclass(frozen=True)
class _Since:
    """The arrays touched since the last barrier: by the first thread alone, or by any."""

    read: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()
    read_by_first: frozenset[str] = frozenset()
    written_by_first: frozenset[str] = frozenset()

    def __or__(self, other: _Since) -> _Since:
        return _Since(
            self.read | other.read,
            self.written | other.written,
            self.read_by_first | other.read_by_first,
            self.written_by_first | other.written_by_first,
        )

    def waits(self, other: _Since) -> bool:
        """Must a barrier stand before what touches `other`?"""
        by_any = other.read & (self.written | self.written_by_first)
        by_any |= other.written & (self.read | self.written | self.read_by_first | self.written_by_first)
        by_first = (other.read_by_first & self.written) | (other.written_by_first & (self.read | self.written))
        return bool(by_any or by_first)


@dataclass
class _Placing:
    memory: Mapping[str, str]
    mentions: Counter[str]

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
            since = _Since() if _is_sum(stmt) else since | touches  # a sum ends with a barrier
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
        if _is_shared(stmt) and any(isinstance(one, Fail) for one in inside):
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
        read = frozenset(self._root(load.array) for one in walk([stmt]) for expr in expressions(one) for load in loads_in(expr))
        stores = [one for one in walk([stmt]) if isinstance(one, Store)]
        written = frozenset(self._root(one.array) for one in stores)
        read |= {self._root(one.array) for one in stores if one.combine}
        if isinstance(stmt, Store) or self._is_single(stmt):
            return _Since(read_by_first=read, written_by_first=written)
        return _Since(read, written)

    def _root(self, array: str) -> str:
        return self.memory.get(array, array)


def _is_shared(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and stmt.kind in SHARED


def _is_sum(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and stmt.kind == "sums"


def _stores(stmt: Stmt) -> bool:
    return any(isinstance(one, Store) for one in walk([stmt]))
