"""Work that is the same at every step is done once, before the loop."""

import numpy as np
import pytest
from rewrite.graphs import after, assert_same, graph_of, loops, ops, ops_in

import numbascan as ns
import numbascan.tensor as nt
from numbascan.rewrite import pipeline
from numbascan.rewrite.push_out_non_seq import push_out_non_seq

rng = np.random.default_rng(7)
h, a, A, k, n = nt.dvector("h"), nt.dvector("a"), nt.dmatrix("A"), nt.dscalar("k"), nt.lscalar("n")


def rewritten(step, n_steps=5):
    """The graph before and after, of a step of a state and of a, A and k."""
    rows = ns.scan(step, outputs_info=h, non_sequences=[a, A, k], n_steps=n_steps, return_updates=False)
    graph = graph_of([h, a, A, k, n], [rows])
    return graph, after(push_out_non_seq, graph)


@pytest.mark.parametrize(
    "step, stays, leaves",
    {
        "a product": (lambda h, a, A, k: h * (A @ a), ["multiply"], ["contract"]),
        "a sum": (lambda h, a, A, k: h * a.sum(), ["multiply"], ["sum"]),
        "arithmetic on arrays": (lambda h, a, A, k: h + (a * a - k), ["add"], ["multiply", "subtract"]),
        "a function of a number": (lambda h, a, A, k: h * np.exp(-k), ["multiply"], ["negative", "exp"]),
        "a function below a view": (lambda h, a, A, k: h + np.sin(A)[0, ::-1], ["index", "add"], ["sin"]),
        "an array put together": (lambda h, a, A, k: h + np.stack([k, 2 * k]), ["add"], ["index", "multiply", "index", "concatenate"]),
        "a matrix for a product": (lambda h, a, A, k: h @ (a[:, None] * a), ["contract"], ["index", "multiply"]),
        "what a function makes, before it is broadcast": (
            lambda h, a, A, k: (h * (np.exp(a)[:, None] - a)).sum(axis=0),
            ["index", "subtract", "multiply", "sum"],
            ["exp"],
        ),
    }.values(),
)
def test_work_on_non_sequences_leaves(step, stays, leaves):
    graph, found = rewritten(step)
    (loop,) = loops(found)
    assert ops_in(loop) == stays
    assert sorted(ops_in(loops(graph)[0])) == sorted(stays + leaves)
    assert [name for port in loop.non_seqs[3:] for name in ops([port.outer])] == leaves


@pytest.mark.parametrize(
    "step",
    {
        "numbers": lambda h, a, A, k: h * (1 - k) / (1 + k),
        "views": lambda h, a, A, k: h @ A.T[::-1],
        "what is broadcast to a matrix": lambda h, a, A, k: (h * (a[:, None] - a)).sum(axis=0),
        "what a state takes part in": lambda h, a, A, k: np.exp(h * k) @ A,
    }.values(),
)
def test_other_work_stays(step):
    graph, found = rewritten(step)
    assert found == graph


def test_work_leaves_all_loops_around_it():
    def outer(h, a):
        return ns.scan(lambda row, a: row * np.exp(a), sequences=np.stack([h, h]), non_sequences=a, return_updates=False)[-1]

    rows = ns.scan(outer, outputs_info=h, non_sequences=a, n_steps=4, return_updates=False)
    (loop,) = loops(pipeline.rewritten(graph_of([h, a], [rows])))
    assert ops([loop.non_seqs[-1].outer]) == ["exp"]
    assert "scan" in ops_in(loop)


@pytest.mark.parametrize("n_steps", [0, 3])
def test_a_loop_of_no_steps_does_not_fail_where_its_step_would(n_steps):
    def f(A, x, n):
        return ns.scan(lambda x, A: np.linalg.solve(A, x) + np.linalg.cholesky(A + np.eye(3))[0], None, x, A, n, return_updates=False)

    if n_steps:
        assert_same(lambda A, x: f(A, x, n_steps), np.diag([1.0, 2.0, 3.0]), np.ones(3), rewrite=push_out_non_seq)
        for without in ((), ("push_out_non_seq",)):
            with pytest.raises(np.linalg.LinAlgError):
                ns.jit(f, mode=ns.Mode(without=without))(np.zeros((3, 3)), np.ones(3), n_steps)
    else:
        assert ns.jit(f)(np.full((3, 3), np.nan), np.ones(3), n_steps).shape == (0, 3)
        assert ns.jit(f)(np.zeros((3, 3)), np.ones(3), n_steps).shape == (0, 3)


def f(h, a, A, k):
    """Factors, sums, functions and products of what no step changes, a choice, an inner loop."""

    def step(x, h, a, A, k):
        S = A @ A.T + np.exp(k) * np.eye(4)
        w, V = np.linalg.eigh(S)
        inner = ns.scan(lambda y, A: np.tanh(A @ A) @ y, outputs_info=h, non_sequences=A, n_steps=2, return_updates=False)[-1]
        chosen = nt.ifelse(h[0] > 0, h * np.sin(a), np.linalg.solve(S, a))
        z = x @ np.linalg.cholesky(S) + V.T @ (V @ h) / w.sum() + nt.softmax(A, axis=1) @ h + inner + np.sort(a)
        return np.tanh((z + chosen) / 8), np.linalg.slogdet(S)[1] * h[0]

    rows = np.sin(np.outer(a, np.arange(1.0, 8.0))).T
    h, terms = ns.scan(step, rows, [h, None], [a, A, k], return_updates=False)
    return (h**2).sum() + terms.sum() / 10


ARGUMENTS = rng.normal(size=4), rng.normal(size=4), rng.normal(size=(4, 4)) / 2, np.float64(0.3)


def test_values_stay():
    assert_same(f, *ARGUMENTS, rewrite=push_out_non_seq)


def test_gradients_stay():
    assert_same(ns.grad(f, (0, 1, 2, 3)).__wrapped__, *ARGUMENTS, rewrite=push_out_non_seq, compiled=False, rtol=1e-10)


def test_what_fails_for_some_values_leaves_in_its_own_precision():
    a = (np.eye(3) + 0.1).astype("float32")
    step = ns.scan(lambda x, y, a: np.linalg.inv(a))
    found = step(sequences=np.ones((4, 3), "float32"), outputs_info=0.0, non_sequences=a)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[-1], np.linalg.inv(a), rtol=1e-5)
