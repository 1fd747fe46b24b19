"""
The period of a pendulum
========================

A loop that runs until the pendulum comes through the middle, for 200 swings side by
side. The period of wide swings is a complete elliptic integral, and its derivative
is known, too.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ellipk

import numbascan as ns

h = 1e-3


def period(amplitude):
    """Four times the time from rest to the middle, in units of the small swing's."""
    angle, speed, t = amplitude, 0.0, 0.0
    while angle > 0:
        speed_before = speed
        half = speed - h / 2 * np.sin(angle)
        angle += h * half
        speed = half - h / 2 * np.sin(angle)
        t += h
    over = angle / (0.5 * (speed + speed_before))  # how long ago it came through
    return 4 * (t - over) / (2 * np.pi)


amplitudes = np.linspace(0.05, 3.0, 200)
periods, slopes = ns.vmap(ns.value_and_grad(period))(amplitudes)
exact = 2 / np.pi * ellipk(np.sin(amplitudes / 2) ** 2)

figure, axes = plt.subplots(layout="constrained")
axes.plot(
    amplitudes, exact, color="gray", linewidth=4, alpha=0.4, label="elliptic integral"
)
axes.plot(amplitudes, periods, label="loop")
axes.plot(amplitudes, slopes, label="its derivative")
axes.set(xlabel="amplitude", ylabel="period / period of small swings", ylim=(0, 3))
axes.legend()
plt.show()

# %%
# The check: the integral, and its slope by differences of the formula.

d = 1e-5
exact_slope = np.diff(2 / np.pi * ellipk(np.sin((1.0 + np.array([-d, d])) / 2) ** 2))[
    0
] / (2 * d)
slope = ns.grad(period)(1.0)
worst = np.abs(periods - exact).max()
print(f"largest difference {worst:.1e}; slope {slope:.5f}, exact {exact_slope:.5f}")
assert worst < 1e-5
assert abs(slope - exact_slope) < 1e-4
