"""The workloads of derivatives: beside adjoints written by hand, or beside numbascan's own forward computation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hand
import numpy as np
from workloads import Workload, garch_loss, kalman_likelihood, rng, rnn_step, runge_kutta_step

import numbascan as ns
import numbascan.tensor as nt


def follows(f: Callable[..., Any], gradients: Any, arguments: tuple[Any, ...], argnums: tuple[int, ...]) -> bool:
    """Does `f` rise along a random direction as its gradients say, to 1e-6 of their size?"""
    along = {i: rng.normal(size=np.shape(arguments[i])) for i in argnums}

    def moved(step: float) -> Any:
        return f(*(x + step * along[i] if i in along else x for i, x in enumerate(arguments)))

    rise = sum((gradient * along[i]).sum() for gradient, i in zip(gradients, argnums, strict=True))
    size = sum(abs(gradient * along[i]).sum() for gradient, i in zip(gradients, argnums, strict=True))
    h = 1e-5
    # central differences of two widths, extrapolated: the error is of order h**4
    slopes = [(moved(width) - moved(-width)) / (2 * width) for width in (h, 2 * h)]
    return bool(abs((4 * slopes[0] - slopes[1]) / 3 - rise) < 1e-6 * size)


def beside_forward(name: str, f: Callable[..., Any], arguments: tuple[Any, ...], argnums: tuple[int, ...], n_steps: int) -> Workload:
    """The gradient of `f` beside `f` itself."""
    forward, gradients = ns.jit(f), ns.grad(f, argnums=argnums)
    return Workload(
        name,
        n_steps,
        lambda: forward(*arguments),
        lambda: gradients(*arguments),
        4.0,
        other_is="forward",
        is_right=lambda: follows(forward, gradients(*arguments), arguments, argnums),
    )


def lorenz_mean(n_steps: int, **options: Any) -> Callable[..., Any]:
    """The mean of a Lorenz path, as a function of its start and the width of a step."""

    def mean(start, h):
        path = ns.scan(runge_kutta_step, outputs_info=start, non_sequences=h, n_steps=n_steps, return_updates=False, **options)
        return path.mean()

    return mean


def lorenz_grad() -> Workload:
    # A path of length 10: along one of 100 the system forgets its start, and with it what two orders of the same sums have in common.
    start, h, n_steps = np.array([1.0, 1.1, 1.2]), 1e-4, 100_000
    gradient = ns.grad(lorenz_mean(n_steps))
    return Workload("lorenz-grad", n_steps, lambda: hand.lorenz_grad(start, h, n_steps), lambda: gradient(start, h), 1.5)


def garch_grad() -> Workload:
    r, p = rng.normal(size=100_000) * 0.01, np.array([1e-6, 0.1, 0.85])
    both = ns.value_and_grad(garch_loss)
    return Workload("garch-grad", len(r), lambda: hand.garch_value_and_grad(p, r), lambda: both(p, r), 1.5)


def power_grad() -> Workload:
    a = rng.uniform(0.99, 1.01, size=1000)

    def last(a):
        return ns.scan(lambda p, a: p * a, outputs_info=np.ones(1000), non_sequences=a, n_steps=1000, return_updates=False)[-1].sum()

    gradient = ns.grad(last)
    return Workload("power-grad", 1000, lambda: hand.power_grad(a, 1000), lambda: gradient(a), 1.5)


def kalman_grad() -> Workload:
    y = rng.normal(size=(10_000, 1)).cumsum(0)
    F = 0.95 * np.eye(4) + np.diag([0.1] * 3, 1) + rng.normal(size=(4, 4)) / 1000  # stable: the filter forgets how P was rounded
    H, R = np.array([[1.0, 0.1, 0.2, 0.3]]), np.array([[1.5]])
    Q = np.eye(4) * 0.1 + 0.01
    return beside_forward("kalman-grad", kalman_likelihood, (F, H, Q, R, y), (0, 2, 3), len(y))


def hmm_grad() -> Workload:
    n = 16
    moves = np.log(rng.dirichlet(np.ones(n), size=n))
    seen, first = rng.normal(size=(10_000, n)), np.log(rng.dirichlet(np.ones(n)))

    def forward(moves, seen, first):
        def step(seen, a, moves):
            return nt.logsumexp(a[:, None] + moves, axis=0) + seen

        rows = ns.scan(step, sequences=seen[1:], outputs_info=first + seen[0], non_sequences=moves, return_updates=False)
        return nt.logsumexp(rows[-1])

    return beside_forward("hmm-grad", forward, (moves, seen, first), (0, 1, 2), len(seen))


def rnn_grad() -> Workload:
    n = 64
    u = rng.normal(size=(1004, n))
    matrices = tuple(rng.normal(size=(n, n)) / n**0.5 / 4 for _ in range(5))
    x0, y0 = rng.normal(size=(3, n)) / 3, rng.normal(size=n) / 3

    def cost(W, W1, W2, Wf, Wo, u, x0, y0):
        _, y = ns.scan(
            rnn_step,
            sequences={"input": u, "taps": [-4, 0]},
            outputs_info=[{"initial": x0, "taps": [-3, -1]}, y0],
            non_sequences=[W, W1, W2, Wf, Wo],
            return_updates=False,
        )
        return y.sum()

    return beside_forward("rnn-grad", cost, (*matrices, u, x0, y0), (0, 1, 2, 3, 4), 1000)


def lstm_grad() -> Workload:
    n, batch = 128, 32
    x = rng.normal(size=(200, batch, n))
    Wx, Wh = rng.normal(size=(2, n, 4 * n)) / n**0.5
    b, h0, c0 = rng.normal(size=4 * n) / 10, rng.normal(size=(batch, n)) / 10, rng.normal(size=(batch, n)) / 10

    def step(x, h, c, Wx, Wh, b):
        z = x @ Wx + h @ Wh + b
        i, f, g, o = (z[:, k * n : (k + 1) * n] for k in range(4))
        c = nt.sigmoid(f) * c + nt.sigmoid(i) * np.tanh(g)
        return nt.sigmoid(o) * np.tanh(c), c

    def cost(Wx, Wh, b, x, h0, c0):
        h, _ = ns.scan(step, sequences=x, outputs_info=[h0, c0], non_sequences=[Wx, Wh, b], return_updates=False)
        return h.sum()

    return beside_forward("lstm-grad", cost, (Wx, Wh, b, x, h0, c0), (0, 1, 2), len(x))


def lorenz_checkpointed() -> Workload:
    """The gradient in 10 MB beside the one that stores all."""
    start, h, n_steps = np.array([1.0, 1.1, 1.2]), 1e-5, 1_000_000
    stored = ns.grad(lorenz_mean(n_steps))
    gradient = ns.grad(lorenz_mean(n_steps, checkpoint=ns.Checkpoint(memory="10MB")))
    return Workload("lorenz-checkpointed", n_steps, lambda: stored(start, h), lambda: gradient(start, h), 6.0, other_is="stored")


GRADIENTS = (lorenz_grad, garch_grad, power_grad, kalman_grad, hmm_grad, rnn_grad, lstm_grad)
if hasattr(ns, "Checkpoint"):
    GRADIENTS += (lorenz_checkpointed,)
