"""Cards that work element by element: NumPy's values and dtypes, interpreted and compiled."""

import ast
import itertools

import numpy as np
import pytest
from ops.harness import ANY_ZERO, LOOSE, Compiled, assert_close, cards_on, elementwise_cards, hard_values, n_operands, operands_of

import numbascan as ns
import numbascan.tensor as nt
from numbascan.compile import Program
from numbascan.emit.text import WRAPPED, expression
from numbascan.ir.graph import close
from numbascan.ir.loops import AND, OR, Apply, Name
from numbascan.ir.node import new_input
from numbascan.modes import Mode
from numbascan.ops.card import CARDS, apply, evaluate
from numbascan.oracle.interpret import interpret
from numbascan.types import SUPPORTED_DTYPES, TensorType

UFUNC_CARDS = [card for card in elementwise_cards() if card.keys and isinstance(card.keys[0], np.ufunc)]
COMPILED_DTYPES = ("bool", "int8", "int32", "int64", "uint8", "uint64", "float32", "float64", "complex64", "complex128")


def as_single(dtype):
    """numbascan has float32 where NumPy has half precision."""
    return np.dtype("float32") if dtype == np.float16 else np.dtype(dtype)


def plain_values(dtype):
    return np.array([0, 1, 3], dtype) if dtype != "bool" else np.array([False, True, True])


def numpy_result(ufunc, operands):
    """What NumPy gives; None where it does not define the op."""
    try:
        with np.errstate(all="ignore"):
            return ufunc(*operands)
    except TypeError:
        return None


@pytest.mark.parametrize("card", UFUNC_CARDS, ids=lambda card: card.name)
def test_value_and_dtype_are_numpys_for_every_combination_of_dtypes(card):
    ufunc = card.keys[0]
    for dtypes in itertools.product(SUPPORTED_DTYPES, repeat=ufunc.nin):
        operands = [plain_values(dtype)[::step] for dtype, step in zip(dtypes, (1, -1), strict=False)]
        types = tuple(TensorType(dtype, (3,)) for dtype in dtypes)
        expected = numpy_result(ufunc, operands)
        if expected is None:
            with pytest.raises(TypeError, match=rf"np\.{ufunc.__name__} is not defined for {dtypes[0]}"):
                card.infer(*types)
            continue
        inferred = card.infer(*types)
        with np.errstate(all="ignore"):
            (actual,) = evaluate(card, (inferred,), types, operands, {})
        assert (inferred.dtype, inferred.shape) == (as_single(expected.dtype).name, (3,)), dtypes
        if (card.name, np.dtype(dtypes[0]).kind) not in {("reciprocal", "i"), ("reciprocal", "u")}:  # 1 / 0 is left open
            np.testing.assert_allclose(
                actual, expected, rtol=2e-3 if expected.dtype == np.float16 else 1e-6, atol=1e-7, err_msg=str(dtypes)
            )


@pytest.mark.parametrize("card", [card for card in UFUNC_CARDS if n_operands(card) == 2], ids=lambda card: card.name)
@pytest.mark.parametrize("number", [2, 2.5, 2 + 1j], ids=str)
def test_a_python_number_gives_way_to_the_other_operand_as_in_numpy(card, number):
    weak = TensorType({int: "int64", float: "float64", complex: "complex128"}[type(number)], (), weak=True)
    for dtype in SUPPORTED_DTYPES:
        expected = numpy_result(card.keys[0], (plain_values(dtype), number))
        if expected is None:
            with pytest.raises(TypeError, match="is not defined for"):
                card.infer(TensorType(dtype, (3,)), weak)
        else:
            assert card.infer(TensorType(dtype, (3,)), weak).dtype == as_single(expected.dtype).name, dtype


@pytest.mark.parametrize("dtypes", [(dtype,) * n for n in (1, 2) for dtype in COMPILED_DTYPES], ids=str)
def test_compiled_elements_have_numpys_value_and_dtype(dtypes):
    cards = [card for card in cards_on(dtypes) if (card.name, np.dtype(dtypes[0]).kind) != ("power", "i")]
    compiled, operands = Compiled(cards, dtypes), operands_of(dtypes)
    results = compiled(*operands)
    for card, loop, actual, seen in zip(cards, compiled.loops, results, compiled.result_dtypes(), strict=True):
        if loop[-1] not in ("int8", "int16", "int32", "uint8", "uint16", "uint32") and not card.name.startswith("imag"):
            assert seen == loop[-1], card.name  # the printer casts the narrow ones
        with np.errstate(all="ignore"):
            expected = np.asarray(card.evaluate(*operands)).astype(loop[-1])
        any_zero = card.name in ANY_ZERO or (card.name == "power" and loop[0][0] == "c")  # exp(b log a) rounds about zero
        assert_close(actual, expected, LOOSE.get(card.name, 4), f"{card.name} {dtypes}", not any_zero)


def test_compiled_complex_arithmetic_follows_numpy_for_infinities_and_nan():
    names = ("add", "subtract", "true_divide", "isnan", "isinf", "isfinite", "maximum", "fmin", "less", "equal")
    parts = (0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan)
    values = np.array([complex(x, y) for x in parts for y in parts])
    x, y = (np.ascontiguousarray(grid.ravel()) for grid in np.meshgrid(values, values, indexing="ij"))
    for count, operands in ((1, [values]), (2, [x, y])):
        cards = [CARDS[name] for name in names if n_operands(CARDS[name]) == count]
        for card, actual in zip(cards, Compiled(cards, ("complex128",) * count)(*operands), strict=True):
            with np.errstate(all="ignore"):
                assert_close(actual, card.evaluate(*operands), 4, card.name, signed_zeros=False)


def test_compiled_comparisons_of_signed_and_unsigned_integers_are_exact():
    cards = [CARDS[name] for name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")]
    operands = [np.ascontiguousarray(g.ravel()) for g in np.meshgrid(hard_values("uint64"), hard_values("int64"))]
    for card, actual in zip(cards, Compiled(cards, ("uint64", "int64"))(*operands), strict=True):
        np.testing.assert_array_equal(actual, card.evaluate(*operands), err_msg=card.name)


def test_compiled_integer_powers_wrap_as_in_numpy_and_refuse_negative_exponents():
    for dtype in ("int8", "int64"):
        compiled = Compiled([CARDS["power"]], (dtype, dtype))
        base, exponent = (np.ascontiguousarray(g.ravel()) for g in np.meshgrid(hard_values(dtype), np.arange(12, dtype=dtype)))
        np.testing.assert_array_equal(compiled(base, exponent)[0], base**exponent)
        with pytest.raises(ValueError, match="integers to negative integer powers are not allowed"):
            compiled(base, -exponent)


def test_parentheses_stand_wherever_python_needs_them():
    texts = set()
    for card in elementwise_cards():
        for dtype in ("bool", "int64", "float64", "complex128"):
            loop = (dtype,) * n_operands(card)
            if card in cards_on(loop):
                texts.add((card.lower.code(*loop), len(loop), dtype, card.lower.loop(*map(TensorType, loop))[-1]))
    for (outer, n_outer, dtype, _), (inner, n_inner, _, result) in itertools.product(texts, repeat=2):
        if result != dtype or outer.level == inner.level in (AND, OR):  # a or b or c has a tree of its own
            continue
        nested = Apply(result, inner, tuple(Name(dtype, name) for name in "abc"[:n_inner]))
        for place in range(n_outer):
            operands = [nested if k == place else Name(dtype, "xyz"[k]) for k in range(n_outer)]
            safe = [f"({expression(operand)})" for operand in operands]
            text = f"{WRAPPED[outer.text]}({{0}}, {{1}})" if outer.wraps and dtype == "int64" else outer.text
            expected, actual = text.format(*safe), expression(Apply(dtype, outer, tuple(operands)))
            assert ast.dump(ast.parse(expected)) == ast.dump(ast.parse(actual)), (outer, inner)


@pytest.mark.parametrize("card", elementwise_cards(), ids=lambda card: card.name)
def test_samples_lie_where_the_function_is_defined(card):
    for operands, attrs in card.samples():
        assert np.isfinite(card.evaluate(*operands, **attrs)).all()


def test_numpys_function_and_ours_make_the_same_node():
    x, y = nt.dvector("x"), nt.dvector("y")
    for card in UFUNC_CARDS:
        if card in cards_on(("float64",) * n_operands(card)):
            operands = (x, y)[: n_operands(card)]
            assert card.keys[0](*operands).node is getattr(nt, card.name)(*operands).node, card.name


def test_pytensors_names_are_there():
    x, y, k = nt.dvector("x"), nt.dvector("y"), nt.lvector("k")
    assert (nt.sqr(x).node, nt.sgn(x).node, nt.neq(x, y).node) == (np.square(x).node, np.sign(x).node, (x != y).node)
    assert (nt.and_(k, 3).node, nt.xor(k, 3).node, nt.mod(x, y).node) == ((k & 3).node, (k ^ 3).node, (x % y).node)
    assert (nt.int_div(x, y).node, nt.true_div(x, y).node, nt.pow(x, y).node) == ((x // y).node, (x / y).node, (x**y).node)
    assert nt.switch(x > 0, x, y).node is np.where(x > 0, x, y).node


# functions that are more than a card --------------------------------------------------------------------------------


def both_modes(build, *arrays):
    """The results of `build` on variables for `arrays`: interpreted, and compiled with equal results."""
    inputs = [nt.tensor(array.dtype.name, shape=(None,) * array.ndim) for array in arrays]
    outputs = build(*inputs)
    expected = ns.function(inputs, outputs, mode="python")(*arrays)
    for one, other in zip(expected, ns.function(inputs, outputs)(*arrays), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(other, one, rtol=4 * np.finfo(one.dtype).eps if one.dtype.kind in "fc" else 0)
    return expected


def assert_same(actual, expected):
    for number, (one, other) in enumerate(zip(actual, expected, strict=True)):
        assert one.dtype == other.dtype, number
        np.testing.assert_allclose(one, other, rtol=4 * np.finfo(one.dtype).eps if one.dtype.kind in "fc" else 0, err_msg=str(number))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
def test_small_constant_powers_cost_no_call_of_pow_and_keep_the_dtype(dtype):
    x = nt.tensor(dtype, shape=(None,), name="x")
    for exponent, name in ((1, "input"), (2, "square"), (3, "multiply"), (4, "square")):
        assert ((x**exponent).node.op.name, (x**exponent).dtype) == (name, np.dtype(dtype))
    assert (x**5).node.op.name == "power"


def test_a_root_or_a_reciprocal_stands_for_its_power():
    x, k = nt.fvector("x"), nt.lvector("k")
    assert [(x**0.5).node.op.name, (x**-1).node.op.name, (x**2.0).node.op.name] == ["sqrt", "reciprocal", "square"]
    assert (k**0.5).dtype == "float64"
    assert (k**2.0).dtype == "float64"


def test_powers_have_numpys_values():
    x, k = np.array([-1.7, 0.3, 2.6, np.inf]), np.array([-3, 2, 7], "int32")
    z = np.array([1.2 - 0.7j, -0.4 + 2.2j], "complex64")

    def build(x, k, z):
        return [
            x**1,
            x**2,
            x**3,
            x**4,
            x**-1,
            x**5,
            k**2,
            k**3,
            k**0.5,
            2 ** k.astype("float64"),
            z**2,
            z**3,
            z**0.5,
            z**-2,
            nt.float_power(k, -2),
        ]

    with np.errstate(all="ignore"):
        expected = [
            x**1,
            x**2,
            x**3,
            x**4,
            x**-1,
            x**5,
            k**2,
            k**3,
            k**0.5,
            2 ** k.astype("float64"),
            z**2,
            z**3,
            z**0.5,
            z**-2,
            np.float_power(k, -2),
        ]
    assert_same(both_modes(build, x, k, z), expected)


def test_a_negative_constant_power_of_integers_is_refused_while_tracing():
    with pytest.raises(ValueError, match=r"integers to negative integer powers are not allowed.*astype\('float64'\)\*\*\(-2\)"):
        nt.lvector("k") ** -2


def test_a_python_integer_beyond_the_dtype_compares_by_value():
    k = np.array([0, 7, 255], "uint8")
    actual = both_modes(lambda k: [k < 300, k > -1, k == 300, k <= 300, k != 256], k)
    assert_same(actual, [k < 300, k > -1, k == 300, k <= 300, k != 256])


def test_a_python_integer_beyond_the_dtype_is_refused_elsewhere():
    with pytest.raises(OverflowError, match=r"np\.add: the Python integer 300 is out of bounds for uint8"):
        nt.tensor("uint8", shape=(None,)) + 300


def test_an_undefined_operation_names_itself_and_the_dtypes():
    with pytest.raises(TypeError, match=r"np\.bitwise_and is not defined for float64 and int64"):
        nt.dvector("x") & 1
    with pytest.raises(TypeError, match=r"np\.negative is not defined for bool.*~"):
        -(nt.dvector("x") > 0)
    with pytest.raises(TypeError, match=r"np\.positive is not defined for bool"):
        +(nt.dvector("x") > 0)


def test_where_takes_the_choices_dtype_and_three_arguments():
    x, k = np.array([-1.5, np.nan, 2.5], "float32"), np.array([3, 0, -2], "int8")
    build = [
        lambda x, k: np.where(k, x, 0),
        lambda x, k: np.where(x > 0, 1, 0),
        lambda x, k: np.where(k > 0, k, 2.5),
        lambda x, k: np.where(x, k, x),
    ]
    assert_same(both_modes(lambda x, k: [one(x, k) for one in build], x, k), [one(x, k) for one in build])
    with pytest.raises(ValueError, match=r"np\.where takes a condition and two choices"):
        np.where(nt.dvector("x") > 0, 1.0)


def casts(dtypes):
    """Arrays, and the pairs of their numbers and the dtypes that they can be cast to."""
    arrays = [hard_values(dtype)[:2] if dtype == "bool" else np.array([0, 1, 100, 77], dtype) for dtype in dtypes]
    return arrays, [(k, dtype) for k, array in enumerate(arrays) for dtype in dtypes if array.dtype.kind != "c" or dtype[0] in "bc"]


def test_casts_are_numpys_for_every_pair_of_dtypes():
    arrays, pairs = casts(SUPPORTED_DTYPES)
    inputs = [nt.tensor(array.dtype.name, shape=(None,)) for array in arrays]
    actual = ns.function(inputs, [inputs[k].astype(dtype) for k, dtype in pairs], mode="python")(*arrays)
    assert_same(actual, [arrays[k].astype(dtype) for k, dtype in pairs])


def test_compiled_casts_are_numpys():
    arrays, pairs = casts(("bool", "int8", "uint64", "float32", "complex128"))
    actual = both_modes(lambda *inputs: [inputs[k].astype(dtype) for k, dtype in pairs], *arrays)
    assert_same(actual, [arrays[k].astype(dtype) for k, dtype in pairs])


def test_a_fraction_is_cut_off_by_a_cast_to_integers():
    assert_same(both_modes(lambda x: [x.astype(int)], np.array([-1.7, 2.9])), [np.array([-1, 2])])


def test_casts_that_lose_something_unasked_are_refused():
    with pytest.raises(TypeError, match=r"lose the imaginary part; write x\.real or np\.abs"):
        nt.zvector("z").astype("float64")
    with pytest.raises(TypeError, match="casting='safe' forbids"):
        nt.dvector("x").astype("float32", casting="safe")
    with pytest.raises(TypeError, match="dtype float16 is not supported"):
        nt.cast(nt.dvector("x"), "float16")


def test_rounding_is_numpys():
    x, k = np.array([0.125, 2.675, -1.5, 2.5, 1234.567, -np.inf]), np.array([15, -25, 126, 7], "int16")
    z = np.array([1.25 - 0.75j, 2.5 + 3.5j])
    build = [
        *(lambda x, k, z: np.round(x), lambda x, k, z: np.round(x, 2), lambda x, k, z: x.round(-2), lambda x, k, z: np.around(k, 1)),
        *(lambda x, k, z: np.round(k, -1), lambda x, k, z: np.round(z, 1), lambda x, k, z: np.floor(k)),
    ]
    assert_same(both_modes(lambda *inputs: [one(*inputs) for one in build], x, k, z), [one(x, k, z) for one in build])
    assert_same(both_modes(lambda x: [np.fix(x)], x), [np.trunc(x)])  # NumPy 2.5 deprecates its own np.fix
    assert_same(both_modes(lambda x: [nt.iround(x)], x[:-1]), [np.round(x[:-1]).astype("int64")])


def test_parts_of_complex_and_real_numbers_are_numpys():
    z, x = np.array([1.5 - 2j, -3.25 + 0.5j], "complex64"), np.array([-1.5, 2.5])
    build = [
        *(lambda z, x: z.real, lambda z, x: np.imag(z), lambda z, x: x.real, lambda z, x: np.imag(x), lambda z, x: np.conj(z)),
        *(lambda z, x: np.angle(z), lambda z, x: np.angle(x, deg=True), lambda z, x: abs(z)),
    ]
    assert_same(both_modes(lambda *inputs: [one(*inputs) for one in build], z, x), [one(z, x) for one in build])
    assert_same(both_modes(lambda x: [nt.complex(x, x + 1)], x), [x + 1j * (x + 1)])


def test_nan_to_num_clip_isclose_divmod_and_modf_are_numpys():
    x, k = np.array([np.nan, np.inf, -np.inf, 2.5, -1.25]), np.array([0, 3, 250], "uint8")
    z = np.array([complex(np.nan, np.inf), 1 - 2j])
    build = [
        *(lambda x, k, z: np.nan_to_num(x), lambda x, k, z: np.nan_to_num(x, nan=1.5, posinf=7.0), lambda x, k, z: np.nan_to_num(k)),
        *(
            lambda x, k, z: np.nan_to_num(z),
            lambda x, k, z: np.clip(x, -1, 2),
            lambda x, k, z: x.clip(None, 0.5),
            lambda x, k, z: np.clip(k, -1, 300),
        ),
        *(lambda x, k, z: np.isclose(x, x + 1e-9), lambda x, k, z: np.isclose(x, 2.5, equal_nan=True), lambda x, k, z: divmod(x, 0.75)[0]),
        *(
            lambda x, k, z: np.divmod(k, 7)[1],
            lambda x, k, z: np.modf(x)[0],
            lambda x, k, z: np.modf(x)[1],
            lambda x, k, z: np.fabs(k.astype(int)),
        ),
    ]
    with np.errstate(all="ignore"):
        expected = [one(x, k, z) for one in build]
    assert_same(both_modes(lambda *inputs: [one(*inputs) for one in build], x, k, z), expected)
    assert np.nan_to_num(nt.fvector("x")).dtype == "float32"


@pytest.mark.parametrize(("dtype", "pair"), [("int8", (-100, 100)), ("uint8", (3, 4)), ("uint64", (1, 2)), ("bool", (True, False))])
def test_distances_of_whole_numbers_do_not_wrap(dtype, pair):
    build = [lambda x, y: np.isclose(x, y, atol=60, rtol=0), lambda x, y: np.isclose(y, x, rtol=0.5), lambda x, y: np.isclose(x, x)]
    x, y = (np.array([number], dtype) for number in pair)
    assert_same(both_modes(lambda *inputs: [one(*inputs) for one in build], x, y), [one(x, y) for one in build])


@pytest.mark.parametrize("n", [1, 2])
def test_one_function_may_use_an_op_in_both_precisions(n):
    """Numba declares some functions of its library once per module, whatever the precision."""
    cards = [card for card in cards_on(["float64"] * n) if card in cards_on(["float32"] * n)]
    single, double = (np.array([0.3, 0.6, 0.9], dtype) for dtype in ("float32", "float64"))

    x, y = (new_input(TensorType(dtype, (3,))) for dtype in ("float32", "float64"))
    graph = close((x, y), [apply(card, *[operand] * n) for card in cards for operand in (x, y)])
    found = Program(graph, Mode())((single, double))
    with np.errstate(all="ignore"):
        expected = interpret(graph, (single, double))
    for card, one, other in zip(np.repeat(cards, 2), found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5 if one.dtype == np.float32 else 1e-11, err_msg=card.name)
