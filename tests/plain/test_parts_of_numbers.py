"""Functions that take numbers apart give what Python gives: also of zeros of both signs, infinity, NaN and subnormals."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns

NUMBERS = [0.0, -0.0, 1.0, -2.5, 0.1, 3.0, 7.5, -1e300, 1.7e308, 5e-324, -2.3e-308, math.inf, -math.inf, math.nan]


def _value(f: Callable[..., Any], *args: Any) -> Any:
    """What Python gives; nan where it finds no number, inf where the number is too large."""
    try:
        return f(*args)
    except OverflowError:
        return math.copysign(math.inf, args[0])
    except ValueError:
        return math.nan


@pytest.mark.parametrize("f", [math.frexp, math.ulp, lambda x: x.is_integer()])
def test_of_one_number(f: Callable[..., Any]) -> None:
    jitted = ns.jit(lambda x: f(x))
    for x in NUMBERS:
        for mine, theirs in zip(np.ravel(jitted(x)), np.ravel(f(x)), strict=True):
            np.testing.assert_array_equal(mine, theirs)
            assert np.signbit(mine) == np.signbit(theirs) or np.isnan(theirs)


def test_remainders_are_those_of_python() -> None:
    jitted = ns.jit(lambda x, y: math.remainder(x, y))
    for x in NUMBERS:
        for y in NUMBERS:
            np.testing.assert_array_equal(jitted(x, y), _value(math.remainder, x, y))
    for x in np.random.default_rng(0).normal(size=50) * 20:
        assert jitted(x, 3.0) == math.remainder(x, 3.0)
    assert ns.grad(lambda x: math.remainder(x, 3.0))(4.7) == 1.0


@pytest.mark.parametrize("n", [0, 1, -1, 52, -52, -1022, -1074, -1075, -1090, -2000, 1023, 2000, 2**40, -(2**40)])
def test_products_with_powers_of_two_are_rounded_once(n: int) -> None:
    jitted = ns.jit(lambda x, n: math.ldexp(x, n))
    for x in [*NUMBERS, 1.5, 1 + 2**-52, 0.7499999999999999]:
        expected = _value(math.ldexp, x, n)
        np.testing.assert_array_equal(jitted(x, n), expected)
        assert np.signbit(jitted(x, n)) == np.signbit(expected) or np.isnan(expected)


def test_powers_modulo_a_number() -> None:
    jitted = ns.jit(lambda a, b, m: pow(a, b, m))
    for args in [(5, 3, 7), (-5, 3, 7), (5, 3, -7), (3, 10**12, 10**9 + 7), (2, 0, 1), (0, 0, 5), (7, 5, -1), (10**18, 9, 3037000500)]:
        assert jitted(*args) == pow(*args)
    for args, error in [((2, 3, 0), ValueError), ((2, -1, 7), ValueError), ((2, 3, 2**40), OverflowError)]:
        with pytest.raises(error):
            jitted(*args)
    with pytest.raises(TypeError, match="all arguments are integers"):
        jitted(2.0, 3, 5)


def test_ones_of_a_binary_number() -> None:
    jitted = ns.jit(lambda n: (bin(n).count("1"), bin(n)[2:].count("1")))
    for n in (0, 1, 5, -5, 255, 2**62, -(2**63)):
        assert jitted(n) == (bin(n).count("1"), bin(n).count("1"))
    others = [
        lambda n: len(bin(n)),
        lambda n: bin(n).count("0"),
        lambda n: bin(n) == "0b1",
        lambda n: hex(n)[2:],
        lambda n: int(bin(n)[2:]),
    ]
    for f in others:
        with pytest.raises(TypeError, match=r"only the run knows its digits; write n.bit_count\(\)"):
            ns.jit(f)(5)


COMPLEX = [complex(x, y) for x in (0.0, -0.0, 1.0, -2.0, math.inf) for y in (0.0, -0.0, 2.0, -1.0, -math.inf)]


def test_angles_of_complex_numbers() -> None:
    jitted = ns.jit(lambda z: (cmath.phase(z), cmath.polar(z), cmath.isnan(z), cmath.isinf(z), cmath.isfinite(z)))
    for z in COMPLEX:
        expected = cmath.phase(z), cmath.polar(z), cmath.isnan(z), cmath.isinf(z), cmath.isfinite(z)
        mine = jitted(z)
        np.testing.assert_allclose(mine[:1] + mine[1], expected[:1] + expected[1], rtol=1e-14)
        assert mine[2:] == expected[2:]
    bases = ns.jit(lambda z: (cmath.log(z), cmath.log(z, 2)))
    np.testing.assert_allclose(bases(1 + 2j), (cmath.log(1 + 2j), cmath.log(1 + 2j, 2)), rtol=1e-14)
    near = ns.jit(lambda a, b: cmath.isclose(a, b, rel_tol=1e-3))
    for a, b in [(1 + 2j, 1 + 2.001j), (1 + 2j, 1 + 2.1j), (complex(math.inf, 0), complex(math.inf, 0)), (complex(math.inf, 0), 1j)]:
        assert near(a, b) == cmath.isclose(a, b, rel_tol=1e-3)


def test_complex_numbers_of_lengths_and_angles() -> None:
    jitted = ns.jit(lambda r, phi: cmath.rect(r, phi))
    for r in (0.0, 1.0, -2.0, math.inf, -math.inf, math.nan):
        for phi in (0.0, -0.0, 1.0, -3.0):
            np.testing.assert_allclose(jitted(r, phi), cmath.rect(r, phi), rtol=1e-14, atol=1e-15)
    assert jitted(0.0, math.inf) == cmath.rect(0.0, math.inf)


@pytest.mark.parametrize("name", ["hanning", "hamming", "blackman", "bartlett"])
def test_windows_of_as_many_points_as_the_run_says(name: str) -> None:
    window = getattr(np, name)
    jitted = ns.jit(lambda n: window(n))
    for n in (-1, 0, 1, 2, 5, 8):
        np.testing.assert_allclose(jitted(n), window(n), rtol=1e-14, atol=1e-15)
    x = np.linspace(0.0, 1.0, 40)
    np.testing.assert_allclose(ns.jit(lambda x: x * window(len(x)))(x), x * window(40), rtol=1e-14, atol=1e-15)


def test_kaisers_window() -> None:
    jitted = ns.jit(lambda n, beta: np.kaiser(n, beta))
    for n in (0, 1, 2, 5, 8):
        for beta in (0.0, 2.0, 14.0):
            np.testing.assert_allclose(jitted(n, beta), np.kaiser(n, beta), rtol=1e-12)
    with pytest.raises(TypeError, match="a whole number"):
        jitted(5.5, 1.0)


@pytest.mark.parametrize("module", [math, cmath], ids=lambda module: module.__name__)
@pytest.mark.parametrize("x", [1.0, -2.5, math.inf, -math.inf, math.nan])
def test_what_is_told_of_a_number_is_pythons_own_truth(module, x):
    def told(x, y):
        near = module.isclose(x, y, rel_tol=0.1)
        return near + near, -module.isfinite(x), module.isinf(x) + module.isnan(y) + module.isinf(y)

    jitted = ns.jit(told)
    for y in (x, 1.05, math.inf):
        assert [int(one) for one in jitted(x, y)] == [int(one) for one in told(x, y)]
