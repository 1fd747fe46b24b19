"""Tables that loops within loops fill: one memory, which each level updates in place, and which is the result."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan import lax
from numbascan.front.variable import Variable
from numbascan.ops.last_state import last_state

RNG = np.random.default_rng(7)
ROW, OTHER, TABLE = RNG.normal(size=20), RNG.normal(size=20), RNG.normal(size=(20, 19))
SIZES = [(0, 0, 0), (1, 0, 1), (0, 3, 2), (1, 1, 0), (2, 1, 1), (5, 4, 3), (8, 7, 6)]


def filled(a: Any, n: Any, m: Any) -> Any:
    x = np.zeros((20, 19))
    for i in range(n):
        x[i, 0] = i
    for j in range(m):
        x[0, j] = -j
    for i in range(1, n):
        for j in range(1, m):
            x[i, j] = min(x[i - 1, j], x[i, j - 1]) + a[i, j]
    return x


def before_and_behind(a: Any, n: Any, m: Any) -> Any:
    x = a.copy()
    for i in range(n):
        x[i, 0] = i
        for j in range(1, m):
            x[i, j] = x[i, j - 1] * 0.5 + x[i - 1, j]
        x[i, 1] = x[i, m - 1] / 2
    return x


def three_levels(a: Any, n: Any, m: Any, k: Any) -> Any:
    x = a.copy()
    for i in range(n):
        for j in range(m):
            for q in range(k):
                x[i, j] = x[i, j] * 0.5 + x[j, q]
    return x


def two_rows(a: Any, b: Any, n: Any, m: Any) -> Any:
    x, y = a.copy(), b.copy()
    for i in range(n):
        y[0] = x[1]
        for j in range(m):
            x[i] = x[i] + y[j]
            y[j] = y[j] * 0.5 + x[i]
    return x, y


def number_besides(a: Any, n: Any, m: Any) -> Any:
    x, z, t = a.copy(), np.zeros(20), 0.0
    for i in range(n):
        for j in range(m):
            x[j] = x[j] * 0.5 + x[j + 1] + t
            t += x[j]
        z[i] = t + x[2]
    return x, z, t


def branches(a: Any, n: Any, m: Any) -> Any:
    x = a.copy()
    for i in range(n):
        for j in range(m):
            if x[j] > x[i]:  # noqa: SIM114 - two branches that do the same
                x[j] = x[i]
            elif x[j] < -1:
                x[j] = x[i]
            else:
                x[i] = x[i] * 0.5
    return x


def flags(a: Any, n: Any, m: Any) -> Any:
    x, best, swaps = a.copy(), -100.0, 0
    for _ in range(n):
        for j in range(m):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
                swaps += 1
                best = max(best, x[j])
            elif x[j] == x[j + 1]:
                swaps -= 1
                x[j] = 0.0
    return x, best, swaps


def until(a: Any, n: Any, m: Any) -> Any:
    x, i, k = a.copy(), 0, 0
    while i < n and k < 30:
        j = 0
        while j < m:
            x[j] += x[i] * 0.25
            j += 1
            k += 1
            if x[j] > 1:
                break
        x[i] = k
        i += 1
    return x, i, k


IN_PLACE = {
    filled: (1, (TABLE,)),
    before_and_behind: (1, (TABLE,)),
    three_levels: (1, (TABLE,)),
    two_rows: (2, (ROW, OTHER)),
    number_besides: (2, (ROW,)),  # and the numbers of a range, made before the outer loop
    branches: (1, (ROW,)),
    flags: (1, (ROW,)),
    until: (1, (ROW,)),
}


def old_row_read_behind(a: Any, n: Any, m: Any) -> Any:
    x, z, t = a.copy(), np.zeros(20), 0.0
    for i in range(n):
        old = x.copy()
        for j in range(m):
            x[j] = x[j] * 0.5 + x[j + 1] + t
            t += x[j]
        z[i] = t + old[2] + x[1]
    return x, z, t


def each_read_for_the_other(a: Any, b: Any, n: Any, m: Any) -> Any:
    x, y, t = a.copy(), b.copy(), 0.0
    for _ in range(n):
        old = x.copy()
        for j in range(m):
            x[j] = y[j] * 0.5 + x[j + 1] + t
            y[j + 1] = x[j] - y[j]
            t += x[j]
        y[0] = t + old[2] + x[1]
        x = x * 0.5
        x[1] = y[2]
    return x, y, t


def exchanged(a: Any, n: Any, m: Any) -> Any:
    x, y = a.copy(), np.zeros(20)
    for _ in range(n):
        for j in range(m):
            y[j] = x[j] + x[j - 1]
        x, y = y, x
    return x, y


def kept_and_gone_on_from(a: Any, n: Any, m: Any) -> Any:
    x, s = a.copy(), 0.0
    for _ in range(n):
        before = x.copy()
        for j in range(m):
            x[j] = x[j + 1] * 0.5
        s += (before - x).sum()
        x = before + x
    middle = x.copy()
    for j in range(m):
        x[j] = s
    return middle, x


def loop_on_one_side(a: Any, n: Any, m: Any) -> Any:
    x, k = a.copy(), 0
    for i in range(n):
        if x[i] > 0:
            for j in range(m):
                x[j] = x[j] * 0.5 + x[i]
                k += 1
        else:
            x[i] = -x[i]
    return x, k


def loops_on_both_sides(a: Any, b: Any, n: Any, m: Any) -> Any:
    x, y, s = a.copy(), b.copy(), 0.0
    for i in range(n):
        if y[0] > x[0]:
            for j in range(m):
                y[i] += y[j] * 0.25 - x[2]
            for j in range(1, n):
                s = s * 0.5 + j * x[1]
        else:
            for j in range(m):
                x[i] = y[i] - x[j] * 0.5
                s = s * 0.5 + x[i]
        x = x * 0.5 + y
    return x, y, s


OTHERS = {
    loops_on_both_sides: (ROW, OTHER),
    old_row_read_behind: (ROW,),
    each_read_for_the_other: (ROW, OTHER),
    exchanged: (ROW,),
    kept_and_gone_on_from: (ROW,),
    loop_on_one_side: (ROW,),
}


def check(f: Callable[..., Any], arrays: tuple[Any, ...]) -> str:
    """The text of `f`, which gives what Python gives for all sizes, and leaves its arguments as they are."""
    compiled, plain = ns.jit(f), ns.jit(f, mode="python")
    count = len(inspect.signature(f).parameters) - len(arrays)
    before = [array.copy() for array in arrays]
    for sizes in SIZES:
        wanted = f(*arrays, *sizes[:count])
        for run in (compiled, plain):
            actual = run(*arrays, *sizes[:count])
            for one, other in zip(*(value if isinstance(value, tuple) else (value,) for value in (actual, wanted)), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12, err_msg=f"{sizes}")
    for array, was in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, was)
    return compiled.source()


@pytest.mark.parametrize("f", IN_PLACE, ids=lambda f: f.__name__)
def test_one_memory(f: Callable[..., Any]) -> None:
    count, arrays = IN_PLACE[f]
    text = check(f, arrays)
    tables = [line for line in text.splitlines() if "np.empty" in line and "np.int64" not in line]  # a range may be stored
    assert len(tables) == count  # no second row, no work row, no copy of the result
    assert "small_array" not in text
    assert "concatenate" not in text


@pytest.mark.parametrize("f", OTHERS, ids=lambda f: f.__name__)
def test_rows_that_are_read_later(f: Callable[..., Any]) -> None:
    check(f, OTHERS[f])


def test_loops_of_lax_take_one_memory() -> None:
    def table(x: Any, n: Any, m: Any) -> Any:
        def row(i: Any, x: Any) -> Any:
            return lax.fori_loop(0, m, lambda j, x: nt.set_subtensor(x[i, j], x[i, j] * 0.5 + x[j, i]), nt.set_subtensor(x[i, 0], i * 1.0))

        return lax.fori_loop(0, n, row, x)

    def plain(x: Any, n: int, m: int) -> Any:
        x = x.copy()
        for i in range(n):
            x[i, 0] = i
            for j in range(m):
                x[i, j] = x[i, j] * 0.5 + x[j, i]
        return x

    compiled = ns.jit(table)
    for n, m, _ in SIZES:
        np.testing.assert_allclose(compiled(TABLE, n, m), plain(TABLE, n, m), rtol=1e-12)
    assert compiled.source().count("np.empty") == 1


def differences(f: Callable[..., Any], x: Any, *sizes: int) -> Any:
    """The derivative of `f` by central differences."""
    h, result = 1e-6, np.zeros(x.shape)
    for place in np.ndindex(*x.shape):
        step = np.zeros(x.shape)
        step[place] = h
        result[place] = (f(x + step, *sizes) - f(x - step, *sizes)) / (2 * h)
    return result


@pytest.mark.parametrize("sizes", [(0, 0, 0), (1, 0, 1), (0, 2, 1), (3, 3, 2)])
@pytest.mark.parametrize("f", [before_and_behind, three_levels, two_rows, number_besides, until], ids=lambda f: f.__name__)
def test_gradients(f: Callable[..., Any], sizes: tuple[int, ...]) -> None:
    arrays = (OTHER,) if f is two_rows else ()
    x = TABLE[:4, :4] if f in (before_and_behind, three_levels) else ROW[:5]
    arrays = tuple(array[:5] for array in arrays)
    sizes = sizes[: len(inspect.signature(f).parameters) - 1 - len(arrays)]

    def total(x: Any, *rest: Any) -> Any:
        value = f(x, *arrays, *rest)
        return sum((one * one).sum() for one in value if np.ndim(one)) if isinstance(value, tuple) else (value * value).sum()

    np.testing.assert_allclose(ns.jit(ns.grad(total))(x, *sizes), differences(total, x, *sizes), rtol=1e-5, atol=1e-7)


def test_derivatives_where_there_may_be_no_step() -> None:
    def end(x: Any, n: Any) -> Any:
        return lax.fori_loop(0, n, lambda i, x: np.sin(x) * 2.0, x)

    def cost(x: Any, n: Any) -> Any:
        return (end(x, n) ** 3).sum()

    def slope(x: Any, n: Any) -> Any:
        return (ns.grad(cost)(x, n) ** 2).sum()

    gradient, second, compiled = ns.jit(ns.grad(cost)), ns.jit(ns.grad(slope)), ns.jit(slope)
    forward = ns.jit(lambda x, n: ns.jvp(lambda x: end(x, n), (x,), (x,))[1])
    for n in (0, 1, 4):
        np.testing.assert_allclose(gradient(ROW, n), differences(ns.jit(cost), ROW, n), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(second(ROW, n), differences(compiled, ROW, n), rtol=1e-5, atol=1e-5)
        along = (np.asarray(ns.jit(end)(ROW * (1 + 1e-6), n)) - np.asarray(ns.jit(end)(ROW * (1 - 1e-6), n))) / 2e-6
        np.testing.assert_allclose(forward(ROW, n), along, rtol=1e-5, atol=1e-6)


def test_lanes() -> None:
    rows = RNG.normal(size=(70, 20))
    for f in (number_besides, branches):
        lanes = ns.jit(ns.vmap(f, in_axes=(0, None, None)))(rows, 4, 5)
        for k in range(len(rows)):
            one = f(rows[k], 4, 5)
            for lane, wanted in zip(*(value if isinstance(value, tuple) else (value,) for value in (lanes, one)), strict=True):
                np.testing.assert_allclose(lane[k], wanted, rtol=1e-12)


def test_rows_and_the_last_state_of_one_loop() -> None:
    def both(x: Any, n: Any) -> Any:
        last, rows = lax.scan(lambda x, i: (x * 0.5 + i, x), x, nt.arange(n))
        return last, rows[-2:], rows.sum(axis=0)

    compiled = ns.jit(both)
    for n in (0, 1, 2, 9):
        x, rows = ROW, []
        for i in range(n):
            rows.append(x)
            x = x * 0.5 + i
        last, two, total = compiled(ROW, n)
        np.testing.assert_allclose(last, x)
        np.testing.assert_allclose(two, np.reshape(rows[-2:], (-1, 20)))
        np.testing.assert_allclose(total, np.sum(rows, axis=0) if rows else np.zeros(20))


def test_values_of_the_card_where_no_loop_made_the_rows() -> None:
    def last(first: Any, rows: Any) -> Any:
        return Variable(last_state(first.node, rows.node))

    compiled = ns.jit(last)
    np.testing.assert_array_equal(compiled(ROW, TABLE.T), TABLE.T[-1])
    np.testing.assert_array_equal(compiled(ROW, np.zeros((0, 20))), ROW)
