"""Derivatives of draws: with respect to location and scale those of the reparametrised draw, else an error that says why."""

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.errors import NullGradientError

REPARAMETRISED = ["uniform", "normal", "lognormal", "laplace", "logistic", "cauchy"]


def slopes_and_differences(make, *point, mode=None):
    """The gradient of the sum of squares of bounded functions of draws, and central differences of it."""
    inputs = [nt.dscalar(f"x{k}") for k in range(len(point))]
    cost = (np.arctan(make(nt.random.RandomStream(5), *inputs)) ** 2).sum()
    value = ns.function(inputs, cost, mode=mode)
    slopes = ns.function(inputs, ns.grad(cost, inputs), mode=mode)(*point)
    steps = np.eye(len(point)) * 1e-6
    differences = [(value(*(point + step)) - value(*(point - step))) / 2e-6 for step in steps]
    return np.array(slopes), np.array(differences)


@pytest.mark.parametrize("mode", ["numba", "python"])
@pytest.mark.parametrize("size", [3, (4, 5)])
@pytest.mark.parametrize("name", REPARAMETRISED)
def test_location_and_scale(name, size, mode):
    slopes, differences = slopes_and_differences(lambda s, loc, scale: getattr(s, name)(loc, scale, size=size), 0.3, 1.7, mode=mode)
    np.testing.assert_allclose(slopes, differences, rtol=2e-6, atol=1e-8)


@pytest.mark.parametrize(
    "make",
    [
        lambda s, scale: s.exponential(scale, size=9),
        lambda s, scale: s.gamma(2.0, scale, size=9),
        lambda s, scale: s.weibull(1.5, scale, size=9),
        lambda s, scale: s.t(3.0, 0.5, scale, size=9),
        lambda s, scale: s.weibull(scale, size=9),
        lambda s, scale: s.multivariate_normal(np.zeros(2), np.array([[1.0, 0.3], [0.3, 2.0]]) * scale, size=5),
    ],
)
def test_scales(make):
    slopes, differences = slopes_and_differences(make, 1.3)
    np.testing.assert_allclose(slopes, differences, rtol=2e-6)


@pytest.mark.parametrize("name", REPARAMETRISED)
def test_the_mean_moves_as_it_should(name):
    """The gradient of an average over draws estimates the derivative of the mean: 1 in the location, where there is a mean."""
    loc, scale = nt.dscalar("loc"), nt.dscalar("scale")
    x = getattr(nt.random.RandomStream(5), name)(loc, scale, size=100_000)
    slope, _ = ns.function([loc, scale], ns.grad(x.mean(), [loc, scale]))(0.2, 0.7)
    expected = {"uniform": 0.5, "lognormal": np.exp(0.2 + 0.7**2 / 2)}.get(name, 1.0)
    assert slope == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(
    "make",
    [
        lambda s, x: s.gamma(x, size=3),
        lambda s, x: s.chisquare(x, size=3),
        lambda s, x: s.t(x, size=3),
        lambda s, x: s.beta(x, 2.0, size=3),
        lambda s, x: s.dirichlet(np.stack([x, 2 * x]), size=3),
        lambda s, x: s.poisson(x, size=3, dtype="float64"),
        lambda s, x: s.binomial(9, x / 10, size=3, dtype="float64"),
        lambda s, x: s.geometric(x / 10, size=3, dtype="float64"),
        lambda s, x: s.negative_binomial(x, 0.5, size=3, dtype="float64"),
    ],
)
def test_other_parameters_have_no_gradient(make):
    x = nt.dscalar("x")
    with pytest.raises(NullGradientError, match="accepted or refused, or a whole number"):
        ns.grad(make(nt.random.RandomStream(5), x).sum(), x)


def test_no_gradient_goes_through_whole_numbers():
    x = nt.dscalar("x")
    with pytest.raises(NullGradientError, match="a whole number, does not move smoothly"):
        ns.grad(nt.random.RandomStream(5).poisson(x).astype("float64"), x)


def test_taken_as_a_constant():
    x = nt.dscalar("x")
    draw = nt.random.RandomStream(5).gamma(nt.disconnected_grad(x), x)
    slope, base = ns.function([x], [ns.grad(draw, x), draw / x])(2.5)
    assert slope == base


def test_second_derivatives():
    x = nt.dscalar("x")
    z = nt.random.RandomStream(5).lognormal(0.0, x)
    first = ns.grad(z, x)
    draw, slope, curvature = ns.function([x], [z, first, ns.grad(first, x)])(0.8)
    normal = np.log(draw) / 0.8
    assert slope == pytest.approx(normal * draw)
    assert curvature == pytest.approx(normal**2 * draw)
