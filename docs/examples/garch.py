"""
GARCH on oil prices, with standard errors
=========================================

The variance of a day's return depends on the day before. Maximum likelihood by the
gradient, standard errors from the Hessian. The package arch 8.0.0 finds the
log-likelihood -18165.8589 and alpha 0.0856 ± 0.0068 for the same 8,000 days.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import numbascan as ns
from numbascan.demo import oil_returns, variance_before

returns = oil_returns()
before = variance_before(returns)  # as arch starts


def variances(p, returns, before):
    mu, omega, alpha, beta = p
    variance = np.zeros(len(returns))
    variance[0] = omega + (alpha + beta) * before
    for t in range(1, len(returns)):
        variance[t] = (
            omega + alpha * (returns[t - 1] - mu) ** 2 + beta * variance[t - 1]
        )
    return variance


def loss(p, returns, before):
    variance = variances(p, returns, before)
    return 0.5 * np.sum(np.log(2 * np.pi * variance) + (returns - p[0]) ** 2 / variance)


fit = minimize(
    ns.value_and_grad(loss),
    np.array([0.03, 0.1, 0.1, 0.8]),
    (returns, before),
    jac=True,
    method="SLSQP",
    bounds=[(None, None), (1e-6, None), (0, 1), (0, 1)],
    options={"ftol": 1e-9},
)
errors = np.sqrt(np.diag(np.linalg.inv(ns.hessian(loss)(fit.x, returns, before))))

figure, axes = plt.subplots(figsize=(8, 3.5), layout="constrained")
axes.plot(1986 + np.arange(len(returns)) / 252, returns, color="silver", linewidth=0.4)
deviation = np.sqrt(ns.jit(variances)(fit.x, returns, before))
axes.plot(
    1986 + np.arange(len(returns)) / 252, 2 * deviation, color="tab:red", linewidth=0.8
)
axes.set(xlabel="year", ylabel="return, and twice its deviation (%)", ylim=(-25, 25))
plt.show()

# %%
# The check: the numbers of arch.

for name, value, error in zip(
    ("mu", "omega", "alpha", "beta"), fit.x, errors, strict=True
):
    print(f"{name:5} {value:.4f} ± {error:.4f}")
assert abs(fit.fun - 18165.8589) < 1e-3
assert abs(fit.x[2] - 0.0856) < 1e-4
assert abs(errors[2] - 0.0068) < 1e-4
