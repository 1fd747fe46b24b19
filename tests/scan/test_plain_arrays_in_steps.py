"""NumPy arrays that meet traced values inside a step: what works, and what the error says where it cannot."""

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

TABLE = np.array([[3.0, 1.0], [4.0, 1.5], [9.0, 2.5]])
PLACES = np.array([2, 0])


def fill(x):
    rows = np.zeros(3)
    rows[0] = x
    return rows


def fill_all(x):
    rows = np.zeros(3)
    rows[:] = x + np.arange(3)
    return rows


@pytest.mark.usefixtures("unconverted")
@pytest.mark.parametrize("lookup", [lambda k: TABLE[k], lambda k: TABLE[k, 1], lambda k: TABLE[:, 0][k]])
def test_a_plain_array_indexed_with_a_traced_integer_is_explained(lookup):
    words = r"nt\.take\(array, k\).*as_tensor_variable.*non_sequences"
    with pytest.raises(ns.TracerError, match=rf"(?s)indexed.*test_plain_arrays_in_steps\.py, line \d+.*{words}"):
        ns.map(lookup, PLACES)


def test_what_the_explanation_says_works():
    np.testing.assert_array_equal(ns.map(lambda k, table: table[k], PLACES, TABLE, return_updates=False), TABLE[PLACES])
    np.testing.assert_array_equal(ns.map(lambda k: nt.as_tensor_variable(TABLE)[k, 1], PLACES, return_updates=False), TABLE[PLACES, 1])


@pytest.mark.usefixtures("unconverted")
@pytest.mark.parametrize("step", [fill, fill_all, lambda x: np.std(np.array([x, 2 * x]))])
def test_a_traced_value_put_into_a_plain_array_is_explained(step):
    with pytest.raises(ns.TracerError, match=r"(?s)put into a NumPy array.*steps\.py, line \d+.*np\.stack.*set_subtensor"):
        ns.map(step, TABLE[:, 0])


def test_other_errors_of_the_step_stay_as_they_are():
    with pytest.raises(IndexError, match="out of bounds"):
        ns.map(lambda x: x + TABLE[7, 0], TABLE[:, 0])
    with pytest.raises(ValueError, match="mine"):
        ns.map(lambda x: fail(), TABLE[:, 0])


def fail():
    raise ValueError("mine")


@pytest.mark.parametrize("function", [np.exp, np.sqrt, np.tanh, np.log, lambda a: np.arctan2(a, 2.0)])
def test_functions_of_an_array_made_of_traced_values(function):
    def step(x):
        return function(np.array([x, 2 * x]))

    got = ns.map(step, TABLE[:, 0], return_updates=False, mode="python")
    np.testing.assert_allclose(got, [step(x) for x in TABLE[:, 0]])
