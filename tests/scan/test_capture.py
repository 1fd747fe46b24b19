"""What a step uses without being given it: numbers, arrays, variables, and other loops."""

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.front.tracing import close_over, current_mode, is_tracing, trace, tracing_level
from numbascan.ir.loop_node import loop_spec
from numbascan.ir.node import INPUT
from numbascan.modes import Mode

TABLE = np.array([[1.0, 2.0], [0.5, -1.0]])


def test_numbers_stay_inside_and_arrays_become_arguments():
    x, k = nt.dvector("x"), 3.5
    weights = np.array([2.0, 4.0])
    got, _ = ns.scan(lambda row, s: s + row * k * weights, x, np.zeros(2))
    spec = loop_spec(got.node)
    assert [port.outer.type.shape for port in spec.non_seqs] == [(2,)]
    np.testing.assert_array_equal(ns.function([x], got, mode="python")([1.0, 2.0]), [[7, 14], [21, 42]])


@pytest.mark.parametrize("mode", ["python", None])
def test_a_loop_in_a_loop_may_capture_arrays_states_and_rows(mode):
    def outer(row, s):
        inner, _ = ns.scan(lambda k, t: t * 0.5 + TABLE @ s * k + row, np.array([1.0, 3.0]), s)
        return inner[-1]

    x = np.array([[0.1, 0.2], [0.3, -0.4], [1.0, 0.0]])
    got, _ = ns.scan(outer, x, np.ones(2), mode=mode)
    s, expected = np.ones(2), []
    for row in x:
        t = s
        for k in (1.0, 3.0):
            t = t * 0.5 + TABLE @ s * k + row
        s = t
        expected.append(s)
    np.testing.assert_allclose(got, expected)


@pytest.mark.parametrize("mode", ["python", None])
def test_three_loops_deep_with_lengths_that_only_the_run_knows(mode):
    n, x = nt.lscalar("n"), nt.dvector("x")

    def middle(a):
        inner, _ = ns.scan(lambda b, s: s + a * b, x, 0)
        return inner[-1]

    def outer(s):
        rows, _ = ns.scan(middle, x)
        return s * 0.5 + rows.sum()

    got, _ = ns.scan(outer, outputs_info=0, n_steps=n)
    f = ns.function([n, x], got, mode=mode)
    s, expected = 0.0, []
    for _ in range(3):
        s = s * 0.5 + 7.0**2
        expected.append(s)
    np.testing.assert_allclose(f(3, [1.0, 2.0, 4.0]), expected)


def test_in_jit_a_captured_array_is_an_argument_of_the_whole():
    table = np.array([1.0, 2.0])

    @ns.jit(mode="python")
    def f(x):
        return ns.scan(lambda row, s: s + row * table, x, np.zeros(2), return_updates=False)

    np.testing.assert_array_equal(f(np.array([1.0, 3.0])), [[1, 2], [4, 8]])
    table[0] = 10.0
    np.testing.assert_array_equal(f(np.array([1.0, 3.0])), [[10, 2], [40, 8]])


def test_arrays_alone_run_now_even_inside_a_trace():
    @ns.jit(mode="python")
    def f(x):
        total = ns.scan(lambda k, s: s + k, np.arange(4.0), 0, return_updates=False)
        assert isinstance(total, np.ndarray)
        return x * total

    np.testing.assert_array_equal(f(2.0), [0, 2, 6, 12])


def test_trace_knows_its_level_and_gives_names():
    levels = []

    def f(x):
        levels.append((tracing_level(), is_tracing()))
        product = x * 2
        total = product + 1
        return total

    x = nt.dscalar("x")
    result = trace(f, [x])
    assert levels == [(1, True)]
    assert (tracing_level(), is_tracing()) == (0, False)
    assert result.value.name == "total"
    assert result.value.node.inputs[0].name == "product"
    assert current_mode() is None


def test_the_mode_of_a_loop_is_known_while_its_step_is_traced():
    seen = []

    def step(s):
        seen.append(current_mode())
        return s + 1

    ns.scan(step, outputs_info=np.float64(0), n_steps=nt.lscalar("n"), mode="python")
    ns.scan(step, outputs_info=np.float64(0), n_steps=2)
    assert seen == [Mode("python"), Mode()]


def test_close_over_finds_what_is_older_than_the_mark():
    w, x = nt.dvector("w"), nt.dscalar("x")
    square = w * w
    result = trace(lambda x: (square * x + w * w * 2 + np.arange(3.0)).node, [x])
    captured = close_over([x.node], [result.value], result.mark)
    assert square.node in captured
    assert w.node not in captured
    assert sorted(node.op is INPUT for node in captured) == [False, False]
    again = close_over([x.node], [result.value], result.mark, changing=[w.node])
    assert square.node not in again
