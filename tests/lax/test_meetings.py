"""Loops under JAX's names meet derivatives, lanes, loops, draws, shared variables, threads, and calls made again."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.lax as lax
import numbascan.tensor as nt


def in_python(f: Callable[..., Any], *args: Any) -> Any:
    return ns.jit(f, mode="python")(*args)


def grown(w: Any, end: Any) -> Any:
    """1, sin(w + 1), … until `end` steps are done: of a length that the run decides."""
    return lax.while_loop(lambda s: s[1] < end, lambda s: (np.sin(w + s[0]) * w, s[1] + 1), (1.0, 0))[0]


def counted(w: Any, end: Any) -> Any:
    return lax.fori_loop(0, end, lambda i, s: np.sin(w + s) * w, 1.0)


# derivatives ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loop", [grown, counted])
def test_loops_of_unknown_length_have_reverse_and_forward_mode(loop: Callable[..., Any]) -> None:
    gradient = ns.jit(ns.grad(loop), mode="python")
    for steps in (0, 1, 7):

        def plain(w: float, steps: int = steps) -> float:
            s = 1.0
            for _ in range(steps):
                s = np.sin(w + s) * w
            return s

        slope = (plain(0.7 + 1e-6) - plain(0.7 - 1e-6)) / 2e-6
        np.testing.assert_allclose(gradient(0.7, steps), slope, rtol=1e-8)
        value, tangent = in_python(lambda w, n: ns.jvp(lambda w: loop(w, n), (w,), (1.0,)), 0.7, steps)
        np.testing.assert_allclose((value, tangent), (plain(0.7), slope), rtol=1e-8)


def test_compiled_gradients_are_those_of_python() -> None:
    for loop in (grown, counted):
        np.testing.assert_allclose(ns.grad(loop)(0.7, 7), in_python(ns.grad(loop), 0.7, 7), rtol=1e-13)


def test_the_gradient_of_a_loop_without_steps_is_that_of_its_start() -> None:
    def loss(x: Any, rows: Any) -> Any:
        return (lax.scan(lambda c, r: (c * r, None), x, rows)[0] ** 2).sum()

    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(in_python(ns.grad(loss), x, np.zeros((0, 2))), 2 * x)


def test_the_end_of_a_loop_without_steps_depends_on_its_start_alone() -> None:
    def ends(x: Any, n: Any) -> list[Any]:
        scanned = lax.scan(lambda c, _: ((0.0, 0.0), ()), (x, 0.0), (), length=n)[0]
        return [
            scanned[0] + scanned[1],
            lax.fori_loop(0, n, lambda i, c: 0.0, x),
            lax.while_loop(lambda c: n > 0, lambda c: 0.0, x, max_steps=n),
        ]

    for k in range(3):
        assert ns.grad(lambda x, k=k: ends(x, 0)[k])(3.0) == 1
        assert in_python(ns.grad(lambda x, n, k=k: ends(x, n)[k]), 3.0, 0) == 1
        assert in_python(ns.grad(lambda x, n, k=k: ends(x, n)[k]), 3.0, 2) == 0


@pytest.mark.parametrize("reverse", [False, True])
def test_scans_have_gradients_in_both_directions(reverse: bool) -> None:
    def loss(w: Any, xs: Any) -> Any:
        last, ys = lax.scan(lambda c, x: (np.tanh(w * c + x), c * x), np.zeros(2), xs, reverse=reverse)
        return last.sum() + (ys**2).sum()

    ns.verify_grad(lambda w: loss(w, np.arange(6.0).reshape(3, 2) / 7), [np.array(0.4)], mode="python")


def test_choices_and_running_results_have_gradients() -> None:
    def loss(x: Any, k: Any) -> Any:
        chosen = lax.switch(k, [lambda x: x**2, np.sin, lambda x: x * 3], x)
        ran = lax.cumlogsumexp(x) + lax.cumsum(chosen, reverse=True) * lax.cummax(x)
        return (lax.associative_scan(lambda a, b: a * b + a, ran) * lax.select(x > 0, x, -x)).sum()

    for k in range(3):
        ns.verify_grad(lambda x, k=k: loss(x, k), [np.array([0.3, -0.7, 1.1])], mode="python")


def test_derivatives_have_derivatives() -> None:
    def power(w: Any) -> Any:
        return lax.while_loop(lambda s: s < 20, lambda s: s * w, 1.0)

    assert in_python(ns.hessian(power), 2.0) == pytest.approx(20 * 2.0**3)


# lanes ----------------------------------------------------------------------------------------------------------------


def test_lanes_end_by_themselves() -> None:
    starts, factors = np.array([2.0, 3.0, 200.0, 1.5, 99.0]), np.array([2.0, 3.0, 2.0, 1.1, 1.5])

    def lane(x: Any, factor: Any) -> Any:
        return lax.while_loop(lambda s: s[0] < 100, lambda s: (s[0] * factor, s[1] + 1), (x, 0))

    ends, steps = ns.vmap(lane)(starts, factors)
    for k, (x, factor) in enumerate(zip(starts, factors, strict=True)):
        count = 0
        while x < 100:
            x, count = x * factor, count + 1
        assert (ends[k], steps[k]) == (x, count)
    slopes = ns.vmap(ns.grad(lambda x, factor: lane(x, factor)[0]))(starts, factors)
    np.testing.assert_allclose(slopes, factors**steps, rtol=1e-13)


def powers(c: Any) -> Any:
    """c, c**2, … as a row of three, up to the first sum beyond 100."""
    return lax.while_loop(lambda x: x.sum() < 100.0, lambda x: x * c, np.ones(3))


def nested(c: Any) -> Any:
    return lax.while_loop(lambda x: x.sum() < 100.0, lambda x: lax.while_loop(lambda y: y[0] < 9 * x[0], lambda y: y * c, x), np.ones(3))


def until_alone(c: Any) -> Any:
    return ns.scan(
        lambda x: (x * c, ns.until(x.sum() > 90)), None, np.ones(3), n_steps=2**63 - 1, keep_last=1, checkpoint=3, return_updates=False
    )


def of_known_lanes(loop: Callable[..., Any]) -> Callable[..., Any]:
    """In two axes of lanes, whose numbers stand in the code."""
    return lambda bases: ns.vmap(ns.vmap(loop))(np.array([[1.5, 2.0, 3.0], [1.25, 4.0, 1.5]])) + bases[0]


def slopes_of(loop: Callable[..., Any]) -> Callable[..., Any]:
    return ns.vmap(ns.grad(lambda c: loop(c).sum()))


@pytest.mark.parametrize(
    ("lanes", "loop"),
    [(ns.vmap, powers), (of_known_lanes, powers), (of_known_lanes, nested), (of_known_lanes, until_alone), (slopes_of, until_alone)],
)
def test_lanes_of_loops_without_a_bound_run_as_in_python(lanes: Callable[..., Any], loop: Callable[..., Any]) -> None:
    bases = np.array([1.5, 2.0, 3.0, 1.25])
    np.testing.assert_allclose(ns.jit(lanes(loop))(bases), in_python(lanes(loop), bases), rtol=1e-12)


def test_the_counter_of_a_loop_is_stored_nowhere(tmp_path: Path) -> None:
    def counted_down(x: Any, n: Any) -> Any:
        return lax.fori_loop(-3, n, lambda i, s: s * 0.5 + i, x)

    known = ns.jit(lambda x: counted_down(x, 20_000))
    open_ones = ns.jit(ns.vmap(counted_down, in_axes=(0, 0)))
    expected = in_python(counted_down, 1.0, 20_000)
    np.testing.assert_allclose(known(1.0), expected, rtol=1e-12)
    np.testing.assert_allclose(open_ones(np.ones(2), np.array([20_000, -3])), [expected, 1], rtol=1e-12)
    assert known.memory().total + open_ones.memory().trace == 0
    assert "20003" in known.export(tmp_path / "counted.py").read_text(encoding="utf-8")


def test_lanes_have_bounds_of_their_own() -> None:
    run = ns.vmap(lambda n, x: lax.fori_loop(0, n, lambda i, s: s * x, 1.0))
    found = in_python(run, np.array([-1, 0, 1, 2, 3]), np.arange(5.0))
    np.testing.assert_array_equal(found, [1, 1, 2, 9, 64])


# loops in loops -------------------------------------------------------------------------------------------------------


def test_loops_stand_in_loops() -> None:
    def step(carry: Any, x: Any) -> Any:
        doubled = lax.while_loop(lambda s: s < x, lambda s: s * 2, carry)
        summed = lax.fori_loop(0, 3, lambda i, s: s + i * x, doubled)
        return summed, lax.map(lambda k: k * summed, np.arange(2))

    def plain(carry: Any, xs: Any) -> Any:
        ys = []
        for x in xs:
            while carry < x:
                carry = carry * 2
            carry = carry + 3 * x
            ys.append([0, carry])
        return carry, ys

    xs = np.array([5, 1, 80])
    last, ys = in_python(lambda xs: lax.scan(step, 1, xs), xs)
    expected = plain(1, xs)
    assert (last, ys.tolist()) == (expected[0], [[int(y) for y in row] for row in expected[1]])


def test_a_body_may_use_what_is_traced_around_it() -> None:
    def rows(w: Any) -> Any:
        return lax.while_loop(lambda s: s < 3 * w, lambda s: s * 2, 1.0)

    np.testing.assert_array_equal(ns.scan(rows, np.arange(1.0, 4.0), mode="python", return_updates=False), [4, 8, 16])
    x = nt.dvector("x")
    run = ns.function([x], lax.scan(lambda c, k: (c + x[k], None), 0.0, np.arange(3))[0], mode="python")
    assert run(np.arange(4.0)) == 3


# draws and shared variables -------------------------------------------------------------------------------------------


def test_draws_of_a_loop_of_unknown_length_are_the_same_in_every_mode() -> None:
    def run(f: Callable[..., Any], mode: str | None, *args: Any) -> Any:
        stream = nt.random.RandomStream(3)
        return ns.jit(f(lambda x: lax.while_loop(lambda s: s < 3, lambda s: s * 1.1 + abs(stream.normal()) * x, x)), mode=mode)(*args)

    for f, modes in ((lambda loop: loop, [None, "debug"]), (ns.grad, ["debug"])):
        expected = run(f, "python", 0.1)
        for mode in modes:
            np.testing.assert_allclose(run(f, mode, 0.1), expected, rtol=1e-12)


def test_a_stream_goes_on_by_as_many_draws_as_steps_were_made() -> None:
    def drawn(state: Any) -> Any:
        return state[0] - 1, stream.normal()

    stream = nt.random.RandomStream(1)
    run = ns.jit(lambda n: lax.while_loop(lambda s: s[0] > 0, drawn, (n, 0.0))[1])
    found = [float(run(n)) for n in (3, 0, 1, 2)]
    stream = nt.random.RandomStream(1)
    draws = ns.jit(lambda: lax.scan(lambda c, _: (c, stream.normal()), None, length=6)[1], mode="python")()
    assert found == [draws[2], 0.0, draws[3], draws[5]]


def test_a_function_of_variables_advances_the_stream_by_its_updates() -> None:
    stream, start = nt.random.RandomStream(2), nt.dscalar("start")
    drawn = lax.fori_loop(0, 4, lambda i, s: s + stream.uniform(), start)
    once, on = (ns.function([start], drawn, updates=updates, mode="python") for updates in (None, stream.updates()))
    assert once(0.0) == once(0.0) == on(0.0) != on(0.0)


def test_shared_variables_have_the_value_of_the_call() -> None:
    rate = ns.shared(2.0, "rate")

    def body(i: Any, s: Any) -> Any:
        return s * rate

    assert lax.fori_loop(0, 3, body, 1.0) == 8
    rate.set_value(3.0)
    assert lax.fori_loop(0, 3, body, 1.0) == 27


# calls made again -----------------------------------------------------------------------------------------------------


class Counter:
    """A step that counts how often Python calls it."""

    def __init__(self) -> None:
        self.calls, self.rate = 0, 2.0

    def step(self, carry: Any, x: Any) -> Any:
        self.calls += 1
        return carry * self.rate + x, carry


def test_a_function_is_traced_at_its_first_call_alone() -> None:
    counter = Counter()

    def step(carry: Any, x: Any) -> Any:
        return counter.step(carry, x)

    for f in (step, counter.step):
        assert lax.scan(f, 0.0, np.arange(3.0))[0] == 4
        first = counter.calls
        for n in (3, 5, 40, 60):
            lax.scan(f, 1.5, np.arange(float(n)))
        assert counter.calls == first


def test_a_function_that_is_made_anew_is_traced_twice_at_most() -> None:
    counter = Counter()

    def grown(start: float, rates: Any, shift: list[float]) -> Any:
        def shifted(s: Any) -> Any:
            return s + shift[0]

        def body(i: Any, s: Any) -> Any:
            counter.calls += 1
            return shifted(s) * rates.sum()

        return lax.fori_loop(0, 2, body, start)

    assert [float(grown(1.0, np.ones(2), [1.0])) for _ in range(2)] == [10.0, 10.0]
    first = counter.calls
    assert [float(grown(x, np.ones(2), [1.0])) for x in (1.0, 2.0, 3.0)] == [10.0, 14.0, 18.0]
    assert counter.calls == first
    rates = np.ones(2)
    for rates[0], shift in ((1.0, 0.0), (2.0, 0.0), (1.0, 5.0), (1.0, 0.0)):
        total = rates.sum()
        assert grown(1.0, rates, [shift]) == ((1 + shift) * total + shift) * total


def test_variables_that_functions_share_may_change_while_threads_call_them() -> None:
    wrong: list[float] = []

    def run(seed: int) -> None:
        for rate in np.random.default_rng(seed).integers(1, 4, 40).tolist():

            def body(i: Any, s: Any) -> Any:
                return s * rate  # noqa: B023 - the function is called before the variable has the next value, and after

            if lax.fori_loop(0, 2, body, 1.0) != rate**2:
                wrong.append(rate)
            rate = rate + 1
            if lax.fori_loop(0, 2, body, 1.0) != rate**2:
                wrong.append(rate)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_what_a_function_reads_is_seen_anew() -> None:
    counter = Counter()
    assert lax.scan(counter.step, 1.0, np.zeros(3))[0] == 8
    counter.rate = 3.0
    assert lax.scan(counter.step, 1.0, np.zeros(3))[0] == 27


def test_functions_made_anew_and_callable_objects_are_no_other_ones() -> None:
    for k in range(1, 4):
        assert lax.fori_loop(0, 3, lambda i, s, k=k: s * k, 1.0) == k**3
        assert lax.fori_loop(0, 3, functools.partial(lambda k, i, s: s * k, k), 1.0) == k**3
    assert lax.scan(ns.jit(lambda c, x: (c + x, None)), 0.0, np.arange(3.0))[0] == 3


def test_threads_call_the_same_functions() -> None:
    found: dict[tuple[int, int], float] = {}

    def run(k: int) -> None:
        for n in range(5):
            found[k, n] = float(lax.fori_loop(0, n, lambda i, s: s + k, 0.0))

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {(k, n): float(k * n) for k in range(4) for n in range(5)}


def test_results_of_arrays_are_arrays() -> None:
    carry, ys = lax.scan(lambda c, x: (c + x, {"y": c}), 0, np.arange(3))
    assert isinstance(carry, np.ndarray)
    assert isinstance(ys["y"], np.ndarray)
    assert (carry.tolist(), ys["y"].tolist()) == (3, [0, 0, 1])


@pytest.mark.parametrize("mode", ["numba", "python", "debug"])
def test_a_loop_runs_in_the_mode_of_the_function_around_it(mode: str) -> None:
    run = ns.jit(lambda x: lax.while_loop(lambda s: s.sum() < 10, lambda s: s * 2, x), mode=mode)
    assert run(np.ones(3)).tolist() == [4, 4, 4]
    assert run(np.full(3, 5.0)).tolist() == [5, 5, 5]


def test_it_is_reached_from_the_package() -> None:
    assert ns.lax is lax
