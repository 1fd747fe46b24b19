"""
Hodgkin and Huxley's neuron, 10,000 times
=========================================

The squid's giant axon (A. L. Hodgkin and A. F. Huxley, 1952) for 10,000 currents
side by side. It fires on and on from about 6.2 µA/cm² (W. Gerstner and others,
*Neuronal Dynamics*, section 2.2).
"""

import matplotlib.pyplot as plt
import numpy as np

import numbascan as ns


def gates(v):
    """Rates of opening and closing of m, h and n; v in mV from rest."""
    a = 0.1 * (25 - v) / (np.exp((25 - v) / 10) - 1), 0.07 * np.exp(-v / 20)
    b = 4 * np.exp(-v / 18), 1 / (np.exp((30 - v) / 10) + 1)
    c = 0.01 * (10 - v) / (np.exp((10 - v) / 10) - 1), 0.125 * np.exp(-v / 80)
    return (a[0], b[0]), (a[1], b[1]), c


def fire(current, steps=4_000, dt=0.05):
    """Spikes a second in the second half of the time."""
    v, was_below, spikes = 0.0, True, 0
    first = last = 0.0
    m, h, n = 0.053, 0.596, 0.318
    for t in range(steps):
        (am, bm), (ah, bh), (an, bn) = gates(v)
        m = am / (am + bm) + (m - am / (am + bm)) * np.exp(-dt * (am + bm))
        h = ah / (ah + bh) + (h - ah / (ah + bh)) * np.exp(-dt * (ah + bh))
        n = an / (an + bn) + (n - an / (an + bn)) * np.exp(-dt * (an + bn))
        sodium, potassium = 120 * m**3 * h, 36 * n**4
        v += dt * (
            current - sodium * (v - 115) - potassium * (v + 12) - 0.3 * (v - 10.6)
        )
        if v > 50 and was_below and t > steps // 2:
            spikes += 1
            last = t * dt
            if spikes == 1:
                first = last
        was_below = v < 50
    return 1000 * (spikes - 1) / (last - first) if spikes > 1 else 0.0


currents = np.linspace(0, 30, 10_000)
rates = ns.vmap(fire)(currents)
onset = currents[np.argmax(rates > 45)]

figure, axes = plt.subplots(layout="constrained")
axes.plot(currents, rates, linewidth=1)
axes.axvline(onset, color="gray", linestyle=":", label=f"{onset:.2f} µA/cm²")
axes.set(xlabel="current (µA/cm²)", ylabel="spikes a second")
axes.legend()
plt.show()

# %%
# The check: where it begins to fire on and on.

print(f"fires from {onset:.2f} µA/cm²")
assert abs(onset - 6.2) < 0.2
