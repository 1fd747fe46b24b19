"""Products with a matrix that all lanes share: the bits of a lane do not depend on the other lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns

RNG = np.random.default_rng(5)
WIDTH = 90  # BLAS gives a row of this many numbers other bits among more rows
LANES = RNG.normal(size=(67, WIDTH))
W = RNG.normal(size=(WIDTH, WIDTH)) / 9
V = RNG.normal(size=(WIDTH, WIDTH)) / 9


def walked(x: Any) -> Any:
    """The end of a loop in the lane, read out."""
    return ns.scan(lambda h, x: np.tanh(h @ W + x), outputs_info=x, non_sequences=x, n_steps=3, return_updates=False)[-1] @ V


def summed(x: Any) -> Any:
    """Products of the rows of a sequence in the lane."""
    return ns.scan(lambda row, s: s + row @ V, sequences=x.reshape(1, WIDTH) * np.ones((4, 1)), outputs_info=x, return_updates=False)[-1]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x @ W,
        lambda x: W @ x,
        lambda x: np.tanh(x @ W) @ V,
        walked,
        summed,
        ns.grad(lambda x: (np.tanh(x @ W) ** 2).sum()),
    ],
    ids=["rows", "columns", "two layers", "walked", "summed", "gradient"],
)
@pytest.mark.parametrize("map_", [ns.vmap, lambda f: lambda x: ns.map(f, x, return_updates=False)], ids=["vmap", "map"])
def test_a_lane_has_the_same_bits_among_others_and_alone(f: Callable[[Any], Any], map_: Callable[..., Any]) -> None:
    lanes = map_(f)
    whole = lanes(LANES)
    for first, last in ((0, 1), (3, 4), (0, 50), (50, 67), (2, 66)):
        np.testing.assert_array_equal(whole[first:last], lanes(LANES[first:last]))


def test_the_rows_of_a_jacobian_are_no_lanes(rewritten: None) -> None:
    jacobian = ns.jacobian(lambda x: np.tanh(np.tanh(x @ W) @ V))
    jacobian(LANES[0])
    products = [line for line in jacobian.source().splitlines() if "np.dot(" in line]
    assert len(products) == 4
    assert all(line.startswith("    np.dot(") for line in products)  # none in a loop
