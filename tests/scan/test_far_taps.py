"""Taps far back cost no code: how far decides about memory alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from wide import wide

import numbascan as ns
import numbascan.tensor as nt

first, w, n = nt.dvector("first"), nt.dscalar("w"), nt.lscalar("n")
rows, xs = nt.dmatrix("rows"), nt.dvector("xs")
WIDE = 12  # a row too wide for locals


def _far(depth: int, initial: Any, **options: Any) -> Any:
    infos = {"initial": initial, "taps": [-depth, -1]}
    return ns.scan(lambda far, near, w: np.tanh(far * 0.5 + near * w), None, infos, w, n_steps=n, return_updates=False, **options)


def _path(start: Any, depth: int, steps: int) -> Any:
    path = list(start)
    for _ in range(steps):
        path.append(np.tanh(path[-depth] * 0.5 + path[-1] * 0.3))
    return np.array(path[depth:])


def _start(*shape: int) -> Any:
    return np.random.default_rng(5).normal(size=shape)


@pytest.mark.parametrize("depth", wide([16, 17, 100_000, 1000], first=3))  # the code for 1,000 is that for 100,000: see below
def test_rows_far_back_are_those_of_a_plain_loop(depth: int) -> None:
    whole, wide, sequence = _far(depth, first), _far(depth, rows), {"input": xs, "taps": [-depth, 0]}
    sums = ns.scan(lambda far, here, s: 0.5 * s + far * here, sequence, 0.0, return_updates=False)
    end = _far(depth, rows + 1)
    f = ns.function([first, rows, xs, w, n], [whole, wide, end[-1], end[-3:], sums])
    start, matrix, x = _start(depth), _start(depth, WIDE), _start(depth + 40)
    for steps in (3, 2 * depth + 5) if depth < 100 else (3, 40):
        path, others = _path(matrix, depth, steps), _path(matrix + 1, depth, steps)
        expected = [_path(start, depth, steps), path, others[-1], others[-3:]]
        *seen, summed = f(start, matrix, x, 0.3, steps)
        for value, one in zip(expected, seen, strict=True):
            np.testing.assert_allclose(one, value, rtol=1e-12)
        total = 0.0
        for t in range(40):
            total = 0.5 * total + x[t] * x[t + depth]
            np.testing.assert_allclose(summed[t], total, rtol=1e-12)


@pytest.mark.parametrize("checkpoint", [None, 10, ns.Checkpoint(memory="1MB", schedule="online")], ids=str)
def test_derivatives_reach_as_far(checkpoint: Any) -> None:
    depth, steps = 30, 75
    cost = (_far(depth, first, checkpoint=checkpoint)[-40:] ** 2).sum() + (_far(depth, rows, checkpoint=checkpoint)[-2] ** 2).sum()
    inputs, values = [first, rows, w, n], [_start(depth), _start(depth, WIDE), 0.3, steps]
    gradients = ns.grad(cost, [first, rows, w])
    compiled, plain = (ns.function(inputs, gradients, mode=mode) for mode in (None, "python"))
    for one, other in zip(compiled(*values), plain(*values), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-14)
    step = 1e-6
    value = ns.function(inputs, cost)
    ends = [value(*values[:2], 0.3 + side * step, steps) for side in (1, -1)]
    np.testing.assert_allclose(compiled(*values)[2], (ends[0] - ends[1]) / (2 * step), rtol=1e-5)


def test_how_far_back_does_not_lengthen_the_code(monkeypatch: Any) -> None:
    monkeypatch.setattr("numbascan.backends.load", lambda text, name: None)

    def lines(depth: int) -> list[int]:
        online = ns.Checkpoint(memory="1GB", schedule="online")
        path, ends = _far(depth, rows), _far(depth, rows, checkpoint=online)[-1].sum()
        sums = ns.scan(lambda far, here: far * here, {"input": xs, "taps": [-depth, 0]}, return_updates=False)
        graphs = [path, path[-1], ns.grad(path[-1].sum(), [rows, w]), ns.grad(ends, [rows, w]), sums, ns.grad((sums**2).sum(), xs)]
        graphs.append(ns.Rop(path[-1].sum(), w, nt.constant(1.0)))
        counts = []
        for outputs in graphs:
            f = ns.function([rows, w, n, xs], outputs, on_unused_input="ignore")
            counts.append(f.lower(np.ones((depth, WIDE)), 0.3, 50, np.ones(depth + 50)).source().count("\n"))
        return counts

    assert lines(1000) == lines(100_000)


def test_many_lags_of_which_a_step_reads_few_are_one_ring() -> None:
    taps = list(range(-300, 0))
    lags = ns.scan(lambda *u: u[0] * 0.5 + u[150] - u[-1], None, {"initial": first, "taps": taps}, n_steps=n, return_updates=False)
    f = ns.function([first, n], lags[-1])
    path = list(_start(300))
    for _ in range(700):
        path.append(path[-300] * 0.5 + path[-150] - path[-1])
    np.testing.assert_allclose(f(_start(300), 700), path[-1], rtol=1e-10)
    assert f.memory().total == 301 * 8
    assert f.source().count("\n") < 60
