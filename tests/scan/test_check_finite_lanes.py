"""`check_finite` tells the step and the lane of what is not finite, compiled or by NumPy."""

import re

import numpy as np
import pytest

import numbascan as ns

TARGETS = ["numba", "python"]
BAD = np.array([1e9, 1e9, 1.5])  # the logarithms of 1.5 end at the third


def logs(a):
    return ns.scan(lambda s: np.log(s), outputs_info=a, n_steps=3, return_updates=False)


def error(call, target, *args):
    with pytest.raises(FloatingPointError) as caught:
        ns.jit(call, mode=ns.Mode(target=target, check_finite=True))(*args)
    return re.sub(r" \(\S+, line \d+\)", " (here)", str(caught.value))


def expected(place, what="s"):
    return f"scan 'logs', {place}: {what} (here) is not finite"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "call, argument, place",
    [
        (logs, 1.5, "step 2"),
        (logs, np.full(50, 1.5), "step 2"),
        (ns.vmap(logs), BAD, "step 2, lane 2"),
        (ns.vmap(logs), BAD[2:], "step 2, lane 0"),
        (ns.vmap(logs), np.repeat(BAD[1:, None], 30, 1), "step 2, lane 1"),
        (ns.vmap(logs), np.r_[np.full(3000, 1e9), 1.5, np.full(3000, 1.4)], "step 2, lane 3000"),
        (lambda a: ns.map(logs, a), BAD, "step 2, lane 2"),
        (ns.vmap(ns.vmap(logs)), np.stack([BAD[[0, 1, 1]], BAD]), "step 2, lane 1, 2"),
    ],
    ids=["number", "vector", "vmap", "one lane", "vectors in lanes", "many lanes", "map", "lanes in lanes"],
)
def test_the_first_result_that_is_not_finite_is_reported_with_its_lane(call, argument, place, target):
    found = error(call, target, argument)
    assert re.sub(r"scan '[^']*'", "scan 'logs'", found) == expected(place)


@pytest.mark.parametrize("target", TARGETS)
def test_steps_that_wait_are_no_lanes(target):
    def step(s):
        return s * logs(s)[-1]

    assert "step 2: s" in error(lambda s: ns.scan(step, outputs_info=s, n_steps=2, return_updates=False), target, 1.5)


@pytest.mark.parametrize("target", TARGETS)
def test_results_and_updates_are_named(target):
    mode = ns.Mode(target=target, check_finite=True)
    with pytest.raises(FloatingPointError, match=r"scan 'f', step 1: out .* is not finite"):
        ns.scan(lambda x: np.log(x), np.array([1.0, -1.0]), mode=mode, name="f")
    w = ns.shared(np.float64(1e200), "w")
    f = ns.function([], [], updates=ns.scan(lambda: {w: w * w}, n_steps=2, name="f")[1], mode=mode)
    with pytest.raises(FloatingPointError, match=r"scan 'f', step 0: w .* is not finite"):
        f()
    assert w.get_value() == 1e200


@pytest.mark.parametrize("target", ["numba", "python", "debug"])
def test_what_is_finite_passes(target):
    halves = ns.vmap(lambda a: ns.scan(lambda s, n: [s / 2, n + 1], outputs_info=[a, 0], n_steps=3, return_updates=False))
    plain, checked = (ns.jit(halves, mode=mode)(BAD) for mode in (None, ns.Mode(target=target, check_finite=True)))
    for got, wanted in zip(checked, plain, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_debug_reports_infinities_too():
    with pytest.raises(FloatingPointError, match=r"step 1: s .* is not finite"):
        ns.scan(lambda s: s * s, outputs_info=1e100, n_steps=3, mode=ns.Mode(target="debug", check_finite=True))
