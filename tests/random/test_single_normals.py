"""Single normal numbers: the inverse distribution function of a word, accurate to the ends of both tails, and of the right law."""

import numpy as np
import pytest
from scipy import special, stats

import numbascan as ns
import numbascan.tensor as nt
from numbascan.emit.runtime.random import normal_of
from numbascan.ops import draw_methods

HALF = 2**63
RNG = np.random.default_rng(3)
DEEP = np.concatenate([RNG.integers(2**k, 2 ** (k + 1), 500, dtype=np.uint64) for k in range(63)])  # tails down to 2**-64
BORDERS = (0.075, np.exp(-25.0), 0.5, 0.25, 0.01)
NEAR = [int(tail * 2**64) + k * 2**step for tail in BORDERS for k in range(-50, 51) for step in (0, 12, 40)]
WORDS = np.concatenate([DEEP, np.array([*range(100), *(word for word in NEAR if 0 <= word < HALF), HALF - 1], dtype=np.uint64)])
MILLION = 1_000_000


def of_words(words):
    with np.errstate(all="ignore"):
        return draw_methods.normal_of(words)


def test_every_part_is_accurate():
    """Against SciPy's, by another method, whose own error is part of the bound."""
    tails = (WORDS.astype(np.float64) + 0.5) * 2.0**-64
    np.testing.assert_allclose(of_words(WORDS), special.ndtri(tails), rtol=1.5e-15)
    assert {draw_methods.is_outside(tail) for tail in tails.tolist()} == {True, False}
    assert tails.min() < np.exp(-25.0) / 1e8


def test_it_inverts_the_distribution_function():
    tails = (WORDS.astype(np.float64) + 0.5) * 2.0**-64
    x = of_words(WORDS)
    np.testing.assert_allclose(special.ndtr(x), tails, rtol=1e-15 * (2 + x.max() ** 2) + 1e-13)


def test_both_tails_are_the_same_and_reach_as_far():
    np.testing.assert_array_equal(of_words(~WORDS), -of_words(WORDS))
    low, high = of_words(np.array([0, 2**64 - 1], dtype=np.uint64))
    assert -low == high == pytest.approx(9.155293772686, rel=1e-12)


def test_larger_words_give_larger_numbers():
    """Up to rounding, at the borders of the parts too."""
    x = of_words(np.sort(np.concatenate([WORDS, ~WORDS])))
    assert (np.diff(x) >= -4e-16 * np.abs(x[1:])).all()


def test_compiled_numbers_are_the_same_bits():
    words = np.concatenate([WORDS, ~WORDS])
    for word, x in zip(words[::7], of_words(words[::7]), strict=True):
        assert normal_of(word) == x


@pytest.fixture(scope="module")
def numbers():
    srng = nt.random.RandomStream(2024)
    return ns.scan(lambda: srng.normal())(n_steps=4 * MILLION)


def test_law(numbers):
    assert stats.kstest(numbers, stats.norm.cdf).pvalue > 1e-3


def test_moments(numbers):
    """The first six, in standard errors."""
    for k, (moment, twice) in enumerate(((0, 1), (1, 3), (0, 15), (3, 105), (0, 945), (15, 10395)), start=1):
        assert abs((numbers**k).mean() - moment) < 4 * np.sqrt((twice - moment**2) / len(numbers))


@pytest.mark.parametrize("border", [1.0, 1.44, 2.0, 3.0, 4.0, 4.5])
def test_tails(numbers, border):
    for beyond in (numbers > border, numbers < -border):
        assert stats.binomtest(int(beyond.sum()), len(numbers), stats.norm.sf(border)).pvalue > 1e-3


@pytest.mark.parametrize("name", ["lognormal", "t"])
def test_what_is_made_of_single_normal_numbers(name):
    srng = nt.random.RandomStream(2025)
    draw, law = {
        "lognormal": (lambda: srng.lognormal(0.1, 0.5), stats.lognorm(0.5, scale=np.exp(0.1))),
        "t": (lambda: srng.t(4.0, 1.0, 2.0), stats.t(4, 1, 2)),
    }[name]
    assert stats.kstest(ns.scan(draw)(n_steps=MILLION // 5), law.cdf).pvalue > 1e-3
