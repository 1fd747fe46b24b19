"""What statements read and write, and in which passes of a loop two accesses may be of one element.

    # for t in range(n):          the write of x[t + 1] and the read of x[t] have the slope 1 and the rests 1 and 0:
    #     x[t + 1] = f(x[t])      the read is of an element that was written one pass before

An access has the indices of an element; of fewer axes than the array has, it is all that these lead to. Whoever asks whether loops may
change asks here. All answers are on the safe side: what is not known may be any element, in any pass.
Not handled: arguments that share memory. Callers refuse these where one of them is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from .loops import (
    Alias,
    Alloc,
    Call,
    For,
    Index,
    Length,
    Let,
    Load,
    Name,
    Return,
    Stmt,
    Store,
    add,
    are_other_remainders,
    expressions,
    mul,
    names_in,
    parts,
    slope_and_rest,
    sub,
    walk,
)
from .mentions import memory_of, mentioned

Place = tuple[Index, ...]
Distances = frozenset[int] | None
"""How many passes later an element may be touched again: one number, none (never), or None (any number)."""

NEVER: frozenset[int] = frozenset()
_PART = re.compile(r"(?:\{(\d+)\})?(:\{\d+\}|:)?")  # of a view: one index, or a range of them with its first
_UNKNOWN = Load("int64", "", ())  # an index of which nothing is known


@dataclass(frozen=True, slots=True)
class Access:
    """An element of an array, or all that `place` leads to. The array is a view where it is not known where in its memory that lies."""

    array: str
    place: Place


Accesses = dict[str, set[Access]]  # by one name for all names of the memory


class Memory:
    """Where the arrays of a function lie, behind all views.

    A view is looked through where it is defined once, or always alike. What its indices read must not change as long as it is used: an
    index that reads an element or a scalar that is reassigned is unknown behind it. The locals of a ring are an exception, since a view
    of a row is made in the step that uses it.
    """

    def __init__(self, stmts: Sequence[Stmt], rings: Mapping[str, tuple[str, ...]]) -> None:
        """rings: of an array with rotating rows, the locals that number them, always different ones."""
        every = list(walk(stmts))
        self.roots, self.rings = memory_of(every), [set(ring) for ring in rings.values()]
        self._changed = {stmt.name for stmt in every if isinstance(stmt, Let) and not stmt.is_new}.difference(*self.rings)
        views = [stmt for stmt in every if isinstance(stmt, Alias)]
        by_name = {stmt.name: stmt for stmt in views}
        unlike = {stmt.name for stmt in views if stmt != by_name[stmt.name]}
        self._views = {name: None if name in unlike else view for name, view in by_name.items()}

    def root(self, array: str) -> str:
        """One name for all names of the same memory."""
        return self.roots.get(array, array)

    def at(self, array: str, place: Place) -> Access:
        """The access behind all views that are known."""
        while (view := self._views.get(array)) is not None:
            behind = self._behind(view, place)
            if behind is None:
                break
            array, place = view.array, behind
        return Access(array, place)

    def _behind(self, view: Alias, place: Place) -> Place | None:
        """The place in the array behind a view, for one in the view; None behind another shape."""
        text = view.text.text.removesuffix(".copy()")
        axes: list[Index] = []
        left = list(place)
        for part in map(_PART.fullmatch, text[1:-1].split(", ")):
            if part is None or text[0] != "[":
                return None
            start, is_range = part.groups()
            first = self._lasting(view.args[int(start)]) if start else 0
            if is_range and not left:
                return tuple(axes)
            axes.append(add(left.pop(0), first) if is_range else first)
        return (*axes, *left)

    def _lasting(self, index: Index) -> Index:
        return _UNKNOWN if any(is_element or name in self._changed for name, is_element in names_in(index)) else index

    def always_differ(self, one: Index, other: Index) -> bool:
        """True if two indices differ at any time, whatever their names stand for then."""
        distance = sub(one, other)
        names = {index.name for index in (one, other) if isinstance(index, Name)}
        is_of_ring = len(names) == 2 and any(names <= ring for ring in self.rings)
        return distance != 0 if isinstance(distance, int) else is_of_ring or are_other_remainders(one, other)

    def effects(self, stmts: Iterable[Stmt]) -> Effects:
        """What statements, nested ones included, touch."""
        effects = Effects()
        for stmt in walk(stmts):
            effects.note(stmt, self)
        return effects


@dataclass
class Effects:
    """What a block touches. made: what it defines. changed: scalars that it reassigns. counters: of its loops. scalars: what it reads of
    scalars, and the arrays of whose lengths. is_plain: it has scalars, stores and loops only.
    """

    written: Accesses = field(default_factory=dict)
    read: Accesses = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    counters: set[str] = field(default_factory=set)
    scalars: set[str] = field(default_factory=set)
    is_plain: bool = True

    def note(self, stmt: Stmt, memory: Memory) -> None:
        """Adds what a statement touches, without those inside it."""
        self.is_plain = self.is_plain and isinstance(stmt, Let | Store | For)
        if isinstance(stmt, Let | Alloc | Alias):
            (self.changed if isinstance(stmt, Let) and not stmt.is_new else self.made).add(stmt.name)
        elif isinstance(stmt, For):
            self.counters.add(stmt.name)
        elif isinstance(stmt, Store):
            self._touch(self.written, stmt.array, stmt.index, memory)
            if stmt.combine:
                self._touch(self.read, stmt.array, stmt.index, memory)
        elif isinstance(stmt, Call | Return):
            for name in mentioned([stmt]):
                self._touch(self.written if isinstance(stmt, Call) and name in stmt.results else self.read, name, (), memory)
        if isinstance(stmt, Alias) and stmt.text.text.endswith(".copy()"):
            self._touch(self.read, stmt.name, (), memory)
        for part in (part for expr in expressions(stmt) for part in parts(expr)):
            if isinstance(part, Load):
                self._touch(self.read, part.array, part.index, memory)
            elif isinstance(part, Name | Length):
                self.scalars.add(part.name if isinstance(part, Name) else part.array)

    @staticmethod
    def _touch(accesses: Accesses, array: str, place: Place, memory: Memory) -> None:
        accesses.setdefault(memory.root(array), set()).add(memory.at(array, place))

    def add(self, other: Effects) -> None:
        """Adds what a block that follows touches."""
        for accesses, others in ((self.written, other.written), (self.read, other.read)):
            for root, added in others.items():
                accesses.setdefault(root, set()).update(added)
        self.made |= other.made
        self.changed |= other.changed
        self.counters |= other.counters
        self.scalars |= other.scalars
        self.is_plain = self.is_plain and other.is_plain

    def touched(self, root: str) -> set[Access]:
        """All that is read or written of a memory."""
        return self.written.get(root, set()) | self.read.get(root, set())

    @property
    def assigned(self) -> set[str]:
        """The scalars, views and arrays that the block defines, and the scalars that it reassigns."""
        return self.made | self.changed

    def share_memory(self, other: Effects) -> bool:
        """True if one of two blocks writes what the other one touches, anywhere in its memory."""
        ours, theirs = ({*one.written, *one.read} for one in (self, other))
        return not (theirs.isdisjoint(self.written) and ours.isdisjoint(other.written))

    def may_change_places(self, other: Effects) -> bool:
        """True if neither of two blocks assigns or writes what the other one touches: they may run in any order."""
        ours, theirs = (one.assigned | one.scalars for one in (self, other))
        return theirs.isdisjoint(self.assigned) and ours.isdisjoint(other.assigned) and not self.share_memory(other)


class Passes:
    """The passes of a loop, and what is the same in all of them."""

    def __init__(self, loop: For, memory: Memory, *bodies: Effects) -> None:
        """bodies: what the loop's body does, in parts."""
        self.counter, self.memory, self.bodies = Name("int64", loop.name), memory, bodies
        self.count = sub(loop.stop, loop.start)
        self._forms: dict[Index, tuple[int, Index] | None] = {}

    def changes(self, name: str, is_element: bool = False) -> bool:
        """True if a local, or the elements of an array, may not be the same in all passes. Lengths of arrays are."""
        if is_element:
            return not name or any(self.memory.root(name) in body.written for body in self.bodies)
        return name == self.counter.name or any(name in body.made or name in body.changed or name in body.counters for body in self.bodies)

    def form(self, index: Index) -> tuple[int, Index] | None:
        """(slope, rest) of an index that is slope * counter + rest, the rest the same in all passes; None if it is not of this form."""
        if index not in self._forms:
            found = slope_and_rest(index, self.counter)
            is_fixed = found is not None and not any(self.changes(*name) for name in names_in(found[1]))
            self._forms[index] = found if is_fixed else None
        return self._forms[index]

    def moves(self, place: Place) -> bool:
        """True if a place is another one in each pass, since one of its indices is."""
        return any(form is not None and form[0] != 0 for form in map(self.form, place))

    def distances(self, one: Access, other: Access) -> Distances:
        """How many passes after `one` touches an element `other` may touch it."""
        if one.array != other.array or self.changes(one.array):
            return None
        found: Distances = None
        for index, index_then in zip(one.place, other.place, strict=False):
            along = self._along(index, index_then)
            found = along if found is None else found if along is None else found & along
        return found

    def _along(self, index: Index, index_then: Index) -> Distances:
        """The distances at which two indices along one axis are equal: slope * t + rest = slope * t_then + rest_then."""
        form, then = self.form(index), self.form(index_then)
        if form is None or then is None or form[0] != then[0]:
            return None
        slope, distance = form[0], sub(form[1], then[1])
        if slope == 0:
            return NEVER if self.memory.always_differ(form[1], then[1]) else None
        if isinstance(distance, int):
            passes, rest = divmod(distance, slope)
            return NEVER if rest or (isinstance(self.count, int) and abs(passes) >= self.count) else frozenset((passes,))
        # Ranges that lie end to end: t_then - t is the number of passes, or its negative.
        return NEVER if distance in (mul(self.count, slope), mul(self.count, -slope)) else None

    def are_apart(self, one: Access, other: Access) -> bool:
        """True if two accesses are never of one element, in whatever passes."""
        return self.distances(one, other) == NEVER

    def are_of_one_pass(self, one: Access, other: Access) -> bool:
        """True if an element that `one` touches in one pass `other` touches in none but this one."""
        distances = self.distances(one, other)
        return distances is not None and distances <= {0}

    def is_own(self, root: str) -> bool:
        """True if no pass touches what another one writes of a memory."""
        written = [access for body in self.bodies for access in body.written.get(root, ())]
        touched = [access for body in self.bodies for access in body.touched(root)]
        return all(self.are_of_one_pass(one, other) for one in written for other in touched)

    def are_independent(self, private: Set[str] = frozenset()) -> bool:
        """True if no pass touches what another one writes in memory, that of the arrays `private` apart."""
        apart = set(map(self.memory.root, private))
        return all(self.is_own(root) for body in self.bodies for root in body.written.keys() - apart)
