"""A Python integer takes the other operand's dtype, as in NumPy 2; one that does not fit is an error, also where only the run knows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt


@pytest.mark.parametrize("mode", [None, "python"])
def test_an_integer_that_does_not_fit_is_refused(mode: str | None) -> None:
    x = np.array([1, 5], "int8")
    with pytest.raises(OverflowError, match=r"np\.add: the Python integer 300 is out of bounds for int8"):
        ns.map(lambda x, k: x + k, x, non_sequences=300, mode=mode, return_updates=False)
    fitting = ns.map(lambda x, k: x + k, x, non_sequences=-3, mode=mode, return_updates=False)
    np.testing.assert_array_equal(fitting, np.array([-2, 2], "int8"), strict=True)


@pytest.mark.parametrize("mode", [None, "python"])
def test_an_initial_integer_takes_the_dtype_of_the_result(mode: str | None) -> None:
    x = np.array([1, 5], "uint8")
    total = ns.scan(lambda x, s: x + s, x, 7, return_updates=False, mode=mode)
    np.testing.assert_array_equal(total, np.array([8, 13], "uint8"), strict=True)
    with pytest.raises(OverflowError, match="-1 is out of bounds for uint8"):
        ns.scan(lambda x, s: x + s, x, -1, return_updates=False, mode=mode)


def test_a_length_is_a_python_integer() -> None:
    with pytest.raises(OverflowError, match="300 is out of bounds for int8"):
        ns.jit(lambda x: x + x.shape[0])(np.ones(300, "int8"))
    assert ns.jit(lambda x: x * x.shape[0])(np.ones(300, "int16")).dtype == np.int16


@pytest.mark.parametrize(
    "function",
    [
        lambda x: nt.ifelse(x[0] > 0, x, 300),
        lambda x: nt.ifelse(x[0] > 0, lambda: -129, lambda: x),
        lambda x: np.full_like(x, 300),
        lambda x: np.pad(x, 1, constant_values=-129),
        lambda x: x[0].set(300),
        lambda x: x[:1].inc(-129),
        lambda x: x[np.array([0, 1])].set(300),
        lambda x: np.where(x > 0, x, 300),
        lambda x: np.add(x, 300, dtype="int8"),
    ],
)
def test_no_function_wraps_an_integer_around(function: Callable[[Any], Any]) -> None:
    with pytest.raises(OverflowError, match=r"300|-129"):
        ns.jit(function, mode="python")(np.array([1, 5], "int8"))


@pytest.mark.parametrize("mode", [None, "python"])
def test_an_integer_that_only_the_run_knows_is_not_wrapped_around(mode: str | None) -> None:
    chosen = ns.jit(lambda x, k: nt.ifelse(x[0] > 0, x, k), mode=mode)
    assert chosen(np.array([-1, 5], "int8"), -3).tolist() == [-3, -3]
    with pytest.raises(OverflowError, match="300 is out of bounds for int8"):
        chosen(np.array([-1, 5], "int8"), 300)


@pytest.mark.parametrize("mode", [None, "python"])
def test_an_update_takes_the_dtype_of_its_shared_variable(mode: str | None) -> None:
    count = ns.shared(np.int8(1))
    step = ns.scan(lambda k: {count: k}, mode=mode)
    step(non_sequences=[-7], n_steps=2)
    assert count.get_value() == -7
    with pytest.raises(OverflowError, match="300 is out of bounds for int8"):
        step(non_sequences=[300], n_steps=2)
    assert count.get_value() == -7


def test_plus_of_a_python_number_is_one_and_np_positive_of_it_is_not() -> None:
    w = np.float32(1.5)
    for f in (lambda a, b: +a * b, lambda a, b: np.positive(a) * b):
        assert ns.scan(f)(non_sequences=[0.7, w], n_steps=1).dtype == f(0.7, w).dtype
