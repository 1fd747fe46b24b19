"""Loops give on the GPU what they give in plain NumPy: all kinds of ports, lanes, gradients, draws, ends, errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from structure_loops import loop_of_every_kind

import numbascan as ns
import numbascan.tensor as nt
from numbascan.emit.inside import cuda_package
from numbascan.modes import Mode

Same = Callable[..., Any]
RNG = np.random.default_rng(5)
Y, R, U = RNG.normal(size=(40, 3)), np.linspace(20.0, 30.0, 40), RNG.normal(size=50)
MATRIX = RNG.normal(size=(50, 50))


def scan(step: Any, *args: Any, **options: Any) -> Any:
    return ns.scan(step, *args, **options, return_updates=False)


def slope(y: Any, r: Any) -> Any:
    return np.array([10.0 * (y[1] - y[0]), y[0] * (r - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])


def midpoint(y: Any, r: Any) -> Any:
    return y + 0.01 * slope(y + 0.005 * slope(y, r), r)


def path(y: Any, r: Any, n_steps: Any = 20) -> Any:
    return scan(midpoint, outputs_info=y, non_sequences=r, n_steps=n_steps)


def heated(u: Any) -> Any:
    return u + 0.1 * (np.roll(u, 1) - 2 * u + np.roll(u, -1))


def in_pairs(u: Any) -> Any:
    return scan(lambda u: u * 0.5 + u.reshape(-1, 2).sum(axis=1).max(), outputs_info=u, n_steps=3)


def transposed(a: Any, r: Any) -> Any:
    return a.reshape(-1).reshape(a.shape[1], a.shape[0]) @ a / r


def solved(a: Any, b: Any) -> Any:
    return scan(lambda b, a: np.linalg.solve(a, b) + np.sin(b), outputs_info=b, non_sequences=a, n_steps=3)


def collatz(x: Any) -> Any:
    following = np.where(x % 2 == 0, x // 2, 3 * x + 1)
    return following, ns.until(np.equal(following, 1))


def second_order(x: Any, a_2: Any, a_1: Any, b_1: Any) -> Any:
    return 0.5 * a_1 - 0.3 * a_2 + x, 0.9 * b_1 + a_1, a_1 * b_1


def filtered(x: Any, a: Any, b: Any) -> Any:
    return scan(second_order, x, [{"initial": a, "taps": [-3, -1]}, b, None])


def ordered(y: Any, r: Any) -> Any:
    return (scan(lambda y: np.sort(np.sin(y * r))[::-1] + np.median(y) * y[np.argsort(y)], outputs_info=y, n_steps=5)[-1] ** 2).sum()


def searched(us: Any, table: Any) -> Any:
    return scan(lambda u, s: np.searchsorted(table, u + 0.1 * s, side="right"), sequences=us, outputs_info=np.int64(0))


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "one loop": (path, (Y[0], 25.0)),
    "its end": (lambda y, r: path(y, r)[-1], (Y[0], 25.0)),
    "its gradient": (ns.grad(lambda y, r: (path(y, r) ** 2).mean(), argnums=(0, 1)), (Y[0], 25.0)),
    "lanes": (ns.vmap(path), (Y, R)),
    "ends of lanes": (ns.vmap(lambda y, r: path(y, r)[-1]), (Y, R)),
    "every other row of lanes": (ns.vmap(lambda y, r: path(y, r)[1::2]), (Y, R)),
    "gradients of lanes": (ns.vmap(ns.grad(lambda y, r: (path(y, r)[-1] ** 2).mean(), argnums=(0, 1))), (Y, R)),
    "gradient of what lanes share": (ns.grad(lambda r, y: (ns.vmap(lambda y: path(y, r)[-1])(y) ** 2).mean()), (28.0, Y)),
    "second derivative": (ns.hessian(lambda y: (path(y, 25.0, 5)[-1] ** 2).sum()), (Y[0],)),
    "a short table that is searched": (ns.vmap(searched, in_axes=(0, None)), (U.reshape(10, 5), np.array([-1.0, 0.0, 0.5, 0.7]))),
    "short rows that are sorted": (ns.vmap(ns.value_and_grad(ordered)), (U.reshape(10, 5), R[:10])),
    "taps": (filtered, (U, Y[0], 0.3)),
    "taps in lanes": (ns.vmap(filtered, in_axes=(None, 0, 0)), (U[:9], Y, R)),
    "gradient of taps": (ns.grad(lambda x, a, b: sum((o**2).sum() for o in filtered(x, a, b)), argnums=(0, 1, 2)), (U, Y[0], 0.3)),
    "until": (lambda x: scan(collatz, outputs_info=x, n_steps=1000), (27,)),
    "until in lanes": (ns.vmap(lambda x: scan(collatz, outputs_info=x, n_steps=1000)[-1]), (np.arange(1, 40),)),
    "backwards": (lambda x: scan(lambda x, s: s * 0.9 + x, x, 0.0, go_backwards=True), (U,)),
    "a wide state": (lambda u: scan(heated, outputs_info=u, n_steps=10)[-1], (U,)),
    "a wide state beside its last element": (
        ns.value_and_grad(lambda u: (scan(lambda u: u - 0.1 * (u - u[-1:]), outputs_info=u, n_steps=5)[-1] ** 2 * u[:1]).sum()),
        (U,),
    ),
    "slopes that a mask hides": (
        ns.grad(lambda u: np.where(u > 0, scan(lambda v: np.sqrt(v), outputs_info=np.sqrt(u), n_steps=3)[-1], 0.0)[::-1].sum()),
        (np.where(U > 0, U, 0.0),),
    ),
    "paths of a wide state": (lambda u: scan(heated, outputs_info=u, n_steps=10), (U,)),
    "last rows of a wide state": (lambda u: scan(heated, outputs_info=u, n_steps=10)[-3:], (U,)),
    "a wide state of long ago": (
        lambda u: scan(lambda a, b: np.tanh(np.roll(b, 1)) - a, outputs_info=[{"initial": u, "taps": [-20, -1]}], n_steps=25)[-2:],
        (RNG.normal(size=(20, 50)),),
    ),
    "gradient of a wide state": (ns.grad(lambda u: (scan(lambda u: np.tanh(heated(u)), outputs_info=u, n_steps=5) ** 2).sum()), (U,)),
    "a wide state until its norm is small": (
        lambda u: scan(lambda u: ((v := heated(u)), ns.until(np.sqrt((v * v).sum()) < 5.0)), outputs_info=u, n_steps=50),
        (U,),
    ),
    "wide lanes": (ns.vmap(lambda u: scan(heated, outputs_info=u, n_steps=5)), (np.stack([U, -U, 2 * U] * 13),)),
    "gradients of wide lanes": (
        ns.vmap(ns.grad(lambda u: (scan(lambda u: np.tanh(heated(u)), outputs_info=u, n_steps=5) ** 2).sum())),
        (np.stack([U, -U, 2 * U] * 13),),
    ),
    "wide lanes in another shape": (ns.vmap(in_pairs), (np.stack([U, -U, 2 * U] * 13),)),
    "gradients of wide lanes in another shape": (ns.vmap(ns.grad(lambda u: (in_pairs(u) ** 2).sum())), (np.stack([U, -U, 2 * U] * 13),)),
    "gradients of wide lanes whose products are in another shape": (
        ns.vmap(ns.grad(lambda r, a: (scan(transposed, outputs_info=a, non_sequences=r, n_steps=2) ** 2).sum())),
        (R[:33], RNG.normal(size=(33, 17, 17))),
    ),
    "a matrix": (lambda u, a: scan(lambda u, a: np.tanh(a @ u), outputs_info=u, non_sequences=a, n_steps=5), (U, MATRIX)),
    "a matrix from the right": (lambda u, a: scan(lambda u, a: np.tanh(u @ a), outputs_info=u, non_sequences=a, n_steps=5), (U, MATRIX)),
    "gradient of a matrix": (
        ns.grad(lambda u, a: scan(lambda u, a: np.tanh(a @ u), outputs_info=u, non_sequences=a, n_steps=5).sum(), argnums=(0, 1)),
        (U, MATRIX / 7),
    ),
    "states that meet element by element": (
        lambda u: scan(lambda u, v: (np.tanh(u * v), u - 0.1 * v), outputs_info=[u, -u], n_steps=5),
        (U,),
    ),
    "power iteration": (
        lambda u, a: scan(lambda u, a: (w := a @ u) / np.sqrt((w * w).sum()), outputs_info=u, non_sequences=a, n_steps=6),
        (U, MATRIX),
    ),
    "elements that are set": (
        lambda u: scan(lambda t, u: nt.set_subtensor(u[t], u[t - 1] * 0.5 + u.sum() * 0.01), np.arange(1, 9), u)[-1],
        (U,),
    ),
    "a choice": (
        ns.vmap(lambda y, r: scan(lambda y: nt.ifelse(y.sum() > 0.0, slope(y, r) * 0.01 + y, y * 0.5), outputs_info=y, n_steps=6)),
        (Y, R),
    ),
    "loops in loops": (
        ns.vmap(lambda u: scan(lambda s: scan(lambda x, t: 0.9 * t + x, u, s)[-1], outputs_info=0.1, n_steps=4)),
        (np.stack([U[:7]] * 33) * R[:33, None],),
    ),
    "lanes in a loop": (
        lambda u: scan(lambda u: ns.vmap(lambda x: scan(lambda s: s * 0.9, outputs_info=x, n_steps=3)[-1])(u), outputs_info=u, n_steps=4),
        (U,),
    ),
    "small systems": (
        ns.vmap(lambda a, b: np.linalg.solve(a + 4.0 * np.eye(5), b)),
        (RNG.normal(size=(33, 5, 5)), RNG.normal(size=(33, 5))),
    ),
    "a system of the same matrix at every step": (solved, (RNG.normal(size=(6, 6)) + 6 * np.eye(6), U[:6])),
    "gradients of such systems, the matrix shared by lanes": (
        ns.vmap(ns.grad(lambda a, b: (solved(a, b) ** 2).sum(), argnums=(0, 1)), in_axes=(None, 0)),
        (RNG.normal(size=(8, 8)) + 8 * np.eye(8), RNG.normal(size=(33, 8))),
    ),
    "sums": (lambda a: [(a * a).sum(), a.max(), a.argmax(), (a > 0).sum(), a.mean(axis=0), a.sum(axis=1)], (MATRIX,)),
    "more sums than shared memory has room for": (lambda u: np.stack([(u * (k + 1.0)).sum() for k in range(49)]), (U,)),
    "single precision": (ns.vmap(path), (Y.astype("float32"), R.astype("float32"))),
    "no steps": (lambda y: path(y, 25.0, 0), (Y[0],)),
    "no lanes": (ns.vmap(path), (Y[:0], R[:0])),
    "one lane": (ns.vmap(path), (Y[:1], R[:1])),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, same: Same) -> None:
    function, args = PROGRAMS[name]
    same(function, *args, rtol=2e-4 if name == "single precision" else 1e-9)


def test_ports_of_every_kind() -> None:
    loop = loop_of_every_kind()
    inputs = [loop.n, loop.x, loop.z, loop.m, loop.a0, loop.f0, loop.w]
    values = [6, U[:9] * 0.1, U[9:20], U[20:30], 0.4, U[30:32], 1.3]
    expected, found = (ns.function(inputs, loop.results, mode=mode)(*values) for mode in ("python", "cuda"))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_updates_of_shared_variables() -> None:
    count = ns.shared(np.float64(1.0), "count")
    add = ns.scan(lambda x: (x * count, {count: count + x}), mode="cuda")
    np.testing.assert_allclose(add(sequences=np.arange(4.0)), [0.0, 1.0, 4.0, 12.0])
    assert count.get_value() == 7.0
    np.testing.assert_allclose(add(sequences=np.arange(3.0)), [0.0, 7.0, 16.0])


def test_draws_are_the_bits_of_the_cpu() -> None:
    def numbers(mode: str | None) -> list[Any]:
        s = nt.random.RandomStream(7)

        def step(x: Any) -> Any:
            return [
                x,
                s.normal(1.5, x),
                s.uniform(),
                s.gamma(2.5),
                s.poisson(3.7),
                s.binomial(30, 0.4),
                s.integers(1000),
                s.normal(size=40),
            ]

        def lane(x: Any) -> Any:
            return ns.scan(step, outputs_info=[x, *[None] * 7], n_steps=3, return_updates=False)

        whole = ns.jit(lambda: [s.normal(size=70), s.exponential(size=(7, 9)), s.uniform(size=70, dtype="float32")], mode=mode)
        return [*ns.jit(ns.vmap(lane), mode=mode)(R[:35]), *whole()]

    for one, other in zip(numbers("cuda"), numbers(None), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("checkpoint", [3, "auto"])
def test_checkpoints(checkpoint: Any, same: Same) -> None:
    def cost(y: Any) -> Any:
        return (scan(midpoint, outputs_info=y, non_sequences=25.0, n_steps=11, checkpoint=checkpoint) ** 2).sum()

    same(ns.vmap(ns.grad(cost)), Y, rtol=1e-9)


def test_rows_that_are_kept() -> None:
    for options in ({"keep_last": 1}, {"keep_last": 4}, {"save_every": 3}):
        expected, found = (
            ns.scan(midpoint, outputs_info=Y[0], non_sequences=25.0, n_steps=11, mode=mode, return_updates=False, **options)
            for mode in ("python", "cuda")
        )
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_results_go_where_out_says() -> None:
    out = np.full((20, 3), np.nan)
    returned = ns.scan(midpoint, mode="cuda")(outputs_info=Y[0], non_sequences=25.0, n_steps=20, out=out)
    np.testing.assert_allclose(out, ns.jit(path, mode="python")(Y[0], 25.0), rtol=1e-12)
    assert np.shares_memory(returned, out)


@pytest.mark.usefixtures("runs_kernels")
def test_of_several_lanes_that_fail_the_first_is_told() -> None:
    def lane(x: Any, k: Any) -> Any:
        return scan(lambda s: s + x[k], outputs_info=0.0, n_steps=3)

    places = np.arange(40) % 7
    places[[23, 31]] = 99
    for mode in (None, "cuda"):
        with pytest.raises(IndexError, match="index 99 is out of bounds for axis 0 with size 7"):
            ns.jit(ns.vmap(lane, in_axes=(None, 0)), mode=mode)(U[:7], places)


@pytest.mark.usefixtures("runs_kernels")
def test_the_first_number_that_is_not_finite_is_told() -> None:
    starts = np.ones(40)
    starts[[17, 30]] = 1e100
    texts = []
    for target in ("numba", "cuda"):
        lanes = ns.jit(ns.vmap(lambda x: scan(lambda s: s * s, outputs_info=x, n_steps=5)), mode=Mode(target=target, check_finite=True))
        with pytest.raises(FloatingPointError) as caught:
            lanes(starts)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_host_computes_what_no_gpu_can(dtype: str, same: Same) -> None:
    x, y = np.dtype(dtype).type([2.5, 0.3])
    same(lambda x, y, u: (nt.psi(x) + nt.gammainc(x, y) + nt.polygamma(1, y)) * u, x, y, U.astype(dtype), rtol=1e-5)
    same(lambda z, u: np.maximum(z, 1.0j).real * u, 2.0 + 3.0j, U)


def test_lengths_that_do_not_fit_are_told_before_a_launch() -> None:
    with pytest.raises(ValueError, match="39 rows"):
        ns.jit(ns.vmap(path), mode="cuda")(Y, R[:39])


def test_memory_of_lanes_is_taken_for_as_many_as_fit(monkeypatch: pytest.MonkeyPatch, same: Same) -> None:
    lanes = ns.vmap(ns.grad(lambda u: (scan(lambda u: np.tanh(heated(u)), outputs_info=u, n_steps=5) ** 2).sum()))
    assert "for chunk in range(" in ns.jit(lanes, mode="cuda").lower(np.stack([U] * 5)).source("cuda")
    same(lanes, np.stack([U, -U, 2 * U] * 50), rtol=1e-9)


def test_a_small_grid_is_no_reason_for_a_warning() -> None:
    cuda = cuda_package.cuda()
    if cuda_package.is_simulated() or not cuda_package.is_nvidia(cuda):
        pytest.skip("numba-cuda gives advice, the simulator none")

    def kernel(array: Any) -> None:
        array[0] = 1

    with pytest.warns(Warning, match="Grid size 1 will likely"):
        cuda.jit(kernel)[1, 1]
    with cuda_package.without_advice():
        cuda.jit(kernel)[1, 1]
    with pytest.warns(Warning, match="Grid size 1 will likely"):
        cuda.jit(kernel)[1, 1]


def test_float32_programs_compute_no_doubles(kernels: list[Any]) -> None:
    y, r = Y.astype("float32"), R.astype("float32")
    ns.jit(ns.vmap(lambda y, r: np.tanh(path(y, r)) + np.sqrt(abs(y)) * 0.5), mode="cuda")(y, r)
    ns.jit(ns.vmap(ns.grad(lambda y, r: (path(y, r)[-1] ** 2).mean())), mode="cuda")(y, r)
    operations = r"\b(add|sub|mul|div|fma|sqrt|neg|abs|min|max)(\.\w+)*\.f64\b"
    assert not any(re.search(operations, cuda_package.assembly(one.function, one.types)) for one in kernels)


def test_products_in_draws_are_not_joined_to_sums(kernels: list[Any]) -> None:
    s = nt.random.RandomStream(7)
    mean, cov = np.array([1.0, 2.0, 3.0]), np.array([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 3.0]])

    def numbers(a: Any, b: Any) -> list[Any]:
        plain = [s.normal(size=70), s.gamma(2.5, size=70), s.poisson(50.0, size=70), s.binomial(90, 0.4, size=70)]
        moved = [s.normal(1.5, 0.3, size=70), s.uniform(2, 5, size=70), s.normal(a, b), s.uniform(a, a + b), s.triangular(a, a, a + b)]
        single = [s.normal(1.5, 0.3, size=70, dtype="float32"), s.uniform(2, 5, size=70, dtype="float32")]
        return [*plain, *moved, *single, s.vonmises(a, b), s.multivariate_normal(mean, cov, size=7), s.negative_binomial(3.0, 0.2, size=70)]

    ns.jit(numbers, mode="cuda")(R, R / 3)
    ns.jit(lambda a, b: s.normal(a, b), mode="cuda")(R.astype("float32"), R.astype("float32"))
    assert not any("fma" in cuda_package.assembly(one.function, one.types) for one in kernels)


@pytest.mark.parametrize("n", [3, 8, 16])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_states_up_to_16_numbers_stay_in_registers(n: int, dtype: str, kernels: list[Any]) -> None:
    def ring(x: Any) -> Any:
        return x + 0.01 * ((np.roll(x, -1) - np.roll(x, 2)) * np.roll(x, 1) - x + 8.0)

    lanes = ns.vmap(lambda x: scan(ring, outputs_info=x, n_steps=1000)[-1])
    ns.jit(lanes, mode="cuda")(np.full((64, n), 8.0, dtype) + np.arange(n, dtype=dtype))
    assert not any(found.spilt or found.stack for one in kernels for found in one.statistics)
