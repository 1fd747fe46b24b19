"""`exp` and `tanh` in lanes as arithmetic that LLVM's vectoriser takes as it is: no call, and the same bits in vectors of all lengths.

With y = k ln 2 + r, k an integer and |r| <= ln(2) / 2, exp(y) = 2**k + 2**k expm1(r). A polynomial gives expm1(r): Taylor's, whose rest is
below a tenth of the last digit. exp(x) adds the two; tanh(x) = t / (t + 2) for t = expm1(2 |x|) = 2**k expm1(r) + (2**k - 1), with the
sign of x. Each step rounds once, with fused multiplications and additions: so this is for processors that have them.

A function of libmvec takes longer, and the loop around it as well, since no vector register outlives a call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import factorial
from typing import Any

from llvmlite import ir


@dataclass(frozen=True)
class _Format:
    """A format of numbers. ln2: ln(2) in two parts, the first with few digits, so that its product with k is exact."""

    bits: int
    digits: int  # of the mantissa that are stored
    degree: int  # of the polynomial
    ln2: tuple[float, float]
    lowest: float  # exp vanishes below
    highest: float  # exp overflows above
    one: float  # from which on tanh is 1

    @property
    def integer(self) -> ir.Type:
        return ir.IntType(self.bits)

    @property
    def to_integer(self) -> float:
        """The constant that puts the nearest integer of a number into the last digits, when it is added."""
        return 1.5 * 2.0**self.digits

    @property
    def bias(self) -> int:
        return 127 if self.bits == 32 else 1023


_DOUBLE = _Format(64, 52, 13, (6.93147180369123816490e-01, 1.90821492927058770002e-10), -746.0, 710.0, 20.0)
_FLOAT = _Format(32, 23, 8, (6.9314575195e-01, 1.4286067653e-06), -105.0, 89.0, 10.0)
_LOG2_E = 1.4426950408889634


class _Arithmetic:
    """Numbers of a format in LLVM's text."""

    def __init__(self, builder: Any, type_: Any) -> None:
        self.builder, self.type = builder, type_
        self.format = _DOUBLE if isinstance(type_, ir.DoubleType) else _FLOAT

    def number(self, value: float) -> Any:
        return self.type(value)

    def fused(self, x: Any, y: Any, z: Any) -> Any:
        """x * y + z."""
        return self.call("llvm.fma", x, y, z)

    def call(self, name: str, *args: Any) -> Any:
        kind = ir.FunctionType(self.type, [self.type] * len(args))
        return self.builder.call(self.builder.module.declare_intrinsic(name, [self.type], kind), args)

    def least(self, x: Any, bound: float) -> Any:
        """The lesser of x and a number; NaN stays."""
        return self.builder.select(self.builder.fcmp_ordered(">", x, self.number(bound)), self.number(bound), x)

    def greatest(self, x: Any, bound: float) -> Any:
        return self.builder.select(self.builder.fcmp_ordered("<", x, self.number(bound)), self.number(bound), x)

    def power_of_two(self, k: Any) -> Any:
        """2**k of an integer, for results that are neither denormal nor infinite."""
        form, builder = self.format, self.builder
        shifted = builder.shl(builder.add(k, form.integer(form.bias)), form.integer(form.digits))
        return builder.bitcast(shifted, self.type)

    def split(self, y: Any) -> tuple[Any, Any]:
        """k and expm1(r) for y = k ln 2 + r."""
        form, builder = self.format, self.builder
        shifted = self.fused(y, self.number(_LOG2_E), self.number(form.to_integer))
        whole = builder.fsub(shifted, self.number(form.to_integer))
        k = builder.sub(builder.bitcast(shifted, form.integer), form.integer(_bits_of(form)))
        r = y
        for part in form.ln2:
            r = self.fused(whole, self.number(-part), r)
        rest = self._sum([1.0 / factorial(n) for n in range(2, form.degree + 1)], r)
        return k, self.fused(builder.fmul(r, r), rest, r)

    def _sum(self, factors: Sequence[float], r: Any) -> Any:
        """The polynomial with these coefficients, in pairs (Estrin): a chain of four sums instead of twelve."""
        powers, terms = r, [self.number(factor) for factor in factors]
        while len(terms) > 1:
            pairs = [self.fused(terms[k + 1], powers, terms[k]) for k in range(0, len(terms) - 1, 2)]
            terms = pairs + terms[2 * len(pairs) :]
            powers = self.builder.fmul(powers, powers) if len(terms) > 1 else powers
        return terms[0]


def _bits_of(form: _Format) -> int:
    """The integer that has the bits of `to_integer`."""
    return (form.bias + form.digits << form.digits) + (1 << form.digits - 1)


def _exp(builder: Any, x: Any) -> Any:
    numbers = _Arithmetic(builder, x.type)
    form = numbers.format
    k, rest = numbers.split(numbers.greatest(numbers.least(x, form.highest), form.lowest))
    half = builder.ashr(k, form.integer(1))  # 2**k itself may be denormal or infinite where the result is not
    first, second = numbers.power_of_two(half), numbers.power_of_two(builder.sub(k, half))
    return builder.fmul(numbers.fused(first, rest, first), second)


def _tanh(builder: Any, x: Any) -> Any:
    numbers = _Arithmetic(builder, x.type)
    size = numbers.least(numbers.call("llvm.fabs", x), numbers.format.one)
    k, rest = numbers.split(builder.fadd(size, size))
    scale = numbers.power_of_two(k)
    t = numbers.fused(scale, rest, builder.fsub(scale, numbers.number(1.0)))
    value = builder.fdiv(t, builder.fadd(t, numbers.number(2.0)))
    return numbers.call("llvm.copysign", value, x)


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {"exp": _exp, "tanh": _tanh}
"""By name: (builder, x) -> the value."""
