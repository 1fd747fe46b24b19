"""How the tests of this folder run: on a GPU, in Numba's simulator (NUMBA_ENABLE_CUDASIM=1), or with `--compile-kernels` anywhere.

With that flag every kernel is compiled to machine code, and NumPy gives the results in its place.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import numpy as np
import passed_before
import pytest

from numbascan import backends
from numbascan import compile as stages
from numbascan.emit.cache import load_kernels
from numbascan.emit.cuda.module import called_routines, kernel_types
from numbascan.emit.inside import cuda_package
from numbascan.errors import gpu

CAPABILITIES = ((8, 0), (9, 0))
HERE = Path(__file__).parent
SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if SIMULATED or config.getoption("--compile-kernels") or not gpu().startswith("none"):
        return
    for item in items:
        if item.path.is_relative_to(HERE) and not item.path.name.startswith("test_plans"):
            item.add_marker(pytest.mark.skip(reason="no GPU; tox -e cudasim and tox -e cuda-compile run it"))


@dataclass
class Compiled:
    """What a thread of a kernel takes on each kind of device, and the kernel as a function of Python with the types of its arguments."""

    statistics: list[Any]
    function: Any
    types: list[tuple[str, int]]


_known: dict[Any, tuple[list[Any], list[Any]]] = {}


def _statistics(function: Any, types: list[tuple[str, int]], text: str) -> list[Any]:
    """What a thread takes; of a kernel whose like was compiled before, in this run or another, what that one took.

    `text`: the module in which the kernel stands.
    """
    from numbascan.emit.kernel_key import made_of

    code = function.__code__
    read = [function.__globals__.get(name) for name in code.co_names]  # kept: what has gone leaves its id to others
    key = (code.co_code, repr(code.co_consts), code.co_names, code.co_varnames, *map(id, read), *types)
    if key not in _known:
        parts = [*made_of(text, cuda_package.__name__), text, function.__name__, str(types), str(CAPABILITIES), *_compilers()]
        rows = passed_before.of_cuda(
            parts, lambda: [list(astuple(one)) for one in cuda_package.machine_code(function, types, CAPABILITIES)]
        )
        _known[key] = [cuda_package.Statistics(*row) for row in rows], read
    return _known[key][0]


@cache
def _compilers() -> list[str]:
    """The versions of all that compiles for a GPU."""
    import llvmlite

    names = sorted({(one.name, one.version) for one in distributions() if re.match(r"(nvidia|cuda|numba)", one.name or "", re.IGNORECASE)})
    return [sys.version, np.__version__, llvmlite.__version__, cuda_package.version(), *(" ".join(name) for name in names)]


@pytest.fixture(autouse=True)
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[Compiled]:
    """The kernels that the test compiles; of use with `--compile-kernels`."""
    compiled: list[Compiled] = []
    if not request.config.getoption("--compile-kernels"):
        return compiled
    from numbascan.emit.runtime.cuda_externals import compile_for_device

    loaded = stages.Kernel._loaded

    def compile_kernels(kernel: Any, name: str) -> Callable[..., Any]:
        if kernel.mode.target != "cuda":
            return loaded(kernel, name)
        with cuda_package.of_capability(CAPABILITIES[0]):
            for routine in called_routines(kernel.plan.function):
                compile_for_device(routine)
        host: Any = load_kernels(kernel.text, name)
        for one, types in kernel_types(kernel.plan.function).items():
            function = host.__globals__[one].py_func
            compiled.append(Compiled(_statistics(function, types, kernel.text), function, types))
        return kernel._by_numpy

    monkeypatch.setattr(backends, "require_cuda", lambda *_: None)
    monkeypatch.setattr(stages.Kernel, "_loaded", compile_kernels)
    return compiled


@pytest.fixture
def same() -> Callable[..., None]:
    """Asserts that a function gives on the GPU what it gives in plain NumPy: equal dtypes, shapes, and numbers up to rounding."""
    import numbascan as ns

    def check(function: Callable[..., Any], *args: Any, rtol: float = 1e-12) -> Any:
        expected = ns.jit(function, mode="python")(*args)
        found = ns.jit(function, mode="cuda")(*args)
        flat = [found] if isinstance(found, np.ndarray) else list(found)
        others = [expected] if isinstance(expected, np.ndarray) else list(expected)
        for one, other in zip(flat, others, strict=True):
            one, other = np.asarray(one), np.asarray(other)
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)
        return found

    return check


@pytest.fixture
def runs_kernels(request: pytest.FixtureRequest) -> None:
    """For tests of what kernels do when they run."""
    if request.config.getoption("--compile-kernels"):
        pytest.skip("kernels are compiled here, not run")
