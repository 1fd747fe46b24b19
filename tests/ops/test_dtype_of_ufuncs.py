"""np.add(x, y, dtype=…): NumPy casts the operands, then computes."""

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from ops.functions import assert_as_numpy

import numbascan as ns
from numbascan.front.variable import DISPATCH

VALUES = {
    "bool": [True, False, True],
    "int8": [100, -100, 7],
    "uint8": [3, 250, 1],
    "int64": [3, -5, 2**40],
    "float32": [1 / 3, 2.5, -7.0],
    "float64": [0.1, 2.5, -3.5],
    "complex64": [1 + 2j, -1j, 3.0],
}
WANTED = ("bool", "int8", "int64", "uint64", "float32", "float64", "complex128")
UFUNCS = sorted({key for key in DISPATCH if isinstance(key, np.ufunc) and key.signature is None}, key=lambda ufunc: ufunc.__name__)


def given(ufunc: np.ufunc, dtype: str) -> list[np.ndarray]:
    return [np.array(VALUES[dtype], dtype)[:: 1 - 2 * k] for k in range(ufunc.nin)]


def by_numpy(ufunc: np.ufunc, arrays: list[Any], dtype: str) -> Any:
    try:
        return ufunc(*arrays, dtype=dtype)
    except (TypeError, ValueError) as error:
        return error


def cases_of(ufunc: np.ufunc) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The (operands, results) dtypes that NumPy takes, and those that it refuses."""
    pairs = [pair for pair in itertools.product(VALUES, WANTED) if ufunc is not np.reciprocal or pair[0] != "bool"]  # 1 // 0 is undefined
    refused = [(dtype, wanted) for dtype, wanted in pairs if isinstance(by_numpy(ufunc, given(ufunc, dtype), wanted), Exception)]
    return [pair for pair in pairs if pair not in refused], refused


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda ufunc: ufunc.__name__)
def test_operands_are_cast_before_the_ufunc_computes(ufunc: np.ufunc) -> None:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        taken, refused = cases_of(ufunc)
        assert taken
        for dtype, wanted in taken:
            assert_as_numpy(lambda *operands, wanted=wanted: ufunc(*operands, dtype=wanted), *given(ufunc, dtype))
        for dtype, wanted in refused:
            with pytest.raises((TypeError, ValueError)):
                assert_as_numpy_of(ufunc, given(ufunc, dtype), wanted)


def assert_as_numpy_of(ufunc: np.ufunc, arrays: list[np.ndarray], wanted: str) -> None:
    ns.jit(lambda *operands: ufunc(*operands, dtype=wanted), mode="python")(*arrays)


def test_numbers_of_python_give_way_and_must_fit() -> None:
    x = np.array([100, -100, 7], "int8")
    for dtype, number in (("int64", 300), ("float64", 2.5), ("int64", -1), ("float32", 7)):
        assert_as_numpy(lambda x, dtype=dtype, number=number: np.multiply(x, number, dtype=dtype), x)
    with pytest.raises(OverflowError):
        np.add(x.astype("int64"), 300, dtype="int8")
    with pytest.raises(OverflowError):
        ns.jit(lambda x: np.add(x, 300, dtype="int8"))(x.astype("int64"))
    with pytest.raises(TypeError, match="float"):
        ns.jit(lambda x: np.add(x, 2.5, dtype="int64"))(x)


def test_casting_is_as_asked() -> None:
    x = np.array([1.5, -2.5])
    assert_as_numpy(lambda x: np.add(x, x, dtype="int64", casting="unsafe"), x)
    with pytest.raises(TypeError, match="same_kind"):
        ns.jit(lambda x: np.add(x, x, dtype="int64"))(x)


def test_compiled_code_casts_too() -> None:
    x = np.array([3, 250, 0], "uint8")
    assert ns.jit(lambda x: np.subtract(x, x[::-1], dtype="int64"))(x).tolist() == [3, 0, -3]
    assert ns.jit(lambda x, y: np.add(x, y, dtype="int32"))(x, 7).tolist() == [10, 257, 7]
