"""Distributions: the numbers have the law that they should, tails included, and are the same bits in every mode."""

import numpy as np
import pytest
from scipy import stats

import numbascan as ns
import numbascan.tensor as nt

MILLION = 1_000_000
CONTINUOUS = {
    "uniform": (lambda s, n: s.uniform(-1.0, 3.0, size=n), stats.uniform(-1, 4)),
    "normal": (lambda s, n: s.normal(1.0, 2.0, size=n), stats.norm(1, 2)),
    "lognormal": (lambda s, n: s.lognormal(0.1, 0.5, size=n), stats.lognorm(0.5, scale=np.exp(0.1))),
    "standard_normal": (lambda s, n: s.standard_normal(n), stats.norm()),
    "halfnormal": (lambda s, n: s.halfnormal(1.0, 2.0, size=n), stats.halfnorm(1, 2)),
    "exponential": (lambda s, n: s.exponential(2.0, size=n), stats.expon(scale=2)),
    "gumbel": (lambda s, n: s.gumbel(1.0, 2.0, size=n), stats.gumbel_r(1, 2)),
    "pareto": (lambda s, n: s.pareto(5.0, 2.0, size=n), stats.pareto(5, scale=2)),
    "triangular": (lambda s, n: s.triangular(-1.0, 0.0, 3.0, size=n), stats.triang(0.25, -1, 4)),
    "triangular with its top at the end": (lambda s, n: s.triangular(0.0, 2.0, 2.0, size=n), stats.triang(1, 0, 2)),
    "laplace": (lambda s, n: s.laplace(1.0, 2.0, size=n), stats.laplace(1, 2)),
    "logistic": (lambda s, n: s.logistic(1.0, 2.0, size=n), stats.logistic(1, 2)),
    "cauchy": (lambda s, n: s.cauchy(1.0, 2.0, size=n), stats.cauchy(1, 2)),
    "weibull": (lambda s, n: s.weibull(1.7, 2.0, size=n), stats.weibull_min(1.7, scale=2)),
    "gamma": (lambda s, n: s.gamma(3.3, 2.0, size=n), stats.gamma(3.3, scale=2)),
    "gamma of a small shape": (lambda s, n: s.gamma(0.3, 2.0, size=n), stats.gamma(0.3, scale=2)),
    "gamma of a large shape": (lambda s, n: s.gamma(1e4, size=n), stats.gamma(1e4)),
    "invgamma": (lambda s, n: s.invgamma(6.0, 2.0, size=n), stats.invgamma(6, scale=2)),
    "vonmises": (lambda s, n: s.vonmises(0.0, 1.5, size=n), stats.vonmises(1.5)),
    "vonmises nearly uniform": (lambda s, n: s.vonmises(0.0, 0.01, size=n), stats.vonmises(0.01)),
    "wald": (lambda s, n: s.wald(2.0, 3.0, size=n), stats.invgauss(2 / 3, scale=3)),
    "wald far from normal": (lambda s, n: s.wald(2.0, 0.5, size=n), stats.invgauss(4, scale=0.5)),
    "chisquare": (lambda s, n: s.chisquare(5, size=n), stats.chi2(5)),
    "t": (lambda s, n: s.t(4.0, 1.0, 2.0, size=n), stats.t(4, 1, 2)),
    "beta": (lambda s, n: s.beta(0.5, 2.5, size=n), stats.beta(0.5, 2.5)),
    "beta of one shape below 1": (lambda s, n: s.beta(0.75, 1.0, size=n), stats.beta(0.75, 1.0)),
    "beta of shapes from 1 on": (lambda s, n: s.beta(1.0, 3.5, size=n), stats.beta(1.0, 3.5)),
    "beta of large shapes": (lambda s, n: s.beta(300.0, 200.0, size=n), stats.beta(300, 200)),
}
WHOLE = {
    "bernoulli": (lambda s, n: s.bernoulli(0.3, size=n), stats.bernoulli(0.3)),
    "poisson by search": (lambda s, n: s.poisson(3.3, size=n), stats.poisson(3.3)),
    "poisson at the border": (lambda s, n: s.poisson(10.0, size=n), stats.poisson(10)),
    "poisson by rejection": (lambda s, n: s.poisson(300.0, size=n), stats.poisson(300)),
    "binomial by search": (lambda s, n: s.binomial(20, 0.3, size=n), stats.binom(20, 0.3)),
    "binomial the other way round": (lambda s, n: s.binomial(20, 0.9, size=n), stats.binom(20, 0.9)),
    "binomial by rejection": (lambda s, n: s.binomial(300, 0.6, size=n), stats.binom(300, 0.6)),
    "binomial of rare successes": (lambda s, n: s.binomial(100_000, 0.002, size=n), stats.binom(100_000, 0.002)),
    "negative_binomial": (lambda s, n: s.negative_binomial(3.5, 0.2, size=n), stats.nbinom(3.5, 0.2)),
    "hypergeometric by search": (lambda s, n: s.hypergeometric(20, 30, 12, size=n), stats.hypergeom(50, 20, 12)),
    "hypergeometric the other way round": (lambda s, n: s.hypergeometric(30, 9, 35, size=n), stats.hypergeom(39, 30, 35)),
    "hypergeometric by rejection": (lambda s, n: s.hypergeometric(300, 200, 120, size=n), stats.hypergeom(500, 300, 120)),
    "hypergeometric of nearly all": (lambda s, n: s.hypergeometric(100, 900, 800, size=n), stats.hypergeom(1000, 100, 800)),
    "geometric": (lambda s, n: s.geometric(0.1, size=n), stats.geom(0.1)),
    "integers": (lambda s, n: s.integers(-3, 8, size=n), stats.randint(-3, 8)),
    "integers with their end": (lambda s, n: s.integers(1, 6, size=n, endpoint=True), stats.randint(1, 7)),
    "categorical": (
        lambda s, n: s.categorical([0.1, 0.0, 0.2, 0.7], size=n),
        stats.rv_discrete(values=([0, 2, 3], [0.1, 0.2, 0.7])),
    ),
    "choice": (lambda s, n: s.choice(np.array([4, 7, 9]), size=n), stats.rv_discrete(values=([4, 7, 9], [1 / 3] * 3))),
}
LAWS = {**CONTINUOUS, **WHOLE}


def drawn(name, n, mode=None, seed=2024):
    return ns.function([], LAWS[name][0](nt.random.RandomStream(seed), n), mode=mode)()


@pytest.fixture(scope="module")
def large():
    """A million numbers of each distribution, drawn once."""
    known = {}

    def of(name):
        if name not in known:
            known[name] = drawn(name, MILLION)
        return known[name]

    return of


@pytest.mark.parametrize("name", CONTINUOUS)
def test_kolmogorov_smirnov(large, name):
    assert large(name).dtype == np.float64
    assert stats.kstest(large(name), CONTINUOUS[name][1].cdf).pvalue > 1e-3


@pytest.mark.parametrize("name", CONTINUOUS)
def test_tails(large, name):
    """Beyond the quantiles of 1e-4 and 1e-5 at both ends lie as many as should."""
    law, x = CONTINUOUS[name][1], large(name)
    for p in (1e-4, 1e-5):
        for count in ((x < law.ppf(p)).sum(), (x > law.isf(p)).sum()):
            assert stats.binomtest(int(count), MILLION, p).pvalue > 1e-4


@pytest.mark.parametrize("name", WHOLE)
def test_chi_square(large, name):
    x, law = large(name), WHOLE[name][1]
    assert x.dtype == np.int64
    places = np.arange(x.min(), x.max() + 1)
    expected, seen = law.pmf(places) * MILLION, np.bincount(x - x.min(), minlength=len(places))
    assert not seen[expected == 0].any()
    usual = expected > 5
    groups = [np.append(counts[usual], MILLION - counts[usual].sum()) for counts in (seen, expected)]
    if groups[1][-1] < 1e-3:
        groups = [group[:-1] for group in groups]
    assert stats.chisquare(groups[0], groups[1] * groups[0].sum() / groups[1].sum()).pvalue > 1e-3


@pytest.mark.parametrize("name", [name for name in LAWS if name != "cauchy"])
def test_mean_and_variance(large, name):
    x, law = large(name).astype("float64"), LAWS[name][1]
    assert abs(x.mean() - law.mean()) < 4 * law.std() / np.sqrt(MILLION)
    if name != "t":  # whose fourth moment is infinite
        kurtosis = float(law.stats(moments="k")) + 3
        assert abs(x.var() / law.var() - 1) < 4 * np.sqrt((kurtosis - 1) / MILLION)


@pytest.mark.parametrize("name", LAWS)
def test_the_same_bits_in_python(large, name):
    np.testing.assert_array_equal(drawn(name, 2000, "python"), drawn(name, 2000))
    np.testing.assert_array_equal(drawn(name, 5, "python"), drawn(name, 5))


@pytest.mark.parametrize("name", LAWS)
def test_a_longer_draw_begins_with_the_shorter_one(large, name):
    np.testing.assert_array_equal(drawn(name, 5), large(name)[:5])


@pytest.mark.parametrize("name", LAWS)
def test_neighbours_have_nothing_to_do_with_each_other(large, name):
    ranks = large(name).astype("float64")
    if name == "cauchy":
        ranks = np.arctan(ranks)
    ranks = ranks - ranks.mean()
    for lag in (1, 2, 4):
        correlation = (ranks[lag:] * ranks[:-lag]).mean() / ranks.var()
        assert abs(correlation) < 5 / np.sqrt(MILLION)


# extreme parameters -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["numba", "python"])
def test_degenerate_laws(mode):
    s = nt.random.RandomStream(1)
    draws = [
        s.poisson(0.0, size=20),
        s.binomial(7, 0.0, size=20),
        s.binomial(7, 1.0, size=20),
        s.binomial(0, 0.5, size=20),
        s.gamma(0.0, size=20),
        s.geometric(1.0, size=20),
        s.negative_binomial(3, 1.0, size=20),
        s.bernoulli(1.0, size=20),
        s.integers(5, 6, size=20),
        s.normal(3.0, 0.0, size=20),
    ]
    found = ns.function([], draws, mode=mode)()
    for row, value in zip(found, (0, 0, 7, 0, 0, 1, 0, 1, 5, 3), strict=True):
        np.testing.assert_array_equal(row, np.full(20, value))


def test_means_so_large_that_doubles_round():
    s = nt.random.RandomStream(1)
    poisson, binomial = ns.function([], [s.poisson(1e15, size=20_000), s.binomial(10**15, 0.25, size=20_000)])()
    assert stats.kstest((poisson - 1e15) / np.sqrt(1e15), "norm").pvalue > 1e-3
    assert stats.kstest((binomial - 2.5e14) / np.sqrt(10**15 * 0.1875), "norm").pvalue > 1e-3


def test_all_words_may_be_integers():
    s = nt.random.RandomStream(1)
    low = nt.lscalar("low")
    found = ns.function([low], s.integers(low, 2**63 - 1, size=1000, endpoint=True))(-(2**63))
    assert found.min() < -(2**62) < 2**62 < found.max()


# shapes, dtypes, parameters -------------------------------------------------------------------------------------------


def test_parameters_broadcast():
    s = nt.random.RandomStream(1)
    loc, scale = nt.dmatrix("loc"), nt.dvector("scale")
    draw = ns.function([loc, scale], [s.normal(loc, scale), s.poisson(loc + scale), s.normal(loc, scale, size=(4, 2, 3))])
    normal, poisson, larger = draw(np.full((2, 3), 5.0), np.array([0.0, 1.0, 2.0]))
    assert normal.shape == poisson.shape == (2, 3)
    np.testing.assert_array_equal(normal[:, 0], 5.0)
    assert larger.shape == (4, 2, 3)


def test_parameters_that_do_not_fit_into_size():
    s = nt.random.RandomStream(1)
    with pytest.raises(ValueError, match="broadcast"):
        s.normal(np.zeros((2, 3)), size=(2, 2))
    with pytest.raises(ValueError, match="fewer"):
        s.normal(np.zeros((2, 3)), size=2)
    with pytest.raises(ValueError, match="negative"):
        s.normal(size=-1)


@pytest.mark.parametrize("name", ["uniform", "normal", "exponential", "gamma"])
def test_single_precision(name):
    s = nt.random.RandomStream(1)
    x = getattr(s, name)(*([2.0] if name == "gamma" else []), size=100_000, dtype="float32")
    found, again = (ns.function([], x, mode=mode)() for mode in ("numba", "python"))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, again)
    assert name != "uniform" or found.max() < 1
    law = {"uniform": stats.uniform(), "normal": stats.norm(), "exponential": stats.expon(), "gamma": stats.gamma(2)}[name]
    assert stats.kstest(found, law.cdf).pvalue > 1e-3


def test_single_parameters_make_single_draws():
    s = nt.random.RandomStream(1)
    assert s.normal(nt.fscalar("loc"), 1.0, size=3).dtype == np.float32
    assert s.normal(nt.fscalar("loc"), nt.dscalar("scale"), size=3).dtype == np.float64
    assert s.bernoulli(nt.fvector("p"), dtype="float32").dtype == np.float32
    with pytest.raises(TypeError, match="float32 or float64"):
        s.normal(dtype="int64")


OUT_OF_RANGE = {
    "poisson": (lambda s, x: s.poisson(x), -1.0),
    "binomial": (lambda s, x: s.binomial(5, x), 1.5),
    "bernoulli": (lambda s, x: s.bernoulli(x), np.nan),
    "gamma": (lambda s, x: s.gamma(x), -1.0),
    "beta": (lambda s, x: s.beta(x, 1.0), 0.0),
    "t": (lambda s, x: s.t(x), 0.0),
    "chisquare": (lambda s, x: s.chisquare(x), np.nan),
    "weibull": (lambda s, x: s.weibull(x), 0.0),
    "pareto": (lambda s, x: s.pareto(x), 0.0),
    "triangular": (lambda s, x: s.triangular(0.0, x, 1.0), 1.5),
    "invgamma": (lambda s, x: s.invgamma(x), 0.0),
    "vonmises": (lambda s, x: s.vonmises(0.0, x), -0.5),
    "wald": (lambda s, x: s.wald(1.0, x), 0.0),
    "hypergeometric": (lambda s, x: s.hypergeometric(3, 4, x), 8.0),
    "geometric": (lambda s, x: s.geometric(x), 0.0),
    "negative_binomial": (lambda s, x: s.negative_binomial(x, 0.5), 0.0),
    "integers": (lambda s, x: s.integers(x.astype("int64") if isinstance(x, nt.Variable) else int(x), 3), 3.0),
    "categorical": (lambda s, x: s.categorical(np.stack([x, x])), 0.0),
    "multinomial": (lambda s, x: s.multinomial(4, np.stack([x, x])), -1.0),
    "dirichlet": (lambda s, x: s.dirichlet(np.stack([x, x])), 0.0),
}


@pytest.mark.parametrize("mode", ["numba", "python"])
@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_parameters_out_of_range(name, mode):
    make, value = OUT_OF_RANGE[name]
    with pytest.raises(ValueError, match=name):
        make(nt.random.RandomStream(1), value)
    x = nt.dscalar("x")
    draw = ns.function([x], make(nt.random.RandomStream(1), x), mode=mode)
    with pytest.raises(ValueError, match=f"{name}: .* must be"):
        draw(value)


# choices and vectors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["numba", "python"])
def test_permutations_are_all_alike(mode):
    s = nt.random.RandomStream(1)
    draws, updates = ns.scan(lambda: s.permutation(4), n_steps=4800)
    found = ns.function([], draws, updates=updates, mode=mode)()
    np.testing.assert_array_equal(np.sort(found, axis=1), np.tile(np.arange(4), (4800, 1)))
    _, counts = np.unique(found, axis=0, return_counts=True)
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > 1e-3


def test_rows_are_permuted():
    s = nt.random.RandomStream(1)
    rows = np.arange(60.0).reshape(20, 3)
    found = ns.function([], s.permutation(rows))()
    assert (found != rows).any()
    np.testing.assert_array_equal(found[np.argsort(found[:, 0])], rows)


def test_choices_without_replacement():
    s = nt.random.RandomStream(1)
    p = np.array([0.1, 0.2, 0.3, 0.4])
    draws, _ = ns.scan(lambda: s.choice(4, size=2, replace=False, p=p), n_steps=40_000)
    found = ns.function([], draws)()
    assert (found[:, 0] != found[:, 1]).all()
    pairs = {(i, j): p[i] * p[j] / (1 - p[i]) for i in range(4) for j in range(4) if i != j}
    seen = [((found[:, 0] == i) & (found[:, 1] == j)).sum() for i, j in pairs]
    assert stats.chisquare(seen, np.array(list(pairs.values())) * 40_000).pvalue > 1e-3


@pytest.mark.parametrize("mode", ["numba", "python"])
def test_choices_that_cannot_be_made(mode):
    s = nt.random.RandomStream(1)
    a, p = nt.dvector("a"), nt.dvector("p")
    with pytest.raises(ValueError, match=r"choice: the number of rows is 3 .*; it must be at least 4, what is drawn"):
        s.choice(3, size=4, replace=False)
    with pytest.raises(ValueError, match=r"choice: the number of rows is 0 "):
        s.choice(0)
    few = ns.function([a], s.choice(a, size=4, replace=False), mode=mode)
    assert sorted(few(np.arange(4.0))) == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="choice: the number of rows must be at least 4, what is drawn"):
        few(np.arange(3.0))
    weighted = ns.function([p], s.choice(4, size=3, replace=False, p=p), mode=mode)
    assert sorted(weighted(np.array([0.5, 0.2, 0.3, 0]))) == [0, 1, 2]
    with pytest.raises(ValueError, match="choice: p must be above 0 in as many places as are drawn without replacement"):
        weighted(np.array([0.5, 0.5, 0, 0]))
    with pytest.raises(ValueError, match="choice: p must be at least 0, with the sum 1"):
        weighted(np.array([0.5, 0.5, 0.5, 0]))
    for wrong in ([0.5, 0.9], [0.1, 0.1], [1.5, -0.5], [np.nan, 1.0]):
        with pytest.raises(ValueError, match=r"choice: p is .*; it must be at least 0, with the sum 1"):
            s.choice(2, p=np.array(wrong))
    assert s.choice(3, size=(), p=np.full(3, 1 / 3, "float32")).ndim == 0


def test_choices_by_weight():
    s = nt.random.RandomStream(1)
    p, a = nt.dvector("p"), nt.dvector("a")
    draw = ns.function([a, p], s.choice(a, size=(300, 100), p=p))
    found = draw(np.array([5.0, 6.0, 7.0]), np.array([0.5, 0.2, 0.3]))
    assert stats.chisquare(np.unique(found, return_counts=True)[1], [15000, 6000, 9000]).pvalue > 1e-3
    with pytest.raises(ValueError, match="2"):
        draw(np.array([5.0, 6.0]), np.array([0.5, 0.2, 0.3]))


@pytest.mark.parametrize("mode", ["numba", "python"])
def test_categories_of_rows(mode):
    s = nt.random.RandomStream(1)
    p = nt.dmatrix("p")
    found = ns.function([p], s.categorical(p, size=(20_000, 2)), mode=mode)(np.array([[1.0, 3.0, 0.0], [0.0, 0.5, 0.5]]))
    assert stats.binomtest(int((found[:, 0] == 1).sum()), 20_000, 0.75).pvalue > 1e-3
    assert set(found[:, 0]) == {0, 1}
    assert set(found[:, 1]) == {1, 2}


@pytest.mark.parametrize("mode", ["numba", "python"])
def test_multinomial(mode):
    s = nt.random.RandomStream(1)
    n = 3000
    p = np.array([0.2, 0.0, 0.5, 0.3])
    found = ns.function([], s.multinomial(50, p, size=n), mode=mode)()
    assert found.shape == (n, 4)
    np.testing.assert_array_equal(found.sum(axis=1), 50)
    covariance = 50 * (np.diag(p) - np.outer(p, p))
    np.testing.assert_allclose(found.mean(axis=0), 50 * p, atol=4 * np.sqrt(12.5 / n))
    np.testing.assert_allclose(np.cov(found.T), covariance, atol=1.2)


def test_multinomial_in_a_step_and_of_rows():
    s = nt.random.RandomStream(1)
    p = nt.dmatrix("p")
    path, updates = ns.scan(lambda: s.multinomial([10, 20], p), n_steps=5)
    run = ns.function([p], path, updates=updates)
    found = run(np.array([[0.2, 0.8, 0.0], [1.0, 1.0, 1.0]]))
    assert found.shape == (5, 2, 3)
    np.testing.assert_array_equal(found.sum(axis=-1), [[10, 20]] * 5)
    assert len(np.unique(found[:, 1], axis=0)) > 1


def test_dirichlet():
    s = nt.random.RandomStream(1)
    alpha = np.array([0.3, 2.0, 5.0])
    found = ns.function([], s.dirichlet(alpha, size=100_000))()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)
    for k in range(3):
        assert stats.kstest(found[:, k], stats.beta(alpha[k], alpha.sum() - alpha[k]).cdf).pvalue > 1e-3


def test_dirichlet_of_shapes_near_zero_is_a_corner():
    found = ns.function([], nt.random.RandomStream(1).dirichlet(np.full(3, 1e-5), size=1000))()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert stats.chisquare((found > 0.999).sum(axis=0)).pvalue > 1e-3


def test_multivariate_normal():
    s = nt.random.RandomStream(1)
    mean, cov = np.array([1.0, -2.0]), np.array([[2.0, -0.6], [-0.6, 0.5]])
    found = ns.function([], s.multivariate_normal(mean, cov, size=(1000, 200)))().reshape(-1, 2)
    np.testing.assert_allclose(found.mean(axis=0), mean, atol=0.02)
    np.testing.assert_allclose(np.cov(found.T), cov, atol=0.03)
    whitened = np.linalg.solve(np.linalg.cholesky(cov), (found - mean).T)
    assert all(stats.kstest(row, "norm").pvalue > 1e-3 for row in whitened)
