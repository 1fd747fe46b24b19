"""Loops of which none waits for the other become one; equal ports of a loop become one."""

import numpy as np
import pytest
from rewrite.graphs import after, assert_same, graph_of, loops, ops_in

import numbascan as ns
import numbascan.tensor as nt
from numbascan.rewrite.merge_inouts import merge_inouts
from numbascan.rewrite.merge_scans import merge_scans

rng = np.random.default_rng(9)
x, y, h, A, k = nt.dvector("x"), nt.dvector("y"), nt.dvector("h"), nt.dmatrix("A"), nt.dscalar("k")


def smooth(x, k, first=0.5, **options):
    """An exponential average."""
    return ns.scan(lambda x, s, k: s + k * (x - s), sequences=x, outputs_info=first, non_sequences=k, return_updates=False, **options)


# merge_inouts ------------------------------------------------------------------------------------------------------------


def test_equal_inputs_become_one():
    seqs = [{"input": x, "taps": [-1, 0]}]
    rows = ns.scan(lambda a, b, c, d, s, k, q: s + a * k + b * q + c + d, [*seqs, *seqs], [0.5], [k, k], return_updates=False)
    (loop,) = loops(after(merge_inouts, graph_of([x, k], [rows])))
    assert ([seq.taps for seq in loop.seqs], len(loop.non_seqs)) == ([(-1, 0)], 1)


def test_the_same_rows_at_taps_that_start_elsewhere_stay_apart():
    rows = ns.scan(lambda a, b, c: a + b + c, [{"input": x, "taps": [-1]}, {"input": x, "taps": [0, 1]}], return_updates=False)
    (loop,) = loops(after(merge_inouts, graph_of([x], [rows])))
    assert len(loop.seqs) == 2


def test_states_that_are_equal_at_every_step_become_one():
    def step(x, a, b, c):
        return a * x + b, b * x + a, np.sin(c) + a

    results = ns.scan(step, x, [nt.constant(1.0)] * 3, return_updates=False)
    found = after(merge_inouts, graph_of([x], results))
    (loop,) = loops(found)
    assert len(loop.states) == 2
    assert found.outputs[0] is found.outputs[1] is not found.outputs[2]


def test_states_that_are_written_the_same_have_gradients():
    def f(x, k):
        a, b = ns.scan(lambda x, a, b: [np.tanh(x + a + b)] * 2, x, [k, 2 * k], return_updates=False)
        return (a * b).sum()

    def g(x, k):
        once = ns.scan(lambda x, a: np.tanh(x + 2 * a), x, 1.5 * k, return_updates=False)
        return (once * once).sum()

    x = np.linspace(0, 1, 5)
    for a, b in zip(ns.grad(f, (0, 1))(x, 0.3), ns.grad(g, (0, 1))(x, 0.3), strict=True):
        np.testing.assert_allclose(a, b)


def test_states_that_only_start_equal_stay_apart():
    graph = graph_of([x], ns.scan(lambda x, a, b: (a * x + b, b * x - a), x, [nt.constant(1.0)] * 2, return_updates=False))
    assert after(merge_inouts, graph) == graph


def test_equal_traces_become_one():
    results = ns.scan(lambda x: (np.sin(x), np.sin(x), np.cos(x)), x, [None] * 3, return_updates=False)
    (loop,) = loops(after(merge_inouts, graph_of([x], results)))
    assert len(loop.traces) == 2


# merge_scans -------------------------------------------------------------------------------------------------------------


def test_loops_of_few_numbers_become_one():
    found = after(merge_scans, graph_of([x, k], [smooth(x, k)[-1] * smooth(x, 1 - k)[-1]]))
    (loop,) = loops(found)
    assert (len(loop.states), len(loop.seqs)) == (2, 1)


def test_a_loop_that_runs_through_the_states_of_another_one_takes_it_up():
    def network(h, A):
        return ns.scan(lambda h, A: np.tanh(A @ h), outputs_info=h, non_sequences=A, n_steps=5, return_updates=False)

    states, _ = ns.scan(lambda h, g, A: (np.tanh(A @ h), A @ g + h), None, [h, h], A, 5, return_updates=False)
    graph = graph_of([h, A], [network(h, A).sum() + states.sum()])
    assert len(loops(graph)) == 2
    (loop,) = loops(after(merge_scans, graph))
    assert len(loop.states) == 2
    assert ops_in(loop).count("contract") == 2


def test_loops_of_one_recurrence_become_one():
    states = ns.scan(lambda s: s * k, outputs_info=1.0, n_steps=4, return_updates=False)
    again, squares = ns.scan(lambda s: (s * k, s * s), outputs_info=[1.0, None], n_steps=4, return_updates=False)
    (loop,) = loops(after(merge_scans, graph_of([k], [states[-1] + again[0], squares])))
    assert (len(loop.states), len(loop.traces)) == (1, 1)


@pytest.mark.parametrize("other, n_loops", [(0.9, 1), (0.8, 2)])
def test_loops_that_may_end_early_become_one_where_they_end_together(other, n_loops):
    def rows(end):
        return ns.scan(lambda s: (np.sin(s) * x, ns.until(s[0] > end)), outputs_info=x, n_steps=4, return_updates=False)

    more, found = ns.scan(lambda s: ([np.sin(s) * x, s], ns.until(s[0] > other)), None, [x, None], n_steps=4, return_updates=False)
    assert len(loops(after(merge_scans, graph_of([x], [rows(0.9), more, found])))) == n_loops


def test_the_forward_loop_of_a_gradient_is_that_of_the_value():
    def network(h, A):
        return ns.scan(lambda h, A: np.linalg.inv(A * h) @ h, None, h, A, 5, return_updates=False).sum()  # the inverse is kept

    cost = network(h, A)
    graph = graph_of([h, A], [cost, ns.grad(cost, A)])
    assert len(loops(graph)) == 3
    assert len(loops(after(merge_scans, graph))) == 2


@pytest.mark.parametrize(
    "rows",
    {
        "of which one waits for the other": lambda: [smooth(smooth(x, k), k)],
        "that wait for each other through something else": lambda: [smooth(x, smooth(x, k).sum())],
        "of other lengths": lambda: [smooth(x, k), smooth(y, k)],
        "of large states": lambda: [ns.scan(lambda h, A, f=f: f(A @ h), None, h, A, 5, return_updates=False) for f in (np.sin, np.cos)],
    }.values(),
)
def test_other_loops_stay_apart(rows):
    graph = graph_of([x, y, h, A, k], rows())
    assert after(merge_scans, graph) == graph


def f(x, k, h):
    """Averages with one start and with two, taps, an update of two shared values in turn, loops over the results of others."""
    a, b = smooth(x, k), smooth(x, k**2, first=k)
    c, d = ns.scan(lambda s, t, x: (s * t + x, t * s), None, [k, {"initial": h, "taps": [-2]}], x[0], x.shape[0], return_updates=False)
    e = smooth(a + b, k)
    return (a * b).sum() + c[-1] + (d**2).sum() + e[-1] * smooth(x[::-1], k)[0]


ARGUMENTS = rng.normal(size=7) / 3, np.float64(0.3), rng.normal(size=2)


@pytest.mark.parametrize("rewrite", [merge_scans, merge_inouts])
def test_values_and_gradients_stay(rewrite):
    def both(x, k, h):
        value, slopes = ns.value_and_grad(f, (0, 1, 2))(x, k, h)
        return (value, *slopes, *ns.jvp(f, (x, k, h), (x, k, h)))

    assert_same(both, *ARGUMENTS, rewrite=rewrite, compiled=rewrite is merge_scans)


@pytest.mark.usefixtures("rewritten")
def test_an_error_names_both_loops():
    def rows(x, y, n):
        def first(x, s):
            return s + x

        def second(y, s):
            return s * y

        return [ns.scan(step, sequences=z, outputs_info=1.0, n_steps=n, return_updates=False) for step, z in ((first, x), (second, y))]

    with pytest.raises(ValueError, match=r"scan 'first_second': sequence 1 \(y\) has 3 rows, but n_steps=5 needs 5"):
        ns.jit(rows)(np.ones(5), np.ones(3), 5)
