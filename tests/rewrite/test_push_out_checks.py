"""Checks of a result's dimensions are made behind the loop."""

import numpy as np
import pytest
from rewrite.graphs import after, graph_of, loops

import numbascan as ns
import numbascan.tensor as nt
from numbascan.rewrite.merge_inouts import merge_inouts
from numbascan.rewrite.push_out_checks import push_out_checks

x, h, A, B = nt.dmatrix("x"), nt.dvector("h"), nt.dmatrix("A"), nt.dmatrix("B")


def network(x, h, A, B):
    return ns.scan(lambda x, h, A, B: np.tanh(x @ A + h @ B), x, h, [A, B], return_updates=False).sum()


def test_gradients_of_two_products_are_one_trace():
    graph = graph_of([x, h, A, B], ns.grad(network(x, h, A, B), [A, B]))
    assert checks(graph) == 4  # of A, B, and twice of what their factors are kept as
    behind = after(push_out_checks, graph)
    assert checks(behind) == 0
    assert len(loops(after(merge_inouts, behind))[-1].traces) == len(loops(behind)[-1].traces) - 1


def checks(graph):
    """How many results of the last loop are checks of another value."""
    return sum(trace.write.op.name == "sum_to" for trace in loops(graph)[-1].traces)


def test_values_stay():
    rng = np.random.default_rng(2)
    arguments = [rng.normal(size=size) for size in ((7, 5), 4, (5, 4), (4, 4))]
    slopes = ns.grad(network(x, h, A, B), [x, h, A, B])
    found = [ns.function([x, h, A, B], slopes, mode=ns.Mode(without=without))(*arguments) for without in ((), ["push_out_checks"])]
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def test_what_does_not_fit_is_still_refused():
    slopes = ns.function([x, h, A, B], ns.grad(network(x, h, A, B), [A, B]))
    with pytest.raises(ValueError, match=r"3 in one and 4 in another.* in the step of scan"):
        slopes(np.ones((7, 5)), np.ones(4), np.ones((5, 3)), np.ones((4, 4)))
