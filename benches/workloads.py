"""The workloads of the comparison: data, the loop written by hand, and the same written naturally for numbascan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hand
import numpy as np

import numbascan as ns
import numbascan.tensor as nt


@dataclass(frozen=True)
class Workload:
    """`ours` and `other` take no arguments. `limit`: the ratio of their times that must not be exceeded.

    `is_right` holds `ours` against something else where `other` gives other numbers; without it, both must give the same.
    """

    name: str
    n_steps: int
    other: Callable[[], Any]
    ours: Callable[[], Any]
    limit: float
    other_is: str = "by hand"
    is_right: Callable[[], bool] | None = None


rng = np.random.default_rng(20)


# steps, as a user writes them; those of gradients.py are the same ---------------------------------------------------


def flow(y):
    return np.array([10.0 * (y[1] - y[0]), y[0] * (28.0 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])


def runge_kutta_step(y, h):
    k1 = flow(y)
    k2 = flow(y + h / 2 * k1)
    k3 = flow(y + h / 2 * k2)
    k4 = flow(y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def garch_loss(p, r):
    def step(r, variance, p):
        return p[0] + p[1] * r * r + p[2] * variance, np.log(variance) + r * r / variance

    _, terms = ns.scan(step, sequences=r, outputs_info=[1e-4, None], non_sequences=p, return_updates=False)
    return 0.5 * terms.sum()


def kalman_step(y, m, P, F, H, Q, R):
    m = F @ m
    P = F @ P @ F.T + Q
    v = y - H @ m
    S = H @ P @ H.T + R
    K = np.linalg.solve(S, H @ P).T
    term = -0.5 * (np.linalg.slogdet(S)[1] + v @ np.linalg.solve(S, v) + np.log(2 * np.pi))
    return m + K @ v, P - K @ H @ P, term


def kalman_likelihood(F, H, Q, R, y):
    start = [np.zeros(4), np.eye(4), None]
    _, _, terms = ns.scan(kalman_step, sequences=y, outputs_info=start, non_sequences=[F, H, Q, R], return_updates=False)
    return terms.sum()


def rnn_step(u_tm4, u_t, x_tm3, x_tm1, y_tm1, W, W1, W2, Wf, Wo):
    return np.tanh(x_tm1 @ W + u_t @ W1 + u_tm4 @ W2 + y_tm1 @ Wf), x_tm3 @ Wo


# workloads ----------------------------------------------------------------------------------------------------------


def cumsum() -> Workload:
    x = rng.normal(size=1_000_000)

    @ns.scan
    def cumsum(x, s):
        return s + x

    return Workload("cumsum", len(x), lambda: hand.cumsum(x), lambda: cumsum(sequences=x, outputs_info=0.0), 1.3)


def power() -> Workload:
    a = rng.uniform(0.99, 1.01, size=1000)

    @ns.scan
    def power(p, a):
        return p * a

    return Workload(
        "power",
        1000,
        lambda: hand.power(a, 1000),
        lambda: power(outputs_info=np.ones(1000), non_sequences=a, n_steps=1000, keep_last=1),
        1.3,
    )


def lorenz() -> Workload:
    path = ns.scan(runge_kutta_step)
    start = np.ones(3)
    return Workload(
        "lorenz",
        100_000,
        lambda: hand.lorenz(start, 0.001, 100_000),
        lambda: path(outputs_info=start, non_sequences=0.001, n_steps=100_000),
        1.3,
    )


def garch() -> Workload:
    r, p = rng.normal(size=100_000) * 0.01, np.array([1e-6, 0.1, 0.85])
    loss = ns.jit(garch_loss)
    return Workload("garch", len(r), lambda: hand.garch(p, r), lambda: loss(p, r), 1.3)


def heat1d() -> Workload:
    u = rng.normal(size=100_000)

    @ns.scan
    def heat(u):
        return nt.inc_subtensor(u[1:-1], 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]))

    return Workload("heat1d", 1000, lambda: hand.heat1d(u, 1000), lambda: heat(outputs_info=u, n_steps=1000, keep_last=1), 1.3)


def kalman() -> Workload:
    y = rng.normal(size=(10_000, 1)).cumsum(0)
    F, H, Q, R = np.eye(4) + np.diag([0.1] * 3, 1), np.array([[1.0, 0, 0, 0]]), np.eye(4) * 0.1, np.eye(1)
    likelihood = ns.jit(kalman_likelihood)
    return Workload("kalman", len(y), lambda: hand.kalman(F, Q, R, y), lambda: likelihood(F, H, Q, R, y), 2.0)


def rnn() -> Workload:
    n = 64
    u = rng.normal(size=(1004, n))
    matrices = [rng.normal(size=(n, n)) / n**0.5 / 4 for _ in range(5)]
    x0, y0 = rng.normal(size=(3, n)) / 3, rng.normal(size=n) / 3

    rnn = ns.scan(rnn_step)
    return Workload(
        "rnn",
        1000,
        lambda: hand.rnn(u, *matrices, x0, y0),
        lambda: rnn(sequences={"input": u, "taps": [-4, 0]}, outputs_info=[{"initial": x0, "taps": [-3, -1]}, y0], non_sequences=matrices),
        2.0,
    )


WORKLOADS = (cumsum, power, lorenz, garch, heat1d, kalman, rnn)
