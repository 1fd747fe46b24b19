"""Elementwise special functions: SciPy is the oracle, imported when one is first computed.

Real operands only. float32 stays float32, all else gives float64, as in SciPy (whose erfinv takes short integers as float32).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from math import erfc
from typing import Any

import numpy as np
from numpy import exp, expm1, log, log1p

from ..ir.loops import FUNCTION
from ..ir.node import Node
from ..types import TensorType
from .algebra import add, div, mul, neg, square, sub, where
from .algebra import call as op
from .card import Card
from .complex_functions import LN2
from .elementwise import OPERANDS, Code, Loop, Partials, Samples, call, compiled, helper, libm, loop_card, points, undefined


def scipy_function(name: str, dtype: str | None = None) -> Callable[..., Any]:
    """SciPy's function. dtype: the one in which it computes, whatever that of the operands."""

    def evaluate(*values: Any) -> Any:
        import scipy.special

        return getattr(scipy.special, name)(*(values if dtype is None else [np.asarray(value, dtype) for value in values]))

    return evaluate


def _computes_in(name: str, types: tuple[TensorType, ...]) -> str:
    """The dtype in which a special function computes on real operands."""
    if any(type_.kind == "c" for type_ in types):
        raise undefined(f"nt.{name}", types, "special functions take real operands")
    strong = {type_.dtype for type_ in types if not type_.weak}
    return "float32" if strong == {"float32"} else "float64"


def special(
    name: str,
    code: Code,
    partials: Partials,
    *domains: tuple[float, float],
    scipy: str = "",
    evaluate: Callable[..., Any] | None = None,
    numpy: tuple[Callable[..., Any], ...] = (),
    **facets: Any,
) -> Card:
    """Registers the card of a special function.

    scipy: its name in `scipy.special`. evaluate: its value, if SciPy does not have it. numpy: NumPy's functions of the same meaning.
    """

    def loop(*types: TensorType) -> tuple[str, ...]:
        return (_computes_in(name, types),) * (len(types) + 1)

    keys: list[Any] = [*([f"scipy.special.{scipy}"] if scipy else []), *numpy]
    facets = {"samples": points(*domains), "partials": partials, "operands": OPERANDS[len(domains)], **facets}
    return loop_card(name, evaluate or scipy_function(scipy), loop, code, *keys, **facets)


def of_scipy(name: str, partials: Partials, *domains: tuple[float, float], **facets: Any) -> Card:
    """The card of a function whose machine code is SciPy's for doubles: SciPy's betainc of single precision has five digits."""
    code = helper("special", name, len(domains))
    return special(name, code, partials, *domains, scipy=name, evaluate=scipy_function(name, "float64"), **facets)


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


def whole_first(*domains: tuple[float, float]) -> Samples:
    """Samples whose first operands, two of three, are whole numbers: there is no derivative with respect to them."""
    ((values, _),) = points(*domains)()
    whole = max(1, len(values) - 1)
    return lambda: [((*(np.round(value).astype("int64") for value in values[:whole]), *values[whole:]), {})]


def _gaussian(factor: float, x: Node) -> Node:
    """factor * exp(-x**2), constant 0 beyond 40, so that slopes are 0 at infinity, too."""
    return mul(factor, op("exp", neg(square(_within(x, -40.0, 40.0)))))


def _within(x: Node, least: float, most: float) -> Node:
    """x clipped to the interval from `least` to `most`."""
    return op("minimum", op("maximum", x, least), most)


TWO_BY_ROOT_PI = 2 / math.sqrt(math.pi)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), below 0 as exp(x) / (1 + exp(x))."""
    one, tail = type(x)(1), exp(-abs(x))
    return (tail if x < 0 else one) / (one + tail)


def softplus(x: Any) -> Any:
    """log(1 + exp(x)) as max(x, 0) + log1p(exp(-|x|))."""
    return (x if x > 0 else type(x)(0)) + log1p(exp(-abs(x)))


SIGMOID = special(
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


LOG_EXPIT = special(
    "log_expit",
    compiled(log_expit, FUNCTION),
    lambda out, x: (op("sigmoid", neg(x)),),
    (-1.7, 2.1),
    scipy="log_expit",
    summary="log(1 / (1 + exp(-x))) without overflow",
    aliases="log_sigmoid",
)
SOFTPLUS = special(
    "softplus",
    compiled(softplus, FUNCTION),
    lambda out, x: (op("sigmoid", x),),
    (-1.7, 2.1),
    evaluate=_softplus,
    summary="log(1 + exp(x)) without overflow",
    aliases="log1pexp",
)
ERF = special("erf", libm("erf"), lambda out, x: (_gaussian(TWO_BY_ROOT_PI, x),), (-1.7, 2.1), scipy="erf", summary="the error function")
ERFC = special(
    "erfc",
    libm("erfc"),
    lambda out, x: (_gaussian(-TWO_BY_ROOT_PI, x),),
    (-1.7, 2.1),
    scipy="erfc",
    summary="1 - erf(x), exact for large x",
)
ERFINV = of_scipy(
    "erfinv",
    lambda out, x: (mul(1 / TWO_BY_ROOT_PI, op("exp", square(out))),),
    (-0.8, 0.9),
    summary="the inverse of the error function",
)
GAMMA = special(
    "gamma", call("math.gamma({0})"), lambda out, x: (mul(out, op("digamma", x)),), (0.3, 4.1), scipy="gamma", summary="the gamma function"
)
GAMMALN = special(
    "gammaln",
    call("math.lgamma({0})"),
    lambda out, x: (op("digamma", x),),
    (0.3, 6.1),
    scipy="gammaln",
    evaluate=_gammaln,
    summary="the logarithm of |gamma(x)|",
)
DIGAMMA = special(
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
    scipy_function("polygamma"),
    _of_order("polygamma"),
    helper("special", "polygamma", 2),
    samples=_polygamma_samples,
    partials=lambda out, order, x: (None, op("polygamma", add(order, 1), x)),
)


def _betaln_partials(out: Node, x: Node, y: Node) -> tuple[Node, Node]:
    both = op("digamma", add(x, y))
    return sub(op("digamma", x), both), sub(op("digamma", y), both)


BETALN = of_scipy("betaln", _betaln_partials, (0.3, 4.1), (0.4, 3.3), summary="the logarithm of |beta(x1, x2)|")


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


EXPREL = special(
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


# products with logarithms, and logarithms of what is near 1 ---------------------------------------------------------

ROOT_HALF, ROOT_2_PI = math.sqrt(0.5), math.sqrt(2 * math.pi)


def xlogy(x: Any, y: Any) -> Any:
    """x log(y), and 0 where x is 0."""
    return type(x)(0) if x == 0 and y == y else x * log(y)


def xlog1py(x: Any, y: Any) -> Any:
    """x log(1 + y), and 0 where x is 0."""
    return type(x)(0) if x == 0 and y == y else x * log1p(y)


def _quotient(x: Node, y: Node) -> Node:
    """x / y, and 0 where both are 0. Where x alone is 0 the quotient has its slope 1 / y in x."""
    return where(op("logical_and", op("equal", x, 0), op("equal", y, 0)), 0, div(x, y))


XLOGY = special(
    "xlogy",
    compiled(xlogy, FUNCTION),
    lambda out, x, y: (op("log", y), _quotient(x, y)),
    (-1.7, 2.1),
    (0.3, 3.1),
    scipy="xlogy",
    summary="x1 * log(x2), 0 where x1 is 0",
)
XLOG1PY = special(
    "xlog1py",
    compiled(xlog1py, FUNCTION),
    lambda out, x, y: (op("log1p", y), _quotient(x, add(1, y))),
    (-1.7, 2.1),
    (-0.7, 3.1),
    scipy="xlog1py",
    summary="x1 * log(1 + x2), 0 where x1 is 0",
)


def logit(x: Any) -> Any:
    """log(x / (1 - x)); around 1/2 by log1p of how much greater the greater part is, 1 - 2 x being exact there."""
    one, gap = type(x)(1), type(x)(1) - (x + x)
    less = x if gap > 0 else one - x
    near = log1p(abs(gap) / less)
    return log(x / (one - x)) if less < 0.25 else -near if gap > 0 else near


LOGIT = special(
    "logit",
    compiled(logit, FUNCTION),
    lambda out, x: (div(1, mul(x, sub(1, x))),),
    (0.05, 0.9),
    scipy="logit",
    summary="log(x / (1 - x)), the inverse of sigmoid; exact near 1/2",
)


def log1mexp(x: Any) -> Any:
    """log(1 - exp(x)) from what is exact, exp(x) or 1 - exp(x): M. Maechler, "Accurately computing log(1 - exp(-|a|))" (2012)."""
    near, far = log(-expm1(x)), log1p(-exp(x))
    return near if x > -LN2 else far


LOG1MEXP = special(
    "log1mexp",
    compiled(log1mexp, FUNCTION),
    lambda out, x: (neg(div(op("exp", x), op("absolute", op("expm1", x)))),),  # -inf at 0 of either sign
    (-3.1, -0.2),
    evaluate=lambda x: np.where(x > -LN2, np.log(-np.expm1(x)), np.log1p(-np.exp(x))),
    summary="log(1 - exp(x)) for x <= 0, exact near 0 and far from it",
)

# the normal distribution --------------------------------------------------------------------------------------------

erfcx = scipy_function("erfcx")  # compiled code calls that of C


ROOT_HALF_HIGH, ROOT_HALF_LOW = 0.7071067690849304, 1.210161710447897e-08  # the former has 24 bits


def ndtr(x: Any) -> Any:
    """erfc(z) / 2 with z = -x / sqrt(2). In the tail what rounding loses of z is made good: the slope is -(2 z + 1 / z) of the value."""
    y = -50.0 if x < -50.0 else 50.0 if x > 50.0 else np.float64(x)
    high = np.float64(np.float32(y))
    z = -(high * ROOT_HALF_HIGH)
    low = -((y - high) * ROOT_HALF_HIGH + y * ROOT_HALF_LOW)
    lost = low - ((z + low) - z)
    z += low
    return type(x)(0.5 * erfc(z) * (1.0 - lost * (2.0 * z + 1.0 / z) if z > 1.0 else 1.0))


def _hazard(x: Node) -> Node:
    """The density of a normal number over its distribution function, also where both are too small for doubles.

    From 10 on the distribution function is 1, and erfcx(-x / sqrt(2)) is soon infinite. Below -1e8 the quotient is -x to the last bit."""
    near = div(2 / ROOT_2_PI, op("erfcx", mul(-ROOT_HALF, _within(x, -2e8, 11.0))))
    return where(op("less", x, -1e8), neg(x), where(op("greater", x, 10), _density(x), near))


def _density(x: Node) -> Node:
    return mul(1 / ROOT_2_PI, op("exp", mul(-0.5, square(_within(x, -40.0, 40.0)))))


NDTR = special(
    "ndtr",
    compiled(ndtr, FUNCTION),
    lambda out, x: (_density(x),),
    (-1.7, 2.1),
    scipy="ndtr",
    evaluate=np.vectorize(ndtr, otypes="d"),  # SciPy's is off by 1500 ulp in the tail
    summary="the distribution function of the normal distribution",
)
LOG_NDTR = of_scipy("log_ndtr", lambda out, x: (_hazard(x),), (-1.7, 2.1), summary="log(ndtr(x)), exact in both tails")
NDTRI = of_scipy(
    "ndtri",
    lambda out, p: (mul(ROOT_2_PI, op("exp", mul(0.5, square(out)))),),
    (0.05, 0.9),
    summary="the inverse of ndtr, the quantile of a normal number",
)
ERFCX = of_scipy(
    "erfcx",
    lambda out, x: (mul(-2, op("erfc_integral", 1, x)),),  # 2 x erfcx(x) - 2 / sqrt(pi) would cancel
    (-1.7, 2.1),
    summary="exp(x**2) * erfc(x), without overflow for large x",
)


def erfc_integral(order: Any, x: Any) -> Any:
    """exp(x**2) times the integral of erfc from x on, repeated `order` times (W. Gautschi 1964; DLMF 7.18).

    By the recurrence upwards where its terms do not cancel, else by the continued fraction of the quotients of neighbours.
    """
    y = np.float64(x)
    if not y >= 0.5:
        before, value = TWO_BY_ROOT_PI, np.float64(erfcx(y))
        for n in range(order):
            before, value = value, (before - 2.0 * y * value) / (2.0 * (n + 1))
        return type(x)(value)
    value, last = np.float64(TWO_BY_ROOT_PI), order + 20 + int(130.0 / (y * y))
    quotient = 1.0 / (y + np.sqrt(y * y + 2.0 * (last + 1)))
    for n in range(last, -1, -1):
        quotient = 1.0 / (2.0 * y + 2.0 * (n + 1) * quotient)
        if n <= order:
            value *= quotient
    return type(x)(value)


ERFC_INTEGRAL = loop_card(
    "erfc_integral",
    np.vectorize(erfc_integral, otypes="d"),
    _of_order("erfc_integral"),
    compiled(erfc_integral),
    samples=lambda: [((np.arange(6).reshape(2, 3) % 4, np.array([-1.5, 0.25, 3.1])), {})],
    partials=lambda out, order, x: (None, mul(mul(-2, add(order, 1)), op("erfc_integral", add(order, 1), x))),
)

# Bessel functions ---------------------------------------------------------------------------------------------------

NO_ORDER = "the derivative of a Bessel function with respect to its order is not supported"


def _neighbours(name: str, sign: int, v: Any, x: Node) -> Node:
    """Half of the function of order v - 1, plus `sign` times half of that of order v + 1: part of the slopes of Bessel functions."""
    return mul(0.5, add(op(name, sub(v, 1), x), mul(sign, op(name, add(v, 1), x))))


def _of_order_and_x(name: str, slope: Callable[..., Node], summary: str) -> Card:
    domains = (-0.7, 3.1), (0.4, 4.1)
    facets = {"samples": whole_first(*domains), "operands": "v x", "summary": f"{summary} of real order v"}
    return of_scipy(name, lambda out, v, x: (NO_ORDER, slope(out, v, x)), *domains, **facets)


JV = _of_order_and_x("jv", lambda out, v, x: _neighbours("jv", -1, v, x), "the Bessel function of the first kind")
IV = _of_order_and_x("iv", lambda out, v, x: _neighbours("iv", 1, v, x), "the modified Bessel function of the first kind")
IVE = _of_order_and_x(
    "ive",
    lambda out, v, x: sub(_neighbours("ive", 1, v, x), mul(op("sign", x), out)),
    "exp(-|x|) times the modified Bessel function of the first kind",
)
KV = _of_order_and_x("kv", lambda out, v, x: neg(_neighbours("kv", 1, v, x)), "the modified Bessel function of the second kind")
KVE = _of_order_and_x(
    "kve", lambda out, v, x: sub(out, _neighbours("kve", 1, v, x)), "exp(x) times the modified Bessel function of the second kind"
)
J0 = of_scipy("j0", lambda out, x: (neg(op("j1", x)),), (-4.7, 5.1), summary="the Bessel function of the first kind of order 0")
J1 = of_scipy(
    "j1",
    lambda out, x: (mul(0.5, sub(op("j0", x), op("jv", 2, x))),),
    (-4.7, 5.1),
    summary="the Bessel function of the first kind of order 1",
)
I0 = of_scipy(
    "i0", lambda out, x: (op("i1", x),), (-1.7, 2.1), numpy=(np.i0,), summary="the modified Bessel function of the first kind of order 0"
)
I1 = of_scipy(
    "i1",
    lambda out, x: (mul(0.5, add(op("i0", x), op("iv", 2, x))),),
    (-1.7, 2.1),
    summary="the modified Bessel function of the first kind of order 1",
)


def _i2e(i1e: Node, x: Node) -> Node:
    """ive(2, x). For large |x| it uses the recurrence of the orders, as SciPy has ive only up to some 1e9."""
    is_large = op("greater", op("absolute", x), 1e6)
    return where(is_large, sub(op("i0e", x), div(mul(2, i1e), where(is_large, x, 1))), op("ive", 2, where(is_large, 0, x)))


I0E = of_scipy("i0e", lambda out, x: (sub(op("i1e", x), mul(op("sign", x), out)),), (-1.7, 2.1), summary="exp(-|x|) * i0(x)")
I1E = of_scipy(
    "i1e",
    lambda out, x: (sub(mul(0.5, add(op("i0e", x), _i2e(out, x))), mul(op("sign", x), out)),),
    (-1.7, 2.1),
    summary="exp(-|x|) * i1(x)",
)
