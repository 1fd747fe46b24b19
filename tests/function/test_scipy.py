"""SciPy's solvers take compiled functions as they are."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares, minimize, root

import numbascan as ns

TIMES = np.linspace(0.0, 2.0, 41)
DATA = 3.0 * np.exp(-1.5 * TIMES)


def decayed(parameters):
    """An amplitude that falls by a rate, by exact steps."""
    amplitude, rate = parameters
    factor = np.exp(-rate * (TIMES[1] - TIMES[0]))
    rows = ns.scan(lambda y: y * factor, outputs_info=amplitude, n_steps=40, return_updates=False)
    return np.concatenate([np.array([amplitude]), rows])


def residuals(parameters):
    return decayed(parameters) - DATA


def test_minimize_takes_value_and_grad_and_hessian():
    def cost(parameters):
        return (residuals(parameters) ** 2).sum()

    start = np.array([1.0, 1.0])
    for options in ({"method": "BFGS"}, {"method": "L-BFGS-B"}, {"method": "trust-ncg", "hess": ns.hessian(cost)}):
        found = minimize(ns.value_and_grad(cost), start, jac=True, **options)
        np.testing.assert_allclose(found.x, [3.0, 1.5], rtol=1e-4)
    found = minimize(ns.jit(cost), start, jac=ns.grad(cost), method="BFGS")
    np.testing.assert_allclose(found.x, [3.0, 1.5], rtol=1e-4)


def test_least_squares_takes_a_jacobian():
    found = least_squares(ns.jit(residuals), [1.0, 1.0], jac=ns.jacobian(residuals))
    np.testing.assert_allclose(found.x, [3.0, 1.5], rtol=1e-8)


def test_root_takes_a_jacobian():
    def equations(x):
        rows = ns.scan(lambda y, c: y + 0.1 * np.cos(y) * c, None, x[0], x[1], n_steps=10, return_updates=False)
        return np.array([rows[-1] - 1.0, x[0] + x[1] - 1.0])

    for method in ("hybr", "lm"):
        found = root(ns.jit(equations), np.array([0.5, 0.5]), jac=ns.jacobian(equations), method=method)
        assert found.success
        np.testing.assert_allclose(equations(found.x), 0.0, atol=1e-9)


def test_solve_ivp_takes_right_hand_sides_and_jacobians():
    def robertson(t, y):
        slow, fast, wide = 0.04 * y[0], 3e7 * y[1] ** 2, 1e4 * y[1] * y[2]
        return np.array([-slow + wide, slow - fast - wide, fast])

    f, jac = ns.jit(robertson), ns.jacobian(robertson, argnums=1)
    stiff = solve_ivp(f, (0.0, 1e3), [1.0, 0.0, 0.0], method="BDF", jac=jac, rtol=1e-8, atol=1e-12)
    plain = solve_ivp(robertson, (0.0, 1e3), [1.0, 0.0, 0.0], method="BDF", rtol=1e-8, atol=1e-12)
    assert stiff.success
    np.testing.assert_allclose(stiff.y[:, -1], plain.y[:, -1], rtol=1e-5)
    oscillator = solve_ivp(ns.jit(lambda t, y: np.array([y[1], -y[0]])), (0.0, 2 * np.pi), [1.0, 0.0], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(oscillator.y[:, -1], [1.0, 0.0], atol=1e-8)
