"""Static arguments of `ns.jit`: Python objects that the function gets as they are, as in JAX."""

import functools
import pickle
from dataclasses import dataclass

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

X = np.array([1.0, 2.0, 3.0])


@dataclass(frozen=True)
class Record:
    factor: float


def power(x, n, kind="plain", *, shift=0):
    for _ in range(n):
        x = x * X[: len(x)] if kind == "weighted" else x * 2
    return x + shift


def jit(*args, **keywords):
    return ns.jit(*args, mode="python", **keywords)


@pytest.mark.parametrize(
    "static",
    [
        {"static_argnums": 1},
        {"static_argnums": (1, 2)},
        {"static_argnums": [-2, -1]},
        {"static_argnames": "n"},
        {"static_argnames": ("n", "kind", "shift")},
        {"static_argnums": 1, "static_argnames": ["n"]},
    ],
)
def test_numbers_and_names_mean_the_same_and_a_new_value_is_traced_anew(static):
    f = jit(power, **static)
    for n in (1, 2, 1, 2):
        np.testing.assert_array_equal(X * 2**n, f(X, n))
        np.testing.assert_array_equal(X * 2**n, f(X, n=n))
    assert len(f._kinds) == 4  # by position and by name


def test_objects_of_any_class_that_has_a_hash():
    f = jit(lambda x, g, options: g(x) * options[0], static_argnums=(1, 2))
    factor = 3.0
    for g in (np.sin, np.cos, lambda x: x * factor):
        np.testing.assert_array_equal(g(X) * 2.0, f(X, g, (2.0, "name")))
    scaled = lambda x: x * factor  # noqa: E731
    assert f(X, scaled, (2.0,))[0] == 6.0
    factor = 5.0  # what a static function reads is seen anew
    assert f(X, scaled, (2.0,))[0] == 10.0


def test_equal_values_that_are_not_the_same_are_told_apart():
    kinds = jit(lambda x, value: x * 0 + (1 if value is True else 2 if type(value) is int else 3), static_argnums=1)
    assert [kinds(1.0, value) for value in (True, 1, 1.0, True)] == [1, 2, 3, 1]
    signs = jit(lambda x, value: x * 0 + np.copysign(1.0, value[0]), static_argnames="value")
    assert [signs(1.0, value) for value in ((0.0,), (-0.0,), (0.0,))] == [1, -1, 1]
    of_records = jit(lambda x, record: x * record.factor, static_argnums=1)
    assert [of_records(np.arange(3), Record(factor)).dtype.kind for factor in (2, 2.0, 2)] == ["i", "f", "i"]


@pytest.mark.parametrize(
    "static, error, words",
    [
        ({"static_argnums": 3}, ValueError, "static_argnums has 3, but the function takes 3 positional"),
        ({"static_argnums": -4}, ValueError, "static_argnums has -4"),
        ({"static_argnums": "n"}, TypeError, "static_argnums is 'n'; give an int or a tuple"),
        ({"static_argnums": 1.0}, TypeError, "static_argnums is 1.0"),
        ({"static_argnames": "m"}, ValueError, "static_argnames has 'm', but the arguments of the function are x, n, kind, shift"),
        ({"static_argnames": 1}, TypeError, "static_argnames is 1; give a name"),
    ],
)
def test_wrong_numbers_and_names_are_refused(static, error, words):
    with pytest.raises(error, match=rf"ns\.jit\(power\): {words}"):
        ns.jit(power, **static)


def test_static_arguments_that_cannot_be_are_refused():
    f = jit(power, static_argnums=1)
    for value in ([1], X, {"a": 1}):
        with pytest.raises(ValueError, match=r"power: static argument 1 is .*which has no hash"):
            f(X, value)
    with pytest.raises(ValueError, match=r"static argument 'n' is traced"):
        f(X, n=nt.lscalar("n"))
    with pytest.raises(ValueError, match="argnums has 1, a static argument of power"):
        ns.grad(f, 1)(X, 2)


def test_a_jitted_function_with_static_arguments_in_transforms():
    f = jit(lambda x, n, kind="plain": power(x, n, kind).sum(), static_argnames=("n", "kind"))
    np.testing.assert_array_equal([4, 4, 4], ns.grad(f)(X, 2))
    np.testing.assert_array_equal(X, ns.grad(f)(X, 1, kind="weighted"))
    value, gradient = ns.value_and_grad(f)(X, 3)
    assert value == 48.0
    np.testing.assert_array_equal([8, 8, 8], gradient)
    value, pull = ns.vjp(f, X, 2, "weighted")
    assert value == (X**3).sum()
    cotangent, *nothing = pull(1.0)
    np.testing.assert_array_equal(X**2, cotangent)
    assert nothing == [None, None]
    assert ns.jvp(f, (X, 2), (X, None))[1] == 24.0
    rows = np.stack([X, 2 * X])
    for in_axes in (0, (0, None)):
        np.testing.assert_array_equal([24, 48], ns.vmap(f, in_axes)(rows, 2))
    np.testing.assert_array_equal([[4] * 3] * 2, ns.vmap(ns.grad(f), (0, None))(rows, 2))
    assert ns.jit(lambda x: f(x, 2), mode="python")(X) == 24.0
    x = nt.dvector("x")
    assert ns.function([x], ns.vjp(f, x, 1)[1](1.0)[0].sum(), mode="python")(X) == 6.0


class Model:
    def __init__(self, rate):
        self.rate = rate

    @functools.partial(ns.jit, static_argnums=(0, 2), mode="python")
    def by_number(self, x, n):
        return power(x, n) * self.rate

    @functools.partial(ns.jit, static_argnames=("self", "n"), mode="python")
    def by_name(self, x, n):
        return power(x, n) * self.rate


def test_numbers_of_a_method_count_self():
    for rate in (1.0, 3.0):
        model = Model(rate)
        for n in (1, 2, 1):
            np.testing.assert_array_equal(X * 2**n * rate, model.by_number(X, n))
            np.testing.assert_array_equal(X * 2**n * rate, model.by_name(X, n=n))
        model.rate = 10.0
        np.testing.assert_array_equal(X * 20, model.by_number(X, 1))


def test_static_arguments_go_through_pickle_and_lower():
    f = pickle.loads(pickle.dumps(jit(power, static_argnums=1).lower(X, 2)))
    np.testing.assert_array_equal(X * 4, f(X, 2))
    assert f.lower(X, 3) is f
    assert len(f._kinds) == 2
