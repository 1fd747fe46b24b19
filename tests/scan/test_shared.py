"""Shared and other outer variables that a step reads and updates."""

import random

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt


def test_updates_hold_the_value_after_the_last_step():
    a = ns.shared(1, "a")
    values, updates = ns.scan(lambda: {a: a + 1}, n_steps=10)
    b, c = a + 1, updates[a] + 1
    assert values is None
    f = ns.function([], [b, c], updates=updates, mode="python")
    assert [int(v) for v in f()] == [2, 12]
    assert a.get_value() == 11
    assert [int(v) for v in f()] == [12, 22]
    assert a.get_value() == 21


def test_without_the_updates_a_shared_variable_stays():
    a = ns.shared(1, "a")
    _, updates = ns.scan(lambda: {a: a + 1}, n_steps=10)
    f = ns.function([], [a + 1, updates[a] + 1], mode="python")
    assert [int(v) for v in f()] == [int(v) for v in f()] == [2, 12]


def test_an_expression_written_before_the_loop_follows_the_update_inside_it():
    a = ns.shared(1.0, "a")
    doubled = a * 2  # the step's a * 2 is the same node
    _, updates = ns.scan(lambda: {a: a * 2}, n_steps=5)
    f = ns.function([], [doubled, updates[a]], mode="python")
    assert [float(v) for v in f()] == [2, 32]


def test_several_updates_see_the_old_values():
    a, b = ns.shared(1, "a"), ns.shared(1, "b")
    out, updates = ns.scan(lambda: ([a], {a: b, b: a + b}), n_steps=6)
    f = ns.function([], out, updates=updates, mode="python")
    np.testing.assert_array_equal(f(), [1, 1, 2, 3, 5, 8])
    assert (a.get_value(), b.get_value()) == (13, 21)


def test_shared_variables_that_a_step_reads_are_found():
    w, x = ns.shared(np.array([2.0, 5.0]), "w"), nt.dmatrix("x")
    got, updates = ns.scan(lambda row, s: s + (row * w).sum(), x, 0)
    assert updates == {}
    f = ns.function([x], got, mode="python")
    np.testing.assert_array_equal(f([[1.0, 1.0], [2.0, 0.0]]), [7, 11])
    w.set_value([1.0, 1.0])
    np.testing.assert_array_equal(f([[1.0, 1.0], [2.0, 0.0]]), [2, 4])


def test_outer_expressions_that_a_step_reads_are_computed_once_outside():
    w, x = nt.dmatrix("w"), nt.dvector("x")
    w_2 = w**2
    got, _ = ns.scan(lambda s: s + (w_2 * x).sum(), outputs_info=0, n_steps=3)
    assert len(got.node.inputs) == 4  # n_steps, initial value, w ** 2, x: nothing of w itself
    f = ns.function([w, x], got, mode="python")
    np.testing.assert_array_equal(f([[1.0, 2.0]], [3.0, 1.0]), [7, 14, 21])


def test_an_inner_scan_reads_the_state_of_the_outer_one():
    def outer(row, s):
        inner, _ = ns.scan(lambda x, t: t + x * s, row, np.float64(0))
        return s + inner[-1]

    x = np.array([[1.0, 2.0], [0.5, 0.25]])
    got, _ = ns.scan(outer, x, np.float64(1), mode="python")
    s, expected = 1.0, []
    for row in x:
        s = s + (row * s).sum()
        expected.append(s)
    np.testing.assert_allclose(got, expected)


def test_an_inner_scan_s_updates_go_on_through_the_outer_one():
    a = ns.shared(0, "a")

    def outer():
        _, updates = ns.scan(lambda: {a: a + 1}, n_steps=3)
        return [a], updates

    got, updates = ns.scan(outer, n_steps=4)
    f = ns.function([], got, updates=updates, mode="python")
    np.testing.assert_array_equal(f(), [0, 3, 6, 9])
    assert a.get_value() == 12


def test_strict_names_what_is_missing():
    w, b, x = ns.shared(np.ones(2), "weights"), nt.dscalar("bias"), nt.dvector("x")

    def step(row):
        return (row * w).sum() + b

    with pytest.raises(ns.MissingInputError, match="weights, bias"):
        ns.scan(step, x, strict=True, name="one_step")
    with pytest.raises(ns.MissingInputError, match="bias"):
        ns.scan(lambda row, w: step(row), x, non_sequences=w, strict=True)
    got, _ = ns.scan(lambda row, w, b: step(row), x, non_sequences=[w, b], strict=True)
    np.testing.assert_array_equal(ns.function([x, b], got, mode="python")([3.0], 1.0), [7])


def test_strict_lets_a_step_use_what_is_computed_from_its_arguments():
    w = nt.dmatrix("w")
    kept = w * 2  # the same node as the one inside
    got, _ = ns.scan(lambda s, w: s + (w * 2).sum(), outputs_info=0, non_sequences=w, n_steps=2, strict=True)
    assert kept.node is not None
    np.testing.assert_array_equal(ns.function([w], got, mode="python")([[1.0, 2.0]]), [6, 12])


@pytest.mark.parametrize(
    "update, words", [(lambda a: a * 1.5, "float64"), (lambda a: np.stack([a, a]), r"int64\[2\]"), (lambda a: np.float32(1), "float32")]
)
def test_an_update_must_have_the_type_of_its_variable(update, words):
    a = ns.shared(1, "a")
    with pytest.raises(ns.ScanTypeError, match=f"update of the shared variable a .*{words}"):
        ns.scan(lambda: {a: update(a)}, n_steps=3)
    assert a.get_value() == 1


def test_an_update_may_be_a_number():
    a = ns.shared(np.float32(1), "a")
    _, updates = ns.scan(lambda: {a: 2.5}, n_steps=3)
    ns.function([], updates=updates, mode="python")()
    assert a.get_value() == 2.5
    assert a.get_value().dtype == np.float32


def test_a_random_draw_while_tracing_is_refused():
    @ns.as_written
    def step(s):
        return s + random.random()  # the very mistake

    with pytest.raises(TypeError, match=r"step .*draws random numbers.*pass the numbers as a sequence"):
        ns.scan(step, outputs_info=0.0, n_steps=3)


@pytest.mark.parametrize("mode", [None, "python"])
@pytest.mark.parametrize("size", [5, 40])
def test_results_may_be_written_where_a_shared_variable_has_its_value(size, mode):
    add = ns.scan(lambda x: x + weights.sum() * weights[0], mode=mode)
    grow = ns.scan(lambda s: (s + weights[0], {weights: weights + 1}), mode=mode)
    x, start = np.arange(10.0, 10 + size), np.arange(1.0, size + 1)
    weights = ns.shared(start)
    np.testing.assert_array_equal(add(x, out=weights.get_value(borrow=True)), x + start.sum())
    weights.set_value(start)
    found = grow(outputs_info=10.0, n_steps=size, out=weights.get_value(borrow=True))
    np.testing.assert_array_equal(found, 10 + np.cumsum(start))
    np.testing.assert_array_equal(weights.get_value(), start + size)
