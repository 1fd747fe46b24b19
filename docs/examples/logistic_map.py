"""
Logistic map: the road to chaos
===============================

One rule, :math:`x \\to r x (1 - x)`, for 2,000 values of r side by side. At r = 4
nearby points part by a factor of two at each step: the Lyapunov exponent is exactly
ln 2.
"""

import matplotlib.pyplot as plt
import numpy as np

import numbascan as ns


def orbit(r):
    """The last 100 of 1,000 points, and the mean rate at which nearby points part."""
    x, rate = 0.3, 0.0
    last = np.zeros(100)
    for step in range(1_000):
        rate += np.log(np.abs(r * (1 - 2 * x)))
        x = r * x * (1 - x)
        if step >= 900:
            last[step - 900] = x
    return last, rate / 1_000


rs = np.linspace(2.8, 4.0, 2_000)
points, exponents = ns.vmap(orbit)(rs)

figure, (above, below) = plt.subplots(2, sharex=True, layout="constrained")
above.plot(rs, points, ",", color="tab:blue", alpha=0.3)
above.set_ylabel("x")
below.plot(rs, exponents, linewidth=0.7)
below.axhline(0, color="gray", linewidth=0.7)
below.set(xlabel="r", ylabel="Lyapunov exponent", ylim=(-2, 1))
plt.show()

# %%
# The check: ln 2 at the right end.

print(f"{exponents[-1]:.4f}, ln 2 is {np.log(2):.4f}")
assert abs(exponents[-1] - np.log(2)) < 0.01
