"""The workloads of lanes.py for JAX: reads a name a line, answers with the seconds of a run and the mean size of its numbers."""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from timing import timed

jax.config.update("jax_enable_x64", True)

STARTS = np.random.default_rng(0).normal(size=(10_000, 3))
LENGTHS = np.ceil(np.random.default_rng(1).exponential(500.0, 4_096))
STEP, LANES, STEPS, LONG = 0.005, 4_096, 500, 1_000


def slope(y):
    return jnp.stack([10.0 * (y[1] - y[0]), y[0] * (28.0 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])


def step(y):
    a = slope(y)
    b = slope(y + STEP / 2 * a)
    c = slope(y + STEP / 2 * b)
    return y + STEP / 6 * (a + 2 * b + 2 * c + slope(y + STEP * c))


def end(start, n_steps):
    return lax.fori_loop(0, n_steps, lambda _, y: step(y), start)


def stopped(start, length):
    return lax.while_loop(lambda carry: carry[1] < length, lambda carry: (step(carry[0]), carry[1] + 1.0), (start, 0.0))[0]


ends = jax.vmap(lambda start: end(start, STEPS))
forward = jax.jit(lambda starts: (ends(starts) ** 2).mean())
gradient = jax.jit(jax.vmap(jax.grad(lambda start: (end(start, STEPS) ** 2).mean())))
many, until = jax.jit(jax.vmap(lambda start: end(start, LONG))), jax.jit(jax.vmap(stopped))
few, all_of_them, lengths = map(jnp.asarray, (STARTS[:LANES], STARTS, LENGTHS))
WORKLOADS = {
    "forward": lambda: forward(few),
    "gradient": lambda: gradient(few),
    "10,000 lanes": lambda: many(all_of_them),
    "until": lambda: until(few, lengths),
}

for line in sys.stdin:
    run = WORKLOADS[line.strip()]
    print(timed(lambda run=run: run().block_until_ready(), 0.3), float(jnp.abs(run()).mean()), flush=True)
