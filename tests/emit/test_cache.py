"""Generated modules on disk: private, shared between processes, made again where they are damaged."""

from __future__ import annotations

import gc
import os
import shutil
import stat
import sys
from pathlib import Path

import numpy as np
import pytest
from shortcuts_taken import needs, needs_object_code

import numbascan as ns
from numbascan.emit import cache, cache_bound
from numbascan.emit.inside import object_code

TEXT = """from numba import njit, types


@njit((types.int64,), cache=True)
def triple(n):
    return n * 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMBASCAN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_loaded", {})
    return tmp_path / "cache"


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a new process: nothing in memory."""
    monkeypatch.setattr(cache, "_loaded", {})


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_the_folder_is_private(folder: Path) -> None:
    assert cache.cache_folder() == folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_a_folder_that_others_may_read_is_closed_to_them(folder: Path) -> None:
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    cache.cache_folder()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@needs_object_code
def test_a_second_process_does_not_compile(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache.load(TEXT, "triple")(14) == 42
    forget(monkeypatch)
    monkeypatch.setattr(cache, "_made", None)
    assert cache.load(TEXT, "triple")(5) == 15


def test_an_entry_that_another_process_removes_meanwhile_is_made_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def removed(path: Path) -> None:
        path.unlink()
        raise object_code.Damaged

    monkeypatch.setattr(object_code, "load", removed)
    assert cache.load(TEXT, "triple")(5) == 15


@needs_object_code
def test_a_function_whose_symbols_are_not_all_found_is_left_to_numba(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.load(TEXT, "triple")
    forget(monkeypatch)
    monkeypatch.setattr(object_code, "_address", lambda symbol: None)
    assert object_code.load(*cache.entries()) is None
    assert cache.load(TEXT, "triple")(5) == 15


@needs_object_code
@pytest.mark.parametrize("suffix", ["nbi", "nbc", "code", "py"])
def test_a_damaged_entry_is_made_again(folder: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    cache.load(TEXT, "triple")
    damaged = list(folder.rglob(f"*.{suffix}"))
    assert damaged
    for path in damaged:
        path.write_bytes(b"\x00damaged")
    if suffix.startswith("nb"):  # Numba's own files, looked at where the machine code cannot be loaded without it
        object_code.file_of(*cache.entries()).unlink()
    forget(monkeypatch)
    assert cache.load(TEXT, "triple")(7) == 21
    forget(monkeypatch)
    assert object_code.load(*cache.entries()) is not None


@needs_object_code
def test_half_an_entry_is_made_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.load(TEXT, "triple")
    path = object_code.file_of(*cache.entries())
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    forget(monkeypatch)
    assert cache.load(TEXT, "triple")(7) == 21


def test_a_folder_that_goes_meanwhile_is_made_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache.load(TEXT, "triple")(14) == 42
    forget(monkeypatch)
    shutil.rmtree(folder)
    assert cache.load(TEXT, "triple")(14) == 42
    assert len(cache.entries()) == 1
    forget(monkeypatch)
    shutil.rmtree(folder)
    folder.write_text("no folder any more")
    assert cache.load(TEXT, "triple")(14) == 42
    assert cache.cache_folder() != folder


def test_entries_are_listed_and_cleared(folder: Path) -> None:
    cache.load(TEXT, "triple")
    assert [path.name.split("_")[0] for path in cache.entries()] == ["triple"]
    assert cache.clear() == 1
    assert cache.entries() == []
    assert list((folder / "__pycache__").iterdir()) == []


@pytest.mark.parametrize("wrong", ["n * 36893488147419103228", "n.nothing", "[n, 'n']"])
def test_code_that_numba_refuses_is_told_as_a_fault_of_ours(folder: Path, wrong: str) -> None:
    with pytest.raises(ns.CompilationError, match=r"^triple: Numba .* mode='python' runs .*triple_\w+\.py, for a report$"):
        cache.load(TEXT.replace("n * 3", wrong), "triple")


def test_another_text_is_another_entry(folder: Path) -> None:
    cache.load(TEXT, "triple")
    assert cache.load(TEXT.replace("n * 3", "n * 3 + 1"), "triple")(2) == 7
    assert len(cache.entries()) == 2


def test_a_step_that_moves_in_its_file_is_not_compiled_again_and_errors_name_the_new_line() -> None:
    text = "def step(x, W):\n    return np.tanh(x @ W)\n"
    sources = []
    for lines in (0, 7):
        gc.collect()  # equal computations are one node while they live, and it keeps the line of the first
        names = {"np": np}
        exec(compile("\n" * lines + text, "moved.py", "exec"), names)
        step = ns.scan(names.pop("step"))  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=rf"0 is 20 on entry and 30 in its result \(step result at moved\.py, line {lines + 2}\)"):
            step(outputs_info=np.ones(20), non_sequences=np.ones((20, 30)), n_steps=3)
        sources.append(step.source())
        del step
    assert sources[0] == sources[1]


TAKEN = """import numpy as np
from numba import njit, types


@njit((types.int64, types.int32), cache=True)
def taken(n, m):
    return np.empty((n, m), np.float32), np.empty(n), np.empty((n,), np.bool_)
"""


@needs("cache_lines")
def test_arrays_are_taken_at_cache_lines(folder: Path) -> None:
    for n in (0, 1, 5):
        found = cache.load(TAKEN, "taken")(n, 3)
        assert [(array.dtype.name, array.shape) for array in found] == [("float32", (n, 3)), ("float64", (n,)), ("bool", (n,))]
        assert all(array.flags.carray and array.ctypes.data % 64 == 0 for array in found)


@pytest.mark.parametrize(
    ("n", "error", "text"),
    [
        (-1, ValueError, "negative dimensions not allowed"),
        (2**61, ValueError, "array is too big"),
        (2**56, MemoryError, "Allocation failed"),
    ],
)
def test_sizes_of_arrays_are_checked(folder: Path, n: int, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        cache.load(TAKEN, "taken")(n, 1)


def text_of(k: int) -> str:
    return TEXT.replace("* 3", f"* {k}")


def test_entries_that_were_not_used_for_longest_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_bound, "_sizes", {})
    for k in (3, 4, 5):
        assert cache.load(text_of(k), "triple")(2) == 2 * k
        (path,) = (path for path in cache.entries() if f"* {k}" in path.read_text())
        os.utime(path.with_suffix(".used"), (k, k))  # long ago
    size = cache_bound.size_of(folder)
    forget(monkeypatch)
    assert cache.load(text_of(3), "triple")(2) == 6  # used again
    monkeypatch.setenv("NUMBASCAN_CACHE_SIZE", f"{size + 10} B")
    assert cache.load(text_of(6), "triple")(2) == 12
    assert cache_bound.size_of(folder) <= size
    left = {path.read_text() for path in cache.entries()}
    assert text_of(4) not in left
    assert {text_of(3), text_of(6)} <= left
    monkeypatch.setenv("NUMBASCAN_CACHE_SIZE", "1")  # the new one stays in any case
    assert cache.load(text_of(7), "triple")(2) == 14
    assert [path.read_text() for path in cache.entries()] == [text_of(7)]
    assert {file.stem.split(".")[0] for file in folder.rglob("*") if file.is_file()} == {cache.entries()[0].stem}
    forget(monkeypatch)
    assert cache.load(text_of(4), "triple")(2) == 8  # made again


def test_what_other_processes_add_counts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_bound, "_sizes", {})
    monkeypatch.setenv("NUMBASCAN_CACHE_SIZE", "400kB")
    cache.load(text_of(3), "triple")
    for k in range(9):  # by another process, 900 kB
        (folder / f"other_{k}.py").write_text("#" * 100_000)
    for k in range(4, 12):  # about 10 kB each
        cache.load(text_of(k), "triple")
    assert cache_bound.size_of(folder) <= 400_000


def test_an_entry_may_go_while_another_process_looks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that vanish between two looks are no error."""
    monkeypatch.setattr(cache_bound, "_sizes", {})
    cache.load(text_of(3), "triple")
    (path,) = cache.entries()
    monkeypatch.setattr(cache_bound, "size_of_entry", lambda entry: cache_bound.remove(path) or 0)
    monkeypatch.setenv("NUMBASCAN_CACHE_SIZE", "1")
    assert cache.load(text_of(4), "triple")(2) == 8
    assert [path.read_text() for path in cache.entries()] == [text_of(4)]


@pytest.mark.parametrize(("text", "size"), [("", 10**9), ("500MB", 5 * 10**8), ("2048", 2048), (" 1.5 GiB ", 3 * 2**29)])
def test_the_bound_is_what_the_environment_says(text: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBASCAN_CACHE_SIZE", text)
    assert cache_bound.bound() == size


def test_a_bound_that_says_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBASCAN_CACHE_SIZE", "much")
    with pytest.warns(UserWarning, match="NUMBASCAN_CACHE_SIZE is 'much'; write bytes as a number"):
        assert cache_bound.bound() == 10**9
