"""Two accesses of a loop, and in which passes they may be of one element."""

from __future__ import annotations

import functools
import itertools
import random

import pytest

from numbascan.emit.text import expression
from numbascan.ir.accesses import NEVER, Access, Distances, Memory, Passes
from numbascan.ir.loops import (
    ROW,
    ROWS,
    Alias,
    Alloc,
    Call,
    For,
    Function,
    Index,
    Length,
    Let,
    Load,
    Name,
    Stmt,
    Store,
    Template,
    add,
    floor_div,
    in_shape,
    mod,
    mul,
    sub,
)

N, K, M = (Name("int64", name) for name in "nkm")
I, J, T = (Name("int64", name) for name in "ijt")
R0, R1 = Name("int64", "r0"), Name("int64", "r1")
RINGS = {"ring": ("r0", "r1")}


def load(array: str, *index: Index) -> Load:
    return Load("float64", array, index)


def int_load(array: str, *index: Index) -> Load:
    return Load("int64", array, index)


def passes_of(*body: Stmt, stop: Index = N, before: tuple[Stmt, ...] = ()) -> Passes:
    loop = For("i", 0, stop, list(body))
    memory = Memory([*before, loop], RINGS)
    return Passes(loop, memory, memory.effects(body))


BODY = (
    Let("v", int_load("places", I)),
    Store("seen", (I,), 1),
    For("j", 0, 3, [Store("x", (I, J), load("y", I))]),
    Let("m", add(M, 1), is_new=False),
)
V = Name("int64", "v")


@pytest.mark.parametrize(
    "one, other, expected",
    [
        # the counter, shifted
        ((I,), (I,), {0}),
        ((add(I, 1),), (I,), {1}),  # what is written one ahead is read one pass later
        ((I,), (add(I, 1),), {-1}),
        ((add(I, 3),), (add(I, 1),), {2}),
        # other slopes
        ((mul(I, 2),), (mul(I, 2),), {0}),
        ((add(mul(I, 2), 4),), (mul(I, 2),), {2}),
        ((add(mul(I, 2), 1),), (mul(I, 2),), NEVER),
        ((mul(I, 2),), (I,), None),
        ((sub(9, I),), (sub(9, I),), {0}),
        ((sub(9, I),), (sub(8, I),), {-1}),
        ((sub(9, I),), (I,), None),
        # what the loop does not change
        ((K,), (K,), None),
        ((K,), (add(K, 1),), NEVER),
        ((0,), (5,), NEVER),
        ((add(I, K),), (add(I, K),), {0}),
        ((add(I, K),), (add(add(I, K), 2),), {-2}),
        ((add(I, K),), (I,), None),  # k passes later, or earlier
        ((sub(add(N, K), I),), (sub(add(N, K), I),), {0}),
        ((add(I, Length("int64", "x", 0)),), (add(I, Length("int64", "x", 0)),), {0}),  # of an array that is written
        # ranges that lie end to end
        ((add(I, N),), (I,), NEVER),
        ((I,), (add(I, N),), NEVER),
        ((sub(N, I),), (sub(0, I),), NEVER),
        ((add(I, add(N, 1)),), (I,), None),
        # what a pass computes, or counts
        ((V,), (V,), None),
        ((V,), (add(V, 1),), None),  # in other passes v is another number
        ((add(I, V),), (add(I, V),), None),
        ((add(I, M),), (add(I, M),), None),
        ((J,), (J,), None),
        ((add(I, J),), (add(I, J),), None),
        # what is gathered: of an array that passes only read, and of one that they write
        ((int_load("places", 0),), (int_load("places", 0),), None),
        ((add(I, int_load("places", 0)),), (add(I, int_load("places", 0)),), {0}),
        ((int_load("places", I),), (int_load("places", I),), None),
        ((add(I, int_load("seen", 0)),), (add(I, int_load("seen", 0)),), None),
        # remainders
        ((mod(add(T, 1), 3),), (mod(T, 3),), NEVER),
        ((mod(add(T, 3), 3),), (mod(T, 3),), None),
        ((mod(add(I, 1), 3),), (mod(I, 3),), None),  # of other passes they may be one
        # rows of a ring
        ((R0,), (R1,), NEVER),
        ((R0,), (R0,), None),
        ((R0,), (add(R1, 1),), None),
        # more axes: one that tells is enough, and two that tell otherwise never meet
        ((I, V), (I, 0), {0}),
        ((V, 0), (V, 1), NEVER),
        ((I, I), (I, add(I, 1)), NEVER),
        ((J, add(I, 1)), (V, I), {1}),
        # all that some indices lead to
        ((I,), (I, V), {0}),
        ((), (I,), None),
        ((), (), None),
    ],
)
def test_distances_in_passes(one: tuple[Index, ...], other: tuple[Index, ...], expected: Distances) -> None:
    passes = passes_of(*BODY)
    assert passes.distances(Access("a", one), Access("a", other)) == expected
    assert passes.are_apart(Access("a", one), Access("a", other)) == (expected == NEVER)
    assert passes.are_of_one_pass(Access("a", one), Access("a", other)) == (expected is not None and set(expected) <= {0})


@pytest.mark.parametrize("first, second, expected", [(0, 4, NEVER), (0, 5, NEVER), (0, 3, {-3}), (3, 0, {3}), (4, 0, NEVER)])
def test_a_known_number_of_passes_bounds_the_distance(first: int, second: int, expected: Distances) -> None:
    one, other = Access("a", (add(I, first),)), Access("a", (add(I, second),))
    assert passes_of(stop=4).distances(one, other) == expected


INDICES = [
    *(add(mul(I, slope), rest) for slope in (-2, -1, 0, 1, 2) for rest in (0, 1, 2, K, add(K, 1), N, sub(N, 1), mul(N, -1), mul(N, 2))),
    *(mod(add(one, shift), 3) for one in (I, K) for shift in (0, 1, 3)),
    floor_div(I, 2),
    mul(I, K),
]
PLACES = [(index,) for index in INDICES] + [tuple(random.Random(seed).choices(INDICES, k=2)) for seed in range(40)]


@pytest.mark.parametrize("stop", [N, 3])
def test_distances_hold_whatever_the_numbers_are(stop: Index) -> None:
    passes = passes_of(stop=stop)
    known = 0
    for one, other in itertools.product(PLACES, PLACES):
        distances = passes.distances(Access("a", one), Access("a", other))
        if distances is None or len(one) != len(other):
            continue
        known += 1
        for n, k in itertools.product(range(5), range(-1, 4)):
            count = n if stop is N else 3
            first, second = ([values_at(place, i, k, n) for i in range(count)] for place in (one, other))
            met = {b - a for a in range(count) for b in range(count) if first[a] == second[b]}
            assert met <= distances, (one, other, n, k)
    assert known > 200


@functools.cache
def values_at(place: tuple[Index, ...], i: int, k: int, n: int) -> tuple[int, ...]:
    return tuple(eval(expression(index), {"i": i, "k": k, "n": n}) for index in place)


def test_elements_of_different_arrays_are_not_compared() -> None:
    assert passes_of(*BODY).distances(Access("a", (I,)), Access("b", (add(I, 1),))) is None


# views --------------------------------------------------------------------------------------------------------------

SPOILED = Let("k", add(K, 1), is_new=False)


@pytest.mark.parametrize(
    "view, place, expected",
    [
        (Alias("v", "a", ROW, (T,)), (I,), Access("a", (T, I))),
        (Alias("v", "a", ROW, (T,)), (), Access("a", (T,))),
        (Alias("v", "a", Template("[{0}, {1}]"), (T, 0)), (I,), Access("a", (T, 0, I))),
        (Alias("v", "a", ROWS, (T, add(T, 3))), (I, J), Access("a", (add(I, T), J))),
        (Alias("v", "a", Template("[{0}:]"), (2,)), (I,), Access("a", (add(I, 2),))),
        (Alias("v", "a", Template("[{0}:{1}].copy()"), (2, 5)), (I,), Access("a", (add(I, 2),))),
        (Alias("v", "a", Template("[:{0}]"), (N,)), (I,), Access("a", (I,))),
        (Alias("v", "a", Template("[:{0}, {1}]"), (N, T)), (I,), Access("a", (I, T))),
        (Alias("v", "a", Template("[{0}, {1}:{2}]"), (T, 2, 5)), (I,), Access("a", (T, add(I, 2)))),
        (Alias("v", "a", Template("[{0}, {1}:{2}]"), (T, 2, 5)), (), Access("a", (T,))),
        (Alias("v", "a", in_shape(1), (N,)), (I,), Access("v", (I,))),
    ],
)
def test_places_behind_a_view(view: Alias, place: tuple[Index, ...], expected: Access) -> None:
    memory = Memory([view], {})
    assert memory.at("v", place) == expected
    assert memory.root("v") == memory.root("a")


def test_a_view_of_a_view() -> None:
    memory = Memory([Alias("v", "a", ROW, (T,)), Alias("w", "v", ROWS, (1, 4))], {})
    assert memory.at("w", (I,)) == Access("a", (T, add(I, 1)))


def test_a_view_that_is_made_in_two_ways_is_not_looked_through() -> None:
    memory = Memory([Alias("v", "a", ROW, (0,)), Alias("v", "a", ROW, (T,))], {})
    assert memory.at("v", (I,)) == Access("v", (I,))


@pytest.mark.parametrize("row", [K, int_load("places", 0)])
def test_a_row_that_may_be_another_one_by_now_is_unknown(row: Index) -> None:
    passes = passes_of(Store("v", (I,), load("a", row, add(I, 1))), before=(Alias("v", "a", ROW, (row,)), SPOILED))
    written, read = passes.memory.at("v", (I,)), passes.memory.at("a", (add(row, 1), I))
    assert passes.distances(written, read) == {0}  # the other axis tells
    assert passes.distances(Access("a", written.place[:1]), Access("a", read.place[:1])) is None


def test_rows_of_a_ring_behind_views_differ() -> None:
    views = Alias("new", "ring", ROW, (R0,)), Alias("old", "ring", ROW, (R1,))
    turn = Let("r0", R1, is_new=False)
    passes = passes_of(Store("new", (I,), load("old", add(I, 1))), before=(*views, turn))
    assert passes.are_independent()


def test_a_view_that_each_pass_makes_in_another_shape_may_lie_anywhere() -> None:
    body = Alias("v", "a", Template(".reshape(({0},))"), (N,)), Store("v", (0,), load("v", 1))
    assert not passes_of(*body).are_independent()


# what blocks touch --------------------------------------------------------------------------------------------------


def test_effects_of_statements() -> None:
    body = (
        Alias("row", "x", ROW, (T,)),
        Alloc("work", (N,), "float64"),
        Let("s", load("y", int_load("places", I))),
        Let("total", Name("float64", "s"), is_new=False),
        For("j", 0, N, [Store("row", (J,), load("work", J), combine="+")]),
        Call("solve", ("work", "row", "True"), results=("work",)),
    )
    effects = Memory(body, {}).effects(body)
    element = Access("x", (T, J))
    assert {tuple(accesses) for accesses in effects.written.values()} == {(element,), (Access("work", ()),)}
    assert effects.touched(Memory(body, {}).root("x")) == {element, Access("x", (T,))}
    assert effects.read["y"] == {Access("y", (int_load("places", I),))}
    assert effects.read["places"] == {Access("places", (I,))}
    assert (effects.made, effects.changed, effects.counters) == ({"row", "work", "s"}, {"total"}, {"j"})
    assert effects.scalars == {"t", "n", "i", "j", "s"}
    assert not effects.is_plain


@pytest.mark.parametrize(
    "first, second, expected",
    [
        (Store("a", (I,), 1), Store("b", (I,), 1), True),
        (Store("a", (I,), load("c", 0)), Store("b", (I,), load("c", 0)), True),
        (Store("a", (I,), 1), Store("b", (I,), load("a", 0)), False),
        (Store("b", (I,), load("a", 0)), Store("a", (I,), 1), False),
        (Store("a", (0,), 1), Store("a", (1,), 1), False),  # whole memories are asked for
        (Store("a", (I,), 1), Store("b", (I,), load("view", 0)), False),
        (Let("s", 1), Store("b", (I,), Name("int64", "s")), False),
        (Let("s", 1), Let("s", 2, is_new=False), False),
        (Let("s", K), Let("v", K), True),
    ],
)
def test_blocks_that_may_change_places(first: Stmt, second: Stmt, expected: bool) -> None:
    memory = Memory([Alias("view", "a", ROWS, (0, 3)), first, second], {})
    blocks = [memory.effects([stmt]) for stmt in (first, second)]
    assert blocks[0].may_change_places(blocks[1]) is expected
    assert blocks[1].may_change_places(blocks[0]) is expected


@pytest.mark.parametrize(
    "body, expected",
    [
        ([Store("a", (I,), load("a", I))], True),
        ([Store("a", (add(I, 1),), load("a", I))], False),
        ([Store("a", (I,), load("b", add(I, 1)))], True),
        ([Store("a", (I, 0), 1), Store("a", (I, 1), load("a", I, 2))], True),
        ([Store("a", (0,), 1)], False),
        ([Store("a", (int_load("places", I),), 1)], False),
        ([Store("a", (I,), load("same", I))], True),
        ([Store("a", (I,), load("same", add(I, 1)))], False),
        ([Store("a", (I,), load("shaped", I))], False),
        ([Store("shaped", (I,), load("shaped", I))], True),
        ([Call("sort", ("a",), results=("a",))], False),
        ([Store("a", (I,), 1), Call("sort", ("b", "a"), results=("b",))], False),
    ],
)
def test_passes_that_are_independent(body: list[Stmt], expected: bool) -> None:
    views = Alias("same", "a", ROWS, (0, N)), Alias("shaped", "a", in_shape(1), (N,))
    assert passes_of(*body, before=views).are_independent() is expected


def test_memory_of_one_pass_is_left_out() -> None:
    body = Alloc("work", (3,), "float64"), Store("work", (0,), 1), Store("a", (I,), load("work", 0))
    passes = passes_of(*body)
    assert (passes.are_independent(), passes.are_independent({"work"})) == (False, True)


def test_a_function_of_loops_has_its_rings() -> None:
    function = Function("f", (), [], rings=RINGS)
    assert Memory(function.body, function.rings).always_differ(R1, R0)
