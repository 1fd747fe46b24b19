"""Memory that is kept from one call for the next: nobody else holds it, it is bounded, and whoever looks for it sees it."""

from __future__ import annotations

import ctypes
import os
import random
import resource
import subprocess
import sys
import threading
import tracemalloc

import numpy as np
import pytest

import numbascan as ns
from numbascan.emit.inside import kept_memory

pytestmark = pytest.mark.skipif(not kept_memory.addresses(), reason="memory is not kept here")


def _functions():
    places = kept_memory.addresses()
    take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(places[kept_memory.TAKE])
    give = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)(places[kept_memory.GIVE])
    return take, lambda data: give(data, 0, None)


@ns.jit
def smoothed(x):
    """Keeps a trace of 800 KB, and returns an array of as much."""

    def step(row, state):
        return np.tanh(0.5 * state + row)

    rows = ns.scan(step, x, np.zeros(100))[0]
    return np.cumsum(rows, axis=0)


def test_a_second_call_takes_its_pages_from_the_first():
    x = np.random.default_rng(0).normal(size=(1000, 100))
    for _ in range(3):
        smoothed(x)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        smoothed(x)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    assert faults < 10 * 195 / 4  # each call takes more than 195 pages for its result alone


def test_results_that_are_held_stay_as_they_are():
    rng = np.random.default_rng(1)
    inputs = [rng.normal(size=(1000, 100)) for _ in range(6)]
    results = [smoothed(x) for x in inputs]
    views = [result[10:20] for result in results]
    copies = [result.copy() for result in results]
    del results
    for _ in range(20):
        smoothed(inputs[0])
    for view, copy in zip(views, copies, strict=True):
        np.testing.assert_array_equal(view, copy[10:20])


def test_a_block_has_one_owner_at_a_time_in_many_threads():
    take, give = _functions()
    wrong = []

    def work(seed):
        chance = random.Random(seed)
        held = []
        for k in range(3000):
            if held and chance.random() < 0.5:
                data, size, mark = held.pop(chance.randrange(len(held)))
                seen = {ctypes.c_int64.from_address(data + place).value for place in (0, size // 16 * 8, size - 8)}
                if seen != {mark}:
                    wrong.append((seen, mark))
                give(data)
            else:
                size, mark = chance.choice([16384, 20000, 65536, 70000, 300000]) // 8 * 8, seed * 10_000 + k
                data = take(size)
                assert data % 64 == 0
                for place in (0, size // 16 * 8, size - 8):
                    ctypes.c_int64.from_address(data + place).value = mark
                held.append((data, size, mark))
        for data, _, _ in held:
            give(data)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_every_size_fits_into_its_block_which_is_an_eighth_larger_at_most():
    take, give = _functions()
    sizes = [kept_memory.FROM, kept_memory.FROM + 1, 2**15 - 1, 2**15, 2**15 + 1, 100_000, 2**20 - 8, 2**20 + 8, 12_345_678]
    for size in sizes:
        data = take(size)
        room = ctypes.c_int64.from_address(data - 8).value
        assert size <= room <= size * 9 // 8 + 1
        ctypes.memset(data, 1, size)
        give(data)


def test_what_waits_is_bounded_and_seen_by_tracemalloc():
    take, give = _functions()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        held = [take((1 << 20) + 4096 * k) for k in range(300)]  # 300 MB and more, of many classes
        assert tracemalloc.get_traced_memory()[0] - before > 300 << 20
        for data in held:
            give(data)
        assert tracemalloc.get_traced_memory()[0] - before <= kept_memory.limit() + (1 << 20)
        large = take(kept_memory.limit() + 1)
        give(large)
        assert tracemalloc.get_traced_memory()[0] - before <= kept_memory.limit() + (1 << 20)
    finally:
        tracemalloc.stop()


def test_more_blocks_than_places_are_given_back_to_the_system():
    take, give = _functions()
    held = [take(20_000) for _ in range(3 * kept_memory.SLOTS)]
    assert len(set(held)) == len(held)
    for data in held:
        give(data)
    again = [take(20_000) for _ in range(3 * kept_memory.SLOTS)]
    assert len(set(again)) == len(again)
    for data in again:
        give(data)


def test_a_size_that_there_is_no_memory_for_is_an_error():
    take, _ = _functions()
    assert take(1 << 60) is None
    with pytest.raises(MemoryError):
        ns.jit(lambda x: np.broadcast_to(x, (1 << 40, 1 << 6)) + 1.0)(1.0)


SHORT_OF_MEMORY = """
import numpy as np, numbascan as ns, resource

@ns.jit
def f(n, x):
    y = np.zeros(n)
    y[0] = x
    for t in range(1, n):
        y[t] = y[t - 1] * 0.5 + 1
    return y

f(10, 1.0)
there = int(open("/proc/self/status").read().split("VmSize:")[1].split()[0]) * 1024
resource.setrlimit(resource.RLIMIT_AS, (there + 220_000_000,) * 2)
for n in (15_000_000, 18_000_000, 12_000_000):
    f(n, 1.0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_what_waits_is_given_up_when_there_is_no_memory(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(SHORT_OF_MEMORY)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


PROGRAM = """
import numpy as np, numbascan as ns, resource
f = ns.jit(lambda x: np.cumsum(x * 2.0))
x = np.ones(200_000)
for _ in range(3):
    f(x)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    kept = f(x)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
ns.kept_until_the_end = kept
"""


def _run(**environment):
    found = subprocess.run([sys.executable, "-c", PROGRAM], env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    return found.returncode, found.stdout, found.stderr


def test_arrays_may_outlive_python():
    code, _, error = _run()
    assert (code, error) == (0, "")


def test_the_environment_turns_it_off():
    code, faults, _ = _run(NUMBASCAN_KEPT_MEMORY="0")
    assert code == 0
    assert int(faults) > 0


def test_a_limit_that_is_no_number_is_named():
    code, _, error = _run(NUMBASCAN_KEPT_MEMORY="much")
    assert code == 0
    assert "NUMBASCAN_KEPT_MEMORY is 'much'" in error


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_of_fork_has_its_own():
    x = np.random.default_rng(2).normal(size=(1000, 100))
    expected = smoothed(x)
    child = os.fork()
    if not child:
        good = all(np.array_equal(smoothed(x), expected) for _ in range(3))
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    np.testing.assert_array_equal(smoothed(x), expected)


def test_a_second_process_finds_a_routine_that_the_first_has_stored(tmp_path) -> None:
    """Its kernel calls nothing else that would let LLVM know the functions of kept memory; LLVM ends a process that lacks a name."""
    for k in (0, 1):
        program = (
            "import numpy as np, numbascan as ns, numbascan.tensor as nt\n"
            "x = nt.dmatrix('x')\n"
            f"print(ns.function([x], nt.linalg.svd(x, full_matrices=False)[{k}])(np.eye(3, 40)).shape)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "NUMBASCAN_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout == ("(3, 3)\n", "(3,)\n")[k], done.stderr
