"""
Three bodies on a figure of eight
=================================

Three equal masses chase each other along one curve (A. Chenciner and R. Montgomery,
2000, with the start of C. Simó). After a period of 6.32591398 they are where they
began.
"""

import matplotlib.pyplot as plt
import numpy as np

import numbascan as ns


def accelerations(x):
    a = np.zeros((3, 2))
    for i in range(3):
        for j in range(3):
            if i != j:
                d = x[j] - x[i]
                a[i] += d / np.sum(d * d) ** 1.5
    return a


@ns.jit
def fly(x, v, h, steps):
    """Positions at each step of the leapfrog method, and the energy."""
    path, energy = np.zeros((steps, 3, 2)), np.zeros(steps)
    for t in range(steps):
        v = v + h / 2 * accelerations(x)
        x = x + h * v
        v = v + h / 2 * accelerations(x)
        path[t] = x
        energy[t] = 0.5 * np.sum(v * v)
        for i in range(3):
            for j in range(i):
                energy[t] -= 1 / np.sqrt(np.sum((x[i] - x[j]) ** 2))
    return path, energy


x0 = np.array([[0.97000436, -0.24308753], [-0.97000436, 0.24308753], [0.0, 0.0]])
v0 = np.array(
    [[0.466203685, 0.43236573], [0.466203685, 0.43236573], [-0.93240737, -0.86473146]]
)
steps = 20_000
path, energy = fly(x0, v0, 6.32591398 / steps, steps)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
left.plot(path[:, 0, 0], path[:, 0, 1])
left.plot(*x0.T, "o", color="tab:red")
left.set(xlabel="x", ylabel="y", aspect="equal")
right.plot(np.linspace(0, 1, steps), energy - energy[0])
right.set(xlabel="period", ylabel="drift of the energy")
plt.show()

# %%
# The check: after one period the bodies are back, and the energy is what it was.

miss = np.abs(path[-1] - x0).max()
print(f"missed by {miss:.1e}, energy moved by {np.ptp(energy):.1e}")
assert miss < 1e-5
assert np.ptp(energy) < 1e-6
