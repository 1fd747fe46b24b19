"""States whose elements never meet go element by element: the same values, and only where they never meet."""

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

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
