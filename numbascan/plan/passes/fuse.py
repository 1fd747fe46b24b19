"""Neighbouring loops over one range become one loop: fewer passes over memory.

    # before: for i in …: a[i] = f(i)          # after: for i in …: a[i] = f(i)
    #         for i in …: b[i] = g(a[i])       #                    b[i] = g(a[i])

Allowed where whatever one loop writes, the other touches at the very same index, or in another row, and both are nested as deeply.
Not handled: loops with calls or views inside, accumulators that the second loop reads, shifted ranges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from ...ir.loops import (
    For,
    Function,
    Index,
    Let,
    Name,
    Stmt,
    Store,
    expressions,
    mapped,
    mul,
    names_in,
    slope_and_rest,
    sub,
    walk,
    with_blocks,
    with_values,
)
from ...ir.mentions import loads_in, memory_of
from ..target import Target

Place = tuple[Index, ...]
Places = dict[str, set[Place]]  # of memory, by name; places in views, and in what has views, begin with the array's name


@dataclass(frozen=True)
class _Memory:
    """What a view is a view of, and locals that are numbers of different rows: those of a ring."""

    views: Mapping[str, str]
    rings: tuple[tuple[str, ...], ...]
    known: dict[int, tuple[For, _Effects]] = field(default_factory=dict)  # of loops, by their ids: a loop that grows is not read again

    def effects_of(self, loop: For) -> _Effects:
        """What the passes of a loop do."""
        if id(loop) not in self.known:
            self.known[id(loop)] = loop, _Effects.of(loop.body, self)
        return self.known[id(loop)][1]

    def are_rows_apart(self, one: Index, other: Index) -> bool:
        """Are two indices different, as long as what they read stays the same?"""
        difference = sub(one, other)
        if isinstance(difference, int):
            return difference != 0
        names = {index.name for index in (one, other) if isinstance(index, Name)}
        return len(names) == 2 and any(names <= set(ring) for ring in self.rings)


@dataclass
class _Effects:
    """What a block stores and touches, the scalars that it makes and those that it gives new values, and the indices of its loops."""

    stores: Places
    touches: Places
    made: set[str]
    changed: set[str]
    counters: set[str]
    is_plain: bool

    @staticmethod
    def of(stmts: Sequence[Stmt], memory: _Memory) -> _Effects:
        """Those of statements."""
        lets = [stmt for stmt in walk(stmts) if isinstance(stmt, Let)]
        return _Effects(
            _stores(stmts, memory),
            _touches(stmts, memory),
            {let.name for let in lets if let.is_new},
            {let.name for let in lets if not let.is_new},
            {stmt.name for stmt in walk(stmts) if isinstance(stmt, For)},
            _is_plain(stmts),
        )

    def changing(self) -> tuple[set[str], ...]:
        """The names that have other values in another pass: sets, for to join them takes time."""
        return self.made, self.changed, self.counters

    def outer_scalars(self) -> bool:
        """Are there scalars that the block gives new values without having made them?"""
        return not self.changed <= self.made

    def add(self, other: _Effects) -> None:
        """Those of another block behind it."""
        for places, others in ((self.stores, other.stores), (self.touches, other.touches)):
            for array, added in others.items():
                places.setdefault(array, set()).update(added)
        self.made |= other.made
        self.changed |= other.changed
        self.counters |= other.counters


def fuse(function: Function, target: Target) -> Function:
    """The function with neighbouring loops merged, inside out."""
    return replace(function, body=_fused(function.body, _Memory(memory_of(function.body), tuple(function.rings.values()))))


def _fused(stmts: Sequence[Stmt], memory: _Memory) -> list[Stmt]:
    result: list[Stmt] = []
    for stmt in stmts:
        merged = _with_one_before(result, stmt, memory) if isinstance(stmt, For) else None
        if merged is None:
            result.append(stmt)
        else:
            result[-len(merged) :] = merged
    return [with_blocks(stmt, lambda block: _fused(block, memory)) for stmt in result]


def _with_one_before(before: Sequence[Stmt], loop: For, memory: _Memory) -> list[Stmt] | None:
    """What the last statements become with `loop` merged into one of them: the last, or the last but one if these two may change places."""
    last = before[-1] if before else None
    if not isinstance(last, For):
        return None
    merged = _merged(last, loop, memory)
    if merged is not None:
        return [merged]
    other = before[-2] if len(before) > 1 else None
    if not isinstance(other, For) or not _may_change_places(other, last, memory):
        return None
    merged = _merged(other, loop, memory)
    return None if merged is None else [last, merged]


def _may_change_places(first: For, second: For, memory: _Memory) -> bool:
    """Does neither loop touch what the other writes?"""
    if not _is_plain(first.body) or not _is_plain(second.body):
        return False
    arrays = [(set(_stores([loop], memory)), set(_touches([loop], memory))) for loop in (first, second)]
    (written, touched), (others_written, others_touched) = arrays
    scalars = [_assigned(loop.body) for loop in (first, second)]
    reads = [{name for stmt in walk(loop.body) for name in _read_by(stmt)} for loop in (first, second)]
    return not (written & others_touched or others_written & touched or scalars[0] & (scalars[1] | reads[1]) or scalars[1] & reads[0])


def _read_by(stmt: Stmt) -> set[str]:
    return {name for part in expressions(stmt) for name, is_element in names_in(part) if not is_element}


def _depth(loop: For) -> int:
    """How many loops deep."""
    return 1 + max((_depth(stmt) for stmt in loop.body if isinstance(stmt, For)), default=0)


def _merged(first: For, second: For, memory: _Memory) -> For | None:
    """One loop for two, None where that would change a value."""
    if (first.start, first.stop, first.step) != (second.start, second.stop, second.step):
        return None
    if _depth(first) != _depth(second):  # the inner loop would find no partner any more
        return None
    if _counts_with(second.body, first.name):  # its loops inside would hide the index that it is to have
        return None
    body = [with_values(stmt, lambda expr: _renamed(expr, second.name, first.name)) for stmt in second.body]
    if not _is_plain(body):
        return None
    ours, theirs = memory.effects_of(first), _Effects.of(body, memory)
    if not ours.is_plain or not _may_interleave(first, ours, theirs, memory):
        return None
    kinds = {first.kind, second.kind}
    kind = first.kind if len(kinds) == 1 else "time" if "time" in kinds else "sequential"
    merged = For(first.name, first.start, first.stop, [*first.body, *body], first.step, kind)
    ours.add(theirs)
    memory.known[id(merged)] = merged, ours
    return merged


def _is_plain(stmts: Sequence[Stmt]) -> bool:
    """Only scalars, stores and loops of these."""
    return all(isinstance(stmt, Let | Store) or (isinstance(stmt, For) and _is_plain(stmt.body)) for stmt in stmts)


def _counts_with(stmts: Sequence[Stmt], name: str) -> bool:
    """Does a loop inside a block have this index?"""
    return any(isinstance(stmt, For) and stmt.name == name for stmt in walk(stmts))


def _may_interleave(loop: For, first: _Effects, second: _Effects, memory: _Memory) -> bool:
    # a scalar of one loop that the other reads (or changes) is a value of the last pass, or of all of them
    if first.outer_scalars() or second.outer_scalars():
        return False
    changing = ({loop.name}, *first.changing(), *second.changing())
    for written, touched in ((first.stores, second.touches), (second.stores, first.touches)):
        for array in written.keys() & touched.keys():
            pairs = product(written[array], touched[array])
            if not all(_is_one_place(loop.name, *pair) or _never_meet(*pair, loop, changing, memory) for pair in pairs):
                return False
    return True


def _is_one_place(counter: str, written: Place, touched: Place) -> bool:
    """Is it one element, another one in every pass?"""
    return written == touched and any(isinstance(part, Name) and part.name == counter for part in written)


def _never_meet(written: Place, touched: Place, loop: For, changing: Sequence[set[str]], memory: _Memory) -> bool:
    """Do two places of one array, or of one view, lie apart along an axis: in other rows, or as far away as there are passes?"""
    if len(written) != len(touched) or _view(written) != _view(touched):
        return False
    return any(_are_apart(one, other, loop, changing, memory) for one, other in zip(written, touched, strict=True))


def _are_apart(one: Index, other: Index, loop: For, changing: Sequence[set[str]], memory: _Memory) -> bool:
    forms = [slope_and_rest(index, Name("int64", loop.name)) for index in (one, other)]
    if forms[0] is None or forms[1] is None or forms[0][0] != forms[1][0]:
        return False
    (slope, rest), (_, other_rest) = forms[0], forms[1]
    names = [pair for part in (rest, other_rest) for pair in names_in(part)]
    if any(is_element or any(name in some for some in changing) for name, is_element in names):
        return False
    passes = sub(loop.stop, loop.start)
    if slope == 0:
        return memory.are_rows_apart(rest, other_rest)
    return abs(slope) == 1 and sub(rest, other_rest) in (passes, mul(passes, -1))


def _view(place: Place) -> Index | None:
    """The view that a place lies in."""
    head = place[0] if place else None
    return head if isinstance(head, Name) and head.dtype == "view" else None


def _assigned(stmts: Sequence[Stmt]) -> set[str]:
    return {stmt.name for stmt in walk(stmts) if isinstance(stmt, Let)}


def _stores(stmts: Sequence[Stmt], memory: _Memory) -> Places:
    places: Places = {}
    for stmt in walk(stmts):
        if isinstance(stmt, Store):
            _note(places, stmt.array, stmt.index, memory)
    return places


def _note(places: Places, array: str, index: Place, memory: _Memory) -> None:
    place = (Name("view", array), *index) if array in memory.views else index
    places.setdefault(memory.views.get(array, array), set()).add(place)


def _touches(stmts: Sequence[Stmt], memory: _Memory) -> Places:
    """Where each array is read or written."""
    places = _stores(stmts, memory)
    for stmt in walk(stmts):
        for load in (load for part in expressions(stmt) for load in loads_in(part)):
            _note(places, load.array, load.index, memory)
    return places


def _renamed(expr: Index, old: str, new: str) -> Index:
    """An expression with a loop's index called otherwise."""
    return mapped(expr, lambda part: Name(part.dtype, new) if isinstance(part, Name) and part.name == old else None)
