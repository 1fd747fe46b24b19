"""How many steps there are: given, taken from the sequences, none, one, or until a condition holds."""

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.ir.graph import toposort
from numbascan.ir.loop_node import SCAN

PYTHON = {"mode": "python"}


@pytest.mark.parametrize("n", [3, np.int32(3), np.uint8(3), np.array(3)])
def test_any_integer_scalar_is_a_number_of_steps(n):
    got, _ = ns.scan(lambda s: s + 1, outputs_info=0, n_steps=n, **PYTHON)
    np.testing.assert_array_equal(got, [1, 2, 3])


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint16", "int64"])
def test_the_number_of_steps_may_be_a_variable(dtype):
    n = nt.tensor(dtype, shape=(), name="n")
    got, _ = ns.scan(lambda s: s * 2, outputs_info=np.float64(1), n_steps=n)
    f = ns.function([n], got, mode="python")
    np.testing.assert_array_equal(f(4), [2, 4, 8, 16])
    assert f(0).shape == (0,)


def test_no_steps_give_no_rows_and_the_true_trailing_shape():
    (a, b), _ = ns.scan(lambda s: [s + 1, np.stack([s, s])], outputs_info=[np.zeros((2, 3)), None], n_steps=0, **PYTHON)
    assert a.shape == (0, 2, 3)
    assert b.shape == (0, 2, 2, 3)


def test_longer_sequences_are_cut():
    got, _ = ns.scan(lambda x: x, np.arange(10), n_steps=4, **PYTHON)
    np.testing.assert_array_equal(got, [0, 1, 2, 3])


def test_one_literal_step_leaves_no_scan_in_the_graph():
    x, y0, a = nt.dmatrix("x"), nt.dmatrix("y0"), ns.shared(3, "a")

    def step(x_m1, x_0, y_m2, y_m1):
        return [y_m2 + 10 * y_m1 + x_0 - x_m1, np.float64(7)], {a: a + 1}, ns.until(x_0[0] > 0)

    (y, z), updates = ns.scan(step, {"input": x, "taps": [-1, 0]}, [{"initial": y0, "taps": [-2, -1]}, None], n_steps=1)
    f = ns.function([x, y0], [y, z], updates=updates, mode="python")
    assert SCAN not in [node.op for node in toposort([y.node, z.node])]
    got_y, got_z = f([[1.0, 2.0], [5.0, 7.0], [9.0, 9.0]], [[0.5, 1.5], [2.0, 3.0]])
    np.testing.assert_array_equal(got_y, [[0.5 + 20 + 4, 1.5 + 30 + 5]])
    np.testing.assert_array_equal(got_z, [7])
    assert a.get_value() == 4


def test_one_step_of_a_number_has_its_dtype():
    x = nt.fvector("x")
    got, _ = ns.scan(lambda s, w: s + w, outputs_info=1, non_sequences=x, n_steps=1)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(ns.function([x], got, mode="python")([1.5, 2.5]), [[2.5, 3.5]])


def test_the_number_of_steps_is_no_part_of_the_compiled_code():
    traces = []

    @ns.scan
    def grow(s):
        traces.append(1)
        return s * 2

    for n in (1, 5, 0, 7):
        got = grow(outputs_info=np.float64(1), n_steps=n)
        np.testing.assert_array_equal(got, 2.0 ** np.arange(1, n + 1))
    assert len(traces) == 1


def test_until_includes_the_step_whose_condition_holds():
    got, _ = ns.scan(lambda p, top: (2 * p, ns.until(2 * p > top)), outputs_info=np.float64(1), non_sequences=45, n_steps=1024, **PYTHON)
    np.testing.assert_array_equal(got, [2, 4, 8, 16, 32, 64])


def test_until_never_runs_beyond_the_sequence():
    (a, b), _ = ns.scan(lambda x, s: ([s + x, -x], ns.until(s + x > 100)), np.arange(5), [np.int64(0), None], **PYTHON)
    np.testing.assert_array_equal(a, [0, 1, 3, 6, 10])
    np.testing.assert_array_equal(b, [0, -1, -2, -3, -4])


def test_until_is_asked_after_the_step():
    got, _ = ns.scan(lambda s: (s + 1, ns.until(s >= 0)), outputs_info=np.int64(0), n_steps=5, **PYTHON)
    np.testing.assert_array_equal(got, [1])


@pytest.mark.parametrize("mode", ["python", None])
def test_a_state_that_ends_the_loop_is_asked_before_it_moves_on(mode):
    def step(x, total, is_full):
        return [total + x, total + x > 5], ns.until(is_full)

    (totals, full), _ = ns.scan(step, np.arange(9.0), [np.float64(0), np.array(False)], mode=mode)
    np.testing.assert_array_equal(totals, [0, 1, 3, 6, 10])
    np.testing.assert_array_equal(full, [False, False, False, True, True])


def test_a_number_as_condition_ends_the_loop_where_it_is_not_zero():
    got, _ = ns.scan(lambda x: (x, ns.until(x // 3)), np.arange(6), **PYTHON)
    np.testing.assert_array_equal(got, [0, 1, 2, 3])


def test_until_alone_only_counts():
    a = ns.shared(0, "a")
    none, updates = ns.scan(lambda: ({a: a + 1}, ns.until(a >= 4)), n_steps=100)
    assert none is None
    f = ns.function([], updates[a], updates=updates, mode="python")
    assert f() == 5


@pytest.mark.parametrize(
    "keywords, rows",
    [
        ({"keep_last": 1}, 7),
        ({"keep_last": 3}, slice(5, 8)),
        ({"save_every": 3}, slice(2, None, 3)),
        ({"save_every": 9}, slice(8, None, 9)),
        ({"keep_last": 20}, slice(0, 8)),
    ],
)
def test_rows_are_thinned_as_asked(keywords, rows):
    path = 2.0 ** np.arange(1, 9)
    got, _ = ns.scan(lambda s: 2 * s, outputs_info=np.float64(1), n_steps=8, **keywords, **PYTHON)
    np.testing.assert_array_equal(got, path[rows])
    assert np.shape(got) == path[rows].shape


def test_rows_are_thinned_in_a_graph_too():
    n = nt.lscalar("n")
    (a, b), _ = ns.scan(lambda s, r: [s + 1, r * 2], outputs_info=[np.float64(0), np.ones(2)], n_steps=n, keep_last=1)
    assert (a.ndim, b.ndim) == (0, 1)
    got = ns.function([n], [a, b], mode="python")(5)
    np.testing.assert_array_equal(got[0], 5)
    np.testing.assert_array_equal(got[1], [32, 32])
