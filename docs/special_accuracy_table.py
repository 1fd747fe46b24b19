"""Writes the table of special functions in docs/accuracy.md: `python docs/special_accuracy_table.py`. It needs mpmath; takes minutes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
from mpmath import mp, mpf

import numbascan as ns
import numbascan.tensor as nt

PAGE = Path(__file__).with_name("accuracy.md")
POINTS = 100  # in each domain
BITS = 1400  # what is tiny beside 1 has digits of its own

Sample = Callable[[np.random.Generator], tuple[np.ndarray, ...]]


def flat(*ends: tuple[float, float]) -> Sample:
    """Points anywhere between the ends, for each operand."""
    return lambda rng: tuple(rng.uniform(low, high, POINTS) for low, high in ends)


def wide(*ends: tuple[float, float]) -> Sample:
    """As many points between 1 and 10 as between 10 and 100; between negative ends as well."""

    def sample(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        return tuple(np.sign(low) * np.exp(rng.uniform(*sorted(np.log(np.abs([low, high]))), POINTS)) for low, high in ends)

    return sample


def beta_points(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Shapes from 1e-3 to 1e3, and numbers of their beta distribution, which lie where the function moves."""
    a, b = np.exp(rng.uniform(np.log(1e-3), np.log(1e3), (2, POINTS)))
    return a, b, np.clip(rng.beta(a, b), 1e-300, 1 - 1e-16)


def gamma_points(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Shapes from 1e-3 to 1e3, and numbers around their gamma distribution."""
    a = np.exp(rng.uniform(np.log(1e-3), np.log(1e3), POINTS))
    return a, a * np.exp(rng.normal(size=POINTS) * np.minimum(3, 3 / np.sqrt(a)))


def slope(function: Callable[..., Any], k: int = 0) -> Callable[..., Any]:
    """The derivative of a function with respect to operand k."""
    return lambda *operands: ns.grad(function(*operands).sum(), operands[k])


def exact_slope(function: Callable[..., Any], k: int) -> Callable[..., Any]:
    """The same by a central difference, which is exact to 600 bits."""

    def difference(*operands: Any) -> Any:
        step = operands[k] * mpf(2) ** -300
        ahead, behind = ([*operands[:k], operands[k] + sign * step, *operands[k + 1 :]] for sign in (1, -1))
        return (function(*ahead) - function(*behind)) / (2 * step)

    return difference


def ndtr(x: Any) -> Any:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def erfcx(x: Any) -> Any:
    return mpmath.exp(x * x) * mpmath.erfc(x)


def gammainc(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, 0, x, regularized=True)


def gammaincc(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, x, regularized=True)


def betainc(a: Any, b: Any, x: Any) -> Any:
    return mpmath.betainc(a, b, 0, x, regularized=True)


ROWS: tuple[tuple[str, str, Callable[..., Any], Callable[..., Any], Sample], ...] = (
    ("xlogy", "1e-30 to 1e30", nt.xlogy, lambda x, y: x * mpmath.log(y), wide((1e-30, 1e5), (1e-30, 1e30))),
    ("xlog1py", "y from 1e-30 to 1e30", nt.xlog1py, lambda x, y: x * mpmath.log(1 + y), wide((1e-30, 1e5), (1e-30, 1e30))),
    ("logit", "0 to 1", nt.logit, lambda x: mpmath.log(x / (1 - x)), flat((0, 1))),
    ("logit", "0.499 to 0.501", nt.logit, lambda x: mpmath.log(x / (1 - x)), flat((0.499, 0.501))),
    ("log1mexp", "-700 to -1e-30", nt.log1mexp, lambda x: mpmath.log(1 - mpmath.exp(x)), wide((-700, -1e-30))),
    ("ndtr", "-37 to 8", nt.ndtr, ndtr, flat((-37, 8))),
    ("log_ndtr", "-30 to -1", nt.log_ndtr, lambda x: mpmath.log(ndtr(x)), wide((-30, -1))),
    ("log_ndtr", "-1 to 8", nt.log_ndtr, lambda x: mpmath.log(ndtr(x)), flat((-1, 8))),
    ("ndtri", "1e-12 to 1/2", nt.ndtri, lambda p: mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1), wide((1e-12, 0.5))),
    ("erfcx", "-5 to 30", nt.erfcx, erfcx, flat((-5, 30))),
    ("erfcx", "-25 to -5", nt.erfcx, erfcx, flat((-25, -5))),
    ("derivative of erfcx", "-5 to 20", slope(nt.erfcx), lambda x: 2 * x * erfcx(x) - 2 / mpmath.sqrt(mpmath.pi), flat((-5, 20))),
    ("gammainc", "a from 1e-3 to 1e3", nt.gammainc, gammainc, gamma_points),
    ("gammaincc", "a from 1e-3 to 1e3", nt.gammaincc, gammaincc, gamma_points),
    ("derivative of gammainc in a", "a from 1e-3 to 1e3", slope(nt.gammainc), exact_slope(gammainc, 0), gamma_points),
    ("derivative of gammainc in x", "a from 1e-3 to 1e3", slope(nt.gammainc, 1), exact_slope(gammainc, 1), gamma_points),
    ("betainc", "a and b from 1e-3 to 1e3", nt.betainc, betainc, beta_points),
    ("derivative of betainc in a", "a and b from 1e-3 to 1e3", slope(nt.betainc), exact_slope(betainc, 0), beta_points),
    ("derivative of betainc in b", "a and b from 1e-3 to 1e3", slope(nt.betainc, 1), exact_slope(betainc, 1), beta_points),
    ("j0", "0 to 2", nt.j0, lambda x: mpmath.besselj(0, x), flat((0, 2))),
    ("j1", "0 to 3", nt.j1, lambda x: mpmath.besselj(1, x), flat((0, 3))),
    ("i0e", "1e-3 to 1e3", nt.i0e, lambda x: mpmath.besseli(0, x) * mpmath.exp(-x), wide((1e-3, 1e3))),
    ("i1e", "1e-3 to 1e3", nt.i1e, lambda x: mpmath.besseli(1, x) * mpmath.exp(-x), wide((1e-3, 1e3))),
    (
        "ive",
        "v from 0 to 30, x from 0.1 to 100",
        nt.ive,
        mp.workprec(200)(lambda v, x: mpmath.besseli(v, x) * mpmath.exp(-x)),
        flat((0, 30), (0.1, 100)),
    ),
    (
        "kve",
        "v from 0 to 30, x from 0.1 to 100",
        nt.kve,
        mp.workprec(200)(lambda v, x: mpmath.besselk(v, x) * mpmath.exp(x)),
        flat((0, 30), (0.1, 100)),
    ),
)


def error(function: Callable[..., Any], exact: Callable[..., Any], points: tuple[np.ndarray, ...], dtype: str) -> float:
    """The greatest error found, in units in the last place of the exact value."""
    operands = [point.astype(dtype) for point in points]
    inputs = [nt.vector(dtype=dtype) for _ in operands]
    values = ns.function(inputs, function(*inputs))(*operands)
    info, worst = np.finfo(dtype), 0.0
    for value, *place in zip(values, *operands, strict=True):
        expected = exact(*(mpf(float(x)) for x in place))
        if not info.tiny < abs(expected) < float(info.max):
            continue
        _, exponent = mpmath.frexp(expected)
        worst = max(worst, float(abs(mpf(float(value)) - expected) / mpf(2) ** (exponent - 1 - info.nmant)))
    return worst


def table() -> str:
    mp.prec = BITS
    rows = ["| special function | where | float64 | float32 |", "|---|---|---|---|"]
    for name, where, function, exact, sample in ROWS:
        numbers = [f"{error(function, exact, sample(np.random.default_rng(0)), dtype):.1f}" for dtype in ("float64", "float32")]
        label = " ".join(f"`{word}`" if hasattr(nt, word) else word for word in name.split())
        rows.append(f"| {label} | {where} | {' | '.join(numbers)} |")
        print(rows[-1], flush=True)
    return "\n".join(rows)


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(re.sub(r"\| special function \|.*?\n\n", lambda _: table() + "\n\n", page, count=1, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
