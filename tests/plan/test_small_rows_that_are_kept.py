"""Small rows that are updated where they stand, and of which the last ones are kept besides, as results and for truncated gradients."""

from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

ROW = np.linspace(-1.0, 2.0, 40)  # its length is known, and it fits on the stack
PLACES = np.array([[3, 5], [5, 3], [0, 39], [7, 7], [12, 1], [39, 0], [2, 3]])
NUMBERS = np.array([0.3, -0.2, 0.5, 0.1, 0.9, -1.1, 0.4])
STEPS = {
    "swap": lambda p, u, x: nt.set_subtensor(nt.set_subtensor(x[p[0]], x[p[1]])[p[1]], u * x[p[0]]),
    "slice": lambda p, u, x: nt.set_subtensor(x[3:9], x[4:10] * 0.5 + u),
    "choice of parts": lambda p, u, x: nt.ifelse(u > 0, lambda: nt.set_subtensor(x[p[0]], u), lambda: x),
    "choice of rows": lambda p, u, x: nt.ifelse(u > 0, lambda: x * u, lambda: x + 1.0),
    "inner loop": lambda p, u, x: ns.scan(lambda k, x: nt.set_subtensor(x[k], u), p, x, return_updates=False)[-1],
    "elements": lambda p, u, x: np.tanh(x * 0.9 + u),
}


@pytest.mark.parametrize("name", STEPS)
def test_rows_that_are_kept_are_those_of_their_steps(name: str) -> None:
    step = STEPS[name]

    def both(p: Any, u: Any, x: Any) -> Any:
        y = step(p, u, x)
        return y, y[p[1]] * 2.0

    def run(p: Any, u: Any) -> Any:
        kept = [ns.scan(both, [p, u], [ROW, None], return_updates=False, keep_last=[k, None]) for k in (3, 11)]
        return (
            *kept[0],
            *kept[1],
            ns.scan(lambda p, u, x: (step(p, u, x), ns.until(x[p[0]] > 1.5)), [p, u], ROW, return_updates=False, keep_last=4),
        )

    compiled, plain = ns.jit(run), ns.jit(run, mode="python")
    for n in (7, 2, 1):
        for one, other in zip(compiled(PLACES[:n], NUMBERS[:n]), plain(PLACES[:n], NUMBERS[:n]), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)

    def cost(u: Any) -> Any:
        return (ns.scan(step, [PLACES, u], ROW, return_updates=False, truncate_gradient=3)[-1] ** 2).sum()

    gradients = [ns.jit(ns.grad(cost), mode=mode)(NUMBERS) for mode in (None, "python")]
    np.testing.assert_allclose(*gradients, rtol=1e-11, atol=1e-13)
