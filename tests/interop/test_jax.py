"""Functions under JAX's transforms, against the same loop by `jax.lax.scan`."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
test_util = pytest.importorskip("jax.test_util")

GAIN = 2.0


@pytest.fixture(autouse=True)
def wide():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)  # for all threads, as callbacks need it; jax.enable_x64 is for one
    yield
    jax.config.update("jax_enable_x64", before)


def rows_of(rate, x):
    rows = ns.scan(lambda x, y: rate * y + np.tanh(x), x, 0.0, return_updates=False)
    return {"last": rows[-1], "rows": (rows, None)}


def rows_by_jax(rate, x):
    def step(y, x):
        y = rate * y + jnp.tanh(x)
        return y, y

    last, rows = jax.lax.scan(step, jnp.zeros((), x.dtype), x)
    return {"last": last, "rows": (rows, None)}


wrapped = ns.interop.jax.wrap(rows_of)
X = np.linspace(0.1, 1.0, 5)
LANES = np.stack([X, 2 * X, 3 * X])


def cost(f):
    return lambda rate, x: jnp.sum(f(rate, x)["rows"][0]) ** 2 + f(rate, x)["last"]


def agree(mine, other):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12), mine, other)
    assert jax.tree.map(lambda a: a.dtype, mine) == jax.tree.map(lambda a: a.dtype, other)


TRANSFORMS = {
    "plain": lambda f: f,
    "grad": jax.grad,
    "grad of both": lambda f: jax.grad(f, (0, 1)),
    "jvp": lambda f: lambda rate, x: jax.jvp(f, (rate, x), (1.0, x)),
    "hessian": jax.hessian,
    "jacfwd of jacrev": lambda f: jax.jacfwd(jax.jacrev(f, 1), 1),
    "jacrev of jacfwd": lambda f: jax.jacrev(jax.jacfwd(f, 1), 1),
    "jacrev of jacrev": lambda f: jax.jacrev(jax.jacrev(f, 0), 1),
    "third": lambda f: jax.grad(jax.grad(jax.grad(f))),
}
IN_LANES = {
    "vmap": lambda f: jax.vmap(f, (None, 0)),
    "vmap of vmap": lambda f: lambda rate, x: jax.vmap(jax.vmap(f, (None, 0)), (0, None))(jnp.array([rate, 0.3]), x),
    "vmap of axis 1": lambda f: lambda rate, x: jax.vmap(f, (None, 1))(rate, x.T),
    "vmap of grad": lambda f: jax.vmap(jax.grad(f, 1), (None, 0)),
    "vmap of hessian": lambda f: jax.vmap(jax.hessian(f), (None, 0)),
    "grad of vmap": lambda f: jax.grad(lambda rate, x: jnp.sum(jax.vmap(f, (None, 0))(rate, x)), (0, 1)),
    "hessian of vmap": lambda f: jax.hessian(lambda rate, x: jnp.sum(jax.vmap(f, (None, 0))(rate, x) ** 2)),
    "pullback in lanes": lambda f: lambda rate, x: jax.vmap(jax.vjp(lambda x: jax.vmap(f, (None, 0))(rate, x), x)[1])(jnp.eye(3)),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name, compiled):
    mine, other = (TRANSFORMS[name](cost(f)) for f in (wrapped, rows_by_jax))
    agree((jax.jit(mine) if compiled else mine)(0.5, X), other(0.5, X))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", IN_LANES)
def test_lanes(name, compiled):
    mine, other = (IN_LANES[name](cost(f)) for f in (wrapped, rows_by_jax))
    agree((jax.jit(mine) if compiled else mine)(0.5, LANES), other(0.5, LANES))


@pytest.mark.parametrize("compiled", [False, True])
def test_derivatives_are_those_of_differences_to_order_two(compiled):
    test_util.check_grads(jax.jit(wrapped) if compiled else wrapped, (0.5, X), order=2, modes=("fwd", "rev"))


@pytest.mark.parametrize(
    "take", [lambda f: f, jax.grad, jax.hessian, jax.jit, lambda f: lambda r: jax.vmap(jax.grad(f))(jnp.array([r, 0.3]))]
)
def test_within_a_loop_of_jax(take):
    def whole(f):
        def cost(rate):
            return jnp.sum(jax.lax.scan(lambda c, _: (f(rate, X * c)["last"],) * 2, 1.0, None, length=4)[1])

        return cost

    agree(take(whole(wrapped))(0.5), take(whole(rows_by_jax))(0.5))


def test_float32_is_computed_with_and_64_bits_become_32_where_jax_has_none():
    def f(x, n):
        return np.tanh(x), np.cumsum(n), np.ones(2)

    with jax.enable_x64(False):
        results = ns.interop.jax.wrap(f)(X, np.arange(3))
        assert [one.dtype.name for one in results] == ["float32", "int32", "float32"]
        np.testing.assert_array_equal(results[0], ns.jit(np.tanh)(X.astype("float32")))
        assert jax.grad(lambda x: ns.interop.jax.wrap(f)(x, np.arange(3))[0].sum())(jnp.ones(3)).dtype == np.float32
    assert [one.dtype.name for one in ns.interop.jax.wrap(f)(X, np.arange(3))] == ["float64", "int64", "float64"]
    assert ns.interop.jax.wrap(f)(X.astype("float32"), np.arange(3, dtype="int32"))[0].dtype == np.float32


def test_integers_are_arguments_without_a_derivative():
    f = ns.interop.jax.wrap(lambda x, k: (x * k, k + 1))
    value, slope = jax.value_and_grad(lambda x, k: f(x, k)[0])(2.0, 3)
    assert (float(value), float(slope)) == (6.0, 3.0)
    assert jax.jvp(lambda x: f(x, 3), (2.0,), (1.0,))[1][1].dtype == jax.dtypes.float0


def test_complex_numbers_have_jaxs_derivatives():
    f, by_jax = ns.interop.jax.wrap(lambda z: z * z * np.conj(z)), lambda z: z * z * jnp.conj(z)
    for take in (lambda f: lambda z: jax.jvp(f, (z,), (1.0 + 2.0j,))[1], lambda f: lambda z: jax.vjp(f, z)[1](1.0 - 1.0j)):
        agree(take(f)(0.5 + 0.25j), take(by_jax)(0.5 + 0.25j))


def test_keywords_and_what_is_read_from_outside(monkeypatch):
    f = ns.interop.jax.wrap(lambda x, *, scale=1.0: x * scale * GAIN)
    assert (float(f(3.0, scale=2.0)), float(f(3.0))) == (12.0, 6.0)
    monkeypatch.setitem(globals(), "GAIN", 5.0)
    assert float(f(3.0)) == 15.0


def test_large_arrays_and_several_threads():
    f = jax.jit(lambda x: wrapped(0.5, x)["rows"][0])
    big = np.linspace(0.0, 1.0, 300_000)
    expected = ns.jit(rows_of)(0.5, big)["rows"][0]
    results = [None] * 4

    def run(k):
        results[k] = np.asarray(f(big))

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert all((one == expected).all() for one in results)


def test_what_is_refused():
    stream = nt.random.RandomStream(3)
    with pytest.raises(TypeError, match="takes a function"):
        ns.interop.jax.wrap(3.0)
    with pytest.raises(ValueError, match="the length of result 0 depends on values"):
        ns.interop.jax.wrap(lambda x: ns.scan(lambda y: (2 * y, ns.until(y > 3)), outputs_info=x, n_steps=9, return_updates=False))(1.0)
    with pytest.raises(TypeError, match=r"ns\.interop\.jax\.wrap.*draw"):
        ns.interop.jax.wrap(lambda x: x + stream.normal())(1.0)
    with pytest.raises(ns.NullGradientError):
        jax.grad(ns.interop.jax.wrap(ns.external(__import__("numba").njit(lambda x: x * 2))))(1.0)


def test_errors_of_a_run_come_out():
    def f(x):
        if x > 2.0:
            raise ValueError("too large")
        return x

    with pytest.raises(ValueError, match="too large"):
        ns.interop.jax.wrap(f)(3.0)
    with pytest.raises(Exception, match="too large"):
        jax.jit(ns.interop.jax.wrap(f))(3.0).block_until_ready()
