"""Profiles: what is counted is what the loops do."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.profile import Profile, machine_ceilings


def test_operations_and_bytes_of_a_recurrence() -> None:
    logistic = ns.scan(lambda x: x - 0.1 * x * x, profile=True, name="logistic")
    for _ in range(2):
        logistic(outputs_info=2.0, n_steps=1000)
    profile = logistic.profile
    (loop,) = profile.loops
    assert (profile.calls, profile.steps, profile.operations) == (2, 2000, 2 * 3000)
    assert (loop.line, loop.passes, loop.operations) == ("for t in range(n_steps)", 1000, 3000)
    assert profile.bytes == 2 * (8 * 1000 + 2 * 8)  # the rows, and two numbers that come in


def test_a_product_of_matrices_counts_two_for_each_multiplication() -> None:
    W, h = np.eye(40), np.ones(40)
    step = ns.scan(lambda h, W: h @ W, profile=True)
    step(outputs_info=h, non_sequences=W, n_steps=7)
    assert step.profile.operations == 7 * 2 * 40 * 40


def test_a_loop_that_copies_a_state_is_named() -> None:
    """A state whose rows are not updated in place, by the array and its numbers; rows that are kept are no copies."""
    x, places = np.arange(50.0), np.arange(9) % 4

    def copied(step: Any, start: Any = x, **options: Any) -> dict[str, int]:
        loop: Any = ns.scan(step, profile=True, **options)
        loop(places, start)
        return {array: numbers for one in loop.profile.loops for array, numbers in one.copied.items()}

    put = lambda x, i: nt.set_subtensor(x[i], 0.5)  # noqa: E731 - short
    assert copied(lambda i, x: put(x, i), keep_last=1) == {}
    assert copied(lambda i, x: put(x, i)) == {}  # each step has a row of its own
    assert copied(lambda i, x: (put(x, i), put(x, i).sum()), [x, None], keep_last=[1, None]) == {}  # the sum is taken behind
    assert copied(lambda i, x: (put(x, i), (put(x, i) * x).sum()), [x, None], keep_last=[1, None]) == {"x_rows": 9 * 49}
    assert copied(lambda i, x: nt.ifelse(i > 1, put(x, i), x[::-1]), keep_last=1) == {"x_rows": 9 * 49}  # of the longer side
    loop: Any = ns.scan(lambda i, x: (put(x, i), (put(x, i) * x).sum()), profile=True, keep_last=[1, None])
    loop(places, [x, None])
    assert "      x_rows: 441 numbers copied" in str(loop.profile)


def test_every_stage_has_its_time() -> None:
    @ns.jit(profile=True)
    def total(x):
        return np.exp(x).sum()

    total(np.ones(30))
    profile = total.profile
    assert all(getattr(profile, stage) > 0 for stage in ("trace", "rewrite", "generate", "compile", "run"))
    assert profile.kernels == {"total": profile.run}


def test_print_gives_rates() -> None:
    f: Any = ns.scan(lambda x, s: s + x, profile=True)
    f(np.ones(500), 0.0)
    profile = f.profile
    profile.run = 1e-6
    text = str(profile)
    assert f"bytes {profile.bytes:,}: {profile.bytes / 1e3:.2f} billion a second" in text
    assert "operations 500: 0.50 billion a second" in text


def test_loops_inside_are_named_with_all_their_passes() -> None:
    rotated: Any = ns.scan(lambda h, W: np.tanh(W @ h), profile=True, keep_last=1)
    rotated(outputs_info=np.ones(20), non_sequences=np.eye(20), n_steps=6)
    (loop,) = rotated.profile.loops
    (inner,) = [one for one in loop.inside if one.operations == 6 * 20]
    assert (inner.passes, loop.passes) == (6 * 20, 6)
    assert loop.operations == 6 * (2 * 20 * 20 + 20)
    assert f"      {inner.line}: 120 passes, 120 operations" in str(rotated.profile)


def test_loops_behind_one_another_are_not_inside() -> None:
    @ns.jit(profile=True)
    def two(x):
        return np.cumsum(x) * np.cumsum(x[::-1])

    two(np.ones(40))
    assert [loop.inside for loop in two.profile.loops] == [()] * len(two.profile.loops)


def test_a_profile_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    logistic: Any = ns.scan(lambda x: x - 0.1 * x * x, profile=True, name="logistic")
    with pytest.raises(ValueError, match="nothing has run yet"):
        Profile("never").plot(tmp_path / "never.svg")
    logistic(outputs_info=2.0, n_steps=1000)
    picture = logistic.profile.plot(tmp_path / "profile.png")
    assert picture == tmp_path / "profile.png"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_ceilings_are_above_what_a_loop_reaches() -> None:
    bytes_a_second, operations_a_second = machine_ceilings()
    logistic: Any = ns.scan(lambda x: x - 0.1 * x * x, profile=True, keep_last=1)
    logistic(outputs_info=2.0, n_steps=100_000)
    profile = logistic.profile
    assert 0 < profile.operations / profile.run < operations_a_second
    assert 0 < profile.bytes / profile.run < bytes_a_second


def test_a_missing_matplotlib_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'pip install "numbascan\[plot\]"'):
        Profile("never", run=1.0).plot("never.png")
