"""
An epidemic, vaccinated and fitted
==================================

Who is susceptible meets who is ill. Without vaccination the share z that falls ill
in the end solves :math:`z = 1 - e^{-R z}` (W. O. Kermack and A. G. McKendrick,
1927). The rates are fitted to noisy counts by least squares, their errors come from
the Hessian.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import brentq, minimize

import numbascan as ns


@ns.jit
def epidemic(rates, first_day, doses):
    """Share of people ill on each of 300 days, and of those who ever were."""
    contacts, recovery = rates
    s, i, ever = 1 - 1e-4, 1e-4, 1e-4
    ill = np.zeros(300)
    for day in range(300):
        for _ in range(10):  # a tenth of a day
            infected = 0.1 * contacts * s * i
            vaccinated = 0.0
            if day >= first_day:
                vaccinated = min(0.1 * doses, s - infected)
            s -= infected + vaccinated
            i += infected - 0.1 * recovery * i
            ever += infected
        ill[day] = i
    return ill, ever


truth = np.array([0.26, 0.12])
rng = np.random.default_rng(1)
counts = epidemic(truth, 50, 0.006)[0] + 0.003 * rng.normal(size=300)


def misfit(logs, counts):
    return 0.5 * np.sum((epidemic(np.exp(logs), 50, 0.006)[0] - counts) ** 2) / 0.003**2


fit = minimize(ns.value_and_grad(misfit), np.log([0.3, 0.15]), (counts,), jac=True)
errors = np.sqrt(
    np.diag(np.linalg.inv(ns.hessian(misfit)(fit.x, counts)))
)  # of the logarithms
rates = np.exp(fit.x)

figure, axes = plt.subplots(layout="constrained")
axes.plot(100 * counts, ".", color="silver", label="counts")
axes.plot(100 * epidemic(rates, 50, 0.006)[0], label="fitted, doses from day 50")
axes.plot(100 * epidemic(rates, 25, 0.006)[0], label="doses from day 25")
axes.plot(100 * epidemic(rates, 300, 0.0)[0], label="no doses")
axes.set(xlabel="day", ylabel="ill (%)")
axes.legend()
plt.show()

# %%
# The checks: the rates within three errors, and the final size without doses.

size = brentq(lambda z: z - 1 + np.exp(-truth[0] / truth[1] * z), 0.1, 1)
ever = epidemic(truth, 300, 0.0)[1]
print(f"rates {rates.round(4)} ± {(rates * errors).round(4)}")
print(f"final size {ever:.4f}, formula {size:.4f}")
assert np.all(np.abs(fit.x - np.log(truth)) < 3 * errors)
assert abs(ever - size) < 3e-3
