"""Comparisons, and functions that choose between values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ir.node import constant, constant_value
from ...ops.compare import COMPARISONS, WHERE
from ...ops.elementary import CAST
from ...tracebacks import entry
from ..variable import METHODS, Variable, as_variable, at_line, implements, is_large, number_as, op
from .shape import result_type
from .shape_arguments import shape_of
from .ufuncs import FUNCTIONS

_cards = {card.name: card for card in COMPARISONS}


def _compare(name: str, x1: Any, x2: Any) -> Variable:
    """An elementwise comparison. A Python integer is compared by its value, as in NumPy, even if the other's dtype cannot hold it."""
    operands = [_beside(x1, x2), _beside(x2, x1)]
    return op(_cards[name], *operands)


def _beside(x: Any, other: Any) -> Any:
    """x as an operand beside `other`. A known Python integer beside an integer takes the dtype of that, or one that holds it.

    Beyond 64 bits it becomes infinite. Beside another Python integer it stays weak, so that the result is a Python bool.
    """
    value = x if type(x) is int else constant_value(x.node) if isinstance(x, Variable) and x.type.weak and x.type.kind in "iu" else None
    type_ = None if value is None or is_large(other) else as_variable(other).type
    if value is None or type_ is None or type_.kind not in "iu":
        return x
    value, info = int(value), np.iinfo(type_.dtype)
    dtype = type_.dtype if info.min <= value <= info.max else None
    return Variable(constant(value if -(2**63) <= value < 2**64 else math.copysign(math.inf, value), dtype, weak=type_.weak))


@implements(np.less)
def less(x1: Any, x2: Any) -> Variable:
    """Whether x1 < x2, elementwise; False beside NaN. Complex numbers: by real, then by imaginary part.

    >>> import numbascan.tensor as nt
    >>> nt.less(nt.dvector("x"), 0)
    <less: bool[?]>
    """
    return _compare("less", x1, x2)


@implements(np.less_equal)
def less_equal(x1: Any, x2: Any) -> Variable:
    """Whether x1 <= x2, elementwise; False beside NaN. Complex numbers: by real, then by imaginary part."""
    return _compare("less_equal", x1, x2)


@implements(np.greater)
def greater(x1: Any, x2: Any) -> Variable:
    """Whether x1 > x2, elementwise; False beside NaN. Complex numbers: by real, then by imaginary part."""
    return _compare("greater", x1, x2)


@implements(np.greater_equal)
def greater_equal(x1: Any, x2: Any) -> Variable:
    """Whether x1 >= x2, elementwise; False beside NaN. Complex numbers: by real, then by imaginary part."""
    return _compare("greater_equal", x1, x2)


@implements(np.equal)
def equal(x1: Any, x2: Any) -> Variable:
    """Whether x1 == x2, elementwise; False beside NaN."""
    return _compare("equal", x1, x2)


@implements(np.not_equal)
def not_equal(x1: Any, x2: Any) -> Variable:
    """Whether x1 != x2, elementwise; True beside NaN."""
    return _compare("not_equal", x1, x2)


@implements(np.isclose)
def isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Variable:
    """Whether |a - b| <= atol + rtol * |b|, elementwise; equal infinities are close.

    >>> import numbascan.tensor as nt
    >>> nt.isclose(nt.dvector("a"), 1.0).dtype
    dtype('bool')
    """
    a, b = as_variable(a), as_variable(b)
    b = b * 1.0 if b.type.kind in "biu" else b  # a difference of whole numbers may wrap
    close: Any = (np.abs(a - b) <= atol + rtol * np.abs(b)) & np.isfinite(b) | (a == b)
    return close | np.isnan(a) & np.isnan(b) if equal_nan else close


@implements(np.allclose)
def allclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Variable:
    """Whether all elements are close, as `isclose` says.

    >>> import numbascan.tensor as nt
    >>> nt.allclose(nt.dvector("a"), 1.0)
    <all: bool[]>
    """
    result: Variable = isclose(a, b, rtol, atol, equal_nan).all()
    return result


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Variable:
    """Whether two arrays have one shape, and the same elements; `equal_nan`: NaN equals NaN.

    >>> import numbascan.tensor as nt
    >>> nt.array_equal(nt.dvector("a"), nt.dvector("b"))
    <bitwise_and: bool[]>
    """
    one, other = as_variable(a1), as_variable(a2)
    sizes, others = shape_of(one), shape_of(other)
    if len(sizes) != len(others) or any(isinstance(n, int) and isinstance(m, int) and n != m for n, m in zip(sizes, others, strict=True)):
        return as_variable(np.bool_(False))
    is_one_shape: Any = as_variable(np.bool_(True))
    for n, m in zip(sizes, others, strict=True):
        is_one_shape = is_one_shape & equal(n, m)
    common = tuple(slice(np.minimum(n, m)) for n, m in zip(sizes, others, strict=True))
    one, other = one[common], other[common]
    is_equal: Any = equal(one, other)
    if equal_nan and one.type.kind in "fc" and other.type.kind in "fc":
        is_equal = is_equal | (np.isnan(one) & np.isnan(other))
    return is_one_shape & is_equal.all()


@implements(np.where)
def where(condition: Any, *choices: Any) -> Any:
    """where(condition, x, y): x where the condition holds, else y, elementwise; only what is taken is computed.

    Arguments: three variables, arrays or numbers of shapes that broadcast. Returns x and y's common dtype.
    where(condition) is nonzero(condition).

    >>> import numbascan.tensor as nt
    >>> x = nt.dvector("x")
    >>> nt.where(x > 0, x, 0)
    <where: float64[?]>
    """
    if not choices:
        return METHODS["nonzero"](as_variable(condition))
    if len(choices) != 2:
        raise ValueError(f"np.where takes a condition and two choices, or none of these{at_line()}; write np.where(condition, x, y)")
    condition = as_variable(condition)
    if condition.type.dtype != "bool":
        condition = op(CAST, condition, dtype="bool")
    return op(WHERE, condition, *choices)


@implements(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Variable:
    """Of the choices the first whose condition holds, elementwise; `default` where none does.

    Arguments: condlist, boolean variables or arrays; choicelist, as many values. All broadcast.

    Raises ValueError where there are not as many choices as conditions, or none, TypeError for a condition that is not boolean.

    >>> import numbascan.tensor as nt
    >>> x = nt.dvector("x")
    >>> nt.select([x < 0, x > 1], [-x, x**2], 0.5)
    <where: float64[?]>
    """
    conditions, choices = [as_variable(one) for one in condlist], [as_variable(one) for one in choicelist]
    if not conditions or len(conditions) != len(choices):
        raise ValueError(
            f"np.select: {len(conditions)} conditions, {len(choices)} choices{at_line()}; give one choice for each, one at least"
        )
    for k, condition in enumerate(conditions):
        if condition.type.dtype != "bool":
            raise TypeError(f"np.select: condlist[{k}] is {condition!r}{at_line()}; a condition is boolean, as x > 0 is")
    dtype = result_type(*choices, as_variable(default))  # of all: two Python numbers beside a float32 are float32
    result = number_as(as_variable(default), dtype)
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = where(condition, number_as(choice, dtype), result)
    return result


@implements(np.clip, method="clip")
def clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Variable:
    """a, but at least a_min and at most a_max, elementwise; None for no bound. a_max wins where a_min > a_max.

    >>> import numbascan.tensor as nt
    >>> nt.clip(nt.dvector("x"), 0, 1).dtype
    dtype('float64')
    """
    a = as_variable(a)
    if (a_min is not None and min is not None) or (a_max is not None and max is not None):
        raise ValueError(f"np.clip: a_min and min, a_max and max are one thing each{at_line()}; give one of them")
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    if a.type.kind in "iu" and not a.type.weak:  # a Python integer beyond the dtype is no bound
        info = np.iinfo(a.type.dtype)
        low = None if isinstance(low, int) and low <= info.min else low
        high = None if isinstance(high, int) and high >= info.max else high
    a = a if low is None else np.maximum(a, low)
    return a if high is None else np.minimum(a, high)


@entry
def relu(x: Any, alpha: Any = 0) -> Variable:
    """x where x > 0, else alpha * x; NaN stays NaN.

    >>> import numbascan.tensor as nt
    >>> nt.relu(nt.fvector("x"))
    <maximum: float32[?]>
    """
    x = as_variable(x)
    if isinstance(alpha, (int, float)) and alpha == 0:
        return FUNCTIONS["maximum"](x, 0)
    return where(x > 0, x, alpha * x)


switch = where
eq, neq, lt, gt, le, ge = equal, not_equal, less, greater, less_equal, greater_equal
FUNCTIONS.update({function.__name__: function for function in (less, less_equal, greater, greater_equal, equal, not_equal)})
FUNCTIONS.update({function.__name__: function for function in (isclose, allclose, array_equal, where, select, clip, relu)})
FUNCTIONS.update(switch=where, eq=equal, neq=not_equal, lt=less, gt=greater, le=less_equal, ge=greater_equal)
