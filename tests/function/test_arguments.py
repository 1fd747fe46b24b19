"""What a compiled function does with the arguments of a call."""

import warnings

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt


def identity(dtype, shape=(), **options):
    x = nt.tensor(dtype, shape=shape, name="x")
    return ns.function([x], x, mode="python", name="f", **options)


@pytest.mark.parametrize(
    "dtype, value",
    [
        ("float64", np.int64(3)),
        ("float64", 3),
        ("float64", np.float32(0.5)),
        ("float32", 0.1),
        ("float32", 3),
        ("int8", 100),
        ("int8", True),
        ("complex64", 0.1),
        ("complex128", np.float64(0.5)),
        ("uint64", 2**64 - 1),
        ("bool", True),
        ("int32", 1.0),
        ("int32", np.int64(3)),
        ("int32", np.float64(-3.0)),
        ("int32", np.array(3)),
        ("int32", np.array(2.0**31 - 1)),
        ("uint64", 2.0**63),
        ("float32", np.float64(0.5)),
        ("float32", np.array(np.inf)),
        ("float32", np.int64(2**24)),
        ("complex64", np.float64(0.5)),
    ],
)
def test_what_a_dtype_holds_is_taken(dtype, value):
    result = identity(dtype)(value)
    assert result.dtype == np.dtype(dtype)
    assert result == np.dtype(dtype).type(value)


@pytest.mark.parametrize(
    "dtype, value, words",
    [
        ("float32", np.float64(0.1), "dtype float64, which float32 does not hold"),
        ("int32", 1.5, r"dtype float64, which int32 does not hold \(the value is 1.5\)"),
        ("int32", np.float64(1.5), "int32 does not hold"),
        ("int32", 2**40, "int32 does not hold"),
        ("int32", np.float64(2**40), "int32 does not hold"),
        ("int64", 2.0**63, "int64 does not hold"),
        ("uint64", 2.0**64, "uint64 does not hold"),
        ("uint8", -1.0, "uint8 does not hold"),
        ("int32", np.nan, "int32 does not hold"),
        ("int32", np.array(-np.inf), "int32 does not hold"),
        ("int32", 1 + 0j, r"int32 does not hold.*value\.real"),
        ("float32", np.int64(2**53 + 1), "float32 does not hold"),
        ("float32", np.array(0.1), "float32 does not hold"),
        ("float32", 1e39, "float32 does not hold"),
        ("int8", 128, "dtype int64, which int8 does not hold"),
        ("uint8", -1, "which uint8 does not hold"),
        ("float64", 1j, r"complex128, which float64 does not hold; write value.real"),
        ("float32", 1e300, "float32 does not hold"),
        ("bool", 1, "which bool does not hold"),
        ("float64", "a", r"is 'a' \(str\)"),
        ("float64", None, "dtype object"),
        ("float64", {"a": 1}, "dtype object"),
        ("float64", np.float16(1), "float16"),
    ],
)
def test_what_a_dtype_does_not_hold_is_refused(dtype, value, words):
    with pytest.raises(TypeError, match=rf"^f: argument 0 \(x\).*{words}"):
        identity(dtype)(value)


def test_allow_input_downcast_true_casts_everything_real():
    f = identity("int8", shape=(None,), allow_input_downcast=True)
    np.testing.assert_array_equal(np.array([1, -2], "int8"), f(np.array([1.9, -2.9])))
    with pytest.raises(TypeError, match=r"write value\.real"):
        f(np.array([1j]))


def test_allow_input_downcast_false_takes_only_exact_numbers():
    f = identity("float32", allow_input_downcast=False)
    assert f(0.5) == 0.5
    with pytest.raises(TypeError, match="float32 does not hold"):
        f(0.1)


def test_lists_are_taken_where_they_are_exact_and_arrays_by_their_dtype():
    f = identity("int32", shape=(None,))
    np.testing.assert_array_equal(np.array([1, -2], "int32"), f([1.0, np.float64(-2.0)]))
    for refused in ([1.0, 2.5], [1, 2**31], np.array([1.0, 2.0]), np.array([1, 2])):
        with pytest.raises(TypeError, match=r"int32 does not hold; write value\.astype"):
            f(refused)
    count = ns.shared(0, "count")
    count.set_value(3.0)
    assert count.get_value() == 3
    with pytest.raises(TypeError, match=r"shared variable count.*the value is 3\.5"):
        count.set_value(3.5)


def test_lists_are_arrays():
    np.testing.assert_array_equal([[1, 2, 3], [4, 5, 6]], identity("float64", shape=(None, None))([[1, 2, 3], [4, 5, 6]]))
    assert identity("int32", shape=(None,))([]).shape == (0,)
    with pytest.raises(ValueError, match=r"argument 0 \(x\) is no array"):
        identity("float64", shape=(None, None))([[1.0, 2.0], [3.0]])


def test_rank_is_checked():
    with pytest.raises(TypeError, match=r"f: argument 0 \(x\) has 1 dimensions \(shape \(3,\)\), but float64\[\?, \?\] has 2"):
        identity("float64", shape=(None, None))(np.arange(3.0))


def test_declared_dimensions_are_checked():
    f = identity("float64", shape=(None, 3))
    assert f(np.ones((2, 3))).shape == (2, 3)
    with pytest.raises(ValueError, match=r"f: argument 0 \(x\) has shape \(3, 2\).*has 3 along axis 1"):
        f(np.ones((3, 2)))


@pytest.mark.parametrize("mode", ["python", None])
def test_strange_arrays_are_read_as_numpy_reads_them(mode):
    x = nt.dmatrix("x")
    f = ns.function([x], x * 2, mode=mode)
    plain = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]])
    frozen = plain.copy()
    frozen.flags.writeable = False
    for strange in (plain.astype(">f8"), np.asfortranarray(plain), frozen, np.repeat(plain, 2, axis=1)[:, ::2], plain[:0]):
        np.testing.assert_array_equal(plain[: len(strange)] * 2, f(strange))


def test_masked_arrays_are_refused():
    with pytest.raises(TypeError, match=r"masked array.*filled"):
        identity("float64", shape=(None,))(np.ma.masked_array([1.0, 2.0], [True, False]))


MASKED, MATRIX = np.ma.masked_array([1.0, 2.0], [True, False]), np.arange(1.0, 5).reshape(2, 2).view(np.matrix)
OTHER_ARRAYS = {
    "masked in a step": (lambda: ns.scan(lambda s: s + MASKED, outputs_info=np.ones(2), n_steps=1), "masked array"),
    "masked first": (lambda: ns.scan(lambda s: MASKED + s, outputs_info=np.ones(2), n_steps=1), "masked array"),
    "masked in a function": (lambda: ns.jit(lambda x: np.where(MASKED > 1, x, 0))(np.ones(2)), "masked array"),
    "masked in a list": (lambda: ns.jit(lambda x: np.stack([MASKED, x]))(np.ones(2)), "masked array"),
    "shared": (lambda: ns.shared(MASKED, name="w"), "value of shared variable w is a masked array"),
    "a new value": (lambda: ns.shared(np.ones(2), name="w").set_value(MASKED), "masked array"),
    "a matrix": (lambda: ns.jit(lambda a: a * a)(MATRIX), r"argument a is a np\.matrix"),
    "a matrix in a step": (lambda: ns.scan(lambda s: MATRIX * s, outputs_info=np.eye(2), n_steps=1), r"np\.matrix"),
    "a shared matrix": (lambda: ns.shared(MATRIX), r"np\.matrix"),
}


@pytest.mark.parametrize("name", OTHER_ARRAYS)
def test_arrays_with_operators_of_their_own_are_refused_everywhere(name):
    call, words = OTHER_ARRAYS[name]
    with pytest.raises((TypeError, ValueError), match=words):
        call()


def test_variables_are_refused():
    with pytest.raises(TypeError, match=r"argument 0 \(x\) is symbolic"):
        identity("float64")(nt.dscalar("y"))


def test_the_number_of_arguments_is_checked():
    x, y = nt.dscalar("x"), nt.dscalar("y")
    f = ns.function([x, y], x - y, mode="python", name="difference")
    for args, kwargs, words in [
        ((1.0,), {}, r"difference: argument 1 \(y\) missing; the inputs are \(x: float64\[\], y: float64\[\]\)"),
        ((1.0, 2.0, 3.0), {}, "difference takes 2 arguments"),
        ((1.0, 2.0), {"z": 3.0}, "no input called 'z'"),
        ((1.0, 2.0), {"x": 3.0}, r"argument 0 \(x\) was given twice"),
    ]:
        with pytest.raises(TypeError, match=words):
            f(*args, **kwargs)


def test_nan_and_infinity_pass_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(np.float32([np.nan, np.inf]), identity("float32", shape=(None,))([np.nan, np.inf]))
