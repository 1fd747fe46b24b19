"""States whose elements never meet go element by element: the same values, and only where they never meet."""

import numpy as np
import pytest

import numbascan as ns
import numbascan.lax as lax
import numbascan.tensor as nt
from numbascan.ir.loops import For, Function, Let, Load, Name, Store, add
from numbascan.plan import passes
from numbascan.plan.cpu import CPU

rng = np.random.default_rng(12)
X, Y, R = rng.uniform(0.5, 1, size=(2, 150)), rng.normal(size=150), rng.normal(size=(40, 150))


def end(step, outputs_info, sequences=None, non_sequences=None, n_steps=40):
    return ns.scan(step, sequences, outputs_info, non_sequences, n_steps, return_updates=False)


def powers(x, y, r):
    return end(lambda p, x: p * x, y, None, x[0])[-1]


def with_a_sequence(x, y, r):
    return end(lambda row, s, x: s * x + np.sin(row) * s, y, r, x[0])[-1]


def with_a_number_of_its_step(x, y, r):
    return end(lambda row, s: 0.5 * s + row[3], y, r)[-1]


def neighbours(x, y, r):
    return end(lambda s: np.concatenate([s[1:], s[:1]]) * 0.5 + s, y)[-1]


def two_states(x, y, r):
    a, b = end(lambda a, b, x: (a * x, b + a), [y, y], None, x[0])
    return a[-1], b[-1]


def all_rows(x, y, r):
    return end(lambda s, x: s * x, y, None, x[0])


def ends_early(x, y, r):
    return end(lambda s, x: (s * x, ns.until(s.max() < 0.4)), y, None, x[0])[-1]


def a_matrix(x, y, r):
    return end(lambda s, x: s * x, r, None, x[0])[-1]


def carried(x, y, r):
    memory = ns.scan(lambda s, x: nt.set_subtensor(s[2:5], x[2:5] * s[2:5]), None, y, x[0], 7, return_updates=False)
    return memory[-1]


PROGRAMS = [powers, with_a_sequence, with_a_number_of_its_step, neighbours, two_states, all_rows, ends_early, a_matrix, carried]


LEAST = {ends_early: 1, with_a_number_of_its_step: 4}  # elements that a program asks for


@pytest.mark.parametrize("program, n", [(one, n) for one in PROGRAMS for n in (0, 1, 13, 16, 128, 150) if n >= LEAST.get(one, 0)])
def test_every_number_of_elements(program, n):
    arguments = X[:, :n], Y[:n], R[:, :n]
    found, expected = (ns.jit(program, mode=mode)(*arguments) for mode in (None, "python"))
    for one, other in zip(*(result if isinstance(result, tuple) else (result,) for result in (found, expected)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("program, is_turned", [(powers, True), (with_a_sequence, True), (neighbours, False), (all_rows, False)])
def test_only_elements_that_never_meet_change_places_with_time(program, is_turned):
    compiled = ns.jit(program)
    compiled(X, Y, R)
    assert ("_lanes[s" in compiled.source()) == is_turned


def test_few_elements_stay_inside():
    text = ns.jit(lambda y, r: end(lambda row, s: np.tanh(0.5 * s + row[3]), y, r)[-1]).lower(Y[:12], R).source()
    assert text.index("for t in range(") < text.index("tanh_in_lanes(")


def test_sixteen_elements_go_side_by_side():
    text = ns.jit(lambda y, r: end(lambda row, s: np.tanh(0.5 * s + row[3]), y, r)[-1]).lower(Y[:16], R).source()
    assert text.index("for t in range(") < text.index("in range(lanes(16)):", text.index("for t in")) < text.index("tanh_in_lanes(")


def test_a_loop_of_no_steps_leaves_the_state_to_an_error():
    for n_steps in (0, 3):
        f = ns.jit(lambda x, n_steps: end(lambda p, x: p * x, np.ones(150), None, x, n_steps)[-1])
        if n_steps:
            np.testing.assert_allclose(f(X[0], n_steps), X[0] ** 3, rtol=1e-14)
        else:
            with pytest.raises(IndexError, match="0 steps"):
                f(X[0], n_steps)


def place_of_the_step(x, n):
    x = x.copy()
    for t in range(n):
        for i in range(x.shape[0]):
            j = (t + i) % 3
            x[i, j] = x[i, j] * 0.5 + 1.0 + t
    return x


def place_of_another_state(x, n):
    x, k = x.copy(), np.zeros(x.shape[0], np.int64)
    for t in range(n):
        for i in range(x.shape[0]):
            x[i, k[i] % 3] = x[i, k[i] % 3] + 1.0 + t
            k[i] = (k[i] + 1) % 3
    return x


@pytest.mark.parametrize("program", [place_of_the_step, place_of_another_state])
def test_elements_that_are_other_ones_at_each_step_stay_inside(program):
    x = rng.normal(size=(40, 3))
    np.testing.assert_array_equal(ns.jit(program)(x, 7), program(x, 7))


def test_without_steps_no_place_is_read_that_steps_alone_check():
    def column(x, k, n):
        x = x.copy()
        for t in range(n):
            for i in range(x.shape[0]):
                x[i, k] = x[i, k] * 0.5 + t
        return x

    x, compiled = rng.normal(size=(40, 3)), ns.jit(column)
    np.testing.assert_array_equal(compiled(x, 2, 5), column(x, 2, 5))
    np.testing.assert_array_equal(compiled(x, 10**12, 0), x)
    with pytest.raises(IndexError):
        compiled(x, 3, 1)


def test_without_steps_arrays_may_have_other_lengths():
    compiled = ns.jit(lambda x, y, n: lax.fori_loop(0, n, lambda i, x: x * y, x))
    np.testing.assert_array_equal(compiled(Y, Y, 2), Y * Y * Y)
    np.testing.assert_array_equal(compiled(Y, np.ones(10**7), 0), Y)
    with pytest.raises(ValueError, match="150"):
        compiled(Y, np.ones(151), 1)


I, T, N = (Name("int64", name) for name in "itn")


def load(array, *index, dtype="float64"):
    return Load(dtype, array, index)


@pytest.mark.parametrize(
    "body, stop, is_turned",
    [
        ([Store("x", (I,), load("x", I))], N, True),
        ([Store("x", (I, load("k", I, dtype="int64")), load("x", I, load("k", I, dtype="int64")))], N, True),  # of what no step writes
        ([Store("x", (I, T), load("x", I, T))], N, False),
        ([Let("j", T), Store("x", (I, Name("int64", "j")), load("x", I, Name("int64", "j")))], N, False),
        (
            [
                Store("x", (I, load("k", I, dtype="int64")), load("x", I, load("k", I, dtype="int64"))),
                Store("k", (I,), add(load("k", I, dtype="int64"), 1)),
            ],
            N,
            False,
        ),
        ([Store("x", (I,), load("x", add(I, 1)))], N, False),
        ([Store("x", (I,), load("x", I))], T, False),
        ([Store("x", (I,), load("x", I))], load("x", 0), False),
    ],
)
def test_elements_that_are_the_same_at_each_step(body, stop, is_turned):
    time = For("t", 0, 5, [For("i", 0, stop, body)], kind="time")
    (turned,) = passes.interchange.interchange(Function("f", (), [time]), CPU).body
    assert (turned.name == "i") == is_turned
