"""
Mandelbrot's set by `while`
===========================

How long each point stays bounded. Lanes end by themselves, in the SIMD unit and in
threads. The area of the set is 1.5066 (T. Förstemann, 2012, by counting 10^14
points).
"""

import matplotlib.pyplot as plt
import numpy as np

import numbascan as ns


def steps_within(x0, y0):
    x, y, steps = 0.0, 0.0, 0
    while x * x + y * y <= 4 and steps < 500:
        x, y = x * x - y * y + x0, 2 * x * y + y0
        steps += 1
    return steps


rows = ns.vmap(ns.vmap(steps_within, in_axes=(0, None)), in_axes=(None, 0))
width, height = 900, 420  # the upper half
xs = np.linspace(-2.1, 0.6, width, endpoint=False) + 1.35 / width
ys = np.linspace(0, 1.26, height, endpoint=False) + 0.63 / height
steps = rows(xs, ys)

figure, axes = plt.subplots(figsize=(7, 6.5), layout="constrained")
picture = np.log(np.concatenate([steps[::-1], steps]))
axes.imshow(picture, extent=(-2.1, 0.6, -1.26, 1.26), cmap="magma")
axes.set(xlabel="real part", ylabel="imaginary part")
plt.show()

# %%
# The check: twice the share of the upper half that is still bounded, by its area.

area = 2 * np.mean(steps == 500) * 2.7 * 1.26
print(f"area {area:.4f}, known 1.5066")
assert abs(area - 1.5066) < 0.01
