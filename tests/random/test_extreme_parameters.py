"""Distributions with huge, tiny and unequal parameters, ends of half-open ranges, and dtypes that do not hold what is drawn."""

import numpy as np
import pytest
from scipy import stats

import numbascan as ns
import numbascan.tensor as nt

COUNT = 20_000
LEAST_P = 1e-4


def drawn(make, seed=11, mode=None):
    return ns.function([], make(nt.random.RandomStream(seed)), mode=mode)()


def assert_standard(numbers, distribution=stats.norm):
    """Numbers less their mean by their standard deviation: mean, variance and the whole distribution."""
    assert abs(numbers.mean()) < 4 / np.sqrt(len(numbers))
    kurtosis = float(distribution.stats(moments="k"))
    assert abs((numbers**2).mean() - 1) < 4 * np.sqrt((kurtosis + 2) / len(numbers))
    assert stats.kstest(numbers, distribution.cdf).pvalue > LEAST_P


@pytest.mark.parametrize("shape", [1e5, 1e8, 1e12, 1e14, 1e15, 1e16, 1e17, 1e20, 1e25, 1e28])
def test_gamma_numbers_of_large_shape_have_their_spread(shape):
    centred = (drawn(lambda s: s.gamma(shape, size=COUNT)) - shape) / np.sqrt(shape)
    assert_standard(centred)
    assert_standard((drawn(lambda s: s.chisquare(2 * shape, size=COUNT), 12) / 2 - shape) / np.sqrt(shape))
    np.testing.assert_array_equal(drawn(lambda s: s.gamma(shape, size=50), mode="python"), drawn(lambda s: s.gamma(shape, size=50)))


@pytest.mark.parametrize("shape", [1e34, 1e100, 1e300, 1.5e308])
def test_where_the_spread_is_less_than_a_rounding_error_gamma_numbers_are_their_mean(shape):
    np.testing.assert_allclose(drawn(lambda s: s.gamma(shape, size=COUNT)), shape, rtol=5e-16)


@pytest.mark.parametrize("shape", [1e-300, 1e-6, 0.01, 0.3, 1.0, 1.5, 7.0, 400.0, 3000.0])
def test_gamma_numbers_of_other_shapes_follow_their_distribution(shape):
    numbers = drawn(lambda s: s.gamma(shape, size=COUNT))
    if shape < 1e-5:
        assert (numbers == 0).mean() > 0.98
    else:
        assert stats.kstest(numbers[numbers > 0], stats.gamma(shape).cdf).pvalue > LEAST_P or shape < 0.1
    assert abs(numbers.mean() - shape) < 4 * np.sqrt(shape / COUNT)


@pytest.mark.parametrize(("a", "ratio"), [(1e12, 1.0), (1e12, 3.0), (1e15, 1.0), (1e18, 3.0), (1e22, 1.0), (1e26, 1.0), (1e26, 3.0)])
def test_beta_numbers_and_dirichlet_vectors_of_large_parameters_have_their_spread(a, ratio):
    b = ratio * a
    mean, spread = a / (a + b), np.sqrt(a * b / (a + b) ** 2 / (a + b + 1))
    assert_standard((drawn(lambda s: s.beta(a, b, size=COUNT)) - mean) / spread)
    vectors = drawn(lambda s: s.dirichlet(np.array([a, b]), size=COUNT))
    assert_standard((vectors[:, 0] - mean) / spread)


@pytest.mark.parametrize(("a", "b"), [(1e-3, 1e-3), (0.5, 1e6), (1e6, 0.5), (1.0, 1e300), (2.0, 3.0), (0.01, 50.0)])
def test_beta_numbers_of_small_and_unequal_parameters_follow_their_distribution(a, b):
    numbers = drawn(lambda s: s.beta(a, b, size=COUNT))
    assert ((numbers >= 0) & (numbers <= 1)).all()
    variance = a * b / (a + b) ** 2 / (a + b + 1) if b < 1e100 else 0.0
    assert abs(numbers.mean() - a / (a + b)) < 4 * np.sqrt(variance / COUNT) + 1e-12
    if a > 0.1 and b < 1e100:
        assert stats.kstest(numbers, stats.beta(a, b).cdf).pvalue > LEAST_P


@pytest.mark.parametrize("df", [1e-3, 0.5, 2.5, 30.0, 1e6, 1e15, 1e20, 1e100, 1e300])
def test_students_t_follows_its_distribution(df):
    numbers = drawn(lambda s: s.t(df, size=COUNT))
    finite = numbers[np.isfinite(numbers)]
    exact = stats.norm if df > 1e8 else stats.t(df)
    assert not np.isnan(numbers).any()
    assert df < 0.1 or stats.kstest(finite, exact.cdf).pvalue > LEAST_P
    assert abs((numbers > 0).mean() - 0.5) < 4 * 0.5 / np.sqrt(COUNT)


@pytest.mark.parametrize("mean", [9.99, 10.0, 1e4, 1e9, 1e13, 1e15, 9e15])
def test_counts_of_large_means_have_their_spread(mean):
    n = int(mean)
    for numbers, centre, variance in (
        (drawn(lambda s: s.poisson(mean, size=COUNT)), mean, mean),
        (drawn(lambda s: s.binomial(n, 0.3, size=COUNT)), n * 0.3, n * 0.21),
        (drawn(lambda s: s.binomial(n, 1 - 0.4, size=COUNT)), n * 0.6, n * 0.24),
    ):
        scaled = (numbers - centre) / np.sqrt(variance)
        assert abs(scaled.mean()) < 4 / np.sqrt(COUNT)
        assert abs(scaled.var() - 1) < 4 * np.sqrt(2.2 / COUNT)
        assert mean < 1e6 or stats.kstest(scaled, "norm").pvalue > LEAST_P


def test_binomial_and_negative_binomial_counts_of_rare_events_have_their_spread():
    for n, p in ((2**53, 1e-15), (2**53, 1e-13), (10**12, 5e-12)):
        numbers = drawn(lambda s, n=n, p=p: s.binomial(n, p, size=COUNT))
        assert abs(numbers.mean() - n * p) < 4 * np.sqrt(n * p / COUNT)
        assert abs(numbers.var() / (n * p) - 1) < 5 * np.sqrt((2 + 1 / (n * p)) / COUNT)
    for n, p in ((0.3, 0.01), (1e8, 0.9999), (1e12, 0.5), (40.0, 1e-12)):
        numbers = drawn(lambda s, n=n, p=p: s.negative_binomial(n, p, size=COUNT))
        mean, variance = n * (1 - p) / p, n * (1 - p) / p**2
        assert abs(numbers.mean() - mean) < 4 * np.sqrt(variance / COUNT)
        excess = 6 / n + p * p / (1 - p) / n
        assert abs(numbers.var() / variance - 1) < 6 * np.sqrt((2 + excess) / COUNT)
    with pytest.raises(ValueError, match="at most 2\\*\\*53 failures are likely"):
        nt.random.RandomStream(1).negative_binomial(1e10, 1e-10)


# half-open ranges ---------------------------------------------------------------------------------------------------

RANGES = [(0.0, 1.0), (1.0, 2.0), (-1.0, 1.0), (2.0, 5.0), (1e8, 1e8 + 8), (-16777216.0, 1.5), (1.0, 1.0 + 2.0**-20), (3.0, 3.0)]


@pytest.mark.parametrize(("low", "high"), RANGES)
def test_numbers_of_single_precision_never_reach_the_upper_end(low, high):
    known = drawn(lambda s: s.uniform(low, high, size=1_500_000, dtype="float32"))
    a, b = nt.fscalar("a"), nt.fscalar("b")
    traced = ns.function([a, b], nt.random.RandomStream(2).uniform(a, b, size=1_500_000))(np.float32(low), np.float32(high))
    for numbers in (known, traced):
        assert numbers.dtype == np.float32
        assert (numbers >= np.float32(low)).all()
        assert (numbers < np.float32(high)).all() or np.float32(low) == np.float32(high)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("low", "high"), [*RANGES, (2.0**53, 2.0**53 + 4), (1.0, 1.0 + 2.0**-50), (0.1, 0.3), (-0.7, 0.1)])
def test_the_greatest_word_does_not_reach_the_upper_end(low, high, dtype, monkeypatch):
    greatest = 1 - np.finfo(dtype).epsneg
    monkeypatch.setattr(nt.random.RandomStream, "_uniforms", lambda self, shape, kind: nt.as_tensor_variable(np.full(3, greatest, kind)))
    for bounds in ((low, high), (np.float64(low), np.float64(high)), (np.full(3, low), np.full(3, high))):
        numbers = drawn(lambda s, bounds=bounds: s.uniform(*bounds, size=3, dtype=dtype))
        assert numbers.dtype == dtype
        assert (numbers < np.dtype(dtype).type(high)).all() or np.dtype(dtype).type(low) == np.dtype(dtype).type(high)
        assert (numbers >= np.dtype(dtype).type(low)).all()


def test_not_a_number_as_a_bound_stays_one():
    x = nt.dscalar("x")
    assert np.isnan(ns.function([x], nt.random.RandomStream(1).uniform(x, 1.0, size=4))(np.nan)).all()
    assert np.isnan(ns.function([x], nt.random.RandomStream(1).uniform(0.5, x, size=4))(np.nan)).all()


# weights ------------------------------------------------------------------------------------------------------------

WEIGHTS = [[1e308] * 3, [5e-324, 5e-324, 0.0], [1e-320, 2e-320, 1e-320], [1e308, 1e-308, 1e308], [0.0, 1e-300, 0.0], [0.2, 0.3, 0.5]]


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_choices_follow_their_weights_however_large_or_small_these_are(weights):
    p = np.array(weights)
    exact = (p / p.max()) / (p / p.max()).sum()
    x, m = nt.dvector("x"), nt.dmatrix("m")
    s = nt.random.RandomStream(4)
    rows = ns.function([m], s.categorical(m))(np.tile(p, (COUNT, 1)))
    for found in (drawn(lambda s: s.categorical(p, size=COUNT)), ns.function([x], s.categorical(x, size=COUNT))(p), rows):
        assert (np.abs(np.bincount(found, minlength=3) / COUNT - exact) <= 4 * np.sqrt(exact * (1 - exact) / COUNT)).all()
    for counts in (drawn(lambda s: s.multinomial(COUNT, p)), ns.function([x], s.multinomial(COUNT, x))(p)):
        assert counts.sum() == COUNT
        assert (np.abs(counts / COUNT - exact) <= 4 * np.sqrt(exact * (1 - exact) / COUNT)).all()


# dtypes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_whole_numbers_reach_both_ends_of_their_dtype_and_go_no_further(dtype):
    info = np.iinfo(dtype)
    low, high = int(info.min), int(info.max)
    everything = drawn(lambda s: s.integers(low, high + 1, size=COUNT, dtype=dtype))
    assert everything.dtype == dtype
    scaled = (everything.astype("float64") - low) / (float(high) - low)
    assert (
        stats.kstest(scaled + (0 if info.bits > 16 else np.random.default_rng(1).random(COUNT) / 2**info.bits), "uniform").pvalue > LEAST_P
    )
    top = drawn(lambda s: s.integers(high - 2, high, size=500, dtype=dtype, endpoint=True))
    assert set(top.tolist()) == {high - 2, high - 1, high}
    assert set(drawn(lambda s: s.integers(low, low + 2, size=500, dtype=dtype)).tolist()) == {low, low + 1}
    for bounds in ((low - 1, high), (low, high + 2)):
        with pytest.raises(ValueError, match=rf"it must be from .* for dtype {dtype}"):
            nt.random.RandomStream(1).integers(*bounds, dtype=dtype)


def test_bounds_that_only_the_run_knows_are_held_against_the_dtype():
    n, u = nt.lscalar("n"), nt.tensor("uint64", shape=())
    s = nt.random.RandomStream(1)
    small = ns.function([n], s.integers(0, n, size=9, dtype="int8"))
    assert small(128).dtype == np.int8
    for wrong in (129, 300, -(2**63)):
        with pytest.raises(ValueError, match="integers: high must be"):
            small(wrong)
    with pytest.raises(ValueError, match="integers: high must be"):
        ns.function([u], s.integers(0, u, size=9))(2**63 + 5)
    with pytest.raises(ValueError, match="integers: low must be"):
        ns.function([n], s.integers(n, 9, dtype="uint64"))(-1)


def test_dtypes_that_do_not_hold_what_is_drawn_are_refused():
    s, n = nt.random.RandomStream(1), nt.lscalar("n")
    for dtype in ("int8", "uint8", "int32", "bool"):
        for make in (
            lambda d: s.poisson(2.0, dtype=d),
            lambda d: s.geometric(0.5, dtype=d),
            lambda d: s.negative_binomial(2.0, 0.5, dtype=d),
        ):
            with pytest.raises(ValueError, match=f"dtype is {dtype}.*does not hold every number that may be drawn"):
                make(dtype)
    for make in (
        lambda n: s.binomial(n, 0.5, dtype="int8"),
        lambda n: s.multinomial(n, np.ones(3), dtype="int8"),
        lambda n: s.categorical(nt.ones((n + 1,)), dtype="int8"),
    ):
        with pytest.raises(ValueError, match="at most 127, the greatest number of dtype int8"):
            ns.function([n], make(n))(128)
        with pytest.raises(ValueError, match="at most 127, the greatest number of dtype int8"):
            drawn(lambda _, make=make: make(128))
        assert ns.function([n], make(n))(127).dtype == np.int8
    assert drawn(lambda s: s.bernoulli(0.5, size=4, dtype="bool")).dtype == bool


@pytest.mark.parametrize("mode", [None, "python"])
def test_bounds_and_counts_of_few_bits_do_not_wrap(mode):
    def run(draw, *numbers):
        variables = [nt.tensor(number.dtype, shape=number.shape) for number in numbers]
        s = nt.random.RandomStream(3)
        return ns.function(variables, draw(s, *variables), mode=mode, on_unused_input="ignore")(*numbers)

    few = [np.array([k], "int8") for k in (-100, 100, 120)]
    many = [np.array([k], "float64") for k in (-100, 100, 120)]
    np.testing.assert_array_equal(run(lambda s, *x: s.triangular(*x), *few), run(lambda s, *x: s.triangular(*x), *many))
    np.testing.assert_array_equal(run(lambda s, a, b, c: s.uniform(a, c), *few), run(lambda s, a, b, c: s.uniform(a, c), *many))
    np.testing.assert_array_equal(
        run(lambda s, a, b, c: s.hypergeometric(b, c, c), *few), run(lambda s, a, b, c: s.hypergeometric(b, c, c), *many)
    )


def test_bounds_far_apart_do_not_wrap():
    assert (np.abs(drawn(lambda s: s.uniform(-(2**63), 2**63 - 1, size=COUNT))).mean() - 2.0**62) < 2.0**60
    assert np.abs(drawn(lambda s: s.triangular(-(2**62), 0, 2**62, size=50))).max() < 2.0**62


def test_counts_are_whole_and_parameters_real():
    s, x = nt.random.RandomStream(0), nt.dscalar("x")
    for draw in (lambda n: s.binomial(n, 0.5), lambda n: s.multinomial(n, np.ones(3)), lambda n: s.hypergeometric(n, 20, 3)):
        with pytest.raises(ValueError, match=r"10.5 .*; it must be a whole number"):
            draw(10.5)
        with pytest.raises(ValueError, match="must be a whole number"):
            ns.function([x], draw(x))(10.5)
    for draw in (s.wald, s.gamma, s.poisson, s.bernoulli, lambda z: s.vonmises(z, 1.0)):
        with pytest.raises(TypeError, match="it must be real"):
            draw(np.array([1j]))
    with pytest.raises(ValueError, match="right - left too"):
        s.triangular(-1e308, 0.0, 1e308)


# angles, first passages, drawing without replacement -----------------------------------------------------------------


@pytest.mark.parametrize("kappa", [0.0, 1e-300, 1e-9, 30.0, 1e6, 1e12, 1e300, 1.5e308])
def test_angles_follow_their_distribution_however_narrow_it_is(kappa):
    angles = drawn(lambda s: s.vonmises(0.0, kappa, size=COUNT))
    assert (np.abs(angles) <= np.pi).all()
    if kappa < 1e3:
        law = stats.vonmises(kappa) if kappa > 1e-6 else stats.uniform(-np.pi, 2 * np.pi)
        assert stats.kstest(angles, law.cdf).pvalue > LEAST_P
    else:
        assert_standard(angles * np.sqrt(kappa))
    np.testing.assert_array_equal(drawn(lambda s: s.vonmises(0.0, kappa, size=50), mode="python"), angles[:50])


def test_angles_turn_with_their_middle():
    at_0, turned = (drawn(lambda s, mu=mu: s.vonmises(mu, 0.7, size=COUNT)) for mu in (0.0, 100.0))
    assert (np.abs(turned) <= np.pi + 1e-12).all()
    np.testing.assert_allclose(np.exp(1j * turned), np.exp(1j * (at_0 + 100.0)), atol=1e-12)


@pytest.mark.parametrize(("mean", "scale"), [(1.0, 1e12), (1e6, 1e-3), (1e200, 1e-200), (1e-3, 1.0)])
def test_wald_numbers_of_extreme_parameters(mean, scale):
    numbers = drawn(lambda s: s.wald(mean, scale, size=COUNT))
    assert ((numbers > 0) & np.isfinite(numbers)).all()
    if scale > 1e6 * mean:
        assert_standard((numbers - mean) / np.sqrt(mean**3 / scale))
    else:  # beyond a mean that is far out: those of Levy's distribution
        law = stats.levy(scale=scale) if mean > 1e6 * scale else stats.invgauss(mean / scale, scale=scale)
        assert stats.kstest(numbers, law.cdf).pvalue > LEAST_P


@pytest.mark.parametrize(
    ("good", "bad", "sample"), [(10**9, 10**9, 10**6), (2**52, 2**52, 2**51), (10**15, 10**3, 10**14), (10**6, 10**15, 10**12)]
)
def test_hypergeometric_numbers_of_large_parameters_have_their_spread(good, bad, sample):
    numbers = drawn(lambda s: s.hypergeometric(good, bad, sample, size=COUNT))
    every = good + bad
    mean = sample * (good / every)
    spread = np.sqrt(mean * (bad / every) * ((every - sample) / (every - 1)))
    assert ((numbers >= max(0, sample - bad)) & (numbers <= min(good, sample))).all()
    assert abs(numbers.mean() - mean) < 4 * spread / np.sqrt(COUNT) + 1
    assert abs(numbers.std() / spread - 1) < 4 / np.sqrt(2 * COUNT)
    np.testing.assert_array_equal(drawn(lambda s: s.hypergeometric(good, bad, sample, size=50), mode="python"), numbers[:50])


@pytest.mark.parametrize("mode", ["numba", "python"])
def test_hypergeometric_numbers_that_cannot_be_otherwise(mode):
    good, bad, sample = np.array([0, 5, 5, 5, 0, 1000]), np.array([5, 0, 5, 5, 0, 2000]), np.array([3, 3, 0, 10, 0, 3000])
    assert drawn(lambda s: s.hypergeometric(good, bad, sample), mode=mode).tolist() == [0, 3, 0, 5, 0, 1000]


def test_the_exact_arctangent():
    from numbascan.ops.draw_methods import exact_arctan

    x = np.concatenate([np.linspace(-5, 5, 20_001), [1e-300, 1e300, np.inf, -np.inf]])
    np.testing.assert_allclose(exact_arctan(x), np.arctan(x), rtol=1e-15)


def test_integers_tell_the_bound_that_was_seen():
    s = nt.random.RandomStream(1)
    with pytest.raises(ValueError, match=r"integers: high - 1 is 1 .*it must be at least low"):
        s.integers(5, 2)
    with pytest.raises(ValueError, match=r"integers: high is 4 .*it must be at least low"):
        s.integers(5, 4, endpoint=True)
