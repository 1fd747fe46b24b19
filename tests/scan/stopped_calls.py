"""Run as a program: loops that would take hours are sent a signal after a moment. Prints as JSON what became of each."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

import numbascan as ns
import numbascan.tensor as nt

FOREVER = 10**12
count = ns.shared(0, "count")
rates = np.linspace(0.1, 0.9, 100)


@ns.scan(keep_last=1)
def decay(y, rate):
    return rate * y + 1.0, {count: count + 1}


@ns.scan
def rows(y):
    return ns.scan(lambda y: np.sin(y) + 1.0, outputs_info=y, n_steps=50, return_updates=False)[-1]


def last(rate: Any, n_steps: Any) -> Any:
    return ns.scan(lambda y: np.sin(y) * rate, outputs_info=1.0, n_steps=n_steps, return_updates=False)[-1]


def newton(a: Any, n_steps: Any, near: Any = -1.0) -> Any:
    def step(x):
        y = 0.5 * (x + a / x)
        return y, ns.until(abs(y - x) < near)

    return ns.scan(step, outputs_info=1.0, n_steps=n_steps, return_updates=False)[-1]


def newton_to(a: Any, near: Any, n_steps: Any) -> Any:
    return newton(a, n_steps, near)


def nested(y: Any, n_steps: Any) -> Any:
    return ns.scan(lambda y: last(y, n_steps), outputs_info=y, n_steps=3, return_updates=False)[-1]


def summed(n_steps: Any) -> Any:
    return ns.scan(lambda k: np.sqrt(k * 0.5), nt.arange(n_steps), return_updates=False).sum()


def vector(y: Any, n_steps: Any) -> Any:
    return ns.scan(lambda y: np.sin(y[::-1]), outputs_info=y, n_steps=n_steps, return_updates=False)[-1]


def path(rate: Any, n_steps: Any) -> Any:
    return ns.scan(lambda y: np.sin(y) * rate, outputs_info=1.0, n_steps=n_steps, return_updates=False)


def elements(x: Any, n_steps: Any) -> Any:
    return ns.scan(lambda x: nt.inc_subtensor(x[1], x[0]), outputs_info=x, n_steps=n_steps, return_updates=False)[-1]


paths = ns.vmap(path, in_axes=(0, None))

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "one state": (lambda rate, n: decay(outputs_info=1.0, non_sequences=rate, n_steps=n), (0.5,)),
    "lanes": (ns.vmap(last, in_axes=(0, None)), (rates,)),
    "until in lanes": (ns.vmap(newton, in_axes=(0, None)), (rates,)),
    "one lane of many": (
        ns.vmap(lambda a, n_steps: newton(a, n_steps, np.where(a == 0.5, -1.0, 1.0)), in_axes=(0, None)),
        (np.array([0.5, *rates]),),
    ),
    "until": (ns.jit(newton), (0.5,)),
    "gradient": (ns.grad(lambda rate, n: last(rate, n), argnums=0), (0.5,)),
    "nested": (ns.jit(nested), (0.5,)),
    "vectors of steps": (ns.jit(summed), ()),
    "vector": (ns.jit(vector), (np.ones(1000),)),
    "elements": (ns.jit(elements), (np.ones(100),)),
}


def stopped(call: Callable[[], Any], number: int = signal.SIGINT, after: float = 0.2) -> tuple[str, float]:
    """What a call ends with that is sent a signal, and how many seconds later."""
    timer = threading.Timer(after, lambda: os.kill(os.getpid(), number))
    start = time.perf_counter()
    timer.start()
    try:
        call()
        return "nothing", time.perf_counter() - start - after
    except BaseException as error:
        return f"{type(error).__name__}: {error}", time.perf_counter() - start - after
    finally:
        with suppress(BaseException):  # the signal, where the call has ended before
            timer.join()


def main() -> None:
    results: dict[str, Any] = {}
    paths(rates, 3)
    for name, (function, arguments) in CASES.items():
        steps = 10**9 if name == "gradient" else FOREVER  # it keeps its rows
        before = function(*arguments, 20)
        updates = int(count.get_value())
        ending, seconds = stopped(lambda f=function, a=arguments, n=steps: f(*a, n))
        unchanged = int(count.get_value()) == updates
        results[name] = [ending, seconds, unchanged and np.array_equal(function(*arguments, 20), before)]

    out = np.full(3_000_000, -1.0)
    whole = rows(outputs_info=1.0, n_steps=1000)
    rows(outputs_info=1.0, n_steps=10, out=out[:10])
    ending, seconds = stopped(lambda: rows(outputs_info=1.0, n_steps=len(out), out=out), after=0.05)
    n_rows = int(np.argmax(out == -1.0))
    results["out"] = [ending, seconds, np.array_equal(out[:1000], whole) and n_rows > 1000 and bool(np.all(out[n_rows:] == -1.0))]

    tracemalloc.start()
    for _ in range(2):
        stopped(lambda: rows(outputs_info=1.0, n_steps=10**8), after=0.05)
        stopped(lambda: paths(rates, 3 * 10**6), after=0.05)
    results["bytes kept"] = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()

    def refuse(number: int, frame: Any) -> None:
        raise TimeoutError("too long")

    signal.signal(signal.SIGUSR1, refuse)
    results["handler"] = stopped(lambda: decay(outputs_info=1.0, non_sequences=0.5, n_steps=FOREVER), signal.SIGUSR1)
    seen: list[int] = []
    signal.signal(signal.SIGUSR2, lambda number, frame: seen.append(number))
    ending, _ = stopped(lambda: decay(outputs_info=1.0, non_sequences=0.5, n_steps=200_000_000), signal.SIGUSR2, 0.05)
    results["handler that returns"] = [ending, len(seen)]

    values: list[float] = []
    expected = float(last_of(100_000_000))
    other = threading.Thread(target=lambda: values.append(float(last_of(100_000_000))))
    other.start()
    results["main thread"] = stopped(lambda: CASES["until"][0](0.5, FOREVER))
    other.join()
    results["other thread"] = values == [expected]
    print(json.dumps(results))


def last_of(n_steps: int) -> Any:
    return line(outputs_info=1.0, n_steps=n_steps)


@ns.scan(keep_last=1)
def line(y):
    return 0.5 * y + 1.0


if __name__ == "__main__":
    main()
