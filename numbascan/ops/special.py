"""Elementwise special functions: SciPy is the oracle, imported when one is first computed.

Real operands only. float32 stays float32, all else gives float64, as in SciPy (whose erfinv takes short integers as float32).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import exp, expm1, log1p

from ..ir.loops import FUNCTION
from ..ir.node import Node
from ..types import TensorType
from .algebra import add, mul, neg, square, sub
from .algebra import call as op
from .card import Card
from .elementwise import OPERANDS, Code, Loop, Partials, call, compiled, helper, libm, loop_card, points, undefined


def _scipy(name: str) -> Callable[..., Any]:
    def evaluate(*values: Any) -> Any:
        import scipy.special

        return getattr(scipy.special, name)(*values)

    return evaluate


def _computes_in(name: str, types: tuple[TensorType, ...]) -> str:
    """The dtype in which a special function computes on real operands."""
    if any(type_.kind == "c" for type_ in types):
        raise undefined(f"nt.{name}", types, "special functions take real operands")
    strong = {type_.dtype for type_ in types if not type_.weak}
    return "float32" if strong == {"float32"} else "float64"


def _special(
    name: str,
    code: Code,
    partials: Partials,
    *domains: tuple[float, float],
    scipy: str = "",
    evaluate: Callable[..., Any] | None = None,
    **facets: Any,
) -> Card:
    """The card of a function of `scipy.special`, where it is called `scipy`. `evaluate`: its value where SciPy does not have it."""

    def loop(*types: TensorType) -> tuple[str, ...]:
        return (_computes_in(name, types),) * (len(types) + 1)

    keys = [f"scipy.special.{scipy}"] if scipy else []
    facets |= {"samples": points(*domains), "partials": partials, "operands": OPERANDS[len(domains)]}
    return loop_card(name, evaluate or _scipy(scipy), loop, code, *keys, **facets)


def _softplus(x: Any) -> Any:
    return np.logaddexp(x, x.dtype.type(0))


def _gammaln(x: Any) -> Any:
    """SciPy's value; +inf at -inf as in C, where SciPy has -inf."""
    import scipy.special

    return np.where(np.isneginf(x), np.inf, scipy.special.gammaln(x))


def _of_order(name: str) -> Loop:
    """The dtypes of a function of an order and a real operand."""

    def loop(order: TensorType, x: TensorType) -> tuple[str, ...]:
        if order.kind not in "iu":
            raise undefined(f"nt.{name}", (order, x), "the order is an integer")
        dtype = _computes_in(name, (x,))
        return "int64", dtype, dtype

    return loop


def _polygamma_samples() -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    ((x,), _), *_ = points((0.3, 6.1))()
    return [((np.arange(6).reshape(2, 3) % 4, x), {}), ((2, -x), {})]


def _gaussian(factor: float, x: Node) -> Node:
    """factor * exp(-x**2)"""
    return mul(factor, op("exp", neg(square(x))))


TWO_BY_ROOT_PI = 2 / math.sqrt(math.pi)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), below 0 as exp(x) / (1 + exp(x))."""
    one, tail = type(x)(1), exp(-abs(x))
    return (tail if x < 0 else one) / (one + tail)


def softplus(x: Any) -> Any:
    """log(1 + exp(x)) as max(x, 0) + log1p(exp(-|x|))."""
    return (x if x > 0 else type(x)(0)) + log1p(exp(-abs(x)))


SIGMOID = _special(
    "sigmoid",
    compiled(sigmoid, FUNCTION),
    lambda out, x: (mul(out, sub(1, out)),),
    (-1.7, 2.1),
    scipy="expit",
    summary="1 / (1 + exp(-x))",
    aliases="expit",
)


def log_expit(x: Any) -> Any:
    """-log(1 + exp(-x)) as min(x, 0) - log1p(exp(-|x|))."""
    tail = log1p(exp(-abs(x)))
    return x - tail if x < 0 else -tail


LOG_EXPIT = _special(
    "log_expit",
    compiled(log_expit, FUNCTION),
    lambda out, x: (op("sigmoid", neg(x)),),
    (-1.7, 2.1),
    scipy="log_expit",
    summary="log(1 / (1 + exp(-x))) without overflow",
    aliases="log_sigmoid",
)
SOFTPLUS = _special(
    "softplus",
    compiled(softplus, FUNCTION),
    lambda out, x: (op("sigmoid", x),),
    (-1.7, 2.1),
    evaluate=_softplus,
    summary="log(1 + exp(x)) without overflow",
    aliases="log1pexp",
)
ERF = _special("erf", libm("erf"), lambda out, x: (_gaussian(TWO_BY_ROOT_PI, x),), (-1.7, 2.1), scipy="erf", summary="the error function")
ERFC = _special(
    "erfc",
    libm("erfc"),
    lambda out, x: (_gaussian(-TWO_BY_ROOT_PI, x),),
    (-1.7, 2.1),
    scipy="erfc",
    summary="1 - erf(x), exact for large x",
)
ERFINV = _special(
    "erfinv",
    helper("special", "erfinv"),
    lambda out, x: (mul(1 / TWO_BY_ROOT_PI, op("exp", square(out))),),
    (-0.8, 0.9),
    scipy="erfinv",
    summary="the inverse of the error function",
)
GAMMA = _special(
    "gamma", call("math.gamma({0})"), lambda out, x: (mul(out, op("digamma", x)),), (0.3, 4.1), scipy="gamma", summary="the gamma function"
)
GAMMALN = _special(
    "gammaln",
    call("math.lgamma({0})"),
    lambda out, x: (op("digamma", x),),
    (0.3, 6.1),
    scipy="gammaln",
    evaluate=_gammaln,
    summary="the logarithm of |gamma(x)|",
)
DIGAMMA = _special(
    "digamma",
    helper("special", "digamma"),
    lambda out, x: (op("polygamma", 1, x),),
    (0.3, 6.1),
    scipy="psi",
    summary="the logarithmic derivative of the gamma function",
    aliases="psi",
)
POLYGAMMA = loop_card(
    "polygamma",
    _scipy("polygamma"),
    _of_order("polygamma"),
    helper("special", "polygamma", 2),
    samples=_polygamma_samples,
    partials=lambda out, order, x: (None, op("polygamma", add(order, 1), x)),
)


def _betaln_partials(out: Node, x: Node, y: Node) -> tuple[Node, Node]:
    both = op("digamma", add(x, y))
    return sub(op("digamma", x), both), sub(op("digamma", y), both)


BETALN = _special(
    "betaln",
    helper("special", "betaln", 2),
    _betaln_partials,
    (0.3, 4.1),
    (0.4, 3.3),
    scipy="betaln",
    summary="the logarithm of |beta(x1, x2)|",
)


def exprel(x: Any) -> Any:
    """(exp(x) - 1) / x, its limit 1 at 0."""
    y = np.float64(x)  # of single precision exp(x) overflows before the quotient
    above = expm1(y)
    return type(x)(1.0 if y == 0 else above / y if y < 1000 else above)


def exprel_derivative(order: Any, x: Any) -> Any:
    """The integral of t**order exp(t x) over t from 0 to 1, by sums of positive terms where x is small, else by parts."""
    y, last = abs(np.float64(x)), np.exp(np.float64(x))
    if not y < 30 + 2 * order:
        value = (last - 1.0) / x if y < np.inf else max(np.float64(x), 0.0)
        for n in range(1, order + 1):
            value = (last - n * value) / x if last < np.inf and y < np.inf else value
        return type(x)(value)
    k, power, total = 0.0, 1.0, 0.0
    while power > 1e-18 * total:
        total += power / (order + 1 + k) if x > 0 else power
        k += 1.0
        power *= y / k if x > 0 else y / (order + 1 + k)
    return type(x)(total if x > 0 else total * last / (order + 1))


EXPREL = _special(
    "exprel",
    compiled(exprel, FUNCTION),
    lambda out, x: (op("exprel_derivative", 1, x),),
    (-1.7, 2.1),
    scipy="exprel",
    summary="(exp(x) - 1) / x, exact near 0",
)
EXPREL_DERIVATIVE = loop_card(
    "exprel_derivative",
    np.vectorize(exprel_derivative, otypes="d"),
    _of_order("exprel_derivative"),
    compiled(exprel_derivative),
    samples=lambda: [((np.arange(6).reshape(2, 3) % 4, np.array([-37.5, 0.25, 3.1])), {})],
    partials=lambda out, order, x: (None, op("exprel_derivative", add(order, 1), x)),
)
