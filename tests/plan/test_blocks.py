"""Loops in blocks of time: the same values, for any length, and only where the model of the cost says so."""

import random
from dataclasses import replace

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.backends import BACKENDS
from numbascan.ir.loops import Apply, Literal
from numbascan.plan.cpu import CPU
from numbascan.plan.passes import blocks

LENGTHS = (0, 1, 255, 256, 257, 1000)
rng = np.random.default_rng(5)
X = rng.normal(size=1000)


@pytest.fixture
def eager(monkeypatch):
    """Everything that may leave a recurrence does, in blocks of four steps."""
    monkeypatch.setattr(BACKENDS["numba"], "machine", replace(CPU, block=4, block_gain=float("inf")))
    monkeypatch.setattr(blocks, "vector_gain", lambda expr: isinstance(expr, Apply))


def loss(x, a):
    states, terms = ns.scan(
        lambda x, v, a: (0.1 + 0.2 * x * x + a * v, np.log(v) + x * x / v),
        sequences=x,
        outputs_info=[1.0, None],
        non_sequences=a,
        return_updates=False,
    )
    return terms.sum() + states[-1]


@pytest.mark.parametrize("n", LENGTHS[1:])
def test_a_likelihood_at_the_ends_of_blocks(n):
    found = ns.jit(loss)
    np.testing.assert_allclose(found(X[:n], 0.7), ns.jit(loss, mode="python")(X[:n], 0.7), rtol=1e-13)
    assert "# the recurrence" in found.source()
    assert "# what no state waits for" in found.source()


def test_functions_of_a_sequence_are_computed_before_the_recurrence():
    step = ns.scan(lambda x, s: s * np.tanh(x) + np.exp(-x * x))
    plain = ns.scan(lambda x, s: s * np.tanh(x) + np.exp(-x * x), mode="python")
    for n in LENGTHS:
        np.testing.assert_allclose(step(sequences=X[:n], outputs_info=0.3), plain(sequences=X[:n], outputs_info=0.3), rtol=1e-12)
    assert step.source().index("# what no state enters") < step.source().index("# the recurrence")


def test_what_fits_into_the_shadow_of_the_recurrence_stays():
    step = ns.scan(lambda x, s: 0.9 * s + x / 3.0)
    step(sequences=X, outputs_info=0.0)
    assert "t0" not in step.source()


def test_a_function_of_the_state_that_the_state_waits_for_stays():
    step = ns.scan(lambda x, s: np.tanh(s + x))
    step(sequences=X, outputs_info=0.0)
    assert "t0" not in step.source()


def test_loops_that_end_early_are_left_as_they_are():
    step = ns.scan(lambda x, s: ((0.9 * s + np.exp(x), np.log(s)), ns.until(s > 4.0)))
    plain = ns.scan(lambda x, s: ((0.9 * s + np.exp(x), np.log(s)), ns.until(s > 4.0)), mode="python")
    for found, expected in zip(step(sequences=X, outputs_info=[1.0, None]), plain(sequences=X, outputs_info=[1.0, None]), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.usefixtures("rewritten")
def test_memory_for_blocks_does_not_grow_with_the_number_of_steps():
    found = ns.jit(loss)
    sizes = []
    for n in (300, 1000):
        found(X[:n], 0.7)
        sizes.append(found.memory().total)
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("backwards", [False, True])
def test_taps_in_both_directions(eager, backwards):
    def step(a, b, c, s, r):
        return np.sin(a) * s + b / (2 + c * c) - 0.1 * r, np.cos(s) * a

    options = {
        "sequences": {"input": X[:50], "taps": [-2, 0, 1]},
        "outputs_info": [{"initial": [0.1, 0.2], "taps": [-1, -2]}, None],
        "go_backwards": backwards,
    }
    for found, expected in zip(ns.scan(step)(**options), ns.scan(step, mode="python")(**options), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_a_branch_not_taken_is_not_computed_before(eager):
    """Nothing of a choice leaves it: what it guards may be out of bounds."""

    @ns.scan
    def step(k, s, table):
        return 0.5 * s + nt.switch(k >= 0, np.exp(table[nt.maximum(k, 0)]), -1.0)

    k, table = rng.integers(-3, 4, size=40), np.arange(4.0)
    expected, s = [], 0.0
    for i in k:
        s = 0.5 * s + (np.exp(table[max(i, 0)]) if i >= 0 else -1.0)
        expected.append(s)
    np.testing.assert_allclose(step(sequences=k, outputs_info=0.0, non_sequences=table), expected, rtol=1e-13)


def random_step(seed):
    """A step of scalars: three states, a sequence at two taps, a non-sequence, two traces."""
    choose = random.Random(seed)
    templates = ["({0} + {1})", "({0} - {1})", "0.7 * {0} * {1}", "{0} / (2 + {1} * {1})", "np.sin({0} + {1})"]
    templates += [
        "np.tanh({0})",
        "np.exp(-{0} * {0})",
        "np.log(1.5 + {0} * {0})",
        "np.where({0} > {1}, {0}, 0.3 * {1})",
        "np.minimum({0}, {1})",
    ]
    names = ["x", "y", "p", "q", "r", "a"]
    lines = []
    for k in range(choose.randint(4, 11)):
        first, second = choose.choice(names), choose.choice(names)
        lines.append(f"    v{k} = {choose.choice(templates).format(first, second)}")
        names.append(f"v{k}")
    states = [f"0.5 * np.tanh({choose.choice(names)}) + 0.2 * {choose.choice('pqr')}" for _ in range(3)]
    traces = [choose.choice(names[6:]) for _ in range(2)]
    text = "\n".join(["def step(x, y, p, q, r, a):", *lines, f"    return {', '.join([*states, *traces])}"])
    made = {"np": np}
    exec(text, made)
    return made["step"], text


@pytest.mark.parametrize("seed", range(12))
def test_random_steps_with_all_that_may_leave_outside_the_recurrence(eager, seed):
    step, text = random_step(seed)

    def program(x, a):
        outputs = ns.scan(
            step,
            sequences={"input": x, "taps": [-1, 0]},
            outputs_info=[0.1, -0.2, 0.3, None, None],
            non_sequences=a,
            return_updates=False,
        )
        return [outputs[0], outputs[1][-1], outputs[2].sum(), outputs[3], outputs[4].sum()]

    compiled, plain = ns.jit(program), ns.jit(program, mode="python")
    for n in (2, 3, 6, 10, 13, 32):
        for found, expected in zip(compiled(X[:n], 0.6), plain(X[:n], 0.6), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13, err_msg=text)


def products(x, row, w):
    """A row that a step changes in one place, and a product that reads all of it."""

    def step(x, row, s, w):
        product = np.dot(row, w)
        s = 0.5 * s + np.exp(-product - x) / (1.0 + product)
        return nt.set_subtensor(row[3], 50.0 * s), s

    rows, states = ns.scan(step, sequences=x, outputs_info=[row, 1.0], non_sequences=w, return_updates=False)
    return rows[-1], states


@pytest.mark.parametrize("n", LENGTHS[1:])
def test_a_routine_reads_what_the_step_before_has_written(n):
    row, w = np.abs(rng.normal(size=(2, 600)))
    for found, expected in zip(ns.jit(products)(X[:n], row, w / 600), ns.jit(products, mode="python")(X[:n], row, w / 600), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11)


def of_zeros(x):
    """Two numbers that no state waits for, apart in the sign of a zero alone."""
    return ns.scan(
        lambda x, a, b: (0.1 * a * np.arctan2(0.0, x) + 0.2, 0.1 * b * np.arctan2(-0.0, x) + 0.2),
        sequences=-np.abs(x),
        outputs_info=[1.0, 1.0],
        return_updates=False,
    )


def test_a_negative_zero_is_another_number():
    for found, expected in zip(ns.jit(of_zeros)(X), ns.jit(of_zeros, mode="python")(X), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("number", [0.0, complex(1.0, 0.0)])
def test_expressions_of_zeros_of_both_signs_differ(number):
    dtype = "complex128" if isinstance(number, complex) else "float64"
    assert Literal(dtype, number) == Literal(dtype, number)
    assert hash(Literal(dtype, number)) == hash(Literal(dtype, number))
    assert Literal(dtype, number) != Literal(dtype, number.conjugate() if dtype == "complex128" else -number)
    assert Literal("float64", 1.0) != Literal("float32", 1.0)


def test_a_row_that_a_step_computes_is_in_no_slice():
    def rows(x):
        v, out = 1.0, np.zeros(x.shape[0] - 3)
        for t in range(x.shape[0] - 3):
            j = (t * t) % 3
            near = x[t : t + 3]
            out[t] = np.log(v) + np.exp(near[j]) / v + np.sqrt(v)
            v = 0.1 + 0.2 * j + 0.7 * v
        return out

    compiled = ns.jit(rows)
    np.testing.assert_allclose(compiled(X), rows(X), rtol=1e-13)
    assert "# the recurrence" in compiled.source()
