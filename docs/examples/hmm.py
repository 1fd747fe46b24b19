"""
Decoding a hidden Markov model
==============================

A casino changes now and then to a loaded die (R. Durbin and others, *Biological
Sequence Analysis*, chapter 3). Viterbi's algorithm finds the likeliest story behind
300 throws.
"""

from itertools import pairwise, product

import matplotlib.pyplot as plt
import numpy as np

import numbascan as ns

change = np.log([[0.95, 0.05], [0.10, 0.90]])
emit = np.log([[1 / 6] * 6, [0.1] * 5 + [0.5]])


@ns.jit
def viterbi(throws, change, emit):
    """The likeliest states, and the logarithm of their probability."""
    n = len(throws)
    best, origin = np.zeros((n, 2)), np.zeros((n, 2), dtype=np.int64)
    best[0] = np.log(0.5) + emit[:, throws[0]]
    for t in range(1, n):
        for state in range(2):
            ways = best[t - 1] + change[:, state]
            origin[t, state] = np.argmax(ways)
            best[t, state] = np.max(ways) + emit[state, throws[t]]
    states = np.zeros(n, dtype=np.int64)
    states[n - 1] = np.argmax(best[n - 1])
    for t in range(n - 1, 0, -1):
        states[t - 1] = origin[t, states[t]]
    return states, np.max(best[n - 1])


rng = np.random.default_rng(4)
truth = np.zeros(300, dtype=np.int64)
for t in range(1, 300):
    truth[t] = rng.choice(2, p=np.exp(change[truth[t - 1]]))
throws = np.array([rng.choice(6, p=np.exp(emit[state])) for state in truth])
states, _ = viterbi(throws, change, emit)

figure, axes = plt.subplots(figsize=(8, 2.5), layout="constrained")
axes.plot(throws + 1, ".", color="gray")
axes.fill_between(range(300), 0.5, 6.5, where=truth == 1, alpha=0.2, label="loaded")
axes.step(range(300), 6.7 + 0.4 * states, where="mid", color="tab:red", label="decoded")
axes.set(xlabel="throw", ylabel="number")
axes.legend(loc="lower right")
plt.show()

# %%
# The check: of 12 throws all 4,096 stories can be tried.


def log_probability(story):
    steps = sum(change[a, b] for a, b in pairwise(story))
    return (
        np.log(0.5)
        + steps
        + sum(emit[a, x] for a, x in zip(story, throws[:12], strict=True))
    )


found, log_p = viterbi(throws[:12], change, emit)
best = max(product(range(2), repeat=12), key=log_probability)
print(f"{np.mean(states == truth):.0%} of 300 throws; log-probability {log_p:.4f}")
assert tuple(found) == best
assert abs(log_p - log_probability(best)) < 1e-12
