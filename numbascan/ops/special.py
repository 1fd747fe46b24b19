"""Elementwise special functions: SciPy is the oracle, imported when one is first computed.

Real operands only. float32 stays float32, all else gives float64, as in SciPy (whose erfinv takes short integers as float32).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import exp, log1p

from ..ir.loops import FUNCTION
from ..ir.node import Node
from ..types import TensorType
from .algebra import add, mul, neg, square, sub
from .algebra import call as op
from .card import Card
from .elementwise import Code, Partials, call, compiled, helper, libm, loop_card, points, undefined


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


def _special(name: str, evaluate: Callable[..., Any], code: Code, partials: Partials, *domains: tuple[float, float]) -> Card:
    def loop(*types: TensorType) -> tuple[str, ...]:
        return (_computes_in(name, types),) * (len(types) + 1)

    return loop_card(name, evaluate, loop, code, samples=points(*domains), partials=partials)


def _softplus(x: Any) -> Any:
    return np.logaddexp(x, x.dtype.type(0))


def _gammaln(x: Any) -> Any:
    """SciPy's value; +inf at -inf as in C, where SciPy has -inf."""
    import scipy.special

    return np.where(np.isneginf(x), np.inf, scipy.special.gammaln(x))


def _polygamma_loop(order: TensorType, x: TensorType) -> tuple[str, ...]:
    if order.kind not in "iu":
        raise undefined("nt.polygamma", (order, x), "the order is an integer")
    dtype = _computes_in("polygamma", (x,))
    return "int64", dtype, dtype


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


SIGMOID = _special("sigmoid", _scipy("expit"), compiled(sigmoid, FUNCTION), lambda out, x: (mul(out, sub(1, out)),), (-1.7, 2.1))
SOFTPLUS = _special("softplus", _softplus, compiled(softplus, FUNCTION), lambda out, x: (op("sigmoid", x),), (-1.7, 2.1))
ERF = _special("erf", _scipy("erf"), libm("erf"), lambda out, x: (_gaussian(TWO_BY_ROOT_PI, x),), (-1.7, 2.1))
ERFC = _special("erfc", _scipy("erfc"), libm("erfc"), lambda out, x: (_gaussian(-TWO_BY_ROOT_PI, x),), (-1.7, 2.1))
ERFINV = _special(
    "erfinv", _scipy("erfinv"), helper("special", "erfinv"), lambda out, x: (mul(1 / TWO_BY_ROOT_PI, op("exp", square(out))),), (-0.8, 0.9)
)
GAMMA = _special("gamma", _scipy("gamma"), call("math.gamma({0})"), lambda out, x: (mul(out, op("digamma", x)),), (0.3, 4.1))
GAMMALN = _special("gammaln", _gammaln, call("math.lgamma({0})"), lambda out, x: (op("digamma", x),), (0.3, 6.1))
DIGAMMA = _special("digamma", _scipy("psi"), helper("special", "digamma"), lambda out, x: (op("polygamma", 1, x),), (0.3, 6.1))
POLYGAMMA = loop_card(
    "polygamma",
    _scipy("polygamma"),
    _polygamma_loop,
    helper("special", "polygamma", 2),
    samples=_polygamma_samples,
    partials=lambda out, order, x: (None, op("polygamma", add(order, 1), x)),
)


def _betaln_partials(out: Node, x: Node, y: Node) -> tuple[Node, Node]:
    both = op("digamma", add(x, y))
    return sub(op("digamma", x), both), sub(op("digamma", y), both)


BETALN = _special("betaln", _scipy("betaln"), helper("special", "betaln", 2), _betaln_partials, (0.3, 4.1), (0.4, 3.3))

SCIPY = {"expit": SIGMOID, "erf": ERF, "erfc": ERFC, "erfinv": ERFINV, "gamma": GAMMA, "gammaln": GAMMALN, "psi": DIGAMMA, "betaln": BETALN}
"""Names in scipy.special."""
