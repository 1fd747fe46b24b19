"""Numbers that a function reads from outside: in work with floats they are values of the run, exponents and shapes are in the code."""

import functools
import math
import types
import warnings

import numpy as np
import pytest

import numbascan as ns
from numbascan import backends

RATE = 0.3
PLACE = types.SimpleNamespace(rate=0.3)
TABLE = [0.3]
VALUES = [0.1, 0.7, 1e-300, 1e30, -0.9, math.pi]


@pytest.fixture
def compiled(monkeypatch):
    """How often code was loaded or compiled."""
    count, load = [], backends.load
    monkeypatch.setattr(backends, "load", lambda text, name: count.append(name) or load(text, name))
    return count


def readers():
    """For each place of a number: what sets it, and a function that reads it."""
    rate = 0.3

    def set_cell(value):
        nonlocal rate
        rate = value

    yield set_cell, lambda x: x * rate - rate / x
    yield lambda value: globals().__setitem__("RATE", value), lambda x: x * RATE - RATE / x
    yield lambda value: setattr(PLACE, "rate", value), lambda x: x * PLACE.rate - PLACE.rate / x
    yield lambda value: TABLE.__setitem__(0, value), lambda x: x * TABLE[0] - TABLE[0] / x


def test_another_float_compiles_nothing(compiled):
    x = np.array([0.5, 3.0, -7.0])
    for change, f in readers():
        made, plain = ns.jit(f), ns.jit(f, mode="python")
        before = None
        for value in VALUES:
            change(value)
            for argument in (x, x.astype("float32")):
                with np.errstate(all="ignore"):
                    expected = f(argument)
                got = made(argument)
                assert got.dtype == expected.dtype
                np.testing.assert_array_equal(got, expected)
                np.testing.assert_array_equal(got, plain(argument))
            before = len(compiled) if before is None else before
        assert len(compiled) == before


def test_loops_gradients_and_pullbacks_see_another_float(compiled):
    @ns.scan
    def decay(s):
        return s * RATE

    slope = ns.grad(lambda x: decay(outputs_info=x, n_steps=3)[-1])
    pulled = ns.vjp(lambda x: x * RATE, np.float32(2.0))[1]
    counts = []
    for value in VALUES[:3]:
        globals()["RATE"] = value
        assert decay(outputs_info=2.0, n_steps=2).tolist() == [2.0 * value, 2.0 * value * value]
        assert slope(2.0) == pytest.approx(value**3, rel=1e-14)
        (back,) = pulled(np.float32(1.0))
        counts.append(len(compiled))
    assert counts[0] == counts[-1]
    assert back.dtype == np.float32  # of the value that the call saw


def test_what_python_makes_of_a_number_is_handed_over_from_the_second_value_on(compiled):
    x = np.array([0.5, 3.0, -7.0])

    def f(x):
        return -RATE * x + (1 - RATE) * x * x + 2 * RATE - np.exp(RATE) / x + x * RATE**2

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind, dtype in ((np.float64, "float32"), (complex, "float64"), (int, "float32")):
            made, plain = ns.jit(f), ns.jit(f, mode="python")
            compiled.clear()
            for value in (np.linspace(0, 1, 7) * (6 if kind is int else 1)).tolist():
                globals()["RATE"] = kind(value)
                given = x.astype(dtype)
                expected, got = f(given), made(given)
                assert got.dtype == expected.dtype
                np.testing.assert_allclose(got, expected, rtol=1e-15 if got.dtype.itemsize > 4 else 1e-6)
                np.testing.assert_array_equal(got, plain(given))
            assert len(compiled) <= 3


def test_numbers_of_numpy_keep_their_dtype(compiled):
    x = np.array([0.5, 3.0, -7.0], "float32")
    before = None
    for kind, (change, f) in zip((np.float32, np.float64, np.complex64, np.array, complex), [*readers(), *readers()], strict=False):
        made, plain = ns.jit(f), ns.jit(f, mode="python")
        for k, value in enumerate(np.linspace(0.3, 0.9, 5)):
            change(kind(value))
            expected, got = f(x), made(x)
            assert got.dtype == expected.dtype == plain(x).dtype
            np.testing.assert_allclose(got, expected, rtol=1e-6)
            np.testing.assert_array_equal(got, plain(x))
            if k == 0:
                before = len(compiled)
        assert len(compiled) == before


def test_steps_made_anew_share_code_whatever_number_they_hold(compiled):
    def ends(rate):
        return ns.scan(lambda s: s - 0.1 * rate * s + 1 / (1 + rate), outputs_info=1.0, n_steps=3)[0].tolist()

    def by_hand(rate):
        s, rows = 1.0, []
        for _ in range(3):
            s = s - 0.1 * rate * s + 1 / (1 + rate)
            rows.append(s)
        return rows

    for rate in (*np.linspace(0, 1, 9), *range(4)):
        assert ends(rate) == pytest.approx(by_hand(rate), rel=1e-15)
    assert len(compiled) <= 6  # np.float64 and int, each at most three times


def test_bound_and_default_and_partial_numbers_are_handed_over(compiled):
    counts = []
    for value in (0.3, 0.7, 0.9):
        for f in (lambda x, rate=value: x * rate, functools.partial(lambda rate, x: x * rate, value)):
            assert ns.jit(f)(2.0) == 2.0 * value
            assert len(ns.jit(f).lower(2.0).graph.inputs) == 2
        counts.append(len(set(compiled)))
    assert counts[0] == counts[-1]


def test_a_number_that_becomes_an_input_is_as_exact_as_in_the_code():
    """Whole numbers beyond 2**24 and floats beyond float32 stay in the code; an integer that does not fit is an error at any time."""
    number = 1
    f = ns.jit(lambda x: x * number)
    x = np.array([1.5, -2.0], "float32")
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in (3, 2**24 + 1, 2**60 + 1, 5, 1e300, math.nan, 0.1, -math.inf, -0.0, True, np.int8(3), 7):
            expected, got = x * number, f(x)
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(got, expected)
        small = np.array([1], "int8")
        for number in (3, 4):
            assert f(small).tolist() == [number]
        number = 300
        with pytest.raises(OverflowError):
            f(small)


def test_whole_numbers_exponents_and_simple_floats_are_in_the_code():
    power, factor, root = 3, 1.0, 0.7
    f = ns.jit(lambda x: (x**power) * factor + x**root)
    assert f(4.0) == pytest.approx(64 + 4**0.7, rel=1e-15)
    assert len(f.graph.inputs) == 1


def test_the_third_time_a_fixed_number_is_named():
    count = 1
    f = ns.jit(lambda x: x[:count], mode="python")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for count in (1, 2, 2, 1.0 and 2):
            assert f(np.arange(5.0)).shape == (count,)
    count = 3
    with pytest.warns(
        RuntimeWarning, match=r"compiled for the 3rd time because count.*another value \(3, before 2\).*pass count as an argument"
    ):
        assert f(np.arange(5.0)).shape == (3,)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.0, -0.0, 1e300])
def test_special_floats_are_what_they_are(value):
    rate = 0.3
    x = np.array([1.0, -2.0], dtype="float32")
    f = ns.jit(lambda x: x * rate, mode="python")
    f(x)
    rate = value
    with np.errstate(all="ignore"):
        expected = x * value
    got = f(x)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))
