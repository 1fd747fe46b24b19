"""Draws that do not move smoothly with their parameters: an error, also beside another way from the parameter to the cost."""

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.errors import NullGradientError


def loop(step, starts, **options):
    rows, _ = ns.scan(step, outputs_info=starts, n_steps=4, **options)
    return rows


def state(srng, p):
    return loop(lambda s, n: (s * p + n * 1.0, n + srng.poisson(p)), [np.float64(1), np.int64(0)])[0][-1]


def in_a_loop(srng, p):
    return loop(lambda s: s * p + srng.poisson(p), [np.float64(1)])[-1]


def rows_of_a_loop(srng, p):
    s, n = loop(lambda s: (s * p, srng.binomial(9, p)), [np.float64(1), None])
    return s[-1] + np.sum(n) * 1.0


def sequence(srng, p):
    return ns.scan(lambda n, s: s * p + n, srng.poisson(p, size=4), np.float64(1))[0][-1]


REFUSED = {
    "poisson": lambda srng, p: 3 * p + srng.poisson(p),
    "alone": lambda srng, p: srng.poisson(p) * 1.0,
    "bernoulli": lambda srng, p: 3 * p + srng.bernoulli(p),
    "binomial": lambda srng, p: p * srng.binomial(10, p),
    "geometric": lambda srng, p: p + srng.geometric(p) ** 2,
    "nbinom": lambda srng, p: p + srng.negative_binomial(3.0, p),
    "gamma": lambda srng, p: 3 * p + srng.gamma(p),
    "whole gamma": lambda srng, p: 3 * p + srng.gamma(p).astype("int64"),
    "categorical": lambda srng, p: (np.arange(3.0) * p)[srng.categorical(np.stack([p, 1 - p, 0 * p]))],
    "where": lambda srng, p: np.where(srng.bernoulli(p) == 1, p, 2 * p),
    "ifelse": lambda srng, p: nt.ifelse(srng.bernoulli(p) == 1, p, 2 * p),
    "state": state,
    "in a loop": in_a_loop,
    "rows of a loop": rows_of_a_loop,
    "sequence": sequence,
}

TAKEN = {
    "disconnected": (lambda srng, p: p * nt.disconnected_grad(srng.poisson(p)) + p, lambda srng, p: srng.poisson(p) + 1),
    "disconnected index": (
        lambda srng, p: (np.arange(1.0, 3) * p)[nt.disconnected_grad(srng.bernoulli(p))],
        lambda srng, p: 1 + srng.bernoulli(p),
    ),
    "of a constant": (lambda srng, p: p * srng.poisson(4.0), lambda srng, p: srng.poisson(4.0)),
    "compared": (lambda srng, p: 3 * p + (srng.uniform() < p), lambda srng, p: 3.0),
    "unread": (lambda srng, p: loop(lambda s: (s * p, srng.poisson(p)), [np.float64(1), None])[0][-1], lambda srng, p: 4 * p**3),
    "counted and held": (
        lambda srng, p: loop(lambda s, n: (s * p + nt.disconnected_grad(n), n + srng.poisson(0 * p)), [np.float64(1), np.int64(0)])[0][-1],
        lambda srng, p: 4 * p**3,
    ),
    "counted beside": (
        lambda srng, p: loop(lambda s, n: (s * p, n + srng.poisson(p)), [np.float64(1), np.int64(0)])[0][-1],
        lambda srng, p: 4 * p**3,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_reverse_and_forward_refuse(name):
    srng = nt.random.RandomStream(1)
    with pytest.raises(NullGradientError, match=r"disconnected_grad|integers or booleans only"):
        ns.grad(lambda p: REFUSED[name](srng, p))(0.4)
    with pytest.raises(NullGradientError, match="disconnected_grad"):
        ns.jvp(lambda p: REFUSED[name](srng, p), (0.4,), (1.0,))


@pytest.mark.parametrize("name", TAKEN)
def test_what_does_not_come_through_a_draw_counts(name):
    cost, slope = TAKEN[name]
    one, other, third = (nt.random.RandomStream(1) for _ in range(3))
    expected = ns.jit(lambda p: slope(other, p) * 1.0)(0.4)
    assert ns.grad(lambda p: cost(one, p))(0.4) == pytest.approx(expected)
    assert ns.jvp(lambda p: cost(third, p), (0.4,), (1.0,))[1] == pytest.approx(expected)


@pytest.mark.parametrize("cost", [lambda rows: rows[-1], lambda rows: rows.sum()], ids=["last", "sum"])
@pytest.mark.parametrize("more", [lambda total, count: total * 1.5 + count, lambda total, count: total + np.cos(count)])
def test_real_states_that_only_read_counts_drawn_by_earlier_steps(more, cost):
    rng = nt.random.RandomStream(7)

    def f(p):
        def step(total, count, p):
            return more(total, count), rng.poisson(p)

        return cost(ns.scan(step, outputs_info=[1.0, 0], non_sequences=p, n_steps=3, return_updates=False)[0])

    for given in (f, ns.jit(f)):
        with pytest.raises(NullGradientError):
            ns.vjp(given, 3.0)[1](1.0)
    with pytest.raises(NullGradientError):
        ns.grad(f)(3.0)
    with pytest.raises(NullGradientError):
        ns.jvp(f, (3.0,), (1.0,))


def test_real_states_that_read_counts_drawn_without_the_parameter_have_derivatives():
    rng = nt.random.RandomStream(7)

    def f(p):
        def step(total, count, p):
            return total * p + count, rng.poisson(3.0)

        return ns.scan(step, outputs_info=[1.0, 0], non_sequences=p, n_steps=1, return_updates=False)[0][-1]

    assert ns.vjp(f, 3.0)[1](1.0)[0] == 1.0
