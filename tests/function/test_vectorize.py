"""`ns.vectorize` gives what `np.vectorize` with the same signature gives, lane by lane."""

from __future__ import annotations

import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

RNG = np.random.default_rng(6)


def decay(x: Any, rate: Any) -> Any:
    return ns.scan(lambda x, y: rate * y + x, x, 0.0, return_updates=False)


def by_hand(x: Any, rate: Any) -> Any:
    rows, y = [], 0.0
    for one in x:
        y = rate * y + one
        rows.append(y)
    return np.array(rows)


SMOOTH = ns.vectorize(decay, signature="(t),()->(t)")
EXPECTED = np.vectorize(by_hand, signature="(t),()->(t)")
SHAPES = [((3,), ()), ((2, 3), ()), ((3,), (4,)), ((2, 3), (2,)), ((2, 1, 3), (4,)), ((2, 4, 3), (4,)), ((40, 3), (1,)), ((1, 3), (40,))]


@pytest.mark.parametrize("x_shape, rate_shape", SHAPES)
def test_leading_axes_broadcast(x_shape: tuple[int, ...], rate_shape: tuple[int, ...]) -> None:
    x, rate = RNG.normal(size=x_shape), RNG.uniform(size=rate_shape)
    expected = EXPECTED(x, rate)
    for function in (SMOOTH, ns.jit(lambda x, rate: SMOOTH(x, rate))):
        np.testing.assert_allclose(function(x, rate), expected, rtol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_random_leading_axes_broadcast_as_those_of_numpy(seed: int) -> None:
    chance = np.random.default_rng(seed)
    function = ns.vectorize(ns.jit(lambda x, y, k: x * k + y.sum(), mode="python"), signature="(n),(m),()->(n)")
    expected = np.vectorize(lambda x, y, k: x * k + y.sum(), signature="(n),(m),()->(n)")
    traced = ns.jit(lambda x, y, k: function(x, y, k), mode="python")
    for _ in range(5):
        sizes = chance.integers(1, 4, size=3)
        shapes = [np.where(chance.random(3) < 0.4, 1, sizes)[chance.integers(4) :] for _ in range(3)]
        x, y, k = (RNG.normal(size=(*shape, *core)) for shape, core in zip(shapes, [(2,), (3,), ()], strict=True))
        for call in (function, traced):
            np.testing.assert_allclose(call(x, y, k), expected(x, y, k), rtol=1e-13)


def test_an_argument_is_not_copied_for_lanes_that_share_it() -> None:
    x, other, rate = np.ones((1, 20_000)), np.ones((40, 1, 2_000)), np.linspace(0.1, 0.9, 50)
    ends = ns.vectorize(lambda x, rate: (x * rate).sum(), signature="(t),()->()")
    for one in (x, other):
        for function in (ends, ns.jit(lambda x, rate: ends(x, rate))):
            function(one, rate)
            tracemalloc.start()
            found = function(one, rate)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            np.testing.assert_allclose(found, one.sum(axis=-1) * rate)
            assert peak < 2 * one.nbytes
        assert ns.jit(lambda x, rate: ends(x, rate)).lower(one, rate).memory().total < one.nbytes


@pytest.mark.parametrize("leading", [(3,), (2, 3), (2, 1, 3), (1, 1), (1, 4)])
def test_draws_of_a_traced_call_are_those_of_a_run(leading: tuple[int, ...]) -> None:
    x, y = np.zeros((*leading, 2)), np.zeros(leading[-1])

    def draws(is_traced: bool) -> Any:
        stream = nt.random.RandomStream(3)
        noise = ns.scan(n_steps=2)(lambda s: s + stream.normal())
        noisy = ns.vectorize(lambda x, y: x + y + noise(outputs_info=0.0)[-1], "(n),()->(n)")
        return (ns.jit(lambda x, y: noisy(x, y)) if is_traced else noisy)(x, y)

    in_run = draws(is_traced=False)
    np.testing.assert_array_equal(draws(is_traced=True), in_run)
    assert len({*in_run.ravel()}) == np.prod(leading)


@pytest.mark.parametrize("number", [2, True, 2.5, 2j, np.int64(2), np.float32(2.5), np.array(2)])
@pytest.mark.parametrize("dtype", ["int8", "float32", "bool", "complex64"])
def test_a_python_number_gives_way_on_arrays_and_in_a_trace(dtype: str, number: Any) -> None:
    product, x = ns.vectorize(ns.jit(lambda x, y: x * (y + y), mode="python")), np.ones(3, dtype)
    of_constant = ns.jit(lambda x: product(x, number), mode="python")
    of_argument = ns.jit(lambda x, number: product(x, number), mode="python")
    expected = x * (number + number)
    for found in (product(x, number), of_constant(x), of_argument(x, number)):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype


def test_leading_axes_that_only_the_run_knows_must_be_equal() -> None:
    x, y = nt.dmatrix("x"), nt.dmatrix("y")
    product = ns.function([x, y], ns.vectorize(lambda x, y: x * y)(x, y))
    a = RNG.normal(size=(2, 3))
    np.testing.assert_array_equal(product(a, a), a * a)
    with pytest.raises(ValueError, match=r"x has shape .*; it must have"):
        product(a, a.T.copy())


def test_lengths_of_one_after_others() -> None:
    """An axis of length 1 broadcasts also where code for any length is there."""
    for n in (2, 3, 5, 1, 7):
        x, rate = RNG.normal(size=(n, 3)), RNG.uniform(size=4 if n == 1 else n)
        np.testing.assert_allclose(SMOOTH(x, rate), EXPECTED(x, rate), rtol=1e-14)


def test_no_lanes_and_no_steps() -> None:
    assert SMOOTH(np.ones((0, 3)), np.ones(0)).shape == (0, 3)
    assert SMOOTH(np.ones((2, 0, 3)), 0.5).shape == (2, 0, 3)
    assert SMOOTH(np.ones((5, 0)), 0.5).shape == (5, 0)


def test_several_results_and_a_decorator() -> None:
    @ns.vectorize(signature="(n),(n)->(),(n)")
    def both(x: Any, y: Any) -> Any:
        return x @ y, x + y

    x, y = RNG.normal(size=(4, 3)), RNG.normal(size=3)
    product, total = both(x, y)
    np.testing.assert_allclose(product, x @ y)
    np.testing.assert_array_equal(total, x + y)


def test_scalars_without_a_signature() -> None:
    x, y = RNG.normal(size=(2, 3)), np.arange(3)
    np.testing.assert_allclose(ns.vectorize(lambda x, y: x * y + 1)(x, y), x * y + 1)


def test_a_new_dimension_of_the_result_and_a_fixed_one() -> None:
    pairs = ns.vectorize(lambda x: np.stack([x[:2], x[1:]]), signature="(3)->(pair, 2)")
    x = RNG.normal(size=(5, 3))
    np.testing.assert_array_equal(pairs(x), np.stack([x[:, :2], x[:, 1:]], axis=1))


def test_derivatives_and_lanes_of_lanes() -> None:
    x, rate = RNG.normal(size=(5, 3)), RNG.uniform(size=5)
    found = ns.grad(lambda x, rate: (SMOOTH(x, rate) ** 2).sum(), argnums=(0, 1))(x, rate)
    expected = ns.vmap(ns.grad(lambda x, rate: (decay(x, rate) ** 2).sum(), argnums=(0, 1)))(x, rate)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    np.testing.assert_allclose(ns.vmap(SMOOTH)(x[:, None], rate[:, None]), EXPECTED(x, rate)[:, None], rtol=1e-14)


def test_variables() -> None:
    x, rate = nt.dmatrix("x"), nt.dvector("rate")
    run = ns.function([x, rate], SMOOTH(x, rate))
    a, b = RNG.normal(size=(4, 3)), RNG.uniform(size=4)
    np.testing.assert_allclose(run(a, b), EXPECTED(a, b), rtol=1e-14)
    both = ns.vectorize(lambda x, y: x * y, signature="(n),(n)->(n)")
    y = nt.dvector("y")
    with pytest.raises(ValueError, match=r"y has shape \(2,\).*it must have \(3,\)"):
        ns.function([x, y], both(x, y))(a, np.ones(2))


@pytest.mark.parametrize("mode", [None, "python"])
def test_the_mode_of_the_function(mode: str | None) -> None:
    smooth = ns.vectorize(ns.jit(decay, mode=mode), signature="(t),()->(t)")
    x, rate = RNG.normal(size=(2, 3)), RNG.uniform(size=2)
    np.testing.assert_allclose(smooth(x, rate), EXPECTED(x, rate), rtol=1e-14)


def test_dask_and_xarray_take_it() -> None:
    da, xr = pytest.importorskip("dask.array"), pytest.importorskip("xarray")
    x, rate = RNG.normal(size=(10, 6)), RNG.uniform(size=10)
    blocks = da.apply_gufunc(SMOOTH, "(t),()->(t)", da.from_array(x, (3, 6)), da.from_array(rate, 3), output_dtypes=float)
    np.testing.assert_allclose(blocks.compute(), EXPECTED(x, rate), rtol=1e-14)
    labelled = xr.apply_ufunc(
        *(SMOOTH, xr.DataArray(x, dims=("case", "time")), xr.DataArray(rate, dims="case")),
        input_core_dims=[["time"], []],
        output_core_dims=[["time"]],
    )
    assert labelled.dims == ("case", "time")
    np.testing.assert_allclose(labelled, EXPECTED(x, rate), rtol=1e-14)


def test_pickled_and_in_threads() -> None:
    copy = pickle.loads(pickle.dumps(SMOOTH))
    x, rate = RNG.normal(size=(3, 3)), RNG.uniform(size=3)
    with ThreadPoolExecutor(4) as pool:
        for rows in pool.map(lambda _: copy(x, rate), range(8)):
            np.testing.assert_allclose(rows, EXPECTED(x, rate), rtol=1e-14)


def test_source() -> None:
    assert "def vmap_vectorize_decay" in SMOOTH.lower(np.ones((7, 1, 3)), np.ones(10)).source()


def test_what_is_read_from_outside_is_seen_anew() -> None:
    table, gain = np.array([1.0, 2.0, 4.0]), ns.shared(2.0, "gain")
    scaled = ns.vectorize(lambda x: gain * x * table, signature="(n)->(n)")
    x = RNG.normal(size=(2, 3))
    np.testing.assert_allclose(scaled(x), 2.0 * x * table)
    table[1] = 7.0
    gain.set_value(3.0)
    np.testing.assert_allclose(scaled(x), 3.0 * x * table)


def test_draws_are_those_of_lanes() -> None:
    stream = nt.random.RandomStream(3)
    x = np.zeros((2, 3, 4))
    noisy = ns.vectorize(lambda x: x + stream.normal(size=4), signature="(n)->(n)")
    first, second = noisy(x), noisy(x)
    assert len({*first.ravel(), *second.ravel()}) == 48
    stream.seed(3)
    np.testing.assert_array_equal(ns.vmap(lambda x: x + stream.normal(size=4))(x.reshape(6, 4)), first.reshape(6, 4))


REFUSED = [
    (lambda: ns.vectorize(decay, signature="t->"), ValueError, r"signature is 't->'; write the core dimensions"),
    (lambda: ns.vectorize(3), TypeError, "takes a function, not 3"),
    (lambda: SMOOTH(np.ones(3)), TypeError, "takes 2 arguments, but 1 were given"),
    (lambda: SMOOTH(1.0, 2.0), ValueError, r"x has 0 axes, but the core dimensions \(t\)"),
    (lambda: SMOOTH(np.ones((2, 3)), np.ones(3)), ValueError, r"leading axes \(2,\) and \(3,\) do not broadcast"),
    (lambda: ns.vectorize(lambda x, y: x, "(t),(t)->(t)")(np.ones(3), np.ones(4)), ValueError, "t is 4 in y, but 3 in x"),
    (lambda: ns.vectorize(lambda x: x, "(3)->(3)")(np.ones((2, 4))), ValueError, "3 is 4 in x, but 3 in the signature"),
    (
        lambda: ns.vectorize(lambda x: x, "(t)->()")(np.ones(3)),
        ValueError,
        r"0 is float64\[3\]; the signature has the dimensions \(\)",
    ),
    (lambda: ns.vectorize(lambda x: (x, x), "(t)->(t)")(np.ones(3)), TypeError, "returns 2 results; the signature has 1"),
    (lambda: ns.vectorize(lambda x: x[:2], "(t)->(t)")(np.ones(3)), ValueError, r"result 0 has shape \(2,\)"),
]


@pytest.mark.parametrize("call, error, message", REFUSED)
def test_what_is_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_methods_are_refused() -> None:
    class Model:
        @ns.vectorize(signature="(t)->(t)")
        def step(self, x: Any) -> Any:
            return x

    with pytest.raises(TypeError, match=r"write ns.vectorize\(x.step, …\) for an object x"):
        Model().step(np.ones(3))
