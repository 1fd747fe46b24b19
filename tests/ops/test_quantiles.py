"""Quantiles, histograms and the bins of values, as NumPy has them."""

import warnings

import numpy as np
import pytest
from ops.functions import assert_as_numpy

import numbascan as ns

NAN = np.nan
ARRAYS = [
    np.array([1.0, -2.0, 0.0, 3.0, 0.0, -1.0]),
    np.array([NAN, 1.0, 2.0, NAN, 2.0]),
    np.sin(np.arange(40.0)) * 3,
    np.arange(30) % 8 - 3,
    np.linspace(-1, 2, 7, dtype="float32") ** 2,
    np.array([1.0, 2.0, np.inf]),
    np.array([2.0]),
]
EDGES = [4, 1, np.array([-1.0, 0.0, 1.0, 2.0]), [0, 1]]
each_array = pytest.mark.parametrize("x", ARRAYS, ids=lambda x: f"{x.dtype}{x.shape}")


@pytest.fixture(autouse=True)
def no_warnings_of_numpy():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@each_array
@pytest.mark.parametrize("method", ["linear", "lower", "higher", "nearest", "midpoint"])
def test_quantiles_as_numpy(x, method):
    assert_as_numpy(lambda x: [np.percentile(x, q, method=method) for q in (50, 25.0, 0, 100, [10, 90], np.array([33.3]))], x)
    assert_as_numpy(lambda x: [np.nanpercentile(x, q, method=method) for q in (50, 25.0, 0, 100, [10, 90], np.array([33.3]))], x)
    assert_as_numpy(lambda x, q: [np.quantile(x, q, method=method), np.nanquantile(x, q, method=method)], x, np.float64(0.375))
    assert_as_numpy(lambda x, q: [np.quantile(x, q, method=method), np.nanquantile(x, q, method=method)], x, np.array([0.1, 0.5]))


@pytest.mark.parametrize("axis", [0, 1, -1, None, (0, 1)])
def test_quantiles_over_axes(axis):
    x = np.cos(np.arange(100.0)).reshape(5, 20)
    for rows in (x, np.where(x > 0.9, NAN, x), np.full((2, 3), NAN)):
        assert_as_numpy(
            lambda x: [
                function(x, q, axis=axis, keepdims=keepdims)
                for function in (np.quantile, np.nanquantile)
                for q in (0.3, [0.2, 0.9])
                for keepdims in (False, True)
            ],
            rows,
        )


@pytest.mark.parametrize("mode", [None, "python"])
def test_compiled_quantiles_their_derivatives_and_their_range(mode):
    x = ARRAYS[2]
    assert ns.jit(lambda x, q: np.percentile(x[x > 0], q), mode=mode)(x, 30.0) == pytest.approx(np.percentile(x[x > 0], 30.0), rel=1e-14)
    found = ns.jit(ns.grad(lambda x: np.quantile(x, 0.3)), mode=mode)(x)
    order, place = np.argsort(x), 0.3 * 39
    expected = np.zeros(40)
    expected[order[int(place)]], expected[order[int(place) + 1]] = 1 - place % 1, place % 1
    np.testing.assert_allclose(found, expected, atol=1e-12)
    with pytest.raises(ValueError, match=r"np.percentile: q must be in the range \[0, 100\]"):
        ns.jit(np.percentile, mode=mode)(x, 101.0)


@each_array
@pytest.mark.parametrize("bins", EDGES, ids=str)
def test_histograms_as_numpy(x, bins):
    weights = np.cos(np.arange(len(x)))

    def count(x, w):
        return [
            *np.histogram(x, bins, range=(-1.0, 2.0)),
            *(part for density in (None, True) for part in np.histogram(x, bins, range=(-1.0, 2.0), density=density, weights=w)),
        ]

    assert_as_numpy(count, x, weights)
    if np.isfinite(x).all():
        assert_as_numpy(lambda x: [*np.histogram(x, bins), np.histogram_bin_edges(x, bins)], x)


def test_histograms_of_one_value_of_none_and_of_what_is_not_finite():
    for x in (np.full(5, 2.0), np.zeros(0)):
        assert_as_numpy(np.histogram, x)
    for x in (ARRAYS[1], ARRAYS[5]):
        with pytest.raises(ValueError, match="autodetected range is not finite"):
            ns.jit(np.histogram, mode="python")(x)


@pytest.mark.parametrize(
    "f, error",
    [
        (lambda x: np.histogram(x, [3.0, 2, 1]), ValueError),
        (lambda x: np.histogram(x, x[:3]), ValueError),
        (lambda x: np.histogram(x, 3, range=(1, 0)), ValueError),
        (lambda x: np.histogram(x, 3, range=(0, np.inf)), ValueError),
        (lambda x: np.histogram(x, 3, range=(x[0], x[1])), ValueError),
        (lambda x: np.histogram(x, [0.0, 1.0], weights=x > 0), TypeError),
        (lambda x: np.digitize(x + 1j, [0.0, 1.0]), TypeError),
    ],
)
def test_what_numpy_refuses_to_count_is_refused(f, error):
    for call in (f, ns.jit(f, mode="python")):
        with pytest.raises(error):
            call(ARRAYS[0])


@pytest.mark.parametrize("mode", [None, "python"])
def test_a_compiled_histogram(mode):
    x = ARRAYS[2]
    for found, expected in zip(ns.jit(lambda x: np.histogram(x, 6), mode=mode)(x), np.histogram(x, 6), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-14)


@each_array
@pytest.mark.parametrize("edges", [[0, 1, 2.5], [2, 1, 0], [1, 1, 1]], ids=str)
def test_digitize_as_numpy(x, edges):
    assert_as_numpy(lambda x: [np.digitize(x, edges), np.digitize(x, edges, right=True)], x)
    assert_as_numpy(lambda x, b: [np.digitize(x, b), np.digitize(x, b, True)], x, np.array(edges, float))


def test_edges_in_no_order_are_refused():
    for edges in ([0, 2, 1], np.array([0.0, 2.0, 1.0])):
        with pytest.raises(ValueError, match="bins must rise or fall"):
            ns.jit(lambda x: np.digitize(x, edges), mode="python")(ARRAYS[0])  # noqa: B023
        with pytest.raises(ValueError, match="bins must rise or fall"):
            ns.jit(np.digitize, mode="python")(ARRAYS[0], np.array(edges, float))
