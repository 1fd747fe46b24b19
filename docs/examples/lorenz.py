"""
Lorenz attractor and its Lyapunov exponent
==========================================

A path and, beside it, a small difference that the equations carry along. The rate
at which the difference grows is the Lyapunov exponent, 0.9056 (D. Viswanath,
*Lyapunov exponents from random Fibonacci sequences to the Lorenz equations*, 1998).
"""

import matplotlib.pyplot as plt
import numpy as np

import numbascan as ns


def slope(y):
    return np.array(
        [
            10 * (y[1] - y[0]),
            y[0] * (28 - y[2]) - y[1],
            y[0] * y[1] - 8 / 3 * y[2],
        ]
    )


def runge_kutta(y):
    h = 0.01
    k1 = slope(y)
    k2 = slope(y + h / 2 * k1)
    k3 = slope(y + h / 2 * k2)
    k4 = slope(y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


@ns.jit
def run(y, difference, steps):
    """The path, and the mean rate at which a difference of two paths grows."""
    path = np.zeros((steps, 3))
    growth = 0.0
    for t in range(steps):
        y, difference = ns.jvp(runge_kutta, (y,), (difference,))
        size = np.sqrt(np.sum(difference**2))
        growth += np.log(size)
        difference = difference / size
        path[t] = y
    return path, growth / (0.01 * steps)


start, _ = run(np.ones(3), np.array([1.0, 0, 0]), 1_000)
path, exponent = run(start[-1], np.array([1.0, 0, 0]), 500_000)

axes = plt.figure(layout="constrained").add_subplot(projection="3d")
axes.plot(*path[:6_000].T, linewidth=0.5)
axes.set(xlabel="x", ylabel="y", zlabel="z")
plt.show()

# %%
# The check: 5,000 units of time give two digits of the exponent.

print(f"{exponent:.3f}, known 0.906")
assert abs(exponent - 0.9056) < 0.02
