"""
A bank of filters beside SciPy's
================================

Eight recursive band-pass filters, one for each octave, as a loop over samples. The
same numbers as `scipy.signal.lfilter`, and the same loop would have a gradient.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import signal

import numbascan as ns

rate = 8_000
centres = 3_200 / 2.0 ** np.arange(8)
bank = [
    signal.butter(2, [c / 2**0.5, min(c * 2**0.5, 3_990)], "bandpass", fs=rate)
    for c in centres
]
bs, as_ = np.array([b for b, _ in bank]), np.array([a for _, a in bank])


def filtered(b, a, x):
    """Direct form II, transposed: four numbers of memory."""
    y = np.zeros(len(x))
    memory = np.zeros(4)
    for t in range(len(x)):
        y[t] = b[0] * x[t] + memory[0]
        for k in range(3):
            memory[k] = memory[k + 1] + b[k + 1] * x[t] - a[k + 1] * y[t]
        memory[3] = b[4] * x[t] - a[4] * y[t]
    return y


t = np.arange(2 * rate) / rate
sweep = signal.chirp(t, 20, 2, 3_500, "logarithmic")
bands = ns.vmap(filtered, in_axes=(0, 0, None))(bs, as_, sweep)

figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
for k, band in enumerate(bands):
    axes.plot(t, band / 2.2 + k, linewidth=0.4)
axes.set_yticks(range(8), [f"{centre:.0f} Hz" for centre in centres])
axes.set_xlabel("time of a sweep from 20 to 3,500 Hz (s)")
plt.show()

# %%
# The check: SciPy's filter.

expected = np.array([signal.lfilter(b, a, sweep) for b, a in bank])
worst = np.abs(bands - expected).max()
print(f"largest difference {worst:.1e}")
assert worst < 1e-10
