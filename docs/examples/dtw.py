"""
Dynamic time warping
====================

How far two series are apart, if time may be stretched. A series and itself, played
at changing speed, are at distance zero: the path of the alignment is the speed.
"""

import matplotlib.pyplot as plt
import numpy as np

import numbascan as ns


@ns.jit
def costs(a, b):
    """The least cost of aligning the first i of a with the first j of b."""
    table = np.full((len(a) + 1, len(b) + 1), np.inf)
    table[0, 0] = 0.0
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            before = min(table[i - 1, j], table[i, j - 1], table[i - 1, j - 1])
            table[i, j] = abs(a[i - 1] - b[j - 1]) + before
    return table


@ns.jit
def alignment(table):
    i, j = table.shape[0] - 1, table.shape[1] - 1
    pairs = np.full((i + j, 2), -1)
    k = 0
    while i > 0 and j > 0:
        pairs[k] = np.array([i - 1, j - 1])
        k += 1
        if table[i - 1, j - 1] <= min(table[i - 1, j], table[i, j - 1]):
            i, j = i - 1, j - 1
        elif table[i - 1, j] <= table[i, j - 1]:
            i -= 1
        else:
            j -= 1
    return pairs, k


rng = np.random.default_rng(0)
slow = np.cumsum(rng.normal(size=400))
times = np.repeat(
    np.arange(400), rng.integers(1, 5, 400)
)  # each number one to four times
played = slow[times]
table = costs(slow, played)
pairs, k = alignment(table)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
left.plot(slow, label="series")
left.plot(played, label="played at changing speed")
left.legend()
right.plot(pairs[:k, 1], pairs[:k, 0])
right.set(xlabel="place in the second", ylabel="place in the first")
plt.show()

# %%
# The check: distance zero, and every place finds its own.

print(f"distance {table[-1, -1]}")
assert table[-1, -1] == 0.0
assert np.array_equal(slow[pairs[:k, 0]], played[pairs[:k, 1]])
