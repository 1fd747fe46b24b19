"""Lanes go in threads in gradients with respect to what they share, too: each leaves its part, and the parts are added up behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernel_text import loops_alone

import numbascan as ns

Same = Callable[..., Any]
RNG = np.random.default_rng(11)
Y = RNG.normal(size=(40, 3))


def scan(step: Any, *args: Any, **options: Any) -> Any:
    return ns.scan(step, *args, **options, return_updates=False)


def network(w: Any, b: Any, y: Any, **options: Any) -> Any:
    return scan(lambda y: np.tanh(w @ y + b), outputs_info=y, n_steps=5, **options)[-1]


def shrinking(p: Any, y: Any) -> Any:
    def step(y: Any) -> Any:
        following = p * y
        return following, ns.until(abs(following).sum() < 0.3)

    return scan(step, outputs_info=y, n_steps=50)[-1]


def cost(lane: Callable[..., Any], n_shared: int) -> Callable[..., Any]:
    """The gradient of a sum over lanes with respect to the arguments that they share."""

    def total(*args: Any) -> Any:
        shared, (y,) = args[:n_shared], args[n_shared:]
        return (ns.vmap(lambda y: lane(*shared, y))(y) ** 2).sum()

    return ns.grad(total, argnums=tuple(range(n_shared)))


NUMBERS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a number": (cost(lambda r, y: network(r, 0.1, y), 1), (np.full((1, 1), 0.7), Y[:, :1].copy())),
    "a matrix": (cost(lambda w, y: network(w, 0.1, y), 1), (RNG.normal(size=(3, 3)), Y)),
    "several": (cost(network, 2), (RNG.normal(size=(3, 3)), RNG.normal(size=3), Y)),
    "until": (cost(shrinking, 1), (0.8, Y)),
    "checkpoints": (cost(lambda w, b, y: network(w, b, y, checkpoint=2), 2), (RNG.normal(size=(3, 3)), RNG.normal(size=3), Y)),
    "no lanes": (cost(network, 2), (RNG.normal(size=(3, 3)), RNG.normal(size=3), Y[:0])),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_lanes_share(name: str, same: Same) -> None:
    function, args = NUMBERS[name]
    text = ns.jit(function).lower(*args).source("cuda")
    assert not loops_alone(text)
    assert "in_one_grid(" in text.partition("\ndef grad")[2]
    same(function, *args, rtol=1e-10)
