"""Where Numba is told to compile nothing (NUMBA_DISABLE_JIT=1), calls give the numbers and errors of compiled code."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

PROGRAM = """
import pickle, sys, warnings
import numpy as np
import numbascan as ns
import numbascan.tensor as nt

warnings.simplefilter("error")
results = {}

def note(name, call):
    try:
        results[name] = call()
    except Exception as error:
        results[name] = type(error).__name__, str(error)

stream = nt.random.RandomStream(3)
total = ns.shared(np.int64(0), "total")
out = np.empty(5)

@ns.scan
def step(s):
    return np.tanh(s) + np.arctan2(s, 2.0) ** 1.5 + nt.erf(s) * nt.sigmoid(s) + nt.softplus(s)

@ns.scan
def machine(x, k, s, i, table):
    drawn = stream.normal() + stream.gamma(2.0)
    return [1.0 / s - 1.0, i * 3 - 1, k // 0, k % 0, np.sqrt(x), np.log(x), np.exp(1e4 * x), table[k], drawn], {total: total + k}

@ns.scan
def inverse(a):
    return np.linalg.inv(a)

def doubled(s):
    return s * 2, ns.until(s > 10)

def scipys(x):
    return nt.psi(x), nt.betainc(x, 2.0, 0.3), nt.jv(0.5, x), nt.log_ndtr(x)

x, table = np.array([-1.0, 0.0, 2.0, 1.0]), np.arange(4.0)
start = [1.0, np.int64(2**61), *[None] * 7]
note("functions", lambda: step(outputs_info=0.5, n_steps=4))
note("what machines and Python do otherwise", lambda: machine([x, np.arange(4)], start, table))
note("SciPy's functions", lambda: ns.jit(scipys)(np.array([-1.0, 0.0, 0.3, 1.0, 1e300, np.inf, np.nan])))
note("an index", lambda: machine([x, np.arange(1, 5)], start, table))
note("updates", lambda: (total.get_value(), stream.state.get_value()))
note("a gradient", lambda: ns.value_and_grad(lambda w: (step(outputs_info=w, n_steps=5) ** 2).sum())(0.25))
note("an early end", lambda: ns.scan(doubled, outputs_info=1.0, n_steps=50, keep_last=2)[0])
note("an array of the caller", lambda: (step(outputs_info=0.5, n_steps=5, out=out), out.copy()))
note("lanes", lambda: ns.vmap(lambda s: step(outputs_info=s, n_steps=3)[-1])(np.linspace(0, 1, 70)))
note("memory()", lambda: step.memory().per_step)
note("matrices", lambda: inverse(np.stack([np.eye(2), np.ones((2, 2)) + np.eye(2)])))
note("a singular matrix", lambda: inverse(np.ones((1, 2, 2))))
note("shapes", lambda: ns.jit(lambda a, b: a + b)(np.ones(30), np.ones(40)))
note("too many rows", lambda: step(outputs_info=0.5, n_steps=10**13))
note("the first NaN", lambda: ns.scan(lambda s: np.sqrt(s - 3.0), outputs_info=9.0, n_steps=9, mode=ns.Mode(check_finite=True), name="m"))
sys.stdout.buffer.write(pickle.dumps(results))
"""


def results(folder: Any, **variables: str) -> dict[str, Any]:
    path = os.pathsep.join(filter(None, [os.getcwd(), *sys.path]))
    environment = {**os.environ, "PYTHONPATH": path, "NUMBASCAN_CACHE_DIR": str(folder), **variables}
    (folder / "program.py").write_text(PROGRAM)
    run = subprocess.run([sys.executable, str(folder / "program.py")], env=environment, capture_output=True, check=False)
    assert run.returncode == 0, run.stderr.decode()
    return pickle.loads(run.stdout)


def assert_same(name: str, actual: Any, expected: Any) -> None:
    assert type(actual) is type(expected), name
    if isinstance(expected, (tuple, list)):
        assert len(actual) == len(expected), name
        for one, other in zip(actual, expected, strict=True):
            assert_same(name, one, other)
    elif isinstance(expected, np.ndarray) and expected.dtype.kind == "f":
        np.testing.assert_allclose(actual, expected, rtol=1e-12, err_msg=name, strict=True)
    else:
        np.testing.assert_array_equal(actual, expected, err_msg=name, strict=not isinstance(expected, str))


def test_what_is_not_compiled_gives_the_same_numbers_and_errors(tmp_path: Any) -> None:
    compiled, plain = results(tmp_path), results(tmp_path, NUMBA_DISABLE_JIT="1")
    errors = {"a singular matrix", "an index", "shapes", "too many rows", "the first NaN"}
    assert {name for name, value in compiled.items() if isinstance(value, tuple) and value and isinstance(value[0], str)} == errors
    for name, expected in compiled.items():
        if name in errors:  # some words are NumPy's
            expected, plain[name] = ([kind, *re.findall(r"line \d+|scan '\w+'", text)] for kind, text in (expected, plain[name]))
        assert_same(name, plain[name], expected)


@pytest.mark.parametrize("setting, is_off", [("1", True), ("0", False), ("", False)])
def test_numba_is_asked_before_its_variable(monkeypatch: pytest.MonkeyPatch, setting: str, is_off: bool) -> None:
    from numbascan.emit.cache import jit_is_off

    monkeypatch.setenv("NUMBA_DISABLE_JIT", setting)
    monkeypatch.delitem(sys.modules, "numba.core.config", raising=False)
    assert jit_is_off() == is_off


def test_compiled_functions_of_users_are_refused() -> None:
    program = "import numba, numbascan as ns\nns.external(numba.njit(lambda x: 2 * x))"
    run = subprocess.run([sys.executable, "-c", program], env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True)
    assert "TypeError: ns.external calls compiled code, and Numba is told to compile nothing (NUMBA_DISABLE_JIT); unset that" in run.stderr
