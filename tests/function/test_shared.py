"""Shared variables."""

import gc
import pickle

import numpy as np
import pytest

import numbascan as ns
from numbascan.front.shared import shared_of


def test_a_shared_variable_takes_dtype_and_rank_of_its_value():
    assert str(ns.shared(1.0).type) == "float64[]"
    assert str(ns.shared(1).type) == "int64[]"
    assert str(ns.shared(True).type) == "bool[]"
    assert str(ns.shared(np.zeros((2, 3), ">f4")).type) == "float32[?, ?]"


def test_its_value_is_a_copy_unless_borrowed():
    start = np.array([1.0, 2.0])
    w = ns.shared(start)
    start[0] = 9.0
    w.get_value()[1] = 9.0
    np.testing.assert_array_equal([1.0, 2.0], w.get_value())
    w.get_value(borrow=True)[1] = 5.0
    np.testing.assert_array_equal([1.0, 5.0], w.get_value())
    lent = np.array([3.0, 4.0])
    w.set_value(lent, borrow=True)
    assert w.get_value(borrow=True) is lent


def test_its_shape_may_change_but_not_its_rank_or_dtype():
    w = ns.shared(np.zeros(2), "w")
    w.set_value([1, 2, 3])
    np.testing.assert_array_equal([1.0, 2.0, 3.0], w.get_value())
    with pytest.raises(TypeError, match="the value of shared variable w has 2 dimensions"):
        w.set_value(np.zeros((2, 2)))
    with pytest.raises(TypeError, match="the value of shared variable w has dtype complex128"):
        w.set_value([1j])
    np.testing.assert_array_equal([1.0, 2.0, 3.0], w.get_value())


REFUSED = {
    "a text": ("text", "the value of shared variable w is 'text'; pass an array or a number"),
    "an object": (object(), "shared variable w is of the class object; pass"),
    "a dict": ({"a": 1.0}, r"shared variable w is a dict with the keys \['a'\]; pass"),
    "texts": (np.array(["a"]), "shared variable w is an array of dtype <U1; pass"),
    "half precision": (np.float16(1), "not supported"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_value_that_is_no_number_is_refused(name):
    value, words = REFUSED[name]
    with pytest.raises(TypeError, match=words):
        ns.shared(value, name="w")


def test_a_node_leads_back_to_its_shared_variable():
    w = ns.shared(2.0, "w")
    assert shared_of(w.node) is w
    assert shared_of((w * 2).node) is None
    node, container = w.node, w.container
    del w
    gc.collect()
    assert shared_of(node).container is container


def test_two_shared_variables_of_one_value_are_two():
    a, b = ns.shared(1.0, "s"), ns.shared(1.0, "s")
    a.set_value(2.0)
    assert b.get_value() == 1.0


def test_a_pickled_shared_variable_is_a_new_one_with_the_value():
    w = ns.shared(np.array([1.0, 2.0]), "w")
    first, second = pickle.loads(pickle.dumps((w, w)))
    assert first is second
    assert first.name == "w"
    first.set_value([5.0])
    np.testing.assert_array_equal([5.0], second.get_value())
    np.testing.assert_array_equal([1.0, 2.0], w.get_value())
