"""Lengths that values decide, in the lanes of a GPU: each lane has its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns

ROWS = np.random.default_rng(1).normal(size=(7, 30))
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x[x > 0].sum(),
    "written": lambda x: np.sum(np.where(x > 1, x, 0)[x > 0] * np.arange(np.sum(x > 0))),
    "list": lambda x: sum([v for v in x if v > 0][:2]),
    "convolution": lambda x: np.convolve(x, [1.0, 2.0])[3],
    "ring": lambda x: x[(np.arange(30) + 1) % 30][0] + np.repeat(x[:3], np.array([1, 2, 0])).sum(),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_lanes_take_as_many_elements_as_each_has(name: str) -> None:
    f = PROGRAMS[name]
    np.testing.assert_allclose(ns.jit(ns.vmap(f), mode="cuda")(ROWS), [f(row) for row in ROWS], rtol=1e-12)


def test_their_gradients() -> None:
    found = ns.jit(ns.vmap(ns.grad(lambda x: (x[x > 0] ** 2).sum())), mode="cuda")(ROWS)
    np.testing.assert_allclose(found, np.where(ROWS > 0, 2 * ROWS, 0), rtol=1e-12)
