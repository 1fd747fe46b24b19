"""The workloads for JAX: one `jax.jit` around `lax.scan`, or `lax.fori_loop` where only the end is wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from data import GRADIENTS, STEPS
from jax import lax

jax.config.update("jax_enable_x64", True)

PACKAGES = ("jax", "jaxlib")


def cumsum(x):
    return add(x, 0.0)


def power(a):
    return lax.fori_loop(0, STEPS["power"], lambda _, p: p * a, jnp.ones_like(a))


def flow(y):
    return jnp.stack([10.0 * (y[1] - y[0]), y[0] * (28.0 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])


def runge_kutta_step(y, h):
    k1 = flow(y)
    k2 = flow(y + h / 2 * k1)
    k3 = flow(y + h / 2 * k2)
    k4 = flow(y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def lorenz(start, h):
    def step(y, _):
        y = runge_kutta_step(y, h)
        return y, y

    return lax.scan(step, start, length=STEPS["lorenz"])[1]


def garch(p, r):
    def step(variance, r):
        return p[0] + p[1] * r * r + p[2] * variance, jnp.log(variance) + r * r / variance

    return 0.5 * lax.scan(step, 1e-4, r)[1].sum()


def rnn(W, W1, W2, Wf, Wo, u, x0, y0):
    def step(carry, u):
        (x_tm3, x_tm2, x_tm1, y_tm1), (u_tm4, u_t) = carry, u
        x = jnp.tanh(x_tm1 @ W + u_t @ W1 + u_tm4 @ W2 + y_tm1 @ Wf)
        y = x_tm3 @ Wo
        return (x_tm2, x_tm1, x, y), (x, y)

    return lax.scan(step, (*x0, y0), (u[:-4], u[4:]))[1]


def lstm(Wx, Wh, b, x, h0, c0):
    def step(carry, x):
        h, c = carry
        i, f, g, o = jnp.split(x @ Wx + h @ Wh + b, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    return lax.scan(step, (h0, c0), x)[1]


def kalman(F, H, Q, R, y):
    def step(carry, y):
        m, P = carry
        m = F @ m
        P = F @ P @ F.T + Q
        v = y - H @ m
        S = H @ P @ H.T + R
        K = jnp.linalg.solve(S, H @ P).T
        term = -0.5 * (jnp.linalg.slogdet(S)[1] + v @ jnp.linalg.solve(S, v) + np.log(2 * np.pi))
        return (m + K @ v, P - K @ H @ P), term

    return lax.scan(step, (jnp.zeros(4), jnp.eye(4)), y)[1].sum()


def hmm(moves, seen, first):
    def step(a, seen):
        return jax.nn.logsumexp(a[:, None] + moves, axis=0) + seen, None

    return jax.nn.logsumexp(lax.scan(step, first + seen[0], seen[1:])[0])


def heat1d(u):
    def step(_, u):
        return u.at[1:-1].add(0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]))

    return lax.fori_loop(0, STEPS["heat1d"], step, u)


def batch_lorenz(starts, h):
    def last(start):
        return lax.fori_loop(0, STEPS["batch-lorenz"], lambda _, y: runge_kutta_step(y, h), start)

    return jax.vmap(last)(starts)


def add(x, s):
    def step(s, x):
        return s + x, s + x

    return lax.scan(step, s, x)[1]


def call(name: str, inputs: tuple[Any, ...]) -> Callable[[], Any]:
    """The workload as a call without arguments, which ends when the result is there; the inputs are JAX's own arrays already."""
    if name in GRADIENTS:
        gradient = GRADIENTS[name]
        forward = globals()[gradient.of]
        transform = jax.value_and_grad if gradient.with_value else jax.grad
        f = jax.jit(transform(lambda *inputs: gradient.cost(forward(*inputs)), argnums=gradient.argnums))
    else:
        f = jax.jit(globals()[name.replace("-", "_")])
    placed = [jnp.asarray(value) for value in inputs]
    return lambda: jax.block_until_ready(f(*placed))
