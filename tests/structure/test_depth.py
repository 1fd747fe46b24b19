"""Graphs of thousands of operations, one on the other: no walk recurses over their depth, and no text nests them."""

import ast
import copy
import pickle
import sys

import numpy as np
import pytest
from wide import wide

import numbascan as ns
import numbascan.tensor as nt
from numbascan.emit.cpu.module import module_text
from numbascan.ir.graph import close
from numbascan.ir.loops import parts, walk
from numbascan.plan.cpu import CPU
from numbascan.plan.plan import plan

N = 1_500  # two operations each: many times as deep as Python may recurse here


def horner(x, n=N):
    s = x
    for _ in range(n):
        s = s * x + 0.5
    return s


def expected(x, n=N):
    """The values, and the derivatives."""
    s, slope = x, np.ones_like(x)
    for _ in range(n):
        s, slope = s * x + 0.5, slope * x + s
    return s, slope


@pytest.fixture(autouse=True)
def shallow():
    """Python may recurse a little deeper than the test itself."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.parametrize("n", wide([N, 5_000], first=1))
def test_a_deep_graph_is_interpreted_and_differentiated(n):
    x, both, f = np.float64(0.3), np.array([0.3, -0.3]), lambda x: horner(x, n)
    np.testing.assert_allclose(ns.jit(ns.value_and_grad(f), mode="python")(x), expected(x, n), rtol=1e-14)
    np.testing.assert_allclose(ns.jit(ns.vmap(f), mode="python")(both), expected(both, n)[0], rtol=1e-14)


def test_a_deep_graph_is_shown_drawn_copied_and_pickled(tmp_path):
    x = nt.dscalar("x")
    y = horner(x)
    assert str(ns.show(y)).count("multiply") == N
    assert repr(y) == str(y) == "<add: float64[]>"
    ns.draw(y, str(tmp_path / "y.dot"))
    assert (tmp_path / "y.dot").read_text().count(" * ") == N
    assert copy.deepcopy(y).node is y.node
    content = pickle.dumps((x, y))
    del x, y  # all nodes go, one after the other
    x, y = pickle.loads(content)
    assert ns.function([x], y, mode="python")(0.5) == pytest.approx(expected(np.float64(0.5))[0], rel=1e-14)


@pytest.mark.parametrize("variable", [nt.dscalar, nt.dvector, nt.fvector])
def test_the_text_of_a_deep_graph_nests_little_and_grows_with_its_length(variable):
    x = variable("x")
    sizes = []
    for n in (N // 4, N):
        made = plan(close([x.node], [horner(x, n).node]), CPU, "horner").function
        sizes.append(len(module_text(made)))
        ast.parse(module_text(made))
        assert max(len(list(parts(stmt.value))) for stmt in walk(made.body) if hasattr(stmt, "value")) < 200
    assert sizes[1] < 4.5 * sizes[0]


@pytest.mark.parametrize("op", [lambda s: s[::-1], lambda s: s[1:], lambda s: np.concatenate([s[1:], s]), lambda s: s + np.sum(s)])
def test_views_lengths_and_sums_in_a_chain_are_no_longer_than_it(op):
    x = s = nt.dvector("x")
    sizes = []
    for _ in range(2):
        for _ in range(60):
            s = op(s)
        sizes.append(len(module_text(plan(close([x.node], [s.node]), CPU, "chain").function)))
    assert sizes[1] < 2.5 * sizes[0]


def test_a_sum_of_many_terms_and_a_long_polynomial_compile():
    a = np.linspace(0.1, 0.9, 120)
    f = ns.jit(lambda a: (sum(a[k] * k for k in range(120)), horner(a[:2], 60)))
    total, values = f(a)
    np.testing.assert_allclose(total, np.sum(a * np.arange(120)), rtol=1e-12)
    np.testing.assert_allclose(values, expected(a[:2], 60)[0], rtol=1e-13)
    assert f.memory().results == 16
    slope = ns.grad(lambda x: ns.scan(lambda s: horner(s, 30) * 0.1, outputs_info=x, n_steps=2)[0][-1])(0.3)
    once = expected(np.float64(0.3), 30)
    again = expected(0.1 * once[0], 30)
    assert slope == pytest.approx(0.01 * once[1] * again[1], rel=1e-12)


def test_a_sum_of_sums_of_the_same_terms_is_differentiated_in_a_loop():
    def step(s):
        for _ in range(60):
            s = (s + s) * 0.5
        return s

    assert ns.grad(lambda x: ns.scan(step, outputs_info=x, n_steps=2)[0][-1])(3.0) == 1.0


def test_an_index_that_names_its_own_index_thrice_does_not_grow_by_powers():
    x = nt.dvector("x")
    rolled, expected, value = nt.zeros_like(x), np.zeros(5), np.arange(5.0)
    for _ in range(12):
        rolled, expected = nt.roll(rolled, 1) + x, np.roll(expected, 1) + value
    f = ns.function([x], rolled[::-1])
    np.testing.assert_array_equal(f(value), expected[::-1])
    assert max(map(len, f.source().splitlines())) < 2000
