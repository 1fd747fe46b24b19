"""Convolutions, correlations and slopes, as NumPy has them."""

import numpy as np
import pytest
from ops.functions import assert_as_numpy

import numbascan as ns
import numbascan.tensor as nt

ARRAYS = [
    np.array([1.0, -2.0, 0.0, 3.0, 0.5, -1.0]),
    np.sin(np.arange(40.0)),
    np.arange(6) % 4,
    np.linspace(-1, 2, 7, dtype="float32") ** 2,
]
KERNELS = [np.array([0.25, 0.5, 0.25]), np.array([1, 2]), np.arange(9.0), np.array([2.0]), np.array([1 + 1j, 2])]
each_array = pytest.mark.parametrize("x", ARRAYS, ids=lambda x: f"{x.dtype}{x.shape}")


@each_array
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: f"{kernel.dtype}{kernel.shape}")
def test_convolutions_and_correlations_as_numpy(x, kernel):
    modes = ("full", "same", "valid")
    assert_as_numpy(lambda x, v: [np.convolve(x, v, mode) for mode in modes] + [np.correlate(x, v, mode) for mode in modes], x, kernel)


def test_other_dtypes_and_what_is_not_finite_as_numpy():
    truth, short = ARRAYS[0] > 0, np.array([100, 50, 3], "int8")
    for x in (truth, short):
        assert_as_numpy(lambda x, v: [np.convolve(x, v), np.correlate(x, v, "full")], x, x[:2])
    for v in (np.array([np.inf, 1.0]), np.array([np.nan, 1.0, 2.0])):
        with np.errstate(invalid="ignore"):
            assert_as_numpy(lambda x, v: [np.convolve(x, v), np.convolve(x, v, "same"), np.correlate(x, v, "full")], ARRAYS[0] + 9, v)
    assert_as_numpy(np.gradient, ARRAYS[0], np.array([9, 5, 4, 2, 1, 0], "uint8"))


def test_lengths_that_are_too_short_at_the_run():
    x = ARRAYS[0]
    for f in (
        lambda x: np.convolve(x[x > 100], np.ones(3)),
        lambda x: np.gradient(x[x > 2]),
        lambda x: np.gradient(x[x > 0.7], edge_order=2),
    ):
        with pytest.raises(ValueError, match=r"empty|small"):
            f(x)
        with pytest.raises(ValueError, match=r"empty|less than"):
            ns.jit(f, mode="python")(x)


@pytest.mark.parametrize("edge_order", [1, 2])
def test_slopes_as_numpy(edge_order):
    for x in ARRAYS:
        places = np.cumsum(1 + np.arange(len(x)) % 3 * 0.5)
        assert_as_numpy(lambda x: np.gradient(x, edge_order=edge_order), x)
        assert_as_numpy(lambda x, h: np.gradient(x, h, edge_order=edge_order), x, 0.3)
        if x.dtype != "float32":
            assert_as_numpy(lambda x, t: np.gradient(x, t, edge_order=edge_order), x, places)
    matrix = np.cos(np.arange(20.0)).reshape(4, 5)
    assert_as_numpy(lambda x: [*np.gradient(x, edge_order=edge_order), np.gradient(x, 0.1, axis=1), *np.gradient(x, 0.1, 0.2)], matrix)
    assert_as_numpy(lambda x: np.gradient(x, np.array([0, 1, 3, 4.5]), axis=0, edge_order=edge_order), matrix)


@pytest.mark.parametrize("mode", [None, "python"])
def test_compiled_and_differentiated(mode):
    x, kernel = ARRAYS[1], KERNELS[0]
    np.testing.assert_allclose(ns.jit(lambda x: np.convolve(x, kernel, "same"), mode=mode)(x), np.convolve(x, kernel, "same"), rtol=1e-13)
    weights = np.cos(np.arange(42.0))
    found = ns.jit(ns.grad(lambda x, v: np.convolve(x, v) @ weights, argnums=(0, 1)), mode=mode)(x, kernel)
    np.testing.assert_allclose(found[0], np.correlate(weights, kernel), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found[1], np.correlate(weights, x), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(ns.jit(np.gradient, mode=mode)(x), np.gradient(x), rtol=1e-13)


@pytest.mark.parametrize(
    "function, error, words",
    [
        (lambda x: np.convolve(x, x[None]), ValueError, "vectors"),
        (lambda x: np.convolve(x, [1.0], "middle"), ValueError, "full, same, valid"),
        (lambda x: np.gradient(x, 1.0, 2.0), TypeError, "2 spacings for 1 axes"),
        (lambda x: np.gradient(x, edge_order=3), ValueError, "use 1 or 2"),
        (lambda x: np.gradient(x > 0), TypeError, "truth values"),
        (lambda x: np.polyder(x, -1), ValueError, "0 or more"),
        (lambda x: np.polyint(x[None]), ValueError, "vector"),
        (lambda x: np.polyfit(x, x, -1), ValueError, "0 or more"),
        (lambda x: np.gradient(nt.specify_shape(x, (1,))), ValueError, "2 at least"),
    ],
)
def test_what_is_refused_says_what_to_write(function, error, words):
    with pytest.raises(error, match=words):
        function(nt.dvector("x"))
