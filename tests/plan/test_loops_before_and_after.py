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
    "fuse": (
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
for i in range(n):
    out_i = out[i]
    for t in range(steps):
        out_i *= a[i]
    out[i] = out_i
""",
    ),
    "distribute": (
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
    "split": (
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
    "masks": (
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
    "ahead": (
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
    "prefix": (
        [
            Let("v", ONE),
            For("t", 0, N, [Let("v", plus(times(load("x", T), V), load("y", T)), is_new=False), Store("out", (T,), V)], kind="time"),
            For("t", 0, N, [Let("v", sin(V), is_new=False), Store("out", (T,), V)], kind="time"),  # not linear
        ],
        """
v = 1.0
for t in range(n):
    v = x[t] * v + y[t]
    out[t] = v
for t in range(n):
    v = sin(v)
    out[t] = v
""",
        """
v = 1.0
chunk_steps = max(64, int(max(n, 0) ** 0.5))
n_chunks = (max(n, 0) + chunk_steps - 1) // chunk_steps
factors = np.empty((n_chunks, 2))
offsets = np.empty((n_chunks, 2))
ends = np.empty((n_chunks, 1))
growths = np.empty((n_chunks, 1))
sizes = np.empty((n_chunks, 1))
starts = np.empty((n_chunks + 1, 2))
agrees = np.empty(n_chunks, np.bool_)
for chunk in range(n_chunks):
    factor = 1.0
    factor_rest = 0.0
    offset = 0.0
    offset_rest = 0.0
    growth = 1.0
    for t in range(chunk * chunk_steps, min(chunk * chunk_steps + chunk_steps, n)):
        coefficient = x[t]
        coefficient_2 = y[t]
        before = factor
        before_2 = factor_rest
        scaled = coefficient * before
        rest = math.fma(coefficient, before, -scaled) + coefficient * before_2
        before_3 = offset
        before_4 = offset_rest
        scaled_2 = coefficient * before_3
        rest_2 = math.fma(coefficient, before_3, -scaled_2) + coefficient * before_4
        total = scaled_2 + coefficient_2
        added = total - scaled_2
        rest_3 = scaled_2 - (total - added) + (coefficient_2 - added) + rest_2
        factor = scaled
        factor_rest = rest
        offset = total
        offset_rest = rest_3
        growth = max_or_nan(abs(factor), growth)
    factors[chunk, 0] = factor
    factors[chunk, 1] = factor_rest
    offsets[chunk, 0] = offset
    offsets[chunk, 1] = offset_rest
    growths[chunk, 0] = growth
start = v
start_rest = 0.0
for chunk in range(n_chunks):
    starts[chunk, 0] = start
    starts[chunk, 1] = start_rest
    scaled_3 = factors[chunk, 0] * start
    rest_4 = math.fma(factors[chunk, 0], start, -scaled_3) + factors[chunk, 0] * start_rest + start * factors[chunk, 1]
    total_2 = scaled_3 + offsets[chunk, 0]
    added_2 = total_2 - scaled_3
    rest_5 = scaled_3 - (total_2 - added_2) + (offsets[chunk, 0] - added_2) + rest_4 + offsets[chunk, 1]
    whole = total_2 if rest_5 == 0.0 else total_2 + rest_5
    start = whole
    start_rest = rest_5 - (whole - total_2)
starts[n_chunks, 0] = start
starts[n_chunks, 1] = start_rest
for chunk in range(n_chunks):
    is_close = True
    v_2 = starts[chunk, 0]
    lost = starts[chunk, 1]
    size = 0.0
    for t in range(chunk * chunk_steps, min(chunk * chunk_steps + chunk_steps, n)):
        coefficient_3 = x[t]
        coefficient_4 = y[t]
        before_5 = v_2
        before_6 = lost
        magnitude = abs(before_5)
        scaled_4 = coefficient_3 * before_5
        rest_6 = math.fma(coefficient_3, before_5, -scaled_4)
        total_3 = scaled_4 + coefficient_4
        added_3 = total_3 - scaled_4
        rest_7 = scaled_4 - (total_3 - added_3) + (coefficient_4 - added_3) + rest_6
        v_3 = coefficient_3 * before_6
        v_4 = abs(coefficient_3) * magnitude
        v_2 = x[t] * v_2 + y[t]
        out[t] = v_2
        rounding = total_3 - v_2 + rest_7
        scale = abs(v_2) + 2.2250738585072014e-308 + v_4
        size += scale
        lost = rounding + v_3
        is_close = is_close and (abs(rounding) <= 8.881784197001252e-16 * scale or rounding != rounding)
    ends[chunk, 0] = v_2
    sizes[chunk, 0] = size
    start_2 = starts[chunk + 1, 0]
    start_rest_2 = starts[chunk + 1, 1]
    apart = v_2 - start_2 + (lost - start_rest_2)
    is_same = start_2 == v_2 and math.copysign(1.0, start_2) == math.copysign(1.0, v_2) or start_2 != start_2 and v_2 != v_2
    is_near = start_2 != v_2 and (abs(apart) <= 8.881784197001252e-16 * size and size <= 1.7976931348623157e+308)
    agrees[chunk] = is_close and (is_same or is_near)
is_right = True
off = 0.0
for chunk in range(n_chunks):
    is_right = is_right and agrees[chunk]
    before_7 = off
    reach = growths[chunk, 0] * abs(before_7)
    off = ends[chunk, 0] - starts[chunk + 1, 0] + factors[chunk, 0] * before_7
    is_right = is_right and (reach <= 1024.0 * (8.881784197001252e-16 * sizes[chunk, 0]) or reach != reach)
if is_right:
    if n_chunks > 0:
        v = ends[n_chunks - 1, 0]
else:
    for t in range(n):
        v = x[t] * v + y[t]
        out[t] = v
for t in range(n):
    v = sin(v)
    out[t] = v
""",
    ),
    "edges": (
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
    "simd": (
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
    "stack": (
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
