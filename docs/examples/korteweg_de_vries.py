"""
Two solitons pass
=================

Waves on shallow water obey u' + 6 u u_x + u_xxx = 0. A tall wave overtakes a low one,
and both come out as they were, but moved: the tall one forwards, by
log((a + b) / (a - b)) / a for waves 2 a² sech²(a x) and 2 b² sech²(b x) (Gardner,
Greene, Kruskal and Miura, 1967). Space is done by Fourier transforms.
"""

import matplotlib.pyplot as plt
import numpy as np

import numbascan as ns

n, width, dt = 256, 80.0, 0.002
x = (np.arange(n) - n / 2) * width / n
k = 2 * np.pi * np.fft.rfftfreq(n, width / n)
half = np.exp(0.5j * k**3 * dt)  # u_xxx over half a step is exact


def slope(v):
    return -3j * k * np.fft.rfft(np.fft.irfft(v, n) ** 2)


@ns.jit
def simulate(u, frames, steps_each):
    waves = np.zeros((frames, n))
    v = np.fft.rfft(u)
    for frame in range(frames):
        waves[frame] = np.fft.irfft(v, n)
        for _ in range(steps_each):  # Runge and Kutta's method, within half steps
            a = slope(v)
            b = slope(half * (v + 0.5 * dt * a))
            c = slope(half * v + 0.5 * dt * b)
            d = slope(half * (half * v + dt * c))
            v = half * (half * (v + dt / 6 * a) + dt / 3 * (b + c)) + dt / 6 * d
    return waves


def soliton(a, start, t=0.0):
    return 2 * a**2 / np.cosh(a * (x - start - 4 * a**2 * t)) ** 2


tall, low = 1.0, 0.6
waves = simulate(soliton(tall, -25.0) + soliton(low, -8.0), 49, 125)
t = 48 * 125 * dt
forwards = np.log((tall + low) / (tall - low)) / tall
back = -np.log((tall + low) / (tall - low)) / low
expected = soliton(tall, -25.0 + forwards, t) + soliton(low, -8.0 + back, t)

figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
for frame in range(0, 49, 3):
    axes.plot(x, waves[frame] + 0.25 * frame, "k", linewidth=0.8)
axes.plot(x, expected + 0.25 * 48, "r--", label="moved solitons")
axes.set(xlabel="place", ylabel="height, moved up with time")
axes.legend(loc="upper left")
plt.show()

# %%
# The check: the waves that theory expects, and what must not change.

mass = np.abs(np.sum(waves, axis=1) / np.sum(waves[0]) - 1).max()
energy = np.abs(np.sum(waves**2, axis=1) / np.sum(waves[0] ** 2) - 1).max()
error = np.abs(waves[-1] - expected).max()
print(f"mass to {mass:.0e}, energy to {energy:.0e}; off by {error:.5f} of 2")
assert mass < 1e-12
assert energy < 1e-6
assert error < 1e-4
