"""Rewrites of loops: the printed graph before and after, and the same numbers with and without."""

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.ir.graph import Graph, close
from numbascan.ir.node import Node
from numbascan.ir.ports import SCAN, loop_spec
from numbascan.rewrite.merge_traces import merge_traces
from numbascan.rewrite.pipeline import PASSES
from numbascan.rewrite.sum_in_loop import sum_in_loop


def loops(outputs: tuple[Node, ...]) -> list[Node]:
    from numbascan.ir.graph import toposort

    return [node for node in toposort(outputs) if node.op is SCAN]


def graph_of(inputs, outputs) -> Graph:
    return close([variable.node for variable in inputs], [output.node for output in outputs])


def test_loops_of_one_recurrence_become_one():
    x = nt.dscalar("x")
    states = ns.scan(lambda s: s * x, outputs_info=1.0, n_steps=4, return_updates=False)
    again, squares = ns.scan(lambda s: (s * x, s * s), outputs_info=[1.0, None], n_steps=4, return_updates=False)
    graph = graph_of([x], [states[-1] + again[0], squares])
    assert len(loops(graph.outputs)) == 2
    (loop,) = loops(merge_traces(graph.outputs))
    assert len(loop_spec(loop).traces) == 1
    assert len(loop_spec(loop).states) == 1


def test_loops_of_different_recurrences_stay_apart():
    x = nt.dscalar("x")
    rows = [ns.scan(lambda s, f=f: f(s * x), outputs_info=1.0, n_steps=4, return_updates=False)[-1] for f in (np.sin, np.cos)]
    graph = graph_of([x], rows)
    assert len(loops(merge_traces(graph.outputs))) == 2


def test_a_sum_over_the_steps_is_taken_in_the_loop():
    x = nt.dvector("x")
    rows = ns.map(np.sin, x, return_updates=False)
    graph = graph_of([x], [rows.sum()])
    (loop,) = loops(sum_in_loop(graph.outputs))
    assert loop_spec(loop).traces == ()
    assert len(loop_spec(loop).carries) == 1


def test_rows_that_are_read_besides_their_sum_stay():
    x = nt.dvector("x")
    rows = ns.map(np.sin, x, return_updates=False)
    graph = graph_of([x], [rows.sum(), rows])
    assert sum_in_loop(graph.outputs) == graph.outputs


def likelihood(x, a):
    """A sum of rows, a sum over two axes, one that keeps its axes, and an early end."""
    states, rows, table = ns.scan(
        lambda u, s: ((np.tanh(a * s + u), s * u, np.outer(np.stack([s, u]), np.stack([u, a * s, s]))), ns.until(s > 0.9)),
        sequences=x,
        outputs_info=[0.25, None, None],
        return_updates=False,
    )
    return states.sum() + 3 * rows.sum() + (table.sum(axis=(0, 1), keepdims=True) ** 2).sum() + table.sum(axis=(0, 2))[1]


X = np.random.default_rng(3).normal(size=40) * 0.4


@pytest.mark.parametrize("without", [(), *((one.__name__,) for one in PASSES), tuple(one.__name__ for one in PASSES)])
def test_values_and_gradients_are_the_same_with_and_without_a_rewrite(without):
    plain = ns.jit(ns.value_and_grad(likelihood, (0, 1)).__wrapped__, mode="python")(X, 0.7)
    found = ns.jit(ns.value_and_grad(likelihood, (0, 1)).__wrapped__, mode=ns.Mode(without=without))(X, 0.7)
    for a, b in zip((found[0], *found[1]), (plain[0], *plain[1]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_single_precision_is_added_in_double():
    x = np.full(100_000, 0.1, "float32")
    f = ns.jit(lambda x: ns.map(lambda u: u * np.float32(1), x, return_updates=False).sum())
    assert f(x).dtype == np.float32
    np.testing.assert_allclose(f(x), np.sum(x, dtype="float64"), rtol=1e-6)
