"""A Python integer takes the other operand's dtype, as in NumPy 2; one that does not fit is an error, also where only the run knows it."""

from __future__ import annotations

import numpy as np
import pytest

import numbascan as ns


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
