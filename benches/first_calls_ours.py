"""Programs whose first call takes long, as plain Python for numbascan: `python benches/first_calls_ours.py NAME`."""

from __future__ import annotations

import sys

import numpy as np
from first_calls_data import INPUTS, TICKS, UNITS

import numbascan as ns


def gru(Wz, Uz, Wr, Ur, Wh, Uh, xs):
    h, total = np.zeros(UNITS), 0.0
    for x in xs:
        z = 1 / (1 + np.exp(-(x @ Wz + h @ Uz)))
        r = 1 / (1 + np.exp(-(x @ Wr + h @ Ur)))
        h = (1 - z) * h + z * np.tanh(x @ Wh + (r * h) @ Uh)
        total += np.sum(h * h)
    return total


def garch(p, returns):
    omega, alpha, beta = p
    variance, loss = np.mean(returns**2), 0.0
    for r in returns:
        loss += np.log(variance) + r * r / variance
        variance = omega + alpha * r * r + beta * variance
    return 0.5 * loss


def hodgkin_huxley(p):
    sodium, potassium, leak, current = p
    v, m, h, n, total = 0.1, 0.053, 0.596, 0.318, 0.0
    for _ in range(TICKS):
        am, bm = 0.1 * (25 - v) / (np.exp((25 - v) / 10) - 1), 4 * np.exp(-v / 18)
        ah, bh = 0.07 * np.exp(-v / 20), 1 / (np.exp((30 - v) / 10) + 1)
        an, bn = 0.01 * (10 - v) / (np.exp((10 - v) / 10) - 1), 0.125 * np.exp(-v / 80)
        flow = sodium * m**3 * h * (v - 115) + potassium * n**4 * (v + 12) + leak * (v - 10.6)
        v = v + 0.01 * (current - flow)
        m = m + 0.01 * (am * (1 - m) - bm * m)
        h = h + 0.01 * (ah * (1 - h) - bh * h)
        n = n + 0.01 * (an * (1 - n) - bn * n)
        total += v * v
    return total / TICKS


PROGRAMS = {
    "gru-grad": ns.grad(gru, argnums=tuple(range(6))),
    "garch-hessian": ns.hessian(garch),
    "hodgkin-huxley-grad": ns.grad(hodgkin_huxley),
}

if __name__ == "__main__":
    results = PROGRAMS[sys.argv[1]](*INPUTS[sys.argv[1]]())
    print(repr(float(sum(np.sum(np.abs(result)) for result in (results if isinstance(results, tuple) else (results,))))))
