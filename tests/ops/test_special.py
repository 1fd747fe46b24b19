"""Special functions: SciPy's values, interpreted and compiled, and the sums of exponentials built on them."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.special
from ops.functions import inputs_for
from ops.harness import Compiled, assert_close, cards_on
from ops.slopes import reverse, value

import numbascan as ns
import numbascan.tensor as nt
from numbascan.ops.card import CARDS

SCIPY = {key.removeprefix("scipy.special."): card for card in CARDS.values() for key in card.keys if isinstance(key, str)}
POINTS = (-20.25, -3.7, -0.9, -0.25, 0.0, 1e-8, 0.25, 0.9, 1.0, 1.4616321449683622, 2.0, 3.7, 12.5, 80.1, np.inf, np.nan)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_compiled_special_functions_have_scipys_values(dtype, count):
    cards = {name: card for name, card in SCIPY.items() if card in cards_on((dtype,) * count)}
    values = np.array(POINTS[:: 2 if count == 3 else 1], dtype)
    operands = [np.ascontiguousarray(grid.ravel()) for grid in np.meshgrid(*(values,) * count)]
    results = Compiled(list(cards.values()), (dtype,) * count)(*operands)
    for name, actual in zip(cards, results, strict=True):
        with np.errstate(all="ignore"):
            expected = getattr(scipy.special, name)(*(x.astype("float64") for x in operands)).astype(dtype)
        assert_close(actual, expected, 64 if name == "gammaln" else 8, name)  # log gamma has zeros between its poles


ENDS = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e-310, 1e-17, -1e-8, -745.2, 709.7, 709.9, 717.5, 1e300, -1e300])
WIDE = np.concatenate([ENDS, np.linspace(-800.0, 800.0, 4001), np.linspace(-2.0, 2.0, 2001)])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["exprel", "log_expit"])
def test_compiled_functions_of_exponentials_have_scipys_values_at_both_ends(name, dtype):
    with np.errstate(all="ignore"):
        values = WIDE.astype(dtype)
        expected = getattr(scipy.special, name)(values)
    x = nt.vector("x", dtype=dtype)
    assert_close(ns.function([x], getattr(nt, name)(x))(values), expected, 4, name)


@pytest.mark.parametrize("name", sorted(SCIPY))
def test_scipys_function_of_a_variable_makes_our_node(name):
    card = SCIPY[name]
    operands = (nt.dvector("x"), nt.dvector("y"), nt.dvector("z"))[: len(card.samples()[0][0])]
    assert getattr(scipy.special, name)(*operands).node is getattr(nt, card.name)(*operands).node


@pytest.mark.parametrize("name", sorted(SCIPY))
def test_single_precision_stays_single_and_all_else_is_double(name):
    card = SCIPY[name]
    for dtype in ("bool", "int8", "int64", "uint16", "float32", "float64"):
        operands = [np.array([True] if dtype == "bool" else [1, 2, 4], dtype)] * len(card.samples()[0][0])
        inputs = [nt.tensor(dtype, shape=(None,)) for _ in operands]
        actual = ns.function(inputs, getattr(nt, card.name)(*inputs), mode="python")(*operands)
        assert actual.dtype == ("float32" if dtype == "float32" else "float64")
        rtol = 1e-6 if dtype == "float32" else 1e-15
        np.testing.assert_allclose(actual, getattr(scipy.special, name)(*(x.astype(actual.dtype) for x in operands)), rtol=rtol)


def test_complex_operands_are_refused():
    with pytest.raises(TypeError, match=r"nt\.erf is not defined for complex128.*real operands"):
        nt.erf(nt.zvector("z"))


def test_a_function_of_scipy_that_is_missing_is_named():
    with pytest.raises(TypeError, match=r"scipy\.special\.yv is not supported on traced values"):
        scipy.special.yv(1.5, nt.dvector("x"))


def test_softplus_and_relu_do_not_overflow():
    x = nt.dvector("x")
    values = np.array([-800.0, -1.5, 0.0, 2.5, 800.0])
    soft, hard, leaky = ns.function([x], [nt.softplus(x), nt.relu(x), nt.relu(x, 0.1)])(values)
    np.testing.assert_allclose(soft, [0.0, np.log1p(np.exp(-1.5)), np.log(2.0), np.log1p(np.exp(2.5)), 800.0], rtol=1e-15)
    np.testing.assert_array_equal(hard, [0.0, 0.0, 0.0, 2.5, 800.0])
    np.testing.assert_allclose(leaky, [-80.0, -0.15, 0.0, 2.5, 800.0], rtol=1e-15)


ROWS = np.array([[1.5, -2.0, 0.25], [900.0, 899.0, -900.0], [-np.inf, -np.inf, -np.inf], [np.inf, 1.0, 2.0], [-np.inf, 0.5, 0.25]])


@pytest.mark.parametrize("name", ["logsumexp", "softmax", "log_softmax"])
@pytest.mark.parametrize("axis", [1, 0, None])
def test_sums_of_exponentials_are_scipys_at_the_ends_too(name, axis):
    x = nt.dmatrix("x")
    for rows in (ROWS, ROWS[:2]):
        with np.errstate(all="ignore"):
            expected = getattr(scipy.special, name)(rows, axis=axis)
        for mode in ("python", None):
            actual = ns.function([x], getattr(nt, name)(x, axis=axis), mode=mode)(rows)
            np.testing.assert_allclose(actual, expected, rtol=1e-14)


def test_logsumexp_keeps_the_axis_if_asked():
    x = nt.dmatrix("x")
    actual = ns.function([x], nt.logsumexp(x, axis=1, keepdims=True), mode="python")(ROWS[:2])
    np.testing.assert_allclose(actual, scipy.special.logsumexp(ROWS[:2], axis=1, keepdims=True), rtol=1e-15)


EXACT = (  # order, operand, value; from mpmath with 120 digits
    (1, 0.3, 12.2453645461077313),
    (1, -1000.25, 19.7382095516997849),
    (2, -2.5, -0.108204051641727403),
    (2, -2.501, -0.302954525570414581),
    (4, -0.75, -24483.2395861687979),
    (5, 45.6, 1.28546947714271841e-7),
    (6, 1e-09, -7.19999999999999686e65),
    (6, -2.5, -0.138358107550035202),
    (7, 3.3, 0.412625865670919303),
    (1, 1e200, 1e-200),
)


@pytest.mark.parametrize("mode", ["python", None])
def test_polygamma_is_scipys_for_orders_and_operands_that_broadcast(mode):
    n, x = nt.lmatrix("n"), nt.dvector("x")
    orders, values = np.arange(7)[:, None], np.array([-20.25, -3.7, -0.9, 0.25, 1.0, 3.7, 80.1, 1e9, -3.0, 0.0, np.inf, -np.inf, np.nan])
    with np.errstate(all="ignore"):
        expected = scipy.special.polygamma(orders, values)
    np.testing.assert_allclose(ns.function([n, x], nt.polygamma(n, x), mode=mode)(orders, values), expected, rtol=1e-13)


def test_compiled_polygamma_is_exact_between_its_poles_too():
    n, x = nt.lvector("n"), nt.dvector("x")
    orders, values, expected = map(np.array, zip(*EXACT, strict=True))
    np.testing.assert_allclose(ns.function([n, x], nt.polygamma(n, x))(orders, values), expected, rtol=1e-14)


def test_compiled_polygamma_far_below_0_takes_no_longer():
    x = nt.dvector("x")
    values = np.array([-1e15 - 0.5, -1e12 - 0.25])
    actual = ns.function([x], nt.trigamma(x))(values)
    np.testing.assert_allclose(actual, np.pi**2 / np.sin(np.pi * np.array([0.5, 0.25])) ** 2, rtol=1e-12)


def test_polygamma_in_single_precision_and_of_a_negative_order():
    x = nt.fvector("x")
    values = np.array([0.5, 2.0, -1.25], "float32")
    first, none = ns.function([x], [nt.polygamma(1, x), nt.polygamma(-1, x)])(values)
    assert first.dtype == "float32"
    np.testing.assert_allclose(first, scipy.special.polygamma(1, values), rtol=1e-6)
    assert np.isnan(none).all()


def integral(order, x):
    """The integral of t**order exp(t x) over t from 0 to 1: the sum of x**k / (k! (order + 1 + k)), in exact arithmetic."""
    total, power, k, x = Fraction(0), Fraction(1), 0, Fraction(x)
    while k < abs(x) or abs(power) > Fraction(10) ** -350:
        total, k = total + power / (order + 1 + k), k + 1
        power = Fraction(int(power * x / k * 10**700), 10**700)
    return float(total)


@pytest.mark.parametrize("order", range(4))
def test_every_derivative_of_exprel_is_exact_near_0_and_far_from_it(order):
    x = np.array([-300.0, -61.0, -36.1, -34.0, -31.9, -8.5, -1.0, -1e-3, -1e-9, 0.0, 5e-324, 1e-8, 0.25, 3.0, 31.9, 36.1, 300.0])
    function = scipy.special.exprel
    for _ in range(order):
        function = reverse(function)
    expected = [integral(order, point) for point in x]
    np.testing.assert_allclose(value(function, x), expected, rtol=2e-15)
    (variable,) = inputs_for((x,), known=False)
    np.testing.assert_allclose(ns.function([variable], function(variable))(x), expected, rtol=2e-15)


def test_derivatives_of_exprel_at_the_ends():
    ends = np.array([-np.inf, -1e300, 720.0, np.inf, np.nan])
    for function in (reverse(scipy.special.exprel), reverse(reverse(scipy.special.exprel))):
        np.testing.assert_array_equal(value(function, ends), [0, 0, np.inf, np.inf, np.nan])
    single = value(reverse(scipy.special.exprel), np.array([-2.0, 1e-5, 90.0], "float32"))
    assert single.dtype == "float32"
    np.testing.assert_allclose(single, [integral(1, x) for x in (-2.0, np.float32(1e-5).item(), 90.0)], rtol=1e-6)


HARD = {  # operands and the value, from mpmath with 600 bits: tails, and places where the plain formula cancels
    "ndtr": (
        (-37.5, 4.60535300958195484e-308),
        (-20.25, 1.77619986494957003e-91),
        (-1.3, 0.0968004845856103255),
        (5.5, 0.999999981010437534),
    ),
    "log_ndtr": (
        (-1e4, -50000010.1292789152),
        (-38.25, -736.095014427273109),
        (-0.5, -1.17591176159361861),
        (6.75, -7.39225777804514516e-12),
    ),
    "logit": ((1e-300, -690.775527898213705), (0.25, -1.09861228866810969), (0.4999999, -4.00000000011507599e-7)),
    "logit near 1": ((0.5000001, 3.99999999789462994e-7), (0.9999999, 16.1180955514846707), (0.3, -0.847297860387203667)),
    "log1mexp": ((-1e-300, -690.775527898213705), (-1e-10, -23.0258509299904568), (-0.6931, -0.693194363346000836)),
    "log1mexp far from 0": ((-0.6932, -0.693094363909636476), (-40.0, -4.248354255291589e-18), (-1e3, -0.0)),
}


def hard_values():
    """The functions of HARD, their operands and values."""
    for name, rows in HARD.items():
        yield name.split()[0], *map(np.array, zip(*rows, strict=True))


def test_functions_are_exact_in_tails_and_where_a_plain_formula_cancels():
    names, operands, expected = zip(*hard_values(), strict=True)
    inputs = [nt.dvector(f"x{k}") for k in range(len(names))]
    outputs = [getattr(nt, name)(x) for name, x in zip(names, inputs, strict=True)]
    for mode in ("python", None):
        for name, actual, value_ in zip(names, ns.function(inputs, outputs, mode=mode)(*operands), expected, strict=True):
            np.testing.assert_allclose(actual, value_, rtol=2e-14 if name == "log_ndtr" else 5e-16, err_msg=name)


SLOPES = (  # a function, which derivative, operands, value; from mpmath
    (nt.erfcx, "r", (-3.5,), -2925738.08549955929),
    (nt.erfcx, "rr", (-3.5,), 21316091.4433884557),
    (nt.erfcx, "r", (0.25,), -0.743205893230014202),
    (nt.erfcx, "rr", (0.75,), 0.461916263102596564),
    (nt.erfcx, "rr", (30.0,), 0.0000416530923844588759),
    (nt.erfcx, "r", (1e8,), -5.64189583547756202e-17),
    (nt.log_ndtr, "r", (-1000.0,), 1000.00099999800001),
    (nt.log_ndtr, "rr", (-1000.0,), -0.99999900000599995),
    (nt.log_ndtr, "rr", (-2.0,), -0.885720899585918743),
    (nt.log_ndtr, "r", (1.5,), 0.138789750458850756),
    (lambda x: nt.gammainc(1e6, x), "r", (1e6 + 500,), 0.000351904009614675484),
    (lambda x: nt.gammainc(1e10, x), "r", (1e10 - 1e5,), 2.41972337666716854e-6),
    (lambda x: nt.gammaincc(0.5, x), "r", (1e-5,), -178.410627500081542),
    (lambda x: nt.gammainc(12.5, x), "r", (3.0,), 0.000111631622518616415),
    (lambda x: nt.gammaincc(3.5, x), "r", (40.0,), -1.29358357859429894e-14),
    (lambda x: nt.gammainc(1.0, x), "r", (0.0,), 1.0),
    (lambda x: nt.betainc(1e5, 2e5, x), "r", (0.3335,), 454.80617957347248),
    (lambda x: nt.betainc(1e9, 10.0, x), "r", (0.99999999,), 125110035.718035541),
    (lambda x: nt.betainc(0.5, 0.5, x), "r", (1e-5,), 100.658927504869833),
    (lambda x: nt.betainc(30.0, 2.5, x), "r", (0.75,), 0.117330790189535545),
    (lambda x: nt.betainc(20.0, 15.0, x), "r", (0.25,), 0.00180459389154855694),
    (lambda x: nt.gammainc(20.0, x), "r", (1e-9,), 8.2206352384037042e-189),
    (lambda x: nt.betainc(20.0, 30.0, x), "r", (1e-9,), 5.65550530526555038e-157),
    (lambda a: nt.gammainc(a, 1e-9), "r", (0.5,), -0.000740759619523216985),
    (lambda a: nt.gammaincc(a, 0.7), "r", (1e-3,), 0.374337722430052439),
    (lambda a: nt.gammainc(a, 2.5), "r", (2.5,), -0.260844962368669449),
    (lambda a: nt.gammainc(a, 1e-9), "r", (20.0,), -9.75945176861961576e-198),
    (lambda a: nt.gammainc(a, 340.0), "r", (300.0,), -0.0018643485627999958),
    (lambda a: nt.gammaincc(a, 1e-100), "r", (1e-4,), 224.466224156440469),
    (lambda a: nt.betainc(a, 0.5, 1e-9), "r", (0.5,), -0.000429549185296822921),
    (lambda b: nt.betainc(0.5, b, 1e-9), "r", (0.5,), 0.0000279084411739637741),
    (lambda b: nt.betainc(2.0, b, 0.4), "r", (3.0,), 0.156344336413598775),
    (lambda a: nt.betainc(a, 200.0, 0.61), "r", (300.0,), -0.0130192687123326751),
    (lambda b: nt.betainc(300.0, b, 0.61), "r", (200.0,), 0.0199469172361222568),
    (lambda a: nt.betainc(a, 40.0, 1e-5), "r", (1e-3,), -7.20885904870559591),
    (lambda b: nt.betainc(1e-3, b, 1e-5), "r", (40.0,), 0.0000251217331928626613),
    (lambda a: nt.betainc(a, 2.5e-3, 1 - 1e-9), "r", (60.0,), -0.0000403612375593433425),
    (lambda b: nt.betainc(60.0, b, 1 - 1e-9), "r", (2.5e-3,), 15.4318458701810144),
    (lambda a: nt.gammainc(a, 0.0) + nt.betainc(a, 2.0, 1.0), "r", (1.5,), 0.0),
    (nt.xlogy, "r", (0.0, 0.0), -np.inf),
    (lambda y: nt.xlogy(0.0, y), "r", (0.0,), 0.0),
    (lambda y: nt.xlog1py(0.0, y), "r", (-1.0,), 0.0),
    (lambda x, y: reverse(lambda y: nt.xlogy(x, y))(y), "r", (0.0, 2.0), 0.5),
    (lambda x, y: reverse(lambda y: nt.xlog1py(x, y))(y), "r", (0.0, 2.0), 1 / 3),
    (nt.log_ndtr, "rr", (40.0,), 0.0),
    (nt.log_ndtr, "rr", (12.0,), -12 * np.exp(-72.0) / np.sqrt(2 * np.pi)),
    (lambda x: nt.gammainc(2.0, x) + nt.gammaincc(20.0, x), "r", (np.inf,), 0.0),
    (nt.log1mexp, "r", (0.0,), -np.inf),
    (nt.log1mexp, "r", (-0.0,), -np.inf),
    (nt.log1mexp, "r", (-1e-9,), -999999999.5),
    (nt.log1mexp, "rr", (-800.0,), 0.0),
    (nt.log_ndtr, "rr", (-1e300,), -1.0),
    (lambda x: nt.ndtr(x) + nt.erf(x) + nt.erfc(-x) + nt.log_ndtr(x), "rr", (np.inf,), 0.0),
    (lambda x: nt.ndtr(x) + nt.erf(x) + nt.erfc(-x) + nt.log1mexp(x), "rr", (-np.inf,), 0.0),
    (nt.i1e, "r", (np.inf,), 0.0),
    (lambda x: nt.i0e(x) + nt.i1e(x), "rr", (-np.inf,), 0.0),
    (nt.j1, "r", (0.0,), 0.5),
    (nt.i1, "r", (0.0,), 0.5),
    (lambda x: nt.iv(1, x), "rr", (0.0,), 0.0),
)


def test_derivatives_are_exact_where_their_plain_formulas_cancel():
    inputs, outputs = [], []
    for function, which, operands, _ in SLOPES:
        derivative = reverse(reverse(function)) if which == "rr" else reverse(function)
        variables = inputs_for(operands, known=True)
        inputs += variables
        outputs.append(derivative(*variables))
    arguments, expected = [x for row in SLOPES for x in row[2]], [row[3] for row in SLOPES]
    for mode in ("python", None):
        actual = ns.function(inputs, outputs, mode=mode, on_unused_input="ignore")(*arguments)
        np.testing.assert_allclose(actual, expected, rtol=2e-12)


@pytest.mark.parametrize("name", ["jv", "iv", "ive", "kv", "kve"])
def test_a_derivative_that_is_not_known_is_refused_in_that_operand_alone(name):
    v, x = nt.dscalar("v"), nt.dscalar("x")
    result = getattr(nt, name)(v, x)
    with pytest.raises(ns.NullGradientError, match=rf"{name} has no derivative .*with respect to its order"):
        ns.grad(result, v)
    with pytest.raises(ns.NullGradientError, match=rf"{name} has no derivative .*with respect to its order"):
        ns.jvp(getattr(nt, name), (1.5, 2.0), (1.0, 0.0))
    derivative, step = getattr(scipy.special, f"{name}p", None), 1e-5
    expected = derivative(1.5, 2.0) if derivative else np.diff(getattr(scipy.special, name)(1.5, [2 - step, 2 + step]))[0] / (2 * step)
    slope = ns.function([v, x], ns.grad(result, x))
    np.testing.assert_allclose(slope(1.5, 2.0), expected, rtol=1e-13 if derivative else 1e-8)


def test_second_derivatives_in_a_shape_are_refused():
    a, x = nt.dscalar("a"), nt.dscalar("x")
    for result in (nt.gammainc(a, x), nt.betainc(a, 2.0, x), nt.betainc(2.0, a, x)):
        with pytest.raises(ns.NullGradientError, match="second derivative with respect to a shape"):
            ns.grad(ns.grad(result, a), a)
        both = ns.function([a, x], [ns.grad(ns.grad(result, a), x), ns.grad(ns.grad(result, x), a)])(1.5, 0.3)
        np.testing.assert_allclose(*both, rtol=1e-13)
