"""Conversion, choices, loops and writes in several threads at once: each traces by itself."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns


def in_place(x: Any, n: Any) -> Any:
    z = np.zeros(len(x))
    for i in range(n):
        z[i % len(x)] += x[i % len(x)] * i
        if z[0] > 3.0:
            z[0] = -z[0]
    return z


def until_small(x: Any, n: Any) -> Any:
    steps, y = 0, x.sum()
    while abs(y) > 0.1 and steps < n:
        y, steps = y / 2, steps + 1
    return y, steps


def elements(x: Any, n: Any) -> Any:
    several = {"a": x * 2, "b": x}
    for i in range(n):
        if i > 2:
            several["a"], several["b"] = several["b"] + 1, several["a"] * 0.5
    return several["a"]


def writes_its_argument(x: Any, n: Any) -> Any:
    for i in range(len(x)):
        if x[i] > n * 0.1:
            x[i] -= 1.0
    return x.sum()


FUNCTIONS = [in_place, until_small, elements, writes_its_argument]
N_THREADS = 8


def together(work: Callable[[int], None]) -> None:
    """Runs `work` in threads that begin at one moment; the first error of one is raised."""
    start, errors = threading.Barrier(N_THREADS), []

    def run(k: int) -> None:
        try:
            start.wait()
            work(k)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(N_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def assert_as_plain(f: Callable[..., Any], compiled: Callable[..., Any], k: int) -> None:
    for n in (0, 1, 5, 20 + k):
        x = np.random.default_rng([k, n]).normal(size=3 + k % 3)
        ours, theirs = x.copy(), x.copy()
        for one, other in zip(
            *(value if isinstance(value, tuple) else (value,) for value in (compiled(ours, n), f(theirs, n))), strict=True
        ):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_one_function_in_several_threads(f: Callable[..., Any]) -> None:
    compiled = ns.jit(f, mode="python")
    together(lambda k: assert_as_plain(f, compiled, k))


def test_several_functions_at_once_each_for_the_first_time() -> None:
    together(lambda k: assert_as_plain(FUNCTIONS[k % 4], ns.jit(FUNCTIONS[k % 4], mode="python"), k))


def test_a_loop_of_known_numbers_stays_pythons_beside_a_thread_that_traces() -> None:
    def f(x: Any) -> Any:
        n = 0
        for k in range(300):
            n = n + k % 3
        return x * {0: 1.0, 1: 2.0, 2: 3.0}[n % 3]

    done = threading.Event()

    def traces() -> None:
        while not done.is_set():
            ns.jit(lambda x: np.sin(x) + 1.0, mode="python")(2.0)

    other, interval = threading.Thread(target=traces), sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    other.start()
    try:
        for _ in range(30):
            assert ns.jit(f, mode="python")(2.0) == f(2.0)
    finally:
        sys.setswitchinterval(interval)
        done.set()
        other.join()
