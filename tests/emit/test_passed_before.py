"""What has passed before does not run again, as long as all that its outcome follows from is the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import kept_kernels
import passed_before
import pytest

from numbascan.emit import kernel_key

TEXT = "from numbascan.emit.runtime.intrinsics import small_array\n\n\ndef kernel(x):\n    return sigmoid(x)\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Records and notes of this test alone."""
    monkeypatch.setattr(passed_before, "HELD", tmp_path / "passed")
    monkeypatch.setattr(passed_before, "CUDA", tmp_path / "passed" / "cuda.json")
    monkeypatch.setattr(passed_before, "compiled", {})
    monkeypatch.setattr(passed_before, "is_read", True)
    (tmp_path / "passed").mkdir()
    passed_before.known_for_cuda.cache_clear()
    yield tmp_path
    passed_before.known_for_cuda.cache_clear()


def noted(folder: Path, *texts: str, content: str = "", test: str = "tests/test_a.py::test_a") -> None:
    """Notes that a test has loaded kernels of these texts."""
    file = folder / "test_a.py"
    file.write_text(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_key, "made_of", kernel_key.made_of)
        notes = passed_before.Notes(passed_before.noted_in(folder / "notes"))
        for text in texts:
            kernel_key.kernel_key(text)
        notes.end(SimpleNamespace(nodeid=test, path=file))  # type: ignore[arg-type]


def record(folder: Path, **outcomes: str) -> None:
    """What a run under the older Numba leaves, in which tests have these outcomes."""
    recorder = passed_before.Recorder(folder / "notes")
    for name, outcome in outcomes.items():
        for each in ("passed", outcome):
            recorder.pytest_runtest_logreport(SimpleNamespace(nodeid=f"tests/test_a.py::{name}", outcome=each))  # type: ignore[arg-type]
    recorder.pytest_sessionfinish()


def test_a_test_that_has_passed_is_left_out_until_its_kernels_or_its_file_change(folder: Path) -> None:
    noted(folder, TEXT)
    assert passed_before.unchanged(folder / "notes") == set()
    record(folder, test_a="passed")
    assert passed_before.unchanged(folder / "notes") == {"tests/test_a.py::test_a"}
    for texts, content in (((TEXT + "    # another line\n",), ""), ((TEXT, TEXT + "#"), ""), ((TEXT,), "def test_a(): ...")):
        passed_before.noted_in(folder / "notes").unlink()
        noted(folder, *texts, content=content)
        assert passed_before.unchanged(folder / "notes") == set()


CHANGES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a function beside a card": lambda patch: patch.setattr(kernel_key.HELPERS["sigmoid"].function, "__defaults__", (1,)),
    "the file that compiles": lambda patch: patch.setattr(kernel_key, "COMPILES", f"{kernel_key.PACKAGE}.emit.cpu.module"),
    "something in the place of what compiles": lambda patch: patch.setattr(kept_kernels, "changed", ["a1b2"]),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_a_kernel_is_made_of_counts(what: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted(folder, TEXT)
    record(folder, test_a="passed")
    CHANGES[what](monkeypatch)
    passed_before.noted_in(folder / "notes").unlink()
    noted(folder, TEXT)
    assert passed_before.unchanged(folder / "notes") == set()


def test_only_what_passes_is_recorded_and_what_fails_now_is_forgotten(folder: Path) -> None:
    for name in "abc":
        noted(folder, TEXT + f"# {name}", test=f"tests/test_a.py::test_{name}")
    record(folder, test_a="passed", test_b="failed", test_c="skipped")
    assert passed_before.unchanged(folder / "notes") == {"tests/test_a.py::test_a"}
    record(folder, test_b="passed")  # the first one was left out
    assert passed_before.unchanged(folder / "notes") == {"tests/test_a.py::test_a", "tests/test_a.py::test_b"}
    record(folder, test_a="failed")
    assert passed_before.unchanged(folder / "notes") == {"tests/test_a.py::test_b"}


def test_a_test_without_a_kernel_runs_and_so_does_every_one_where_nothing_is_noted(folder: Path) -> None:
    noted(folder)
    record(folder, test_a="passed")
    assert passed_before.unchanged(folder / "notes") == passed_before.unchanged(folder / "elsewhere") == set()


def test_notes_of_other_files_are_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted(folder, TEXT)
    record(folder, test_a="passed")
    (folder / "test_new.py").write_text("")
    monkeypatch.setattr(passed_before, "TESTS", folder)
    assert passed_before.unchanged(folder / "notes") == set()


def test_a_record_of_other_versions_is_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted(folder, TEXT)
    record(folder, test_a="passed")
    monkeypatch.setattr("numpy.__version__", "2.0.0")
    assert passed_before.unchanged(folder / "notes") == set()


def test_wide_reads_no_record(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted(folder, TEXT)
    record(folder, test_a="passed")
    monkeypatch.setattr(passed_before, "is_read", False)
    assert passed_before.unchanged(folder / "notes") == set()


def test_a_kernel_for_a_gpu_is_compiled_where_something_has_changed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_kernels, "FOLDER", folder / "kept")
    made: list[Any] = []

    def rows(*parts: str) -> list[list[int]]:
        def compile_() -> list[list[int]]:
            made.append(parts)
            return [[32, 0, len(made)]]

        return passed_before.of_cuda(parts, compile_)

    assert [rows("a"), rows("b")] == [[[32, 0, 1]], [[32, 0, 2]]]
    passed_before.write_cuda(passed_before.compiled)
    passed_before.known_for_cuda.cache_clear()
    assert sorted(json.loads(passed_before.CUDA.read_text()).values()) == [[[32, 0, 1]], [[32, 0, 2]]]
    monkeypatch.setattr(kept_kernels, "FOLDER", folder / "another machine")
    assert [rows("a"), rows("b"), rows("c")] == [[[32, 0, 1]], [[32, 0, 2]], [[32, 0, 3]]]
    monkeypatch.setenv("NUMBA_OPT", "2")
    assert rows("a") == [[32, 0, 4]]
