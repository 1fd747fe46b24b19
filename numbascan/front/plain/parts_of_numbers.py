"""Functions of Python and NumPy that take a number apart: its digits, its exponent, its angle, what is left of a division; windows."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ...ops.card import card_named
from ...ops.raising import RAISING
from ..numpy.creation import arange
from ..numpy.reductions import searchsorted
from ..variable import METHODS, Variable, as_variable, at_line, implements, op
from .calls import replaces
from .functions import _constructor, _is_traced, _is_whole, _number
from .loops import repeat
from .truth import python_bool

# digits ---------------------------------------------------------------------------------------------------------------


@implements(method="is_integer")
def _is_integer(x: Variable) -> Any:
    """Whether a number is whole. NaN and infinity are not."""
    if x.ndim or x.type.kind not in "biuf":
        raise AttributeError(f"{x!r} has no attribute 'is_integer'{at_line()}")
    return python_bool(np.isfinite(x) & (np.floor(x) == x)) if x.type.kind == "f" else True


class _Digits:
    """`bin(n)` of a traced n: the number of its ones is known to the run, its text is not."""

    def __init__(self, n: Variable, name: str) -> None:
        self._n, self._name = n, name

    def count(self, digit: str) -> Any:
        """How often a digit occurs."""
        if digit != "1" or self._name != "bin":
            self._refuse()
        return METHODS["bit_count"](self._n)

    def __getitem__(self, index: Any) -> _Digits:
        if index != slice(2, None) or self._name != "bin":  # the ones are behind 0b, or -0b
            self._refuse()
        return self

    def _refuse(self, *_: Any) -> NoReturn:
        raise TypeError(
            f"{self._name}(n) of a traced number{at_line()}: only the run knows its digits; write n.bit_count(), n.bit_length(), or "
            "(n >> k) & 1 for digit k"
        )

    __len__ = __int__ = __iter__ = __contains__ = __eq__ = __add__ = __radd__ = __format__ = _refuse
    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()


def _digits(known: Callable[[Any], str]) -> Callable[[Any], Any]:
    def function(n: Any) -> Any:
        if not _is_traced(n):
            return known(n)
        if as_variable(n).type.kind not in "biu" or as_variable(n).ndim:
            raise TypeError(f"'{as_variable(n).type.dtype}' object cannot be interpreted as an integer: {known.__name__}{at_line()}")
        return _Digits(as_variable(n), known.__name__)

    return function


for _known in (bin, oct, hex):
    replaces(_known)(_digits(_known))


_LARGEST = 3037000500  # the product of two remainders fits into 64 bits


@replaces(pow)
def _pow(base: Any, exp: Any, mod: Any = None) -> Any:
    if not _is_traced(base, exp, mod):
        return base**exp if mod is None else pow(base, exp, mod)
    if mod is None:
        return pow(base, exp)
    if any(as_variable(one).type.kind not in "biu" for one in (base, exp, mod)):
        raise TypeError(f"pow() 3rd argument not allowed unless all arguments are integers{at_line()}")
    base, exp, mod = (_number(one, "int64") for one in (base, exp, mod))
    modulus = _checked(mod, mod != 0, "ValueError", "pow() 3rd argument cannot be 0")
    text = f"pow(a, b, m) with m beyond {_LARGEST}: products do not fit into 64 bits"
    size = abs(_checked(modulus, (modulus <= _LARGEST) & (modulus >= -_LARGEST), "OverflowError", text))
    text = "pow(a, b, m) with a negative b is an inverse: write Euclid's algorithm"
    rest, factor, result = _checked(exp, exp >= 0, "ValueError", text), base % size, 1 % size

    def square() -> None:
        nonlocal rest, factor, result
        result = np.where((rest & 1) != 0, result * factor % size, result)
        factor, rest = factor * factor % size, rest >> 1

    repeat(lambda: rest != 0, square, ("rest", "factor", "result"), ())
    return _number(as_variable(result) % modulus, "int64")


def _checked(x: Any, holds: Any, error: str, message: str) -> Any:
    return op(RAISING, as_variable(x), as_variable(holds), error=error, message=message)


# exponents ------------------------------------------------------------------------------------------------------------

_LEAST, _MOST = -1074, 1023
_POWERS = np.ldexp(1.0, np.arange(_LEAST, _MOST + 1))  # all powers of 2 that are floats


def _power(exponent: Any) -> Any:
    """2**exponent, exactly, for exponents in range."""
    return as_variable(_POWERS)[np.clip(exponent, _LEAST, _MOST) - _LEAST]


def _apart(x: Any) -> tuple[Any, Any, Any]:
    """x as m * 2**e with 0.5 <= |m| < 1, and whether it has such parts: zero, infinity and NaN have none, and are m."""
    has_parts = np.isfinite(x) & (x != 0)
    exponent = np.where(has_parts, searchsorted(_POWERS, abs(x), side="right") + _LEAST, 0)
    half = exponent // 2
    return np.where(has_parts, x * _power(-half) * _power(half - exponent), x), exponent, has_parts


def _whole_of(x: Any) -> Any:
    return _number(x, "int64")


@replaces(math.frexp)
def _frexp(x: Any) -> Any:
    if not _is_traced(x):
        return math.frexp(x)
    mantissa, exponent, _ = _apart(_number(x, "float64"))
    return _number(mantissa, "float64"), _whole_of(exponent)


@replaces(math.ldexp)
def _ldexp(x: Any, i: Any) -> Any:
    if not _is_traced(x, i):
        return math.ldexp(x, i)
    _is_whole(i, "ldexp")
    mantissa, exponent, has_parts = _apart(_number(x, "float64"))
    wanted = np.clip(exponent + np.clip(_whole_of(i), -4000, 4000), -1200, 1100)
    last = np.clip(wanted, _LEAST, _MOST)  # the one product that rounds
    return _number(np.where(has_parts, mantissa * _power(wanted - last) * _power(last), mantissa), "float64")


@replaces(math.ulp)
def _ulp(x: Any) -> Any:
    if not _is_traced(x):
        return math.ulp(x)
    x = abs(_number(x, "float64"))
    _, exponent, has_parts = _apart(x)
    return _number(np.where(np.isfinite(x), np.where(has_parts, _power(exponent - 53), _POWERS[0]), x), "float64")


@replaces(math.remainder)
def _remainder(x: Any, y: Any) -> Any:
    """What is left beside the nearest multiple of y, an even one in the middle between two; nan where Python has an error."""
    if not _is_traced(x, y):
        return math.remainder(x, y)
    x, y = _number(x, "float64"), abs(_number(y, "float64"))
    size = abs(x)
    rest = np.fmod(size, y)
    other = y - rest
    middle = rest - 2.0 * np.fmod(0.5 * (size - rest), y)
    signed = np.copysign(1.0, x) * np.where(rest < other, rest, np.where(rest > other, -other, middle))
    return _number(np.where(np.isinf(y) & np.isfinite(x), x, signed), "float64")


# complex numbers ------------------------------------------------------------------------------------------------------


@replaces(cmath.phase)
def _phase(z: Any) -> Any:
    if not _is_traced(z):
        return cmath.phase(z)
    z = _number(z, "complex128")
    return _number(np.arctan2(z.imag, z.real), "float64")


@replaces(cmath.polar)
def _polar(z: Any) -> Any:
    return (_number(abs(_number(z, "complex128")), "float64"), _phase(z)) if _is_traced(z) else cmath.polar(z)


@replaces(cmath.rect)
def _rect(r: Any, phi: Any) -> Any:
    if not _is_traced(r, phi):
        return cmath.rect(r, phi)
    r, phi = _number(r, "float64"), _number(phi, "float64")
    is_zero = (r == 0) & ~np.isfinite(phi)
    real = np.where(is_zero, 0.0, r * np.cos(phi))
    imag = np.where(is_zero, 0.0, np.where(np.isinf(r) & (phi == 0), np.sign(r) * phi, r * np.sin(phi)))
    return _number(op(card_named("complex"), as_variable(real), as_variable(imag)), "complex128")


# windows --------------------------------------------------------------------------------------------------------------


def _window(form: Callable[..., Any]) -> Callable[..., Any]:
    """A window of M points of a function of the odd or even numbers between -(M - 1) and M - 1, and of M - 1; one point is its middle."""

    def window(M: Any, *more: Any) -> Any:
        if as_variable(M).type.kind not in "iu" or as_variable(M).ndim:
            raise TypeError(f"a window of {M!r} points{at_line()}: how many points it has is a whole number; write int(M)")
        return form(arange(1 - M, M, 2), np.maximum(M - 1, 1), *more)

    return window


def _kaiser(n: Any, last: Any, beta: Any) -> Any:
    place = n / last
    return np.i0(beta * np.sqrt(1 - place * place)) / np.i0(as_variable(beta) * 1.0)


_WINDOWS: dict[Any, Callable[..., Any]] = {
    np.hanning: lambda n, last: 0.5 + 0.5 * np.cos(np.pi * n / last),
    np.hamming: lambda n, last: 0.54 + 0.46 * np.cos(np.pi * n / last),
    np.blackman: lambda n, last: 0.42 + 0.5 * np.cos(np.pi * n / last) + 0.08 * np.cos(2.0 * np.pi * n / last),
    np.bartlett: lambda n, last: 1 - abs(n / last),
    np.kaiser: _kaiser,
}
for _known, _form in _WINDOWS.items():
    _constructor(_known, _window(_form))
