"""A step that a function makes anew at each call is traced once for what it reads."""

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
