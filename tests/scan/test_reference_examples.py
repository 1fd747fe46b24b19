"""The loops that the guides of PyTensor and Theano show, in our words, against NumPy; all but gradients and random draws."""

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

pytestmark = pytest.mark.parametrize("mode", ["python", None])


def test_elementwise_power(mode):
    k, a = nt.iscalar("k"), nt.vector("a")
    result, updates = ns.scan(lambda prior, a: prior * a, outputs_info=nt.ones_like(a), non_sequences=a, n_steps=k)
    power = ns.function([a, k], result[-1], updates=updates, mode=mode)
    np.testing.assert_array_equal(power(np.arange(10), 2), np.arange(10.0) ** 2)
    np.testing.assert_array_equal(power(np.arange(10), 4), np.arange(10.0) ** 4)


def test_polynomial_from_its_coefficients(mode):
    coefficients, x = nt.vector("coefficients"), nt.scalar("x")
    components, _ = ns.scan(
        lambda coefficient, power, free: coefficient * free**power,
        outputs_info=None,
        sequences=[coefficients, nt.arange(10000)],
        non_sequences=x,
    )
    polynomial = ns.function([coefficients, x], components.sum(), mode=mode)
    assert float(polynomial(np.array([1, 0, 2], "float32"), 3)) == 19


@pytest.mark.parametrize("start", [lambda seq: np.int64(0), lambda seq: 0], ids=["typed", "number"])
def test_triangular_numbers(mode, start):
    up_to = nt.iscalar("up_to")

    def accumulate_by_adding(arange_val, sum_to_date):
        return sum_to_date + arange_val

    seq = nt.arange(up_to)
    initial = start(seq)
    if isinstance(initial, np.generic):
        initial = nt.as_tensor_variable(np.asarray(0, seq.dtype))
    result, _ = ns.scan(accumulate_by_adding, outputs_info=initial, sequences=seq)
    triangular = ns.function([up_to], result, mode=mode)
    np.testing.assert_array_equal(triangular(15), [n * (n + 1) // 2 for n in range(15)])


def test_values_at_positions(mode):
    location, values, output_model = nt.imatrix("location"), nt.vector("values"), nt.matrix("output_model")

    def set_value_at_position(a_location, a_value, output_model):
        zeros = nt.zeros_like(output_model)
        return nt.set_subtensor(zeros[a_location[0], a_location[1]], a_value)

    result, _ = ns.scan(set_value_at_position, outputs_info=None, sequences=[location, values], non_sequences=output_model)
    assign = ns.function([location, values, output_model], result, mode=mode)
    got = assign(np.array([[1, 1], [2, 3]], "int32"), np.array([42, 50], "float32"), np.zeros((5, 4), "float32"))
    expected = np.zeros((2, 5, 4))
    expected[0, 1, 1], expected[1, 2, 3] = 42, 50
    np.testing.assert_array_equal(got, expected)


def test_a_shared_counter(mode):
    a = ns.shared(1)
    _, updates = ns.scan(lambda: {a: a + 1}, n_steps=10)
    f = ns.function([], [a + 1, updates[a] + 1], updates=updates, mode=mode)
    assert [int(v) for v in f()] == [2, 12]
    assert int(a.get_value()) == 11
    assert [int(v) for v in f()] == [12, 22]
    assert int(a.get_value()) == 21


def reservoir(u, w, w_in_1, w_in_2, w_feedback, w_out, x0, y0):
    x, y = list(x0), [y0]
    for t in range(4, len(u)):
        x.append(np.tanh(x[-1] @ w + u[t] @ w_in_1 + u[t - 4] @ w_in_2 + y[-1] @ w_feedback))
        y.append(x[-4] @ w_out)
    return np.array(x[3:]), np.array(y[1:])


def test_recurrent_network_with_taps(mode):
    def one_step(u_tm4, u_t, x_tm3, x_tm1, y_tm1, w, w_in_1, w_in_2, w_feedback, w_out):
        x_t = nt.tanh(nt.dot(x_tm1, w) + nt.dot(u_t, w_in_1) + nt.dot(u_tm4, w_in_2) + nt.dot(y_tm1, w_feedback))
        y_t = nt.dot(x_tm3, w_out)
        return [x_t, y_t]

    weights = [nt.matrix(name) for name in ("w", "w_in_1", "w_in_2", "w_feedback", "w_out")]
    u, x0, y0 = nt.matrix("u"), nt.matrix("x0"), nt.vector("y0")
    (x_vals, y_vals), updates = ns.scan(
        one_step,
        sequences={"input": u, "taps": [-4, -0]},
        outputs_info=[{"initial": x0, "taps": [-3, -1]}, y0],
        non_sequences=weights,
        strict=True,
    )
    f = ns.function([u, *weights, x0, y0], [x_vals, y_vals], updates=updates, mode=mode)
    rng = np.random.default_rng(4)
    values = [rng.normal(size=s) for s in [(9, 2), (5, 5), (2, 5), (2, 5), (3, 5), (5, 3), (3, 5), (3,)]]
    for got, expected in zip(f(*values), reservoir(*values), strict=True):
        np.testing.assert_allclose(got, expected)


def test_powers_of_two_up_to_a_value(mode):
    def power_of_2(previous_power, max_value):
        return previous_power * 2, ns.until(previous_power * 2 > max_value)

    max_value = nt.scalar("max_value")
    values, _ = ns.scan(power_of_2, outputs_info=nt.constant(1.0), non_sequences=max_value, n_steps=1024)
    f = ns.function([max_value], values, mode=mode)
    np.testing.assert_array_equal(f(45), [2, 4, 8, 16, 32, 64])


def test_outputs_updates_and_condition_together(mode):
    x = ns.shared(48, "x")

    def step(y):
        return [y + x, y * 2.0], {x: x + 1}, ns.until(x >= 50)

    (sums, _), updates = ns.scan(step, outputs_info=[np.int64(0), None], n_steps=100)
    f = ns.function([], sums, updates=updates, mode=mode)
    np.testing.assert_array_equal(f(), np.cumsum([48, 49, 50]))
    assert int(x.get_value()) == 51


def test_an_outer_expression_that_is_not_passed(mode):
    w, x = nt.matrix("w"), nt.matrix("x")
    w_2 = w**2
    result, _ = ns.scan(lambda row: nt.dot(row, w_2), sequences=x)
    f = ns.function([w, x], result, mode=mode)
    wv, xv = np.array([[1.0, 2.0, 0.5], [3.0, -1.0, 2.0]]), np.array([[1.0, 1.0], [2.0, 0.5], [0.0, -1.0]])
    np.testing.assert_allclose(f(wv, xv), xv @ wv**2)


def test_reduce_and_map_are_special_cases(mode):
    v = nt.vector("v")
    total, _ = ns.reduce(lambda x_i, z: z + x_i, sequences=v, outputs_info=0)
    squares, _ = ns.map(lambda x_i: x_i**2, sequences=v)
    f = ns.function([v], [total, squares], mode=mode)
    got = f([1.0, 2.0, 4.5])
    assert float(got[0]) == 7.5
    np.testing.assert_array_equal(got[1], [1, 4, 20.25])


def test_running_over_the_rows_of_a_matrix_keeps_its_shape(mode):
    a = nt.matrix("a")
    f = ns.function([a], ns.scan(lambda row: row**2, sequences=a)[0], mode=mode)
    np.testing.assert_array_equal(f([[0, 1, 2], [3, 4, 5]]), [[0, 1, 4], [9, 16, 25]])


def test_cumulative_sum_of_a_vector_and_of_rows(mode):
    v, m = nt.vector("v"), nt.matrix("m")
    sums, _ = ns.scan(lambda x, s: s + x, sequences=v, outputs_info=nt.as_tensor_variable(np.asarray(0.0)))
    rows, _ = ns.scan(lambda x, s: s + x, sequences=m, outputs_info=nt.zeros_like(m[0]))
    f = ns.function([v, m], [sums, rows], mode=mode)
    vector, matrix = np.arange(1.0, 8.0), np.arange(60.0).reshape(20, 3)
    got = f(vector, matrix)
    np.testing.assert_array_equal(got[0], np.cumsum(vector))
    np.testing.assert_array_equal(got[1], np.cumsum(matrix, axis=0))


def test_a_fixed_factor_from_outside(mode):
    v, k = nt.vector("v"), nt.scalar("k")
    result, _ = ns.scan(lambda x, prior, k: prior * k + x, sequences=v, outputs_info=np.float64(0), non_sequences=k)
    f = ns.function([v, k], result, mode=mode)
    s, expected = 0.0, []
    for x in (1.0, 4.0, 2.0):
        s = s * 5 + x
        expected.append(s)
    np.testing.assert_array_equal(f([1.0, 4.0, 2.0], 5.0), expected)


def test_power_with_checkpoints(mode):
    k, a = nt.iscalar("k"), nt.vector("a")
    result, _ = ns.scan_checkpoints(lambda prior, a: prior * a, outputs_info=nt.ones_like(a), non_sequences=a, n_steps=k, save_every_N=4)
    f = ns.function([a, k], result[-1], mode=mode)
    np.testing.assert_allclose(f([1.5, 0.5, 2.0], 10), np.array([1.5, 0.5, 2.0]) ** 10)
