"""Derivatives from differences, each with how far it may be off: kinks, jumps and rounding make that large."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

SPANS = (2e-4, 1e-5)
SURE = 1e-5  # a slope that may be off by more than this share (of itself, or of 0.01 where it is less) tells nothing

Values = dict[str, Any]


def moved(values: Values, direction: Values, length: float) -> Values:
    return {name: value + length * direction[name] if name in direction else value for name, value in values.items()}


def slope(f: Callable[[float], Any], noise: float) -> tuple[Any, Any]:
    """f'(0) and a margin, elementwise; `noise` is the error of f's values. The margin is infinite where nothing is sure.

    Central differences over three spans, extrapolated. A kink inside shows in their disagreement; one exactly at 0 only in the second
    differences, which grow as the span shrinks.
    """
    best: tuple[Any, Any] = (np.nan, np.inf)
    for span in SPANS:
        found, margin = _slope(f, span, noise)
        margin = np.where(margin <= SURE * np.maximum(np.abs(found), 0.01), margin, np.inf)
        better = margin < best[1]
        best = np.where(better, found, best[0]), np.where(better, margin, best[1])
        if np.isfinite(best[1]).all():
            break
    return best


def _slope(f: Callable[[float], Any], span: float, noise: float) -> tuple[Any, Any]:
    middle = f(0.0)
    firsts, seconds = [], []
    for width in (span, span / 2, span / 4):
        above, below = f(width), f(-width)
        if np.shape(above) != np.shape(middle) or np.shape(below) != np.shape(middle):
            return np.full(np.shape(middle), np.nan), np.inf
        firsts.append((above - below) / (2 * width))
        seconds.append((above - 2 * middle + below) / width**2)
    coarse, fine = (4 * firsts[1] - firsts[0]) / 3, (4 * firsts[2] - firsts[1]) / 3
    margin = 10 * np.abs(coarse - fine) + 2 * span * np.abs(seconds[0] - seconds[2]) + 64 * noise / span
    return fine, np.where(np.isfinite(margin), margin, np.inf)


def directions(values: Values, seed: int, elements: int = 4) -> Iterator[Values]:
    """All arrays at once, each array as a whole, and some elements of each: the first and the last, and others by chance."""
    rng = np.random.default_rng(seed)
    yield {name: random_like(value, rng) for name, value in values.items()}
    for name, value in values.items():
        size = np.size(value)
        if size > elements:
            yield {name: random_like(value, rng)}
        places = {0, size - 1, *rng.choice(size, min(size, elements) - 1, replace=False).tolist()} if size else set()
        for place in sorted(places):
            unit = np.zeros(size, np.asarray(value).dtype)
            unit[place] = 1j if unit.dtype.kind == "c" and rng.random() < 0.5 else 1
            yield {name: unit.reshape(np.shape(value))[()]}


def random_like(value: Any, rng: np.random.Generator) -> Any:
    """Numbers within ±1 in the dtype and shape of `value`."""
    found = rng.uniform(-1, 1, np.shape(value))
    if np.asarray(value).dtype.kind == "c":
        found = found + 1j * rng.uniform(-1, 1, np.shape(value))
    return np.asarray(found, np.asarray(value).dtype)[()]


def along(gradient: Values, direction: Values) -> tuple[float, float]:
    """What a gradient says of a direction, and the sum of the absolute terms. Of complex numbers: df/dx - i df/dy."""
    terms = [np.real(gradient[name] * step)[np.asarray(step) != 0].ravel() for name, step in direction.items()]
    every = np.concatenate(terms)
    return float(every.sum()), float(np.abs(every).sum())
