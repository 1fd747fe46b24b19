"""
Heat in a rod, and the gradient in its conductivity
===================================================

A sine wave decays on the grid by a factor that is known in closed form at each
step, and so is the derivative of what is left in the conductivity.
"""

import matplotlib.pyplot as plt
import numpy as np

import numbascan as ns

cells, steps = 200, 5_000
x = np.linspace(0, 1, cells + 1)
dx, dt = 1 / cells, 1e-5


def rod(conductivity, start):
    u = start.copy()
    rows = np.zeros((10, len(u)))
    for t in range(steps):
        if t % 500 == 0:
            rows[t // 500] = u
        u[1:-1] += conductivity * dt / dx**2 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u, rows


def middle(conductivity, start):
    return rod(conductivity, start)[0][cells // 2]


start = np.sin(np.pi * x)
value, slope = ns.value_and_grad(middle)(1.0, start)
_, rows = ns.jit(rod)(1.0, start)

figure, axes = plt.subplots(layout="constrained")
for k, row in enumerate(rows):
    axes.plot(x, row, color=plt.get_cmap("inferno")(0.9 - k / 12))
axes.set(xlabel="place", ylabel="temperature")
plt.show()

# %%
# The check: on the grid a sine loses the share q at each step.

q = 4 * dt / dx**2 * np.sin(np.pi * dx / 2) ** 2
exact, exact_slope = (1 - q) ** steps, -steps * q * (1 - q) ** (steps - 1)
print(f"{value:.10f} and {slope:.10f}; exact {exact:.10f} and {exact_slope:.10f}")
assert abs(value - exact) < 1e-12
assert abs(slope - exact_slope) < 1e-11
