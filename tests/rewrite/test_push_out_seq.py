"""Products of sequences with a fixed matrix leave the loop."""

import numpy as np
import pytest
from rewrite.graphs import after, assert_same, graph_of, loops, ops_in

import numbascan as ns
import numbascan.tensor as nt
from numbascan.rewrite.push_out_seq import push_out_seq

rng = np.random.default_rng(5)


def test_the_product_of_a_sequence_with_a_matrix_is_made_before_the_loop():
    x, h, W = nt.dmatrix("x"), nt.dvector("h"), nt.dmatrix("W")
    rows = ns.scan(lambda x, h, W: np.tanh(x @ W + h), sequences=x, outputs_info=h, non_sequences=W, return_updates=False)
    before = graph_of([x, h, W], [rows])
    assert ops_in(loops(before)[0]) == ["contract", "add", "tanh"]
    found = after(push_out_seq, before)
    (loop,) = loops(found)
    assert ops_in(loop) == ["add", "tanh"]
    product = loop.seqs[1].outer
    checked, matrix = product.inputs
    assert (product.op.name, checked.op.name, matrix) == ("contract", "rows_to", found.inputs[2])
    assert checked.inputs[0] is found.inputs[0]  # x as it is: where it has a row, that must fit


def test_taps_of_a_sequence_share_a_product_of_the_rows_that_they_read():
    x, h, W = nt.dmatrix("x"), nt.dvector("h"), nt.dmatrix("W")
    seqs = {"input": x, "taps": [-3, -1, 0]}
    rows = ns.scan(lambda a, b, c, h, W: a @ W - b @ W + c * h, seqs, h, W, n_steps=5, return_updates=False)
    (loop,) = loops(after(push_out_seq, graph_of([x, h, W], [rows])))
    *_, product = loop.seqs
    assert product.taps == (0, 2)
    assert product.outer.inputs[0].attr("place") == (0, 2, 3, 5)
    assert "contract" not in ops_in(loop)


def test_layers_leave_one_after_another():
    x, h, W, V = nt.dmatrix("x"), nt.dvector("h"), nt.dmatrix("W"), nt.dmatrix("V")
    layers = ns.scan(lambda x, h, W, V: np.tanh(x @ W) @ V + h, x, h, [W, V], return_updates=False)
    found = loops(after(push_out_seq, graph_of([x, h, W, V], [layers])))
    assert [ops_in(loop) for loop in found] == [["tanh"], ["add"]]


@pytest.mark.parametrize("step", [lambda x, W: x @ W, lambda x, W: np.tanh(x @ W) @ W])
def test_lanes_keep_their_products(step):
    x, W = nt.dmatrix("x"), nt.dmatrix("W")
    graph = graph_of([x, W], [ns.map(step, x, W, return_updates=False)])
    assert after(push_out_seq, graph) == graph


@pytest.mark.parametrize(
    "step",
    {
        "of a state": lambda x, s, W: s @ W + x,
        "of two sequences": lambda x, s, W: np.outer(x, x)[0] + s,
        "that is elementwise": lambda x, s, W: x * W[0] + s,
    }.values(),
)
def test_other_work_stays(step):
    x, h, W = nt.dmatrix("x"), nt.dvector("h"), nt.dmatrix("W")
    rows = ns.scan(step, sequences=x, outputs_info=h, non_sequences=W, return_updates=False)
    graph = graph_of([x, h, W], [rows])
    assert after(push_out_seq, graph) == graph


def test_a_loop_that_may_end_early_keeps_its_products():
    x, W = nt.dmatrix("x"), nt.dmatrix("W")
    h = nt.dvector("h")
    rows = ns.scan(lambda x, h, W: (x @ W + h, ns.until(x[0] > 1)), x, h, W, return_updates=False)
    graph = graph_of([x, h, W], [rows])
    assert after(push_out_seq, graph) == graph


@pytest.mark.parametrize("shapes", [((50, 4), (4, 4)), ((50, 4), (4, 64)), ((50, 30, 40), (40, 40))])
def test_products_that_are_cheaper_in_the_step_stay(shapes):
    x, W = (nt.tensor("float64", shape=shape) for shape in shapes)
    rows = ns.scan(lambda x, s, W: s + (x @ W).sum(), x, np.float64(0), W, return_updates=False)
    graph = graph_of([x, W], [rows])
    assert after(push_out_seq, graph) == graph


def cost(x, W, V, h):
    """Products of vectors and of few rows, with both orders of operands, taps, layers, a sequence read backwards, an inner loop."""

    def step(a, b, h, W, V):
        inner = ns.scan(lambda row, V: V @ row, sequences=np.tanh(W)[:2], non_sequences=V, return_updates=False)
        z = a @ W + W @ b + np.stack([a, 2 * b]) @ V @ np.ones(20) @ np.ones((2, 20)) + np.sin(b) @ V + h @ W
        return np.tanh(z / 40) + inner.sum(axis=0) / 40, (a * V[0]) @ W[:, 1]

    h, terms = ns.scan(step, {"input": x, "taps": [-2, 1]}, [h, None], [W, V], go_backwards=True, return_updates=False)
    return h[-1].sum() + terms.sum() / 100


ARGUMENTS = rng.normal(size=(9, 20)), rng.normal(size=(20, 20)) / 5, rng.normal(size=(20, 20)) / 5, rng.normal(size=20)


def test_values_stay():
    assert_same(cost, *ARGUMENTS, rewrite=push_out_seq)


def test_gradients_stay():
    def slopes(*arguments):
        return ns.grad(cost, (0, 1, 2, 3))(*arguments)

    assert_same(slopes, *ARGUMENTS, rewrite=push_out_seq, compiled=False)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_dtypes_stay(dtype):
    x, W = rng.normal(size=(9, 18)).astype(dtype), rng.normal(size=(18, 20))

    def f(x, W):
        start = np.zeros(20, np.result_type(x.dtype, W.dtype))
        return ns.scan(lambda x, s, W: (x @ W + s, W.T @ x), x, [start, None], W, return_updates=False)

    assert_same(f, x, W, rewrite=push_out_seq, rtol=1e-5 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("n_steps", [0, 2, 4])
def test_only_rows_that_are_read_are_multiplied(n_steps):
    x, W = rng.normal(size=(9, 18)), rng.normal(size=(18, 20))
    x[n_steps + 2 :] = np.nan

    def f(x, W):
        seqs = {"input": x, "taps": [2, 0]}
        return ns.scan(lambda a, b, s, W: (a - b) @ W - b @ W + s, seqs, np.zeros(20), W, n_steps=n_steps, return_updates=False)

    assert_same(f, x, W, rewrite=push_out_seq)


def test_a_sequence_that_is_too_short_is_still_named():
    @ns.scan
    def network(u, W):
        return u @ W

    with pytest.raises(ValueError, match=r"scan 'network': sequence 0 \(u\) has 3 rows, but n_steps=5 needs 5"):
        network(sequences=np.ones((3, 20)), non_sequences=np.ones((20, 20)), n_steps=5)


def test_lengths_that_do_not_fit_are_still_an_error_at_their_line():
    f = ns.jit(lambda u, W: ns.map(lambda u, W: u @ W, u, W, return_updates=False))
    with pytest.raises(ValueError, match=r"lengths 20 and 21 of the summed axes differ \(.*test_push_out_seq.py, line \d+\)"):
        f(np.ones((3, 20)), np.ones((21, 20)))
