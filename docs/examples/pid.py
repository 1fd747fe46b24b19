"""
A PID loop, tuned by gradient
=============================

An oven with a lag, held at 1 by a controller. The gains follow the gradient of the
squared error through the simulation. A proportional controller alone is left with
the error 1 / (1 + gain).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import numbascan as ns

dt, steps = 0.02, 1_000


def oven(gains):
    """The temperature over 20 units of time; the heater has a lag and a limit."""
    proportional, integral, derivative = gains
    heat = temperature = total = 0.0
    path = np.zeros(steps)
    for t in range(steps):
        error = 1.0 - temperature
        slope = heat - temperature
        force = proportional * error + integral * total - derivative * slope
        if force > 3.0:
            force = 3.0  # the limit of the heater
        else:
            total += dt * error  # the integral waits while the heater is at its limit
        heat += dt * (force - heat) / 0.5
        temperature += dt * slope
        path[t] = temperature
    return path


def cost(logs):
    path = oven(np.exp(logs))
    return dt * np.sum((1 - path) ** 2) + dt * np.sum(np.maximum(path - 1, 0.0))


first = np.log([1.0, 0.2, 0.1])
fit = minimize(ns.value_and_grad(cost), first, jac=True, method="L-BFGS-B")
response = ns.jit(oven)

figure, axes = plt.subplots(layout="constrained")
axes.plot(dt * np.arange(steps), response(np.exp(first)), label="by guess")
axes.plot(dt * np.arange(steps), response(np.exp(fit.x)), label="by gradient")
axes.plot(
    dt * np.arange(steps), response(np.array([1.0, 0.0, 0.0])), label="proportional"
)
axes.axhline(1, color="gray", linewidth=0.7)
axes.set(xlabel="time", ylabel="temperature")
axes.legend()
plt.show()

# %%
# The check: the error that a proportional controller keeps, and a smaller cost.

left = 1 - response(np.array([4.0, 0.0, 0.0]))[-1]
print(f"cost {cost(first):.3f} to {fit.fun:.3f}; error {left:.6f}")
assert abs(left - 1 / 5) < 1e-6
assert fit.fun < 0.7 * cost(first)
