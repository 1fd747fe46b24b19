"""Inputs of the programs whose first call takes long, the same for every candidate."""

from __future__ import annotations

import numpy as np

UNITS, WORDS, DAYS, TICKS = 32, 200, 1000, 5000


def gru() -> tuple[np.ndarray, ...]:
    """Weights of the three gates, and a sequence."""
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=(UNITS, UNITS)) / UNITS**0.5 for _ in range(6)]
    return (*weights, rng.normal(size=(WORDS, UNITS)))


def garch() -> tuple[np.ndarray, ...]:
    return np.array([0.1, 0.1, 0.8]), np.random.default_rng(0).normal(size=DAYS)


def hodgkin_huxley() -> tuple[np.ndarray, ...]:
    """Conductances of sodium, potassium and the leak, and the current."""
    return (np.array([120.0, 36.0, 0.3, 10.0]),)


INPUTS = {"gru-grad": gru, "garch-hessian": garch, "hodgkin-huxley-grad": hodgkin_huxley}
