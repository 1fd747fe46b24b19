"""A tour on real data that checks itself: `numbascan demo`."""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Callable
from importlib import resources
from typing import Any

import numpy as np

import numbascan as ns

LOG_LIKELIHOOD = -632.5456251  # Durbin and Koopman's local-level model of the Nile at the variances below
OBSERVATION_VARIANCE, LEVEL_VARIANCE = 15099.0, 1469.1
LORENZ_STEPS = 1_000_000
PLOT = "nile.png"


def nile() -> tuple[np.ndarray, np.ndarray]:
    """Years and annual flows of the Nile at Aswan, 1871 to 1970, in 1e8 m^3."""
    text = resources.files("numbascan.data").joinpath("nile.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    return np.array([int(row["year"]) for row in rows]), np.array([float(row["flow"]) for row in rows])


def local_level(flow: Any, level: Any, variance: Any, observation: Any, drift: Any) -> tuple[Any, Any, Any]:
    """One step of the Kalman filter of a random walk seen through noise: new level and its variance, and the term of the log-likelihood."""
    predicted = variance + drift
    spread = predicted + observation
    error = flow - level
    gain = predicted / spread
    term = -0.5 * (math.log(2 * math.pi) + np.log(spread) + error * error / spread)
    return level + gain * error, predicted * (1 - gain), term


def lorenz_step(y: Any, dt: Any, sigma: Any, rho: Any, beta: Any) -> Any:
    """One Euler step of the Lorenz system."""
    dy = np.array([sigma * (y[1] - y[0]), y[0] * (rho - y[2]) - y[1], y[0] * y[1] - beta * y[2]])
    return y + dt * dy


def double(power: Any, limit: Any) -> tuple[Any, ns.until]:
    """Powers of two, until one exceeds the limit."""
    return power * 2, ns.until(power * 2 > limit)


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    """A result and the seconds it took."""
    start = time.perf_counter()
    result = run()
    return result, time.perf_counter() - start


class Tour:
    """Prints each station and remembers whether its numbers were right."""

    def __init__(self) -> None:
        self.wrong: list[str] = []

    def check(self, label: str, is_right: bool) -> None:
        print(f"   {'right' if is_right else 'WRONG'}: {label}")
        if not is_right:
            self.wrong.append(label)

    def times(self, compiled: Callable[[], Any], plain: Callable[[], Any], share: float = 1.0) -> tuple[Any, Any]:
        """Runs both and prints the times; `share`: the part of the work that the plain loop does."""
        first, first_seconds = timed(compiled)
        seconds = min(timed(compiled)[1] for _ in range(5))
        expected, plain_seconds = timed(plain)
        plain_seconds /= share
        print(f"   first call (traced and compiled, or from the disk cache) {first_seconds:.2f} s, then {seconds * 1e3:.3f} ms;")
        print(f"   the same loop in plain NumPy {plain_seconds * 1e3:.1f} ms: {plain_seconds / seconds:.0f} times as long")
        return first, expected

    def nile(self) -> None:
        print("1. A Kalman filter as a scan: the level of the Nile, 100 years of flow (1871 to 1970)")
        years, flow = nile()
        filter_levels = ns.scan(local_level)
        start = [flow[0], OBSERVATION_VARIANCE, None]  # diffuse start: the first year sets the level and has no term

        def compiled() -> Any:
            return filter_levels(sequences=flow[1:], outputs_info=start, non_sequences=[OBSERVATION_VARIANCE, LEVEL_VARIANCE])

        def plain() -> list[Any]:
            level, variance, rows = flow[0], OBSERVATION_VARIANCE, []
            for value in flow[1:]:
                level, variance, term = local_level(value, level, variance, OBSERVATION_VARIANCE, LEVEL_VARIANCE)
                rows.append((level, variance, term))
            return [np.array(column) for column in zip(*rows, strict=True)]

        (levels, variances, terms), expected = self.times(compiled, plain)
        print(f"   log-likelihood {terms.sum():.7f} from {len(terms)} terms")
        self.check(f"the published {LOG_LIKELIHOOD}", abs(terms.sum() - LOG_LIKELIHOOD) < 5e-7 and len(terms) == 99)
        self.check("levels equal those of plain NumPy", np.allclose([levels, variances], expected[:2], rtol=1e-12))
        _plot(years[1:], flow[1:], levels, np.sqrt(variances))

    def lorenz(self) -> None:
        print(f"2. A Lorenz path of {LORENZ_STEPS:,} steps, the step in plain NumPy")
        lorenz = ns.scan(lorenz_step)
        parameters = (1e-3, 10.0, 28.0, 8 / 3)
        n_plain = LORENZ_STEPS // 100

        def plain() -> np.ndarray:
            y, rows = np.ones(3), np.empty((n_plain, 3))
            for t in range(n_plain):
                rows[t] = y = lorenz_step(y, *parameters)
            return rows

        path, expected = self.times(
            lambda: lorenz(outputs_info=np.ones(3), non_sequences=parameters, n_steps=LORENZ_STEPS), plain, share=n_plain / LORENZ_STEPS
        )
        x, y, z = path.T
        self.check(
            f"the first {len(expected):,} points equal those of plain NumPy", np.allclose(path[: len(expected)], expected, rtol=1e-6)
        )
        self.check(
            "the path stays on the attractor", bool(np.isfinite(path).all() and np.abs(x).max() < 25 and 0 < z.max() < 60 and y.std() > 5)
        )

    def until(self) -> None:
        print("3. A loop that ends by itself: powers of two until one exceeds 45")
        powers = ns.scan(double)

        def plain() -> np.ndarray:
            rows: list[float] = []
            power = 1.0
            while not rows or power <= 45:
                power = power * 2
                rows.append(power)
            return np.array(rows)

        found, expected = self.times(lambda: powers(outputs_info=1.0, non_sequences=45.0, n_steps=1024), plain)
        print(f"   {found}")
        self.check("2, 4, 8, 16, 32, 64 and nothing more", found.tolist() == expected.tolist() == [2.0, 4.0, 8.0, 16.0, 32.0, 64.0])


def _plot(years: np.ndarray, flow: np.ndarray, levels: np.ndarray, spread: np.ndarray) -> None:
    """The filtered level with one standard deviation, as a picture, if Matplotlib is there."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("   (pip install 'numbascan[plot]' and the filtered level is drawn too)")
        return
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(years, flow, ".", color="0.6", label="flow")
    axes.plot(years, levels, label="filtered level")
    axes.fill_between(years, levels - spread, levels + spread, alpha=0.25, label="one standard deviation")
    axes.set(xlabel="year", ylabel="flow (1e8 m³)", title="The Nile at Aswan")
    axes.legend()
    figure.savefig(PLOT, dpi=120)
    print(f"   drawn: {PLOT}")


def main() -> int:
    """Runs the tour; 0 if every number was right, else 1."""
    tour = Tour()
    tour.nile()
    tour.lorenz()
    tour.until()
    if tour.wrong:
        print(f"WRONG: {'; '.join(tour.wrong)}")
        return 1
    print("Every number is right.")
    return 0
