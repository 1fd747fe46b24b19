"""Ports of a loop that nobody needs go."""

import numpy as np
import pytest
from rewrite.graphs import after, assert_same, graph_of, loops, ops, ops_in

import numbascan as ns
import numbascan.tensor as nt
from numbascan.rewrite.remove_unused import remove_unused

rng = np.random.default_rng(8)
x, y, h, a, k = nt.dmatrix("x"), nt.dmatrix("y"), nt.dvector("h"), nt.dvector("a"), nt.dscalar("k")


def scanned(step, sequences, infos, non_sequences=(), **options):
    """All results of a step."""
    return ns.scan(step, sequences, infos, list(non_sequences), return_updates=False, return_list=True, **options)


def test_a_trace_that_nobody_reads_goes_with_its_work():
    states, _ = scanned(lambda x, h, a: (x + h, np.exp(a * h)), x, [h, None], [a])
    (loop,) = loops(after(remove_unused, graph_of([x, h, a], [states])))
    assert (len(loop.traces), ops_in(loop), len(loop.non_seqs)) == (0, ["add"], 0)


def test_states_that_only_feed_themselves_and_each_other_go():
    kept, _, _ = scanned(lambda x, h, a, b: (x + h, a * b, b + a), x, [h, h, h])
    (loop,) = loops(after(remove_unused, graph_of([x, h], [kept])))
    assert (len(loop.states), ops_in(loop)) == (1, ["add"])


def test_a_state_that_another_one_reads_stays():
    kept, _ = scanned(lambda x, h, a: (x + h * a, a + 1), x, [h, h])
    graph = graph_of([x, h], [kept])
    assert after(remove_unused, graph) == graph


def test_loops_whose_rows_are_no_longer_read_do_less():
    first, second = scanned(lambda x: (np.sin(x), np.cos(x)), x, [None, None])
    third, _ = scanned(lambda a, b: (a + 1, b), [first, second], [None, None])
    one, other = loops(after(remove_unused, graph_of([x], [third])))
    assert (ops_in(one), ops_in(other)) == (["sin"], ["add"])


def test_a_sequence_that_no_step_reads_leaves_its_length():
    (rows,) = scanned(lambda x, y: 2 * x, [x, np.exp(y)], [None], n_steps=4)
    (loop,) = loops(after(remove_unused, graph_of([x, y], [rows])))
    assert ops([loop.seqs[1].outer]) == ["dim", "arange"]


def test_a_sequence_that_is_long_enough_in_any_case_goes():
    (rows,) = scanned(lambda x, y: 2 * x, [x, np.exp(y)], [None])
    (loop,) = loops(after(remove_unused, graph_of([x, y], [rows])))
    assert len(loop.seqs) == 1


def test_a_sequence_that_is_only_measured_goes():
    (rows,) = scanned(lambda x, y: x.sum() * y.shape[0], [x, np.exp(y)], [None])
    (loop,) = loops(after(remove_unused, graph_of([x, y], [rows])))
    assert len(loop.seqs) == 1
    assert ops([loop.non_seqs[0].outer]) == ["dim"]


def test_constants_move_in_and_fold():
    (rows,) = scanned(lambda x, a, b: x * (a + b), x, [None], [nt.constant(2.0), nt.constant(np.ones(3))])
    (loop,) = loops(after(remove_unused, graph_of([x], [rows])))
    assert (len(loop.non_seqs), ops_in(loop)) == (0, ["multiply"])


@pytest.mark.parametrize("rows", [x, nt.tensor("float64", shape=(None, 3), name="x")])
def test_carries_that_no_step_changes_are_non_sequences(rows):
    def cost(rows):
        def step(x, total):
            return total + np.sin(x)

        return (ns.scan(step, rows, rows[0], return_updates=False)[-1] ** 2).sum()

    graph = graph_of([rows], [ns.grad(cost(rows), rows)])
    assert len(loops(graph)[-1].carries) == 1
    found = loops(after(remove_unused, graph))[-1]
    assert (len(found.carries), found.states) == (0, ())


def test_traces_of_rows_that_are_there_are_these_rows():
    def step(before, now, h_tm2, h):
        return h + now, before, h_tm2, h + now

    infos = [{"initial": x[:2], "taps": [-2, -1]}, None, None, None]
    graph = graph_of([x], scanned(step, {"input": x, "taps": [-1, 0]}, infos))
    found = after(remove_unused, graph)
    (loop,) = loops(found)
    assert loop.traces == ()
    states, before, h_tm2, again = found.outputs
    assert states is again
    assert (before.op.name, before.attr("place")[:3]) == ("step_rows", (0, 0, 1))
    assert (h_tm2.op.name, h_tm2.attr("spec"), h_tm2.inputs[0].op.name) == ("index", ((None, -2, None),), "history")


def test_a_loop_of_nothing_but_such_traces_goes():
    (rows,) = scanned(lambda x: x, x, [None])
    found = after(remove_unused, graph_of([x], [rows]))
    assert found.outputs == found.inputs


@pytest.mark.parametrize("n_steps", [0, 2, None])
def test_values_stay(n_steps):
    def f(x, y, h, k):
        def step(x, before, now, h, a, b, k, two):
            return [np.tanh(x + h), a * k + b, b * two + y.shape[1], before, a, now * two, h, x.sum()]

        seqs = [x, {"input": np.sin(y), "taps": [-1, 1]}]
        infos = [h, {"initial": np.stack([h, h]), "taps": [-1]}, h, None, None, None, None, None]
        states, _, b, before, was, _, last, sums = scanned(step, seqs, infos, [k, nt.constant(2.0)], n_steps=n_steps)
        return states, b, before, was, last[-2:], sums.sum()

    arguments = rng.normal(size=(6, 3)), rng.normal(size=(9, 3)), rng.normal(size=3), 0.5
    assert_same(f, *arguments, rewrite=remove_unused)
    if n_steps is None:
        cost = lambda *arguments: sum((one**2).sum() for one in f(*arguments))  # noqa: E731
        assert_same(ns.grad(cost, (0, 1, 2, 3)).__wrapped__, *arguments, rewrite=remove_unused, compiled=False)


def test_an_end_that_only_the_run_knows_cuts_traces_of_states():
    def f(x, h):
        return scanned(lambda x, h: ([h + x, h, x], ns.until(x[0] > 1)), x, [h, None, None])[1:]

    assert_same(lambda *arguments: tuple(f(*arguments)), np.arange(12.0).reshape(6, 2) / 4, np.ones(2), rewrite=remove_unused)


def test_short_sequences_and_initial_values_that_nobody_reads_are_still_errors():
    f = ns.function([x, y, h], scanned(lambda x, y, h: (2 * x, y + h), [x, y], [None, h], n_steps=4)[0])
    assert f(np.ones((4, 2)), np.ones((5, 2)), np.ones(2)).shape == (4, 2)
    with pytest.raises(ValueError, match=r"sequence 1 \(y\) has 3 rows, but n_steps=4 needs 4"):
        f(np.ones((4, 2)), np.ones((3, 2)), np.ones(2))
    infos = [None, {"initial": y, "taps": [-2]}]
    f = ns.function([x, y], scanned(lambda x, h: (2 * x, h), x, infos)[0])
    with pytest.raises(ValueError, match=r"the initial value of state \S+ has 1 rows"):
        f(np.ones((4, 2)), np.ones((1, 2)))
