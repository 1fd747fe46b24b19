"""The user's own Numba functions in steps: against the same functions called from Python loops, and by finite differences."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import textwrap
import types

import cloudpickle
import numba
import numpy as np
import pytest
from shortcuts_taken import needs_object_code

import numbascan as ns
import numbascan.tensor as nt
from numbascan.emit import cache

if numba.config.DISABLE_JIT:
    pytest.skip("Numba compiles nothing, and ns.external calls compiled code", allow_module_level=True)

GAIN = 3.0
ROWS = np.array([1.0, 2.0, 4.0])


@numba.njit
def kepler(mean, eccentricity):
    e = mean
    for _ in range(50):
        e -= (e - eccentricity * np.sin(e) - mean) / (1 - eccentricity * np.cos(e))
    return e


def kepler_vjp(mean, eccentricity, g):
    e = anomaly(mean, eccentricity)
    slope = g / (1 - eccentricity * np.cos(e))
    return slope, slope * np.sin(e)


@numba.njit
def kepler_jvp(mean, eccentricity, d_mean, d_eccentricity):
    e = kepler(mean, eccentricity)
    return (d_mean + d_eccentricity * np.sin(e)) / (1 - eccentricity * np.cos(e))


anomaly = ns.external(kepler, vjp=kepler_vjp, jvp=kepler_jvp)


@numba.njit
def centred(x):
    return x - x.mean()


@numba.njit
def summed(x, weight):
    total = 0.0
    for k in range(len(x)):
        total += weight[k] * x[k]
    return total


@numba.njit
def of_several(x, k):
    return x.sum(), x * k, None, np.outer(x, x)


several = ns.external(of_several, shape=[None, None, lambda x, k: (x.shape[0], x.shape[0])])


@numba.njit
def scaled(x):
    return GAIN * x


@numba.njit
def through_another(x):
    return scaled(x) + ROWS[1]


@numba.njit
def limited(x):
    if x > 2.0:
        raise ValueError("too large")
    return x + 1.0


# calls -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [None, "python", "debug"])
def test_a_step_calls_a_function_of_numbers(mode):
    def by_hand(y, n):
        rows = []
        for _ in range(n):
            y = kepler(y, 0.25) * 0.9
            rows.append(y)
        return np.array(rows)

    rows = ns.scan(lambda y: anomaly(y, 0.25) * 0.9, outputs_info=1.5, n_steps=30, return_updates=False, mode=mode)
    np.testing.assert_allclose(rows, by_hand(1.5, 30), rtol=1e-14)


@pytest.mark.parametrize("mode", [None, "python"])
@pytest.mark.parametrize("n", [1, 3, 17, 40])
def test_arrays_go_in_and_out(mode, n):
    x = np.linspace(1.0, 2.0, n)
    weight = np.cos(x)
    f = ns.jit(lambda x, w: (ns.external(centred)(2 * x), ns.external(summed)(x[::-1], w)), mode=mode)
    wide, total = f(x, weight)
    np.testing.assert_allclose(wide, 2 * x - (2 * x).mean(), atol=1e-15)
    assert summed(x[::-1].copy(), weight) == pytest.approx(total, rel=1e-14)


@pytest.mark.parametrize("mode", [None, "python"])
@pytest.mark.parametrize("n", [2, 30])
def test_several_results_keep_their_places(mode, n):
    x = np.arange(float(n))
    total, product, nothing, outer = ns.jit(several, mode=mode)(x, 2)
    assert (total, nothing) == (x.sum(), None)
    assert (product.tolist(), outer.tolist()) == ((2 * x).tolist(), np.outer(x, x).tolist())


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "int64", "float32", "float64", "complex64"])
def test_dtypes_are_those_that_numba_finds(dtype):
    twice = numba.njit(lambda x: x + x)
    by_numba = {"bool": "int64", "int8": "int64"}  # of sums of numbers; of arrays as in NumPy
    number = ns.jit(ns.external(twice))(np.dtype(dtype).type(1))
    assert (np.asarray(number).dtype, number) == (np.dtype(by_numba.get(dtype, dtype)), 2)
    array = ns.jit(ns.external(twice))(np.ones(3, dtype))
    assert (array.dtype, array.tolist()) == (twice(np.ones(3, dtype)).dtype, twice(np.ones(3, dtype)).tolist())


def test_python_numbers_and_defaults_are_what_numba_takes_them_for():
    @numba.njit
    def halves(n, k=2):
        return n / k, n // k

    f = ns.jit(lambda x: ns.external(halves)(5) + ns.external(halves)(x, k=4.0))
    assert f(7) == (2.5, 2, 1.75, 1.0)
    quotient, whole = ns.jit(ns.external(halves))(np.int64(7))
    assert (np.asarray(quotient).dtype, quotient, whole) == (np.dtype("float64"), 3.5, 3)


def test_signatures_hold():
    @numba.njit("float32(float64[:], int64)")
    def picked(x, k):
        return x[k]

    assert ns.jit(ns.external(picked))(np.arange(5.0), np.int32(3)).dtype == np.float32


def test_outside_of_traces_it_is_the_function_itself():
    assert kepler(0.5, 0.3) == anomaly(0.5, 0.3)
    assert isinstance(anomaly(0.5, 0.3), float)
    assert anomaly.__wrapped__ is kepler


def test_it_decorates():
    @ns.external(shape=(2,))
    @numba.njit
    def pair(x):
        return np.array([x, -x])

    assert ns.jit(pair)(1.5).tolist() == [1.5, -1.5]
    assert pair.__name__ == "pair"


def test_a_graph_takes_it():
    x = nt.dvector("x")
    f = ns.function([x], ns.external(summed)(x, 2.0 * x))
    assert f(np.array([1.0, 2.0])) == 10.0


def test_options_hold_and_parallel_loops_run_in_one_thread():
    @numba.njit(parallel=True, error_model="numpy")
    def total(x):
        s = 0.0
        for k in numba.prange(len(x)):
            s += 1.0 / x[k]
        return s

    lanes = np.ones((200, 30))
    lanes[3, 4] = 0.0
    assert [30.0, np.inf] == ns.vmap(ns.external(total))(lanes)[2:4].tolist()


def test_a_function_that_calls_itself():
    @numba.njit
    def factorial(n):
        if n < 2:
            return 1
        return n * factorial(n - 1)

    assert ns.jit(ns.external(factorial))(5) == 120


# lanes, conditions, lengths --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2])
def test_lanes_call_it_and_stop_by_themselves(threads):
    def run(x):
        return ns.scan(
            lambda y: (anomaly(y, 0.2) + 0.5, ns.until(y > 3.0)),
            outputs_info=x,
            n_steps=20,
            return_updates=False,
            mode=ns.Mode(threads=threads),
        )[-1]

    starts = np.linspace(0.0, 3.5, 101)

    def by_hand(y):
        for _ in range(20):
            before, y = y, kepler(y, 0.2) + 0.5
            if before > 3.0:
                break
        return y

    in_lanes = ns.vmap(run)
    lanes = in_lanes(starts)
    np.testing.assert_allclose(lanes, [by_hand(y) for y in starts], rtol=1e-13)
    assert lanes.tolist() == [in_lanes(starts[k : k + 1])[0] for k in range(101)]


def test_a_branch_that_is_not_taken_does_not_call_it():
    f = ns.vmap(lambda x: limited_in_steps(x) if x < 2.0 else 0.0 * x)
    assert f(np.array([1.0, 9.0, 1.5])).tolist() == [2.0, 0.0, 2.5]


limited_in_steps = ns.external(limited)


@pytest.mark.parametrize("n_steps", [0, 1])
def test_loops_without_a_step_do_not_call_it(n_steps):
    f = ns.jit(lambda x, n: ns.scan(lambda y, x: y + limited_in_steps(x), None, 0.0, x, n_steps=n, return_updates=False))
    if n_steps:
        with pytest.raises(ValueError, match="too large"):
            f(3.0, 1)
    else:
        assert f(3.0, 0).shape == (0,)


def test_an_error_leaves_the_call_and_nothing_is_stored():
    count = ns.shared(0.0, name="count")
    _, updates = ns.scan(lambda c: {c: limited_in_steps(c)}, non_sequences=[count], n_steps=5)
    f = ns.function([], [], updates=updates)
    with pytest.raises(ValueError, match="too large"):
        f()
    assert count.get_value() == 0.0
    with pytest.raises(ValueError, match="too large"):
        ns.vmap(limited_in_steps)(np.linspace(0.0, 3.0, 500))


# derivatives -----------------------------------------------------------------------------------------------------------------


def test_derivatives_are_those_that_were_given():
    ns.verify_grad(lambda m, e: anomaly(m, e), [np.float64(0.7), np.float64(0.3)])
    ns.verify_grad(
        lambda m, e: ns.scan(lambda y, e: anomaly(y, e), None, m, e, n_steps=20, return_updates=False).sum(),
        [np.float64(0.7), np.float64(0.3)],
    )
    _, forward = ns.jvp(anomaly, (0.7, 0.3), (1.0, 0.0))
    assert ns.grad(anomaly)(0.7, 0.3) == pytest.approx(forward, rel=1e-14)


def test_second_derivatives_follow_from_the_rule():
    step = 1e-5
    expected = (ns.grad(anomaly)(0.7 + step, 0.3) - ns.grad(anomaly)(0.7 - step, 0.3)) / (2 * step)
    assert ns.hessian(lambda m: anomaly(m, 0.3))(0.7) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("checkpoint", [None, 4, "auto"])
def test_checkpoints_change_nothing(checkpoint):
    def cost(m):
        return ns.scan(lambda y: anomaly(y, 0.3) * 0.95, outputs_info=m, n_steps=33, return_updates=False, checkpoint=checkpoint).sum()

    step = 1e-6
    assert ns.grad(cost)(0.7) == pytest.approx((cost(0.7 + step) - cost(0.7 - step)) / (2 * step), rel=1e-7)


def test_rules_compiled_by_numba_take_arrays():
    @numba.njit
    def summed_vjp(x, weight, g):
        return g * weight, g * x

    total = ns.external(summed, vjp=summed_vjp)
    x, weight = np.arange(4.0), np.cos(np.arange(4.0))
    ns.verify_grad(lambda x, w: total(x, w), [x, weight])
    lanes = np.stack([x, x + 1])
    assert np.broadcast_to(weight, (2, 4)).tolist() == ns.vmap(ns.grad(lambda x: total(x, weight)))(lanes).tolist()


def test_rules_of_several_results_take_a_cotangent_of_each():
    @numba.njit
    def sum_and_product(x, y):
        return x + y, x * y

    both = ns.external(sum_and_product, vjp=lambda x, y, g, h: (g + h * y, g + h * x), jvp=lambda x, y, dx, dy: (dx + dy, dx * y + x * dy))

    def cost(x, y):
        total, product = both(x, y)
        return total**2 * product

    assert pytest.approx([float(ns.grad(cost, k)(1.0, 3.0)) for k in (0, 1)]) == (16.0 * 3 + 2 * 4 * 3 * 1, 16.0 * 1 + 2 * 4 * 3 * 1)
    assert ns.jvp(cost, (1.0, 3.0), (1.0, 0.0))[1] == pytest.approx(72.0)


def test_what_a_rule_reads_is_seen_anew():
    factor = 2.0
    twice = ns.external(scaled, vjp=lambda x, g: factor * g)
    slope = ns.grad(lambda x: twice(x))
    assert slope(1.0) == 2.0
    factor = 5.0
    assert slope(1.0) == 5.0


@pytest.mark.parametrize("take", [ns.grad, lambda f: lambda x: ns.jvp(f, (x,), (1.0,))])
def test_without_a_rule_there_is_no_derivative(take):
    with pytest.raises(ns.NullGradientError, match=r"scaled has no derivative .*test_external.py.*ns.external\(scaled, vjp=…\)"):
        take(lambda x: ns.external(scaled)(x))(1.0)


def test_a_rule_for_one_mode_is_none_for_the_other():
    with pytest.raises(ns.NullGradientError, match=r"scaled .*jvp alone"):
        ns.grad(ns.external(scaled, jvp=lambda x, d: GAIN * d))(1.0)
    with pytest.raises(ns.NullGradientError, match="scaled has a rule for reverse mode only"):
        ns.jvp(ns.external(scaled, vjp=lambda x, g: GAIN * g), (1.0,), (1.0,))


def test_a_tangent_of_another_shape_or_dtype_is_refused():
    with pytest.raises(ValueError, match="the jvp of scaled"):
        ns.jvp(lambda x: ns.external(scaled, jvp=lambda x, d: d[:2])(x).sum(), (np.ones(3),), (np.ones(3),))
    with pytest.raises(TypeError, match=r"the jvp of scaled.*complex128"):
        ns.jvp(ns.external(scaled, jvp=lambda x, d: d * 1j), (1.0,), (1.0,))


# refusals --------------------------------------------------------------------------------------------------------------------


@numba.njit
def overwrites(x):
    x[0] = 1.0
    return x


@numba.njit
def overwrites_elsewhere(x):
    return overwrites(x)


@numba.njit
def draws(x):
    return x + np.random.normal()  # noqa: NPY002 - that is what is refused


@numba.njit
def draws_elsewhere(x):
    return draws(x)


@pytest.mark.parametrize(
    "function, argument, error, message",
    [
        (overwrites, np.ones(3), TypeError, "overwrites writes into an array"),
        (overwrites_elsewhere, np.ones(3), TypeError, "overwrites_elsewhere writes into an array"),
        (draws, 1.0, TypeError, r"draws draws random numbers \(np.random\).*RandomStream"),
        (draws_elsewhere, 1.0, TypeError, "draws_elsewhere draws random numbers"),
        (numba.njit(lambda x: np.ones(3)), 1.0, TypeError, "array of 1 axes, and no argument has as many.*shape="),
        (numba.njit(lambda x: "text"), 1.0, TypeError, "returns .*numbers, arrays of one axis or more"),
        (numba.njit(lambda x: None), 1.0, TypeError, "returns nothing"),
        (numba.njit(lambda x: x.nonsense), 1.0, TypeError, "Numba does not compile .* for .float64.*Unknown attribute 'nonsense'"),
        (numba.njit(lambda x: x[:2]), np.ones(3), ValueError, "another shape.*shape="),
    ],
)
@pytest.mark.parametrize("mode", [None, "python"])
def test_what_is_refused(function, argument, error, message, mode):
    with pytest.raises(error, match=message):
        ns.jit(ns.external(function), mode=mode)(argument)


def test_shapes_that_do_not_fit_the_results_are_refused():
    with pytest.raises(ValueError, match="of_several returns 3 results, and shape= says 2"):
        ns.jit(ns.external(of_several, shape=[None, (2,)]))(np.ones(2), 1)
    with pytest.raises(ValueError, match="centred returns an array of 1 axes, and shape= says 2"):
        ns.jit(ns.external(centred, shape=(2, 2)))(np.ones(2))
    with pytest.raises(ValueError, match="negative"):
        ns.jit(ns.external(centred, shape=lambda x: (x.shape[0] - 30,)))(np.ones(20))


@pytest.mark.parametrize("value", [lambda x: x, 3, None.__class__])
def test_only_functions_of_numba_are_taken(value):
    with pytest.raises(TypeError, match=r"ns.external takes what numba.njit makes"):
        ns.external(value)
    with pytest.raises(TypeError, match="vjp must be a function"):
        ns.external(scaled, vjp=2.0)


def test_modules_and_functions_for_numba_refuse_it_by_name():
    f = ns.jit(lambda x: anomaly(x, 0.3))
    f(0.5)
    with pytest.raises(NotImplementedError, match=r"it calls kepler, a function of ns.external"):
        f.export("model.py")
    with pytest.raises(NotImplementedError, match=r"it calls kepler, a function of ns.external"):
        _ = f.njit


# what it reads ---------------------------------------------------------------------------------------------------------------


def test_numbers_and_arrays_that_it_reads_are_seen_anew(monkeypatch):
    f = ns.jit(ns.external(through_another))
    assert f(1.0) == 5.0
    monkeypatch.setitem(globals(), "GAIN", 7.0)
    assert f(1.0) == 9.0
    monkeypatch.setitem(globals(), "ROWS", ROWS * 10)
    assert f(1.0) == 27.0
    ROWS[1] += 1.0
    assert f(1.0) == 28.0


def test_attributes_of_modules_of_the_user_are_seen_anew():
    constants = types.ModuleType("constants")
    constants.gain = 2.0
    f = ns.jit(ns.external(numba.njit(lambda x: constants.gain * x)))
    assert f(3.0) == 6.0
    constants.gain = 4.0
    assert ns.jit(ns.external(numba.njit(lambda x: constants.gain * x)))(3.0) == 12.0
    assert f(3.0) == 12.0


PROGRAM = """
import sys
import numba, numpy as np, numbascan as ns
{reads}
@numba.njit
def helper(x):
    return {helper}
@numba.njit
def f(x):
    return helper(x) * GAIN
step = ns.external(f)
print(ns.scan(lambda y: step(y), outputs_info=1.0, n_steps=3, return_updates=False)[-1])
"""


def run_program(folder, reads="GAIN = 2.0", helper="x + 1.0"):
    """What a process prints, and the kernels that it left in the cache."""
    text = textwrap.dedent(PROGRAM).format(reads=reads, helper=helper)
    known = set(folder.glob("*.code"))
    environment = {**os.environ, "NUMBASCAN_CACHE_DIR": str(folder), "PYTHONHASHSEED": "random"}
    result = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True)
    return float(result.stdout), len(set(folder.glob("*.code")) - known)


@needs_object_code
def test_kernels_are_found_by_another_process_and_never_where_something_has_changed(tmp_path):
    assert run_program(tmp_path) == (22.0, 1)
    assert run_program(tmp_path) == (22.0, 0)
    assert run_program(tmp_path, reads="GAIN = 3.0") == (66.0, 1)
    assert run_program(tmp_path, helper="x + 2.0") == (36.0, 1)
    assert run_program(tmp_path, reads="import math\nGAIN = 2.0\n", helper="math.floor(x) + 1.0") == (22.0, 1)
    assert run_program(tmp_path, reads="GAIN = np.float64(2.0)") == (22.0, 1)


@needs_object_code
def test_what_reads_what_cannot_be_told_is_compiled_by_each_process(tmp_path):
    reads = "import collections\nGAIN = 2.0\nPair = collections.namedtuple('Pair', 'a b')"
    assert run_program(tmp_path, reads, helper="Pair(x, 1.0).a + Pair(x, 1.0).b") == (22.0, 0)
    assert not list(tmp_path.glob("*.py"))


def test_a_function_made_again_with_other_numbers_is_another_function():
    def made(gain):
        namespace = {"numba": numba, "gain": gain}
        exec("@numba.njit\ndef step(x):\n    return gain * x", namespace)
        return ns.external(namespace["step"])

    def in_closure(gain):
        return ns.external(numba.njit(lambda x: gain * x))

    for make in (made, in_closure):
        assert [ns.jit(make(gain))(3.0) for gain in (2.0, 5.0, 2.0)] == [6.0, 15.0, 6.0]


# pickles ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
def test_it_goes_through_pickle_as_do_graphs_with_it(pickler):
    x = nt.dscalar("x")
    f, y = pickler.loads(pickler.dumps((anomaly, x, anomaly(x, 0.3))[::2]))
    assert f(0.5, 0.3) == anomaly(0.5, 0.3)
    copy = pickler.loads(pickler.dumps(ns.function([x], ns.external(kepler)(x, 0.3))))
    assert copy(0.5) == kepler(0.5, 0.3)
    assert y.type.dtype == "float64"


def test_kernels_name_it_as_the_user_does():
    f = ns.jit(lambda x: anomaly(x, 0.3))
    assert re.search(r"externals\.kepler_[0-9a-f]{16}\(", (f(0.5), f.source())[1])
    assert cache.cache_folder().is_dir()
