"""Chunks of `ns.batch` as tasks of dask.distributed."""

from __future__ import annotations

import os
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
from numbascan.batches.inputs import cases_of
from numbascan.batches.lanes import traced_beside_threads
from numbascan.front.tracing import GlobalDrawError

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


def test_a_function_is_traced_again_where_another_thread_has_drawn_meanwhile() -> None:
    draws = [3]

    def f(x: Any) -> Any:
        if draws[0]:
            draws[0] -= 1
            np.random.random()  # noqa: NPY002 - as a thread of Dask's would
        return x + 1

    cases = cases_of(f, (X,), 0)
    with pytest.raises(GlobalDrawError):
        traced_beside_threads(f, cases, ns.Mode(), attempts=2)
    np.testing.assert_array_equal(traced_beside_threads(f, cases, ns.Mode(), attempts=2).run(0, [X])[0], X + 1)


def test_what_is_no_scheduler_is_refused() -> None:
    with pytest.raises(TypeError, match=r"scheduler is 3; give a dask.distributed.Client"):
        run(scheduler=3)
