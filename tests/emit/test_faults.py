"""What machine code for the CPU tells of a function: the errors that it may raise, and whether it takes memory."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from numbascan.emit.inside.faults import faults_of, takes_memory

if numba.config.DISABLE_JIT:
    pytest.skip("Numba compiles nothing", allow_module_level=True)

ARRAY = numba.types.Array(numba.float64, 1, "C", readonly=True)


def compiled(function: Any, *types: Any, **options: Any) -> Any:
    made = numba.njit(**options)(function)
    made.compile(types)
    return made


def limited(x: float) -> float:
    if x > 2.0:
        raise ValueError("too large")
    return x


def with_numbers(x: float) -> float:
    if x > 2.0:
        raise ValueError("too large", x)
    return x


def total(x: Any) -> float:
    s = 0.0
    for one in x[1:]:
        s += one
    return s + x.sum() + x[-1] * len(x)


def worked(x: float) -> float:
    work = np.zeros(3)
    for k in range(3):
        work[k] = k * x
    return work[1]


def listed(x: int) -> int:
    numbers = [x]
    for k in range(x):
        numbers.append(k)
    return numbers[-1]


def test_errors_have_their_names_and_messages() -> None:
    assert faults_of(compiled(limited, numba.float64)) == [("ValueError", "too large")]
    assert ("ValueError", "too large") in faults_of(compiled(with_numbers, numba.float64))
    inner = numba.njit(limited)
    assert faults_of(compiled(lambda x: inner(x) + 1.0, numba.float64)) == [("ValueError", "too large")]
    assert faults_of(compiled(lambda x: x[2], ARRAY, boundscheck=True))[0][0] == "IndexError"


def test_divisions_raise_where_the_divisor_may_be_zero() -> None:
    assert faults_of(compiled(lambda x: 1.0 / x, numba.float64)) == [("ZeroDivisionError", "division by zero")]
    assert faults_of(compiled(lambda n, k: n % k, numba.int64, numba.int64))[0][0] == "ZeroDivisionError"
    assert faults_of(compiled(lambda n: n // 2 + n % 3, numba.int64)) == []
    assert faults_of(compiled(lambda n, k: n % k, numba.int64, numba.int64, error_model="numpy")) == []


@pytest.mark.skipif(numba.config.BOUNDSCHECK, reason="every index is checked, which raises (--poisoned, NUMBA_BOUNDSCHECK)")
def test_arrays_that_are_given_take_no_memory_and_raise_nothing() -> None:
    assert faults_of(compiled(total, ARRAY)) == []
    assert not takes_memory(compiled(total, ARRAY))


@pytest.mark.parametrize(
    "function, type_", [(worked, numba.float64), (listed, numba.int64), (lambda x: (x + x).sum(), ARRAY), (lambda x: np.sort(x)[0], ARRAY)]
)
def test_arrays_and_lists_take_memory(function: Any, type_: Any) -> None:
    assert takes_memory(compiled(function, type_))
