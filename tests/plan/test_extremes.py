"""Extremes and their places: several accumulators, rows as memory lies, and NumPy's rules for NaN and for elements that are equal."""

import numpy as np
import pytest
from wide import wide

import numbascan as ns

rng = np.random.default_rng(5)
NAN, INF = np.nan, np.inf
KINDS = ("float64", "int8", "complex128", "float32", "int64", "uint8", "bool")


def extremes(x):
    return [f(x, axis=axis) for f in (np.max, np.argmax, np.min, np.argmin) for axis in (0, 1, None)]


def extremes_of_work(x, u):
    """What is reduced is computed: stored where it is looked at twice."""
    y = np.exp(x * u) if x.dtype.kind == "f" else x + x
    return [*extremes(y), np.max(y[0]) - np.argmax(y[0])]


def rows_with(dtype, n):
    """Rows of equal elements here and there; in those of floats NaN first, last, between and twice, and no number but an infinite one."""
    x = rng.integers(0, 2 if dtype == "bool" else 9, (12, n)).astype(dtype)
    if x.dtype.kind in "fc":
        x[1, 0] = x[2, -1] = x[3, n // 2] = x[4, n // 3] = x[4, n // 2] = NAN
        x[5], x[6], x[7, :2], x[8] = -INF, INF, (NAN, INF), NAN
        x[9], x[9, n // 2] = -0.0, 0.0
    return x


@pytest.mark.parametrize("dtype", wide(KINDS, first=3))
def test_extremes_and_their_places_are_numpys(dtype):
    compiled = ns.jit(extremes)
    x = rows_with(dtype, 37)
    for rows in (
        np.concatenate([x, x]),
        np.ascontiguousarray(np.concatenate([x, x]).T),
    ):  # one kernel takes both
        for one, expected in zip(compiled(rows), extremes(rows), strict=True):
            np.testing.assert_array_equal(one, expected)
            assert one.dtype == expected.dtype


def test_a_place_is_found_whatever_bits_the_elements_have():
    compiled, oracle = ns.jit(extremes_of_work), ns.jit(extremes_of_work, mode="python")
    for n in (36, 131):
        x = rows_with("float64", n)
        for one, expected in zip(compiled(x, 0.3), oracle(x, 0.3), strict=True):
            np.testing.assert_allclose(one, expected, rtol=1e-14)


def test_extremes_in_a_step_of_a_state_that_they_change():
    def step(u, x):
        place, worst = np.argmax(x), np.argmin(x)
        x = ns.tensor.set_subtensor(x[place], u * np.min(x))
        return ns.tensor.set_subtensor(x[worst], u), place

    us = np.array([0.5, NAN, 0.25, 2.0, -1.0])
    runs = [ns.scan(step, us, [np.arange(7.0), None], return_updates=False, mode=mode) for mode in (None, "python")]
    for compiled, expected in zip(*runs, strict=True):
        np.testing.assert_array_equal(compiled, expected)


def test_an_extreme_of_functions_has_one_result_for_lanes_and_for_the_rest():
    """Whether the SIMD unit takes an element or not, its bits are the same."""
    greatest = ns.jit(lambda x: np.max(np.exp(x)))
    x = rng.normal(size=(300, 43))
    elements = ns.jit(np.exp)(x)
    for n in range(39, 44):
        assert [greatest(row) for row in np.ascontiguousarray(x[:, :n])] == elements[:, :n].max(axis=1).tolist()


def test_no_elements_have_no_extreme():
    with pytest.raises(ValueError, match="argmax: zero elements to reduce along axis 0"):
        ns.jit(np.argmax)(np.empty(0))


def test_an_extreme_and_its_place_share_their_pass_and_columns_go_row_by_row():
    shared = ns.jit(lambda x: [np.max(x), np.argmax(x)]).lower(np.ones(100)).source()
    assert shared.count("max_or_nan(") == 1
    columns = ns.jit(lambda x: [np.max(x, axis=0), np.argmax(x, axis=0)]).lower(np.ones((30, 40))).source()
    assert columns.count("before == before and not before >= ") == 1
    assert "argmax_of[j] = v if is_new else before" in columns


def test_the_place_of_an_extreme_of_columns_takes_two_comparisons():
    """An extreme that minds NaN, compared with the one before, took six operations of the SIMD unit: 1.6 times a loop by hand."""
    columns = ns.jit(lambda x: np.argmin(x, axis=0)).lower(np.ones((30, 40))).source()
    assert "min_or_nan" not in columns
    assert columns.count("before == before and not before <= ") == 1


def test_what_begins_like_an_extreme_is_not_taken_for_one():
    """A sum of unsigned numbers begins with 0, which is also what none of them is less than."""

    def several(x, y):
        return [f(z, axis=0) for z in (x, y) for f in (np.sum, np.any, np.argmax, np.all, np.argmin, np.prod)]

    x = rng.integers(0, 5, (30, 40)).astype("uint64")
    for one, expected in zip(ns.jit(several)(x, x > 2), several(x, x > 2), strict=True):
        np.testing.assert_array_equal(one, expected)
