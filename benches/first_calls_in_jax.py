"""The programs of first_calls_ours.py for JAX, around `lax.scan`: `python benches/first_calls_in_jax.py NAME`."""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import numpy as np
from first_calls_data import INPUTS, TICKS, UNITS
from jax import lax

jax.config.update("jax_enable_x64", True)


def gru(Wz, Uz, Wr, Ur, Wh, Uh, xs):
    def step(h, x):
        z = 1 / (1 + jnp.exp(-(x @ Wz + h @ Uz)))
        r = 1 / (1 + jnp.exp(-(x @ Wr + h @ Ur)))
        h = (1 - z) * h + z * jnp.tanh(x @ Wh + (r * h) @ Uh)
        return h, jnp.sum(h * h)

    return jnp.sum(lax.scan(step, jnp.zeros(UNITS), xs)[1])


def garch(p, returns):
    omega, alpha, beta = p

    def step(variance, r):
        return omega + alpha * r * r + beta * variance, jnp.log(variance) + r * r / variance

    return 0.5 * jnp.sum(lax.scan(step, jnp.mean(returns**2), returns)[1])


def hodgkin_huxley(p):
    sodium, potassium, leak, current = p

    def step(state, _):
        v, m, h, n = state
        am, bm = 0.1 * (25 - v) / (jnp.exp((25 - v) / 10) - 1), 4 * jnp.exp(-v / 18)
        ah, bh = 0.07 * jnp.exp(-v / 20), 1 / (jnp.exp((30 - v) / 10) + 1)
        an, bn = 0.01 * (10 - v) / (jnp.exp((10 - v) / 10) - 1), 0.125 * jnp.exp(-v / 80)
        flow = sodium * m**3 * h * (v - 115) + potassium * n**4 * (v + 12) + leak * (v - 10.6)
        v = v + 0.01 * (current - flow)
        m = m + 0.01 * (am * (1 - m) - bm * m)
        h = h + 0.01 * (ah * (1 - h) - bh * h)
        n = n + 0.01 * (an * (1 - n) - bn * n)
        return (v, m, h, n), v * v

    return jnp.sum(lax.scan(step, (0.1, 0.053, 0.596, 0.318), None, length=TICKS)[1]) / TICKS


PROGRAMS = {
    "gru-grad": jax.grad(gru, argnums=tuple(range(6))),
    "garch-hessian": jax.hessian(garch),
    "hodgkin-huxley-grad": jax.grad(hodgkin_huxley),
}

if __name__ == "__main__":
    results = jax.jit(PROGRAMS[sys.argv[1]])(*map(jnp.asarray, INPUTS[sys.argv[1]]()))
    print(repr(float(sum(np.sum(np.abs(result)) for result in (results if isinstance(results, tuple) else (results,))))))
