"""Ways to run a program in which features meet: two loops in one graph, odd names, replaced variables, threads, checks of every step."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any

import numpy as np

import numbascan as ns
import numbascan.tensor as nt

from . import words
from .reference import leaves, tree_map
from .trees import Program

ODD_NAMES = ("µ", "μ", "x₁", "x1", "σ²", "spectral", "np", "s {0}", "lambda", "", "first", "t", "%d\n'", "print", "𝐱", "_", "9")
THREADS = 4


def oddly_named(arguments: dict[str, Any], run: Any) -> list[Any]:
    """As a graph whose variables and loop have names that no program should give."""
    inputs: list[Any] = []
    values: list[Any] = []

    def variable(value: Any) -> Any:
        name = ODD_NAMES[(3 * len(inputs) + np.size(value)) % len(ODD_NAMES)]
        inputs.append(nt.tensor(np.asarray(value).dtype.name, shape=(None,) * np.ndim(value), name=name))
        values.append(value)
        return inputs[-1]

    outputs, updates = ns.scan(
        run.step, **run.replaced(variable), return_list=True, **{**run.options, "name": ODD_NAMES[len(arguments) % len(ODD_NAMES)]}
    )
    f = ns.function(inputs, outputs, updates=updates, mode=run.mode, on_unused_input="ignore", name="f {x}")
    words.aligned(run.stream)
    return list(f(*values))


def replaced_later(arguments: dict[str, Any], run: Any) -> list[Any]:
    """As a graph of inner variables, each of which stands for another one of other lengths only when it is compiled."""
    inputs: list[Any] = []
    values: list[Any] = []
    givens: dict[Any, Any] = {}

    def variable(value: Any) -> Any:
        dtype, rank = np.asarray(value).dtype, np.ndim(value)
        before = nt.tensor(dtype.name, shape=(None,) * rank, name=f"before{len(inputs)}")
        inner = before ^ before if dtype.kind == "b" else before * 2
        if len(inputs) % 3:  # of other lengths, and no input in other cases: nothing may ask for it
            inputs.append(before)
            values.append(np.resize(value, [n + 1 for n in np.shape(value)]).astype(dtype))
        inputs.append(nt.tensor(dtype.name, shape=(None,) * rank, name=f"in{len(inputs)}"))
        values.append(value)
        givens[inner] = inputs[-1]
        return inner

    outputs, updates = ns.scan(run.step, **run.replaced(variable), return_list=True, **run.options)
    f = ns.function(inputs, outputs, updates=updates, givens=givens, mode=run.mode, on_unused_input="ignore")
    words.aligned(run.stream)
    return list(f(*values))


def in_threads(arguments: dict[str, Any], run: Any) -> list[Any]:
    """As a decorated function that several threads call at once, for the first time, for other lengths too."""
    f = ns.scan(run.step, mode=run.mode, return_list=True, **run.options)
    if run.final():
        return list(f(**arguments))
    start = Barrier(THREADS)

    def call(k: int) -> Any:
        start.wait()
        shorter = {**arguments, "n_steps": arguments["n_steps"] // 2} if k % 2 and arguments.get("n_steps") else arguments
        return [f(**given) for given in (shorter, arguments)][1]

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            results = list(pool.map(call, range(THREADS)))
    finally:
        sys.setswitchinterval(before)
    first, *others = ([np.asarray(leaf) for leaf in leaves(list(result))] for result in results)
    for other in others:
        for a, b in zip(first, other, strict=True):
            np.testing.assert_array_equal(a, b, "threads give different results", strict=True)
    return list(results[0])


def checked(arguments: dict[str, Any], run: Any) -> list[Any]:
    """As a decorated function that looks for NaN and infinity at every step."""
    f = ns.scan(run.step, mode=ns.Mode(check_finite=True), return_list=True, **run.options)
    return list(f(**arguments))


WAYS: dict[str, Callable[[dict[str, Any], Any], list[Any]]] = {
    "odd": oddly_named,
    "replaced": replaced_later,
    "threads": in_threads,
    "checked": checked,
}
"""Those with the results of a plain loop."""


# two loops in one graph -----------------------------------------------------------------------------------------------


def shorter(program: Program, steps: int) -> Program:
    """The program with fewer steps."""
    return replace(program, n_steps=steps)


def twice(run: Any, steps: int, fewer: int, is_first: bool) -> tuple[list[Any], list[Any]]:
    """What the program gives for all its steps and for `fewer`, by two loops of one function; `is_first`: the short one.

    The short loop takes slices of the sequences whose ends only the run knows.
    """
    inputs: list[Any] = []
    values: list[Any] = []

    def variable(value: Any) -> Any:
        inputs.append(nt.tensor(np.asarray(value).dtype.name, shape=(None,) * np.ndim(value), name=f"in{len(inputs)}"))
        values.append(value)
        return inputs[-1]

    cut = nt.lscalar("cut")
    whole = run.replaced(variable)
    short = {**whole, "n_steps": whole.get("n_steps", steps) - cut}
    if "n_steps" not in whole and not run.options.get("go_backwards"):
        short = {**whole, "sequences": [_without_end(given, cut) for given in whole["sequences"]]}
    loops = [ns.scan(run.step, **arguments, **run.options, return_list=True)[0] for arguments in (short, whole)[:: 1 if is_first else -1]]
    f = ns.function([*inputs, cut], loops, mode=run.mode, on_unused_input="ignore")
    first, second = f(*values, steps - fewer)
    return (list(second), list(first)) if is_first else (list(first), list(second))


def _without_end(given: Any, cut: Any) -> Any:
    """A sequence without its last rows."""
    if isinstance(given, dict) and "input" in given:
        return {**given, "input": tree_map(lambda x: x[: x.shape[0] - cut], given["input"])}
    return tree_map(lambda x: x[: x.shape[0] - cut], given)
