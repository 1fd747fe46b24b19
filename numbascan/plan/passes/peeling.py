"""Loop peeling: a loop whose elements come from another place at its edges does these by themselves, and the SIMD unit takes the rest.

    # before: for i in range(n):                                  # after: if 0 < n:
    #             y[i] = x[i - 1 + n if i - 1 < 0 else i - 1]      #            y[0] = x[n - 1]
    #                                                              #        for i in range(1, n):
    #                                                              #            y[i] = x[i - 1]

A condition on the index that changes near the beginning or the end of the loop makes an edge. One that changes elsewhere, as at the shift
of a roll that only the run knows, makes two loops.
LLVM takes an index for one that may count from the end unless it sees that it is not negative. So places that go backwards, or that begin
where only the run knows, are unsigned.
Not handled: loops that hold more than scalars and stores, and conditions that read more than the index and what no pass changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ...ir.loops import (
    CHOICE_BETWEEN,
    COMPARE_WITH,
    FUNCTION,
    INDEX_DIFFERENCE,
    INDEX_SUM,
    LEAST,
    OF_BOTH,
    OF_EITHER,
    Alias,
    Alloc,
    Apply,
    Expr,
    For,
    Function,
    If,
    Index,
    Length,
    Let,
    Literal,
    Load,
    Name,
    Stmt,
    Store,
    Template,
    add,
    both,
    choice,
    compare,
    either,
    expressions,
    greatest,
    is_reduction,
    least,
    linear,
    mapped,
    names_in,
    parts,
    slope_and_rest,
    sub,
    walk,
    with_blocks,
    with_values,
)
from ..target import Target

_WIDEST = 64  # passes of an edge
_MOST_CUTS = 2  # each of which doubles the loops
_SIGNS = {COMPARE_WITH[sign]: sign for sign in ("<", "<=", ">", ">=")}
_UNSIGNED = Template("np.uint64({0})")
Turns = Mapping[Expr, tuple[Index, bool]]  # by condition: the pass from which on it is otherwise, and what it is before


def peeling(function: Function, target: Target) -> Function:
    """The function with such loops in pieces."""
    return replace(function, body=_each(function.body, set()))


def _each(stmts: Iterable[Stmt], counters: set[Index]) -> list[Stmt]:
    """`counters`: the indices of the loops around, which are never negative."""
    result: list[Stmt] = []
    for stmt in stmts:
        if isinstance(stmt, For) and _is_pass(stmt):
            result += _pieces(stmt, counters)
        else:
            inside = counters | {Name("int64", stmt.name)} if isinstance(stmt, For) else counters
            changed = with_blocks(_without_questions(stmt) if isinstance(stmt, For) else stmt, partial(_each, counters=inside))
            result += [changed] if not isinstance(changed, For) or changed.body else []
    return result


def _without_questions(loop: For) -> For:
    """A loop around others without conditions that hold in all of its passes, or in none."""
    turns = dict(_turns(loop)) if loop.step == 1 else {}
    firsts, lasts, _ = _sides(loop, (place for place, _ in turns.values()))
    return replace(loop, body=_known(loop.body, turns, before=_Edge.of(lasts).beyond, behind=_Edge.of(firsts).beyond))


def _is_pass(loop: For) -> bool:
    """Does a loop do nothing but compute numbers and store them?"""
    plain = (isinstance(stmt, Store) or (isinstance(stmt, Let) and (stmt.is_new or is_reduction(stmt))) for stmt in loop.body)
    return loop.kind == "sequential" and loop.step == 1 and all(plain)


def _pieces(loop: For, counters: set[Index], cuts: int = 0) -> list[Stmt]:
    """A loop's edges and what is between them; the pieces of its two parts where it is cut."""
    turns = dict(_turns(loop))
    firsts, lasts, others = _sides(loop, dict.fromkeys(place for place, _ in turns.values()))
    if others and cuts < _MOST_CUTS:
        middle = least(greatest(others[0], loop.start), loop.stop)
        if any(isinstance(term, Apply) for term in linear(others[0])[0]):  # a division by the length of no elements
            middle = choice(compare("<", loop.start, loop.stop), middle, loop.stop)
        left = replace(loop, stop=middle, body=_known(loop.body, turns, before=others[:1]))
        right = replace(loop, start=middle, body=_known(loop.body, turns, behind=others[:1]))
        return [piece for part in (left, right) if part.start != part.stop for piece in _pieces(part, counters, cuts + 1)]
    first_edge, last_edge = _Edge.of(firsts), _Edge.of(lasts)
    first, end = add(loop.start, first_edge.width), sub(loop.stop, last_edge.width)
    pieces: list[Stmt] = []
    if first_edge.width:
        body = _known(loop.body, turns, before=[*first_edge.places, *last_edge.beyond], behind=first_edge.beyond)
        only = loop.start if first_edge.width == 1 else None
        pieces += _edge(replace(loop, stop=least(first, loop.stop), body=body), compare("<", loop.start, loop.stop), only)
    pieces += _inside(replace(loop, start=first, stop=end, body=_known(loop.body, turns, before=lasts, behind=firsts)), counters)
    if last_edge.width:
        body = _known(loop.body, turns, before=last_edge.beyond, behind=[*firsts, *last_edge.places])
        only = end if last_edge.width == 1 else None
        pieces += _edge(replace(loop, start=greatest(first, end), body=body), compare("<", first, loop.stop), only)
    return pieces


@dataclass(frozen=True)
class _Edge:
    """The passes of an edge, the places at its inner side, and the places that no pass reaches."""

    width: int
    places: list[Index]
    beyond: list[Index]

    @classmethod
    def of(cls, widths: Mapping[Index, int]) -> _Edge:
        width = max(0, *widths.values()) if widths else 0
        return cls(width, [place for place in widths if widths[place] == width], [place for place in widths if widths[place] <= 0])


def _sides(loop: For, places: Iterable[Index]) -> tuple[dict[Index, int], dict[Index, int], list[Index]]:
    """The places near the beginning of a loop, and those near its end, with the passes of such an edge; and the other ones."""
    firsts: dict[Index, int] = {}
    lasts: dict[Index, int] = {}
    others: list[Index] = []
    for place in places:
        first, last = sub(place, loop.start), sub(loop.stop, place)
        if isinstance(first, int) and first <= _WIDEST and not (isinstance(last, int) and last < first):
            firsts[place] = first
        elif isinstance(last, int) and last <= _WIDEST:
            lasts[place] = last
        else:
            others.append(place)
    return firsts, lasts, others


def _edge(loop: For, condition: Expr, only: Index | None) -> list[Stmt]:
    """An edge; `only`: its one pass, if there is one under a condition. A function has other bits outside loops (emit/cpu/in_lanes.py)."""
    if loop.start == loop.stop or condition == Literal("bool", False):
        return []
    exprs = [part for stmt in loop.body for expr in expressions(stmt) for part in parts(expr)]
    if only is None or any(isinstance(part, Apply) and part.template.cost == FUNCTION for part in exprs):
        return [loop]
    body = [_at(stmt, Name("int64", loop.name), only) for stmt in loop.body]
    return body if condition == Literal("bool", True) else [If(condition, body)]


def _inside(loop: For, counters: set[Index]) -> list[Stmt]:
    """A loop with places unsigned of which LLVM would not see that they are not negative."""
    i = Name("int64", loop.name)

    def unsigned(index: Index) -> Index:
        form = slope_and_rest(index, i)
        if form is None or form[0] == 0:
            return index
        (slope, rest), start = form, loop.start
        terms, number = linear(rest)
        is_sum = terms.keys() <= counters and all(factor > 0 for factor in terms.values())
        is_seen = slope > 0 and is_sum and isinstance(start, int) and slope * start + number >= 0
        return index if is_seen else Apply("uint64", _UNSIGNED, (index,))

    def placed(part: Expr) -> Load | None:
        if not isinstance(part, Load):
            return None
        return Load(part.dtype, part.array, tuple(unsigned(mapped(index, placed)) for index in part.index))

    passes = sub(loop.stop, loop.start)
    if isinstance(passes, int) and passes <= 0:
        return []
    most = passes.args[0] if isinstance(passes, Apply) and passes.template is LEAST else passes
    if isinstance(most, int) and most <= _WIDEST:
        return [loop]
    body: list[Stmt] = []
    for stmt in loop.body:
        changed = with_values(stmt, lambda expr: mapped(expr, placed))
        body.append(replace(changed, index=tuple(map(unsigned, changed.index))) if isinstance(changed, Store) else changed)
    return [replace(loop, body=body)]


# conditions -----------------------------------------------------------------------------------------------------------


def _turns(loop: For) -> Iterator[tuple[Expr, tuple[Index, bool]]]:
    """The conditions that change once as a loop goes on."""
    i = Name("int64", loop.name)
    inside = list(walk(loop.body))
    changing = {loop.name, *(stmt.name for stmt in inside if isinstance(stmt, Let | For | Alloc | Alias))}
    for stmt in inside:
        for part in (part for expr in expressions(stmt) for part in parts(expr)):
            if not isinstance(part, Apply) or part.template not in _SIGNS:
                continue
            sign, form = _SIGNS[part.template], slope_and_rest(sub(*part.args), i)
            if form is None or abs(form[0]) != 1 or any(name in changing or is_element for name, is_element in names_in(form[1])):
                continue
            # slope * i + rest < 0:  i < -rest, or i > rest
            slope, rest = form
            place = sub(0, rest) if slope == 1 else rest
            place = add(place, 1) if (sign in ("<=", ">")) == (slope == 1) else place
            if _is_safe(place, loop):
                yield part, (place, (sign in ("<", "<=")) == (slope == 1))


def _is_safe(place: Index, loop: For) -> bool:
    """Is it sure that no sum leaves the range of integers?"""
    if isinstance(sub(loop.stop, place), int):
        return True
    terms, number = linear(place)
    is_of_lengths = all(isinstance(term, Length) for term in terms)
    stands_alone = number == 0 and list(terms.values()) == [1]  # as it was in the condition
    return is_of_lengths or (stands_alone and all(isinstance(term, Expr) and term.dtype == "int64" for term in terms))


def _known(stmts: Sequence[Stmt], turns: Turns, before: Iterable[Index] = (), behind: Iterable[Index] = ()) -> list[Stmt]:
    """Statements for passes `before` some places and `behind` others: what their conditions are is known there."""
    sides = {**dict.fromkeys(before, True), **dict.fromkeys(behind, False)}

    def answer(part: Expr) -> Index | None:
        if part in turns and turns[part][0] in sides:
            place, is_before = turns[part]
            return Literal("bool", is_before == sides[place])
        if isinstance(part, Apply) and part.template == CHOICE_BETWEEN:
            condition, yes, no = (mapped(arg, answer) for arg in part.args)
            assert isinstance(condition, Expr)
            return choice(condition, yes, no, part.dtype)
        if isinstance(part, Apply) and part.template in (OF_BOTH, OF_EITHER):
            joined = both if part.template == OF_BOTH else either
            return joined(*(side for side in (mapped(arg, answer) for arg in part.args) if isinstance(side, Expr)))
        return None

    return [_changed(stmt, answer) for stmt in stmts]


def _at(stmt: Stmt, i: Name, place: Index) -> Stmt:
    """A statement of pass i at one place."""

    def moved(part: Expr) -> Index | None:
        if isinstance(part, Apply) and part.template in (INDEX_SUM, INDEX_DIFFERENCE):
            return (add if part.template is INDEX_SUM else sub)(*(mapped(arg, moved) for arg in part.args))
        return place if part == i else None

    return _changed(stmt, moved)


def _changed(stmt: Stmt, change: Callable[[Expr], Index | None]) -> Stmt:
    return with_values(stmt, lambda expr: mapped(expr, change))
