"""
FitzHugh and Nagumo's neuron: where it begins to oscillate
==========================================================

A neuron of two variables, for 2,000 currents side by side. The rest state loses its
hold in a Hopf bifurcation, whose place is known: where :math:`1 - v^2 =
\\varepsilon b`.
"""

import matplotlib.pyplot as plt
import numpy as np

import numbascan as ns

a, b, eps = 0.7, 0.8, 0.08


def extremes(current):
    """The least and the greatest v in the second half of 2,000 units of time."""
    dt = 0.05
    v, w = -1.0, -0.4
    least, greatest = np.inf, -np.inf
    for t in range(40_000):
        dv = v - v**3 / 3 - w + current
        dw = eps * (v + a - b * w)
        v_half, w_half = v + dt / 2 * dv, w + dt / 2 * dw  # the midpoint method
        v += dt * (v_half - v_half**3 / 3 - w_half + current)
        w += dt * eps * (v_half + a - b * w_half)
        if t >= 20_000:
            least, greatest = min(least, v), max(greatest, v)
    return least, greatest


currents = np.linspace(0.0, 1.8, 2_000)
least, greatest = ns.vmap(extremes)(currents)

figure, axes = plt.subplots(layout="constrained")
axes.fill_between(currents, least, greatest, alpha=0.3)
axes.plot(currents, least, color="tab:blue", linewidth=1)
axes.plot(currents, greatest, color="tab:blue", linewidth=1)
axes.set(xlabel="current", ylabel="v, from least to greatest")
plt.show()

# %%
# The check: the formula. The cycle that is born there is unstable, so large
# oscillations appear a little before.

v = -np.sqrt(1 - eps * b)
hopf = (v + a) / b - v + v**3 / 3
onset = currents[np.argmax(greatest - least > 0.1)]
print(f"oscillates from {onset:.4f}, Hopf bifurcation at {hopf:.4f}")
assert abs(onset - hopf) < 0.01
