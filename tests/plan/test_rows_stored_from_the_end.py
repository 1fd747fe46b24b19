"""`out[::-1]`: rows are written where they end, the last one first, and among the zeros around them; nothing is turned round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

x = nt.dvector("x")
us = nt.dmatrix("us")
n = nt.lscalar("n")
ROWS = np.random.default_rng(3).normal(size=(12, 10))
FIRST = np.arange(10.0) / 9


def _loop(steps: Any = None, until: bool = False) -> tuple[Any, Any]:
    """A state, and a result that no step reads."""

    def step(u: Any, s: Any) -> Any:
        new = np.tanh(s[::-1] * 0.5 + u)
        return ((new, new * u), ns.until(new[0] > 0.9)) if until else (new, new * u)

    return ns.scan(step, us, [x, None], n_steps=steps, return_updates=False)


def _by_hand(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    states, results, s = [], [], FIRST
    for u in rows:
        s = np.tanh(s[::-1] * 0.5 + u)
        states.append(s)
        results.append(s * u)
    return np.array(states).reshape(-1, 10), np.array(results).reshape(-1, 10)


@pytest.mark.parametrize("count", [0, 1, 12])
def test_rows_that_are_read_backwards_take_memory_once(count: int) -> None:
    f = ns.function([us, x], _loop()[1][::-1])
    np.testing.assert_allclose(f(ROWS[:count], FIRST), _by_hand(ROWS[:count])[1][::-1], rtol=1e-13)
    assert f.memory().results == ROWS[:count].nbytes
    assert f.memory().trace == 0


def test_what_is_read_both_ways_and_states_are_right() -> None:
    states, results = _loop()
    f = ns.function([us, x], [results, results[::-1], results[-3:], states[::-1], states[-1]])
    s, r = _by_hand(ROWS)
    for expected, seen in zip((r, r[::-1], r[-3:], s[::-1], s[-1]), f(ROWS, FIRST), strict=True):
        np.testing.assert_allclose(seen, expected, rtol=1e-13)


def test_a_result_that_is_read_backwards_and_at_its_end_is_kept_once() -> None:
    results = _loop()[1]
    f = ns.function([us, x], [results[::-1], results[-1], results[::2]])
    r = _by_hand(ROWS)[1]
    for expected, seen in zip((r[::-1], r[-1], r[::2]), f(ROWS, FIRST), strict=True):
        np.testing.assert_allclose(seen, expected, rtol=1e-13)


def test_rows_of_a_loop_that_ends_early_are_turned_round() -> None:
    results = _loop(until=True)[1]
    f, whole = ns.function([us, x], results[::-1]), ns.function([us, x], results)
    for shift in (0.0, 0.4, 9.0):
        rows = whole(ROWS + shift, FIRST)
        np.testing.assert_array_equal(f(ROWS + shift, FIRST), rows[::-1])


PLACES: dict[str, tuple[Any, Any]] = {
    "all": (0, None),
    "the first ones": (0, n),
    "in the middle": (3, n + 3),
    "at a place of the run": (n - 2, n + n - 2),
    "the last ones": (-n, None),
}


@pytest.mark.parametrize("place", list(PLACES))
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_are_written_among_zeros(place: str, dtype: str) -> None:
    start, stop = PLACES[place]
    zeros = nt.zeros_like(us)
    around = nt.set_subtensor(zeros[start:stop], _loop(n)[1][::-1].astype(dtype))
    f = ns.function([us, x, n], around)
    for count in (12,) if place == "all" else (2, 6):
        expected = np.zeros_like(ROWS)
        at = {"all": 0, "the first ones": 0, "in the middle": 3, "at a place of the run": count - 2, "the last ones": 12 - count}[place]
        expected[at : at + count] = _by_hand(ROWS[:count])[1][::-1].astype(dtype)
        np.testing.assert_allclose(f(ROWS, FIRST, count), expected, rtol=1e-6 if dtype == "float32" else 1e-13)
    if dtype == "float64":
        assert f.memory().trace == 0


def test_rows_that_do_not_fit_their_place_are_told() -> None:
    around = nt.set_subtensor(nt.zeros_like(us)[:7], _loop(n)[1][::-1])
    f = ns.function([us, x, n], around)
    assert f(ROWS, FIRST, 7)[7:].max() == 0
    with pytest.raises(ValueError, match="8 values along an axis do not fit 7 places"):
        f(ROWS, FIRST, 8)


def test_rows_that_are_longer_than_the_zeros_around_them_are_told() -> None:
    m = nt.lscalar("m")
    f = ns.function([us, x, m], nt.set_subtensor(nt.zeros((9, m))[2:6], _loop(4)[1][::-1]))
    assert f(ROWS, FIRST, 10)[6:].max() == 0
    with pytest.raises(ValueError, match=r"nt.set_subtensor: 10 values along an axis do not fit 7 places"):
        f(ROWS, FIRST, 7)


SHAPES = [((), (4,)), ((), (3, 4)), ((1,), (4,)), ((1,), (1,)), ((3, 1), (3, 4)), ((1, 4), (3, 4)), ((1, 1), (3, 4)), ((3, 4), (3, 4))]


@pytest.mark.parametrize(("row", "place"), SHAPES)
def test_rows_that_are_repeated_in_their_place_are_as_in_numpy(row: tuple[int, ...], place: tuple[int, ...]) -> None:
    def step(u: Any, s: Any) -> Any:
        new = np.tanh(s * 0.5 + u)
        return new, new * u + 1

    def among_zeros(factors: Any, first: Any) -> tuple[Any, ...]:
        states, results = ns.scan(step, factors, [first, None], return_updates=False)
        return tuple(nt.set_subtensor(nt.zeros((9, *place))[2:6], rows) for rows in (results[::-1], states))

    first, factors = np.cos(np.arange(np.prod(row, dtype=int))).reshape(row), np.arange(1.0, 5.0)
    states, results, s = [], [], first
    for u in factors:
        s, result = step(u, s)
        states.append(s)
        results.append(result)
    for seen, rows in zip(ns.jit(among_zeros)(factors, first), (results[::-1], states), strict=True):
        expected = np.zeros((9, *place))
        expected[2:6] = rows
        np.testing.assert_allclose(seen, expected, rtol=1e-13)


def test_a_loop_whose_own_rows_say_where_they_go_is_right() -> None:
    states, results = _loop(n)
    start = (states[-1].sum() > 1e9).astype("int64")
    f = ns.function([us, x, n], nt.set_subtensor(nt.zeros_like(us)[start : start + n], results[::-1]))
    expected = np.zeros_like(ROWS)
    expected[:9] = _by_hand(ROWS[:9])[1][::-1]
    np.testing.assert_allclose(f(ROWS, FIRST, 9), expected, rtol=1e-13)


def walk(u: Any, s: Any) -> Any:
    return np.tanh(s[::-1] * 0.5 + u)


def taps(before: Any, now: Any, after: Any, s: Any) -> Any:
    return np.sin(s * 0.5 + before * now - after)


def ends(u: Any, s: Any) -> Any:
    new = np.tanh(s[::-1] * 0.5 + u)
    return new, ns.until(new[0] > 0.97)


def path(step: Callable[..., Any] = walk, sequence: Any = None, **options: Any) -> Callable[..., Any]:
    def cost(rows: Any, first: Any) -> Any:
        given = rows if sequence is None else {"input": rows, **sequence}
        return (ns.scan(step, given, first, return_updates=False, **options) ** 2).sum()

    return cost


COSTS: dict[str, Callable[..., Any]] = {
    "all rows": path(),
    "some rows": path(n_steps=9),
    "backwards": path(go_backwards=True),
    "some rows, backwards": path(n_steps=9, go_backwards=True),
    "taps": path(taps, {"taps": [-1, 0, 2]}),
    "one tap": path(walk, {"taps": [2]}),
    "until": path(ends),
    "truncated": path(truncate_gradient=4),
    "truncated, one tap": path(walk, {"taps": [-2]}, truncate_gradient=4),
    "checkpoints": path(checkpoint=4),
    "checkpoints by themselves": path(checkpoint="auto"),
    "checkpoints, taps": path(taps, {"taps": [-1, 0, 2]}, checkpoint=3),
    "checkpoints, until": path(ends, checkpoint=4),
    "the last row": path(keep_last=1),
}


@pytest.mark.parametrize("name", list(COSTS))
def test_gradients_of_sequences_are_those_of_python(name: str) -> None:
    cost = COSTS[name]
    of_both = ns.grad(cost, (0, 1))
    expected = ns.jit(ns.grad(cost, (0, 1)), mode="python")(ROWS, FIRST)
    for one, seen in zip(expected, of_both(ROWS, FIRST), strict=True):
        np.testing.assert_allclose(seen, one, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["all rows", "backwards", "one tap", "taps", "until"])
def test_gradients_of_sequences_are_those_of_differences(name: str) -> None:
    ns.verify_grad(COSTS[name], [ROWS[:9, :4] * 0.5, FIRST[:4]])


@pytest.mark.parametrize("name", ["all rows", "some rows", "truncated"])
def test_gradients_in_lanes_are_those_of_each(name: str) -> None:
    lanes = np.stack([ROWS, ROWS * 0.5, ROWS - 1])
    each, alone = ns.vmap(ns.grad(COSTS[name]), (0, None))(lanes, FIRST), ns.jit(ns.grad(COSTS[name]), mode="python")
    for rows, seen in zip(lanes, each, strict=True):
        np.testing.assert_allclose(seen, alone(rows, FIRST), rtol=1e-9, atol=1e-12)


def test_second_derivatives_are_those_of_python() -> None:
    twice = ns.grad(lambda rows, first: (ns.grad(COSTS["some rows"])(rows, first) ** 2).sum())
    np.testing.assert_allclose(twice(ROWS, FIRST), ns.jit(twice, mode="python")(ROWS, FIRST), rtol=1e-8, atol=1e-11)


def test_lanes_of_gradients_wait_for_no_other() -> None:
    """The cotangents of lanes are read backwards, too: their loop is shared out to threads, and is a kernel of a GPU."""

    def end(y: Any) -> Any:
        return ns.scan(lambda y: y - 0.1 * y * y, outputs_info=y, n_steps=50, return_updates=False)[-1]

    cost = ns.jit(ns.grad(lambda ys: (ns.vmap(end)(ys) ** 2).mean())).lower(np.ones((4096, 3)))
    assert cost.source().count("in_threads(") == 2
    assert cost.source("cuda").count("while t < last") >= 2
