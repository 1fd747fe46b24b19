"""No number of a stream tells anything of another one: every two distributions, in one step and in successive ones, in lanes, in calls.

Each sequence of numbers is taken as its ranks u, from 0 to 1, and as functions of these. Their correlations stay within noise.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from random_draws import OF_A_SIZE
from scipy import stats

import numbascan as ns
import numbascan.tensor as nt

MANY = 20_000
NOISE = 6.5  # standard errors; the largest of a million correlations that are 0 is about 5
SINGLE = {name: draw for name, (draw, _) in OF_A_SIZE.items()}


def number(s: Any, name: str) -> Any:
    """One number of a distribution, of vectors the first."""
    drawn = SINGLE[name](s)
    return drawn if drawn.ndim == 0 else drawn[0]


def beside_normals(s: Any, names: Sequence[str] = tuple(SINGLE)) -> list[Any]:
    """A number of each distribution, each with a normal number before it and after it."""
    return [s.normal(), *(drawn for name in names for drawn in (number(s, name), s.normal()))]


def functions(x: Any) -> Iterator[np.ndarray]:
    """Functions of the ranks of numbers, of mean 0 and variance 1: those of period 1 see angles, the last one radii."""
    u = (stats.rankdata(x, axis=0) - 0.5) / len(x)
    for f in (u, *(trig(2 * np.pi * k * u) for k in (1, 2) for trig in (np.cos, np.sin)), stats.norm.ppf(u) ** 2):
        spread = f.std(axis=0)
        yield ((f - f.mean(axis=0)) / np.where(spread > 1e-9, spread, np.inf)).reshape(len(x), -1)


def strongest(one: np.ndarray, other: np.ndarray, is_same: bool = False) -> float:
    """The strongest correlation of functions of columns, in standard errors. is_same: those of a column with itself do not count."""
    f, g = (np.stack(list(functions(columns)), axis=-1) for columns in (one, other))
    n, k, m = f.shape
    found = np.abs(f.reshape(n, -1).T @ g.reshape(n, -1)).reshape(k, m, k, m) / np.sqrt(n)
    if is_same:
        found[np.arange(k), :, np.arange(k)] = 0
    return float(found.max())


def assert_independent(rows: np.ndarray, lags: Sequence[int] = (1, 2, 3)) -> None:
    """Columns, and rows and those that follow."""
    assert strongest(rows, rows, is_same=True) < NOISE
    for lag in lags:
        assert strongest(rows[lag:], rows[:-lag]) < NOISE


def columns(found: Sequence[Any]) -> np.ndarray:
    return np.stack([np.asarray(x, dtype="float64") for x in found], axis=-1)


FEW = ("uniform", "exponential", "bernoulli", "laplace", "lognormal", "cauchy", "categorical", "t", "gamma")
few = functools.partial(beside_normals, names=FEW)


# within a stream ------------------------------------------------------------------------------------------------------


def test_steps():
    srng = nt.random.RandomStream(1)
    assert_independent(columns(ns.scan(lambda: beside_normals(srng))(n_steps=MANY)))


def test_steps_that_draw_an_odd_number_of_times():
    srng = nt.random.RandomStream(2)
    for draws in (
        lambda: (srng.normal(), srng.uniform(), srng.normal()),
        lambda: (srng.exponential(), srng.normal(), srng.bernoulli()),
        lambda: (srng.normal(),),
    ):
        assert_independent(columns(ns.scan(draws)(n_steps=MANY)))


def test_lanes():
    srng = nt.random.RandomStream(3)
    assert_independent(columns(ns.vmap(lambda x: few(srng))(np.zeros(MANY))))


def test_paths_in_lanes():
    """The steps of a lane, the lanes of a step, and what lanes draw before and after their loops."""
    srng = nt.random.RandomStream(4)

    def lane(x: Any) -> Any:
        before = few(srng)
        return ns.scan(lambda: few(srng), n_steps=20, return_updates=False), before, few(srng)

    paths, before, after = ns.vmap(lane)(np.zeros(MANY // 20))
    rows = columns(paths)
    for flat in (rows, rows.swapaxes(0, 1)):
        assert_independent(flat.reshape(-1, rows.shape[-1]), lags=(1, 2))
    outside = np.concatenate([columns(before), columns(after)], axis=-1)
    assert_independent(np.concatenate([rows[:, 0], rows[:, 1], outside], axis=-1))


def test_calls_in_turns():
    """Calls of functions that go on from one state: a number, another one, a step, some numbers."""
    srng = nt.random.RandomStream(5)
    calls = [ns.jit(lambda name=name: number(srng, name)) for name in ("normal", "uniform", "normal", "bernoulli")]
    step = ns.scan(lambda: srng.normal())
    calls += [lambda: step(n_steps=1)[0], ns.jit(lambda: srng.exponential(size=2)[1])]
    rows = np.array([[call() for call in calls] for _ in range(4000)])
    assert_independent(rows)
    mixed = np.array([[calls[k]() for k in order] for order in np.random.default_rng(0).permuted(np.tile(range(6), (4000, 1)), axis=1)])
    assert_independent(mixed)


@pytest.mark.parametrize("name", ["normal", "uniform", "gamma", "exponential"])
def test_single_numbers_and_draws_of_a_size(name):
    srng = nt.random.RandomStream(6)
    draw = SINGLE[name]

    def step() -> list[Any]:
        sized = [draw(srng, size=size) for size in ((3,), (9,))]
        return [srng.normal(), draw(srng), *sized[0], draw(srng), srng.normal(), *(sized[1][k] for k in range(9)), srng.uniform()]

    assert_independent(columns(ns.scan(step)(n_steps=MANY)))


# between streams ------------------------------------------------------------------------------------------------------

SEEDS = (0, 1, 2, 3, 2**32 - 1, 2**32, 2**63, 2**64 - 1)


def test_streams_of_neighbouring_seeds():
    srng = nt.random.RandomStream(0)
    path = ns.scan(lambda: (srng.normal(), srng.uniform(), srng.normal(), srng.exponential(), srng.gamma(0.7), srng.bernoulli()))
    rows = []
    for seed in SEEDS:
        srng.seed(seed)
        rows.append(columns(path(n_steps=MANY)))
    assert_independent(np.concatenate(rows, axis=-1))


def test_states_of_one_stream():
    srng = nt.random.RandomStream(7)
    arrays = [draw(size=MANY) for _ in range(4) for draw in (srng.normal, srng.uniform)]
    paths, _ = ns.scan(lambda: (srng.normal(), srng.uniform()), n_steps=MANY)
    others, _ = ns.scan(lambda: (srng.uniform(), srng.normal()), n_steps=MANY)
    assert_independent(columns(ns.function([], [*arrays, *paths, *others])()))


def test_keys_of_loops_in_steps():
    """The first numbers that the loops of successive steps draw, beside the words of their keys' counters."""
    srng = nt.random.RandomStream(8)

    def step() -> list[Any]:
        inner = [ns.scan(lambda: (srng.normal(), srng.uniform()), n_steps=2, return_updates=False) for _ in range(2)]
        return [srng.uniform(), srng.normal(), *(path[k] for pair in inner for path in pair for k in range(2))]

    assert_independent(columns(ns.scan(step)(n_steps=MANY)))


# what follows -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", ["one by one", "as an array"])
def test_neighbouring_normal_numbers_are_independent(draw):
    """In an array each radius and angle gives two numbers: their squares, signs and tails, too."""
    srng = nt.random.RandomStream(9)
    one_by_one, array = ns.scan(lambda: srng.normal()), ns.jit(lambda: srng.normal(size=1_000_000))
    pairs = (one_by_one(n_steps=1_000_000) if draw == "one by one" else array()).reshape(-1, 2)
    grid = stats.norm.cdf(pairs) * 50
    counts = np.histogram2d(*grid.T, bins=50, range=[[0, 50]] * 2)[0]
    assert stats.chisquare(counts.reshape(-1)).pvalue > 1e-3
    far = np.abs(pairs) > 2.5
    expected = stats.norm.sf(2.5) ** 2 * 4 * len(pairs)
    assert stats.binomtest(int(far.all(axis=1).sum()), len(pairs), expected / len(pairs)).pvalue > 1e-3


@pytest.mark.parametrize("order", ["normal first", "uniform first"])
def test_a_metropolis_chain_has_the_mean_and_the_variance_of_its_law(order):
    srng = nt.random.RandomStream(10)

    @ns.scan
    def chain(x):
        if order == "normal first":
            z, u = srng.normal(), srng.uniform()
        else:
            u, z = srng.uniform(), srng.normal()
        y = x + z
        return np.where(u < np.exp((x * x - y * y) / 2), y, x)

    x = chain(outputs_info=0.0, n_steps=400_000)
    assert abs(x.mean()) < 0.03
    assert x.var() == pytest.approx(1.0, abs=0.04)
    assert (x > 0).mean() == pytest.approx(0.5, abs=0.015)


def test_a_walk_of_two_kinds_of_numbers_spreads_as_it_should():
    """The variance of a sum of normal and exponential numbers is the sum of theirs, over steps and over lanes."""
    srng = nt.random.RandomStream(11)
    step = lambda x: x + srng.normal() + srng.exponential() - 1  # noqa: E731
    last = ns.vmap(lambda x: ns.scan(step, outputs_info=x, n_steps=50, return_updates=False)[-1])(np.zeros(MANY))
    assert last.var() == pytest.approx(100, rel=0.06)
