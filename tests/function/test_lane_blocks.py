"""Lanes that share the matrices of a loop run in blocks: the same numbers, and the bits of a lane whatever lanes are beside it."""

from __future__ import annotations

import importlib.util
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan import lax

UNITS, STEPS = 24, 5
ALONE = ns.Mode(without=["lane_blocks"])
LANE_BY_LANE = ns.Mode("python", without=["lane_blocks"])
rng = np.random.default_rng(0)
W, U = (rng.normal(size=(UNITS, UNITS)) / UNITS**0.5 for _ in range(2))
B = rng.normal(size=UNITS)


def lanes(n: int, *shape: int, dtype: str = "float64") -> Any:
    return np.random.default_rng(1).normal(size=(n, *(shape or (STEPS, UNITS)))).astype(dtype)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def rnn(xs: Any, W: Any, U: Any, b: Any) -> Any:
    return lax.scan(lambda h, x: (np.tanh(x @ W + h @ U + b),) * 2, np.zeros(UNITS, xs.dtype), xs)[1]


def gru(xs: Any, W: Any, U: Any, b: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        z, r = sigmoid(x @ W + h @ U), sigmoid(W @ x - U @ h + b)
        new = (1 - z) * h + z * np.tanh(x @ U + (r * h) @ W)
        return new, new[:3] * 2.0

    return lax.scan(step, xs[0] * 0.1, xs)


def lstm(xs: Any, W: Any, U: Any, b: Any) -> Any:
    def step(state: Any, x: Any) -> Any:
        h, c = state
        i, f = np.split(x @ W + h @ U + b, 2)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(i)
        return (np.concatenate([c, np.tanh(c)]), c), c.sum()

    return lax.scan(step, (np.zeros(UNITS, xs.dtype), np.zeros(UNITS // 2, xs.dtype)), xs)[1]


def norm(xs: Any, W: Any, U: Any, b: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        a = x @ W + h @ U
        a = (a - a.mean(keepdims=True)) / np.sqrt(a.var(dtype=a.dtype) + 1e-5) * b
        return np.where(a > 0, a, 0.1 * a), (a.argmax(), a.max())

    return lax.scan(step, np.zeros(UNITS, xs.dtype), xs)[1]


def attention(xs: Any, W: Any, U: Any, b: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        score = (h @ W + x) @ U.T
        part = np.exp(score - score.max())
        h = np.tanh((part / part.sum()) @ U + x * b)
        return h, h[::-1].reshape(4, -1).T

    return lax.scan(step, np.zeros(UNITS, xs.dtype), xs)[1]


def with_taps(xs: Any, W: Any, U: Any, b: Any) -> Any:
    """Taps of a sequence and of a state, a state that is the same for all lanes, and one that is the lane's from the second step on."""

    def step(x: Any, before: Any, y: Any, z: Any, shared: Any, late: Any, W: Any, U: Any) -> Any:
        return np.tanh(before @ W + z @ U + y), shared @ W * 0.5, late + x * shared

    start = nt.zeros((2, UNITS), b.dtype) + b
    outputs = [{"initial": start, "taps": [-2, -1]}, b, nt.zeros((UNITS,), b.dtype)]
    return ns.scan(step, {"input": xs, "taps": [0, -1]}, outputs, [W, U], return_updates=False)


def nested(xs: Any, W: Any, U: Any, b: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda k, h: np.tanh(h @ U + x * k), h), (h @ W)[None, :]

    return lax.scan(step, b, xs)[1]


def ends(xs: Any, W: Any, U: Any, b: Any) -> Any:
    """The states behind the last step, where only the run knows whether there is one; one begins with a plain number."""
    xs = np.concatenate([xs] * 5)[:-1]

    def step(state: Any, x: Any) -> Any:
        h, total = state
        h = np.tanh(x @ W + h @ U + b)
        return (h, total + np.log(1 + h @ h)), h[0]

    (h, total), seen = lax.scan(step, (b, 0.0), xs)
    return h, total, seen.sum(), (seen**2).mean()


CELLS: dict[str, Callable[..., Any]] = {
    "rnn": rnn, "gru": gru, "lstm": lstm, "norm": norm, "attention": attention, "taps": with_taps, "nested": nested, "ends": ends,
}  # fmt: skip


def over(cell: Callable[..., Any]) -> Callable[..., Any]:
    return lambda xs, W, U, b: ns.vmap(lambda one: cell(one, W, U, b))(xs)


def leaves(nest: Any) -> list[Any]:
    if isinstance(nest, (tuple, list)):
        return [leaf for part in nest for leaf in leaves(part)]
    return [np.asarray(nest)]


def is_in_blocks(run: Any) -> bool:
    return "row_products" in run.source()


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("n", [6, 67])
def test_blocks_give_what_lanes_give_one_by_one(name: str, n: int) -> None:
    xs = lanes(n)
    run = ns.jit(over(CELLS[name]))
    found, plain = leaves(run(xs, W, U, B)), leaves(ns.jit(over(CELLS[name]), mode=LANE_BY_LANE)(xs, W, U, B))
    assert is_in_blocks(run)
    for k in (0, n - 1):
        for one, alone in zip(found, leaves(ns.jit(CELLS[name], mode="python")(xs[k], W, U, B)), strict=True):
            np.testing.assert_allclose(one[k], alone, rtol=1e-10, atol=1e-12)
    for one, other in zip(found, plain, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def summed(cell: Callable[..., Any]) -> Callable[..., Any]:
    """A number of all that the lanes give, which weighs each lane in its own way."""

    def cost(xs: Any, W: Any, U: Any, b: Any) -> Any:
        results = [one for one in leaves_of(over(cell)(xs, W, U, b)) if one.dtype == "float64"]
        weights = [np.cos(np.arange(one.shape[0])).reshape(-1, *[1] * (one.ndim - 1)) for one in results]
        return sum((np.sin(one) * weight).sum() for one, weight in zip(results, weights, strict=True))

    return cost


def leaves_of(nest: Any) -> list[Any]:
    return [leaf for part in nest for leaf in leaves_of(part)] if isinstance(nest, (tuple, list)) else [nest]


@pytest.mark.parametrize("n", [6, 19])
@pytest.mark.parametrize("name", CELLS)
def test_derivatives_are_those_of_lanes_one_by_one(name: str, n: int) -> None:
    """6 lanes are one block; of 19 the last one fills the last block."""
    args = (lanes(n), W, U, B)
    f = ns.value_and_grad(summed(CELLS[name]), argnums=[0, 1, 2, 3])
    run = ns.jit(f)
    value, slopes = run(*args)
    other, plain = ns.jit(f, mode=ALONE)(*args)
    assert is_in_blocks(run)
    np.testing.assert_allclose(value, other, rtol=1e-10)
    for slope, alone in zip(slopes, plain, strict=True):
        np.testing.assert_allclose(slope, alone, rtol=1e-9, atol=1e-11)
    tangents = tuple(np.random.default_rng(2).normal(size=np.shape(one)) for one in args)
    pushed = ns.jit(lambda *args: ns.jvp(summed(CELLS[name]), args, tangents))(*args)[1]
    np.testing.assert_allclose(pushed, sum((slope * tangent).sum() for slope, tangent in zip(slopes, tangents, strict=True)), rtol=1e-9)


def test_second_derivatives() -> None:
    def curved(b: Any) -> Any:
        return summed(rnn)(lanes(6), W, U, b)

    step = 1e-5
    found = ns.jit(ns.hessian(curved))(B)
    slope = ns.jit(ns.grad(curved))
    column = (slope(B + step * np.eye(UNITS)[3]) - slope(B - step * np.eye(UNITS)[3])) / (2 * step)
    np.testing.assert_allclose(found[3], column, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "dtype"), [("gru", "float64"), ("norm", "float32"), ("attention", "float64"), ("taps", "float32"), ("ends", "float64")]
)
def test_the_bits_of_a_lane_do_not_depend_on_others(name: str, dtype: str) -> None:
    """Alone, among few whose number a kernel might know, in one block, in several, and in many blocks of one.

    The cost adds up alone: functions of an array whose length a kernel knows are those of numbers, which have other bits.
    """
    cell, args = CELLS[name], tuple(one.astype(dtype) for one in (W, U, B))
    xs = lanes(130, dtype=dtype)
    run = ns.jit(over(cell))
    slope = ns.jit(ns.grad(lambda xs, *args: sum(one.sum() for one in leaves_of(over(cell)(xs, *args)) if one.dtype == dtype)))
    whole, slopes = leaves(run(xs, *args)), slope(xs, *args)
    assert is_in_blocks(run)
    for first, last in ((5, 6), (3, 10), (7, 24), (20, 84), (2, 129)):
        part = leaves(run(xs[first:last], *args))
        assert [one.tobytes() for one in part] == [one[first:last].tobytes() for one in whole]
        assert slope(xs[first:last], *args).tobytes() == slopes[first:last].tobytes()
    threaded = leaves(ns.jit(over(cell), mode=ns.Mode(threads=1))(xs, *args))
    assert [one.tobytes() for one in threaded] == [one.tobytes() for one in whole]


def test_no_lanes_and_one() -> None:
    run = ns.jit(lambda xs: over(rnn)(xs, W, U, B))
    assert run(np.zeros((0, STEPS, UNITS))).shape == (0, STEPS, UNITS)
    np.testing.assert_allclose(run(lanes(1))[0], rnn(lanes(1)[0], W, U, B), rtol=1e-10)
    slope = ns.jit(ns.grad(lambda W, xs: over(rnn)(xs, W, U, B).sum()))
    assert not slope(W, np.zeros((0, STEPS, UNITS))).any()
    of_lanes = ns.jit(ns.grad(lambda xs: np.sin(over(rnn)(xs, W, U, B)).sum()))
    assert of_lanes(np.zeros((0, STEPS, UNITS))).shape == (0, STEPS, UNITS)


def test_numbers_of_lanes_that_differ_are_refused() -> None:
    run = ns.jit(ns.vmap(lambda xs, h: lax.scan(lambda h, x: (np.tanh(x @ W + h @ U), None), h, xs)[0]))
    assert run(lanes(20), lanes(20, UNITS)).shape == (20, UNITS)
    for a, b in ((20, 21), (21, 20), (20, 1), (1, 20), (0, 20)):
        with pytest.raises(ValueError, match="lanes"):
            run(lanes(a), lanes(b, UNITS))
    with pytest.raises(ValueError, match="xs"):
        run(lanes(20), lanes(21, UNITS))


def test_lengths_that_do_not_fit_name_the_product() -> None:
    run = ns.jit(lambda xs, W: over(rnn)(xs, W, U, B))
    with pytest.raises(ValueError, match="matrix product"):
        run(lanes(20), np.ones((UNITS + 1, UNITS)))


LEFT: dict[str, Callable[..., Any]] = {
    "until": lambda xs: lax.while_loop(lambda h: h.sum() < 50, lambda h: np.abs(h @ U) + 1, xs[0])[:2],
    "a place of the lane": lambda xs: lax.scan(lambda h, x: (np.tanh(x @ W + h @ U), h[abs(x[0]).astype(int)]), B, xs)[1],
    "a length of the lane": lambda xs: lax.fori_loop(0, abs(xs[0, 0] * 5).astype(int), lambda k, h: np.tanh(h @ U), B),
    "a branch": lambda xs: lax.scan(lambda h, x: (nt.ifelse(x[0] > 0, np.tanh(h @ U), h), None), B, xs)[0],
    "a system": lambda xs: lax.scan(lambda h, x: (np.linalg.solve(U, np.tanh(x @ W + h @ U)), None), B, xs)[0],
    "what may fail": lambda xs: lax.scan(lambda h, x: (np.tanh(h @ U) + 2 ** (x.astype(int) + 9), None), B, xs)[0],
    "a small matrix": lambda xs: lax.scan(lambda h, x: (np.tanh(x[:3] + h @ np.eye(3)), None), B[:3], xs)[0],
    "integers": lambda xs: lax.scan(lambda h, x: (h @ np.ones((UNITS, UNITS), int) % 7, None), np.arange(UNITS), xs)[0],
    "complex numbers": lambda xs: lax.scan(lambda h, x: (h @ (U * 1j), None), B * 1j, xs)[0],
    "a checkpoint": lambda xs: ns.scan(lambda x, h: np.tanh(x @ W + h @ U), xs, B, checkpoint=2, return_updates=False),
}


@pytest.mark.parametrize("what", LEFT)
def test_what_has_no_rule_runs_lane_by_lane(what: str) -> None:
    run, plain = (ns.jit(ns.vmap(LEFT[what]), mode=mode) for mode in (None, LANE_BY_LANE))
    xs = lanes(6)
    np.testing.assert_allclose(run(xs), plain(xs), rtol=1e-10, atol=1e-12)
    assert not is_in_blocks(run)


def test_lanes_draw_apart_in_blocks_too() -> None:
    def compiled(mode: Any) -> Any:
        stream, generator = nt.random.RandomStream(3), np.random.default_rng(0)

        def step(h: Any, x: Any) -> Any:
            return np.tanh(x @ W + h @ U) + stream.normal(size=UNITS), generator.normal(size=2)

        return ns.jit(ns.vmap(lambda one: lax.scan(step, B, one)), mode=mode)

    xs, runs = np.zeros((6, STEPS, UNITS)), [compiled(mode) for mode in (None, ALONE, LANE_BY_LANE)]
    found = [leaves(run(xs)) for run in runs]
    assert [is_in_blocks(run) for run in runs[:2]] == [True, False]
    for other in found[1:]:
        for one, alone in zip(found[0], other, strict=True):
            np.testing.assert_allclose(one, alone, rtol=1e-10)
    assert len(np.unique(found[0][1])) == 2 * 6 * STEPS


@pytest.mark.parametrize("mode", [ALONE, ns.Mode(check_finite=True)])
def test_modes_that_go_without(mode: ns.Mode) -> None:
    run = ns.jit(over(rnn), mode=mode)
    run(lanes(6), W, U, B)
    assert not is_in_blocks(run)


def test_the_lane_of_what_is_not_finite_is_told() -> None:
    xs = lanes(20)
    xs[7, 2, 0] = np.nan
    with pytest.raises(FloatingPointError, match="lane 7"):
        ns.jit(over(rnn), mode=ns.Mode(check_finite=True))(xs, W, U, B)


def test_lanes_of_lanes_and_of_scans() -> None:
    """Blocks within lanes, and within the steps of a loop."""
    xs = lanes(3, 4, STEPS, UNITS)
    run = ns.jit(ns.vmap(lambda some: over(rnn)(some, W, U, B)))
    np.testing.assert_allclose(run(xs), np.stack([ns.jit(over(rnn))(some, W, U, B) for some in xs]), rtol=1e-12)

    def step(some: Any, W: Any) -> Any:
        return W - 0.01 * ns.grad(lambda W: (over(rnn)(some, W, U, B) ** 2).mean())(W)

    found = ns.scan(step, xs, W, return_updates=False)
    plain = ns.scan(step, xs, W, return_updates=False, mode=ALONE)
    np.testing.assert_allclose(found, plain, rtol=1e-10)


def test_a_batch_gives_the_bits_of_the_whole() -> None:
    xs = lanes(40)
    whole = ns.jit(over(rnn))(xs, W, U, B)
    found = ns.batch(lambda xs: rnn(xs, W, U, B), {"xs": xs}, chunk=7, progress=False)
    assert np.asarray(found).tobytes() == np.asarray(whole).tobytes()


def test_blocks_are_exported_and_pickled(tmp_path: Path) -> None:
    xs = lanes(20)
    run = ns.jit(over(gru))
    expected = leaves(run(xs, W, U, B))
    run.export(tmp_path / "cells.py")
    spec = importlib.util.spec_from_file_location("cells", tmp_path / "cells.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for one, other in zip(leaves(getattr(module, module.__all__[0])(xs, W, U, B)), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)
    again = pickle.loads(pickle.dumps(ns.jit(ns.vmap(of_outside))))
    assert again(xs).tobytes() == ns.jit(ns.vmap(of_outside))(xs).tobytes()


def of_outside(xs: Any) -> Any:
    return rnn(xs, W, U, B)


def test_an_infinite_slope_is_that_of_its_lane_wherever_it_stands() -> None:
    def cell(xs: Any) -> Any:
        return lax.scan(lambda h, x: (np.sqrt(x @ abs(W)), None), np.zeros(UNITS), xs)[0]

    slope = ns.jit(ns.grad(lambda xs: ns.vmap(cell)(xs).sum()))
    xs = np.ones((20, 2, UNITS))
    xs[:, 1] = 0.0
    for n in (8, 16, 17, 19):
        assert np.isposinf(slope(xs[:n])[:, -1]).all()
