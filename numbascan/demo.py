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

from .errors import gpu

LOG_LIKELIHOOD = -632.5456251  # Durbin and Koopman's local-level model of the Nile at the variances below
OBSERVATION_VARIANCE, LEVEL_VARIANCE = 15099.0, 1469.1
LORENZ_STEPS = 1_000_000
ENSEMBLE, ENSEMBLE_STEPS = 10_000, 1000
OIL_LOG_LIKELIHOOD = -18165.858870  # arch 8.0.0 (Sheppard) on the same returns: constant mean, GARCH(1, 1), normal errors
OIL_ESTIMATES = (0.046682, 0.055805, 0.085626, 0.909099)  # mu, omega, alpha, beta
OIL_ERRORS = (0.020190, 0.010077, 0.006791, 0.006970)  # their standard errors, from the Hessian
GARCH_BOUNDS = ((None, None), (1e-6, None), (0.0, 1.0), (0.0, 1.0))
PLOT = "nile.png"


def rows(name: str) -> list[dict[str, str]]:
    """The rows of a table in numbascan/data, without the comments above it."""
    text = resources.files("numbascan.data").joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


def nile() -> tuple[np.ndarray, np.ndarray]:
    """Years and annual flows of the Nile at Aswan, 1871 to 1970, in 1e8 m^3."""
    table = rows("nile.csv")
    return np.array([int(row["year"]) for row in table]), np.array([float(row["flow"]) for row in table])


def oil_returns() -> np.ndarray:
    """Daily returns of crude oil (West Texas Intermediate), 1986 to 2018, in per cent of the price of the trading day before."""
    days = ("monday", "tuesday", "wednesday", "thursday", "friday")
    prices = np.array([float(row[day]) for row in rows("crude_oil.csv") for day in days if row[day]])
    return 100 * (prices[1:] / prices[:-1] - 1)


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


def garch_day(r: Any, variance: Any, mu: Any, omega: Any, alpha: Any, beta: Any) -> tuple[Any, Any]:
    """One day of GARCH(1,1): the variance of the next day, and this day's term of the log-likelihood."""
    error = r - mu
    term = -0.5 * (math.log(2 * math.pi) + np.log(variance) + error * error / variance)
    return omega + alpha * error * error + beta * variance, term


def garch_loss(parameters: Any, returns: Any, before: Any) -> Any:
    """Minus the log-likelihood of mu, omega, alpha and beta; `before`: the variance before the first day."""
    mu, omega, alpha, beta = parameters
    first = omega + (alpha + beta) * before
    _, terms = ns.scan(
        garch_day, sequences=returns, outputs_info=[first, None], non_sequences=[mu, omega, alpha, beta], return_updates=False
    )
    return -terms.sum()


def fit_garch(loss: Callable[..., Any], has_gradient: bool, returns: np.ndarray) -> tuple[Any, float]:
    """SciPy's optimum of the GARCH model and the seconds it took; without a gradient it takes finite differences."""
    from scipy.optimize import minimize

    start = np.array([0.03, 0.1, 0.1, 0.8])
    arguments = (returns, variance_before(returns))
    return timed(
        lambda: minimize(loss, start, arguments, method="SLSQP", jac=has_gradient or None, bounds=GARCH_BOUNDS, options={"ftol": 1e-9})
    )


def variance_before(returns: np.ndarray) -> float:
    """The variance before the first day: the squares of the first 75 days, each with 0.94 times the weight of the one before."""
    return float(np.average((returns[:75] - returns.mean()) ** 2, weights=0.94 ** np.arange(75)))


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
            level, variance, steps = flow[0], OBSERVATION_VARIANCE, []
            for value in flow[1:]:
                level, variance, term = local_level(value, level, variance, OBSERVATION_VARIANCE, LEVEL_VARIANCE)
                steps.append((level, variance, term))
            return [np.array(column) for column in zip(*steps, strict=True)]

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
            y, path = np.ones(3), np.empty((n_plain, 3))
            for t in range(n_plain):
                path[t] = y = lorenz_step(y, *parameters)
            return path

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
            found: list[float] = []
            power = 1.0
            while not found or power <= 45:
                power = power * 2
                found.append(power)
            return np.array(found)

        found, expected = self.times(lambda: powers(outputs_info=1.0, non_sequences=45.0, n_steps=1024), plain)
        print(f"   {found}")
        self.check("2, 4, 8, 16, 32, 64 and nothing more", found.tolist() == expected.tolist() == [2.0, 4.0, 8.0, 16.0, 32.0, 64.0])

    def garch(self) -> None:
        returns = oil_returns()
        print(f"4. GARCH(1,1) fitted by SciPy to {len(returns):,} daily returns of crude oil (1986 to 2018), with gradients and without")
        loss, loss_and_gradient, curvature = ns.jit(garch_loss), ns.value_and_grad(garch_loss), ns.hessian(garch_loss)
        arguments = (np.array(OIL_ESTIMATES), returns, variance_before(returns))
        _, seconds = timed(lambda: [compiled(*arguments) for compiled in (loss, loss_and_gradient, curvature)])
        print(f"   value, gradient and Hessian traced and compiled, or from the disk cache, in {seconds:.2f} s")
        (exact, exact_seconds), (differences, seconds) = fit_garch(loss_and_gradient, True, returns), fit_garch(loss, False, returns)
        errors = np.sqrt(np.diag(np.linalg.inv(curvature(exact.x, *arguments[1:]))))
        print("                             mu     omega     alpha      beta   log-likelihood  evaluations")
        for name, fit, spent in (("gradient", exact, exact_seconds), ("finite differences", differences, seconds)):
            numbers = "".join(f"{value:10.6f}" for value in fit.x)
            print(f"   {name:<20}{numbers}{-fit.fun:17.6f}{fit.nfev:13d} in {spent * 1e3:.0f} ms")
        print(f"   {'standard errors':<20}" + "".join(f"{value:10.6f}" for value in errors))
        self.check("the log-likelihood that the package arch finds", abs(-exact.fun - OIL_LOG_LIKELIHOOD) < 1e-5)
        self.check("its estimates", bool((abs(exact.x - OIL_ESTIMATES) < 1e-3 * errors).all()))
        self.check("its standard errors", np.allclose(errors, OIL_ERRORS, rtol=1e-3))
        self.check("finite differences lead to the same estimates", bool((abs(exact.x - differences.x) < 1e-2 * errors).all()))

    def ensemble(self) -> None:
        device, mode = gpu(), None
        if not device.startswith(("none", "Numba's simulator")):
            mode = "cuda"
        where = "the CPU, in its SIMD unit and threads" if mode is None else f"the GPU ({device})"
        print(f"5. {ENSEMBLE:,} Lorenz paths of {ENSEMBLE_STEPS:,} steps, side by side on {where}")
        starts, rhos = np.random.default_rng(0).normal(size=(ENSEMBLE, 3)), np.linspace(20.0, 30.0, ENSEMBLE)

        def path(start: Any, rho: Any, n_steps: int) -> Any:
            parameters = (1e-3, 10.0, rho, 8 / 3)
            return ns.scan(lorenz_step, outputs_info=start, non_sequences=parameters, n_steps=n_steps, return_updates=False)[-1]

        ends = ns.jit(ns.vmap(path, in_axes=(0, 0, None)), mode=mode)
        few = ENSEMBLE_STEPS // 20

        def plain() -> np.ndarray:
            y = starts.T
            for _ in range(few):
                y = lorenz_step(y, 1e-3, 10.0, rhos, 8 / 3)
            return y.T

        found, expected = self.times(lambda: ends(starts, rhos, ENSEMBLE_STEPS), plain, share=few / ENSEMBLE_STEPS)
        self.check(
            f"after {few} steps all are where plain NumPy has them", np.allclose(ends(starts, rhos, few), expected, rtol=1e-9, atol=1e-12)
        )
        self.check("all ends are on the attractor", bool(np.isfinite(found).all() and np.abs(found).max() < 60))


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
    tour.garch()
    tour.ensemble()
    if tour.wrong:
        print(f"WRONG: {'; '.join(tour.wrong)}")
        return 1
    print("Every number is right.")
    return 0
