"""
Optimal control by gradient through a simulation
================================================

A cart is brought to rest at zero with little force. The forces are found by the
gradient of the cost through the simulation. For this linear cart Riccati's equation
gives the least cost.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import numbascan as ns

dt, steps = 0.1, 50
A, B = np.array([[1.0, dt], [0.0, 1.0]]), np.array([0.0, dt])
start = np.array([1.0, 0.0])


def cost(forces):
    place, speed = start
    total = 0.0
    for t in range(steps):
        total += place**2 + 0.1 * speed**2 + 0.1 * forces[t] ** 2
        place, speed = place + dt * speed, speed + dt * forces[t]
    return total + place**2 + 0.1 * speed**2


@ns.jit
def path(forces):
    places = np.zeros(steps)
    place, speed = start
    for t in range(steps):
        places[t] = place
        place, speed = place + dt * speed, speed + dt * forces[t]
    return places


fit = minimize(
    ns.value_and_grad(cost), np.zeros(steps), jac=True, options={"gtol": 1e-8}
)

figure, axes = plt.subplots(layout="constrained")
axes.plot(dt * np.arange(steps), path(fit.x), label="place")
axes.step(dt * np.arange(steps), fit.x, label="force", where="post")
axes.set_xlabel("time")
axes.legend()
plt.show()

# %%
# The check: Riccati's equation, backwards from the end.

Q, P = np.diag([1.0, 0.1]), np.diag([1.0, 0.1])
for _ in range(steps):
    gain = (B @ P @ A) / (0.1 + B @ P @ B)
    P = Q + A.T @ P @ (A - np.outer(B, gain))
exact = start @ P @ start
print(f"cost {fit.fun:.8f}, Riccati {exact:.8f}")
assert abs(fit.fun - exact) < 1e-8
