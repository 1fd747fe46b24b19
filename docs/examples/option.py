"""
The price of an option, and its Greeks
======================================

The mean over 100,000 paths of what a call pays, and its derivatives along the
paths. F. Black and M. Scholes (1973) give all three in closed form.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

import numbascan as ns

rng = np.random.default_rng(7)
shocks = rng.normal(size=(100_000, 50))
strike, rate, years = 100.0, 0.03, 1.0


def payoff(spot, volatility, shocks):
    """What the call pays at the end of one path of 50 steps, in today's money."""
    price, dt = spot, years / 50
    for z in shocks:
        price *= np.exp((rate - volatility**2 / 2) * dt + volatility * np.sqrt(dt) * z)
    return np.exp(-rate * years) * max(price - strike, 0.0)


greeks = ns.value_and_grad(payoff, argnums=(0, 1))
values, (deltas, vegas) = ns.vmap(greeks, in_axes=(None, None, 0))(100.0, 0.2, shocks)

d1 = (np.log(100 / strike) + (rate + 0.2**2 / 2) * years) / (0.2 * np.sqrt(years))
d2 = d1 - 0.2 * np.sqrt(years)
exact = {
    "price": 100 * norm.cdf(d1) - strike * np.exp(-rate * years) * norm.cdf(d2),
    "delta": norm.cdf(d1),
    "vega": 100 * norm.pdf(d1) * np.sqrt(years),
}

figure, panels = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
for axes, (name, value), sample in zip(
    panels, exact.items(), (values, deltas, vegas), strict=True
):
    means = np.cumsum(sample) / np.arange(1, len(sample) + 1)
    axes.semilogx(means)
    axes.axhline(value, color="gray")
    axes.set(
        title=name, xlabel="paths", xlim=(100, None), ylim=(0.9 * value, 1.1 * value)
    )
plt.show()

# %%
# The check: each within four standard errors of the formula.

for (name, value), sample in zip(exact.items(), (values, deltas, vegas), strict=True):
    error = np.std(sample) / np.sqrt(len(sample))
    print(f"{name} {np.mean(sample):.4f} ± {error:.4f}, formula {value:.4f}")
    assert abs(np.mean(sample) - value) < 4 * error
