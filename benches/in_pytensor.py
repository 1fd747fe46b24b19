"""The workloads for PyTensor, in its default mode (Numba) and without checks of inputs (`trust_input`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from data import GRADIENTS, HIDDEN, STEPS

PACKAGES = ("pytensor", "numba")

scan = partial(pytensor.scan, return_updates=False)


def cumsum(x):
    return add(x, pt.zeros(()))


def power(a):
    return scan(lambda p, a: p * a, outputs_info=pt.ones_like(a), non_sequences=a, n_steps=STEPS["power"])[-1]


def flow(y):
    return pt.stack([10.0 * (y[1] - y[0]), y[0] * (28.0 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])


def runge_kutta_step(y, h):
    k1 = flow(y)
    k2 = flow(y + h / 2 * k1)
    k3 = flow(y + h / 2 * k2)
    k4 = flow(y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def lorenz(start, h):
    return scan(runge_kutta_step, outputs_info=start, non_sequences=h, n_steps=STEPS["lorenz"])


def garch(p, r):
    def step(r, variance, p):
        return p[0] + p[1] * r * r + p[2] * variance, pt.log(variance) + r * r / variance

    _, terms = scan(step, sequences=r, outputs_info=[pt.as_tensor(1e-4), None], non_sequences=p)
    return 0.5 * terms.sum()


def rnn(W, W1, W2, Wf, Wo, u, x0, y0):
    def step(u_tm4, u_t, x_tm3, x_tm1, y_tm1, W, W1, W2, Wf, Wo):
        return pt.tanh(x_tm1 @ W + u_t @ W1 + u_tm4 @ W2 + y_tm1 @ Wf), x_tm3 @ Wo

    return scan(
        step,
        sequences={"input": u, "taps": [-4, 0]},
        outputs_info=[{"initial": x0, "taps": [-3, -1]}, y0],
        non_sequences=[W, W1, W2, Wf, Wo],
        strict=True,
    )


def lstm(Wx, Wh, b, x, h0, c0):
    def step(x, h, c, Wx, Wh, b):
        z = x @ Wx + h @ Wh + b
        i, f, g, o = (z[:, k * HIDDEN : (k + 1) * HIDDEN] for k in range(4))
        c = pt.sigmoid(f) * c + pt.sigmoid(i) * pt.tanh(g)
        return pt.sigmoid(o) * pt.tanh(c), c

    h, _ = scan(step, sequences=x, outputs_info=[h0, c0], non_sequences=[Wx, Wh, b])
    return h


def kalman(F, H, Q, R, y):
    def step(y, m, P, F, H, Q, R):
        m = F @ m
        P = F @ P @ F.T + Q
        v = y - H @ m
        S = H @ P @ H.T + R
        K = pt.linalg.solve(S, H @ P).T
        term = -0.5 * (pt.linalg.slogdet(S)[1] + v @ pt.linalg.solve(S, v) + np.log(2 * np.pi))
        return m + K @ v, P - K @ H @ P, term

    _, _, terms = scan(step, sequences=y, outputs_info=[pt.zeros(4), pt.eye(4), None], non_sequences=[F, H, Q, R])
    return terms.sum()


def logsumexp(x, axis=None):
    """With the largest term taken out by hand: the gradient of `pt.logsumexp` (3.0.7) overflows where the log-likelihood passes 709."""
    top = pytensor.gradient.disconnected_grad(x.max(axis))
    return pt.log(pt.exp(x - top).sum(axis)) + top


def hmm(moves, seen, first):
    def step(seen, a, moves):
        return logsumexp(a[:, None] + moves, axis=0) + seen

    return logsumexp(scan(step, sequences=seen[1:], outputs_info=first + seen[0], non_sequences=moves)[-1])


def heat1d(u):
    def step(u):
        return pt.inc_subtensor(u[1:-1], 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]))

    return scan(step, outputs_info=u, n_steps=STEPS["heat1d"])[-1]


def batch_lorenz(starts, h):
    # all lanes in one state, a coordinate a row: PyTensor's vectorize keeps no scan
    return scan(runge_kutta_step, outputs_info=starts.T, non_sequences=h, n_steps=STEPS["batch-lorenz"])[-1].T


def add(x, s):
    return scan(lambda x, s: s + x, sequences=x, outputs_info=s)


def call(name: str, inputs: tuple[Any, ...]) -> Callable[[], Any]:
    """The workload as a call without arguments."""
    arrays = [np.asarray(value) for value in inputs]
    # small dimensions are told, as PyTensor advises; the length of a sequence is not one
    variables = [pt.tensor(dtype=array.dtype, shape=tuple(n if n <= 16 else None for n in array.shape)) for array in arrays]
    gradient = GRADIENTS.get(name)
    if gradient is None:
        results = globals()[name.replace("-", "_")](*variables)
    else:
        cost = gradient.cost(globals()[gradient.of](*variables))
        slopes = pt.grad(cost, [variables[k] for k in gradient.argnums])
        results = [cost, *slopes] if gradient.with_value else slopes
    f = pytensor.function(variables, results, on_unused_input="ignore", trust_input=True)
    return lambda: f(*arrays)
