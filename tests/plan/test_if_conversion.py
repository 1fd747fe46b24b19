"""Lanes that end by themselves: their numbers, whatever the other lanes of a tile do, and which loops go side by side."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

MARK = "is_running_lanes[s"
rng = np.random.default_rng(4)
N, STEPS = 70, 12
STARTS, RATES, FORCES = rng.uniform(0.5, 1.5, N), rng.uniform(0.02, 0.3, N), rng.normal(size=(N, STEPS))


def scan(step: Callable[..., Any], *sequences: Any, **arguments: Any) -> Any:
    return ns.scan(step, sequences=list(sequences) or None, return_updates=False, **arguments)


def arithmetic(start: Any, length: Any) -> Any:
    """Sums, products, quotients; the last of two states, and how many steps there were."""

    def step(x: Any, v: Any, t: Any) -> Any:
        v = v - 0.1 * x + 0.01 / (1.0 + x * x)
        return [x + 0.1 * v, v, t + 1], ns.until(t + 1 >= length)

    x, v, t = scan(step, outputs_info=[start, 0.5 * start, 0], n_steps=STEPS)
    return x[-1], v[-1], t[-1], x.shape[0]


def functions(start: Any, length: Any) -> Any:
    """Functions whose vectors have other bits than libm; a condition of the states."""
    y = scan(lambda y: (y + 0.1 * np.exp(-y) * np.sin(3.0 * y), ns.until(y > length * 0.05)), outputs_info=start, n_steps=STEPS)
    return y[-1]


def traces(start: Any, length: Any) -> Any:
    """What the last step gives that no step reads."""

    def step(y: Any) -> Any:
        return [y - 0.2 * np.sin(y) / (1.0 + y * y), np.cos(y) * np.exp(-y)], ns.until(y < 1.2 - 0.02 * length)

    y, trace = scan(step, outputs_info=[start, None], n_steps=STEPS)
    return y[-1], trace[-1]


def sequences(force: Any, length: Any) -> Any:
    """Numbers of the step, of each lane and of all; the state of two steps before."""

    def step(f, u, before, y):
        return 0.5 * y + 0.2 * before + f * u, ns.until(abs(y) > length * 0.1)

    initial = {"initial": nt.stack([force[0], force[1]]), "taps": [-2, -1]}
    return scan(step, force, np.cos(np.arange(float(STEPS))), outputs_info=initial)[-1]


def choices(start: Any, length: Any) -> Any:
    """A boolean and an integer state, and float32."""

    def step(is_up: Any, k: Any, y: Any) -> Any:
        y = np.where(is_up, y * np.float32(1.25), y * np.float32(0.5))
        return [y < 2, k + 1, y], ns.until(k + 1 >= length)

    outputs_info = [nt.constant(True), nt.constant(np.int32(0)), start.astype("float32")]
    return [rows[-1] for rows in scan(step, outputs_info=outputs_info, n_steps=STEPS)]


PROGRAMS = {arithmetic: STARTS, functions: STARTS, traces: STARTS, sequences: FORCES, choices: STARTS}
LENGTHS = {
    "all at once": np.full(N, 7),
    "the first step": np.ones(N, int),
    "never": np.full(N, 1000),
    "one by one": rng.integers(1, STEPS + 3, N),
    "one of many": np.where(np.arange(N) % 64 == 3, STEPS - 1, 2),
    "few": np.where(np.arange(N) % 64 < 9, STEPS - 1, 2),
}


def flat(results: Any) -> list[np.ndarray]:
    return [np.asarray(one) for one in results] if isinstance(results, (tuple, list)) else [np.asarray(results)]


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_each_lane_ends_by_itself(program: Callable[..., Any], lengths: str) -> None:
    compiled, plain = (ns.jit(ns.vmap(program), mode=mode) for mode in (None, "python"))
    arguments = PROGRAMS[program], LENGTHS[lengths]
    for found, expected in zip(flat(compiled(*arguments)), flat(plain(*arguments)), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=2e-5 if found.dtype == np.float32 else 1e-11, atol=1e-12)
    assert MARK in compiled.source()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_bits_of_a_lane_depend_on_nothing_but_its_inputs(program: Callable[..., Any]) -> None:
    """Not on how long the others of its tile go on, nor on where it stands: it may end in a tile, or behind it."""
    compiled = ns.vmap(program)
    starts = PROGRAMS[program]
    lengths = LENGTHS["one by one"]
    whole = flat(compiled(starts, lengths))
    for n in (0, 1, 2, 63, 64, 65):
        for part, all_ in zip(flat(compiled(starts[:n], lengths[:n])), whole, strict=True):
            assert part.tobytes() == all_[:n].tobytes()
    for others in (1, 50):  # the other lanes end at once, or never
        for k in (0, 40, 64, 69):
            alone = np.where(np.arange(N) == k, lengths, others)
            for part, all_ in zip(flat(compiled(starts, alone)), whole, strict=True):
                assert part[k].tobytes() == all_[k].tobytes()


def test_without_the_pass_arithmetic_has_the_same_bits() -> None:
    one, other = (ns.jit(ns.vmap(arithmetic), mode=ns.Mode(without=without)) for without in ([], ["if_conversion"]))
    arguments = STARTS, LENGTHS["one by one"]
    for found, expected in zip(flat(one(*arguments)), flat(other(*arguments)), strict=True):
        assert found.tobytes() == expected.tobytes()
    assert MARK in one.source()
    assert MARK not in other.source()


@pytest.mark.parametrize("n_steps", [0, 1, 3, STEPS])
def test_bounds_that_only_the_run_knows(n_steps: int) -> None:
    def last(start, n_steps):
        y = scan(lambda y: (y * 1.1 + 0.3 / y, ns.until(y > 2.5)), outputs_info=start, n_steps=n_steps)
        return y.shape[0] + y.sum() * 0, nt.concatenate([nt.stack([start]), y])[-1]

    compiled, plain = (ns.jit(lambda a, n: ns.vmap(last, in_axes=(0, None))(a, n), mode=mode) for mode in (None, "python"))
    for found, expected in zip(compiled(STARTS, n_steps), plain(STARTS, n_steps), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("chunk", [1, 7, 64, N])
def test_chunks_of_a_batch_have_the_bits_of_the_whole(chunk: int) -> None:
    arguments = STARTS, LENGTHS["one by one"]
    found = ns.batch(functions, arguments, chunk=chunk, progress=False)
    assert found.tobytes() == np.asarray(ns.vmap(functions)(*arguments)).tobytes()


def test_gradients_of_lanes_that_end_by_themselves() -> None:
    end = ns.jit(ns.vmap(lambda start: functions(start, 40.0)))
    slopes, h = ns.vmap(ns.grad(lambda start: functions(start, 40.0)))(STARTS), 1e-6
    np.testing.assert_allclose(slopes, (end(STARTS + h) - end(STARTS - h)) / (2 * h), rtol=1e-5, atol=1e-7)
    assert MARK in end.source()


def test_lanes_inside_a_loop_and_in_several_threads() -> None:
    def outer(starts: Any) -> Any:
        return scan(lambda y: 0.5 * ns.vmap(arithmetic)(y, y * 10)[0] + 0.5, outputs_info=starts, n_steps=4)[-1]

    plain = ns.jit(outer, mode="python")(STARTS)
    for threads in (1, 2):
        compiled = ns.jit(outer, mode=ns.Mode(threads=threads))
        np.testing.assert_allclose(compiled(STARTS), plain, rtol=1e-11)
        assert MARK in compiled.source()


def test_memory_and_the_profile_know_such_loops() -> None:
    compiled = ns.jit(ns.vmap(arithmetic), profile=True)
    compiled(STARTS, LENGTHS["never"])
    assert compiled.memory().results == N * 8 * 4
    assert compiled.profile.calls == 1


# which loops ----------------------------------------------------------------------------------------------------------

TABLE = rng.normal(size=50)


def place_of_the_state(start: Any, length: Any) -> Any:
    """A lane that has ended would read behind the table."""
    step = lambda y, k: ([y + nt.take(TABLE, k), k + 10], ns.until(k + 10 >= 45 + 0 * length))  # noqa: E731 - a step as users write it
    return scan(step, outputs_info=[start, 0], n_steps=STEPS)[0][-1]


def rows_are_kept(start: Any, length: Any) -> Any:
    return scan(lambda y: (y * 1.01, ns.until(y > length)), outputs_info=start, n_steps=STEPS)[-3:].sum()


def vectors(start: Any, length: Any) -> Any:
    first = start * np.arange(1.0, 21.0)
    return scan(lambda y: (np.roll(y, 1) * 1.1, ns.until(y[0] > length)), outputs_info=first, n_steps=STEPS)[-1].sum()


def bounds_of_its_own(start: Any, length: Any) -> Any:
    return scan(lambda y: (y * 1.1, ns.until(y > 3.0)), outputs_info=start, n_steps=length)[-1]


@pytest.mark.parametrize("program", [place_of_the_state, rows_are_kept, vectors, bounds_of_its_own])
def test_steps_that_are_not_safe_for_any_states_stay_one_after_the_other(program: Callable[..., Any]) -> None:
    compiled, plain = (ns.jit(ns.vmap(program), mode=mode) for mode in (None, "python"))
    np.testing.assert_allclose(compiled(STARTS, LENGTHS["one by one"]), plain(STARTS, LENGTHS["one by one"]), rtol=1e-11)
    assert MARK not in compiled.source()


def test_a_failing_step_of_a_lane_is_told_as_ever() -> None:
    checked = ns.jit(ns.vmap(functions), mode=ns.Mode(check_finite=True))
    starts = STARTS.copy()
    starts[67] = np.nan
    with pytest.raises(FloatingPointError, match="lane 67"):
        checked(starts, LENGTHS["one by one"])
