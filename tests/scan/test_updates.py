"""Updates of shared variables in every mode: their order, with until, as sequences and givens; lengths, failures, pickles, threads."""

import pickle
import threading

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

GRID = np.arange(12.0).reshape(3, 4)

in_every_mode = pytest.mark.parametrize("mode", ["numba", "python", "debug"])


@in_every_mode
@pytest.mark.parametrize("size", [3, 40])
@pytest.mark.parametrize("n_steps", [1, 2, 5])
def test_two_shared_variables_swap(mode, size, n_steps):
    x, y = np.arange(size) + 1.0, np.arange(size) * -2.0
    a, b = ns.shared(x, "a"), ns.shared(y, "b")
    lent = a.get_value(borrow=True), b.get_value(borrow=True)
    out, updates = ns.scan(lambda: ([a[0], b.sum()], {a: b, b: a}), n_steps=n_steps)
    firsts, sums = ns.function([], out, updates=updates, mode=mode)()
    pairs = [(x, y), (y, x)] * 3
    np.testing.assert_array_equal(firsts, [first[0] for first, _ in pairs[:n_steps]])
    np.testing.assert_array_equal(sums, [second.sum() for _, second in pairs[:n_steps]])
    np.testing.assert_array_equal([a.get_value(), b.get_value()], pairs[n_steps])
    np.testing.assert_array_equal(lent, [x, y])
    assert not np.shares_memory(a.get_value(borrow=True), b.get_value(borrow=True))


@in_every_mode
@pytest.mark.parametrize("pairs", [dict, list])
def test_every_update_is_computed_from_the_old_values(mode, pairs):
    a, b, c = ns.shared(np.arange(20.0), "a"), ns.shared(np.ones(20), "b"), ns.shared(3, "c")

    def step(s):
        return s + a * b, pairs([(a, b[::-1] + s), (b, np.roll(a, 1) * 0.5), (c, c * 2 + 1)])

    out, updates = ns.scan(step, outputs_info=nt.zeros(20), n_steps=3)
    run = ns.function([], out, updates=pairs(updates.items()), mode=mode)
    x, y, z = np.arange(20.0), np.ones(20), 3
    for _ in range(2):
        s, rows = np.zeros(20), run()
        for row in rows:
            x, y, z, s = y[::-1] + s, np.roll(x, 1) * 0.5, z * 2 + 1, s + x * y
            np.testing.assert_array_equal(row, s)
    np.testing.assert_array_equal([a.get_value(), b.get_value()], [x, y])
    assert c.get_value() == z


@in_every_mode
def test_updates_with_outputs_and_until(mode):
    k = ns.shared(1, "k")
    out, updates = ns.scan(lambda x: (x * 2, {k: k + 1}, ns.until(x * 2 > 20)), outputs_info=k * 1.0, n_steps=100)
    run = ns.function([], out, updates=updates, mode=mode)
    np.testing.assert_array_equal(run(), [2, 4, 8, 16, 32])
    assert k.get_value() == 6
    np.testing.assert_array_equal(run(), [12, 24])
    assert k.get_value() == 8


@in_every_mode
def test_updates_alone_with_until(mode):
    k, limit = ns.shared(0, "k"), nt.lscalar("limit")
    _, updates = ns.scan(lambda: ({k: k + 3}, ns.until(k >= limit)), n_steps=1000)
    ns.function([limit], None, updates=updates, mode=mode)(10)
    assert k.get_value() == 15


@in_every_mode
def test_a_sequence_that_the_step_updates_is_read_as_it_was_before_the_loop(mode):
    s = ns.shared(np.arange(1.0, 6.0), "s")
    out, updates = ns.scan(lambda x, total: (total + x * s.sum(), {s: s * 0.5 + x}), sequences=s, outputs_info=s[0])
    run = ns.function([], out, updates=updates, mode=mode)
    now = s.get_value()
    for length in (5, 5, 9):
        if len(now) != length:
            now = np.arange(float(length))
            s.set_value(now)
        rows, total, expected = now.copy(), now[0], []
        for x in rows:
            total, now = total + x * now.sum(), now * 0.5 + x
            expected.append(total)
        np.testing.assert_allclose(run(), expected, rtol=1e-14)
        np.testing.assert_allclose(s.get_value(), now, rtol=1e-14)


@in_every_mode
def test_a_non_sequence_that_the_step_updates_is_read_as_it_is_at_that_step(mode):
    w = ns.shared(np.ones(4), "w")
    out, updates = ns.scan(lambda total, v: (total + v.sum(), {w: v * 2}), outputs_info=0.0, non_sequences=[w], n_steps=4)
    np.testing.assert_array_equal(ns.function([], out, updates=updates, mode=mode)(), np.cumsum([4, 8, 16, 32]))
    np.testing.assert_array_equal(w.get_value(), np.full(4, 16.0))


@in_every_mode
def test_a_given_in_place_of_a_shared_variable_is_where_its_updates_begin(mode):
    w, x, start = ns.shared(2.0, "w"), nt.dscalar("x"), nt.dscalar("start")
    out, updates = ns.scan(lambda s: (s * w, {w: w + x}), outputs_info=1.0, n_steps=3)
    run = ns.function([x, start], out, updates=updates, givens={w: start}, mode=mode)
    for _ in range(2):
        np.testing.assert_array_equal(run(1.0, 10.0), [10, 110, 1320])
        assert w.get_value() == 13
    run = ns.function([], out, updates=updates, givens=[(x, w)], mode=mode)
    w.set_value(2.0)
    np.testing.assert_array_equal(run(), [2, 8, 48])
    assert w.get_value() == 8


@in_every_mode
def test_updates_of_an_inner_and_an_outer_loop(mode):
    a, b = ns.shared(1.0, "a"), ns.shared(2.0, "b")

    def outer(x):
        inner, updates = ns.scan(lambda y: (y + a, {a: a + 1}), outputs_info=x, n_steps=3)
        return inner[-1] * b, {a: updates[a] * 2, b: b + 1}

    out, updates = ns.scan(outer, outputs_info=0.0, n_steps=3)
    found = ns.function([], out, updates=updates, mode=mode)()
    x, p, q, expected = 0.0, 1.0, 2.0, []
    for _ in range(3):
        for _ in range(3):
            x, p = x + p, p + 1
        x, p, q = x * q, p * 2, q + 1
        expected.append(x)
    np.testing.assert_array_equal(found, expected)
    assert (a.get_value(), b.get_value()) == (p, q)


@in_every_mode
@pytest.mark.parametrize("dtype", ["int8", "bool", "float32", "complex128", "uint64"])
def test_updates_keep_every_dtype(mode, dtype):
    a, b = ns.shared(np.array([1, 0, 1], dtype)), ns.shared(np.array([0, 0, 1], dtype))
    _, updates = ns.scan(lambda: {a: b, b: a}, n_steps=3)
    ns.function([], None, updates=updates, mode=mode)()
    assert (a.get_value().dtype, b.get_value().dtype) == (dtype, dtype)
    np.testing.assert_array_equal([a.get_value(), b.get_value()], np.array([[0, 0, 1], [1, 0, 1]], dtype))


def test_two_updates_of_one_variable_are_refused():
    a = ns.shared(1, "a")
    with pytest.raises(ValueError, match="a two new values; give one"):
        ns.scan(lambda: [(a, a + 1), (a, a + 2)], n_steps=3)


# lengths ----------------------------------------------------------------------------------------------------------------


@in_every_mode
def test_a_shared_variable_may_have_another_length_at_each_call(mode):
    start, q = ns.shared(np.ones(3), "start"), ns.shared(np.ones(3), "q")
    out, updates = ns.scan(lambda x: (x * 2 + q, {q: q + x}), outputs_info=start, n_steps=4)
    run = ns.function([], out, updates=updates, mode=mode)
    for length in (3, 5, 1, 40, 17, 0, 3):
        x = y = np.arange(float(length))
        start.set_value(x)
        q.set_value(y)
        found = run()
        for _ in range(4):
            x, y = x * 2 + y, y + x
        np.testing.assert_array_equal(found[-1], x)
        np.testing.assert_array_equal(q.get_value(), y)
    q.set_value(np.ones(4))
    with pytest.raises(ValueError, match="broadcast"):
        run()
    np.testing.assert_array_equal(q.get_value(), np.ones(4))


@in_every_mode
def test_an_update_may_grow_from_call_to_call(mode):
    g = ns.shared(np.ones(1), "g")
    run = ns.function([], g.sum(), updates={g: np.concatenate([g, g * 2])}, mode=mode)
    assert [float(run()) for _ in range(6)] == [3.0**k for k in range(6)]


@in_every_mode
def test_an_update_may_not_grow_from_step_to_step(mode):
    g = ns.shared(np.ones(2), "g")
    _, updates = ns.scan(lambda: {g: np.concatenate([g, g])[1:]}, n_steps=2)
    with pytest.raises(ValueError, match="changes the shape"):
        ns.function([], None, updates=updates, mode=mode)()
    assert len(g.get_value()) == 2


# borrowed values, exceptions, pickles, threads --------------------------------------------------------------------------


@in_every_mode
def test_a_lent_array_is_never_written(mode):
    lent = np.arange(4.0)
    w = ns.shared(lent, "w", borrow=True)
    _, updates = ns.scan(lambda: {w: nt.inc_subtensor(w[1:], 1.0)}, n_steps=3)
    ns.function([], None, updates=updates, mode=mode)()
    np.testing.assert_array_equal(lent, np.arange(4.0))
    np.testing.assert_array_equal(w.get_value(), [0, 4, 5, 6])


@in_every_mode
@pytest.mark.parametrize("value", [GRID.T, GRID[::2, ::2], np.zeros((0, 3)), np.ones((1, 3))])
def test_a_lent_array_may_lie_anyhow_in_memory(mode, value):
    w = ns.shared(np.zeros((2, 2)), "w")
    w.set_value(value, borrow=True)
    _, updates = ns.scan(lambda: {w: w * 2 + 1}, n_steps=2)
    before = value.copy()
    ns.function([], None, updates=updates, mode=mode)()
    np.testing.assert_array_equal(w.get_value(), value * 4 + 3)
    np.testing.assert_array_equal(value, before)


@in_every_mode
def test_a_step_that_fails_changes_nothing(mode):
    w, k = ns.shared(np.arange(3.0), "w"), ns.shared(0, "k")
    n, table = nt.lscalar("n"), nt.as_tensor_variable(np.arange(5.0))
    out, updates = ns.scan(lambda s: (s + table[k], {w: w * 2, k: k + 1}), outputs_info=0.0, n_steps=n)
    run = ns.function([n], out, updates=updates, mode=mode)
    run(3)
    with pytest.raises(IndexError):
        run(3)
    np.testing.assert_array_equal(w.get_value(), np.arange(3.0) * 8)
    assert k.get_value() == 3
    run(2)  # nothing is locked
    assert k.get_value() == 5


@in_every_mode
def test_a_scan_function_updates_by_itself(mode):
    w, count = ns.shared(np.arange(3.0), "w"), ns.shared(0, "count")

    @ns.scan(mode=mode)
    def step(s):
        return s + w.sum(), {w: w * 0.5, count: count + 1}

    np.testing.assert_array_equal(step(outputs_info=0.0, n_steps=3), np.cumsum([3, 1.5, 0.75]))
    assert step(outputs_info=0.0, n_steps=2, keep_last=1) == 0.375 + 0.1875
    out = np.empty(1)
    step(outputs_info=0.0, n_steps=1, out=out)
    np.testing.assert_array_equal(out, [0.09375])
    np.testing.assert_array_equal(w.get_value(), np.arange(3.0) / 64)
    assert count.get_value() == 6


@in_every_mode
def test_the_derivative_goes_through_an_update(mode):
    g, x = ns.shared(2.0, "g"), nt.dscalar("x")
    out, _ = ns.scan(lambda s: (s * g, {g: g + s}), outputs_info=x, n_steps=2)
    slopes = ns.function([x], ns.grad(out[-1], [x, g]), mode=mode)(1.5)  # of x g (g + x)
    np.testing.assert_allclose(slopes, [2 * 2 + 2 * 1.5 * 2, 2 * 1.5 * 2 + 1.5**2], rtol=1e-14)


def test_a_pickled_function_goes_on_from_the_state_that_it_had():
    w = ns.shared(np.ones(3), "w")
    _, updates = ns.scan(lambda: {w: w * 2}, n_steps=3)
    run = ns.function([], w.sum(), updates=updates)
    run()
    other_w, other = pickle.loads(pickle.dumps((w, run)))
    assert run() == other() == 24
    assert run() == other() == 192
    np.testing.assert_array_equal(other_w.get_value(), w.get_value())
    other()
    np.testing.assert_array_equal(w.get_value(), np.full(3, 512.0))


def test_threads_see_no_state_in_between():
    a, b = ns.shared(np.zeros(50), "a"), ns.shared(np.zeros(50), "b")
    _, updates = ns.scan(lambda: {a: a + 1, b: b + 1}, n_steps=20)
    count = ns.function([], None, updates=updates)
    _, updates = ns.scan(lambda: {b: b + 1, a: a + 1}, n_steps=20)
    both = ns.function([], [b, a], updates=updates)

    @ns.scan
    def step():
        return {b: b + 1, a: a + 1}

    seen = []
    tasks = [lambda: seen.append(both()), lambda: seen.append([a.get_value()]), count, lambda: step(n_steps=20)]
    threads = [threading.Thread(target=lambda task=task: [task() for _ in range(100)]) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(len(np.unique(values)) == 1 for values in seen)
    np.testing.assert_array_equal(np.stack([a.get_value(), b.get_value()]), np.full((2, 50), 3 * 100 * 20))


LOST = {
    "scan": lambda step, k: ns.scan(step, np.ones(2), return_updates=False),
    "one step": lambda step, k: ns.scan(step, np.ones(2), n_steps=1, return_updates=False),
    "map": lambda step, k: ns.map(step, np.ones(2), return_updates=False),
    "filter": lambda step, k: ns.filter(lambda x: (x > 0, {k: k + 1}), np.ones(2), return_updates=False),
    "reduce": lambda step, k: ns.reduce(lambda x, s: (s + x, {k: k + 1}), np.ones(2), 0.0, return_updates=False),
    "scan_checkpoints": lambda step, k: ns.scan_checkpoints(step, np.ones(2), return_updates=False),
    "in a step": lambda step, k: ns.scan(lambda x: ns.scan(step, np.ones(2), return_updates=False) + x, np.ones(2)),
    "a decorated step in a graph": lambda step, k: ns.scan(step, return_updates=False)(nt.dvector("x")),
}


@pytest.mark.parametrize("name", LOST)
def test_updates_that_would_be_lost_are_refused(name):
    k = ns.shared(0, "k")
    with pytest.raises(ValueError, match=r"return_updates=False, but the step updates k.*outputs, updates = ns\.scan"):
        LOST[name](lambda x: (x + k, {k: k + 1}), k)
    assert k.get_value() == 0


def test_a_scan_function_applies_its_updates_whatever_it_returns():
    k = ns.shared(0, "k")
    step = ns.scan(lambda x: (x + k, {k: k + 1}), return_updates=False, mode="python")
    np.testing.assert_array_equal(step(np.zeros(3)), [0, 1, 2])
    assert k.get_value() == 3
