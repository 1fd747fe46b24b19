"""`ns.scan` called again and again: what an earlier call compiled is found, and nothing that has changed since is missed."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.front.scan import immediate
from numbascan.front.scan.arguments import Arguments

X = np.array([1.0, 2.0, 4.0])


@pytest.fixture
def long_ways(monkeypatch):
    """How often a call took the long way."""
    count, read = [], immediate.run_now
    monkeypatch.setattr("numbascan.front.scan.scan.run_now", lambda *args: count.append(1) or read(*args))
    return count


def doubled(s):
    return s * 2


def test_the_third_call_takes_the_short_way(long_ways):
    for _ in range(6):
        rows = ns.scan(lambda s: s * 3, outputs_info=X, n_steps=2, return_updates=False)
        np.testing.assert_array_equal(rows, [3 * X, 9 * X])
    assert len(long_ways) == 2  # nothing is held of the first function of its code

    def quintupled(s):  # of this test alone: others may have run before it
        return s * 5

    for _ in range(6):
        ns.scan(quintupled, outputs_info=X, n_steps=2)
    assert len(long_ways) == 3


def test_results_are_arrays_of_their_own():
    rows = [ns.scan(doubled, outputs_info=X, n_steps=2, return_updates=False) for _ in range(4)]
    rows[2][...] = 0
    np.testing.assert_array_equal(rows[3], [2 * X, 4 * X])


def test_updates_come_with_results_where_they_are_wanted():
    for _ in range(3):
        assert type(ns.scan(doubled, outputs_info=X, n_steps=2)) is tuple
        assert type(ns.scan(doubled, outputs_info=X, n_steps=2, return_updates=False)) is np.ndarray
        assert ns.scan(doubled, outputs_info=X, n_steps=2)[1] == {}


def test_keywords_by_turns():
    keywords = [{}, {"keep_last": 1}, {"keep_last": 2}, {"save_every": 2}, {"return_list": True}, {"name": "twice"}, {"mode": "python"}]
    rows = X * 2.0 ** np.arange(1, 5)[:, None]
    expected = [rows, rows[-1], rows[-2:], rows[1::2], [rows], rows, rows]
    for _ in range(3):
        for options, want in zip(keywords, expected, strict=True):
            got = ns.scan(doubled, outputs_info=X, n_steps=4, return_updates=False, **options)
            assert isinstance(got, list) == isinstance(want, list)
            np.testing.assert_array_equal(got, want)


def test_a_list_of_keywords_that_changes_is_read_anew():
    kept = [1]
    for _ in range(3):
        assert ns.scan(doubled, outputs_info=X, n_steps=4, keep_last=kept, return_updates=False).shape == (3,)
    kept[0] = 2
    assert ns.scan(doubled, outputs_info=X, n_steps=4, keep_last=kept, return_updates=False).shape == (2, 3)


def test_a_keyword_that_is_equal_and_yet_wrong_is_refused():
    for _ in range(3):
        ns.scan(doubled, outputs_info=X, n_steps=4, keep_last=1)
    with pytest.raises(ValueError, match="keep_last"):
        ns.scan(doubled, outputs_info=X, n_steps=4, keep_last=True)
    with pytest.raises(ValueError, match="keep_last"):
        ns.scan(doubled, outputs_info=X, n_steps=4, keep_last=1.0)


def test_a_step_under_another_name_is_another_step():
    def made(name):
        def step(s):
            return s + ns_array

        ns_array = np.ones(3)
        step.__name__ = name
        return step

    for name in ("first", "first", "first", "second"):
        with pytest.raises((TypeError, ValueError), match=name):
            ns.scan(made(name), outputs_info=X[:2], n_steps=1)
        np.testing.assert_array_equal(ns.scan(made(name), outputs_info=X, n_steps=1, return_updates=False), [X + 1])


@pytest.mark.parametrize("mode", [None, "python"])
def test_kinds_of_arguments_by_turns(mode):
    arguments = [X, X.astype("float32"), X[:2], X[None], X[::2], np.asfortranarray(np.ones((2, 3))), 1.0, np.float32(1), 3, [1.0, 2.0]]
    for _ in range(3):
        for start in arguments:
            got = ns.scan(lambda s: s * 2, outputs_info=[start], n_steps=1, mode=mode, return_updates=False)
            want = np.multiply(start, 2)[None] if not isinstance(start, list) else np.array([2.0, 4.0])[None]
            np.testing.assert_array_equal(got, want)
            assert got.dtype == want.dtype


def test_numbers_of_steps_and_lengths_of_sequences_by_turns():
    def total(s):
        return s + 1

    for n_steps in (0, 1, 5, np.int64(2), 0, 3):
        np.testing.assert_array_equal(ns.scan(total, outputs_info=0.0, n_steps=n_steps)[0], np.arange(1.0, n_steps + 1))
    for length in (5, 1, 3, 0, 5):
        rows = np.arange(float(length))
        np.testing.assert_array_equal(ns.scan(lambda x, s: s + x, rows, 0.0, return_updates=False), np.cumsum(rows))
    for n_steps in (-1, True, 2.0):
        with pytest.raises(ValueError, match="n_steps"):
            ns.scan(total, outputs_info=0.0, n_steps=n_steps)
    with pytest.raises(ValueError, match="without a sequence"):
        ns.scan(total, outputs_info=0.0)


def test_sequences_and_initial_values_are_told_apart():
    a, b = np.array([1.0, 2.0]), np.array([10.0, 20.0])
    for _ in range(3):
        np.testing.assert_array_equal(ns.scan(lambda x, y: x - y, [a, b], return_updates=False), a - b)
        np.testing.assert_array_equal(ns.scan(lambda x, y: x - y, a, b, return_updates=False), [a[0] - b, a[1] - (a[0] - b)])
        np.testing.assert_array_equal(ns.scan(lambda x, y: x - y, a, non_sequences=b, return_updates=False), a[:, None] - b)
        np.testing.assert_array_equal(ns.scan(lambda x, y: x - y, [a], [None], [b], return_updates=False), a[:, None] - b)


def test_what_a_step_reads_is_seen_on_the_short_way():
    table, options = np.array([1.0, 2.0, 3.0]), {"gain": 2.0}
    shift = 0.5

    def step(s, offset=0.0, *, factor=1.0):
        return s * options["gain"] * factor + table + offset + shift

    def check():
        for _ in range(3):
            factor, offset = step.__kwdefaults__["factor"], step.__defaults__[0]
            want = X * options["gain"] * factor + table + offset + shift
            np.testing.assert_allclose(ns.scan(step, outputs_info=X, n_steps=1, return_updates=False), [want])

    check()
    table[1] = 7.0
    check()
    table = np.array([5.0, 5.0, 5.0])
    check()
    options["gain"] = 3.0
    check()
    shift = 1.5
    check()
    step.__defaults__ = (4.0,)
    check()
    step.__kwdefaults__["factor"] = 0.25
    check()
    step.__kwdefaults__ = {"factor": 8.0}
    check()
    step.__code__ = (lambda s, offset=0.0, *, factor=1.0: (s * options["gain"] * factor + table + offset + shift) * 1).__code__
    check()


def test_a_table_that_only_numpy_reads_is_seen_on_the_short_way():
    for _ in range(2):
        table = np.array([1.0, 2.0, 3.0])
        for value in (2.0, 2.0, 2.0, 9.0, 2.0):
            table[1] = value
            got = ns.scan(lambda s, table=table: s * table.sum(), outputs_info=X, n_steps=1, return_updates=False)
            np.testing.assert_allclose(got, [X * table.sum()])


def test_a_step_that_comes_to_read_a_shared_variable_becomes_symbolic():
    gain = 2.0

    def step(s):
        return s * gain

    for _ in range(3):
        np.testing.assert_array_equal(ns.scan(step, outputs_info=X, n_steps=1, return_updates=False), [2 * X])
    gain = ns.shared(np.array([3.0, 3.0, 3.0]), name="gain")
    for length in (3, 3, 1):
        gain.set_value(np.full(length, 3.0))
        rows = ns.scan(step, outputs_info=X, n_steps=1, return_updates=False)
        assert not isinstance(rows, np.ndarray)
        np.testing.assert_array_equal(ns.function([], rows)(), [3 * X])
    gain = 4.0
    np.testing.assert_array_equal(ns.scan(step, outputs_info=X, n_steps=1, return_updates=False), [4 * X])


def test_variables_take_the_long_way():
    x = nt.dvector("x")
    for _ in range(3):
        np.testing.assert_array_equal(ns.scan(doubled, outputs_info=X, n_steps=1, return_updates=False), [2 * X])
        assert not isinstance(ns.scan(doubled, outputs_info=x, n_steps=1, return_updates=False), np.ndarray)


def test_progress_is_shown_each_time():
    for _ in range(3):
        seen = []
        ns.scan(doubled, outputs_info=X, n_steps=2, progress=lambda *counts, seen=seen: seen.append(counts))
        assert seen[-1] == (2, 2)


def test_threads_with_closures_of_their_own():
    def run(k):
        for j in range(200):
            gain = float(k) + j % 3
            step = lambda s: s * gain  # noqa: B023, E731 - other threads look at the variable, which goes on changing
            got = ns.scan(step, outputs_info=X, n_steps=1, mode="python", return_updates=False)
            np.testing.assert_array_equal(got, [X * gain])
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(4)))


def test_a_step_goes_when_nobody_holds_it():
    import gc
    import weakref

    def made():
        def step(s):
            return s + 1

        for _ in range(3):
            ns.scan(step, outputs_info=X, n_steps=1)
        return weakref.ref(step)

    step = made()
    gc.collect()
    assert step() is None


def test_arguments_are_not_read_on_the_short_way(monkeypatch):
    def tripled(s):  # of this test alone: the tables of a step that others use may be full
        return s * 3

    for _ in range(3):
        ns.scan(tripled, outputs_info=X, n_steps=2)
    monkeypatch.setattr(Arguments, "__init__", None)
    np.testing.assert_array_equal(ns.scan(tripled, outputs_info=X, n_steps=2)[0], [3 * X, 9 * X])
