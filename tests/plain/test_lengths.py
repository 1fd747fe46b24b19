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
