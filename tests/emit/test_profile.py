"""Profiles: what is counted is what the loops do."""

from __future__ import annotations

from typing import Any

import numpy as np

import numbascan as ns
import numbascan.tensor as nt


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
