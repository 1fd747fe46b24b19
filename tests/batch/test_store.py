"""`ns.batch` into a Zarr store: what is kept, what fits, and what is done again."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.batches.lanes import ChunkFunction
from numbascan.batches.lock import Lock
from numbascan.batches.store import BatchStore
from numbascan.cli import main

zarr = pytest.importorskip("zarr")
xarray = pytest.importorskip("xarray")

X = np.random.default_rng(0).uniform(0.1, 1.0, size=50)


def f(x: Any, y: Any) -> Any:
    return {
        "path": ns.scan(lambda z: z * x, outputs_info=y, n_steps=3, return_updates=False),
        "end": (np.sin(x) + y, (y * 10).astype("int64")),
    }


def run(store: Any, **options: Any) -> Any:
    return ns.batch(**{"f": f, "inputs": {"x": X, "y": X[::-1]}, "chunk": 8, "store": store, "progress": False} | options)


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The first cases of the chunks that are computed."""
    firsts: list[int] = []
    run = ChunkFunction.run
    monkeypatch.setattr(ChunkFunction, "run", lambda self, first, values: firsts.append(first) or run(self, first, values))
    return firsts


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# what is in it ------------------------------------------------------------------------------------------------------


def test_results_come_back_as_arrays_and_xarray_reads_them(tmp_path: Path) -> None:
    expected = ns.batch(f, (X, X[::-1]), progress=False)
    got = run(tmp_path / "a.zarr")
    assert isinstance(got["path"], zarr.Array)
    for one, other in ((got["path"], expected["path"]), (got["end"][0], expected["end"][0]), (got["end"][1], expected["end"][1])):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_array_equal(one[...], other)
    assert got["path"].chunks == (8, 3)
    group = zarr.open_group(tmp_path / "a.zarr", mode="r")
    assert set(group) == {"path", "end", "chunks", "x", "y"}
    assert '"crc32c"' in (tmp_path / "a.zarr/path/zarr.json").read_text()
    data = xarray.open_zarr(tmp_path / "a.zarr")
    assert (data["path"].dims, set(data.coords)) == (("case", "dim_1"), {"x", "y"})
    np.testing.assert_array_equal(data["x"], X)
    assert {"program", "inputs", "versions", "begun", "seconds"} <= set(group.attrs["numbascan"])


def test_a_grid_has_its_own_dimensions_and_coordinates(tmp_path: Path) -> None:
    grid = ns.grid(a=[1.0, 2.0, 3.0], b=np.arange(4))
    got = ns.batch(lambda a, b: (a * b, np.ones(2) * a), grid, store=str(tmp_path / "g.zarr"), chunk=9, progress=False)
    assert [one.shape for one in got] == [(3, 4), (3, 4, 2)]
    assert got[0].chunks == (2, 4)
    data = xarray.open_zarr(tmp_path / "g.zarr")
    assert float(data["result_0"].sel(a=2.0, b=3)) == 6.0
    assert data["result_1"].dims == ("a", "b", "dim_1")
    with pytest.raises(ValueError, match="a result and an axis of cases are both called 'a'"):
        ns.batch(lambda a: {"a": a}, ns.grid(a=[1.0, 2.0]), store=str(tmp_path / "h.zarr"), progress=False)


def test_groups_and_stores_of_zarr_are_taken_and_results_of_other_lengths_have_dimensions_of_their_own(tmp_path: Path) -> None:
    memory = zarr.storage.MemoryStore()
    both = lambda x: {"a": x * np.ones(2), "b": x * np.ones(3)}  # noqa: E731
    for store in (memory, zarr.open_group(tmp_path / "root.zarr", mode="a").create_group("inner")):
        ns.batch(both, (X,), store=store, chunk=20, progress=False)
        got = ns.batch(both, (X,), store=store, progress=False)
        np.testing.assert_array_equal(got["b"][...], X[:, None] * np.ones(3))
    assert xarray.open_zarr(tmp_path / "root.zarr", group="inner", consolidated=False).sizes == {"case": 50, "dim_1": 2, "b_dim_1": 3}
    with pytest.raises(OSError, match="open for reading only"):
        ns.batch(both, (X,), store=zarr.open_group(tmp_path / "root.zarr/inner", mode="r"), progress=False)


@pytest.mark.parametrize("count", [0, 1])
def test_few_cases_are_stored(tmp_path: Path, count: int) -> None:
    for _ in range(2):
        got = run(tmp_path / "a.zarr", inputs={"x": X[:count], "y": X[:count]})
        assert (got["path"].shape, got["path"][...].shape) == ((count, 3), (count, 3))


# called again -------------------------------------------------------------------------------------------------------


def test_called_again_it_computes_what_is_missing_or_damaged(tmp_path: Path, computed: list[int]) -> None:
    store, whole = tmp_path / "a.zarr", f"{tmp_path}/b.zarr"
    first = run(store, part=(0, 3))
    assert computed == [0, 24, 48]
    assert np.isnan(first["path"][8:24]).all()
    computed.clear()
    seen: list[tuple[int, int]] = []
    run(store, chunk="auto", progress=lambda done, count: seen.append((done, count)), memory="1MB", on_error="record")
    assert (computed, seen[0], seen[-1]) == ([8, 16, 32, 40], (18, 50), (50, 50))
    run(whole, on_error="record")
    damaged = [store / "path/c/1/0", store / "end/0/c/3", store / "end/1/c/6", store / "chunks/done/c/4"]
    data = damaged[0].read_bytes()
    damaged[0].write_bytes(bytes([data[0] ^ 1]) + data[1:])
    damaged[1].write_bytes(damaged[1].read_bytes()[:5])
    damaged[2].unlink()
    damaged[3].unlink()
    computed.clear()
    run(store)
    assert computed == [8, 24, 32, 48]
    results, expected = content(store), content(Path(whole))
    assert {name for name in results if results[name] != expected.get(name)} == {
        name for name in results if name == "zarr.json" or name.startswith("chunks/done/c/")
    }


@pytest.mark.parametrize("how", ["cut", "changed"])
@pytest.mark.parametrize("name", ["chunks/done/c/1", "chunks/errors/c/1", "errors/case/c/0", "errors/message/c/0"])
def test_what_is_damaged_of_the_bookkeeping_is_made_again(tmp_path: Path, computed: list[int], name: str, how: str) -> None:
    matrices = np.random.default_rng(0).normal(size=(20, 2, 2))
    matrices[[9, 12]] = 0.0
    options = {"f": np.linalg.inv, "inputs": (matrices,), "on_error": "record"}
    expected, failed = run(tmp_path / "a.zarr", **options)
    whole = expected[...]
    file = tmp_path / "a.zarr" / name
    file.write_bytes(b"" if how == "cut" else bytes([byte ^ 85 for byte in file.read_bytes()]))
    computed.clear()
    for is_damaged in (name.startswith("chunks"), False):
        computed.clear()
        got, errors = run(tmp_path / "a.zarr", **options)
        assert {first // 8 for first in computed} == ({1} if is_damaged else set())
        np.testing.assert_array_equal(got[...], whole)
        assert errors == failed
        stored = zarr.open_group(tmp_path / "a.zarr")["errors"]
        assert list(zip(stored["case"][:], stored["message"][:], strict=True)) == failed


def test_another_program_other_inputs_or_another_chunk_are_refused_and_nothing_is_touched(tmp_path: Path) -> None:
    store, shared = tmp_path / "a.zarr", ns.shared(2.0, "s")
    table = np.arange(30.0)

    def g(x: Any, y: Any) -> Any:
        return x * y + shared + (x * table).sum()

    run(store, f=g)
    before = content(store)
    renamed = lambda x, y: x * y + shared + (x * table).sum()  # noqa: E731 - the same program by another name
    run(store, f=renamed, mode=ns.Mode(threads=1), memory=10**6)
    before = {name: part for name, part in before.items() if name != "zarr.json"}  # which tells how long it took
    for options, words in (
        ({"f": lambda x, y: x * y - shared + (x * table).sum()}, "another program"),
        ({"f": g, "mode": ns.Mode(fastmath=True)}, "another program"),
        ({"f": g, "mode": "python"}, "another program"),
        ({"f": g, "mode": ns.Mode(check_finite=True)}, "another program"),
        ({"f": g, "inputs": {"x": X, "y": X}}, "other inputs"),
        ({"f": g, "inputs": {"x": X[:49], "y": X[:0:-1]}}, "other inputs"),
        ({"f": g, "inputs": {"x": X, "y": X[::-1].astype("f4")}}, "another program .* and other inputs"),
        ({"f": g, "chunk": 9}, "another chunk size .8 instead of 9"),
    ):
        with pytest.raises(ValueError, match=words):
            run(store, **options)
    for change in (lambda: shared.set_value(3.0), lambda: (shared.set_value(2.0), table.__setitem__(3, 4.0))):
        change()
        with pytest.raises(ValueError, match="other inputs"):
            run(store, f=g)
    assert {name: part for name, part in content(store).items() if name != "zarr.json"} == before
    got = run(store, f=g, chunk=9, resume=False)
    np.testing.assert_allclose(got[...], X * X[::-1] + 2 + X * table.sum())


def test_equal_inputs_fit_however_they_are_held(tmp_path: Path) -> None:
    x = X.copy()
    x[3], x[4] = np.nan, -0.0
    for one in (x, x.astype(">f8"), np.stack([x, x], 1)[:, 0], zarr.array(x, chunks=(7,))):
        ns.batch(lambda x: x + 1, (one,), store=tmp_path / "a.zarr", chunk=8, progress=False)
    x[4] = 0.0
    with pytest.raises(ValueError, match="other inputs"):
        ns.batch(lambda x: x + 1, (x,), store=tmp_path / "a.zarr", chunk=8, progress=False)


def test_inputs_of_other_lengths_are_others_although_their_bytes_are_the_same(tmp_path: Path) -> None:
    ends = lambda x, a, b: x + a[-1] + b[-1]  # noqa: E731
    numbers = np.arange(100.0)
    store = {"store": tmp_path / "a.zarr", "in_axes": (0, None, None), "progress": False}
    ns.batch(ends, (X, numbers[:40], numbers[40:]), **store)
    with pytest.raises(ValueError, match="other inputs"):
        ns.batch(ends, (X, numbers[:60], numbers[60:]), **store)


def test_what_is_left_of_a_store_that_was_half_removed_is_not_taken_for_results(tmp_path: Path) -> None:
    store = tmp_path / "a.zarr"
    ns.batch(lambda x: x + 1, (X,), store=store, chunk=10, progress=False)
    for path in (*store.glob("*/zarr.json"), *store.glob("*/*/zarr.json")):
        path.unlink()
    rows = store / "result/c/0"
    rows.write_bytes(bytes(len(rows.read_bytes())))
    before = content(store)
    with pytest.raises(ValueError, match="results of another program"):
        ns.batch(lambda x: x + 2, (X,), store=store, chunk=10, progress=False)
    with pytest.raises(ValueError, match="another chunk size"):
        ns.batch(lambda x: x + 1, (X,), store=store, chunk=11, progress=False)
    assert content(store) == before
    got = ns.batch(lambda x: x + 1, (X,), store=store, progress=False)
    np.testing.assert_array_equal(got[:], X + 1)
    for path in (*store.glob("*/zarr.json"), *store.glob("*/*/zarr.json")):
        path.unlink()
    got = ns.batch(lambda x: x + 2, (X,), store=store, chunk=11, resume=False, progress=False)
    np.testing.assert_array_equal(got[:], X + 2)


def test_no_metadata_of_a_store_are_needed_to_take_it_up_or_to_replace_it(tmp_path: Path) -> None:
    a = np.random.default_rng(1).normal(size=(8, 2, 2))
    a[[3, 7]] = 0
    solve = {"inputs": {"a": a, "b": X[:8]}, "chunk": 4, "on_error": "record", "progress": False}
    f = lambda a, b: {"x": {"y": np.linalg.solve(a, b * np.ones(2))}}  # noqa: E731
    expected, failed = ns.batch(f, **solve)
    ns.batch(f, **solve, store=tmp_path / "whole")
    files = [path.relative_to(tmp_path / "whole") for path in (tmp_path / "whole").glob("*/**/zarr.json")]
    assert len(files) == 9
    for k, lost in enumerate([*([file] for file in files), *([other for other in files if other != file] for file in files)]):
        for resume in (True, False):
            store = Path(shutil.copytree(tmp_path / "whole", tmp_path / f"{k} {resume}"))
            for file in lost:  # as where a batch was killed while it made or removed this
                (store / file).unlink()
            results, errors = ns.batch(f, **solve, store=store, resume=resume)
            assert (errors, zarr.open_group(store, mode="r")["errors/case"][:].tolist()) == (failed, [3, 7])
            np.testing.assert_array_equal(results["x"]["y"][:], expected["x"]["y"])


def test_a_folder_in_which_a_batch_was_killed_before_anything_was_there_is_empty(tmp_path: Path) -> None:
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.zarr/zarr.0f.partial").write_text("{")
    assert run(tmp_path / "a.zarr")["path"].shape == (50, 3)


@pytest.mark.parametrize("name", ["path", "chunks/done", "chunks/errors", "x"])
@pytest.mark.parametrize("text", ["", "{}", '{"zarr_format": 4, "node_type": "array"}'])
def test_metadata_that_are_damaged_are_told_with_the_store(tmp_path: Path, name: str, text: str) -> None:
    run(tmp_path / "a.zarr", on_error="record")
    (tmp_path / "a.zarr" / name / "zarr.json").write_text(text)
    with pytest.raises(ValueError, match=r"metadata in the store .*a.zarr are damaged .*resume=False replaces it"):
        run(tmp_path / "a.zarr", on_error="record")
    run(tmp_path / "a.zarr", on_error="record", resume=False)


@pytest.mark.parametrize(
    "how", [{}, 3, None, {"shape": [50], "block": [7]}, {"id": 1}, {"block": [0]}, {"block": [7, 7]}, {"results": [1]}]
)
def test_an_attribute_that_no_batch_has_written_is_told_with_the_store(
    tmp_path: Path, how: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "a.zarr"
    run(store)
    group = zarr.open_group(store, mode="r+", use_consolidated=False)
    group.attrs["numbascan"] = {**group.attrs["numbascan"], **how} if isinstance(how, dict) and len(how) == 1 else how
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    for options in ({}, {"resume": False}):
        with pytest.raises(ValueError, match=r"the attribute 'numbascan' of the store .*a.zarr is damaged"):
            run(store, **options)
    assert main(["status", str(store)]) == 2
    assert "is damaged" in capsys.readouterr().err
    assert before == {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}


def test_attributes_of_the_group_that_others_have_set_stay(tmp_path: Path) -> None:
    run(zarr.open_group(tmp_path / "a.zarr", mode="w", attributes={"title": "growth"}))
    zarr.open_group(tmp_path / "a.zarr", mode="r+").attrs["author"] = "me"
    for options in ({}, {"resume": False}):
        run(tmp_path / "a.zarr", **options)
        attributes = zarr.open_group(tmp_path / "a.zarr", mode="r").attrs
        assert (attributes["title"], attributes["author"], set(attributes)) == ("growth", "me", {"title", "author", "numbascan"})


def test_results_have_names_that_arrays_may_have(tmp_path: Path) -> None:
    for name in ("a/b", "a\\b", "a\0b", "..", "", "__a", "errors", "chunks", "zarr.json", "case"):
        with pytest.raises(ValueError, match=r"give (it|the result) another key"):
            ns.batch(lambda x, name=name: {name: x}, (X,), store=tmp_path / "a.zarr", progress=False)
    assert list(tmp_path.iterdir()) == []


def test_what_batch_did_not_make_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/notes.txt").write_text("mine")
    zarr.open_group(tmp_path / "other.zarr", mode="a").create_array("x", shape=(3,), dtype="f8")
    zarr.create_array(tmp_path / "array.zarr", shape=(3,), dtype="f8")
    (tmp_path / "file").write_text("mine")
    for name in ("folder", "other.zarr", "array.zarr"):
        before = content(tmp_path / name)
        for resume in (True, False):
            with pytest.raises(ValueError, match=r"batch did not make|not made by ns.batch|cannot be opened as a group"):
                run(tmp_path / name, resume=resume)
        assert content(tmp_path / name) == before
    for wrong in (3, [1]):
        with pytest.raises(TypeError, match=r"store is .*; give a path"):
            run(wrong)
    for name in ("file", "file/a.zarr"):
        with pytest.raises(OSError, match="file"):
            run(tmp_path / name)


def test_a_store_that_is_in_use_says_by_whom_and_a_lock_does_not_outlive_its_process(tmp_path: Path) -> None:
    store = tmp_path / "a.zarr"
    holder = subprocess.Popen([sys.executable, "-c", HOLDS, str(tmp_path / ".a.zarr.lock")], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    with holder, holder.stdout:
        holder.stdout.readline()
        for part in (None, (0, 2)):
            with pytest.raises(ns.BatchError, match=f"in use by process {holder.pid} on") as caught:
                run(store, part=part)
            assert caught.value.case is None
        holder.kill()
    run(store, part=(0, 2))
    with Lock(tmp_path / ".a.zarr.lock", "", shared=True), Lock(tmp_path / ".a.zarr.lock-1-2", ""):
        with pytest.raises(ns.BatchError, match="in use"):
            run(store)
        with pytest.raises(ns.BatchError, match="in use"):
            run(store, part=(1, 2))
        run(store, part=(0, 2))
    assert [path.name for path in tmp_path.iterdir()] == ["a.zarr"]


HOLDS = """
import os, sys, time
from pathlib import Path
from numbascan.batches.lock import Lock
with Lock(Path(sys.argv[1]), "store"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_part_that_starts_while_the_last_one_ends_waits_for_it(tmp_path: Path) -> None:
    other = Lock(tmp_path / "lock", "s").__enter__()
    threading.Timer(0.2, other.__exit__).start()
    with Lock(tmp_path / "lock", "s", shared=True), Lock(tmp_path / "lock", "s", shared=True):
        started = time.monotonic()
        with pytest.raises(ns.BatchError, match="in use by process"):
            Lock(tmp_path / "lock", "s").__enter__()
        assert time.monotonic() - started < 0.1  # whoever wants it alone is refused at once
    assert not (tmp_path / "lock").exists()


def test_a_process_that_was_forked_does_not_hold_the_locks_of_its_parent(tmp_path: Path) -> None:
    script = HOLDS.replace("print(", "os.fork() or print(os.getpid(), ")
    holder = subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "lock")], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    with holder, holder.stdout:
        child = int(holder.stdout.readline().split()[0])
        holder.kill()
    try:
        with Lock(tmp_path / "lock", "s"):
            os.kill(child, 0)  # it is still there
    finally:
        os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("name", ["path", "end/0", "x"])
def test_an_array_that_goes_while_a_batch_runs_is_an_error(tmp_path: Path, name: str) -> None:
    store = tmp_path / "a.zarr"
    with pytest.raises(OSError, match=f"{name} has gone from the store"):
        run(store, progress=lambda done, count: done == 16 and shutil.rmtree(store / name))
    np.testing.assert_array_equal(run(store)["end"][0][:], run(tmp_path / "b.zarr")["end"][0][:])


def test_a_store_that_goes_or_fills_up_stops_the_batch_and_what_was_done_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "a.zarr"
    with pytest.raises(OSError, match="has gone"):
        run(store, progress=lambda done, count: done == 16 and shutil.rmtree(store))
    assert not store.exists()
    put, left = zarr.storage.LocalStore.set, [35]

    async def full(self: Any, key: str, value: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        await put(self, key, value)

    with monkeypatch.context() as patch:
        patch.setattr(zarr.storage.LocalStore, "set", full)
        with pytest.raises(OSError, match="No space left"):
            run(store)
    done = int((zarr.open_group(store, mode="r")["chunks/done"][:] != 0).sum())
    assert 1 <= done < 7
    np.testing.assert_allclose(run(store)["end"][0][:], np.sin(X) + X[::-1])


def test_a_disk_that_is_full_from_the_start_leaves_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    async def set_full(self: Any, key: str, value: Any) -> None:
        full()

    store = tmp_path / "a.zarr"
    with monkeypatch.context() as patch:
        patch.setattr(zarr.storage.LocalStore, "set", set_full)
        patch.setattr(os, "pwrite", full)
        for part in (None, (0, 2)):
            with pytest.raises(OSError, match="No space left"):
                run(store, part=part)
    np.testing.assert_allclose(run(store)["end"][0][:], np.sin(X) + X[::-1])
    with monkeypatch.context() as patch:
        patch.setattr(zarr.storage.LocalStore, "set", full)
        patch.setattr(os, "pwrite", full)
        with Lock(tmp_path / "lock", "s"), pytest.raises(ns.BatchError, match="in use by another process"):
            Lock(tmp_path / "lock", "s").__enter__()
    assert [path.name for path in tmp_path.iterdir()] == ["a.zarr"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), OSError(errno.EIO, "broken"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("call", ["truncate", "pwrite", "fstat", "open"])
def test_a_lock_that_is_not_entered_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, error: BaseException) -> None:
    def fails(*arguments: Any) -> Any:
        raise error

    with monkeypatch.context() as patch, suppress(type(error)):
        patch.setattr(f"numbascan.batches.lock.os.{call}", fails)
        with Lock(tmp_path / "lock", "s"):
            monkeypatch.undo()
    with Lock(tmp_path / "lock", "s"):
        pass
    assert not (tmp_path / "lock").exists()


def test_another_store_that_comes_to_its_place_stays_as_it_is(tmp_path: Path) -> None:
    store, other = tmp_path / "a.zarr", tmp_path / "b.zarr"
    run(other, inputs={"x": X + 1, "y": X})
    before = content(other)

    def replaced(done: int, count: int) -> None:
        if done == 16:
            shutil.rmtree(store)
            other.rename(store)

    with pytest.raises(OSError, match="has gone, or was replaced"):
        run(store, progress=replaced)
    assert content(store) == before


# what fails ---------------------------------------------------------------------------------------------------------


def test_a_store_stays_where_it_is_when_the_process_goes_to_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    got = run("a.zarr", progress=lambda done, count: monkeypatch.chdir(tmp_path / "elsewhere"))
    np.testing.assert_array_equal(got["end"][0][...], run(None)["end"][0])
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_url_of_a_file_is_its_folder(tmp_path: Path) -> None:
    run(f"file://{tmp_path}/new/a.zarr")
    before = content(tmp_path)
    run(tmp_path / "new/a.zarr")  # and has its lock
    assert set(content(tmp_path)) == set(before)
    with pytest.raises(ValueError, match="another chunk size"):
        run(f"file://{tmp_path}/new/a.zarr", chunk=7)


def test_what_fails_is_in_the_group_of_errors(tmp_path: Path) -> None:
    a = np.random.default_rng(1).normal(size=(30, 3, 3))
    a[[0, 1, 2, 3, 17]] = 0
    invert = {"f": np.linalg.inv, "inputs": (a,), "chunk": 4, "store": tmp_path / "a.zarr", "progress": False}
    with pytest.raises(ns.BatchError, match="case 0 failed"):
        ns.batch(**invert)
    ns.batch(**invert, on_error="record", part=(0, 2))
    results, errors = ns.batch(**invert, on_error="record")
    assert [case for case, _ in errors] == [0, 1, 2, 3, 17]
    assert np.isnan(results[...]).any((1, 2)).nonzero()[0].tolist() == [0, 1, 2, 3, 17]
    group = zarr.open_group(tmp_path / "a.zarr", mode="r")
    assert list(zip(group["errors/case"][:].tolist(), group["errors/message"][:], strict=True)) == errors
    assert ns.batch(**invert, on_error="record")[1] == errors
    with pytest.raises(ns.BatchError, match="case 0 failed before"):
        ns.batch(**invert)
    results, errors = ns.batch(**invert | {"inputs": (a * 0,), "store": tmp_path / "b.zarr"}, on_error="record")
    assert (results.shape, len(errors)) == ((30, 3, 3), 30)


# stopped ------------------------------------------------------------------------------------------------------------

MODEL = """
import sys, time
import numpy as np, numbascan as ns, numbascan.tensor as nt
stream = nt.random.RandomStream(11)
def model(x):
    return ns.scan(lambda y: 0.9 * y + np.exp(-x * x) * stream.normal(), outputs_info=x, n_steps=20, return_updates=False)
x = np.random.default_rng(2).normal(size=300)
def go(store, **options):
    return ns.batch(model, (x,), store=store, chunk=10, **options)
"""


def script(folder: Path, call: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", f"{MODEL}\n{call}"], cwd=folder, text=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )


SLOWLY = "go('a.zarr', progress=lambda done, count: (print(done, flush=True), time.sleep(0.02)))"


def model_results(store: Path | None) -> np.ndarray:
    space: dict[str, Any] = {}
    exec(MODEL, space)
    return np.asarray(space["go"](store, progress=False)[...])


def test_killed_and_resumed_it_gives_the_same_bits(tmp_path: Path) -> None:
    for cases, seconds in ((0, 0.1), (50, 0.013), (120, 0.021)):
        # on a busy machine the script may run on while this process waits for its turn: it waits, too, before all is done
        process = script(tmp_path, SLOWLY.replace("0.02", f"0.02 if done < {cases + 100} else 60"))
        assert process.stdout is not None
        with process:
            first = done = int(process.stdout.readline())
            while done < cases:
                done = int(process.stdout.readline())
            time.sleep(seconds)
            process.kill()
            process.stdout.read()
    assert 50 <= first < done < 300
    assert xarray.open_zarr(tmp_path / "a.zarr", consolidated=True).sizes["case"] == 300
    np.testing.assert_array_equal(model_results(tmp_path / "a.zarr"), model_results(None))


@pytest.mark.long
def test_killed_at_fifty_moments_no_finished_chunk_is_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "MODEL", MODEL.replace("size=300", "size=6000"))
    moments, last = np.random.default_rng(5), 0
    for _ in range(50):
        process = script(tmp_path, SLOWLY)
        assert process.stdout is not None
        with process:
            first = done = int(process.stdout.readline())
            assert first >= last  # all that was told to be done, and perhaps a chunk that was not told any more
            cases = first + int(moments.integers(0, 80))
            while done < cases:
                done = int(process.stdout.readline())
            time.sleep(moments.uniform(0, 0.04))
            process.kill()
            last = max([done, *map(int, process.stdout.read().splitlines())])
    assert 0 < last < 6000
    np.testing.assert_array_equal(model_results(tmp_path / "a.zarr"), model_results(None))


def test_what_was_consolidated_before_hides_no_results_of_a_batch_that_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = lambda x: ns.scan(lambda y: y * x, outputs_info=x, n_steps=5, return_updates=False)  # noqa: E731
    failing = lambda error: lambda *args: (_ for _ in ()).throw(error)  # noqa: E731

    def stop(done: int, count: int) -> None:
        if done:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ChunkFunction, "run", failing(MemoryError()))  # before there are arrays of results
        with pytest.raises(MemoryError):
            ns.batch(path, (X,), store=tmp_path / "a.zarr", chunk=6, progress=False, on_error="record")
    assert "result" not in xarray.open_zarr(tmp_path / "a.zarr", consolidated=True)
    with monkeypatch.context() as patch:
        patch.setattr(BatchStore, "close", lambda store: None)  # as if it were killed
        with pytest.raises(KeyboardInterrupt):
            ns.batch(path, (X,), store=tmp_path / "a.zarr", chunk=6, progress=stop)
    assert "result" in xarray.open_zarr(tmp_path / "a.zarr", consolidated=True)


def test_stopped_by_a_signal_it_keeps_what_is_done_and_says_how_to_go_on(tmp_path: Path) -> None:
    process = script(tmp_path, SLOWLY)
    assert process.stdout is not None
    while int(process.stdout.readline()) < 50:
        pass
    process.send_signal(signal.SIGTERM)
    _, text = process.communicate(timeout=20)
    assert process.returncode == 143
    assert "of 300 cases, which a.zarr keeps; the same call goes on from there" in text
    assert [path.name for path in tmp_path.iterdir()] == ["a.zarr"]
    np.testing.assert_array_equal(model_results(tmp_path / "a.zarr"), model_results(None))


def test_what_stops_a_batch_says_no_more_than_the_store_keeps(tmp_path: Path) -> None:
    seen: list[int] = []

    def stop(at: int, first: Any) -> Any:
        def told(done: int, count: int) -> None:
            seen.append(done)
            if done == at:
                first()
                raise RuntimeError("enough")

        return told

    def notes(store: Path, **options: Any) -> list[str]:
        with pytest.raises(RuntimeError, match="enough") as caught:
            run(store, **options)
        return [note.removeprefix(f"ns.batch: the store {store} ") for note in caught.value.__notes__]

    def walk(x: Any, n: Any) -> Any:  # whoever starts at 0 has a length that nobody knows before
        return ns.scan(lambda y: y * np.linalg.inv(x * np.ones((1, 1)))[0, 0], outputs_info=x, n_steps=n, return_updates=False)

    (kept,) = notes(tmp_path / "a.zarr", progress=stop(16, lambda: None))
    assert "stopped after 16 of 50 cases, which" in kept
    assert seen == [0, 8, 16]
    failing = {"f": walk, "inputs": {"x": X * (X < 0), "n": 3}, "in_axes": {"x": 0, "n": None}, "on_error": "record"}
    (kept,) = notes(tmp_path / "b.zarr", progress=stop(16, lambda: None), **failing)
    assert "stopped after 0 of 50 cases, which" in kept
    closed, kept = notes(tmp_path / "c.zarr", progress=stop(16, lambda: shutil.rmtree(tmp_path / "c.zarr")))
    assert "was not closed: ns.batch: the store" in closed
    assert kept == f"ns.batch: stopped; what {tmp_path / 'c.zarr'} keeps cannot be told"


@pytest.mark.parametrize("count", [3, pytest.param(16, marks=pytest.mark.long)])
def test_parts_run_at_once_and_write_one_store(tmp_path: Path, count: int) -> None:
    processes = [script(tmp_path, f"go('a.zarr', part=({k}, {count}), progress=False)") for k in range(count)]
    assert [(process.communicate(timeout=300)[1], process.returncode) for process in processes] == [("", 0)] * count
    assert (zarr.open_group(tmp_path / "a.zarr", mode="r")["chunks/done"][:] != 0).all()
    np.testing.assert_array_equal(model_results(tmp_path / "a.zarr"), model_results(None))


def test_a_part_without_results_does_not_say_which_shape_results_have(tmp_path: Path) -> None:
    matrices = np.eye(2) * np.arange(-2.0, 7.0)[:, None, None] ** 0
    matrices[:3] = 0.0

    def path(matrix: Any) -> Any:
        start = np.linalg.inv(matrix)[0, 0]
        return ns.scan(lambda y: (y + 1.0, ns.until(y >= 3.0)), outputs_info=start, n_steps=20, return_updates=False)

    def part(k: int) -> Any:
        options = {"chunk": np.int64(3), "store": tmp_path / "a.zarr", "on_error": "record", "progress": False}
        return ns.batch(path, (matrices,), part=(np.int64(k), np.int64(4)), **options)

    for k, words in ((0, "Case 0: LinAlgError"), (3, "when another part has results$")):
        with pytest.raises(ns.BatchError, match=words):
            part(k)
    for k in (1, 2, 3, 0):
        results, errors = part(k)
    assert [case for case, _ in errors] == [0, 1, 2]
    np.testing.assert_array_equal(results[...], [[np.nan] * 3] * 3 + [[2.0, 3.0, 4.0]] * 6)


def test_draws_of_parts_are_those_of_the_whole_and_depend_on_the_state_of_their_stream(tmp_path: Path) -> None:
    stream = nt.random.RandomStream(4)
    noisy = lambda x: x + stream.normal()  # noqa: E731
    whole = ns.batch(noisy, (X,), progress=False)
    for k in (1, 0):
        ns.batch(noisy, (X,), store=tmp_path / "a.zarr", chunk=6, part=(k, 2), progress=False)
    np.testing.assert_array_equal(ns.batch(noisy, (X,), store=tmp_path / "a.zarr", progress=False)[:], whole)
    stream.seed(5)
    with pytest.raises(ValueError, match="other inputs"):
        ns.batch(noisy, (X,), store=tmp_path / "a.zarr", progress=False)


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ImportError, match=r'pip install "numbascan\[batch\]"'):
        run(tmp_path / "a.zarr")
