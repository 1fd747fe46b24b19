"""Integer arithmetic at the ends of its range: it wraps as NumPy's does, in every mode, whatever LLVM may know of the operands."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ops.harness import cards_on, hard_values, operands_of
from wide import wide

import numbascan as ns
import numbascan.tensor as nt
from numbascan.emit.text import WRAPPED
from numbascan.ops.card import CARDS

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
LONG_AND_SHORT = sorted(INTEGERS, key=lambda dtype: np.dtype(dtype).itemsize in (2, 4))  # those between them come last
MIXED = (("int64", "uint64"), ("uint64", "int64"), ("int8", "uint64"), ("int32", "int64"), ("uint32", "int32"), ("int64", "uint8"))
SAME = tuple((dtype, dtype) for dtype in LONG_AND_SHORT)
REDUCTIONS = (np.sum, np.prod, np.max, np.min, np.argmax, np.argmin, np.any, np.all, np.ptp)
RUNNING = (np.cumsum, np.cumprod, np.diff)
LEAST, GREATEST = -(2**63), 2**63 - 1


def variable(dtype, name, rank=1):
    return nt.tensor(dtype, shape=(None,) * rank, name=name)


def quietly(function, *operands):
    with np.errstate(all="ignore"):
        return function(*operands)


def exponents(name, operands):
    """Negative exponents are an error of their own."""
    return [operands[0], np.abs(operands[1]) % 70] if name == "power" else operands


def assert_as_numpy(inputs, values, results, expected, labels):
    for mode in (None, "python"):
        found = ns.function(inputs, results, mode=mode)(*values)
        for label, actual, wanted in zip(labels, found, expected, strict=True):
            np.testing.assert_array_equal(actual, wanted, err_msg=f"{label}, mode {mode}")


@pytest.mark.parametrize("dtypes", wide([(pair,) for pair in (*MIXED, *SAME)], first=10), ids=str)
def test_operations_of_two_integers_are_numpys_at_the_ends_of_their_range(dtypes):
    ufuncs = {card.name: card.keys[0] for card in CARDS.values() if card.keys and isinstance(card.keys[0], np.ufunc)}
    x, y = variable(dtypes[0], "x"), variable(dtypes[1], "y")
    values = operands_of(dtypes)
    names, results, expected = [], [], []
    for name in [name for name, ufunc in ufuncs.items() if ufunc.nin == 2 and name not in ("accumulate", "logaddexp", "logaddexp2")]:
        try:
            wanted = quietly(ufuncs[name], *exponents(name, values))
        except (TypeError, ValueError):
            continue
        if wanted.dtype.kind in "biu" or name == "true_divide":
            names.append(name)
            results.append(ufuncs[name](*exponents(name, [x, y])))
            expected.append(wanted)
    assert {"add", "subtract", "multiply", "less"} <= set(names) or "uint64" in dtypes
    assert_as_numpy([x, y], values, results, expected, names)


@pytest.mark.parametrize("dtype", wide(LONG_AND_SHORT, first=4))
def test_operations_of_one_integer_reductions_and_products_are_numpys_at_the_ends_of_their_range(dtype):
    x, values = variable(dtype, "x"), hard_values(dtype)
    whole = [card for card in cards_on([dtype]) if card.lower.loop(x.type)[-1] == dtype and card.keys and card.name != "reciprocal"]
    functions = [
        *(card.keys[0] for card in whole),
        *REDUCTIONS,
        *RUNNING,
        lambda x: x**2,
        lambda x: x**3,
        lambda x: x**4,
        lambda x: x**7,
        lambda x: np.dot(x, x),
        lambda x: np.outer(x, x) @ x,
        lambda x: np.outer(x, x)[:, :3] @ np.outer(x, x)[:3],
        lambda x: np.outer(x, x).sum(axis=0),
        lambda x: np.cumsum(np.outer(x, x), axis=1),
    ]
    assert {"negative", "absolute", "square", "sign"} <= {card.name for card in whole}
    expected = [quietly(function, values) for function in functions]
    assert_as_numpy([x], [values], [function(x) for function in functions], expected, range(len(functions)))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_what_is_added_to_a_part_of_an_array_wraps(dtype):
    x, y = variable(dtype, "x"), variable(dtype, "y")
    values, ends = hard_values(dtype), hard_values(dtype)[::-1].copy()
    expected = values.copy()
    np.add.at(expected, [0, 0, 1, -1], ends[:4])
    sliced = values.copy()
    quietly(np.add, sliced[2:], ends[2:], sliced[2:])
    results = [nt.inc_subtensor(x[np.array([0, 0, 1, -1])], y[:4]), x[2:].inc(y[2:])]
    assert_as_numpy([x, y], [values, ends], results, [expected, sliced], ["places", "slice"])


def test_llvm_does_not_reason_that_int64_stays_in_its_range():
    x, values = variable("int64", "x"), hard_values("int64")
    truths = (
        lambda x: x + 1 > x,
        lambda x: x - 1 < x,
        lambda x: (x * 8) // 8,
        lambda x: (x * 8) % 8,
        lambda x: abs(x) >= 0,
        lambda x: -x < 0,
        lambda x: x * x >= 0,
        lambda x: x**2 // x,
        lambda x: x * 2 > x,
        lambda x: x + np.int64(LEAST),
        lambda x: x - np.int64(LEAST),
        lambda x: (x + 5) - 7 < x,
        lambda x: np.where(x + 3 > 2, x + 3, 0),
        lambda x: (x << 3) >> 3,
        lambda x: x // np.int64(-1),
        lambda x: x % np.int64(-1),
        lambda x: np.maximum(x + 1, x),
    )
    assert_as_numpy([x], [values], [truth(x) for truth in truths], [quietly(truth, values) for truth in truths], range(len(truths)))


@pytest.mark.parametrize(
    "step",
    [
        lambda x, s: s + x,
        lambda x, s: s - x,
        lambda x, s: s * x,
        lambda x, s: s * 3 + 1,
        lambda x, s: np.where(s + 1 > s, s + x, x),
        lambda x, s: (s * 8) // 8 + x,
        lambda x, s: s**2 + x,
        lambda x, s: abs(s) - x,
    ],
)
@pytest.mark.parametrize("mode", [None, "python"])
def test_states_of_int64_wrap(step, mode):
    values = np.tile(hard_values("int64"), 5)
    for start in (np.int64(7), np.int64(GREATEST), np.int64(LEAST)):
        expected, state = [], start
        for value in values:
            state = quietly(step, value, state)
            expected.append(state)
        np.testing.assert_array_equal(ns.scan(step, mode=mode)(values, start), expected)
        np.testing.assert_array_equal(ns.scan(step, mode=mode, keep_last=1)(values, start), expected[-1])


def test_lanes_of_int64_wrap():
    values = np.stack([np.roll(hard_values("int64"), k) for k in range(70)])
    total = ns.vmap(lambda row: ns.scan(lambda x, s: np.where(s + 1 > s, s + x, s * 2), sequences=row, outputs_info=np.int64(0))[0][-1])
    state = np.zeros(70, "int64")
    for x in values.T:
        state = np.where(state + 1 > state, state + x, state * 2)
    np.testing.assert_array_equal(total(values), state)


@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"])
def test_int64_and_uint64_compare_exactly(name):
    near = np.array([2**53, 2**53 + 1, GREATEST - 1, GREATEST, 0, 5], "int64")
    signed = np.concatenate([near, -near, [LEAST]])
    unsigned = np.concatenate([near.astype("uint64"), np.array([2**63, 2**64 - 1], "uint64")])
    pairs = [grid.ravel() for grid in np.meshgrid(signed, unsigned)]
    compare = getattr(np, name)
    x, y = variable("int64", "x"), variable("uint64", "y")
    exact = [np.array([compare(int(a), int(b)) for a, b in zip(*order, strict=True)]) for order in (pairs, pairs[::-1])]
    assert_as_numpy([x, y], pairs, [compare(x, y), compare(y, x)], exact, ["signed first", "unsigned first"])


# chains of operations -----------------------------------------------------------------------------------------------

_NUMBERS = st.sampled_from([1, -1, 2, 3, 8, -8, 7, 2**31, 2**62, GREATEST, LEAST, -GREATEST])


@st.composite
def chains(draw):
    """An expression of x and y, as a function: a text that means the same to NumPy and here."""
    text = draw(st.sampled_from("xy"))
    for _ in range(draw(st.integers(2, 6))):
        other = draw(st.one_of(st.sampled_from("xy"), _NUMBERS.map(lambda number: f"np.int64({number})")))
        form = draw(
            st.sampled_from(
                [
                    *("({0} + {1})", "({0} - {1})", "({1} - {0})", "({0} * {1})", "({0} // {1})", "({0} % {1})", "({0} ^ {1})"),
                    *("(-{0})", "abs({0})", "({0} << np.int64(3))", "({0} >> np.int64(2))", "({0}**2)", "np.maximum({0}, {1})"),
                    *("np.where({0} > {1}, {0}, {1})", "np.where({0} + np.int64(1) > {0}, {1}, {0})", "np.sign({0})", "np.cumsum({0})"),
                ]
            )
        )
        text = form.format(text, other)
    compared = draw(st.sampled_from(["{0}", "({0} < {1})", "({0} >= 0)", "({0} + {1} > {0})"]))
    return compared.format(text, draw(st.sampled_from("xy")))


@settings(max_examples=12)
@given(st.lists(chains(), min_size=4, max_size=4))
def test_chains_of_int64_operations_are_numpys(texts):
    values = [grid.ravel() for grid in np.meshgrid(hard_values("int64"), hard_values("int64"))]
    x, y = variable("int64", "x"), variable("int64", "y")
    results = [eval(text, {"np": np, "x": x, "y": y}) for text in texts]
    expected = [quietly(eval, text, {"np": np, "x": values[0], "y": values[1]}) for text in texts]
    found = ns.function([x, y], results, on_unused_input="ignore")(*values)
    for text, actual, wanted in zip(texts, found, expected, strict=True):
        np.testing.assert_array_equal(actual, wanted, err_msg=text)


# speed --------------------------------------------------------------------------------------------------------------


def test_every_operation_that_wraps_has_a_function_of_its_name():
    from numbascan.emit.runtime import intrinsics

    assert all(callable(getattr(intrinsics, name)) for name in WRAPPED.values())


def test_sums_of_int64_are_loops_of_simd():
    from numba import njit, types

    from numbascan.emit.runtime.intrinsics import wrapping_add, wrapping_mul

    def total(xs, ys):
        result = 0
        for i in range(len(xs)):
            result = wrapping_add(result, wrapping_mul(3, xs[i]))
            ys[i] = wrapping_add(xs[i], ys[i])
        return result

    row = types.Array(types.int64, 1, "C")
    compiled = njit(types.int64(row, row))(total)
    (llvm,) = compiled.inspect_llvm().values()
    assert " x i64>" in llvm
