"""Shapes of programs as other projects write them: each function beside itself under Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

import numbascan as ns


def series(x: Any) -> Any:
    if x >= 1.0:
        return np.inf
    term = total = 1.0
    k = 0
    while True:
        term = term * x / (k + 1)
        before = total
        total += term
        if before == total:
            return total
        k += 1


def halved(x: Any) -> Any:
    if x > 2:
        while 1:
            for k in range(3):
                if k == 2:
                    break
                x = x / 2
            if x < 1:
                return x
    return x + 5


def left_by_break(x: Any) -> Any:
    if x > 2:
        while True:
            x = x / 2
            if x < 0.1:
                return x
            if x < 1:
                break
    return x + 5


@pytest.mark.parametrize("f", [series, halved, left_by_break])
@pytest.mark.parametrize("x", [-0.2, 0.3, 2.5, 9.0])
def test_what_follows_a_loop_without_end_is_not_reached(f: Callable[..., Any], x: float) -> None:
    np.testing.assert_allclose(ns.jit(f, mode="python")(x), f(x), rtol=1e-12)


def test_a_loop_without_end_has_a_derivative() -> None:
    assert ns.grad(series)(0.3) == pytest.approx(math.exp(0.3))


def gammas(x: Any, n: Any) -> Any:
    return math.gamma(x), math.lgamma(x), math.erf(x), math.erfc(x), math.gamma(n), math.lgamma(n), math.erf(n)


@pytest.mark.parametrize("mode", ["python", None])
def test_math_has_the_functions_of_gauss_and_euler(mode: str | None) -> None:
    for x, n in ((2.5, 4), (-0.7, 1), (0.3, 2)):
        np.testing.assert_allclose(np.ravel(ns.jit(gammas, mode=mode)(x, n)), np.ravel(gammas(x, n)), rtol=1e-12)


def test_a_derivative_goes_through_gamma() -> None:
    differences = (math.gamma(2.5 + 1e-6) - math.gamma(2.5 - 1e-6)) / 2e-6
    assert ns.grad(lambda x: math.gamma(x))(2.5) == pytest.approx(differences)


def sum_of_differences(y: Any, n: Any) -> Any:
    total = np.zeros(n)
    for i in numba.prange(n):
        for j in numba.prange(1, n, 2):
            total[i] += abs(y[i] - y[j])
    return total


def test_prange_is_range() -> None:
    args = np.random.default_rng(2).normal(size=7), 6
    np.testing.assert_allclose(ns.jit(sum_of_differences, mode="python")(*args), sum_of_differences(*args), rtol=1e-12)


class Named(type):
    """Classes that say of which module they are by a property, as those of Cython."""

    __module__ = property(lambda cls: __name__)  # type: ignore[assignment]


class Scale(metaclass=Named):
    by = 3.0


class Shift:
    __module__ = property(lambda self: __name__)  # type: ignore[assignment]
    by = 1.0


SCALE, SHIFT = Scale(), Shift()


def scaled(x: Any) -> Any:
    return x * SCALE.by + SHIFT.by if x > 0 else x


def test_a_class_may_have_a_module_that_is_no_name() -> None:
    assert ns.jit(scaled, mode="python")(2.0) == scaled(2.0)
