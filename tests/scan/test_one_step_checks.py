"""One step as a literal leaves no loop, and the same errors: initial values and the step's results have one shape."""

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.ir.graph import toposort
from numbascan.ir.loop_node import SCAN

MODES = [None, "python", "debug"]
V, W, M = nt.dvector("v"), nt.dmatrix("w"), nt.dmatrix("m")
INITIAL = {"initial": M, "taps": [-2, -1]}
SMALL, LARGE = 4, 30  # small dimensions are compiled in, large ones are left to the run


def error(call, *args):
    with pytest.raises(ns.ScanTypeError) as caught:
        call(*args)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ValueError)
    return str(caught.value)


def shrinks(s):
    return s[:-1]


def grows(s):
    return np.concatenate([s, s])


def multiplies(s):
    return W @ s


def adds(a, b):
    return (a + b)[1:]


def vectors(n):
    return [np.arange(1.0, n + 1)]


CASES = {
    "shrinks": (shrinks, V, [V], vectors),
    "grows": (grows, V, [V], vectors),
    "multiplies": (multiplies, V, [V, W], lambda n: [*vectors(n), np.ones((n + 1, n))]),
    "taps": (adds, INITIAL, [M], lambda n: [np.ones((2, n))]),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n", [1, SMALL, LARGE])
@pytest.mark.parametrize("case", CASES)
def test_one_step_that_changes_a_shape_is_the_error_of_a_loop(case, n, mode):
    step, initial, inputs, arguments = CASES[case]
    one, two = (ns.function(inputs, ns.scan(step, None, initial, n_steps=k)[0], mode=mode) for k in (1, 2))
    assert error(one, *arguments(n)) == error(two, *arguments(n))


@pytest.mark.parametrize("mode", MODES)
def test_one_step_that_broadcasts_a_state_is_the_error_of_a_loop(mode):
    c = nt.dvector("c")
    one, two = (ns.function([V, c], ns.scan(lambda s: s + c, None, V, n_steps=k)[0], mode=mode) for k in (1, 2))
    assert error(one, np.ones(1), np.ones(6)) == error(two, np.ones(1), np.ones(6))
    np.testing.assert_array_equal(np.full((1, 6), 2.0), one(np.ones(6), np.ones(1)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n", [SMALL, LARGE])
def test_an_update_that_changes_a_shape_is_the_error_of_a_loop(n, mode):
    w = ns.shared(np.arange(float(n)), "w")
    one, two = (ns.function([], [], updates=ns.scan(lambda: {w: w[:-1]}, n_steps=k)[1], mode=mode) for k in (1, 2))
    assert error(one) == error(two)
    assert w.get_value().shape == (n,)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n", [3, 100])
def test_a_run_that_changes_a_shape_is_a_type_error_at_any_length(n, mode):
    words = error(lambda: ns.scan(shrinks, None, np.zeros(n), n_steps=2, mode=mode))
    assert "scan 'shrinks'" in words
    assert "shape" in words


def test_a_loop_over_one_row_that_changes_a_shape_is_an_error():
    x = nt.tensor("float64", shape=(1, None), name="x")
    f = ns.function([x, V], ns.scan(lambda x, s: (s + x)[:-1], x, V)[0])
    assert "dimension 0 is 30 on entry and 29" in error(f, np.ones((1, LARGE)), np.ones(LARGE))


def test_one_step_in_a_step_is_checked_in_every_step_of_it():
    def step(k, s):
        return s + ns.scan(lambda a: a[k:], None, s, n_steps=1)[0][0].sum()

    f = ns.function([V], ns.scan(step, np.array([0, 0, 1]), V)[0])
    assert "changes the shape of state a:" in error(f, np.ones(LARGE))


def test_a_step_that_keeps_its_shape_for_sure_has_no_check():
    result, _ = ns.scan(lambda s: np.tanh(s) * 2, None, V, n_steps=1)
    assert "kept_shape" not in [node.op.name for node in toposort([result.node])]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n", [SMALL, LARGE])
def test_values_and_derivatives_of_a_checked_step_are_those_of_a_loop(n, mode):
    random = np.random.default_rng(7)
    v, w, m = random.normal(size=n), random.normal(size=(n, n)) / n, random.normal(size=(2, n))
    k = nt.lscalar("k")

    def results(n_steps):
        first, _ = ns.scan(lambda s: np.tanh(W @ s), None, V, n_steps=n_steps)
        second, _ = ns.scan(lambda a, b: a * (W @ b), None, INITIAL, n_steps=n_steps)
        return [first, second], (first**2).sum() + (second * np.cos(second)).sum()

    one, cost = results(1)
    loops, cost_of_loops = results(k)
    f = ns.function([V, W, M], [*one, *ns.grad(cost, [V, W, M])], mode=mode)
    g = ns.function([V, W, M, k], [*loops, *ns.grad(cost_of_loops, [V, W, M])], mode=mode)
    assert SCAN not in [node.op for node in toposort([result.node for result in one])]
    for got, expected in zip(f(v, w, m), g(v, w, m, 1), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)


def test_tangents_and_curvature_of_a_checked_step_are_those_of_a_loop():
    random = np.random.default_rng(8)
    v, w = random.normal(size=LARGE), random.normal(size=(LARGE, LARGE)) / LARGE

    def cost(n_steps):
        return lambda v, w: (ns.scan(lambda s: np.tanh(w @ s), None, v, n_steps=n_steps, return_updates=False) ** 3).sum()

    k, d = nt.lscalar("k"), nt.dvector("d")

    def pushed(n_steps):
        f = cost(n_steps)
        slope = ns.grad(f(V, W), V)
        return [ns.jvp(lambda v: f(v, W), (V,), (d,))[1], ns.grad((slope * d).sum(), V)]

    one = ns.function([V, W, d], pushed(1))(v, w, v[::-1])
    loop = ns.function([V, W, d, k], pushed(k))(v, w, v[::-1], 1)
    for got, expected in zip(one, loop, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)
