"""Neighbouring loops become one only where no value changes."""

from __future__ import annotations

from numbascan.emit.text import statements
from numbascan.ir.loops import Alias, For, Function, Index, Let, Literal, Load, Name, Stmt, Store, Template, add, mod, mul
from numbascan.plan import passes
from numbascan.plan.cpu import CPU

N = Name("int64", "n")
I, J = Name("int64", "i"), Name("int64", "j")


def load(array: str, *index: Index) -> Load:
    return Load("float64", array, index)


def loop(counter: str, *body: Stmt) -> For:
    return For(counter, 0, N, list(body))


def fuse(stmts: list[Stmt]) -> list[Stmt]:
    return passes.fusion.fusion(Function("f", (), stmts), CPU).body


def text(stmts: list[Stmt]) -> str:
    return "\n".join(statements(stmts, {}, depth=0))


def test_a_reader_at_the_same_index_joins_the_writer() -> None:
    first = loop("i", Store("a", (I,), mul(load("x", I), 2)))
    second = loop("j", Store("b", (J,), add(load("a", J), 1)))
    assert text(fuse([first, second])) == "for i in range(n):\n    a[i] = x[i] * 2\n    b[i] = a[i] + 1"


def test_a_reader_of_a_neighbour_waits_for_the_whole_row() -> None:
    first = loop("i", Store("a", (I,), load("x", I)))
    second = loop("i", Store("b", (I,), load("a", add(I, 1))))
    assert len(fuse([first, second])) == 2


def test_a_writer_waits_for_readers_of_its_neighbours() -> None:
    first = loop("i", Store("b", (I,), load("a", add(I, -1))))
    second = loop("i", Store("a", (I,), load("x", I)))
    assert len(fuse([first, second])) == 2


def test_a_cell_that_every_pass_touches_keeps_loops_apart() -> None:
    first = loop("i", Store("a", (0,), load("x", I)))
    second = loop("i", Store("b", (I,), load("a", 0)))
    assert len(fuse([first, second])) == 2


def test_an_accumulator_is_not_read_before_it_is_complete() -> None:
    total = Name("float64", "total")
    first = loop("i", Let("total", add(total, load("x", I)), is_new=False))
    second = loop("i", Store("b", (I,), mul(load("x", I), total)))
    assert len(fuse([first, second])) == 2


def test_loops_of_other_lengths_stay_apart() -> None:
    first = loop("i", Store("a", (I,), load("x", I)))
    second = For("i", 1, N, [Store("b", (I,), load("x", I))])
    assert len(fuse([first, second])) == 2


def test_inner_loops_join_once_their_outer_loops_have() -> None:
    rows = [For("i", 0, 3, [For("j", 0, N, [Store(array, (I, J), load(source, I, J))])]) for array, source in (("a", "x"), ("b", "a"))]
    assert text(fuse(list(rows))) == "for i in range(3):\n    for j in range(n):\n        a[i, j] = x[i, j]\n        b[i, j] = a[i, j]"


def test_a_local_keeps_its_meaning_in_the_joined_loop() -> None:
    first = loop("i", Let("v", load("x", I)), Store("a", (I,), Name("float64", "v")))
    second = loop("j", Let("w", load("a", J)), Store("b", (J,), mul(Name("float64", "w"), Literal("float64", 0.5))))
    assert text(fuse([first, second])).count("for") == 1


def test_an_index_that_an_inner_loop_counts_with_keeps_loops_apart() -> None:
    first = loop("j", Store("a", (J,), load("x", J)))
    second = loop("i", loop("j", Store("b", (I, J), load("y", J))))
    assert len(fuse([first, second])) == 2


def test_a_loop_does_not_pass_one_that_reads_what_it_writes_through_a_view() -> None:
    view = Alias("a_flat", "a", Template(".reshape((2, 15))"), ())
    writer, other = loop("i", Store("a", (I,), load("x", I))), loop("i", Store("b", (I,), load("x", I)))
    reader = For("j", 0, 2, [Store("c", (J,), load("a_flat", J, 0))])
    assert [stmt for stmt in fuse([view, writer, reader, other]) if isinstance(stmt, For)] == [writer, reader, other]


def test_a_loop_does_not_join_one_that_touches_its_memory_through_a_view() -> None:
    view = Alias("a_rows", "a", Template("[1:]"), ())
    writer, reader = loop("i", Store("a", (I,), load("x", I))), loop("i", Store("b", (I,), load("a_rows", I)))
    assert len(fuse([view, writer, reader])) == 3
    assert len(fuse([view, loop("i", Store("a_rows", (I,), load("x", I))), reader])) == 2


def test_rows_that_are_not_one_are_written_in_one_loop() -> None:
    now, before = Name("int64", "a_now"), Name("int64", "a_before")
    rings = {"a": ("a_now", "a_before")}

    def loops(first: Index, second: Index, place: Index = J) -> int:
        stmts: list[Stmt] = [loop("i", Store("a", (first, I), load("x", I))), loop("j", Store("b", (J,), load("a", second, place)))]
        return len(passes.fusion.fusion(Function("f", (), stmts, rings=rings), CPU).body)

    assert loops(now, before, add(J, 1)) == loops(0, 1, add(J, 1)) == loops(add(N, 1), N, add(J, 1)) == 1
    assert loops(now, now, add(J, 1)) == loops(0, N, add(J, 1)) == loops(now, Name("int64", "b_before"), add(J, 1)) == 2
    assert loops(0, add(I, 1)) == loops(I, add(I, 1), add(J, 1)) == 2  # the row of another pass
    assert loops(I, add(I, 1)) == 1  # another diagonal
    assert loops(mod(N, 3), mod(add(N, 1), 3), add(J, 1)) == 1  # rows that rotate


def test_places_as_far_apart_as_there_are_passes_never_meet() -> None:
    first = loop("i", Store("a", (I,), load("x", I)))
    assert len(fuse([first, loop("j", Store("a", (add(J, N),), load("y", J)))])) == 1
    assert len(fuse([first, loop("j", Store("a", (add(J, Name("int64", "m")),), load("y", J)))])) == 2
    assert len(fuse([first, loop("j", Store("a", (add(J, 1),), load("y", J)))])) == 2


def test_rows_of_different_views_may_be_one() -> None:
    views: list[Stmt] = [Alias("a_rows", "a", Template("[1:]"), ())]
    writer, reader = loop("i", Store("a", (1, I), load("x", I))), loop("i", Store("b", (I,), load("a_rows", 0, add(I, 1))))
    assert len(fuse([*views, writer, reader])) == 3
