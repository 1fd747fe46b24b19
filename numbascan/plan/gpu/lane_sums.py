"""Lanes that add to one shared array each store what they add; the sums are taken afterwards.

    # before: for t in range(n):            # after: threads over t:
    #             …                         #            …
    #             for i in range(m):        #            for i in range(m):
    #                 a[i] = a[i] + v       #                left[i, t] = v
    #                                       #        threads over i and groups of lanes:
    #                                       #            parts[i, group] = the sum of left[i, t] over its lanes
    #                                       #        threads over i:
    #                                       #            a[i] = a[i] + the sum of parts[i, group] over all groups

This is the gradient with respect to an array that lanes share. A group is a fixed number of lanes, so the sum has the same bits at every
run, however many lanes have memory at once (see `threads.py`, which allocates `left`).
Not handled:
- sums in the user's own order
- elements that only some lanes add to
- loops whose bounds a lane computes
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ...ir import loops as ir
from ...ir.mentions import loads_in
from ...ir.names import Names
from ..passes.side_by_side import Lanes, Surroundings
from ..target import Target

GROUP = 512
"""Lanes per group. With just enough lanes to fill a device, a thread adds about as many parts of groups as lanes of its group."""

_AT_ONCE = ir.Template("at_once({0}, {1}, {2})")


@dataclass(frozen=True)
class Added:
    """An array that lanes add to: within the loops `nest`, each lane stores its part in `left` instead of doing `store`."""

    store: ir.Store
    nest: tuple[ir.For, ...]
    left: ir.Alloc
    parts: str

    @property
    def place(self) -> tuple[ir.Index, ...]:
        """The index of a number in `left` without the lane, and in `parts` without the group."""
        return tuple(ir.sub(ir.Name("int64", one.name), one.start) for one in self.nest)

    @property
    def dims(self) -> tuple[ir.Index, ...]:
        return tuple(ir.sub(one.stop, one.start) for one in self.nest)


def added_by_lanes(loop: ir.For, around: Surroundings, names: Names, target: Target) -> list[Added]:
    """What the passes of an outermost loop add to arrays; empty unless these sums are their only dependences."""
    if loop.kind != "time" or loop.step != 1 or loop.start != 0 or id(loop) not in around.outermost:
        return []
    lanes = Lanes(loop, around)
    if lanes.sums or not lanes.are_independent():
        return []
    in_order = {array for array in lanes.written - lanes.own.keys() if not lanes.is_of_one_lane(array)}
    found = [(store, nest) for store, nest in _nests(loop.body) if store.array in in_order]
    if {store.array for store, _ in found} != in_order:
        return []
    if not all(_is_sum(store) and _is_fixed(store, nest, lanes) for store, nest in found):
        return []
    return [
        Added(
            store,
            nest,
            ir.Alloc(names.fresh(f"{store.array}_left"), tuple(ir.sub(one.stop, one.start) for one in nest), _value(store).dtype),
            names.fresh(f"{store.array}_parts"),
        )
        for store, nest in found
    ]


def leaving(loop: ir.For, added: Sequence[Added]) -> ir.For:
    """The loop over lanes, which store what they add in `left`."""
    by_id = {id(one.store): one for one in added}

    def left(stmt: ir.Stmt) -> list[ir.Stmt] | None:
        one = by_id.get(id(stmt))
        return None if one is None else [ir.Store(one.left.name, one.place, _value(one.store).args[1])]

    return replace(loop, body=ir.rebuilt(loop.body, left), kind="lanes")


def at_once_in_groups(passes: ir.Index, size: ir.Index) -> ir.Index:
    """The number of lanes whose memory fits at once: whole groups, or all. `size`: bytes per lane."""
    return ir.index_expr(_AT_ONCE, passes, size, GROUP)


def memory_of_parts(loop: ir.For, added: Sequence[Added]) -> list[ir.Alloc]:
    """The memory for the sums of groups."""
    groups = ir.floor_div(ir.add(loop.stop, GROUP - 1), GROUP)
    return [ir.Alloc(one.parts, (*one.dims, groups), one.left.dtype) for one in added]


def added_in_groups(added: Sequence[Added], start: ir.Index, stop: ir.Index, names: Names) -> Iterator[ir.For]:
    """The sums over each group of the lanes from `start` to `stop`; `start` is the first lane of a group."""
    for one in added:
        group, lane = (ir.Name("int64", names.fresh(hint)) for hint in ("group", "lane"))
        total = ir.Name(one.left.dtype, names.fresh("total"))
        first = ir.mul(group, GROUP)
        n_lanes = ir.sub(stop, start)
        value = ir.Load(total.dtype, one.left.name, (*one.place, lane))
        body = [
            *_sum(
                one.store, total, ir.Literal(total.dtype, 0), ir.For(lane.name, first, ir.least(ir.add(first, GROUP), n_lanes), []), value
            ),
            ir.Store(one.parts, (*one.place, ir.add(ir.floor_div(start, GROUP), group)), total),
        ]
        groups = ir.For(group.name, 0, ir.floor_div(ir.add(n_lanes, GROUP - 1), GROUP), body, kind="threads")
        yield _nested(one.nest, [groups])


def added_up(loop: ir.For, added: Sequence[Added], names: Names) -> Iterator[ir.For]:
    """The sums over all groups, added to the arrays."""
    for one in added:
        group, total = ir.Name("int64", names.fresh("group")), ir.Name(one.left.dtype, names.fresh("total"))
        groups = ir.For(group.name, 0, ir.floor_div(ir.add(loop.stop, GROUP - 1), GROUP), [])
        before, value = _value(one.store).args[0], ir.Load(total.dtype, one.parts, (*one.place, group))
        yield _nested(one.nest, [*_sum(one.store, total, before, groups, value), ir.Store(one.store.array, one.store.index, total)])


def _sum(store: ir.Store, total: ir.Name, before: ir.Index, loop: ir.For, value: ir.Load) -> list[ir.Stmt]:
    template = _value(store).template
    return [
        ir.Let(total.name, before),
        replace(loop, body=[ir.Let(total.name, ir.Apply(total.dtype, template, (total, value)), is_new=False)]),
    ]


def _nested(nest: Sequence[ir.For], body: list[ir.Stmt]) -> ir.For:
    for one in reversed(nest):
        body = [replace(one, body=body, kind="threads")]
    (loop,) = body
    assert isinstance(loop, ir.For)
    return loop


def _nests(stmts: Sequence[ir.Stmt], nest: tuple[ir.For, ...] = ()) -> Iterator[tuple[ir.Store, tuple[ir.For, ...]]]:
    """The stores that are in loops and in nothing else, each with its loops."""
    for stmt in stmts:
        if isinstance(stmt, ir.Store) and nest:
            yield stmt, nest
        elif isinstance(stmt, ir.For):
            yield from _nests(stmt.body, (*nest, stmt))


def _value(store: ir.Store) -> ir.Apply:
    assert isinstance(store.value, ir.Apply)
    return store.value


def _is_sum(store: ir.Store) -> bool:
    """True if the store adds to its element, and the sum may be reassociated."""
    value = store.value
    if not isinstance(value, ir.Apply) or value.template is not ir.ACCUMULATE or store.combine:
        return False
    element, other = value.args
    is_own = isinstance(element, ir.Load) and (element.array, element.index, element.dtype) == (store.array, store.index, value.dtype)
    return is_own and isinstance(other, ir.Expr) and all(load.array != store.array for load in loads_in(other))


def _is_fixed(store: ir.Store, nest: Sequence[ir.For], lanes: Lanes) -> bool:
    """True if every lane adds to the same elements, in loops whose bounds are the same in all lanes and that do not end early."""
    counters = {one.name for one in nest}
    names = {name for index in store.index for name, _ in ir.names_in(index)} - counters
    bounds = [bound for one in nest for bound in (one.start, one.stop)]
    is_whole = all(one.step == 1 and not ir.may_end(one.body) for one in nest)
    return is_whole and names.isdisjoint(lanes.changing) and not any(map(lanes.changes, bounds))
