"""What `pytest --poisoned` promises: memory that nobody has written is seen to be so, and an index beyond an array is an error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from poison import fill_memory
from shortcuts_taken import needs

from numbascan.emit import cache

UNWRITTEN = """import numpy as np
from numba import njit, types
from numbascan.emit.runtime.intrinsics import small_array


@njit((types.int64,), cache=True)
def unwritten(n):
    heap = np.empty((n, 3), np.{dtype})
    stack = small_array((2, 3), np.{dtype})
    result = np.empty((n + 2, 3), np.{dtype})
    for k in range(3):
        for i in range(n):
            result[i, k] = heap[i, k]
        for i in range(2):
            result[n + i, k] = stack[i, k]
    return result
"""
BEYOND = """import numpy as np
from numba import njit, types


@njit((types.int64,), cache=True)
def beyond(n):
    rows = np.empty(4)
    rows[n] = 1.0
    return rows
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBASCAN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "_loaded", {})


@needs("np_empty", "stack")
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64", "uint8"])
def test_memory_that_nobody_has_written_is_seen(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_memory(monkeypatch)
    seen = cache.load(UNWRITTEN.format(dtype=dtype), "unwritten")(5)
    filled = np.full((7, 3), -1).astype(dtype) if np.dtype(dtype).kind in "iu" else np.full((7, 3), np.nan, dtype)
    np.testing.assert_array_equal(seen, filled)


def test_an_index_beyond_an_array_is_an_error(tmp_path: Path) -> None:
    code = f"from numbascan.emit.cache import load\nload({BEYOND!r}, 'beyond')(4)"
    run = subprocess.run([sys.executable, "-c", code], env={**os.environ, "NUMBA_BOUNDSCHECK": "1"}, capture_output=True, text=True)
    assert "IndexError" in run.stderr
