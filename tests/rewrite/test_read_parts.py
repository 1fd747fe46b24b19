"""What a step reads of its new state is what was written there, or what the old state holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rewrite.graphs import after, graph_of, loops

import numbascan as ns
import numbascan.tensor as nt
from numbascan.rewrite.read_parts import read_parts

N, STEPS = 20, 8
rng = np.random.default_rng(4)
PLACES, NUMBERS = rng.integers(-3, 3, (STEPS, 4)), rng.normal(size=STEPS)


def put(x: Any, index: Any, value: Any) -> Any:
    return nt.set_subtensor(x[index], value)


def reads(u: Any, i: Any, y: Any) -> list[Any]:
    """Places that are known, counted from either end, of the run, unsigned ones, and the one that was written."""
    return [y[i[0]], y[i[1]], y[0], y[-1], y[N - 1], y[(i[2] + 3).astype("uint64")]]


def set_once(u: Any, i: Any, x: Any) -> Any:
    new = put(x, i[0], u)
    return new, *reads(u, i, new)


def set_and_added(u: Any, i: Any, x: Any) -> Any:
    """One after the other, each reads the one before."""
    new = put(put(x, 0, 2), -1, u)
    new = nt.inc_subtensor(new[i[2]], new[i[1]])
    new = put(new, i[3], new[i[2]] - 1)
    return new, *reads(u, i, new)


def of_two_axes(u: Any, i: Any, x: Any) -> Any:
    """Reads on as many axes as were written are changed."""
    rows, numbers = put(x, i[0], x[1] * u), put(x, (i[0], i[1] % 2), u)
    new = put(rows, i[1], u) if u.dtype == "int64" else put(numbers, (i[1], -1), rows[i[2], 1])
    return new, rows[i[2]], rows[i[2], 1], numbers[i[2], i[3] % 2], new[0, 1], new[i[3]], new[-1]


@pytest.mark.parametrize("step", [set_once, set_and_added, of_two_axes])
@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_values_are_those_of_the_interpreter(step: Any, dtype: str) -> None:
    row = (rng.normal(size=N) * 9).astype(dtype)
    row[:3] = [-0.0, 0.0, -0.0]
    numbers = NUMBERS if dtype == "float64" else PLACES[:, 3]
    loops = [ns.scan(lambda u, i, x: step(u, i, x), keep_last=[1] + [None] * 6, mode=mode) for mode in (None, "python")]
    row = row.reshape(10, 2) if step is of_two_axes else row
    results = [loop([numbers, PLACES], [row] + [None] * 6) for loop in loops]
    for one, other in zip(*results, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(np.signbit(one), np.signbit(other))


@pytest.mark.usefixtures("rewritten")
def test_nothing_but_the_parts_is_written() -> None:
    for step in (set_once, set_and_added):
        loop = ns.scan(step, keep_last=[1] + [None] * 6)
        loop([NUMBERS, PLACES], [np.arange(20.0)] + [None] * 6)
        assert "x_rows" not in loop.source()


def test_places_out_of_bounds_are_errors() -> None:
    loop = ns.scan(lambda u, i, x: (put(x, i[0], u), put(x, i[0], u)[i[1]]), keep_last=[1, None])
    for wrong in ([0, N], [N, N], [-N - 1, 0]):
        with pytest.raises(IndexError):
            loop([NUMBERS[:1], np.array([wrong])], [np.arange(20.0), None])


def test_slices_positions_and_arrays_of_few_numbers_stay() -> None:
    for step, n in (
        (lambda u, p, x: (put(x, 2, u), put(x, 2, u)[:3]), 40),
        (lambda u, p, x: (put(x, 2, u), put(x, 2, u)[p]), 40),
        (lambda u, p, x: (put(x, p, u), put(x, p, u)[2]), 40),
        (lambda u, p, x: (put(x, slice(1, 4), u), put(x, slice(1, 4), u)[2]), 40),
        (lambda u, p, x: (put(x, 2, u), put(x, 2, u)[3]), 4),
        (lambda u, p, x: (x * 2, put(x, 2, u)[3]), 40),  # no state
    ):
        u, p, x = nt.dvector("u"), nt.lmatrix("p"), nt.tensor("float64", shape=(n,), name="x")
        before = graph_of([u, p, x], ns.scan(step, [u, p], [x, None], return_updates=False))
        assert len(loops(before)) == 1
        assert after(read_parts, before) == before
