"""`x.at[index].set(y)` and its like, beside NumPy's `ufunc.at`, which visits an element as often as it is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.lax as lax
import numbascan.tensor as nt

METHODS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "min": np.minimum,
    "max": np.maximum,
}
VECTOR = np.linspace(0.5, 3.0, 6)
LONG = np.linspace(0.5, 3.0, 40)
MATRIX = np.linspace(0.5, 3.0, 12).reshape(4, 3)
TWICE = np.array([2, 0, -1, 2, 2])
CASES: dict[str, tuple[np.ndarray, Any, Any]] = {
    "number": (VECTOR, 1, 2.0),
    "negative": (VECTOR, -2, 2.0),
    "slice": (VECTOR, slice(1, 4), np.array([2.0, 0.5, -1.0])),
    "twice": (VECTOR, TWICE, np.array([2.0, 3.0, 0.5, -1.0, 4.0])),
    "one value": (VECTOR, TWICE, 2.0),
    "long": (LONG, np.arange(60) % 37, np.linspace(1.0, 2.0, 60)),
    "rows": (MATRIX, np.array([1, 1, 0]), np.arange(1.0, 10.0).reshape(3, 3)),
    "pairs": (MATRIX, (np.array([1, 1, 0]), np.array([2, 2, 0])), np.array([2.0, 3.0, 0.5])),
    "grid": (MATRIX, (np.array([[1], [3]]), np.array([0, 0])), np.array([2.0, 3.0])),
    "mask": (VECTOR, VECTOR > 1.2, 2.0),
    "rows by mask": (MATRIX, np.array([True, False, True, False]), 2.0),
    "none": (VECTOR, np.zeros(0, "int64"), np.zeros(0)),
    "all": (MATRIX, ..., np.array([2.0, 3.0, 0.5])),
}


def by_numpy(ufunc: np.ufunc, x: np.ndarray, index: Any, y: Any) -> np.ndarray:
    result = x.copy()
    ufunc.at(result, index, y)
    return result


@pytest.mark.parametrize("mode", [None, "python"])
@pytest.mark.parametrize("case", CASES)
def test_it_is_what_numpy_writes(case: str, mode: str | None) -> None:
    x, index, y = CASES[case]
    given = [part for part in (index if isinstance(index, tuple) else (index,)) if isinstance(part, np.ndarray)]

    def all_methods(x: Any, y: Any, *places: Any) -> Any:
        at = index if not places else places if isinstance(index, tuple) else places[0]
        before = x + 0.0
        return [getattr(x.at[at], method)(y) for method in METHODS], x - before

    for places in [given] + [[]] * bool(given):  # also indices that are known while tracing
        results, changed = ns.jit(all_methods, mode=mode)(x, y, *places)
        assert not changed.any()
        for ufunc, result in zip(METHODS.values(), results, strict=True):
            np.testing.assert_allclose(result, by_numpy(ufunc, x, index, y), rtol=1e-15)


@pytest.mark.parametrize("case", CASES)
def test_ufunc_at_writes_into_a_traced_array(case: str) -> None:
    x, index, y = CASES[case]

    def write(x: Any, y: Any) -> Any:
        results = []
        for ufunc in METHODS.values():
            z = x.copy()
            view = z[...]
            ufunc.at(view, index, y)
            results.append(z)
        return results

    for ufunc, result in zip(METHODS.values(), ns.jit(write)(x, y), strict=True):
        np.testing.assert_allclose(result, by_numpy(ufunc, x, index, y), rtol=1e-15)


def test_values_are_set() -> None:
    x, places, y = VECTOR, np.array([1, 3, 1]), np.array([7.0, 8.0, 9.0])
    np.testing.assert_array_equal(ns.jit(lambda x, i, y: x.at[i].set(y))(x, places, y)[:4], [x[0], 9.0, x[2], 8.0])
    np.testing.assert_array_equal(ns.jit(lambda x, m: x.at[m].set(0.0))(x, x > 1.2), np.where(x > 1.2, 0.0, x))
    np.testing.assert_array_equal(ns.jit(lambda x, i: x.at[i].get(mode="promise_in_bounds"))(x, places), x[places])
    np.testing.assert_array_equal(ns.jit(lambda x: x.at[1:3].apply(np.negative))(x), [x[0], -x[1], -x[2], *x[3:]])
    np.testing.assert_array_equal(ns.jit(lambda x, i: x.at[i].apply(np.negative))(x, places), [*x[:3], -x[3], *x[4:]])  # twice for x[1]


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32", "complex128"])
def test_the_dtype_stays(dtype: str) -> None:
    x, y, places = np.arange(1, 6).astype(dtype), np.array([2, 3, 1, 2]).astype(dtype), np.array([0, 0, 4, 0])
    for method in ("add", "multiply", "set"):
        result = ns.jit(lambda x, i, y, method=method: getattr(x.at[i], method)(y))(x, places, y)
        assert result.dtype == dtype
        if method != "set":
            np.testing.assert_array_equal(result, by_numpy(METHODS[method], x, places, y))
    np.testing.assert_array_equal(ns.jit(lambda x: x.at[1].multiply(3))(x), by_numpy(np.multiply, x, 1, 3))


def test_derivatives_lanes_and_loops() -> None:
    x, places, y = VECTOR, np.array([2, 0, 2]), np.array([2.0, 3.0, 0.5])

    def cost(x: Any, y: Any) -> Any:
        return np.sum(x.at[places].multiply(y) ** 2)

    products = np.array([3.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    products[2] = 2.0 * 0.5
    np.testing.assert_allclose(ns.grad(cost)(x, y), 2 * x * products**2, rtol=1e-15)
    ns.verify_grad(cost, [x, y])
    stacked, rows = np.stack([x, 2 * x, -x]), np.array([[0, 0], [1, 2], [5, 5]])
    lanes = ns.vmap(lambda x, i: x.at[i].max(1.5))(stacked, rows)
    np.testing.assert_array_equal(lanes, [by_numpy(np.maximum, one, i, 1.5) for one, i in zip(stacked, rows, strict=True)])
    total = ns.jit(lambda x, n: lax.fori_loop(0, n, lambda k, z: z.at[k].multiply(2.0), x))(x, 3)
    np.testing.assert_array_equal(total, [*(2 * x[:3]), *x[3:]])
    path = ns.scan(lambda z: z.at[places].add(1.0), outputs_info=x, n_steps=3, return_updates=False)
    np.testing.assert_allclose(path[-1] - x, [3.0, 0.0, 6.0, 0.0, 0.0, 0.0])
    assert ns.scan(lambda z: z.at[places].mul(2.0), outputs_info=x, n_steps=0, return_updates=False).shape == (0, 6)


def test_arrays_of_numpy_in_a_traced_function_have_it() -> None:
    np.testing.assert_array_equal(ns.jit(lambda x: np.zeros(3).at[0].set(x[1]))(VECTOR), [VECTOR[1], 0, 0])
    outside = np.zeros(3)
    np.testing.assert_array_equal(ns.jit(lambda x: outside.at[0].set(x[1]))(VECTOR), [VECTOR[1], 0, 0])
    assert not outside.any()


def test_a_mask_that_only_the_run_knows_takes_as_many_values_as_it_has_places() -> None:
    for x in (VECTOR, LONG):
        expected = x.copy()
        expected[x > 1] *= x[x > 1]
        for mode in ("python", None):
            np.testing.assert_allclose(ns.jit(lambda x: x.at[x > 1].multiply(x[x > 1]), mode=mode)(x), expected, rtol=1e-15)
            np.testing.assert_allclose(ns.jit(lambda x: x.at[x > 1].get(), mode=mode)(x), x[x > 1])


@pytest.mark.parametrize(
    ("f", "error", "words"),
    [
        (lambda x: x.at[[0, 9]].add(1.0), IndexError, "index 9 is out of bounds"),
        (lambda x: x.at[[0, 9]].multiply(1.0), IndexError, "index 9 is out of bounds"),
        (lambda x: x.at[0].set(1.0, mode="drop"), ValueError, r"set\(mode='drop'\).*write np.clip"),
        (lambda x: x.at[0].get(fill_value=0.0), ValueError, r"write np.where\(index < n"),
        (lambda x: x.at[0].set(1.0, fill_value=0.0), TypeError, "no argument 'fill_value'"),
        (lambda x: x.reshape(2, 3).at[:, [0, 0]].multiply(2.0), TypeError, r"write a loop"),
        (lambda x: x.at[x > 1].multiply(x), ValueError, "broadcast|do not fit|equal"),
        (lambda x: x.astype("int64").at[0].set(1.5), TypeError, "cannot be written|does not go"),
        (lambda x: x.astype("int64").at[[0, 0]].multiply(1.5), TypeError, "does not go into int64"),
        (lambda x: x.at[0].max(1j), TypeError, "complex"),
    ],
)
def test_what_it_does_not_take(f: Callable[[Any], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        ns.jit(f)(VECTOR)


def test_graphs_have_it() -> None:
    x, i = nt.dvector("x"), nt.lvector("i")
    f = ns.function([x, i], x.at[i].multiply(2.0))
    np.testing.assert_array_equal(f(VECTOR, [0, 0]), by_numpy(np.multiply, VECTOR, [0, 0], 2.0))
    assert repr(x.at[0]) == "<x: float64[?]>.at[0]"
