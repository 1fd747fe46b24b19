"""Slices, held gradients and unrolled loops are those of JAX itself, on random arrays and places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.lax as lax
from numbascan.front.instead_of_jax import INSTEAD

jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)

SIZES = (2, 3, 1)
PROGRAMS: dict[str, Callable[..., Any]] = {
    "dynamic_slice": lambda lax, x, y, i: lax.dynamic_slice(x, i, SIZES),
    "dynamic_slice of zeros": lambda lax, x, y, i: lax.dynamic_slice(x, i, (0, 2, 1)),
    "dynamic_update_slice": lambda lax, x, y, i: lax.dynamic_update_slice(x, y, i),
    "negative starts": lambda lax, x, y, i: lax.dynamic_slice(x, i, SIZES, allow_negative_indices=[True, True, True]),
    "dynamic_slice_in_dim": lambda lax, x, y, i: lax.dynamic_slice_in_dim(x, i[0], 2, 1),
    "the first axis": lambda lax, x, y, i: lax.dynamic_slice_in_dim(x, i[0], 3),
    "dynamic_index_in_dim": lambda lax, x, y, i: lax.dynamic_index_in_dim(x, i[2], 2),
    "an axis less": lambda lax, x, y, i: lax.dynamic_index_in_dim(x, i[1], -2, keepdims=False),
    "dynamic_update_slice_in_dim": lambda lax, x, y, i: lax.dynamic_update_slice_in_dim(x, y, i[1], 1),
    "dynamic_update_index_in_dim": lambda lax, x, y, i: lax.dynamic_update_index_in_dim(x, x[:, 0] * 2, i[1], 1),
    "an update with its axis": lambda lax, x, y, i: lax.dynamic_update_index_in_dim(x, x[:1] * 2, i[0], 0),
    "stop_gradient": lambda lax, x, y, i: x**2 * lax.stop_gradient({"x": x})["x"],
    "unroll of scan": lambda lax, x, y, i: lax.scan(lambda c, r: (c * 0.5 + r, c * r), x[0], x, unroll=2),
    "all unrolled": lambda lax, x, y, i: lax.scan(lambda c, r: (c * 0.5 + r, c * r), x[0], x, None, True, True),
    "unroll of fori_loop": lambda lax, x, y, i: lax.fori_loop(0, 4, lambda k, c: c * 0.5 + x, x, unroll=3),
    "a buffer": lambda lax, x, y, i: lax.fori_loop(
        0,
        5,
        lambda k, c: lax.dynamic_update_index_in_dim(c, lax.dynamic_index_in_dim(c, k + i[0], keepdims=False) * 0.5, k, 0),
        x,
    ),
}
ARRAYS = np.random.default_rng(7)
CASES = [
    (ARRAYS.normal(size=(4, 5, 3)), ARRAYS.normal(size=SIZES), ARRAYS.integers(-8, 9, 3)),
    (ARRAYS.normal(size=(20, 18, 17)), ARRAYS.normal(size=SIZES), ARRAYS.integers(-25, 26, 3)),
    (ARRAYS.normal(size=(3, 3, 1)), ARRAYS.normal(size=SIZES), np.array([99, -99, 1])),
]


def leaves(results: Any) -> list[Any]:
    return list(results) if isinstance(results, tuple) else [results]


def same(ours: Any, theirs: Any) -> None:
    for one, other in zip(leaves(ours), leaves(theirs), strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-13)


def cost(name: str, of: Any) -> Callable[..., Any]:
    return lambda x, y, i: sum((part * part).sum() for part in leaves(PROGRAMS[name](of, x, y, i)))


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("k", range(len(CASES)))
def test_values_are_those_of_jax(name: str, k: int) -> None:
    x, y, i = CASES[k]
    theirs = PROGRAMS[name](jax.lax, jax.numpy.asarray(x), jax.numpy.asarray(y), jax.numpy.asarray(i))
    same(PROGRAMS[name](lax, x, y, i), theirs)
    same(ns.jit(lambda x, y, i: PROGRAMS[name](lax, x, y, i), mode="python")(x, y, i), theirs)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("k", [0, 1])
def test_gradients_are_those_of_jax(name: str, k: int) -> None:
    x, y, i = CASES[k]
    ours = ns.jit(ns.grad(cost(name, lax)), mode="python")
    same(ours(x, y, i), jax.grad(cost(name, jax.lax))(x, y, jax.numpy.asarray(i)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_lanes_are_those_of_jax(name: str) -> None:
    x, y, _ = CASES[0]
    starts = np.random.default_rng(3).integers(-9, 10, (6, 3))
    theirs = jax.vmap(lambda x, y, i: PROGRAMS[name](jax.lax, x, y, i), in_axes=(None, None, 0))(x, y, starts)
    same(ns.vmap(lambda x, y, i: PROGRAMS[name](lax, x, y, i), in_axes=(None, None, 0))(x, y, starts), theirs)


def test_advice_is_for_names_of_jax() -> None:
    assert not [name for name in INSTEAD if not hasattr(jax.lax, name) and not hasattr(jax, name)]


def test_functions_of_jax_that_are_missing_have_advice() -> None:
    names = [name for name in dir(jax.lax) if not name.startswith("_") and not name.endswith("_p")]
    missing = [name for name in names if not hasattr(lax, name)]
    assert len([name for name in missing if name in INSTEAD]) > 0.8 * len(missing)
