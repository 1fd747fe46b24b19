"""A linear system whose matrix is the same at every step is factorised once, before the loop."""

import numpy as np
import pytest
from rewrite.graphs import after, graph_of, loops, ops, ops_in

import numbascan as ns
import numbascan.tensor as nt
from numbascan.rewrite.factor_once import factor_once
from numbascan.rewrite.pipeline import rewritten

rng = np.random.default_rng(3)
a, s, n = nt.dmatrix("a"), nt.dvector("s"), nt.lscalar("n")
MATRIX, START = rng.normal(size=(40, 40)) + 2 * np.eye(40), rng.normal(size=40)


def heat(step, a=a, s=s, n_steps=4, **options):
    return ns.scan(step, outputs_info=s, non_sequences=a, n_steps=n_steps, return_updates=False, **options)


def implicit(s, a):
    return np.linalg.solve(a, np.tanh(s) + 1)


def test_factors_leave_the_loop():
    (loop,) = loops(rewritten(graph_of([a, s], [heat(implicit)])))
    assert ops_in(loop).count("solve_factor") == 2
    assert "solve_vector" not in ops_in(loop)
    assert {"lu_factor", "permutation_of_pivots"} <= {name for port in loop.non_seqs for name in ops([port.outer])}


@pytest.mark.parametrize(
    "step",
    {
        "a matrix of the step": lambda s, a: np.linalg.solve(a + s, s),
        "a right-hand side that is fixed": lambda s, a: s + np.linalg.solve(a, a[0]),
        "a stack of matrices": lambda s, a: np.linalg.solve(np.stack([a, a.T]), np.stack([s, s])[:, :, None])[1, :, 0],
        "a small matrix": lambda s, a: np.linalg.solve(np.stack([s[:2], a[0, :2]]), s[:2])[0] + s,
    }.values(),
)
def test_other_systems_stay(step):
    graph = graph_of([a, s], [heat(step)])
    assert after(factor_once, graph) == graph


def test_a_small_matrix_stays():
    small, start = nt.tensor("float64", shape=(3, 3), name="small"), nt.tensor("float64", shape=(3,), name="start")
    graph = graph_of([small, start], [heat(implicit, small, start)])
    assert after(factor_once, graph) == graph


@pytest.mark.parametrize("rows", [1, 5, 8, 32, 40])
def test_values_and_derivatives_are_those_of_solve(rows):
    """Two systems, one the right-hand side of the other, with the matrix and its transpose."""

    def cost(a, s):
        return (heat(lambda s, a: np.tanh(np.linalg.solve(a.T, np.linalg.solve(a, s)) + s), a, s)[-1] ** 2).sum()

    matrix, start = MATRIX[:rows, :rows] + 3 * np.eye(rows), START[:rows]
    f = ns.function([a, s], [cost(a, s), *ns.grad(cost(a, s), [a, s])])
    assert f.source().count("lu_into(") >= 2
    expected = ns.function([a, s], [cost(a, s), *ns.grad(cost(a, s), [a, s])], mode="python")(matrix, start)
    for one, other in zip(f(matrix, start), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_several_right_hand_sides_use_the_factors_too():
    """Values, derivatives, and the message of a singular matrix where a step runs, for as many columns as there may be."""
    sides = nt.dmatrix("sides")
    rows = heat(lambda s, a: np.tanh(np.linalg.solve(a, s)) + s.sum(axis=1, keepdims=True), a, sides, n_steps=n)
    outputs = [rows, *ns.grad((rows[-1] ** 2).sum(), [a, sides])]
    f, oracle = (ns.function([a, sides, n], outputs, mode=mode) for mode in (None, "python"))
    assert "lu_into(" in f.source()
    assert "solve_into(" not in f.source()
    matrix = MATRIX[:17, :17] + 3 * np.eye(17)
    for count in (1, 3, 40):
        start = rng.normal(size=(17, count))
        for one, expected in zip(f(matrix, start, 3), oracle(matrix, start, 3), strict=True):
            np.testing.assert_allclose(one, expected, rtol=1e-9, atol=1e-12)
    with pytest.raises(np.linalg.LinAlgError, match=r"solve.*Singular matrix"):
        f(np.ones((17, 17)), np.ones((17, 3)), 2)


@pytest.mark.parametrize("dtype", ["float32", "complex128", "int64"])
def test_of_every_dtype(dtype):
    matrix = (4 * MATRIX[:6, :6] + (1j * MATRIX[6:12, :6] if dtype == "complex128" else 0)).astype(dtype)
    x, start = nt.tensor(dtype, shape=(None, None)), nt.dvector()
    rows = heat(lambda s, a: np.linalg.solve(a, s).real.astype("float64"), x, start)
    expected = ns.function([x, start], rows, mode="python")(matrix, START[:6])
    np.testing.assert_allclose(ns.function([x, start], rows)(matrix, START[:6]), expected, rtol=3e-5 if dtype == "float32" else 1e-12)


def test_a_singular_matrix_is_named_where_a_step_runs():
    f = ns.function([a, s, n], heat(implicit, n_steps=n))
    g = ns.function([a, s, n], heat(implicit, n_steps=n), mode=ns.Mode(without=["factor_once"]))
    for matrix in (np.zeros((6, 6)), np.ones((40, 40))):
        start = np.ones(len(matrix))
        assert f(matrix, start, 0).shape == g(matrix, start, 0).shape == (0, len(matrix))
        messages = []
        for function in (f, g):
            with pytest.raises(np.linalg.LinAlgError, match=r"solve.*Singular matrix") as error:
                function(matrix, start, 2)
            messages.append(str(error.value))
        assert messages[0] == messages[1]
    whole = np.full((6, 6), np.nan)
    assert np.isnan(f(whole, np.ones(6), 2)).all()


def test_with_lanes_an_end_and_a_check():
    a = MATRIX[:12, :12] + 4 * np.eye(12)

    def last(s):
        def step(s):
            new = np.linalg.solve(a, s)
            return new, ns.until(np.abs(new).max() < 0.05)

        return ns.scan(step, outputs_info=s, n_steps=50, keep_last=1, return_updates=False)

    starts = rng.normal(size=(5, 12)) * np.arange(1, 6)[:, None]
    expected = [ns.jit(last, mode="python")(start) for start in starts]
    np.testing.assert_allclose([ns.jit(last)(start) for start in starts], expected, rtol=1e-10)
    np.testing.assert_allclose(ns.jit(ns.vmap(last))(starts), expected, rtol=1e-10)
    checked = ns.jit(last, mode=ns.Mode(check_finite=True))
    np.testing.assert_allclose(checked(starts[0]), expected[0], rtol=1e-10)
    with pytest.raises(FloatingPointError):
        checked(starts[0] * np.nan)


def test_with_checkpoints_and_in_a_loop_within_a_loop():
    def cost(a, s, checkpoint=None):
        def outer(s, a):
            return heat(lambda s, a: np.tanh(np.linalg.solve(a, s)) + s, a, s, n_steps=3)[-1]

        return (heat(outer, a, s, n_steps=5, checkpoint=checkpoint)[-1] ** 2).sum()

    matrix, start = MATRIX[:6, :6] + 3 * np.eye(6), START[:6]
    expected = ns.jit(ns.grad(cost, (0, 1)), mode="python")(matrix, start)
    for checkpoint in (None, 2):
        found = ns.grad(lambda a, s, checkpoint=checkpoint: cost(a, s, checkpoint), (0, 1))(matrix, start)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10)
