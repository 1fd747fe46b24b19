"""What a call costs through JAX and torch, beside the call alone: `python benches/bridges.py`, with the extras `jax` and `torch`."""

from __future__ import annotations

import time
from importlib.metadata import version

import jax
import numpy as np
import torch

import numbascan as ns

jax.config.update("jax_enable_x64", True)


def last_of(rate, x):
    return ns.scan(lambda x, y: rate * y + x, x, 0.0, return_updates=False)[-1]


def microseconds(call, calls):
    call()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - start) / calls * 1e6)
    return min(times)


def main() -> None:
    print(f"jax {version('jax')}, torch {version('torch')}; microseconds a call, the best of five")
    alone, by_jax, by_torch = ns.jit(last_of), jax.jit(ns.interop.jax.wrap(last_of)), ns.interop.torch.function(last_of)
    pure = jax.jit(lambda rate, x: jax.pure_callback(alone, jax.ShapeDtypeStruct((), "float64"), rate, x))
    eager = ns.interop.jax.wrap(last_of)
    for n, calls in ((10, 500), (1_000_000, 20)):
        x = np.linspace(0.0, 1.0, n)
        on_jax, on_torch, rate = jax.numpy.asarray(x), torch.from_numpy(x), torch.tensor(0.5, dtype=torch.float64)
        rows = {
            "ns.jit": lambda x=x: alone(0.5, x),
            "jax.jit(wrap(f))": lambda x=on_jax: by_jax(0.5, x).block_until_ready(),
            "wrap(f)": lambda x=on_jax: eager(0.5, x).block_until_ready(),
            "jax.pure_callback by hand": lambda x=on_jax: pure(0.5, x).block_until_ready(),
            "torch.function(f)": lambda x=on_torch, rate=rate: by_torch(rate, x),
        }
        for name, call in rows.items():
            print(f"{n:8} numbers {name:28} {microseconds(call, calls):10.1f}")


if __name__ == "__main__":
    main()
