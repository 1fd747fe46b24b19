"""Ctrl-C in loops that would run for hours, and what is shown of how far they are."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

LATEST = 10  # seconds; 0.4 where nothing else runs
PROGRAM = Path(__file__).with_name("stopped_calls.py")
LOOPS = ["one state", "lanes", "until in lanes", "one lane of many", "until", "gradient", "nested", "vectors of steps", "vector"]
LOOPS += ["elements", "out"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="loops look for signals where there is a POSIX clock")


def test_a_signal_stops_a_loop_of_the_main_thread_soon_and_leaves_all_as_it_was() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_DISABLE_JIT"}
    run = subprocess.run([sys.executable, str(PROGRAM)], capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert run.returncode == 0, run.stderr
    ended = json.loads(run.stdout)
    assert {loop: ended[loop][0] for loop in LOOPS} == dict.fromkeys(LOOPS, "KeyboardInterrupt: ")
    assert [(loop, ended[loop][1]) for loop in LOOPS if ended[loop][1] > LATEST] == []
    assert {loop: ended[loop][2] for loop in LOOPS} == dict.fromkeys(LOOPS, True)
    assert ended["bytes kept"] < 10**7  # of arrays of 0.8 and 2.4 GB
    assert ended["handler"][0] == "TimeoutError: too long"
    assert ended["handler that returns"] == ["nothing", 1]
    assert ended["main thread"][0] == "KeyboardInterrupt: "
    assert ended["other thread"]


def looks_within(step: Any, *sequences: Any, **start: Any) -> bool:
    """Is there a look at each step, and not between strips of them?"""
    run = ns.scan(step, keep_last=1)
    run(sequences, **start)
    return "in range(0, n_steps, 65536)" not in run.source()


def test_steps_that_wait_for_memory_alone_are_not_counted_one_by_one() -> None:
    """`x[k] += w` takes a nanosecond or less, of which a look at each step took a sixth."""
    k, w = np.array([3, 1, 3]), np.array([1.0, 2.0, 4.0])
    x = np.zeros(100)
    assert not looks_within(lambda k, w, x: nt.inc_subtensor(x[k], w), k, w, outputs_info=x)
    assert not looks_within(lambda k, w, x: np.where(w > 1, nt.set_subtensor(x[k], w), x), k, w, outputs_info=x)
    assert looks_within(lambda k, w, s: 0.5 * s + w * k, k, w, outputs_info=0.0)  # waits for its sum
    assert looks_within(lambda k, w, x: (nt.inc_subtensor(x[k], w), ns.until(w > 9)), k, w, outputs_info=x)  # any step may be the last
    assert looks_within(lambda k, w, x: nt.inc_subtensor(x[k : k + 90], w), k, w, outputs_info=x)  # a loop within


def test_elements_are_right_across_strips() -> None:
    k = np.random.default_rng(1).integers(-50, 50, 150_000)
    run = ns.scan(lambda k, t, x: nt.set_subtensor(x[k], t - x[k // 2]), keep_last=1)
    results = [ns.scan(run, mode=mode)([k, np.arange(len(k))], np.arange(50)) for mode in (None, "python")]
    np.testing.assert_array_equal(*results)
    k[140_000] = 50
    with pytest.raises(IndexError, match="index 50 is out of bounds for axis 0 with size 50"):
        run([k, np.arange(len(k))], np.arange(50))


def test_ctrl_c_ends_a_program() -> None:
    code = "import numbascan as ns\n@ns.scan(keep_last=1)\ndef f(y): return 0.5 * y\nf(outputs_info=1.0, n_steps=3)\nprint(flush=True)\n"
    code += "f(outputs_info=1.0, n_steps=10**12)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=LATEST)
    assert errors.endswith("KeyboardInterrupt\n")
    assert "During handling" not in errors


# progress ---------------------------------------------------------------------------------------------------------------


@ns.scan
def slow(y):
    return np.sin(y) + 1.0


@pytest.mark.parametrize("mode", [None, "python"])
def test_progress_changes_no_bit_and_ends_with_all_steps(mode: str | None) -> None:
    seen: list[tuple[int, int]] = []
    run = ns.scan(slow, mode=mode)
    with_progress = run(outputs_info=1.0, n_steps=50, progress=lambda done, steps: seen.append((done, steps)))
    np.testing.assert_array_equal(with_progress, run(outputs_info=1.0, n_steps=50))
    assert seen == [(50, 50)]
    assert run(outputs_info=1.0, n_steps=0, progress=lambda *place: seen.append(place)).shape == (0,)
    assert seen[-1] == (0, 0)


def test_a_long_loop_tells_how_far_it_is_and_a_function_may_stop_it() -> None:
    seen: list[tuple[int, int]] = []

    def stop(done: int, steps: int) -> None:
        seen.append((done, steps))
        if len(seen) == 2:
            raise TimeoutError("long enough")

    last = ns.scan(slow, keep_last=1, progress=stop)
    with pytest.raises(TimeoutError, match="long enough"):
        last(outputs_info=1.0, n_steps=10**12)
    (first, steps), (second, _) = seen
    assert 0 < first < second < steps == 10**12
    assert last(outputs_info=1.0, n_steps=5, progress=False) == slow(outputs_info=1.0, n_steps=5)[-1]


def test_elements_that_go_side_by_side_are_told_as_steps() -> None:
    seen: list[int] = []

    def stop(done: int, steps: int) -> None:
        seen.append(done)
        if len(seen) == 2:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        ns.scan(lambda y: np.sin(y) * 0.9, outputs_info=np.ones(100), n_steps=10**10, keep_last=1, progress=stop)
    assert 0 < seen[0] < seen[1] < 10**10


def test_a_log_gets_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    ns.scan(lambda x, y: x + y, np.ones(1200), 0.0, progress=True, name="sums")
    assert capsys.readouterr().err.startswith("sums: 1,200 of 1,200 steps, ")


def test_progress_is_a_bool_or_a_function() -> None:
    with pytest.raises(TypeError, match=r"scan 'slow': progress is 'yes'; give True, False, or a function"):
        slow(outputs_info=1.0, n_steps=5, progress="yes")
