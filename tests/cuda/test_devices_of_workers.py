"""Which GPU a worker of a batch takes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import numbascan as ns
from numbascan.batches import devices, remote
from numbascan.batches.inputs import cases_of
from numbascan.batches.lanes import ChunkFunction
from numbascan.emit.runtime import cuda

HOLD = (
    "import sys\n"
    "from numbascan.batches import devices\n"
    "from numbascan.emit.runtime import cuda\n"
    "cuda.names_of_devices = lambda: sys.argv[1:]\n"
    "print(devices.own_device(), flush=True)\n"
    "sys.stdin.read()"
)


@pytest.fixture(autouse=True)
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Locks of this test alone."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    devices.own_device.cache_clear()
    yield
    devices.own_device.cache_clear()
    while devices._held:
        devices._held.pop().__exit__()


def test_each_process_takes_a_device_that_no_other_has_in_whatever_order_it_sees_them(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [
        subprocess.Popen([sys.executable, "-c", HOLD, *names], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for names in (["GPU-a", "GPU-b", "GPU-c"], ["GPU-b", "GPU-c", "GPU-a"])
    ]
    try:
        for other in others:
            assert other.stdout is not None
            assert other.stdout.readline() == "0\n"
        monkeypatch.setattr(cuda, "names_of_devices", lambda: ["GPU-b", "GPU-c", "GPU-a"])
        assert devices.own_device() == devices.own_device() == 1
        devices.own_device.cache_clear()  # a fourth process finds none that is free
        assert devices.own_device() == os.getpid() % 3
        others[0].kill()
        others[0].wait()
        devices.own_device.cache_clear()
        assert devices.own_device() == 2  # a process that dies gives its device back
    finally:
        for other in others:
            other.kill()
            other.communicate()


def test_a_worker_runs_chunks_on_the_device_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    monkeypatch.setattr(remote, "own_device", lambda: taken.append(0) or 0)
    cases = cases_of(f := lambda x: x * 2, (np.arange(5.0),), 0)
    program = remote.pickled(f, cases, ChunkFunction(f, cases, ns.Mode(target="cuda")))
    answer = remote._chunk("key", program, None, 0, (1, 4), cases.to_send(1, 4), False, None)
    np.testing.assert_array_equal(answer.pieces[0][2], [[2.0, 4.0, 6.0]])
    assert taken == [0]
    remote._programs.clear()
