"""`nt.ifelse` and `ns.py_step`."""

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

CALLS = []


@ns.py_step
def expensive(x):
    if not isinstance(x, ns.Variable):
        CALLS.append(float(x))
    return x * 10


def run(a, b, xs=(1.0, -2.0, 3.0)):
    """The path of a step that chooses by sign."""
    CALLS.clear()
    return ns.scan(lambda x: nt.ifelse(x > 0, a(x), b(x)), np.array(xs), mode="python", return_updates=False)


def test_only_the_branch_that_is_needed_is_computed():
    got = run(lambda x: lambda: expensive(x), lambda x: lambda: x)
    np.testing.assert_array_equal(got, [10, -2, 30])
    assert CALLS == [1, 3]


def test_values_belong_to_the_branch_that_needs_them():
    got = run(lambda x: expensive(x) + 1, lambda x: x)
    np.testing.assert_array_equal(got, [11, -2, 31])
    assert CALLS == [1, 3]


def test_what_both_branches_need_is_computed_before():
    def both(x):
        return expensive(x)

    got = run(lambda x: both(x) + 1, lambda x: both(x) - 1)
    np.testing.assert_array_equal(got, [11, -21, 31])
    assert CALLS == [1, -2, 3]


def test_a_function_beside_a_value():
    got = run(lambda x: lambda: expensive(x), lambda x: expensive(x - 1))
    np.testing.assert_array_equal(got, [10, -30, 30])
    assert CALLS == [1, -3, 3]


@pytest.mark.parametrize("mode", ["python", None])
def test_branches_may_be_nests_and_may_use_outer_values(mode):
    w, c = nt.dvector("w"), nt.lscalar("c")
    got = nt.ifelse(c, lambda: {"a": w * 2, "b": w.sum()}, lambda: {"a": w + 1, "b": w[0]})
    f = ns.function([w, c], got, mode=mode)
    np.testing.assert_array_equal(f([1.0, 2.0], 1)["a"], [2, 4])
    np.testing.assert_array_equal(f([1.0, 2.0], 0)["b"], 1)
    np.testing.assert_array_equal(f([1.0, 2.0], 0)["a"], [2, 3])


def test_a_number_takes_dtype_and_shape_of_the_other_branch():
    x = nt.fvector("x")
    got = nt.ifelse(x.sum() > 0, x, 0)
    f = ns.function([x], got, mode="python")
    assert got.dtype == np.float32
    np.testing.assert_array_equal(f([-1.0, -2.0, 0.5]), [0, 0, 0])
    np.testing.assert_array_equal(f([1.0, -0.5]), [1, -0.5])


def test_branches_of_different_types_are_refused():
    x = nt.fvector("x")
    with pytest.raises(TypeError, match=r"float32\[\?\].*float64\[\?\].*test_control"):
        nt.ifelse(x[0] > 0, x, x.astype("float64"))
    with pytest.raises(TypeError, match=r"float32\[\?\].*float32\[\]"):
        nt.ifelse(x[0] > 0, x, x[0])
    with pytest.raises(ValueError, match="structure"):
        nt.ifelse(x[0] > 0, (x, x), x)


def test_a_condition_must_be_a_scalar():
    x = nt.fvector("x")
    with pytest.raises(TypeError, match=r"condition has shape.*np\.where"):
        nt.ifelse(x > 0, x, -x)


def test_a_known_condition_leaves_one_branch():
    assert nt.ifelse(True, lambda: 3, lambda: 1 / 0) == 3


def test_py_step_sees_real_values_in_python_mode():
    seen = []

    @ns.py_step
    def watch(x, extra):
        seen.append((type(x).__name__, float(x) if not isinstance(x, ns.Variable) else None))
        return {"sum": x + extra["k"], "x": x}

    def step(s):
        both = watch(s, {"k": 2.0})
        return both["sum"] + 0 * both["x"]

    got, _ = ns.scan(step, outputs_info=np.float64(1), n_steps=3, mode="python")
    np.testing.assert_array_equal(got, [3, 5, 7])
    assert [value for _, value in seen if value is not None] == [1, 3, 5]


def test_py_step_is_traced_in_other_modes():
    seen = []

    @ns.py_step
    def watch(x):
        seen.append(x)
        return x + 1

    got, _ = ns.scan(lambda s: watch(s), outputs_info=np.float64(1), n_steps=3)
    np.testing.assert_array_equal(got, [2, 3, 4])
    assert all(isinstance(x, ns.Variable) for x in seen)
    assert watch(4) == 5


def test_py_step_refuses_a_traced_value_from_outside():
    def step(x, k):
        @ns.py_step
        def inner(v):
            return v * k

        return inner(x)

    with pytest.raises(TypeError, match="uses k, which is traced outside it"):
        ns.scan(step, np.ones(3), non_sequences=2.0, mode="python")


BEYOND = {
    "an index": lambda x: x[10],
    "a sum of unequal lengths": lambda x: (x + np.ones(4)).sum(),
    "a product of unequal lengths": lambda x: x @ np.ones(4),
    "another shape": lambda x: x.reshape((2, 2))[0, 1],
    "a choice within it": lambda x: nt.ifelse(x[0] > 5, x[10], x[9]),
}


@pytest.mark.parametrize("mode", [None, "python", "debug", ns.Mode(check_finite=True)])
@pytest.mark.parametrize("name", BEYOND)
def test_lengths_that_do_not_fit_are_an_error_only_where_the_branch_is_taken(name, mode):
    c, x = nt.bscalar("c"), nt.dvector("x")
    f = ns.function([c, x], nt.ifelse(c, BEYOND[name](x), x[0]), mode=mode)
    for length in (3, 5, 6, 20):  # compiled in, and left to the run
        row = np.arange(2.0, 2.0 + length)
        assert f(0, row) == 2
        if length < 7:
            with pytest.raises((IndexError, ValueError)):
                f(1, row)


@pytest.mark.parametrize("name", [*BEYOND, "rows of unequal lengths"])
def test_a_value_of_both_branches_does_not_fit_one_of_them(name):
    c, x, y = nt.bscalar("c"), nt.dvector("x"), nt.dvector("y")
    z = np.tanh(x * y)
    beyond = {**BEYOND, "rows of unequal lengths": lambda x: np.stack([x, np.ones(5)]).sum()}[name]
    path, _ = ns.scan(lambda s: nt.ifelse(c, beyond(s) * s, 1.5 * s), outputs_info=z, n_steps=2)
    f = ns.function([c, x, y], [nt.ifelse(c, beyond(z) * z.sum(), z.sum()), path[-1]])
    for x_, y_ in ((np.arange(6.0), np.array([0.5])), (np.arange(3.0), np.arange(3.0))):
        total, end = f(0, x_, y_)
        np.testing.assert_allclose(total, np.tanh(x_ * y_).sum(), rtol=1e-14)
        np.testing.assert_allclose(end, 2.25 * np.tanh(x_ * y_), rtol=1e-14)
        with pytest.raises((IndexError, ValueError), match=r"test_control\.py, line \d+"):
            f(1, x_, y_)


def test_the_length_of_an_argument_may_choose():
    x = nt.dvector("x")
    second = nt.ifelse(x.shape[0] > 1, x[1], x[0])
    f, slope = ns.function([x], second), ns.function([x], ns.grad(second, x))
    assert [float(f(np.arange(3.0, 3.0 + n))) for n in (1, 2, 30)] == [3, 4, 4]
    assert [slope(np.arange(3.0, 3.0 + n)).tolist() for n in (1, 2)] == [[1], [0, 1]]


@pytest.mark.parametrize("mode", [None, "python"])
def test_a_branch_of_a_step_that_does_not_fit_is_not_looked_at_before_it_is_taken(mode):
    start, w = nt.dscalar("start"), nt.dvector("w")
    path, _ = ns.scan(lambda s, w: nt.ifelse(s > 20, w[7] * s, 1.5 * s), outputs_info=start, non_sequences=w, n_steps=4, name="grow")
    f = ns.function([start, w], [path, ns.grad(path[-1], start)], mode=mode)
    got, slope = f(2.0, np.arange(3.0))
    np.testing.assert_array_equal(got, [3, 4.5, 6.75, 10.125])
    assert slope == 1.5**4
    with pytest.raises(IndexError, match="7"):
        f(8.0, np.arange(3.0))


def test_a_py_step_has_the_derivatives_of_its_code():
    seen = []

    @ns.py_step
    def bend(x, y):
        if not isinstance(x, ns.Variable):
            seen.append(float(x))
        return np.tanh(x) * y, x + 0.5 * y

    def end(start, rows, mode):
        def step(x, s):
            product, total = bend(s * 1.5, s * x)  # operands that depend on each other's
            return product + 0.25 * total

        return ns.scan(step, rows, start, mode=mode, return_updates=False)[-1]

    rows = np.array([0.5, -1.25, 2.0])
    for derivative in (
        lambda f: ns.grad(f, argnums=(0, 1))(0.75, rows),
        lambda f: ns.jvp(f, (0.75, rows), (2.0, rows**2)),
        lambda f: (ns.grad(ns.grad(f))(0.75, rows),),
    ):
        by_python, compiled = (derivative(lambda start, rows, mode=mode: end(start, rows, mode)) for mode in ("python", None))
        for one, other in zip(by_python, compiled, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    assert len(seen) >= 3
