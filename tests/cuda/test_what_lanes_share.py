"""Lanes go in threads in gradients with respect to what they share, too: each leaves its part, and the parts are added up behind."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernel_text import kernels, loops_alone

import numbascan as ns
from numbascan.emit.runtime import cuda as runtime
from numbascan.plan.gpu import lane_sums

Same = Callable[..., Any]
RNG = np.random.default_rng(11)
Y, P, WIDE = RNG.normal(size=(40, 3)), RNG.normal(size=20), RNG.normal(size=(40, 20))


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


ARRAYS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "an array": (cost(lambda p, y: scan(lambda y: np.tanh(p * np.roll(y, 1)), outputs_info=y, n_steps=3)[-1], 1), (P, WIDE)),
    "a network": (cost(network, 2), (RNG.normal(size=(20, 20)), P, WIDE)),
    "an array and a number": (
        cost(lambda p, q, y: scan(lambda y: np.tanh(p * np.roll(y, 1) + q * y), outputs_info=y, n_steps=3)[-1], 2),
        (P, 0.3, WIDE),
    ),
    "a sequence": (cost(lambda x, y: scan(lambda x, s: np.tanh(0.5 * s + x), x, y)[-1], 1), (P, Y[:, 0].copy())),
    "a table": (
        ns.grad(lambda p, k: (ns.vmap(lambda k: scan(lambda s: np.tanh(s + p[k]), outputs_info=0.1, n_steps=3)[-1])(k) ** 2).sum()),
        (P, RNG.integers(0, 20, 40)),
    ),
    "until, of arrays": (cost(shrinking, 1), (RNG.uniform(0.5, 0.9, 20), WIDE)),
    "checkpoints, of arrays": (cost(lambda w, b, y: network(w, b, y, checkpoint=2), 2), (RNG.normal(size=(20, 20)), P, WIDE)),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_lanes_share(name: str, same: Same) -> None:
    function, args = ARRAYS[name]
    text = ns.jit(function).lower(*args).source("cuda")
    (lanes,) = (kernel for kernel in kernels(text).values() if re.search(r"_left\[.*\] = ", kernel))
    assert not loops_alone(text)
    assert "while t < last:" in lanes  # a thread for each
    assert "grid.sync()" not in lanes
    same(function, *args, rtol=1e-10)


@pytest.mark.usefixtures("runs_kernels")
def test_the_bits_of_a_sum_over_lanes_do_not_depend_on_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane_sums, "GROUP", 8)
    function, args = ARRAYS["an array"]
    found = []
    for size in (2**14, 2**20):  # parts of 8 or 16 lanes, and all lanes at once
        monkeypatch.setattr(runtime, "_OF_SIMULATOR", size)
        found.append(ns.jit(lambda p, y: function(p, y), mode="cuda")(*args))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_allclose(found[0], ns.jit(function, mode="python")(*args), rtol=1e-10)
