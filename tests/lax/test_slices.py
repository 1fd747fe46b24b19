"""Slices at places that only the run knows: those of plain Python, under jit, grad and vmap, and of plain arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import numbascan as ns
import numbascan.lax as lax
import numbascan.tensor as nt
from numbascan.front.instead_of_jax import INSTEAD

LONG = np.arange(60.0).reshape(3, 20)  # a length that is not fixed in the code
SHORT = np.arange(6.0).reshape(2, 3)
STARTS = [0, 1, 2, 17, 18, 99, -1, -2, -3, -20, -21, -99]


def first(start: int, length: int, most: int) -> int:
    """Where a slice begins, as JAX has it: negative starts count from the end, and what goes beyond an end is moved."""
    return min(max(start + most if start < 0 else start, 0), most - length)


def ways(f: Callable[..., Any]) -> list[Callable[..., Any]]:
    return [f, ns.jit(f), ns.jit(f, mode="python")]


@pytest.mark.parametrize("x", [LONG, SHORT], ids=["long", "short"])
@pytest.mark.parametrize("start", STARTS)
def test_a_slice_is_moved_until_it_fits(x: np.ndarray, start: int) -> None:
    row, column = first(start, 2, len(x)), first(start, 3, x.shape[1])
    update = np.array([[-1.0, -2.0, -3.0], [-4.0, -5.0, -6.0]])
    written = x.copy()
    written[row : row + 2, column : column + 3] = update
    for run in ways(lambda x, i: lax.dynamic_slice(x, (i, i), (2, 3))):
        np.testing.assert_array_equal(run(x, start), x[row : row + 2, column : column + 3])
    for run in ways(lambda x, y, i: lax.dynamic_update_slice(x, y, [i, i])):
        np.testing.assert_array_equal(run(x, update, start), written)


@pytest.mark.parametrize("start", STARTS)
def test_one_axis_is_sliced_and_written(start: int) -> None:
    k = first(start, 1, 20)
    rows = np.array([-1.0, -2.0, -3.0])
    written = LONG.copy()
    written[:, k] = rows
    for run in ways(lambda x, i: (lax.dynamic_index_in_dim(x, i, 1), lax.dynamic_index_in_dim(x, i, -1, keepdims=False))):
        kept, squeezed = run(LONG, start)
        np.testing.assert_array_equal(kept, LONG[:, k : k + 1])
        np.testing.assert_array_equal(squeezed, LONG[:, k])
    for run in ways(lambda x, y, i: lax.dynamic_update_index_in_dim(x, y, i, 1)):
        np.testing.assert_array_equal(run(LONG, rows, start), written)
        np.testing.assert_array_equal(run(LONG, rows[:, None], start), written)
    k = first(start, 4, 20)
    for run in ways(lambda x, i: lax.dynamic_slice_in_dim(x, i, 4, axis=1)):
        np.testing.assert_array_equal(run(LONG, start), LONG[:, k : k + 4])
    written = LONG.copy()
    written[:, k : k + 4] = 7.0
    for run in ways(lambda x, i: lax.dynamic_update_slice_in_dim(x, np.full((3, 4), 7.0), i, axis=1)):
        np.testing.assert_array_equal(run(LONG, start), written)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64"])
def test_starts_at_the_ends_of_their_dtype_do_not_wrap(dtype: str) -> None:
    for start in (np.iinfo(dtype).max, np.iinfo(dtype).min):
        scalar = np.array(start, dtype)
        expected = 18 if start > 0 else 0
        for run in ways(lambda i: lax.dynamic_slice_in_dim(LONG[0], i, 2)):
            np.testing.assert_array_equal(run(scalar), LONG[0, expected : expected + 2])


def test_negative_starts_may_mean_the_first_place() -> None:
    for run in ways(lambda x, i: lax.dynamic_slice(x, (i, i), (1, 2), allow_negative_indices=(False, True))):
        np.testing.assert_array_equal(run(LONG, -5), LONG[:1, 15:17])


def test_starts_may_be_an_array() -> None:
    for run in ways(lambda x, i: lax.dynamic_slice(x, i, (2, 2))):
        np.testing.assert_array_equal(run(LONG, np.array([9, -4])), LONG[1:3, 16:18])


def test_a_size_may_be_half_of_a_length_that_the_run_knows() -> None:
    for run in ways(lambda x: lax.dynamic_slice_in_dim(x, 2, x.shape[0] // 2)):
        np.testing.assert_array_equal(run(LONG[0]), LONG[0, 2:12])
        np.testing.assert_array_equal(run(LONG[0, :18]), LONG[0, 2:11])


@pytest.mark.parametrize("size", [0, 20])
def test_nothing_and_everything_are_slices(size: int) -> None:
    for run in ways(lambda x, i: lax.dynamic_slice_in_dim(x, i, size)):
        np.testing.assert_array_equal(run(LONG[0], 3), LONG[0, :size] if size else [])
    for run in ways(lambda x, y, i: lax.dynamic_update_slice_in_dim(x, y, i, 0)):
        np.testing.assert_array_equal(run(LONG[0], -LONG[0, :size], 3), -LONG[0] if size else LONG[0])


def test_results_share_no_memory_with_the_array() -> None:
    def f(x: Any, i: Any) -> Any:
        part, whole = lax.dynamic_slice_in_dim(x, i, 20), lax.dynamic_slice(x, (0,), (20,))
        other = lax.dynamic_update_slice(x, part, (i,))
        still = lax.stop_gradient(x)
        part[0] = whole[1] = other[2] = still[3] = -1.0
        return x.sum(), part.sum(), whole.sum(), other.sum(), still.sum()

    for run in ways(f):
        assert [float(one) for one in run(LONG[0], 5)] == [190, 189, 188, 187, 186]


def test_gradients_go_to_what_was_read_and_written() -> None:
    def cost(x: Any, y: Any, i: Any) -> Any:
        z = lax.dynamic_update_slice(x, y, (i,))
        return (lax.dynamic_slice(z, (i - 2,), (5,)) ** 3).sum()

    x, y = np.random.default_rng(0).normal(size=20), np.random.default_rng(1).normal(size=3)
    for i in (0, 4, 18, 99, -1):
        ns.verify_grad(lambda x, y, i=i: cost(x, y, i), (x, y))
        ns.verify_grad(lambda x, y, i=i: ns.grad(cost, argnums=0)(x, y, i), (x, y))  # of second order


def test_lanes_have_starts_of_their_own() -> None:
    starts = np.array(STARTS)
    parts = ns.vmap(lambda x, i: lax.dynamic_slice_in_dim(x, i, 3), in_axes=(None, 0))(LONG[0], starts)
    np.testing.assert_array_equal(parts, [LONG[0, first(i, 3, 20) :][:3] for i in STARTS])
    written = ns.vmap(lambda x, y, i: lax.dynamic_update_slice(x, y, (i,)), in_axes=(None, 0, 0))
    rows = np.random.default_rng(0).normal(size=(len(starts), 3))
    expected = np.tile(LONG[0], (len(starts), 1))
    for row, values, i in zip(expected, rows, STARTS, strict=True):
        row[first(i, 3, 20) :][:3] = values
    np.testing.assert_array_equal(written(LONG[0], rows, starts), expected)
    slopes = ns.vmap(ns.grad(lambda x, i: (lax.dynamic_slice_in_dim(x, i, 3) ** 2).sum()), in_axes=(None, 0))(LONG[0], starts)
    for slope, i in zip(slopes, STARTS, strict=True):
        k = first(i, 3, 20)
        np.testing.assert_array_equal(slope, np.where((np.arange(20) >= k) & (np.arange(20) < k + 3), 2 * LONG[0], 0))


@pytest.mark.parametrize("unroll", [None, True, False, 1, 4])
def test_a_buffer_is_written_step_by_step(unroll: Any) -> None:
    def f(x: Any) -> Any:
        def body(i: Any, path: Any) -> Any:
            last = lax.dynamic_index_in_dim(path, i, keepdims=False)
            return lax.dynamic_update_index_in_dim(path, last * 0.5 + x[i], i + 1, 0)

        return lax.fori_loop(0, 19, body, np.zeros(20), unroll=unroll)

    expected = np.zeros(20)
    for i in range(19):
        expected[i + 1] = expected[i] * 0.5 + LONG[0, i]
    np.testing.assert_array_equal(ns.jit(f)(LONG[0]), expected)
    slopes = ns.grad(lambda x: f(x)[-1])(LONG[0])
    np.testing.assert_allclose(slopes, [*0.5 ** np.arange(18.0, -1, -1), 0], rtol=1e-15)


@pytest.mark.parametrize("unroll", [True, False, 2, 100])
def test_unroll_changes_no_value(unroll: Any) -> None:
    step = lambda c, x: (c * 0.9 + x, c)  # noqa: E731
    other = lax.scan(step, 1.0, LONG[:, 0], None, False, unroll)
    last, ys = lax.scan(step, 1.0, LONG[:, 0])
    assert (last, ys.tolist()) == (other[0], other[1].tolist())


def test_stop_gradient_takes_nests_and_keeps_them() -> None:
    nest = {"a": (np.ones(2), None), "b": [2.0, 3]}
    same = lax.stop_gradient(nest)
    assert same["a"][0] is not nest["a"][0]
    assert (same["a"][0].tolist(), same["a"][1], same["b"]) == ([1.0, 1.0], None, [2.0, 3])

    def cost(x: Any) -> Any:
        held = lax.stop_gradient({"x": x, "n": (x * 2, 3)})
        return x * held["x"] + held["n"][0] * held["n"][1]

    assert ns.grad(cost)(5.0) == 5.0
    assert ns.grad(ns.grad(lambda x: x**2 * lax.stop_gradient(x)))(5.0) == 10.0
    np.testing.assert_array_equal(ns.vmap(ns.grad(cost))(LONG[0]), LONG[0])


def test_variables_of_a_graph_are_taken_too() -> None:
    x, i = nt.dvector("x"), nt.lscalar("i")
    run = ns.function([x, i], [lax.dynamic_slice(x, (i,), (2,)), lax.dynamic_update_slice(x, [7.0, 8.0], (i,))])
    part, whole = run(LONG[0, :5], 9)
    assert (part.tolist(), whole.tolist()) == ([3, 4], [0, 1, 2, 7, 8])


# messages -------------------------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "too few starts": (lambda x: lax.dynamic_slice(x, (0,), (1, 1)), TypeError, "start_indices has 1 entries, but operand has 2 axes"),
    "too few sizes": (lambda x: lax.dynamic_slice(x, (0, 0), (1,)), TypeError, "slice_sizes has 1 entries, but operand has 2 axes"),
    "a start of a float": (lambda x: lax.dynamic_slice(x, (0.0, 0), (1, 1)), TypeError, "no integer scalar"),
    "a start of a truth value": (lambda x: lax.dynamic_slice(x, (True, 0), (1, 1)), TypeError, "no integer scalar"),
    "a start of an array": (lambda x: lax.dynamic_index_in_dim(x, np.array([1]), 0), TypeError, "no integer scalar"),
    "a size that is negative": (lambda x: lax.dynamic_slice(x, (0, 0), (1, -1)), ValueError, r"slice_sizes is \(1, -1\)"),
    "a size that is a float": (lambda x: lax.dynamic_slice(x, (0, 0), (1, 1.0)), TypeError, r"slice_sizes\[1\] is 1\.0"),
    "a size beyond the array": (
        lambda x: lax.dynamic_slice(x, (0, 0), (1, 4)),
        ValueError,
        r"slice_sizes is \(1, 4\), but operand \(2, 3\)",
    ),
    "an update beyond the array": (
        lambda x: lax.dynamic_update_slice(x, np.ones((3, 1)), (0, 0)),
        ValueError,
        r"update has shape \(3, 1\), but operand \(2, 3\)",
    ),
    "an update of another rank": (lambda x: lax.dynamic_update_slice(x, np.ones(3), (0, 0)), TypeError, "update has 1 axes, operand 2"),
    "a number for a row": (lambda x: lax.dynamic_update_index_in_dim(x, 1.0, 0, 0), TypeError, "update has 0 axes, operand 2"),
    "an update of another dtype": (
        lambda x: lax.dynamic_update_slice(x, np.ones((1, 1), "float32"), (0, 0)),
        TypeError,
        r"update is float32, operand float64.*astype\('float64'\)",
    ),
    "an axis that is not there": (lambda x: lax.dynamic_slice_in_dim(x, 0, 1, axis=2), ValueError, "axis 2 is out of bounds"),
    "steps written out minus once": (lambda x: lax.scan(lambda c, r: (c, r), 0.0, x, unroll=0), ValueError, "unroll is 0"),
    "steps written out half": (lambda x: lax.fori_loop(0, 3, lambda i, c: c, 0.0, unroll=0.5), ValueError, "unroll is 0.5"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_on_arrays_and_in_graphs(name: str) -> None:
    call, error, words = REFUSED[name]
    for run in (call, ns.jit(call)):
        with pytest.raises(error, match=words):
            run(SHORT)


def test_a_size_is_held_against_a_length_that_the_run_knows() -> None:
    rows = np.ones(40)
    with pytest.raises(ValueError, match=r"lax\.dynamic_slice_in_dim: the part has length 20 along axis 0; it must have 30"):
        ns.jit(lambda x: lax.dynamic_slice_in_dim(x, 3, 30))(LONG[0])
    with pytest.raises(ValueError, match=r"lax\.dynamic_update_slice: update has length 40 along axis 0; it must have 20"):
        ns.jit(lambda x, y: lax.dynamic_update_slice(x, y, (0,)))(LONG[0], rows)
    with pytest.raises(ValueError, match="it must have 0"):  # one element would broadcast
        ns.jit(lambda x, y, n: lax.dynamic_update_slice(x[:n], y, (0,)))(LONG[0], rows[:1], 0)


def test_a_name_that_is_missing_says_what_to_write() -> None:
    with pytest.raises(AttributeError, match=r"numbascan\.lax has no 'max'; write np\.maximum\(x, y\)"):
        _ = lax.max
    with pytest.raises(AttributeError, match="no function is near to it"):
        _ = lax.of_no_library
    assert not hasattr(lax, "rsqrt")
    assert not hasattr(lax, "_private")


def test_advice_is_for_names_that_are_missing() -> None:
    assert not [name for name in INSTEAD if hasattr(lax, name)]


@pytest.mark.parametrize("name", [name for name, advice in INSTEAD.items() if advice.endswith(("(x)", "(x, y)"))])
def test_functions_that_advice_names_take_traced_values(name: str) -> None:
    x = nt.lvector("x") if name.startswith("bitwise") else nt.dvector("x")
    code = INSTEAD[name].removeprefix("write ")
    if not code.startswith("np.sign(x) *"):
        result = eval(code, {"np": np, "scipy": scipy, "x": x, "y": x, "n": 1, "a": x, "b": x})
        assert isinstance(result[0] if isinstance(result, (tuple, list)) else result, ns.Variable)
