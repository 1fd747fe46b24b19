"""Compiled code that tests keep between runs: whatever a test puts into the place of what compiles is kept apart."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import kept_kernels
import pytest
from numba.core import config
from shortcuts_taken import needs_object_code

from numbascan.emit import cache, kernel_key
from numbascan.emit.inside import arrays
from numbascan.ops import special

TEXT = "from numbascan.emit.runtime.intrinsics import small_array\n"

PATCHES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a function of ours": lambda patch: patch.setattr(arrays, "new_array", arrays.new_array),
    "a function beside a card": lambda patch: patch.setattr(special.sigmoid, "__doc__", "another"),
    "a function of Numba": lambda patch: patch.setattr(config, "OPT", config.OPT),
    "by its name": lambda patch: patch.setattr("numbascan.emit.inside.arrays.CACHE_LINE", 64, raising=False),
}


@pytest.mark.parametrize("what", PATCHES)
def test_what_stands_in_the_place_of_what_compiles_has_keys_of_its_own(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = kernel_key.kernel_key(TEXT)
    PATCHES[what](monkeypatch)
    first = kernel_key.kernel_key(TEXT)
    PATCHES[what](monkeypatch)
    assert len({before, first, kernel_key.kernel_key(TEXT)}) == 3


def test_tests_behind_it_have_the_usual_ones() -> None:
    assert kept_kernels.changed == []


def test_what_compiles_nothing_changes_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = kernel_key.kernel_key(TEXT)
    monkeypatch.setattr(cache, "_loaded", {})
    monkeypatch.setattr("numbascan.compile.MOST_KEYS", 3)
    assert kernel_key.kernel_key(TEXT) == before


def test_what_was_made_once_is_kept_and_made_again_where_it_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_kernels, "FOLDER", tmp_path)
    made = []

    def make() -> list[list[int]]:
        made.append(1)
        return [[32, 0, len(made)]]

    assert [kept_kernels.kept("cuda", key, make) for key in ("a", "a", "b")] == [[[32, 0, 1]], [[32, 0, 1]], [[32, 0, 2]]]
    (tmp_path / "cuda/a").write_text("[[32,")
    assert kept_kernels.kept("cuda", "a", make) == [[32, 0, 3]]
    assert sorted(path.name for path in (tmp_path / "cuda").iterdir()) == ["a", "b"]


INSIDE = """
import numpy as np
import numbascan as ns

def test_a_sum():
    assert ns.jit(lambda x: 2 * x + 1)(np.arange(3.0)).sum() == 9.0
"""


@needs_object_code
def test_a_second_run_compiles_nothing_and_a_fresh_one_everything(tmp_path: Path) -> None:
    file = tmp_path / "test_inside.py"
    file.write_text(INSIDE)
    environment = {**os.environ, "NUMBASCAN_TEST_CACHE": str(tmp_path / "kept")}
    conftest = Path(__file__).parents[1] / "conftest.py"

    def run(*options: str) -> dict[str, int]:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), *options]
        plugins = ["-c", os.devnull, "-p", "conftest", str(file)]
        done = subprocess.run(
            [*command, *plugins], env={**environment, "PYTHONPATH": str(conftest.parent)}, cwd=tmp_path, capture_output=True, text=True
        )
        assert "1 passed" in done.stdout, done.stdout + done.stderr
        return {path.name: path.stat().st_mtime_ns for path in (tmp_path / "kept").glob("*.code")}

    first = run()
    assert len(first) == 1
    assert run() == first
    poisoned = run("--poisoned")
    assert first.items() < poisoned.items()
    assert len(poisoned) == 2
    fresh = run("--fresh")
    assert fresh.keys() == first.keys()
    assert fresh != first
