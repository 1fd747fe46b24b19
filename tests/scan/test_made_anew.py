"""A step that a function makes anew at each call is traced once for what it reads."""

import collections
import functools
import random

import numpy as np
import pytest

import numbascan as ns
from numbascan import backends, lax
from numbascan.front.scan.trace import StepTracer


@pytest.fixture
def traces(monkeypatch):
    """How often a step was traced."""
    count, run = [], StepTracer.run
    monkeypatch.setattr(StepTracer, "run", lambda self, *args, **kwargs: count.append(1) or run(self, *args, **kwargs))
    return count


def path(x, rate, weights, options, mode="python"):
    def scaled(s, depth=2):
        return scaled(s, depth - 1) if depth else s * rate

    def step(s):
        return scaled(s) + options["shift"] * weights

    return ns.scan(step, outputs_info=x, n_steps=2, mode=mode)[0]


def expected(x, rate, weights, options):
    first = x * rate + options["shift"] * weights
    return np.stack([first, first * rate + options["shift"] * weights])


def test_a_step_that_reads_the_same_is_not_traced_again(traces):
    x = np.array([1.0, 2.0])
    for mode in ("python", None):
        before = len(traces)
        for _ in range(5):
            np.testing.assert_allclose(path(x, 0.5, np.ones(2), {"shift": 3.0}, mode), expected(x, 0.5, np.ones(2), {"shift": 3.0}))
        assert len(traces) <= before + 2  # of the first function of its code nothing is held


@pytest.mark.parametrize(
    "others",
    [
        (0.25, np.ones(2), {"shift": 3.0}),
        (1, np.ones(2), {"shift": 3.0}),
        (-0.0, np.ones(2), {"shift": 3.0}),
        (np.float64(0.5), np.ones(2), {"shift": 3.0}),
        (0.5, np.array([1.0, 5.0]), {"shift": 3.0}),
        (0.5, np.ones(2, "float32"), {"shift": 3.0}),
        (0.5, np.ones(1), {"shift": 3.0}),
        (0.5, np.ones(2), {"shift": 4}),
        (0.5, np.ones(2), {"other": 1.0, "shift": 3.0}),
    ],
)
def test_what_it_reads_is_seen(others):
    x = np.array([1.0, 2.0])
    for arguments in ((0.0, np.ones(2), {"shift": 3.0}), (0.5, np.ones(2), {"shift": 3.0}), others, (0.5, np.ones(2), {"shift": 3.0})):
        got, want = path(x, *arguments), expected(x, *arguments)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


def test_what_is_changed_behind_a_step_is_seen():
    def last(x, table, change):
        def step(s):
            return s + table[0]

        first = ns.scan(step, outputs_info=x, n_steps=1, mode="python")[0]
        table[0] = change
        return first[-1], ns.scan(step, outputs_info=x, n_steps=1, mode="python")[0][-1]

    for make in (list, np.array):
        assert last(0.0, make([1.0, 2.0]), 7.0) == last(0.0, make([1.0, 2.0]), 7.0) == (1.0, 7.0)
        assert last(0.0, make([3.0, 2.0]), 9.0) == (3.0, 9.0)


def test_other_globals_and_defaults_are_other_steps():
    text = """def made(ns, k):
    def step(s, gain=k):
        return s * gain + SHIFT + 0 * k
    return ns.scan(step, outputs_info=1.0, n_steps=1, mode="python")[0][0]
"""
    spaces = [{"SHIFT": 1.0}, {"SHIFT": 10.0}]
    for space in spaces:
        exec(text, space)
    assert [space["made"](ns, k) for k in (2.0, 3.0) for space in spaces] == [3.0, 12.0, 4.0, 13.0]
    spaces[0]["SHIFT"] = 5.0
    assert spaces[0]["made"](ns, 2.0) == 7.0


def test_a_step_that_reads_nothing_is_not_traced_again_either(traces):
    def sums(x, scale=None):
        return ns.scan(lambda x, s, scale=scale: s + x if scale is None else s + x * scale, x, 0.0, return_updates=False)

    x = np.arange(5.0)
    for _ in range(6):
        np.testing.assert_array_equal(sums(x), np.cumsum(x))
    assert len(traces) <= 2
    np.testing.assert_array_equal(sums(x, 2.0), np.cumsum(2 * x))
    np.testing.assert_array_equal(sums(x), np.cumsum(x))
    assert len(traces) <= 4


def test_whether_two_closures_are_one_object_is_seen():
    def path(a, b):
        return ns.scan(lambda s: s + (1.0 if a is b else 2.0), outputs_info=0.0, n_steps=2, mode="python", return_updates=False)[-1]

    one, other = [1.0], [1.0]
    for pair in [(one, other)] * 3 + [(one, one)] * 3 + [(one, other), (other, other)]:
        assert path(*pair) == (2.0 if pair[0] is pair[1] else 4.0)


TABLE, NAMES = [1.0], [1.0]
KINDS = [
    lambda: [1.0],
    lambda: {"k": 1.0},
    lambda: (1.0, [2.0]),
    lambda: np.ones(2),
    lambda: lambda x: x,
    lambda: float("1.5"),
    lambda: [[1.0]] * 2,
    lambda: functools.partial(int),
]


def immediate(step):
    return ns.scan(lambda x: step(x), np.zeros(1), return_updates=False, mode="python")


def nested(step):
    def inner(x):
        def innermost(x):
            return step(x)

        return innermost(x)

    return ns.map(inner, np.zeros(1), return_updates=False, mode="python")


def loop(step):
    return lax.map(step, np.zeros(1))


def value(step):
    return np.atleast_1d(ns.jit(step, mode="python")(0.0))


def asking(a, b, c):
    """A step that says which of its closures and globals are one object; one of them it changes."""

    def step(x):
        pairs = [
            a is b,
            b is c,
            a is c,
            a is TABLE,
            b is TABLE,
            c is NAMES,
            type(a) is list and a[0] is b,
            type(c) is list and c[0] is c[-1],
        ]
        count = 0
        if type(a) is type(b) is list:
            a.append(0.0)
            count = len(b)
            a.pop()
        return x + sum(2.0**k for k, pair in enumerate(pairs) if pair) + 1000.0 * count

    return step


@pytest.mark.parametrize("run", [immediate, nested, loop, value])
@pytest.mark.parametrize("seed", range(3))
def test_which_objects_a_step_reads_are_one_is_seen(run, seed, monkeypatch):
    monkeypatch.setattr(backends, "jit_is_off", lambda: True)
    chance = random.Random(seed)
    for kind in chance.sample(KINDS, 4):
        pool = [kind(), kind()]
        for _ in range(10):
            pool[chance.randrange(2)] = kind()
            pick = [*pool, pool[0]] + ([TABLE, NAMES, [pool[1], 1.0]] if type(pool[0]) is list else [])
            step = asking(*chance.choices(pick, k=3))
            assert run(step)[0] == step(0.0)


class Holder:
    """Something with an attribute that a step may read."""


def held_by_an_object(make):
    holder = Holder()
    holder.part = make()
    return holder.part, lambda: holder.part


def held_by_a_dict(make):
    table = {"part": make()}
    return table["part"], lambda: table["part"]


def held_by_an_object_in_a_list(make):
    holder, holders = Holder(), []
    holder.parts = (make(), 0.0)
    holders.append(holder)
    return holder.parts[0], lambda: holders[0].parts[0]


def held_by_a_class(make):
    kind = type("Kind", (Holder,), {"__module__": __name__, "part": make()})
    return kind.part, lambda: vars(kind)["part"]


def held_by_a_default(make):
    def part(held=make()):  # noqa: B008 - it is the default that holds it
        return held

    return part(), part


def held_by_a_deque(make):
    rows = collections.deque([make()])
    return rows[0], lambda: rows[0]


def held_by_a_partial(make):
    part = make()
    return part, functools.partial(lambda held: held, part)


READ = Holder()


def beside(part):
    """A step that says whether its closure is what it reads elsewhere."""

    def step(x):
        held = READ.part()
        return x + 2.0 * (held is part) + 4.0 * (type(part) is np.ndarray and np.shares_memory(held, part))

    return step


HOLDERS = [value for name, value in list(globals().items()) if name.startswith("held_by")]


@pytest.mark.parametrize("run", [immediate, nested, loop, value])
@pytest.mark.parametrize("hold", HOLDERS)
@pytest.mark.parametrize("make", [lambda: [1.0], lambda: np.ones(2), lambda: lambda x: x], ids=["list", "array", "function"])
def test_a_closure_that_is_held_elsewhere_is_seen(make, hold, run, monkeypatch):
    monkeypatch.setattr(backends, "jit_is_off", lambda: True)
    part, READ.part = hold(make)
    for one in (make(), part, make(), make(), part):
        step = beside(one)
        assert run(step)[0] == step(0.0)
    closures = [make(), make()]
    for one in (*closures, *closures):  # what is held elsewhere is another object each time
        READ.part = lambda one=one: one
        for step in map(beside, (make(), one)):
            assert run(step)[0] == step(0.0)


@pytest.mark.parametrize("run", [immediate, loop])
def test_arrays_of_one_buffer_are_seen(run, monkeypatch):
    monkeypatch.setattr(backends, "jit_is_off", lambda: True)

    def step_of(a, b):
        return lambda x: x + 2.0 * np.shares_memory(a, b)

    buffer, array = bytearray(16), np.ones(4)
    for _ in range(2):
        for view in (lambda: np.frombuffer(buffer, np.uint8), lambda: np.lib.stride_tricks.sliding_window_view(array, 2)):
            for pair in [(view(), view()), (view(), view().copy()), (view(), view()[1:]), (view(), view().copy()[1:])]:
                assert run(step_of(*pair))[0] == step_of(*pair)(0.0)


@pytest.mark.parametrize("run", [immediate, loop])
def test_a_function_that_is_a_key_elsewhere_is_seen(run, monkeypatch):
    monkeypatch.setattr(backends, "jit_is_off", lambda: True)
    keys = [lambda x: x, *[lambda x: x for _ in range(3)]]
    READ.part = {keys[1]: 3.0, keys[2]: 4.0}.get

    def step_of(key):
        return lambda x: x + READ.part(key, 1.0)

    for key in keys * 2:
        assert run(step_of(key))[0] == step_of(key)(0.0)


@pytest.mark.parametrize("run", [immediate, loop])
def test_views_and_flags_of_arrays_are_seen(run, monkeypatch):
    monkeypatch.setattr(backends, "jit_is_off", lambda: True)

    def step_of(a, b):
        return lambda x: x + 2.0 * np.shares_memory(a, b) + 4.0 * a.flags.writeable + 8.0 * (a.base is None) + 16.0 * a.flags.c_contiguous

    def pairs():
        whole, fixed = np.ones((4, 4)), np.ones((2, 4))
        fixed.flags.writeable = False
        yield from [(whole[:2], whole[:2]), (whole[:2], np.ones((4, 4))[:2]), (whole[:2], whole[1:3]), (whole[:2], whole[2:])]
        yield from [(np.ones((2, 4)), whole[:2]), (fixed, whole[:2]), (np.ones((4, 2)).T, whole[:2]), (whole[:, :2].T, whole[:2])]

    for a, b in [*pairs(), *pairs()]:
        assert run(step_of(a, b))[0] == step_of(a, b)(0.0)


@pytest.mark.parametrize("run", [immediate, loop])
def test_a_step_that_asks_for_addresses_is_like_none(run, monkeypatch):
    monkeypatch.setattr(backends, "jit_is_off", lambda: True)

    def number_of(part):
        return float(id(part) % 1009)

    held = [[1.0] for _ in range(4)]
    for part in held:
        assert run(lambda x, part=part: x + number_of(part))[0] == number_of(part)


def test_a_list_that_holds_itself():
    def last(rate):
        rows = [rate]
        rows.append(rows)
        return lax.map(lambda x: x * rows[1][1][0], np.ones(1))[0]

    assert [last(rate) for rate in (1.0, 2.0, 2.0, 1.0)] == [1.0, 2.0, 2.0, 1.0]


def test_a_counter_outside_is_no_reason_to_trace_each_step_made_anew(traces):
    READ.count = 0

    def path(rate):
        def step(s):
            READ.count += 1
            return s * rate

        return ns.scan(step, outputs_info=1.0, n_steps=2, mode="python")[0][-1]

    assert [path(2.0) for _ in range(6)] == [4.0] * 6
    assert READ.count == len(traces) <= 4  # what changes something is traced twice


class Model:
    def __init__(self):
        self.weights, self.shifts = np.ones(2), [1.0]

    def moved(self, x):
        return x + self.weights.sum() + self.shifts[0]

    def path(self, run, rate):
        weights, shifts = self.weights, self.shifts
        return run(lambda x: self.moved(x) * rate + weights.sum() + shifts[0])[0]


@pytest.mark.parametrize("run", [immediate, loop])
def test_what_its_object_holds_too_is_no_reason_to_trace_it_again(run, traces, monkeypatch):
    monkeypatch.setattr(backends, "jit_is_off", lambda: True)
    model = Model()
    assert [model.path(run, 2.0) for _ in range(5)] == [9.0] * 5
    assert len(traces) <= 6
    model.weights[0] = 3.0
    assert model.path(run, 2.0) == 15.0
    model.shifts = [2.0]
    assert model.path(run, 2.0) == 18.0


def test_functions_of_one_loop_share_their_lists(monkeypatch):
    monkeypatch.setattr(backends, "jit_is_off", lambda: True)

    def steps():
        last = [3.0]

        def body(s):
            last[0] = 5.0
            return s + 1.0

        return lax.while_loop(lambda s: s < last[0], body, 0.0)

    assert [steps() for _ in range(4)] == [5.0] * 4
