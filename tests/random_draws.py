"""Every distribution, and every place where a stream draws: what the tests of words and of dependence have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import numbascan as ns
import numbascan.tensor as nt

Stream = nt.random.RandomStream
Draw = Callable[[Any], Any]  # of a stream

FLOATS, WHOLE = ("float64", "float32"), ("int64", "int32")
UNBOUNDED = WHOLE[:1]  # int32 does not hold every number of theirs
P = np.array([0.2, 0.5, 0.3])
OF_A_SIZE: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "uniform": (lambda s, **k: s.uniform(-1.0, 2.0, **k), FLOATS),
    "normal": (lambda s, **k: s.normal(0.5, 2.0, **k), FLOATS),
    "lognormal": (lambda s, **k: s.lognormal(0.1, 0.5, **k), FLOATS),
    "standard_normal": (lambda s, **k: s.standard_normal(**k), FLOATS),
    "halfnormal": (lambda s, **k: s.halfnormal(0.5, 2.0, **k), FLOATS),
    "exponential": (lambda s, **k: s.exponential(2.0, **k), FLOATS),
    "gumbel": (lambda s, **k: s.gumbel(0.5, 2.0, **k), FLOATS),
    "pareto": (lambda s, **k: s.pareto(3.0, 2.0, **k), FLOATS),
    "triangular": (lambda s, **k: s.triangular(-1.0, 0.5, 2.0, **k), FLOATS),
    "laplace": (lambda s, **k: s.laplace(0.5, 2.0, **k), FLOATS),
    "logistic": (lambda s, **k: s.logistic(0.5, 2.0, **k), FLOATS),
    "cauchy": (lambda s, **k: s.cauchy(0.5, 2.0, **k), FLOATS),
    "weibull": (lambda s, **k: s.weibull(1.7, 2.0, **k), FLOATS),
    "gamma": (lambda s, **k: s.gamma(0.7, 2.0, **k), FLOATS),
    "invgamma": (lambda s, **k: s.invgamma(3.0, 2.0, **k), FLOATS),
    "vonmises": (lambda s, **k: s.vonmises(3.0, 1.5, **k), FLOATS),
    "wald": (lambda s, **k: s.wald(2.0, 3.0, **k), FLOATS),
    "chisquare": (lambda s, **k: s.chisquare(5, **k), FLOATS),
    "t": (lambda s, **k: s.t(4.0, **k), FLOATS),
    "beta": (lambda s, **k: s.beta(0.5, 2.5, **k), FLOATS),
    "dirichlet": (lambda s, **k: s.dirichlet(P, **k), FLOATS),
    "multivariate_normal": (lambda s, **k: s.multivariate_normal(P, np.diag(P), **k), FLOATS),
    "bernoulli": (lambda s, **k: s.bernoulli(0.5, **k), WHOLE),
    "binomial": (lambda s, **k: s.binomial(20, 0.3, **k), WHOLE),
    "binomial by rejection": (lambda s, **k: s.binomial(300, 0.6, **k), WHOLE),
    "hypergeometric": (lambda s, **k: s.hypergeometric(30, 20, 12, **k), WHOLE),
    "hypergeometric by rejection": (lambda s, **k: s.hypergeometric(300, 200, 120, **k), WHOLE),
    "poisson": (lambda s, **k: s.poisson(3.3, **k), UNBOUNDED),
    "poisson by rejection": (lambda s, **k: s.poisson(300.0, **k), UNBOUNDED),
    "negative_binomial": (lambda s, **k: s.negative_binomial(3.5, 0.2, **k), UNBOUNDED),
    "geometric": (lambda s, **k: s.geometric(0.1, **k), UNBOUNDED),
    "integers": (lambda s, **k: s.integers(3 * 2**61, **k), WHOLE[:1]),  # one word in four is refused
    "categorical": (lambda s, **k: s.categorical(P, **k), WHOLE),
    "multinomial": (lambda s, **k: s.multinomial(30, P, **k), WHOLE),
    "choice": (lambda s, size=None, **k: s.choice(7, size=size), WHOLE[:1]),
    "choice by probability": (lambda s, size=None, **k: s.choice(3, size=size, p=P), WHOLE[:1]),
}
OF_ROWS: dict[str, Draw] = {
    "choice without replacement": lambda s: s.choice(7, size=3, replace=False),
    "choice by probability, without replacement": lambda s: s.choice(3, size=2, replace=False, p=P),
    "permutation": lambda s: s.permutation(20),
    "permutation of rows": lambda s: s.permutation(np.arange(6.0).reshape(3, 2)),
}
SIZES = (None, (1,), (3,), (9,), (3, 7), (40,), (2, 20))  # a number; element by element; as a whole; by a loop


def every_draw(names: Sequence[str] = tuple(OF_A_SIZE), sizes: Sequence[Any] = SIZES) -> list[Draw]:
    """The draws of each distribution, size and dtype."""
    draws: list[Draw] = []
    for name in names:
        draw, dtypes = OF_A_SIZE[name]
        draws += [lambda s, draw=draw, size=size, dtype=dtype: draw(s, size=size, dtype=dtype) for size in sizes for dtype in dtypes]
    return draws


# places ---------------------------------------------------------------------------------------------------------------
# each takes a stream, draws and a mode, runs what draws them more than once, and gives all numbers


def _each(s: Stream, draws: Sequence[Draw]) -> list[Any]:
    return [draw(s) for draw in draws]


def graph(s: Stream, draws: Sequence[Draw], mode: str | None) -> list[Any]:
    """Places of their own in a graph."""
    run = ns.function([], _each(s, draws), updates=s.updates(), mode=mode)
    return [*run(), *run()]


def steps(s: Stream, draws: Sequence[Draw], mode: str | None) -> list[Any]:
    """Steps, by a function of a graph."""
    paths, updates = ns.scan(lambda: _each(s, draws), n_steps=5)
    run = ns.function([], paths, updates=updates, mode=mode)
    return [*run(), *run()]


def lanes(s: Stream, draws: Sequence[Draw], mode: str | None) -> list[Any]:
    """Lanes of vmap and of map."""
    mapped = ns.vmap(ns.jit(lambda x: _each(s, draws), mode=mode))
    of_map = ns.jit(lambda x: ns.map(lambda row: _each(s, draws), x)[0], mode=mode)
    return [*mapped(np.ones(3)), *of_map(np.ones(2)), *mapped(np.ones(1)), *of_map(np.ones(4))]


def nested(s: Stream, draws: Sequence[Draw], mode: str | None) -> list[Any]:
    """Loops in steps and in lanes, two in one step, and a loop in a loop in a step."""

    def inner(k: int) -> Any:
        return ns.scan(lambda: _each(s, draws), n_steps=k, return_updates=False)

    def step(x: Any) -> Any:
        before = _each(s, draws)
        two = [*inner(2), *ns.vmap(lambda y: _each(s, draws))(nt.ones(2))]
        deep = ns.scan(lambda: inner(2), n_steps=2, return_updates=False)
        return [*before, *two, s.uniform(), *deep]

    stepped = ns.jit(lambda x: ns.scan(step, sequences=x, return_updates=False), mode=mode)
    mapped = ns.jit(lambda x: ns.vmap(step)(x), mode=mode)
    return [*stepped(np.ones(2)), *mapped(np.ones(2)), *stepped(np.ones(1))]


def turns(s: Stream, draws: Sequence[Draw], mode: str | None) -> list[Any]:
    """Functions that go on from one state, in turn, and a graph between them."""

    @ns.scan(mode=mode)
    def path() -> Any:
        return _each(s, draws)

    @ns.scan(mode=mode)
    def until(x: Any) -> Any:
        return [x + 1, *_each(s, draws)], ns.until(x >= 2)

    numbers, one = ns.jit(lambda: _each(s, draws), mode=mode), ns.jit(lambda: s.uniform(), mode=mode)
    place = ns.function([], _each(s, draws), updates=s.updates(), mode=mode)
    found: list[Any] = []
    for n_steps in (3, 4, 2):
        found += [*numbers(), *path(n_steps=n_steps), one(), *until(outputs_info=[0, *[None] * len(draws)], n_steps=9), *place()]
    return found


PLACES = (graph, steps, lanes, nested, turns)
