"""The workloads of draws.py for JAX: reads a name a line, answers with the price and the seconds of a run."""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
from jax import lax
from timing import timed

jax.config.update("jax_enable_x64", True)

NUMBERS, PATHS, DAYS, START, DRIFT, SPREAD = (float(word) for word in sys.argv[1:7])
n_numbers, n_paths, n_days = int(NUMBERS), int(PATHS), int(DAYS)


@jax.jit
def uniform(key):
    return jax.random.uniform(key, (n_numbers,))


@jax.jit
def normal(key):
    return jax.random.normal(key, (n_numbers,))


@jax.jit
def paths(key):
    def day(t, s):
        return s * jnp.exp(DRIFT + SPREAD * jax.random.normal(jax.random.fold_in(key, t), (n_paths,)))

    return jnp.maximum(lax.fori_loop(0, n_days, day, jnp.full(n_paths, START)) - 100, 0).mean()


@jax.jit
def lanes(key):
    def path(key):
        return lax.fori_loop(0, n_days, lambda t, s: s * jnp.exp(DRIFT + SPREAD * jax.random.normal(jax.random.fold_in(key, t))), START)

    return jnp.maximum(jax.vmap(path)(jax.random.split(key, n_paths)) - 100, 0).mean()


key = jax.random.key(1)
for line in sys.stdin:
    run = globals()[line.strip()]
    print(float(run(key).mean()), timed(lambda run=run: run(key).block_until_ready(), 0.3), flush=True)
