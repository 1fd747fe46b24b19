"""States of few elements of which a step replaces one at a place that it computes lie in memory, and are updated in their own row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from wide import wide

import numbascan as ns
import numbascan.tensor as nt

RNG = np.random.default_rng(8)
STEPS = 23


def learnt(k: Any, reward: Any, q: Any, rate: Any) -> Any:
    return nt.set_subtensor(q[k], q[k] + rate * (reward - q[k]))


def exchanged(k: Any, reward: Any, q: Any, rate: Any) -> Any:
    return nt.set_subtensor(nt.set_subtensor(q[k], q[0] * rate)[0], q[k] + reward)


def chosen(k: Any, reward: Any, q: Any, rate: Any) -> Any:
    return nt.ifelse(reward > 0, learnt(k, reward, q, rate), q)


def reaching_back(k: Any, reward: Any, before: Any, q: Any, rate: Any) -> Any:
    return nt.inc_subtensor(q[k], rate * before[-k - 1] + reward)


def scan(step: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    def run(q: Any, ks: Any, rewards: Any, rate: Any) -> Any:
        return ns.scan(step, sequences=[ks, rewards], outputs_info=q, non_sequences=rate, return_updates=False, **options)

    return run


def read_after(q: Any, ks: Any, rewards: Any, rate: Any) -> Any:
    def step(k: Any, reward: Any, q: Any, total: Any) -> Any:
        q = learnt(k, reward, q, rate)
        return q, total + np.tanh(q).sum() + q[-k - 1]

    return ns.scan(step, sequences=[ks, rewards], outputs_info=[q, 0.0], return_updates=False)[1][-1]


def stopped(q: Any, ks: Any, rewards: Any, rate: Any) -> Any:
    def step(k: Any, reward: Any, q: Any) -> Any:
        q = nt.inc_subtensor(q[k], rate * reward * reward)
        return q, ns.until(q.max() > 1.5)

    return ns.scan(step, sequences=[ks, rewards], outputs_info=q, return_updates=False)


def within(q: Any, ks: Any, rewards: Any, rate: Any) -> Any:
    def step(k: Any, reward: Any, q: Any) -> Any:
        return ns.scan(learnt, sequences=[ks[:3], rewards[:3]], outputs_info=0.9 * q, non_sequences=rate * reward, return_updates=False)[-1]

    return ns.scan(step, sequences=[ks, rewards], outputs_info=q, return_updates=False)[-1]


PROGRAMS = {
    "the last row": lambda *args: scan(learnt)(*args)[-1],
    "all rows": scan(learnt),
    "the last rows": lambda *args: scan(learnt)(*args)[-4:],
    "two places": lambda *args: scan(exchanged)(*args)[-1],
    "perhaps": lambda *args: scan(lambda k, u, q, r: np.where(u > 0, learnt(k, u, q, r), q))(*args)[-1],
    "by ifelse": lambda *args: scan(chosen)(*args)[-1],
    "all replaced, then one": lambda *args: scan(lambda k, u, q, r: learnt(k, u, 0.9 * q, r))(*args)[-1],
    "read after": read_after,
    "until": stopped,
    "within": within,
    "reaching back": lambda q, ks, us, r: ns.scan(
        reaching_back,
        sequences=[ks, us],
        outputs_info={"initial": np.stack([q, 0.5 * q]), "taps": [-2, -1]},
        non_sequences=r,
        return_updates=False,
    )[-1],
    "checkpoints": lambda *args: scan(learnt, checkpoint=3)(*args)[-1],
}


def arguments(n: int, *lanes: int) -> tuple[Any, ...]:
    return RNG.normal(size=(*lanes, n)), RNG.integers(-n, n, (*lanes, STEPS)), RNG.normal(size=(*lanes, STEPS)), np.full(lanes, 0.3)[()]


@pytest.mark.parametrize("n", wide([4, 1, 2, 8], first=1))
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients_are_those_of_python(name: str, n: int) -> None:
    def cost(q: Any, ks: Any, rewards: Any, rate: Any) -> Any:
        rows = PROGRAMS[name](q, ks, rewards, rate)
        return (rows * rows).sum()

    def both(*args: Any) -> Any:
        return PROGRAMS[name](*args), ns.grad(cost, (0, 2, 3))(*args)

    args = arguments(n)
    for one, other in zip(_flat(ns.jit(both)(*args)), _flat(ns.jit(both, mode="python")(*args)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)
    if name != "until":  # of which lanes have different lengths
        lanes = arguments(n, 70)
        found = _flat(ns.jit(ns.vmap(both))(*lanes))
        for k in (0, 63, 64, 69):  # the ends of tiles
            alone = _flat(ns.jit(both, mode="python")(*(value[k] for value in lanes)))
            for one, other in zip(found, alone, strict=True):
                np.testing.assert_allclose(one[k], other, rtol=1e-11, atol=1e-12)


def test_ends_of_lanes_that_stop_by_themselves() -> None:
    lanes = arguments(4, 70)
    found = ns.jit(ns.vmap(lambda *args: stopped(*args)[-1]))(*lanes)
    for k in (0, 63, 64, 69):
        expected = ns.jit(lambda *args: stopped(*args)[-1], mode="python")(*(value[k] for value in lanes))
        np.testing.assert_allclose(found[k], expected, rtol=1e-12)


@pytest.mark.parametrize("options", [{"save_every": 3}, {"keep_last": 2}, {"keep_last": 5}, {"n_steps": 0}])
def test_rows_that_are_kept(options: dict[str, int]) -> None:
    q, ks, rewards, rate = arguments(4)
    rows = [scan(learnt, mode=mode, **options)(q, ks, rewards, rate) for mode in (None, "python")]
    assert rows[0].shape == rows[1].shape
    np.testing.assert_allclose(rows[0], rows[1], rtol=1e-12)


def test_a_number_that_is_not_finite_is_told_with_its_step() -> None:
    q, ks, rewards, rate = arguments(4)
    rewards[7] = np.inf
    with pytest.raises(FloatingPointError, match=r"scan 'learnt', step 7: q .* is not finite"):
        scan(learnt, mode=ns.Mode(check_finite=True))(q, ks, rewards, rate)


def _flat(nest: Any) -> list[Any]:
    return [leaf for part in nest for leaf in _flat(part)] if isinstance(nest, tuple) else [nest]


@pytest.mark.parametrize("name", ["the last row", "two places", "perhaps", "by ifelse"])
def test_a_step_copies_nothing(name: str, rewritten: None) -> None:
    text = ns.jit(PROGRAMS[name]).lower(*arguments(4)).source()
    assert text.count("for i in range") == 1  # which copies the initial state
    assert text.count("np.empty") == 1
    assert "q_0" not in text


def test_a_place_beyond_the_end_is_told_with_the_state_as_it_was() -> None:
    q, ks, rewards, rate = arguments(4)
    ks[5] = 4
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size 4"):
        ns.jit(PROGRAMS["the last row"])(q, ks, rewards, rate)


def test_a_shared_variable_is_updated_and_keeps_its_value_where_a_step_fails() -> None:
    counts, ks = ns.shared(np.zeros(3), name="counts"), nt.lvector("ks")
    updates = ns.scan(lambda k: {counts: nt.inc_subtensor(counts[k], 1.0)}, sequences=ks)[1]
    f = ns.function([ks], [], updates=updates)
    f(np.array([0, 2, 2, -1]))
    assert counts.get_value().tolist() == [1.0, 0.0, 3.0]
    with pytest.raises(IndexError):
        f(np.array([0, 3]))
    assert counts.get_value().tolist() == [1.0, 0.0, 3.0]
