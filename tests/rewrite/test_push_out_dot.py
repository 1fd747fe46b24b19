"""A sum over the steps of outer products becomes one product behind the loop."""

import numpy as np
import pytest
from rewrite.graphs import after, assert_same, graph_of, loops, ops

import numbascan as ns
import numbascan.tensor as nt
from numbascan.rewrite.push_out_dot import push_out_dot

rng = np.random.default_rng(10)
x, y, S, k = nt.dmatrix("x"), nt.dmatrix("y"), nt.dmatrix("S"), nt.dscalar("k")


def summed(step, *non_sequences, read=lambda rows: rows[-1]):
    """The graph before and after."""
    rows = ns.scan(step, [x, y], S, list(non_sequences), return_updates=False)
    graph = graph_of([x, y, S, k], [read(rows)])
    return graph, after(push_out_dot, graph)


@pytest.mark.parametrize(
    "step",
    {
        "np.outer": lambda a, b, S: S + np.outer(a, b),
        "of a scaled row": lambda a, b, S: S + np.outer(k * a, b),
        "the other way round": lambda a, b, S: a[None, :] * b[:, None] + S,
        "a product of labels": lambda a, b, S: S + np.einsum("i,j->ji", a, b),
        "several": lambda a, b, S: (S + np.outer(a, b)) + np.outer(b, a),
        "and the sum on the right": lambda a, b, S: np.outer(a, b) + (np.outer(b, a) + S),
    }.values(),
)
def test_a_sum_of_products_is_one_product_behind_the_loop(step):
    _, found = summed(step)
    (loop,) = loops(found)
    assert (len(loop.states), len(loop.traces)) == (0, 2)
    assert "contract" in ops(found.outputs)


def test_other_terms_are_added_in_the_loop():
    _, found = summed(lambda a, b, S: S + np.outer(a, b) + a.sum())
    (loop,) = loops(found)
    assert len(loop.states) == 1
    assert "multiply" not in ops(loop.inner_outputs())


def test_a_sum_of_rows_is_a_product_after_both_rewrites():
    from numbascan.rewrite.sum_in_loop import sum_in_loop

    a, b = (nt.tensor("float64", shape=(None, 20), name=name) for name in "ab")
    rows = ns.map(np.outer, [a, b], return_updates=False)
    found = after(push_out_dot, after(sum_in_loop, graph_of([a, b], [rows.sum(axis=0)])))
    assert ops(found.outputs)[-2:] == ["contract", "add"]


@pytest.mark.parametrize(
    "step, read",
    {
        "read at every step": (lambda a, b, S: S + np.outer(a, b) * S[0, 0], lambda rows: rows[-1]),
        "decays": (lambda a, b, S: 0.9 * S + np.outer(a, b), lambda rows: rows[-1]),
        "all rows are read": (lambda a, b, S: S + np.outer(a, b), lambda rows: rows),
        "in another dtype": (lambda a, b, S: S + np.outer(a.astype("float32"), b.astype("float32")), lambda rows: rows[-1]),
        "real in a complex sum": (lambda a, b, S: (S * (1 + 0j) + np.outer(a, b)).real, lambda rows: rows[-1]),
        "times a number": (lambda a, b, S: S + k * np.outer(a, b), lambda rows: rows[-1]),
        "within a term": (lambda a, b, S: S + (np.outer(a, b) + np.outer(b, a)), lambda rows: rows[-1]),
    }.values(),
)
def test_other_sums_stay(step, read):
    graph, found = summed(step, read=read)
    assert found == graph


def test_products_that_are_no_larger_than_their_factors_stay():
    small = nt.tensor("float64", shape=(None, 3), name="small")
    rows = ns.scan(lambda a, S: S + np.outer(a, a), small, S, return_updates=False)
    graph = graph_of([small, S], [rows[-1]])
    assert after(push_out_dot, graph) == graph


def end_of(step, x, y, S):
    """The sum in a loop of Python's, and by the compiled loop."""
    wanted = S
    for a, b in zip(x, y, strict=True):
        wanted = step(a, b, wanted)
    return wanted, ns.jit(lambda x, y, S: ns.scan(step, [x, y], S, return_updates=False)[-1])(x, y, S)


def test_a_sum_has_the_dtype_in_which_it_is_written():
    x = np.zeros((4, 20), "float32")
    x[:, 0] = 3e8, 1, 1, -3e8
    y, S = np.ones((4, 20), "float32"), np.zeros((20, 20))
    for start in (S, S * 1j):
        wanted, found = end_of(lambda a, b, S: S + np.outer(a, b), x, y, start)
        assert wanted[0, 0] == 2
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    "step",
    {
        "times a number": lambda a, b, S: S + a[0] * np.outer(a, b),
        "what cancels in a term": lambda a, b, S: S + (np.outer(a, a * b) + np.outer(-a, a * b)),
    }.values(),
)
def test_products_are_made_in_the_order_in_which_they_are_written(step):
    wanted, found = end_of(step, np.full((4, 20), 1e200), np.full((4, 20), 1e-200), np.ones((20, 20)))
    assert np.isfinite(wanted).all()
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


def f(x, y, S):
    """Vectors and matrices as factors, two sums of one loop, an end that only the run knows, parts of the last row."""

    def step(a, b, h, S, Q):
        h = np.tanh(a + h)
        return [h, S + np.outer(h, b) + 0.1, Q + np.einsum("si,sj->ij", np.stack([a, h]), np.stack([b, 2 * b]))], ns.until(h[0] > 9)

    rows, S, Q = ns.scan(step, [x, y], [x[0], S, nt.zeros_like(S)], return_updates=False)
    return (rows**2).sum() + (S[-1, 1] ** 2).sum() + np.sin(Q[-1]).sum()


ARGUMENTS = rng.normal(size=(7, 18)), rng.normal(size=(7, 20)), rng.normal(size=(18, 20))


def test_values_and_gradients_stay():
    assert_same(f, *ARGUMENTS, rewrite=push_out_dot)
    assert_same(ns.grad(f, (0, 1, 2)).__wrapped__, *ARGUMENTS, rewrite=push_out_dot, compiled=False)


@pytest.mark.parametrize("with_others", [False, True])
def test_the_end_of_no_steps_is_still_an_error(with_others):
    @ns.jit
    def end(x, S):
        step = (lambda a, S: S + np.outer(a, a) + 1) if with_others else (lambda a, S: S + np.outer(a, a))
        return ns.scan(step, sequences=x, outputs_info=S, return_updates=False)[-1]

    np.testing.assert_allclose(end(np.ones((2, 20)), np.ones((20, 20))), np.full((20, 20), 5.0 if with_others else 3.0))
    with pytest.raises(IndexError):
        end(np.ones((0, 20)), np.ones((20, 20)))
