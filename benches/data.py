"""What the workloads are fed, the same in every process, and what their gradients are of. Needs NumPy alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Gradient:
    """The gradient of `cost` of a workload's result with respect to the inputs at `argnums`."""

    of: str
    cost: Callable[[Any], Any]
    argnums: tuple[int, ...]
    with_value: bool = False


STEPS = {
    "cumsum": 1_000_000,
    "power": 1000,
    "lorenz": 100_000,
    "garch": 100_000,
    "rnn": 1000,
    "lstm": 200,
    "kalman": 10_000,
    "hmm": 10_000,
    "heat1d": 1000,
    "batch-lorenz": 1000,
    "add": 2,  # next to nothing: what a call costs
}

GRADIENTS = {
    "power-grad": Gradient("power", lambda last: last.sum(), (0,)),
    "lorenz-grad": Gradient("lorenz", lambda path: path.mean(), (0,)),
    "garch-grad": Gradient("garch", lambda loss: loss, (0,), with_value=True),
    "rnn-grad": Gradient("rnn", lambda results: results[1].sum(), (0, 1, 2, 3, 4)),
    "lstm-grad": Gradient("lstm", lambda h: h.sum(), (0, 1, 2)),
    "kalman-grad": Gradient("kalman", lambda likelihood: likelihood, (0, 2, 3)),
    "hmm-grad": Gradient("hmm", lambda likelihood: likelihood, (0, 1, 2)),
}

HIDDEN = 128  # of the lstm

CALL = "add"

NAMES = tuple(name for forward in STEPS if forward != CALL for name in (forward, f"{forward}-grad") if name in STEPS or name in GRADIENTS)


def forward_of(name: str) -> str:
    """The workload itself, or the one that it is the gradient of."""
    return GRADIENTS[name].of if name in GRADIENTS else name


def n_steps(name: str) -> int:
    return STEPS[forward_of(name)]


def inputs(name: str) -> tuple[Any, ...]:
    """The arrays and numbers of a workload; a gradient has those of what it is the gradient of."""
    forward = forward_of(name)
    rng = np.random.default_rng(list(forward.encode()))
    return globals()[f"_{forward.replace('-', '_')}"](rng)


def _cumsum(rng):
    return (rng.normal(size=STEPS["cumsum"]),)


def _power(rng):
    return (rng.uniform(0.99, 1.01, size=1000),)


def _lorenz(rng):
    # A path of length 10: along one of 100 the system forgets its start, and with it what two orders of the same sums have in common.
    return np.array([1.0, 1.1, 1.2]), 1e-4


def _garch(rng):
    return np.array([1e-6, 0.1, 0.85]), rng.normal(size=STEPS["garch"]) * 0.01


def _rnn(rng):
    n = 64
    matrices = rng.normal(size=(5, n, n)) / n**0.5 / 4
    u = rng.normal(size=(STEPS["rnn"] + 4, n))
    return *matrices, u, rng.normal(size=(3, n)) / 3, rng.normal(size=n) / 3


def _lstm(rng):
    n, batch = HIDDEN, 32
    Wx, Wh = rng.normal(size=(2, n, 4 * n)) / n**0.5
    h0, c0 = rng.normal(size=(2, batch, n)) / 10
    return Wx, Wh, rng.normal(size=4 * n) / 10, rng.normal(size=(STEPS["lstm"], batch, n)), h0, c0


def _kalman(rng):
    F = 0.95 * np.eye(4) + np.diag([0.1] * 3, 1) + rng.normal(size=(4, 4)) / 1000
    H, Q, R = np.array([[1.0, 0, 0, 0]]), np.eye(4) * 0.1 + 0.01, np.array([[1.5]])
    return F, H, Q, R, rng.normal(size=(STEPS["kalman"], 1)).cumsum(0)


def _hmm(rng):
    n = 16
    moves, first = np.log(rng.dirichlet(np.ones(n), size=n)), np.log(rng.dirichlet(np.ones(n)))
    return moves, rng.normal(size=(STEPS["hmm"], n)), first


def _heat1d(rng):
    return (rng.normal(size=100_000),)


def _batch_lorenz(rng):
    return rng.normal(size=(10_000, 3)), 1e-3


def _add(rng):
    return rng.normal(size=(STEPS["add"], 3)), np.ones(3)
