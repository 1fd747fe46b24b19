"""What a step may return, and what scan then returns."""

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

PYTHON = {"mode": "python"}
X = np.array([1.0, 2.0, 4.0])


def outputs(step, *args, **kwargs):
    return ns.scan(step, *args, return_updates=False, **kwargs, **PYTHON)


def test_one_output_comes_alone_and_several_come_as_a_list():
    assert isinstance(outputs(lambda x: x, X), np.ndarray)
    assert isinstance(outputs(lambda x: [x], X), np.ndarray)
    both = outputs(lambda x: (x, -x), X)
    assert isinstance(both, list)
    np.testing.assert_array_equal(both[1], -X)


def test_return_list_makes_a_list_of_one():
    (only,) = outputs(lambda x: x, X, return_list=True)
    np.testing.assert_array_equal(only, X)


def test_without_return_updates_the_outputs_come_alone():
    got, updates = ns.scan(lambda x: x, X, **PYTHON)
    np.testing.assert_array_equal(got, X)
    assert updates == {}
    np.testing.assert_array_equal(outputs(lambda x: x, X), X)


@pytest.mark.parametrize(
    "value, dtype", [(3, "int64"), (2.5, "float64"), (True, "bool"), (np.float32(1.5), "float32"), (np.int8(4), "int8"), (1j, "complex128")]
)
def test_numbers_are_outputs(value, dtype):
    got = outputs(lambda x: value, X)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, [value] * 3)


def test_an_array_of_variables_is_stacked():
    got = outputs(lambda y: y + 0.5 * np.array([y[1], -y[0], y.sum()]), outputs_info=np.array([1.0, 2.0, 4.0]), n_steps=1)
    np.testing.assert_array_equal(got, [[2.0, 1.5, 7.5]])


def test_fixed_arrays_are_outputs():
    np.testing.assert_array_equal(outputs(lambda x: np.arange(2), X), [[0, 1]] * 3)


def counter():
    return ns.shared(10, "counter")


UNTIL = object()
FORMS = {
    "outputs": lambda x, u, end: [x],
    "(outputs, updates)": lambda x, u, end: ([x], u),
    "(updates, outputs)": lambda x, u, end: (u, [x]),
    "(output, updates)": lambda x, u, end: (x, u),
    "updates": lambda x, u, end: u,
    "(outputs, until)": lambda x, u, end: ([x], end),
    "(output, until)": lambda x, u, end: (x, end),
    "(updates, until)": lambda x, u, end: (u, end),
    "(outputs, updates, until)": lambda x, u, end: ([x], u, end),
    "(updates, outputs, until)": lambda x, u, end: [u, x, end],
    "until": lambda x, u, end: end,
}


@pytest.mark.parametrize("as_pairs", [False, True], ids=["dict", "pairs"])
@pytest.mark.parametrize("form", FORMS)
def test_outputs_updates_and_until_come_in_every_documented_form(form, as_pairs):
    a, x = ns.shared(10, "a"), nt.dvector("x")

    def step(row):
        updates = [(a, a + 2)] if as_pairs else {a: a + 2}
        return FORMS[form](row * 3, updates, ns.until(row >= 2))

    if form == "until":
        got, updates = ns.scan(step, x)
        assert got is None
        return
    got, updates = ns.scan(step, x)
    steps = 2 if "until" in form else 3
    f = ns.function([x], [] if got is None else [got], updates=updates, mode="python")
    results = f(X)
    assert (got is not None) == ("output" in form)
    if got is not None:
        np.testing.assert_array_equal(results[0], 3 * X[:steps])
    assert a.get_value() == (10 + 2 * steps if "updates" in form else 10)


def test_a_dict_of_outputs_is_a_nest():
    got = outputs(lambda x: {"twice": 2 * x, "parts": (x, -x)}, X)
    np.testing.assert_array_equal(got["twice"], 2 * X)
    np.testing.assert_array_equal(got["parts"][1], -X)


def test_an_empty_dict_is_no_updates():
    got, updates = ns.scan(lambda x: (x, {}), X, **PYTHON)
    np.testing.assert_array_equal(got, X)
    assert updates == {}


def test_a_list_stands_for_an_array_where_one_output_with_one_entry_is_a_list():
    got = outputs(lambda s: [[s[1], s[0] + s[1]]], outputs_info=[np.array([0, 1])], n_steps=3)
    np.testing.assert_array_equal(got, [[1, 1], [1, 2], [2, 3]])


@pytest.mark.parametrize(
    "step, info, words",
    [
        (lambda s: [s, s], [np.float64(0)], "returns 2 outputs, but outputs_info has 1 entry"),
        (lambda s: s, [np.float64(0), None], "returns 1 output, but outputs_info has 2 entries"),
        (lambda s: None, [np.float64(0)], "returns None"),
        (lambda s: "text", [np.float64(0)], "'text'.*is no array"),
        (lambda s: [s, ns.until(s > 1), s], [np.float64(0), None], "ns.until.*at another place than the end"),
        (lambda s: (ns.until(s > 1), s), [np.float64(0)], "ns.until.*at another place"),
        (lambda s: ([s, ns.until(s > 1)], {}), [np.float64(0)], "ns.until.*at another place"),
        (lambda s: {"a": s}, [{"b": np.float64(0)}], r"keys \['a'\], but its initial value has \['b'\]"),
        (lambda s: (s["b"], s["b"]), [{"b": np.float64(0)}], "2 outputs"),
        (lambda s: {nt.dscalar("v"): s}, [np.float64(0)], "keys must be shared variables"),
        (lambda s: object(), [np.float64(0)], "cannot be read as an array"),
    ],
)
def test_what_has_no_meaning_is_refused(step, info, words):
    with pytest.raises(ValueError, match=words) as caught:
        ns.scan(step, outputs_info=info, n_steps=3, name="odd", **PYTHON)
    assert "scan 'odd'" in str(caught.value)
    assert "test_returns.py" in str(caught.value)


def test_a_condition_that_is_no_scalar_is_refused():
    with pytest.raises(TypeError, match=r"condition has shape \(3,\).*\.all\(\)"):
        ns.scan(lambda s: (s, ns.until(s > 0)), outputs_info=np.zeros(3), n_steps=3)
