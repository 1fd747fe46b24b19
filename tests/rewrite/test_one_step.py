"""A loop of one step leaves no loop."""

import numpy as np
import pytest
from rewrite.graphs import after, assert_same, graph_of, loops, ops

import numbascan as ns
import numbascan.tensor as nt
from numbascan.rewrite.one_step import one_step


def f(x, h, k):
    """As many steps as x has rows."""

    def step(x, a, b, c, k):
        return [np.tanh(a + x), b * k + c, x * c], ns.until(a[0] > 9)

    infos = [h, {"initial": np.stack([h, 2 * h]), "taps": [-2, -1]}, None]
    return ns.scan(step, x, infos, k, return_updates=False)


@pytest.mark.parametrize("n_rows, n_loops", [(1, 0), (2, 1)])
def test_a_loop_over_one_row_is_its_step(n_rows, n_loops):
    x, h, k = nt.tensor("float64", shape=(n_rows, 3), name="x"), nt.dvector("h"), nt.dscalar("k")
    found = after(one_step, graph_of([x, h, k], f(x, h, k)))
    assert len(loops(found)) == n_loops
    assert ("tanh" in ops(found.outputs)) == (n_loops == 0)


def test_values_and_gradients_stay():
    def both(x, h, k):
        value, slopes = ns.value_and_grad(lambda *given: sum((one**2).sum() for one in f(*given)), (0, 1, 2))(x[None], h, k)
        return (value, *slopes, *f(x[None], h, k))

    assert_same(both, np.ones(3), np.array([0.5, 1.0, 2.0]), np.float64(0.3), rewrite=one_step)


def test_too_few_rows_are_still_errors():
    x, n, h = nt.tensor("float64", shape=(1, None), name="x"), nt.dmatrix("n"), nt.dmatrix("h")
    infos = [{"initial": h, "taps": [-2]}]
    g = ns.function([x, n, h], ns.scan(lambda x, n, h: x + n + h, [x, n], infos, n_steps=x.shape[0], return_updates=False))
    assert g(np.ones((1, 2)), np.ones((4, 2)), np.ones((2, 2))).shape == (1, 2)
    with pytest.raises(ValueError, match=r"sequence 1 \(n\) has 0 rows, but n_steps=1 needs 1"):
        g(np.ones((1, 2)), np.ones((0, 2)), np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"the initial value of state \S+ has 1 rows along its leading axis"):
        g(np.ones((1, 2)), np.ones((4, 2)), np.ones((1, 2)))
