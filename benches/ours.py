"""The workloads for numbascan, written as a user would, without tuning."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np
from data import GRADIENTS, HIDDEN, STEPS

import numbascan as ns
import numbascan.tensor as nt

PACKAGES = ("numbascan", "numba", "numpy")

scan = partial(ns.scan, return_updates=False)


def cumsum(x):
    return add(x, 0.0)


def power(a):
    return scan(lambda p, a: p * a, outputs_info=np.ones(1000), non_sequences=a, n_steps=STEPS["power"])[-1]


def flow(y):
    return np.array([10.0 * (y[1] - y[0]), y[0] * (28.0 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])


def runge_kutta_step(y, h):
    k1 = flow(y)
    k2 = flow(y + h / 2 * k1)
    k3 = flow(y + h / 2 * k2)
    k4 = flow(y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def lorenz(start, h, n_steps=STEPS["lorenz"], **options):
    return scan(runge_kutta_step, outputs_info=start, non_sequences=h, n_steps=n_steps, **options)


def garch(p, r):
    def step(r, variance, p):
        return p[0] + p[1] * r * r + p[2] * variance, np.log(variance) + r * r / variance

    _, terms = scan(step, sequences=r, outputs_info=[1e-4, None], non_sequences=p)
    return 0.5 * terms.sum()


def rnn(W, W1, W2, Wf, Wo, u, x0, y0):
    def step(u_tm4, u_t, x_tm3, x_tm1, y_tm1, W, W1, W2, Wf, Wo):
        return np.tanh(x_tm1 @ W + u_t @ W1 + u_tm4 @ W2 + y_tm1 @ Wf), x_tm3 @ Wo

    return scan(
        step,
        sequences={"input": u, "taps": [-4, 0]},
        outputs_info=[{"initial": x0, "taps": [-3, -1]}, y0],
        non_sequences=[W, W1, W2, Wf, Wo],
    )


def lstm(Wx, Wh, b, x, h0, c0):
    def step(x, h, c, Wx, Wh, b):
        z = x @ Wx + h @ Wh + b
        i, f, g, o = (z[:, k * HIDDEN : (k + 1) * HIDDEN] for k in range(4))
        c = nt.sigmoid(f) * c + nt.sigmoid(i) * np.tanh(g)
        return nt.sigmoid(o) * np.tanh(c), c

    h, _ = scan(step, sequences=x, outputs_info=[h0, c0], non_sequences=[Wx, Wh, b])
    return h


def kalman(F, H, Q, R, y):
    def step(y, m, P, F, H, Q, R):
        m = F @ m
        P = F @ P @ F.T + Q
        v = y - H @ m
        S = H @ P @ H.T + R
        K = np.linalg.solve(S, H @ P).T
        term = -0.5 * (np.linalg.slogdet(S)[1] + v @ np.linalg.solve(S, v) + np.log(2 * np.pi))
        return m + K @ v, P - K @ H @ P, term

    _, _, terms = scan(step, sequences=y, outputs_info=[np.zeros(4), np.eye(4), None], non_sequences=[F, H, Q, R])
    return terms.sum()


def hmm(moves, seen, first):
    def step(seen, a, moves):
        return nt.logsumexp(a[:, None] + moves, axis=0) + seen

    return nt.logsumexp(scan(step, sequences=seen[1:], outputs_info=first + seen[0], non_sequences=moves)[-1])


def heat1d(u):
    def step(u):
        return nt.inc_subtensor(u[1:-1], 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]))

    return scan(step, outputs_info=u, n_steps=STEPS["heat1d"])[-1]


def batch_lorenz(starts, h):
    return ns.vmap(lambda start: lorenz(start, h, STEPS["batch-lorenz"])[-1])(starts)


def add(x, s):
    return scan(lambda x, s: s + x, sequences=x, outputs_info=s)


def cost(name: str) -> Callable[..., Any]:
    """What a workload is the gradient of, as a function of its inputs."""
    gradient = GRADIENTS[name]
    forward = globals()[gradient.of]

    @wraps(forward)
    def cost(*inputs):
        return gradient.cost(forward(*inputs))

    return cost


def call(name: str, inputs: tuple[Any, ...]) -> Callable[[], Any]:
    """The workload as a call without arguments."""
    if name in GRADIENTS:
        transform = ns.value_and_grad if GRADIENTS[name].with_value else ns.grad
        f = transform(cost(name), argnums=GRADIENTS[name].argnums)
    else:
        f = ns.jit(globals()[name.replace("-", "_")])
    return lambda: f(*inputs)
