"""Products by one call of BLAS give the bits of Numba's own, and its errors."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from numba import njit
from shortcuts_taken import needs

from numbascan.emit.inside.compiling import short_ways

pytestmark = needs("np_dot", "stack", "compiler")
LENGTHS = (0, 1, 2, 5), (0, 1, 3, 17), (0, 1, 4)


def into(a: Any, b: Any, out: Any) -> None:
    np.dot(a, b, out)


def of_vectors(x: Any, y: Any) -> Any:
    return np.dot(x, y)


def given_back(a: Any, b: Any, out: Any) -> Any:
    return np.dot(a, b, out)


def ours(function: Any, *args: Any) -> Any:
    compiled = njit(function, error_model="numpy")
    with short_ways():
        result = compiled(*args)
    (overload,) = compiled.overloads.values()
    assert "numbascan_matrix_by" in (text := overload.library.get_llvm_str()) or "numbascan_vector_by" in text
    return result


def operands(dtype: str) -> Iterator[tuple[Any, Any, tuple[int, ...]]]:
    """Matrices and vectors of all lengths and orders, and the shapes of their products."""
    rng = np.random.default_rng(0)

    def numbers(*shape: int, order: Any = "C") -> Any:
        values = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype.startswith("complex") else 0.0)
        return np.array(values.astype(dtype), order=order)

    for m, k, n in product(*LENGTHS):
        for one, other in product("CF", "CF"):
            yield numbers(m, k, order=one), numbers(k, n, order=other), (m, n)
        for order in "CF":
            yield numbers(m, k, order=order), numbers(k), (m,)
            yield numbers(m), numbers(m, k, order=order), (k,)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_products_have_the_bits_of_numbas(dtype: str) -> None:
    theirs, compiled = njit(into), njit(into, error_model="numpy")
    for a, b, shape in operands(dtype):
        found, wanted = np.full((2, *shape), np.nan, dtype)
        with short_ways():
            compiled(a, b, found)
        theirs(a, b, wanted)
        assert found.tobytes() == wanted.tobytes(), (a.shape, b.shape)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_vectors_too(dtype: str) -> None:
    compiled, theirs = njit(of_vectors), njit(of_vectors)
    for n in (0, 1, 3, 1000):
        x, y = np.cos(np.arange(2.0 * n)).astype(dtype).reshape(2, n) * dtype_one(dtype)
        with short_ways():
            found = compiled(x, y)
        assert np.asarray(found).tobytes() == np.asarray(theirs(x, y)).tobytes()


def dtype_one(dtype: str) -> Any:
    return np.dtype(dtype).type(1 + 0.5j if dtype.startswith("complex") else 1)


@pytest.mark.parametrize(
    "shapes", [((2, 3), (2, 3), (2, 3)), ((2, 3), (3, 3), (2, 2)), ((2, 3), (3,), (3,)), ((2, 3), (2,), (3,)), ((2,), (3, 2), (2,))]
)
def test_lengths_that_differ_are_refused(shapes: Any) -> None:
    with pytest.raises(ValueError, match=r"incompatible array sizes for np\.dot"):
        ours(into, *map(np.ones, shapes))


def test_vectors_of_two_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"incompatible array sizes for np\.dot"):
        ours(of_vectors, np.ones(2), np.ones(3))


def test_the_result_is_the_array_that_was_given() -> None:
    out = np.empty((2, 2))
    assert ours(given_back, np.eye(2), np.ones((2, 2)), out) is out
    np.testing.assert_array_equal(out, 1.0)


def test_what_it_does_not_take_is_numbas() -> None:
    """Strided operands, products of matrices without a place for them."""
    a = np.arange(24.0).reshape(4, 6)
    compiled, allocates = njit(into), njit(of_vectors)
    out = np.empty((4, 4))
    with short_ways(), pytest.warns(Warning, match="faster on contiguous arrays"):
        compiled(a[:, ::2], a[:, 1::2].T, out)
    np.testing.assert_array_equal(out, a[:, ::2] @ a[:, 1::2].T)
    with short_ways():
        np.testing.assert_array_equal(allocates(a, a.T), a @ a.T)
