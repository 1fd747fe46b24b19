"""`@ns.scan`: a step compiled once per kind of argument."""

import functools
import pickle

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

RATE = 0.5
TABLE = np.array([1.0, 2.0, 4.0])
SETTINGS = {"gain": 2.0}


@ns.scan
def decay(y, rate):
    """The documentation of decay."""
    return y * rate


def test_it_keeps_the_step_and_its_name():
    assert decay.__wrapped__(6.0, 0.5) == 3.0
    assert decay.__name__ == decay.name == "decay"
    assert decay.__doc__ == "The documentation of decay."
    assert isinstance(decay, ns.ScanFunction)


def test_a_call_returns_the_outputs_alone():
    got = decay(outputs_info=np.array([8.0, 2.0]), non_sequences=0.5, n_steps=2)
    np.testing.assert_array_equal(got, [[4, 1], [2, 0.5]])


def test_keywords_of_the_call_win_over_those_of_the_decorator():
    @ns.scan(n_steps=2, non_sequences=3.0, mode="python")
    def grow(y, k):
        return y * k

    np.testing.assert_array_equal(grow(outputs_info=1.0), [3, 9])
    np.testing.assert_array_equal(grow(outputs_info=1.0, n_steps=3, non_sequences=2.0), [2, 4, 8])
    np.testing.assert_array_equal(grow(outputs_info=1.0, keep_last=1), 9)
    np.testing.assert_array_equal(grow(None, 1.0), [3, 9])


def test_decorating_with_keywords_alone_is_a_decorator():
    @ns.scan(mode="python", keep_last=1)
    def total(x, s):
        return s + x

    assert float(total(np.arange(5.0), 0)) == 10


def counting(**keywords):
    def appending():
        while True:
            traces.append((yield))

    traces, notes = [], appending()
    next(notes)

    @ns.scan(mode="python", **keywords)
    def step(x, s):
        notes.send(x.type)  # what a generator holds is not watched, as a list in the closure would be
        return s + x.sum()

    return step, traces


def test_it_is_traced_once_per_kind_of_argument():
    step, traces = counting()
    step(np.ones((3, 2)), np.float64(0))
    step(np.ones((5, 2)), np.float64(1))
    assert len(traces) == 1
    step(np.ones((5, 2), "float32"), np.float32(1))
    assert len(traces) == 2
    step(np.ones((5, 3)), np.float64(1))
    assert len(traces) == 3
    assert traces[-1].shape == (3,)


def test_large_dimensions_share_a_kind_and_many_small_ones_end_in_one():
    step, traces = counting()
    for n in (17, 40, 1000):
        step(np.ones((2, n)), np.float64(0))
    assert len(traces) == 1
    for n in range(2, 17):
        np.testing.assert_array_equal(step(np.ones((2, n)), np.float64(0)), [n, 2 * n])
    assert len(traces) == 9  # eight small ones; then the kind that knows no length
    step(np.ones((2, 1)), np.float64(0))
    assert traces[-1].shape == (1,)


def test_numbers_are_values_and_no_part_of_the_code():
    step, traces = counting()
    got = [step(np.ones(2), start)[-1] for start in (0.0, 2.5, -1.0)]
    assert got == [2, 4.5, 1]
    assert len(traces) == 2  # once for the type of the number, once for the type of the result


def test_a_rebound_global_is_seen(monkeypatch):
    @ns.scan(mode="python")
    def step(y):
        return y * RATE

    np.testing.assert_array_equal(step(outputs_info=np.float64(1), n_steps=2), [0.5, 0.25])
    monkeypatch.setitem(globals(), "RATE", 3.0)
    np.testing.assert_array_equal(step(outputs_info=np.float64(1), n_steps=2), [3, 9])


def test_a_rebound_variable_of_a_closure_is_seen():
    k = 2.0

    def helper(y):
        return y * k

    @ns.scan(mode="python")
    def step(y):
        return helper(y)

    np.testing.assert_array_equal(step(outputs_info=np.float64(1), n_steps=2), [2, 4])
    k = 5.0
    np.testing.assert_array_equal(step(outputs_info=np.float64(1), n_steps=2), [5, 25])


def test_a_changed_setting_is_seen():
    class Params:
        gain = 3.0

    params = Params()

    @ns.scan(mode="python")
    def step(y):
        return y * params.gain + SETTINGS["gain"]

    np.testing.assert_array_equal(step(outputs_info=np.float64(1), n_steps=1), [5])
    params.gain = 1.0
    np.testing.assert_array_equal(step(outputs_info=np.float64(1), n_steps=1), [3])
    SETTINGS["gain"] = 10.0
    try:
        np.testing.assert_array_equal(step(outputs_info=np.float64(1), n_steps=1), [11])
    finally:
        SETTINGS["gain"] = 2.0


@pytest.mark.parametrize("mode", ["python", None])
def test_a_captured_array_changed_in_place_is_seen(mode):
    table = np.array([1.0, 2.0, 4.0])

    @ns.scan(mode=mode)
    def step(y):
        return y * table + table.sum()

    np.testing.assert_array_equal(step(outputs_info=np.zeros(3), n_steps=2), [[7, 7, 7], [14, 21, 35]])
    table[0] = 3.0
    np.testing.assert_array_equal(step(outputs_info=np.zeros(3), n_steps=2), [[9, 9, 9], [36, 27, 45]])


def test_captured_arrays_are_arguments_of_the_code():
    @ns.scan(mode="python")
    def step(y):
        return y * TABLE

    step(outputs_info=np.ones(3), n_steps=1)
    assert [node.type.shape for node in step.graph.inputs] == [(), (3,), (3,)]
    assert [node.name for node in step.graph.inputs] == ["n_steps", "y", "TABLE"]


def test_shared_variables_are_read_and_updated_at_every_call():
    count, w = ns.shared(0, "count"), ns.shared(2.0, "w")

    @ns.scan(mode="python")
    def step(y):
        return y * w, {count: count + 1}

    np.testing.assert_array_equal(step(outputs_info=np.float64(1), n_steps=3), [2, 4, 8])
    assert count.get_value() == 3
    w.set_value(3.0)
    np.testing.assert_array_equal(step(outputs_info=np.float64(1), n_steps=2), [3, 9])
    assert count.get_value() == 5


def test_called_on_variables_it_is_symbolic():
    y, n = nt.dvector("y"), nt.lscalar("n")
    path = decay(outputs_info=y, non_sequences=0.5, n_steps=n)
    np.testing.assert_array_equal(ns.function([y, n], path, mode="python")([8.0], 3), [[4], [2], [1]])


def test_a_step_that_closes_over_a_variable_makes_the_call_symbolic():
    k = nt.dscalar("k")

    @ns.scan
    def grow(y):
        return y * k

    path = grow(outputs_info=np.float64(1), n_steps=3)
    assert isinstance(path, ns.Variable)
    np.testing.assert_array_equal(ns.function([k], path, mode="python")(2.0), [2, 4, 8])
    got, _ = ns.scan(lambda y: y * k, outputs_info=np.float64(1), n_steps=3)
    assert isinstance(got, ns.Variable)


def test_a_symbolic_call_with_updates_asks_what_becomes_of_them():
    a, n = ns.shared(0, "a"), nt.lscalar("n")

    @ns.scan
    def step():
        return [a * 2], {a: a + 1}

    with pytest.raises(TypeError, match=r"updates a.*return_updates=True"):
        step(n_steps=n)
    got, updates = step(n_steps=n, return_updates=True)
    f = ns.function([n], got, updates=updates, mode="python")
    np.testing.assert_array_equal(f(3), [0, 2, 4])
    assert a.get_value() == 3


@pytest.mark.parametrize("mode", ["python", None])
def test_out_is_written_into_and_returned(mode):
    out = np.zeros((3, 2))
    got = decay(outputs_info=np.array([8.0, 4.0]), non_sequences=0.5, n_steps=3, out=out, mode=mode)
    assert got is out
    np.testing.assert_array_equal(out, [[4, 2], [2, 1], [1, 0.5]])


def test_out_may_be_a_memory_map(tmp_path):
    out = np.lib.format.open_memmap(tmp_path / "path.npy", "w+", "float64", (4,))
    decay(outputs_info=16.0, non_sequences=0.5, n_steps=4, out=out, mode="python")
    out.flush()
    np.testing.assert_array_equal(np.load(tmp_path / "path.npy"), [8, 4, 2, 1])


@pytest.mark.parametrize("mode", ["python", None])
def test_out_of_a_final_state_may_be_a_scalar(mode):
    out = np.zeros(())
    assert decay(outputs_info=8.0, non_sequences=0.5, n_steps=3, keep_last=1, out=out, mode=mode) is out
    assert out == 1


@pytest.mark.parametrize("mode", ["python", None])
def test_out_needs_room_for_every_step(mode):
    with pytest.raises(ValueError, match=r"out= has 2 rows.*makes 3"):
        decay(outputs_info=np.ones(3), non_sequences=0.5, n_steps=3, out=np.zeros((2, 3)), mode=mode)


def test_out_follows_the_structure_of_the_outputs():
    @ns.scan(mode="python")
    def step(a, b):
        return [a + 1, {"twice": 2 * b["twice"]}]

    out = [np.zeros(2), {"twice": np.zeros(2)}]
    step(outputs_info=[0.0, {"twice": 1.0}], n_steps=2, out=out)
    np.testing.assert_array_equal(out[1]["twice"], [2, 4])
    with pytest.raises(ValueError, match="out is an array, but the outputs are"):
        step(outputs_info=[0.0, {"twice": 1.0}], n_steps=2, out=np.zeros(2))


def frozen(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "out, error, words",
    [
        (np.zeros((2, 2), "float32"), TypeError, "dtype float32.*float64"),
        (np.zeros(2), ValueError, r"shape \(2,\).*\(\?, 2\)"),
        (np.zeros((2, 3)), ValueError, r"shape \(2, 3\)"),
        (frozen(np.zeros((2, 2))), ValueError, "read-only"),
        ([[0.0]], ValueError, "structure"),
        ("here", TypeError, "str"),
    ],
)
def test_an_out_that_cannot_take_the_result_is_refused(out, error, words):
    with pytest.raises(error, match=words):
        decay(outputs_info=np.ones(2), non_sequences=0.5, n_steps=2, out=out, mode="python")


def test_until_fills_the_first_rows_of_out():
    @ns.scan(mode="python")
    def powers(p):
        return 2 * p, ns.until(p > 2)

    out = np.full(10, -1.0)
    got = powers(outputs_info=1.0, n_steps=10, out=out)
    np.testing.assert_array_equal(got, [2, 4, 8])
    np.testing.assert_array_equal(out[:4], [2, 4, 8, -1])
    assert np.shares_memory(got, out)


def test_source_graph_and_memory_need_a_traced_kind():
    @ns.scan
    def step(y):
        return y * 0.5

    for ask in (step.source, lambda: step.graph, step.memory):
        with pytest.raises(ValueError, match=r"not been compiled yet.*lower"):
            ask()
    step.lower(outputs_info=1.0, n_steps=3)
    assert "def step" in step.source()
    assert "0.5" in step.source()


def test_an_unknown_keyword_is_named():
    with pytest.raises(TypeError, match="'n_step'"):
        decay(outputs_info=1.0, n_step=3)


def test_it_can_be_pickled():
    assert pickle.loads(pickle.dumps(decay)) is decay


def test_in_jit_it_is_part_of_the_graph():
    @ns.jit(mode="python")
    def last(y, k):
        return decay(outputs_info=y, non_sequences=k, n_steps=3)[-1] + 1

    assert float(last(8.0, 0.5)) == 2


def test_float32_stays_float32_beside_python_numbers():
    got = decay(outputs_info=np.float32(1), non_sequences=0.5, n_steps=2)
    assert got.dtype == np.float32


def test_a_python_loop_over_many_lengths_still_traces():
    @ns.scan(mode="python")
    def step(y):
        return np.stack([y[k] * (k + 1) for k in range(len(y))])

    for n in range(2, 14):
        np.testing.assert_array_equal(step(outputs_info=np.ones(n), n_steps=1), [np.arange(1, n + 1)])


@pytest.mark.parametrize("mode", ["python", None])
def test_out_may_be_an_argument(mode):
    rows = np.array([1.0, 2.0, 4.0, 8.0])
    ns.scan(lambda before, now: before + now, mode=mode)({"input": rows, "taps": [-1, 0]}, out=rows[1:])
    np.testing.assert_array_equal(rows, [1, 3, 6, 12])
    table = np.array([[1.0, 2.0], [0.5, 3.0]])
    ns.scan(lambda s, w: s @ w, mode=mode)(outputs_info=np.array([1.0, 1.0]), non_sequences=table, n_steps=2, out=table)
    np.testing.assert_array_equal(table, [[1.5, 5.0], [4.0, 18.0]])


def test_two_outputs_need_two_arrays():
    rows = np.empty(3)
    with pytest.raises(ValueError, match=r"out holds arrays that share memory.*its own"):
        ns.scan(lambda x: (x, 2 * x))(np.arange(3.0), out=[rows, rows[:]])


class _Halving:
    """A callable whose attributes have the names of methods of what is made of it."""

    def __init__(self, rate):
        self.rate, self.compiled, self.lower, self._call, self._find = rate, None, None, None, None

    def __call__(self, s):
        return self.rate * s

    def method(self, s):
        return self.rate * s


_CALLABLES = {
    "jit": lambda: ns.jit(lambda s: 0.5 * s),
    "vmap": lambda: ns.vmap(lambda s: 0.5 * s),
    "grad": lambda: ns.grad(lambda s: 0.25 * np.sum(s * s)),
    "vmap of grad": lambda: ns.vmap(ns.grad(lambda s: 0.25 * s * s)),
    "partial": lambda: functools.partial(lambda rate, s: rate * s, 0.5),
    "jit of partial": lambda: ns.jit(functools.partial(lambda s, rate: rate * s, rate=0.5)),
    "partial of jit": lambda: functools.partial(ns.jit(lambda s, rate: rate * s), rate=0.5),
    "bound method": lambda: _Halving(0.5).method,
    "jit of a bound method": lambda: ns.jit(_Halving(0.5).method),
    "callable": lambda: _Halving(0.5),
    "jit of a callable": lambda: ns.jit(_Halving(0.5)),
    "scan": lambda: ns.scan(lambda s: 0.5 * s, name="halved"),
}


@pytest.mark.parametrize("name", _CALLABLES)
def test_whatever_can_be_called_is_a_step(name):
    """Made at once or first a ScanFunction, run or part of a graph."""
    x = np.array([8.0, 4.0])
    rows = [[4.0, 2.0], [2.0, 1.0]]
    for mode in (None, "python") if name in ("jit", "callable") else ("python",):
        assert ns.scan(_CALLABLES[name](), outputs_info=x, n_steps=2, mode=mode)[0].tolist() == rows
        halved = ns.scan(_CALLABLES[name](), mode=mode)
        assert halved(outputs_info=x, n_steps=2).tolist() == halved(outputs_info=x, n_steps=2).tolist() == rows
        x_variable = nt.dvector("x")
        outputs = ns.scan(_CALLABLES[name](), outputs_info=x_variable, n_steps=2)[0]
        assert ns.function([x_variable], outputs, mode=mode)(x).tolist() == rows


def test_values_and_gradients_are_outputs_of_a_step():
    squares, slopes = ns.scan(ns.value_and_grad(lambda x: x * x), mode="python")(np.array([1.0, 3.0]))
    assert (squares.tolist(), slopes.tolist()) == ([1.0, 9.0], [2.0, 6.0])
