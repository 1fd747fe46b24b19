"""Generated code, held as it was when last read and found good. `pytest tests/plan/test_golden.py --update-golden` writes it anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

GOLDEN = Path(__file__).parent.parent / "golden"


def lorenz() -> ns.ScanFunction:
    @ns.scan
    def lorenz(y: Any, dt: Any, sigma: Any, rho: Any, beta: Any) -> Any:
        dy = np.array([sigma * (y[1] - y[0]), y[0] * (rho - y[2]) - y[1], y[0] * y[1] - beta * y[2]])
        return y + dt * dy

    return lorenz.lower(outputs_info=np.ones(3), non_sequences=(1e-3, 10.0, 28.0, 8 / 3), n_steps=10)


def local_level() -> ns.ScanFunction:
    @ns.scan
    def local_level(flow: Any, level: Any, variance: Any, noise: Any, drift: Any) -> Any:
        predicted = variance + drift
        spread = predicted + noise
        error = flow - level
        gain = predicted / spread
        term = -0.5 * (np.log(spread) + error * error / spread)
        return level + gain * error, predicted * (1 - gain), term

    return local_level.lower(sequences=np.arange(20.0), outputs_info=[1.0, 2.0, None], non_sequences=[0.5, 0.25])


def heat() -> ns.ScanFunction:
    @ns.scan(keep_last=1)
    def heat(u: Any, rate: Any) -> Any:
        return nt.inc_subtensor(u[1:-1], rate * (u[2:] - 2 * u[1:-1] + u[:-2]))

    return heat.lower(outputs_info=np.arange(40.0), non_sequences=0.1, n_steps=10)


def powers_of_two() -> ns.ScanFunction:
    @ns.scan
    def powers_of_two(power: Any, limit: Any) -> Any:
        return power * 2, ns.until(power * 2 > limit)

    return powers_of_two.lower(outputs_info=1.0, non_sequences=45.0, n_steps=1024)


def network() -> ns.ScanFunction:
    @ns.scan
    def network(u_tm4: Any, u_t: Any, x_tm3: Any, x_tm1: Any, y_tm1: Any, W: Any, W_in: Any, W_back: Any, W_out: Any) -> Any:
        return np.tanh(x_tm1 @ W + u_t @ W_in + u_tm4 @ W_in + y_tm1 @ W_back), x_tm3 @ W_out

    n = 20
    square = np.ones((n, n))
    return network.lower(
        sequences={"input": np.ones((30, n)), "taps": [-4, 0]},
        outputs_info=[{"initial": np.ones((3, n)), "taps": [-3, -1]}, np.ones(n)],
        non_sequences=[square, square, square, square],
    )


@pytest.mark.usefixtures("rewritten")
@pytest.mark.parametrize("make", [lorenz, local_level, heat, powers_of_two, network], ids=lambda make: make.__name__)
def test_generated_code_reads_as_it_did(make: Callable[[], ns.ScanFunction], request: pytest.FixtureRequest) -> None:
    text = make().source().replace(str(Path(__file__)), "test_golden.py")
    golden = GOLDEN / f"{make.__name__}.py"
    if request.config.getoption("--update-golden"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")
