"""What type checkers see of public functions. `mypy` reads this file with the package (pyproject.toml); here it is run."""

from __future__ import annotations

import inspect
from typing import Any, assert_type

import numpy as np

import numbascan as ns
from numbascan.front.transforms import Jitted

Array = np.ndarray[tuple[Any, ...], np.dtype[Any]]
X = np.ones(3)


def scaled(x: Array, k: float = 2.0) -> Array:
    """x, k times."""
    return x * k


def total(x: Array) -> float:
    """The sum."""
    return float(x.sum())


def test_a_jitted_function_has_the_parameters_and_the_result_of_the_function() -> None:
    f = ns.jit(scaled)
    assert_type(f(X), Array)
    assert_type(f(X, k=3.0), Array)
    assert_type(f.lower(X)(X), Array)
    assert f(X).tolist() == [2.0, 2.0, 2.0]
    if not X.size:  # what a checker refuses need not run
        f("x")  # type: ignore[arg-type]
        f(X, other=1)  # type: ignore[call-arg]
    assert (inspect.signature(f), f.__doc__) == (inspect.signature(scaled), "x, k times.")


def test_decorators_with_and_without_options_and_methods() -> None:
    class Model:
        k = 3.0

        @ns.jit
        def scale(self, x: Array) -> Array:
            return self.k * x

        @ns.jit(static_argnums=1)
        def power(self, n: int, x: Array) -> Array:
            return x**n

    assert_type(Model().scale(X), Array)
    assert_type(Model().power(2, X), Array)
    assert Model().scale(X).tolist() == [3.0, 3.0, 3.0]
    assert Model().power(2, X).tolist() == [1.0, 1.0, 1.0]


def test_derivatives_take_what_the_function_takes() -> None:
    assert_type(ns.value_and_grad(total)(X), tuple[float, Any])
    assert_type(ns.value_and_grad(ns.jit(total))(X), tuple[float, Any])
    assert_type(ns.grad(total)(X), Any)
    assert_type(ns.vmap(scaled)(X), Any)  # a lane's types are not those of all lanes
    for made in (ns.grad(total), ns.jacobian(total), ns.hessian(total), ns.vmap(total)):
        assert isinstance(made, Jitted)
        assert (inspect.signature(made), made.__doc__) == (inspect.signature(total), "The sum.")
    if not X.size:
        ns.grad(total)(1, 2)  # type: ignore[call-arg, arg-type]
        ns.grad(total, has_aux=1 + 1j)  # type: ignore[call-overload]


def test_a_step_becomes_a_scan_function() -> None:
    @ns.scan
    def decay(y: Array, rate: float) -> Array:
        return y * rate

    @ns.scan(n_steps=2, keep_last=1)
    def last(y: Array, rate: float) -> Array:
        return y * rate

    assert_type(decay, ns.ScanFunction)
    assert_type(last, ns.ScanFunction)
    assert_type(ns.scan(scaled, mode="python"), ns.ScanFunction)
    assert decay(outputs_info=X, non_sequences=0.5, n_steps=1).tolist() == [[0.5, 0.5, 0.5]]
    assert last(outputs_info=X, non_sequences=0.5).tolist() == [0.25, 0.25, 0.25]
    if not X.size:
        decay(outputs_info=X, saves_every=2)  # type: ignore[call-arg]
        ns.scan(scaled, n_step=3)  # type: ignore[call-overload]
        ns.scan(mod="python")  # type: ignore[call-overload]


def test_signatures_read() -> None:
    """In an IDE, and by `help`."""
    text = str(inspect.signature(ns.scan))
    assert "sequences: 'Sequences' = None, outputs_info: 'OutputsInfo' = None, non_sequences: 'NonSequences' = None" in text
    assert text.count("Any") == 2  # of the step, and what is returned
