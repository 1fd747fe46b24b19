"""More rows than there are, or than any memory holds: kept as far as they are there, or refused by name; never written elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns

LAST = 2**63 - 1


def grown(s: Any) -> Any:
    return s + 1


def stopped(s: Any) -> Any:
    return s + 1, ns.until((s + 1).sum() > 5)


def loop(step: Callable[..., Any], first: Any, **options: Any) -> Any:
    return ns.jit(lambda s: ns.scan(step, outputs_info=s, return_updates=False, **options))(first)


@pytest.mark.parametrize("mode", [None, "python"])
@pytest.mark.parametrize("k", [2, 3, 4, 17, 10**13, 2**62, LAST, 10**30])
def test_more_last_rows_than_steps_are_those_that_there_are(k: int, mode: str | None) -> None:
    step = ns.scan(lambda x, s: (s + x, x * 2), keep_last=k, mode=mode)
    for n in (3, 20):
        rows, trace = step(np.ones(n), [0.0, None])
        np.testing.assert_array_equal(rows, np.arange(1.0, n + 1)[-k:])
        np.testing.assert_array_equal(trace, np.full(n, 2.0)[-k:])
    wide = ns.scan(lambda s: s + np.arange(20.0), keep_last=k, mode=mode)(None, np.zeros(20), n_steps=5)
    np.testing.assert_array_equal(wide, (np.arange(1, 6)[:, None] * np.arange(20.0))[-k:])


@pytest.mark.parametrize("k", [4, 10**13, 10**30])
def test_steps_that_are_further_apart_than_the_loop_is_long_keep_none(k: int) -> None:
    assert ns.scan(lambda x, s: s + x, save_every=k)(np.ones(3), 0.0).shape == (0,)


@pytest.mark.parametrize("options", [{"keep_last": 1}, {"keep_last": 3}, {"keep_last": 40}, {"save_every": 2**62}], ids=str)
def test_a_loop_without_end_keeps_what_it_is_asked_for(options: dict[str, int]) -> None:
    found = loop(stopped, 0.0, n_steps=LAST, **options)
    rows = np.arange(1.0, 7)
    k = options.get("keep_last")
    np.testing.assert_array_equal(found, rows[-1] if k == 1 else rows[-k:] if k else [])


@pytest.mark.parametrize("step", [grown, stopped])
@pytest.mark.parametrize("first", [0.0, np.zeros(20)], ids=["number", "row"])
def test_rows_of_more_steps_than_memory_holds_are_refused(step: Callable[..., Any], first: Any) -> None:
    run = ns.jit(lambda s, n: ns.scan(step, outputs_info=s, n_steps=n, return_updates=False))
    assert len(run(first, 3)) <= 3
    for n in (2**52, 2**61, 2**62, 2**62 + 1, LAST - 1, LAST):
        with pytest.raises(MemoryError, match=r"n_steps.* keep_last or save_every keep fewer"):
            run(first, n)
    for n in (2**52, LAST):
        with pytest.raises(MemoryError, match=r"n_steps.* keep_last or save_every keep fewer"):
            loop(step, first, n_steps=n)


@pytest.mark.parametrize("taps", [[-2, 0], [-1], [0, 3], [0], [-5, 5]])
def test_a_sequence_is_too_short_for_any_number_of_steps_beyond_it(taps: list[int]) -> None:
    def f(x: Any, n: Any) -> Any:
        sequence = {"input": x, "taps": taps}
        return ns.scan(lambda *rows: sum(rows), sequence, n_steps=n, return_updates=False)

    run, x = ns.jit(f), np.arange(20.0)
    span = max(*taps, 0) - min(*taps, 0)
    np.testing.assert_array_equal(run(x, 20 - span), ns.jit(f, mode="python")(x, 20 - span))
    for n in (21 - span, 2**40, *(LAST - k for k in range(12))):
        with pytest.raises(ValueError, match=rf"has 20 rows, but n_steps={n}.* needs {min(n + span, LAST)};"):
            run(x, n)


def test_arrays_that_no_memory_holds_say_so() -> None:
    message = r"there is no memory for its arrays, which take 16,000,000,000,000,000,048 bytes$"
    with pytest.raises(MemoryError, match=message):
        ns.jit(lambda x, n: np.cumsum(np.ones(3) * x).sum() + np.sort(np.broadcast_to(x, (n, n)), axis=0)[0, 0])(1.0, 10**9)
