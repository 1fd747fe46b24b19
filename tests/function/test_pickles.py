"""Everything public goes through pickle, cloudpickle, spawned processes and joblib, and finds the compiled code on the disk there."""

from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import cloudpickle
import numba
import numpy as np
import pytest

if numba.config.DISABLE_JIT:
    pytest.skip("Numba compiles nothing, and ns.external calls compiled code", allow_module_level=True)

from pickled import (
    X,
    as_it_is,
    by_python,
    called,
    cost,
    decorated,
    doubled,
    moving,
    outside,
    path,
    stream,
    updates,
    v,
    weighted,
    weights,
)
from shortcuts_taken import needs_object_code

import numbascan as ns
from numbascan import errors, lax
from numbascan.emit import cache

PICKLERS = pytest.mark.parametrize("pickler", [pickle, cloudpickle])


def calls(x):
    """What a function gives, as numbers."""
    return lambda f: np.asarray(f(x)).tolist()


def itself(value):
    return value


def of_v(y):
    """The numbers of a variable that depends on v, or on nothing."""
    return np.asarray(ns.function([v], y, on_unused_input="ignore")(X)).tolist()


def row(f):
    return f(outputs_info=X, non_sequences=0.5, n_steps=3).tolist()


# of each public name: objects that it is or makes, and what must be the same of an object and its copy
EXAMPLES = {
    "Checkpoint": [(ns.Checkpoint(memory="1MB"), itself)],
    "Function": [(ns.function([v], v * weights), calls(X))],
    "Lop": [(ns.Lop(v**2, v, v), of_v)],
    "Mode": [(ns.Mode(threads=2, without=["fusion"]), itself)],
    "Rop": [(ns.Rop(v**2, v, v), of_v)],
    "ScanArgs": [
        (
            ns.ScanArgs(ns.scan(lambda y: y * 2.0, outputs_info=v, n_steps=3, return_updates=False)),
            repr,
        )
    ],
    "ScanFunction": [(path, row)],
    "SharedVariable": [(weights, lambda s: (s.name, s.get_value().tolist()))],
    "Variable": [(v, lambda x: (x.name, x.type)), (np.tanh(v) * 2, of_v)],
    "as_written": [(as_it_is, calls(2.0))],
    "custom_vjp": [(doubled, calls(2.0)), (ns.jit(doubled), calls(2.0))],
    "external": [(outside, calls(2.0)), (ns.jit(outside), calls(2.0)), (outside(v), of_v)],
    "function": [
        (ns.function([v], [v * 2, v.sum()], mode="python"), lambda f: [one.tolist() for one in f(X)]),
        (ns.function([], [], updates=updates), lambda f: (f(), weights.get_value() is not None)[1]),
    ],
    "grad": [(ns.grad(cost), calls(X)), (ns.grad(cost(v), v), of_v)],
    "grid": [(ns.grid(a=np.arange(3.0), b=[1.0, 2.0]), lambda g: (len(g), repr(g)))],
    "hessian": [(ns.hessian(cost), calls(X))],
    "jacobian": [(ns.jacobian(moving), calls(X))],
    "jit": [(decorated, calls(X)), (ns.jit(cost, static_argnums=()), calls(X)), (ns.jit(cost).lower(X), calls(X))],
    "jvp": [(ns.jvp(cost, (X,), (X,)), lambda pair: [float(one) for one in pair])],
    "map": [(ns.map(lambda x: x * 2.0, v, return_updates=False), of_v)],
    "py_step": [(by_python, calls(2.0)), (ns.jit(by_python, mode="python"), calls(2.0))],
    "scan": [
        (path, row),
        (moving(v), of_v),
        (updates, len),
    ],
    "shared": [(ns.shared(3, name="count"), lambda s: s.get_value())],
    "tensor": [
        (stream, lambda s: of_v(s.uniform(size=3))),
        (stream.normal(size=3), of_v),
    ],
    "until": [(ns.until(True), lambda u: type(u).__name__)],
    "value_and_grad": [(ns.value_and_grad(cost), lambda f: [np.asarray(one).tolist() for one in f(X)])],
    "vectorize": [(ns.vectorize(cost, signature="(t)->()"), calls(np.stack([X, X])))],
    "vjp": [(ns.vjp(cost, X)[1], calls(1.0)), (ns.vjp(weighted, X)[1], calls(1.0))],
    "vmap": [(ns.vmap(ns.grad(cost)), calls(np.stack([X, X])))],
}
FUNCTIONS = {  # of which the function itself is all that there is
    *("batch", "device_put", "draw", "filter", "foldl", "foldr", "reduce", "scan_checkpoints", "show", "verify_grad"),
    *("lax", "tensor"),  # modules
}
ERRORS = {name: value for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
OBJECTS = [pytest.param(value, see, id=f"{name}-{k}") for name, examples in EXAMPLES.items() for k, (value, see) in enumerate(examples)]


def test_no_public_name_is_forgotten():
    assert set(ns.__all__) == EXAMPLES.keys() | FUNCTIONS | (ERRORS.keys() & set(ns.__all__))


@PICKLERS
@pytest.mark.parametrize("value, see", OBJECTS)
def test_a_copy_does_the_same(pickler, value, see):
    assert see(pickler.loads(pickler.dumps(value))) == see(value)


@PICKLERS
@pytest.mark.parametrize("name", [name for name in ns.__all__ if name not in ("lax", "tensor")])
def test_public_names_are_found_by_name(pickler, name):
    assert pickler.loads(pickler.dumps(getattr(ns, name))) is getattr(ns, name)


@PICKLERS
@pytest.mark.parametrize("name", ERRORS)
def test_errors_keep_their_text_and_what_they_carry(pickler, name):
    error = ERRORS[name]("what was seen", *((3, {"x": 1.0}) if name == "BatchError" else ()))
    copy = pickler.loads(pickler.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


@PICKLERS
def test_variables_and_functions_stay_connected(pickler):
    x, f, shared = pickler.loads(pickler.dumps((v, ns.function([v], v * weights), weights)))
    assert ns.function([x], x * shared)(X).tolist() == f(X).tolist()
    shared.set_value(np.ones(3))
    assert f(X).tolist() == X.tolist()


def test_a_lambda_is_refused_in_pickles_own_words():
    for f in (ns.jit(lambda x: x), ns.scan(lambda y: y * 2.0), ns.vectorize(lambda x: x), ns.grad(lambda x: x)):
        with pytest.raises((pickle.PicklingError, AttributeError), match="<lambda>"):
            pickle.dumps(f)
        assert cloudpickle.loads(cloudpickle.dumps(f)) is not None


# other processes ---------------------------------------------------------------------------------------------------------


@needs_object_code
def test_spawned_processes_find_the_kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("NUMBASCAN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "_loaded", {})
    functions = [ns.jit(cost), ns.grad(cost), ns.function([v], v * weights), ns.vmap(moving), ns.jit(outside)]
    values = [X, X, X, np.stack([X, X]), X]
    expected = [np.asarray(f(x)).tolist() for f, x in zip(functions, values, strict=True)]
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert list(pool.map(called, functions, values)) == [(one, 0) for one in expected]


def test_joblib_takes_them():
    joblib = pytest.importorskip("joblib")
    rate = 0.5
    step = ns.jit(lambda x: x * rate + weights.get_value()[1])  # in a closure, which cloudpickle takes along
    results = joblib.Parallel(n_jobs=2)(joblib.delayed(step)(float(k)) for k in range(4))
    assert results == [step(float(k)) for k in range(4)]
    assert lax.scan is not None
