"""Products that no earlier value waits for are made behind the loop, and what reads them in a second loop."""

import numpy as np
import pytest
from rewrite.graphs import after, assert_same, graph_of, loops, ops, ops_in

import numbascan as ns
import numbascan.tensor as nt
from numbascan.rewrite.push_out_output import push_out_output

rng = np.random.default_rng(6)
x, h, W, V = nt.dmatrix("x"), nt.dvector("h"), nt.dmatrix("W"), nt.dmatrix("V")


def scanned(step, *infos, **options):
    """All results of a step over x, h first, with W and V."""
    infos = [h, *infos]
    return ns.scan(step, sequences=x, outputs_info=infos, non_sequences=[W, V], return_updates=False, return_list=True, **options)


def read_out(x, h, W, V):
    h = np.tanh(x + h @ W)
    return h, h @ V


def test_a_product_that_is_only_returned_is_made_behind_the_loop():
    states, outs = scanned(read_out, None)
    graph = graph_of([x, h, W, V], [states, outs])
    found = after(push_out_output, graph)
    (loop,) = loops(found)
    assert ops_in(loop) == ["contract", "add", "tanh"]
    assert loop.traces == ()
    assert found.outputs[1].op.name == "contract"
    rows, matrix = found.outputs[1].inputs
    assert (rows.op.name, rows.inputs[0], matrix) == ("rows_to", found.outputs[0], found.inputs[3])  # where there is a row, it must fit


def test_a_factor_that_is_no_state_is_traced_in_the_place_of_the_product():
    (outs,) = scanned(lambda x, h, W, V: (np.tanh(x + h @ W), np.sin(h * x) @ V), None)[1:]
    (loop,) = loops(found := after(push_out_output, graph_of([x, h, W, V], [outs])))
    assert [trace.write.op.name for trace in loop.traces] == ["sin"]
    assert ops(found.outputs)[-1] == "contract"


def test_what_reads_the_product_goes_into_a_second_loop():
    def step(x, h, W, V):
        h = np.tanh(x + h @ W)
        return h, np.exp(h @ V + x).sum()

    states, sums = scanned(step, None)
    first, second = loops(after(push_out_output, graph_of([x, h, W, V], [states, sums])))
    assert ops_in(first) == ["contract", "add", "tanh"]
    assert ops_in(second) == ["add", "exp", "sum"]


def test_two_layers_become_two_loops():
    def step(x, h, g, W, V):
        h = np.tanh(x + h @ W)
        return h, np.tanh(h @ V + g @ V.T)

    _, g = scanned(step, h)
    first, second = loops(after(push_out_output, graph_of([x, h, W, V], [g])))
    assert len(first.states) == len(second.states) == 1
    assert ops([seq.outer for seq in second.seqs]).count("contract") == 1
    assert ops_in(second).count("contract") == 1


def test_few_rows_of_a_product_are_products_of_few_rows():
    _, outs = scanned(read_out, None)
    graph = graph_of([x, h, W, V], [outs[-1], outs[-2:, 1:]])
    found = after(push_out_output, graph)
    (loop,) = loops(found)
    assert ops_in(loop).count("contract") == 1
    last, rows = found.outputs
    assert last.op.name == "contract"
    assert last.inputs[0].attr("spec") == (-1,)
    product = rows.inputs[0]
    checked = product.inputs[0]
    assert (rows.op.name, product.op.name, checked.op.name, checked.inputs[0].op.name) == ("index", "contract", "rows_to", "index")


def beside_a_matrix(x, h, W, V):
    M = np.outer(h, x)
    return np.tanh(x + M.sum(axis=0)), (h @ V) * M


@pytest.mark.parametrize(
    "step",
    {
        "that a state waits for": lambda x, h, W, V: (np.tanh(x + h @ W), h @ W),
        "with a matrix that changes": lambda x, h, W, V: (np.tanh(x + h), h @ (V * h[0])),
        "that is small beside what would be stored": beside_a_matrix,
    }.values(),
)
def test_other_products_stay(step):
    graph = graph_of([x, h, W, V], scanned(step, None))
    assert after(push_out_output, graph) == graph


def test_no_rows_are_stored_for_products_where_none_were_stored():
    def step(h, g, W, V):
        h = np.tanh(h @ W)
        return h, np.tanh(h @ V + g)

    n = nt.lscalar("n")
    _, g = ns.scan(step, outputs_info=[h, h], non_sequences=[W, V], n_steps=n, return_updates=False)
    graph = graph_of([h, W, V, n], [g[-1]])
    assert after(push_out_output, graph) == graph
    assert len(loops(after(push_out_output, graph_of([h, W, V, n], [g])))) == 2


def f(x, h, W, V):
    """Three layers, the last one read out; a factor that is no state; few rows of a product; an end that only the run knows."""

    def step(a, b, h, g, k, W, V):
        h = np.tanh(a + h @ W)
        g = np.tanh(h @ V + g)
        k = np.tanh(W @ g + np.sin(b) + k)
        return [h, g, k, k @ V, (h * g) @ W, (b * h) @ V], ns.until((h * h).sum() > 5)

    taps = {"input": x, "taps": [-1, 0]}
    infos = [h, {"initial": np.stack([h, 2 * h]), "taps": [-2]}, h, None, None, None]
    _, _, k, read, other, few = ns.scan(step, taps, infos, [W, V], return_updates=False)
    return (k**2).sum() + np.sin(read).sum() + (other**2).sum() + few[-1].sum() + (few[-3:, 1] ** 2).sum()


ARGUMENTS = rng.normal(size=(9, 20)) / 2, rng.normal(size=20), rng.normal(size=(20, 20)) / 5, rng.normal(size=(20, 20)) / 5


def test_values_stay():
    assert_same(f, *ARGUMENTS, rewrite=push_out_output)


def test_gradients_stay():
    assert_same(ns.grad(f, (0, 1, 2, 3)).__wrapped__, *ARGUMENTS, rewrite=push_out_output, compiled=False)


@pytest.mark.parametrize("n_steps", [0, 3])
def test_loops_of_no_steps_give_no_rows(n_steps):
    def rows(h, W):
        return ns.scan(
            lambda h, W: (np.tanh(h @ W), (h * 2) @ W), outputs_info=[h, None], non_sequences=W, n_steps=n_steps, return_updates=False
        )

    assert_same(rows, rng.normal(size=20), rng.normal(size=(20, 20)), rewrite=push_out_output)


def test_the_last_row_of_no_steps_is_still_an_error():
    @ns.jit
    def last(h, W, n):
        return ns.scan(lambda h, W: (np.tanh(h @ W), h @ W.T), outputs_info=[h, None], non_sequences=W, n_steps=n, return_updates=False)[1][
            -1
        ]

    assert last(np.ones(20), np.eye(20), 3).shape == (20,)
    with pytest.raises(IndexError, match=r"the last row of .* was asked for, but the loop ran 0 steps"):
        last(np.ones(20), np.eye(20), 0)
