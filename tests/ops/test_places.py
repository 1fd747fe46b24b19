"""Elements that masks pick out, and arrays with elements taken out or put in, as NumPy has them."""

import numpy as np
import pytest
from ops.functions import assert_as_numpy

import numbascan as ns
import numbascan.tensor as nt

ARRAYS = [
    np.array([1.0, -2.0, 0.0, 3.0, 0.0, -1.0]),
    np.array([np.nan, 1.0, 2.0, np.nan, 2.0]),
    np.zeros(4),
    np.zeros(0),
    np.arange(-15, 15) % 7 - 3,
    np.array([True, False, True]),
    np.linspace(-1, 2, 7, dtype="float32"),
]
MATRICES = [
    np.array([[1.0, -2.0, 0.0, 3.0], [0.0, -1.0, 2.0, 4.0], [-0.5, 0.0, 1.0, 0.0]]),
    np.arange(80).reshape(4, 20) % 5 - 2,
    np.zeros((0, 3)),
]
each_array = pytest.mark.parametrize("x", ARRAYS, ids=lambda x: f"{x.dtype}{x.shape}")
each_matrix = pytest.mark.parametrize("x", MATRICES, ids=lambda x: f"{x.dtype}{x.shape}")


def same(function, *arrays):
    """As NumPy; or an error of NumPy's class."""
    try:
        function(*arrays)
    except (IndexError, ValueError) as error:
        with pytest.raises((IndexError, ValueError) if isinstance(error, ValueError) else IndexError):
            ns.jit(function, mode="python")(*arrays)
    else:
        assert_as_numpy(function, *arrays, is_definite=False)


@each_array
def test_a_mask_picks_elements(x):
    def pick(x):
        mask = x > 0
        return [x[mask], np.extract(mask, x), np.compress(mask, x), x.compress(mask[:2]), x[~mask][::-1]]

    def find(x):
        return [*np.nonzero(x), *x.nonzero(), np.flatnonzero(x), np.argwhere(x), *np.where(x > 0)]

    assert_as_numpy(pick, x, is_definite=False)
    assert_as_numpy(find, x, is_definite=False)
    for trim in ("fb", "f", "b"):
        assert_as_numpy(lambda x: np.trim_zeros(x, trim), x, is_definite=False)  # noqa: B023


@each_matrix
def test_a_mask_picks_rows_columns_and_elements(x):
    def pick(x):
        rows, columns = x[:, 0] > 0, x.sum(0) > 0
        return [
            *(x[x > 0], x[rows], x[:, columns], x[..., columns], x[rows, 1:], x[rows, 1], x[None, rows], x[rows][:, columns]),
            *(*np.nonzero(x), np.argwhere(x > 0), np.compress([True, False, True], x, axis=1), np.compress(rows, x, 0)),
        ]

    assert_as_numpy(pick, x, is_definite=False)


@each_array
@pytest.mark.parametrize("places", [0, -1, 2, slice(0, None, 2), slice(None, None, -2), [0, -1], [1, 1, 0], 100], ids=str)
def test_delete_and_insert(x, places):
    same(lambda x: np.delete(x, places), x)
    for values in (7, [3, 4], 2.5):
        same(lambda x: np.insert(x, places, values), x)  # noqa: B023


@each_matrix
@pytest.mark.parametrize("axis", [0, 1, None])
def test_delete_and_insert_along_axes(x, axis):
    same(lambda x: np.delete(x, 1, axis), x)
    same(lambda x: np.delete(x, [0, 2], axis=axis), x)
    same(lambda x: np.insert(x, 1, 5, axis), x)
    same(lambda x: np.insert(x, [0, 2], 5, axis=axis), x)
    if axis is not None:
        row = np.arange(x.shape[1 - axis])
        same(lambda x: np.insert(x, 1, row, axis=axis), x)


def test_traced_places_are_taken_out_and_put_in():
    x = ARRAYS[0]
    for k in (1, -1, len(x) - 1, len(x), -len(x), np.array([0, 1, 1]), np.array([-1, 2]), x > 0):
        same(lambda x, k: np.delete(x, k), x, k)
        if np.asarray(k).dtype != bool:
            same(lambda x, k: np.insert(x, k, 3.0), x, k)


def test_bounds_of_a_slice_that_is_taken_out_may_be_traced():
    for x in (ARRAYS[0], ARRAYS[4]):
        same(lambda x, i: np.delete(x, slice(i, -1)), x, 2)
        same(lambda x: np.delete(x, []), x)
    with pytest.raises(OverflowError):
        ns.jit(lambda x: np.insert(x, 1, 300), mode="python")(np.arange(3, dtype="int8"))
    for trim in ("x", ""):
        with pytest.raises(ValueError, match="trim is"):
            ns.jit(lambda x: np.trim_zeros(x, trim), mode="python")(ARRAYS[0])  # noqa: B023


def test_masks_meet_loops_lanes_and_derivatives():
    x = np.linspace(-1.01, 2, 40) * np.cos(np.arange(40.0))

    def mean(x):
        return x[x > 0].mean()

    def total(x):
        s = 0.0
        for t in range(4):
            s += x[x > 0.1 * t].sum() * x[np.flatnonzero(x > s * 0.01)[0]]
        return s

    for function in (mean, total):
        assert ns.jit(function)(x) == pytest.approx(function(x), rel=1e-14)
        rows = x.reshape(2, 20)
        np.testing.assert_allclose(ns.vmap(function)(rows), [function(row) for row in rows], rtol=1e-14)
    np.testing.assert_allclose(ns.grad(mean)(x), (x > 0) / np.sum(x > 0), rtol=1e-14)
    ends = [x + h * np.eye(40) for h in (1e-6, -1e-6)]
    slopes = [(total(above) - total(below)) / 2e-6 for above, below in zip(*ends, strict=True)]
    np.testing.assert_allclose(ns.grad(total)(x), slopes, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ns.jit(ns.vmap(ns.grad(mean)))(x.reshape(2, 20))[1], (x[20:] > 0) / np.sum(x[20:] > 0), rtol=1e-14)


def test_lanes_of_several_lengths_are_refused():
    with pytest.raises(ValueError, match="all rows of a result must have one shape: pad them, or reduce them inside the step"):
        ns.vmap(lambda x: x[x > 0])(np.array([[1.0, 2.0], [1.0, -2.0]]))


def test_what_is_written_behind_a_mask_of_a_symbolic_variable():
    x = nt.dvector("x")
    given = np.array([1.0, -2.0, 3.0])
    assert x[x > 0].set([7.0, 8.0]).eval({x: given}).tolist() == [7.0, -2.0, 8.0]
    assert nt.inc_subtensor(x[x > 0], x[x > 0] * 2).eval({x: given}).tolist() == [3.0, -2.0, 9.0]
    with pytest.raises(ValueError, match="3 values along an axis do not fit 2 places"):
        x[x > 0].set([7.0, 8.0, 9.0]).eval({x: given})


@pytest.mark.parametrize(
    "function, error, words",
    [
        (lambda x: np.compress(x[None] > 0, x), ValueError, "must be a vector"),
        (lambda x: np.insert(x, 1.5, 0.0), TypeError, "obj is"),
        (lambda x: np.trim_zeros(x[None]), TypeError, "vectors"),
        (lambda x: x[x[0] > 0], TypeError, r"np.where\(condition, x, other\)"),
    ],
)
def test_what_is_refused_says_what_to_write(function, error, words):
    with pytest.raises(error, match=words):
        function(nt.dvector("x"))
