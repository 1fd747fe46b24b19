"""Derivatives of functions of arrays: grad, value_and_grad, vjp, jvp, jacobian, hessian, vmap, and these of one another."""

import pickle
from collections import namedtuple

import numpy as np
import pytest
import scipy.optimize

import numbascan as ns
import numbascan.tensor as nt

X = np.array([0.5, -1.25, 2.0])


def python(f):
    """`f`, run by NumPy: nothing is compiled."""
    return ns.jit(f, mode="python")


def cubes(x):
    return np.sum(x**3)


def product(x, y):
    return np.sum(x * y)


def powered(x, n=5):
    """x**n by a loop."""
    return ns.scan(lambda p, x: p * x, outputs_info=1.0, non_sequences=x, n_steps=n, return_updates=False)[-1]


def rosenbrock(x):
    """The sum over neighbours, by a loop that reads each element beside the one before."""
    terms = ns.scan(
        lambda before, here: 100 * (here - before**2) ** 2 + (1 - before) ** 2,
        sequences={"input": x, "taps": [-1, 0]},
        return_updates=False,
    )
    return np.sum(terms)


def smoothed(x, alpha):
    """The squares of an exponentially weighted mean that starts at x[0]: x is a sequence and an initial value at once."""
    means = ns.scan(lambda x_t, m, a: a * m + (1 - a) * x_t, sequences=x, outputs_info=x[0], non_sequences=alpha, return_updates=False)
    return np.sum(means**2)


MODULE_FACTOR = 2.0


def scaled_square(x):
    return MODULE_FACTOR * x * x


# grad and value_and_grad ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["python", None])
def test_grad_gives_the_gradient_in_every_mode(mode):
    f = ns.jit(smoothed, mode=mode)
    found = ns.grad(f, (0, 1))(X, 0.25)
    m0, m1, m2 = X[0], 0.25 * X[0] + 0.75 * X[1], 0.25 * (0.25 * X[0] + 0.75 * X[1]) + 0.75 * X[2]
    by_x = [2 * (m0 + m1 / 4 + m2 / 16), 2 * (m1 * 3 / 4 + m2 * 3 / 16), 2 * m2 * 3 / 4]
    d_m1 = X[0] - X[1]
    by_alpha = 2 * m1 * d_m1 + 2 * m2 * (m1 + 0.25 * d_m1 - X[2])
    np.testing.assert_allclose(found[0], by_x, rtol=1e-12)
    np.testing.assert_allclose(found[1], by_alpha, rtol=1e-12)


def test_transforms_give_the_same_compiled_and_by_numpy():
    def several(x, alpha):
        value, pull = ns.vjp(smoothed, x, alpha)
        tangents = ns.jvp(ns.grad(smoothed), (x, alpha), (x * x, 0.5))
        return value, *pull(2.0), *tangents, ns.vmap(ns.grad(smoothed), in_axes=(None, 0))(x, alpha + x)

    compiled, interpreted = ns.jit(several)(X, 0.25), python(several)(X, 0.25)
    for one, other in zip(compiled, interpreted, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_value_and_grad_gives_both():
    value, gradient = python(ns.value_and_grad(cubes))(X)
    assert value == cubes(X)
    np.testing.assert_allclose(gradient, 3 * X**2)


def test_a_function_in_a_mode_has_its_derivatives_in_that_mode():
    f = ns.jit(cubes, mode="python")
    assert {made.mode.target for made in (f, ns.grad(f), ns.hessian(ns.grad(f)), ns.vmap(f))} == {"python"}
    assert ns.grad(cubes).mode.target == "numba"


def test_the_gradient_of_a_python_number_is_a_number():
    found = python(ns.grad(lambda x: x**3))(2.0)
    assert found == 12.0
    assert found.shape == ()


def test_arguments_may_be_nested():
    Pair = namedtuple("Pair", "a b")

    def f(nest):
        return np.sum(nest["w"] * nest["pair"].a) + nest["list"][0] * nest["pair"].b ** 2

    nest = {"w": X, "pair": Pair(2 * X, 3.0), "list": [5.0]}
    found = python(ns.grad(f))(nest)
    assert list(found) == ["w", "pair", "list"]
    assert isinstance(found["pair"], Pair)
    np.testing.assert_allclose(found["w"], 2 * X)
    np.testing.assert_allclose(found["pair"].a, X)
    assert (found["pair"].b, found["list"]) == (30.0, [9.0])


@pytest.mark.parametrize(
    "argnums, expected", [(0, X + 1), (-1, X), (1, X), ((0, 1), (X + 1, X)), ([1, -2], (X, X + 1)), ((0, 0), (X + 1, X + 1)), ((1,), (X,))]
)
def test_argument_numbers(argnums, expected):
    found = python(ns.grad(product, argnums))(X, X + 1)
    assert isinstance(found, tuple) == isinstance(expected, tuple)
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("argnums", [2, -3, (0, 5)])
def test_an_argument_that_is_not_there_is_named(argnums):
    with pytest.raises(ns.ArgumentNumberError, match=r"ns\.grad\(product\): argument number .* 2 positional arguments were given"):
        python(ns.grad(product, argnums))(X, X)
    with pytest.raises(ValueError, match="argument number"):
        python(ns.hessian(product, argnums))(X, X)
    with pytest.raises(ns.ArgumentNumberError, match="1 positional argument was given"):
        python(ns.grad(lambda x, *, y: product(x, y), 1))(X, y=X)
    with pytest.raises(ns.ArgumentNumberError, match="0 positional arguments were given"):
        python(ns.grad(product, -1))(x=X, y=X)


def test_an_argument_number_is_that_of_a_parameter_that_is_given_by_name():
    at = {"y": X + 1, "x": X}
    np.testing.assert_allclose(python(ns.grad(product))(**at), X + 1)
    np.testing.assert_allclose(python(ns.grad(product, 1))(X, y=X + 1), X)
    np.testing.assert_allclose(python(ns.grad(product, (1, 0)))(**at), (X, X + 1))
    np.testing.assert_allclose(python(ns.jacobian(lambda x, n: x * n))(n=np.array([2.0, 3.0]), x=1.0), [2.0, 3.0])
    np.testing.assert_allclose(python(ns.hessian(product, (0, 1)))(**at)[0][1], np.eye(len(X)))
    np.testing.assert_allclose(python(ns.grad(ns.grad(lambda a, b: a**3 * b)))(b=2.0, a=3.0), 36.0)
    np.testing.assert_allclose(python(ns.grad(lambda a, n, *rest, scale=1.0: a**n * scale))(n=3, scale=2.0, a=3.0), 54.0)
    powers = ns.jit(lambda x, n: x**n, static_argnames="n", mode="python")
    np.testing.assert_allclose(ns.grad(powers)(n=3, x=2.0), 12.0)
    with pytest.raises(ValueError, match="argnums has 1, a static argument"):
        ns.grad(powers, 1)(n=3, x=2.0)
    np.testing.assert_allclose(python(ns.vmap(ns.grad(lambda x, y: x * y)))(y=X, x=X + 1), X)


def test_methods_take_arguments_of_derivatives_by_name():
    class Model:
        k = 3.0

        @ns.grad
        def slope(self, x, y):
            return self.k * x * y**2

    assert Model().slope(y=2.0, x=1.0) == 12.0


def test_a_grid_gives_the_arguments_of_a_derivative_by_name():
    value, slope = ns.batch(ns.value_and_grad(lambda x, y: x * x * y), ns.grid(x=[1.0, 2.0], y=[3.0, 4.0]), progress=False)
    np.testing.assert_array_equal(value, [[3.0, 4.0], [12.0, 16.0]])
    np.testing.assert_array_equal(slope, [[6.0, 8.0], [12.0, 16.0]])


@pytest.mark.parametrize("argnums", ["x", 1.5, (0, None)])
def test_argument_numbers_are_integers(argnums):
    with pytest.raises(TypeError, match="argnums is"):
        ns.grad(product, argnums)


def test_keyword_arguments_and_defaults_reach_the_function():
    f = python(ns.grad(powered))
    np.testing.assert_allclose(f(1.5), 5 * 1.5**4)
    np.testing.assert_allclose(f(1.5, n=3), 3 * 1.5**2)
    np.testing.assert_allclose(python(ns.grad(product))(X, y=2 * X), 2 * X)


def test_integers_among_the_other_arguments_are_fine():
    np.testing.assert_allclose(python(ns.grad(lambda x, k, flag: np.sum(np.where(flag, x**k, x))))(X, 3, True), 3 * X**2)


@pytest.mark.parametrize("value", [3, np.arange(3), np.array([True, False]), {"a": X, "b": 2}])
@pytest.mark.parametrize("transform", [ns.grad, ns.value_and_grad, ns.jacobian, ns.hessian])
def test_integers_and_booleans_have_no_derivative(transform, value):
    f = python(transform(lambda x: np.sum(x["b"] if isinstance(x, dict) else x) * 1.0))
    with pytest.raises(ns.NullGradientError, match=r"respect to x.* integers and booleans have none"):
        f(value)
    with pytest.raises(TypeError, match="give a float"):
        f(value)


@pytest.mark.parametrize(
    "f, error, words",
    [
        (lambda x: x * 2, TypeError, r"must be a scalar, but .* has shape \(3,\)"),
        (lambda x: (np.sum(x), x), TypeError, r"must return one scalar, not \(…, …\)"),
        (lambda x: None, TypeError, "must return one scalar, not None"),
        (lambda x: np.sum(x) * 1j, TypeError, "must be real, but .* is complex"),
        (lambda x: np.sum(x).astype("int64"), ns.NullGradientError, "is an integer or a boolean"),
        (lambda x: np.sum(x) > 1, ns.NullGradientError, "is an integer or a boolean"),
    ],
)
@pytest.mark.parametrize("transform", [ns.grad, ns.value_and_grad, ns.hessian])
def test_a_cost_is_a_real_scalar(transform, f, error, words):
    with pytest.raises(error, match=words):
        python(transform(f))(X)


def test_what_is_no_function_is_refused():
    for transform in (ns.grad, ns.value_and_grad, ns.jacobian, ns.hessian, ns.vmap, ns.vjp):
        with pytest.raises(TypeError, match="takes a function"):
            transform(3.0)


def test_an_argument_that_plays_no_part():
    def f(x, y):
        return np.sum(x)

    with pytest.raises(ns.DisconnectedInputError, match=r"ns\.grad: the cost depends on y .* not at all"):
        python(ns.grad(f, 1))(X, X)
    assert issubclass(ns.DisconnectedInputError, ValueError)
    found = python(ns.grad(f, (0, 1), disconnected_inputs="ignore"))(X, np.float32(2))
    np.testing.assert_array_equal(found[0], np.ones(3))
    assert (found[1], found[1].dtype) == (0, np.float32)
    with pytest.warns(UserWarning, match="depends on y"):
        assert python(ns.value_and_grad(f, 1, disconnected_inputs="warn"))(X, 2.0)[1] == 0
    with pytest.raises(ValueError, match="it must be 'raise', 'warn' or 'ignore'"):
        python(ns.grad(f, disconnected_inputs="zero"))(X, X)


@pytest.mark.parametrize("f", [lambda x: np.floor(x).astype("int64") * 2.0, lambda x: np.where(x > 0, 3.0, 5.0)])
def test_a_way_through_integers_alone_is_no_derivative(f):
    with pytest.raises(ns.NullGradientError, match="through integers or booleans only"):
        python(ns.grad(f))(0.5)


def test_what_is_held_constant_is_told_apart_from_what_has_no_derivative():
    with pytest.raises(ns.DisconnectedInputError, match="only through what is held constant"):
        python(ns.grad(lambda x: nt.disconnected_grad(x) * 2))(0.5)
    assert python(ns.grad(lambda x: nt.zero_grad(x) * 2))(0.5) == 0
    assert python(ns.grad(lambda x: nt.disconnected_grad(x) * x))(0.5) == 0.5


def test_float32_stays_float32():
    x = X.astype("float32")
    value, gradient = python(ns.value_and_grad(smoothed))(x, np.float32(0.25))
    _, moved = python(lambda x: ns.jvp(cubes, (x,), (x.astype("float64"),)))(x)
    (pulled,) = python(lambda x: ns.vjp(cubes, x)[1](2.0))(x)
    found = [value, gradient, moved, pulled, python(ns.hessian(cubes))(x), python(ns.jacobian(np.tanh))(x), python(ns.vmap(np.sin))(x)]
    assert {str(one.dtype) for one in found} == {"float32"}
    assert python(ns.grad(lambda x, y: np.sum(x * y)))(x, X).dtype == np.float32


def test_arrays_without_elements():
    np.testing.assert_array_equal(python(ns.grad(cubes))(np.zeros((0, 3))), np.zeros((0, 3)))
    assert python(ns.jacobian(lambda x: x * 2))(np.zeros(0)).shape == (0, 0)
    assert python(ns.hessian(cubes))(np.zeros((0, 2))).shape == (0, 2, 0, 2)


def test_a_builtin_is_differentiated():
    np.testing.assert_allclose(python(ns.grad(np.sum))(X), np.ones(3))
    np.testing.assert_allclose(python(ns.vmap(ns.grad(np.sin)))(X), np.cos(X))


def test_the_gradient_of_a_function_of_variables_is_a_variable():
    x, y = nt.dscalars("x y")
    gradient = ns.grad(lambda x: x * x * y)(x)
    assert ns.function([x, y], gradient, mode="python")(3.0, 5.0) == 30.0
    gradient = ns.grad(lambda x: x * x * y)  # a variable that has no value: arrays give a variable too
    assert ns.function([y], gradient(3.0), mode="python")(5.0) == 30.0


def test_shared_variables_are_read_at_every_call():
    w = ns.shared(2.0, name="w")
    f = python(ns.grad(lambda x: x * x * w))
    assert f(3.0) == 12.0
    w.set_value(5.0)
    assert f(3.0) == 30.0


def test_what_the_function_reads_from_outside_may_change(monkeypatch):
    weights = X.copy()
    f = python(ns.grad(lambda x: np.sum(weights * x)))
    np.testing.assert_array_equal(f(X), weights)
    weights[0] = 7.0
    np.testing.assert_array_equal(f(X), weights)
    g, mapped = python(ns.grad(scaled_square)), python(ns.vmap(ns.grad(scaled_square)))
    _, pull = ns.vjp(python(scaled_square), 3.0)
    assert (g(3.0), mapped(X)[0], pull(1.0)) == (12.0, 2.0, (12.0,))
    monkeypatch.setitem(globals(), "MODULE_FACTOR", 3.0)
    assert (g(3.0), mapped(X)[0], pull(1.0)) == (18.0, 3.0, (12.0,))  # the pullback is that of its value


def test_a_pickled_gradient_computes_the_same():
    f = python(cubes)
    for made in (ns.grad(f), ns.value_and_grad(f), ns.hessian(f), ns.jacobian(f), ns.vmap(ns.grad(f), in_axes=1)):
        x = np.arange(6.0).reshape(2, 3) if made.__name__.startswith("vmap") else X
        again = pickle.loads(pickle.dumps(made))
        assert again.name == made.name
        for one, other in zip(np.atleast_1d(*again(x)), np.atleast_1d(*made(x)), strict=True):
            np.testing.assert_array_equal(one, other)


# complex numbers ------------------------------------------------------------------------------------------------------

Z = np.array([1.0 + 2.0j, -0.5 + 0.25j])


def test_the_gradient_of_a_complex_argument_is_not_conjugated():
    np.testing.assert_allclose(python(ns.grad(lambda z: np.sum(np.abs(z) ** 2)))(Z), 2 * np.conj(Z))  # df/dx - i df/dy
    np.testing.assert_allclose(python(ns.grad(lambda z: np.sum(np.real(z**2))))(Z), 2 * Z)
    np.testing.assert_allclose(python(ns.jacobian(lambda z: np.abs(z) ** 2))(Z), np.diag(2 * np.conj(Z)))


def test_a_complex_result_of_a_real_argument_has_a_complex_jacobian():
    np.testing.assert_allclose(python(ns.jacobian(lambda x: np.exp(1j * x)))(X), np.diag(1j * np.exp(1j * X)), rtol=1e-14)
    assert python(ns.jacobian(lambda x: np.exp(np.complex64(1j) * x)))(X.astype("float32")).dtype == np.complex64
    _, moved = python(lambda x: ns.jvp(lambda x: np.exp(1j * x), (x,), (np.ones(3),)))(X)
    np.testing.assert_allclose(moved, 1j * np.exp(1j * X))


def test_where_a_complex_derivative_is_no_single_number_it_is_refused():
    with pytest.raises(TypeError, match=r"only if it is holomorphic.*np\.real\(result\) and np\.imag\(result\)"):
        python(ns.jacobian(np.conj))(Z)
    with pytest.raises(TypeError, match="take real and imaginary parts as arguments of their own"):
        python(ns.hessian(lambda z: np.sum(np.abs(z) ** 2)))(Z)


def test_a_complex_direction_of_a_real_value_is_refused():
    with pytest.raises(TypeError, match=r"ns\.jvp: a tangent is complex, but x .* is real"):
        ns.jvp(python(cubes), (X,), (X + 1j,))
    with pytest.raises(TypeError, match=r"ns\.vjp: a cotangent is complex"):
        ns.vjp(python(cubes), X)[1](1j)


# vjp and jvp ----------------------------------------------------------------------------------------------------------


def test_vjp_pulls_cotangents_of_a_nest_back_to_every_argument():
    def f(x, n, other):
        return {"a": x * other["y"], "b": (np.sum(x) * n, n)}

    value, pull = ns.vjp(python(f), X, 3, {"y": 2 * X, "k": 4, "unused": 1.0})
    np.testing.assert_allclose(value["b"][0], 3 * X.sum())
    by_x, by_n, by_other = pull({"a": np.ones(3), "b": (10.0, 7)})
    np.testing.assert_allclose(by_x, 2 * X + 30)
    assert by_n is None
    np.testing.assert_allclose(by_other["y"], X)
    assert by_other["k"] is None
    assert by_other["unused"] == 0


def test_a_cotangent_is_nested_and_shaped_as_the_result():
    _, pull = ns.vjp(python(lambda x: (x, x * 2)), X)
    with pytest.raises(ValueError, match=r"the function returns \(…, …\), the cotangent is an array"):
        pull(X)
    with pytest.raises(ValueError, match=r"a cotangent has shape \(2,\).*it must have \(3,\)"):
        pull((X, X[:2]))
    with pytest.raises(ValueError, match=r"a cotangent has shape \(1,\)"):
        pull((X, X[:1]))


def test_jvp_moves_along_the_tangents():
    value, moved = ns.jvp(python(lambda x, n: {"y": x**n, "n": n}), (X, 3), (2 * X, None))
    np.testing.assert_allclose(value["y"], X**3)
    np.testing.assert_allclose(moved["y"], 6 * X**3)
    assert moved["n"] == 0
    value, moved = ns.jvp(python(product), [X, 3 * X], [X, np.zeros(3)])
    np.testing.assert_allclose(moved, 3 * np.sum(X * X))


@pytest.mark.parametrize(
    "args, tangents, error, words",
    [
        ((X,), (X[:2],), ValueError, r"a tangent has shape \(2,\).*it must have \(3,\)"),
        ((X,), ((X,),), ValueError, "give the same nests"),
        ((X,), (X, X), TypeError, "one tangent for each argument"),
        (X, X, TypeError, "must be tuples"),
        ((3,), (1.0,), ns.NullGradientError, "integers and booleans have none"),
    ],
)
def test_tangents_fit_the_arguments(args, tangents, error, words):
    with pytest.raises(error, match=words):
        ns.jvp(python(np.sin), args, tangents)


def test_reverse_and_forward_mode_are_transposes():
    rng = np.random.default_rng(1)
    v, w = rng.normal(size=(2, 3))
    f = python(lambda x: np.cumsum(np.sin(x)) * x[0])
    _, ahead = ns.jvp(f, (X,), (v,))
    (back,) = ns.vjp(f, X)[1](w)
    np.testing.assert_allclose(w @ ahead, back @ v, rtol=1e-13)


# jacobian and hessian -------------------------------------------------------------------------------------------------


def test_jacobian_has_the_shape_of_the_result_then_of_the_argument():
    a = np.arange(6.0).reshape(2, 3)
    found = python(ns.jacobian(lambda a, x: a @ x, (0, 1)))(a, X)
    np.testing.assert_allclose(found[0], np.einsum("ij,k->ijk", np.eye(2), X))
    np.testing.assert_allclose(found[1], a)
    nest = python(ns.jacobian(lambda x: {"s": np.sum(x), "d": x * 2}))({"x": X}["x"])
    np.testing.assert_allclose(nest["s"], np.ones(3))
    np.testing.assert_allclose(nest["d"], 2 * np.eye(3))


def test_the_jacobian_of_a_scan_is_lower_triangular():
    found = python(ns.jacobian(lambda x: ns.scan(lambda x, s: s * 0.5 + x**2, sequences=x, outputs_info=0.0, return_updates=False)))(X)
    expected = [[2 * X[k] * 0.5 ** (t - k) if k <= t else 0 for k in range(3)] for t in range(3)]
    np.testing.assert_allclose(found, expected)


def test_an_integer_result_has_no_jacobian():
    with pytest.raises(ns.NullGradientError, match=r"the result .* is an integer"):
        python(ns.jacobian(np.argsort))(X)


def test_hessian_of_a_quadratic_form():
    a = np.arange(9.0).reshape(3, 3)
    np.testing.assert_allclose(python(ns.hessian(lambda x: x @ a @ x))(X), a + a.T)


@pytest.mark.parametrize("mode", ["python", None])
def test_hessian_of_rosenbrock_by_a_scan(mode):
    x = np.linspace(-1.0, 1.5, 6)
    f = ns.jit(rosenbrock, mode=mode)
    np.testing.assert_allclose(f(x), scipy.optimize.rosen(x))
    np.testing.assert_allclose(ns.grad(f)(x), scipy.optimize.rosen_der(x), rtol=1e-12)
    np.testing.assert_allclose(ns.hessian(f)(x), scipy.optimize.rosen_hess(x), rtol=1e-12, atol=1e-12)


def test_hessian_of_several_arguments_has_the_mixed_derivatives():
    (xx, xy), (yx, yy) = python(ns.hessian(lambda x, y: np.sum(x**2) * y + y**3, (0, 1)))(X, 2.0)
    np.testing.assert_allclose(xx, 4 * np.eye(3))
    np.testing.assert_allclose(xy, 2 * X)
    np.testing.assert_allclose(yx, 2 * X)
    np.testing.assert_allclose(yy, 12.0)


def test_hessian_of_a_nest_is_a_nest_of_nests():
    found = python(ns.hessian(lambda p: np.sum(p["a"] ** 2) * p["b"] + np.sum(p["c"])))({"a": X, "b": 2.0, "c": X})
    np.testing.assert_allclose(found["a"]["a"], 4 * np.eye(3))
    np.testing.assert_allclose(found["a"]["b"], 2 * X)
    np.testing.assert_allclose(found["b"]["a"], 2 * X)
    assert found["b"]["b"] == 0
    np.testing.assert_array_equal(found["c"]["a"], np.zeros((3, 3)))


# derivatives of derivatives -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "f, derivatives",
    [
        (np.sin, [np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin]),
        (lambda x: x**2, [lambda x: 2 * x, lambda x: 2, lambda x: 0, lambda x: 0]),
        (lambda x: 3 * x, [lambda x: 3, lambda x: 0, lambda x: 0, lambda x: 0]),
        (lambda x: x**3 - x, [lambda x: 3 * x**2 - 1, lambda x: 6 * x, lambda x: 6, lambda x: 0]),
        (lambda x: 1 / x, [lambda x: -(x**-2), lambda x: 2 * x**-3, lambda x: -6 * x**-4, lambda x: 24 * x**-5]),
        (powered, [lambda x: 5 * x**4, lambda x: 20 * x**3, lambda x: 60 * x**2, lambda x: 120 * x]),
        (
            lambda x: ns.scan(lambda s: s * 0.5, outputs_info=x, n_steps=3, return_updates=False)[-1],
            [lambda x: 0.125, lambda x: 0, lambda x: 0, lambda x: 0],
        ),
    ],
)
def test_four_derivatives(f, derivatives):
    f = python(f)
    for order, expected in enumerate(derivatives, 1):
        f = ns.grad(f)
        np.testing.assert_allclose(f(1.25), expected(1.25), rtol=1e-11, err_msg=f"order {order}")


def test_mixed_derivatives_do_not_depend_on_the_order():
    def f(x, y):
        return np.sin(x * y) * x**3

    one, other = python(ns.grad(ns.grad(f, 0), 1)), python(ns.grad(ns.grad(f, 1), 0))
    np.testing.assert_allclose(one(0.7, 1.3), other(0.7, 1.3), rtol=1e-14)


def test_the_mixed_derivative_of_a_sum_is_zero():
    f = python(ns.grad(ns.grad(lambda x, y: x**2 + np.sin(y), 0), 1))
    assert f(1.0, 2.0) == 0
    g = python(lambda x, y: ns.grad(lambda x: ns.grad(lambda y: x**2 + np.sin(y))(y))(x))
    assert g(1.0, 2.0) == 0


@pytest.mark.parametrize(
    "f, expected",
    [
        # each inner derivative holds the outer variable fixed
        (lambda x: x * ns.grad(lambda y: x + y)(1.0), 1),
        (lambda x: x * ns.grad(lambda y: x * y)(x), 2 * 1.5),
        (lambda x: x * ns.grad(lambda y: x * y * y)(x), 3 * 2 * 1.5**2),
        (lambda x: ns.grad(lambda y: ns.grad(lambda z: x * y * z)(y) * y)(x), 2 * 2 * 1.5),
        (lambda x: ns.jvp(lambda y: x * y, (x,), (x,))[1], 2 * 1.5),
        (lambda x: ns.vjp(lambda y: x * y, x)[1](x)[0], 2 * 1.5),
        (lambda x: x * ns.jvp(lambda y: ns.grad(lambda z: y * z * x)(y), (x,), (1.0,))[1], 2 * 1.5),
    ],
)
def test_derivatives_of_different_levels_are_not_confused(f, expected):
    np.testing.assert_allclose(python(ns.grad(f))(1.5), expected)


def test_a_derivative_inside_a_loop_is_differentiated():
    def newton(c):
        def step(x, c):
            return x - (x * x - c) / ns.grad(lambda x: x * x - c)(x)

        return ns.scan(step, outputs_info=c, non_sequences=c, n_steps=8, return_updates=False)[-1]

    np.testing.assert_allclose(python(newton)(2.0), np.sqrt(2.0))
    np.testing.assert_allclose(python(ns.grad(newton))(2.0), 0.5 / np.sqrt(2.0))
    np.testing.assert_allclose(python(ns.grad(ns.grad(newton)))(2.0), -0.25 * 2.0**-1.5)


def test_grad_of_jvp_and_jvp_of_grad_are_hessian_products():
    v = np.array([1.0, -2.0, 0.5])
    expected = python(ns.hessian(smoothed))(X, 0.25) @ v
    np.testing.assert_allclose(python(lambda x: ns.jvp(lambda x: ns.grad(smoothed)(x, 0.25), (x,), (v,))[1])(X), expected)
    np.testing.assert_allclose(python(ns.grad(lambda x: ns.jvp(lambda x: smoothed(x, 0.25), (x,), (v,))[1]))(X), expected)
    np.testing.assert_allclose(python(ns.grad(lambda x: ns.grad(smoothed)(x, 0.25) @ v))(X), expected)
    np.testing.assert_allclose(python(ns.jacobian(ns.grad(smoothed)))(X, 0.25) @ v, expected)


def test_the_derivative_of_a_constant_tangent_is_zero():
    assert python(ns.grad(lambda x: ns.jvp(lambda y: 2 * y, (x,), (1.0,))[1]))(3.0) == 0
    np.testing.assert_array_equal(python(ns.jacobian(lambda x: ns.vjp(lambda y: 2 * y, x)[1](np.ones(3))[0]))(X), np.zeros((3, 3)))


# vmap -----------------------------------------------------------------------------------------------------------------


def test_gradients_of_many_lanes():
    xs = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(python(ns.vmap(ns.grad(cubes)))(xs), 3 * xs**2)
    np.testing.assert_allclose(python(ns.grad(lambda xs: np.sum(ns.vmap(cubes)(xs) ** 2)))(xs), 6 * np.sum(xs**3, 1)[:, None] * xs**2)
    value, gradient = python(ns.vmap(ns.value_and_grad(powered)))(X)
    np.testing.assert_allclose(value, X**5)
    np.testing.assert_allclose(gradient, 5 * X**4)
    np.testing.assert_allclose(python(ns.vmap(ns.hessian(cubes)))(xs), [6 * np.diag(x) for x in xs])


def test_jit_and_grad_in_either_order():
    np.testing.assert_allclose(python(ns.grad(ns.jit(cubes)))(X), 3 * X**2)
    np.testing.assert_allclose(ns.jit(ns.grad(cubes), mode="python")(X), 3 * X**2)


@pytest.mark.parametrize(
    "in_axes, shapes, subscripts",
    [
        (0, [(4, 3), (4, 3)], "ni,ni->n"),
        ((0, None), [(4, 3), (3,)], "ni,i->n"),
        ((1, 0), [(3, 4), (4, 3)], "in,ni->n"),
        ((-1, 0), [(3, 4), (4, 3)], "in,ni->n"),
        ([None, 1], [(3,), (3, 4)], "i,in->n"),
    ],
)
def test_the_axis_of_lanes(in_axes, shapes, subscripts):
    arrays = [np.random.default_rng(k).normal(size=shape) for k, shape in enumerate(shapes)]
    np.testing.assert_allclose(python(ns.vmap(lambda x, y: x @ y, in_axes))(*arrays), np.einsum(subscripts, *arrays))


def test_lanes_of_nests_keywords_and_results():
    a = np.arange(6.0).reshape(2, 3)
    f = python(ns.vmap(lambda p, *, s: {"r": p["x"] * p["y"][0] + s}, in_axes=({"x": 1, "y": (None,)},), out_axes=1))
    np.testing.assert_allclose(f({"x": a, "y": (5.0,)}, s=X)["r"], 5 * a + X)


def test_lanes_of_lanes():
    xs, ys = np.arange(3.0), np.arange(4.0) + 1
    table = python(ns.vmap(ns.vmap(lambda x, y: x**2 * y, in_axes=(None, 0)), in_axes=(0, None)))
    np.testing.assert_allclose(table(xs, ys), np.outer(xs**2, ys))


def test_every_lane_stops_by_itself():
    def steps(x):
        last = ns.scan(lambda v, k: ((v * 2, k + 1), ns.until(v * 2 > 10)), outputs_info=[x, 0], n_steps=50, return_updates=False)
        return last[0][-1], last[1][-1]

    xs = np.array([0.5, 3.0, 11.0])
    last, count = python(ns.vmap(steps))(xs)
    np.testing.assert_array_equal(last, [16.0, 12.0, 22.0])
    np.testing.assert_array_equal(count, [5, 2, 1])
    np.testing.assert_array_equal(python(ns.vmap(ns.grad(lambda x: steps(x)[0])))(xs), [32.0, 4.0, 2.0])


@pytest.mark.parametrize(
    "in_axes, args, error, words",
    [
        ((0,), (X, X), ValueError, "in_axes has 1 entries for 2 arguments"),
        ((None, None), (X, X), ValueError, "None for every argument"),
        (0, (X, X[:2]), ValueError, "2 and 3 lanes"),
        (1, (X, X), ValueError, "in_axes has 1, but an argument is"),
        ("x", (X, X), TypeError, "in_axes holds 'x'"),
    ],
)
def test_axes_that_do_not_fit_are_refused(in_axes, args, error, words):
    with pytest.raises(error, match=words):
        python(ns.vmap(lambda x, y: x * y, in_axes))(*args)


def test_numbers_of_lanes_that_only_the_run_knows_must_be_equal():
    x, y = nt.dvectors("x y")
    f = ns.function([x, y], ns.vmap(lambda x, y: x * y)(x, y), mode="python")
    np.testing.assert_allclose(f(X, X), X * X)
    with pytest.raises(ValueError, match="2 rows"):
        f(X, X[:2])


# use ------------------------------------------------------------------------------------------------------------------


def test_scipy_minimizes_rosenbrock_through_a_scan():
    result = scipy.optimize.minimize(ns.value_and_grad(rosenbrock), np.array([-1.2, 1.0, 0.3, -0.7]), jac=True, method="BFGS", tol=1e-8)
    assert result.success
    np.testing.assert_allclose(result.x, np.ones(4), atol=1e-5)
    by_hessian = scipy.optimize.minimize(
        ns.value_and_grad(rosenbrock), result.x + 0.1, jac=True, hess=ns.hessian(rosenbrock), method="trust-exact", tol=1e-10
    )
    np.testing.assert_allclose(by_hessian.x, np.ones(4), atol=1e-8)


# what a function returns besides its value ------------------------------------------------------------------------------


def with_aux(x, y):
    cubed = x**3
    return np.sum(cubed) * y, {"cubed": cubed, "count": np.floor(y).astype("int64"), "none": None}


def test_aux_is_returned_and_not_differentiated():
    for f in (with_aux, ns.jit(with_aux, mode="python")):
        gradient, aux = python(ns.grad(f, has_aux=True))(X, 2.5)
        np.testing.assert_allclose(gradient, 7.5 * X**2)
        np.testing.assert_array_equal(aux["cubed"], X**3)
        assert (aux["count"], aux["none"]) == (2, None)
        (value, aux), (by_x, by_y) = python(ns.value_and_grad(f, (0, 1), has_aux=True))(X, 2.5)
        np.testing.assert_allclose([value, *by_x, by_y], [2.5 * np.sum(X**3), *(7.5 * X**2), np.sum(X**3)])
        value, pull, aux = ns.vjp(python(f), X, 2.5, has_aux=True)
        np.testing.assert_allclose(pull(2.0)[0], 15 * X**2)
        np.testing.assert_array_equal(aux["cubed"], X**3)


def test_aux_nests_and_composes():
    def outer(x):
        gradient, aux = ns.grad(with_aux, has_aux=True)(x, 2.0)
        _, pull, again = ns.vjp(lambda v: with_aux(v, 1.0), x, has_aux=True)
        return np.sum(gradient * pull(1.0)[0]) + np.sum(aux["cubed"]), (aux["cubed"], again["count"])

    rows = np.stack([X, 2 * X])
    (values, (cubed, count)), gradients = python(ns.vmap(ns.value_and_grad(outer, has_aux=True)))(rows)
    np.testing.assert_allclose(values, np.sum(18 * rows**4 + rows**3, axis=1))
    np.testing.assert_allclose(gradients, 72 * rows**3 + 3 * rows**2)
    np.testing.assert_allclose(cubed, rows**3)
    np.testing.assert_array_equal(count, [1, 1])
    second = ns.jacobian(lambda x: ns.grad(with_aux, has_aux=True)(x, 1.0)[1]["cubed"])  # aux of a gradient has derivatives itself
    np.testing.assert_allclose(python(second)(X), np.diag(3 * X**2))


def test_what_only_aux_uses_has_no_gradient_and_a_function_without_aux_is_named():
    with pytest.raises(ns.DisconnectedInputError):
        python(ns.grad(lambda x, y: (np.sum(x), y), 1, has_aux=True))(X, 1.0)
    for transform in (ns.grad, ns.value_and_grad, lambda f, has_aux: lambda x: ns.vjp(f, x, has_aux=has_aux)):
        with pytest.raises(TypeError, match=r"has_aux=True is for a function that returns \(value, aux\), not an array"):
            transform(lambda x: np.sum(x), has_aux=True)(X)
    with pytest.raises(TypeError, match=r"must return one scalar, not \(…, …\)"):
        python(ns.grad(lambda x: ((np.sum(x), 1.0), 2.0), has_aux=True))(X)
