"""Recurrences that are linear in a few numbers, and extremes, go in chunks of steps; where chunks do not meet, all goes step by step."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.emit.inside import cuda_package
from numbascan.emit.runtime import cuda as runtime

Same = Callable[..., Any]
Agreed = Callable[[], list[bool]]
RNG = np.random.default_rng(8)
A, B = RNG.uniform(-1.0, 1.0, 300), RNG.normal(size=300)
NEAR_ONE = np.exp(0.1 * RNG.normal(size=300))
WHOLE = RNG.integers(-(2**62), 2**62, 300)
ROTATION = np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
RISEN = np.add.accumulate(np.r_[0.3, np.full(200, 0.1)])[-1]
STEPWISE = ns.Mode(target="cuda", without=["prefix"])


def scan(step: Any, *args: Any, **options: Any) -> Any:
    return ns.scan(step, *args, **options, return_updates=False)


def affine(a: Any, b: Any, x: Any, **options: Any) -> Any:
    return scan(lambda a, b, x: a * x + b, [a, b], x, **options)


def product(b: Any, x: Any) -> Any:
    return scan(lambda b, x: x * b, [b], x)


def total(b: Any, x: Any) -> Any:
    return scan(lambda b, x: x + b, [b], x)


def average(b: Any, weight: float) -> Any:
    return scan(lambda b, x: weight * x + (1 - weight) * b, [b], 0.0)


def two_lags(b: Any) -> Any:
    return scan(lambda b, y, x: 1.2 * x - 0.7 * y + b, [b], [{"initial": np.ones(2), "taps": [-2, -1]}])


def rotated(m: Any, b: Any, x: Any) -> Any:
    return scan(lambda b, x, m: m @ x + b, [b], x, [m])


def in_chunks(function: Callable[..., Any], *args: Any) -> int:
    """How many loops go in chunks."""
    return ns.jit(function).lower(*args).source("cuda").count(" = max(64, int(")


def with_at(array: Any, values: dict[int, float]) -> Any:
    changed = array.copy()
    changed[list(values)] = list(values.values())
    return changed


@pytest.fixture
def agreed(runs_kernels: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agreed]:
    """For each chunk since the last question, whether its end was the start of the next one."""
    seen: list[Any] = []
    array = runtime.cuda.device_array

    def recorded(shape: tuple[int, ...], dtype: Any) -> Any:
        seen.append(array(shape, dtype))
        return seen[-1]

    def flags() -> list[bool]:
        found = [bool(one) for memory in seen if memory.dtype == np.bool_ for one in memory.copy_to_host()]
        seen.clear()
        return found

    monkeypatch.setattr(runtime.cuda, "device_array", recorded)
    return flags


PROGRAMS: dict[str, tuple[int, Callable[..., Any], tuple[Any, ...]]] = {
    "rows": (1, affine, (A, B, 0.3)),
    "its end": (1, lambda a, b, x: affine(a, b, x)[-1], (A, B, 0.3)),
    "path and end": (1, lambda a, b, x: (affine(a, b, x), 2 * affine(a, b, x)[-1]), (A, B, 0.3)),
    "gradient": (2, ns.grad(lambda a, b, x: (affine(a, b, x) ** 2).sum(), argnums=(0, 1, 2)), (A, B, 0.3)),
    "gradient of its last steps": (
        1,
        ns.grad(lambda a, b, x: affine(a, b, x, truncate_gradient=70)[-1], argnums=(0, 1)),
        (np.tile(NEAR_ONE, 2), np.tile(B, 2), 0.3),
    ),
    "backwards": (1, lambda a, b, x: affine(a, b, x, go_backwards=True), (A, B, 0.3)),
    "sum": (1, total, (B, 0.3)),
    "product": (1, product, (NEAR_ONE, 0.3)),
    "product of integers, modulo 2**64": (1, product, (2 * WHOLE + 1, 3)),
    "sum of integers, modulo 2**64": (1, total, (WHOLE, 3)),
    "recurrence of integers": (1, lambda a, b: scan(lambda a, b, x: b - a * x, [a, b], 7), (WHOLE, WHOLE[::-1].copy())),
    "narrow integers": (1, total, (WHOLE.astype("int16"), np.int16(3))),
    "unsigned integers": (1, total, (WHOLE.astype("uint32"), np.uint32(3))),
    "unsigned integers, turned": (1, lambda b: scan(lambda b, x: b - x, [b], np.uint64(5)), (WHOLE.astype("uint64"),)),
    "maximum": (1, lambda b, x: scan(np.maximum, [b], x), (B, 0.3)),
    "minimum with NaN": (1, lambda b, x: scan(lambda b, x: np.minimum(x, b), [b], x), (with_at(B, {210: np.nan}), 0.3)),
    "maximum of integers": (1, lambda b, x: scan(np.maximum, [b], x), (WHOLE, -(2**63))),
    "relaxation": (1, lambda b: scan(lambda b, s: (1 - 0.1) * s + 0.1 * b, [b], 0.5), (B,)),
    "sum of three": (1, lambda a, b: scan(lambda a, b, s: b - s * a + 0.1, [a, b], 0.5), (A, B)),
    "turned sign": (1, lambda b: scan(lambda b, s: b - s, [b], 0.5), (B,)),
    "one after the other": (2, lambda a, b, x: scan(lambda y, z: 0.5 * z + y, [affine(a, b, x)], x), (A, B, 0.3)),
    "another output": (1, lambda a, b, x: scan(lambda a, b, x: (a * x + b, np.tanh(x) * a), [a, b], [x, None]), (A, B, 0.3)),
    "a number of steps": (1, lambda b: scan(lambda x, b: 0.9 * x + b, outputs_info=0.5, non_sequences=b, n_steps=2048), (0.3,)),
    "np.cumsum": (1, np.cumsum, (B,)),
    "np.cumsum of integers": (1, np.cumsum, (WHOLE,)),
    "np.cumprod": (1, np.cumprod, (NEAR_ONE,)),
    "np.maximum.accumulate": (1, np.maximum.accumulate, (B,)),
    "np.minimum.accumulate with NaN": (1, np.minimum.accumulate, (with_at(B, {210: np.nan}),)),
    "np.prod": (1, np.prod, (NEAR_ONE,)),
    "gradient of np.cumsum": (2, ns.grad(lambda b: (np.cumsum(b) ** 2).sum()), (B,)),
    "two averages": (2, lambda b: average(b, 0.9) - average(b, 0.99), (B,)),
    "gradient of two averages": (4, ns.grad(lambda b: ((average(b, 0.9) - average(b, 0.99)) ** 2).sum()), (B,)),
    "two states that share a number": (
        2,
        lambda a, b: scan(lambda a, b, x, y: ((c := np.tanh(a) * b) + 0.5 * x, y - c, c), [a, b], [0.1, 0.2, None]),
        (A, B),
    ),
    "two states, one of which does not go in chunks": (
        1,
        lambda b: scan(lambda b, x, y: (0.9 * x + b, np.tanh(y) + b), [b], [0.1, 0.2]),
        (B,),
    ),
    "two states that read each other": (1, lambda b: scan(lambda b, x, y: (0.9 * x + b, 0.5 * y - x), [b], [0.1, 0.2]), (B,)),
    "a vector": (1, lambda b: scan(lambda b, y: np.array([0.9 * y[0] - y[1] + b, 0.2 * y[0]]), [b], np.array([0.1, 0.2])), (B,)),
    "two lags": (1, two_lags, (B,)),
    "its third lag": (1, lambda b: scan(lambda b, x: b - 0.5 * x, [b], [{"initial": np.ones(3), "taps": [-3]}]), (B,)),
    "integers of two lags": (1, lambda b: scan(lambda b, y, x: 3 * x - y + b, [b], [{"initial": WHOLE[:2], "taps": [-2, -1]}]), (WHOLE,)),
    "a matrix": (1, rotated, (ROTATION, np.stack([B, B[::-1]], axis=1), np.array([0.3, 0.4]))),
    "a matrix of three rows": (1, rotated, (0.5 * RNG.normal(size=(3, 3)), RNG.normal(size=(300, 3)), np.ones(3))),
    "gradient through a matrix": (
        2,
        ns.grad(lambda m, b, x: (rotated(m, b, x) ** 2).sum(), argnums=(0, 1, 2)),
        (0.9 * ROTATION, np.stack([B, B[::-1]], axis=1), np.array([0.3, 0.4])),
    ),
    "gradient of two lags": (2, ns.grad(lambda b: (two_lags(b) ** 2).sum()), (B,)),
    "a sum of sums": (1, lambda b: scan(lambda b, x, y: (x + b, y + (x + b)), [b], [0.1, 0.2]), (B,)),
    "products of matrices": (2, lambda m: scan(lambda m, y: m @ y, [m], np.eye(2)), (0.3 * RNG.normal(size=(300, 2, 2)) + ROTATION,)),
    "a state that stands twice": (1, lambda b: scan(lambda b, s: s - 0.1 * (s - b), [b], 0.5), (B,)),
    "a state that is multiplied twice": (1, lambda b: scan(lambda b, s: 0.9 * (0.9 * s + b), [b], 0.5), (B,)),
    "a state that forgets": (1, lambda b: scan(lambda b, x, y: (y + b, b), [b], [0.1, 0.2]), (B,)),
    "elements that do not read each other": (2, lambda b: scan(lambda b, x: 0.9 * x + b, [b], np.ones(2)), (np.stack([B, B[::-1]], 1),)),
    "a sequence with taps": (
        1,
        lambda b: scan(lambda old, new, x: 0.5 * x + old * new, [{"input": b, "taps": [-2, 0]}], 0.5),
        (B,),
    ),
    "a sum that is multiplied": (1, lambda a, b: scan(lambda a, b, s: a * (s + b) + 0.5, [a, b], 0.5), (A, B)),
    "the same of integers": (1, lambda a, b: scan(lambda a, b, s: a * (b + s) - 3, [a, b], 5), (WHOLE, WHOLE[::-1].copy())),
    "a sum of which the start cancels": (1, total, (with_at(B, {0: -1e20}), 1e20)),
    "NaN in what is added": (1, affine, (A, with_at(B, {100: np.nan}), 0.3)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, same: Same) -> None:
    n_loops, function, args = PROGRAMS[name]
    assert in_chunks(function, *args) == n_loops
    with np.errstate(all="ignore"):
        same(function, *args, rtol=1e-11)


@pytest.mark.parametrize("name", PROGRAMS)
def test_chunks_agree(name: str, agreed: Agreed) -> None:
    """None of these goes step by step: that the numbers are right does not show it."""
    n_loops, function, args = PROGRAMS[name]
    ns.jit(function, mode="cuda")(*args)
    flags = agreed()
    assert len(flags) >= 2 * n_loops
    assert all(flags)


def test_draws_in_a_step(runs_kernels: None) -> None:
    stream = nt.random.RandomStream(5)

    def walk(b: Any) -> Any:
        return scan(lambda b, x: 0.9 * x + b * stream.normal(), [b], 0.3)

    assert in_chunks(walk, B) == 1
    found = ns.jit(walk, mode="cuda")(B)
    stream.seed(5)
    np.testing.assert_allclose(found, ns.jit(walk)(B), rtol=1e-11)


@pytest.mark.usefixtures("runs_kernels")
def test_chunks_start_from_what_is_right() -> None:
    """Where the loop rounds away what it adds, each chunk starts from the sum as it should be; products have no more than two roundings."""
    rows = ns.jit(total, mode="cuda")(np.full(300, 1.0), 1e17)
    np.testing.assert_array_equal(rows[::64], 1e17 + 64.0 * np.arange(5))
    assert rows[63] == 1e17
    factors = np.tile(NEAR_ONE, 20)
    exact = list(accumulate(map(Fraction, factors), mul))[:: max(64, math.isqrt(factors.size))]
    rows = ns.jit(product, mode="cuda")(factors, 1.0)[:: max(64, math.isqrt(factors.size))]
    errors = [abs(Fraction(row) / right - 1) for row, right in zip(rows, exact, strict=True)]
    assert max(errors) < 2.0**-52


def matrices_of_a_kind(rng: np.random.Generator, kind: str, n: int, k: int) -> Any:
    if kind == "rotation":
        return np.broadcast_to(np.linalg.qr(rng.normal(size=(k, k)))[0] * rng.choice([0.98, 1.0, 1.01]), (n, k, k)).copy()
    if kind == "lags":
        lags = np.eye(k, k=-1)
        lags[0] = -np.poly(rng.choice([0.99, -0.95, 0.5, 1.0], size=k))[1:]
        return np.broadcast_to(lags, (n, k, k)).copy()
    if kind == "sums of sums":
        return np.tril(np.ones((n, k, k)))
    if kind == "sizes of all kinds":
        return 10.0 ** rng.uniform(-3, 3, size=(n, k, k)) * rng.choice([-1, 0, 1], size=(n, k, k))
    return 0.5 * rng.normal(size=(n, k, k))


@pytest.mark.usefixtures("runs_kernels")
@pytest.mark.parametrize("k", [1, 2, 3])
def test_rows_are_as_near_to_the_exact_ones_as_those_step_by_step(k: int) -> None:
    """Errors of chunks are held against those of the loop so far, and 64 roundings."""

    def path(a: Any, b: Any, x: Any) -> Any:
        def step(a: Any, b: Any, x: Any) -> Any:
            return np.array([sum((a[i, j] * x[j] for j in range(1, k)), a[i, 0] * x[0]) + b[i] for i in range(k)])

        return scan(step, [a, b], x)

    chunks, stepwise = ns.jit(path, mode="cuda"), ns.jit(path, mode=STEPWISE)
    for kind in ("rotation", "lags", "sums of sums", "sizes of all kinds", "any"):
        rng = np.random.default_rng([k, len(kind)])
        a = matrices_of_a_kind(rng, kind, 200, k)
        b, x = rng.normal(size=(200, k)) * 10.0 ** rng.integers(-8, 8, size=(200, 1)), rng.normal(size=k)
        exact: list[list[Fraction]] = [[Fraction(one) for one in x]]
        for matrix, added in zip(a, b, strict=True):
            terms = [[Fraction(one) * state for one, state in zip(row, exact[-1], strict=True)] for row in matrix]
            exact.append([sum(of_row, Fraction(one)) for of_row, one in zip(terms, added, strict=True)])
        right = np.array(exact[1:], float)
        errors = np.abs(stepwise(a, b, x) - right).max(axis=1)
        limit = 2 * np.maximum.accumulate(errors) + 64 * 2.0**-52 * np.abs(right).max(axis=1)
        assert (np.abs(chunks(a, b, x) - right) <= limit[:, None]).all(), kind


@pytest.mark.parametrize("n_steps", [0, 1, 63, 64, 65, 128, 129])
def test_lengths(n_steps: int, same: Same) -> None:
    same(affine, A[:n_steps], B[:n_steps], 0.3)
    same(lambda a, b, x: (affine(a, b, x) * 2).sum(), A[:n_steps], B[:n_steps], 0.3)


def test_no_steps_have_no_last_row(runs_kernels: None) -> None:
    with pytest.raises(IndexError, match="ran 0 steps"):
        ns.jit(PROGRAMS["its end"][1], mode="cuda")(A[:0], B[:0], 0.3)


def test_chunks_longer_than_the_shortest(same: Same) -> None:
    same(total, np.arange(5000), 3)  # 71 chunks of 70 steps, and 30 steps


def test_single_precision(same: Same, agreed: Agreed) -> None:
    rows = same(affine, A.astype("float32"), B.astype("float32"), np.float32(0.3), rtol=1e-5)
    assert np.asarray(rows).dtype == np.float32
    assert all(agreed())
    matrix, added, start = (one.astype("float32") for one in (ROTATION, np.stack([B, B[::-1]], axis=1), np.ones(2)))
    assert np.asarray(same(rotated, matrix, added, start, rtol=1e-4)).dtype == np.float32
    assert all(agreed())


def test_the_last_state_of_a_shared_variable(runs_kernels: None) -> None:
    """The loop of an update goes in chunks, and the next call starts where it ended."""
    state, b = ns.shared(np.float64(0.5)), nt.dvector("b")
    rows, updates = ns.scan(lambda b, x: 0.9 * x + b, [b], state)
    ended = ns.function([b], rows, updates={**updates, state: rows[-1]}, mode="cuda")
    np.testing.assert_allclose(
        [*ended(B), *ended(B)], ns.jit(lambda b: scan(lambda b, x: 0.9 * x + b, [b], 0.5))(np.tile(B, 2)), rtol=1e-11
    )


HARD: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "an unstable fixed point": (affine, (np.full(300, 2.0), np.full(300, -1.0), 1.0)),
    "one that is unstable over many chunks": (affine, (np.full(2000, 1.03125), np.full(2000, -0.03125), 1.0)),
    "what chunks change grows later": (affine, (np.repeat([1.0, 2.0], [200, 400]), np.repeat([0.1, -RISEN], [200, 400]), 0.3)),
    "what a matrix changes grows later": (
        lambda a, b: scan(lambda a, b, x, y: (a * x - (a - 1) * y, y + b), [a, b], [0.3, 0.3]),
        (np.repeat([0.0, 2.0], [201, 400]), np.repeat([0.1, 0.0], [200, 401])),
    ),
    "a matrix that is lost and found": (
        lambda a, b: scan(lambda a, b, x, y: (a * y, b * x), [a, b], [1e300, 1e300]),
        (with_at(np.ones(300), {3: 1e-200, 5: 1e-200, 7: 1e200}), with_at(np.ones(300), {3: 1e-200, 5: 1e-200, 7: 1e200})),
    ),
    "a matrix that overflows": (
        lambda a: scan(lambda a, x, y: (a * x + y, a * y - x), [a], [1e-300, 1e-300]),
        (with_at(np.ones(300), {3: 1e200, 4: 1e200}),),
    ),
    "a vector that is rounded": (
        lambda b: scan(lambda b, x, y: (((0.5 * y + 2.0**20) - 2.0**20) + b, x), [b], [0.1, 0.2]),
        (B,),
    ),
    "factors that are lost together": (product, (with_at(np.ones(300), {3: 1e-200, 4: 1e-200}), 1e300)),
    "factors that grow back": (product, (with_at(np.ones(300), {3: 1e-200, 4: 1e-200, 10: 1e200}), 1e300)),
    "a factor of which bits are lost": (product, (with_at(np.ones(300), {3: 1.1e-160, 4: 1.3e-160}), 1e300)),
    "factors that overflow": (product, (with_at(np.ones(300), {3: 1e200, 4: 1e200}), 1e-300)),
    "a state that overflows where its chunk does not": (total, (with_at(np.zeros(300), {70: 1e308, 80: -1e308}), 1.7e308)),
    "a chunk that overflows where its state does not": (total, (with_at(np.zeros(300), {70: 1.7e308, 71: 1e308}), -1.7e308)),
    "a sum that overflows on the way": (total, (np.where(np.arange(300) % 2, -1e308, 1e308), 1e308)),
    "infinity in a factor": (affine, (with_at(A, {130: np.inf}), B, 0.3)),
    "NaN in a factor": (affine, (with_at(A, {100: np.nan}), B, 0.3)),
    "infinity times zero": (affine, (with_at(A, {100: 0.0}), with_at(B, {90: np.inf}), 0.3)),
    "a sum of which a chunk cancels": (total, (with_at(np.where(np.arange(300) < 201, 0.0, B), {70: 1e20, 200: -1e20}), 0.0)),
    "rounded to 33 bits": (lambda b, x: scan(lambda b, x: ((x + 2.0**20) - 2.0**20) + b, [b], x), (B, 0.3)),
    "rounded to whole numbers": (lambda b, x: scan(lambda b, x: ((x + 2.0**52) - 2.0**52) + b, [b], x), (B, 0.3)),
}


@pytest.mark.parametrize("name", HARD)
def test_numbers_on_which_chunks_would_fail(name: str) -> None:
    """To the bit what the loop gives step by step."""
    function, args = HARD[name]
    assert in_chunks(function, *args) == 1
    with np.errstate(all="ignore"):
        expected = ns.jit(function, mode=STEPWISE)(*args)
        np.testing.assert_array_equal(ns.jit(function, mode="cuda")(*args), expected)


SIGNED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a product": (product, (with_at(np.ones(300), {70: 0.0}), -1.0)),
    "a product that becomes too small": (product, (np.full(3000, 0.4), -1.0)),
    "a sum": (total, (np.full(300, -0.0), -0.0)),
    "products and sums": (affine, (with_at(np.ones(300), {190: 0.0}), with_at(np.full(300, -0.0), {100: -7.0}), 5.0)),
    "a minimum": (lambda b, x: scan(lambda b, x: np.minimum(x, b), [b], x), (with_at(np.ones(300), {70: -0.0}), 0.0)),
}


@pytest.mark.usefixtures("runs_kernels")
@pytest.mark.parametrize("name", SIGNED)
def test_zeros_keep_their_sign(name: str) -> None:
    function, args = SIGNED[name]
    assert in_chunks(function, *args) == 1
    found, expected = (ns.jit(function, mode=mode)(*args) for mode in ("cuda", STEPWISE))
    assert (expected == 0).any()
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_products_keep_the_sign_of_zero_in_chunks(agreed: Agreed) -> None:
    function, args = SIGNED["a product"]
    ns.jit(function, mode="cuda")(*args)
    assert all(agreed())


def test_small_numbers_agree(same: Same, agreed: Agreed) -> None:
    """Where roundings no longer shrink with the number, chunks may differ by as much: decays do not go step by step."""
    rows = ns.jit(product, mode="cuda")(np.full(3000, 0.7), 1.0)
    expected = np.multiply.accumulate(np.full(3000, 0.7))
    np.testing.assert_allclose(rows, expected, rtol=1e-12, atol=1e-320)
    assert all(agreed())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_what_roundings_take_off_are_not_joined_to_products(dtype: str, kernels: list[Any]) -> None:
    decay, start = np.dtype(dtype).type([0.99, 0.0])
    ns.jit(lambda b: scan(lambda b, x: decay * x + b, [b], start), mode="cuda")(np.tile(B, 10).astype(dtype))
    for one in kernels[:2]:  # what chunks make of any state, and the states at their starts
        text = cuda_package.assembly(one.function, one.types)
        assert re.search(r"\badd\.rn\.f", text)
        assert not re.search(r"\b(add|mul)\.f", text)  # without .rn, which are joined


def test_the_largest_matrix_fits_into_registers(same: Same, kernels: list[Any], request: pytest.FixtureRequest) -> None:
    args = 0.4 * RNG.normal(size=(4, 4)), RNG.normal(size=(300, 4)), np.ones(4)
    assert in_chunks(rotated, *args) == 1
    same(rotated, *args, rtol=1e-11)
    spilt = [one.spilt for kernel in kernels for one in kernel.statistics]
    assert bool(spilt) == request.config.getoption("--compile-kernels")
    assert not any(spilt)


@pytest.mark.usefixtures("runs_kernels")
def test_two_runs_give_the_same_bits() -> None:
    run = ns.jit(affine, mode="cuda")
    np.testing.assert_array_equal(run(A, B, 0.3), run(A, B, 0.3))


def one_of_two(a: Any, b: Any) -> Any:
    return scan(lambda a, b, x: nt.where(x > 0, a * x, b), [a, b], 0.5)


def gathered(b: Any, k: Any) -> Any:
    return scan(lambda k, x, b: 0.5 * x + b[k], [k], 0.5, [b])


SEQUENTIAL: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "until": (lambda a, b, x: scan(lambda a, b, x: (a * x + b, ns.until(x > 2.5)), [a, b], x), (A, B, 0.3)),
    "two states, one of which is squared": (lambda b: scan(lambda b, x, y: (0.5 * x + y, y * y * b), [b], [0.1, 0.2]), (B,)),
    "many sums that one result reads": (
        lambda b: scan(lambda b, *x: (*(one + b * k for k, one in enumerate(x)), sum(x)), [b], [*(0.1 * np.arange(17)), None])[-1],
        (B,),
    ),
    "a matrix of many numbers": (rotated, (0.3 * RNG.normal(size=(5, 5)), RNG.normal(size=(300, 5)), np.ones(5))),
    "a square": (lambda x: scan(lambda x: 3.7 * x * (1 - x), outputs_info=x, n_steps=3000), (0.3,)),
    "a choice": (one_of_two, (A, B)),
    "a cast of the state": (lambda b, x: scan(lambda b, x: x.astype("float32").astype("float64") + b, [b], x), (B, 0.3)),
    "indices that may be wrong": (gathered, (B, np.arange(300) % 7)),
    "a state of truths": (lambda b: scan(lambda b, x: np.logical_or(x, b > 2), [b], np.bool_(False)), (B,)),
    "a complex state": (lambda b: scan(lambda b, x: 0.5j * x + b, [b], 0.5 + 0j), (B,)),
    "every third row": (lambda b: scan(lambda b, x: 0.5 * x + b, [b], 0.5)[::3], (B,)),
    "its last rows": (lambda a, b, x: affine(a, b, x)[-3:], (A, B, 0.3)),
    "few steps": (lambda x: scan(lambda x: 0.5 * x + 1, outputs_info=x, n_steps=200), (0.3,)),
}


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_others_go_step_by_step(name: str, same: Same) -> None:
    function, args = SEQUENTIAL[name]
    assert in_chunks(function, *args) == 0
    same(function, *args)


def test_lanes_go_step_by_step(same: Same) -> None:
    lanes = ns.vmap(affine)
    args = A[:128].reshape(2, 64), B[:128].reshape(2, 64), np.array([0.3, 0.4])
    assert in_chunks(lanes, *args) == 0
    same(lanes, *args)


def test_checks_of_every_step_go_step_by_step() -> None:
    checked = ns.jit(affine, mode=ns.Mode(target="cuda", check_finite=True))
    assert "chunk_steps" not in checked.lower(A, B, 0.3).source("cuda")


def test_left_out_by_its_name() -> None:
    assert "chunk_steps" not in ns.jit(affine, mode=STEPWISE).lower(A, B, 0.3).source("cuda")
