"""Measures loops on a GPU: `python benches/gpu.py [--small] [--json FILE] [workload …]`. Needs a GPU, or with --small Numba's simulator.

Before anything is timed, each workload must give what the CPU gives in double precision, for fresh random inputs; of ensembles some lanes
are held against it. Times are medians of several calls, the device idle before and after: of calls that take their arguments from the host
and bring their results back, and of calls in place, whose arguments and results stay on the device.

Beside each, on the same arguments, in place and with the same check: a kernel by hand in CUDA C++ (`by_hand.cu`, where there is nvcc) and
JAX (where it is installed; on a machine without a GPU it runs on the CPU). A rival that fails is told, and the table goes on. The floor is
the longer of two times: of copying the bytes that must be read and written, at the bandwidth measured here, and of the additions and
multiplications, at the rate measured here for those of one thread that wait for no other. Functions count as one operation, so where there
are many of them the floor is lower than any kernel can be.

The recurrences take 24 GB of memory on the device, and twice as much on the host.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import numbascan as ns
from numbascan.emit.runtime import cuda as runtime
from numbascan.errors import gpu

ROUNDS, SECONDS = 7, 3.0  # calls that are timed; fewer, if they take longer than so much together
COMPARED = 4096  # lanes
SIMULATED = runtime.SIMULATED
cuda = runtime.cuda  # kernels want it among the names of their module
Rival = Callable[[], tuple[float, np.ndarray]]  # seconds of a call in place, and its results
rng = np.random.default_rng()


@dataclass
class Workload:
    """A function of arrays, its arguments, how many steps of lanes (or cells) it makes, and what it cannot do without."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    steps: int
    bytes: int
    operations: float  # of all steps; 0 where memory is the limit
    tolerance: float
    has_lanes: bool = True
    again: Callable[[], Any] = lambda: None  # before a function draws the same numbers once more
    draws: bool = False  # the mean is all that rivals have in common
    rivals: dict[str, Rival] = field(default_factory=dict)  # by name


# systems and methods, for NumPy and for JAX -----------------------------------------------------------------------------


def lorenz(xp: Any) -> Callable[..., Any]:
    return lambda y, rho: xp.stack([10.0 * (y[1] - y[0]), y[0] * (rho - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])


def seir(xp: Any) -> Callable[..., Any]:
    def slope(y: Any, beta: Any) -> Any:
        caught, ill, well = beta * y[0] * y[2], 0.2 * y[1], 0.1 * y[2]
        return xp.stack([-caught, caught - ill, ill - well, well])

    return slope


def hodgkin_huxley(xp: Any) -> Callable[..., Any]:
    def ratio(x: Any) -> Any:  # x / (e**x - 1)
        return xp.where(xp.abs(x) < 1e-3, 1.0 - 0.5 * x, x / (xp.exp(x) - 1.0))

    def slope(y: Any, current: Any) -> Any:
        v, m, h, n = y[0], y[1], y[2], y[3]
        u = v + 65.0
        am, bm = ratio((25.0 - u) / 10.0), 4.0 * xp.exp(-u / 18.0)
        ah, bh = 0.07 * xp.exp(-u / 20.0), 1.0 / (xp.exp((30.0 - u) / 10.0) + 1.0)
        an, bn = 0.1 * ratio((10.0 - u) / 10.0), 0.125 * xp.exp(-u / 80.0)
        ions = 120.0 * m * m * m * h * (v - 50.0) + 36.0 * n * n * n * n * (v + 77.0) + 0.3 * (v + 54.4)
        return xp.stack([current - ions, am * (1.0 - m) - bm * m, ah * (1.0 - h) - bh * h, an * (1.0 - n) - bn * n])

    return slope


def rk4(slope: Callable[..., Any], h: float) -> Callable[..., Any]:
    def step(y: Any, *parameters: Any) -> Any:
        k1 = slope(y, *parameters)
        k2 = slope(y + 0.5 * h * k1, *parameters)
        k3 = slope(y + 0.5 * h * k2, *parameters)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(y + h * k3, *parameters))

    return step


STAGES = (
    (0.161,),
    (-0.008480655492356989, 0.335480655492357),
    (2.8971530571054935, -6.359448489975075, 4.3622954328695815),
    (5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525),
    (5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401, -0.028269050394068383),
    (0.09646076681806523, 0.01, 0.4798896504144996, 1.379008574103742, -3.290069515436081, 2.324710524099774),
)


def tsit5(slope: Callable[..., Any], h: float) -> Callable[..., Any]:
    def step(y: Any, *parameters: Any) -> Any:
        slopes: list[Any] = []
        following = y
        for stage in STAGES:
            slopes.append(slope(following, *parameters))
            following = y
            for weight, k in zip(stage, slopes, strict=True):
                following = following + h * weight * k
        return following

    return step


METHODS = {"rk4": rk4, "tsit5": tsit5}


class Counted:
    """Numbers that are not there, in arrays of a length: operations on them are counted."""

    total = 0

    def __init__(self, length: int = 1) -> None:
        self.length = length

    def _with(self, other: Any = None) -> Counted:
        result = Counted(max(self.length, other.length if isinstance(other, Counted) else 1))
        Counted.total += result.length
        return result

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _with

    def __neg__(self) -> Counted:
        return self

    def __lt__(self, _: float) -> Counted:
        return self

    def __getitem__(self, _: int) -> Counted:
        return Counted()

    @staticmethod
    def stack(parts: list[Counted]) -> Counted:
        return Counted(len(parts))

    @staticmethod
    def abs(of: Counted) -> Counted:
        return of

    @staticmethod
    def where(_: Counted, then: Counted, otherwise: Counted) -> Counted:
        return otherwise

    @staticmethod
    def exp(of: Counted) -> Counted:
        return of._with()


def operations(step: Callable[..., Any], length: int) -> int:
    """Operations of a step of a state of so many numbers, with one parameter."""
    Counted.total = 0
    step(Counted(length), Counted())
    return Counted.total


def scan(step: Any, *args: Any, **options: Any) -> Any:
    return ns.scan(step, *args, **options, return_updates=False)


class Ours:
    """How a program for an ensemble says its loops here."""

    xp, vmap, grad = np, staticmethod(ns.vmap), staticmethod(ns.grad)

    @staticmethod
    def end(step: Any, y: Any, parameter: Any, n_steps: int) -> Any:
        return scan(step, outputs_info=y, non_sequences=parameter, n_steps=n_steps)[-1]

    @staticmethod
    def path(step: Any, y: Any, parameter: Any, n_steps: int, k: int) -> Any:
        return scan(step, outputs_info=y, non_sequences=parameter, n_steps=n_steps)[:, k]


@cache
def jax() -> Any:
    """JAX in double precision, which leaves memory of the device to others."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_ALLOCATOR", "platform")
    module = importlib.import_module("jax")
    module.config.update("jax_enable_x64", True)
    return module


class Jax:
    """The same in JAX."""

    def __init__(self) -> None:
        self.xp, self.vmap, self.grad = jax().numpy, jax().vmap, jax().grad

    @staticmethod
    def end(step: Any, y: Any, parameter: Any, n_steps: int) -> Any:
        return jax().lax.scan(lambda y, _: (step(y, parameter), None), y, None, length=n_steps)[0]

    @staticmethod
    def path(step: Any, y: Any, parameter: Any, n_steps: int, k: int) -> Any:
        def kept(y: Any, _: Any) -> Any:
            following = step(y, parameter)
            return following, following[k]

        return jax().lax.scan(kept, y, None, length=n_steps)[1]


# rivals ------------------------------------------------------------------------------------------------------------------


def rivals(name: str, args: tuple[Any, ...], size: int, n_steps: int, in_jax: Callable[[], Any]) -> dict[str, Rival]:
    """What runs beside a workload: `in_jax` makes JAX's function of the arguments, `name` is that of a kernel by hand."""
    found: dict[str, Rival] = {}
    if importlib.util.find_spec("jax"):
        found["JAX"] = lambda: by_jax(in_jax(), args)
    if name and shutil.which("nvcc") and not SIMULATED:
        found["CUDA C++"] = lambda: by_hand(name, args, size, n_steps)
    return found


def by_jax(function: Any, args: tuple[Any, ...]) -> tuple[float, np.ndarray]:
    compiled, there = jax().jit(function), [jax().device_put(arg) for arg in args]
    return timed(lambda: jax().block_until_ready(compiled(*there))), np.asarray(compiled(*there))


@cache
def program_by_hand(real: str) -> Path:
    """`by_hand.cu` compiled for this device."""
    folder = Path(tempfile.mkdtemp())
    source = str(Path(__file__).with_name("by_hand.cu"))
    subprocess.run(["nvcc", "-O3", "-arch=native", f"-DREAL={real}", source, "-o", str(folder / "by_hand")], check=True)
    return folder / "by_hand"


def by_hand(name: str, args: tuple[Any, ...], size: int, n_steps: int) -> tuple[float, np.ndarray]:
    """Results by `by_hand.cu`; it times its kernels by the device's own events."""
    dtype = args[0].dtype
    program = program_by_hand({"float32": "float", "float64": "double"}[dtype.name])
    with tempfile.TemporaryDirectory() as folder:
        for k, values in enumerate(args):
            np.asarray(values).tofile(Path(folder, f"{k}.bin"))
        command = [str(program), name, folder, str(size), str(n_steps)]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return float(told) / 1e3, np.fromfile(Path(folder, "end.bin"), dtype)


# workloads ---------------------------------------------------------------------------------------------------------------


def ensemble(method: str, lanes: int, n_steps: int, dtype: str, gradient: bool) -> Workload:
    def lane(way: Any) -> Any:
        def end(y: Any, rho: Any) -> Any:
            return way.end(METHODS[method](lorenz(way.xp), 0.001), y, rho, n_steps)

        return way.vmap(way.grad(lambda y, rho: (end(y, rho) ** 2).mean()) if gradient else end)

    args = rng.normal(size=(lanes, 3)).astype(dtype), rng.uniform(20.0, 30.0, lanes).astype(dtype)
    name = f"lorenz {method}{' gradient' * gradient}"
    beside = rivals(name, args, lanes, n_steps, lambda: lane(Jax()))
    if gradient and method != "rk4":
        beside.pop("CUDA C++", None)
    count = operations(METHODS[method](lorenz(Counted), 0.001), 3) * lanes * n_steps
    size, tolerance = 7 * lanes * np.dtype(dtype).itemsize, 1e-9 if dtype == "float64" else 1e-2
    return Workload(lane(Ours), args, lanes * n_steps, size, (1 + 2 * gradient) * count, tolerance, rivals=beside)


def neurons(lanes: int, n_steps: int, dtype: str) -> Workload:
    def lane(way: Any) -> Any:
        return way.vmap(lambda y, current: way.end(rk4(hodgkin_huxley(way.xp), 0.01), y, current, n_steps))

    starts = np.array([-65.0, 0.05, 0.6, 0.32]) * rng.uniform(0.95, 1.05, (lanes, 4))
    args = starts.astype(dtype), rng.uniform(5.0, 15.0, lanes).astype(dtype)
    count = operations(rk4(hodgkin_huxley(Counted), 0.01), 4) * lanes * n_steps
    beside = rivals("hodgkin-huxley", args, lanes, n_steps, lambda: lane(Jax()))
    tolerance = 1e-9 if dtype == "float64" else 2e-2
    return Workload(lane(Ours), args, lanes * n_steps, 9 * lanes * np.dtype(dtype).itemsize, count, tolerance, rivals=beside)


def epidemics(lanes: int, n_steps: int, dtype: str) -> Workload:
    def lane(way: Any) -> Any:
        def peak(beta: Any) -> Any:
            start = way.xp.stack([0.99 + 0 * beta, 0.01 + 0 * beta, 0 * beta, 0 * beta])
            return way.path(rk4(seir(way.xp), 0.1), start, beta, n_steps, 2).max()

        return way.vmap(peak)

    args = (rng.uniform(0.2, 0.6, lanes).astype(dtype),)
    count = operations(rk4(seir(Counted), 0.1), 4) * lanes * n_steps
    beside = rivals("seir", args, lanes, n_steps, lambda: lane(Jax()))
    tolerance = 1e-9 if dtype == "float64" else 1e-4
    return Workload(lane(Ours), args, lanes * n_steps, 2 * lanes * np.dtype(dtype).itemsize, count, tolerance, rivals=beside)


def options(lanes: int, n_steps: int) -> Workload:
    stream = ns.tensor.random.RandomStream(int(rng.integers(2**31)))

    def payoff(volatility: Any) -> Any:
        def step(price: Any) -> Any:
            return price * np.exp(-0.5 * volatility**2 / n_steps + volatility / np.sqrt(n_steps) * stream.normal())

        return np.maximum(scan(step, outputs_info=1.0, n_steps=n_steps)[-1] - 1.0, 0.0)

    def in_jax() -> Any:
        random, numpy, key = jax().random, jax().numpy, jax().random.key(7)

        def path(volatility: Any, lane: Any) -> Any:
            def step(price: Any, t: Any) -> Any:
                draw = random.normal(random.fold_in(random.fold_in(key, lane), t))
                return price * numpy.exp(-0.5 * volatility**2 / n_steps + volatility / np.sqrt(n_steps) * draw), None

            return numpy.maximum(jax().lax.scan(step, 1.0, numpy.arange(n_steps))[0] - 1.0, 0.0)

        return lambda volatilities: jax().vmap(path)(volatilities, numpy.arange(lanes))

    args = (rng.uniform(0.1, 0.5, lanes),)
    beside = rivals("options", args, lanes, n_steps, in_jax)
    seed = lambda: stream.seed(11)  # noqa: E731
    return Workload(ns.vmap(payoff), args, lanes * n_steps, 16 * lanes, 0, 1e-9, False, seed, draws=True, rivals=beside)


def heat(n: int, n_steps: int) -> Workload:
    def step(xp: Any, u: Any) -> Any:
        return u + 0.2 * (xp.roll(u, 1, 0) + xp.roll(u, -1, 0) + xp.roll(u, 1, 1) + xp.roll(u, -1, 1) - 4 * u)

    def ours(u: Any) -> Any:
        return scan(lambda u: step(np, u), outputs_info=u, n_steps=n_steps)[-1]

    def in_jax() -> Any:
        return lambda u: jax().lax.scan(lambda u, _: (step(jax().numpy, u), None), u, None, length=n_steps)[0]

    args = (rng.normal(size=(n, n)),)
    beside = rivals("heat", args, n, n_steps, in_jax)
    return Workload(ours, args, n * n * n_steps, 16 * n * n * n_steps, 0, 1e-9, False, rivals=beside)


def recurrence(n: int, dtype: str) -> Workload:
    def rows(a: Any, b: Any, x: Any) -> Any:
        return scan(lambda a, b, x: a * x + b, [a, b], x)

    def in_jax() -> Any:
        def joined(one: Any, other: Any) -> Any:
            return other[0] * one[0], other[0] * one[1] + other[1]

        def all_rows(a: Any, b: Any, x: Any) -> Any:
            factors, terms = jax().lax.associative_scan(joined, (a, b))
            return factors * x + terms

        return all_rows

    args = rng.uniform(0.0, 1.0, n).astype(dtype), rng.normal(size=n).astype(dtype), np.dtype(dtype).type(rng.normal())
    beside = rivals("recurrence", args, n, n, in_jax)
    size, tolerance = 3 * n * np.dtype(dtype).itemsize, 1e-9 if dtype == "float64" else 1e-4
    return Workload(rows, args, n, size, 0, tolerance, False, rivals=beside)


def matrix(n: int, n_steps: int) -> Workload:
    """A matrix times a vector in each step: below and above the size from which cuBLAS is called."""

    def ours(u: Any, a: Any) -> Any:
        return scan(lambda u, a: np.tanh(a @ u), outputs_info=u, non_sequences=a, n_steps=n_steps)[-1]

    def in_jax() -> Any:
        return lambda u, a: jax().lax.scan(lambda u, _: (jax().numpy.tanh(a @ u), None), u, None, length=n_steps)[0]

    args = rng.normal(size=n), rng.normal(size=(n, n)) / np.sqrt(n) / 2
    beside = rivals("", args, n, n_steps, in_jax)
    return Workload(ours, args, n * n * n_steps, 8 * n * n * n_steps, 0, 1e-9, False, rivals=beside)


def workloads(is_small: bool) -> dict[str, Callable[[], Workload]]:
    sizes = (3, 5, 9) if is_small else (8_192, 1_048_576, 8_388_608)
    lanes, n_steps = (9, 4) if is_small else (1_048_576, 1000)
    both = "float64", "float32"
    return {
        **{
            f"lorenz {method} {dtype} {size}{' gradient' * gradient}": lambda method=method, dtype=dtype, size=size, gradient=gradient: (
                ensemble(method, size, n_steps, dtype, gradient)
            )
            for method in METHODS
            for dtype in both
            for size in sizes
            for gradient in (False, True)
        },
        **{f"hodgkin-huxley {dtype}": lambda dtype=dtype: neurons(lanes, n_steps, dtype) for dtype in both},
        **{f"seir {dtype}": lambda dtype=dtype: epidemics(lanes, n_steps, dtype) for dtype in both},
        "options": lambda: options(lanes, n_steps),
        **{f"recurrence {dtype}": lambda dtype=dtype: recurrence(300 if is_small else 1_000_000_000, dtype) for dtype in both},
        **{f"matrix {n}": lambda n=n: matrix(n, n_steps) for n in ((5, 17) if is_small else (128, 256, 500, 520, 1024, 4000))},
        "heat": lambda: heat(9 if is_small else 4096, n_steps // (1 if is_small else 10)),
    }


# measuring ---------------------------------------------------------------------------------------------------------------


def timed(call: Callable[[], Any]) -> float:
    """Seconds of a call, the device idle before and after; median of several."""
    call()
    seconds: list[float] = []
    while not seconds or (len(seconds) < ROUNDS and sum(seconds) < SECONDS and not SIMULATED):
        cuda.synchronize()
        start = perf_counter()
        call()
        cuda.synchronize()
        seconds.append(perf_counter() - start)
    return statistics.median(seconds)


def bandwidth() -> float:
    """Bytes a second that the device copies, read and written."""
    size = 2**12 if SIMULATED else 2**30
    source, target = runtime.array((size,), np.uint8), runtime.array((size,), np.uint8)
    return 2 * size / timed(lambda: target.copy_to_device(source))


def peak(dtype: str) -> float:
    """Additions and multiplications a second, two in one instruction, in eight chains for each thread."""
    blocks, threads, rounds = (1, 2, 3) if SIMULATED else (8192, 256, 4096)
    number = np.dtype(dtype).type
    kernel, out = cuda.jit(chains), runtime.array((blocks * threads,), number)
    return 16 * blocks * threads * rounds / timed(lambda: kernel[blocks, threads](out, number(0.999), number(0.001), rounds))


def chains(out: Any, factor: Any, term: Any, rounds: int) -> None:
    """A kernel of additions and multiplications."""
    place = cuda.grid(1)
    a = b = c = d = e = f = g = h = factor * factor
    k = 0
    while k < rounds:
        a, b, c, d = a * factor + term, b * term + factor, c * factor + factor, d * term + term
        e, f, g, h = e * factor - term, f * term - factor, g * factor - factor, h * term - term
        k += 1
    out[place] = a + b + c + d + e + f + g + h


FRESH = """
from time import perf_counter
import numpy as np, numbascan as ns
def slope(y, rho):
    return np.stack([10.0 * (y[1] - y[0]), y[0] * (rho - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])
def step(y, rho):
    k1 = slope(y, rho); k2 = slope(y + 0.0005 * k1, rho); k3 = slope(y + 0.0005 * k2, rho)
    return y + 0.001 / 6 * (k1 + 2 * k2 + 2 * k3 + slope(y + 0.001 * k3, rho))
lanes = ns.vmap(lambda y, rho: ns.scan(step, outputs_info=y, non_sequences=rho, n_steps=STEPS, return_updates=False)[-1])
ns.jit(lanes, mode="cuda")(np.ones((LANES, 3)), np.linspace(20.0, 30.0, LANES))
"""


def fresh(is_small: bool) -> dict[str, float]:
    """Seconds from the start of Python to the end of the first call of an ensemble of Lorenz, without and with a cache."""
    code = FRESH.replace("LANES", "9" if is_small else "8192").replace("STEPS", "4" if is_small else "1000")
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            start = perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"NUMBASCAN_CACHE_DIR": folder})
            seconds.append(perf_counter() - start)
    return {"fresh process, no cache, s": seconds[0], "fresh process, from the cache, s": seconds[1]}


def measured(workload: Workload, bytes_a_second: float, operations_a_second: float) -> dict[str, Any]:
    """The figures of one workload, whose numbers are right."""
    every = slice(None, None, max(1, len(workload.args[0]) // COMPARED)) if workload.has_lanes else slice(None)
    wide = tuple(np.asarray(arg[every] if workload.has_lanes else arg, "float64") for arg in workload.args)
    on_gpu, on_cpu = ns.jit(workload.function, mode="cuda"), ns.jit(workload.function)
    workload.again()
    start = perf_counter()
    found = on_gpu(*workload.args)
    first = perf_counter() - start
    workload.again()
    expected = on_cpu(*wide)
    check(found[every], expected, workload.tolerance)
    with_copies = timed(lambda: on_gpu(*workload.args))
    seconds = in_place(workload, on_gpu, every, expected)
    floor = max(workload.bytes / bytes_a_second, workload.operations / operations_a_second)
    figures: dict[str, Any] = {
        "first call, s": first,
        "call with copies, ms": 1e3 * with_copies,
        "call in place, ms": 1e3 * seconds,
        "ns a step": 1e9 * seconds / workload.steps,
        "share of the copy bandwidth": workload.bytes / bytes_a_second / seconds,
        "floor, ms": 1e3 * floor,
        "floor / in place": floor / seconds,
    }
    for name, rival in workload.rivals.items():
        gc.collect()
        try:
            its_seconds, results = rival()
            its = results.reshape(-1, *expected.shape[1:])
            if workload.draws:
                np.testing.assert_allclose(
                    its.mean(), expected.mean(), rtol=10 / np.sqrt(len(expected)), atol=0 if len(expected) > 999 else 1
                )
            else:
                check(its[every], expected, workload.tolerance)
            figures |= {f"{name}, ms": 1e3 * its_seconds, f"{name} / in place": its_seconds / seconds}
        except Exception as error:  # it has no memory, or other numbers
            figures[f"{name} failed"] = f"{type(error).__name__}: {error}"[:500]
    return figures


def in_place(workload: Workload, on_gpu: Callable[..., Any], every: slice, expected: np.ndarray) -> float:
    """Seconds of a call whose arguments and results stay on the device, and are right."""
    there = ns.device_put(workload.args)
    workload.again()
    check(np.asarray(on_gpu(*there))[every], expected, workload.tolerance)
    return timed(lambda: on_gpu(*there))


def check(found: Any, expected: np.ndarray, tolerance: float) -> None:
    """AssertionError unless results are those of the CPU."""
    np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


def with_gradients(report: dict[str, Any]) -> None:
    """Adds how many times as long as the loop each gradient takes."""
    for name, figures in report.items():
        forward = report.get(name.removesuffix(" gradient"))
        if name.endswith(" gradient") and isinstance(forward, dict) and "call in place, ms" in figures and "call in place, ms" in forward:
            figures["gradient / forward"] = figures["call in place, ms"] / forward["call in place, ms"]


def versions() -> dict[str, str]:
    """Of what takes part, those that are installed."""
    packages = [name for name in ("numba", "numba-cuda", "numpy", "jax") if importlib.util.find_spec(name.replace("-", "_"))]
    return {name: importlib.metadata.version(name) for name in packages}


def shown(figures: dict[str, Any]) -> dict[str, Any]:
    return {key: value if isinstance(value, str) else float(f"{value:.3g}") for key, value in figures.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="few lanes and steps: what a simulator can do")
    parser.add_argument("--json")
    parser.add_argument("workload", nargs="*", help="the names begin so; without any, all of them and the first call of a process")
    chosen = parser.parse_args()
    bytes_a_second, rates = bandwidth(), {dtype: peak(dtype) for dtype in ("float32", "float64")}
    report: dict[str, Any] = {
        "device": gpu(),
        "date": date.today().isoformat(),
        "versions": versions(),
        "copied, GB/s": bytes_a_second / 1e9,
        **{f"{dtype}, 1e9 operations/s": rate / 1e9 for dtype, rate in rates.items()},
    }
    print(report)
    failed = False
    for name, make in workloads(chosen.small).items():
        if chosen.workload and not any(name.startswith(one) for one in chosen.workload):
            continue
        gc.collect()
        try:
            workload = make()
            report[name] = measured(workload, bytes_a_second, rates[workload.args[0].dtype.name])
            with_gradients(report)
            print(name, shown(report[name]), flush=True)
        except Exception as error:  # one that fails does not keep the others from being measured
            failed, report[name] = True, {"failed": f"{type(error).__name__}: {error}"[:2000]}
            print(name, report[name], flush=True)
        if chosen.json:
            Path(chosen.json).write_text(json.dumps(report, indent=1))
    if not chosen.workload:
        report["first call"] = fresh(chosen.small)
        print("first call", shown(report["first call"]))
    if chosen.json:
        Path(chosen.json).write_text(json.dumps(report, indent=1))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
