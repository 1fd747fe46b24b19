"""Steps of wide states that may fail stay one kernel: all its threads end together, and the error is the CPU's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernel_text import kernels as kernels_of

import numbascan as ns
from numbascan.modes import Mode

Same = Callable[..., Any]
RNG = np.random.default_rng(21)
U, W = RNG.normal(size=50), RNG.normal(size=(40, 11))
PLACES = RNG.permutation(50)


def scan(step: Any, *args: Any, **options: Any) -> Any:
    return ns.scan(step, *args, **options, return_updates=False)


def gathered(u: Any, j: Any) -> Any:
    return scan(lambda u, j: np.tanh(u) + 0.5 * u[j], outputs_info=u, non_sequences=j, n_steps=5)


def twice(u: Any, j: Any, k: Any) -> Any:
    """Places that move with the step: two that may be wrong in each."""
    return scan(lambda t, u, j, k: np.tanh(u[j + t]) - np.roll(u, 1)[k - t], np.arange(4), outputs_info=u, non_sequences=[j, k])[-1]


def until(u: Any, j: Any) -> Any:
    return scan(lambda u, j: ((v := 0.5 * u[j] + 0.1 * u), ns.until(abs(v).max() < 0.1)), outputs_info=u, non_sequences=j, n_steps=30)


def rows(w: Any, j: Any) -> Any:
    return scan(lambda w, j: np.tanh(w[j]) + 0.1 * w, outputs_info=w, non_sequences=j, n_steps=3)[-1]


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "places": (gathered, (U, PLACES)),
    "places from the end": (gathered, (U, PLACES - 50)),
    "two at once": (twice, (U, PLACES // 2, PLACES // 2 + 5)),
    "until": (until, (U, PLACES)),
    "rows": (rows, (W, np.arange(40)[::-1].copy())),
    "gradients": (ns.grad(lambda u, j: (gathered(u, j) ** 2).sum()), (U, PLACES)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_places_in_one_kernel(name: str, same: Same) -> None:
    function, args = PROGRAMS[name]
    same(function, *args, rtol=1e-11)


@pytest.mark.parametrize("name", ["places", "two at once", "rows"])
def test_the_host_takes_no_step(name: str) -> None:
    function, args = PROGRAMS[name]
    text = ns.jit(function).lower(*args).source("cuda")
    assert "for t in range" not in text
    assert sum("if error[turn] != NONE:" in kernel for kernel in kernels_of(text).values()) == 1


def error_of(function: Callable[..., Any], args: Any, mode: Mode) -> str:
    with pytest.raises((IndexError, FloatingPointError)) as caught:
        ns.jit(function, mode=mode)(*args)
    return f"{type(caught.value).__name__}: {caught.value}"


WRONG = {
    "the first of several": (gathered, (U, np.where(np.isin(np.arange(50), [7, 8, 31, 49]), np.arange(50) + 60, PLACES))),
    "the last element": (gathered, (U, np.where(np.arange(50) == 49, -51, PLACES))),
    "at a later step": (twice, (U, PLACES // 2 + 23, PLACES // 2 + 5)),
    "in the second loop of a later step": (twice, (U, PLACES // 2, PLACES // 2 - 48)),
    "in a loop that may end": (until, (U, np.where(np.arange(50) == 20, 50, PLACES))),
    "rows": (rows, (W, np.where(np.arange(40) == 4, 40, np.arange(40)))),
}


@pytest.mark.usefixtures("runs_kernels")
@pytest.mark.parametrize("name", WRONG)
def test_the_first_wrong_place_is_told(name: str) -> None:
    function, args = WRONG[name]
    assert error_of(function, args, Mode(target="cuda")) == error_of(function, args, Mode())


def grown(u: Any) -> Any:
    return scan(lambda u: np.roll(u, 1) * u, outputs_info=u, n_steps=12)


def two_states(u: Any, v: Any) -> Any:
    return scan(lambda u, v: (np.roll(v, 1) * 0.9, v * u), outputs_info=[u, v], n_steps=12)


@pytest.mark.usefixtures("runs_kernels")
@pytest.mark.parametrize(("function", "args"), [(grown, (1e40 * abs(U) + 1,)), (two_states, (1e60 * U, 1e60 * U[::-1].copy()))])
def test_the_first_step_that_is_not_finite_is_told(function: Any, args: Any) -> None:
    on_gpu, on_cpu = Mode(target="cuda", check_finite=True), Mode(check_finite=True)
    assert error_of(function, args, on_gpu) == error_of(function, args, on_cpu)
    text = ns.jit(function, mode=on_gpu).lower(*args).source("cuda")
    assert "for t in range" not in text


@pytest.mark.usefixtures("runs_kernels")
def test_finite_steps_pass_their_checks() -> None:
    args = (U / 10, U[::-1] / 10)
    found = ns.jit(two_states, mode=Mode(target="cuda", check_finite=True))(*args)
    for one, other in zip(found, ns.jit(two_states, mode="python")(*args), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
