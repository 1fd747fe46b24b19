"""Arrays that are on the device: arguments in place, results that stay, and what other libraries see of them."""

from __future__ import annotations

import gc
import os
import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.emit.runtime import dlpack
from numbascan.emit.runtime.device_array import DeviceArray
from numbascan.front.conversion import as_argument

pytestmark = pytest.mark.usefixtures("runs_kernels")
SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
X = np.linspace(-1.0, 1.0, 20)


@ns.scan(mode="cuda")
def walk(u, y, k):
    return y * k + u


def test_results_stay_where_an_argument_is():
    f = ns.jit(lambda x, k: {"rows": np.tanh(x) * k, "sum": x.sum(), "same": x, "part": x[3:]}, mode="cuda")
    x = ns.device_put(X)
    found, host = f(x, 2.0), f(X, 2.0)
    assert type(host["rows"]) is np.ndarray
    for name, array in found.items():
        np.testing.assert_array_equal(np.asarray(array), host[name])
        assert type(array) is (DeviceArray if array.ndim else np.ndarray)
    again = f(found["rows"], 2.0)
    np.testing.assert_array_equal(again["rows"].copy_to_host(), f(host["rows"], 2.0)["rows"])
    np.testing.assert_array_equal(np.asarray(x), X)


def test_a_result_is_never_the_memory_of_an_argument():
    x = ns.device_put(X)
    same, part = ns.jit(lambda x: (x, x[3:]), mode="cuda")(x)
    del x
    gc.collect()
    np.testing.assert_array_equal(np.asarray(same), X)
    np.testing.assert_array_equal(np.asarray(part), X[3:])
    assert same.memory is not part.memory


def test_loops_take_them_as_sequences_and_initial_values():
    rows = walk(ns.device_put(X), 0.0, 0.5)
    assert type(rows) is DeviceArray
    np.testing.assert_array_equal(np.asarray(rows), walk(X, 0.0, 0.5))
    np.testing.assert_array_equal(walk(ns.device_put(X), 0.0, 0.5, keep_last=1), rows.copy_to_host()[-1])
    until = ns.scan(lambda y: (y * 2, ns.until(y > 10.0)), mode="cuda")
    starts = np.array([1.0, 3.0])
    ends = ns.jit(ns.vmap(lambda y: until(outputs_info=y, n_steps=9)[-1]), mode="cuda")
    np.testing.assert_array_equal(np.asarray(ends(ns.device_put(starts))), ends(starts))
    out = np.empty(20)
    walk(ns.device_put(X), 0.0, 0.5, out=out)
    np.testing.assert_array_equal(out, rows.copy_to_host())


def test_arguments_keep_their_numbers_where_loops_write_in_place() -> None:
    def halved(t: Any, u: Any) -> Any:
        return nt.set_subtensor(u[t], u[t - 1] * 0.5)

    def ends(u: Any, v: Any) -> Any:
        rows = ns.scan(halved, np.arange(1, 9), u, return_updates=False)
        return rows[-1], nt.set_subtensor(v[2:5], 0.0), nt.inc_subtensor(u[0], 1.0)

    f = ns.jit(ends, mode="cuda")
    u, v = ns.device_put(X), ns.device_put(X + 1.0)
    for _ in range(2):
        for found, expected in zip(f(u, v), ns.jit(ends, mode="python")(X, X + 1.0), strict=True):
            np.testing.assert_array_equal(np.asarray(found), expected)
    np.testing.assert_array_equal(np.asarray(u), X)
    np.testing.assert_array_equal(np.asarray(v), X + 1.0)


def test_errors_of_lanes_are_those_of_arrays_of_the_host() -> None:
    square = ns.vmap(lambda x: ns.scan(lambda s: s * s, outputs_info=x, n_steps=5, return_updates=False))
    f = ns.jit(square, mode=ns.Mode(target="cuda", check_finite=True))
    starts = np.array([1.0, 1e100, 2.0])
    texts = []
    for start in (starts, ns.device_put(starts)):
        with pytest.raises(FloatingPointError) as caught:
            f(start)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    assert "lane 1" in texts[0]


def test_gradients_of_lanes_stay_too():
    cost = lambda start, u: ns.scan(walk.__wrapped__, u, start, 0.5)[0][-1] ** 2  # noqa: E731
    slopes = ns.jit(ns.vmap(ns.grad(cost, argnums=(0, 1)), in_axes=(0, None)), mode="cuda")
    starts = np.array([0.5, 1.0, 2.0])
    for found, expected in zip(slopes(ns.device_put(starts), ns.device_put(X[:5])), slopes(starts, X[:5]), strict=True):
        assert type(found) is DeviceArray
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_shared_variables_have_their_values_on_the_host():
    v, total = nt.dvector("v"), ns.shared(np.zeros(20))
    f = ns.function([v], v * 2, updates={total: total + v}, mode="cuda")
    assert type(f(ns.device_put(X))) is DeviceArray
    np.testing.assert_array_equal(total.get_value(), X)
    np.testing.assert_array_equal(f(X), X * 2)
    with pytest.raises(TypeError, match="2 dimensions"):
        f(ns.device_put(np.ones((2, 2))))


def test_a_shared_variable_takes_the_numbers_of_a_device_array():
    total = ns.shared(np.zeros(20))
    total.set_value(ns.device_put(X))
    assert type(total.get_value(borrow=True)) is np.ndarray
    np.testing.assert_array_equal(total.get_value(), X)


def test_an_array_of_another_dtype_is_cast_and_stays_there():
    v = nt.dvector("v")
    doubled = ns.function([v], v * 2, mode="cuda")(ns.device_put(X.astype("float32")))
    assert (type(doubled), doubled.dtype) == (DeviceArray, np.dtype("float64"))
    np.testing.assert_array_equal(np.asarray(doubled), X.astype("float32").astype("float64") * 2)


class Tensor:
    """An array on a GPU, as torch shows one to other libraries."""

    def __init__(self, memory: Any, requires_grad: bool = False) -> None:
        self.memory, self.requires_grad = memory, requires_grad

    @property
    def __cuda_array_interface__(self) -> Any:
        if self.requires_grad:
            raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad")
        return self.memory

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The functions that generated code calls, for which the simulator is a GPU."""
    from numbascan.emit.runtime import cuda as runtime

    if SIMULATED:
        monkeypatch.setattr(runtime, "SIMULATED", False)
        monkeypatch.setattr(runtime.cuda, "as_cuda_array", lambda value: value.__cuda_array_interface__, raising=False)
        monkeypatch.setattr(runtime, "_note_slow_doubles", lambda: None)
    return runtime


@pytest.mark.skipif(not SIMULATED, reason="stands in for other libraries")
def test_arrays_of_other_libraries_are_taken_in_place(runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = runtime.cuda.to_device(X)
    found = as_argument(Tensor(memory), "x")
    assert (type(found), found.memory is memory, found.device) == (DeviceArray, True, 0)
    with pytest.raises(TypeError, match=r"argument x is on a GPU and cannot be read there .* of a tensor of torch pass value.detach\(\)"):
        ns.jit(lambda x: x * 2, mode="cuda")(Tensor(memory, requires_grad=True))
    with pytest.raises(ValueError, match=r"x is on a GPU and is not C-contiguous \(strides \(16,\)\)"):
        as_argument(Tensor(memory[::2]), "x")
    with pytest.raises(TypeError, match=r"x is on a GPU; write x.copy_to_host\(\)"):
        ns.jit(lambda x: x * 2)(Tensor(memory))
    monkeypatch.undo()
    doubled = ns.jit(lambda x: x * 2, mode="cuda")(found)
    assert type(doubled) is DeviceArray
    np.testing.assert_array_equal(np.asarray(doubled), X * 2)
    with pytest.raises(TypeError, match=r"argument x is on a GPU \(Tensor\), where Numba's simulator does not reach"):
        ns.jit(lambda x: x * 2, mode="cuda")(Tensor(memory))


@pytest.mark.skipif(not SIMULATED, reason="stands in for a driver that fails")
@pytest.mark.parametrize("of_numba", ["CudaDriverError", "CUDAError"])
def test_a_device_that_fails_is_told_with_the_name_of_the_loop(of_numba: str, runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise type(of_numba, (Exception,), {})("CUDA_ERROR_ILLEGAL_ADDRESS")

    @ns.jit(mode="cuda")
    def doubled(x: Any) -> Any:
        return x * 2

    x = ns.device_put(X)
    monkeypatch.setattr(runtime.cuda, "synchronize", fails)
    with pytest.raises(RuntimeError, match=r"doubled: device 0 has failed.*ILLEGAL_ADDRESS.*start Python anew"):
        doubled(x)
    with pytest.raises(RuntimeError, match="device 0 has failed"):
        x.__dlpack__()


@pytest.mark.skipif(not SIMULATED, reason="stands in for a small device")
def test_too_little_memory_is_told_with_the_lanes_that_fit(runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(y: Any) -> Any:
        return ns.scan(lambda y: y * 0.5, outputs_info=y, n_steps=9, return_updates=False)

    starts = np.ones(1000)
    lanes = ns.jit(ns.vmap(ends), mode="cuda")
    monkeypatch.setattr(runtime, "_room", lambda: (40_000, 100_000))
    monkeypatch.setattr(runtime, "_LARGE", 0)
    with pytest.raises(
        MemoryError, match=r"vmap_ends.*80,000 bytes: 40,000 of its 100,000 are free; about 500 of the 1,000 lanes"
    ) as caught:
        lanes(starts)
    assert "chunk=500" in str(caught.value)
    np.testing.assert_array_equal(lanes(starts[:500]), np.outer(starts[:500], 0.5 ** np.arange(1, 10)))


@pytest.mark.skipif(not SIMULATED, reason="the share of the memory is the simulator's")
def test_memory_counts_what_lanes_take_that_run_at_once() -> None:
    def cost(u: Any) -> Any:
        rows = ns.scan(lambda u: np.tanh(u + 0.1 * np.roll(u, 1)), outputs_info=u, n_steps=5, return_updates=False)
        return (rows**2).sum()

    lanes = ns.jit(ns.vmap(ns.grad(cost)), mode="cuda")
    lanes(np.ones((3, 50)))
    few, many = lanes.memory(), lanes.lower(np.ones((1000, 50))).memory()
    assert few.work > 0
    assert few.work % 3 == 0
    assert 2**16 - few.work // 3 < many.work <= 2**16


def test_what_is_free_counts_what_numba_would_give_back_later(monkeypatch: pytest.MonkeyPatch) -> None:
    from numbascan.emit.runtime import cuda as runtime

    pending = [300]
    manager = SimpleNamespace(deallocations=pending)
    context = SimpleNamespace(memory_manager=manager, get_memory_info=lambda: (700 + (0 if pending else 300), 1000))
    monkeypatch.setattr(runtime, "SIMULATED", False)
    monkeypatch.setattr(runtime.cuda, "current_context", lambda: context, raising=False)
    assert runtime._room() == (1000, 1000)


def test_slow_doubles_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from numbascan.emit.runtime import cuda as runtime

    device = SimpleNamespace(name="Toy", SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO=32)
    monkeypatch.setattr(runtime, "SIMULATED", False)
    monkeypatch.setattr(runtime.cuda, "get_current_device", lambda: device, raising=False)
    with pytest.warns(RuntimeWarning, match="Toy computes with float64 at 1/32 of the speed of float32"):
        runtime._note_slow_doubles.__wrapped__()


def test_what_is_put_is_a_nest():
    nest = ns.device_put({"a": X, "b": [1, 2.5, np.arange(4)], "c": (ns.device_put(X),)})
    assert [type(leaf) for leaf in nest["b"]] == [int, float, DeviceArray]
    assert nest["c"][0].shape == (20,)
    assert repr(nest["a"]) == "DeviceArray(shape=(20,), dtype=float64, device=0)"
    assert (len(nest["a"]), nest["a"].nbytes, nest["a"].ndim, nest["a"].size) == (20, 160, 1, 20)
    back = pickle.loads(pickle.dumps(nest["a"]))
    assert type(back) is DeviceArray
    np.testing.assert_array_equal(np.asarray(back, "float32"), X.astype("float32"))
    swapped = ns.device_put(X.astype(">f8")[::2])
    np.testing.assert_array_equal(np.asarray(swapped), X[::2])


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: ns.jit(np.tanh)(ns.device_put(X)), TypeError, "x is on a GPU; write x.copy_to_host"),
        (lambda: ns.jit(np.tanh, mode="python")(ns.device_put(X)), TypeError, "x is on a GPU"),
        (lambda: ns.device_put(X, device=99), ValueError, "device=99 is not there"),
        (lambda: ns.device_put(X, device=-1), ValueError, "ns.device_put: device is -1"),
        (lambda: ns.device_put(X, device="0"), TypeError, "ns.device_put: device is '0'"),
        (lambda: ns.device_put({"a": ["text"]}), TypeError, "x_a_0 is 'text'"),
        (lambda: ns.device_put(nt.dvector("v")), TypeError, "symbolic"),
        (lambda: ns.Mode(device=1), ValueError, "only target='cuda'"),
        (lambda: ns.Mode(target="cuda", device=True), TypeError, "ns.Mode: device is True"),
        (lambda: ns.jit(np.tanh, mode=ns.Mode(target="cuda", device=99))(X), ValueError, "device=99 is not there"),
        (lambda: np.asarray(ns.device_put(X), copy=False), ValueError, "by a copy"),
    ],
)
def test_errors(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_an_array_of_another_device_is_refused() -> None:
    elsewhere = ns.device_put(X)
    elsewhere.device = 7
    with pytest.raises(ValueError, match="on device 7, and mode='cuda' runs on 0"):
        ns.jit(np.tanh, mode="cuda")(elsewhere)


@pytest.mark.skipif(not SIMULATED, reason="NumPy takes memory of the host alone, which the simulator's is")
@pytest.mark.parametrize("array", [X, np.arange(6, dtype="int32").reshape(2, 3), np.array([True, False]), np.array([1 + 2j])])
def test_other_libraries_take_it_in_place(array: np.ndarray) -> None:
    x = ns.device_put(array)
    before = len(dlpack._lent)
    capsule = x.__dlpack__()
    del capsule  # nobody took it
    assert len(dlpack._lent) == before
    taken = np.from_dlpack(x)
    address = x.memory._ary.ctypes.data
    del x
    gc.collect()
    np.testing.assert_array_equal(taken, array)
    assert taken.ctypes.data == address
    del taken
    gc.collect()
    assert len(dlpack._lent) == before


@pytest.mark.skipif(not SIMULATED, reason="stands in for memory of a GPU")
def test_other_libraries_see_memory_of_a_gpu() -> None:
    told = {"shape": (3, 2), "strides": None, "typestr": "<f8", "data": (4096, False), "stream": 7, "version": 3}
    memory = SimpleNamespace(shape=(3, 2), strides=(16, 8), dtype=np.dtype("float64"), __cuda_array_interface__=told)
    x = DeviceArray(memory, 0)
    assert x.__cuda_array_interface__ == {**told, "stream": None}
    assert x.__dlpack_device__() == (2, 0)
    capsule = x.__dlpack__(stream=1)
    (struct,) = (lent[0] for lent in dlpack._lent.values() if lent[-1] is memory)
    tensor = struct.tensor
    assert (tensor.data, tensor.device_type, tensor.ndim, tensor.code, tensor.bits, tensor.lanes) == (4096, 2, 2, 2, 64, 1)
    assert (tensor.shape[:2], tensor.strides[:2], tensor.byte_offset) == ([3, 2], [2, 1], 0)
    del capsule


def test_another_device_or_a_copy_is_refused_by_dlpack() -> None:
    x = ns.device_put(X)
    with pytest.raises(BufferError, match="copy_to_host"):
        x.__dlpack__(dl_device=(2, 5))
    with pytest.raises(BufferError, match="copy=True"):
        x.__dlpack__(copy=True)


def test_memory_tells_of_kernels_that_a_device_has() -> None:
    f = ns.jit(np.tanh, mode="cuda")
    f(X)
    kernels = f.memory().kernels
    assert kernels == () if SIMULATED else all(kernel.registers > 0 for kernel in kernels)
