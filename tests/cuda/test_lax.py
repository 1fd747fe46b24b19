"""Loops and choices under JAX's names give on the GPU what they give in plain NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.lax as lax


def ended(x: Any, limit: Any) -> Any:
    return lax.while_loop(lambda s: s[0] < limit, lambda s: (s[0] * 1.5, s[1] + 1), (x, 0))


def chosen(x: Any, k: Any) -> Any:
    return lax.fori_loop(0, k, lambda i, s: lax.switch(i, [np.sin, lambda s: s * 2, lambda s: s - 1], s), x)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "lanes that end by themselves": (ns.vmap(ended), (np.linspace(0.5, 9.0, 20), np.linspace(8.0, 5.0, 20))),
    "their gradients": (ns.vmap(ns.grad(lambda x, limit: ended(x, limit)[0])), (np.linspace(0.5, 9.0, 20), np.linspace(8.0, 5.0, 20))),
    "lanes that choose": (ns.vmap(chosen), (np.linspace(-1, 1, 12), np.arange(12) % 5)),
    "a scan from the end": (lambda xs: lax.scan(lambda c, x: (c * 0.5 + x, c), 0.0, xs, reverse=True), (np.linspace(0, 1, 30),)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_under_the_names_of_jax(name: str, same: Callable[..., Any]) -> None:
    program, args = PROGRAMS[name]
    same(program, *args)
