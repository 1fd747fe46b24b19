"""Counts, members and different values, as NumPy has them."""

import numpy as np
import pytest
from ops.functions import assert_as_numpy

import numbascan as ns
import numbascan.tensor as nt

COUNTED = np.array([3, 0, 1, 3, 3])
WEIGHTS = np.array([0.5, 1.0, 2.0, 3.0, 4.0])
REPEATED = np.array([1.0, np.nan, 3.0, 1.0, np.nan, -2.0, 3.0, 3.0])
MODES = [None, "python"]


def test_bincount_counts_and_adds_weights():
    assert_as_numpy(
        lambda x, w: [
            *(np.bincount(x), np.bincount(x, w), np.bincount(x, minlength=7), np.bincount(x[:0]), np.bincount(x[:0], minlength=2)),
            *(np.bincount(x.astype("uint8"), w.astype("float32")), np.bincount(x, x)),
        ],
        COUNTED,
        WEIGHTS,
        is_definite=False,
    )


@pytest.mark.parametrize("mode", MODES)
def test_bincount_of_a_given_length_is_for_lanes_and_refuses_what_is_not_counted(mode):
    count = ns.jit(ns.vmap(lambda x: nt.bincount(x, length=3)), mode=mode)
    np.testing.assert_array_equal(count(np.array([[0, 1, 1], [2, 2, 2]])), [[1, 2, 0], [0, 0, 3]])
    for wrong in (-1, 3):
        with pytest.raises(IndexError, match="index 3 is out of bounds"):
            count(np.array([[0, 1, 1], [2, wrong, 2]]))
    x = np.array([2, 0, 2])
    gradient = ns.jit(ns.grad(lambda w: (np.bincount(x, w) ** 2).sum()), mode=mode)
    np.testing.assert_array_equal(gradient(np.array([1.0, 5.0, 3.0])), [8.0, 10.0, 8.0])


def test_isin_of_few_and_of_many_elements():
    assert_as_numpy(
        lambda x, y: [
            *(np.isin(x, [3, 1]), np.isin(y, y), np.isin(y, np.repeat(y, 4)), np.isin(y, np.repeat(y, 4)[:0]), np.isin(x, [])),
            *(np.isin(x, y, invert=True), np.isin(y, np.tile(x, 5), invert=True), np.isin(y.reshape(2, 4), np.tile(x, 5))),
        ],
        COUNTED,
        REPEATED,
    )


ARRAYS = [REPEATED, COUNTED, REPEATED.reshape(2, 4), COUNTED > 1, REPEATED + 1j * REPEATED[::-1], REPEATED[:0], REPEATED.astype("float32")]


@pytest.mark.parametrize("a", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_unique_gives_as_many_values_as_asked_for(a):
    for equal_nan in (True, False):
        wanted = np.unique(a, return_index=True, return_inverse=True, return_counts=True, equal_nan=equal_nan)
        count = len(wanted[0])
        is_compiled = equal_nan and a.dtype in ("float64", "complex128") and a.shape == (8,)
        for size, mode in ((count, "python"), (count + 2, "python"), (max(count - 1, 0), "python"), (count + 1, None))[: 3 + is_compiled]:
            found = ns.jit(lambda a: nt.unique(a, True, True, True, size=size, equal_nan=equal_nan), mode=mode)(a)  # noqa: B023
            np.testing.assert_array_equal(found[2], wanted[2])
            for one, values in ((found[0], wanted[0]), (found[1], wanted[1]), (found[3], wanted[3])):
                assert (one.shape, one.dtype) == ((size,), values.dtype)
                np.testing.assert_array_equal(one[:count], values[:size])
            if 0 < count < size:
                np.testing.assert_array_equal(found[0][count:], wanted[0][:1].repeat(size - count))
                np.testing.assert_array_equal(found[1][count:], wanted[1][0])
                assert not found[3][count:].any()


@pytest.mark.parametrize("a", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_sets_as_numpy(a):
    def sets(a, b):
        return [
            *(np.unique(a), *np.unique(a, return_index=True, return_inverse=True, return_counts=True), np.unique(a, equal_nan=False)),
            *(np.union1d(a, b), np.intersect1d(a, b), *np.intersect1d(a, b, return_indices=True), np.setdiff1d(a, b), np.setxor1d(a, b)),
            *(np.setdiff1d(np.unique(a)[::-1], b, assume_unique=True), np.array_equal(a, b), np.array_equal(a, a)),
            np.array_equal(a, a, equal_nan=True),
        ]

    for b in (np.array([1.0, 3.0, np.nan]), a.ravel()[::-1][:4]):
        assert_as_numpy(sets, a, b, is_definite=False)


@pytest.mark.parametrize("mode", MODES)
def test_compiled_sets_and_their_derivatives(mode):
    x = np.array([3.0, 1.0, 3.0, 2.0])
    assert ns.jit(np.union1d, mode=mode)(x, x + 0.5).tolist() == [1.0, 1.5, 2.0, 2.5, 3.0, 3.5]
    assert ns.jit(ns.grad(lambda x: (np.unique(x) ** 2).sum()), mode=mode)(x).tolist() == [6.0, 2.0, 0.0, 4.0]


def test_unique_fills_with_a_value_and_has_derivatives():
    x = np.array([3.0, 1.0, 3.0, 2.0])
    assert ns.jit(lambda x: nt.unique(x, size=5, fill_value=-1))(x).tolist() == [1.0, 2.0, 3.0, -1.0, -1.0]
    assert ns.grad(lambda x: (nt.unique(x, size=5, fill_value=0) ** 2).sum())(x).tolist() == [6.0, 2.0, 0.0, 4.0]


@pytest.mark.parametrize(
    "function, error, words",
    [
        (lambda x: np.bincount(x * 1.0), TypeError, "vector of integers"),
        (lambda x: np.bincount(x, [1.0]).eval({x: [1, 2]}), ValueError, "must have"),
        (lambda x: nt.unique(x, size=x[0]), TypeError, "known while tracing"),
        (lambda x: nt.unique(x, size=-1), TypeError, "0 or more"),
        (lambda x: nt.unique(x, size=2, axis=0), TypeError, "leave axis out"),
    ],
)
def test_what_is_refused_says_what_to_write(function, error, words):
    with pytest.raises(error, match=words):
        function(nt.lvector("x"))
