"""Derivatives of variables with respect to variables: ns.grad, jacobian, hessian, Lop, Rop, and what directs them."""

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

A = np.array([0.5, -1.25, 2.0])


def value(outputs, givens):
    """The values of variables for those of others."""
    return ns.function(list(givens), outputs, mode="python", on_unused_input="ignore")(*givens.values())


@pytest.fixture
def x():
    return nt.dvector("x")


@pytest.fixture
def y():
    return nt.dscalar("y")


# what a gradient is taken of, and with respect to what ----------------------------------------------------------------


def test_one_variable_gives_a_variable_and_a_list_a_list(x, y):
    cost = (x**2).sum() * y
    np.testing.assert_allclose(value(ns.grad(cost, x), {x: A, y: 3.0}), 6 * A)
    for wrt in ([x, y], (x, y)):
        found = ns.grad(cost, wrt)
        assert type(found) is type(wrt)
        by_x, by_y = value(list(found), {x: A, y: 3.0})
        np.testing.assert_allclose(by_x, 6 * A)
        np.testing.assert_allclose(by_y, A @ A)
    np.testing.assert_allclose(value(ns.grad(cost, wrt=[y])[0], {x: A, y: 3.0}), A @ A)


def test_a_gradient_has_a_name(y):
    assert ns.grad(y**3, y).name == "d_y"


def test_the_same_variable_twice(x):
    one, other = ns.grad((x**2).sum(), [x, x])
    np.testing.assert_allclose(value([one, other], {x: A}), [2 * A, 2 * A])


def test_a_variable_in_the_middle_and_what_it_is_made_from(y):
    square = y**2
    cost = square * y
    np.testing.assert_allclose(value(ns.grad(cost, [square, y, cost]), {y: 3.0}), [3.0, 27.0, 1.0])


def test_a_derivative_with_respect_to_a_result_of_a_loop(x):
    path = ns.scan(lambda x, s: s + x, sequences=x, outputs_info=0.0, return_updates=False)
    np.testing.assert_allclose(value(ns.grad((path**2).sum() + x.sum(), path), {x: A}), 2 * np.cumsum(A))


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda x: ns.grad(x, x), TypeError, r"must be a scalar, but x \(float64\[\?\]\) has shape \(\?,\)"),
        (lambda x: ns.grad((x * 1j).sum(), x), TypeError, r"is complex.*np\.real"),
        (lambda x: ns.grad(x.argmax(), x), ns.NullGradientError, "is an integer or a boolean"),
        (lambda x: ns.grad(x.sum(), nt.ivector("k")), ns.NullGradientError, r"respect to k \(int32\[\?\]\)"),
        (lambda x: ns.grad(x.sum(), nt.dscalar("z")), ns.DisconnectedInputError, "depends on z .* not at all"),
        (lambda x: ns.grad(np.where(x > 0, 1.0, 2.0).sum(), x), ns.NullGradientError, "through integers or booleans only"),
        (lambda x: ns.grad(x.sum(), 3.0), TypeError, "with respect to variables, not 3.0"),
        (lambda x: ns.grad(x.sum(), None), TypeError, "with respect to variables, not None"),
        (lambda x: ns.grad(None, x), ValueError, "neither a cost nor known_grads"),
        (lambda x: ns.grad(x.sum(), x, disconnected_inputs="never"), ValueError, "must be 'raise', 'warn' or 'ignore'"),
        (lambda x: ns.jacobian(x.argsort(), x), ns.NullGradientError, "is an integer"),
        (lambda x: ns.hessian(x, x), TypeError, "must be a scalar"),
    ],
)
def test_what_has_no_gradient_is_named(x, make, error, words):
    with pytest.raises(error, match=words):
        make(x)


def test_the_line_is_named(x):
    with pytest.raises(TypeError, match=r"test_variables\.py, line \d+"):
        ns.grad(x, x)


def test_disconnected_inputs_may_be_zeros(x, y):
    z = nt.fmatrix("z")
    by_x, by_z = ns.grad(x.sum() * y, [x, z], disconnected_inputs="ignore")
    found = value([by_x, by_z], {x: A, y: 2.0, z: np.ones((2, 3), "float32")})
    np.testing.assert_array_equal(found[0], [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(found[1], np.zeros((2, 3)))
    assert found[1].dtype == np.float32
    with pytest.warns(UserWarning, match="depends on z"):
        assert value(ns.grad(y**2, z, disconnected_inputs="warn"), {y: 2.0, z: np.ones((1, 1), "float32")}) == 0


def test_an_error_is_raised_also_where_only_some_are_disconnected(x, y):
    with pytest.raises(ns.DisconnectedInputError, match="depends on y"):
        ns.grad(x.sum(), [x, y])


# what nothing flows through -------------------------------------------------------------------------------------------


def test_consider_constant(x):
    total = x.sum()
    np.testing.assert_allclose(value(ns.grad((total * x).sum(), x, consider_constant=[total]), {x: A}), np.full(3, A.sum()))
    np.testing.assert_allclose(value(ns.grad((total * x).sum(), x, [total]), {x: A}), np.full(3, A.sum()))
    np.testing.assert_allclose(value(ns.jacobian(total * x, x, consider_constant=total), {x: A}), A.sum() * np.eye(3))
    np.testing.assert_allclose(value(ns.hessian(total * (x**2).sum(), x, consider_constant=[total]), {x: A}), 2 * A.sum() * np.eye(3))
    np.testing.assert_allclose(value(ns.Lop(total * x, x, x, consider_constant=[total]), {x: A}), A.sum() * A)
    with pytest.raises(ns.DisconnectedInputError, match="held constant"):
        ns.grad(total, x, consider_constant=[total])


def test_a_copy_is_a_variable_of_its_own(x):
    y = x.copy()
    for gradient in (
        ns.grad((x * y).sum(), x, consider_constant=[y]),
        ns.grad((x * y).sum(), y),
        ns.grad((x * y).sum(), x, known_grads={y: nt.zeros_like(x)}),
    ):
        np.testing.assert_array_equal(value(gradient, {x: A}), A)
    np.testing.assert_array_equal(value(ns.jacobian(x * y, x, consider_constant=[y]), {x: A}), np.diag(A))
    np.testing.assert_array_equal(value(ns.grad((x * y).sum(), x), {x: A}), 2 * A)

    def step(s):
        t = np.copy(s)
        return s - 0.1 * ns.grad((s * t).sum(), s, consider_constant=[t])

    rows = ns.scan(step, outputs_info=A, n_steps=3, return_updates=False)
    np.testing.assert_allclose(rows, [A * 0.9**k for k in (1, 2, 3)])


def test_a_variable_is_not_held_constant_where_its_derivative_is_asked(x):
    """x[:] is x itself, and equal expressions are one variable."""
    square = x**2
    for same, wrt in ((x[:], x), (x**2, square)):
        with pytest.raises(ValueError, match=r"held constant, and a derivative .* write nt.disconnected_grad\(x\), or x.copy\(\)"):
            ns.grad((x * same).sum(), wrt, consider_constant=[same])


def test_what_a_step_takes_and_does_not_read_is_no_way(x):
    unread, rate = nt.dscalar("unread"), nt.dscalar("rate")
    sums, _ = ns.scan(lambda x, s, slow, unread, rate: [s + x, rate * slow], x, [np.float64(0.0), np.float64(1.0)], [unread, rate])
    for node in (unread, rate):
        with pytest.raises(ns.DisconnectedInputError, match=f"on {node.name} .* not at all"):
            ns.grad(sums[0][-1], node)


def test_disconnected_grad_and_zero_grad(x):
    def gradient(cost, **options):
        return value(ns.grad(cost, x, **options), {x: A})

    np.testing.assert_allclose(gradient((x * nt.disconnected_grad(x)).sum()), A)
    np.testing.assert_allclose(gradient((x * nt.zero_grad(x)).sum()), A)
    np.testing.assert_allclose(gradient((x * nt.disconnected_grad(x**2) + nt.zero_grad(x**3)).sum()), A**2)
    np.testing.assert_allclose(gradient(nt.zero_grad(x).sum()), np.zeros(3))
    np.testing.assert_allclose(gradient(nt.disconnected_grad(x).sum(), disconnected_inputs="ignore"), np.zeros(3))
    with pytest.raises(ns.DisconnectedInputError):
        gradient(nt.disconnected_grad(x).sum())
    np.testing.assert_allclose(value(ns.Rop(x * nt.disconnected_grad(x), x, x), {x: A}), A * A)
    np.testing.assert_allclose(value(ns.Rop(x * nt.zero_grad(x), x, x), {x: A}), A * A)


def test_a_state_may_be_disconnected_inside_a_loop(x):
    path = ns.scan(lambda x, s: nt.disconnected_grad(s) * x, sequences=x, outputs_info=1.0, return_updates=False)
    np.testing.assert_allclose(value(ns.grad(path.sum(), x), {x: A}), [1.0, A[0], A[0] * A[1]])


# known gradients ------------------------------------------------------------------------------------------------------


def test_known_gradients_stand_in_for_a_cost(x, y):
    square = x**2
    found = ns.grad(None, [x, square], known_grads={square: x * y})
    by_x, by_square = value(found, {x: A, y: 3.0})
    np.testing.assert_allclose(by_x, 2 * A * A * 3)
    np.testing.assert_allclose(by_square, A * 3)


def test_several_known_gradients_add_up_in_what_they_share(y):
    a, b = np.sin(y), y**3
    expected = 10 * np.cos(2.0) + 100 * 12
    np.testing.assert_allclose(value(ns.grad(None, y, known_grads={a: 10.0, b: 100.0}), {y: 2.0}), expected)
    np.testing.assert_allclose(value(ns.grad(y**2, y, known_grads={a: 10.0, b: 100.0}), {y: 2.0}), 4 + expected)


def test_what_flows_to_a_variable_with_a_known_gradient_stops_there(y):
    a = y**2
    b = np.sin(a)
    found = ns.grad(b * y, [y, a, b], known_grads={a: 10.0})
    np.testing.assert_allclose(value(found, {y: 3.0}), [np.sin(9.0) + 10 * 6.0, 10.0, 3.0])


def test_known_gradients_of_which_one_would_flow_to_another_are_refused(y):
    a = y**2
    with pytest.raises(ValueError, match=r"from which that is computed.*ns\.Lop"):
        ns.grad(None, y, known_grads={a: 1.0, np.sin(a): 10.0})


def test_known_gradients_have_the_shape_of_their_variable(x, y):
    with pytest.raises(ValueError, match=r"the known gradient of x \(float64\[\?\]\) has shape \(\).*it must have \(\?,\)"):
        ns.grad(None, x, known_grads={x: 1.0})
    with pytest.raises(TypeError, match="is complex, but y"):
        ns.grad(None, y, known_grads={y: 1j})
    with pytest.raises(ns.NullGradientError, match="known_grads"):
        ns.grad(None, x, known_grads={x.argmax(): 1.0})


# jacobian, hessian, Lop, Rop ------------------------------------------------------------------------------------------


def test_jacobian(x, y):
    rows = np.cumsum(x) * y
    by_x, by_y = value(ns.jacobian(rows, [x, y]), {x: A, y: 2.0})
    np.testing.assert_allclose(by_x, 2 * np.tri(3))
    np.testing.assert_allclose(by_y, np.cumsum(A))
    np.testing.assert_allclose(value(ns.jacobian((x**2).sum(), x), {x: A}), 2 * A)
    with pytest.raises(ns.DisconnectedInputError):
        ns.jacobian(rows, nt.dscalar("z"))
    z = nt.dvector("z")
    assert value(ns.jacobian(rows, z, disconnected_inputs="ignore"), {x: A, y: 2.0, z: A[:2]}).shape == (3, 2)


def test_hessian_of_a_list_gives_one_for_each(x, y):
    cost = (x**3).sum() * y**2
    by_x, by_y = value(ns.hessian(cost, [x, y]), {x: A, y: 2.0})
    np.testing.assert_allclose(by_x, 24 * np.diag(A))
    np.testing.assert_allclose(by_y, 2 * np.sum(A**3))


def test_the_hessian_of_a_linear_cost_is_zero(x):
    np.testing.assert_array_equal(value(ns.hessian((x * 3).sum(), x), {x: A}), np.zeros((3, 3)))


def test_lop_and_rop(x, y):
    v = nt.dvector("v")
    outputs = [x * y, np.cumsum(x)]
    by_x, by_y = value(ns.Lop(outputs, [x, y], [v, v]), {x: A, y: 2.0, v: A + 1})
    np.testing.assert_allclose(by_x, 2 * (A + 1) + np.cumsum((A + 1)[::-1])[::-1])
    np.testing.assert_allclose(by_y, A @ (A + 1))
    first, second = value(ns.Rop(outputs, [x, y], [v, 3.0]), {x: A, y: 2.0, v: A + 1})
    np.testing.assert_allclose(first, (A + 1) * 2 + A * 3)
    np.testing.assert_allclose(second, np.cumsum(A + 1))


def test_lop_and_rop_are_transposes_through_a_loop(x):
    v, w = nt.dvectors("v w")
    path = ns.scan(lambda x, s: np.sin(s) * x, sequences=x, outputs_info=1.0, return_updates=False)
    back, ahead = ns.Lop(path, x, w), ns.Rop(path, x, v)
    one, other = value([back @ v, ahead @ w], {x: A, v: A**2, w: A - 3})
    np.testing.assert_allclose(one, other, rtol=1e-14)


@pytest.mark.parametrize("operator", [ns.Lop, ns.Rop])
def test_directions_fit_their_variables(operator, x, y):
    with pytest.raises(ValueError, match="v has 2 directions for 1 variables"):
        operator(x * y, x, [x, x])
    with pytest.raises(ValueError, match=r"direction .in v. of .* has shape \(\).*must have \(\?,\)"):
        operator(x * y, x, 1.0)
    with pytest.raises(TypeError, match="is complex, but"):
        operator(x * y, x, x * 1j)
    v = nt.dvector("v")
    for mode in ("python", None):
        f = ns.function([x, y, v], operator(x * y, x, v), mode=mode)
        np.testing.assert_allclose(f(A, 2.0, A), 2 * A)
        for wrong in (A[:2], A[:1]):  # a length of 1 does not broadcast either
            with pytest.raises(ValueError, match=r"direction .in v. of"):
                f(A, 2.0, wrong)


def test_rop_of_what_does_not_move(x, y):
    with pytest.raises(ns.DisconnectedInputError, match="disconnected_outputs='ignore'"):
        ns.Rop(y * 2, x, x)
    with pytest.raises(ns.NullGradientError, match="integers or booleans only"):
        ns.Rop(np.where(x > 0, 1.0, 2.0), x, x)
    with pytest.raises(ns.NullGradientError, match="is an integer"):
        ns.Rop(x.argmax(), x, x)
    with pytest.raises(ns.NullGradientError, match="respect to k"):
        ns.Rop(x, nt.lscalar("k"), 1.0)
    np.testing.assert_array_equal(value(ns.Rop([y * 2, x], x, x, disconnected_outputs="ignore"), {x: A, y: 1.0})[0], 0.0)
    with pytest.raises(ValueError, match="it must be 'raise' or 'ignore'"):
        ns.Rop(y, y, y, disconnected_outputs="zero")


# derivatives of derivatives -------------------------------------------------------------------------------------------


def test_the_third_derivative_of_a_square_is_zero(y):
    first = ns.grad(y**2, y)
    second = ns.grad(first, y)
    third = ns.grad(second, y)
    np.testing.assert_array_equal(value([first, second, third, ns.grad(third, y)], {y: 3.0}), [6.0, 2.0, 0.0, 0.0])


def test_the_derivative_of_a_constant_direction_is_zero(x):
    np.testing.assert_array_equal(value(ns.grad(ns.Rop(3 * x, x, A).sum(), x), {x: A}), np.zeros(3))
    np.testing.assert_array_equal(value(ns.grad(ns.Lop(3 * x, x, A).sum(), x), {x: A}), np.zeros(3))


def test_four_derivatives_through_a_loop(y):
    n = nt.lscalar("n")
    power = ns.scan(lambda p, y: p * y, outputs_info=1.0, non_sequences=y, n_steps=n, return_updates=False)[-1]
    orders = [power]
    for _ in range(4):
        orders.append(ns.grad(orders[-1], y))
    f = ns.function([y, n], orders, mode="python")
    np.testing.assert_allclose(f(1.5, 6), [1.5**6, 6 * 1.5**5, 30 * 1.5**4, 120 * 1.5**3, 360 * 1.5**2])
    np.testing.assert_allclose(f(1.5, 2), [1.5**2, 3.0, 2.0, 0.0, 0.0], atol=1e-14)


# loops ----------------------------------------------------------------------------------------------------------------


def test_a_variable_before_inside_and_after_a_loop(x, y):
    before = x * y
    path = ns.scan(lambda b, s, y: s * y + b, sequences=before, outputs_info=y, non_sequences=y, return_updates=False)
    cost = (path * x).sum() + path[-1] * y
    by_x, by_y = value(ns.grad(cost, [x, y]), {x: A, y: 0.7})

    def plain(x, y):
        s, rows = y, []
        for b in x * y:
            s = s * y + b
            rows.append(s)
        return np.sum(np.stack(rows) * x) + s * y

    def differences(k):
        h = 1e-6 * np.eye(3)[k] if k is not None else 1e-6
        one = [plain(A + sign * h, 0.7) if k is not None else plain(A, 0.7 + sign * h) for sign in (1, -1)]
        return (one[0] - one[1]) / 2e-6

    np.testing.assert_allclose(by_x, [differences(k) for k in range(3)], rtol=1e-8)
    np.testing.assert_allclose(by_y, differences(None), rtol=1e-8)


def test_a_derivative_in_a_step_with_respect_to_a_non_sequence(x):
    w = nt.dscalar("w")

    def step(x, w):
        return ns.grad(w**2 * x + w, w)

    path = ns.scan(step, sequences=x, non_sequences=w, return_updates=False)
    np.testing.assert_allclose(value(path, {x: A, w: 3.0}), 6 * A + 1)
    np.testing.assert_allclose(value(ns.grad((path**2).sum(), w), {x: A, w: 3.0}), np.sum(2 * (6 * A + 1) * 2 * A))


def test_a_jacobian_by_a_scan_over_its_rows(x):
    rows = np.cumsum(x**2)
    jacobian = ns.scan(lambda i, y, x: ns.grad(y[i], x), sequences=nt.arange(rows.shape[0]), non_sequences=[rows, x], return_updates=False)
    np.testing.assert_allclose(value(jacobian, {x: A}), np.tri(3) * 2 * A)


def test_a_hessian_by_a_scan_over_the_gradient(x):
    gradient = ns.grad(x[0] * (x**2).sum(), x)
    hessian = ns.scan(
        lambda i, g, x: ns.grad(g[i], x), sequences=nt.arange(gradient.shape[0]), non_sequences=[gradient, x], return_updates=False
    )
    expected = 2 * A[0] * np.eye(3)
    expected[0] += 2 * A
    expected[:, 0] += 2 * A
    np.testing.assert_allclose(value(hessian, {x: A}), expected)


def test_a_derivative_in_a_step_with_respect_to_a_state_and_a_sequence(x):
    def step(x, s):
        energy = s**2 * x + x**3
        return s - 0.1 * ns.grad(energy, s) + ns.grad(energy, x)

    path = ns.scan(step, sequences=x, outputs_info=1.0, return_updates=False)
    s, expected = 1.0, []
    for x_t in A:
        s = s - 0.1 * 2 * s * x_t + s**2 + 3 * x_t**2
        expected.append(s)
    np.testing.assert_allclose(value(path, {x: A}), expected)


# shared variables -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["python", None])
def test_a_shared_variable_is_trained_by_updates(mode):
    data = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]])
    target = data @ np.array([2.0, -1.0]) + 0.5
    w, b = ns.shared(np.zeros(2), name="w"), ns.shared(0.0, name="b")
    d, t = nt.dmatrix("d"), nt.dvector("t")
    error = ns.scan(lambda row, t: (row @ w + b - t) ** 2, sequences=[d, t], return_updates=False).sum()
    updates = {p: p - 0.05 * g for p, g in zip([w, b], ns.grad(error, [w, b]), strict=True)}
    train = ns.function([d, t], error, updates=updates, mode=mode)
    first = train(data, target)
    np.testing.assert_allclose(first, np.sum(target**2))
    np.testing.assert_allclose(w.get_value(), 0.1 * target @ data)
    np.testing.assert_allclose(b.get_value(), 0.1 * target.sum())
    for _ in range(400):
        last = train(data, target)
    assert last < 1e-6 * first
    np.testing.assert_allclose(w.get_value(), [2.0, -1.0], atol=1e-2)


def test_a_shared_variable_that_a_loop_replaces():
    k = ns.shared(2.0, name="k")
    y = nt.dscalar("y")
    path, updates = ns.scan(lambda s: (s * k, {k: k + 1}), outputs_info=y, n_steps=3)
    found = value(ns.grad(path[-1], [y, k]), {y: 5.0})
    np.testing.assert_allclose(found, [2 * 3 * 4, 5 * (3 * 4 + 2 * 4 + 2 * 3)])
    np.testing.assert_allclose(value(ns.grad(updates[k], k), {}), 1.0)


def test_arguments_have_the_names_of_the_contract():
    x, v = nt.dvectors("x", "v")
    numbers = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    cost = (x**3).sum()
    found = ns.function(
        [x, v],
        [
            ns.grad(cost=cost, wrt=x),
            ns.jacobian(expr=x**2, wrt=x),
            ns.hessian(cost=cost, wrt=x),
            ns.Lop(f=x**2, wrt=x, v=v),
            ns.Rop(f=x**2, wrt=x, v=v),
            nt.ifelse(cond=x[0] > 0, a=x, b=-x),
        ],
    )(*numbers)
    wanted = [[3.0, 12.0], np.diag([2.0, 4.0]), np.diag([6.0, 12.0]), [6.0, 20.0], [6.0, 20.0], [1.0, 2.0]]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other)


def test_what_stands_for_a_gradient_that_there_is_not():
    x, y, n = nt.dscalars("x y n")
    rounded = np.sin(x) * nt.random.RandomStream(1).poisson(y) + (x.astype("int64") + 0.0) * 0.0
    lenient = {"return_disconnected": "none", "disconnected_inputs": "ignore"}
    dx, nothing = ns.grad(x**2, [x, y], **lenient)
    assert nothing is None
    assert value(dx, {x: 3.0}) == 6.0
    assert ns.grad(x**2, (y,), **lenient) == (None,)
    with pytest.warns(UserWarning, match="depends on y .* not at all"):
        assert ns.grad(x**2, y, disconnected_inputs="warn", return_disconnected="none") is None
    with pytest.raises(ns.DisconnectedInputError):
        ns.grad(x**2, y, return_disconnected="none")

    dx, dy, dn = ns.grad(rounded, [x, y, n], null_gradients="return", disconnected_inputs="ignore")
    assert value(dx, {x: 0.0, y: 0.0}) == 0.0
    assert value(dn, {x: 0.0, n: 1.0}) == 0.0
    assert isinstance(dy, ns.NullGradientError)
    assert "a draw that is accepted" in str(dy)
    assert isinstance(ns.grad(x.astype("int64") * 1.0, x, null_gradients="return"), ns.NullGradientError)
    with pytest.raises(ns.NullGradientError):
        ns.grad(rounded, [x, y], return_disconnected="none", disconnected_inputs="ignore")
    for wrong in ({"return_disconnected": "disconnected"}, {"null_gradients": "zero"}):
        with pytest.raises(ValueError, match=f"ns.grad: {next(iter(wrong))} is .*; it must be "):
            ns.grad(x**2, x, **wrong)
