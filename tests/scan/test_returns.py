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


SHARED = ns.shared(0.0, "held")
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


FLAT = {
    "updates": lambda a, b, u, end: (a, b, u),
    "until": lambda a, b, u, end: [a, b, end],
    "updates and until": lambda a, b, u, end: (a, b, u, end),
    "a list, updates and until": lambda a, b, u, end: ((a, b), u, end),
    "no updates": lambda a, b, u, end: (a, b, {}),
    "no updates and until": lambda a, b, u, end: (a, b, {}, end),
}


@pytest.mark.parametrize("as_pairs", [False, True], ids=["dict", "pairs"])
@pytest.mark.parametrize("info", [None, [np.float64(1), np.float64(2)]], ids=["rows", "states"])
@pytest.mark.parametrize("form", FLAT)
def test_several_outputs_stand_flat_before_updates_and_until(form, info, as_pairs):
    acc = ns.shared(0.0, "acc")

    def step(*given):
        x, y = given if info else (given[0], 2 * given[0])
        updates = [(acc, acc + x)] if as_pairs else {acc: acc + x}
        return FLAT[form](x + 1, y * 2, updates, ns.until(x >= 2))

    given = {"outputs_info": info, "n_steps": 3} if info else {"sequences": X}
    (xs, ys), updates = ns.scan(step, **given, **PYTHON)
    before = (np.array([1.0, 2.0, 3.0]) if info else X)[: 2 if "until" in form else 3]
    doubled = 2.0 * 2.0 ** np.arange(1, len(before) + 1) if info else 4 * before
    xs, ys = ns.function([], [xs, ys], updates=updates, mode="python")()
    np.testing.assert_array_equal(xs, before + 1)
    np.testing.assert_array_equal(ys, doubled)
    assert acc.get_value() == (0.0 if "no updates" in form or form == "until" else before.sum())


def test_an_empty_dict_behind_outputs_is_one_where_outputs_info_has_a_place_for_it():
    x, y, empty = outputs(lambda x, y: (x + 1, y * 2, {}), outputs_info=[np.float64(1), np.float64(2), None], n_steps=2)
    assert (x.tolist(), y.tolist(), empty) == ([2.0, 3.0], [4.0, 8.0], {})


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
        (lambda s: (s, s, {nt.dscalar("v"): s}), [np.float64(0), None], "keys must be shared variables"),
        (
            lambda s: (s, {SHARED: s}, s),
            [np.float64(0), None],
            r"updates for \[<held.*\] among its outputs; return all updates as one dict",
        ),
        (lambda s: ({SHARED: s}, s, s), [np.float64(0), None], "among its outputs"),
        (lambda s: (s, {SHARED: s}, {SHARED: s}), [np.float64(0)], "among its outputs"),
        (lambda s: ([s, {"a": [{SHARED: s}]}], {SHARED: s}), [np.float64(0), None], "among its outputs"),
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


def arithmetic(updates):
    """What is done with an array, by its name."""
    one, ufuncs, methods = np.ones(3), (np.exp, np.add), ("sum", "mean", "shape", "T", "astype", "reshape", "dtype")
    operators = [
        name for name in vars(np.lib.mixins.NDArrayOperatorsMixin) if name.strip("_").isalpha() and callable(getattr(one, name, None))
    ]
    operators = set(operators) - {"__eq__", "__ne__", "__or__", "__ror__", "__ior__", "__divmod__", "__rdivmod__", "__module__"}
    unary = {"__neg__", "__pos__", "__abs__", "__invert__"}
    uses = {name: lambda name=name: getattr(updates, name)(*(() if name in unary else (1.0,))) for name in operators}
    uses |= {f"an array {name}": lambda name=name: getattr(one, name)(updates) for name in ("__add__", "__matmul__", "__truediv__")}
    uses |= {ufunc.__name__: lambda ufunc=ufunc: ufunc(*[updates] * ufunc.nin) for ufunc in ufuncs}
    uses |= {
        function.__name__: lambda function=function: function(updates)
        for function in (np.sum, np.mean, np.asarray, np.atleast_1d, float, int)
    }
    uses |= {
        "joined": lambda: np.concatenate([updates, one]),
        "nt.exp": lambda: nt.exp(updates),
        "a variable": lambda: nt.dvector("v") + updates,
        "a number": lambda: 2.0 * updates,
    }
    uses |= {f"[{index}]": lambda index=index: updates[index] for index in (-1, 0, slice(-2, None), (0, 1), ..., np.int64(1))}
    uses |= {method: lambda method=method: getattr(updates, method) for method in methods}
    return uses


@pytest.mark.parametrize(
    "make", [lambda: ns.scan(lambda x: 2 * x, outputs_info=1.0, n_steps=2, **PYTHON), lambda: ns.scan(lambda x: 2 * x, nt.dvector("x"))]
)
def test_updates_taken_for_an_array_say_where_the_outputs_are(make):
    updates = make()[-1]
    assert (updates, dict(updates), bool(updates), updates | {1: 2}) == ({}, {}, False, {1: 2})
    for name, use in arithmetic(updates).items():
        with pytest.raises((TypeError, AttributeError), match="return_updates=False"):
            pytest.fail(f"{name} gave {use()!r}")
    with pytest.raises(AttributeError, match="which have no rows"):
        _ = updates.rows


@pytest.mark.parametrize("transform", [ns.grad, ns.value_and_grad, ns.hessian])
@pytest.mark.parametrize("cost", [lambda both: both, lambda both: both[-1], lambda both: both[-1] * 2.0, lambda both: 3.0 + both[-1]])
def test_a_cost_that_is_what_scan_returns_says_where_the_outputs_are(transform, cost):
    def path(x):
        return cost(ns.scan(lambda y: 0.5 * y, outputs_info=x, n_steps=2))

    with pytest.raises(TypeError, match="return_updates=False"):
        transform(path)(2.0)


def test_a_symbolic_cost_that_is_what_scan_returns_says_where_the_outputs_are():
    x, acc = nt.dscalar("x"), ns.shared(0.0, "acc")
    for updates in ({}, {acc: acc + 1}):
        both = ns.scan(lambda y, updates=updates: (0.5 * y, updates), outputs_info=x, n_steps=2)
        for cost in both, both[-1]:
            with pytest.raises(TypeError, match="return_updates=False"):
                ns.grad(cost, x)
