"""A warning tells when a new length compiles a function anew for the third time, and where nothing is compiled there is none."""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns


def warned(f: Callable[..., Any], arguments: list[Any]) -> list[str]:
    """What is warned of in calls, one after the other, with the number of the call."""
    found = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k, x in enumerate(arguments):
            f(x)
            found += [f"{k}: {one.message}" for one in caught if issubclass(one.category, ns.RecompilationWarning)]
            assert all(one.filename == __file__ for one in caught)
            caught.clear()
    return found


def of(*lengths: int) -> list[Any]:
    return [np.ones(n) for n in lengths]


@pytest.mark.parametrize("transform", [ns.jit, ns.grad])
def test_the_third_length_is_told(transform: Callable[..., Any]) -> None:
    (text,) = warned(transform(lambda values: (values * 2).sum()), of(3, 4, 3, 5, 6, 7, 30, 40, 50))
    assert text.startswith("3: ")
    for part in ("compiled for the 3rd time because values has another length (5 on axis 0, before 3 and 4)", "pad the array"):
        assert part in text


def test_lengths_that_are_not_fixed_are_not_told() -> None:
    assert not warned(ns.jit(lambda x: x * 2), of(30, 40, 50, 60))

    def loop(x: Any) -> Any:
        return ns.scan(lambda row, total: total + row, sequences=x, outputs_info=0.0)[0][-1]

    assert not warned(ns.jit(loop), of(3, 4, 5, 6))
    assert not warned(ns.jit(lambda x: x * 2), [1.0, np.float32(1.0), 2, np.ones(3), np.ones((2, 3)), np.ones(30)])
    assert not warned(ns.jit(lambda x: x * 2, mode="python"), of(3, 4, 5, 6))


def test_another_value_from_outside_is_no_other_length() -> None:
    factor = 2

    def f(x: Any) -> Any:
        nonlocal factor
        return x**factor

    traced = ns.jit(f)
    found = warned(traced, of(3, 4))
    factor = 3
    found += warned(traced, of(3, 4))
    assert not [text for text in found if "length" in text]


def test_steps_that_are_called_are_told_of() -> None:
    step = ns.scan(lambda x, u: x * 0.5 + u)
    (text,) = warned(lambda x: step(outputs_info=x, non_sequences=np.float64(1.0), n_steps=3), of(3, 4, 5, 6))
    assert text.startswith("2: ")


@pytest.mark.parametrize("numbers", [(50_000_000,), (3, 50_000_000), (50_000_000, 0, -3), (-7, 60_000, 5)])
def test_a_long_range_is_counted_and_not_kept(numbers: tuple[int, ...]) -> None:
    """An array of its numbers would take 400 MB while the function is traced."""

    def f(x: Any) -> Any:
        s = x
        for t in range(*numbers):
            s = s * 0.5 + t
        return s

    tracemalloc.start()
    try:
        text = ns.jit(f).lower(1.0).source()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 100e6
    assert "fixed" not in text
    if len(range(*numbers)) < 20_000:
        np.testing.assert_allclose(ns.jit(f)(1.0), f(1.0), rtol=1e-15)
        np.testing.assert_array_equal(ns.jit(lambda x: np.arange(*numbers) + x)(1), np.arange(*numbers) + 1)


def converged(x: Any) -> Any:
    old, n = None, 0
    for _ in range(100):
        x = np.cos(x)
        if old is not None and np.abs(x - old).max() < 1e-3:
            break
        old, n = x, n + 1
    return x, n


def ends_in_the_first_pass(x: Any) -> Any:
    best = None
    for k in range(40):
        v = x * (k + 1)
        if v[0] > 1:
            break
        if best is None or v[1] > best[1]:
            best = v
    else:
        k = -1
    return x if best is None else best, k


def from_a_number(x: Any) -> Any:
    total = 0
    for k in range(60):
        total = total * 0.5 + x[k % 3 :][:3]
    return total


def means(x: Any, labels: Any) -> Any:
    centres, old = x[:3].copy(), None
    for _ in range(100):
        nearest = np.argmin(np.abs(x[:, None] - centres).sum(2), axis=1)
        if old is not None and np.array_equal(old, nearest):
            break
        old = nearest
        for j in range(len(labels)):
            if (nearest == labels[j]).any():
                centres[j] = x[nearest == labels[j]].mean(axis=0)
    return centres, old


@pytest.mark.parametrize("scale", [0.01, 0.3, 5.0])
def test_the_first_pass_may_make_arrays_of_none_and_of_numbers(scale: float) -> None:
    x = np.random.default_rng(3).normal(size=(40, 2))
    for f, args in (
        (converged, (x[:, 0] * scale,)),
        (from_a_number, (x[:6] * scale,)),
        (means, (x * scale, np.arange(3))),
    ):
        found, expected = ns.jit(f)(*args), f(*args)
        for one, other in zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]:
            np.testing.assert_allclose(one, other, rtol=1e-12)
    slope = ns.grad(lambda x: converged(x)[0].sum())(x[:5, 0])
    way = np.arange(5.0)
    steps = [converged(x[:5, 0] + h * way)[0].sum() for h in (1e-6, -1e-6)]
    np.testing.assert_allclose(slope @ way, (steps[0] - steps[1]) / 2e-6, rtol=1e-4, atol=1e-9)


def test_a_loop_that_cannot_be_a_scan_says_why_and_not_that_it_calls_itself() -> None:
    with pytest.raises(TypeError, match="best is None"):
        ns.jit(ends_in_the_first_pass)(np.array([0.01, 2.0]))
