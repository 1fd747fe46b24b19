"""Programs that once gave something else than a plain loop: found by tests/random_programs, made short."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

MODES = ("python", None)


def both(step: Any, **arguments: Any) -> list[Any]:
    """The outputs by NumPy and compiled."""
    return [ns.scan(step, mode=mode)(**arguments) for mode in MODES]


@pytest.mark.parametrize("dtype, expected", [("float32", "float64"), ("float64", "float64")])
def test_a_function_of_a_python_number_is_no_python_number(dtype: str, expected: str) -> None:
    def step(y: Any, dt: Any) -> Any:
        return [(y * (dt * 2 - dt // 3)).astype(dtype), y * np.sqrt(dt)]

    kept, rooted = ns.scan(step, outputs_info=[np.ones(2, dtype), None], non_sequences=0.3, n_steps=2, mode="python", return_updates=False)
    assert (dtype, expected) == (kept.dtype, rooted.dtype)
    assert np.sqrt(0.3) * np.ones(2, dtype)[0] == rooted[0, 0]


def test_integer_operators_leave_python_numbers_what_they_are() -> None:
    def step(bits: Any, shift: Any) -> Any:
        return (bits << (shift & 3)) | (shift ^ 1) >> 1

    bits, _ = ns.scan(step, outputs_info=np.array([1, 3], "int8"), non_sequences=1, n_steps=2, mode="python")
    np.testing.assert_array_equal(bits, np.array([[2, 6], [4, 12]], "int8"), strict=True)


def test_a_number_settles_on_a_result_that_is_a_python_number() -> None:
    found, _ = ns.scan(lambda y, w: w * 0.5, outputs_info=[1], non_sequences=[0.7], n_steps=2, mode="python")
    np.testing.assert_array_equal(found, np.array([0.35, 0.35]), strict=True)


def test_the_shape_of_a_running_sum_is_that_of_its_operand() -> None:
    x = nt.dmatrix("x")
    value = np.array([[0.3, 1.2, -0.4], [2.0, 0.1, 0.7]])
    f = ns.function([x], np.std(np.cumsum(x, axis=1), axis=0), mode="python")
    np.testing.assert_allclose(f(value), np.cumsum(value, axis=1).std(axis=0), rtol=1e-14)


@pytest.mark.parametrize("mode", MODES)
def test_a_dimension_of_one_that_only_the_run_knows_broadcasts_in_shapes_too(mode: str | None) -> None:
    row, matrix = nt.dmatrix("row"), nt.dmatrix("matrix")
    f = ns.function([row, matrix], [np.tril(row + matrix), np.mean(np.minimum(row, matrix)), np.repeat(row * matrix, 2, axis=0)], mode=mode)
    a, b = np.array([[0.3, -1.2, 0.7]]), np.arange(6.0).reshape(2, 3) / 7
    for found, expected in zip(f(a, b), (np.tril(a + b), np.mean(np.minimum(a, b)), np.repeat(a * b, 2, axis=0)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize("mode", MODES)
def test_a_shared_variable_with_a_dimension_of_one_broadcasts(mode: str | None) -> None:
    weights = ns.shared(np.array([[0.5, 2.0, -1.0]]), name="weights")
    start = np.arange(6.0).reshape(2, 3)
    path = ns.scan(lambda y: y * weights, mode=mode)(outputs_info=start, n_steps=2)
    np.testing.assert_array_equal(path, [start * weights.get_value(), start * weights.get_value() ** 2])


def test_rows_that_an_inner_loop_kept_become_rows_of_the_outer_result() -> None:
    start = np.linspace(0.1, 0.9, 12).reshape(4, 3)

    def step(y: Any) -> Any:
        inner = ns.scan(lambda s: s * 0.5, outputs_info=[y], n_steps=3, return_updates=False)
        return [y + 1, inner[-1], inner[-2:]]

    for states, last, two in both(step, outputs_info=[start, None, None], n_steps=2):
        np.testing.assert_allclose(states, [start + 1, start + 2])
        np.testing.assert_allclose(last, [start / 8, (start + 1) / 8])
        np.testing.assert_allclose(two, [[start / 4, start / 8], [(start + 1) / 4, (start + 1) / 8]])


def test_what_an_inner_loop_wrote_is_read_after_it_element_by_element() -> None:
    def step(x: Any, y: Any) -> Any:
        inner = ns.scan(lambda row, s: s + row * x, sequences=[y], outputs_info=[x], return_updates=False)[::-1]
        return [np.arctan2(inner, 1 + np.abs(y)), np.maximum(0.1, np.cbrt(inner))]

    xs, start = np.array([0.4, -0.2, 0.9]), np.array([0.5, 1.5])
    path, roots, y = [], [], start
    for x in xs:
        inner = np.array([x + y[0] * x, x + y[0] * x + y[1] * x])[::-1]
        y = np.arctan2(inner, 1 + np.abs(y))
        path.append(y)
        roots.append(np.maximum(0.1, np.cbrt(inner)))
    for found in both(step, sequences=[xs], outputs_info=[start, None]):
        np.testing.assert_allclose(found[0], path, rtol=1e-13)
        np.testing.assert_allclose(found[1], roots, rtol=1e-13)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("options, expected", [({"keep_last": 3}, [3.0, 7.0]), ({"save_every": 2}, [7.0]), ({}, [3.0, 7.0])])
def test_rows_kept_of_a_loop_that_ends_early_are_the_first_of_out(mode: str | None, options: dict[str, int], expected: list[float]) -> None:
    step = ns.scan(lambda y: (2 * y + 1, ns.until(2 * y + 1 > 5)), mode=mode, **options)
    out = np.full({"keep_last": 3, "save_every": 4}.get(next(iter(options), ""), 9), -1.0)
    found = step(outputs_info=np.float64(1.0), n_steps=9, out=out)
    np.testing.assert_array_equal(found, expected)
    assert np.shares_memory(found, out)
    np.testing.assert_array_equal(out[len(expected) :], -1.0)


def test_a_step_that_is_traced_again_may_hold_a_scan_of_what_it_is_given() -> None:
    def step(y: Any, w: Any) -> Any:
        ns.scan(lambda row: row + w[0], sequences=[w], return_updates=False)
        return np.array([0.5, 0.25]) * w  # another shape than that of the number: the step is traced again

    found, _ = ns.scan(step, outputs_info=[0.5], non_sequences=[np.array([2.0, 3.0])], n_steps=2, mode="python")
    np.testing.assert_array_equal(found, [[1.0, 0.75]] * 2)


def test_a_number_with_the_shape_of_a_captured_array_times_a_shared_one() -> None:
    captured = np.array([0.5, 2.0])
    scale = ns.shared(np.array([3.0, 4.0]), name="scale")
    found = ns.scan(lambda y: y + captured * scale, mode="python")(outputs_info=[1.0], n_steps=2)
    np.testing.assert_array_equal(found, [[2.5, 9.0], [4.0, 17.0]])


def test_einsum_sums_over_labels_of_one_operand_in_the_common_dtype() -> None:
    flags, numbers = np.array([[True, True], [True, False]]), np.array([[100, 27], [100, 3]], "int8")
    found, _ = ns.scan(
        lambda x: [np.einsum("ij,kj->", flags, x), np.einsum("ij,kj->", numbers, x.astype("int64"))],
        sequences=[numbers.astype("int64")[None]],
        mode="python",
    )
    wide = numbers.astype("int64")
    assert [np.einsum("ij,kj->", flags, wide), np.einsum("ij,kj->", numbers, wide)] == [rows[0] for rows in found]


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "int8", "int16"])
def test_a_negative_float_as_a_short_or_unsigned_integer_wraps_as_in_numpy(dtype):
    x = np.array([-2.5, 300.7, -70000.2, -0.9, 40000.0])
    with np.errstate(invalid="ignore"):
        expected = x.astype(dtype)
    found = ns.map(lambda v: v.astype(dtype), x, return_updates=False)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("mode", ["python", None])
def test_an_initial_value_longer_than_what_every_step_gives_is_refused(mode):
    y, c = nt.dvector("y"), nt.tensor("float64", shape=(5,), name="c")
    rows = ns.scan(lambda y, c: y * 0 + c, outputs_info=y, non_sequences=c, n_steps=3, return_updates=False)
    f = ns.function([y, c], rows, mode=mode)
    assert f(np.arange(5.0), np.ones(5)).shape == (3, 5)
    with pytest.raises(ValueError, match="20"):
        f(np.arange(20.0), np.ones(5))


@pytest.mark.parametrize("mode", ["python", None])
def test_a_slice_of_a_shared_variable_whose_length_the_step_fixes(mode):
    shared = ns.shared(np.arange(5.0))
    step = ns.scan(lambda x, y: ([y * 2], {shared: y - shared[:-3:2]}), mode=mode)
    step(sequences=np.arange(3.0), outputs_info=[np.arange(5.0) + 1])
    expected = np.arange(5.0)
    for power in (1, 2, 4):
        expected = (np.arange(5.0) + 1) * power - expected[:-3:2]
    np.testing.assert_array_equal(shared.get_value(), expected)


def test_a_missing_n_steps_is_said_before_the_step_is_traced():
    with pytest.raises(ValueError, match="n_steps"):
        ns.scan(lambda x, total: total + x, outputs_info=0.0)
    with pytest.raises(ValueError, match="n_steps"):
        ns.scan(lambda x, total: total + x)(outputs_info=0.0)


def test_a_wide_state_that_its_own_step_does_not_read():
    x, start = np.arange(8.0).reshape(4, 2), np.ones((3, 9))
    step = ns.scan(lambda x, y: np.broadcast_to(x.sum(), (3, 9)) * 2.0)
    out = np.empty((4, 3, 9))
    step(sequences=x, outputs_info=start, out=out)
    np.testing.assert_array_equal(out, np.broadcast_to(2 * x.sum(axis=1)[:, None, None], (4, 3, 9)))


def test_a_number_taken_from_reshaped_work_of_the_step_is_read_in_every_step():
    """The array seen in another shape was taken to have its values before the loop."""

    @ns.scan
    def step(y):
        low = np.ravel(np.sort(y, axis=-1))[-5]
        return np.maximum(np.prod(low), low / 2) + y / 3

    start = np.random.default_rng(4).normal(size=(7, 30))
    rows, row = [], start
    for _ in range(4):
        low = np.ravel(np.sort(row, axis=-1))[-5]
        row = np.maximum(low, low / 2) + row / 3
        rows.append(row)
    np.testing.assert_allclose(step(outputs_info=start, n_steps=4), rows, rtol=1e-14)


def test_the_least_integer_stays_signed():
    """Numba takes -2**63 as unsigned, and the sum of that and a signed number as a float."""
    found = ns.jit(lambda k: k + np.int64(-(2**63)))(np.arange(3))
    np.testing.assert_array_equal(found, np.arange(3) + np.int64(-(2**63)))
    assert found.dtype == np.int64


@pytest.mark.parametrize("mode", MODES)
def test_an_earlier_tap_is_an_output_of_a_loop_that_ends_early_into_given_arrays(mode: Any) -> None:
    step = ns.scan(lambda before, now: ((now + 1, before), ns.until(now > 4)), mode=mode)
    out = [np.zeros(9), np.zeros(9)]
    found = step(outputs_info=[{"initial": np.arange(2.0), "taps": [-2, -1]}, None], n_steps=9, out=out)
    for rows, expected in zip(found, ([2, 3, 4, 5, 6], [0, 1, 2, 3, 4]), strict=True):
        np.testing.assert_array_equal(rows, expected)


@pytest.mark.parametrize("mode", MODES)
def test_values_of_constants_that_an_earlier_trace_has_made_are_not_symbolic(mode: Any) -> None:
    turns = np.linspace(-1, 1, 49).reshape(7, 7)

    def step(y: Any) -> Any:
        flat = turns.reshape(-1)
        return y + nt.ifelse(flat.max() < 0.5, flat, -flat)[1]

    before = ns.scan(step, mode=mode)
    expected = before(outputs_info=0.5, n_steps=3)
    found = ns.scan(step, mode=mode)(outputs_info=0.5, n_steps=3, out=np.zeros(3))
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, expected)


def test_rows_of_a_choice_that_must_be_as_long_as_a_sequence_are_taken_before_the_loop() -> None:
    y, long = np.random.default_rng(8).normal(size=(2, 6))

    def rows(x: Any, start: Any) -> Any:
        def step(x: Any, y: Any) -> Any:
            chosen = np.expand_dims(nt.ifelse(y[0] > 0, y, long), 0)
            return np.where(chosen > 0.2, chosen, x), x

        return ns.scan(step, sequences=x, outputs_info=[None, start], n_steps=4, return_updates=False)

    x = np.random.default_rng(9).normal(size=(4, 6))
    for found, expected in zip(ns.jit(rows)(x, y), ns.jit(rows, mode="python")(x, y), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("mode", MODES)
def test_results_that_are_equal_are_written_into_an_array_each(mode: Any) -> None:
    step = ns.scan(lambda x, y: (y, x * 2, y), mode=mode)
    out = [np.full(3, 9.0) for _ in range(3)]
    found = step(outputs_info=[1.0, 0.5, None], n_steps=3, out=out)
    for given, rows, expected in zip(out, found, ([0.5, 2, 1], [2, 1, 4], [0.5, 2, 1]), strict=True):
        assert rows is given or np.shares_memory(rows, given)
        np.testing.assert_array_equal(rows, expected)


@pytest.mark.parametrize(
    "joined",
    [
        lambda x: np.hstack([x, 1.3]),
        lambda x: np.stack([x[0], 1.3]),
        lambda x: np.dot(x, 2.0),
        lambda x: np.inner(3, x),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_python_numbers_that_become_arrays_have_the_dtype_of_arrays(joined: Any, dtype: str) -> None:
    x = np.arange(3).astype(dtype)
    np.testing.assert_array_equal(ns.jit(joined)(x), joined(x), strict=True)


@pytest.mark.parametrize("start, number", [(10, 0.7), (np.int8(1), 300), (np.float32(1), 1j), (np.bool_(True), 2)])
def test_a_number_as_update_that_its_shared_variable_cannot_hold_is_refused(start: Any, number: Any) -> None:
    shared = ns.shared(start, name="counter")
    with pytest.raises(ns.ScanTypeError, match=r"counter.* cannot hold"):
        ns.scan(lambda: {shared: number}, n_steps=2)
    np.testing.assert_array_equal(shared.get_value(), start)


def test_an_update_of_what_is_no_shared_variable_is_refused_beside_outputs_too() -> None:
    v = nt.dvector("v")
    with pytest.raises(ValueError, match="the keys must be shared variables"):
        ns.scan(lambda a: (a, {v: a}), np.arange(3.0))
