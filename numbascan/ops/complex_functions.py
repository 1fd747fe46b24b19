"""Complex functions of one number, by real arithmetic in double precision. `emit/runtime/scalars.py` compiles them as they stand.

Numba's own raise ZeroDivisionError for some arguments, overflow early (exp(710 + 1j)) and lose digits near branch points.
Finite arguments give NumPy's value up to rounding. For an infinite or NaN argument a part may be NaN where the C standard
has a number. Inverse functions after W. Kahan, "Branch cuts for complex elementary functions" (1987).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

LN2 = math.log(2.0)
LARGE = 2.0**510  # squares of greater numbers may overflow
MAX_POWER = 100  # integer exponents below it are done by multiplication


def complex_square(z: Any) -> Any:
    """z * z."""
    return z * z


def complex_divide(a: Any, b: Any) -> Any:
    """a / b by R. L. Smith's method; by zero: infinities and NaN."""
    x, y = np.float64(b.real), np.float64(b.imag)
    u, v = np.float64(a.real), np.float64(a.imag)
    if x == 0 and y == 0:
        return type(a)(complex(u / abs(x), v / abs(x)))
    if abs(x) >= abs(y):
        ratio = y / x
        scale = 1.0 / (x + y * ratio)
        return type(a)(complex((u + v * ratio) * scale, (v - u * ratio) * scale))
    ratio = x / y
    scale = 1.0 / (y + x * ratio)
    return type(a)(complex((u * ratio + v) * scale, (v * ratio - u) * scale))


def complex_reciprocal(z: Any) -> Any:
    """1 / z; of zero: NaN."""
    x, y = np.float64(z.real), np.float64(z.imag)
    if abs(y) <= abs(x):
        ratio = y / x
        scale = x + y * ratio
        return type(z)(complex(1.0 / scale, -ratio / scale))
    ratio = x / y
    scale = x * ratio + y
    return type(z)(complex(ratio / scale, -1.0 / scale))


def complex_sign(z: Any) -> Any:
    """z / |z|; 0 for 0."""
    x, y = np.float64(z.real), np.float64(z.imag)
    size = math.hypot(x, y)
    if size == 0:
        return type(z)(0)
    if math.isinf(x) != math.isinf(y):
        return type(z)(complex(math.copysign(1.0, x), 0.0)) if math.isinf(x) else type(z)(complex(0.0, math.copysign(1.0, y)))
    return type(z)(complex(x / size, y / size))


def _sqrt(x: float, y: float) -> tuple[float, float]:
    """Real and imaginary part of the principal root."""
    if x == 0 and y == 0:
        return 0.0, y
    if math.isinf(y):
        return math.inf, y
    if math.isinf(x):
        rest = y - y
        return (x, math.copysign(rest, y)) if x > 0 else (abs(rest), math.copysign(x, y))
    scale = 1.0
    if abs(x) > LARGE or abs(y) > LARGE:
        x, y, scale = x * 0.0625, y * 0.0625, 4.0
    elif abs(x) < 1.0 / LARGE and abs(y) < 1.0 / LARGE:  # subnormal numbers have few digits
        x, y, scale = x * 2.0**108, y * 2.0**108, 2.0**-54
    root = math.sqrt(0.5 * (abs(x) + math.hypot(x, y)))
    other = 0.5 * y / root
    if x >= 0:
        return root * scale, other * scale
    return abs(other) * scale, math.copysign(root, y) * scale


def complex_sqrt(z: Any) -> Any:
    """The root with a real part >= 0."""
    x, y = _sqrt(np.float64(z.real), np.float64(z.imag))
    return type(z)(complex(x, y))


def _exp(x: float, y: float, factor: float = 1.0) -> tuple[float, float]:
    """Real and imaginary part of factor * exp(z)."""
    if y == 0:
        return math.exp(x) * factor, y
    if x == -math.inf and not math.isfinite(y):
        return 0.0, 0.0
    if x == math.inf and not math.isfinite(y):
        return x, math.nan
    if x > 700.0:  # a product with a small cosine may be finite
        x, factor = x - 350.0, math.exp(350.0) * factor
    size = math.exp(x)
    return size * math.cos(y) * factor, size * math.sin(y) * factor


def complex_exp(z: Any) -> Any:
    """exp(x) (cos y + i sin y)."""
    x, y = _exp(np.float64(z.real), np.float64(z.imag))
    return type(z)(complex(x, y))


def complex_exp2(z: Any) -> Any:
    """exp(z log 2)."""
    x, y = _exp(np.float64(z.real) * LN2, np.float64(z.imag) * LN2)
    return type(z)(complex(x, y))


def complex_expm1(z: Any) -> Any:
    """exp(z) - 1 without cancellation."""
    x, y = np.float64(z.real), np.float64(z.imag)
    half = math.sin(y / 2.0)
    return type(z)(complex(math.expm1(x) * math.cos(y) - 2.0 * half * half, _exp(x, y)[1]))


def _log(x: float, y: float) -> tuple[float, float]:
    """log |z|, exact near |z| = 1, and the angle."""
    angle = math.atan2(y, x)
    big, small = max(abs(x), abs(y)), min(abs(x), abs(y))
    if 0.5 < big < 2.0 and small < 2.0:
        return 0.5 * math.log1p((big - 1.0) * (big + 1.0) + small * small), angle
    if big > LARGE:
        return math.log(math.hypot(x * 0.25, y * 0.25)) + 2.0 * LN2, angle
    if 0.0 < big < 1.0 / LARGE:
        return math.log(math.hypot(x * 2.0**108, y * 2.0**108)) - 108.0 * LN2, angle
    return math.log(math.hypot(x, y)), angle


def complex_log(z: Any) -> Any:
    """log |z| and the angle in (-pi, pi]."""
    x, y = _log(np.float64(z.real), np.float64(z.imag))
    return type(z)(complex(x, y))


def complex_log2(z: Any) -> Any:
    """log(z) / log(2)."""
    x, y = _log(np.float64(z.real), np.float64(z.imag))
    return type(z)(complex(x / LN2, y / LN2))


def complex_log10(z: Any) -> Any:
    """log(z) / log(10)."""
    x, y = _log(np.float64(z.real), np.float64(z.imag))
    return type(z)(complex(x / math.log(10.0), y / math.log(10.0)))


def complex_power(a: Any, b: Any) -> Any:
    """a**b: whole exponents by multiplication, others as exp(b log a); 0**b is 0 for b.real > 0, else NaN."""
    n = np.float64(b.real)
    if n == 0 and b.imag == 0:
        return type(a)(1)
    if a == 0:
        return type(a)(0) if n > 0 else type(a)(complex(math.nan, math.nan))
    if b.imag == 0 and n == np.floor(n) and abs(n) < MAX_POWER:
        left, square, result = int(abs(n)), a, type(a)(1)
        if left & 1:
            result = a
        left >>= 1
        while left:
            square = square * square
            if left & 1:
                result = result * square
            left >>= 1
        return result if n > 0 else complex_divide(type(a)(1), result)
    x, y = _log(np.float64(a.real), np.float64(a.imag))
    u, v = np.float64(b.real), np.float64(b.imag)
    x, y = _exp(u * x - v * y, u * y + v * x)
    return type(a)(complex(x, y))


def _sinh(x: float, y: float) -> tuple[float, float]:
    """sinh x cos y, cosh x sin y."""
    if y == 0:
        return math.sinh(x), y
    if x == 0:
        return math.copysign(0.0, x * math.cos(y)), math.sin(y)
    if abs(x) < 700.0 or not math.isfinite(x):
        return math.sinh(x) * math.cos(y), math.cosh(x) * math.sin(y)
    cosine, sine = _exp(abs(x), y, 0.5)
    return math.copysign(1.0, x) * cosine, sine


def _cosh(x: float, y: float) -> tuple[float, float]:
    """cosh x cos y, sinh x sin y."""
    if y == 0:
        return math.cosh(x), math.copysign(0.0, x) * y
    if x == 0:
        return math.cos(y), x * math.sin(y)
    if abs(x) < 700.0 or not math.isfinite(x):
        return math.cosh(x) * math.cos(y), math.sinh(x) * math.sin(y)
    cosine, sine = _exp(abs(x), y, 0.5)
    return cosine, math.copysign(1.0, x) * sine


def _tanh(x: float, y: float) -> tuple[float, float]:
    if abs(x) > 22.0:  # beyond it the real part is 1 in double precision
        sine = 4.0 * math.sin(y) * math.cos(y) * math.exp(-2.0 * abs(x)) if math.isfinite(y) else 0.0
        return math.copysign(1.0, x), math.copysign(sine, y) if sine == 0 else sine
    tangent, sine = math.tan(y), math.sinh(x)
    stretch = 1.0 + tangent * tangent
    below = 1.0 + stretch * sine * sine
    return stretch * math.sqrt(1.0 + sine * sine) * sine / below, tangent / below


def complex_sinh(z: Any) -> Any:
    """(exp(z) - exp(-z)) / 2."""
    x, y = _sinh(np.float64(z.real), np.float64(z.imag))
    return type(z)(complex(x, y))


def complex_cosh(z: Any) -> Any:
    """(exp(z) + exp(-z)) / 2."""
    x, y = _cosh(np.float64(z.real), np.float64(z.imag))
    return type(z)(complex(x, y))


def complex_tanh(z: Any) -> Any:
    """sinh(z) / cosh(z)."""
    x, y = _tanh(np.float64(z.real), np.float64(z.imag))
    return type(z)(complex(x, y))


def complex_sin(z: Any) -> Any:
    """-i sinh(i z)."""
    x, y = _sinh(-np.float64(z.imag), np.float64(z.real))
    return type(z)(complex(y, -x))


def complex_cos(z: Any) -> Any:
    """cosh(i z)."""
    x, y = _cosh(-np.float64(z.imag), np.float64(z.real))
    return type(z)(complex(x, y))


def complex_tan(z: Any) -> Any:
    """-i tanh(i z)."""
    x, y = _tanh(-np.float64(z.imag), np.float64(z.real))
    return type(z)(complex(y, -x))


def _arcsinh(x: float, y: float) -> tuple[float, float]:
    if abs(x) > LARGE or abs(y) > LARGE:
        return math.copysign(math.log(math.hypot(x / 2.0, y / 2.0)) + 2.0 * LN2, x), math.atan2(y, abs(x))
    a, b = _sqrt(1.0 + y, -x)
    c, d = _sqrt(1.0 - y, x)
    return math.asinh(a * d - c * b), math.atan2(y, a * c - b * d)


def _arccos(x: float, y: float) -> tuple[float, float]:
    if abs(x) > LARGE or abs(y) > LARGE:
        return math.atan2(abs(y), x), -math.copysign(math.log(math.hypot(x / 2.0, y / 2.0)) + 2.0 * LN2, y)
    a, b = _sqrt(1.0 - x, -y)
    c, d = _sqrt(1.0 + x, y)
    return 2.0 * math.atan2(a, c), math.asinh(c * b - d * a)


def complex_arcsinh(z: Any) -> Any:
    """The inverse of sinh, cut along the imaginary axis beyond i and -i."""
    x, y = _arcsinh(np.float64(z.real), np.float64(z.imag))
    return type(z)(complex(x, y))


def complex_arcsin(z: Any) -> Any:
    """The inverse of sin, cut along the real axis beyond 1 and -1."""
    x, y = _arcsinh(-np.float64(z.imag), np.float64(z.real))
    return type(z)(complex(y, -x))


def complex_arccos(z: Any) -> Any:
    """The inverse of cos, cut along the real axis beyond 1 and -1."""
    x, y = _arccos(np.float64(z.real), np.float64(z.imag))
    return type(z)(complex(x, y))


def complex_arccosh(z: Any) -> Any:
    """The inverse of cosh with a real part >= 0, cut along the real axis below 1."""
    x, y = _arccos(np.float64(z.real), np.float64(z.imag))
    if math.copysign(1.0, z.imag) > 0:
        return type(z)(complex(-y, x))
    return type(z)(complex(y, -x))
