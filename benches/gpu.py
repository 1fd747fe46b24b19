"""Measures loops on a GPU: `python benches/gpu.py [--small] [--json FILE] [workload …]`. Needs a GPU, or with --small Numba's simulator.

Before anything is timed, each workload must give what the CPU gives in double precision, for fresh random inputs. Times are medians of
several calls, the device idle before and after: of calls that take their arguments from the host and bring their results back, and of calls
in place, whose arguments and results stay on the device. The floor is the time in which the device copies the bytes that must be read and
written, at the bandwidth measured here. Beside the ensembles of Lorenz, on the same arguments, in place and with the same check: a kernel
by hand in CUDA C++ (`lorenz.cu`, where there is nvcc) and JAX (where it is installed; on a machine without a GPU it runs on the CPU).
The recurrences take 24 GB of memory on the device, and twice as much on the host.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numba
import numpy as np

import numbascan as ns
from numbascan.emit.runtime import cuda as runtime

ROUNDS = 7
SIMULATED = runtime.SIMULATED
Rival = Callable[[], tuple[float, np.ndarray]]  # seconds of a call in place, and its results
rng = np.random.default_rng()


@dataclass
class Workload:
    """A function of arrays, its arguments, how many steps of lanes (or cells) it makes, and the bytes that it cannot do without."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    steps: int
    bytes: int
    tolerance: float
    again: Callable[[], Any] = lambda: None  # before a function draws the same numbers once more
    rivals: dict[str, Rival] = field(default_factory=dict)  # by name


def scan(step: Any, *args: Any, **options: Any) -> Any:
    return ns.scan(step, *args, **options, return_updates=False)


def rk4(slope: Callable[..., Any], h: float) -> Callable[..., Any]:
    def step(y: Any, *parameters: Any) -> Any:
        k1 = slope(y, *parameters)
        k2 = slope(y + 0.5 * h * k1, *parameters)
        k3 = slope(y + 0.5 * h * k2, *parameters)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(y + h * k3, *parameters))

    return step


def lorenz(y: Any, rho: Any) -> Any:
    return np.array([10.0 * (y[1] - y[0]), y[0] * (rho - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])


def seir(y: Any, beta: Any) -> Any:
    s, e, i, _ = y[0], y[1], y[2], y[3]
    return np.array([-beta * s * i, beta * s * i - 0.2 * e, 0.2 * e - 0.1 * i, 0.1 * i])


def ensemble(lanes: int, n_steps: int, dtype: str, gradient: bool) -> Workload:
    def end(y: Any, rho: Any) -> Any:
        return scan(rk4(lorenz, 0.001), outputs_info=y, non_sequences=rho, n_steps=n_steps)[-1]

    args = rng.normal(size=(lanes, 3)).astype(dtype), rng.uniform(20.0, 30.0, lanes).astype(dtype)
    function = ns.vmap(ns.grad(lambda y, rho: (end(y, rho) ** 2).mean()) if gradient else end)
    tolerance = 1e-9 if dtype == "float64" else 1e-2
    rivals: dict[str, Rival] = {}
    if importlib.util.find_spec("jax"):
        rivals["JAX"] = lambda: by_jax(args, n_steps, gradient)
    if shutil.which("nvcc") and not gradient and not SIMULATED:
        rivals["CUDA C++"] = lambda: by_hand(args, n_steps)
    return Workload(function, args, lanes * n_steps, 7 * lanes * np.dtype(dtype).itemsize, tolerance, rivals=rivals)


def by_hand(args: tuple[Any, ...], n_steps: int) -> tuple[float, np.ndarray]:
    """The ends of lanes by `lorenz.cu`; it times its kernel by the device's own events."""
    y, _ = args
    real = {"float32": "float", "float64": "double"}[y.dtype.name]
    with tempfile.TemporaryDirectory() as folder:
        for name, values in zip(("y", "rho"), args, strict=True):
            values.tofile(Path(folder, f"{name}.bin"))
        program = str(Path(folder, "lorenz"))
        subprocess.run(
            ["nvcc", "-O3", "-arch=native", f"-DREAL={real}", str(Path(__file__).with_name("lorenz.cu")), "-o", program], check=True
        )
        told = subprocess.run([program, str(len(y)), str(n_steps), folder], check=True, capture_output=True, text=True).stdout
        return float(told) / 1e3, np.fromfile(Path(folder, "end.bin"), y.dtype).reshape(y.shape)


def by_jax(args: tuple[Any, ...], n_steps: int, gradient: bool) -> tuple[float, np.ndarray]:
    """The ends of lanes, or their gradients, by JAX, on the device that it takes."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def slope(y: Any, rho: Any) -> Any:
        return jnp.stack([10.0 * (y[1] - y[0]), y[0] * (rho - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])

    step = rk4(slope, 0.001)

    def end(y: Any, rho: Any) -> Any:
        return jax.lax.scan(lambda y, _: (step(y, rho), None), y, None, length=n_steps)[0]

    function = jax.jit(jax.vmap(jax.grad(lambda y, rho: (end(y, rho) ** 2).mean()) if gradient else end))
    there = [jax.device_put(arg) for arg in args]
    return timed(lambda: jax.block_until_ready(function(*there))), np.asarray(function(*there))


def epidemics(lanes: int, n_steps: int) -> Workload:
    def peak(beta: Any) -> Any:
        return scan(rk4(seir, 0.1), outputs_info=np.array([0.99, 0.01, 0.0, 0.0]), non_sequences=beta, n_steps=n_steps)[:, 2].max()

    return Workload(ns.vmap(peak), (rng.uniform(0.2, 0.6, lanes),), lanes * n_steps, 16 * lanes, 1e-9)


def options(lanes: int, n_steps: int) -> Workload:
    stream = ns.tensor.random.RandomStream(int(rng.integers(2**31)))

    def payoff(volatility: Any) -> Any:
        def step(price: Any) -> Any:
            return price * np.exp(-0.5 * volatility**2 / n_steps + volatility / np.sqrt(n_steps) * stream.normal())

        return np.maximum(scan(step, outputs_info=1.0, n_steps=n_steps)[-1] - 1.0, 0.0)

    args = (rng.uniform(0.1, 0.5, lanes),)
    return Workload(ns.vmap(payoff), args, lanes * n_steps, 16 * lanes, 1e-9, lambda: stream.seed(11))


def heat(n: int, n_steps: int) -> Workload:
    def step(u: Any) -> Any:
        return u + 0.2 * (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u)

    field = rng.normal(size=(n, n))
    return Workload(lambda u: scan(step, outputs_info=u, n_steps=n_steps)[-1], (field,), n * n * n_steps, 16 * n * n * n_steps, 1e-9)


def recurrence(n: int, dtype: str) -> Workload:
    def rows(a: Any, b: Any, x: Any) -> Any:
        return scan(lambda a, b, x: a * x + b, [a, b], x)

    args = rng.uniform(0.0, 1.0, n).astype(dtype), rng.normal(size=n).astype(dtype), np.dtype(dtype).type(rng.normal())
    itemsize = np.dtype(dtype).itemsize
    return Workload(rows, args, n, 3 * n * itemsize, 1e-9 if dtype == "float64" else 1e-4)


def workloads(is_small: bool) -> dict[str, Callable[[], Workload]]:
    lanes, n_steps = (33, 4) if is_small else (1_048_576, 1000)
    few, many = (5, 70) if is_small else (8_192, 8_388_608)
    return {
        **{
            f"lorenz {dtype} {size}": lambda dtype=dtype, size=size: ensemble(size, n_steps, dtype, False)
            for dtype in ("float64", "float32")
            for size in (few, lanes, many)
        },
        **{
            f"lorenz {dtype} {size} gradient": lambda dtype=dtype, size=size: ensemble(size, n_steps, dtype, True)
            for dtype in ("float64", "float32")
            for size in (few, lanes // 8)
        },
        "seir": lambda: epidemics(lanes, n_steps),
        "options": lambda: options(lanes, n_steps),
        **{
            f"recurrence {dtype}": lambda dtype=dtype: recurrence(300 if is_small else 1_000_000_000, dtype)
            for dtype in ("float64", "float32")
        },
        "heat": lambda: heat(9 if is_small else 4096, n_steps // (1 if is_small else 10)),
    }


def timed(call: Callable[[], Any]) -> float:
    """Seconds of a call, the device idle before and after; median of several."""
    call()
    seconds = []
    for _ in range(1 if SIMULATED else ROUNDS):
        runtime.cuda.synchronize()
        start = perf_counter()
        call()
        runtime.cuda.synchronize()
        seconds.append(perf_counter() - start)
    return statistics.median(seconds)


def bandwidth() -> float:
    """Bytes a second that the device copies, read and written."""
    size = 2**12 if SIMULATED else 2**30
    source, target = runtime.array((size,), np.uint8), runtime.array((size,), np.uint8)
    return 2 * size / timed(lambda: target.copy_to_device(source))


def measured(workload: Workload, bytes_a_second: float) -> dict[str, float]:
    """The figures of one workload, whose numbers are right."""
    wide = tuple(np.asarray(arg, "float64") for arg in workload.args)
    on_gpu, on_cpu = ns.jit(workload.function, mode="cuda"), ns.jit(workload.function)
    workload.again()
    start = perf_counter()
    found = on_gpu(*workload.args)
    first = perf_counter() - start
    workload.again()
    expected = on_cpu(*wide)
    check(found, expected, workload)
    with_copies = timed(lambda: on_gpu(*workload.args))
    there = ns.device_put(workload.args)
    workload.again()
    check(on_gpu(*there), expected, workload)
    seconds = timed(lambda: on_gpu(*there))
    figures = {
        "first call, s": first,
        "call with copies, ms": 1e3 * with_copies,
        "call in place, ms": 1e3 * seconds,
        "ns a step": 1e9 * seconds / workload.steps,
        "share of the copy bandwidth": workload.bytes / bytes_a_second / seconds,
    }
    for name, rival in workload.rivals.items():
        its_seconds, its_results = rival()
        check(its_results, expected, workload)
        figures |= {f"{name}, ms": 1e3 * its_seconds, f"{name} / in place": its_seconds / seconds}
    return figures


def check(found: Any, expected: np.ndarray, workload: Workload) -> None:
    """AssertionError unless results are those of the CPU."""
    np.testing.assert_allclose(np.asarray(found), expected, rtol=workload.tolerance, atol=workload.tolerance * np.abs(expected).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="few lanes and steps: what a simulator can do")
    parser.add_argument("--json")
    parser.add_argument("workload", nargs="*")
    chosen = parser.parse_args()
    bytes_a_second = bandwidth()
    device = "Numba's simulator" if SIMULATED else str(runtime.cuda.get_current_device().name)
    report: dict[str, Any] = {"device": device, "numba": numba.__version__, "copied, GB/s": bytes_a_second / 1e9}
    print(report)
    for name, make in workloads(chosen.small).items():
        if not chosen.workload or name in chosen.workload:
            report[name] = measured(make(), bytes_a_second)
            print(name, {key: float(f"{value:.3g}") for key, value in report[name].items()}, flush=True)
    if chosen.json:
        with open(chosen.json, "w") as file:
            json.dump(report, file, indent=1)


if __name__ == "__main__":
    main()
