"""Rows that are updated where they stand, and read for other results first."""

from __future__ import annotations

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

N = 20


def put(array, index, values):
    if not isinstance(array, np.ndarray):
        return nt.set_subtensor(array[index], values)
    array = array.copy()
    array[index] = values
    return array


def sums(a, b, x):
    return a + b * x, 0.9 * b


def sums_backwards(a, b, x):
    return 0.9 * a, b + a * x


def each_other(a, b, x):
    return 0.8 * a + 0.1 * b, 0.7 * b - 0.2 * a * x


def chain(a, b, x):
    return a + b[::-1] * x, 0.9 * b + 0.01 * x


def shifted(a, b, x):
    return np.roll(a, 1) + b * x, np.where(b > 1, 0.5 * b, b + 0.3)


def parts(a, b, x):
    return put(a, np.s_[2:5], b[2:5] * x), b * 0.9 + 0.1


def parts_read(a, b, x):
    return a + b * x, put(b, np.s_[1:4], 0.5 * b[3:6])


def equal(a, b, x):
    return a + x, a + x


STEPS = [sums, sums_backwards, each_other, chain, shifted, parts, parts_read, equal]


def loop(step, a, b, xs):
    for x in xs:
        a, b = step(a, b, x)
    return a, b


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_two_states(step, steps):
    rng = np.random.default_rng(3)
    a, b, xs = rng.normal(size=N), rng.normal(size=N), rng.normal(size=steps)
    expected = loop(step, a, b, xs)
    last = ns.scan(lambda x, a, b: step(a, b, x), keep_last=1)(sequences=xs, outputs_info=[a, b]) if steps else (a, b)
    mixed = ns.jit(lambda xs, a, b: [rows[-1:] for rows in ns.scan(lambda x, a, b: step(a, b, x), xs, [a, b], return_updates=False)])
    for one, kept, right in zip(last, mixed(xs, a, b), expected, strict=True):
        np.testing.assert_allclose(one, right, rtol=1e-13)
        np.testing.assert_allclose(kept, right[None][: len(xs)], rtol=1e-13)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_one_state_and_one_whole_result(step):
    rng = np.random.default_rng(4)
    a, b, xs = rng.normal(size=N), rng.normal(size=N), rng.normal(size=6)
    for whole in (0, 1):
        wanted = lambda xs, a, b, whole=whole: [  # noqa: E731
            rows if k == whole else rows[-1]
            for k, rows in enumerate(ns.scan(lambda x, a, b: step(a, b, x), xs, [a, b], return_updates=False))
        ]
        for one, right in zip(ns.jit(wanted)(xs, a, b), ns.jit(wanted, mode="python")(xs, a, b), strict=True):
            np.testing.assert_allclose(one, right, rtol=1e-13)


@pytest.mark.parametrize("step", [sums, each_other, chain, parts_read], ids=lambda step: step.__name__)
@pytest.mark.parametrize("ends", [False, True])
def test_shared_variables_and_traces(step, ends):
    rng = np.random.default_rng(5)
    start, xs = rng.normal(size=(3, N)), rng.normal(size=6)
    results = []
    for mode in (None, "python"):
        a, b = ns.shared(start[0]), ns.shared(start[1])

        def one(x, c, a=a, b=b):
            new_a, new_b = step(a, b, x)
            found = [c + a * b, new_a[::2]], {a: new_a, b: new_b}
            return (*found, ns.until(x > 0.9)) if ends else found

        run = ns.scan(one, mode=mode, keep_last=1)
        rows = run(sequences=xs, outputs_info=[start[2], None])
        results.append([*rows, a.get_value(), b.get_value()])
    for got, right in zip(*results, strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-13)


def test_a_few_numbers_that_read_a_part_of_a_row():
    rng = np.random.default_rng(7)
    a, b, xs = rng.normal(size=3), rng.normal(size=N), rng.normal(size=5)
    step = lambda a, b, x: (a + b[4:7] * x, 0.9 * b + 0.1)  # noqa: E731
    got = ns.scan(lambda x, a, b: step(a, b, x), keep_last=1)(sequences=xs, outputs_info=[a, b])
    for one, right in zip(got, loop(step, a, b, xs), strict=True):
        np.testing.assert_allclose(one, right, rtol=1e-13)


def test_three_states_in_a_row_and_in_a_circle():
    rng = np.random.default_rng(6)
    start = rng.normal(size=(3, N))
    steps = [
        lambda a, b, c: (a + b, b + 0.5 * c, 0.9 * c),
        lambda a, b, c: (0.9 * a, b + 0.5 * a, c + b),
        lambda a, b, c: (0.5 * a + b, 0.5 * b + c, 0.5 * c + a),
        lambda a, b, c: (a + 0.1 * b * c, 0.5 * b + c, 0.5 * c + b),
    ]
    for step in steps:
        got = ns.scan(step, keep_last=1)(outputs_info=list(start), n_steps=5)
        rows = list(start)
        for _ in range(5):
            rows = list(step(*rows))
        np.testing.assert_allclose(got, rows, rtol=1e-13)


@pytest.mark.usefixtures("rewritten")
def test_sums_of_a_gradient_and_what_they_add_share_a_loop():
    f = ns.grad(lambda a: np.sum(ns.scan(lambda y: y * a, outputs_info=np.ones(1000), n_steps=9, return_updates=False)[-1]))
    a = np.linspace(0.9, 1.1, 1000)
    np.testing.assert_allclose(f(a), 9 * a**8, rtol=1e-13)
    assert "_rows" not in f.source()


def halved(a, b, s):
    return 0.5 * a, b + a[0], s + a[0]


def few_numbers(a, b, s):
    return 0.5 * a, b + s, np.maximum(s, a[1]) - b[2]


def stops(a, b, s):
    return (0.5 * a, b + a[0], s + 1.0), ns.until(a[0] < 0.3)


def parts_of_each_other(a, b, s):
    i = nt.cast(s, "int64")
    return put(a, i, b[i + 1]), put(b, i + 1, a[i]), s + 1.0


def parts_one_for_the_other(a, b, s):
    i = nt.cast(s, "int64")
    return put(a, i, b[i] + 1), put(b, i, 2 * b[0] * a[i]), s + 1.0


def sums_of_parts_of_each_other(a, b, s):
    return nt.inc_subtensor(a[2:5], b[2:5]), nt.inc_subtensor(b[1:4], a[2:5]), s + a[3]


def handed_on(a, b, s):
    return 0.5 * a, a, s + b[0]


def exchanged(a, b, s):
    return b, a, s + a[0]


NUMBERS = [halved, few_numbers, stops, parts_of_each_other, parts_one_for_the_other, sums_of_parts_of_each_other, handed_on, exchanged]


@pytest.mark.parametrize("step", NUMBERS, ids=lambda step: step.__name__)
def test_what_else_reads_a_row_reads_it_before(step):
    start = [np.arange(1.0, N + 1), np.linspace(-1, 1, N), 0.0]
    whole = ns.scan(step, mode="python")(outputs_info=start, n_steps=5)
    last = ns.scan(step, keep_last=1)(outputs_info=start, n_steps=5)
    room = [np.empty((5, *np.shape(row))) for row in start]
    into = ns.scan(step)(outputs_info=start, n_steps=5, out=room)
    for expected, kept, rows in zip(whole, last, into, strict=True):
        np.testing.assert_array_equal(kept, expected[-1])
        np.testing.assert_array_equal(rows, expected)


@pytest.mark.parametrize("step", NUMBERS, ids=lambda step: step.__name__)
@pytest.mark.parametrize("is_seen", [False, True])
def test_what_else_reads_a_shared_row_reads_it_before(step, is_seen):
    results = []
    for mode in (None, "python"):
        a, b, s = (ns.shared(value) for value in (np.arange(1.0, N + 1), np.linspace(-1, 1, N), 0.0))

        def one(a=a, b=b, s=s):
            found = step(a, b, s)
            (*new, ends) = found if step is stops else (found, None)
            updates = dict(zip((a, b, s), new[0], strict=True))
            seen = [a[1], b[::-1], s * 2.0] if is_seen else [s * 2.0, s * 3.0]
            return (seen, updates) if ends is None else (seen, updates, ends)

        rows = ns.scan(one, mode=mode, keep_last=1)(n_steps=5)
        results.append([*rows, a.get_value(), b.get_value(), s.get_value()])
    for got, right in zip(*results, strict=True):
        np.testing.assert_array_equal(got, right)


@pytest.mark.usefixtures("rewritten")
def test_numbers_that_are_read_later_leave_a_row_in_its_place():
    f = ns.scan(halved, keep_last=1)
    f(outputs_info=[np.ones(N), np.ones(N), 0.0], n_steps=3)
    assert "_rows" not in f.source()
