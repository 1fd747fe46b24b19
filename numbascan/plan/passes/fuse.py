"""Loop fusion: neighbouring loops over one range become one loop, with fewer passes over memory.

    # before: for i in …: a[i] = f(i)          # after: for i in …: a[i] = f(i)
    #         for i in …: b[i] = g(a[i])       #                    b[i] = g(a[i])

Allowed if both loops nest equally deep and each touches what the other writes only at the same index, or in other rows.
Not handled:
- loops with calls or views inside
- accumulators that the second loop reads
- shifted ranges
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
Places = dict[str, set[Place]]  # by the name of the memory; places in views, and in arrays that have views, begin with the array's name


@dataclass(frozen=True)
class _Memory:
    """The memory behind views, and the rings: locals that always number different rows."""

    views: Mapping[str, str]
    rings: tuple[tuple[str, ...], ...]
    known: dict[int, tuple[For, _Effects]] = field(default_factory=dict)  # by the loop's id: a loop that grows is not analysed again

    def effects_of(self, loop: For) -> _Effects:
        """The effects of a loop's passes."""
        if id(loop) not in self.known:
            self.known[id(loop)] = loop, _Effects.of(loop.body, self)
        return self.known[id(loop)][1]

    def are_rows_apart(self, one: Index, other: Index) -> bool:
        """True if two indices always differ, as those made of two locals of one ring do."""
        difference = sub(one, other)
        if isinstance(difference, int):
            return difference != 0
        names = {index.name for index in (one, other) if isinstance(index, Name)}
        return len(names) == 2 and any(names <= set(ring) for ring in self.rings)


@dataclass
class _Effects:
    """The effects of a block: places stored and touched, scalars defined and reassigned, counters of its loops."""

    stores: Places
    touches: Places
    made: set[str]
    changed: set[str]
    counters: set[str]
    is_plain: bool

    @staticmethod
    def of(stmts: Sequence[Stmt], memory: _Memory) -> _Effects:
        """The effects of statements."""
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
        """The names whose values change from pass to pass, in several sets because joining them takes time."""
        return self.made, self.changed, self.counters

    def outer_scalars(self) -> bool:
        """True if the block reassigns a scalar that it does not define."""
        return not self.changed <= self.made

    def add(self, other: _Effects) -> None:
        """Adds the effects of a block that follows."""
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
    """The last statements with `loop` fused into the last, or into the last but one if these two may change places; None if neither may."""
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
    """True if neither loop touches what the other writes."""
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
    """The depth of a loop nest; 1 for a loop without inner loops."""
    return 1 + max((_depth(stmt) for stmt in loop.body if isinstance(stmt, For)), default=0)


def _merged(first: For, second: For, memory: _Memory) -> For | None:
    """The fused loop; None if fusion could change a value or is not handled."""
    if (first.start, first.stop, first.step) != (second.start, second.stop, second.step):
        return None
    if _depth(first) != _depth(second):  # the deeper one's inner loops would have no partner to fuse with later
        return None
    if _counts_with(second.body, first.name):  # an inner loop would shadow the renamed counter
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
    """True if there are only scalars, stores and loops of these."""
    return all(isinstance(stmt, Let | Store) or (isinstance(stmt, For) and _is_plain(stmt.body)) for stmt in stmts)


def _counts_with(stmts: Sequence[Stmt], name: str) -> bool:
    """True if a loop among the statements has this counter."""
    return any(isinstance(stmt, For) and stmt.name == name for stmt in walk(stmts))


def _may_interleave(loop: For, first: _Effects, second: _Effects, memory: _Memory) -> bool:
    # an outer scalar that one loop reassigns: fused, the other could see its value after each pass, not after the last
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
    """True if both are the same element, and each pass has another one."""
    return written == touched and any(isinstance(part, Name) and part.name == counter for part in written)


def _never_meet(written: Place, touched: Place, loop: For, changing: Sequence[set[str]], memory: _Memory) -> bool:
    """True if two places of one array or view are apart along an axis: in different rows, or as far apart as the loop has passes."""
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
    # The two ranges of rows lie end to end: no pass of one loop reaches a row of the other.
    return abs(slope) == 1 and sub(rest, other_rest) in (passes, mul(passes, -1))


def _view(place: Place) -> Index | None:
    """The view that a place lies in; None if it is in no view."""
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
    """The expression with a loop's counter renamed."""
    return mapped(expr, lambda part: Name(part.dtype, new) if isinstance(part, Name) and part.name == old else None)
