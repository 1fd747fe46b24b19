"""What the forward loop keeps for the backward one."""

import numpy as np
import pytest
from rewrite.graphs import graph_of, loops

import numbascan as ns
import numbascan.tensor as nt

x, h, A, B = nt.dmatrix("x"), nt.dvector("h"), nt.dmatrix("A"), nt.dmatrix("B")


def joined(z, u):
    return z + u


def apart(z, u):
    return z * np.exp(-u * u)


def through(one, x, h, A, B):
    def step(x, h, A, B):
        z = one(x @ A, h @ B)
        return np.sin(z) * np.exp(-z * z)

    return ns.scan(step, x, h, [A, B], return_updates=False).sum()


@pytest.mark.parametrize("one, n_kept", [(joined, 1), (apart, 2)])
def test_of_products_that_are_needed_for_their_sum_alone_the_sum_is_kept(one, n_kept):
    graph = graph_of([x, h, A, B], ns.grad(through(one, x, h, A, B), [A, B]))
    assert len(loops(graph)[0].traces) == n_kept


@pytest.mark.parametrize("one", [joined, apart])
def test_gradients_from_what_is_kept(one):
    rng = np.random.default_rng(6)
    arguments = [rng.normal(size=size) for size in ((9, 5), 4, (5, 4), (4, 4))]
    ns.verify_grad(lambda *given: through(one, *given), arguments)
