"""What the step is handed, in which order, and what arrays may be given."""

from collections import namedtuple

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

PYTHON = {"mode": "python"}
MODES = ["python", None]


def record(labels, n):
    """A step that returns n outputs and notes the names of its arguments' variables."""

    def step(*arguments):
        labels.extend(argument.name for argument in arguments)
        return [argument * 1 for argument in arguments[:n]]

    return step


def test_the_step_gets_taps_of_sequences_then_taps_of_outputs_then_non_sequences():
    s1, s2, s3 = np.arange(20.0), np.arange(100.0, 120.0), np.arange(200.0, 220.0)
    o1, o3 = 1000.0 + np.arange(5), np.float64(2000)

    def step(s1_m3, s1_p2, s1_m1, s2_0, s3_p3, o1_m3, o1_m5, o3_m1, a1, a2):
        o2 = np.stack([s1_m3, s1_p2, s1_m1, s2_0, s3_p3, o1_m3, o1_m5, o3_m1, a1, a2])
        return [o1_m5 + 1, o2, o3_m1 + 1]

    (_, seen, _), _ = ns.scan(
        step,
        sequences=[{"input": s1, "taps": [-3, 2, -1]}, s2, {"input": s3, "taps": 3}],
        outputs_info=[{"initial": o1, "taps": [-3, -5]}, {"initial": np.float64(0), "taps": None}, o3],
        non_sequences=[np.float64(-1), np.float64(-2)],
        **PYTHON,
    )
    assert seen.shape == (15, 10)
    np.testing.assert_array_equal(seen[0], [0, 5, 2, 100, 203, 1002, 1000, 2000, -1, -2])
    np.testing.assert_array_equal(seen[7], [7, 12, 9, 107, 210, 1005, 1003, 2007, -1, -2])


def test_with_taps_minus_4_and_0_the_first_step_is_at_index_4():
    seen, _ = ns.scan(lambda back, here: back * 10 + here, sequences={"input": np.arange(9), "taps": [-4, -0]}, **PYTHON)
    np.testing.assert_array_equal(seen, [4, 15, 26, 37, 48])


@pytest.mark.parametrize("taps", [[2], [-3], [-3, -1], [1, 4], [0, -2, 3]])
@pytest.mark.parametrize("backwards", [False, True])
def test_taps_reach_the_rows_they_name(taps, backwards):
    x = np.random.default_rng(1).normal(size=(11, 2))
    got, _ = ns.scan(lambda *rows: np.stack(rows), sequences={"input": x, "taps": taps}, go_backwards=backwards, **PYTHON)
    first, last = max(0, -min(taps)), len(x) - max(0, *taps)
    times = range(first, last)
    expected = np.array([[x[t + tap] for tap in taps] for t in (reversed(times) if backwards else times)])
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("mode", MODES)
def test_go_backwards_reads_every_sequence_from_its_own_end(mode):
    got, _ = ns.scan(
        lambda a_m1, a, b, s: s * 0.5 + a - 2 * b + 3 * a_m1,
        sequences=[{"input": np.arange(6.0), "taps": [-1, 0]}, np.arange(10.0, 18.0)],
        outputs_info=0,
        go_backwards=True,
        mode=mode,
    )
    s, expected = 0.0, []
    for a_m1, a, b in zip([4, 3, 2, 1, 0], [5, 4, 3, 2, 1], [17, 16, 15, 14, 13], strict=True):
        s = s * 0.5 + a - 2 * b + 3 * a_m1
        expected.append(s)
    np.testing.assert_allclose(got, expected)


def test_go_backwards_with_fewer_steps_starts_at_the_end():
    got, _ = ns.scan(lambda x: x, sequences=np.arange(7), n_steps=3, go_backwards=True, **PYTHON)
    np.testing.assert_array_equal(got, [6, 5, 4])


def test_non_sequences_are_the_very_variables_that_were_passed():
    w, x = nt.dscalar("w"), nt.dvector("x")
    seen = []

    def step(row, given):
        seen.append(given)
        return row * given

    ns.scan(step, sequences=x, non_sequences=w)
    assert seen[0] is w


def test_several_sequences_end_with_the_shortest():
    got, _ = ns.scan(lambda a, b: a * b, sequences=[np.arange(1, 9), {"input": np.arange(2, 8), "taps": [-1]}], **PYTHON)
    np.testing.assert_array_equal(got, np.arange(1, 6) * np.arange(2, 7))


def test_one_sequence_output_or_argument_needs_no_list():
    got, _ = ns.scan(lambda x, s, k: s + k * x, np.arange(3), np.int64(10), np.int64(2), **PYTHON)
    np.testing.assert_array_equal(got, [10, 12, 16])


State = namedtuple("State", "m P")


@pytest.mark.parametrize("make", [lambda m, p: {"m": m, "P": p}, State, lambda m, p: (m, [p])], ids=["dict", "named tuple", "tuple"])
@pytest.mark.parametrize("mode", MODES)
def test_a_state_may_be_a_nest(make, mode):
    def parts(state):
        if isinstance(state, dict):
            return state["m"], state["P"]
        return (state.m, state.P) if isinstance(state, State) else (state[0], state[1][0])

    def step(x, state, params):
        m, p = parts(state)
        return make(m + params["k"] * x, p * 0.5 + m)

    got, _ = ns.scan(step, np.arange(1.0, 5.0), [make(np.float64(1), np.ones(2))], {"k": 0.25}, mode=mode)
    m, p = 1.0, np.ones(2)
    for t, x in enumerate(np.arange(1.0, 5.0)):
        m, p = m + 0.25 * x, p * 0.5 + m
        got_m, got_p = parts(got)
        np.testing.assert_allclose(got_m[t], m)
        np.testing.assert_allclose(got_p[t], p)
    assert type(got) is type(make(1, 2))


def test_sequences_may_be_nests_with_taps():
    pair = {"u": np.arange(5.0), "v": np.arange(10.0).reshape(5, 2)}
    got, _ = ns.scan(lambda old, new: old["u"] * new["v"], sequences={"input": pair, "taps": [-1, 0]}, **PYTHON)
    np.testing.assert_array_equal(got, pair["u"][:-1, None] * pair["v"][1:])


def test_a_recurrent_nest_with_taps_has_a_leading_axis_in_every_leaf():
    start = {"a": np.array([1.0, 2.0]), "b": np.array([[1.0, 0.0, 2.0], [0.5, 3.0, 1.0]])}
    got, _ = ns.scan(
        lambda old, new: {"a": old["a"] + new["a"], "b": old["b"] - new["b"]},
        outputs_info={"initial": start, "taps": [-2, -1]},
        n_steps=4,
        **PYTHON,
    )
    a, b = list(start["a"]), list(start["b"])
    for _ in range(4):
        a.append(a[-2] + a[-1])
        b.append(b[-2] - b[-1])
    np.testing.assert_allclose(got["a"], a[2:])
    np.testing.assert_allclose(got["b"], b[2:])


def test_lists_of_numbers_become_arrays():
    got, _ = ns.scan(lambda x, s, w: s + x @ w, [[[1.0, 2.0], [3.0, 4.0]]], np.float64(0), [[10.0, 1.0]], **PYTHON)
    np.testing.assert_array_equal(got, [12.0, 46.0])


def strided(x):
    return np.repeat(x, 2, axis=0)[::2]


def fortran(x):
    return np.asfortranarray(x)


def swapped(x):
    return x.astype(x.dtype.newbyteorder())


def read_only(x):
    y = x.copy()
    y.flags.writeable = False
    return y


@pytest.mark.parametrize("form", [strided, fortran, swapped, read_only, np.ndarray.tolist])
@pytest.mark.parametrize("mode", MODES)
def test_arrays_of_any_layout_work_as_in_numpy(form, mode):
    x = np.random.default_rng(5).normal(size=(4, 3))
    w = np.random.default_rng(6).normal(size=3)
    got = fused(sequences=[form(x)], outputs_info=0.5, non_sequences=[form(w)], mode=mode)
    s, expected = 0.5, []
    for row in x:
        s = 0.9 * s + (row * w).sum()
        expected.append(s)
    np.testing.assert_allclose(got, expected)


@ns.scan
def fused(row, s, w):
    return 0.9 * s + (row * w).sum()


def test_an_array_of_no_rows_gives_a_result_of_no_rows_with_the_true_trailing_shape():
    got, _ = ns.scan(lambda row, s: s + row, sequences=np.zeros((0, 3)), outputs_info=0, **PYTHON)
    assert got.shape == (0, 3)


def test_the_step_s_parameters_name_the_variables():
    labels = []

    def step(x_tm1, x_t, state, k):
        labels.extend(v.name for v in (x_tm1, x_t, state["a"], state["b"]))
        doubled = 2 * x_t
        return {"a": state["a"] + doubled * k, "b": state["b"] * x_tm1}

    got, _ = ns.scan(step, {"input": nt.dvector("x"), "taps": [-1, 0]}, [{"a": np.float64(1), "b": np.float64(2)}], np.float64(3))
    assert labels == ["x_tm1", "x_t", "state_a", "state_b"]
    assert "doubled" in ns.show(got["a"])


def test_a_ufunc_may_be_the_step():
    got, _ = ns.scan(np.add, np.arange(4.0), 0, **PYTHON)
    np.testing.assert_array_equal(got, [0, 1, 3, 6])
