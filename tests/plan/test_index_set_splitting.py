"""Lanes that keep their last rows go side by side: of the loop over time one part stores nothing, and the other one every row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numbascan as ns
from numbascan.ir.loops import For, Function, If, Let, Literal, Name, Store, add, compare, sub
from numbascan.ir.names import Names
from numbascan.plan.cpu import CPU
from numbascan.plan.passes.index_set_splitting import index_set_splitting

START, RATES = np.random.default_rng(3).normal(size=(70, 3)), np.linspace(1, 2, 70)


def _lanes(keep: Any, mode: Any = None) -> Any:
    def step(y: Any, s: Any, rate: Any) -> Any:
        return np.array([y[1] * rate, y[2] - y[0], 0.5 * y[0] * y[1]]) * 0.3 + y, s + y[0]

    def lane(y: Any, rate: Any, steps: Any) -> Any:
        infos = [y, np.float64(0)]
        return ns.scan(step, outputs_info=infos, non_sequences=rate, n_steps=steps, keep_last=keep, return_updates=False)

    return ns.jit(ns.vmap(lane, in_axes=(0, 0, None)), mode=mode)


@pytest.mark.parametrize("keep", [[5, 5], [5, 1], [None, 4], [3, 7], [2, 20]])
def test_each_lane_gives_the_last_rows_of_its_path(keep: list[int | None]) -> None:
    whole, last = _lanes(None), _lanes(keep)
    for steps in (2, 5, 21):
        for path, rows, k in zip(whole(START, RATES, steps), last(START, RATES, steps), keep, strict=True):
            expected = path if k is None else path[:, -1] if k == 1 else path[:, -k:]
            np.testing.assert_array_equal(expected, rows)


def test_the_steps_before_the_last_rows_store_nothing_and_go_side_by_side() -> None:
    last = _lanes([5, 1])
    last(START, RATES, 21)
    text = last.source()
    assert "y_0_lanes" in text
    lanes = text.split("def vmap_lane_lanes", 1)[1].split("def vmap_lane(", 1)[0]
    assert lanes.count(" if ") == lanes.count(" if stopped")
    assert last.memory().results == 70 * (5 * 3 + 1) * 8


def test_a_loop_that_stores_from_some_step_on_becomes_two() -> None:
    t, first, s = (Name(dtype, name) for dtype, name in (("int64", "t"), ("int64", "first"), ("float64", "s")))
    step = Let("s", add(s, 1), is_new=False)
    store = Store("rows", (sub(t, first),), s)
    guarded = If(compare(">=", t, first), [store])
    function = Function("walk", (), [For("t", 0, 9, [step, guarded], kind="time")], Names())
    one, two = index_set_splitting(function, CPU).body
    assert (one.body, two.body) == ([step], [step, store])  # type: ignore[attr-defined]
    assert one.stop == two.start  # type: ignore[attr-defined]
    other = If(compare(">=", t, Literal("int64", 4)), [store])
    for body in ([step, guarded, other], [Let("first", first, is_new=False), guarded], [step, If(compare(">=", first, t), [store])]):
        assert len(index_set_splitting(Function("walk", (), [For("t", 0, 9, body, kind="time")], Names()), CPU).body) == 1
