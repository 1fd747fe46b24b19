"""Every kind of fault that is put into the loops of a function is found, and nothing where there is none."""

from __future__ import annotations

import pytest

from numbascan.ir.check import IllegalGraphError
from numbascan.ir.check_loops import check_loops
from numbascan.ir.loops import (
    ACCUMULATE,
    ROWS,
    Alias,
    Alloc,
    Apply,
    Argument,
    Break,
    Call,
    Fail,
    For,
    Function,
    If,
    Length,
    Let,
    Literal,
    Load,
    Name,
    Return,
    Stmt,
    Store,
    add,
    both,
    chosen,
    compare,
    greatest,
    least,
    sub,
)

N, I, T, S = (Name("int64", name) for name in "nits")
I0, I1, V = Name("int64", "i0"), Name("int64", "i1"), Name("float64", "v")
ARGUMENTS = (Argument("x", "float64", 1), Argument("out", "float64", 1, is_written=True), Argument("n", "int64", 0))
X = Load("float64", "x", (I,))
ROW = Alloc("row", (64,), "float64")

SHIFTED, LENGTH_OF_X = Load("float64", "x", (sub(I, 5),)), Length("int64", "x", 0)

LENGTH = Let("length", greatest(N, 0))
FROM_THE_END = [For("i", 0, 2, [Let("v", Load("float64", "row", (sub(sub(Name("int64", "length"), I), 1),)))])]


def check(*body: Stmt) -> None:
    check_loops(Function("f", ARGUMENTS, list(body)))


def tile(body: list[Stmt], most: int) -> list[Stmt]:
    """A loop over tiles of at most `most` lanes."""
    end = Let("i1", least(add(I0, most), N))
    return [For("i0", 0, N, [end, For("s", 0, sub(I1, I0), body, kind="tile")], step=most)]


def test_loops_without_a_fault_pass() -> None:
    check(
        ROW, *tile([Store("row", (S,), Load("float64", "x", (add(I0, S),))), Store("out", (add(I0, S),), Load("float64", "row", (S,)))], 64)
    )
    check(Let("v", 0), For("i", 0, N, [Let("v", Apply("float64", ACCUMULATE, (V, X)), is_new=False)], kind="simd"), Return(("v",)))
    check(If(compare(">", N, 0), [Let("v", 1)], [Let("v", 2)]), Return(("v",)))
    check(For("t", 0, N, [If(compare(">", T, 3), [Break()]), Store("out", (T,), 1)]))
    check(ROW, LENGTH, If(compare("!=", Name("int64", "length"), 2), [Fail("ValueError", "F")]), *FROM_THE_END)
    check(For("i", 0, N, [If(both(compare(">=", I, 5), compare(">=", SHIFTED, 3)), [Fail("IndexError", "F")])]))
    check(For("i", 0, add(LENGTH_OF_X, 5), [Let("v", chosen(compare(">=", I, 5), SHIFTED, Literal("float64", 0.0)))]))
    check(For("i", 5, add(LENGTH_OF_X, 5), [Let("v", SHIFTED)]))
    check(Alloc("short", (3,), "float64"), For("i", 0, N, [If(compare("<", I, 3), [Store("short", (I,), X)])]))


FAULTS: dict[str, tuple[list[Stmt], str]] = {
    "a name of nobody": ([Store("out", (0,), V)], "v is used before it is defined"),
    "a name that is defined later": ([Return(("v",)), Let("v", 1)][:1], "v is used before"),
    "a local of a loop that may make no pass": ([For("i", 0, N, [Let("v", X)]), Return(("v",))], "v is used before"),
    "a local of one branch": ([If(compare(">", N, 0), [Let("v", 1)]), Return(("v",))], "v is used before"),
    "a state that nothing starts": ([For("t", 0, N, [Let("v", Apply("float64", ACCUMULATE, (V, T)), is_new=False)])], "v is used before"),
    "memory that is not taken": ([For("i", 0, N, [Store("row", (I,), X)])], "row is used before"),
    "a counter outside of its loop": ([For("i", 0, N, []), Store("out", (I,), 1)], "i is used before"),
    "an array of a call that is not taken": ([Call("np.dot", ("x", "x", "v"), results=("v",), turned=(False, False))], "v is used before"),
    "a store into what is read": ([For("i", 0, N, [Store("x", (I,), 1)])], "x is written"),
    "a store into a view of what is read": ([Alias("y", "x", ROWS, (0, 3)), Store("y", (0,), 1)], "y is written"),
    "a result in what is read": ([Call("sorting.sort", ("x", "out"), results=("x",))], "x is written"),
    "an index beyond": ([ROW, Store("row", (64,), 1)], "an index of row along axis 0 goes from 64 to 64; its length is 64"),
    "a negative index": ([ROW, For("i", 0, 64, [Let("v", Load("float64", "row", (sub(I, 1),)))])], "goes from -1"),
    "from an end that may be anywhere": ([ROW, LENGTH, *FROM_THE_END], "goes from -2"),
    "a negative index of an argument": ([For("i", 0, N, [Store("out", (I,), SHIFTED)])], "of x along axis 0 goes from -5"),
    "a position that is checked where there is none": (
        [For("i", 0, N, [If(compare(">=", SHIFTED, 3), [Fail("IndexError", "F")])])],
        "of x along axis 0 goes from -5",
    ),
    "a condition whose first part asks too much": (
        [For("i", 0, N, [If(both(compare(">=", SHIFTED, 3), compare(">=", I, 5)), [Fail("IndexError", "F")])])],
        "of x along axis 0 goes from -5",
    ),
    "beyond an argument": (
        [For("i", 0, add(LENGTH_OF_X, 2), [Let("v", Load("float64", "x", (I,)))])],
        "goes from 0 to 2 past the last; its length is known to the run",
    ),
    "a loop beyond": ([ROW, For("i", 0, 65, [Store("row", (I,), X)])], "goes from 0 to 64"),
    "a tile with more lanes than its memory": ([ROW, *tile([Store("row", (S,), 1)], 65)], "goes from 0 to 64"),
    "too few indices": ([Alloc("a", (3, 3), "float64"), Store("a", (0,), 1)], "a has 2 axes, and 1 indices"),
    "a state in passes side by side": (
        [Let("v", 0), For("i", 0, N, [Let("v", add(V, X), is_new=False)], kind="simd")],
        "side by side give v their values",
    ),
    "one place for all lanes": ([For("i", 0, N, [Store("out", (0,), X)], kind="lanes")], "side by side write one place of out"),
    "one place for all lanes of a tile": ([ROW, *tile([Store("row", (0,), 1)], 64)], "side by side write one place of row"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault: str) -> None:
    body, words = FAULTS[fault]
    with pytest.raises(IllegalGraphError, match=words):
        check(*body)


def test_work_rows_of_lanes_are_their_own() -> None:
    loop = For("i", 0, N, [Store("row", (0,), X), Store("out", (I,), Load("float64", "row", (0,)))], kind="lanes")
    check(ROW, loop)
    with pytest.raises(IllegalGraphError, match="write one place of row"):
        check(ROW, loop, Store("out", (0,), Load("float64", "row", (0,))))


def test_all_faults_are_named() -> None:
    with pytest.raises(IllegalGraphError, match=r"(?s)v is used.*x is written"):
        check(Store("x", (0,), V), Let("w", Literal("float64", 1.0)))
