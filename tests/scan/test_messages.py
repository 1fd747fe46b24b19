"""What messages tell the author of a step: the op, the line, the scan, and what to write instead."""

import re

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.front.unsupported import INSTEAD
from numbascan.front.variable import DISPATCH

X = np.array([1.5, 2.0, 4.0])
N = nt.lscalar("n")
V = nt.dvector("v")


def line_of(function):
    return rf"{re.escape(function.__code__.co_filename)}, line {function.__code__.co_firstlineno}"


def test_shapes_that_do_not_broadcast_name_op_line_and_scan():
    step = lambda s: s * np.ones(2)  # noqa: E731 - one line, to be named
    words = rf"multiply: shapes \(3,\) and \(2,\) do not broadcast together \({line_of(step)}, in the step <lambda> of scan 'f'\)"
    with pytest.raises(ValueError, match=words):
        ns.scan(step, outputs_info=X, n_steps=2, name="f")


@pytest.mark.parametrize("mode", ["numba", "python"])
def test_shapes_that_only_the_run_knows_name_op_and_line(mode):
    step = lambda s, w: s + w  # noqa: E731 - one line, to be named
    with pytest.raises(ValueError, match=rf"add: operands .*broadcast.*\({line_of(step)}\)"):
        ns.scan(step, outputs_info=np.ones(40), non_sequences=np.ones(50), n_steps=2, mode=mode)


def test_shapes_that_a_call_of_a_function_fixes_name_op_and_line():
    build = lambda a, b: a + b  # noqa: E731 - one line, to be named
    a, b = nt.dvectors("a b")
    f = ns.function([a, b], build(a, b), mode="python")
    with pytest.raises(ValueError, match=rf"add: .*broadcast.*\({line_of(build)}\)"):
        f(X, X[:2])


@pytest.mark.parametrize("mode", ["numba", "python"])
def test_equal_code_elsewhere_does_not_lend_its_line(mode):
    """Equal steps are one graph, as long as one of them is held: the line is that of the one that was traced last."""
    one = lambda k, x: x[k]  # noqa: E731 - one line, to be named
    other = lambda k, x: x[k]  # noqa: E731
    for step in (one, other):
        with pytest.raises(IndexError, match=rf"index 9 .*\({line_of(step)}\)"):
            ns.scan(step, np.array([1, 9]), non_sequences=np.ones(4), name="s", mode=mode)
    add = lambda a, b: a + b  # noqa: E731
    again = lambda a, b: a + b  # noqa: E731
    functions = []
    for build in (add, again):
        a, b = nt.dvectors("a b")
        functions.append(ns.function([a, b], build(a, b), mode=mode))
        with pytest.raises(ValueError, match=rf"add: .*broadcast.*\({line_of(build)}\)"):
            functions[-1](X, X[:2])


def test_a_list_of_numbers_is_told_from_an_array():
    with pytest.raises(TypeError, match=r"several sequences.*np\.array\(\[\.\.\.\]\)"):
        ns.scan(lambda x: x, sequences=[1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match=r"cannot take its arguments.*several outputs.*np\.array\(\[\.\.\.\]\)"):
        ns.scan(lambda s: s * 2, outputs_info=[1.0, 2.0], n_steps=2)
    with pytest.raises(ValueError, match=r"returns 1 output, .*has 2 entries.*several outputs.*np\.array\(\[\.\.\.\]\)"):
        ns.scan(lambda s, r: s * r, outputs_info=[1.0, 2.0], n_steps=2)


def test_a_state_that_changes_its_shape_is_named_with_both_shapes():
    step = lambda s: s[:2]  # noqa: E731 - one line, to be named
    with pytest.raises(ns.ScanTypeError, match=rf"'f'.*changes the shape of state s,.* float64\[3\] .* float64\[2\] .*{line_of(step)}"):
        ns.function([V], ns.scan(step, outputs_info=V, n_steps=2, name="f")[0])(X)


def leaking():
    """A traced row, and a value computed from it, after the scan has run."""
    kept = []

    def step(s):
        kept.extend([s, s * 2])
        return s + 1

    ns.scan(step, outputs_info=np.float64(1), n_steps=2, mode="python")
    return kept[:2]


@pytest.mark.parametrize("k", [0, 1], ids=["an argument", "a result"])
def test_a_traced_value_that_outlived_its_trace_is_refused(k):
    leaked = leaking()[k]
    words = "uses s, a traced value of a call that has ended"
    with pytest.raises(ns.TracerError, match=rf"scan 'late' {words}"):
        ns.scan(lambda s: s + leaked, outputs_info=1.0, n_steps=2, name="late", mode="python")
    with pytest.raises(ns.TracerError, match=words):
        ns.scan(lambda s, w: s + w, outputs_info=1.0, non_sequences=leaked, n_steps=2)
    with pytest.raises(ns.TracerError, match=words):
        ns.scan(lambda s: s + leaked)(outputs_info=1.0, n_steps=2)
    with pytest.raises(ns.TracerError, match=words):
        ns.jit(lambda x: x + leaked)(1.0)


def test_a_traced_value_of_a_running_trace_may_be_captured():
    f = ns.jit(lambda x: ns.scan(lambda s: s + x, outputs_info=1.0, n_steps=2, return_updates=False), mode="python")
    np.testing.assert_array_equal([3.5, 6.0], f(2.5))


@pytest.mark.usefixtures("unconverted")
@pytest.mark.parametrize(
    "step, words",
    [
        (lambda k: np.arange(k).sum(), r"nt\.arange\(k\) for np\.arange\(k\)"),
        (lambda k: np.zeros(k).sum(), r"nt\.zeros\(k\)"),
        (lambda k: np.zeros((k, 2)).sum(), r"nt\.zeros\(k\)"),
        (lambda k: np.array([k, -k]) > 0, r"np\.stack\(\[x, y\]\)"),
        (lambda k: np.maximum(np.array([k, -k]), 0), r"np\.stack\(\[x, y\]\)"),
        (lambda k: np.where(np.array([k, -k]), 1, 2), r"np\.stack\(\[x, y"),
        (lambda k: np.sort(np.array([k, -k])), r"np\.stack\(\[x, y\]\)"),
        (lambda k: np.take(X, k), r"nt\.take\(array, k\)"),
        (lambda k: X[k], r"nt\.take\(array, k\)"),
        (lambda k: X[:k], r"nt\.take\(array, k\)"),
    ],
)
def test_numpy_functions_of_a_traced_integer_name_what_takes_one(step, words):
    with pytest.raises(ns.TracerError, match=rf"(?s)test_messages\.py, line \d+.*{words}"):
        ns.map(step, np.array([1, 2]))


def test_a_python_loop_over_an_array_of_unknown_length_is_named():
    with pytest.raises(ns.TracerError, match=r"Python loop over v .*test_messages\.py.*ns\.scan.*fixed shape"):
        [v for v in V]  # noqa: C416 - the loop itself
    with pytest.raises(ns.TracerError, match=r"`value in x`.*\(x == value\)\.any\(\)"):
        1.5 in V  # noqa: B015 - refused


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda x: np.partition(x, 1), "np.sort"),
        (lambda x: np.histogram2d(x, x), "np.searchsorted"),
        (lambda x: np.apply_along_axis(np.sum, 0, x), "ns.map"),
    ],
)
def test_an_unsupported_function_names_what_does_its_work(call, words):
    with pytest.raises(TypeError, match=rf"not supported.*{re.escape(words)}"):
        call(V)


def test_nothing_that_is_supported_has_a_substitute():
    supported = {key.__name__ for key in DISPATCH if getattr(np, getattr(key, "__name__", ""), None) is key}
    assert supported & set(INSTEAD) == set()


def test_round_is_that_of_python():
    x = nt.dscalar("x")
    one, whole = ns.function([x], [round(x, 1), round(x)], mode="python")(2.46)
    assert (one, whole, str(whole.dtype)) == (2.5, 2, "int64")
    np.testing.assert_array_equal([1.5, 2.2], ns.function([V], round(V, 1), mode="python")([1.46, 2.23]))


def test_dicts_come_back_in_the_order_in_which_the_step_wrote_them():
    rows, _ = ns.scan(lambda d: {"z": d["z"] + 1, "a": d["a"] * 2}, outputs_info={"a": 1.0, "z": 2.0}, n_steps=2, mode="python")
    assert list(rows) == ["z", "a"]
    np.testing.assert_array_equal([3.0, 4.0], rows["z"])
    np.testing.assert_array_equal([2.0, 4.0], rows["a"])
    x = nt.dscalar("x")
    assert list(ns.function([x], {"z": x, "a": x + 1}, mode="python")(1.5)) == ["z", "a"]


@pytest.mark.parametrize("mode", ["python", None])
@pytest.mark.parametrize("w", [-0.75, -3, 1 - 2j])
def test_what_python_makes_of_its_numbers_gives_way_to_other_dtypes(mode, w):
    single = np.array([1.5, -2.25], "float32")
    functions = [lambda w: abs(w) * single] + [lambda w: round(w) * single, lambda w: round(w, 1) * single] * (not isinstance(w, complex))
    for function in functions:
        (rows,) = ns.scan(function, non_sequences=[w], n_steps=1, mode=mode, return_updates=False)
        assert rows.dtype == "float32"
        np.testing.assert_array_equal(rows, function(w))
    (strong,) = ns.scan(lambda w: np.abs(w) * single, non_sequences=[w], n_steps=1, mode=mode, return_updates=False)
    assert strong.dtype == (np.abs(w) * single).dtype == "float64"
