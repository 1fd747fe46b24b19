"""A choice between an array with parts replaced and the array as it was is made of the parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rewrite.graphs import after, graph_of, loops, ops_in

import numbascan as ns
import numbascan.tensor as nt
from numbascan.rewrite.choose_parts import choose_parts

N, STEPS = 30, 8
rng = np.random.default_rng(4)
PLACES, POSITIONS, NUMBERS = rng.integers(-N, N, (STEPS, 2)), rng.integers(0, N, (STEPS, 4)), rng.normal(size=STEPS)


def put(x: Any, index: Any, value: Any) -> Any:
    return nt.set_subtensor(x[index], value)


def swap_if(u: Any, i: Any, p: Any, x: Any) -> Any:
    return np.where(u > 0, put(put(x, i[0], x[i[1]]), i[1], x[i[0]]), x)


CHOICES = {
    "a swap": swap_if,
    "the other way round": lambda u, i, p, x: np.where(u > 0, x, put(x, i[0], x[i[1]] * 2)),
    "a sum": lambda u, i, p, x: np.where(u > 0, nt.inc_subtensor(x[i[0]], x[i[1]]), x),
    "a sum of positions": lambda u, i, p, x: np.where(u > 0, nt.inc_subtensor(x[p], x[p[::-1]]), x),
    "positions": lambda u, i, p, x: np.where(u > 0, put(x, p, x[p[::-1]]), x),
    "a slice": lambda u, i, p, x: np.where(u > 0, put(x, slice(2, 7), x[3:8] * 2), x),
    "one within the other": lambda u, i, p, x: np.where(u > 0, put(swap_if(u - 1, i, p, x), 0, 3), x),
}


@pytest.mark.parametrize("dtype", ["float64", "int64", "complex128", "float32"])
def test_values_are_those_of_the_interpreter(dtype: str) -> None:
    row = rng.normal(size=N) * 9 + (1j if dtype == "complex128" else 0)
    row[:3] = [-0.0, 0.0, -0.0]
    row = row.astype(dtype)
    if dtype != "int64":
        row[3:5] = [np.nan, -np.inf]

    def all_of(u: Any, i: Any, p: Any, *rows: Any) -> list[Any]:
        return [choice(u, i, p, x) for choice, x in zip(CHOICES.values(), rows, strict=True)]

    values = ([NUMBERS, PLACES, POSITIONS], [row] * len(CHOICES))
    loop, plain = ns.scan(all_of, keep_last=1), ns.scan(all_of, keep_last=1, mode="python")
    for one, other in zip(loop(*values), plain(*values), strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(np.signbit(one.real), np.signbit(other.real))


@pytest.mark.usefixtures("rewritten")
def test_nothing_but_the_part_is_written() -> None:
    loop = ns.scan(swap_if, keep_last=1)
    loop([NUMBERS, PLACES, POSITIONS], np.arange(40.0))
    assert "_rows" not in loop.source()


def graph(step: Any, n: int = 40) -> Any:
    u, i, x = nt.dvector("u"), nt.lmatrix("i"), nt.tensor("float64", shape=(n,), name="x")
    return graph_of([u, i, x], [ns.scan(step, [u, i], x, return_updates=False)])


def test_the_choice_is_one_of_numbers() -> None:
    (loop,) = loops(after(choose_parts, graph(lambda u, i, x: np.where(u > 0, put(x, i[0], u), x))))
    assert [name for name in ops_in(loop) if name in ("where", "set_subtensor")] == ["where", "set_subtensor"]


@pytest.mark.parametrize(
    "step, n",
    [
        (lambda u, i, x: np.where(x > 0, put(x, i[0], u), x), 40),  # a choice for each element
        (lambda u, i, x: np.where(u > 0, put(x, i[0], u), 2 * x), 40),  # another array
        (lambda u, i, x: np.where(u > 0, put(2 * x, i[0], u), x), 40),
        (lambda u, i, x: np.where(u > 0, put(x, 2, u), x), 4),  # an array in locals
    ],
)
def test_other_choices_stay(step: Any, n: int) -> None:
    before = graph(step, n)
    assert after(choose_parts, before) == before


def test_a_part_that_is_read_stays() -> None:
    def step(u: Any, i: Any, x: Any) -> Any:
        new = put(x, i[0], u)
        return np.where(u > 0, new, x), new.sum()

    u, i, x = nt.dvector("u"), nt.lmatrix("i"), nt.dvector("x")
    before = graph_of([u, i, x], ns.scan(step, [u, i], [x, None], return_updates=False))
    assert after(choose_parts, before) == before
