"""Elementwise special functions: SciPy is the oracle, imported when one is first computed.

Real operands only. float32 stays float32, all else gives float64, as in SciPy (whose erfinv takes short integers as float32).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir.loops import TIMES, UNARY, Template
from ..types import TensorType
from .card import Card
from .elementwise import Code, by_kind, call, loop_card, points, undefined


def _scipy(name: str) -> Callable[..., Any]:
    def evaluate(*values: Any) -> Any:
        import scipy.special

        return getattr(scipy.special, name)(*values)

    return evaluate


def _special(name: str, evaluate: Callable[..., Any], code: Code, *domains: tuple[float, float]) -> Card:
    def loop(*types: TensorType) -> tuple[str, ...]:
        if any(type_.kind == "c" for type_ in types):
            raise undefined(f"nt.{name}", types, "special functions take real operands")
        strong = {type_.dtype for type_ in types if not type_.weak}
        return ("float32" if strong == {"float32"} else "float64",) * (len(types) + 1)

    return loop_card(name, evaluate, loop, code, samples=points(*domains))


def _softplus(x: Any) -> Any:
    return np.logaddexp(x, x.dtype.type(0))


def _gammaln(x: Any) -> Any:
    """SciPy's value; +inf at -inf as in C, where SciPy has -inf."""
    import scipy.special

    return np.where(np.isneginf(x), np.inf, scipy.special.gammaln(x))


SIGMOID = _special(
    "sigmoid",
    _scipy("expit"),
    by_kind(
        float32=Template("np.float32(1.0) / (np.float32(1.0) + math.exp(-{0}))", TIMES, (UNARY,)),
        f=Template("1.0 / (1.0 + math.exp(-{0}))", TIMES, (UNARY,)),
    ),
    (-1.7, 2.1),
)
SOFTPLUS = _special("softplus", _softplus, call("softplus({0})"), (-1.7, 2.1))
ERF = _special("erf", _scipy("erf"), call("math.erf({0})"), (-1.7, 2.1))
ERFC = _special("erfc", _scipy("erfc"), call("math.erfc({0})"), (-1.7, 2.1))
ERFINV = _special("erfinv", _scipy("erfinv"), call("erfinv({0})"), (-0.8, 0.9))
GAMMA = _special("gamma", _scipy("gamma"), call("math.gamma({0})"), (0.3, 4.1))
GAMMALN = _special("gammaln", _gammaln, call("math.lgamma({0})"), (0.3, 6.1))
DIGAMMA = _special("digamma", _scipy("psi"), call("digamma({0})"), (0.3, 6.1))
BETALN = _special("betaln", _scipy("betaln"), call("betaln({0}, {1})"), (0.3, 4.1), (0.4, 3.3))

SCIPY = {"expit": SIGMOID, "erf": ERF, "erfc": ERFC, "erfinv": ERFINV, "gamma": GAMMA, "gammaln": GAMMALN, "psi": DIGAMMA, "betaln": BETALN}
"""Names in scipy.special."""
