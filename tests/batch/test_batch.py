"""`ns.batch` in memory: what `ns.vmap` gives, whatever the chunks."""

from __future__ import annotations

import functools
import gc
import itertools
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan import compile as compiling
from numbascan.batches.chunks import chunks_of
from numbascan.batches.inputs import Cases

X = np.random.default_rng(0).uniform(0.1, 1.0, size=60)


def quiet(f: Any, inputs: Any, **options: Any) -> Any:
    return ns.batch(f, inputs, progress=False, **options)


def bits(results: Any) -> list[Any]:
    return [(one.dtype, one.shape, one.tobytes()) for one in (results if isinstance(results, (list, tuple)) else [results])]


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of kernels that are made."""
    names: list[str] = []
    kernel = compiling.Kernel
    monkeypatch.setattr(compiling, "Kernel", lambda *given: names.append(given[2]) or kernel(*given))
    return names


# bits ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_bits_of_a_case_depend_on_its_inputs_and_its_number_alone(dtype: str, kernels: list[str]) -> None:
    stream = nt.random.RandomStream(3)

    def walk(x: Any) -> Any:
        def step(y: Any) -> Any:
            return (0.9 * y + np.exp(-x * y) + stream.normal(dtype=dtype)).astype(dtype), ns.until(y > 3)

        path = ns.scan(step, outputs_info=x, n_steps=40, return_updates=False)
        return path[-1], np.sin(x), stream.uniform(size=2, dtype=dtype), nt.random.RandomStream(8).gamma(2.0)

    x = X.astype(dtype)
    whole = ns.vmap(walk)(x)
    stream.seed(3)
    for chunk in (1, 7, 59, "auto"):
        kernels.clear()
        assert bits(quiet(walk, (x,), chunk=chunk)) == bits(whole), chunk
        assert len(kernels) == (chunk == 1), chunk  # one for all chunks, and for the batches behind
    assert stream.state.get_value().tolist() == [3, 0, 0]
    assert bits(quiet(walk, (x,), chunk=7, mode=ns.Mode(threads=1))) == bits(whole)
    for one, other in zip(quiet(walk, (x,), chunk=50, mode="python"), whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


RATE = 2.0


def test_what_a_function_reads_may_change_between_batches(monkeypatch: pytest.MonkeyPatch, kernels: list[str]) -> None:
    table, gain, offset = np.array([1.0, 2.0]), ns.shared(3.0, "gain"), 1.0

    def f(x: Any) -> Any:
        return RATE * table[1] * gain * x + offset

    def now() -> np.ndarray:
        return RATE * table[1] * gain.get_value() * X + offset

    np.testing.assert_array_equal(quiet(f, (X,)), now())
    kernels.clear()
    np.testing.assert_array_equal(quiet(f, (X,)), now())
    gain.set_value(5.0)
    np.testing.assert_array_equal(quiet(f, (X,)), now())
    assert not kernels
    table[1] = 7.0
    np.testing.assert_array_equal(quiet(f, (X,)), now())
    monkeypatch.setitem(globals(), "RATE", 4.0)
    np.testing.assert_array_equal(quiet(f, (X,)), now())
    offset = -1.0
    np.testing.assert_array_equal(quiet(f, (X,)), now())
    np.testing.assert_allclose(quiet(f, (X,), mode="python"), now(), rtol=1e-15)
    np.testing.assert_array_equal(quiet(f, (X,), in_axes=(0,)), now())
    np.testing.assert_array_equal(quiet(f, (np.array([1.0, 2.0]),)), RATE * 7.0 * 5.0 * np.array([1.0, 2.0]) - 1.0)


def test_functions_and_large_arrays_are_not_held_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    def batched(value: float, table: np.ndarray) -> weakref.ref[Any]:
        f = lambda x: x + value + table[0]  # noqa: E731
        quiet(f, (X,))
        return weakref.ref(f)

    first, large = batched(0.5, np.ones(3)), batched(0.5, np.ones(1 << 18))
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "RATE", np.ones(1 << 18))
        held = weakref.ref(RATE)
        quiet(lambda x: x + RATE[0], (X,))
    for k in range(4):
        batched(k + 1.5, np.ones(3))
    gc.collect()
    assert first() is None
    assert large() is None
    assert held() is None


# inputs -------------------------------------------------------------------------------------------------------------


class Elsewhere:
    """An array that is read in pieces."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.rows = array, 0
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim

    def __getitem__(self, index: Any) -> np.ndarray:
        part = self.array[index]
        self.rows = max(self.rows, len(part))
        return part


def test_arrays_of_any_kind_are_read_chunk_by_chunk(tmp_path: Any) -> None:
    memory_map = np.memmap(tmp_path / "x", dtype=">f8", mode="w+", shape=(60, 2), order="F")
    memory_map[:] = np.stack([X, X + 1], 1)
    elsewhere = Elsewhere(X)
    f = lambda a, b, c, d: a.sum() + b * c["k"] + d[0] * d[1]  # noqa: E731
    got = quiet(f, (memory_map, elsewhere, {"k": X[::-1]}, [np.arange(60), 2.0]), in_axes=(0, 0, 0, (0, None)), chunk=7)
    np.testing.assert_array_equal(
        got, ns.vmap(f, in_axes=(0, 0, 0, (0, None)))(np.array(memory_map, "f8"), X, {"k": X[::-1]}, [np.arange(60), 2.0])
    )
    assert elsewhere.rows == 7


def test_axes_of_cases_are_those_of_vmap() -> None:
    a, b = np.arange(12.0).reshape(3, 4), np.arange(3.0)
    f = lambda a, b: (a @ b, a + 1)  # noqa: E731
    for axes in ((1, None), (-1, None)):
        assert bits(quiet(f, (a, b), in_axes=axes, chunk=3)) == bits(ns.vmap(f, in_axes=axes)(a, b))
    assert bits(quiet(f, {"b": b, "a": a}, in_axes={"a": 1, "b": None}, chunk=3)) == bits(ns.vmap(f, in_axes=(1, None))(a, b))


def test_a_grid_is_all_combinations_with_its_own_axes() -> None:
    grid = ns.grid(b=np.arange(3), a=[0.5, 1.5], c=np.arange(8.0).reshape(4, 2))
    assert (len(grid), grid.shape) == (24, (3, 2, 4))
    expected = [[[a + b * c for c in np.arange(8.0).reshape(4, 2)] for a in (0.5, 1.5)] for b in range(3)]
    for chunk in (1, 5, 8, 24, "auto"):
        got = quiet(lambda a, b, c: {"r": a + b * c}, grid, chunk=chunk)
        assert bits(got["r"]) == bits(np.array(expected))


@pytest.mark.parametrize("shape, size", [((7,), 3), ((10, 7), 3), ((10, 7), 20), ((3, 4, 5), 21), ((3, 4, 5), 1), ((2, 1, 3), 100)])
def test_chunks_are_blocks_of_whole_runs_and_hold_every_case_once(shape: tuple[int, ...], size: int) -> None:
    chunks, numbers = chunks_of(shape, size), np.arange(np.prod(shape)).reshape(shape)
    blocks = [numbers[chunks.slices(k)].ravel().tolist() for k in range(len(chunks))]
    assert list(itertools.chain(*blocks)) == list(range(numbers.size))
    assert [list(range(*chunks.cases(k))) for k in range(len(chunks))] == blocks
    assert max(map(len, blocks)) == chunks.size <= size


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_cases(count: int) -> None:
    shapes = [one.shape for one in quiet(lambda x, w: (x * w, x), (np.ones(count), np.ones(5)), in_axes=(0, None))]
    assert shapes == [(count, 5), (count,)]


def test_functions_of_all_kinds_are_taken() -> None:
    def cube(x: Any) -> Any:
        return np.sum(x**3)

    x = np.arange(6.0).reshape(3, 2)
    for f, expected in ((ns.jit(cube), ns.vmap(cube)(x)), (ns.grad(cube), 3 * x**2), (ns.vmap(lambda x: x**2), x**2)):
        np.testing.assert_array_equal(quiet(f, (x,), chunk=2), expected)
    assert quiet(ns.jit(cube, mode="python"), (x,), chunk=2).tolist() == ns.vmap(cube)(x).tolist()


@ns.scan(outputs_info=1.0, n_steps=4, keep_last=1)
def decay(y: Any, rate: Any, gain: Any) -> Any:
    return y * rate + gain


def test_a_scan_function_takes_arguments_by_the_names_of_its_step() -> None:
    rates, gains = np.array([0.5, 0.25]), np.array([0.0, 1.0, 2.0])
    expected = [[decay(non_sequences=(rate, gain)) for gain in gains] for rate in rates]
    np.testing.assert_array_equal(quiet(decay, ns.grid(rate=rates, gain=gains)), expected)
    got = quiet(
        decay,
        {"non_sequences": (rates, 1.0), "n_steps": 3, "keep_last": 2},
        in_axes={"non_sequences": (0, None), "n_steps": None, "keep_last": None},
    )
    np.testing.assert_array_equal(got[1], decay(non_sequences=(0.25, 1.0), n_steps=3, keep_last=2))
    with pytest.raises(TypeError, match="decay needs gain as well"):
        quiet(decay, {"rate": rates})


def growth(y: Any, r: Any) -> Any:
    return y * r


def test_the_name_of_a_state_is_refused_until_something_says_that_it_is_one() -> None:
    loop = ns.scan(n_steps=3)(growth)
    y, r = np.array([5.0, 1.0]), np.array([2.0, 3.0])
    path = [[5.0 * 2.0**t for t in (1, 2, 3)], [3.0**t for t in (1, 2, 3)]]
    for inputs in ({"y": y, "r": r}, {"r": r}, ns.grid(y=y, r=r)):
        with pytest.raises(TypeError, match=r"nothing says which parameters of growth are states.*growth\.lower"):
            quiet(loop, inputs)
    assert quiet(loop, {"outputs_info": y, "r": r}).tolist() == path
    assert quiet(loop, {"outputs_info": None, "y": y, "r": r}).tolist() == [[10.0] * 3, [3.0] * 3]  # as loop(non_sequences=(y, r))
    loop.lower(outputs_info=1.0, non_sequences=1.0)
    assert quiet(loop, {"y": y, "r": r}).tolist() == path
    assert quiet(loop, ns.grid(y=y, r=r))[0, 0].tolist() == path[0]


def relaxation(x: Any, before: Any, y2: Any, y1: Any, s: Any, k: Any) -> Any:
    return 0.5 * y1 - 0.25 * y2 + x - before * k, {"m": s["m"] + y1, "P": s["P"] * k}


RELAXED = {
    "x": np.sin(np.arange(18.0)).reshape(3, 6),
    "y2": np.ones((3, 2)),
    "s": {"m": np.zeros(3), "P": np.arange(3.0)},
    "k": np.array([0.5, 2.0, 1.0]),
}


def lists_of(x: Any, y2: Any, s: Any, k: Any) -> dict[str, Any]:
    states = [{"initial": y2, "taps": [-2, -1]}, s]
    return {"sequences": {"input": x, "taps": [0, -1]}, "outputs_info": states, "non_sequences": k}


def case_of(inputs: Any, case: int) -> Any:
    return {name: case_of(value, case) for name, value in inputs.items()} if isinstance(inputs, dict) else inputs[case]


def test_the_names_of_a_step_are_those_of_the_exported_function(tmp_path: Path) -> None:
    loop = ns.scan(relaxation)
    expected = [loop(**lists_of(**case_of(RELAXED, case))) for case in range(3)]
    got = quiet(loop, RELAXED)
    for case, (y, s) in enumerate(expected):
        np.testing.assert_array_equal(got[0][case], y)
        np.testing.assert_array_equal(got[1]["m"][case], s["m"])
        np.testing.assert_array_equal(got[1]["P"][case], s["P"])
    exported = loop.export(tmp_path / "relaxation.py").read_text()
    assert "def relaxation(x, y2, s_P, s_m, k):" in exported


@pytest.mark.parametrize(
    "put, out, words",
    [
        ({"y1": "y2"}, ["y2"], "y1 is no argument of relaxation, which has x, y2, s, k"),
        ({}, ["s"], "relaxation needs s as well"),
        ({"sequences": "x"}, ["x"], "other sequences, outputs or taps"),
    ],
)
def test_names_that_the_exported_function_has_not_are_refused(put: dict[str, str], out: list[str], words: str) -> None:
    loop = ns.scan(relaxation).lower(**lists_of(**case_of(RELAXED, 0)))
    inputs = {name: value for name, value in RELAXED.items() if name not in out}
    with pytest.raises(TypeError, match=words):
        quiet(loop, inputs | {name: RELAXED[like] for name, like in put.items()})


# what fails ---------------------------------------------------------------------------------------------------------


def solved(a: Any, b: Any) -> Any:
    return {"x": np.linalg.solve(a, b), "n": (b[0] * 10).astype("int64"), "ok": b[0] >= 0, "z": b[0] * 1j}


def singular(cases: Any, count: int = 50) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(count, 4, 4)), rng.normal(size=(count, 4))
    a[list(cases)] = 0
    return a, b


@pytest.mark.parametrize("chunk", [1, 7, 50])
def test_cases_that_fail_are_recorded_and_the_others_keep_their_bits(chunk: int) -> None:
    bad = [0, 1, 13, 14, 49]
    (results, errors), good = quiet(solved, singular(bad), on_error="record", chunk=chunk), quiet(solved, singular([]), chunk=50)
    assert [case for case, _ in errors] == bad
    assert all(message.startswith("LinAlgError: solve: Singular matrix") for _, message in errors)
    right = [case for case in range(50) if case not in bad]
    for key, value in results.items():
        assert bits(value[right]) == bits(good[key][right])
        assert np.isnan(value[bad]).all() if value.dtype.kind in "fc" else not value[bad].any()


def test_the_first_case_that_fails_is_raised_with_its_inputs() -> None:
    a, b = singular([31, 33])
    for chunk in (7, 50):
        with pytest.raises(ns.BatchError, match="case 31 failed: LinAlgError") as caught:
            quiet(solved, {"a": a, "b": b}, chunk=chunk)
        assert isinstance(caught.value, RuntimeError)
        assert isinstance(caught.value.__cause__, np.linalg.LinAlgError)
        assert caught.value.case == 31
        assert bits(caught.value.inputs["b"]) == bits(b[31])
    with pytest.raises(ns.BatchError) as caught:
        quiet(lambda a, k: np.linalg.inv(a) * k, ns.grid(k=[1, 2, 3], a=a[30:33]))
    assert (caught.value.case, int(caught.value.inputs["k"])) == (1, 1)


def test_a_case_that_is_not_finite_is_named_with_its_step() -> None:
    def logarithms(x: Any) -> Any:
        return ns.scan(lambda y: np.log(y), outputs_info=x, n_steps=2, return_updates=False)

    results, errors = quiet(logarithms, (np.array([3.0, 9.0, 0.5, 5.0]),), mode=ns.Mode(check_finite=True), on_error="record")
    assert np.isnan(results[:, -1]).tolist() == [False, False, True, False]
    assert errors[0][0] == 2
    assert "step 1: y (" in errors[0][1]


def test_a_jitted_function_keeps_its_mode_where_arguments_are_set_before() -> None:
    @ns.jit(mode=ns.Mode(check_finite=True))
    def logarithm(x: Any, k: Any) -> Any:
        return ns.scan(lambda s: np.log(s) * k, outputs_info=x, n_steps=3, return_updates=False)

    of_one = functools.partial(functools.partial(logarithm), k=2.0)
    with pytest.raises(ns.BatchError, match=r"case 0 failed: .*step \d"):
        quiet(of_one, (-np.ones(2),))
    with pytest.raises(FloatingPointError, match="lane 0"):
        ns.vmap(of_one)(-np.ones(2))


def test_static_arguments_constants_and_nests_of_one_name() -> None:
    times = ns.jit(lambda x, k: {"r": x * k, "c": 3, "n": None}, static_argnums=1)
    got = quiet(times, (X, 3), in_axes=(0, None), chunk=7)
    assert bits([got["r"], got["c"]]) == bits([X * 3, np.full(60, 3)])
    assert got["n"] is None
    with pytest.raises(ValueError, match="a_b has 59, a_b has 60"):
        quiet(lambda a_b, a: a_b + a["b"], {"a_b": X, "a": {"b": X[1:]}})
    with pytest.raises(TypeError, match="returns nothing"):
        quiet(lambda x: None, (X,))


def test_all_cases_may_fail() -> None:
    results, errors = quiet(lambda a, w: np.linalg.inv(a) @ w, (np.zeros((3, 2, 2)), np.ones((2, 5))), in_axes=(0, None), on_error="record")
    assert results.shape == (3, 2, 5)
    assert np.isnan(results).all()
    assert len(errors) == 3


def test_results_of_different_lengths_are_an_error_of_the_first_that_differs() -> None:
    def ragged(stop: Any) -> Any:
        return ns.scan(lambda y: (y + 1, ns.until(y >= stop)), outputs_info=0.0, n_steps=20, return_updates=False)

    for chunk in (1, 2, 6):
        with pytest.raises(ns.BatchError, match="case 3 failed"):
            quiet(ragged, (np.array([4.0, 4, 4, 7, 4, 7]),), chunk=chunk)


@pytest.mark.parametrize(
    "inputs, options, error, words",
    [
        ((X, X[1:]), {}, ValueError, "x has 60, y has 59; give equally many"),
        ({"x": X, "z": X}, {}, TypeError, "missing a required argument: 'y'|unexpected keyword argument 'z'"),
        ((X,), {}, TypeError, "missing a required argument: 'y'"),
        ((X, 1.0), {"in_axes": (0, 0)}, ValueError, "y is 1.0, which has no axis of cases; .*name it in shared="),
        ((X, [1.0, 2.0]), {}, ValueError, "y_0 is 1.0, which has no axis of cases; .*name it in shared="),
        ((1.0, 2.0), {}, ValueError, "no input has an axis of cases"),
        ((X, X), {"shared": "z"}, ValueError, "shared names 'z', and the inputs are 'x', 'y'; give names of these"),
        ((X, X), {"shared": ("x", "y")}, ValueError, "no input has an axis of cases; give at least one array that is not shared"),
        ((X, X), {"shared": "y", "in_axes": (0, 0)}, ValueError, "shared names 'y', but in_axes has 0 for it; give one of them"),
        ({"x": X, "y": X}, {"shared": "y", "in_axes": {"x": 0, "y": 1}}, ValueError, "shared names 'y', but in_axes has 1 for it"),
        ((X, X), {"shared": 1}, TypeError, "shared holds 1; give the names"),
        (ns.grid(x=X, y=X), {"shared": ["x", "y"]}, ValueError, "every argument of the grid is the same for all cases"),
        ((X, X), {"in_axes": (None, None)}, ValueError, "no input has an axis of cases"),
        ((X, X), {"in_axes": (0, 1)}, ValueError, "y has shape .60,., but in_axes has 1"),
        ((X, X), {"in_axes": (0,)}, ValueError, "in_axes has 1 entries for 2 arguments"),
        ({"x": X, "y": X}, {"in_axes": {"x": 0}}, ValueError, "in_axes has the keys 'x', the inputs 'x', 'y'"),
        (X, {}, TypeError, "inputs is a ndarray; give a tuple"),
        ((X, X.astype(object)), {}, TypeError, "y is a ndarray of dtype object"),
        ((X, X.astype("f2")), {}, TypeError, "y is a ndarray of dtype float16"),
        ((X, nt.dvector("v")), {}, TypeError, "y is the symbolic"),
        ((X, np.ma.array(X)), {}, TypeError, "y is a masked array"),
        ((X, X), {"chunk": 0}, ValueError, "chunk is 0"),
        ((X, X), {"chunk": None}, ValueError, "chunk is None; give a number of cases"),
        ((X, X), {"memory": "much"}, ValueError, "memory is 'much'"),
        ((X, X), {"on_error": "ignore"}, ValueError, "on_error is 'ignore'"),
        ((X, X), {"part": (0, 2)}, ValueError, "part= needs a store and a chunk"),
        ((X, X), {"part": (0.0, 2), "store": {}, "chunk": 3}, ValueError, r"part is \(0.0, 2\); give \(i, n\)"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_name(inputs: Any, options: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        quiet(lambda x, y: x + y, inputs, **options)


@pytest.mark.parametrize(
    "axes, words",
    [
        ((0, {"p": 0}), "y has the keys 'p', 'q', but in_axes 'p'; give the same"),
        ((0, {"p": 0, "q": 0, "r": 0}), "y has the keys 'p', 'q', but in_axes 'p', 'q', 'r'"),
        ((0, {"p": 0, "q": [0]}), "y_q has 2 parts, but in_axes 1 for it"),
        ((0, {"p": 0, "q": [0, None, 0]}), "y_q has 2 parts, but in_axes 3 for it"),
    ],
)
def test_axes_that_do_not_fit_a_nest_are_refused_with_the_name_of_the_argument(axes: Any, words: str) -> None:
    f = lambda x, y: x + y["p"] * y["q"][0] + y["q"][1]  # noqa: E731
    nest = X, {"p": X, "q": [X, X]}
    with pytest.raises(ValueError, match=f"ns.batch: {words}"):
        quiet(f, nest, in_axes=axes)
    with pytest.raises(ValueError, match=f"ns.vmap: {words}"):
        ns.vmap(f, in_axes=axes)(*nest)


def test_a_grid_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="there are no arguments"):
        ns.grid()


@pytest.mark.parametrize("number", [2, 2.5, True, 1j, np.float32(2.5), np.int8(2), np.array(2.5)])
def test_an_argument_that_is_one_number_is_the_same_for_all_cases(number: Any) -> None:
    f = lambda x, y: x * y  # noqa: E731
    for x in (X, X.astype("float32"), np.arange(60, dtype="int8")):
        expected = ns.vmap(f, in_axes=(0, None))(x, number)
        for inputs in ((x, number), {"y": number, "x": x}):
            got = quiet(f, inputs, chunk=7)
            assert got.dtype == expected.dtype
            assert bits(got) == bits(expected)
    assert bits(quiet(f, (number, X[:, None]), in_axes=1)) == bits(quiet(f, (X[:, None], number), in_axes=1))


def test_arguments_that_are_named_are_the_same_for_all_cases() -> None:
    def f(x: Any, w: Any, options: Any) -> Any:
        return w @ x + options["bias"], options["k"] * x

    rows, weights = np.ones((5, 2), "float32"), np.arange(6.0).reshape(3, 2)
    options = {"bias": np.arange(15.0).reshape(5, 3), "k": np.arange(5.0)}
    expected = bits(ns.vmap(f, in_axes=(0, None, 0))(rows, weights, options))
    by_name = {"x": rows, "options": options, "w": weights}
    assert bits(quiet(f, (rows, weights, options), shared="w", chunk=2)) == expected
    assert bits(quiet(f, by_name, shared=["w"], chunk=2)) == expected
    assert bits(quiet(f, (rows, weights, options), in_axes=(0, None, 0), shared="w", chunk=2)) == expected
    assert bits(quiet(f, by_name, in_axes={"x": 0, "options": 0}, shared="w", chunk=2)) == expected
    columns = bits(quiet(f, {**by_name, "x": rows.T}, in_axes={"x": 1, "options": 0}, shared="w", chunk=2))
    assert columns == expected
    whole = bits(ns.vmap(f, in_axes=(0, None, None))(rows, weights, {"bias": np.ones(3), "k": 2.0}))
    assert bits(quiet(f, (rows, weights, {"bias": np.ones(3), "k": 2.0}), shared=("options", "w"))) == whole
    np.testing.assert_array_equal(quiet(lambda k, w: (k * w).sum(), ns.grid(k=[1.0, 2.0], w=weights), shared="w", chunk=1), [15.0, 30.0])


def test_arguments_of_a_scan_function_are_shared_by_their_names() -> None:
    @ns.scan(n_steps=4, keep_last=1)
    def walk(y: Any, W: Any, b: Any) -> Any:
        return W @ y + b

    starts, W, b = X.reshape(20, 3), np.full((3, 3), 0.3), np.arange(3.0)
    expected = np.array([walk(outputs_info=y, non_sequences=(W, b)) for y in starts])
    got = quiet(walk, {"outputs_info": starts, "W": W, "b": b, "n_steps": 4}, shared=("W", "b", "n_steps"), chunk=7)
    np.testing.assert_allclose(got, expected, rtol=1e-13)
    got = quiet(walk, {"outputs_info": starts, "non_sequences": [W, b]}, shared="non_sequences", chunk=7)
    np.testing.assert_allclose(got, expected, rtol=1e-13)


def test_a_shared_array_is_part_of_what_a_store_holds(tmp_path: Path) -> None:
    f = lambda x, w: w @ x  # noqa: E731
    given = X.reshape(20, 3), np.eye(3)
    options = {"store": tmp_path / "a.zarr", "chunk": 4}
    quiet(f, given, shared="w", **options)
    assert np.array_equal(quiet(f, given, in_axes=(0, None), **options)[:], given[0])
    with pytest.raises(ValueError, match="other inputs"):
        quiet(f, (given[0], 2 * np.eye(3)), shared="w", **options)


def test_a_number_is_told_with_a_case_that_fails() -> None:
    with pytest.raises(ns.BatchError) as caught:
        quiet(lambda a, w: np.linalg.inv(a) * w, (np.zeros((3, 2, 2)), 2.0))
    assert (caught.value.case, caught.value.inputs[1]) == (0, 2.0)


@pytest.mark.parametrize("number", [2, 2.5, np.float32(2.5), np.array(2)])
def test_a_number_of_a_grid_is_an_axis_of_length_1(number: Any) -> None:
    f = lambda x, y: x * y  # noqa: E731
    one = ns.grid(x=X, y=number)
    assert (one.shape, len(one)) == ((60, 1), 60)
    assert bits(quiet(f, one)) == bits(quiet(f, ns.grid(x=X, y=[number])))
    shared = quiet(lambda x, y: x * y, one, in_axes={"x": 0, "y": None})  # the number itself, not an array of one
    assert bits(shared) == bits(quiet(f, (X, number)))


def test_whole_numbers_where_a_loop_makes_floats_are_named() -> None:
    def f(y: Any, r: Any) -> Any:
        return ns.scan(lambda y: y * r, outputs_info=y, n_steps=3, return_updates=False)

    with pytest.raises(ns.ScanTypeError) as caught:
        quiet(f, ns.grid(y=[5, 1], r=[2.0]))
    assert caught.value.__notes__ == [
        "ns.batch: the inputs y are whole numbers; where a loop makes floats of them give floats, as 1.0 for 1"
    ]
    np.testing.assert_array_equal(quiet(f, ns.grid(y=[5.0, 1.0], r=2.0))[:, 0], [[10, 20, 40], [2, 4, 8]])


# memory and progress ------------------------------------------------------------------------------------------------


def test_memory_says_how_large_a_chunk_may_be() -> None:
    elsewhere = Elsewhere(np.ones((2000, 500)))  # 4,000 bytes a case, and a path of as many
    quiet(lambda x: ns.scan(lambda y: y * 0.5, outputs_info=x, n_steps=10, return_updates=False), (elsewhere,), memory="8MB")
    assert 30 <= elsewhere.rows <= 8_000_000 // 44_000


def test_a_batch_that_is_stopped_does_not_wait_for_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    read, waits = Cases.read, threading.Event()

    def slowly(self: Any, start: int, stop: int) -> Any:
        if start >= 20:
            waits.wait(20)
        return read(self, start, stop)

    def stop(done: int, count: int) -> None:
        if done:
            raise KeyboardInterrupt

    monkeypatch.setattr(Cases, "read", slowly)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        ns.batch(lambda x: x + 1, (X,), chunk=10, progress=stop)
    assert time.monotonic() - started < 10
    waits.set()


def test_progress_is_told_to_a_function_and_in_lines(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[tuple[int, int]] = []
    ns.batch(lambda x: x + 1, (X,), chunk=25, progress=lambda done, count: seen.append((done, count)))
    assert seen == [(0, 60), (25, 60), (50, 60), (60, 60)]
    ns.batch(lambda x: x + 1, (X,), chunk=25)
    assert "60 of 60 cases" in capsys.readouterr().err
    quiet(lambda x: x + 1, (X,))
    assert capsys.readouterr().err == ""


def test_a_sweep_of_ten_thousand_names_the_37_cases_that_are_singular() -> None:
    generator = np.random.default_rng(11)
    matrices = generator.normal(size=(10_000, 4, 4))
    singular = np.sort(generator.choice(10_000, 37, replace=False))
    matrices[singular, 2] = matrices[singular, 1]
    results, errors = quiet(lambda a: {"x": np.linalg.solve(a, np.arange(4.0))}, (matrices,), on_error="record", memory="1MB")
    assert [case for case, _ in errors] == singular.tolist()
    assert all(message.startswith("LinAlgError: ") for _, message in errors)
    right = np.delete(np.arange(10_000), singular)
    assert np.isnan(results["x"][singular]).all()
    expected = np.linalg.solve(matrices[right], np.arange(4.0)[:, None])[..., 0]
    np.testing.assert_allclose(results["x"][right], expected, rtol=1e-8, atol=1e-8)
