"""A sum over the steps is taken in the loop."""

import numpy as np
from rewrite.graphs import after, assert_same, graph_of, loops

import numbascan as ns
import numbascan.tensor as nt
from numbascan.rewrite.sum_in_loop import sum_in_loop

x = nt.dvector("x")


def test_a_sum_over_the_steps_is_taken_in_the_loop():
    rows = ns.map(np.sin, x, return_updates=False)
    (loop,) = loops(after(sum_in_loop, graph_of([x], [rows.sum()])))
    assert (len(loop.traces), len(loop.carries)) == (0, 1)


def test_rows_that_are_read_besides_their_sum_stay():
    rows = ns.map(np.sin, x, return_updates=False)
    graph = graph_of([x], [rows.sum(), rows])
    assert after(sum_in_loop, graph) == graph


def likelihood(x, a):
    """A sum of rows, a sum over two axes, one that keeps its axes, and an early end."""
    states, rows, table = ns.scan(
        lambda u, s: ((np.tanh(a * s + u), s * u, np.outer(np.stack([s, u]), np.stack([u, a * s, s]))), ns.until(s > 0.9)),
        sequences=x,
        outputs_info=[0.25, None, None],
        return_updates=False,
    )
    return states.sum() + 3 * rows.sum() + (table.sum(axis=(0, 1), keepdims=True) ** 2).sum() + table.sum(axis=(0, 2))[1]


def test_values_stay():
    assert_same(likelihood, np.random.default_rng(3).normal(size=40) * 0.4, np.float64(0.7), rewrite=sum_in_loop)


def test_single_precision_is_added_in_double():
    x = np.full(100_000, 0.1, "float32")
    f = ns.jit(lambda x: ns.map(lambda u: u * np.float32(1), x, return_updates=False).sum())
    assert f(x).dtype == np.float32
    np.testing.assert_allclose(f(x), np.sum(x, dtype="float64"), rtol=1e-6)
