"""Truncated gradients keep the rows that the steps undone read, however many steps there are."""

import numpy as np
import pytest

import numbascan as ns

WEIGHTS = np.random.default_rng(1).normal(size=(20, 20)) / 6


def scanned(step, us, start, w, k, **options):
    return ns.scan(step, us, start, w, truncate_gradient=k, return_updates=False, **options)


def number(w, us, k):
    return scanned(lambda u, x, w: np.tanh(w * x + u), us, 0.3, w, k)[-1]


def row(w, us, k):
    return scanned(lambda u, x, w: np.sin(w * x + u), us, np.linspace(0, 1, 40), w, k)[-1].sum()


def taps(w, us, k):
    start = {"initial": np.linspace(0, 1, 120).reshape(3, 40), "taps": [-3, -1]}
    return scanned(lambda u, third, one, w: np.sin(w * third) * one + u, us, start, w, k)[-1].sum()


def numbers_of_two_taps(w, us, k):
    start = {"initial": np.array([0.1, 0.2]), "taps": [-2, -1]}
    return scanned(lambda u, two, one, w: np.sin(w * two) + 0.5 * one + u, us, start, w, k)[-1]


def products(w, us, k):
    def step(u, x, w):
        h = np.tanh(w * (x @ WEIGHTS) + u)
        return h, (h * x).sum()

    states, sums = scanned(step, us, [np.linspace(0, 1, 20), None], w, k)
    return states[-1].sum() + sums[-1] + sums[-4]


def until(w, us, k):
    def step(u, x, w):
        return np.cos(w * x + u), ns.until((u > 0.999) | (x.sum() > 1e6))

    return scanned(step, us, np.linspace(0, 1, 40), w, k)[-1].sum()


def the_whole_path_as_well(w, us, k):
    path = scanned(lambda u, x, w: np.cos(w * x + u), us, np.linspace(0, 1, 40), w, k)
    return path[-1].sum() + (path[3:] ** 2).mean()


def all_numbers_as_well(w, us, k):
    path = scanned(lambda u, x, w: np.cos(w * x + u), us, 0.3, w, k)
    return path[-1] + (path[3:] ** 2).mean()


def some_of_the_last_rows(w, us, k):
    path = scanned(lambda u, x, w: np.cos(w * x + u), us, np.linspace(0, 1, 40), w, k)
    return path[-30:].sum() * path[-1, 3]


def lanes(w, us, k):
    paths = ns.vmap(lambda start: scanned(lambda u, x, w: np.tanh(w * x + u), us, start, w, k)[-1])(np.linspace(0, 1, 20))
    return paths.sum()


COSTS = [number, row, taps, numbers_of_two_taps, products, until, the_whole_path_as_well, all_numbers_as_well, some_of_the_last_rows, lanes]


@pytest.mark.parametrize("k", [3, 25])
@pytest.mark.parametrize("cost", COSTS, ids=lambda cost: cost.__name__)
def test_as_many_rows_are_kept_as_are_read(cost, k):
    gradient, plain = (ns.jit(ns.grad(lambda w, us: cost(w, us, k)), mode=mode) for mode in (None, "python"))
    memory = []
    for n in (4, 30, 600, 1_200):
        us = np.random.default_rng(n).uniform(-1, 1, size=n)
        if n < 1_200:
            np.testing.assert_allclose(gradient(0.8, us), plain(0.8, us), rtol=1e-10, err_msg=f"{n} steps")
        else:
            gradient(0.8, us)
        memory.append(gradient.memory().total)
    if not cost.__name__.endswith("as_well"):
        assert memory[-1] == memory[-2]


@pytest.mark.parametrize("cost", [number, taps], ids=lambda cost: cost.__name__)
def test_the_truncated_gradient_is_differentiated_again(cost):
    us = np.random.default_rng(0).uniform(-1, 1, size=40)
    twice, plain = (ns.jit(ns.grad(ns.grad(lambda w: cost(w, us, 5))), mode=mode) for mode in (None, "python"))
    np.testing.assert_allclose(twice(0.8), plain(0.8), rtol=1e-9)
