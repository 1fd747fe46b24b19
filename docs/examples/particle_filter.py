"""
A particle filter beside Kalman's
=================================

Where a level and its noise are normal, Kalman's filter is exact. A cloud of 5,000
particles that is drawn anew at each year comes to the same log-likelihood and
levels, and needs no normal noise.
"""

import matplotlib.pyplot as plt
import numpy as np

import numbascan as ns
from numbascan.demo import nile

years, flow = nile()
noise, drift = 15_099.0, 1_469.0
rng = np.random.default_rng(0)


@ns.jit
def particles(flow, n=5_000):
    levels = np.zeros(len(flow))
    cloud = 1_120 + np.sqrt(noise) * rng.normal(size=n)
    likelihood = 0.0
    for t in range(len(flow)):
        density = np.exp(-0.5 * (flow[t] - cloud) ** 2 / noise) / np.sqrt(
            2 * np.pi * noise
        )
        likelihood += np.log(np.mean(density))
        weights = np.cumsum(density) / np.sum(density)
        levels[t] = np.sum(density * cloud) / np.sum(density)
        places = np.searchsorted(weights, (np.arange(n) + rng.random()) / n)
        cloud = cloud[np.minimum(places, n - 1)] + np.sqrt(drift) * rng.normal(size=n)
    return levels, likelihood


@ns.jit
def kalman(flow):
    levels = np.zeros(len(flow))
    level, p, likelihood = 1_120.0, noise, 0.0
    for t in range(len(flow)):
        f = p + noise
        likelihood -= 0.5 * (np.log(2 * np.pi * f) + (flow[t] - level) ** 2 / f)
        level += p / f * (flow[t] - level)
        p = p * noise / f + drift
        levels[t] = level
    return levels, likelihood


levels, estimate = particles(flow)
exact_levels, exact = kalman(flow)

figure, axes = plt.subplots(layout="constrained")
axes.plot(years, flow, ".", color="silver")
axes.plot(years, exact_levels, label="Kalman", linewidth=3, alpha=0.5)
axes.plot(years, levels, "k", label="particles", linewidth=0.8)
axes.set(xlabel="year", ylabel="flow (1e8 m³)")
axes.legend()
plt.show()

# %%
# The check: the exact log-likelihood.

print(f"log-likelihood {estimate:.2f}, exact {exact:.2f}")
assert abs(estimate - exact) < 0.5
