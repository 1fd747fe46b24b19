"""Rows read from the end: no more is stored than lies between the earliest one read and the end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

x = nt.dvector("x")
n = nt.lscalar("n")
START = np.arange(50.0) / 7
ROW = START.nbytes


def _reads(out: Any) -> list[Any]:
    """Parts of the last four rows, by all that counts from the end."""
    last, some, back = out[-1, 2], out[-4:-1:2], out[-1:-4:-1]
    return [last, out[-3], some, back[:, :3], out[[-1, -3]], out[-2:].sum(), out[-4:, 1:][::2], out[np.array([[-2], [-4]]), [0, 3]]]


@pytest.mark.parametrize("taps", [[-1], [-2, -1], [-20, -3]])
def test_rows_between_the_earliest_and_the_end_are_those_of_the_whole_result(taps: list[int]) -> None:
    def step(*args: Any) -> tuple[Any, Any, Any]:
        *lags, s = args
        new = sum(lags)[::-1] * 0.3 + 1
        return new, np.sort(new) + lags[0], s * 0.9 + new[0]

    initial = np.arange(50.0 * -min(taps)).reshape(-min(taps), 50) / 9
    infos = [{"initial": initial if len(initial) > 1 else initial[0], "taps": taps}, None, np.float64(1)]
    rows = ns.scan(step, outputs_info=infos, n_steps=n, return_updates=False)
    parts = ns.function([n], [part for out in rows[:2] for part in _reads(out)] + [rows[2][-3], rows[2][-2:]])
    whole = ns.function([n], rows)
    for steps in (4, 23):
        full = whole(steps)
        expected = [part for out in full[:2] for part in _reads(out)] + [full[2][-3], full[2][-2:]]
        for value, seen in zip(expected, parts(steps), strict=True):
            np.testing.assert_allclose(seen, value, rtol=1e-14)
    assert parts.memory().per_step == 0
    with pytest.raises(IndexError, match="index -3 is out of bounds for axis 0 with size 2"):
        parts(2)


def test_the_third_row_from_the_end_costs_three_rows() -> None:
    out = ns.scan(lambda u: u[::-1] * 0.5, outputs_info=x, n_steps=n, return_updates=False)
    f = ns.function([x, n], [out[-1], out[-3]])
    f(START, 1000)
    assert f.memory().work == 3 * ROW
    assert f.memory().results == 2 * ROW


def test_several_readers_share_the_rows_and_take_them_from_the_whole_where_it_is_kept() -> None:
    def step(u: Any) -> tuple[Any, Any]:
        return u[::-1] * 0.5, u[::-1] + 1

    u, v = ns.scan(step, outputs_info=[x, None], n_steps=n, return_updates=False)
    f = ns.function([x, n], [u[-5:].sum(), u[-3], u[-1:], v, v[-2], v[-1]])
    seen = f(START, 9)
    assert f.memory().work == 5 * ROW
    path = [START]
    for _ in range(9):
        path.append(path[-1][::-1] * 0.5)
    expected = [np.sum(path[-5:]), path[-3], path[-1:], np.array(path)[:-1, ::-1] + 1, path[-3][::-1] + 1, path[-2][::-1] + 1]
    for value, one in zip(expected, seen, strict=True):
        np.testing.assert_allclose(value, one, rtol=1e-14)
    seen[3][:] = 0  # a result of its own: the row before is no part of it
    np.testing.assert_array_equal(path[-3][::-1] + 1, seen[4])


def test_a_loop_that_ends_early_gives_the_last_rows_that_there_are() -> None:
    out = ns.scan(lambda u: (u[::-1] + 1, ns.until(u[0] > 4)), outputs_info=x, n_steps=n, return_updates=False)
    f, whole = ns.function([x, n], [out[-3:], out[-2:-1]]), ns.function([x, n], out)
    for start in (START, START + 4, START + 5):
        rows = whole(start, 100)
        np.testing.assert_array_equal(rows[-3:], f(start, 100)[0])
        np.testing.assert_array_equal(rows[-2:-1], f(start, 100)[1])
    assert f.memory().per_step == 0


def test_the_end_of_a_loop_in_a_step_costs_no_row_per_step_of_it() -> None:
    def lane(start: Any, steps: Any) -> Any:
        rows = ns.scan(lambda u: u[::-1] * 0.5, outputs_info=start, n_steps=steps, return_updates=False)
        return rows[-3, 1:] + rows[-1, 1:]

    f = ns.jit(ns.vmap(lane, in_axes=(0, None)))
    batch = np.stack([START, START + 1])
    rows = [batch[:, ::-1] * 0.5]
    while len(rows) < 9:
        rows.append(rows[-1][:, ::-1] * 0.5)
    np.testing.assert_allclose(f(batch, 9), (rows[-3] + rows[-1])[:, 1:], rtol=1e-14)
    f(batch, 1000)
    assert f.memory().total < 20 * ROW


def test_an_element_of_the_last_rows_at_a_place_that_the_run_knows() -> None:
    k = nt.lscalar("k")
    out = ns.scan(lambda u: u[::-1] * 0.5, outputs_info=x, n_steps=n, return_updates=False)
    f = ns.function([x, n, k], [out[-1, k], out[-3:, k]])
    path = [START]
    for _ in range(9):
        path.append(path[-1][::-1] * 0.5)
    for place in (0, 7, -1):
        last, three = f(START, 9, place)
        assert last == path[-1][place]
        np.testing.assert_array_equal(np.array(path[-3:])[:, place], three)
    assert f.memory().work + f.memory().results < 6 * ROW
    with pytest.raises(IndexError):
        f(START, 9, 50)


def filtered_and_smoothed(y: Any) -> Any:
    ahead, last = np.zeros(200), 0.0
    for t in range(200):
        last = 0.9 * last + 0.3 * y[t]
        ahead[t] = last
    x = np.zeros(200)
    x[-1] = ahead[-1]
    for t in reversed(range(199)):
        x[t] = ahead[t] + 0.5 * x[t + 1]
    return x[0] + x[-1]


def rows_of_elements(y: Any) -> Any:
    table, total = np.zeros((20, 10)), 0.0
    for t in range(200):
        table[t % 20, t // 20] = np.sin(y[t])
    for i in range(20):
        for j in range(10):
            total += table[i][j] * (i - j)
    return total


@pytest.mark.parametrize("f", [filtered_and_smoothed, rows_of_elements])
def test_loops_that_read_what_a_loop_has_written_read_its_last_row(f: Any) -> None:
    y = np.cos(np.arange(200.0))
    compiled, slope = ns.jit(f), ns.grad(f)
    np.testing.assert_allclose(compiled(y), f(y), rtol=1e-13)
    way = np.random.default_rng(1).normal(size=200)
    expected = (f(y + 1e-6 * way) - f(y - 1e-6 * way)) / 2e-6
    np.testing.assert_allclose(slope(y) @ way, expected, rtol=1e-6)
    assert compiled.memory().work < 3 * y.nbytes
    assert slope.memory().work < 12 * y.nbytes
