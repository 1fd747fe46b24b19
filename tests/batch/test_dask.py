"""Chunks of `ns.batch` as tasks of dask.distributed."""

from __future__ import annotations

import linecache
import os
import pickle
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.batches import remote
from numbascan.batches.chunk_writer import ChunkWriter
from numbascan.batches.place import Place
from numbascan.cli import main

distributed = pytest.importorskip("distributed")

X = np.random.default_rng(0).uniform(0.1, 1.0, size=60)
STREAM = nt.random.RandomStream(3)
SCALE = ns.shared(2.0, "scale")
TABLE = np.arange(30.0)


@ns.scan(keep_last=1)
def walk(y: Any, x: Any) -> Any:
    return 0.9 * y + np.exp(-x * y) + STREAM.normal()


def model(x: Any) -> Any:
    return {"end": walk(outputs_info=x, non_sequences=x, n_steps=20) * SCALE, "sum": (TABLE * x).sum()}


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    settings = {"distributed.scheduler.allowed-failures": 1, "distributed.worker.daemon": False}
    import dask

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            sys, "path", [*sys.path, str(Path(__file__).parents[2])]
        )  # workers take it over, and import the functions of this file
        with (
            dask.config.set(settings),
            distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            yield client


def run(inputs: Any = (X,), f: Any = model, **options: Any) -> Any:
    return ns.batch(f, inputs, **{"progress": False, "chunk": 7} | options)


@pytest.mark.filterwarnings("ignore")  # those of Dask and Tornado
def test_workers_give_the_same_bits_into_memory_and_into_a_store(client: Any, tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    whole = run()
    for got in (run(scheduler=client), run(scheduler=client, store=tmp_path / "a.zarr"), run(scheduler=client.scheduler.address)):
        assert [np.asarray(got[key][...]).tobytes() for key in whole] == [whole[key].tobytes() for key in whole]
    grid = ns.grid(a=[1.0, 2.0, 3.0], b=X[:5])
    local = ns.jit(lambda a, b: a * np.sin(b))
    np.testing.assert_array_equal(run(grid, local, scheduler=client), run(grid, local))


@pytest.mark.filterwarnings("ignore")
def test_cases_that_fail_on_workers_are_raised_or_recorded(client: Any) -> None:
    a = np.random.default_rng(1).normal(size=(30, 3, 3))
    a[[11, 23]] = 0
    invert = lambda a: np.linalg.inv(a)  # noqa: E731
    with pytest.raises(ns.BatchError, match=r"case (11|23) failed: LinAlgError") as caught:
        run((a,), invert, scheduler=client)
    assert isinstance(caught.value.__cause__, np.linalg.LinAlgError)
    results, errors = run((a,), invert, scheduler=client, on_error="record")
    expected, messages = run((a,), invert, on_error="record")
    assert (results.tobytes(), errors) == (expected.tobytes(), messages)


@pytest.mark.filterwarnings("ignore")
def test_messages_of_workers_name_the_file_of_a_step_within_the_function(client: Any) -> None:
    a = np.random.default_rng(2).normal(size=(10, 3, 3))
    a[4] = 0
    inverses = lambda a: ns.scan(lambda k: np.linalg.inv(a) * k, sequences=np.arange(1.0, 4.0), return_updates=False)  # noqa: E731
    _, errors = run((a,), inverses, scheduler=client, on_error="record")
    assert [case for case, _ in errors] == [4]
    assert f"({__file__}, line " in errors[0][1]


def test_plain_python_of_a_notebook_runs_on_workers(client: Any) -> None:
    """A worker has no file of a cell: its lines are sent along."""
    cell = """
def bounced(a):
    v = a
    for i in range(50):
        if v > 1.0:
            v = v - 0.7
        else:
            v += 0.3
    return v
"""
    linecache.cache["<cell 7>"] = (len(cell), None, cell.splitlines(keepends=True), "<cell 7>")
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(cell, "<cell 7>", "exec"), space)
    got = run(f=space["bounced"], scheduler=client)
    np.testing.assert_allclose(got, [space["bounced"](a) for a in X], rtol=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_a_worker_that_dies_has_its_chunks_run_again(client: Any) -> None:
    slow = lambda x: ns.scan(lambda y: np.sin(y) + x, outputs_info=x, n_steps=400_000, return_updates=False)[-1]  # noqa: E731
    killed: list[int] = []

    def kill(done: int, count: int) -> None:
        if done >= 14 and not killed:
            killed.extend(client.run(os.getpid).values())
            threading.Thread(target=os.kill, args=(killed[0], signal.SIGKILL)).start()

    got = run(f=slow, scheduler=client, progress=kill)
    assert killed
    np.testing.assert_array_equal(got, run(f=slow))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("records", [False, True])
@pytest.mark.parametrize("inputs", ["arrays", "grid"])
def test_workers_write_into_a_store_that_they_reach(client: Any, tmp_path: Path, inputs: str, records: bool) -> None:
    zarr = pytest.importorskip("zarr")
    given = {"arrays": {"a": X, "b": 2.0}, "grid": ns.grid(a=np.sort(X)[:9], b=[1.0, 2.0, 3.0])}[inputs]
    options = {"in_axes": {"a": 0, "b": None}} if inputs == "arrays" else {}
    here: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        write = ChunkWriter.write
        patch.setattr(ChunkWriter, "write", lambda *args: here.append(args[1]) or write(*args))
        least = X.min() if records else 0.0  # the case for which a matrix is singular
        singular = lambda a, b: {"one": np.linalg.inv(np.eye(2) * (a - least) * b)}  # noqa: E731
        on_error = {"on_error": "record"} if records else {}
        got = run(given, singular, scheduler=client, store=tmp_path / "there.zarr", **on_error, **options)
        assert not here  # this process has not written a chunk
        run(given, singular, store=tmp_path / "here.zarr", **on_error, **options)
        assert here
        run(given, singular, store=tmp_path / "there.zarr", progress=nothing_left, **on_error, **options)
    assert not records or len(got[1]) == (1 if inputs == "arrays" else 3)
    one, other = (zarr.open_group(tmp_path / name) for name in ("there.zarr", "here.zarr"))
    assert sorted(one) == sorted(other)
    for name in ("one", "a", *(("errors/case", "errors/message") if records else ())):
        np.testing.assert_array_equal(one[name][...], other[name][...])


@pytest.mark.filterwarnings("ignore")
def test_workers_record_what_fails_in_a_store_that_was_begun_without(client: Any, tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    x = X + 20.0
    x[30] = 0.0
    singular = lambda a: np.linalg.inv(np.eye(2) * a)  # noqa: E731
    with pytest.raises(ns.BatchError, match="case 30"):
        run({"a": x}, singular, scheduler=client, store=tmp_path / "a.zarr")
    for _ in range(2):
        got, failed = run({"a": x}, singular, scheduler=client, store=tmp_path / "a.zarr", on_error="record")
        assert [case for case, _ in failed] == [30]
        assert zarr.open_group(tmp_path / "a.zarr")["errors/case"][:].tolist() == [30]
        assert np.isnan(got[...]).all(axis=(1, 2)).nonzero()[0].tolist() == [30]


def nothing_left(done: int, count: int) -> None:
    assert done == count


@pytest.mark.filterwarnings("ignore")
def test_results_come_back_from_workers_that_do_not_reach_the_store(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zarr = pytest.importorskip("zarr")
    whole, memory = run(), zarr.storage.MemoryStore()
    here: list[int] = []
    write = ChunkWriter.write
    monkeypatch.setattr(ChunkWriter, "write", lambda *args: here.append(args[1]) or write(*args))
    for store in (memory, tmp_path / "a.zarr", tmp_path / "b.zarr"):
        if store is not memory:  # what workers take for the store is another folder, or another store at its place
            other = tmp_path / f"{store.stem}-seen-there.zarr"
            if store.stem == "b":
                run(store=other)
            monkeypatch.setattr(Place, "address", lambda self, other=other: (str(other), ""))
        here.clear()
        got = run(scheduler=client, store=store)
        assert sorted(here)[-1] == 8, store
        assert [got[key][...].tobytes() for key in whole] == [whole[key].tobytes() for key in whole]
    assert not (tmp_path / "a-seen-there.zarr").exists()


@pytest.mark.filterwarnings("ignore")
def test_chunks_that_workers_say_are_stored_and_are_not_come_back(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of the store has its id: the digest of the chunk is looked for here, too."""
    pytest.importorskip("zarr")
    address, store = Place.address, tmp_path / "a.zarr"

    def of_a_copy(self: Place) -> Any:
        shutil.copytree(self.folder, tmp_path / "copy.zarr")
        return str(tmp_path / "copy.zarr"), ""

    monkeypatch.setattr(Place, "address", of_a_copy)
    got, whole = run(scheduler=client, store=store), run()
    monkeypatch.setattr(Place, "address", address)
    assert [got[key][...].tobytes() for key in whole] == [whole[key].tobytes() for key in whole]
    run(store=store, progress=nothing_left)


@pytest.mark.filterwarnings("ignore")
def test_a_copy_of_a_store_is_not_taken_for_the_store_that_workers_have_written_before(client: Any, tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    run(scheduler=client, store=tmp_path / "a.zarr")
    for number in range(1, 9):
        (tmp_path / f"a.zarr/chunks/done/c/{number}").unlink()
    shutil.copytree(tmp_path / "a.zarr", tmp_path / "b.zarr")
    before = _chunks_of(tmp_path / "a.zarr")
    got, whole = run(scheduler=client, store=tmp_path / "b.zarr"), run()
    assert [got[key][...].tobytes() for key in whole] == [whole[key].tobytes() for key in whole]
    assert _chunks_of(tmp_path / "a.zarr") == before


def _chunks_of(store: Path) -> set[Path]:
    return set(store.rglob("c/*"))


@pytest.mark.filterwarnings("ignore")
def test_workers_hold_no_shapes_of_another_batch_of_the_same_program(client: Any, tmp_path: Path) -> None:
    pytest.importorskip("zarr")

    def count_up(x: Any) -> Any:
        return ns.scan(lambda y: (y + 1.0, ns.until(y + 1.0 >= x)), outputs_info=0.0, n_steps=20, return_updates=False)

    for length in (3, 5, 4):
        results, errors = run((np.full(40, float(length)),), count_up, scheduler=client, on_error="record")
        assert not errors
        np.testing.assert_array_equal(results, np.tile(np.arange(1.0, length + 1), (40, 1)))
        stored = run((np.full(40, float(length)),), count_up, scheduler=client, store=tmp_path / f"{length}.zarr")
        np.testing.assert_array_equal(stored[...], results)


@pytest.mark.filterwarnings("ignore")
def test_a_batch_waits_for_workers_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "PATIENCE", 0.3)
    with (
        distributed.LocalCluster(n_workers=0, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        threading.Timer(1.5, cluster.scale, (1,)).start()
        with pytest.warns(RuntimeWarning, match=r"the scheduler .* has no workers; the batch waits for them"):
            got = run(f=lambda x: x * 2, scheduler=client)
    np.testing.assert_array_equal(got, X * 2)


@pytest.mark.filterwarnings("ignore")
def test_chunks_are_taken_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, computed = [], remote._computed

    def noted(lanes: Any, bounds: tuple[int, int], *rest: Any) -> Any:
        taken.append(bounds)
        return computed(lanes, bounds, *rest)

    monkeypatch.setattr(remote, "_computed", noted)
    monkeypatch.setattr(remote, "AHEAD", 12)
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        run(scheduler=client, chunk=1)
    assert len(taken) == len(X)
    assert taken == sorted(taken)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", ["numba", "python"])
def test_workers_leave_the_chunks_of_a_batch_that_was_stopped(mode: str) -> None:
    def nested(x: Any, n: Any) -> Any:
        inner = lambda y: ns.scan(lambda z: np.cos(z), outputs_info=y, n_steps=n, keep_last=1, return_updates=False)  # noqa: E731
        return ns.scan(inner, outputs_info=x, n_steps=3, keep_last=1, return_updates=False)

    def stop(done: int, count: int) -> None:
        if done:
            raise KeyboardInterrupt

    steps = np.array([1, *[10**12] * 5])
    results: list[Any] = []
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        with pytest.raises(KeyboardInterrupt):
            run((X[:6], steps), nested, chunk=1, mode=mode, scheduler=client, progress=stop)
        behind = threading.Thread(target=lambda: results.append(run((X, 1), nested, in_axes=(0, None), scheduler=client)), daemon=True)
        behind.start()
        behind.join(30)
    np.testing.assert_allclose(results[0], np.cos(np.cos(np.cos(X))))


@pytest.mark.filterwarnings("ignore")
def test_what_chunks_have_in_common_is_sent_once(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    submit = client.submit

    def measured(f: Any, *arguments: Any, **options: Any) -> Any:
        sizes.append(len(pickle.dumps([one for one in arguments if not isinstance(one, distributed.Future)])))
        return submit(f, *arguments, **options)

    monkeypatch.setattr(client, "submit", measured)
    read, given = np.arange(200_000.0), np.arange(200_000.0) + 1
    scaled = lambda x, table: (nt.as_tensor_variable(read) * x + table * x).sum()  # noqa: E731
    got = run((X, given), scaled, in_axes=(0, None), scheduler=client)
    np.testing.assert_array_equal(got, run((X, given), scaled, in_axes=(0, None)))
    assert [size > 10_000 for size in sizes] == [True] + [False] * 9


@pytest.mark.filterwarnings("ignore")
def test_the_command_sends_modules_beside_its_file_to_workers(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zarr = pytest.importorskip("zarr")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("beside_a_model.py").write_text("def scaled(x): return 3.0 * x")
    Path("a_model.py").write_text("import beside_a_model\ndef f(x): return beside_a_model.scaled(x) + 1.0")
    assert (
        main(["run", "a_model.py:f", "--grid", "x=0:1:9", "--store", "a.zarr", "--chunk", "4", "--scheduler", client.scheduler.address])
        == 0
    )
    np.testing.assert_array_equal(zarr.open_group("a.zarr", mode="r")["result"][:], 3.0 * np.linspace(0, 1, 9) + 1.0)


@pytest.mark.filterwarnings("ignore")
def test_a_client_that_is_closed_is_refused() -> None:
    with distributed.Client(processes=False, n_workers=1, dashboard_address=None, set_as_default=False) as closed:
        pass
    with pytest.raises(ValueError, match="a client that is closed"):
        run(scheduler=closed)


def test_what_is_no_scheduler_is_refused() -> None:
    with pytest.raises(TypeError, match=r"scheduler is 3; give a dask.distributed.Client"):
        run(scheduler=3)


@pytest.mark.parametrize("address", ["nonsense", "tcp://here", "pigeon://127.0.0.1:8786"])
def test_what_is_no_address_is_refused_before_anything_is_made(tmp_path: Path, address: str) -> None:
    with pytest.raises(ValueError, match=f"ns.batch: scheduler is '{address}', which is no address .*; write it as 'tcp://host:8786'"):
        run(scheduler=address, store=tmp_path / "a.zarr")
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_does_not_answer_is_named() -> None:
    import dask

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "200ms"}),
        pytest.raises(OSError, match=r"no scheduler answers at 'tcp://127\.0\.0\.1:9'"),
    ):
        run(scheduler="tcp://127.0.0.1:9")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("stored", [False, True])
def test_three_workers_of_which_one_is_killed_every_five_seconds(tmp_path: Path, stored: bool) -> None:
    slow = lambda x: ns.scan(lambda y: np.sin(y) + x, outputs_info=x, n_steps=3_000_000, return_updates=False)[-1]  # noqa: E731
    x, ends, killed = np.linspace(0.0, 1.0, 6_000), threading.Event(), list[int]()
    with (
        distributed.LocalCluster(n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):

        def kill() -> None:
            while not ends.wait(5):
                there = client.nthreads()  # Dask gives one up that dies while it starts
                running = [nanny for nanny in cluster.workers.values() if nanny.worker_address in there and nanny.pid not in killed]
                if len(running) > 1:  # on a slow machine they would all be starting for ever
                    killed.append(running[len(killed) % len(running)].pid)
                    os.kill(killed[-1], signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            got = run((x,), slow, chunk=50, scheduler=client, **({"store": tmp_path / "a.zarr"} if stored else {}))
        finally:
            ends.set()
            killer.join()
    assert killed
    np.testing.assert_array_equal(got[...], run((x,), slow, chunk="auto"))
    if stored:
        run((x,), slow, chunk=50, store=tmp_path / "a.zarr", progress=nothing_left)
