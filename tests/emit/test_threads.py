"""Lanes in several threads: the same bits as in one, the same errors, and nothing left behind."""

import threading

import numpy as np
import pytest
from shortcuts_taken import needs

import numbascan as ns

rng = np.random.default_rng(4)
STARTS = rng.normal(size=3_000)


def path(start, table):
    def step(y, table):
        return np.sin(y) * table[0] + np.exp(-y * y), ns.until(y > 4)

    return ns.scan(step, outputs_info=start, non_sequences=table, n_steps=200, return_updates=False)[-1]


def side_by_side(start, table):
    return ns.scan(lambda y, table: np.sin(y) + table[1], outputs_info=start, non_sequences=table, n_steps=200, return_updates=False)


def through_memory(start, table):
    def step(y, table):
        return np.sin(y @ table), y[0]

    _, firsts = ns.scan(step, outputs_info=[start * np.ones(40), None], non_sequences=table, n_steps=50, return_updates=False)
    return firsts


def through_another_shape(start, weights):
    """A work array of the step, and a view of it that a routine reads: each thread needs both for itself."""

    def step(y, weights):
        table = np.tanh(y[:, None] * np.arange(30.0) / 30)
        return np.sin(table.reshape(-1) @ weights) + y * 0.5

    return ns.scan(step, outputs_info=start * np.ones(20), non_sequences=weights, n_steps=30, return_updates=False)[-1]


TABLE = rng.normal(size=40)
PROGRAMS = {
    path: TABLE,
    side_by_side: TABLE,
    through_memory: rng.normal(size=(40, 40)) / 5,
    through_another_shape: rng.normal(size=(600, 20)) / 25,
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_results_do_not_depend_on_the_number_of_threads(program):
    found = {}
    for threads in (1, 2, 5, None):
        compiled = ns.jit(ns.vmap(program, in_axes=(0, None)), mode=ns.Mode(threads=threads))
        found[threads] = compiled(STARTS, PROGRAMS[program])
        assert "in_threads" in compiled.source()
    for threads in (2, 5, None):
        np.testing.assert_array_equal(found[threads], found[1])
    few = ns.jit(ns.vmap(program, in_axes=(0, None)), mode="python")(STARTS[:5], PROGRAMS[program])
    np.testing.assert_allclose(found[1][:5], few, rtol=1e-9, atol=1e-12)


@needs("threads", "object_code")
def test_machine_code_starts_threads(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBASCAN_CACHE_DIR", str(tmp_path))
    ns.jit(ns.vmap(lambda y: ns.scan(lambda y: np.sin(y) * 0.97, outputs_info=y, n_steps=31, return_updates=False)[-1]))(STARTS)
    assert any(b"pthread_create" in file.read_bytes() for file in tmp_path.glob("*.code"))


def test_threads_work_at_the_same_time():
    """Each lane draws a number of its own, and each result has its place."""
    starts = np.arange(20_000.0)
    compiled = ns.jit(ns.vmap(lambda s: ns.scan(lambda y: y + 1, outputs_info=s, n_steps=100, return_updates=False)[-1]))
    before = threading.active_count()
    for _ in range(50):
        np.testing.assert_array_equal(compiled(starts), starts + 100)
    assert threading.active_count() == before


@pytest.mark.parametrize("threads", [1, 4])
def test_an_error_in_a_lane_is_that_of_the_first_lane_that_fails(threads):
    def lane(place, table):
        def step(y, place, table):
            return y + table[place]

        return ns.scan(step, outputs_info=0.0, non_sequences=[place, table], n_steps=100, return_updates=False)[-1]

    compiled = ns.jit(ns.vmap(lane, in_axes=(0, None)), mode=ns.Mode(threads=threads))
    places = np.arange(4_000) % 40
    np.testing.assert_allclose(compiled(places, TABLE), 100 * TABLE[places], rtol=1e-12)
    places[[1_700, 3_900]] = 41, 77
    with pytest.raises(IndexError, match=r"\b41\b"):
        compiled(places, TABLE)


def test_lanes_that_are_summed_are_shared_out_too():
    def total(starts):
        return ns.vmap(lambda s: side_by_side(s, TABLE)[-1])(starts).sum()

    one, several = (ns.jit(total, mode=ns.Mode(threads=threads)) for threads in (1, None))
    assert "in_threads" in several.lower(STARTS).source()
    assert one(STARTS) == several(STARTS)


def test_steps_that_wait_for_each_other_stay_in_one_thread():
    def running(xs):
        def step(x, total):
            return ns.scan(lambda y: np.sin(y), outputs_info=x + total, n_steps=100, return_updates=False)[-1]

        return ns.scan(step, sequences=xs, outputs_info=0.0, return_updates=False)

    compiled = ns.jit(running)
    np.testing.assert_allclose(compiled(STARTS[:9]), ns.jit(running, mode="python")(STARTS[:9]), rtol=1e-12)
    assert "in_threads" not in compiled.source()
