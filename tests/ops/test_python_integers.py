"""Python integers beyond the dtype that they meet: as in NumPy 2 an OverflowError, floats beside floats, exact where they are compared."""

import operator

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

BEYOND = (2**63, 2**64 - 1, 2**64, -(2**63) - 1, 10**30, -(10**30))
ARRAYS = (np.array([1, 2, -3]), np.array([1, 2, 3], "uint64"), np.array([1.5, -2.0, 3.0]), np.array([1, 2, -3], "int8"))
OPERATORS = [
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.and_, operator.or_),
    *(operator.xor, operator.lshift, operator.pow, operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne),
]
MODES = (None, "python")


def outcome(function, *operands):
    """The dtype and values that a function gives, or that it overflows, or that it is not defined."""
    try:
        with np.errstate(all="ignore"):
            result = function(*operands)
    except (OverflowError, TypeError, ValueError) as error:
        return type(error)
    return result.dtype.name, np.asarray(result)


@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("operation", OPERATORS, ids=lambda operation: operation.__name__)
def test_an_operation_with_a_constant_does_what_numpy_does(operation, is_first):
    kinds = [nt.tensor(array.dtype.name, shape=(None,)) for array in ARRAYS]
    results, expected, refused = [], [], []
    for number in (*BEYOND, 300, -200):
        for x, array in zip(kinds, ARRAYS, strict=True):
            apart = outcome(operation, *((number, array) if is_first else (array, number)))
            try:
                result = operation(*((number, x) if is_first else (x, number)))
            except (OverflowError, TypeError, ValueError) as error:
                refused.append((apart, error))
                continue
            if apart is ValueError:
                continue  # a negative exponent, which only the run knows
            assert not isinstance(apart, type), (number, array.dtype)
            results.append(result)
            expected.append(apart)
    for apart, error in refused:
        assert isinstance(apart, type), error
        assert isinstance(error, apart) or operation is operator.pow  # a negative exponent is a ValueError of its own
        assert "line" in str(error)
    for mode in MODES:
        found = ns.function(kinds, results, mode=mode, on_unused_input="ignore")(*ARRAYS)
        for actual, (dtype, wanted) in zip(found, expected, strict=True):
            assert actual.dtype.name == dtype
            np.testing.assert_allclose(actual, wanted, rtol=1e-14)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: array.dtype.name)
def test_an_integer_that_only_the_run_knows_does_what_numpy_does(array, mode):
    for operation in (operator.lt, operator.le, operator.eq, operator.gt, operator.add, operator.mul, operator.truediv, operator.pow):
        function = ns.jit(operation, mode=mode)
        for number in (300, -200, 7, 2**62):
            expected = outcome(operation, array, number)
            if expected is OverflowError:
                with pytest.raises(OverflowError, match=rf"Python integer {number} is out of bounds for {array.dtype}"):
                    function(array, number)
            elif not isinstance(expected, type):
                np.testing.assert_allclose(function(array, number), expected[1], rtol=1e-14)


ROWS = np.arange(3)
ENTRIES = {
    "state": (lambda n: ns.scan(lambda x, s: s + x)(ROWS, n), r"outputs_info\[0\] is the Python integer"),
    "second state": (lambda n: ns.scan(lambda x, s, r: (s + x, r))(ROWS, [0, n]), r"outputs_info\[1\] is the Python integer"),
    "non-sequence": (lambda n: ns.scan(lambda x, s, k: s + x + k)(ROWS, 0, n), r"non_sequences\[0\] is the Python integer"),
    "sequence element": (lambda n: ns.scan(lambda x, s: s + x)([[n, -1]], 0), r"sequences\[0\] holds Python integers"),
    "state of a list": (lambda n: ns.scan(lambda x, s: s + x)(ROWS, {"a": np.int64(0), "b": n}), "is the Python integer"),
    "closure": (lambda n: ns.scan(lambda x, s: s + n)(ROWS, 0), r"out of bounds for int64 \(.*line \d+, in the step"),
    "list in a closure": (lambda n: ns.scan(lambda x, s: s + np.sum(x + np.asarray([0]) + [n, -1]))(ROWS, 0), "holds Python integers"),
    "argument": (lambda n: ns.jit(lambda a: a + 1)(n), "argument a is the Python integer"),
    "input": (lambda n: ns.function([k := nt.lscalar("k")], k + 1)(n), r"argument 0 \(k\) is the Python integer"),
    "set": (lambda n: nt.lvector("x")[0].set(n), r"out of bounds for int64 \(.*line \d+"),
    "full": (lambda n: nt.full(3, n, dtype="int64"), r"out of bounds for int64 \(.*line \d+"),
    "full_like": (lambda n: np.full_like(nt.lvector("x"), n), r"out of bounds for int64 \(.*line \d+"),
    "where": (lambda n: np.where(nt.lvector("x") > 0, nt.lvector("y"), n), r"out of bounds for int64 \(.*line \d+"),
    "maximum": (lambda n: np.maximum(nt.lvector("x"), n), r"out of bounds for int64 \(.*line \d+"),
}


@pytest.mark.parametrize("number", BEYOND)
@pytest.mark.parametrize("entry", ENTRIES)
def test_an_integer_that_does_not_fit_is_an_error_that_names_its_place(entry, number):
    call, message = ENTRIES[entry]
    with pytest.raises(OverflowError, match=message):
        call(number)


def test_n_steps_that_do_not_fit_are_an_error():
    for number in (2**63, 2**70):
        with pytest.raises(OverflowError, match=f"n_steps is {number}, out of bounds for int64"):
            ns.scan(lambda s: s + 1)(n_steps=number, outputs_info=0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("number", BEYOND)
def test_states_of_floats_take_any_integer_and_states_of_integers_are_compared_with_any(number, mode):
    np.testing.assert_array_equal(ns.scan(lambda x, s: s + number, mode=mode)(ROWS, 0.0), np.cumsum([float(number)] * 3))
    found = ns.scan(lambda x, s: np.where(s < number, s + 1, s - 1), mode=mode)(ROWS, 0)
    assert list(found) == ([1, 2, 3] if number > 0 else [-1, -2, -3])


@pytest.mark.parametrize("mode", MODES)
def test_inputs_of_floats_take_any_integer_and_inputs_of_uint64_what_they_hold(mode):
    x, u = nt.dscalar("x"), nt.tensor("uint64", shape=())
    assert ns.function([x], x * 1.0, mode=mode)(10**30) == 1e30
    assert ns.function([u], u + 1, mode=mode)(2**63) == 2**63 + 1


# places from integers at the ends -----------------------------------------------------------------------------------

ENDS = (2**63 - 1, 2**63 - 2, 2**62, -(2**62), -(2**63) + 1, -(2**63), 3, -3)


@pytest.mark.parametrize("mode", MODES)
def test_slices_with_bounds_and_steps_at_the_ends_are_pythons(mode):
    row = np.arange(20)
    x, k = nt.lvector("x"), nt.lscalar("k")
    cuts = (lambda x, k: x[k:], lambda x, k: x[:k], lambda x, k: x[::k], lambda x, k: x[k::2], lambda x, k: x[:k:-1], lambda x, k: x[3:k:3])
    function = ns.function([x, k], [cut(x, k) for cut in cuts], mode=mode)
    known = ns.function([x], [cut(x, end) for end in (*ENDS, 2**63, -(2**70)) for cut in cuts], mode=mode)
    for end in ENDS:
        for actual, cut in zip(function(row, end), cuts, strict=True):
            np.testing.assert_array_equal(actual, cut(row, end))
    for actual, wanted in zip(known(row), [cut(row, end) for end in (*ENDS, 2**63, -(2**70)) for cut in cuts], strict=True):
        np.testing.assert_array_equal(actual, wanted)
    position = ns.function([x, k], x[k], mode=mode)
    for end in ENDS[:-2]:
        with pytest.raises(IndexError, match="out of bounds"):
            position(row, end)


@pytest.mark.parametrize("mode", MODES)
def test_ranges_at_the_ends_have_all_their_numbers(mode):
    start, stop, step = (nt.lscalar(name) for name in ("start", "stop", "step"))
    function = ns.function([start, stop, step], nt.arange(start, stop, step), mode=mode)
    by_two = ns.function([stop], nt.arange(0, stop, 2), mode=mode)
    low, high = -(2**63), 2**63 - 1
    wide = ((low, high, 2**62), (high, low, -(2**62)), (low, high, high), (high, low, low))
    for bounds in (*wide, (high - 9, high, 4), (5, low, 2), (1, 9, 3)):
        np.testing.assert_array_equal(function(*bounds), list(range(*bounds)))
    assert by_two(low).shape == (0,)
    np.testing.assert_array_equal(by_two(7), [0, 2, 4, 6])
