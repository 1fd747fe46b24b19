"""
Hamiltonian Monte Carlo in thirty lines
=======================================

A chain that rolls over the density by its gradient (S. Duane and others, 1987). The
banana of this example has moments in closed form: its second axis has the variance
1 + 2 b².
"""

import matplotlib.pyplot as plt
import numpy as np

import numbascan as ns

rng = np.random.default_rng(1)
b = 0.8


def energy(q):
    """Minus the logarithm of a density: x normal, y normal around b (x² - 1)."""
    return 0.5 * q[0] ** 2 + 0.5 * (q[1] - b * (q[0] ** 2 - 1)) ** 2


slope = ns.grad(energy)


@ns.jit
def sample(q, n, h=0.15, leaps=15):
    draws, accepted = np.zeros((n, 2)), 0
    for t in range(n):
        p = rng.normal(size=2)
        new, before = q, energy(q) + 0.5 * np.sum(p * p)
        p = p - h / 2 * slope(new)
        for _ in range(leaps):
            new = new + h * p
            p = p - h * slope(new)
        p = p + h / 2 * slope(new)
        if np.log(rng.random()) < before - energy(new) - 0.5 * np.sum(p * p):
            q = new
            accepted += 1
        draws[t] = q
    return draws, accepted / n


draws, accepted = sample(np.zeros(2), 40_000)

figure, axes = plt.subplots(layout="constrained")
axes.plot(*draws[:4_000].T, ".", markersize=2)
axes.set(xlabel="x", ylabel="y", title=f"{accepted:.0%} accepted")
plt.show()

# %%
# The check: mean 0 and variance 1 + 2 b² of y.

mean, variance, exact = draws[:, 1].mean(), draws[:, 1].var(), 1 + 2 * b**2
print(f"mean {mean:.3f}; variance {variance:.3f}, exact {exact:.3f}")
assert abs(mean) < 0.06
assert abs(variance - exact) < 0.25
