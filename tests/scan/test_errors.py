"""Wrong arguments: the class of the error, the words that name the culprit, and that no step ran."""

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

X = np.arange(6.0)
RAN = []


@ns.py_step
def note(value):
    """Runs for real in mode="python": leaves a mark if a step was computed."""
    if not isinstance(value, ns.Variable):
        RAN.append(value)
    return value


def over_x(x):
    return note(x)


def state(s):
    return note(s) + 1


def both(x, s):
    return note(x) + s


VALUE_ERRORS = {
    "no n_steps and no sequence": (state, {"outputs_info": np.float64(0)}, "n_steps"),
    "float n_steps": (state, {"outputs_info": 0.0, "n_steps": 3.0}, r"n_steps is 3\.0.*n_steps=3"),
    "half a step": (state, {"outputs_info": 0.0, "n_steps": 2.5}, r"n_steps is 2\.5"),
    "n_steps is NaN": (state, {"outputs_info": 0.0, "n_steps": np.nan}, "n_steps is nan"),
    "n_steps is a bool": (state, {"outputs_info": 0.0, "n_steps": True}, "n_steps is True"),
    "n_steps is a text": (state, {"outputs_info": 0.0, "n_steps": "3"}, "n_steps is '3'"),
    "n_steps is an array": (state, {"outputs_info": 0.0, "n_steps": np.array([3])}, "n_steps is array"),
    "a float variable as n_steps": (state, {"outputs_info": 0.0, "n_steps": nt.dscalar("n")}, "n_steps is <n: float64"),
    "negative n_steps": (state, {"outputs_info": 0.0, "n_steps": -2}, "n_steps is -2.*go_backwards"),
    "sequence shorter than n_steps": (over_x, {"sequences": X, "n_steps": 7}, "sequence 0.*6 rows.*n_steps=7.*needs 7"),
    "sequence shorter than n_steps plus its taps": (
        lambda a, b: note(a),
        {"sequences": {"input": X, "taps": [-2, 1]}, "n_steps": 4},
        r"sequence 0.*6 rows.*taps \[-2, 1\].*needs 7",
    ),
    "the second sequence is too short": (lambda a, b: note(a), {"sequences": [X, X[:2]], "n_steps": 3}, "sequence 1.*2 rows"),
    "sequence shorter than its taps": (
        lambda a, b: note(a),
        {"sequences": {"input": X[:2], "taps": [-4, 0]}},
        r"sequence 0.*2 rows.*\[-4, 0\]",
    ),
    "unknown key of a sequence": (over_x, {"sequences": {"input": X, "tap": [0]}}, r"sequences\[0\].*unknown key 'tap'"),
    "unknown key of an output": (
        state,
        {"outputs_info": {"initial": 0.0, "return_steps": 3}, "n_steps": 2},
        r"outputs_info\[0\].*'return_steps'",
    ),
    "initial in a sequence": (over_x, {"sequences": [{"initial": X}]}, r"sequences\[0\].*unknown key 'initial'"),
    "input in an output": (state, {"outputs_info": [{"input": 0.0}], "n_steps": 2}, r"outputs_info\[0\].*unknown key 'input'"),
    "a sequence without input": (over_x, {"sequences": {"taps": [0]}}, r"sequences\[0\].*without 'input'"),
    "a sequence that is None": (over_x, {"sequences": [None]}, r"sequences\[0\] is None"),
    "duplicate taps of a sequence": (lambda a, b: note(a), {"sequences": {"input": X, "taps": [-1, -1]}}, r"duplicate taps \[-1, -1\]"),
    "duplicate taps of an output": (
        lambda a, b: note(a),
        {"outputs_info": {"initial": X, "taps": [-2, -2]}, "n_steps": 2},
        "duplicate taps",
    ),
    "an output tap of 0": (lambda a, b: note(a), {"outputs_info": {"initial": X, "taps": [-1, 0]}, "n_steps": 2}, r"taps=\[-1, 0\]"),
    "an output tap above 0": (state, {"outputs_info": {"initial": X, "taps": [1]}, "n_steps": 2}, r"taps=\[1\]"),
    "taps that are no ints": (over_x, {"sequences": {"input": X, "taps": [0.5]}}, r"taps=\[0\.5\]"),
    "no taps at all": (over_x, {"sequences": {"input": X, "taps": []}}, r"taps=\[\]"),
    "taps without initial": (state, {"outputs_info": {"taps": [-1]}, "n_steps": 2}, r"outputs_info\[0\].*taps=\[-1\] but no 'initial'"),
    "initial without the leading axis": (
        lambda a, b: note(a),
        {"outputs_info": {"initial": np.float64(0), "taps": [-2, -1]}, "n_steps": 2},
        r"outputs_info\[0\].*leading axis of 2 rows",
    ),
    "initial too short for its taps": (
        lambda a, b: note(a),
        {"outputs_info": {"initial": X[:2], "taps": [-3, -1]}, "n_steps": 2},
        r"outputs_info\[0\].*2 rows.*taps \[-3, -1\] need 3",
    ),
    "more outputs than outputs_info": (lambda s: [note(s), s], {"outputs_info": [0.0], "n_steps": 2}, "returns 2 outputs.*has 1"),
    "fewer outputs than outputs_info": (state, {"outputs_info": [0.0, None], "n_steps": 2}, "returns 1 output, .*has 2"),
    "nothing returned": (lambda s: None, {"outputs_info": 0.0, "n_steps": 2}, "returns None"),
    "until not last": (lambda s: (ns.until(note(s) > 1), s), {"outputs_info": 0.0, "n_steps": 2}, "until.*return it last"),
    "keep_last of 0": (state, {"outputs_info": 0.0, "n_steps": 2, "keep_last": 0}, "keep_last is 0"),
    "save_every of 0": (state, {"outputs_info": 0.0, "n_steps": 2, "save_every": 0}, "save_every is 0"),
    "both keep_last and save_every": (state, {"outputs_info": 0.0, "n_steps": 2, "keep_last": 1, "save_every": 2}, "exclude each other"),
    "truncate_gradient of 0": (state, {"outputs_info": 0.0, "n_steps": 2, "truncate_gradient": 0}, "truncate_gradient is 0"),
    "an unknown checkpoint": (state, {"outputs_info": 0.0, "n_steps": 2, "checkpoint": "often"}, "checkpoint is 'often'"),
    "an unknown mode": (state, {"outputs_info": 0.0, "n_steps": 2, "mode": "fast"}, "'fast'"),
    "a ragged list": (over_x, {"sequences": [[[1, 2], [3]]]}, r"sequences\[0\].*no array"),
}

TYPE_ERRORS = {
    "typed initial value of another dtype": (both, {"sequences": X, "outputs_info": np.int64(0)}, r"outputs_info\[0\].*int64.*float64"),
    "typed initial value of another rank": (
        both,
        {"sequences": np.ones((2, 3)), "outputs_info": np.float64(0)},
        r"outputs_info\[0\].*float64\[3\]",
    ),
    "typed initial value of another shape": (
        both,
        {"sequences": np.ones((2, 3)), "outputs_info": np.zeros(1)},
        r"outputs_info\[0\].*float64\[1\]",
    ),
    "a sequence without a leading axis": (over_x, {"sequences": np.float64(3)}, r"sequences\[0\].*leading axis"),
    "a number as sequence": (lambda a, b: note(a), {"sequences": [X, 3]}, r"sequences\[1\].*leading axis"),
    "a condition that is no scalar": (
        lambda s: (note(s), ns.until(s > 0)),
        {"outputs_info": X, "n_steps": 2},
        r"condition has shape \(6,\)",
    ),
    "an object array": (over_x, {"sequences": np.array([1, None], dtype=object)}, r"sequences\[0\].*object"),
    "a text": (over_x, {"sequences": X, "non_sequences": "k"}, r"non_sequences\[0\] is 'k'"),
    "an array of texts": (over_x, {"sequences": np.array(["a", "b"])}, r"sequences\[0\].*<U1"),
    "a function": (lambda x, f: note(x), {"sequences": X, "non_sequences": [np.sin]}, r"non_sequences\[0\]"),
    "half precision": (over_x, {"sequences": X.astype("float16")}, "float16"),
    "a masked array": (over_x, {"sequences": np.ma.masked_array(X, X > 2)}, r"sequences\[0\] is a masked array"),
    "a step of too few arguments": (state, {"sequences": X, "outputs_info": 0.0}, "sequence 0 at tap 0, output 0 at tap -1"),
    "a step of too many arguments": (both, {"sequences": X}, r"cannot take its arguments \(sequence 0 at tap 0\)"),
    "what is no step": (3, {"sequences": X}, "cannot be called"),
    "an unknown mode": (state, {"outputs_info": 0.0, "n_steps": 2, "mode": 3}, "mode is 3"),
    "Python control flow on a traced value": (
        ns.as_written(lambda s: note(s) if s > 0 else s),
        {"outputs_info": 0.0, "n_steps": 2},
        r"if, while.*test_errors\.py, line \d+.*np\.where.*nt\.ifelse.*ns\.until",
    ),
}


def refused(error, words, step, keywords):
    RAN.clear()
    with pytest.raises(error, match="(?s)" + words) as caught:
        ns.scan(step, **{"mode": "python", "name": "culprit", **keywords})
    assert RAN == []
    return caught.value


@pytest.mark.parametrize("case", VALUE_ERRORS)
def test_wrong_values_are_refused(case):
    step, keywords, words = VALUE_ERRORS[case]
    error = refused(ValueError, words, step, keywords)
    assert "culprit" in str(error) or "mode" in words or "fast" in words


@pytest.mark.parametrize("case", TYPE_ERRORS)
def test_wrong_types_are_refused(case):
    step, keywords, words = TYPE_ERRORS[case]
    refused(TypeError, words, step, keywords)


def test_control_flow_has_an_error_of_its_own():
    refused(ns.TracerBoolError, "if, while", *TYPE_ERRORS["Python control flow on a traced value"][:2])


def test_typed_initial_values_raise_what_is_both_a_type_and_a_value_error():
    step, keywords, words = TYPE_ERRORS["typed initial value of another dtype"]
    error = refused(ns.ScanTypeError, words, step, keywords)
    assert isinstance(error, ValueError)


@pytest.mark.parametrize("mode", ["python", None])
def test_lengths_are_checked_at_every_call_and_shared_variables_stay(mode):
    a, x, n = ns.shared(0, "a"), nt.dvector("rows"), nt.lscalar("n")

    def step(old, new, s_m2, s_m1):
        return s_m2 + s_m1 + old * new, {a: a + 1}

    start = nt.dvector("start")
    got, updates = ns.scan(step, {"input": x, "taps": [-1, 0]}, {"initial": start, "taps": [-2, -1]}, n_steps=n, name="culprit")
    f = ns.function([x, start, n], got, updates=updates, mode=mode)
    np.testing.assert_array_equal(f(X, [1.0, 1.0], 2), [2, 5])
    assert a.get_value() == 2
    for arguments, words in [
        ((X, [1.0, 1.0], 6), r"culprit.*rows.*6 rows.*needs 7"),
        ((X, [1.0, 1.0], -1), "culprit.*n_steps is -1"),
        ((X, [1.0], 2), "culprit.*1 rows.*need 2"),
    ]:
        with pytest.raises(ValueError, match="(?s)" + words):
            f(*arguments)
        assert a.get_value() == 2


@pytest.mark.parametrize("mode", ["python", None])
def test_without_n_steps_a_sequence_shorter_than_its_taps_is_refused_when_it_runs(mode):
    x = nt.dvector("rows")
    got, _ = ns.scan(lambda a, b: a + b, {"input": x, "taps": [-2, 1]}, name="culprit")
    f = ns.function([x], got, mode=mode)
    assert f(X[:3]).shape == (0,)
    with pytest.raises(ValueError, match=r"culprit.*rows.*2 rows"):
        f(X[:2])


def test_an_error_of_the_step_comes_through_as_it_is():
    def step(s):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ns.scan(step, outputs_info=0.0, n_steps=2)


def test_a_single_step_checks_its_rows_as_a_loop_does() -> None:
    x, start = nt.vector("x"), nt.vector("start")
    outputs = ns.scan(
        lambda a, b, y: y + a * b, sequences={"input": x, "taps": [-2, 1]}, outputs_info=start.sum(), n_steps=1, return_updates=False
    )
    run = ns.function([x, start], outputs)
    assert run(np.array([2.0, 5.0, 7.0, 3.0]), [1.0]).tolist() == [7.0]
    with pytest.raises(ValueError, match=r"sequence 0 \(x\) has 3 rows, but n_steps=1 with taps \[-2, 1\] needs 4"):
        run(np.array([2.0, 5.0, 7.0]), [1.0])


def test_a_single_step_checks_its_initial_rows() -> None:
    start = nt.vector("start")
    outputs = ns.scan(lambda a, b: a + b, outputs_info={"initial": start, "taps": [-3, -1]}, n_steps=1, return_updates=False)
    run = ns.function([start], outputs)
    assert run([2.0, 5.0, 7.0]).tolist() == [9.0]
    with pytest.raises(ValueError, match=r"the initial value of state \S+ has 2 rows"):
        run([2.0, 5.0])


@pytest.mark.parametrize("key", ["inital", "initals", "init", "tap"])
def test_a_mistyped_key_is_named(key: str) -> None:
    with pytest.raises(ValueError, match=key):
        ns.scan(lambda y: y * 2.0, outputs_info={key: np.ones(3)}, n_steps=2)


def test_a_state_behind_another_output_is_called_by_its_name() -> None:
    rows, history = nt.dmatrix("rows"), nt.dvector("history")
    grown, _ = ns.scan(lambda x, s: [2 * x, np.concatenate([s, x])], rows, [None, nt.zeros(rows.shape[1])], name="grow")
    with pytest.raises(ns.ScanTypeError, match="'grow': the step changes the shape of state s: dimension 0 is 30 on entry and 60"):
        ns.function([rows], grown)(np.ones((3, 30)))
    sums, _ = ns.scan(lambda a, b: [2 * a, a + b], outputs_info=[None, {"initial": history, "taps": [-3, -1]}], n_steps=3, name="add")
    with pytest.raises(ValueError, match="'add': the initial value of state a has 2 rows"):
        ns.function([history], sums)([1.0, 2.0])


def test_a_shared_variable_that_changes_its_shape_is_named() -> None:
    total = ns.shared(np.array([1.5, 2.5]), name="total")
    double = ns.scan(lambda x: (x, {total: np.concatenate([total, total])}), name="double")
    with pytest.raises(ValueError, match="'double': the step changes the shape of shared variable total: dimension 0 is 2 on entry and 4"):
        double(sequences=X)
    np.testing.assert_array_equal(total.get_value(), [1.5, 2.5])
