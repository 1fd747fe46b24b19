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

from ...ir import loops as ir
from ..target import Target

_WIDEST = 64  # passes of an edge
_MOST_CUTS = 2  # each of which doubles the loops
_SIGNS = {ir.COMPARE_WITH[sign]: sign for sign in ("<", "<=", ">", ">=")}
_UNSIGNED = ir.Template("np.uint64({0})")
Turns = Mapping[ir.Expr, tuple[ir.Index, bool]]  # by condition: the pass from which on it is otherwise, and what it is before


def peeling(function: ir.Function, target: Target) -> ir.Function:
    """The function with such loops in pieces."""
    return replace(function, body=_each(function.body, set()))


def _each(stmts: Iterable[ir.Stmt], counters: set[ir.Index]) -> list[ir.Stmt]:
    """`counters`: the indices of the loops around, which are never negative."""
    result: list[ir.Stmt] = []
    for stmt in stmts:
        if isinstance(stmt, ir.For) and _is_pass(stmt):
            result += _pieces(stmt, counters)
        else:
            inside = counters | {ir.Name("int64", stmt.name)} if isinstance(stmt, ir.For) else counters
            changed = ir.with_blocks(_without_questions(stmt) if isinstance(stmt, ir.For) else stmt, partial(_each, counters=inside))
            result += [changed] if not isinstance(changed, ir.For) or changed.body else []
    return result


def _without_questions(loop: ir.For) -> ir.For:
    """A loop around others without conditions that hold in all of its passes, or in none."""
    turns = dict(_turns(loop)) if loop.step == 1 else {}
    firsts, lasts, _ = _sides(loop, (place for place, _ in turns.values()))
    return replace(loop, body=_known(loop.body, turns, before=_Edge.of(lasts).beyond, behind=_Edge.of(firsts).beyond))


def _is_pass(loop: ir.For) -> bool:
    """Does a loop do nothing but compute numbers and store them?"""
    plain = (isinstance(stmt, ir.Store) or (isinstance(stmt, ir.Let) and (stmt.is_new or ir.is_reduction(stmt))) for stmt in loop.body)
    return loop.kind == "sequential" and loop.step == 1 and all(plain)


def _pieces(loop: ir.For, counters: set[ir.Index], cuts: int = 0) -> list[ir.Stmt]:
    """A loop's edges and what is between them; the pieces of its two parts where it is cut."""
    turns = dict(_turns(loop))
    firsts, lasts, others = _sides(loop, dict.fromkeys(place for place, _ in turns.values()))
    if others and cuts < _MOST_CUTS:
        middle = ir.least(ir.greatest(others[0], loop.start), loop.stop)
        if any(isinstance(term, ir.Apply) for term in ir.linear(others[0])[0]):  # a division by the length of no elements
            middle = ir.choice(ir.compare("<", loop.start, loop.stop), middle, loop.stop)
        left = replace(loop, stop=middle, body=_known(loop.body, turns, before=others[:1]))
        right = replace(loop, start=middle, body=_known(loop.body, turns, behind=others[:1]))
        return [piece for part in (left, right) if part.start != part.stop for piece in _pieces(part, counters, cuts + 1)]
    first_edge, last_edge = _Edge.of(firsts), _Edge.of(lasts)
    first, end = ir.add(loop.start, first_edge.width), ir.sub(loop.stop, last_edge.width)
    pieces: list[ir.Stmt] = []
    if first_edge.width:
        body = _known(loop.body, turns, before=[*first_edge.places, *last_edge.beyond], behind=first_edge.beyond)
        only = loop.start if first_edge.width == 1 else None
        pieces += _edge(replace(loop, stop=ir.least(first, loop.stop), body=body), ir.compare("<", loop.start, loop.stop), only)
    pieces += _inside(replace(loop, start=first, stop=end, body=_known(loop.body, turns, before=lasts, behind=firsts)), counters)
    if last_edge.width:
        body = _known(loop.body, turns, before=last_edge.beyond, behind=[*firsts, *last_edge.places])
        only = end if last_edge.width == 1 else None
        pieces += _edge(replace(loop, start=ir.greatest(first, end), body=body), ir.compare("<", first, loop.stop), only)
    return pieces


@dataclass(frozen=True)
class _Edge:
    """The passes of an edge, the places at its inner side, and the places that no pass reaches."""

    width: int
    places: list[ir.Index]
    beyond: list[ir.Index]

    @classmethod
    def of(cls, widths: Mapping[ir.Index, int]) -> _Edge:
        width = max(0, *widths.values()) if widths else 0
        return cls(width, [place for place in widths if widths[place] == width], [place for place in widths if widths[place] <= 0])


def _sides(loop: ir.For, places: Iterable[ir.Index]) -> tuple[dict[ir.Index, int], dict[ir.Index, int], list[ir.Index]]:
    """The places near the beginning of a loop, and those near its end, with the passes of such an edge; and the other ones."""
    firsts: dict[ir.Index, int] = {}
    lasts: dict[ir.Index, int] = {}
    others: list[ir.Index] = []
    for place in places:
        first, last = ir.sub(place, loop.start), ir.sub(loop.stop, place)
        if isinstance(first, int) and first <= _WIDEST and not (isinstance(last, int) and last < first):
            firsts[place] = first
        elif isinstance(last, int) and last <= _WIDEST:
            lasts[place] = last
        else:
            others.append(place)
    return firsts, lasts, others


def _edge(loop: ir.For, condition: ir.Expr, only: ir.Index | None) -> list[ir.Stmt]:
    """An edge; `only`: its one pass, if there is one under a condition. A function has other bits outside loops (emit/cpu/in_lanes.py)."""
    if loop.start == loop.stop or condition == ir.Literal("bool", False):
        return []
    exprs = [part for stmt in loop.body for expr in ir.expressions(stmt) for part in ir.parts(expr)]
    if only is None or any(isinstance(part, ir.Apply) and part.template.cost == ir.FUNCTION for part in exprs):
        return [loop]
    body = [_at(stmt, ir.Name("int64", loop.name), only) for stmt in loop.body]
    return body if condition == ir.Literal("bool", True) else [ir.If(condition, body)]


def _inside(loop: ir.For, counters: set[ir.Index]) -> list[ir.Stmt]:
    """A loop with places unsigned of which LLVM would not see that they are not negative."""
    i = ir.Name("int64", loop.name)

    def unsigned(index: ir.Index) -> ir.Index:
        form = ir.slope_and_rest(index, i)
        if form is None or form[0] == 0:
            return index
        (slope, rest), start = form, loop.start
        terms, number = ir.linear(rest)
        is_sum = terms.keys() <= counters and all(factor > 0 for factor in terms.values())
        is_seen = slope > 0 and is_sum and isinstance(start, int) and slope * start + number >= 0
        return index if is_seen else ir.Apply("uint64", _UNSIGNED, (index,))

    def placed(part: ir.Expr) -> ir.Load | None:
        if not isinstance(part, ir.Load):
            return None
        return ir.Load(part.dtype, part.array, tuple(unsigned(ir.mapped(index, placed)) for index in part.index))

    passes = ir.sub(loop.stop, loop.start)
    if isinstance(passes, int) and passes <= 0:
        return []
    most = passes.args[0] if isinstance(passes, ir.Apply) and passes.template is ir.LEAST else passes
    if isinstance(most, int) and most <= _WIDEST:
        return [loop]
    body: list[ir.Stmt] = []
    for stmt in loop.body:
        changed = ir.with_values(stmt, lambda expr: ir.mapped(expr, placed))
        body.append(replace(changed, index=tuple(map(unsigned, changed.index))) if isinstance(changed, ir.Store) else changed)
    return [replace(loop, body=body)]


# conditions -----------------------------------------------------------------------------------------------------------


def _turns(loop: ir.For) -> Iterator[tuple[ir.Expr, tuple[ir.Index, bool]]]:
    """The conditions that change once as a loop goes on."""
    i = ir.Name("int64", loop.name)
    inside = list(ir.walk(loop.body))
    changing = {loop.name, *(stmt.name for stmt in inside if isinstance(stmt, ir.Let | ir.For | ir.Alloc | ir.Alias))}
    for stmt in inside:
        for part in (part for expr in ir.expressions(stmt) for part in ir.parts(expr)):
            if not isinstance(part, ir.Apply) or part.template not in _SIGNS:
                continue
            sign, form = _SIGNS[part.template], ir.slope_and_rest(ir.sub(*part.args), i)
            if form is None or abs(form[0]) != 1 or any(name in changing or is_element for name, is_element in ir.names_in(form[1])):
                continue
            # slope * i + rest < 0:  i < -rest, or i > rest
            slope, rest = form
            place = ir.sub(0, rest) if slope == 1 else rest
            place = ir.add(place, 1) if (sign in ("<=", ">")) == (slope == 1) else place
            if _is_safe(place, loop):
                yield part, (place, (sign in ("<", "<=")) == (slope == 1))


def _is_safe(place: ir.Index, loop: ir.For) -> bool:
    """Is it sure that no sum leaves the range of integers?"""
    if isinstance(ir.sub(loop.stop, place), int):
        return True
    terms, number = ir.linear(place)
    is_of_lengths = all(isinstance(term, ir.Length) for term in terms)
    stands_alone = number == 0 and list(terms.values()) == [1]  # as it was in the condition
    return is_of_lengths or (stands_alone and all(isinstance(term, ir.Expr) and term.dtype == "int64" for term in terms))


def _known(stmts: Sequence[ir.Stmt], turns: Turns, before: Iterable[ir.Index] = (), behind: Iterable[ir.Index] = ()) -> list[ir.Stmt]:
    """Statements for passes `before` some places and `behind` others: what their conditions are is known there."""
    sides = {**dict.fromkeys(before, True), **dict.fromkeys(behind, False)}

    def answer(part: ir.Expr) -> ir.Index | None:
        if part in turns and turns[part][0] in sides:
            place, is_before = turns[part]
            return ir.Literal("bool", is_before == sides[place])
        if isinstance(part, ir.Apply) and part.template == ir.CHOICE_BETWEEN:
            condition, yes, no = (ir.mapped(arg, answer) for arg in part.args)
            assert isinstance(condition, ir.Expr)
            return ir.choice(condition, yes, no, part.dtype)
        if isinstance(part, ir.Apply) and part.template in (ir.OF_BOTH, ir.OF_EITHER):
            joined = ir.both if part.template == ir.OF_BOTH else ir.either
            return joined(*(side for side in (ir.mapped(arg, answer) for arg in part.args) if isinstance(side, ir.Expr)))
        return None

    return [_changed(stmt, answer) for stmt in stmts]


def _at(stmt: ir.Stmt, i: ir.Name, place: ir.Index) -> ir.Stmt:
    """A statement of pass i at one place."""

    def moved(part: ir.Expr) -> ir.Index | None:
        if isinstance(part, ir.Apply) and part.template in (ir.INDEX_SUM, ir.INDEX_DIFFERENCE):
            return (ir.add if part.template is ir.INDEX_SUM else ir.sub)(*(ir.mapped(arg, moved) for arg in part.args))
        return place if part == i else None

    return _changed(stmt, moved)


def _changed(stmt: ir.Stmt, change: Callable[[ir.Expr], ir.Index | None]) -> ir.Stmt:
    return ir.with_values(stmt, lambda expr: ir.mapped(expr, change))
