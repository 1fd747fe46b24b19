"""Derivatives of elementwise cards at their edges, in both modes, interpreted and compiled, and twice over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special
from ops.functions import inputs_for
from ops.slopes import Function, assert_equal, forward, reverse, value

import numbascan.tensor as nt
from numbascan.compile import Program
from numbascan.ir.graph import close
from numbascan.modes import Mode

NAN, INF = np.nan, np.inf

# edges --------------------------------------------------------------------------------------------------------------

SIGNS = np.array([-2.0, -0.0, 0.0, 3.0])
FROM_0 = np.array([0.0, 4.0])
TIES = (np.array([1.0, 2.0, 3.0, NAN, 1.0, INF, -INF]), np.array([2.0, 2.0, 2.0, 1.0, NAN, INF, 0.0]))
LOWER, HIGHER = [0, 0.5, 1], [1, 0.5, 0]
QUOTIENTS = (np.array([-7.3, 7.3, 5.999999999999999, 1e18, -1e-20]), np.array([2.0, -2.0, 0.3, 0.7, 1.0]))
OPEN = np.array([-1.0, 0.0, 4.0])
BIG = np.array([1e200, 1e-200, -1e200])

# a function of floats, its operands, and the derivative with respect to each
EDGES: dict[str, tuple[Function, tuple[Any, ...], tuple[Any, ...]]] = {
    "maximum": (np.maximum, TIES, ([*LOWER, 1, 0, 0.5, 0], [*HIGHER, 0, 1, 0.5, 1])),
    "minimum": (np.minimum, TIES, ([*HIGHER, 1, 0, 0.5, 1], [*LOWER, 0, 1, 0.5, 0])),
    "fmax": (np.fmax, TIES, ([*LOWER, 0, 1, 0.5, 0], [*HIGHER, 1, 0, 0.5, 1])),
    "fmin": (np.fmin, TIES, ([*HIGHER, 0, 1, 0.5, 1], [*LOWER, 1, 0, 0.5, 0])),
    "relu": (nt.relu, (SIGNS,), ([0, 0.5, 0.5, 1],)),
    "absolute": (np.abs, (SIGNS,), ([-1, 0, 0, 1],)),
    "sign": (np.sign, (SIGNS,), ([0, 0, 0, 0],)),
    "floor": (lambda x: np.floor(x) + np.ceil(x) + np.trunc(x) + np.rint(x), (SIGNS,), ([0, 0, 0, 0],)),
    "sqrt": (np.sqrt, (FROM_0,), ([INF, 0.25],)),
    "cbrt": (np.cbrt, (np.array([-8.0, 0.0, 8.0, INF]),), ([1 / 12, INF, 1 / 12, 0],)),
    "reciprocal": (np.reciprocal, (FROM_0,), ([-INF, -1 / 16],)),
    "x**2": (lambda x: nt.power(x, np.array([2.0])), (OPEN,), ([-2, 0, 8],)),
    "x**1": (lambda x: nt.power(x, np.array([1.0])), (OPEN,), ([1, 1, 1],)),
    "x**0": (lambda x: nt.power(x, np.array([0.0])), (OPEN,), ([0, 0, 0],)),
    "x**3": (lambda x: nt.power(x, 3.0), (OPEN,), ([3, 0, 48],)),
    "x**2.5": (lambda x: nt.power(x, 2.5), (FROM_0,), ([0, 20],)),
    "x**1.5": (lambda x: nt.power(x, 1.5), (FROM_0,), ([0, 3],)),
    "x**-2": (lambda x: nt.power(x, -2.0), (FROM_0,), ([-INF, -1 / 32],)),
    "2**x": (lambda x: nt.power(2.0, x), (OPEN,), (np.log(2.0) * 2**OPEN,)),
    "power": (
        nt.power,
        (np.array([0.0, 0.0, 0.0, 0.0, 2.0, 0.0, INF]), np.array([2.0, 1.0, 0.5, 0.0, 0.0, -1.0, -1.0])),
        ([0, 1, INF, 0, 0, -INF, 0], [0, 0, 0, -INF, np.log(2.0), -INF, 0]),
    ),
    "power that overflows": (nt.power, (np.array([1e-200, 1e160]), np.array([2.0, 2.0])), ([2e-200, 2e160], [0, INF])),
    "remainder": (np.remainder, QUOTIENTS, (np.ones(5), -np.floor_divide(*QUOTIENTS))),
    "fmod": (np.fmod, QUOTIENTS, (np.ones(5), [3, 3, -19, -np.floor_divide(1e18, 0.7), 0])),
    "floor_divide": (np.floor_divide, QUOTIENTS, (np.zeros(5), np.zeros(5))),
    "copysign": (
        np.copysign,
        (np.array([-2.0, -2.0, 2.0, 0.0, 3.0]), np.array([1.0, -0.0, -5.0, 1.0, 0.0])),
        ([-1, 1, -1, 0, 1], np.zeros(5)),
    ),
    "heaviside": (np.heaviside, (SIGNS, np.full(4, 0.5)), (np.zeros(4), [0, 1, 1, 0])),
    "hypot": (np.hypot, (np.array([0.0, 0.0, 3.0]), np.array([0.0, -2.0, 4.0])), ([NAN, 0, 0.6], [NAN, -1, 0.8])),
    "arctan2": (np.arctan2, (np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, -2.0])), ([NAN, 0, -0.5], [NAN, -1, 0])),
    "arctan2 far out": (np.arctan2, (BIG, BIG), (0.5 / BIG, -0.5 / BIG)),
    "arcsinh": (np.arcsinh, (BIG,), ([1e-200, 1, 1e-200],)),
    "arccosh": (np.arccosh, (np.array([1.0, 1e200]),), ([INF, 1e-200],)),
    "arcsin": (np.arcsin, (np.array([-1.0, 0.0, 1 - 2.0**-40]),), ([INF, 1, 1 / np.sqrt(2.0**-40 * (2 - 2.0**-40))],)),
    "arccos": (np.arccos, (np.array([-1.0, 0.0, 1.0]),), ([-INF, -1, -INF],)),
    "logaddexp": (
        np.logaddexp,
        (np.array([-INF, INF, 1e10, 800.0, -800.0, 2.0]), np.array([0.0, 0.0, 1e10 - 1, -800.0, 800.0, 2.0])),
        ([0, 1, 1 / (1 + np.exp(-1)), 1, 0, 0.5], [1, 0, 1 / (1 + np.exp(1)), 0, 1, 0.5]),
    ),
    "logaddexp of equal infinities": (np.logaddexp, (np.array([INF, -INF]), np.array([INF, -INF])), ([NAN, 0], [NAN, 0])),
    "logaddexp2": (np.logaddexp2, (np.array([3.0, -INF, 2000.0]), np.array([1.0, 0.0, 0.0])), ([0.8, 0, 1], [0.2, 1, 0])),
    "sigmoid": (nt.sigmoid, (np.array([-800.0, 0.0, 800.0]),), ([0, 0.25, 0],)),
    "softplus": (nt.softplus, (np.array([-800.0, 0.0, 800.0]),), ([0, 0.5, 1],)),
    "log_expit": (scipy.special.log_expit, (np.array([-INF, -800.0, 0.0, 800.0, INF]),), ([1, 1, 0.5, 0, 0],)),
    "degrees": (np.degrees, (OPEN,), (np.full(3, 180 / np.pi),)),
    "radians": (np.radians, (OPEN,), (np.full(3, np.pi / 180),)),
    "where log": (lambda x: np.where(x > 0, np.log(x), 0), (OPEN,), ([0, 0, 0.25],)),
    "where x log": (lambda x: np.where(x > 0, x * np.log(x), 0), (OPEN,), ([0, 0, 1 + np.log(4.0)],)),
    "where sqrt": (lambda x: np.where(x > 0, np.sqrt(x), x), (OPEN,), ([1, 1, 0.25],)),
    "where power": (lambda x, y: np.where(x > 0, x**y, y), (OPEN, np.array([0.5, 0.5, 0.5])), ([0, 0, 0.25], [1, 1, 2 * np.log(4.0)])),
    "where abs": (lambda x: np.where(x > 0, np.abs(np.log(x)), 1 / x**2), (np.array([-1.0, 0.5, 4.0]),), ([2, -2, 0.25],)),
    "where where": (lambda x: np.where(x > 0, np.where(x < 9, np.sqrt(x), np.log(x - 9)), x), (OPEN,), ([1, 1, 0.25],)),
    "where of one place": (lambda x: np.where(x[0] > 0, np.log(x[0]), x[1:]), (OPEN,), ([0, 1, 1],)),
    "where the other is a number": (lambda x: np.where(x > 0, 2.0, x) + np.where(x > 0, 3, x), (OPEN,), ([2, 2, 0],)),
    "nan_to_num": (lambda x: nt.nan_to_num(x), (np.array([NAN, 1.0, INF]),), ([0, 1, 0],)),
}
ELEMENT_BY_ELEMENT = [name for name in EDGES if name != "where of one place"]


@pytest.mark.parametrize("name", EDGES)
def test_gradients_at_the_edges(name):
    function, operands, expected = EDGES[name]
    for k, wanted in enumerate(expected):
        assert_equal(value(reverse(function, k), *operands), wanted)


@pytest.mark.parametrize("name", ELEMENT_BY_ELEMENT)
def test_tangents_at_the_edges(name):
    function, operands, expected = EDGES[name]
    for k, wanted in enumerate(expected):
        assert_equal(value(forward(function, k), *operands), wanted)


@pytest.mark.parametrize("mode", [reverse, forward])
def test_compiled_derivatives_at_the_edges(mode):
    names = list(EDGES) if mode is reverse else ELEMENT_BY_ELEMENT
    inputs, outputs, arrays, expected = [], [], [], []
    for name in names:
        function, operands, wanted = EDGES[name]
        variables = inputs_for(operands, known=True)
        inputs += [x.node for x in variables]
        arrays += operands
        outputs += [mode(function, k)(*variables).node for k in range(len(wanted))]
        expected += wanted
    found = Program(close(inputs, outputs), Mode(), f"edges_{mode.__name__}", specialise=False)(arrays)
    for actual, wanted in zip(found, expected, strict=True):
        assert_equal(actual, wanted)


# dtypes and shapes --------------------------------------------------------------------------------------------------


SINGLE = {
    "python numbers": lambda x: 2 * x + 0.5 - x / 3 + 1 / x + x**2.5 + 2.5**x,
    "extremes": lambda x: np.maximum(x, 0) * x + np.minimum(x, 0.5) * x + np.fmax(1, x) ** 2,
    "elementary": lambda x: (
        np.exp2(x) + np.log2(x) + np.log10(x) + np.sqrt(x) + np.cbrt(x) + np.degrees(x) + np.logaddexp(x, 0) + np.arctan2(x, 2)
    ),
    "hyperbolic": lambda x: np.tanh(x) + np.arcsinh(x) + np.arctanh(x / 4) + np.hypot(x, 1) + np.arcsin(x / 4),
    "special": lambda x: nt.sigmoid(x) + nt.softplus(x) + nt.erf(x) + nt.erfinv(x / 4) + nt.gammaln(x) + nt.betaln(x, 2) + nt.digamma(x),
    "choices": lambda x: np.where(x > 1, x, 0.0) + np.remainder(x, 0.7) + np.copysign(x, 2.0) + np.heaviside(x, 0.5),
}


@pytest.mark.parametrize("name", SINGLE)
def test_single_precision_stays_single_in_all_of_a_derivative(name):
    function, x = SINGLE[name], np.array([0.5, 1.25, 2.0], "float32")
    for derivative in (reverse(function), forward(function), reverse(reverse(function)), forward(reverse(function))):
        (variable,) = inputs_for((x,), known=True)
        found = derivative(variable).node
        assert found.type.dtype == "float32"
        assert {node.type.dtype for node in behind(found) if not node.type.weak and node.type.rank} <= {"float32", "bool"}
        assert_equal(value(derivative, x), value(derivative, x.astype("float64")), rtol=2e-5)


def behind(node: Any) -> set[Any]:
    """A node, and all that it is computed from."""
    found, stack = set(), [node]
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack += node.inputs
    return found


def test_an_integer_exponent_is_no_integer_in_the_derivative():
    x, n = np.array([2.0, 3.0, 0.0, 0.0]), np.array([0, 2, 0, 1])
    for dtype in ("uint8", "int64"):
        assert_equal(value(reverse(nt.power), x, n.astype(dtype)), [0, 6, 0, 1])
        assert_equal(value(reverse(lambda x, n: x / n), x, n.astype(dtype) + np.array(1, dtype)), [1, 1 / 3, 1, 0.5])
    assert_equal(value(reverse(nt.power, 1), np.array([2, 3]), np.array([1.0, 2.0])), [2 * np.log(2), 9 * np.log(3)])


def test_a_double_operand_beside_a_single_one_is_computed_with_in_double():
    x, y = np.array([0.1, 0.7], "float32"), np.array([0.3, 1.1])
    expected = (1 / y, -x.astype("float64") / y**2)
    for k, wanted in enumerate(expected):
        found = value(reverse(np.divide, k), x, y)
        assert found.dtype == (x, y)[k].dtype
        assert_equal(found, wanted.astype(found.dtype))


@pytest.mark.parametrize("is_known", [True, False])
def test_gradients_of_broadcast_operands_are_sums(is_known):
    x, y = np.arange(1.0, 7).reshape(2, 3), np.array([[2.0], [0.5]])
    for function, dx, dy in (
        (np.multiply, y + 0 * x, x),
        (np.divide, 1 / y + 0 * x, -x / y**2),
        (np.power, y * x ** (y - 1), x**y * np.log(x)),
        (np.maximum, np.where(x == y, 0.5, x > y), np.where(x == y, 0.5, x < y)),
        (np.hypot, x / np.hypot(x, y), y / np.hypot(x, y)),
        (lambda x, y: np.where(x > 2, x * y, y), np.where(x > 2, y, 0), np.where(x > 2, x, 1)),
    ):
        assert_equal(value(reverse(function), x, y, is_known=is_known), dx)
        assert_equal(value(reverse(function, 1), x, y, is_known=is_known), dy.sum(axis=1, keepdims=True))
        assert_equal(value(forward(function, 1), x, y, is_known=is_known), dy)
        assert value(reverse(function), x[:, :0], y, is_known=is_known).shape == (2, 0)
        assert_equal(value(reverse(function, 1), x[:, :0], y, is_known=is_known), np.zeros((2, 1)))


def test_a_condition_that_broadcasts_chooses_in_both_modes():
    condition, x = np.array([[True], [False]]), np.array([1.0, 2.0, 3.0])
    assert_equal(value(reverse(lambda c, x: np.where(c, x * x, 0.0), 1), condition, x), 2 * x)
    assert_equal(value(forward(lambda c, x: np.where(c, 0.0, x * x), 1), condition, x), [[0, 0, 0], [2, 4, 6]])


# twice over ---------------------------------------------------------------------------------------------------------

X = np.array([0.3, 0.8, 1.7])
BELOW_1 = np.array([-0.6, 0.1, 0.7])
psi = scipy.special.polygamma
SECOND: dict[str, tuple[Function, Any, Any]] = {
    "exp": (np.exp, X, np.exp(X)),
    "expm1": (np.expm1, X, np.exp(X)),
    "exp2": (np.exp2, X, np.log(2) ** 2 * 2**X),
    "log": (np.log, X, -1 / X**2),
    "log1p": (np.log1p, X, -1 / (1 + X) ** 2),
    "sin": (np.sin, X, -np.sin(X)),
    "tan": (np.tan, X, 2 * np.tan(X) / np.cos(X) ** 2),
    "tanh": (np.tanh, X, -2 * np.tanh(X) / np.cosh(X) ** 2),
    "arcsin": (np.arcsin, BELOW_1, BELOW_1 / (1 - BELOW_1**2) ** 1.5),
    "arccos": (np.arccos, BELOW_1, -BELOW_1 / (1 - BELOW_1**2) ** 1.5),
    "arctan": (np.arctan, X, -2 * X / (1 + X**2) ** 2),
    "arcsinh": (np.arcsinh, X, -X / (1 + X**2) ** 1.5),
    "arccosh": (np.arccosh, X + 1, -(X + 1) / ((X + 1) ** 2 - 1) ** 1.5),
    "arctanh": (np.arctanh, BELOW_1, 2 * BELOW_1 / (1 - BELOW_1**2) ** 2),
    "arctan2": (lambda x: np.arctan2(x, 2.0), X, -4 * X / (4 + X**2) ** 2),
    "hypot": (lambda x: np.hypot(x, 2.0), X, 4 / (4 + X**2) ** 1.5),
    "sqrt": (np.sqrt, X, -0.25 * X**-1.5),
    "cbrt": (np.cbrt, X, -2 / 9 * X ** (-5 / 3)),
    "reciprocal": (np.reciprocal, X, 2 / X**3),
    "division": (lambda x: 1.0 / x + x / 2, X, 2 / X**3),
    "power": (lambda x: nt.power(x, 2.7), X, 2.7 * 1.7 * X**0.7),
    "exponent": (lambda x: nt.power(3.0, x), X, np.log(3) ** 2 * 3**X),
    "x**x": (lambda x: nt.power(x, x), X, X**X * ((np.log(X) + 1) ** 2 + 1 / X)),
    "abs": (np.abs, SIGNS, np.zeros(4)),
    "relu": (lambda x: np.maximum(x, 0.0) ** 2, SIGNS, [0, 0.5, 0.5, 2]),
    "logaddexp": (lambda x: np.logaddexp(x, 1.0), X, np.exp(X + 1) / (np.exp(X) + np.e) ** 2),
    "sigmoid": (nt.sigmoid, X, -np.sinh(X / 2) / np.cosh(X / 2) ** 3 / 4),
    "softplus": (nt.softplus, X, 1 / np.cosh(X / 2) ** 2 / 4),
    "log_expit": (scipy.special.log_expit, X, -1 / np.cosh(X / 2) ** 2 / 4),
    "erf": (nt.erf, X, -4 * X * np.exp(-(X**2)) / np.sqrt(np.pi)),
    "erfc": (nt.erfc, X, 4 * X * np.exp(-(X**2)) / np.sqrt(np.pi)),
    "erfinv": (nt.erfinv, BELOW_1, np.pi / 2 * scipy.special.erfinv(BELOW_1) * np.exp(2 * scipy.special.erfinv(BELOW_1) ** 2)),
    "gammaln": (nt.gammaln, X, psi(1, X)),
    "gamma": (nt.gamma, X, scipy.special.gamma(X) * (psi(0, X) ** 2 + psi(1, X))),
    "digamma": (nt.digamma, X, psi(2, X)),
    "betaln": (lambda x: nt.betaln(x, 2.0), X, psi(1, X) - psi(1, X + 2)),
    "polygamma": (lambda x: nt.polygamma(2, x), -X, psi(4, -X)),
    "remainder": (lambda x: np.remainder(x, 0.7) ** 2, X, np.full(3, 2.0)),
    "where log": (lambda x: np.where(x > 0, np.log(x), 0), OPEN, [0, 0, -1 / 16]),
    "where x log": (lambda x: np.where(x > 0, x * np.log(x), 0), OPEN, [0, 0, 0.25]),
    "where sqrt": (lambda x: np.where(x > 0, np.sqrt(x), x), OPEN, [0, 0, -1 / 32]),
}


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_are_those_of_the_closed_form(name, is_known):
    function, x, expected = SECOND[name]
    for derivative in (reverse(reverse(function)), forward(reverse(function)), reverse(forward(function)), forward(forward(function))):
        assert_equal(value(derivative, x, is_known=is_known), expected, rtol=1e-13)


def test_compiled_second_derivatives_are_those_of_the_closed_form():
    variables = [inputs_for((x,), known=True)[0] for _, x, _ in SECOND.values()]
    outputs = [reverse(reverse(function))(x).node for (function, _, _), x in zip(SECOND.values(), variables, strict=True)]
    graph = close([x.node for x in variables], outputs)
    found = Program(graph, Mode(), "second", specialise=False)([x for _, x, _ in SECOND.values()])
    for actual, (_, _, expected) in zip(found, SECOND.values(), strict=True):
        assert_equal(actual, expected, rtol=1e-13)


def test_power_at_0_keeps_all_of_its_derivatives():
    x, y = np.zeros(6), np.array([3.0, 2.0, 1.5, 1.0, 0.5, 0.0])
    by_x = reverse(nt.power)
    assert_equal(value(reverse(by_x), x, y), [0, 2, INF, 0, -INF, 0])
    assert_equal(value(reverse(reverse(by_x)), x, y), [6, 0, -INF, 0, INF, 0])
    mixed = [0, 0, 0, -INF, -INF]  # the limit of (1 + y log x) x**(y - 1)
    assert_equal(value(reverse(reverse(nt.power, 1), 0), x[:5], y[:5]), mixed)
    assert_equal(value(reverse(reverse(nt.power, 1), 1), x[:5], y[:5]), np.zeros(5))


def test_every_derivative_of_gammaln_is_a_polygamma():
    x = np.array([-2.5, -0.3, 0.4, 1.0, 7.5])
    derivative = nt.gammaln
    for order in range(5):
        derivative = reverse(derivative)
        assert_equal(value(derivative, x), psi(order, x), rtol=1e-12)


# refusals -----------------------------------------------------------------------------------------------------------


def test_the_order_of_a_polygamma_is_an_integer():
    with pytest.raises(TypeError, match=r"nt\.polygamma is not defined for float64 and float64.*the order is an integer"):
        nt.polygamma(1.5, nt.dvector("x"))
    with pytest.raises(TypeError, match=r"nt\.polygamma is not defined for complex128"):
        nt.trigamma(nt.zvector("z"))


# What a mask hides stays hidden ---------------------------------------------------------------------------------------

MASKED: dict[str, tuple[Function, tuple[Any, ...], int, Any]] = {  # a function, its operands, which one, its gradient
    "a mask of its own": (lambda m, x: np.where(m, np.log(x), 0.0), (OPEN > 0, OPEN), 1, [0, 0, 0.25]),
    "two lengths": (lambda x, y: np.where(y > 0, np.log(x) * y, 0.0), (OPEN, OPEN), 0, [0, 0, 1]),
    "a sign": (lambda x: np.where(x > 0, np.sign(np.log(x)), 0), (OPEN,), 0, [0, 0, 0]),
    "a slope of a modulus": (reverse(lambda x: np.where(x > 0, np.abs(np.log(x)), 0)), (OPEN,), 0, [0, 0, -1 / 16]),
    "a conjugate": (lambda z: np.where(z.real > 0, np.conj(np.log(z)).real, 0), (OPEN + 0j,), 0, [0, 0, 0.25]),
    "two masks": (lambda x: np.where(x > 0, np.log(x), 0) + np.where(x > 1, np.log(x), 0), (OPEN,), 0, [0, 0, 0.5]),
}


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("name", MASKED)
def test_a_branch_not_taken_never_poisons_the_gradient(name, is_known):
    function, operands, k, expected = MASKED[name]
    assert_equal(value(reverse(function, k), *operands, is_known=is_known), expected)
