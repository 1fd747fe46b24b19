"""Dicts with the same keys in another order: values follow keys, results have the order of this call."""

from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest

import numbascan as ns

Pair = namedtuple("Pair", "left right")
A, B = np.array([1.0, 2.0]), np.array([10.0, 20.0])
KINDS = [dict, OrderedDict, lambda items: defaultdict(float, items)]


def orders(kind=dict):
    """The same values under the same keys, in both orders."""
    return kind([("a", A), ("b", B)]), kind([("b", B), ("a", A)])


def same(found, expected):
    """The same nest, keys in the same order."""
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for key in expected:
            same(found[key], expected[key])
    elif isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    elif expected is None:
        assert found is None
    else:
        np.testing.assert_allclose(found, expected)


FUNCTIONS = {
    "by keys": lambda d: {"x": d["a"] * 2 - d["b"]},
    "in its order": lambda d: {key: value * 2 for key, value in d.items()},
    "the first": lambda d: next(iter(d.values())),
    "the difference": lambda d: np.subtract(*d.values()),
    "as text": lambda d: d["a"] * (1 if "".join(d) == "ab" else 7),
    "in a tuple": lambda d: Pair((d["a"], {**d}), [d]),
    "as keywords": lambda d: (lambda **keywords: list(keywords.values()))(**d),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jit(name, kind):
    f = FUNCTIONS[name]
    compiled = ns.jit(f, mode="python")
    for d in (*orders(kind), *orders(kind)):
        same(compiled(d), f(d))


@pytest.mark.parametrize("nest", [lambda d: (d,), lambda d: Pair(1.0, [d]), lambda d: {"z": d, "y": 2.0}, lambda d: [[d], (d, None)]])
def test_nests(nest):
    compiled = ns.jit(lambda n: n, mode="python")
    for d in (*orders(), *orders()):
        same(compiled(nest(d)), nest(d))


def test_keywords_in_another_order():
    def f(**keywords):
        return {name: value + 1 for name, value in keywords.items()}, next(iter(keywords.values()))

    compiled = ns.jit(f, mode="python")
    for d in (*orders(), *orders()):
        same(compiled(**d), f(**d))


COST = {
    "by keys": lambda d: np.sum(d["a"] ** 2 * d["b"]),
    "in its order": lambda d: np.sum(np.subtract(*d.values()) ** 3),
}
SLOPES = {
    "by keys": lambda d: {"a": 2 * A * B, "b": A**2},
    "in its order": lambda d: dict(zip(d, (3 * np.subtract(*d.values()) ** 2 * sign for sign in (1, -1)), strict=True)),
}


@pytest.mark.parametrize("name", COST)
def test_derivatives(name):
    f = ns.jit(COST[name], mode="python")
    slope, both, jacobian, hessian = ns.grad(f), ns.value_and_grad(f), ns.jacobian(f), ns.hessian(f)
    for d in (*orders(), *orders()):
        expected = {key: SLOPES[name](d)[key] for key in d}
        same(slope(d), expected)
        same(both(d), (COST[name](d), expected))
        same(jacobian(d), expected)
        same(ns.vjp(f, d)[1](1.0), (expected,))
        same(ns.jvp(f, (d,), (dict(reversed(d.items())),))[1], sum(np.sum(expected[key] * d[key]) for key in d))
        found = hessian(d)
        assert [list(found), *map(list, found.values())] == [list(d)] * 3


@pytest.mark.parametrize("name", ["by keys", "in its order", "the first"])
def test_vmap(name):
    f = FUNCTIONS[name]
    mapped = ns.vmap(ns.jit(f, mode="python"))
    for d in (*orders(), *orders()):
        same(mapped(d), f(d))


def test_cotangents_and_tangents_in_another_order():
    f = ns.jit(lambda d: {"y": d["a"] * 2, "x": d["b"] * 3}, mode="python")
    d = orders()[0]
    for cotangent in ({"y": A, "x": B}, {"x": B, "y": A}):
        same(ns.vjp(f, d)[1](cotangent), ({"a": 2 * A, "b": 3 * B},))
    for tangent in orders():
        same(ns.jvp(f, (d,), (tangent,))[1], {"y": 2 * A, "x": 3 * B})


STEPS = {
    "by keys": lambda d: {"a": d["a"] + d["b"], "b": d["b"] * 2},
    "in another order": lambda d: {"b": d["b"] * 2, "a": d["a"] + d["b"]},
    "in its order": lambda d: {key: value * (k + 2) for k, (key, value) in enumerate(d.items())},
}


@pytest.mark.parametrize("face", ["ScanFunction", "scan"])
@pytest.mark.parametrize("name", STEPS)
def test_states_of_a_scan(name, face):
    step = STEPS[name]
    compiled = ns.scan(step, mode="python")
    for initial in (*orders(), *orders()):
        path, state = [], initial
        for _ in range(3):
            state = step(state)
            path.append(state)
        expected = {key: np.array([row[key] for row in path]) for key in path[-1]}
        if face == "scan":
            same(ns.scan(step, outputs_info=[initial], n_steps=3, mode="python")[0], expected)
        else:
            same(compiled(outputs_info=[initial], n_steps=3), expected)


def test_outputs_and_arguments_of_a_scan():
    step = ns.scan(lambda row, d: {key: value * row for key, value in d.items()}, mode="python")
    for d in (*orders(), *orders()):
        same(step(A, non_sequences=[d]), {key: np.outer(A, value) for key, value in d.items()})


def test_arrays_to_write_into_in_another_order():
    step = ns.scan(lambda row, d: {key: value * row for key, value in d.items()}, mode="python")
    for d in orders():
        for out in ({"a": np.empty((2, 2)), "b": np.empty((2, 2))}, {"b": np.empty((2, 2)), "a": np.empty((2, 2))}):
            same(step(A, non_sequences=[d], out=out), {key: np.outer(A, value) for key, value in d.items()})
            for key in d:
                np.testing.assert_array_equal(out[key], np.outer(A, d[key]))


def test_updates_have_the_order_of_the_step():
    a, b = ns.shared(1.0, name="a"), ns.shared(10.0, name="b")
    step = ns.scan(lambda k, d: (k, {name: d[name.name] * k for name in ((a, b) if next(iter(d)) == "a" else (b, a))}), mode="python")
    for d in ({"a": 2.0, "b": 3.0}, {"b": 3.0, "a": 2.0}):
        step(np.array([5.0]), non_sequences=[d])
        assert (float(a.get_value()), float(b.get_value())) == (10.0, 15.0)


def test_rules_of_custom_vjp():
    @ns.custom_vjp
    def f(d):
        return {"x": d["a"] * 2, "y": d["b"]}

    f.defvjp(lambda d: ({"y": d["b"], "x": d["a"] * 2}, d), lambda d, g: ({"b": g["y"] * 5, "a": g["x"] * 7},))
    slope = ns.grad(ns.jit(lambda d: sum(np.sum(value) for value in f(d).values()), mode="python"))
    for d in (*orders(), *orders()):
        same(slope(d), {key: {"a": 7, "b": 5}[key] * np.ones(2) for key in d})


def test_keys_that_are_equal_and_of_another_type():
    compiled = ns.jit(lambda d: {key: value * 2 for key, value in d.items()}, mode="python")
    for key in (1, True, 1.0, 1):
        (found,) = compiled({key: A})
        assert type(found) is type(key)
