"""
Ising's chain in a heat bath
============================

Spins in a ring, each of which follows its neighbours as far as the heat lets it.
The mean energy of a spin is -tanh(1/T) (E. Ising, 1925). Thirty temperatures side
by side.
"""

import matplotlib.pyplot as plt
import numpy as np

import numbascan as ns

rng = np.random.default_rng(3)
spins, sweeps = 100, 3_000


def chain(temperature):
    """The mean energy of a spin in the second half of the sweeps."""
    s = np.ones(spins)
    energy = 0.0
    for sweep in range(sweeps):
        chance = rng.random(spins)
        for k in range(spins):
            around = s[k - 1] + s[(k + 1) % spins]
            up = 1 / (1 + np.exp(-2 * around / temperature))
            s[k] = 1.0 if chance[k] < up else -1.0
        if sweep >= sweeps // 2:
            energy -= np.mean(s * np.roll(s, 1))
    return energy / (sweeps - sweeps // 2)


temperatures = np.linspace(0.7, 4.0, 30)
energies = ns.vmap(chain)(temperatures)
exact = -np.tanh(1 / temperatures)

figure, axes = plt.subplots(layout="constrained")
axes.plot(temperatures, exact, color="gray", label="-tanh(1/T)")
axes.plot(temperatures, energies, ".", label="chains")
axes.set(xlabel="temperature", ylabel="energy of a spin")
axes.legend()
plt.show()

# %%
# The check: the formula, to the noise of the chains.

worst = np.abs(energies - exact).max()
print(f"largest difference {worst:.4f}")
assert worst < 0.03
