"""ns.jit: functions of arrays, traced once per kind of argument."""

import pickle
from collections import namedtuple
from queue import SimpleQueue

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt


class Traces:
    """The types with which a function was traced, kept where a trace does not look for what it depends on."""

    def __init__(self):
        self.queue, self.list = SimpleQueue(), []

    def __eq__(self, expected):
        return self.found() == expected

    def __len__(self):
        return len(self.found())

    def __getitem__(self, index):
        return self.found()[index]

    def found(self):
        while not self.queue.empty():
            self.list.append(self.queue.get())
        return self.list


def counted(f):
    """`f` compiled, and the types of its arguments in each trace."""
    traces = Traces()
    note = traces.queue.put

    def inner(*args):
        note([str(arg.type) for arg in args if hasattr(arg, "type")])
        return f(*args)

    return ns.jit(inner, mode="python", name="counted"), traces


@ns.jit(mode="python")
def tripled(x):
    return x * 3.0


def double_norm(v, factor=2.0):
    return factor * np.sqrt(np.sum(v * v))


def test_the_result_is_that_of_the_function():
    v = np.array([1.5, -2.0, 0.25])
    np.testing.assert_allclose(ns.jit(double_norm)(v), double_norm(v), rtol=1e-14)
    np.testing.assert_allclose(ns.jit(double_norm, mode="python")(v, factor=3.0), double_norm(v, 3.0), rtol=1e-14)


def test_it_is_a_decorator_with_and_without_arguments():
    @ns.jit
    def plain(x):
        """What it does."""
        return x + 1.0

    @ns.jit(mode="python", name="label")
    def named(x):
        return x + 1.0

    assert plain(2.0) == named(2.0) == 3.0
    assert (plain.__name__, plain.__doc__, named.name) == ("plain", "What it does.", "label")
    assert named.__wrapped__(2.0) == 3.0
    with pytest.raises(TypeError, match="needs a function"):
        ns.jit(3.0)


def test_results_are_structured_as_the_function_returns_them():
    Pair = namedtuple("Pair", "first second")

    @ns.jit(mode="python")
    def f(x):
        return {"pair": Pair(x, [x * 2, 7]), "none": None}

    result = f(3.0)
    assert result == {"pair": Pair(3.0, [6.0, 7]), "none": None}
    assert isinstance(result["pair"], Pair)


def test_arguments_may_be_nested():
    @ns.jit(mode="python")
    def f(parameters, *, offset):
        return parameters["w"][0] * parameters["w"][1] + offset

    np.testing.assert_array_equal([8.0, 11.0], f({"w": (np.array([1.0, 2.0]), 3)}, offset=5.0))


def test_one_trace_serves_all_arrays_of_a_kind():
    f, traced = counted(lambda v: v * 2)
    for length in (17, 40, 1000):
        f(np.arange(float(length)))
    assert traced == [["float64[?]"]]
    f(np.arange(17))
    assert traced[1:] == [["int64[?]"]]


def test_small_dimensions_are_fixed_until_many_were_seen():
    f, traced = counted(lambda v: v * 2)
    for length in range(2, 15):
        np.testing.assert_array_equal(np.arange(length) * 2, f(np.arange(length)))
    assert traced == [[f"int64[{length}]"] for length in range(2, 10)] + [["int64[?]"]]


def test_a_dimension_of_one_stays_fixed_and_broadcasts():
    f, traced = counted(lambda v, w: v + w)
    for length in range(2, 15):
        f(np.arange(length), np.arange(length))
    np.testing.assert_array_equal(np.arange(20) + 3, f(np.arange(20), np.array([3])))
    assert traced[-1] == ["int64[?]", "int64[1]"]


def test_a_function_that_needs_a_length_gets_it():
    @ns.jit(mode="python")
    def f(v):
        total = 0.0
        for k in range(len(v)):
            total = total + k * v[k]
        return total

    for length in range(2, 14):
        v = np.arange(length) + 0.5
        assert f(v) == np.sum(np.arange(length) * v)
    assert f(np.arange(20.0)) == np.sum(np.arange(20.0) ** 2)  # as a loop


def test_the_length_of_a_sequence_is_never_fixed():
    f, traced = counted(lambda x: ns.scan(lambda x_t, s: s + x_t, sequences=np.tanh(x * 2), outputs_info=0.0, return_updates=False))
    for length in range(2, 12):
        x = np.linspace(-1.0, 2.0, length)
        np.testing.assert_allclose(np.cumsum(np.tanh(x * 2)), f(x), rtol=1e-13)
    assert traced == [["float64[2]"], ["float64[?]"]]


def test_only_the_leading_axis_of_a_sequence_is_left_open():
    f, traced = counted(lambda x: ns.scan(lambda x_t, s: s + x_t, sequences=x.T, outputs_info=np.zeros(3), return_updates=False))
    x = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(np.cumsum(x.T, axis=0), f(x))
    assert traced[-1] == ["float64[3, ?]"]


def test_a_new_number_of_steps_is_not_traced_again():
    f, traced = counted(lambda x0, n: ns.scan(lambda x: x * 0.5, outputs_info=x0, n_steps=n, return_updates=False))
    for n in (1, 2, 5):
        np.testing.assert_array_equal(8.0 * 0.5 ** np.arange(1, n + 1), f(np.float64(8.0), n))
    assert traced == [["float64[]", "int64[]"]]


def test_python_numbers_take_the_dtype_of_the_array():
    f, _ = counted(lambda v, a: v * a)
    assert f(np.ones(3, "float32"), 0.1).dtype == np.float32
    assert f(np.ones(3, "float32"), np.float64(0.1)).dtype == np.float64


def test_called_on_variables_it_is_the_function():
    f, _ = counted(double_norm)
    x = nt.dvector("x")
    g = ns.function([x], f(x), mode="python")
    np.testing.assert_allclose(10.0, g([3.0, 4.0]))


def test_shared_variables_are_read_at_every_call():
    w = ns.shared(2.0, "w")
    f, traced = counted(lambda x: w * x)
    assert f(5.0) == 10.0
    w.set_value(3.0)
    assert f(5.0) == 15.0
    assert len(traced) == 1


def test_a_function_that_uses_a_variable_is_symbolic():
    y = nt.dscalar("y")
    f, _ = counted(lambda x: x * y)
    assert ns.function([y], f(5.0), mode="python")(3.0) == 15.0


def test_results_share_no_memory_with_arguments():
    f = ns.jit(lambda v: (v, v), mode="python")
    v = np.array([1.0, 2.0])
    first, second = f(v)
    assert not any(np.shares_memory(a, b) for a, b in [(first, v), (second, v), (first, second)])


@pytest.mark.parametrize(
    "args, kwargs, words",
    [
        (("text",), {}, r"norm: argument v is 'text' \(str\)"),
        ((np.ones(3),), {"factor": object()}, "norm: argument factor"),
        (([np.ones(3), "a"],), {}, "norm: argument v_1"),
    ],
)
def test_what_is_no_array_is_refused_by_name(args, kwargs, words):
    with pytest.raises(TypeError, match=words):
        ns.jit(double_norm, mode="python", name="norm")(*args, **kwargs)


def test_branching_on_a_traced_value_names_the_way_out():
    f = ns.jit(ns.as_written(lambda x: x if x > 0 else -x), mode="python")
    with pytest.raises(ns.TracerBoolError, match=r"np\.where"):
        f(2.0)


def test_graph_and_source_are_there_after_a_call():
    f = ns.jit(double_norm)
    with pytest.raises(ValueError, match="has not been compiled yet"):
        f.graph  # noqa: B018 - the access raises
    f.lower(np.ones(30))
    assert "sqrt(" in ns.show(f)
    assert "def double_norm" in f.source()


def test_a_pickled_function_computes_the_same():
    f = pickle.loads(pickle.dumps(ns.jit(np.tanh, mode="python")))
    np.testing.assert_array_equal(np.tanh([0.5, 2.0]), f(np.array([0.5, 2.0])))


def test_a_pickled_decorated_function_is_found_by_its_name():
    assert pickle.loads(pickle.dumps(tripled)) is tripled
    assert tripled(2.0) == 6.0
