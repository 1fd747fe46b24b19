"""
Which way does a price go?
==========================

Orders to buy and to sell wait in two queues; each event adds an order to one of them,
or takes one away. The price goes up when the sellers' queue is empty first. Cont and
de Larrard (2013) give the probability as an integral. A loop that ends by itself,
written for one market, runs for 50,000 side by side.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import quad

import numbascan as ns

rng = np.random.default_rng(0)


def goes_up(buyers, sellers):
    while buyers > 0 and sellers > 0:
        change = 1 if rng.random() < 0.5 else -1
        if rng.random() < 0.5:
            buyers += change
        else:
            sellers += change
    return sellers == 0


buyers, markets = 4, 5_000
queues = np.arange(1, 11)
sellers = np.repeat(queues, markets)
up = ns.vmap(goes_up)(np.full(len(sellers), buyers), sellers)
simulated = up.reshape(len(queues), markets).mean(axis=1)


def probability(buyers, sellers):
    def term(t):
        a = 2 - np.cos(t)
        return (a - np.sqrt(a * a - 1)) ** sellers * np.sin(buyers * t) / np.tan(t / 2)

    return quad(term, 0, np.pi)[0] / np.pi


exact = np.array([probability(buyers, sellers) for sellers in queues])

figure, axes = plt.subplots(layout="constrained")
axes.bar(queues, simulated, color="lightsteelblue", label=f"{markets:,} markets each")
axes.plot(queues, exact, "ko", label="Cont and de Larrard")
axes.set(xlabel="orders to sell, beside 4 to buy", ylabel="the price goes up")
axes.legend()
plt.show()

# %%
# The check: all ten probabilities, within four standard errors.

errors = np.sqrt(exact * (1 - exact) / markets)
worst = np.max(np.abs(simulated - exact) / errors)
print(
    f"4 against 4: {simulated[3]:.3f}, exact {exact[3]:.3f}; {worst:.1f} errors at most"
)
assert worst < 4
