"""Machine code of kernels lies in the cache, beside their module: the next process compiles nothing. Needs numba-cuda, and no GPU."""

from __future__ import annotations

import collections
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest
from numba import types

import numbascan as ns
from numbascan.emit import cache
from numbascan.emit.inside import cuda_package

MODULE = """
import numpy as np
from numbascan.emit.runtime.cuda import cuda, kernel


@kernel({options})
def doubled(first, last, out):
    {line}
    t = first + cuda.grid(1)
    while t < last:
        out[t] = 2.0 * out[t]
        t += cuda.gridsize(1)


def run():
    return doubled
"""
PLAIN, ON_GRID, IN_SHAPE = "pass", "cuda.cg.this_grid().sync()", "out = out.reshape(first * last)"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Path]:
    """An empty cache, and a device that compiles and cannot run."""
    if not request.config.getoption("--compile-kernels"):
        pytest.skip("tox -e cuda-compile runs it")
    from numba.cuda import codegen, dispatcher

    device = SimpleNamespace(compute_capability=(9, 0))
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: device)
    monkeypatch.setattr(codegen, "devices", SimpleNamespace(get_context=lambda: SimpleNamespace(device=device)))
    monkeypatch.setattr(dispatcher._Kernel, "bind", lambda kernel: kernel._codelibrary.get_cubin(cc=(9, 0)))
    monkeypatch.setenv("NUMBASCAN_CACHE_DIR", str(tmp_path / "cache"))
    yield tmp_path / "cache"
    cache._loaded.clear()


def compiled(line: str, options: str = "") -> tuple[int, Any]:
    """A kernel as a new process compiles it: how often its machine code was found, and that code."""
    cache._loaded.clear()
    kernel = cache.load_kernels(MODULE.format(line=line, options=options), "run")()
    made = kernel.compile((types.int64, types.int64, types.float64[::1]))
    return sum(kernel.stats.cache_hits.values()), made._codelibrary.get_cubin(cc=(9, 0)).code


@pytest.mark.parametrize("line", [PLAIN, ON_GRID])
def test_the_next_process_finds_the_code(line: str, folder: Path) -> None:
    (found, code), (found_again, again) = compiled(line), compiled(line)
    assert (found, found_again) == (0, 1)
    assert bytes(code) == bytes(again)
    assert cache.clear() == 1
    assert not list((folder / "__pycache__").iterdir())


def test_other_options_are_other_code(folder: Path) -> None:
    assert compiled(PLAIN)[0] == 0
    assert compiled(PLAIN, "fastmath=True")[0] == 0


def test_another_version_compiles_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiled(PLAIN)[0] == 0
    monkeypatch.setattr(cuda_package, "version", lambda: "0.0")
    assert compiled(PLAIN)[0] == 0


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_damaged_code_is_compiled_anew(suffix: str, folder: Path) -> None:
    compiled(PLAIN)
    (file,) = (folder / "__pycache__").glob(f"*{suffix}")
    file.write_bytes(file.read_bytes()[:100])
    assert compiled(PLAIN)[0] == 0
    assert compiled(PLAIN)[0] == 1


def test_where_nothing_can_be_stored_code_is_compiled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.cuda.core.caching import IndexDataCacheFile

    def save(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "save", save)
    assert compiled(PLAIN)[0] == compiled(PLAIN)[0] == 0


GAIN = 2.0


@numba.njit
def scaled(x):
    return GAIN * x


def compiled_call(function: Any) -> tuple[int, Any]:
    """A kernel that calls a function of the user's, as a new process compiles it: how often its machine code was found, and the kernel."""
    text = ns.jit(ns.vmap(ns.external(function)), mode="cuda").lower(np.ones(40)).source("cuda")
    cache._loaded.clear()
    host: Any = cache.load_kernels(text, re.findall(r"^def (\w+)", text, re.MULTILINE)[-1])
    kernel = next(one for name, one in host.__globals__.items() if "_kernel_" in name)
    numbers = types.float64[::1]
    kernel.compile((types.int64, types.int64, numbers, numbers))
    return sum(kernel.stats.cache_hits.values()), kernel


def test_the_key_has_all_that_a_function_of_the_users_reads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [compiled_call(scaled)[0], compiled_call(scaled)[0]] == [0, 1]
    monkeypatch.setitem(globals(), "GAIN", 5.0)
    assert [compiled_call(scaled)[0], compiled_call(scaled)[0]] == [0, 1]
    monkeypatch.setitem(globals(), "GAIN", 2.0)
    assert compiled_call(scaled)[0] == 1


def test_what_no_text_tells_is_not_stored(folder: Path) -> None:
    pair = collections.namedtuple("pair", "a b")
    untold = numba.njit(lambda x: pair(x, 2.0).a)
    for _ in range(2):
        found, kernel = compiled_call(untold)
        assert (found, kernel.stats.cache_path) == (0, None)
    assert not [path for path in folder.rglob("*") if "lambda" in path.name]


def test_kernels_that_are_linked_with_files_are_not_stored(folder: Path) -> None:
    cache._loaded.clear()
    kernel = cache.load_kernels(MODULE.format(line=IN_SHAPE, options=""), "run")()
    assert kernel.stats.cache_path is None
