"""Constructors of variables."""

import pickle

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

PREFIXES = {
    "": "float64",
    "b": "int8",
    "w": "int16",
    "i": "int32",
    "l": "int64",
    "f": "float32",
    "d": "float64",
    "c": "complex64",
    "z": "complex128",
}
SHAPES = {
    "scalar": "[]",
    "vector": "[?]",
    "matrix": "[?, ?]",
    "row": "[1, ?]",
    "col": "[?, 1]",
    "tensor3": "[?, ?, ?]",
    "tensor4": "[?, ?, ?, ?]",
}


@pytest.mark.parametrize("prefix, dtype", PREFIXES.items())
def test_every_prefix_and_rank_has_its_constructor(prefix, dtype):
    for word, dims in SHAPES.items():
        variable = getattr(nt, prefix + word)("x")
        assert (variable.name, str(variable.type)) == ("x", dtype + dims)
        plural = "matrices" if word == "matrix" else word + "s"
        assert [v.name for v in getattr(nt, prefix + plural)("a b")] == ["a", "b"]


def test_plurals_take_one_text_several_names_or_a_number():
    assert [v.name for v in nt.vectors("a b")] == [v.name for v in nt.vectors("a", "b")] == ["a", "b"]
    assert [v.name for v in nt.fscalars(2)] == [None, None]
    with pytest.raises(TypeError, match="names must be strings"):
        nt.vectors(["a", "b"])


def test_two_variables_of_one_name_are_two():
    assert nt.dscalar("x").node is not nt.dscalar("x").node


def test_dtype_and_fixed_dimensions_may_be_given():
    assert str(nt.matrix("x", dtype="float32", shape=(None, 3)).type) == "float32[?, 3]"
    with pytest.raises(ValueError, match="3 dimensions, but this constructor makes variables with 2"):
        nt.matrix("x", shape=(1, 2, 3))
    with pytest.raises(TypeError, match="makes float32 variables, not int8"):
        nt.fmatrix("x", dtype="int8")


def test_tensor_takes_a_dtype_or_a_name_first():
    for variable in (
        nt.tensor("float32", shape=(None, 3), name="x"),
        nt.tensor("x", dtype="float32", shape=(None, 3)),
        nt.tensor(np.float32, (None, 3), "x"),
        nt.tensor(dtype="float32", shape=(None, 3), name="x"),
    ):
        assert (variable.name, str(variable.type)) == ("x", "float32[?, 3]")
    assert str(nt.tensor(shape=2, name="x").type) == "float64[2]"


@pytest.mark.parametrize("text, dtype", [("f4", "float32"), ("float32", "float32"), ("<i8", "int64"), ("bool", "bool")])
def test_a_string_alone_is_read_as_the_dtype(text, dtype):
    x = nt.tensor(text, shape=(None,))
    assert (x.name, str(x.dtype)) == (None, dtype)


@pytest.mark.parametrize("text", ["velocity", "d", "float16"])
def test_a_string_that_may_be_the_name_asks_for_the_dtype(text):
    with pytest.raises(TypeError, match=rf"nt.tensor got '{text}'.*nt.tensor\('{text}', dtype="):
        nt.tensor(text, shape=(None,))
    assert nt.tensor(text, dtype="float32", shape=(None,)).name == text


@pytest.mark.parametrize(
    "arguments, keywords, error, words",
    [
        (("float32",), {}, TypeError, "needs shape"),
        (("x",), {"shape": (), "name": "y", "dtype": "int8"}, TypeError, "two names, 'x' and 'y'"),
        ((np.float32,), {"shape": (), "dtype": "int8"}, TypeError, "two dtypes"),
        (("float32",), {"shape": (2.5,)}, TypeError, "holds 2.5"),
        (("float32",), {"shape": (-1,)}, ValueError, "negative dimension -1"),
        ((np.float16,), {"shape": ()}, TypeError, "float16 is not supported"),
    ],
)
def test_what_tensor_cannot_understand_is_refused(arguments, keywords, error, words):
    with pytest.raises(error, match=words):
        nt.tensor(*arguments, **keywords)


def test_a_constant_keeps_its_array_and_its_name_to_itself():
    two = nt.constant(2.0, name="two")
    assert two.name == "two"
    assert nt.constant(2.0).name is None
    assert str(nt.constant([1, 2], dtype="int8").type) == "int8[2]"
    array = np.array([1.0, 2.0])
    fixed = nt.constant(array)
    array[0] = 9.0
    np.testing.assert_array_equal([1.0, 2.0], ns.function([], fixed * 1, mode="python")())
    with pytest.raises(TypeError, match="not the symbolic"):
        nt.constant(nt.dscalar("x"))


def test_as_tensor_variable_takes_variables_arrays_and_numbers():
    x = nt.fvector("x")
    assert nt.as_tensor_variable(x) is x
    assert nt.as_tensor(x, dtype="float64").dtype == np.float64
    assert nt.as_tensor_variable(np.zeros((2, 3))).ndim == 2
    assert (x * nt.as_tensor_variable(0.1)).dtype == np.float32
    assert (x * nt.as_tensor_variable(0.1, dtype="float64")).dtype == np.float64


def test_variables_survive_pickling():
    x = nt.dvector("x")
    deep = x
    for _ in range(3000):
        deep = deep + 1.5
    x2, deep2 = pickle.loads(pickle.dumps((x, deep)))
    assert x2.node is x.node
    assert deep2.node is deep.node
