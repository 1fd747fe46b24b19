"""Slices of ranges whose bounds only the run knows, and what messages tell to write."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numbascan as ns


@pytest.mark.parametrize("part", [slice(3, None), slice(-3, None), slice(None, 30), slice(2, 9, 3), slice(None, None, -2)])
def test_slices_of_ranges_with_bounds_that_only_the_run_knows(part: slice) -> None:
    def sliced(n: int, start: int, stop: int, step: int) -> tuple[int, int, int]:
        s = t = 0
        for i in range(n)[start:stop:step]:
            s = 3 * s + i
        for i in range(20)[start::2]:
            t = 3 * t + i
        return s, t, range(n)[start:stop][0]

    known = part.indices(12)
    for start in {known[0], known[0] - 12}:
        args = 12, start, 12 if part.stop is None else part.stop, abs(known[2])
        assert ns.jit(sliced)(*args) == sliced(*args)


def test_ranges_of_traced_lengths_are_arrays_where_numpy_makes_them_so() -> None:
    def arrays(n: int, x: np.ndarray) -> tuple[np.ndarray, ...]:
        rows, columns = np.meshgrid(range(n), range(1, n, 3))
        whole = np.array(range(n)) * 2.0 + np.sin(range(n)) - np.asarray(range(n, 0, -1))
        return (
            rows + columns,
            whole,
            np.concatenate([range(n), range(1, n)]),
            np.sum(range(n)) + np.dot(range(n), x),
            np.stack([range(n), x]),
        )

    for n in (2, 4, 20):  # of no numbers NumPy makes an array of float64
        args = n, np.arange(float(n)) / 7
        for found, expected in zip(ns.jit(arrays)(*args), arrays(*args), strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-14)


WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@pytest.mark.parametrize("name", WHOLE)
def test_types_of_numpy_take_pythons_numbers_that_fit_and_cast_its_own(name: str) -> None:
    kind = getattr(np, name)
    f = ns.jit(lambda x: kind(x))
    for value in (0, 1, 100, True, 3.7, np.float64(3.7), np.int64(300), np.int64(-3), np.uint8(200)):
        found, expected = f(value), kind(value)
        assert (found.dtype, found[()]) == (expected.dtype, expected), value
    ends = np.iinfo(kind)
    for value in (ends.min - 1, ends.max + 1):
        if -(2**63) <= value < 2**63:
            with pytest.raises(OverflowError, match="out of bounds"):
                f(value)
    with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
        f(float("nan"))


def test_messages_say_what_to_write_where_none_meets_a_pair_and_where_no_source_is() -> None:
    def pair(x: np.ndarray) -> tuple[int, float] | None:
        best = None
        for i, v in enumerate(x):
            if best is None or v > best[1]:
                best = (i, v)
        return best

    with pytest.raises(
        TypeError, match=r"best is None before it .*test_ranges_and_messages.py, line \d+.*; beside None stands a number alone: give"
    ):
        ns.jit(pair)(np.arange(30.0))
    names: dict[str, Any] = {}
    exec("def total(n):\n    s = 0\n    for i in range(n):\n        s += i\n    return s\n", names)
    with pytest.raises(TypeError, match=r"^the source of total cannot be read, .*in a file.*needs a concrete value"):
        ns.jit(names["total"])(3)


def test_texts_on_two_sides_of_a_choice_are_refused_with_the_line() -> None:
    def digits(n: int) -> int:
        counts = {"even": 0, "odd": 0}
        counts["even" if n % 2 == 0 else "odd"] += 1
        return counts["even"]

    with pytest.raises(TypeError, match=r"'even' on one side \(.*test_ranges_and_messages.py, line \d+\) and 'odd' on the other"):
        ns.jit(digits)(3)


def test_what_is_read_unbound_in_a_loop_is_shown_where_it_is_read() -> None:
    def nearest(x: np.ndarray, n: int) -> np.ndarray:
        found = np.zeros(n)
        for m in range(n):
            best = np.inf
            for j in range(len(x)):
                if x[j] < best:
                    best, place = x[j], j
            found[m] = x[place]
        return found

    line = nearest.__code__.co_firstlineno + 7
    with pytest.raises(UnboundLocalError, match=rf"place is read \(.*test_ranges_and_messages.py, line {line}\)"):
        ns.jit(nearest)(np.arange(20.0), 20)


def test_a_list_bound_anew_in_a_loop_is_named() -> None:
    def shifted(x: np.ndarray, n: int) -> Any:
        s = list(x)
        for _ in range(n):
            s = [v + 1 for v in s]
        return s[0]

    assert ns.jit(shifted)(np.arange(8.0), 3) == 3.0
    with pytest.raises(TypeError, match=r"the loop .* changes s, which holds a list .*; only numbers, arrays"):
        ns.jit(shifted)(np.arange(18.0), 3)
