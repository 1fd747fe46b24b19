"""Lanes with several loops over time, and rows of their own: side by side, with the numbers of each lane alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.ir.check_loops import check_loops
from numbascan.ir.loops import (
    IN_ORDER,
    ROW,
    ROWS,
    Alias,
    Alloc,
    Apply,
    Argument,
    Call,
    For,
    Function,
    If,
    Index,
    Let,
    Literal,
    Load,
    Name,
    Return,
    Stmt,
    Store,
    add,
    compare,
    floor_div,
    sub,
)
from numbascan.ir.names import Names
from numbascan.plan.cpu import CPU
from numbascan.plan.passes.distribution import distribution
from numbascan.plan.passes.tiles import tiles

rng = np.random.default_rng(4)
STARTS, RATES, FORCES = rng.uniform(0.5, 1.5, size=(150, 2)), rng.uniform(0.5, 1.5, size=150), rng.normal(size=(150, 20))
WIDE = rng.uniform(size=(150, 12))
scan = ns.scan


def pendulum(start, rate, force, n=20, **options):
    def step(f, y, v, rate):
        v = v + 0.05 * (f - np.sin(y) * rate)
        return y + 0.05 * v, v

    return scan(step, sequences=force, outputs_info=[start[0], start[1]], non_sequences=rate, n_steps=n, return_updates=False, **options)[0]


def of_own(starts, rates, forces):
    """With respect to a start, a number and a sequence of the lane."""
    return ns.vmap(ns.grad(lambda *lane: (pendulum(*lane) ** 2).sum(), argnums=(0, 1, 2)))(starts, rates, forces)


def of_any_length(starts, rates, forces):
    """The number of steps is a number of the run."""
    n = nt.as_tensor_variable(forces).shape[1]
    lane = lambda start, rate: scan(lambda y, r: y + 0.05 * np.sin(r * y), outputs_info=start, non_sequences=rate, n_steps=n)[0][-1].sum()  # noqa: E731
    return ns.vmap(ns.value_and_grad(lane, argnums=(0, 1)))(starts, rates)


def checkpointed(starts, rates, forces):
    lane = lambda start, rate: (pendulum(start, rate, np.zeros(20), checkpoint=5)[-1]) ** 2  # noqa: E731
    return ns.vmap(ns.grad(lane))(starts, rates)


def nested(starts, rates, forces):
    def lane(start, rate):
        inner = lambda y: scan(lambda y, r: y + 0.05 * np.sin(r * y), outputs_info=y, non_sequences=rate, n_steps=9)[0][-1]  # noqa: E731
        return scan(inner, outputs_info=start, n_steps=5)[0][-1].sum()

    return ns.vmap(ns.grad(lane, argnums=(0, 1)))(starts, rates)


def curvature(starts, rates, forces):
    return ns.vmap(ns.hessian(lambda *lane: pendulum(*lane)[-1]))(starts, rates, forces)


def taps(starts, rates, forces):
    def lane(start, force):
        initial = {"initial": start, "taps": [-2, -1]}
        rows = scan(lambda f, a, b: 0.5 * b - 0.2 * np.sin(a) + f, sequences=force, outputs_info=initial)[0]
        return (rows**2).sum()

    return ns.vmap(ns.value_and_grad(lane, argnums=(0, 1)))(starts, forces)


def noisy(starts, rates, forces):
    def lane(start):
        srng = nt.random.RandomStream(seed=3)
        return scan(lambda y: y + 0.1 * np.sin(y) * srng.normal(), outputs_info=start, n_steps=20)[0][-1].sum()

    return ns.vmap(ns.grad(lane))(starts)


def in_memory(wide, rates, forces):
    """A state of more elements than fit into locals."""
    step = lambda h, r: np.tanh(r * h + 0.2 * np.roll(h, 1))  # noqa: E731
    lane = lambda row, rate: (scan(step, outputs_info=row, non_sequences=rate, n_steps=20)[0][-1] ** 2).sum()  # noqa: E731
    return ns.vmap(ns.grad(lane))(wide, rates)


def of_shared(starts, rates, forces):
    """With respect to what all lanes share, and to what is their own."""

    def cost(drag, starts):
        return (ns.vmap(lambda *lane: pendulum(lane[0], lane[1] * drag, lane[2])[-1])(starts, rates, forces) ** 2).mean()

    return ns.value_and_grad(cost, argnums=(0, 1))(rates[0], starts)


PROGRAMS = [of_own, of_any_length, checkpointed, nested, curvature, taps, noisy, in_memory]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_each_lane_has_its_numbers(program: Callable[..., Any]) -> None:
    compiled, plain = ns.jit(program), ns.jit(program, mode="python")
    arguments = WIDE if program is in_memory else STARTS, RATES, FORCES
    whole = leaves(compiled(*arguments))
    assert re.search(r"\[[^]]+, s\] = ", compiled.source())  # rows of the lanes of a tile, side by side
    for found, expected in zip(whole, leaves(plain(*(array[:3] for array in arguments))), strict=True):
        np.testing.assert_allclose(found[:3], expected, rtol=1e-10, atol=1e-13)
    for n in (17, 65):  # the same bits in each place of a tile, and among any others
        for found, expected in zip(leaves(compiled(*(array[:n] for array in arguments))), whole, strict=True):
            np.testing.assert_array_equal(found, expected[:n])


def test_arrays_that_lanes_share_get_their_sums_in_order() -> None:
    def cost(weights, starts):
        lane = lambda start: scan(lambda y, w: np.tanh(w @ y), outputs_info=start, non_sequences=weights, n_steps=20)[0][-1]  # noqa: E731
        return (ns.vmap(lane)(starts) ** 2).sum()

    weights = rng.normal(size=(3, 3)) / 2
    starts = rng.normal(size=(70, 3))
    one_by_one = ns.jit(ns.grad(cost), mode=ns.Mode(without=["tiles"]))
    compiled = ns.jit(ns.grad(cost))
    np.testing.assert_allclose(compiled(weights, starts), ns.jit(ns.grad(cost), mode="python")(weights, starts), rtol=1e-11)
    np.testing.assert_allclose(compiled(weights, starts), one_by_one(weights, starts), rtol=1e-12)
    assert re.search(r"d_weights\w*\[i, j\] = d_weights\w*\[i, j\] \+ \w+\[i, j, s\w*\]", compiled.source())


def test_sums_over_lanes_stay_in_order() -> None:
    compiled, plain = ns.jit(of_shared), ns.jit(of_shared, mode="python")
    for n in (1, 70):
        arguments = STARTS[:n], RATES[:n], FORCES[:n]
        for found, expected in zip(leaves(compiled(*arguments)), leaves(plain(*arguments)), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-14)
    assert "_lanes_2(" in compiled.source()


def leaves(results: Any) -> list[Any]:
    return [leaf for part in results for leaf in leaves(part)] if isinstance(results, (tuple, list)) else [np.asarray(results)]


T, I = Name("int64", "t"), Name("int64", "i")
Y, TOTAL = Name("float64", "y"), Name("float64", "total")


def _lanes(*after: Stmt, step: Sequence[Stmt] = (), kind: str = "lanes", before: Sequence[Stmt] = ()) -> Function:
    """Lanes of 100 steps with a row of their own; `after`: what a lane does behind them."""
    steps = For("t", 0, 100, [Let("y", add(Y, 1), is_new=False), Store("row", (T,), Y), *step], kind="time")
    memory = [Alloc("row", (100,), "float64"), Alloc("out", (90,), "float64"), Alloc("other", (90, 90), "float64")]
    lanes = For("i", 0, 90, [*before, Let("y", Load("float64", "x", (I,))), steps, *after], kind=kind)
    arguments = (Argument("x", "float64", 1), Argument("flag", "bool", 0))
    return Function("lanes", arguments, [Let("total", Literal("float64", 0.0)), *memory, lanes, Return(("out", "other", "total"))], Names())


def _are_tiled(function: Function) -> bool:
    return any(isinstance(stmt, For) and stmt.step == 64 for stmt in tiles(function, CPU).body)


def test_lanes_that_touch_nothing_of_others_go_side_by_side() -> None:
    last = Load("float64", "row", (99,))
    assert _are_tiled(_lanes(Store("out", (I,), last)))
    assert _are_tiled(_lanes(Store("out", (sub(89, I),), last)))  # backwards
    assert _are_tiled(_lanes(Store("out", (I,), last), Store("out", (I,), Load("float64", "out", (I,)), "+")))
    assert _are_tiled(_lanes(If(Name("bool", "flag"), [Store("out", (I,), last)])))
    assert _are_tiled(_lanes(Store("other", (2, I), last), Store("other", (3, I), Load("float64", "other", (2, I)))))


@pytest.mark.parametrize(
    "after",
    [
        [Store("out", (I,), Load("float64", "out", (sub(89, I),)))],  # what another lane writes
        [Store("out", (0,), Y)],  # one place for all
        [Store("out", (floor_div(I, 2),), Y)],
        [For("k", 0, 9, [Store("out", (add(I, Name("int64", "k")),), Y)])],  # one lane's place is another's at another step
        [Store("other", (I, 2), Y), Store("other", (2, I), Y)],  # a row and a column, which meet
        [Let("total", Y, is_new=False)],  # the last lane's
        [Let("total", Apply("float64", IN_ORDER, (TOTAL, Y)), is_new=False)],  # one after the other
        [If(compare("<", Y, 3), [Store("out", (I,), Y)])],  # not all lanes
        [For("k", 0, Name("int64", "n"), [Store("out", (I,), Y)])],
        [Alias("seen", "row", ROW, (3,)), Store("out", (I,), Load("float64", "seen", ()))],
        [Call("np.dot", ("row", "row", "out"), results=("out",))],
    ],
)
def test_lanes_that_may_meet_stay_one_after_the_other(after: Sequence[Stmt]) -> None:
    length = [Let("n", Load("int64", "x", (I,)))]
    assert not _are_tiled(_lanes(*after, before=length))


def _added(*index: Index, loops: Sequence[str] = ("k",)) -> Function:
    """Lanes that add to elements which all share."""
    stmt: Stmt = Store("other", index, Apply("float64", IN_ORDER, (Load("float64", "other", index), Y)))
    for name in loops:
        stmt = For(name, 0, 8, [stmt])
    return _lanes(stmt, before=[Let("m", Load("int64", "x", (3,))), Let("n", Load("int64", "x", (I,)))])


def test_lanes_may_add_to_what_they_share_each_element_once() -> None:
    k, j, m, n = (Name("int64", name) for name in "kjmn")
    assert _are_tiled(_added(k, 3))
    assert _are_tiled(_added(sub(7, k), j, loops="kj"))
    for other in (
        _added(2, 3),  # eight times the same
        _added(add(k, j), 3, loops="kj"),  # an element twice
        _added(add(k, m), 3),  # an offset that a lane makes
        _added(k, n),  # another place in each lane
        _added(floor_div(k, 2), 3),
    ):
        assert not _are_tiled(other)
    twice = _added(k, 3)
    (*_, lanes, _) = twice.body
    assert isinstance(lanes, For)
    lanes.body.append(Store("other", (2, 3), Y))
    assert not _are_tiled(twice)


def test_a_view_of_what_a_lane_writes_may_be_anything() -> None:
    function = _lanes(Store("out", (I,), Load("float64", "seen", (add(I, 1),))))
    *body, lanes, end = function.body
    assert not _are_tiled(replace(function, body=[*body, Alias("seen", "out", ROWS, (0, 90)), lanes, end]))


def test_passes_that_meet_in_a_view_stay_one_loop() -> None:
    after = [Let("total", Y, is_new=False), Store("out", (I,), TOTAL), Let("z", Load("float64", "seen", (I,)))]
    *body, steps, end = _lanes(*after, kind="time").body
    function = replace(_lanes(), body=[*body, Alias("seen", "out", ROWS, (0, 90)), steps, end])
    assert len([stmt for stmt in distribution(function, CPU).body if isinstance(stmt, For)]) == 1


def test_memory_is_taken_for_no_more_lanes_than_there_are() -> None:
    body = [replace(stmt, stop=20) if isinstance(stmt, For) else stmt for stmt in _lanes(Store("out", (I,), Y)).body]
    function = tiles(replace(_lanes(), body=body), CPU)
    check_loops(function)
    (row,) = [stmt for stmt in function.body if isinstance(stmt, Alloc) and stmt.name == "row"]
    assert row.shape == (100, 20)


def test_lanes_that_have_very_much_take_few_at_a_time() -> None:
    for steps, width in ((100, 64), (2000, 32), (100_000, 16), (2_000_000, 4), (20_000_000, 1)):
        function = _lanes(Store("out", (I,), Load("float64", "row", (99,))))
        body = [replace(stmt, shape=(steps,)) if isinstance(stmt, Alloc) and stmt.name == "row" else stmt for stmt in function.body]
        (row,) = [stmt for stmt in tiles(replace(function, body=body), CPU).body if isinstance(stmt, Alloc) and stmt.name == "row"]
        assert row.shape == (steps, width)


def _in_two(*after: Stmt, step: Sequence[Stmt] = ()) -> list[For]:
    return [stmt for stmt in distribution(_lanes(*after, step=step, kind="time"), CPU).body if isinstance(stmt, For)]


def test_what_lanes_add_is_added_behind_them() -> None:
    added = Let("total", Apply("float64", IN_ORDER, (TOTAL, Y)), is_new=False)
    lanes, sums = _in_two(added)
    assert (lanes.kind, sums.kind, lanes.body[-1]) == ("lanes", "time", Store("y_of", (I,), Y))
    assert sums.body == [replace(added, value=Apply("float64", IN_ORDER, (TOTAL, Load("float64", "y_of", (I,)))))]
    path = Store("out", (I,), TOTAL)
    assert _in_two(added, path)[1].body[1] == path
    assert len(_in_two(added, Store("other", (I, 0), Y))) == 2
    element = Load("float64", "other", (2, 3))  # of all lanes, which add in their order: no two at once
    lanes, sums = _in_two(added, Store("other", (2, 3), Apply("float64", IN_ORDER, (element, Y))))
    assert (lanes.kind, sums.kind) == ("time", "time")


@pytest.mark.parametrize(
    "program",
    [
        ([Let("total", Y, is_new=False)], [Let("y", TOTAL, is_new=False)]),  # a step reads what the lane before has left
        ([For("t", 0, 50, [Let("total", add(TOTAL, 1), is_new=False)], kind="time")], []),  # the recurrence is a loop
        ([Let("total", Load("float64", "row", (3,)), is_new=False)], []),  # and reads an array of the lane
        ([Let("total", Y, is_new=False), Store("out", (sub(I, 1),), TOTAL), Let("z", Load("float64", "out", (I,)))], []),
        ([Let("total", Y, is_new=False), Let("y", Literal("float64", 0.0), is_new=False)], []),  # a scalar that is changed behind
        ([Let("y", Apply("float64", IN_ORDER, (TOTAL, Y)), is_new=False), Let("total", Y, is_new=False)], []),  # and by both
    ],
)
def test_passes_that_wait_for_one_another_stay_one_loop(program: tuple[Sequence[Stmt], Sequence[Stmt]]) -> None:
    assert len(_in_two(*program[0], step=program[1])) == 1
