"""
Kalman filter on the Nile, fitted by its gradient
=================================================

The flow of the Nile at Aswan, 1871 to 1970, as a level that wanders and is measured
with noise. J. Durbin and S. J. Koopman, *Time Series Analysis by State Space
Methods*, find the variances 15,099 (noise) and 1,469 (level) by maximum likelihood.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import numbascan as ns
from numbascan.demo import nile

years, flow = nile()


def kalman(variances, flow):
    """The levels, their variances, and the log-likelihood of years 2 to 100."""
    noise, drift = variances
    levels, spread = np.zeros(len(flow)), np.zeros(len(flow))
    level, p, likelihood = flow[0], noise, 0.0
    levels[0], spread[0] = level, p
    for t in range(1, len(flow)):
        p = p + drift
        f = p + noise
        error = flow[t] - level
        likelihood -= 0.5 * (np.log(2 * np.pi * f) + error**2 / f)
        level = level + p / f * error
        p = p * noise / f
        levels[t], spread[t] = level, p
    return levels, spread, likelihood


def cost(logs, flow):
    return -kalman(np.exp(logs), flow)[2]


best = minimize(
    ns.value_and_grad(cost), np.log([10_000.0, 1_000.0]), args=(flow,), jac=True
)
noise, drift = np.exp(best.x)
levels, spread, likelihood = ns.jit(kalman)(np.exp(best.x), flow)

figure, axes = plt.subplots(layout="constrained")
axes.plot(years, flow, ".", color="gray", label="flow")
axes.plot(years, levels, label="filtered level")
band = 1.64 * np.sqrt(spread)
axes.fill_between(years, levels - band, levels + band, alpha=0.25, label="90 per cent")
axes.set(xlabel="year", ylabel="flow (1e8 m³)")
axes.legend()
plt.show()

# %%
# The check: the book's variances and its log-likelihood with a diffuse start,
# -632.5456.

print(f"noise {noise:.0f}, drift {drift:.0f}, log-likelihood {likelihood:.4f}")
assert abs(noise - 15_099) < 15
assert abs(drift - 1_469) < 3
assert abs(likelihood + 632.5456) < 1e-3
