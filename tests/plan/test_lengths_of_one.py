"""Slices that are at most one long, as `x[:1]`, broadcast where the length of x is open; so do their gradients, tangents and states."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from wide import wide

import numbascan as ns
import numbascan.tensor as nt

RNG = np.random.default_rng(14)
ROW, OTHER, MATRIX = RNG.normal(size=20), RNG.normal(size=20), 3 + RNG.normal(size=(20, 30))
SHORT = [slice(1), slice(-1, None), slice(3, 4), slice(-3, -2), slice(0, 1, 2), slice(4, 6, 2)]


def drawn(chance: random.Random) -> Callable[..., Any]:
    """A function of a row, another one and a matrix, in plain NumPy: sums of what broadcasts."""
    seed = chance.getrandbits(32)

    def f(row: Any, other: Any, matrix: Any) -> Any:
        chance, total = random.Random(seed), 0.0 * matrix

        def short(x: Any) -> Any:
            return x[(chance.choice(SHORT), *chance.choice(((), (chance.choice(SHORT),)))[: x.ndim - 1])]

        for _ in range(5):
            x = chance.choice((row, other))
            makers = (
                lambda total, x: total * 0.5 + short(x) * np.sin(x[:, None]),
                lambda total, x: total - 0.25 * (x - short(x))[:, None],
                lambda total, x: np.where(short(matrix) > 3, total, x[:, None]),
                lambda total, x: total + np.cos(short(x)) * short(matrix) + matrix[:, chance.choice(SHORT)],
                lambda total, x: total + np.broadcast_to(short(x), total.shape),
                lambda total, x: np.maximum(total, short(total)) / (2 + np.abs(short(matrix) * x[:, None])),
            )
            total = chance.choice(makers)(total, x)
        return total

    return f


@pytest.mark.parametrize("seed", wide(range(40), first=2))
def test_what_is_at_most_one_long_broadcasts_as_in_numpy(seed: int) -> None:
    f = drawn(random.Random(seed))
    np.testing.assert_allclose(ns.jit(f)(ROW, OTHER, MATRIX), f(ROW, OTHER, MATRIX), rtol=1e-12)


@pytest.mark.parametrize("seed", wide(range(100, 120), first=1))
def test_its_gradient_is_a_sum_and_its_tangent_the_same_for_all(seed: int) -> None:
    f = drawn(random.Random(seed))
    ns.verify_grad(f, [ROW, OTHER, MATRIX])


def towards_the_last(u: Any, fixed: Any) -> Any:
    return u - 0.1 * (u - u[-1:]) + 0.01 * fixed


def end(u: Any, b: Any) -> Any:
    """States, non-sequences, lanes, and choices."""
    path = ns.scan(towards_the_last, outputs_info=u, non_sequences=b[:1], n_steps=3, return_updates=False)
    lanes = ns.vmap(lambda v: v * v[-1:])(path)
    return nt.ifelse(u[0] > b[0], lanes - path[:1], lanes * b[:1]).sum(axis=0)


def test_states_and_lanes() -> None:
    def by_hand(u: Any, b: Any) -> Any:
        rows = []
        for _ in range(3):
            u = towards_the_last(u, b[:1])
            rows.append(u)
        path = np.array(rows)
        lanes = path * path[:, -1:]
        return (lanes - path[:1]).sum(axis=0) if ROW[0] > b[0] else (lanes * b[:1]).sum(axis=0)

    for b in (OTHER + 9, OTHER - 9):
        np.testing.assert_allclose(ns.jit(end)(ROW, b), by_hand(ROW, b), rtol=1e-12)
    ns.verify_grad(end, [ROW, OTHER + 9])


def test_second_derivatives() -> None:
    def slope(a: Any) -> Any:
        return np.sum(ns.grad(lambda a: np.sum(np.sin(a * a[:1]) / (3 + a[-1:])))(a) ** 2)

    found, wanted = (ns.jit(ns.grad(slope), mode=mode)(ROW) for mode in (None, "python"))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_parts_are_set_to_one_value() -> None:
    def f(x: Any, y: Any) -> Any:
        return nt.inc_subtensor(nt.set_subtensor(x[2:7], y[-1:])[5:], 2 * y[:1])

    wanted = ROW.copy()
    wanted[2:7] = OTHER[-1:]
    wanted[5:] += 2 * OTHER[:1]
    np.testing.assert_array_equal(ns.jit(f)(ROW, OTHER), wanted)
    ns.verify_grad(f, [ROW, OTHER])


def test_where_there_is_no_element_nothing_is_read() -> None:
    """Of no elements the first one is none; an empty slice does not stretch."""

    @ns.jit
    def f(x: Any, k: Any) -> Any:
        rest = x[k:]
        return rest - rest[:1], np.sin(rest[-1:]) * rest

    @ns.jit
    def beyond(x: Any, y: Any, k: Any) -> Any:
        return x[k:][3:4] + y

    for k in (3, 19, 20):
        rest = ROW[k:]
        for found, wanted in zip(f(ROW, k), (rest - rest[:1], np.sin(rest[-1:]) * rest), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-14)
    np.testing.assert_array_equal(beyond(ROW, OTHER, 16), ROW[19] + OTHER)
    with pytest.raises(ValueError, match="do not broadcast: dimension 0 is 20 in one and 0 in another"):
        beyond(ROW, OTHER, 17)
    np.testing.assert_array_equal(beyond(ROW, OTHER[:0], 17), [])
