"""Functions as ops of PyTensor's: gradients by differences, shapes, every mode, and a model that PyMC samples."""

from __future__ import annotations

import pickle

import cloudpickle
import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.demo import nile

pytensor = pytest.importorskip("pytensor")
pt = pytest.importorskip("pytensor.tensor")
pytestmark = pytest.mark.filterwarnings("ignore")  # PyTensor's and PyMC's own

GAIN = 2.0


def rows_of(rate, x):
    rows = ns.scan(lambda x, y: rate * y + np.tanh(x), x, 0.0, return_updates=False)
    return {"last": rows[-1], "rows": rows}


op = ns.interop.pytensor.as_op(rows_of)
X = np.linspace(0.1, 1.0, 5)
MODES = pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "NUMBA"])


@pytest.fixture
def variables():
    return pt.dscalar("rate"), pt.dvector("x")


def by_hand(rate, x):
    y, rows = 0.0, []
    for value in x:
        y = rate * y + np.tanh(value)
        rows.append(y)
    return np.array(rows)


@MODES
def test_values_and_gradients_in_every_mode(mode, variables):
    rate, x = variables
    out = op(rate, x)
    f = pytensor.function([rate, x], [out["last"], out["rows"], *pytensor.grad(out["rows"].sum(), [rate, x])], mode=mode)
    for n in (5, 1, 40):
        values = np.linspace(0.1, 1.0, n)
        last, rows, *slopes = f(0.5, values)
        np.testing.assert_allclose(rows, by_hand(0.5, values), rtol=1e-14)
        assert (last, last.shape) == (rows[-1], ())
        for mine, other in zip(slopes, ns.grad(lambda r, x: rows_of(r, x)["rows"].sum(), (0, 1))(0.5, values), strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-13)


def test_gradients_and_theirs_are_those_of_differences(variables):
    rng = np.random.default_rng(1)
    verify = pytensor.gradient.verify_grad
    verify(lambda rate, x: op(rate, x)["rows"], [np.float64(0.5), X], rng=rng)
    verify(lambda rate, x: pytensor.grad(op(rate, x)["rows"].sum() ** 2, rate), [np.float64(0.5), X], rng=rng)
    rate, x = variables
    hessian = pytensor.gradient.hessian(op(rate, x)["last"], x)
    np.testing.assert_allclose(hessian.eval({rate: 0.5, x: X}), ns.hessian(lambda x: rows_of(0.5, x)["last"])(X), rtol=1e-12)


def test_tangents(variables):
    rate, x = variables
    moved = pytensor.gradient.Rop(op(rate, x)["rows"], [rate, x], [pt.constant(1.0), x])
    expected = ns.jvp(rows_of, (0.5, X), (1.0, X))[1]["rows"]
    np.testing.assert_allclose(moved.eval({rate: 0.5, x: X}), expected, rtol=1e-13)


def test_shapes_are_known_without_a_run(variables):
    rate, x = variables
    both = ns.interop.pytensor.as_op(lambda x: (np.ones((3, 2)), x[:, None] * x))(x)
    assert [one.type.shape for one in both] == [(3, 2), (None, None)]
    f = pytensor.function([rate, x], [op(rate, x)["rows"].shape[0], both[1].shape[1]], on_unused_input="ignore")
    assert not any(isinstance(node.op, ns.interop.pytensor.ScanOp) for node in f.maker.fgraph.toposort())
    assert [int(one) for one in f(0.5, X)] == [5, 5]
    assert op(rate, pt.constant(X))["rows"].type.shape == (5,)


def test_a_length_that_depends_on_values_is_found_by_the_run():
    x = pt.dscalar("x")
    rows = ns.interop.pytensor.as_op(
        lambda x: ns.scan(lambda y: (2 * y, ns.until(y > 3)), outputs_info=x, n_steps=9, return_updates=False)
    )(x)
    assert [int(pytensor.function([x], rows.shape[0], mode=mode)(1.0)) for mode in ("FAST_RUN", "NUMBA")] == [3, 3]


@pytest.mark.parametrize("dtype", ["float32", "int64", "complex128"])
@MODES
def test_dtypes(dtype, mode):
    x = pt.tensor("x", dtype=dtype, shape=(None, 2))
    f = pytensor.function([x], ns.interop.pytensor.as_op(lambda x: (x.T @ x, x.sum()))(x), mode=mode)
    value = np.arange(6).reshape(3, 2).astype(dtype)
    product, total = f(value)
    assert (product.dtype, product.tolist(), total.dtype, total) == (dtype, (value.T @ value).tolist(), value.sum().dtype, value.sum())


def test_integers_have_no_gradient(variables):
    rate, _ = variables
    k = pt.lscalar("k")
    product, count = ns.interop.pytensor.as_op(lambda x, k: (x * k, k + 1))(rate, k)
    assert pytensor.grad(product, rate).eval({rate: 2.0, k: 3}) == 3.0
    assert count.type.dtype == "int64"
    with pytest.raises(Exception, match=r"(?i)gradient|undefined|null"):
        pytensor.grad(product, k)


def test_what_is_read_from_outside_is_seen_anew_where_python_calls(monkeypatch):
    f = pytensor.function([], ns.interop.pytensor.as_op(lambda x: x * GAIN)(3.0), mode="FAST_COMPILE")
    assert f() == 6.0
    monkeypatch.setitem(globals(), "GAIN", 5.0)
    assert f() == 15.0


@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
def test_ops_go_through_pickle(pickler, variables):
    rate, x = variables
    node = op(rate, x)["last"].owner
    copy = pickler.loads(pickler.dumps(node.op))
    np.testing.assert_allclose(copy.flat(0.5, X)[0], by_hand(0.5, X)[-1], rtol=1e-14)
    assert pytensor.grad(copy(rate, x)[0], rate).eval({rate: 0.5, x: X}) is not None


def test_what_is_refused(variables):
    stream = nt.random.RandomStream(3)
    with pytest.raises(TypeError, match="takes a function"):
        ns.interop.pytensor.as_op(3.0)
    with pytest.raises(TypeError, match=r"ns\.interop\.pytensor\.as_op.*draw"):
        ns.interop.pytensor.as_op(lambda x: x + stream.normal())(variables[0])


# PyMC --------------------------------------------------------------------------------------------------------------------

FLOW = nile()[1]


def log_likelihood(log_level, log_observation):
    """The local level model of the Nile, by the Kalman filter."""

    def step(value, level, variance, level_variance, observation_variance):
        total = variance + observation_variance
        error, gain = value - level, variance / total
        term = -0.5 * (np.log(2 * np.pi * total) + error**2 / total)
        return [level + gain * error, variance * (1 - gain) + level_variance, term]

    fixed = np.exp(2 * log_level), np.exp(2 * log_observation)
    return ns.scan(step, FLOW, [FLOW[0], 1e5, None], fixed, return_updates=False)[2].sum()


def exact_means():
    """Posterior means by quadrature, under normal priors (3.5, 1) and (4.8, 1)."""
    level, observation = np.meshgrid(np.linspace(0.5, 6.5, 121), np.linspace(3.8, 5.8, 81), indexing="ij")
    lanes = ns.vmap(log_likelihood)(level.ravel(), observation.ravel()).reshape(level.shape)
    weight = lanes - 0.5 * (level - 3.5) ** 2 - 0.5 * (observation - 4.8) ** 2
    weight = np.exp(weight - weight.max())
    return [(weight * one).sum() / weight.sum() for one in (level, observation)]


@pytest.mark.parametrize("sampler", ["pymc", "nutpie"])
def test_pymc_samples_the_posterior(sampler):
    pm = pytest.importorskip("pymc")
    if sampler == "nutpie":
        pytest.importorskip("nutpie")
    with pm.Model():
        log_level, log_observation = pm.Normal("log_level", 3.5, 1.0), pm.Normal("log_observation", 4.8, 1.0)
        pm.Potential("flow", ns.interop.pytensor.as_op(log_likelihood)(log_level, log_observation))
        trace = pm.sample(800, tune=500, chains=1, cores=1, nuts_sampler=sampler, random_seed=5, progressbar=False)
    for name, mean in zip(("log_level", "log_observation"), exact_means(), strict=True):
        draws = np.asarray(trace.posterior[name]).ravel()
        batches = draws.reshape(20, -1).mean(axis=1)  # the spread of means of batches tells the error of the whole
        assert draws.mean() == pytest.approx(mean, abs=5 * batches.std(ddof=1) / np.sqrt(20))
