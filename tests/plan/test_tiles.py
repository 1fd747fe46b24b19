"""Lanes side by side: the same values for any number of lanes, and only where lanes are independent."""

import numpy as np
import pytest

import numbascan as ns

LANES = (0, 1, 15, 63, 64, 65, 150)
rng = np.random.default_rng(8)
STARTS, SPEEDS, FORCES = rng.normal(size=(150, 2)), rng.uniform(0.5, 1.5, size=150), rng.normal(size=(150, 20))


def pendulum(start, speed, force):
    """Two states of a lane, a sequence of its own, and a number of its own."""

    def step(f, y, v, speed):
        v = v + 0.05 * (np.sin(y) * -speed + f)
        return y + 0.05 * v, v, v * v

    return ns.scan(step, sequences=force, outputs_info=[start[0], start[1], None], non_sequences=speed, return_updates=False)


def ends(starts, speeds, forces):
    y, v, energy = ns.vmap(lambda *lane: [rows[-1] for rows in pendulum(*lane)])(starts, speeds, forces)
    return y, v, energy.sum()


def rows(starts, speeds, forces):
    return ns.vmap(pendulum)(starts, speeds, forces)


@pytest.mark.parametrize("program", [ends, rows])
@pytest.mark.parametrize("n", LANES)
def test_every_number_of_lanes(program, n):
    compiled = ns.jit(program)
    arguments = STARTS[:n], SPEEDS[:n], FORCES[:n]
    plain = ns.jit(program, mode="python")(*arguments)
    for found, expected in zip(compiled(*arguments), plain, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    assert "_lanes[s" in compiled.source()
    assert ("_kept[" in compiled.source()) == (program is rows)  # results of a few steps, before they are moved to the rows of lanes


def test_gradients_with_respect_to_what_lanes_share_and_own():
    def cost(starts, speeds, forces, drag):
        def lane(start, speed, force):
            return pendulum(start, speed * drag, force)[0][-1]

        return (ns.vmap(lane)(starts, speeds, forces) ** 2).sum()

    found = ns.grad(cost, (1, 3))(STARTS, SPEEDS, FORCES, 0.8)
    h = 1e-6
    for k in (0, 70, 149):
        up, down = SPEEDS.copy(), SPEEDS.copy()
        up[k] += h
        down[k] -= h
        slope = (ns.jit(cost)(STARTS, up, FORCES, 0.8) - ns.jit(cost)(STARTS, down, FORCES, 0.8)) / (2 * h)
        np.testing.assert_allclose(found[0][k], slope, rtol=1e-5, atol=1e-8)
    slope = (ns.jit(cost)(STARTS, SPEEDS, FORCES, 0.8 + h) - ns.jit(cost)(STARTS, SPEEDS, FORCES, 0.8 - h)) / (2 * h)
    np.testing.assert_allclose(found[1], slope, rtol=1e-5)


@pytest.mark.parametrize("n", [40, 65])
def test_lanes_that_end_by_themselves_go_one_after_the_other(n):
    def lane(start, speed):
        return ns.scan(
            lambda y, speed: (y + 0.1 * speed, ns.until(y > 1.0)),
            outputs_info=start[0],
            non_sequences=speed,
            n_steps=100,
            return_updates=False,
        )[-1]

    compiled = ns.jit(ns.vmap(lane))
    np.testing.assert_allclose(compiled(STARTS[:n], SPEEDS[:n]), ns.jit(ns.vmap(lane), mode="python")(STARTS[:n], SPEEDS[:n]), rtol=1e-13)
    assert "_lanes[" not in compiled.source()


def test_a_lane_that_reads_the_lane_before_waits_for_it():
    """The outer loop has a state, so its passes are no lanes."""

    def outer(x, s):
        return ns.scan(lambda y, x: 0.5 * y + np.sin(x + s), outputs_info=s, non_sequences=x, n_steps=30, return_updates=False)[-1]

    compiled, plain = ns.scan(outer), ns.scan(outer, mode="python")
    np.testing.assert_allclose(compiled(sequences=SPEEDS, outputs_info=0.3), plain(sequences=SPEEDS, outputs_info=0.3), rtol=1e-12)
    assert "_lanes[" not in compiled.source()


def test_lanes_of_different_lengths_go_one_after_the_other():
    def lane(start, steps):
        return ns.scan(lambda y: 0.9 * y + 0.1, outputs_info=start[0], n_steps=steps, return_updates=False)[-1]

    steps = np.arange(1, 41)
    compiled = ns.jit(ns.vmap(lane))
    expected = [STARTS[k, 0] * 0.9**n + 1 - 0.9**n for k, n in enumerate(steps)]
    np.testing.assert_allclose(compiled(STARTS[:40], steps), expected, rtol=1e-12)
    assert "_lanes[" not in compiled.source()


def test_cheap_steps_that_store_their_results_go_one_lane_after_the_other():
    def lane(start):
        return ns.scan(lambda y: (0.5 * y, y + 1), outputs_info=[start, None], n_steps=40, return_updates=False)

    compiled = ns.jit(ns.vmap(lane))
    halves, more = compiled(SPEEDS)
    np.testing.assert_array_equal(halves, SPEEDS[:, None] * 0.5 ** np.arange(1, 41))
    np.testing.assert_array_equal(more, SPEEDS[:, None] * 0.5 ** np.arange(40) + 1)
    assert "_kept[" not in compiled.source()


def test_an_inner_loop_writes_its_rows_where_the_outer_one_keeps_them():
    def table(start, n):
        def row(s):
            inner = ns.scan(lambda y, s: s * y + 1, outputs_info=1.0, non_sequences=s, n_steps=n, return_updates=False)
            return s * 0.5, inner, inner.sum(), inner

        return ns.scan(row, outputs_info=[start, None, None, None], n_steps=5, return_updates=False)

    for n in (0, 1, 30):
        compiled = ns.jit(table)
        for found, expected in zip(compiled(0.9, n), ns.jit(table, mode="python")(0.9, n), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-13)
