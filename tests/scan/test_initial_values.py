"""Initial values: numbers take the type of the result, arrays must have it, taps need a leading axis."""

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

PYTHON = {"mode": "python"}


@pytest.mark.parametrize("number", [0, 0.0, np.int64(0), np.float64(0)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex128"])
def test_a_python_number_takes_the_dtype_of_the_result(number, dtype):
    x = np.array([1, 3, 4], dtype)
    if isinstance(number, np.generic) and number.dtype != np.result_type(number, x):
        return
    got, _ = ns.scan(lambda row, s: s + row, x, number, **PYTHON)
    assert got.dtype == np.result_type(number, x.dtype)
    np.testing.assert_array_equal(got, [1, 4, 8])


def test_an_integer_takes_the_shape_and_dtype_that_the_step_makes_of_it():
    x = np.array([[1.5, 2.0], [3.0, 4.0], [0.25, 1.0]], "float32")
    got, _ = ns.scan(lambda row, s: s + row, x, 0, **PYTHON)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, np.cumsum(x, axis=0))


def test_a_number_takes_a_shape_that_only_the_run_knows():
    x = nt.dmatrix("x")
    got, _ = ns.scan(lambda row, s: s * 0.5 + row, x, 2)
    f = ns.function([x], got, mode="python")
    value = np.random.default_rng(0).normal(size=(4, 5))
    s, expected = np.full(5, 2.0), []
    for row in value:
        s = s * 0.5 + row
        expected.append(s)
    np.testing.assert_allclose(f(value), expected)
    assert f(np.zeros((0, 5))).shape == (0, 5)


def test_numbers_that_depend_on_each_other_settle_together():
    def step(x, a, b):
        return [b + 1, a * x]

    (a, b), _ = ns.scan(step, np.array([2.0, 3.0, 0.5], "float32"), [1, 1], **PYTHON)
    assert a.dtype == b.dtype == np.float32
    np.testing.assert_array_equal(a, [2, 3, 7])
    np.testing.assert_array_equal(b, [2, 6, 1.5])


def test_a_known_number_may_become_any_dtype_that_holds_it():
    x = nt.lvector("x")
    got, _ = ns.scan(lambda x, s: x > 2, x, 0)
    np.testing.assert_array_equal(ns.function([x], got, mode="python")([1, 3, 2]), [False, True, False])
    with pytest.raises(ns.ScanTypeError, match=r"starts as 2,.*bool"):
        ns.scan(lambda x, s: x > 2, x, 2)


def test_a_number_that_the_result_s_dtype_cannot_hold_is_refused():
    with pytest.raises(ns.ScanTypeError, match=r"outputs_info\[0\] \(argument 's' of the step\) starts as .*int64"):
        ns.scan(lambda x, s: x, nt.lvector("x"), 0.5)


@pytest.mark.parametrize(
    "initial, words",
    [
        (np.int64(0), ["int64[]", "float64[3]", "np.zeros((3,), 'float64')"]),
        (np.float64(0), ["float64[]", "float64[3]", "np.zeros((3,), 'float64')"]),
        (np.zeros(2), ["float64[2]", "float64[3]", "(2,)"]),
        (np.zeros((1, 3)), ["float64[1, 3]", "float64[3]"]),
        (np.zeros(3, "float32"), ["float32[3]", "float64[3]", "x0.astype('float64')"]),
    ],
)
def test_a_typed_initial_value_must_have_the_type_of_the_result(initial, words):
    def step(state):
        shrunk = state * 0
        return shrunk.sum() + np.ones(3)  # the culprit

    with pytest.raises(ns.ScanTypeError) as caught:
        ns.scan(step, outputs_info=[initial], n_steps=2, name="broken", **PYTHON)
    text = str(caught.value)
    line = step.__code__.co_firstlineno + 2
    for word in [*words, "scan 'broken'", "outputs_info[0]", "'state'", "test_initial_values.py", f"line {line}"]:
        assert word in text
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ValueError)


def test_a_shape_that_is_only_known_when_it_runs_is_checked_then():
    x, s0 = nt.dmatrix("x"), nt.dvector("s0")
    got, _ = ns.scan(lambda row, s: s + row, x, s0, name="sums")
    f = ns.function([x, s0], got, mode="python")
    np.testing.assert_array_equal(f(np.ones((2, 3)), np.zeros(3)), [[1, 1, 1], [2, 2, 2]])
    with pytest.raises(ValueError, match=r"sums.*changes the shape"):
        f(np.ones((2, 3)), np.zeros(1))


def test_a_fixed_dimension_that_the_step_does_not_keep_visibly_becomes_unknown():
    x = nt.dmatrix("x")
    got, _ = ns.scan(lambda row, s: s + row, x, np.zeros(3))
    f = ns.function([x], got, mode="python")
    np.testing.assert_array_equal(f(np.ones((2, 3))), [[1, 1, 1], [2, 2, 2]])
    with pytest.raises(ValueError, match="shape"):
        f(np.ones((2, 4)))


@pytest.mark.parametrize("taps", [[-1], [-2, -1], [-3, -1], [-2], [-1, -4]])
def test_outputs_read_their_own_past(taps):
    depth = -min(taps)
    initial = np.random.default_rng(3).normal(size=(depth, 2))
    got, _ = ns.scan(
        lambda *past: sum((k + 1) * row for k, row in enumerate(past)) * 0.3,
        outputs_info={"initial": initial[0] if taps == [-1] else initial, "taps": taps},
        n_steps=6,
        **PYTHON,
    )
    rows = list(initial)
    for _ in range(6):
        rows.append(sum((k + 1) * rows[tap] for k, tap in enumerate(taps)) * 0.3)
    np.testing.assert_allclose(got, rows[depth:])


def test_of_an_initial_value_with_more_rows_than_needed_the_first_count():
    got, _ = ns.scan(lambda a, b: a + b, outputs_info={"initial": np.array([1, 2, 50, 60]), "taps": [-2, -1]}, n_steps=3, **PYTHON)
    np.testing.assert_array_equal(got, [3, 5, 8])


def test_an_initial_value_without_taps_in_a_dict_means_the_latest_result():
    got, _ = ns.scan(lambda s: 2 * s, outputs_info={"initial": np.float64(3)}, n_steps=2, **PYTHON)
    np.testing.assert_array_equal(got, [6, 12])


@pytest.mark.parametrize("info", [None, {}, {"initial": None}, {"initial": np.float64(0), "taps": None}, {"taps": None}])
def test_a_non_recurrent_output_passes_nothing_to_the_step(info):
    (a, b), _ = ns.scan(lambda x, s: [x * 2, s + x], np.arange(3.0), [info, np.float64(0)], **PYTHON)
    np.testing.assert_array_equal(a, [0, 2, 4])
    np.testing.assert_array_equal(b, [0, 1, 3])


@pytest.mark.parametrize("info", [None, []])
def test_no_outputs_info_means_that_no_output_is_recurrent(info):
    (a, b), _ = ns.scan(lambda x: (x + 1, x * x), np.arange(3), info, **PYTHON)
    np.testing.assert_array_equal(a, [1, 2, 3])
    np.testing.assert_array_equal(b, [0, 1, 4])


def test_the_results_never_contain_the_initial_values():
    got, _ = ns.scan(lambda s: s + 1, outputs_info=np.int64(10), n_steps=2, **PYTHON)
    np.testing.assert_array_equal(got, [11, 12])


def test_a_step_may_return_the_row_that_it_was_given():
    got, _ = ns.scan(lambda x, s: x, np.arange(4.0), np.float64(9), **PYTHON)
    np.testing.assert_array_equal(got, np.arange(4.0))


@pytest.mark.parametrize("mode", ["python", None])
def test_states_that_read_each_other_move_on_at_once(mode):
    def step(p, x, a, b):
        return [p, b, a, x - b]

    def by_hand(p, x, a, b):
        return p, b, a, x - b

    p = np.array([2.0, 5.0, -1.0, 0.5])
    x, a, b, seen = 1.0, 3.0, 7.0, []
    for value in p:
        x, a, b, d = by_hand(value, x, a, b)
        seen.append([x, a, b, d])
    got = ns.scan(step, p, [1.0, 3.0, 7.0, None], return_updates=False, mode=mode)
    np.testing.assert_array_equal(np.transpose(got), seen)


@pytest.mark.parametrize("mode", ["python", None])
def test_a_cycle_of_states_with_taps_beside_one_that_it_reads(mode):
    def step(x, a, b_m2, b_m1):
        return [a * 0 + 2.0, b_m1 + x, a + b_m2]

    got = ns.scan(step, None, [1.0, 3.0, {"initial": np.array([7.0, 5.0]), "taps": [-2, -1]}], n_steps=5, return_updates=False, mode=mode)
    x, a, b = [1.0], [3.0], [7.0, 5.0]
    for _ in range(5):
        x_t, a_t, b_t = 2.0, b[-1] + x[-1], a[-1] + b[-2]
        x, a, b = [*x, x_t], [*a, a_t], [*b, b_t]
    for rows, expected in zip(got, (x[1:], a[1:], b[2:]), strict=True):
        np.testing.assert_array_equal(rows, expected)
