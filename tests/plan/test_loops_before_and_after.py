"""What each loop pass makes of loops, before and after."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.emit.text import statements
from numbascan.ir.check_loops import check_loops
from numbascan.ir.graph import close
from numbascan.ir.loops import (
    ACCUMULATE,
    FUNCTION,
    IN_ORDER,
    PRODUCT,
    Alloc,
    Apply,
    Argument,
    Break,
    Expr,
    For,
    Function,
    If,
    Index,
    Let,
    Literal,
    Load,
    Name,
    Note,
    Return,
    Stmt,
    Store,
    Template,
    add,
    choice,
    compare,
    sub,
)
from numbascan.ir.mentions import mentioned
from numbascan.ir.names import Names
from numbascan.modes import LOOP_PASSES
from numbascan.plan.cpu import CPU
from numbascan.plan.cuda import CUDA
from numbascan.plan.passes.strips import strips
from numbascan.plan.plan import plan

N, STEPS, I, J, T = (Name("int64", name) for name in ("n", "steps", "i", "j", "t"))
V, TOTAL = Name("float64", "v"), Name("float64", "total")
ONE, HALF = Literal("float64", 1.0), Literal("float64", 0.5)
NUMBERS = {"n": "int64", "steps": "int64", "k0": "uint64", "k1": "uint64"}
ARRAYS = [Argument(name, "float64", 1, is_written=name in ("out", "a")) for name in ("x", "y", "a", "out")]
BITS = Template("random_bits({0}, {1}, {2}, {3}, {4})", ahead="draws.words_ahead")
WORD = Apply("uint64", BITS, (Name("uint64", "k0"), Name("uint64", "k1"), 0, 2, T))


def load(array: str, *index: Index) -> Load:
    return Load("float64", array, index)


def plus(a: Expr, b: Expr) -> Apply:
    return Apply("float64", IN_ORDER, (a, b))


def times(a: Expr, b: Expr) -> Apply:
    return Apply("float64", PRODUCT, (a, b))


def any_order(total: Expr, term: Expr) -> Apply:
    return Apply("float64", ACCUMULATE, (total, term))


def sin(x: Expr) -> Apply:
    return Apply("float64", Template("sin({0})", cost=FUNCTION), (x,))


def log(x: Expr) -> Apply:
    return Apply("float64", Template("log({0})", cost=FUNCTION), (x,))


LOOPS: dict[str, tuple[list[Stmt], str, str]] = {
    "fusion": (
        [For("i", 0, N, [Store("a", (I,), sin(load("x", I)))]), For("j", 0, N, [Store("out", (J,), plus(load("a", J), load("y", J)))])],
        """
for i in range(n):
    a[i] = sin(x[i])
for j in range(n):
    out[j] = a[j] + y[j]
""",
        """
for i in range(n):
    a[i] = sin(x[i])
    out[i] = a[i] + y[i]
""",
    ),
    "interchange": (
        [For("t", 0, STEPS, [For("i", 0, N, [Store("out", (I,), times(load("out", I), load("a", I)))])], kind="time")],
        """
for t in range(steps):
    for i in range(n):
        out[i] = out[i] * a[i]
""",
        """
if 0 < steps:
    for i in range(n):
        out_i = out[i]
        for t in range(steps):
            out_i *= a[i]
        out[i] = out_i
""",
    ),
    "distribution": (
        [
            Let("total", HALF),
            For(
                "i",
                0,
                N,
                [
                    Let("v", load("x", I)),
                    For("t", 0, STEPS, [Let("v", sin(V), is_new=False)], kind="time"),
                    Let("total", Apply("float64", ACCUMULATE, (TOTAL, V)), is_new=False),
                ],
                kind="time",
            ),
        ],
        """
total = 0.5
for i in range(n):
    v = x[i]
    for t in range(steps):
        v = sin(v)
    total = add_any_order(total, v)
""",
        """
total = 0.5
v_of = np.empty(n)
for i in range(n):
    v = x[i]
    for t in range(steps):
        v = sin(v)
    v_of[i] = v
for i in range(n):
    total = add_any_order(total, v_of[i])
""",
    ),
    "index_set_splitting": (
        [
            Let("v", ONE),
            For(
                "t",
                0,
                STEPS,
                [Let("v", sin(V), is_new=False), If(compare(">=", T, N), [Store("out", (sub(T, N),), V)])],
                kind="time",
            ),
        ],
        """
v = 1.0
for t in range(steps):
    v = sin(v)
    if t >= n:
        out[t - n] = v
""",
        """
v = 1.0
for t in range(min(max(n, 0), steps)):
    v = sin(v)
for t in range(min(max(n, 0), steps), steps):
    v = sin(v)
    out[t - n] = v
""",
    ),
    "tiles": (
        [
            For(
                "i",
                0,
                N,
                [Let("v", load("x", I)), For("t", 0, 100, [Let("v", sin(V), is_new=False)], kind="time"), Store("out", (I,), V)],
                kind="lanes",
            )
        ],
        """
for i in range(n):
    v = x[i]
    for t in range(100):
        v = sin(v)
    out[i] = v
""",
        """
v_lanes = np.empty(64)
for i0 in range(0, n, 64):
    i1 = min(i0 + 64, n)
    for s in range(i1 - i0):
        v = x[i0 + s]
        v_lanes[s] = v
    for t in range(100):
        for s in range(i1 - i0):
            v = v_lanes[s]
            v = sin(v)
            v_lanes[s] = v
    for s in range(i1 - i0):
        v = v_lanes[s]
        out[i0 + s] = v
""",
    ),
    "if_conversion": (
        [
            For(
                "i",
                0,
                N,
                [
                    Let("v", load("x", I)),
                    For(
                        "t",
                        0,
                        100,
                        [Let("v", sin(V), is_new=False), If(compare(">", V, load("y", I)), [Break()])],
                        kind="time",
                    ),
                    Store("out", (I,), V),
                ],
                kind="lanes",
            )
        ],
        """
for i in range(n):
    v = x[i]
    for t in range(100):
        v = sin(v)
        if v > y[i]:
            break
    out[i] = v
""",
        """
v_lanes = np.empty(64)
is_running_lanes = np.empty(64)
for i0 in range(0, n, 64):
    i1 = min(i0 + 64, n)
    for s in range(i1 - i0):
        v = x[i0 + s]
        is_running = 1.0
        v_lanes[s] = v
        is_running_lanes[s] = is_running
    passed = 0
    for t in range(100):
        running = 0.0
        for s in range(i1 - i0):
            v = v_lanes[s]
            is_running = is_running_lanes[s]
            v_then = sin(v)
            v = v_then if is_running != 0.0 else v
            has_ended = v > y[i0 + s]
            is_running = 0.0 if has_ended else is_running
            running = add_any_order(running, is_running)
            v_lanes[s] = v
            is_running_lanes[s] = is_running
        passed = t + 1
        if running <= 9.0:
            break
    for s in range(i1 - i0):
        v = v_lanes[s]
        is_running = is_running_lanes[s]
        if is_running != 0.0:
            for t in range(passed, 100):
                v = sin(v)
                if v > y[i0 + s]:
                    break
        out[i0 + s] = v
""",
    ),
    "blocks": (
        [
            Let("v", ONE),
            Let("total", ONE),
            For(
                "t",
                0,
                N,
                [Let("total", any_order(TOTAL, log(V)), is_new=False), Let("v", plus(times(V, HALF), load("x", T)), is_new=False)],
                kind="time",
            ),
        ],
        """
v = 1.0
total = 1.0
for t in range(n):
    total = add_any_order(total, log(v))
    v = v * 0.5 + x[t]
""",
        """
v_block = np.empty(256)
v = 1.0
total = 1.0
for t0 in range(0, n, 256):
    t1 = min(t0 + 256, n)
    x_block = x[t0:t1]
    # the recurrence
    for s in range(t1 - t0):
        v_block[s] = v
        v = v * 0.5 + x_block[s]
    # what no state waits for
    for s in range(t1 - t0):
        total = add_any_order(total, log(v_block[s]))
""",
    ),
    "batched_draws": (
        [For("t", 0, N, [Store("out", (T,), plus(load("x", T), WORD))], kind="time")],
        """
for t in range(n):
    out[t] = x[t] + random_bits(k0, k1, 0, 2, t)
""",
        """
word_ahead = np.empty(64, np.uint64)
for t0 in range(0, n, 64):
    t1 = min(t0 + 64, n)
    number = 0
    tag = 2
    word_part = word_ahead[:t1 - t0]
    draws.words_ahead(word_part, k0, k1, number, tag, t0, 1)
    for t in range(t0, t1):
        out[t] = x[t] + word_ahead[t - t0]
""",
    ),
    "threads": (
        [
            Alloc("row", (50,), "float64"),
            Let("total", ONE),
            For("i", 0, N, [Store("out", (I,), load("x", I))]),
            For("i", 0, N, [Store("a", (add(I, 1),), load("a", I))]),  # waits
            For("i", 0, N, [Let("total", any_order(TOTAL, load("x", I)), is_new=False)]),
            For("i", 0, N, [Store("row", (0,), load("x", I)), Store("out", (I,), load("row", 0))], kind="lanes"),
        ],
        """
row = np.empty(50)
total = 1.0
for i in range(n):
    out[i] = x[i]
for i in range(n):
    a[i + 1] = a[i]
for i in range(n):
    total = add_any_order(total, x[i])
for i in range(n):
    row[0] = x[i]
    out[i] = row[0]
""",
        """
total = 1.0
for i in range(n):
    out[i] = x[i]
for i in range(n):
    a[i + 1] = a[i]
for i in range(n):
    total = add_any_order(total, x[i])
for i in range(n):
    row = small_array((50,), np.float64)
    row[0] = x[i]
    out[i] = row[0]
""",
    ),
    "peeling": (
        [For("i", 0, N, [Store("out", (I,), load("x", choice(compare("<", sub(I, 1), 0), sub(add(I, N), 1), sub(I, 1))))])],
        """
for i in range(n):
    out[i] = x[i + n - 1 if i - 1 < 0 else i - 1]
""",
        """
if 0 < n:
    out[0] = x[n - 1]
for i in range(1, n):
    out[i] = x[i - 1]
""",
    ),
    "reassociation": (
        [
            Let("v", ONE),
            Let("total", ONE),
            For("i", 0, 12, [Let("total", any_order(TOTAL, load("x", I)), is_new=False)]),
            For("t", 0, N, [Let("v", times(V, load("x", T)), is_new=False), Let("total", any_order(TOTAL, V), is_new=False)]),
        ],
        """
v = 1.0
total = 1.0
for i in range(12):
    total = add_any_order(total, x[i])
for t in range(n):
    v *= x[t]
    total = add_any_order(total, v)
""",
        """
v = 1.0
total = 1.0
for i in range(lanes(12)):
    total = add_any_order(total, x[i])
for t in range(n):
    v *= x[t]
    total += v
""",
    ),
    "stack_rows": (
        [Alloc("row", (12,), "float64"), Alloc("long", (N,), "float64"), Alloc("result", (3,), "float64"), Return(("result",))],
        """
row = np.empty(12)
long = np.empty(n)
result = np.empty(3)
return result
""",
        """
row = small_array((12,), np.float64)
long = np.empty(n)
result = np.empty(3)
return result
""",
    ),
}


BEFORE_STRIPS = """
for t in range(n):
    a_path_row = a_path[t]
    np.dot(W.T, a_path_row, contract)
    for i in range(40):
        a_path[t + 2, i] = tanh(contract[i])
"""
AFTER_STRIPS = """
# 2 steps at a time: products with rows that are known by then
for t0 in range(0, n, 2):
    t1 = min(t0 + 2, n)
    a_path_strip = a_path[t0:t1]
    contract_strip = contract[:t1 - t0]
    np.dot(a_path_strip, W, contract_strip)
    for t in range(t0, t1):
        for i in range(40):
            a_path[t + 2, i] = tanh(contract[t - t0, i])
"""


def text(stmts: list[Stmt]) -> str:
    return "\n".join(["", *statements(stmts, {}, depth=0), ""])


def test_strips_before_and_after() -> None:
    """Products with a matrix: the loops are those of a program, since nobody writes a product's operands by hand."""
    w, first, n = nt.tensor("float64", (40, 40), "W"), nt.tensor("float64", (2, 40), "first"), nt.lscalar("n")
    initial = {"initial": first, "taps": [-2]}
    rows = ns.scan(lambda a, w: np.tanh(a @ w), outputs_info=initial, non_sequences=w, n_steps=n, return_updates=False)
    function = plan(close([w.node, first.node, n.node], [rows.node]), replace(CPU, passes=()), "f").function
    changed = strips(function, CPU)
    for stage, expected in ((function, BEFORE_STRIPS), (changed, AFTER_STRIPS)):
        check_loops(stage)
        place = next(k for k, stmt in enumerate(stage.body) if isinstance(stmt, For) and stmt.kind == "time")
        note = isinstance(stage.body[place - 1], Note)
        assert text(stage.body[place - note : place + 1]) == expected


def test_every_pass_is_shown() -> None:
    assert {*LOOPS, "strips"} == {*LOOP_PASSES}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_before_and_after(name: str) -> None:
    body, before, after = LOOPS[name]
    arguments = (*ARRAYS, *(Argument(number, dtype, 0) for number, dtype in NUMBERS.items()))
    function = Function("f", arguments, body, Names({argument.name for argument in arguments} | mentioned(body)))
    target, loop_pass = next((target, one) for target in (CPU, CUDA) for one in target.passes if one.__name__ == name)
    changed = loop_pass(function, target)
    for stage in (function, changed):
        check_loops(stage)
    assert text(function.body) == before
    assert text(changed.body) == after
    assert text(loop_pass(function, target).body) == after  # nothing of the function was changed
