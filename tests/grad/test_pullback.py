"""What ns.vjp pulls back belongs to its value: nothing that changes afterwards plays a part."""

import types

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

MODES = ["python", None]


def changed_to_nan(array):
    array[...] = np.nan


@pytest.mark.parametrize("mode", MODES)
def test_an_array_changed_in_place(mode):
    x = np.array([1.0, 2.0])
    value, pull = ns.vjp(ns.jit(lambda x: x**2, mode=mode), x)
    changed_to_nan(x)
    np.testing.assert_array_equal(value, [1, 4])
    np.testing.assert_array_equal(pull(np.ones(2))[0], [2, 4])
    np.testing.assert_array_equal(pull(2 * np.ones(2))[0], [4, 8])


def test_arrays_in_nests_changed_in_place():
    x = {"b": [np.array([1.0, 2.0]), 3.0], "a": (np.array(4.0), None, np.array([2]))}
    value, pull = ns.vjp(lambda t: t["b"][0] * t["b"][1] * t["a"][0] * t["a"][2][0], x)
    changed_to_nan(x["b"][0])
    changed_to_nan(x["a"][0])
    x["a"][2][0] = 100
    x["b"][1] = 0.0
    (found,) = pull(np.ones(2))
    assert list(found) == ["b", "a"]
    np.testing.assert_array_equal(found["b"][0], [24, 24])
    assert (found["b"][1], found["a"][0], found["a"][1], found["a"][2]) == (24.0, 18.0, None, None)
    np.testing.assert_array_equal(value, [24, 48])


def test_the_value_changed_in_place():
    value, pull = ns.vjp(np.exp, np.array([0.0, 0.0]))
    changed_to_nan(value)
    np.testing.assert_array_equal(pull(np.ones(2))[0], [1, 1])


def reads():
    """(function of x, what changes it): all that a function may read from outside."""
    table, rows, obj, k = np.array([2.0, 2.0]), [2.0], types.SimpleNamespace(rate=2.0), 2.0
    shared, borrowed = ns.shared(np.array([2.0, 2.0])), ns.shared(np.array([2.0, 2.0]))

    def number():
        nonlocal k
        k = 5.0

    return {
        "array": (lambda x: x * table, lambda: changed_to_nan(table)),
        "array read by NumPy": (lambda x: x * float(table.max()), lambda: changed_to_nan(table)),
        "list": (lambda x: x * rows[0], lambda: rows.__setitem__(0, 5.0)),
        "attribute": (lambda x: x * obj.rate, lambda: setattr(obj, "rate", 5.0)),
        "number": (lambda x: x * k, number),
        "shared": (lambda x: x * shared, lambda: shared.set_value([5.0, 5.0])),
        "shared, in place": (lambda x: x * borrowed, lambda: changed_to_nan(borrowed.get_value(borrow=True))),
    }


@pytest.mark.parametrize("what", reads())
@pytest.mark.parametrize("is_pulled_before", [False, True])
def test_what_the_function_reads_from_outside(what, is_pulled_before):
    f, change = reads()[what]
    value, pull = ns.vjp(f, np.array([1.0, 3.0]))
    if is_pulled_before:
        pull(np.ones(2))
    change()
    np.testing.assert_array_equal(value, [2, 6])
    np.testing.assert_array_equal(pull(np.ones(2))[0], [2, 2])
    cotangent = nt.dvector("cotangent")
    np.testing.assert_array_equal(ns.function([cotangent], pull(cotangent)[0])(np.ones(2)), [2, 2])


def test_residuals_and_rules_of_custom_vjp():
    scale = np.array([3.0, 3.0])

    @ns.custom_vjp
    def f(x):
        return x * 2

    f.defvjp(lambda x: (x * 2, x), lambda x, g: (g * x * scale,))
    x = np.array([1.0, 5.0])
    _, pull = ns.vjp(f, x)
    changed_to_nan(x)
    changed_to_nan(scale)
    np.testing.assert_array_equal(pull(np.ones(2))[0], [3, 15])


def test_a_scan_over_an_array_changed_in_place():
    x, weights = np.linspace(0.1, 0.5, 5), np.array(2.0)

    def f(x):
        return ns.scan(lambda row, s: np.sin(s) + row * weights, x, 0.0, return_updates=False)

    _, pull = ns.vjp(f, x)
    expected = pull(np.ones(5))[0]
    changed_to_nan(x)
    changed_to_nan(weights)
    np.testing.assert_array_equal(pull(np.ones(5))[0], expected)


def test_in_a_compiled_function_every_call_has_the_values_of_its_own():
    table = np.array([2.0, 3.0])

    @ns.jit
    def both(x):
        value, pull = ns.vjp(lambda y: y * table, x)
        return value, pull(np.ones(2))[0]

    for _ in range(2):
        value, slope = both(np.array([1.0, 1.0]))
        np.testing.assert_array_equal(value, table)
        np.testing.assert_array_equal(slope, table)
        table *= 2


def test_arrays_alone_in_a_compiled_function():
    table = np.array([2.0, 3.0])

    @ns.jit
    def f(x):
        value, pull = ns.vjp(lambda y: y**2, table)
        return value * x, pull(x)[0]

    for _ in range(2):
        value, slope = f(np.array([1.0, 10.0]))
        np.testing.assert_array_equal(value, table**2 * [1, 10])
        np.testing.assert_array_equal(slope, 2 * table * [1, 10])
        table += 1


def test_many_cotangents_of_one_call():
    _, pull = ns.vjp(lambda x: {"b": x * 2, "a": (x.sum(), 3)}, np.arange(3.0))
    for b, a in ((np.ones(3), 1.0), (np.ones(3, "float32"), 2), ([1.0, 1.0, 1.0], np.float32(3)), (np.ones(3), 0)):
        for cotangent in ({"b": np.array(b), "a": (a, 0)}, {"a": (a, 0), "b": np.array(b)}):
            np.testing.assert_allclose(pull(cotangent)[0], 2 + float(a) * np.ones(3))
    with pytest.raises(ValueError, match="give the same nest"):
        pull({"b": np.ones(3)})
    with pytest.raises(ValueError, match="cotangent"):
        pull({"b": np.ones(2), "a": (1.0, 0)})
    with pytest.raises(TypeError, match="complex"):
        pull({"b": np.ones(3) * 1j, "a": (1.0, 0)})
