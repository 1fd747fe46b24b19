"""Powers with a small known exponent are products: no call of pow, values within a few ulp, and what pow gives at the ends."""

from __future__ import annotations

import numpy as np
import pytest

import numbascan as ns

BOUNDS = {1.5: 1.3, 3: 1.3, 4: 2.0, 5: 3.0, 6: 3.4}  # ulp
ENDS = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e-160, 1e160, 1e103, -1e103, 1e-108, -1e-108]


@pytest.mark.parametrize("exponent", BOUNDS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values_are_near_the_exact_ones(exponent: float, dtype: str) -> None:
    numbers = np.random.default_rng(0)
    x = (numbers.lognormal(0, 3, 20_000) * numbers.choice([-1, 1], 20_000)).astype(dtype)
    powers = ns.jit(lambda x: x**exponent)
    got = powers(x)
    with np.errstate(invalid="ignore"):
        exact = x.astype(np.longdouble) ** np.longdouble(exponent)
    assert got.dtype == dtype
    known = np.isfinite(exact)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(exact))
    error = np.abs(got[known] - exact[known]) / np.spacing(np.abs(exact[known]).astype(dtype))
    assert error.max() < BOUNDS[exponent]
    assert "pow(" not in powers.source()


@pytest.mark.parametrize("exponent", BOUNDS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_ends_are_those_of_numpy(exponent: float, dtype: str) -> None:
    with np.errstate(all="ignore"):
        x = np.array(ENDS).astype(dtype)
        wanted = np.power(x, np.array(exponent, dtype))
    got = ns.jit(lambda x: x**exponent)(x)
    np.testing.assert_allclose(got, wanted, rtol=4 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(np.signbit(got)[~np.isnan(got)], np.signbit(wanted)[~np.isnan(wanted)])


def test_what_is_long_is_computed_once() -> None:
    def energy(x, y):
        s = 0.0
        for i in range(20):
            s += (np.exp(x * i) + y) ** 3 - np.log(y + i) ** 1.5
        return s

    jitted = ns.jit(energy)
    assert float(jitted(0.1, 1.5)) == pytest.approx(energy(0.1, 1.5), rel=1e-13)
    assert jitted.source().count("exp(x") == 1
    gradient = ns.grad(energy, (0, 1))(0.1, 1.5)
    step = 1e-6
    differences = [
        (energy(0.1 + step, 1.5) - energy(0.1 - step, 1.5)) / 2 / step,
        (energy(0.1, 1.5 + step) - energy(0.1, 1.5 - step)) / 2 / step,
    ]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6)
