"""
Gray and Scott's patterns
=========================

Two substances that react and spread: spots that divide, as in J. E. Pearson,
*Complex patterns in a simple system*, Science 261 (1993).
"""

import matplotlib.pyplot as plt
import numpy as np

import numbascan as ns

feed, kill = 0.0367, 0.0649


def spread(u):
    """The sum of the four neighbours less four times the cell; the edges meet."""
    return (
        np.roll(u, 1, 0)
        + np.roll(u, -1, 0)
        + np.roll(u, 1, 1)
        + np.roll(u, -1, 1)
        - 4 * u
    )


@ns.jit
def react(u, v, steps):
    fed = np.zeros(steps)
    for t in range(steps):
        rate = u * v * v
        fed[t] = feed * np.mean(1 - u) - (feed + kill) * np.mean(v)
        u = u + 0.16 * spread(u) - rate + feed * (1 - u)
        v = v + 0.08 * spread(v) + rate - (feed + kill) * v
    return u, v, fed


rng = np.random.default_rng(0)
u, v = np.ones((128, 128)), np.zeros((128, 128))
for x, y in rng.integers(10, 118, (12, 2)):
    u[x - 4 : x + 4, y - 4 : y + 4], v[x - 4 : x + 4, y - 4 : y + 4] = 0.5, 0.25
before = np.mean(u + v)
u, v, fed = react(u, v, 8_000)

figure, axes = plt.subplots(figsize=(5, 5), layout="constrained")
axes.imshow(v, cmap="viridis")
axes.set_axis_off()
plt.show()

# %%
# The check: reacting and spreading make and lose nothing, so the mass is what was
# fed.

gap = np.mean(u + v) - before - np.sum(fed)
print(f"mass out of balance by {gap:.1e}")
assert abs(gap) < 1e-11
