"""ns.verify_grad: it passes what is right, and names what is wrong."""

import re

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

X = np.array([0.5, -1.25, 2.0])


def verify(fun, point, **options):
    assert ns.verify_grad(fun, point, mode="python", **options) is None


def wrong(f, bwd):
    """`f` with a rule of its own."""
    made = ns.custom_vjp(f)
    made.defvjp(lambda *args: (f(*args), args), bwd)
    return made


@pytest.mark.parametrize(
    "fun, point",
    [
        (np.sin, X),
        (np.sin, [X]),
        (lambda x, y: x @ y, [np.arange(6.0).reshape(2, 3), X]),
        (lambda x: np.sum(x**3), 1.5),
        (lambda x: {"rows": np.cumsum(x), "last": (x[-1] ** 2, 3)}, X),
        (lambda x, k, flags: np.where(flags, x**k, 0.0), [X, 3, np.array([True, False, True])]),
        (lambda x, y: x * 2, [X, 1.0]),  # what plays no part has the gradient 0
        (lambda x: x[:0], X),
        (lambda x: ns.scan(lambda x, s: np.tanh(s + x), sequences=x, outputs_info=0.5, return_updates=False), X),
        (lambda x: 1e6 + np.sin(x), X),  # a large value leaves few digits to a difference
        (lambda x: x**2, 1e8 * X),
        (lambda x: np.ones(3) * 2 + 0 * x, X),
        (lambda x: ns.scan(lambda k: k * 2, outputs_info=x.astype(int), n_steps=2, return_updates=False) * 1.0, 2.5),  # flat
        (ns.jit(np.tanh, mode="python"), X),
        (ns.grad(lambda x: np.sum(x**4)), X),
    ],
)
def test_right_derivatives_pass(fun, point):
    verify(fun, point)


@pytest.mark.parametrize("fun", [np.exp, lambda z: z * np.conj(z), np.abs, lambda z: {"re": np.real(z) ** 2, "z": z**2}])
@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_complex_arguments(fun, dtype):
    verify(fun, np.array([0.5 + 1j, -2.0 + 0.25j]).astype(dtype))


def test_float32():
    verify(lambda x: np.sin(x) * x**2, X.astype("float32"))
    with pytest.raises(ns.GradientError):
        verify(wrong(lambda x: x**2, lambda args, g: (2.1 * args[0] * g,)), X.astype("float32"))


def test_variables_are_functions_too():
    verify(lambda x, y: nt.dot(x, y) + nt.tanh(x).sum(), [X, X + 1])


def test_compiled_code_is_checked():
    ns.verify_grad(lambda x: np.sin(x) ** 2, X)


@pytest.mark.parametrize(
    "point, words",
    [
        ([X, X], r"with respect to y\[1\] is [^ ]+ by reverse mode, and [^ ]+ by central differences .*; 1 of 3 elements differ"),
        ([1.5, 2.5], r"with respect to y is [^ ]+ by reverse mode"),
        ([X.reshape(1, 3), X.reshape(1, 3)], r"with respect to y\[0, 1\] is"),
    ],
)
def test_a_wrong_gradient_is_named(point, words):
    def bwd(args, g):
        x, _ = args
        factor = 1.0 if x.ndim == 0 else np.array([1.0, 0.999, 1.0])
        return args[1] * g, x * g * (factor if x.ndim else 2.0)

    with pytest.raises(ns.GradientError, match=words):
        verify(wrong(lambda x, y: x * y, bwd), point)
    with pytest.raises(AssertionError):
        verify(wrong(lambda x, y: x * y, bwd), point)


def test_both_values_are_told():
    f = wrong(lambda x: 3 * x, lambda args, g: (30 * g,))
    with pytest.raises(ns.GradientError) as caught:
        verify(f, 1.0)
    reverse, difference = map(float, re.findall(r"is (\S+) by reverse mode, and (\S+) by central", str(caught.value))[0])
    np.testing.assert_allclose(reverse, 10 * difference, rtol=1e-8)


def test_not_a_number_is_wrong():
    with pytest.raises(ns.GradientError, match="nan"):
        verify(wrong(lambda x: x, lambda args, g: (g * np.nan,)), X)
    with pytest.raises(ns.GradientError):
        verify(np.log, np.array([1.0, -1.0]))


def test_a_kink_is_found():
    with pytest.raises(ns.GradientError, match=r"x1\[1\]"):
        verify(np.maximum, [np.array([1.0, 1.0]), np.array([0.0, 1.0 + 2e-6])])


def test_a_right_rule_passes_without_forward_mode():
    verify(wrong(lambda x: np.sin(x), lambda args, g: (g * np.cos(args[0]),)), X)


def test_forward_mode_is_checked(monkeypatch):
    from numbascan.front.derivatives import verify_grad as module

    right = module.replayed_jvp
    monkeypatch.setattr(module, "replayed_jvp", lambda f, *given: (None, 1.01 * right(f, *given)[1]))
    with pytest.raises(ns.GradientError, match=r"along a random direction .* by forward mode, and by .* by reverse mode"):
        verify(np.sin, X)


def test_tolerances_and_steps():
    f = wrong(lambda x: x**2, lambda args, g: (2.001 * args[0] * g,))
    with pytest.raises(ns.GradientError):
        verify(f, X)
    verify(f, X, rtol=1e-3)
    verify(f, X, atol=0.1)
    verify(lambda x: np.sin(1e4 * x), 0.3, eps=1e-9)
    with pytest.raises(ns.GradientError, match=r"eps=0\.01"):
        verify(lambda x: np.sin(1e4 * x), 0.3, eps=1e-2)


def test_the_seed_gives_the_weights():
    def message(seed):
        with pytest.raises(ns.GradientError) as caught:
            verify(wrong(lambda x: x, lambda args, g: (2 * g,)), X, seed=seed)
        return str(caught.value)

    assert message(1) == message(1) != message(2)


@pytest.mark.parametrize(
    "fun, point, error, words",
    [
        (lambda k: k, [3], ns.NullGradientError, "no argument of <lambda> is a float"),
        (lambda: 1.0, [], ns.NullGradientError, "no argument of <lambda> is a float"),
        (lambda x: x > 0, X, ns.NullGradientError, "all that <lambda> returns are integers or booleans"),
        (lambda x: x * nt.dscalar("w"), X, ns.MissingInputError, "<lambda> uses variables without a value"),
    ],
)
def test_what_cannot_be_checked_is_told(fun, point, error, words):
    with pytest.raises(error, match=words):
        verify(fun, point)


def test_the_point_stays_as_it_was():
    x = X.copy()
    verify(np.sin, [x])
    np.testing.assert_array_equal(x, X)
