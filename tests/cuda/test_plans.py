"""Which loops are shared out to the threads of a GPU, and where all threads wait. Needs no GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_text import loops_alone

import numbascan as ns
import numbascan.tensor as nt
from numbascan.emit.cuda.grid import in_all_threads
from numbascan.ir.loops import (
    ACCUMULATE,
    IN_ORDER,
    ROWS,
    Alias,
    Alloc,
    Apply,
    Argument,
    Barrier,
    Break,
    Call,
    For,
    Function,
    If,
    Index,
    Let,
    Literal,
    Load,
    Name,
    Stmt,
    Store,
    Template,
    add,
    mod,
    mul,
    sub,
    walk,
)
from numbascan.ir.mentions import memory_of, mentions_in
from numbascan.ir.names import Names
from numbascan.plan.cuda import CUDA
from numbascan.plan.gpu.threads import threads

N, I, J, T = (Name("int64", name) for name in ("n", "i", "j", "t"))
MATRIX = np.random.default_rng(4).normal(size=(50, 50))
MAX = Template("max({0}, {1})")


def load(array: str, *index: Index) -> Load:
    return Load("float64", array, index)


def kinds(*body: Stmt) -> list[str]:
    """The kinds of the loops of a function, after the pass."""
    arrays = [Argument(name, "float64", 1, is_written=name in "ab") for name in "xyab"]
    wide = Argument("w", "float64", 2, is_written=True)
    function = Function("f", (*arrays, wide, Argument("k", "int64", 1), Argument("n", "int64", 0)), list(body), Names("xyabwkn"))
    return [stmt.kind for stmt in walk(threads(function, CUDA).body) if isinstance(stmt, For)]


def test_calls_are_shared_out_where_each_pass_writes_a_part_of_its_own() -> None:
    part, row = Alias("p", "w", Template("[{0}]"), (I,)), Alias("q", "w", Template("[{0}]"), (add(I, 1),))
    assert kinds(For("i", 0, N, [part, Call("externals.f", ("p", "x"), results=("p",))])) == ["threads"]
    assert kinds(For("i", 0, N, [part, Call("externals.f", ("p", "p"), results=("p",))])) == ["threads"]
    assert kinds(For("i", 0, N, [part, row, Call("externals.f", ("p", "q"), results=("p",))])) == ["sequential"]
    assert kinds(For("i", 0, N, [part, Call("externals.f", ("p", "w"), results=("p",))])) == ["sequential"]
    assert kinds(For("i", 0, N, [Call("externals.f", ("a", "x"), results=("a",))])) == ["sequential"]


def test_passes_that_meet_are_not_shared_out() -> None:
    def loop(*body: Stmt) -> list[str]:
        return kinds(Let("s", Literal("float64", 0.0)), For("i", 0, N, list(body)))

    assert loop(Store("a", (I,), load("x", I))) == ["threads"]
    assert loop(Store("a", (I,), load("a", I))) == ["threads"]
    assert loop(Store("w", (0, I), load("w", 1, I))) == ["threads"]  # rows that never are the same
    assert loop(Store("a", (I,), load("a", add(I, 1)))) == ["sequential"]
    assert loop(Store("w", (0, I), load("w", 0, add(I, 1)))) == ["sequential"]
    assert loop(Store("w", (mod(add(N, 1), 3), I), load("w", mod(N, 3), add(I, 1)))) == ["threads"]  # rows that rotate
    assert loop(Store("w", (mod(add(N, 3), 3), I), load("w", mod(N, 3), add(I, 1)))) == ["sequential"]
    assert loop(Store("w", (mod(add(N, 1), 3), I), load("w", mod(N, 2), add(I, 1)))) == ["sequential"]
    assert loop(Store("w", (mod(add(N, 1), N), I), load("w", mod(N, N), add(I, 1)))) == ["sequential"]  # if n is 1
    assert loop(Store("w", (mod(add(I, 1), 3), 0), load("w", mod(I, 3), 0))) == ["sequential"]  # other passes meet
    assert loop(Store("a", (0,), load("x", I))) == ["sequential"]
    assert loop(Store("a", (Load("int64", "k", (I,)),), load("x", I))) == ["sequential"]  # places that may be equal
    far = Load("int64", "k", (0,))
    assert loop(Store("a", (I,), load("x", I)), Store("a", (add(far, I),), load("x", I))) == ["sequential"]  # distances of the run
    assert loop(Store("a", (I,), load("x", I)), Store("a", (add(N, I),), load("x", I))) == ["threads"]  # halves that lie end to end
    assert loop(Store("a", (mul(I, 2),), load("a", add(mul(I, 2), 1)))) == ["threads"]  # even and odd places
    assert loop(Let("s", load("x", I), is_new=False)) == ["sequential"]
    assert loop(Let("s", Apply("float64", MAX, (Name("float64", "s"), load("x", I))), is_new=False)) == ["sums"]
    joined = Apply("float64", MAX, (Name("float64", "s"), Apply("float64", MAX, (Name("float64", "s"), load("x", I)))))
    assert loop(Let("s", joined, is_new=False)) == ["sequential"]
    assert loop(For("j", 0, N, [Store("w", (I, J), load("x", J))])) == ["threads", "threads"]
    assert loop(For("j", 0, I, [Store("w", (I, J), load("x", J))])) == ["threads", "sequential"]
    assert loop(Alloc("row", (N,), "float64"), Store("row", (0,), load("x", I)), Store("a", (I,), load("row", 0))) == ["sequential"]


def test_lanes_that_add_to_an_array_leave_what_they_add() -> None:
    def added(place: Index = I, *before: Stmt, template: Template = ACCUMULATE, stop: Index = N) -> bool:
        value = Apply("float64", template, (load("a", place), load("x", T)))
        inner = For("i", 0, stop, [*before, Store("a", (place,), value)])
        return "chunks" in kinds(For("t", 0, N, [Let("k_now", Load("int64", "k", (0,))), inner], kind="time"))

    assert added()
    assert added(add(I, 1))
    assert not added(0)  # one element, many times in a lane
    assert not added(add(I, T))  # other elements in every lane
    assert not added(add(I, Name("int64", "k_now")))  # a place that only lanes know
    assert not added(stop=T)  # lanes of other lengths
    assert not added(stop=Name("int64", "k_now"))
    assert not added(I, If(Name("bool", "ends"), [Break()]))
    assert not added(template=IN_ORDER)  # a user's own order
    assert not added(I, Store("b", (0,), load("a", I)))  # what lanes add is read


def test_short_loops_stay_in_one_thread() -> None:
    assert kinds(For("i", 0, 31, [Store("a", (I,), load("x", I))])) == ["sequential"]
    assert kinds(For("i", 0, 4, [For("j", 0, 8, [Store("w", (I, J), load("x", J))])])) == ["threads", "threads"]


def placed(*body: Stmt) -> list[str]:
    """What stands in the body of a loop over time, as all threads run it: B for barriers, 1 for what the first thread does alone."""
    part = Alias("c", "a", ROWS, (1, N))
    memory, mentions = memory_of([part, *body]), mentions_in(list(walk(body)))
    (loop,) = in_all_threads([For("t", 0, N, list(body), kind="time")], memory, {part.name}, mentions)
    assert isinstance(loop, For)
    return ["B" if isinstance(one, Barrier) else "1" if isinstance(one, If) else "." for one in loop.body]


def shared(array: str, *index: Index, value: Index) -> For:
    return For("i", 0, N, [Store(array, index or (I,), value)], kind="threads")


def test_barriers_stand_where_threads_meet() -> None:
    assert placed(shared("a", value=load("x", I))) == ["."]
    assert placed(shared("a", value=load("b", add(I, 1))), shared("b", value=load("a", I))) == ["B", ".", "B", "."]
    assert placed(Store("a", (0,), load("x", T)), shared("b", value=load("a", 0))) == ["B", "1", "B", "."]
    read_then_written = Let("v", load("a", 0)), Store("a", (0,), Name("float64", "v"))
    assert placed(*read_then_written, shared("b", value=load("x", I))) == ["B", ".", "B", "1", "."]


def test_threads_that_meet_their_own_numbers_again_do_not_wait() -> None:
    def twice(value: Index, start: Index = 0) -> list[str]:
        """`a` from x, then `b` from `a`."""
        return placed(shared("a", value=load("x", I)), For("i", start, N, [Store("b", (I,), value)], kind="threads"))

    assert twice(load("a", I)) == [".", "."]
    assert twice(load("a", add(I, 1))) == ["B", ".", "B", "."]
    assert twice(load("a", I), start=2) == ["B", ".", "B", "."]  # pass 2 goes to the first thread
    assert twice(load("a", sub(I, 2)), start=2) == [".", "."]
    assert twice(load("a", add(I, T))) == ["B", ".", "B", "."]  # another distance in every step
    assert twice(load("a", Load("int64", "k", (I,)))) == ["B", ".", "B", "."]
    assert twice(load("c", I)) == ["B", ".", "B", "."]  # a part of a
    assert twice(load("a", 0)) == ["B", ".", "B", "."]
    assert placed(shared("a", value=load("a", I)), Store("a", (0,), load("x", T))) == ["B", ".", "B", "1"]

    def nest(*index: Index, length: Index = N) -> For:
        inner = For("j", 0, length, [Store("w", (I, J), load("w", *index))], kind="threads")
        return For("i", 0, N, [inner], kind="threads")

    assert placed(nest(I, J)) == ["."]
    assert placed(nest(J, I)) == ["B", "."]
    assert placed(nest(I, J), nest(I, J, length=3)) == ["B", ".", "B", "."]  # counted otherwise


@pytest.mark.parametrize("wide", [False, True])
def test_a_loop_over_time_is_one_kernel(wide: bool) -> None:
    def step(u: Any) -> Any:
        moved = u + 0.1 * (np.roll(u, 1) - u)
        return moved, ns.until(moved.max() < 0.1)

    run = ns.jit(lambda u: ns.scan(step, outputs_info=u, n_steps=9, return_updates=False)[-1])
    text = run.lower(np.ones(1000 if wide else 8)).source("cuda")
    assert text.count("in_one_grid(") == wide
    assert ("grid.sync()" in text) == wide
    assert "for t in range" not in text.partition("\ndef scan")[2]  # the host makes no step


@pytest.mark.parametrize(("taps", "k"), [((-1,), 2), ((-1,), 3), ((-20, -1), 1), ((-17, -16), 3)])
def test_wide_states_of_which_the_last_rows_are_kept_are_one_kernel(taps: tuple[int, ...], k: int) -> None:
    def last(initial: Any) -> Any:
        outputs_info = [{"initial": initial, "taps": list(taps)}]
        return ns.scan(lambda *u: np.tanh(np.roll(u[-1], 1)) - u[0], outputs_info=outputs_info, n_steps=9, return_updates=False)[-k:]

    initial = np.random.default_rng(3).normal(size=(-taps[0], 50) if len(taps) > 1 else 50)
    text = ns.jit(last).lower(initial).source("cuda")
    assert not loops_alone(text)
    assert text.count("    in_one_grid(") == 1


STEPS: dict[str, tuple[int, Any]] = {
    "a matrix": (2, lambda u: np.tanh(MATRIX @ u)),
    "a matrix from the right": (2, lambda u: np.tanh(u @ MATRIX)),
    "elementwise": (0, lambda u: np.where(u > 0, np.tanh(u), 0.5 * u)),
    "neighbours": (1, lambda u: u + 0.1 * np.roll(u, 1)),
}


@pytest.mark.parametrize("name", STEPS)
def test_barriers_of_a_step(name: str) -> None:
    n_barriers, step = STEPS[name]
    run = ns.jit(lambda u: ns.scan(step, outputs_info=u, n_steps=9, return_updates=False)[-1])
    assert run.lower(np.ones(50)).source("cuda").count("grid.sync()") == n_barriers


def test_gradients_of_products_wait_once_for_each() -> None:
    def end(matrix: Any, u: Any) -> Any:
        return ns.scan(lambda u: np.tanh(matrix @ u), outputs_info=u, n_steps=9, return_updates=False)[-1].sum()

    text = ns.jit(ns.grad(end, argnums=(0, 1))).lower(MATRIX, np.ones(50)).source("cuda")
    assert text.count("grid.sync()") == 2 + 2


def test_source_needs_no_gpu_and_names_of_the_user_stay() -> None:
    error = nt.dvector("error")
    text = ns.function([error], ns.scan(lambda number: number * 2.0, error, return_updates=False)).source("cuda")
    assert "error_2" in text
    cpu = ns.function([error], ns.scan(lambda number: number * 2.0, error, return_updates=False)).source()
    assert "error_2" not in cpu
