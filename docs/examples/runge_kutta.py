"""
Runge and Kutta's method, and one that chooses its steps
========================================================

The classical method has order four: half the step, a sixteenth of the error. The
method of P. Bogacki and L. F. Shampine (1989) chooses its steps by a `while` loop.
"""

import matplotlib.pyplot as plt
import numpy as np

import numbascan as ns


def slope(y):
    return np.array([y[1], -y[0]])  # a pendulum of small swings: cos t


@ns.jit
def classical(y, h, steps):
    for _ in range(steps):
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


@ns.jit
def adaptive(y, end, tolerance):
    t, h, tried = 0.0, 0.1, 0
    while t < end:
        h = min(h, end - t)
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + 3 / 4 * h * k2)
        new = y + h * (2 / 9 * k1 + 1 / 3 * k2 + 4 / 9 * k3)
        k4 = slope(new)
        error = h * np.max(np.abs(-5 / 72 * k1 + k2 / 12 + k3 / 9 - k4 / 8))
        tried += 1
        if error < tolerance:
            t, y = t + h, new
        h *= min(5.0, max(0.2, 0.9 * (tolerance / (error + 1e-30)) ** (1 / 3)))
    return y, tried


counts = 2 ** np.arange(4, 12)
start, end = np.array([1.0, 0.0]), 10.0
errors = [abs(classical(start, end / n, n)[0] - np.cos(end)) for n in counts]
runs = [adaptive(start, end, tolerance) for tolerance in 10.0 ** -np.arange(3, 11)]

figure, axes = plt.subplots(layout="constrained")
axes.loglog(counts, errors, "o-", label="classical")
axes.loglog(
    [n for _, n in runs],
    [abs(y[0] - np.cos(end)) for y, _ in runs],
    "s-",
    label="adaptive",
)
axes.set(xlabel="steps", ylabel="error at t = 10")
axes.legend()
plt.show()

# %%
# The check: the slope of the line is the order, four.

order = -np.polyfit(np.log(counts[2:]), np.log(errors[2:]), 1)[0]
print(f"order {order:.2f}")
assert abs(order - 4) < 0.1
